//! The keys of the document of a calibration in version 1. They will be removed with the next
//! release.

use blockstone_base::Capability;
use blockstone_base::stats::Estimate;
use blockstone_judge::buffered::BufferedWrite;
use blockstone_judge::findings::{Findings, Point};
use blockstone_judge::flushes::FlushSlope;
use blockstone_judge::mixes::{self, Mix};
use blockstone_judge::precondition::Precondition;
use blockstone_judge::summary::NAMES;
use blockstone_judge::visits::CachedVisits;
use blockstone_record::Recording;
use blockstone_record::manifest::{FileEvidence, Manifest, Measured};
use blockstone_report::render::json;
use serde::Serialize;
use serde_json::{Map, Value};

use super::targets;
use crate::recorded::earlier::{self, Common};

/// JSON document of a calibration.
#[derive(Serialize)]
struct CalibrateDocument<'a> {
    #[serde(flatten)]
    common: Common<'a>,
    /// One point for each label, in the order in which they were first measured; repeats are
    /// pooled.
    points: &'a [Point],
    /// Movement of the reference point: (greatest − least) ÷ mean of its windows.
    drift_ratio: Option<f64>,
    /// Latency of flushes by the amount written before them; null if that was not measured.
    flush_slope: Option<&'a FlushSlope>,
    /// Sequential writes through the page cache, compared with direct ones; null without
    /// `--buffered-writes`.
    buffered_write: Option<&'a BufferedWrite>,
    /// Rate of visits to cached blocks; null without `--cpu`.
    cached_visits: Option<&'a CachedVisits>,
    /// Mixes of random reads and writes; empty without `--mix`.
    mixes: Vec<MixDocument>,
    /// Writes before the measurement that bring the storage to a steady state; null without
    /// `--precondition`.
    precondition: Option<&'a Precondition>,
    /// File that was read and written; null if there were several.
    file: Option<&'a FileEvidence>,
    /// Targets that were measured as one; empty for a single target.
    targets: Vec<TargetDocument<'a>>,
}

/// A mix of random reads and writes.
#[derive(Serialize)]
struct MixDocument {
    /// Label of the point that measured the mix.
    label: String,
    /// Number of reads in 100 operations.
    read_pct: u32,
    /// Number of operations in flight, the same as in the reads alone and the writes alone.
    in_flight: u32,
    /// Operations per second.
    iops: f64,
    /// 95 % interval of `iops`.
    iops_interval: Interval,
    /// Reads per second when only reads are measured.
    read_iops: f64,
    read_iops_interval: Interval,
    /// Writes per second when only writes are measured.
    write_iops: f64,
    write_iops_interval: Interval,
    /// 1 ÷ (r/R + w/W): the rate that follows if a device either reads or writes.
    formula_iops: f64,
    formula_iops_interval: Interval,
    /// The lesser of R/r and W/w: the rate that follows if reads and writes have limits of their
    /// own.
    separate_iops: f64,
    separate_iops_interval: Interval,
    /// Median latency of all operations, in nanoseconds.
    latency_ns_p50: f64,
    /// 99th percentile of their latency, in nanoseconds.
    latency_ns_p99: f64,
    /// Rules that condemn the mix or the points that it is compared with; empty if there are none.
    condemned_by: Vec<String>,
}

/// Low and high end; null without a bound.
type Interval = [Option<f64>; 2];

fn mixes(findings: &Findings) -> Vec<MixDocument> {
    mixes::of(&findings.points).iter().map(mix).collect()
}

fn mix(mix: &Mix) -> MixDocument {
    let ends = |estimate: Estimate| {
        [estimate.low, estimate.high].map(|end| Some(end).filter(|end| end.is_finite()))
    };
    let Mix { point, reads, writes, .. } = mix;
    let (formula, separate) = (mix.formula_iops(), mix.separate_iops());
    MixDocument {
        label: point.label.clone(),
        read_pct: mix.read_pct,
        in_flight: point.load.in_flight(),
        iops: point.iops.value,
        iops_interval: ends(point.iops),
        read_iops: reads.iops.value,
        read_iops_interval: ends(reads.iops),
        write_iops: writes.iops.value,
        write_iops_interval: ends(writes.iops),
        formula_iops: formula.value,
        formula_iops_interval: ends(formula),
        separate_iops: separate.value,
        separate_iops_interval: ends(separate),
        latency_ns_p50: point.latency.ns_p50.value,
        latency_ns_p99: point.latency.ns_p99.value,
        condemned_by: mix.condemned_by(),
    }
}

/// One of several targets that were measured as one.
#[derive(Serialize)]
struct TargetDocument<'a> {
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

fn targets<'a>(manifest: &'a Manifest, findings: &Findings) -> Vec<TargetDocument<'a>> {
    let slowest = targets::slowest(findings).map(|share| share.path.as_str());
    let document = |measured: &'a Measured| {
        let path = measured.target.path.as_str();
        let shared = manifest.targets.iter().filter(|other| other.target.path != path);
        let shared = shared.filter(|other| targets::common(measured, other).is_some());
        TargetDocument {
            path,
            devices: targets::names(measured).collect(),
            shares_device_with: shared.map(|other| other.target.path.as_str()).collect(),
            direct: &measured.direct,
            slowest: slowest == Some(path),
            file: measured.file.as_ref(),
        }
    };
    manifest.targets.iter().map(document).collect()
}

pub fn keys(recording: &Recording, findings: &Findings) -> Map<String, Value> {
    json::keys(CalibrateDocument {
        common: earlier::common(recording, &NAMES, &findings.summary, &findings.verdicts),
        points: &findings.points,
        drift_ratio: findings.drift_ratio,
        flush_slope: findings.flush_slope.as_ref(),
        buffered_write: findings.buffered_write.as_ref(),
        cached_visits: findings.cached_visits.as_ref(),
        mixes: mixes(findings),
        precondition: findings.precondition.as_ref(),
        file: recording.manifest.file.as_ref(),
        targets: targets(&recording.manifest, findings),
    })
}
