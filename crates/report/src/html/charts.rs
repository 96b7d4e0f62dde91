//! The charts, drawn by plotly.js from data inside the page. Colours are chosen to be read on
//! white and on near-black; axes and texts take theirs from the page's style.

use blockstone_base::units::format_ns;
use plotly::common::{ColorScaleElement, ErrorData, ErrorType};
use plotly::layout::{Axis, AxisType, Layout};
use plotly::{Plot, Trace};
use serde::Serialize;

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

    /// The same chart, `height` pixels high.
    pub fn high(self, height: u32) -> Self {
        Self { height, ..self }
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

/// plotly.js as the crate embeds it, without the second script (MathJax) that these charts do not
/// use.
pub fn library() -> String {
    let mut scripts = Plot::offline_js_sources();
    let end = scripts.find("</script>").map_or(scripts.len(), |at| at + "</script>".len());
    scripts.truncate(end);
    scripts
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

/// Text that plotly.js shows as it is.
pub fn inert(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
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
