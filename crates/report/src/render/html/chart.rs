//! A chart as SVG: its shapes stretch to the width of the page; the labels next to them keep their
//! size. Values for the pointer are data for the script.

mod layers;
mod thin;

use minijinja::value::Value as Safe;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::numbers::{letter, number, numbers};
use super::ruler::{Ruler, Tick};
use super::shapes::{Ink, Look, Shapes};
use crate::chart::{Chart, Color, Form, Layer, Scale, Width};
use layers::Layers;

/// Width of the drawing in its own units; the page stretches it.
const UNITS: u32 = 2000;
/// Units of the drawing per CSS pixel of height.
const PER_PIXEL: u32 = 2;
/// Room for the labels below, in CSS pixels.
const BELOW: u32 = 22;
/// Approximate width of a digit of a label, in CSS pixels.
const DIGIT: usize = 7;
/// Gap between two labels, in CSS pixels.
const GAP: f64 = 6.0;
/// Labels from this place on end at their place; those before it are centred on theirs.
const END: f64 = 0.97;
/// Width of a chart on a narrow page, without its labels at the left, in CSS pixels.
const NARROW: f64 = 330.0;
/// Number of names above which only some have room below the axis.
const NAMES_MAX: usize = 48;

#[derive(Serialize)]
pub struct Drawing {
    id: String,
    title: String,
    about: String,
    width: &'static str,
    /// Height and left margin in CSS pixels.
    height: u32,
    left: usize,
    x_title: String,
    y_title: String,
    /// Whether a window can be chosen on it.
    time: bool,
    legend: Vec<Entry>,
    /// The shapes, safe by construction: digits and class names.
    shapes: Safe,
    labels: Vec<Label>,
    /// Names of a horizontal axis, each of which takes an equal part of it.
    names: Vec<String>,
    /// Index in the data of the script.
    index: usize,
    #[serde(skip)]
    pub data: Json,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    color: u8,
    form: &'static str,
}

#[derive(Serialize)]
struct Label {
    /// Percentage of the drawing's width.
    x: String,
    /// CSS pixels from the drawing's upper edge.
    y: String,
    class: &'static str,
    text: String,
}

/// Properties shared by all charts over time of a report.
#[derive(Clone, Copy)]
pub struct Time {
    /// From the first to the last instant of any of them; `None` if there is none.
    pub span: Option<(f64, f64)>,
    /// Start of the recording in local time, in nanoseconds since 1970.
    pub began_ns: Option<f64>,
}

/// Returns the span of the charts over time.
pub fn span<'a>(charts: impl Iterator<Item = &'a Chart>, edges_ns: &[u64]) -> Option<(f64, f64)> {
    let mut span = (f64::INFINITY, f64::NEG_INFINITY);
    let timed = charts.filter(|chart| chart.x.scale == Scale::Time);
    let ends = timed.flat_map(|chart| [layers::across(chart).0, layers::across(chart).1]);
    for at in ends.chain(edges_ns.iter().map(|edge| *edge as f64)).filter(|at| at.is_finite()) {
        span = (span.0.min(at), span.1.max(at));
    }
    (span.0 <= span.1).then_some(span)
}

