//! The charts, drawn by plotly.js from data inside the page. Colours are chosen to be read on
//! white and on near-black; axes and texts take theirs from the page's style.

mod caches;
mod latency;
mod percentiles;
mod writes;

use blockstone_base::Estimate;
use blockstone_base::units::format_ns;
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Group, Manifest};
use plotly::common::{
    ColorScaleElement, DashType, ErrorData, ErrorType, HoverInfo, Line, Marker, MarkerSymbol, Mode,
};
use plotly::layout::{Axis, AxisType, Layout};
use plotly::{Plot, Scatter, Trace};
use serde::Serialize;

use crate::format;

pub const BLUE: &str = "#2f81d6";
pub const ORANGE: &str = "#d9730d";
pub const GREEN: &str = "#1a9e77";
pub const PURPLE: &str = "#a06bd1";
pub const RED: &str = "#d9483b";
pub const GREY: &str = "#8b929c";

/// A chart as the page holds it.
#[derive(Serialize)]
pub struct Chart {
    id: String,
    title: String,
    /// What to see in it, for all readers; its numbers stand in the tables.
    caption: String,
    /// Height on screen, in CSS pixels.
    height: u32,
    /// Its share of a row: `whole`, `half` or `third`; none until the section is complete.
    width: Option<&'static str>,
    /// Data and layout for plotly.js, safe inside a script element.
    plot: minijinja::Value,
}

impl Chart {
    /// A chart of `traces`; its title is also its identity.
    ///
    /// # Panics
    /// Never: traces hold numbers and strings.
    pub fn new(title: &str, caption: String, traces: Vec<Box<dyn Trace>>, layout: Layout) -> Self {
        let mut plot = Plot::new();
        plot.add_traces(traces);
        plot.set_layout(layout);
        let json = serde_json::to_string(&plot).expect("a plot holds numbers and strings only");
        Self {
            id: title.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
            title: title.to_owned(),
            caption,
            height: 340,
            width: None,
            // A `<` could end the script element that holds the data.
            plot: minijinja::Value::from_safe_string(json.replace('<', "\\u003c")),
        }
    }

    /// The same chart over the whole width, `height` pixels high.
    pub fn wide(self, height: u32) -> Self {
        Self { width: Some("whole"), height, ..self }
    }
}

/// The colours of a heat map, from few to many.
pub fn heat_scale() -> Vec<ColorScaleElement> {
    let scale = [
        (0.0, "#e8f1fb"),
        (0.35, "#8fbdec"),
        (0.65, "#2f81d6"),
        (0.85, "#d9730d"),
        (1.0, "#b3261e"),
    ];
    scale.map(|(at, color)| ColorScaleElement(at, color.to_owned())).into()
}

/// Gives the charts that do not need a whole row their share of one, so that no row has a hole.
pub fn share_rows(charts: &mut [Chart]) {
    let small: Vec<&mut Chart> = charts.iter_mut().filter(|c| c.width.is_none()).collect();
    let width = match small.len() {
        1 => "whole",
        n if n.is_multiple_of(3) => "third",
        _ => "half",
    };
    for chart in small {
        chart.width = Some(width);
    }
}

/// Charts of the section on reads.
pub fn reads(manifest: &Manifest, findings: &Findings) -> Vec<Chart> {
    let mut charts: Vec<Chart> =
        latency::against_iops(manifest, findings, Group::RandomRead).into_iter().collect();
    charts.extend(percentiles::of_main_points(manifest, findings));
    charts.extend(caches::large_reads(findings));
    charts
}

/// Charts of the section on writes and commits.
pub fn writes(manifest: &Manifest, findings: &Findings) -> Vec<Chart> {
    let mut charts: Vec<Chart> =
        latency::against_iops(manifest, findings, Group::RandomWrite).into_iter().collect();
    charts.extend(writes::commits(manifest, findings));
    charts
}

/// Charts of the section on caches.
pub fn caches(manifest: &Manifest, findings: &Findings) -> Vec<Chart> {
    caches::map(manifest, findings).into_iter().collect()
}

/// plotly.js as the crate embeds it, without the second script (MathJax) that these charts do not
/// use.
pub fn library() -> String {
    let mut scripts = Plot::offline_js_sources();
    let end = scripts.find("</script>").map_or(scripts.len(), |at| at + "</script>".len());
    scripts.truncate(end);
    scripts
}

/// A series of points with its intervals, condemned points apart.
pub struct Curve<'a> {
    /// The legend's text.
    pub name: &'a str,
    /// One of the colours above.
    pub color: &'static str,
    /// How the line is drawn.
    pub dash: DashType,
}

/// What a curve shows of a point: its place, and half widths of the interval in x and in y.
pub struct Place {
    /// Horizontal, with the interval when it is the uncertain one.
    pub x: f64,
    /// Interval of `x`.
    pub x_interval: Option<(f64, f64)>,
    /// Vertical.
    pub y: f64,
    /// Interval of `y`.
    pub y_interval: Option<(f64, f64)>,
}

