//! Several targets that were measured as one: the share of each in the load, and which is the
//! slowest.

use blockstone_base::Capability;
use blockstone_base::row;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{Heading, Table, Value, bytes, count, flow, text, time};
use blockstone_base::units::format_ns;
use blockstone_judge::findings::{Findings, Point, TargetShare};
use blockstone_record::manifest::{FileEvidence, Group, Manifest, Measured};
use blockstone_report::Section;
use schemars::JsonSchema;
use serde::Serialize;

use super::select;

/// One of several targets that were measured as one.
#[derive(Serialize, JsonSchema)]
pub struct TargetDocument<'a> {
    path: &'a str,
    /// Names of its block devices, from the top of the chain down.
    devices: Vec<&'a str>,
    /// Paths of other targets that share one of these devices.
    shares_device_with: Vec<&'a str>,
    /// Whether the page cache was bypassed.
    direct: &'a Capability,
    /// Whether this target has the longest mean latency of random reads, and its difference from
    /// another target is beyond chance.
    slowest: bool,
    /// File that was read and written on this target; null before it was examined.
    file: Option<&'a FileEvidence>,
}

pub fn documents<'a>(manifest: &'a Manifest, findings: &Findings) -> Vec<TargetDocument<'a>> {
    let slowest = slowest(findings).map(|share| share.path.as_str());
    let document = |measured: &'a Measured| {
        let path = measured.target.path.as_str();
        let shared = manifest.targets.iter().filter(|other| other.target.path != path);
        let shared = shared.filter(|other| common(measured, other).is_some());
        TargetDocument {
            path,
            devices: names(measured).collect(),
            shares_device_with: shared.map(|other| other.target.path.as_str()).collect(),
            direct: &measured.direct,
            slowest: slowest == Some(path),
            file: measured.file.as_ref(),
        }
    };
    manifest.targets.iter().map(document).collect()
}

fn names(measured: &Measured) -> impl Iterator<Item = &str> {
    measured.target.devices.iter().map(|device| device.name.as_str())
}

/// Returns the device nearest to the top that both targets have.
fn common<'a>(one: &'a Measured, other: &Measured) -> Option<&'a str> {
    names(one).find(|name| names(other).any(|known| known == *name))
}

/// Returns the point of random reads by which targets are compared.
fn random_reads(findings: &Findings) -> Option<&Point> {
    headline(findings, "max_iops", Group::RandomRead)
}

/// Returns the point of a headline figure, or the last of its group if the run ended before the
/// headline.
fn headline<'a>(findings: &'a Findings, name: &str, group: Group) -> Option<&'a Point> {
    let chosen = select::figure(findings, name).and_then(|it| select::point(findings, &it.phase));
    chosen.or_else(|| select::group(findings, group).last())
}

/// Returns the target with the slowest random reads if the difference is significant: its interval
/// at the headline does not overlap that of the fastest, or it is the slowest at every point of
/// random reads, which for equal targets would happen in less than 2.5 % of measurements.
fn slowest(findings: &Findings) -> Option<&TargetShare> {
    let shares = &random_reads(findings)?.targets;
    let (fastest, slowest) = extremes(shares)?;
    let mean = |share: &TargetShare| share.latency_ns_mean;
    let apart = match (mean(slowest), mean(fastest)) {
        (Some(slow), Some(fast)) => slow.low > fast.high,
        (None, Some(_)) => true,
        _ => false,
    };
    let all: Vec<&Point> = select::group(findings, Group::RandomRead).collect();
    let leads =
        |point: &Point| extremes(&point.targets).is_some_and(|(_, last)| last.path == slowest.path);
    let alike = 1.0 / shares.len() as f64;
    let rarely = alike.powi(all.len() as i32 - 1) < 0.025;
    (apart || rarely && all.iter().all(|point| leads(point))).then_some(slowest)
}

/// Returns the targets whose requests take the shortest and the longest time; a target without a
/// completed request is the slowest.
fn extremes(shares: &[TargetShare]) -> Option<(&TargetShare, &TargetShare)> {
    let key = |share: &&TargetShare| share.latency_ns_mean.map_or(f64::INFINITY, |mean| mean.value);
    let order = |a: &&TargetShare, b: &&TargetShare| key(a).total_cmp(&key(b));
    Some((shares.iter().min_by(order)?, shares.iter().max_by(order)?))
}

pub fn section(manifest: &Manifest, findings: &Findings) -> Section {
    if manifest.targets.is_empty() {
        return Section::default();
    }
    Section::new("targets", "Targets")
        .with([table(manifest, findings)])
        .with([remarks(manifest, findings)])
}

const TARGETS: &[Heading] = &[
    text("target", "target", "The directory, file or device."),
    text("device", "on", "Its device: the top of the chain."),
    count("iops", "IOPS", "Its part of the random reads at max_iops, a second."),
    time("latency_ns_mean", "mean", "Mean latency of these reads."),
    flow("bytes_per_s", "large reads", "Its part of the large reads at max_mbps."),
    time("large_latency_ns_mean", "mean", "Mean latency of these reads."),
    count("write_iops", "writes", "Its part of the random writes at max_write_iops, a second."),
    time("write_latency_ns_mean", "mean", "Mean latency of these writes."),
];