pub fn draw(chart: &Chart, index: usize, shared: Time) -> Drawing {
    let chart = &*thin::thinned(chart);
    let chart = &distinct(layers::within(chart));
    let (labels_across, width) = match chart.width {
        Width::Whole => (12, "whole"),
        Width::Half => (6, "half"),
        Width::Third => (5, "third"),
    };
    let time = chart.x.scale == Scale::Time;
    let ends = shared.span.filter(|_| time).unwrap_or_else(|| layers::across(chart));
    let inner = u32::from(chart.height).saturating_sub(BELOW).max(40);
    let x = Ruler::since(shared.began_ns, &chart.x, ends, labels_across);
    let x = x.at_points(&chart.x, &layers::places(chart), labels_across * 3 / 2);
    let named = match &chart.x.scale {
        Scale::Names(names) if names.len() <= NAMES_MAX => names.clone(),
        _ => Vec::new(),
    };
    let (low, high) = layers::up(chart);
    let is_named = matches!(chart.y.scale, Scale::Names(_));
    let labels_up = match (inner / 44).max(2) {
        _ if is_named => inner / 14,
        // Two calls and a half do not exist.
        most if layers::are_whole(chart) => most.min(high.min(1e6) as u32),
        most => most,
    };
    let y = Ruler::up(&chart.y, low, high, labels_up as usize);
    let widest = y.ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
    Drawing {
        id: chart.name.to_string(),
        title: chart.title.to_string(),
        about: chart.about.clone(),
        width,
        height: inner,
        // Charts over time begin at the same place, so that their instants are aligned.
        left: (widest.min(22) * DIGIT + 12).max(if time { 64 } else { 32 }),
        x_title: chart.x.title.to_string(),
        y_title: match &*chart.y.title {
            title if title.eq_ignore_ascii_case(&chart.title) => String::new(),
            title => title.to_owned(),
        },
        time,
        legend: legend(chart),
        shapes: Safe::from_safe_string(shapes(chart, &x, &y, inner)),
        labels: labels(chart, &x, &y, inner, named.is_empty()),
        names: named,
        index,
        data: data(chart, &x, &y),
    }
}

/// Widens the last charts of a row that would not be full.
pub fn fill_rows(charts: &mut [Drawing]) {
    for row in charts.chunk_by_mut(|a, b| a.width == b.width) {
        let (ends, width) = match (row[0].width, row.len()) {
            ("half", count) if count % 2 == 1 => (1, "whole"),
            ("third", count) if count % 3 == 1 => (1, "whole"),
            ("third", count) if count % 3 == 2 => (2, "half"),
            _ => continue,
        };
        row.iter_mut().rev().take(ends).for_each(|chart| chart.width = width);
    }
}

fn shapes(chart: &Chart, x: &Ruler, y: &Ruler, height: u32) -> String {
    let (width, units) = (UNITS, height * PER_PIXEL);
    let mut shapes = Shapes::new(x, y, (width, units));
    background(chart, x, y, &mut shapes);
    // A level would hide a line that reaches it, and shapes that are filled would hide the level.
    let is_below = chart.layers.iter().all(|layer| !layer.form.is_filled());
    if is_below {
        levels(chart, x, y, &mut shapes);
    }
    Layers { chart, x, y, shapes: &mut shapes }.draw();
    if !is_below {
        levels(chart, x, y, &mut shapes);
    }
    format!(
        "<svg class=\"shapes\" viewBox=\"0 0 {width} {units}\" preserveAspectRatio=\"none\" \
         width=\"100%\" height=\"{height}\">{}</svg>",
        shapes.finish()
    )
}

fn levels(chart: &Chart, x: &Ruler, y: &Ruler, shapes: &mut Shapes<'_>) {
    for level in chart.levels.iter().filter(|level| level.y <= y.high) {
        shapes.line([(x.low, level.y), (x.high, level.y)], Look(INK, Ink::Dashed, 1.0));
    }
}

fn background(chart: &Chart, x: &Ruler, y: &Ruler, shapes: &mut Shapes<'_>) {
    for (index, band) in chart.bands.iter().enumerate() {
        let opacity = if index.is_multiple_of(2) { 0.55 } else { 0.25 };
        let corners = [(band.from, y.low), (band.to, y.high)];
        shapes.rectangle(corners, Look(GRID, Ink::Fill, opacity));
    }
    let hair = Look(GRID, Ink::Hair, 1.0);
    for tick in &y.ticks {
        shapes.line([(x.low, tick.at), (x.high, tick.at)], hair);
    }
    for tick in x.ticks.iter().filter(|_| !matches!(chart.x.scale, Scale::Names(_))) {
        shapes.line([(tick.at, y.low), (tick.at, y.high)], hair);
    }
}

