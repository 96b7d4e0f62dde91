//! Charts of both recordings: rates since the start of each, and latency distributions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use blockstone_base::LatencyHistogram;
use blockstone_base::table::{Measure, Missing};
use blockstone_record::manifest::{Group, Manifest};
use blockstone_record::{LatencyClock, Recording};
use blockstone_report::chart::{Axis, Chart, Color, Form};
use blockstone_report::{Detail, Section};
use blockstone_view::{History, Interval, Known};

use crate::interval;
use crate::range::RecordingRange;
use crate::recorded::quantiles;

/// Maximum number of points in a line.
const POINTS: usize = 300;
/// Slices shorter than this fraction of the mean are dropped.
const SHORT: f64 = 0.25;
/// Number of loads whose latencies are drawn: those with the most samples on both sides.
const LOADS: usize = 2;

/// The name of a load in both recordings, and the latencies of each.
type Both<'a> = (&'a str, [&'a LatencyHistogram; 2]);

/// Returns charts of A and B for the page, or `None` if either side has no samples.
pub fn section(sides: [(&Recording, &RecordingRange); 2]) -> Result<Option<Section>> {
    let mut read = Vec::new();
    for (recording, part) in sides {
        let Some((history, edges)) = interval::read(recording, part.from, part.to)? else {
            return Ok(None);
        };
        read.push((history, edges));
    }
    let intervals: Vec<Interval<'_>> =
        read.iter().map(|(history, (from, to))| history.interval(*from, *to)).collect();
    let rate = |name, title, of: fn(&Interval<'_>) -> Known| {
        let y = Axis::new("a second", Measure::Count);
        let chart = Chart::new(name, title, Axis::time(), y);
        let lines = intervals.iter().zip(["A", "B"]).zip(0..);
        lines.fold(chart, |chart, ((interval, side), color)| {
            chart.layer(side, Color::Series(color), over_time(interval, of))
        })
    };
    let mut charts = vec![rate("overlay-requests", "Requests of all disks", requests)];
    let has_commits = |interval: &Interval<'_>| interval.moved("instance", "", "commits").is_ok();
    if intervals.iter().all(has_commits) {
        let commits = |slice: &Interval<'_>| slice.per_s("instance", "", "commits");
        charts.push(rate("overlay-commits", "Commits", commits));
    }
    let histories = [&read[0].0, &read[1].0];
    let [a, b] = [0, 1].map(|side| latencies(histories[side], &sides[side].0.manifest));
    let mut both: Vec<Both<'_>> =
        a.iter().filter_map(|(name, of_a)| Some((&**name, [of_a, b.get(name)?]))).collect();
    let samples = |(_, sides): &Both<'_>| sides.map(LatencyHistogram::count).into_iter().min();
    both.sort_by_key(|load| Reverse(samples(load)));
    charts.extend(both.iter().take(LOADS).zip(0..).map(distribution));
    let section = Section::new("overlay", "A and B over one another").detail(Detail::Page);
    let about = "Both begin at zero. At 100 on the axis of a distribution is the 99th percentile.";
    Ok(Some(section.about(about).with(charts)))
}

fn over_time(interval: &Interval<'_>, of: fn(&Interval<'_>) -> Known) -> Form {
    let mut slices = interval.slices(POINTS);
    // A phase edge just after a tick leaves a slice too short for a meaningful rate.
    let least_ns = interval.ns() / slices.len().max(1) as f64 * SHORT;
    slices.retain(|slice| slice.ns() >= least_ns);
    let point = |slice: &Interval<'_>| ((slice.to_ns - interval.from_ns) as f64, of(slice).ok());
    Form::line(slices.iter().map(point).collect::<Vec<_>>())
}

fn requests(slice: &Interval<'_>) -> Known {
    let disks = slice.disks();
    if disks.is_empty() {
        return Err(Missing::Unknown);
    }
    let columns =
        disks.iter().flat_map(|disk| ["read_ios", "write_ios"].map(|column| (*disk, column)));
    columns.map(|(disk, column)| slice.per_s("block", disk, column)).sum()
}

/// Returns latencies by load and role, merged over all measurement windows of the load.
fn latencies(history: &History, manifest: &Manifest) -> BTreeMap<String, LatencyHistogram> {
    let mut found: BTreeMap<String, LatencyHistogram> = BTreeMap::new();
    for (index, phase) in manifest.phases.iter().enumerate() {
        if matches!(phase.group, Group::Overhead | Group::Layout | Group::Load) {
            continue;
        }
        for (role, clock, histogram) in history.window(index, phase).histograms() {
            if clock == LatencyClock::Submitted {
                let name = format!("{} {role}", phase.label);
                found.entry(name).or_default().merge(histogram);
            }
        }
    }
    found
}

fn distribution(((name, sides), number): (&Both<'_>, u8)) -> Chart {
    let x = Axis::new("one in this many takes longer", Measure::Count).log();
    let y = Axis::new("latency", Measure::Nanoseconds).log();
    let chart = Chart::new(format!("overlay-latency-{number}"), format!("Latency: {name}"), x, y);
    sides.iter().zip(["A", "B"]).zip(0..).fold(chart, |chart, ((histogram, side), color)| {
        let points = quantiles(histogram);
        chart.layer(side, Color::Series(color), Form::Line { points, dashed: false, marks: false })
    })
}
