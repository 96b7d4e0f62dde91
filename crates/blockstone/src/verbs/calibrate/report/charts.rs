//! The charts of a calibration.

use std::collections::BTreeSet;

use blockstone_base::load::Access;
use blockstone_base::stats::Estimate;
use blockstone_base::table::Measure;
use blockstone_base::units::{Bytes, Nanos, three_digits};
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_report::chart::{self, Axis, Band, Chart, Color, Form, Level};
use blockstone_report::format;

use super::select::{self, Commits};
use crate::recorded::quantiles;

const BLOCKING: Color = Color::Series(0);
const ASYNC: Color = Color::Series(1);

pub fn reads(manifest: &Manifest, findings: &Findings) -> Vec<Chart> {
    let curve = against_iops(manifest, findings, Group::RandomRead);
    let percentiles = percentiles(manifest, findings);
    [curve, Some(percentiles), large_reads(findings)].into_iter().flatten().collect()
}

pub fn writes(manifest: &Manifest, findings: &Findings) -> Vec<Chart> {
    let block_bytes = select::block_bytes(manifest, findings);
    let commits = select::commits(findings, block_bytes);
    let block = format::block_size(block_bytes);
    let charts = [
        against_iops(manifest, findings, Group::RandomWrite),
        Some(by_method(&block, &commits)),
        by_size(&commits.sizes),
        by_committers(&block, &commits.committers),
    ];
    charts.into_iter().flatten().collect()
}

pub fn caches(manifest: &Manifest, findings: &Findings) -> Vec<Chart> {
    cache_map(manifest, findings).into_iter().chain([matrix(findings)]).collect()
}

fn latency() -> Axis {
    Axis::new("latency", Measure::Nanoseconds).log()
}

/// A point of a chart for `point`, with the interval of the value that is shown.
fn at(point: &Point, x: f64, y: Estimate) -> chart::Point {
    let known = y.low.is_finite() && y.high.is_finite() && y.low < y.high;
    chart::Point {
        x,
        y: Some(y.value),
        interval: known.then(|| (y.low.max(0.0), y.high)),
        condemned: !point.condemned_by.is_empty(),
    }
}

fn curve(points: Vec<chart::Point>, dashed: bool) -> Form {
    Form::Line { points, dashed, marks: true }
}

/// Adds p50 and p99 as a solid and a dashed line.
fn both(
    chart: Chart,
    name: &str,
    color: Color,
    points: &[&Point],
    x: impl Fn(&Point) -> f64,
) -> Chart {
    let name = |quantile: &str| format!("{name} {quantile}").trim().to_owned();
    let p50 = points.iter().map(|p| at(p, x(p), p.latency.ns_p50)).collect();
    let p99 = points.iter().map(|p| at(p, x(p), p.latency.ns_p99)).collect();
    let chart = chart.layer(name("p50"), color, curve(p50, false));
    chart.layer(name("p99"), color, curve(p99, true))
}

/// Latency against IOPS: the curve on which the knee lies.
fn against_iops(manifest: &Manifest, findings: &Findings, group: Group) -> Option<Chart> {
    let (blocking, asynchronous) = select::blocking_and_async(findings, group);
    let block = blocking.first().or(asynchronous.first())?.load.block_bytes;
    let block = format::block_size(block);
    let iops = Axis::new("IOPS", Measure::Count);
    let mut chart = if group == Group::RandomRead {
        let title = format!("Random {block} reads: latency against IOPS");
        let chart = Chart::new("read-latency-against-iops", title, iops, latency());
        chart.about("The higher the load, the longer each read waits.")
    } else {
        let title = format!("Random {block} writes: latency against IOPS");
        let chart = Chart::new("write-latency-against-iops", title, iops, latency());
        chart.about("Writes without a promise of durability.")
    };
    chart = both(chart.wide(380), "blocking", BLOCKING, &blocking, |p| p.iops.value);
    chart = both(chart, "async", ASYNC, &asynchronous, |p| p.iops.value);
    if group == Group::RandomRead {
        chart = with_knee(chart, manifest, findings);
    }
    Some(chart)
}