/// Gives each named layer its own colour, because two layers of one colour could not be told apart,
/// unless one of them is dashed. Layers of one name are parts of one thing.
fn distinct(mut chart: Chart) -> Chart {
    let look =
        |layer: &Layer| (color(layer.color), matches!(layer.form, Form::Line { dashed: true, .. }));
    for index in 1..chart.layers.len() {
        let this = &chart.layers[index];
        let mut before = chart.layers[..index].iter();
        let is_taken = before.any(|layer| look(layer) == look(this) && layer.name != this.name);
        if this.name.is_empty() || !is_taken {
            continue;
        }
        let is_free =
            |free: &Color| chart.layers.iter().all(|layer| color(layer.color) != color(*free));
        let free = (0..8).map(Color::Series).find(is_free);
        chart.layers[index].color = free.unwrap_or(this.color);
    }
    chart
}

fn labels(chart: &Chart, x: &Ruler, y: &Ruler, height: u32, has_across: bool) -> Vec<Label> {
    let down = |value: f64| (1.0 - y.place(value)) * f64::from(height);
    let label = |x: f64, y: f64, class, text: &str| Label {
        x: format!("{}%", number(x * 100.0, 4)),
        y: number(y, 4),
        class,
        text: text.to_owned(),
    };
    let mut labels: Vec<Label> =
        y.ticks.iter().map(|t| label(0.0, down(t.at) + 4.0, "y", &t.label)).collect();
    let wide = match chart.width {
        Width::Whole => 900.0,
        Width::Half => 440.0,
        Width::Third => 280.0,
    };
    let across: &[Tick] = if has_across { &x.ticks } else { &[] };
    let [all, few] = [wide, NARROW].map(|width| apart(across, x, width));
    for (tick, is_few) in across.iter().zip(few).zip(all).filter_map(|(it, all)| all.then_some(it))
    {
        let place = x.place(tick.at);
        let class = match (place > END, is_few) {
            (true, _) => "x end",
            (false, false) => "x odd",
            _ => "x",
        };
        labels.push(label(place, f64::from(height) + 16.0, class, &tick.label));
    }
    // A name that a level would strike through stands below it.
    let is_crossed = |place: &f64| {
        chart.levels.iter().any(|level| (place - 12.0..place + 5.0).contains(&down(level.y)))
    };
    let top = [12.0, 26.0, 40.0].into_iter().find(|place| !is_crossed(place)).unwrap_or(12.0);
    for band in &chart.bands {
        let (from, to) = (x.place(band.from).max(0.0), x.place(band.to).min(1.0));
        // A name wider than its band would run into the next one's.
        if to - from > 0.012 * band.name.chars().count() as f64 {
            labels.push(label(from.midpoint(to), top, "band", &band.name));
        }
    }
    for level in &chart.levels {
        labels.push(if level.y <= y.high {
            // Above its line, or below it if that would be outside.
            let above = down(level.y) - 4.0;
            label(1.0, if above < 9.0 { above + 18.0 } else { above }, "level", &level.name)
        } else {
            label(1.0, 12.0, "level", &format!("↑ {}", level.name))
        });
    }
    labels
}

/// Returns which labels stand apart on an axis of this many CSS pixels: all but those that would
/// run into the one before, or into the last.
fn apart(ticks: &[Tick], x: &Ruler, width: f64) -> Vec<bool> {
    let span = |tick: &Tick| {
        let (at, long) = (x.place(tick.at) * width, (tick.label.chars().count() * DIGIT) as f64);
        if x.place(tick.at) > END { (at - long, at) } else { (at - long / 2.0, at + long / 2.0) }
    };
    let last = ticks.last().map_or(f64::INFINITY, |tick| span(tick).0);
    let mut free = f64::NEG_INFINITY;
    let mut apart = Vec::new();
    for (index, tick) in ticks.iter().enumerate() {
        let (left, right) = span(tick);
        let is_last = index + 1 == ticks.len();
        let fits = left >= free && (is_last || right + GAP <= last);
        if fits {
            free = right + GAP;
        }
        apart.push(fits || is_last);
    }
    apart
}

