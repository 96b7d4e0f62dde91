//! What depends on how much is read, and how many read it.

use blockstone_base::load::Access;
use blockstone_base::units::Bytes;
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Group, Manifest};
use plotly::Trace;
use plotly::common::{Anchor, DashType};
use plotly::layout::{Annotation, Axis, AxisType, Layout, Shape, ShapeLine, ShapeType};

use super::{BLUE, Chart, Curve, GREEN, GREY, ORANGE, Place, ends, latency_axis, rate_axis};
use crate::select;

/// Latency of random reads over the working set: a step up is the edge of a cache.
pub fn map(manifest: &Manifest, findings: &Findings) -> Option<Chart> {
    let points = select::cache_map(findings);
    let (least, greatest) = (points.first()?.load.span_bytes, points.last()?.load.span_bytes);
    let mut traces = Vec::new();
    let p50 = Curve { name: "p50", color: BLUE, dash: DashType::Solid };
    traces.extend(p50.traces(&points, |p| {
        let estimate = &p.latency.ns_p50;
        place(p, estimate.value, Some(ends(estimate, 1e-9)))
    }));
    let p99 = Curve { name: "p99", color: BLUE, dash: DashType::Dot };
    traces.extend(p99.traces(&points, |p| place(p, p.latency.ns_p99.value, None)));
    let (values, texts) = points
        .iter()
        .map(|p| (p.load.span_bytes as f64, Bytes(p.load.span_bytes).to_string()))
        .unzip();
    let x_axis =
        Axis::new().type_(AxisType::Log).title("working set").tick_values(values).tick_text(texts);
    let mut layout =
        Layout::new().x_axis(x_axis).y_axis(latency_axis(points.iter().copied(), None));
    let memory = manifest.host.memory_bytes;
    if (least..=greatest).contains(&memory) {
        layout = marked(layout, memory);
    }
    let caption =
        "One blocking reader. A flat line means that no cache between here and the medium \
                   answered more of a small working set than of a large one."
            .to_owned();
    Some(Chart::new("Cache map: latency by working set", caption, traces, layout).wide(340))
}

/// A line at the size of main memory, where the page cache would end.
fn marked(layout: Layout, memory: u64) -> Layout {
    let line = Shape::new()
        .shape_type(ShapeType::Line)
        .x_ref("x")
        .x0(memory as f64)
        .x1(memory as f64)
        .y_ref("paper")
        .y0(0.0)
        .y1(1.0)
        .line(ShapeLine::new().color(GREY).width(1.0).dash(DashType::Dash));
    let label = Annotation::new()
        .x_ref("x")
        .x((memory as f64).log10())
        .y_ref("paper")
        .y(1.0)
        .y_anchor(Anchor::Bottom)
        .show_arrow(false)
        .text("main memory");
    layout.shapes(vec![line]).annotations(vec![label])
}

fn place(point: &Point, latency_ns: f64, y_interval: Option<(f64, f64)>) -> Option<Place> {
    (latency_ns > 0.0).then(|| Place {
        x: point.load.span_bytes as f64,
        x_interval: None,
        y: latency_ns / 1e9,
        y_interval,
    })
}

/// Throughput of large reads by streams, sequential and random.
pub fn large_reads(findings: &Findings) -> Option<Chart> {
    let mut points: Vec<&Point> = select::group(findings, Group::LargeRead).collect();
    let block = points.first()?.load.block_bytes;
    points.sort_by_key(|p| p.load.in_flight());
    let (sequential, random): (Vec<&Point>, Vec<&Point>) =
        points.into_iter().partition(|p| p.load.access == Access::Sequential);
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (name, color, points) in [("sequential", GREEN, sequential), ("random", ORANGE, random)] {
        let curve = Curve { name, color, dash: DashType::Solid };
        traces.extend(curve.traces(&points, |p| {
            Some(Place {
                x: f64::from(p.load.in_flight()),
                x_interval: None,
                y: p.mb_per_s.value,
                y_interval: Some(ends(&p.mb_per_s, 1.0)),
            })
        }));
    }
    let layout =
        Layout::new().x_axis(counts_axis("streams")).y_axis(rate_axis("MB/s").tick_format(",d"));
    let title = format!("Large reads of {}: throughput by streams", Bytes(block));
    let caption = "Decimal megabytes a second.".to_owned();
    Some(Chart::new(&title, caption, traces, layout))
}

/// An axis of doubling counts: 1, 2, 4 …
pub fn counts_axis(title: &str) -> Axis {
    let (values, texts) = (0..8).map(|i| (f64::from(1 << i), (1 << i).to_string())).unzip();
    Axis::new().type_(AxisType::Log).title(title).tick_values(values).tick_text(texts)
}
