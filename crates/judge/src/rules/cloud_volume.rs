//! A rate that matches the published limit of a cloud volume, with the credit behind a burst.

mod catalogue;
mod machines;

use blockstone_base::identity::{BlockDevice, Cloud, DeviceKind};
use blockstone_base::load::{LoadSpec, Op};
use blockstone_base::rule::{About, Judgement};
use blockstone_base::units::three_digits;
use blockstone_base::verdict::Weight;
use blockstone_record::manifest::Manifest;

use super::burst::coarse;
use super::throttled::ladder::{self, Ladder};
use super::{CalibrationRule, Case, RunCase, RunRule, all_figures};
use catalogue::{Kind, Limit, Unit, limits};

const ABOUT: About = About {
    id: "cloud-volume",
    weight: Weight::Warns,
    doc: "A rate that agrees with a published limit of a cloud volume of this size (AWS, Azure, \
          Google Cloud), or of the machine on all of its volumes: it is what was bought, not what \
          the storage can do, and in a burst it ends when the bucket of credit is empty.",
    threshold: "The firmware tables or the model of the disk name a cloud, the only disk beneath \
                the path is not local to the machine, and no control group sets the same limit. \
                In a calibration: a plateau over three doublings of concurrency (see throttled) \
                within 3 % of a published limit of a volume type that may have this size; without \
                a plateau inconclusive. In a run: the requests or bytes a second of the disk are \
                within 3 % of such a limit in nine of ten seconds. Limits, buckets, their sources \
                and the days on which these were read are in \
                crates/judge/data/cloud-volumes.toml and cloud-machines.toml. The machine is known \
                by its type in the firmware tables (AWS), or may be any type of its processors and \
                memory (Azure). Several types may have one limit; all are \
                named. A burst is left out if the measurement did more than its full bucket \
                allows. A bucket lasts its credit ÷ (rate − base), or as long as the page says. \
                Inconclusive in a calibration if no rate is near a published limit: rates that are \
                bought separately, Google's limits and baseline of a machine, and Azure's higher \
                performance tiers and host caches are not in the data, and nothing is asked over \
                the network.",
    cause: "The limit of the volume's type and size or of the machine's type, or the rate that was \
            bought for it.",
    next: "Compare with the type and rate of the volume in the console or command line of the \
           cloud; size by the rate that remains without credit, and measure for longer than the \
           bucket lasts to see it.",
};

pub(super) const CALIBRATION: CalibrationRule = CalibrationRule::new(&ABOUT, check);
pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check_run);

const NEAR_RATIO: f64 = 0.03;
/// In a run, the share of its seconds that must be near a limit.
const HELD_SHARE: f64 = 0.9;
const SECOND_NS: u64 = 1_000_000_000;
const SECONDS_MIN: usize = 5;
/// The clouds split requests from this size on and count them as several, so that only bytes
/// compare.
const LARGE_BYTES: u64 = 128 << 10;

/// Cloud that a disk's model indicates, and whether the disk is local to the machine, so that no
/// volume's limit applies.
const MODELS: [(&str, Cloud, bool); 8] = [
    ("Amazon Elastic Block Store", Cloud::Aws, false),
    ("Amazon EC2 NVMe Instance Storage", Cloud::Aws, true),
    ("Google PersistentDisk", Cloud::Google, false),
    ("Google EphemeralDisk", Cloud::Google, true),
    ("nvme_card-pd", Cloud::Google, false),
    ("nvme_card", Cloud::Google, true),
    ("MSFT NVMe Accelerator", Cloud::Azure, false),
    ("Microsoft NVMe Direct Disk", Cloud::Azure, true),
];

/// The volume below the path.
struct Volume<'a> {
    disk: &'a BlockDevice,
    cloud: Cloud,
    gib: f64,
    /// Limits of the machine on all of its volumes.
    of_machine: Vec<Limit>,
}

