//! Selection of the points of a calibration that answer each question.

use blockstone_base::load::{Access, LoadSpec, SyncMethod};
use blockstone_base::stats::Estimate;
use blockstone_base::units::Bytes;
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Figure, Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;

/// Names of the triple of `CALIBRATE_IO`, which is the headline of every calibration.
pub const HEADLINE: [&str; 3] = ["max_iops", "max_mbps", "actual_latency_ns_mean"];

/// Sync methods in the order in which they are shown.
const METHODS: [SyncMethod; 3] = [SyncMethod::Dsync, SyncMethod::Fdatasync, SyncMethod::Fsync];

pub fn figure<'a>(findings: &'a Findings, name: &str) -> Option<&'a Figure> {
    findings.summary.iter().find(|(n, _)| n == name).map(|(_, figure)| figure)
}

pub fn point<'a>(findings: &'a Findings, label: &str) -> Option<&'a Point> {
    findings.points.iter().find(|p| p.label == label)
}

/// Returns the points of a group, in the order in which they were measured.
pub fn group(findings: &Findings, group: Group) -> impl Iterator<Item = &Point> {
    findings.points.iter().filter(move |p| p.group == group)
}

/// Splits the points of a group by the two ways to keep a device busy, each in ascending order of
/// operations in flight: threads that block on one I/O each, as database foregrounds do, and one
/// thread with many in flight.
pub fn blocking_and_async(findings: &Findings, of: Group) -> (Vec<&Point>, Vec<&Point>) {
    let (mut blocking, mut asynchronous): (Vec<_>, Vec<_>) =
        group(findings, of).partition(|p| is_blocking(&p.load));
    blocking.sort_by_key(|p| p.load.in_flight());
    asynchronous.sort_by_key(|p| p.load.in_flight());
    (blocking, asynchronous)
}

fn is_blocking(load: &LoadSpec) -> bool {
    load.engine == "psync"
}

/// The commit points, grouped by the parameter that varies.
pub struct Commits<'a> {
    /// Block-size commits of one committer: by method, overwriting and appending.
    pub methods: Vec<(SyncMethod, Option<&'a Point>, Option<&'a Point>)>,
    /// Overwriting `O_DSYNC` commits of one committer, by size.
    pub sizes: Vec<&'a Point>,
    /// Overwriting `O_DSYNC` commits of one block, by committers.
    pub committers: Vec<&'a Point>,
}

/// Groups the commit points of a recording whose blocks have `block_bytes`.
pub fn commits(findings: &Findings, block_bytes: u64) -> Commits<'_> {
    let all: Vec<&Point> = group(findings, Group::Commit).collect();
    let find = |method, append: bool| {
        all.iter().copied().find(|p| {
            p.load.sync == Some(method)
                && (p.load.access == Access::Append) == append
                && p.load.block_bytes == block_bytes
                && p.load.workers == 1
        })
    };
    let methods = METHODS
        .into_iter()
        .map(|method| (method, find(method, false), find(method, true)))
        .filter(|(_, overwrite, append)| overwrite.is_some() || append.is_some())
        .collect();
    let plain =
        |p: &&Point| p.load.sync == Some(SyncMethod::Dsync) && p.load.access != Access::Append;
    let mut sizes: Vec<_> =
        all.iter().copied().filter(plain).filter(|p| p.load.workers == 1).collect();
    sizes.sort_by_key(|p| p.load.block_bytes);
    let mut committers: Vec<_> =
        all.iter().copied().filter(plain).filter(|p| p.load.block_bytes == block_bytes).collect();
    committers.sort_by_key(|p| p.load.workers);
    Commits { methods, sizes, committers }
}

/// Returns how many commits one device flush made durable together: the group factor. `None` if no
/// flush was counted (a write-through device does not need any).
pub fn group_factor(point: &Point) -> Option<f64> {
    let flushes = point.evidence.device_flushes.filter(|&n| n > 0)?;
    Some(point.iops.samples as f64 / flushes as f64)
}

/// Returns the cache-map points in ascending order of their working sets.
pub fn cache_map(findings: &Findings) -> Vec<&Point> {
    let mut points: Vec<_> = group(findings, Group::CacheMap).collect();
    points.sort_by_key(|p| p.load.span_bytes);
    points
}

/// A cell of the matrix of small random and large sequential reads.
pub struct MatrixCell<'a> {
    /// Small reads in flight.
    pub small: u32,
    /// Large reads in flight.
    pub large: u32,
    /// The small reads, or the large ones in a cell without small reads.
    pub point: &'a Point,
    /// Throughput of the large reads.
    pub large_mb_per_s: Option<&'a Estimate>,
}

pub fn matrix(findings: &Findings) -> Vec<MatrixCell<'_>> {
    let mut cells: Vec<_> = group(findings, Group::Matrix)
        .map(|point| {
            let in_flight = point.load.in_flight();
            let (small, large, large_mb_per_s) = match (&point.background, point.load.access) {
                (Some((load, mb_per_s)), _) => (in_flight, load.in_flight(), Some(mb_per_s)),
                (None, Access::Random) => (in_flight, 0, None),
                (None, _) => (0, in_flight, Some(&point.mb_per_s)),
            };
            MatrixCell { small, large, point, large_mb_per_s }
        })
        .collect();
    cells.sort_by_key(|cell| (cell.small, cell.large));
    cells
}

/// Returns the block size of the calibration: the setting, or the size of the random reads.
pub fn block_bytes(manifest: &Manifest, findings: &Findings) -> u64 {
    let set = manifest.parameters::<CalibrateParameters>().block_bytes;
    set.map(Bytes::get)
        .or_else(|| group(findings, Group::RandomRead).next().map(|p| p.load.block_bytes))
        .unwrap_or(8192)
}

/// Returns the rules that condemn any figure of the triple, in which case the headline is not
/// shown.
pub fn headline_condemned_by(findings: &Findings) -> Vec<&str> {
    let mut rules: Vec<&str> = Vec::new();
    for figure in HEADLINE.iter().filter_map(|name| figure(findings, name)) {
        for rule in &figure.condemned_by {
            if !rules.contains(&rule.as_str()) {
                rules.push(rule);
            }
        }
    }
    rules
}
