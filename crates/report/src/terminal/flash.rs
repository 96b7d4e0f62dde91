//! What `flash` found: one screen a verb.

use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_flash::estimate::{Cliff, Life};
use blockstone_flash::fit::Fit;
use blockstone_flash::simulate::{Outcome, Percentiles, Point};
use blockstone_flash::sweep::Swept;
use blockstone_flash::toy::{Cell, Step};
use blockstone_flash::trace::Trace;

use crate::flash;
use crate::format::{optional, percent};

use super::Style;
use crate::render::terminal::columns::{Columns, sparkline, wrap};

/// Bars of a line of bars.
const BARS: usize = 60;

/// A simulation.
pub fn simulation(outcome: &Outcome, trace: Option<&Trace>, style: &Style) -> String {
    let mut lines = Vec::new();
    let mut say = |text: String, indent| lines.extend(wrap(&text, style.width, 0, indent));
    say(flash::device(outcome), 2);
    say(format!("{}; collection {}", flash::load(outcome), flash::collection(outcome)), 2);
    if outcome.plan.scale > 1 {
        let (scale, blocks) = (outcome.plan.scale, outcome.config.blocks());
        say(
            style.dim(&format!("1/{scale} of it simulated: {blocks} blocks, {}", outcome.engine)),
            2,
        );
    } else {
        let blocks = thousands(outcome.config.blocks() as i64);
        say(style.dim(&format!("all {blocks} blocks simulated, {}", outcome.engine)), 2);
    }
    lines.push(String::new());
    lines.extend(figures(outcome, style));
    lines.push(String::new());
    lines.extend(latencies(outcome, style));
    lines.push(String::new());
    lines.extend(over_time(outcome, style));
    lines.extend(trace.map(|trace| trace_lines(trace, style)).unwrap_or_default());
    if let Some(full) = &outcome.ended_by {
        let full = full.to_string();
        lines.push(style.bad(full.lines().next().unwrap_or_default()));
    } else if !outcome.steady.is_settled && outcome.plan.phases.len() == 1 && trace.is_none() {
        lines.push(style.warning("not settled by SNIA's test: write more with --drive-fills"));
    }
    ended(lines)
}

fn ended(mut lines: Vec<String>) -> String {
    lines.push(String::new());
    lines.join("\n")
}

fn figures(outcome: &Outcome, style: &Style) -> Vec<String> {
    let (device, steady) = (&outcome.plan.device, &outcome.steady);
    let mut columns = Columns::new(2);
    let mut row = |name: &str, value: String, note: String| {
        columns.left(vec![name.to_owned(), style.bold(&value), style.dim(&note)]);
    };
    row(
        "over-provisioning",
        percent(device.over_provisioning()),
        format!(
            "spare factor {}, effective {}",
            percent(device.spare_factor()),
            percent(outcome.effective_spare())
        ),
    );
    row("fresh", iops(outcome.iops_fresh), "before anything was moved".to_owned());
    let cliff = outcome.cliff_drive_fills.map(|fills| format!("{fills:.3} drive fills"));
    let arithmetic = format!("arithmetic says {:.3}", outcome.cliff_drive_fills_analytic);
    row("cliff", optional(cliff, |text| text), arithmetic);
    row(
        "steady",
        iops(Some(steady.iops)),
        outcome
            .iops_analytic
            .map(|rate| format!("formula {}", iops(Some(rate))))
            .unwrap_or_default(),
    );
    let error = outcome.wa_error().map(|error| format!(", {:+.2} %", error * 100.0));
    let formula =
        outcome.wa_analytic.map(|wa| format!("formula {wa:.3}{}", error.unwrap_or_default()));
    let wa = optional(steady.wa, |wa| format!("{wa:.3}"));
    row("write amplification", wa, formula.unwrap_or_default());
    let totals = steady.totals;
    let share = |pages: u64| percent(pages as f64 / totals.programs().max(1) as f64);
    row(
        "of all programs",
        format!("{} host", share(totals.host_pages)),
        format!(
            "{} collection, {} wear levelling, {} folding",
            share(totals.collected_pages),
            share(totals.levelled_pages),
            share(totals.folded_pages)
        ),
    );
    if let (Some(first), Some(last)) = (outcome.erases.first(), outcome.erases.last()) {
        let (blocks, sum) =
            outcome.erases.iter().fold((0, 0), |(blocks, sum), &(erases, count)| {
                (blocks + count, sum + u64::from(erases) * count)
            });
        let mean = sum as f64 / blocks.max(1) as f64;
        row("erases a block", format!("{mean:.1} mean"), format!("{} to {}", first.0, last.0));
    }
    columns.lines()
}

fn iops(value: Option<f64>) -> String {
    optional(value, |value| format!("{} IOPS", three_digits(value)))
}

