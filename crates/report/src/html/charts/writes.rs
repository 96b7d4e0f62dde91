//! Commits: by method, by size, by committers.

use blockstone_base::load::SyncMethod;
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::Manifest;
use plotly::common::{DashType, HoverInfo, Marker};
use plotly::layout::{Axis, AxisType, BarMode, Layout};
use plotly::{Bar, Trace};

use super::caches::counts_axis;
use super::{
    BLUE, Chart, Curve, GREEN, GREY, PURPLE, Place, ends, errors, hover_text, latency_axis,
    rate_axis,
};
use crate::format;
use crate::select;

/// The three commit charts, as far as there are points for them.
pub fn commits(manifest: &Manifest, findings: &Findings) -> Vec<Chart> {
    let block_bytes = select::block_bytes(manifest, findings);
    let commits = select::commits(findings, block_bytes);
    let block = format::block_size(block_bytes);
    let mut charts = Vec::new();
    if !commits.methods.is_empty() {
        charts.push(by_method(&block, &commits.methods));
    }
    if commits.sizes.len() > 1 {
        charts.push(by_size(&commits.sizes));
    }
    if commits.committers.len() > 1 {
        charts.push(by_committers(&block, &commits.committers));
    }
    charts
}

/// Name, colour and points of a set of bars.
type Bars<'a> = (&'static str, &'static str, Vec<(SyncMethod, &'a Point)>);

type Method<'a> = (SyncMethod, Option<&'a Point>, Option<&'a Point>);

/// Bars of the median with a whisker up to p99.
fn by_method(block: &str, methods: &[Method]) -> Chart {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let kinds: [Bars; 2] = [
        ("overwrite", BLUE, methods.iter().filter_map(|m| Some((m.0, m.1?))).collect()),
        ("append", PURPLE, methods.iter().filter_map(|m| Some((m.0, m.2?))).collect()),
    ];
    for (kind, color, points) in kinds {
        if points.is_empty() {
            continue;
        }
        let names: Vec<&str> = points.iter().map(|(method, _)| method.name()).collect();
        let medians: Vec<f64> = points.iter().map(|(_, p)| p.latency.ns_p50.value / 1e9).collect();
        let whiskers = errors(points.iter().map(|(_, p)| {
            let p50 = p.latency.ns_p50.value / 1e9;
            (p50, Some((p50, p.latency.ns_p99.value / 1e9)))
        }));
        let colors = points
            .iter()
            .map(|(_, p)| if p.condemned_by.is_empty() { color } else { GREY })
            .collect();
        traces.push(
            Bar::new(names, medians)
                .name(kind)
                .marker(Marker::new().color_array(colors))
                .error_y(whiskers)
                .hover_text_array(points.iter().map(|(_, p)| hover_text(p)).collect())
                .hover_info(HoverInfo::Text),
        );
    }
    let layout = Layout::new()
        .bar_mode(BarMode::Group)
        .y_axis(Axis::new().tick_format("~s").tick_suffix("s").title("latency"));
    let title = format!("Commit of {block} by method");
    Chart::new(&title, "Bars: p50; whiskers reach up to p99.".to_owned(), traces, layout)
}

fn by_size(points: &[&Point]) -> Chart {
    let mut traces = Vec::new();
    for (name, dash, read) in [
        ("p50", DashType::Solid, (|p| p.latency.ns_p50.value) as fn(&Point) -> f64),
        ("p99", DashType::Dot, |p| p.latency.ns_p99.value),
    ] {
        let curve = Curve { name, color: BLUE, dash };
        traces.extend(curve.traces(points, |p| {
            Some(Place {
                x: p.load.block_bytes as f64,
                x_interval: None,
                y: read(p) / 1e9,
                y_interval: None,
            })
        }));
    }
    let (values, texts) = points
        .iter()
        .map(|p| (p.load.block_bytes as f64, format::block_size(p.load.block_bytes)))
        .unzip();
    let sizes = Axis::new()
        .type_(AxisType::Log)
        .title("bytes a commit")
        .tick_angle(0.0)
        .tick_values(values)
        .tick_text(texts);
    let layout = Layout::new().x_axis(sizes).y_axis(latency_axis(points.iter().copied(), None));
    let caption = "One committer, O_DSYNC, overwriting.".to_owned();
    Chart::new("Commit by size", caption, traces, layout)
}

fn by_committers(block: &str, points: &[&Point]) -> Chart {
    let curve = Curve { name: "commits a second", color: GREEN, dash: DashType::Solid };
    let traces = curve.traces(points, |p| {
        Some(Place {
            x: f64::from(p.load.workers),
            x_interval: None,
            y: p.iops.value,
            y_interval: Some(ends(&p.iops, 1.0)),
        })
    });
    let layout =
        Layout::new().x_axis(counts_axis("committers")).y_axis(rate_axis("commits a second"));
    let factor = points.last().and_then(|p| {
        let factor = select::group_factor(p)?;
        Some(format!(
            " At {} committers one device flush carries {factor:.1} commits.",
            p.load.workers
        ))
    });
    let caption = format!("O_DSYNC, overwriting.{}", factor.unwrap_or_default());
    Chart::new(&format!("Commits of {block} by committers"), caption, traces, layout)
}