impl Curve<'_> {
    /// The traces: a line with markers through the points that stand, hollow grey markers for the
    /// condemned ones.
    pub fn traces(
        &self,
        points: &[&Point],
        place: impl Fn(&Point) -> Option<Place>,
    ) -> Vec<Box<dyn Trace>> {
        let (standing, condemned): (Vec<&Point>, Vec<&Point>) =
            points.iter().partition(|p| p.condemned_by.is_empty());
        let mut traces: Vec<Box<dyn Trace>> = Vec::new();
        if !standing.is_empty() {
            let marker = Marker::new().color(self.color).size(7);
            let line = Line::new().color(self.color).width(1.8).dash(self.dash.clone());
            traces.push(scatter(&standing, &place, self.name).marker(marker).line(line));
        }
        if !condemned.is_empty() {
            let marker = Marker::new().color(GREY).size(8).symbol(MarkerSymbol::CircleOpen);
            let name = format!("{} (condemned)", self.name);
            traces.push(scatter(&condemned, &place, &name).mode(Mode::Markers).marker(marker));
        }
        traces
    }
}

fn scatter(
    points: &[&Point],
    place: impl Fn(&Point) -> Option<Place>,
    name: &str,
) -> Box<Scatter<f64, f64>> {
    let placed: Vec<(&Point, Place)> =
        points.iter().filter_map(|p| Some((*p, place(p)?))).collect();
    let texts = placed.iter().map(|(p, _)| hover_text(p)).collect();
    let xs = placed.iter().map(|(_, at)| at.x).collect();
    let ys = placed.iter().map(|(_, at)| at.y).collect();
    let mut trace = Scatter::new(xs, ys)
        .name(name)
        .mode(Mode::LinesMarkers)
        .hover_text_array(texts)
        .hover_info(HoverInfo::Text);
    if placed.iter().any(|(_, at)| at.x_interval.is_some()) {
        trace = trace.error_x(errors(placed.iter().map(|(_, at)| (at.x, at.x_interval))));
    }
    if placed.iter().any(|(_, at)| at.y_interval.is_some()) {
        trace = trace.error_y(errors(placed.iter().map(|(_, at)| (at.y, at.y_interval))));
    }
    trace
}

/// Whiskers from value to both ends, none of them below zero, where no rate and no latency can be;
/// none at all where the interval is unknown.
pub fn errors(values: impl Iterator<Item = (f64, Option<(f64, f64)>)>) -> ErrorData {
    let (above, below) = values
        .map(|(value, interval)| {
            let (low, high) = interval.unwrap_or((value, value));
            let side = |width: f64| if width.is_finite() { width.max(0.0) } else { 0.0 };
            (side(high - value), side(value - low.max(0.0)))
        })
        .unzip();
    ErrorData::new(ErrorType::Data)
        .symmetric(false)
        .array(above)
        .array_minus(below)
        .color(GREY)
        .thickness(1.0)
        .width(3)
}

/// Both ends of an estimate, scaled.
pub fn ends(estimate: &Estimate, factor: f64) -> (f64, f64) {
    (estimate.low * factor, estimate.high * factor)
}

/// All a reader wants to know of a point. plotly.js reads a few HTML tags in texts.
fn hover_text(point: &Point) -> String {
    let latency = &point.latency;
    let mut lines = vec![
        format!("<b>{}</b>", inert(&point.label)),
        format::load(&point.load),
        format!(
            "{} {}",
            format::quantity(point.iops.value, "IOPS"),
            format::plus_minus(&point.iops)
        ),
        format::quantity(point.mb_per_s.value, "MB/s"),
        format!(
            "p50 {} · p99 {}",
            format::quantity(latency.ns_p50.value, "ns"),
            format::quantity(latency.ns_p99.value, "ns")
        ),
    ];
    if !point.condemned_by.is_empty() {
        lines.push(format!("condemned: {}", inert(&point.condemned_by.join(", "))));
    }
    lines.join("<br>")
}

/// Text that plotly.js shows as it is.
pub fn inert(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// An axis of seconds on a logarithmic scale that holds p50 and p99 of all points, and `limit_ns`
/// if there is one. It begins and ends at a tick, and the narrower it is, the more ticks are round.
pub fn latency_axis<'a>(
    points: impl IntoIterator<Item = &'a Point>,
    limit_ns: Option<u64>,
) -> Axis {
    let limit_ns = limit_ns.map_or(0.0, |ns| ns as f64);
    let (least, greatest) = points.into_iter().fold((f64::INFINITY, limit_ns), |ends, point| {
        let latency = &point.latency;
        (ends.0.min(latency.ns_p50.value), ends.1.max(latency.ns_p99.value))
    });
    let least = least.clamp(1.0, 1e12);
    spanning(least, greatest.max(least * 2.0))
}

/// The axis from `least` to `greatest` nanoseconds.
pub fn spanning(least: f64, greatest: f64) -> Axis {
    let steps: &[f64] = match greatest / least {
        ..12.0 => &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0],
        ..2e3 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let ticks: Vec<f64> = (0..13)
        .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
        .collect();
    let low = ticks.iter().copied().rfind(|&tick| tick <= least * 0.97).unwrap_or(1.0);
    let high = ticks.iter().copied().find(|&tick| tick >= greatest * 1.03).unwrap_or(1e12);
    let texts = ticks.iter().map(|&ns| format_ns(ns)).collect();
    Axis::new()
        .type_(AxisType::Log)
        .range(vec![(low / 1e9).log10(), (high / 1e9).log10()])
        .tick_values(ticks.iter().map(|ns| ns / 1e9).collect())
        .tick_text(texts)
        .title("latency")
}

/// An axis of a rate from zero: 20k, 40k.
pub fn rate_axis(title: &str) -> Axis {
    Axis::new().title(title).tick_format("~s").range_mode(plotly::layout::RangeMode::ToZero)
}
