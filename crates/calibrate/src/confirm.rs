//! Selects the points that become headlines and are measured again, longer.

use blockstone_base::load::{Access, LoadSpec, Op};
use blockstone_base::stats;
use blockstone_record::manifest::Group;

use crate::hold::Measured;
use crate::plan::{self, LARGE, Step};
use crate::settings::Settings;

/// The deepest loads form a plateau if their rates are this close.
const PLATEAU: f64 = 0.05;
/// The same for loads that all complete in bursts: a limiter holds them, and short windows contain
/// few bursts.
const PLATEAU_IN_BURSTS: f64 = 0.25;
/// Number of deepest loads compared: two doublings of concurrency with both engines.
const DEEPEST: usize = 4;
/// Factor by which a slow plateau is measured longer.
const LONGER: u64 = 3;
/// IOPS below which a throttled plateau completes in bursts and needs a long window.
const SLOW_IOPS: f64 = 30_000.0;

/// Returns the point that answers "most random reads a second with mean latency within the limit".
pub fn max_iops(points: &[Measured], settings: &Settings) -> Option<Step> {
    let limit_ns = settings.options.max_latency_ns.get() as f64;
    let reads = random(points, Op::Read);
    let best = best(reads.iter().copied().filter(|p| p.latency_ns_mean <= limit_ns))
        // Storage slower than the limit at every depth still has a maximum.
        .or_else(|| best(reads.iter().copied()))?;
    let within = |p: &&Measured| p.latency_ns_mean <= limit_ns;
    Some(longer_measurement(settings, "max-iops", &reads, best, within))
}

/// Returns a step to measure the depth between the two of [`knee_bracket`]; `None` if no depth
/// exceeds the limit or they are neighbours.
pub fn knee_probe(points: &[Measured], settings: &Settings) -> Option<LoadSpec> {
    let (below, above) = knee_bracket(points, settings)?;
    let depth = u32::midpoint(below.load.in_flight(), above.load.in_flight());
    if depth == below.load.in_flight() {
        return None;
    }
    let load = below.load.clone();
    Some(match load.engine.as_str() {
        "psync" => LoadSpec { workers: depth, ..load },
        _ => LoadSpec { depth_per_worker: depth, ..load },
    })
}

/// Returns the point with the most IOPS among those that keep p99 within the limit, unless
/// `max_iops` already confirms it.
pub fn knee(points: &[Measured], settings: &Settings, confirmed: &LoadSpec) -> Option<Step> {
    let limit_ns = settings.options.max_latency_ns.get();
    let reads = random(points, Op::Read);
    let best = best(reads.into_iter().filter(|p| p.latency_ns_p99 <= limit_ns))?;
    (!best.load.same_point(confirmed))
        .then(|| plan::confirm(settings, "knee", best.load.clone(), 1))
}

pub fn max_mbps(points: &[Measured], settings: &Settings) -> Option<Step> {
    let large = points.iter().filter(|p| {
        p.group == Group::LargeRead
            && p.load.block_bytes == LARGE.get()
            && p.load.access == Access::Random
    });
    Some(plan::confirm(settings, "max-mbps", best(large)?.load.clone(), 1))
}

pub fn max_write_iops(points: &[Measured], settings: &Settings) -> Option<Step> {
    let writes = random(points, Op::Write);
    let best = best(writes.iter().copied())?;
    Some(longer_measurement(settings, "max-write-iops", &writes, best, |_| true))
}

/// Returns the point with the most commits a second of one block.
pub fn max_commits(points: &[Measured], settings: &Settings) -> Option<Step> {
    let block = settings.options.block_bytes.get();
    let commits = points.iter().filter(|p| p.group == Group::Commit && p.load.block_bytes == block);
    Some(plan::confirm(settings, "max-commits", best(commits)?.load.clone(), 1))
}

fn random(points: &[Measured], op: Op) -> Vec<&Measured> {
    let groups = [Group::RandomRead, Group::RandomWrite];
    points.iter().filter(|p| groups.contains(&p.group) && p.load.op == op).collect()
}

fn best<'a>(points: impl Iterator<Item = &'a Measured>) -> Option<&'a Measured> {
    points.max_by(|a, b| a.iops.total_cmp(&b.iops))
}

/// Returns the step that measures `best` again, or the point that represents it on a slow plateau.
///
/// On the plateau of a throttled device, more I/O in flight only adds latency, less depends on this
/// machine's scheduler, and the best of the short windows leads by chance. The middle point of the
/// plateau within the limit is taken instead, with a longer window because it completes in bursts.
fn longer_measurement(
    settings: &Settings,
    name: &str,
    points: &[&Measured],
    best: &Measured,
    within: impl Fn(&&Measured) -> bool,
) -> Step {
    let plateau = plateau(points).filter(|&(level, _)| level < SLOW_IOPS);
    let least = plateau.map_or(f64::INFINITY, |(level, width)| level * (1.0 - width));
    let mut members: Vec<&Measured> =
        points.iter().copied().filter(|p| p.iops >= least && within(p)).collect();
    members.sort_by_key(|p| p.load.in_flight());
    match members.get(members.len() / 2) {
        Some(middle) => plan::confirm(settings, name, middle.load.clone(), LONGER),
        None => plan::confirm(settings, name, best.load.clone(), 1),
    }
}

