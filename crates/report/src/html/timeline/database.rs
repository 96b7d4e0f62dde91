//! A database over time: its sessions by what they waited for, its I/O by role and disk, and the
//! latencies of every second.

use std::collections::BTreeMap;

use blockstone_base::LatencyHistogram;
use blockstone_base::database::DIRECT_READ;
use blockstone_judge::RunFindings;
use blockstone_record::manifest::Group;
use blockstone_record::{Recording, Series};
use plotly::common::{DashType, HoverInfo, Line, Mode};
use plotly::layout::{HoverMode, Layout, Margin};
use plotly::{Scatter, Trace};

use super::super::charts::{BLUE, Chart, GREEN, GREY, ORANGE, PURPLE, RED, spanning};
use super::{Lane, Source, rounded, series, stacked, time_axis};
use crate::ReportError;

const COLORS: [&str; 6] = [BLUE, ORANGE, GREEN, PURPLE, RED, GREY];
/// Events that get a line of their own.
const EVENTS: usize = 5;

/// All charts of a run on the time axis.
///
/// # Errors
/// When a recorded series cannot be read.
pub fn charts(recording: &Recording, findings: &RunFindings) -> Result<Vec<Chart>, ReportError> {
    let manifest = &recording.manifest;
    let source = Source { manifest };
    let mut lanes = Vec::new();
    if let Some(event) = series(recording, "event")? {
        lanes.push(active_sessions(&source, &event, findings));
    }
    if let Some(role) = series(recording, "role")? {
        let names: Vec<String> = findings.roles.iter().map(|role| role.name.clone()).collect();
        lanes.push(each(&source, &role, &names, "reads/s", "read_ios"));
        lanes.push(each(&source, &role, &names, "writes/s", "write_ios"));
    }
    if let Some(operation) = series(recording, "operation")? {
        let names = ["select", "update", "scan"].map(str::to_owned);
        lanes.push(each(&source, &operation, &names, "operations/s", "completed_ops"));
    }
    let caption = "Sessions by what they waited for, reads and writes by the process that sent \
                   them, operations by kind; a mirrored write counts once.";
    let mut charts: Vec<Chart> =
        stacked("The database over time", caption.to_owned(), manifest, lanes)
            .into_iter()
            .collect();
    if let Some(disk) = series(recording, "disk")? {
        let names: Vec<String> = findings.disks.iter().map(|disk| disk.name.clone()).collect();
        let lanes = vec![
            each(&source, &disk, &names, "reads/s", "read_ios"),
            each(&source, &disk, &names, "writes/s", "write_ios"),
        ];
        let caption = "What each disk of the disk group was sent; a mirrored write counts on each.";
        charts.extend(stacked("Disks over time", caption.to_owned(), manifest, lanes));
    }
    charts.extend(latencies(recording)?);
    Ok(charts)
}

/// The events with most time of the sessions, each as the sessions that were in it.
fn active_sessions(source: &Source, event: &Series, findings: &RunFindings) -> Lane {
    let most = findings.waits.iter().filter(|w| w.db_time_ratio.is_some() && w.time_ns > 0);
    let tracks = most.take(EVENTS).enumerate().map(|(index, wait)| {
        let object = format!("{}/{}", wait.role, wait.event);
        let track = source.rate(event, &object, &["time_ns"], 1e-9);
        (wait.event.clone(), COLORS[index % COLORS.len()], track)
    });
    Lane { title: "sessions", tracks: tracks.collect() }
}

fn each(
    source: &Source,
    series: &Series,
    objects: &[String],
    title: &'static str,
    column: &str,
) -> Lane {
    let tracks = objects.iter().enumerate().map(|(index, object)| {
        let track = source.rate(series, object, &[column], 1.0);
        let name = format!("{object} {title}");
        (name, COLORS[index % COLORS.len()], track)
    });
    // A line at zero from end to end says nothing.
    let moved = |track: &super::Track| track.iter().any(|(_, v)| v.is_some_and(|v| v > 0.0));
    Lane { title, tracks: tracks.filter(|(_, _, track)| moved(track)).collect() }
}

/// What the curves of latencies show: role of the histogram, name, colour.
const LATENCIES: [(&str, &str, &str); 6] = [
    ("session/db file sequential read", "db file sequential read", BLUE),
    ("session/log file sync", "log file sync", ORANGE),
    (DIRECT_READ, "direct path I/O", BLUE),
    ("session/direct path read", "direct path read", ORANGE),
    ("select", "select", GREEN),
    ("update", "update", PURPLE),
];

/// p50 and p99 of every second.
fn latencies(recording: &Recording) -> Result<Option<Chart>, ReportError> {
    let manifest = &recording.manifest;
    let rows = recording.histograms().map_err(|source| ReportError::Series {
        recording: recording.dir.display().to_string(),
        source,
    })?;
    let mut seconds: BTreeMap<(usize, u32), LatencyHistogram> = BTreeMap::new();
    for row in rows {
        let held = |phase: i32| {
            let phase = usize::try_from(phase).ok().and_then(|at| manifest.phases.get(at));
            phase.is_some_and(|phase| matches!(phase.group, Group::Workload | Group::Scan))
        };
        let known = LATENCIES.iter().position(|(role, _, _)| *role == row.role);
        if let Some(index) = known.filter(|_| held(row.phase)) {
            seconds.entry((index, row.second)).or_default().merge(&row.histogram);
        }
    }
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let (mut least, mut greatest) = (f64::INFINITY, 0_f64);
    for (index, (_, name, color)) in LATENCIES.iter().enumerate() {
        for (quantile, label, dash) in [(0.5, "p50", DashType::Solid), (0.99, "p99", DashType::Dot)]
        {
            let of = seconds.range((index, 0)..=(index, u32::MAX)).filter(|(_, h)| h.count() > 0);
            let points: Vec<(f64, f64)> = of
                .map(|((_, second), h)| (f64::from(*second) + 0.5, h.quantile_ns(quantile) as f64))
                .collect();
            for &(_, ns) in &points {
                (least, greatest) = (least.min(ns), greatest.max(ns));
            }
            if points.is_empty() {
                continue;
            }
            let (xs, ys) = points.into_iter().map(|(t, ns)| (t, rounded(ns / 1e9, 9))).unzip();
            traces.push(
                Scatter::new(xs, ys)
                    .name(format!("{name} {label}"))
                    .mode(Mode::Lines)
                    .hover_info(HoverInfo::All)
                    .line(Line::new().color(*color).width(1.4).dash(dash)),
            );
        }
    }
    if traces.is_empty() {
        return Ok(None);
    }
    let layout = Layout::new()
        .hover_mode(HoverMode::XUnified)
        .margin(Margin::new().left(64).right(40).top(24).bottom(48))
        .x_axis(time_axis(manifest, 1))
        .y_axis(spanning(least.max(1.0), greatest.max(least * 2.0)));
    let caption = "Median and 99th percentile of every second: a checkpoint or a log switch is a \
                   peak, a full cache is a plateau.";
    Ok(Some(Chart::new("Latencies over time", caption.to_owned(), traces, layout).wide(440)))
}
