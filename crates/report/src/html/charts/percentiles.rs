//! Percentile curves as HdrHistogram draws them: latency over 1/(1−q), so that every further nine
//! takes the same room.

use std::collections::BTreeSet;

use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::Manifest;
use plotly::common::{DashType, HoverInfo, Line, Mode};
use plotly::layout::{Axis, AxisType, Layout};
use plotly::{Scatter, Trace};

use super::{BLUE, Chart, GREEN, GREY, ORANGE, PURPLE, inert, spanning};
use crate::format;
use crate::select;

/// Points a decade of 1/(1−q).
const STEPS: i32 = 12;

/// The points behind the headline figures.
pub fn of_main_points(manifest: &Manifest, findings: &Findings) -> Option<Chart> {
    let named = |name: &str| select::figure(findings, name).map(|f| f.phase.as_str());
    let block = format::block_size(select::block_bytes(manifest, findings));
    let commit = format!("commit/dsync/overwrite/{block}/x1");
    let choices = [
        (Some("random-read/psync/x1"), "one reader", BLUE),
        (named("knee_iops"), "knee", GREEN),
        (named("max_iops"), "most IOPS", ORANGE),
        (Some("random-write/psync/x1"), "one writer", GREY),
        (named("commit_latency_ns_p50").or(Some(&commit)), "one committer", PURPLE),
    ];
    let mut shown = BTreeSet::new();
    let chosen: Vec<(&Point, &str, &'static str)> = choices
        .into_iter()
        .filter_map(|(label, name, color)| Some((select::point(findings, label?)?, name, color)))
        .filter(|(point, ..)| point.histogram.count() > 0 && shown.insert(&point.label))
        .collect();
    if chosen.is_empty() {
        return None;
    }
    let traces = chosen.iter().map(|(point, name, color)| curve(point, name, color)).collect();
    let caption =
        "Every I/O of the windows is counted. A flat line is a predictable device; a step \
                   is a second mechanism. Dotted: condemned."
            .to_owned();
    let layout = Layout::new().x_axis(quantile_axis()).y_axis(y_axis(&chosen));
    Some(Chart::new("Latency by percentile", caption, traces, layout).wide(380))
}

fn curve(point: &Point, name: &str, color: &'static str) -> Box<dyn Trace> {
    let count = point.histogram.count() as f64;
    let (mut xs, mut ys, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0.. {
        let beyond = 10_f64.powf(f64::from(step) / f64::from(STEPS));
        if beyond > count {
            break;
        }
        let quantile = 1.0 - 1.0 / beyond;
        let latency_ns = point.histogram.quantile_ns(quantile).max(1) as f64;
        xs.push(beyond);
        ys.push(latency_ns / 1e9);
        texts.push(format!(
            "<b>{}</b><br>{} % within {}",
            inert(&point.label),
            percentile(quantile),
            format::quantity(latency_ns, "ns")
        ));
    }
    let standing = point.condemned_by.is_empty();
    let dash = if standing { DashType::Solid } else { DashType::Dot };
    let color = if standing { color } else { GREY };
    Scatter::new(xs, ys)
        .name(name)
        .mode(Mode::Lines)
        .line(Line::new().color(color).width(1.8).dash(dash))
        .hover_text_array(texts)
        .hover_info(HoverInfo::Text)
}

fn y_axis(chosen: &[(&Point, &str, &'static str)]) -> Axis {
    let least = chosen.iter().map(|(p, ..)| p.histogram.min_ns()).min().unwrap_or(1).max(1);
    let greatest = chosen.iter().map(|(p, ..)| p.histogram.max_ns()).max().unwrap_or(1);
    spanning(least as f64, greatest as f64)
}

fn percentile(quantile: f64) -> String {
    let text = format!("{:.6}", quantile * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn quantile_axis() -> Axis {
    let (values, texts) = [
        (1.0, "0 %"),
        (2.0, "50 %"),
        (10.0, "90 %"),
        (100.0, "99 %"),
        (1e3, "99.9 %"),
        (1e4, "99.99 %"),
        (1e5, "99.999 %"),
        (1e6, "99.9999 %"),
    ]
    .map(|(value, text)| (value, text.to_owned()))
    .into_iter()
    .unzip();
    Axis::new().type_(AxisType::Log).title("share of I/Os").tick_values(values).tick_text(texts)
}