/// Returns the rate that the deepest loads share, and how far they may differ; `None` if they
/// differ by more.
fn plateau(points: &[&Measured]) -> Option<(f64, f64)> {
    let mut deepest = points.to_vec();
    deepest.sort_by_key(|p| std::cmp::Reverse(p.load.in_flight()));
    deepest.truncate(DEEPEST);
    let in_bursts = deepest.iter().all(|p| p.in_bursts);
    let width = if in_bursts { PLATEAU_IN_BURSTS } else { PLATEAU };
    let rates: Vec<f64> = deepest.iter().map(|p| p.iops).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let flat = rates.len() >= 3 && least >= most * (1.0 - width);
    flat.then(|| (stats::median(&rates), width))
}

/// Returns the point with the most IOPS within the limit, and the next deeper one of its engine
/// that exceeds the limit.
fn knee_bracket<'a>(
    points: &'a [Measured],
    settings: &Settings,
) -> Option<(&'a Measured, &'a Measured)> {
    let limit_ns = settings.options.max_latency_ns.get();
    let reads = random(points, Op::Read);
    let within = best(reads.iter().copied().filter(|p| p.latency_ns_p99 <= limit_ns))?;
    let above = reads
        .into_iter()
        .filter(|p| p.load.engine == within.load.engine && p.latency_ns_p99 > limit_ns)
        .filter(|p| p.load.in_flight() > within.load.in_flight())
        .min_by_key(|p| p.load.in_flight())?;
    // More depth without more IOPS needs no further measurement.
    (above.iops > within.iops).then_some((within, above))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::settings;
    use crate::settings::Thoroughness;
    use blockstone_base::load::Pacing;

    fn point(depth: u32, iops: f64, p99_ms: u64) -> Measured {
        Measured {
            group: Group::RandomRead,
            load: LoadSpec {
                engine: "uring".into(),
                op: Op::Read,
                read_pct: None,
                access: Access::Random,
                block_bytes: 8192,
                workers: 1,
                depth_per_worker: depth,
                span_bytes: 1 << 30,
                offset_bytes: 0,
                sync: None,
                flush_alone: false,
                direct: true,
                pacing: Pacing::Closed,
                seed: 1,
            },
            iops,
            latency_ns_mean: f64::from(depth) / iops * 1e9,
            latency_ns_p99: p99_ms * 1_000_000,
            in_bursts: false,
            completed_bytes: 0,
            interrupted: None,
        }
    }

    #[test]
    fn the_knee_lies_between_the_last_within_and_the_first_beyond() {
        let settings = settings(Thoroughness::Standard);
        let points = [point(1, 1e3, 1), point(16, 9e3, 8), point(32, 12e3, 30)];
        assert_eq!(knee_probe(&points, &settings).unwrap().depth_per_worker, 24);
        let max = max_iops(&points, &settings).unwrap();
        assert_eq!(max.load.depth_per_worker, 32, "a mean of 2.7 ms is within 20 ms");
        let knee = knee(&points, &settings, &max.load).unwrap();
        assert_eq!(knee.load.depth_per_worker, 16);
    }

    #[test]
    fn without_a_failing_depth_there_is_nothing_between() {
        let settings = settings(Thoroughness::Standard);
        let points = [point(1, 1e3, 1), point(16, 9e3, 8)];
        assert_eq!(knee_probe(&points, &settings), None);
        let max = max_iops(&points, &settings).unwrap();
        assert_eq!(knee(&points, &settings, &max.load), None, "max_iops confirms that point");
    }

    #[test]
    fn a_slow_plateau_is_measured_longer_and_in_its_middle() {
        let settings = settings(Thoroughness::Standard);
        // The first window had burst credit; 16 in flight exceed the limit of 20 ms.
        let flat = [1, 2, 4, 8, 16, 32].map(|depth| {
            let iops = if depth == 1 { 480.0 } else { 430.0 + f64::from(depth % 3) };
            point(depth, iops, 100)
        });
        let steep = [point(4, 400.0, 1), point(8, 700.0, 1), point(16, 900.0, 1)];
        let (flat, steep) =
            (max_iops(&flat, &settings).unwrap(), max_iops(&steep, &settings).unwrap());
        assert_eq!(flat.window.1.get(), LONGER * steep.window.1.get());
        assert_eq!((flat.load.in_flight(), steep.load.in_flight()), (4, 16));
        // Uncertain rates behind a limiter form a plateau, those of a device do not.
        let uneven = |in_bursts| {
            let rates = [(1, 400.0), (16, 431.0), (32, 462.0)];
            let points =
                rates.map(|(depth, iops)| Measured { in_bursts, ..point(depth, iops, 100) });
            max_iops(&points, &settings).unwrap().window.1
        };
        assert_eq!(uneven(true), flat.window.1);
        assert_eq!(uneven(false), steep.window.1);
    }
}
