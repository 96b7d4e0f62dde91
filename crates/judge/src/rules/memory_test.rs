//! Reads that were answered from memory, and writes that stayed in it.

use blockstone_base::Bytes;
use blockstone_base::identity::{BlockDevice, DeviceKind, StorageTarget};
use blockstone_base::load::{LoadSpec, Op};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_figures::Grown;
use blockstone_record::manifest::Manifest;

use super::{
    CalibrationRule, Case, RunCase, RunRule, all_figures, file_system, in_memory, labels,
    megabytes, percent, read_figures,
};
use crate::derive;
use crate::findings::Point;
use crate::run::has_server;
use crate::window::Window;

pub const ABOUT: About = About {
    id: "memory-test",
    weight: Weight::Condemns,
    doc: "Reads or writes that did not reach the storage: the kernel charged far fewer bytes to \
          this process, or moved far fewer beneath a loop device, than the load generator \
          completed or the database read; or the file system is in memory.",
    threshold: "More than 10 % of the bytes of a point are missing, after allowing for the \
                requests in flight at both edges of its windows. In measurements, a hole or a \
                cached file misses 100 %, and real direct reads at most 0.3 %; at 10 % the rate is \
                at most 11 % too high. Phases that are cached on purpose (cached-read/cached and \
                /buffered) are excluded. Of buffered writes without a flush the bytes of the \
                device are compared: the kernel charges a process when it makes a page dirty. In a \
                run: more than 10 % of the bytes read, if at least \
                10 MB were read, allowing for the tables that the window's edges cut; or of the \
                bytes of tables that were made and flushed. Inconclusive on a loop device if \
                nothing is known beneath it. In a claim: main memory can hold more than half of \
                the data, and direct I/O was not stated; or the claim says that a cache answered.",
    cause: "The page cache, a hole in the file or a file system in memory served the reads, or \
            the page cache absorbed the writes.",
    next: "Measure a fully written file with direct I/O, on the storage itself; with --buffered, \
           use a file several times larger than memory.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

/// Largest share of a point's bytes that may be missing; see the rule's threshold.
const MISSING_RATIO_MAX: f64 = 0.10;
/// Fewest bytes read by a run for which their share is meaningful.
const ENOUGH_BYTES: u64 = 10_000_000;
const RUN_CAUSE: &str = "The page cache, a hole of the file or a file system in memory answered.";
const RUN_NEXT: &str = "\
    Run on a file system that supports direct I/O, on the storage itself. A database that reads \
    through the page cache needs a bound on it and twenty times as much data (--page-cache 64M, \
    for SQLite and servers of this run), or a --scale several times larger than memory, or direct \
    I/O of its own: --io direct for SQLite, --mariadb-conf innodb_flush_method=O_DIRECT, or from \
    PostgreSQL 16 on --pg-conf debug_io_direct=data.";

fn check(case: &Case) -> Judgement {
    let targets = targets(case.manifest);
    if let Some(memory) = targets.iter().find_map(|target| in_memory(target)) {
        return Judgement::fail(
            format!("{memory} keeps files in main memory"),
            labels(case.storage_points()),
        );
    }
    let mut judged = 0;
    let mut least_seen = 1.0_f64;
    let mut found = Vec::new();
    let mut evidence = String::new();
    for point in case.storage_points() {
        let Some(seen) = seen(case, point) else { continue };
        judged += 1;
        if seen.missing_ratio() <= MISSING_RATIO_MAX {
            least_seen = least_seen.min(seen.bytes as f64 / seen.completed.max(1) as f64);
            continue;
        }
        if found.is_empty() {
            evidence = format!(
                "{}: {} completed, {} {} ({})",
                point.label,
                megabytes(seen.completed),
                megabytes(seen.bytes),
                seen.layer,
                percent(seen.bytes as f64 / seen.completed as f64),
            );
        }
        found.push(point.label.clone());
    }
    let blind = targets.iter().find_map(|target| bottomless_loop(target));
    let blind = blind.filter(|_| found.is_empty());
    if let Some(why) = blind.filter(|_| judged > 0) {
        return Judgement::inconclusive(why);
    }
    match (judged, found.len()) {
        (0, _) => Judgement::inconclusive(nothing_to_compare(case)),
        (_, 0) => Judgement::pass(format!(
            "{judged} points: at least {} of the completed bytes were storage I/O",
            percent(least_seen)
        )),
        (_, 1) => Judgement::fail(evidence, found),
        (_, n) => Judgement::fail(format!("{evidence}; {n} of {judged} points in all"), found),
    }
}

fn nothing_to_compare(case: &Case) -> String {
    if case.storage_points().next().is_none() {
        "nothing was read or written".to_owned()
    } else if case.devices().is_empty() {
        no_device(case.manifest)
    } else {
        "neither /proc/self/io nor the block layer was measured".to_owned()
    }
}

fn no_device(manifest: &Manifest) -> String {
    format!(
        "{} has no block device beneath it here, so the kernel counts none of its I/O",
        file_system(manifest)
    )
}

/// The layer that saw the fewest bytes of a point.
struct Shortfall {
    completed: u64,
    /// Bytes in flight at the edges: completed inside a window but charged outside, or the reverse.
    slack: u64,
    bytes: u64,
    layer: String,
}

impl Shortfall {
    fn missing_ratio(&self) -> f64 {
        let missing = self.completed.saturating_sub(self.bytes + self.slack);
        missing as f64 / self.completed.max(1) as f64
    }
}

/// Returns `None` if nothing was measured that could tell, or the point is so short that the
/// requests in flight at its edges decide.
fn seen(case: &Case, point: &Point) -> Option<Shortfall> {
    if case.devices().is_empty() {
        return None;
    }
    let in_flight = |load: &LoadSpec| u64::from(load.in_flight()) * load.block_bytes;
    let both =
        in_flight(&point.load) + point.background.as_ref().map_or(0, |(load, _)| in_flight(load));
    let completed = point.evidence.completed_bytes;
    let slack = 2 * u64::from(point.windows) * both;
    if completed <= 4 * slack {
        return None;
    }
    let seen = |(bytes, layer): (u64, String)| Shortfall { completed, slack, bytes, layer };
    // The process's own account takes precedence: with a file system over several devices, the
    // first of them would show only a part.
    // The kernel charges a buffered write when it makes a page dirty, not when it writes it.
    let LoadSpec { op, direct, sync, .. } = &point.load;
    let is_deferred = *op == Op::Write && !direct && sync.is_none();
    let process = point.evidence.process_bytes.filter(|_| !is_deferred);
    let process = process.map(|bytes| (bytes, "charged to this process".to_owned()));
    let device = point.evidence.device_bytes.map(|b| (b, moved(point, "the device")));
    let own = process.or(device);
    own.into_iter().chain(beneath_loop(case, point)).map(seen).min_by_key(|seen| seen.bytes)
}

/// Describes a loop device below which nothing is known, if there is one: the page cache of its
/// backing file may answer.
fn bottomless_loop(target: &StorageTarget) -> Option<String> {
    let devices = &target.devices;
    let at = loop_in(devices)?;
    devices.get(at + 1).is_none().then(|| {
        let name = &devices[at].name;
        format!("no device beneath {name} counts what the page cache of its file did not answer")
    })
}

fn loop_in(chain: &[BlockDevice]) -> Option<usize> {
    chain.iter().position(|device| device.kind == DeviceKind::Loop)
}

/// Returns what the device below a loop device moved, together with that of other targets: a loop
/// device without direct I/O uses the page cache of its backing file.
fn beneath_loop(case: &Case, point: &Point) -> Option<(u64, String)> {
    let mut loops = Vec::new();
    let mut beneath: Vec<&str> = Vec::new();
    for StorageTarget { devices, .. } in targets(case.manifest) {
        let at = loop_in(devices);
        loops.extend(at.map(|at| devices[at].name.as_str()));
        beneath.push(&devices.get(at.map_or(0, |at| at + 1))?.name);
    }
    if loops.is_empty() {
        return None;
    }
    beneath.sort_unstable();
    beneath.dedup();
    let [bytes, ..] = derive::columns(point.load.op);
    let of = |window: &Window| -> Grown {
        beneath.iter().map(|name| derive::device(window, name, bytes)).sum()
    };
    let sum = case.windows_of(&point.label).into_iter().map(of).sum::<Grown>().ok()?;
    let where_to = format!("{} beneath {}", beneath.join(", "), loops.join(", "));
    Some((sum, moved(point, &where_to)))
}

/// Returns each of several targets, or the only one.
fn targets(manifest: &Manifest) -> Vec<&StorageTarget> {
    match manifest.targets.as_slice() {
        [] => vec![&manifest.target],
        several => several.iter().map(|measured| &measured.target).collect(),
    }
}

/// Returns a description: `read from nvme0n1`, `written to nvme0n1`.
fn moved(point: &Point, device: &str) -> String {
    match point.load.op {
        Op::Read => format!("read from {device}"),
        Op::Write | Op::Commit => format!("written to {device}"),
        Op::Mixed => format!("moved by {device}"),
    }
}

fn check_run(case: &RunCase) -> Judgement {
    if let Some(memory) = in_memory(&case.manifest.target) {
        let evidence = format!("{memory} keeps files in main memory");
        return Judgement::fail(evidence, all_figures()).caused_by(RUN_CAUSE).advising(RUN_NEXT);
    }
    if let Some(judgement) = tables_that_were_not_written(case) {
        return judgement;
    }
    let Some(reads) = case.findings.ledger.iter().find(|row| row.what == "reads") else {
        return Judgement::inconclusive("the reads were not counted");
    };
    let Some(bytes) = reads.claimed.value() else {
        return Judgement::inconclusive("the target does not report what it read");
    };
    // The reads of a statement are counted when it has ended.
    let bytes = case.findings.statements.as_ref().map_or(bytes, |scans| scans.bytes);
    let Some(charged) = reads.process.value() else {
        return Judgement::inconclusive("what the kernel charged for reads was not measured");
    };
    if case.manifest.target.devices.is_empty() {
        return Judgement::inconclusive(no_device(case.manifest));
    }
    if bytes < ENOUGH_BYTES {
        return Judgement::inconclusive(format!("only {} were read", megabytes(bytes)));
    }
    let share = charged as f64 / bytes as f64;
    let missing = 1.0 - share - cut_off(case);
    let next = if has_server(case.window) { past_memory(case) } else { RUN_NEXT.to_owned() };
    if missing <= MISSING_RATIO_MAX
        && let Some(judgement) = through_loop(case, bytes)
    {
        return judgement;
    }
    let evidence = format!(
        "{} read from the disks according to {}, {} of it charged to {} by the kernel ({}); {} \
         came from the page cache",
        megabytes(bytes),
        if has_server(case.window) { "the database" } else { "the instance" },
        megabytes(charged),
        if has_server(case.window) { "its processes" } else { "this process" },
        percent(share),
        percent((1.0 - share).max(0.0))
    );
    Judgement::decide(missing > MISSING_RATIO_MAX, evidence, read_figures())
        .caused_by(RUN_CAUSE)
        .advising(next)
}

/// Returns the share of reads that a bulk write may count on the other side of an edge of its
/// window: a database counts those of a statement when it has returned.
fn cut_off(case: &RunCase) -> f64 {
    let Some(made) = &case.findings.bulk_write else { return 0.0 };
    2.0 * case.window.sessions() as f64 / made.tables.max(1) as f64
}

/// Judges a bulk write: whether the kernel charged fewer bytes than the flushed tables have.
fn tables_that_were_not_written(case: &RunCase) -> Option<Judgement> {
    let (_, written) = case.findings.bulk_write.as_ref()?.cost("process_write_ratio")?;
    (written.high < 1.0 - MISSING_RATIO_MAX).then(|| {
        let evidence = format!(
            "of the bytes of tables that were flushed, {} were charged as written",
            percent(written.value)
        );
        Judgement::fail(evidence, vec!["bulk_flushed_mbps".to_owned()])
            .caused_by("The flush did not write the tables, or others were charged for it.")
            .advising(
                "Compare the bytes that the device wrote; look at the flushes of the database.",
            )
    })
}

/// Returns the advice for a database that reads through the page cache, with the size for this
/// machine: the cache may answer at most [`MISSING_RATIO_MAX`], so the data must be that much
/// larger.
fn past_memory(case: &RunCase) -> String {
    let memory_bytes = case.manifest.host.memory_bytes;
    let least_bytes = memory_bytes as f64 / MISSING_RATIO_MAX;
    let scale = super::scale::of_all(&case.window.parameters(), least_bytes as u64);
    match scale.filter(|_| memory_bytes > 0) {
        Some(scale) => format!(
            "{RUN_NEXT} On this machine, whose memory is {}, that is {scale}: its page cache then \
             holds at most a tenth of the data.",
            Bytes(memory_bytes)
        ),
        None => RUN_NEXT.to_owned(),
    }
}

/// Judges reads through a loop device by what the kernel's account does not already contain. `None`
/// without such a device, or if the device below it read as much.
fn through_loop(case: &RunCase, bytes: u64) -> Option<Judgement> {
    let target = &case.manifest.target;
    let at = loop_in(&target.devices)?;
    if let Some(why) = bottomless_loop(target) {
        return Some(Judgement::inconclusive(why));
    }
    let (name, beneath) = (&target.devices[at].name, &target.devices[at + 1].name);
    let disks = case.window.parameters().disks.map_or(1, |disks| disks.len());
    let Some(read) = case.window.grown("block", beneath, "read_bytes").ok().filter(|_| disks <= 1)
    else {
        return Some(Judgement::inconclusive(format!(
            "what was read beneath {name}, past the page cache of its file, was not measured"
        )));
    };
    let share = read as f64 / bytes as f64;
    (1.0 - share > MISSING_RATIO_MAX).then(|| {
        let evidence = format!(
            "{} read through {name}, {} of it from {beneath} beneath ({})",
            megabytes(bytes),
            megabytes(read),
            percent(share)
        );
        Judgement::fail(evidence, read_figures()).caused_by(RUN_CAUSE).advising(RUN_NEXT)
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::DeviceKind;
    use blockstone_base::load::Op;
    use blockstone_base::verdict::Outcome;

    use crate::testing::{Fixture, device};
    use crate::window::Growth;

    #[test]
    fn readahead_and_edge_effects_are_no_memory_test() {
        let mut fixture = Fixture::healthy();
        for window in fixture.windows_mut(Op::Read) {
            let read = window.process.get("read_bytes").unwrap();
            // 128 KiB of readahead for every 8 KiB, and on some points 0.3 % charged elsewhere.
            let factor = if window.phase % 2 == 0 { 16_000 } else { 997 };
            window.process.set("read_bytes", read / 1_000 * factor);
        }
        let verdict = fixture.verdict("memory-test");
        assert_eq!(verdict.outcome, Outcome::Pass, "{}", verdict.evidence);
    }

    #[test]
    fn requests_in_flight_at_the_edges_do_not_condemn_a_slow_device() {
        let mut fixture = Fixture::empty();
        let load = crate::testing::load(Op::Read, "uring", 128);
        let slow = crate::testing::Behaviour::natural(200.0, 640e6);
        fixture.add(
            "random-read/uring/d128",
            blockstone_record::manifest::Group::RandomRead,
            load,
            &slow,
        );
        fixture.windows[0].process.set("read_bytes", 0);
        assert_eq!(fixture.verdict("memory-test").outcome, Outcome::Inconclusive);
    }

    #[test]
    fn a_loop_device_is_judged_by_what_lies_beneath_it() {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices.insert(0, device("loop0", DeviceKind::Loop));
        for window in &mut fixture.windows {
            let beneath = window.devices[0].1.clone();
            window.devices.insert(0, ("loop0".into(), beneath));
        }
        assert_eq!(fixture.verdict("memory-test").outcome, Outcome::Pass);
        // Without direct I/O on the loop device the page cache of its backing file answers.
        for window in &mut fixture.windows {
            window.devices[1].1 = Growth::from_iter([("read_bytes", 0)]);
        }
        let verdict = fixture.verdict("memory-test");
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert!(verdict.evidence.contains("nvme0n1 beneath loop0"), "{}", verdict.evidence);
    }

    #[test]
    fn writes_that_stay_in_the_page_cache_of_a_backing_file_are_condemned() {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices.insert(0, device("loop0", DeviceKind::Loop));
        for window in &mut fixture.windows {
            let beneath = window.devices[0].1.clone();
            window.devices.insert(0, ("loop0".into(), beneath));
        }
        for window in fixture.windows_mut(Op::Write) {
            window.devices[1].1.set("write_bytes", 0);
        }
        let findings = fixture.find();
        let verdict = &findings.verdicts[0];
        assert_eq!((verdict.rule.as_str(), verdict.outcome), ("memory-test", Outcome::Fail));
        assert!(
            verdict.evidence.contains("written to nvme0n1 beneath loop0"),
            "{}",
            verdict.evidence
        );
        assert_eq!(verdict.concerns, ["max_write_iops", "write_mbps", "write_latency_ns_p50"]);
    }

    #[test]
    fn writes_that_stay_in_the_page_cache_are_condemned_although_the_process_is_charged() {
        let mut fixture = Fixture::healthy();
        for phase in &mut fixture.manifest.phases {
            phase.load.iter_mut().for_each(|load| load.direct &= load.op != Op::Write);
        }
        for window in fixture.windows_mut(Op::Write) {
            let charged = window.process.get("write_bytes").unwrap();
            window.devices[0].1.set("write_bytes", charged);
        }
        assert_eq!(fixture.verdict("memory-test").outcome, Outcome::Pass, "the device wrote it");
        for window in fixture.windows_mut(Op::Write) {
            window.devices[0].1.set("write_bytes", 0);
        }
        let verdict = fixture.verdict("memory-test");
        assert_eq!(verdict.outcome, Outcome::Fail, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("written to the device"), "{}", verdict.evidence);
    }

    #[test]
    fn a_loop_device_over_a_file_in_memory_is_memory() {
        let mut fixture = Fixture::healthy();
        let mut on_tmpfs = device("loop0", DeviceKind::Loop);
        on_tmpfs.backing_file_system = Some("tmpfs".into());
        fixture.manifest.target.devices = vec![on_tmpfs];
        let verdict = fixture.verdict("memory-test");
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert!(verdict.evidence.contains("loop0 on tmpfs"), "{}", verdict.evidence);
    }

    #[test]
    fn zram_is_a_device_like_any_other() {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices = vec![device("zram0", DeviceKind::Zram)];
        for window in &mut fixture.windows {
            window.devices[0].0 = "zram0".into();
        }
        assert_eq!(fixture.verdict("memory-test").outcome, Outcome::Pass);
    }

    #[test]
    fn one_cached_point_condemns_its_figures_and_no_others() {
        let mut fixture = Fixture::healthy();
        fixture.window_mut("random-read/psync/x1").process.set("read_bytes", 0);
        let findings = fixture.find();
        let struck: Vec<&str> = findings
            .summary
            .iter()
            .filter(|(_, figure)| !figure.condemned_by.is_empty())
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(struck, ["read_latency_ns_p50", "read_latency_ns_p99"]);
        assert!(!findings.trustworthy());
        assert_eq!(
            findings.condemned().map(|v| v.rule.as_str()).collect::<Vec<_>>(),
            ["memory-test"]
        );
    }

    #[test]
    fn tmpfs_condemns_reads_and_writes_alike() {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices.clear();
        fixture.manifest.target.file_system.as_mut().unwrap().kind = "tmpfs".into();
        let findings = fixture.find();
        let verdict = &findings.verdicts[0];
        assert_eq!((verdict.rule.as_str(), verdict.outcome), ("memory-test", Outcome::Fail));
        // The two that are cached on purpose make no claim about the storage.
        assert_eq!(verdict.concerns.len(), findings.summary.len() - 2);
    }

    #[test]
    fn a_loop_device_over_what_cannot_be_seen_stays_open() {
        let mut fixture = Fixture::healthy();
        fixture.manifest.target.devices = vec![device("loop0", DeviceKind::Loop)];
        fixture.windows.iter_mut().for_each(|window| window.devices[0].0 = "loop0".into());
        let verdict = fixture.verdict("memory-test");
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{}", verdict.evidence);
        assert!(verdict.evidence.contains("beneath loop0"), "{}", verdict.evidence);
    }
}