fn latencies(outcome: &Outcome, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    let heads = ["steady latency", "mean", "p50", "p99", "p99.9", "p99.99", "max"];
    columns.numbers(heads.iter().map(|head| style.dim(head)).collect());
    for (name, histogram) in [("read", &outcome.steady.reads), ("write", &outcome.steady.writes)] {
        if let Some(latency) = Percentiles::of(histogram) {
            let values = [
                latency.latency_ns_mean,
                latency.latency_ns_p50 as f64,
                latency.latency_ns_p99 as f64,
                latency.latency_ns_p999 as f64,
                latency.latency_ns_p9999 as f64,
                latency.latency_ns_max as f64,
            ];
            let cells = values.iter().map(|ns| format_ns(*ns));
            columns.numbers(std::iter::once(name.to_owned()).chain(cells).collect());
        }
    }
    columns.lines()
}

fn over_time(outcome: &Outcome, style: &Style) -> Vec<String> {
    let Some(last) = outcome.points.last() else { return Vec::new() };
    let mut columns = Columns::new(2);
    let mut line = |name: &str, value: &dyn Fn(&Point) -> f64, text: &dyn Fn(f64) -> String| {
        let bars = thinned(&outcome.points, value);
        let greatest = bars.iter().copied().fold(0.0, f64::max);
        if greatest > 0.0 {
            columns.left(vec![name.to_owned(), sparkline(&bars), style.dim(&text(greatest))]);
        }
    };
    line("IOPS", &|point| point.iops, &|most| format!("up to {}", three_digits(most)));
    line("write amplification", &|point| point.wa.unwrap_or(0.0), &|most| {
        format!("up to {most:.2}")
    });
    let p99 = |latency: Option<Percentiles>| latency.map_or(0.0, |l| l.latency_ns_p99 as f64);
    let up_to = |most: f64| format!("up to {}", format_ns(most));
    line("read p99", &|point| p99(point.read), &up_to);
    line("write p99", &|point| p99(point.write), &up_to);
    let ends = format!(
        "from left to right: {} drive fills, {}",
        three_digits(last.drive_fills),
        hours(last.t_ns as f64 / 1e9)
    );
    let mut lines = columns.lines();
    lines.push(style.dim(&format!("  {ends}")));
    lines
}

/// The means of at most [`BARS`] runs of points.
fn thinned(points: &[Point], value: &dyn Fn(&Point) -> f64) -> Vec<f64> {
    let run = points.len().div_ceil(BARS).max(1);
    let mean = |run: &[Point]| run.iter().map(value).sum::<f64>() / run.len() as f64;
    points.chunks(run).map(mean).collect()
}

fn trace_lines(trace: &Trace, style: &Style) -> Vec<String> {
    let mut lines = vec![format!(
        "{} trace: {} requests in {} lines",
        trace.format,
        thousands(trace.requests.len() as i64),
        thousands(trace.lines as i64)
    )];
    if trace.bad_lines > 0 {
        let bad = thousands(trace.bad_lines as i64);
        lines.push(style.warning(&format!("{bad} lines could not be read:")));
        let shown = trace.bad.iter().take(5);
        lines.extend(shown.map(|bad| format!("  line {}: {}", bad.line, bad.why)));
    }
    lines
}

/// A sweep, with the write rate that the device of the command line would sustain.
pub fn sweep(points: &[Swept], iops: &[Option<f64>], style: &Style) -> String {
    let mut columns = Columns::new(0);
    let heads = [
        "OP",
        "policy",
        "pages/block",
        "effective spare",
        "WA",
        "formula",
        "error",
        "steady IOPS",
        "",
    ];
    columns.numbers(heads.iter().map(|head| style.dim(head)).collect());
    let most = points.iter().map(|point| point.wa).fold(1.0, f64::max);
    for (point, iops) in points.iter().zip(iops) {
        let setting = point.setting;
        let bar = "█".repeat((point.wa / most * 24.0).round() as usize);
        columns.numbers(vec![
            percent(setting.over_provisioning),
            setting.policy.to_string(),
            setting.pages_per_block.to_string(),
            percent(point.effective_spare),
            style.bold(&format!("{:.3}", point.wa)),
            optional(point.wa_analytic, |wa| format!("{wa:.3}")),
            optional(point.wa_error, |error| format!("{:+.2} %", error * 100.0)),
            optional(*iops, three_digits),
            style.dim(&format!("{bar:24}")),
        ]);
    }
    ended(columns.lines())
}