/// Adds the limit for p99, and the knee on the p99 curve.
fn with_knee(mut chart: Chart, manifest: &Manifest, findings: &Findings) -> Chart {
    let limit_ns = manifest.parameters::<CalibrateParameters>().max_latency_ns.map(Nanos::get);
    chart.levels.extend(
        limit_ns.map(|ns| Level { y: ns as f64, name: format!("p99 limit {}", Nanos(ns)) }),
    );
    let iops = select::figure(findings, "knee_iops").filter(|f| f.condemned_by.is_empty());
    let Some((iops, p99)) = iops.zip(select::figure(findings, "knee_latency_ns_p99")) else {
        return chart;
    };
    let knee = (iops.estimate.value, Some(p99.estimate.value)).into();
    let limit = limit_ns.map_or("bounds".to_owned(), |ns| Nanos(ns).to_string());
    let about = format!(
        "{} The knee, the most IOPS with p99 within {limit}, is at {} IOPS (p99 {}).",
        chart.about,
        three_digits(iops.estimate.value),
        format::quantity(p99.estimate.value, "ns"),
    );
    chart.layer("knee", Color::Bad, Form::Dots(vec![knee])).about(about)
}

/// Percentile curves as HdrHistogram draws them: latency over 1/(1−q), so that every further nine
/// takes the same room.
fn percentiles(manifest: &Manifest, findings: &Findings) -> Chart {
    let named = |name: &str| select::figure(findings, name).map(|f| f.phase.as_str());
    let block = format::block_size(select::block_bytes(manifest, findings));
    let commit = format!("commit/dsync/overwrite/{block}/x1");
    let choices = [
        (Some("random-read/psync/x1"), "one reader"),
        (named("knee_iops"), "knee"),
        (named("max_iops"), "most IOPS"),
        (Some("random-write/psync/x1"), "one writer"),
        (named("commit_latency_ns_p50").or(Some(&commit)), "one committer"),
    ];
    let x = Axis::new("one I/O in this many takes longer", Measure::Count).log();
    let mut chart = Chart::new("percentiles", "Latency by percentile", x, latency()).wide(360);
    let mut shown = BTreeSet::new();
    for ((label, name), color) in choices.into_iter().zip(0..) {
        let Some(point) = label.and_then(|label| select::point(findings, label)) else { continue };
        if !shown.insert(&point.label) {
            continue;
        }
        let condemned = !point.condemned_by.is_empty();
        let points = quantiles(&point.histogram).into_iter();
        let points = points.map(|point| chart::Point { condemned, ..point }).collect();
        let color = if condemned { Color::Grey } else { Color::Series(color) };
        let form = Form::Line { points, dashed: condemned, marks: false };
        chart = chart.layer(name, color, form);
    }
    let about = "Every I/O of the windows is counted; at 100 on the horizontal axis is the 99th \
                 percentile. A flat line is a predictable device; a step is a second mechanism. \
                 Dashed: condemned.";
    chart.about(about)
}

/// Throughput of large reads by streams, sequential and random.
fn large_reads(findings: &Findings) -> Option<Chart> {
    let mut points: Vec<&Point> = select::group(findings, Group::LargeRead).collect();
    let block = Bytes(points.first()?.load.block_bytes);
    points.sort_by_key(|point| point.load.in_flight());
    let title = format!("Large reads of {block}: throughput by streams");
    let x = Axis::new("streams", Measure::Count).log();
    let chart = Chart::new("large-reads", title, x, Axis::new("", Measure::BytesPerS));
    let of = |access: Access| {
        let points = points.iter().filter(move |point| point.load.access == access);
        points.map(|p| at(p, f64::from(p.load.in_flight()), p.mb_per_s.scaled(1e6)))
    };
    let sequential = curve(of(Access::Sequential).collect(), false);
    let random = curve(of(Access::Random).collect(), false);
    let chart = chart.layer("sequential", Color::Series(2), sequential);
    Some(chart.layer("random", Color::Series(1), random))
}

