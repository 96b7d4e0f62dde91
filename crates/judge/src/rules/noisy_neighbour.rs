//! Other users of the same machine or device.

use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::load::Op;
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::parameters::RunParameters;

use super::{CalibrationRule, Case, RunCase, RunRule, all_figures, labels, percent};
use crate::derive;
use crate::window::Window;

const ABOUT: About = About {
    id: "noisy-neighbour",
    weight: Weight::Warns,
    doc: "Other activity during the measurement: processor time of other processes, time stolen \
          by the hypervisor, or I/O of others on the device.",
    threshold: "In the window of a headline figure or over all windows: other processes used more \
                than 10 % of all processor time (only user time on loop, device-mapper, RAID and \
                zram devices, whose kernel threads serve this load), more than 2 % was stolen, or \
                more than 5 % of the requests and bytes of the device were not of this process \
                (for reads: writes, and bytes read that were not charged to this process; for \
                writes: reads). In a run, only bytes read count, if at least 10 MB were read. \
                Inconclusive if one of the three was not measured and the others show nothing.",
    cause: "Another process, container or virtual machine uses the same processors or device.",
    next: "Stop it, or measure at a quiet time; the evidence shows what was used.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

const FOREIGN_CPU_MAX: f64 = 0.10;
const STEAL_MAX: f64 = 0.02;
const FOREIGN_IO_MAX: f64 = 0.05;
/// Fewest bytes read by a device for which the share of others is meaningful.
const ENOUGH_BYTES: u64 = 10_000_000;

const PROCESSORS: &str = "processor time of others";
const STOLEN: &str = "stolen time";
const IO_OF_OTHERS: &str = "I/O of others";
const READS_OF_OTHERS: &str = "reads of others";
const NOT_MEASURED: &str = "neither the processors nor the device were measured";

/// One kind of work of others, as a share, with the limit for it.
struct Noise {
    what: &'static str,
    ratio: f64,
    limit: f64,
}

fn check(case: &Case) -> Judgement {
    let all: Vec<&Window> = case.storage_windows().collect();
    let mut worst: Option<(f64, String)> = None;
    let mut note = |label: &str, noise: &[Noise]| {
        let severity = noise.iter().map(|n| n.ratio / n.limit).fold(0.0, f64::max);
        if worst.as_ref().is_none_or(|(most, _)| severity > *most) {
            worst = Some((severity, format!("{label}: {}", text(noise))));
        }
        severity > 1.0
    };
    let noise = |windows: &[&Window]| {
        noise(case.devices(), windows, (IO_OF_OTHERS, foreign_io_ratio(case, windows)))
    };
    let over_all = noise(&all);
    let measured = !over_all.is_empty();
    let unseen = unseen(&over_all, IO_OF_OTHERS);
    let mut found = if measured && note("all windows", &over_all) {
        labels(case.storage_points())
    } else {
        Vec::new()
    };
    for point in case.headlines() {
        let windows = case.windows_of(&point.label);
        if note(&point.label, &noise(&windows)) && !found.contains(&point.label) {
            found.push(point.label.clone());
        }
    }
    match worst {
        Some((_, evidence)) if measured && found.is_empty() => pass(evidence, &unseen),
        Some((_, evidence)) if measured => Judgement::fail(evidence, found),
        _ => Judgement::inconclusive(NOT_MEASURED),
    }
}

/// Returns which of the three were not measured.
fn unseen(seen: &[Noise], io: &'static str) -> Vec<&'static str> {
    let all = [PROCESSORS, STOLEN, io];
    all.into_iter().filter(|what| seen.iter().all(|noise| noise.what != *what)).collect()
}

/// Returns a pass, unless something was `unseen`.
fn pass(evidence: String, unseen: &[&str]) -> Judgement {
    if unseen.is_empty() {
        return Judgement::pass(evidence);
    }
    Judgement::inconclusive(format!("{evidence}; not measured: {}", unseen.join(", ")))
}

/// Returns whether kernel threads work for us above these devices.
fn kernel_helps(devices: &[BlockDevice]) -> bool {
    let own = |kind| matches!(kind, DeviceKind::Disk | DeviceKind::Partition);
    devices.iter().any(|device| !own(device.kind))
}

/// Returns foreign processor time, stolen time and this foreign I/O, as far as they were measured.
fn noise(
    devices: &[BlockDevice],
    windows: &[&Window],
    (io, io_ratio): (&'static str, Option<f64>),
) -> Vec<Noise> {
    let foreign = derive::foreign(windows)
        .map(|seen| if kernel_helps(devices) { seen.user_ratio } else { seen.busy_ratio });
    let seen = [
        (PROCESSORS, foreign.ok(), FOREIGN_CPU_MAX),
        (STOLEN, derive::steal_ratio(windows).ok(), STEAL_MAX),
        (io, io_ratio, FOREIGN_IO_MAX),
    ];
    let measured = seen
        .into_iter()
        .filter_map(|(what, ratio, limit)| Some(Noise { what, ratio: ratio?, limit }));
    measured.collect()
}

/// Returns the noise in words: `12 % foreign processor time, 0 % stolen`.
fn text(noise: &[Noise]) -> String {
    let seen = noise.iter().map(|noise| format!("{} {}", percent(noise.ratio), noise.what));
    seen.collect::<Vec<_>>().join(", ")
}

/// Returns the share of the top devices' I/O that is not ours: the lesser of its share of requests
/// and of bytes, because a journal's few small writes are many requests next to large reads and
/// many bytes next to none.
fn foreign_io_ratio(case: &Case, windows: &[&Window]) -> Option<f64> {
    let (mut ios, mut foreign_ios, mut bytes, mut foreign_bytes) = (0, 0, 0, 0);
    for window in windows {
        let load = case.phase(window).load.as_ref()?;
        let get = |column| window.top(&[column]).ok();
        let reads = (get("read_ios")?, get("read_bytes")?);
        let writes = (get("write_ios")?, get("write_bytes")?);
        ios += reads.0 + writes.0;
        bytes += reads.1 + writes.1;
        // A file system writes more than requested (journal, metadata), so during our writes only
        // reads are certainly foreign; during our reads everything else is foreign.
        let (other, ours) = if load.op == Op::Read { (writes, reads) } else { (reads, (0, 0)) };
        let charged = window.process.get("read_bytes").ok()?;
        let excess = ours.1.saturating_sub(charged);
        foreign_bytes += other.1 + excess;
        foreign_ios += other.0 + ours.0 * excess / ours.1.max(1);
    }
    if ios == 0 {
        return None;
    }
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    Some(share(foreign_ios, ios).min(share(foreign_bytes, bytes)))
}

fn check_run(case: &RunCase) -> Judgement {
    let window = case.window.machine();
    let (read, foreign_ratio) = foreign_reads(case).unzip();
    let io = (READS_OF_OTHERS, foreign_ratio.filter(|_| read >= Some(ENOUGH_BYTES)));
    let noise = noise(&case.manifest.target.devices, &[&window], io);
    if noise.is_empty() {
        return Judgement::inconclusive(NOT_MEASURED);
    }
    if noise.iter().any(|noise| noise.ratio > noise.limit) {
        return Judgement::fail(text(&noise), all_figures());
    }
    let mut unseen = unseen(&noise, READS_OF_OTHERS);
    // If the device hardly read anything, neither did others.
    unseen.retain(|what| *what != READS_OF_OTHERS || read.is_none());
    pass(text(&noise), &unseen)
}

/// Returns the device's read bytes, and the share of them that was not charged to this process.
/// Nothing can be said about writes: file systems and mirrors write more than requested.
fn foreign_reads(case: &RunCase) -> Option<(u64, f64)> {
    // With several disks, all devices are in one list that does not say which disk they belong to.
    let disks = case.manifest.parameters::<RunParameters>().disks;
    if disks.is_some_and(|disks| disks.len() > 1) {
        return None;
    }
    let device = case.manifest.target.devices.first()?;
    let read = case.window.grown("block", &device.name, "read_bytes").ok()?;
    let reads = case.findings.ledger.iter().find(|row| row.what == "reads")?;
    let charged = reads.process.value()?;
    Some((read, read.saturating_sub(charged) as f64 / read.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::DeviceKind;
    use blockstone_base::load::Op;
    use blockstone_base::verdict::Outcome;

    use crate::testing::{Fixture, device};

    fn judged(spoil: impl FnOnce(&mut Fixture)) -> (Outcome, String) {
        let mut fixture = Fixture::healthy();
        spoil(&mut fixture);
        let verdict = fixture.verdict("noisy-neighbour");
        (verdict.outcome, verdict.evidence)
    }

    #[test]
    fn each_kind_of_neighbour_is_named() {
        let (outcome, evidence) = judged(|f| {
            f.windows.iter_mut().for_each(|w| w.host.set("cpu_steal_ns", 200_000_000));
        });
        assert_eq!(outcome, Outcome::Fail, "{evidence}");
        let (outcome, evidence) = judged(|f| {
            for window in f.windows_mut(Op::Read) {
                let device = &mut window.devices[0].1;
                let (ios, bytes) = (device.get("read_ios"), device.get("read_bytes"));
                device.set("write_ios", ios.unwrap() / 5);
                device.set("write_bytes", bytes.unwrap() / 5);
            }
        });
        assert_eq!(outcome, Outcome::Fail, "{evidence}");
        assert!(evidence.contains("16.7 % I/O of others"), "{evidence}");
    }

    #[test]
    fn foreign_reads_are_told_from_ours() {
        let (outcome, evidence) = judged(|f| {
            for window in f.windows_mut(Op::Read) {
                let own = window.process.get("read_bytes").unwrap();
                window.devices[0].1.set("read_bytes", own * 2);
            }
        });
        assert_eq!(outcome, Outcome::Fail, "{evidence}");
        assert!(evidence.contains("50 % I/O of others"), "{evidence}");
    }

    #[test]
    fn kernel_threads_of_a_loop_device_work_for_us() {
        let busy = |f: &mut Fixture| {
            for window in &mut f.windows {
                let half = window.duration_ns() / 2;
                window.host.set("cpu_system_ns", window.host.get("cpu_system_ns").unwrap() + half);
            }
        };
        assert_eq!(judged(busy).0, Outcome::Fail);
        let on_loop = judged(|f| {
            busy(f);
            f.manifest.target.devices.insert(0, device("loop0", DeviceKind::Loop));
        });
        assert_eq!(on_loop.0, Outcome::Pass, "{}", on_loop.1);
    }

    #[test]
    fn what_was_not_measured_is_no_silence() {
        let (outcome, evidence) = judged(|f| f.windows.iter_mut().for_each(|w| w.devices.clear()));
        assert_eq!(outcome, Outcome::Inconclusive, "{evidence}");
        assert!(evidence.ends_with("not measured: I/O of others"), "{evidence}");
        let (outcome, evidence) = judged(|f| {
            f.windows.iter_mut().for_each(|w| {
                let read = w.process.get("read_bytes").unwrap();
                w.process = FromIterator::from_iter([("read_bytes", read)]);
            });
        });
        assert_eq!(outcome, Outcome::Inconclusive, "{evidence}");
        assert!(evidence.ends_with("not measured: processor time of others"), "{evidence}");
    }
}
