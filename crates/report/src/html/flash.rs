//! The page of a simulated flash device: the cliff, latency as a heat map, the blocks in motion.

use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_flash::simulate::{Outcome, Percentiles, Point, heat_from_ns};
use plotly::common::{ColorBar, ColorScale, DashType, HoverInfo, Line, Mode};
use plotly::layout::{Axis, AxisType, HoverMode, Layout};
use plotly::{Bar, HeatMap, Scatter, Trace};
use serde::Serialize;

use super::charts::{self, BLUE, Chart, GREEN, GREY, ORANGE, PURPLE, RED};
use super::fill;
use super::table::Table;
use crate::format::{optional, percent};
use crate::{ReportError, flash};

const SCRIPT: &str = include_str!("../../templates/flash.js");

#[derive(Serialize)]
struct Page {
    title: String,
    identity: Vec<String>,
    cards: Vec<Card>,
    ended_by: Option<String>,
    charts: Vec<Chart>,
    maps: Vec<Map>,
    tables: Vec<Table>,
    script: minijinja::Value,
    tool_version: &'static str,
}

#[derive(Serialize)]
struct Card {
    title: &'static str,
    value: String,
    unit: &'static str,
    note: String,
}

/// The block map over time; a digit a block and state.
#[derive(Serialize)]
struct Map {
    title: String,
    /// Safe inside a script element: numbers and digits only.
    data: minijinja::Value,
}

/// Renders one simulation, or several of the same load beside each other, as one page of HTML.
///
/// # Errors
/// When the template cannot be filled in, which its tests exclude.
pub fn page(outcomes: &[(&str, &Outcome)]) -> Result<String, ReportError> {
    let Some(&(_, first)) = outcomes.first() else { return fill("flash.html", &()) };
    let mut all_charts = vec![cliff(outcomes)];
    if outcomes.len() > 1 {
        all_charts.push(tails(outcomes));
    }
    all_charts.push(amplification(outcomes));
    all_charts.extend(outcomes.iter().map(|&(name, outcome)| percentiles(name, outcome)));
    all_charts.push(erases(outcomes));
    all_charts.extend(outcomes.iter().map(|&(name, outcome)| heat(name, outcome)));
    charts::share_rows(&mut all_charts);
    let page = Page {
        title: flash::load(first),
        identity: vec![flash::device(first), flash::collection(first)],
        cards: cards(first),
        ended_by: first.ended_by.map(|full| full.to_string()),
        charts: all_charts,
        maps: outcomes.iter().map(|&(name, outcome)| map(name, outcome)).collect(),
        tables: vec![figures(outcomes), latencies(outcomes)],
        script: minijinja::Value::from_safe_string(SCRIPT.to_owned()),
        tool_version: env!("CARGO_PKG_VERSION"),
    };
    fill("flash.html", &page)
}

fn cards(outcome: &Outcome) -> Vec<Card> {
    let steady = &outcome.steady;
    let error = outcome.wa_error().map(|error| format!(" ({:+.2} %)", error * 100.0));
    let formula = outcome
        .wa_analytic
        .map(|wa| format!("formula {wa:.3}{}", error.unwrap_or_default()))
        .unwrap_or_default();
    let card = |title, value, unit, note| Card { title, value, unit, note };
    let rate = |value: Option<f64>| optional(value, three_digits);
    let by_formula = outcome.iops_analytic.map(|rate| format!("formula {}", three_digits(rate)));
    let over_provisioning = percent(outcome.plan.device.over_provisioning());
    vec![
        card(
            "Before the cliff",
            rate(outcome.iops_fresh),
            "IOPS",
            "nothing is moved yet".to_owned(),
        ),
        card(
            "The cliff",
            optional(outcome.cliff_drive_fills, |fills| format!("{fills:.3}")),
            "drive fills",
            format!("arithmetic {:.3}", outcome.cliff_drive_fills_analytic),
        ),
        card("Behind it", rate(Some(steady.iops)), "IOPS", by_formula.unwrap_or_default()),
        card("Write amplification", optional(steady.wa, |wa| format!("{wa:.3}")), "", formula),
        card(
            "Effective spare",
            percent(outcome.effective_spare()),
            "",
            format!("over-provisioning {over_provisioning}"),
        ),
    ]
}