/// Bars of the median with a whisker up to p99.
fn by_method(block: &str, commits: &Commits<'_>) -> Chart {
    let names = commits.methods.iter().map(|(method, ..)| method.name().to_owned()).collect();
    let title = format!("Commit of {block} by method");
    let y = Axis::new("latency", Measure::Nanoseconds);
    let chart = Chart::new("commit-by-method", title, Axis::names("", names), y)
        .about("Bars: p50; whiskers reach up to p99.");
    let bars = |points: Vec<(usize, &Point)>| {
        let bar = |(index, point): (usize, &Point)| {
            let (p50, p99) = (point.latency.ns_p50.value, point.latency.ns_p99.value);
            let y = Estimate { low: p50, high: p99, ..point.latency.ns_p50 };
            at(point, index as f64, y)
        };
        Form::Bars { points: points.into_iter().map(bar).collect(), stacked: false }
    };
    let methods = || commits.methods.iter().enumerate();
    let overwrite = methods().filter_map(|(index, method)| Some((index, method.1?))).collect();
    let append = methods().filter_map(|(index, method)| Some((index, method.2?))).collect();
    let chart = chart.layer("overwrite", Color::Series(0), bars(overwrite));
    chart.layer("append", Color::Series(3), bars(append))
}

fn by_size(points: &[&Point]) -> Option<Chart> {
    let x = Axis::new("commit size", Measure::Bytes).log();
    let chart = Chart::new("commit-by-size", "Commit by size", x, latency())
        .about("One committer, O_DSYNC, overwriting.");
    let chart = both(chart, "", Color::Series(0), points, |p| p.load.block_bytes as f64);
    (points.len() > 1).then_some(chart)
}

fn by_committers(block: &str, points: &[&Point]) -> Option<Chart> {
    let title = format!("Commits of {block} by committers");
    let x = Axis::new("committers", Measure::Count).log();
    let chart = Chart::new("commits-by-committers", title, x, Axis::new("", Measure::Count));
    let factor = points.last().and_then(|point| {
        let factor = select::group_factor(point)?;
        let committers = point.load.workers;
        Some(format!(" With {committers} committers one device flush covers {factor:.1} commits."))
    });
    let about = format!("O_DSYNC, overwriting.{}", factor.unwrap_or_default());
    let rates = points.iter().map(|p| at(p, f64::from(p.load.workers), p.iops)).collect();
    let chart = chart.about(about).layer("commits/s", Color::Commit, curve(rates, false));
    (points.len() > 1).then_some(chart)
}

/// Latency of random reads over the working set: a step up is the edge of a cache.
fn cache_map(manifest: &Manifest, findings: &Findings) -> Option<Chart> {
    let points = select::cache_map(findings);
    let greatest = points.last()?.load.span_bytes;
    let x = Axis::new("working set", Measure::Bytes).log();
    let title = "Cache map: latency by working set";
    let chart = Chart::new("cache-map", title, x, latency()).wide(320).about(
        "One blocking reader. A flat line means that no cache between here and the medium \
         answered more of a small working set than of a large one.",
    );
    let span = |point: &Point| point.load.span_bytes as f64;
    let mut chart = both(chart, "", Color::Series(0), &points, span);
    let memory = manifest.host.memory_bytes;
    if memory < greatest {
        let name = "larger than main memory".to_owned();
        chart.bands.push(Band { from: memory as f64, to: greatest as f64, name });
    }
    Some(chart)
}

fn matrix(findings: &Findings) -> Chart {
    let cells = select::matrix(findings);
    let small: BTreeSet<u32> = cells.iter().map(|cell| cell.small).filter(|&n| n > 0).collect();
    let x = Axis::new("large reads in flight", Measure::Count);
    let title = "Small and large reads together";
    let chart = Chart::new("mixed-reads-chart", title, x, Axis::new("IOPS", Measure::Count))
        .about("Small random reads a second, by how many are in flight.");
    let layers = small.iter().zip(0..).map(|(&count, index)| {
        let row = cells.iter().filter(|cell| cell.small == count);
        let points = row.map(|cell| at(cell.point, f64::from(cell.large), cell.point.iops));
        (format!("{count} in flight"), Color::Series(index), curve(points.collect(), false))
    });
    layers.fold(chart, |chart, (name, color, form)| chart.layer(name, color, form))
}