/// The cliff.
pub fn cliff(cliff: &Cliff, style: &Style) -> String {
    let mut columns = Columns::new(0);
    let mut row = |name: &str, value: String, note: String| {
        columns.left(vec![name.to_owned(), style.bold(&value), style.dim(&note)]);
    };
    row(
        "over-provisioning",
        percent(cliff.over_provisioning),
        format!(
            "spare factor {}, effective {}",
            percent(cliff.spare_factor),
            percent(cliff.effective_spare)
        ),
    );
    row(
        "cliff after",
        hours(cliff.seconds_to_cliff),
        format!(
            "{} of random overwrites, {:.3} drive fills",
            Bytes(cliff.spare_bytes),
            cliff.cliff_drive_fills
        ),
    );
    row(
        "before it",
        format!("{} IOPS", three_digits(cliff.iops_fresh)),
        "writes of a page".to_owned(),
    );
    row(
        "behind it",
        format!("{} IOPS", three_digits(cliff.iops_steady)),
        format!("write amplification {:.3} by formula", cliff.wa),
    );
    let wanted = format!("{} IOPS", three_digits(cliff.iops_wanted));
    let holds = cliff.iops_steady >= cliff.iops_wanted;
    row(
        "asked for",
        wanted,
        if holds { "holds behind the cliff" } else { "does not hold" }.to_owned(),
    );
    let needed = optional(cliff.over_provisioning_needed, percent);
    let note = cliff.visible_bytes_needed.map_or_else(
        || "no spare suffices: more dies, or fewer writes".to_owned(),
        |bytes| format!("use at most {} of it", Bytes(bytes / (1 << 20) * (1 << 20))),
    );
    row("over-provisioning needed", needed, note);
    ended(columns.lines())
}

/// A duration in the unit that suits it, up to hours and days.
fn hours(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{} s", three_digits(seconds)),
        ..7200.0 => format!("{} min", three_digits(seconds / 60.0)),
        ..172_800.0 => format!("{} h", three_digits(seconds / 3600.0)),
        _ => format!("{} days", three_digits(seconds / 86_400.0)),
    }
}

/// A fit.
pub fn fit(fit: &Fit, style: &Style) -> String {
    let mut columns = Columns::new(0);
    let mut row = |name: &str, value: String, note: &str| {
        columns.left(vec![name.to_owned(), style.bold(&value), style.dim(note)]);
    };
    let mbps = |bytes: f64| format!("{} MB/s", three_digits(bytes / 1e6));
    row("written", format!("{} drive fills", three_digits(fit.drive_fills)), "");
    row("at first", mbps(fit.fresh_bytes_per_s), "");
    row("at the end", mbps(fit.last_bytes_per_s), if fit.fell { "" } else { "it never fell" });
    let fills = |fills: f64| format!("after {} drive fills", three_digits(fills));
    row("cliff", optional(fit.cliff_drive_fills, fills), "");
    row(
        "over-provisioning",
        optional(fit.over_provisioning_of_cliff, percent),
        "from where it fell, if the drive was full before",
    );
    row("write amplification", optional(fit.wa, |wa| format!("{wa:.3}")), "from how far it fell");
    row("effective spare", optional(fit.effective_spare, percent), "from that, by formula");
    let note = "five rounds within 20 % of their mean, their line within 10 %";
    let settled = match fit.settled_from_drive_fills {
        Some(from) => format!("yes, from {} drive fills on", three_digits(from)),
        None => "no".to_owned(),
    };
    row("preconditioned (SNIA)", settled, note);
    if !fit.is_settled {
        row("missing", format!("about {} drive fills", three_digits(fit.drive_fills_missing)), "");
    }
    ended(columns.lines())
}

/// A lifetime.
pub fn life(life: &Life, style: &Style) -> String {
    let mut columns = Columns::new(0);
    let mut row = |name: &str, value: String, note: &str| {
        columns.left(vec![name.to_owned(), style.bold(&value), style.dim(note)]);
    };
    row("lifetime", format!("{} years", three_digits(life.years)), "until the mean block is worn");
    row("the host can write", format!("{} TB", three_digits(life.host_bytes / 1e12)), "");
    row("drive writes per day", three_digits(life.drive_writes_per_day), "for five years");
    row("write amplification", format!("{:.3}", life.wa), "");
    row("erases of a block", format!("{} a day", three_digits(life.erases_per_day)), "");
    ended(columns.lines())
}

/// The toy, step by step.
pub fn explain(stories: &[(&str, &[Step])], style: &Style) -> String {
    let mut lines = Vec::new();
    for (title, steps) in stories {
        lines.extend([style.bold(title), String::new()]);
        for (index, step) in steps.iter().enumerate() {
            let text = format!("{}. {}", index + 1, step.text);
            lines.extend(wrap(&text, style.width.min(90), 0, 3));
            lines.extend(picture(step, style));
            lines.push(String::new());
        }
    }
    lines.push(style.dim("12 a page in use, ×× stale, ·· erased"));
    ended(lines)
}

fn picture(step: &Step, style: &Style) -> Vec<String> {
    let cell = |cell: &Cell| match cell {
        Cell::Free => style.dim("··"),
        Cell::Stale => style.bad("××"),
        Cell::Used(page) => style.good(&format!("{page:2}")),
    };
    let line = |(index, block): (usize, &[Cell; blockstone_flash::toy::PAGES])| {
        let cells: Vec<String> = block.iter().map(cell).collect();
        format!("   block {index} │ {} │", cells.join(" "))
    };
    step.blocks.iter().enumerate().map(line).collect()
}