/// Returns the layers by name. The title of a chart may name its only layer: `Reads a second`.
fn legend(chart: &Chart) -> Vec<Entry> {
    let form = |form: &Form| match form {
        Form::Line { dashed: true, .. } => "dashed",
        Form::Line { .. } => "line",
        Form::Dots(_) => "dots",
        Form::Area(_) | Form::Bars { .. } => "fill",
        Form::Heat(_) => "heat",
    };
    let layers = chart.layers.iter().filter(|layer| !layer.name.is_empty());
    let entries = layers.map(|layer| Entry {
        name: layer.name.clone(),
        color: color(layer.color),
        form: form(&layer.form),
    });
    let mut entries: Vec<Entry> = entries.collect();
    let title = chart.title.to_lowercase();
    if let [Entry { name, .. }] = &entries[..]
        && (title.starts_with(&name.to_lowercase()) || title.ends_with(&name.to_lowercase()))
    {
        entries.clear();
    }
    entries
}

/// Returns the data for the pointer: spans of the axes, then each layer's values.
fn data(chart: &Chart, x: &Ruler, y: &Ruler) -> Json {
    let scale = |scale: &Scale| match scale {
        Scale::Linear => json!("linear"),
        Scale::Log => json!("log"),
        Scale::Time => json!("time"),
        Scale::Names(names) => json!(names),
    };
    let axis = |axis: &crate::chart::Axis, ruler: &Ruler| {
        json!([scale(&axis.scale), letter(axis.measure), ruler.low, ruler.high])
    };
    let mut last: Option<Json> = None;
    let layers: Vec<Json> = chart
        .layers
        .iter()
        .map(|layer| {
            let points = layer.form.points();
            let xs = numbers(points.iter().map(|point| Some(point.x)), 6);
            // Most layers of a chart share their places.
            let shared = last.as_ref() == Some(&xs);
            let place = if shared { Json::Null } else { xs.clone() };
            last = Some(xs);
            let ys = numbers(points.iter().map(|point| point.y), 4);
            let condemned = points.iter().enumerate().filter(|(_, p)| p.condemned).map(|(i, _)| i);
            let condemned: Vec<usize> = condemned.collect();
            let mut data = json!({ "n": layer.name, "k": color(layer.color), "x": place, "y": ys });
            if !condemned.is_empty() {
                data["c"] = json!(condemned);
            }
            if points.iter().any(|point| point.interval.is_some()) {
                let ends = |end: fn((f64, f64)) -> f64| {
                    numbers(points.iter().map(|point| point.interval.map(end)), 4)
                };
                data["i"] = json!([ends(|i| i.0), ends(|i| i.1)]);
            }
            if let Form::Heat(cells) = &layer.form {
                let cell = |c: &crate::chart::HeatCell| {
                    let places = [c.x.0, c.x.1, c.y.0, c.y.1].map(Some);
                    json!([numbers(places, 6), c.text])
                };
                data["q"] = cells.iter().map(cell).collect();
            }
            data
        })
        .collect();
    json!({ "id": chart.name, "x": axis(&chart.x, x), "y": axis(&chart.y, y), "l": layers })
}

/// Classes of colours without a meaning of their own; heat starts at [`HEAT`].
const GRID: u8 = 22;
const INK: u8 = 23;
const HEAT: u8 = 30;
/// Number of colours in a heat map.
const HEATS: u8 = 12;

/// Returns the number of a colour's class in the style sheet.
pub(super) const fn color(color: Color) -> u8 {
    match color {
        Color::Series(n) => n % 8,
        Color::Grey => 8,
        Color::Bad => 9,
        Color::Cpu => 10,
        Color::SystemIo => 11,
        Color::UserIo => 12,
        Color::Commit => 13,
        Color::Concurrency => 14,
        Color::Configuration => 15,
        Color::Administrative => 16,
        Color::Application => 17,
        Color::Network => 18,
        Color::Cluster => 19,
        Color::RunQueue => 20,
        Color::OtherWait => 21,
    }
}
