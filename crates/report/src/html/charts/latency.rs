//! Latency against IOPS: the curve on which the knee lies.

use blockstone_base::units::{Nanos, three_digits};
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use plotly::common::{DashType, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::{Annotation, Layout, Shape, ShapeLine, ShapeType};
use plotly::{Scatter, Trace};

use super::{BLUE, Chart, Curve, ORANGE, Place, RED, ends, latency_axis, rate_axis};
use crate::format;
use crate::select;

/// Blocking and asynchronous series, p50 and p99; for reads with the knee and the latency limit.
pub fn against_iops(manifest: &Manifest, findings: &Findings, group: Group) -> Option<Chart> {
    let (blocking, asynchronous) = select::blocking_and_async(findings, group);
    let block = blocking.first().or(asynchronous.first())?.load.block_bytes;
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (name, color, points) in [("blocking", BLUE, &blocking), ("async", ORANGE, &asynchronous)] {
        let p50 = Curve { name: &format!("{name} p50"), color, dash: DashType::Solid };
        traces.extend(p50.traces(points, |p| place(p, p.latency.ns_p50.value)));
        let p99 = Curve { name: &format!("{name} p99"), color, dash: DashType::Dot };
        traces.extend(p99.traces(points, |p| place(p, p.latency.ns_p99.value)));
    }
    let all = blocking.iter().chain(&asynchronous).copied();
    let reads = group == Group::RandomRead;
    let limit = manifest.parameters::<CalibrateParameters>().max_latency_ns;
    let limit = limit.filter(|_| reads).map(Nanos::get);
    let mut layout = Layout::new().x_axis(rate_axis("IOPS")).y_axis(latency_axis(all, limit));
    let (verb, mut caption) = if reads {
        ("reads", "The higher the load, the longer each read waits.".to_owned())
    } else {
        ("writes", "Writes without a promise of durability.".to_owned())
    };
    if reads {
        layout = limited(layout, limit);
        if let Some((trace, sentence)) = knee(findings, limit) {
            traces.push(trace);
            caption.push_str(&sentence);
        }
    }
    let title = format!("Random {} {verb}: latency against IOPS", format::block_size(block));
    Some(Chart::new(&title, caption, traces, layout).wide(420))
}

fn place(point: &Point, latency_ns: f64) -> Option<Place> {
    (latency_ns > 0.0).then(|| Place {
        x: point.iops.value,
        x_interval: Some(ends(&point.iops, 1.0)),
        y: latency_ns / 1e9,
        y_interval: None,
    })
}

/// A line at the latency that p99 may not exceed.
fn limited(layout: Layout, limit_ns: Option<u64>) -> Layout {
    let Some(limit_ns) = limit_ns else { return layout };
    let seconds = limit_ns as f64 / 1e9;
    let line = Shape::new()
        .shape_type(ShapeType::Line)
        .x_ref("paper")
        .x0(0.0)
        .x1(1.0)
        .y_ref("y")
        .y0(seconds)
        .y1(seconds)
        .line(ShapeLine::new().color(RED).width(1.0).dash(DashType::Dash));
    let label = Annotation::new()
        .x_ref("paper")
        .x(0.0)
        .x_anchor(plotly::common::Anchor::Left)
        .y_ref("y")
        // Annotations on a logarithmic axis are placed by exponent.
        .y(seconds.log10())
        .y_anchor(plotly::common::Anchor::Bottom)
        .show_arrow(false)
        .text(format!("p99 limit {}", Nanos(limit_ns)));
    layout.shapes(vec![line]).annotations(vec![label])
}

/// The knee as a diamond on the p99 curve, and the sentence that says it.
fn knee(findings: &Findings, limit_ns: Option<u64>) -> Option<(Box<dyn Trace>, String)> {
    let iops = select::figure(findings, "knee_iops").filter(|f| f.condemned_by.is_empty())?;
    let p99 = select::figure(findings, "knee_latency_ns_p99")?;
    let marker = Marker::new()
        .color(RED)
        .size(14)
        .symbol(MarkerSymbol::DiamondOpen)
        .line(Line::new().width(2.0));
    let trace = Scatter::new(vec![iops.estimate.value], vec![p99.estimate.value / 1e9])
        .name("knee")
        .mode(Mode::Markers)
        .marker(marker);
    let limit = format::optional(limit_ns, |ns| Nanos(ns).to_string());
    let sentence = format!(
        " The knee, the most IOPS with p99 within {limit}, is at {} IOPS (p99 {}).",
        three_digits(iops.estimate.value),
        format::quantity(p99.estimate.value, "ns"),
    );
    Some((trace, sentence))
}