/// Returns the only volume below the path, or the judgement if there is not exactly one.
fn volume(manifest: &Manifest) -> Result<Volume<'_>, Judgement> {
    let is_disk = |device: &&BlockDevice| device.kind == DeviceKind::Disk;
    let disks = || manifest.target.devices.iter().filter(is_disk);
    // The paths to an NVMe disk are disks below it.
    let is_path = |name: &String| disks().any(|disk| disk.beneath.contains(name));
    let disks: Vec<_> = disks().filter(|disk| !is_path(&disk.name)).collect();
    let by_model = |disk: &BlockDevice| {
        let model = disk.model.as_deref()?;
        MODELS.iter().find(|(mark, ..)| model.starts_with(mark))
    };
    let recorded = manifest.host.cloud.or(match manifest.host.hypervisor.as_deref() {
        Some("Amazon EC2") => Some(Cloud::Aws),
        Some("Google Compute Engine") => Some(Cloud::Google),
        _ => None,
    });
    let Some(cloud) =
        recorded.or_else(|| disks.iter().find_map(|disk| by_model(disk)).map(|mark| mark.1))
    else {
        return Err(Judgement::pass("no cloud is recognised"));
    };
    let name = cloud.name();
    match disks[..] {
        [] => Err(Judgement::inconclusive(format!("{name}: no disk beneath the path is known"))),
        [disk] if by_model(disk).is_some_and(|(_, _, local)| *local) => {
            let model = disk.model.as_deref().unwrap_or_default();
            Err(Judgement::pass(format!("{name}: {} is local to the machine ({model})", disk.name)))
        }
        [disk] => {
            let gib = disk.size_bytes as f64 / f64::from(1 << 30);
            Ok(Volume { disk, cloud, gib, of_machine: machines::limits(cloud, &manifest.host) })
        }
        _ => Err(Judgement::inconclusive(format!(
            "{name}: {} disks lie beneath the path, whose limits add up",
            disks.len()
        ))),
    }
}

impl Volume<'_> {
    fn about(&self) -> String {
        format!("{} volume {} of {} GiB", self.cloud.name(), self.disk.name, three_digits(self.gib))
    }

    /// Returns the limits that a rate agrees with, after everything that the measurement did.
    fn agreeing(&self, op: Op, rate: Rate, done: Done) -> Vec<Limit> {
        let mut found = limits(self.cloud, self.gib, op);
        found.extend(self.of_machine.iter().cloned());
        found.retain(|limit| {
            rate.is_near(limit)
                && limit.credit.is_none_or(|credit| {
                    let full = (limit.rate - credit.base) * credit.lasts_s * limit.unit.scale();
                    let refilled = credit.base * done.seconds * limit.unit.scale();
                    done.of(limit.unit) <= full + refilled
                })
        });
        found
    }

    /// Returns the limits that the rate stayed near to from second to second, and the mean rate.
    fn held(&self, op: Op, ios: &[f64], bytes: &[f64], seconds: f64) -> (Vec<Limit>, Rate) {
        let rate = |ios, bytes_per_s| Rate { iops: Some(ios), bytes_per_s };
        let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let level = rate(mean(ios), mean(bytes));
        let done = Done { ios: mean(ios) * seconds, bytes: level.bytes_per_s * seconds, seconds };
        let mut found = self.agreeing(op, level, done);
        found.retain(|limit| {
            let near = |(ios, bytes): &(&f64, &f64)| rate(**ios, **bytes).is_near(limit);
            let count = ios.iter().zip(bytes).filter(near).count();
            count as f64 >= HELD_SHARE * ios.len() as f64
        });
        (found, level)
    }
}

/// A rate as the clouds limit it.
#[derive(Clone, Copy)]
struct Rate {
    /// `None` for large requests.
    iops: Option<f64>,
    bytes_per_s: f64,
}

impl Rate {
    fn of(self, unit: Unit) -> Option<f64> {
        match unit {
            Unit::Iops => self.iops,
            Unit::Megabytes | Unit::Mebibytes => Some(self.bytes_per_s),
        }
    }

    fn is_near(self, limit: &Limit) -> bool {
        let published = limit.rate * limit.unit.scale();
        self.of(limit.unit).is_some_and(|rate| (rate / published - 1.0).abs() <= NEAR_RATIO)
    }
}

/// Everything that a measurement did.
#[derive(Clone, Copy)]
struct Done {
    ios: f64,
    bytes: f64,
    seconds: f64,
}

impl Done {
    fn of(self, unit: Unit) -> f64 {
        if unit == Unit::Iops { self.ios } else { self.bytes }
    }
}