/// A row for each target.
fn table(manifest: &Manifest, findings: &Findings) -> Table {
    let about = "Each figure of this report is that of all targets together. Any load is spread \
                 over them in turns of 1 MiB, so that each has the same part.";
    let title = format!("{} targets measured as one", manifest.targets.len());
    let reads = random_reads(findings);
    let large = headline(findings, "max_mbps", Group::LargeRead);
    let writes = headline(findings, "max_write_iops", Group::RandomWrite);
    let of = |point: Option<&Point>, path: &str, get: fn(&TargetShare) -> Value| {
        let share = point.and_then(|point| point.targets.iter().find(|share| share.path == path));
        share.map_or_else(Value::default, get)
    };
    let mean =
        |share: &TargetShare| Value::from(share.latency_ns_mean.map(Estimate::without_interval));
    let iops = |share: &TargetShare| Value::from(share.iops);
    let rate = |share: &TargetShare| Value::from(share.mb_per_s.map(|rate| rate.scaled(1e6)));
    let rows = manifest.targets.iter().map(|measured| {
        let path = measured.target.path.as_str();
        let on = names(measured).next().map(str::to_owned);
        let file_system = measured.target.file_system.as_ref().map(|fs| fs.kind.clone());
        row![
            path,
            on.or(file_system).unwrap_or_default(),
            of(reads, path, iops),
            of(reads, path, mean),
            of(large, path, rate),
            of(large, path, mean),
            of(writes, path, iops),
            of(writes, path, mean)
        ]
        .condemned_by(reads.map_or(&[], |point| &point.condemned_by))
    });
    Table::new("targets", title, TARGETS).about(about).with(rows)
}

/// Names the slowest target, and the targets that have a device in common.
fn remarks(manifest: &Manifest, findings: &Findings) -> String {
    let mut remarks = vec![match (slowest(findings), random_reads(findings)) {
        (Some(slowest), Some(point)) => {
            let of = |share: &TargetShare| {
                let mean = share.latency_ns_mean;
                mean.map_or("longer than was measured".into(), |mean| format_ns(mean.value))
            };
            let others = point.targets.iter().filter(|share| share.path != slowest.path);
            let others: Vec<String> = others.map(of).collect();
            format!(
                "The slowest is {}: a random read takes {} there, and {} on the others. All have \
                 the same part of the load, so it limits the rate of all.",
                slowest.path,
                of(slowest),
                others.join(", ")
            )
        }
        _ => "No target is slower than the others by more than chance.".to_owned(),
    }];
    for (at, one) in manifest.targets.iter().enumerate() {
        for other in &manifest.targets[at + 1..] {
            remarks.extend(common(one, other).map(|device| {
                format!(
                    "{} and {} are on the same device, {device}: their figures add up to those of \
                     one device.",
                    one.target.path, other.target.path
                )
            }));
        }
    }
    remarks.join(" ")
}

const EVIDENCE: &[Heading] = &[
    text("target", "target", "The directory, file or device."),
    text("chain", "devices", "From the top of the chain down."),
    text("direct", "direct I/O", "Whether the page cache was bypassed."),
    bytes("size_bytes", "file", "Size of the file, where it is one."),
    bytes("hole_bytes", "holes", "Bytes of it without a block on the device."),
    bytes("unwritten_bytes", "unwritten", "Bytes of it that were allocated and never written."),
    bytes("sampled_bytes", "sampled", "Bytes that were looked at."),
    bytes("lz4_bytes", "left by LZ4", "What LZ4 leaves of them."),
];

/// Table of what was determined about each target before it was measured.
pub fn evidence(manifest: &Manifest) -> Table {
    let rows = manifest.targets.iter().map(|measured| {
        let map = measured.file.as_ref().map(|file| &file.map);
        let sample = measured.file.as_ref().and_then(|file| file.sample.as_ref());
        row![
            &measured.target.path,
            names(measured).collect::<Vec<_>>().join(" → "),
            match &measured.direct {
                Capability::Full => "yes".to_owned(),
                Capability::Degraded { why } => format!("no: {why}"),
            },
            map.map(|map| map.size_bytes),
            map.map(|map| map.hole_bytes),
            map.map(|map| map.unwritten_bytes),
            sample.map(|sample| sample.sampled_bytes),
            sample.map(|sample| sample.lz4_bytes)
        ]
    });
    Table::new("target-evidence", "Targets before they were measured", EVIDENCE).with(rows)
}

const SHARES: &[Heading] = &[
    text("point", "point", "The load."),
    text("target", "target", "The directory, file or device."),
    count("iops", "IOPS", "Its part, operations a second."),
    flow("bytes_per_s", "throughput", "Its part, bytes a second."),
    time("latency_ns_mean", "mean", "Mean latency of its part."),
];

/// Share of each target in every load.
pub fn shares(findings: &Findings) -> Table {
    let rows = findings.points.iter().flat_map(|point| {
        point.targets.iter().map(|share| {
            let rate = share.mb_per_s.map(|rate| rate.scaled(1e6));
            row![&point.label, &share.path, share.iops, rate, share.latency_ns_mean]
                .condemned_by(&point.condemned_by)
        })
    });
    Table::new("target-shares", "Parts of the targets", SHARES).with(rows)
}