type Of = fn(&Point) -> Option<Percentiles>;
type Pick = fn(&Percentiles) -> u64;

const COLORS: [&str; 4] = [BLUE, ORANGE, GREEN, PURPLE];

fn fills_axis() -> Axis {
    Axis::new().title("drive fills written")
}

fn named(name: &str, title: &str) -> String {
    if name.is_empty() { title.to_owned() } else { format!("{title}: {name}") }
}

fn line(name: &str, color: &'static str, xs: Vec<f64>, ys: Vec<f64>) -> Box<Scatter<f64, f64>> {
    Scatter::new(xs, ys).name(name).mode(Mode::Lines).line(Line::new().color(color).width(1.6))
}

fn curve(
    outcome: &Outcome,
    name: &str,
    color: &'static str,
    value: impl Fn(&Point) -> Option<f64>,
) -> Box<Scatter<f64, f64>> {
    let points = outcome.points.iter().filter_map(|p| Some((p.drive_fills, value(p)?)));
    let (xs, ys) = points.unzip();
    line(name, color, xs, ys)
}

/// A level over the whole width.
fn level(outcome: &Outcome, name: &str, y: f64) -> Box<Scatter<f64, f64>> {
    let end = outcome.points.last().map_or(1.0, |point| point.drive_fills);
    let style = Line::new().color(GREY).width(1.2).dash(DashType::Dot);
    Scatter::new(vec![0.0, end], vec![y, y]).name(name).mode(Mode::Lines).line(style)
}

fn cliff(outcomes: &[(&str, &Outcome)]) -> Chart {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (&(name, outcome), color) in outcomes.iter().zip(COLORS) {
        let label = if name.is_empty() { "requests a second" } else { name };
        traces.push(curve(outcome, label, color, |point| Some(point.iops)));
    }
    if let Some(&(_, outcome)) = outcomes.first() {
        if let Some(rate) = outcome.iops_analytic {
            traces.push(level(outcome, "steady, by formula", rate));
        }
        let most = outcome.points.iter().map(|point| point.iops).fold(0.0, f64::max);
        let at = outcome.cliff_drive_fills_analytic;
        let style = Line::new().color(RED).width(1.2).dash(DashType::Dash);
        let cliff =
            Scatter::new(vec![at, at], vec![0.0, most]).name("spare used up, by arithmetic");
        traces.push(cliff.mode(Mode::Lines).line(style));
    }
    let caption = "A device is fast until its spare is written; from then on every write pays for \
                   what must be moved before it."
        .to_owned();
    let layout = Layout::new()
        .hover_mode(HoverMode::XUnified)
        .x_axis(fills_axis())
        .y_axis(charts::rate_axis("requests a second"));
    Chart::new("The write cliff", caption, traces, layout).wide(380)
}

/// The tail of writes beside each other.
fn tails(outcomes: &[(&str, &Outcome)]) -> Chart {
    let p999 = |point: &Point| point.write.map(|latency| latency.latency_ns_p999 as f64 / 1e9);
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let (mut least, mut most) = (f64::INFINITY, 1.0_f64);
    for (&(name, outcome), color) in outcomes.iter().zip(COLORS) {
        for ns in outcome.points.iter().filter_map(p999).map(|seconds| seconds * 1e9) {
            (least, most) = (least.min(ns), most.max(ns));
        }
        traces.push(curve(outcome, name, color, p999));
    }
    let least = least.clamp(1.0, 1e12);
    let layout = Layout::new()
        .hover_mode(HoverMode::XUnified)
        .x_axis(fills_axis())
        .y_axis(charts::spanning(least, most.max(2.0 * least)));
    let caption = "The same requests: 999 of 1,000 writes are faster.".to_owned();
    Chart::new("Write latency, p99.9", caption, traces, layout).wide(340)
}