fn check(case: &Case) -> Judgement {
    let volume = match volume(case.manifest) {
        Ok(volume) => volume,
        Err(judgement) => return judgement,
    };
    let mut found = Vec::new();
    let mut near = Vec::new();
    let mut labels = Vec::new();
    for ladder in &ladder::all(case) {
        let level = ladder.level();
        let rate = rate_of(ladder, level.value);
        if by_control_group(case.manifest, ladder.op, rate) {
            continue;
        }
        let done = done(case, ladder.op);
        let limits = volume.agreeing(ladder.op, rate, done);
        if limits.is_empty() {
            continue;
        }
        let agreement = agreement(ladder.name, &limits, rate, done.seconds);
        if let Some(plateau) = ladder.plateau() {
            found.push(agreement);
            labels.extend(plateau.members.iter().map(|member| member.label.clone()));
        } else {
            near.push(agreement.text);
        }
    }
    let about = volume.about();
    if !found.is_empty() {
        return failure(&volume, &found, labels);
    }
    if !near.is_empty() {
        let near = near.join("; ");
        return Judgement::inconclusive(format!(
            "{about}: {near}; but no plateau over three doublings of concurrency shows that it is \
             a limit"
        ));
    }
    Judgement::inconclusive(format!(
        "{about}: no measured rate is at a published limit of a volume of this size; what was \
         bought for it cannot be seen from here"
    ))
}

fn rate_of(ladder: &Ladder, iops: f64) -> Rate {
    let small = ladder.block_bytes < LARGE_BYTES;
    Rate { iops: small.then_some(iops), bytes_per_s: iops * ladder.block_bytes as f64 }
}

/// Returns whether a control group sets the limit that was measured.
fn by_control_group(manifest: &Manifest, op: Op, rate: Rate) -> bool {
    use blockstone_base::identity::CapKind::{ReadBytesPerS, ReadIops, WriteBytesPerS, WriteIops};
    manifest.target.caps.iter().any(|cap| {
        let (of_reads, measured) = match cap.kind {
            ReadIops => (true, rate.iops),
            WriteIops => (false, rate.iops),
            ReadBytesPerS => (true, Some(rate.bytes_per_s)),
            WriteBytesPerS => (false, Some(rate.bytes_per_s)),
        };
        let near = |rate: f64| (rate / cap.limit as f64 - 1.0).abs() <= NEAR_RATIO;
        of_reads == (op == Op::Read) && measured.is_some_and(near)
    })
}

/// Returns at least what the measurement did in this direction, including warm-up.
fn done(case: &Case, op: Op) -> Done {
    let (mut ios, mut bytes) = (0, 0);
    for window in case.storage_windows() {
        let same = |load: &LoadSpec| (load.op == Op::Read) == (op == Op::Read);
        if case.phase(window).load.as_ref().is_some_and(same) {
            ios += window.ticks.last().map_or(0, |tick| tick.ops);
            bytes += window.ticks.last().map_or(0, |tick| tick.bytes);
        }
    }
    let phases = &case.manifest.phases;
    let from_ns = phases.iter().map(|phase| phase.start_ns).min().unwrap_or(0);
    let to_ns = phases.iter().map(|phase| phase.end_ns).max().unwrap_or(0);
    let seconds = to_ns.saturating_sub(from_ns) as f64 / 1e9;
    Done { ios: ios as f64, bytes: bytes as f64, seconds }
}

/// A rate that is near published limits.
struct Agreement {
    /// `random reads: 3,004 IOPS, published for gp2 (…) and for gp3 (…)`.
    text: String,
    /// Addresses of the pages, and the days on which they were read.
    sources: Vec<(&'static str, &'static str)>,
}

fn agreement(name: &str, limits: &[Limit], rate: Rate, seconds: f64) -> Agreement {
    let unit = limits[0].unit;
    let of_unit = |limit: &&Limit| (limit.unit == Unit::Iops) == (unit == Unit::Iops);
    let measured = rate.of(unit).unwrap_or_default() / unit.scale();
    let types: Vec<String> = limits.iter().filter(of_unit).map(of_type).collect();
    let took = if limits.iter().any(|limit| limit.credit.is_some()) {
        format!("; this measurement took {}", duration(seconds))
    } else {
        String::new()
    };
    let text = format!(
        "{name}: {} {}, published for {}{took}",
        three_digits(measured),
        unit.name(),
        types.join(" and for ")
    );
    let sources = limits.iter().filter(of_unit).map(|limit| limit.source).collect();
    Agreement { text, sources }
}

