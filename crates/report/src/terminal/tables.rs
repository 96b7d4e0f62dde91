//! The two tables of the screen: blocking readers beside asynchronous depth, commits by method.

use std::collections::BTreeSet;

use blockstone_base::Pacing;
use blockstone_base::units::{format_ns, three_digits};
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Group, Manifest};

use crate::format;
use crate::render::terminal::Style;
use crate::render::terminal::columns::{Columns, sparkline, visible_width, wrap};
use crate::select::{self, Commits};

/// Context switches and processor time are those of one I/O.
const HEADINGS: [&str; 5] = ["IOPS", "p50", "p99", "sw/IO", "CPU µs"];

/// Random reads by operations in flight, both ways of keeping them in flight side by side.
pub fn concurrency(findings: &Findings, style: &Style) -> Vec<String> {
    let (blocking, asynchronous) = select::blocking_and_async(findings, Group::RandomRead);
    let Some(any) = blocking.first().or(asynchronous.first()) else { return Vec::new() };
    let title = format!("{} random reads", format::block_size(any.load.block_bytes));
    let sides = [("blocking readers", blocking), ("async depth", asynchronous)];
    let together = side_by_side(&title, &sides, style);
    if together.iter().all(|line| visible_width(line) <= style.width) {
        return together;
    }
    sides.iter().flat_map(|side| side_by_side(&title, std::slice::from_ref(side), style)).collect()
}

fn side_by_side(title: &str, sides: &[(&str, Vec<&Point>)], style: &Style) -> Vec<String> {
    let present = || sides.iter().filter(|(_, points)| !points.is_empty());
    let depths: BTreeSet<u32> =
        present().flat_map(|(_, points)| points.iter().map(|p| p.load.in_flight())).collect();
    if depths.is_empty() {
        return Vec::new();
    }
    let mut columns = Columns::new(2);
    let mut headings = vec![style.dim("in flight")];
    for (index, _) in present().enumerate() {
        headings.extend((index > 0).then(|| style.dim("│")));
        headings.extend(HEADINGS.map(|h| style.dim(h)));
    }
    columns.numbers(headings);
    for depth in depths {
        let mut row = vec![depth.to_string()];
        for (index, (_, points)) in present().enumerate() {
            row.extend((index > 0).then(|| style.dim("│")));
            let point = points.iter().find(|p| p.load.in_flight() == depth);
            row.extend(point.map_or_else(Default::default, |p| cells(p, style)));
        }
        columns.numbers(row);
    }
    let names: Vec<String> = present()
        .map(|(name, points)| {
            let rates: Vec<f64> = points.iter().map(|p| p.iops.value).collect();
            format!("{name} {}", sparkline(&rates))
        })
        .collect();
    let mut lines = vec![format!("{}: {}", style.bold(title), names.join("  │  "))];
    lines.extend(columns.lines());
    lines
}

fn cells(point: &Point, style: &Style) -> [String; 5] {
    let cpu_ns = point.cpu.user_ns_per_io.zip(point.cpu.system_ns_per_io).map(|(u, s)| u + s);
    let switches = point
        .cpu
        .switches_voluntary_per_io
        .zip(point.cpu.switches_involuntary_per_io)
        .map(|(v, i)| v + i);
    let measured = [
        three_digits(point.iops.value),
        format::quantity(point.latency.ns_p50.value, "ns"),
        format::quantity(point.latency.ns_p99.value, "ns"),
    ];
    let [iops, p50, p99] =
        measured.map(|text| if point.condemned_by.is_empty() { text } else { style.struck(&text) });
    let switches = format::optional(switches, |n| format!("{n:.2}"));
    [iops, p50, p99, switches, format::optional(cpu_ns, format::microseconds)]
}

/// Reads at a given rate: latency counts from the intended start.
pub fn open_loop(findings: &Findings, style: &Style) -> Vec<String> {
    let points = select::group(findings, Group::OpenLoop);
    let lines = points.filter_map(|point| {
        let Pacing::Open { rate_per_s, poisson } = point.load.pacing else { return None };
        let arrivals = if poisson { "Poisson" } else { "fixed" };
        let rate = three_digits(rate_per_s);
        let title = style.bold(&format!("At {rate}/s, {arrivals} arrivals:"));
        let [iops, p50, p99, ..] = cells(point, style);
        let lag = format_ns(point.latency.lag_ns_mean);
        let text = format!("{title} {iops} IOPS, p50 {p50}, p99 {p99}, mean lag {lag}");
        Some(wrap(&text, style.width, 0, 2))
    });
    lines.flatten().collect()
}

/// Commits of one block by method, and what more committers bring.
pub fn commits(manifest: &Manifest, findings: &Findings, style: &Style) -> Vec<String> {
    let block_bytes = select::block_bytes(manifest, findings);
    let commits = select::commits(findings, block_bytes);
    if commits.methods.is_empty() {
        return Vec::new();
    }
    let mut columns = Columns::new(2);
    let heading = |kind: &str| {
        [format!("{kind} p50"), "p99".to_owned(), "per s".to_owned()].map(|h| style.dim(&h))
    };
    let mut headings = vec![style.dim("one committer")];
    headings.extend(heading("overwrite"));
    headings.extend(heading("append"));
    columns.numbers(headings);
    for (method, overwrite, append) in &commits.methods {
        let mut row = vec![method.name().to_owned()];
        for point in [overwrite, append] {
            row.extend(commit_cells(*point, style));
        }
        columns.numbers(row);
    }
    let title = style.bold(&format!("{} commits", format::block_size(block_bytes)));
    let summary = format!("{title}: {}", committers(&commits, style));
    let mut lines = wrap(summary.trim_end_matches([':', ' ']), style.width, 0, 2);
    lines.extend(columns.lines());
    lines
}

fn commit_cells(point: Option<&Point>, style: &Style) -> Vec<String> {
    let Some(point) = point else { return vec!["–".to_owned(); 3] };
    [
        format::quantity(point.latency.ns_p50.value, "ns"),
        format::quantity(point.latency.ns_p99.value, "ns"),
        three_digits(point.iops.value),
    ]
    .into_iter()
    .map(|text| if point.condemned_by.is_empty() { text } else { style.struck(&text) })
    .collect()
}

/// What more committers bring: from one to the most, with the group factor of the most.
fn committers(commits: &Commits, style: &Style) -> String {
    let points = &commits.committers;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    if first.load.workers == last.load.workers {
        return String::new();
    }
    let rates: Vec<f64> = points.iter().map(|p| p.iops.value).collect();
    let factor = select::group_factor(last)
        .map(|n| format!(", {} commits a flush", three_digits(n)))
        .unwrap_or_default();
    let [from, to] = [first, last].map(|p| {
        let text = three_digits(p.iops.value);
        if p.condemned_by.is_empty() { text } else { style.struck(&text) }
    });
    format!(
        "O_DSYNC by {} to {} committers: {from} {} {to} commits/s{factor}",
        first.load.workers,
        last.load.workers,
        sparkline(&rates),
    )
}