fn amplification(outcomes: &[(&str, &Outcome)]) -> Chart {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (&(name, outcome), color) in outcomes.iter().zip(COLORS) {
        let label = if name.is_empty() { "simulated" } else { name };
        traces.push(curve(outcome, label, color, |point| point.wa));
    }
    if let Some(&(_, outcome)) = outcomes.first()
        && let Some(wa) = outcome.wa_analytic
    {
        traces.push(level(outcome, "by formula", wa));
    }
    let caption = "Pages programmed for each page that the host writes.".to_owned();
    let y = Axis::new().title("write amplification").range_mode(plotly::layout::RangeMode::ToZero);
    let layout = Layout::new().hover_mode(HoverMode::XUnified).x_axis(fills_axis()).y_axis(y);
    Chart::new("Write amplification", caption, traces, layout)
}

fn percentiles(name: &str, outcome: &Outcome) -> Chart {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let sides: [(&str, Of, [&'static str; 3]); 2] = [
        ("write", |point| point.write, [BLUE, ORANGE, RED]),
        ("read", |point| point.read, [GREEN, PURPLE, GREY]),
    ];
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for (side, of, colors) in sides {
        let pick: [(&str, Pick); 3] = [
            ("p50", |latency| latency.latency_ns_p50),
            ("p99", |latency| latency.latency_ns_p99),
            ("p99.9", |latency| latency.latency_ns_p999),
        ];
        for ((quantile, pick), color) in pick.into_iter().zip(colors) {
            let seconds = |point: &Point| of(point).map(|latency| pick(&latency) as f64 / 1e9);
            if !outcome.points.iter().any(|point| of(point).is_some()) {
                continue;
            }
            for value in outcome.points.iter().filter_map(seconds) {
                (least, most) = (least.min(value * 1e9), most.max(value * 1e9));
            }
            traces.push(curve(outcome, &format!("{side} {quantile}"), color, seconds));
        }
    }
    let caption = "Percentiles of every interval, from arrival to completion.".to_owned();
    let least = least.clamp(1.0, 1e12);
    let layout = Layout::new()
        .hover_mode(HoverMode::XUnified)
        .x_axis(fills_axis())
        .y_axis(charts::spanning(least, most.max(2.0 * least)));
    Chart::new(&named(name, "Latency over the run"), caption, traces, layout)
}

fn heat(name: &str, outcome: &Outcome) -> Chart {
    let buckets = || outcome.points.iter().flat_map(|p| p.heat.iter().map(|&(bucket, _)| bucket));
    let (low, high) = (buckets().min().unwrap_or(0), buckets().max().unwrap_or(1));
    let rows: Vec<u16> = (low..=high).collect();
    let columns: Vec<f64> = outcome.points.iter().map(|point| point.drive_fills).collect();
    let share = |bucket: u16, point: &Point| {
        let all: u64 = point.heat.iter().map(|&(_, count)| count).sum();
        let found = point.heat.iter().find(|&&(other, _)| other == bucket);
        // An empty cell stays empty; one of a million requests is still seen.
        found.map(|&(_, count)| (count as f64 / all.max(1) as f64 * 100.0).log10())
    };
    let cells = |&bucket: &u16| outcome.points.iter().map(|p| share(bucket, p)).collect();
    let z: Vec<Vec<Option<f64>>> = rows.iter().map(cells).collect();
    let seconds: Vec<f64> = rows.iter().map(|&bucket| heat_from_ns(bucket) / 1e9).collect();
    let trace = HeatMap::new(columns, seconds, z)
        .color_scale(ColorScale::Vector(charts::heat_scale()))
        .zmin(-4.0)
        .zmax(2.0)
        .hover_info(HoverInfo::Skip)
        .color_bar(
            ColorBar::new()
                .title("of requests")
                .thickness(10)
                .tick_vals(vec![-4.0, -2.0, 0.0, 1.0, 2.0])
                .tick_text(vec!["10⁻⁴ %", "0.01 %", "1 %", "10 %", "100 %"]),
        );
    let (from, to) = (heat_from_ns(low), heat_from_ns(high + 1));
    let layout =
        Layout::new().x_axis(fills_axis()).y_axis(charts::spanning(from, to).type_(AxisType::Log));
    let caption = "Every request, by when it came and how long it took; darker is more of them.";
    let title = named(name, "Latency of every request");
    Chart::new(&title, caption.to_owned(), vec![trace], layout).wide(360)
}

fn erases(outcomes: &[(&str, &Outcome)]) -> Chart {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (&(name, outcome), color) in outcomes.iter().zip(COLORS) {
        let (xs, ys): (Vec<u32>, Vec<u64>) = outcome.erases.iter().copied().unzip();
        let label = if name.is_empty() { "blocks" } else { name };
        let bar = Bar::new(xs, ys).name(label);
        traces.push(bar.marker(plotly::common::Marker::new().color(color)));
    }
    let layout = Layout::new()
        .x_axis(Axis::new().title("erases"))
        .y_axis(Axis::new().title("blocks").tick_format("~s"));
    let caption = "How evenly blocks wear.".to_owned();
    Chart::new("Erases of the blocks", caption, traces, layout)
}

fn map(name: &str, outcome: &Outcome) -> Map {
    // Two digits a block and picture: tenths of it in use and stale.
    let pages = outcome.config.pages_per_block.max(1);
    let digit = |count: u32| char::from(b'0' + (count * 9).div_ceil(pages).min(9) as u8);
    let frames: Vec<String> = outcome
        .frames
        .iter()
        .map(|frame| {
            let states = frame.map.valid.iter().zip(&frame.map.stale);
            let cells: String =
                states.flat_map(|(&used, &stale)| [digit(used), digit(stale)]).collect();
            format!("[{:.4},\"{cells}\"]", frame.drive_fills_millionth as f64 / 1e6)
        })
        .collect();
    Map {
        title: named(name, "The blocks"),
        data: minijinja::Value::from_safe_string(format!("[{}]", frames.join(","))),
    }
}

fn figures(outcomes: &[(&str, &Outcome)]) -> Table {
    let mut table = Table::of_numbers(
        "Figures",
        &[
            "",
            "Fresh IOPS",
            "Steady IOPS",
            "Formula",
            "WA",
            "Formula",
            "Cliff, drive fills",
            "Arithmetic",
            "Host %",
            "Collection %",
            "Levelling %",
            "Folding %",
            "Engine",
            "Blocks",
            "Time",
        ],
    );
    for &(name, outcome) in outcomes {
        let totals = outcome.steady.totals;
        let share =
            |pages: u64| three_digits(pages as f64 / totals.programs().max(1) as f64 * 100.0);
        table.row(
            if name.is_empty() { "simulation" } else { name },
            vec![
                optional(outcome.iops_fresh, three_digits),
                three_digits(outcome.steady.iops),
                optional(outcome.iops_analytic, three_digits),
                optional(outcome.steady.wa, |wa| format!("{wa:.3}")),
                optional(outcome.wa_analytic, |wa| format!("{wa:.3}")),
                optional(outcome.cliff_drive_fills, |fills| format!("{fills:.3}")),
                format!("{:.3}", outcome.cliff_drive_fills_analytic),
                share(totals.host_pages),
                share(totals.collected_pages),
                share(totals.levelled_pages),
                share(totals.folded_pages),
                outcome.engine.to_owned(),
                format!(
                    "{} × {}",
                    thousands(outcome.config.blocks() as i64),
                    Bytes(
                        u64::from(outcome.config.pages_per_block)
                            * u64::from(outcome.plan.device.page_bytes)
                    )
                ),
                format_ns(outcome.elapsed_ns as f64),
            ],
        );
    }
    table
}

fn latencies(outcomes: &[(&str, &Outcome)]) -> Table {
    let columns = ["Steady latency", "Requests", "Mean", "p50", "p99", "p99.9", "p99.99", "Max"];
    let mut table = Table::of_numbers("Latency in the last quarter", &columns);
    for &(name, outcome) in outcomes {
        for (side, histogram) in
            [("read", &outcome.steady.reads), ("write", &outcome.steady.writes)]
        {
            let Some(latency) = Percentiles::of(histogram) else { continue };
            table.row(
                named(name, side),
                vec![
                    thousands(latency.count as i64),
                    format_ns(latency.latency_ns_mean),
                    format_ns(latency.latency_ns_p50 as f64),
                    format_ns(latency.latency_ns_p99 as f64),
                    format_ns(latency.latency_ns_p999 as f64),
                    format_ns(latency.latency_ns_p9999 as f64),
                    format_ns(latency.latency_ns_max as f64),
                ],
            );
        }
    }
    table
}