/// Returns the limit in words: `gp2 (burst to 3,000 IOPS: a full bucket lasts 33 min at this rate,
/// then 300 IOPS)`.
fn of_type(limit: &Limit) -> String {
    let (rate, unit) = (three_digits(limit.rate), limit.unit.name());
    let terms = match (limit.kind, limit.credit) {
        (Kind::Sustained, _) => format!("{rate} {unit} sustained"),
        (Kind::Maximum, _) => format!("at most {rate} {unit}, by what was bought"),
        (Kind::Burst, None) => format!("on-demand burst to {rate} {unit}, paid for by use"),
        (Kind::Burst, Some(credit)) => format!(
            "burst to {rate} {unit}: a full bucket of {} lasts {} at this rate, then {} {unit}",
            bucket(limit, credit.base, credit.lasts_s),
            duration(credit.lasts_s),
            three_digits(credit.base)
        ),
    };
    format!("{} ({terms})", limit.volume)
}

/// Returns the credit in words: `5.4 million I/Os`, `1,024 GiB`.
fn bucket(limit: &Limit, base: f64, lasts_s: f64) -> String {
    let credit = (limit.rate - base) * lasts_s;
    match limit.unit {
        Unit::Iops => format!("{} million I/Os", three_digits(credit / 1e6)),
        unit => format!("{} GiB", three_digits(credit * unit.scale() / f64::from(1 << 30))),
    }
}

fn duration(seconds: f64) -> String {
    if seconds < 120.0 {
        return format!("{seconds:.0} s");
    }
    if seconds < 7_200.0 {
        return format!("{:.0} min", seconds / 60.0);
    }
    format!("{:.1} h", seconds / 3_600.0)
}

fn failure(volume: &Volume, found: &[Agreement], places: Vec<String>) -> Judgement {
    let texts: Vec<&str> = found.iter().map(|agreement| agreement.text.as_str()).collect();
    let mut sources: Vec<_> = found.iter().flat_map(|agreement| &agreement.sources).collect();
    sources.sort();
    sources.dedup();
    let pages: Vec<String> =
        sources.iter().map(|(url, day)| format!("{url} (read on {day})")).collect();
    let cause = format!("{} Published at {}.", ABOUT.cause, pages.join(", "));
    let next = match volume.cloud {
        Cloud::Aws => {
            "See type, rate and credit: aws ec2 describe-volumes, and BurstBalance in CloudWatch; \
             size by the sustained rate, and measure for longer than the bucket lasts to see it."
        }
        Cloud::Azure => {
            "See size and tier: az disk show, and the burst metrics of the disk; size by the \
             sustained rate, and measure for longer than the bucket lasts to see it."
        }
        Cloud::Google => {
            "See type and rate: gcloud compute disks describe; size by these, and enlarge the disk \
             or buy a higher rate if it does not suffice."
        }
    };
    let evidence = format!("{}: {}", volume.about(), texts.join("; "));
    Judgement::fail(evidence, places).caused_by(cause).advising(next)
}

fn check_run(case: &RunCase) -> Judgement {
    let volume = match volume(case.manifest) {
        Ok(volume) => volume,
        Err(judgement) => return judgement,
    };
    let track = |column| case.window.track("block", &volume.disk.name, column).ok();
    let [Some(read_ios), Some(read_bytes), Some(write_ios), Some(write_bytes)] =
        ["read_ios", "read_bytes", "write_ios", "write_bytes"]
            .map(|column| each_second(&track(column)?))
    else {
        let about = volume.about();
        return Judgement::inconclusive(format!(
            "{about}: its requests were not measured over time"
        ));
    };
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<f64>>();
    let both = (sum(&read_ios, &write_ios), sum(&read_bytes, &write_bytes));
    let mut found = Vec::new();
    for (name, op, (ios, bytes), of_direction) in [
        ("reads and writes", Op::Read, both, false),
        ("reads", Op::Read, (read_ios, read_bytes), true),
        ("writes", Op::Write, (write_ios, write_bytes), true),
    ] {
        let mut held = volume.held(op, &ios, &bytes, case.window.seconds());
        held.0.retain(|limit| limit.of_direction == of_direction);
        let (limits, rate) = held;
        if !limits.is_empty() && !by_control_group(case.manifest, op, rate) {
            found.push(agreement(name, &limits, rate, case.window.seconds()));
        }
    }
    if found.is_empty() {
        let about = volume.about();
        return Judgement::pass(format!("{about}: no published limit was held"));
    }
    failure(&volume, &found, all_figures())
}

/// Returns the rates of a counter in slices of a second, `None` if there are too few.
fn each_second(track: &[(u64, u64)]) -> Option<Vec<f64>> {
    let rates: Vec<f64> = coarse(track, SECOND_NS).into_iter().map(|slice| slice.1).collect();
    (rates.len() >= SECONDS_MIN).then_some(rates)
}

#[cfg(test)]
mod tests;
