//! What the verbs of `flash` say: a [`Report`] each.

mod charts;
mod documents;
mod explain;
mod models;
#[cfg(test)]
mod tests;
mod words;

use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Heading, Merge, Table, Text, Value, column, count, share, text, time,
};
use blockstone_base::table::{Measure, Row, ratio};
use blockstone_base::units::{thousands, three_digits};
use blockstone_flash::simulate::{Outcome, Percentiles};
use blockstone_flash::trace::Trace;
use blockstone_record::manifest::End;
use blockstone_report::{Card, Detail, Headline, Report, Section, Tone, percent};
use serde_json::{Map, Value as Json};

pub use explain::explain;
pub use models::{cliff, fit, life, sweep};

const DOCS: &str = "computed by a model; docs/flash.md lists its limits";

/// A report with nothing but its document.
fn base_report(verb: &'static str, document: Json) -> Report {
    let document = match document {
        Json::Object(members) => members,
        _ => Map::new(),
    };
    Report {
        verb: verb.into(),
        version: 1,
        notes: vec![DOCS.to_owned()],
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        document,
        ..Report::default()
    }
}

/// A figure without an interval: a model gives one number.
fn card(name: impl Into<Text>, title: &'static str, value: f64, unit: &'static str) -> Card {
    let estimate = Estimate { value, low: value, high: value, samples: 1, duration_ns: 0 };
    Card {
        name: name.into(),
        title: title.into(),
        group: "".into(),
        prefix: "".into(),
        estimate,
        unit: unit.into(),
        words: "".into(),
        source: String::new(),
        condemned_by: Vec::new(),
    }
}

fn with_source(card: Card, source: impl Into<String>) -> Card {
    Card { source: source.into(), ..card }
}

/// A simulation, or two of the same load side by side, by name; the name of a single one is empty.
pub fn simulation(
    outcomes: &[(&'static str, &Outcome)],
    trace: Option<&Trace>,
    signal: Option<&str>,
) -> Report {
    let Some(&(_, first)) = outcomes.first() else { return Report::default() };
    let mut document = documents::simulation(first, trace);
    if let Some((_, active)) = outcomes.get(1) {
        document["active"] = documents::active(active, trace);
    }
    let mut sections = vec![
        Section::new("figures", "Programs and erases").with([programs(outcomes)]),
        Section::new("latency", "Latency in the last quarter").with([latencies(outcomes)]),
        charts::over_time(outcomes).with([words::extent(first)]),
        charts::distributions(outcomes),
        charts::blocks(outcomes),
        Section::new("numbers", "All figures")
            .detail(Detail::Page)
            .with([figures(outcomes), points(outcomes)]),
    ];
    sections.extend(trace.map(trace_section));
    sections.retain(|section| !section.blocks.is_empty());
    let end = match signal {
        Some(signal) => End::Interrupted { signal: signal.to_owned() },
        None => End::Complete,
    };
    Report {
        headline: headline(first, trace),
        identity: vec![words::device(first), words::collection(first), words::simulated(first)],
        cards: outcomes.iter().flat_map(|&(name, outcome)| cards(name, outcome)).collect(),
        sections,
        end,
        ..base_report("flash-sim", document)
    }
}

fn headline(outcome: &Outcome, trace: Option<&Trace>) -> Headline {
    let (text, tone) = match &outcome.ended_by {
        Some(full) => {
            let full = full.to_string();
            (full.lines().next().unwrap_or_default().to_owned(), Tone::Bad)
        }
        None if !outcome.steady.is_settled && outcome.plan.phases.len() == 1 && trace.is_none() => {
            let text = "not in SNIA's steady state: use a larger --drive-fills";
            (text.to_owned(), Tone::Warning)
        }
        None => (String::new(), Tone::Plain),
    };
    let rate = card("iops_steady", "After the cliff", outcome.steady.iops, "IOPS");
    let mut figures = vec![Card { words: "IOPS after the cliff".into(), ..rate }];
    figures.extend(outcome.steady.wa.map(|wa| {
        let card = card("wa", "Write amplification", wa, "×");
        Card { words: "write amplification".into(), ..card }
    }));
    Headline { subject: words::load(outcome), figures, text, tone }
}

/// The figures of a device; those of several stand in a line for each, which its name begins.
fn cards(device: &'static str, outcome: &Outcome) -> Vec<Card> {
    let (plan, steady) = (&outcome.plan, &outcome.steady);
    let key = |name: &'static str| -> Text {
        if device.is_empty() { name.into() } else { format!("{name}_{device}").into() }
    };
    let error = outcome.wa_error().map(|error| format!(", {:+.2} %", error * 100.0));
    let formula = outcome
        .wa_analytic
        .map(|wa| format!("formula {wa:.3}{}", error.unwrap_or_default()))
        .unwrap_or_default();
    let by_formula = |rate: f64| format!("formula {} IOPS", three_digits(rate));
    let by_formula = outcome.iops_analytic.map(by_formula);
    let spare = format!(
        "spare factor {}, effective {}",
        percent(plan.device.spare_factor()),
        percent(outcome.effective_spare())
    );
    let all = [
        outcome.iops_fresh.map(|rate| {
            let card = card(key("iops_fresh"), "Before the cliff", rate, "IOPS");
            ("before", with_source(card, "before garbage collection starts"))
        }),
        outcome.cliff_drive_fills.map(|fills| {
            let card = card(key("cliff_drive_fills"), "The cliff", fills, "drive fills");
            let by_arithmetic = outcome.cliff_drive_fills_analytic;
            ("cliff", with_source(card, format!("{fills:.3}, calculated {by_arithmetic:.3}")))
        }),
        Some({
            let card = card(key("iops_steady"), "After the cliff", steady.iops, "IOPS");
            ("behind", with_source(card, by_formula.unwrap_or_default()))
        }),
        steady.wa.map(|wa| {
            let card = card(key("wa"), "Write amplification", wa, "×");
            ("WA", with_source(card, formula))
        }),
        Some({
            let value = plan.device.over_provisioning() * 100.0;
            let card = card(key("over_provisioning"), "Over-provisioning", value, "%");
            ("OP", with_source(card, spare))
        }),
    ];
    let named = |(prefix, card): (&'static str, Card)| match device {
        "" => card,
        device => Card { group: device.into(), prefix: prefix.into(), ..card },
    };
    all.into_iter().flatten().map(named).collect()
}

const DEVICE: Heading =
    text("device", "device", "Empty for the only one; else with or without background collection.");

const PROGRAMS: &[Heading] = &[
    DEVICE,
    share("host_share", "programmed by host", "Pages programmed for the host ÷ all, at the end."),
    share("collected_share", "collection", "Likewise those that garbage collection moved."),
    share("levelled_share", "wear levelling", "Likewise those that wear levelling moved."),
    share("folded_share", "folding", "Likewise those folded out of blocks of fast pages."),
    count("erases_mean", "erases per block", "Mean erases of a block over the whole run."),
    count("erases_least", "least", "Of the block with the fewest."),
    count("erases_most", "most", "Of the block with the most."),
];

/// Why pages were programmed, and how evenly blocks wear.
fn programs(outcomes: &[(&'static str, &Outcome)]) -> Table {
    let columns = if outcomes.len() > 1 { PROGRAMS } else { &PROGRAMS[1..] };
    let mut table = Table::new("programs", "", columns);
    for &(name, outcome) in outcomes {
        let totals = outcome.steady.totals;
        let part = |pages: u64| Value::Number(pages as f64 / totals.programs().max(1) as f64);
        let (blocks, sum) =
            outcome.erases.iter().fold((0, 0), |(blocks, sum), &(erases, count)| {
                (blocks + count, sum + u64::from(erases) * count)
            });
        let end = |end: Option<&(u32, u64)>| Value::from(end.map(|&(erases, _)| f64::from(erases)));
        let mut row = vec![name.into()];
        row.extend(
            [totals.host_pages, totals.collected_pages, totals.levelled_pages, totals.folded_pages]
                .map(part),
        );
        row.push((sum as f64 / blocks.max(1) as f64).into());
        row.extend([end(outcome.erases.first()), end(outcome.erases.last())]);
        row.drain(..row.len() - columns.len());
        table.push(row);
    }
    if outcomes.len() > 1 { table } else { table.record() }
}

const LATENCIES: &[Heading] = &[
    DEVICE,
    text("direction", "requests", "What the host asked for."),
    count("requests", "count", "Requests in the last quarter."),
    time("latency_ns_mean", "mean", "From arrival to completion."),
    time("latency_ns_p50", "p50", "Half of the requests are faster."),
    time("latency_ns_p99", "p99", "99 of 100 are faster."),
    time("latency_ns_p999", "p99.9", "999 of 1,000 are faster."),
    time("latency_ns_p9999", "p99.99", "9,999 of 10,000 are faster."),
    time("latency_ns_max", "max", "The longest."),
];

fn latencies(outcomes: &[(&'static str, &Outcome)]) -> Table {
    let columns = if outcomes.len() > 1 { LATENCIES } else { &LATENCIES[1..] };
    let mut table = Table::new("latencies", "Latency in the last quarter", columns);
    for &(name, outcome) in outcomes {
        for (side, histogram) in
            [("read", &outcome.steady.reads), ("write", &outcome.steady.writes)]
        {
            let Some(latency) = Percentiles::of(histogram) else { continue };
            let mut row: Vec<Value> = vec![name.into(), side.into(), latency.count.into()];
            row.push(latency.latency_ns_mean.into());
            row.extend(percentiles(&latency).map(Value::from));
            row.drain(..row.len() - columns.len());
            table.push(row);
        }
    }
    table
}

fn percentiles(latency: &Percentiles) -> [u64; 5] {
    [
        latency.latency_ns_p50,
        latency.latency_ns_p99,
        latency.latency_ns_p999,
        latency.latency_ns_p9999,
        latency.latency_ns_max,
    ]
}

const FIGURES: &[Heading] = &[
    DEVICE,
    share("over_provisioning", "over-provisioning", "Raw ÷ visible − 1."),
    share("spare_factor", "spare factor", "The part of the raw capacity that is spare."),
    share("effective_spare", "effective spare", "Spare ÷ usable capacity, without reserves."),
    count("iops_fresh", "fresh IOPS", "Requests per second before anything was moved."),
    count("iops_steady", "steady IOPS", "Requests per second in the last quarter."),
    count("iops_steady_analytic", "formula", "The same by formula."),
    ratio("wa", "WA", "Programs ÷ host pages in the last quarter."),
    ratio("wa_analytic", "formula", "The same by formula."),
    count("wa_error_percent", "error, %", "Simulated − formula, of the formula."),
    count("cliff_drive_fills", "cliff", "Drive fills until a write first waited for collection."),
    count("cliff_drive_fills_analytic", "arithmetic", "The same: spare ÷ visible."),
    text("engine", "engine", "How pages were tracked."),
    count("blocks", "blocks", "Blocks simulated."),
    column("block_bytes", "of", Measure::Bytes, Merge::Last, "Size of a block."),
    time("elapsed_ns", "time", "Simulated time."),
];

/// Everything that a simulation sums up to.
fn figures(outcomes: &[(&'static str, &Outcome)]) -> Table {
    let columns = if outcomes.len() > 1 { FIGURES } else { &FIGURES[1..] };
    let mut table = Table::new("figures", "Figures", columns).record();
    for &(name, outcome) in outcomes {
        let device = &outcome.plan.device;
        let pages = u64::from(outcome.config.pages_per_block);
        let mut row: Vec<Value> = vec![
            name.into(),
            device.over_provisioning().into(),
            device.spare_factor().into(),
            outcome.effective_spare().into(),
            outcome.iops_fresh.into(),
            outcome.steady.iops.into(),
            outcome.iops_analytic.into(),
            outcome.steady.wa.into(),
            outcome.wa_analytic.into(),
            outcome.wa_error().map(|error| error * 100.0).into(),
            outcome.cliff_drive_fills.into(),
            outcome.cliff_drive_fills_analytic.into(),
            outcome.engine.into(),
            (outcome.config.blocks() as f64).into(),
            (pages * u64::from(device.page_bytes)).into(),
            outcome.elapsed_ns.into(),
        ];
        row.drain(..row.len() - columns.len());
        table.push(row);
    }
    table
}

const POINTS: &[Heading] = &[
    DEVICE,
    count("drive_fills", "drive fills", "Written by the host until here, in visible capacities."),
    time("t_ns", "time", "Simulated time until here."),
    count("iops", "IOPS", "Requests per second since the row before."),
    count("write_iops", "write IOPS", "Write requests per second."),
    ratio("wa", "WA", "Programs ÷ host pages."),
    time("read_latency_ns_p99", "read p99", "99 of 100 reads are faster."),
    time("write_latency_ns_p99", "write p99", "99 of 100 writes are faster."),
    count("free_blocks", "free blocks", "Fewest erased blocks that a die has."),
];

/// The run in pieces.
fn points(outcomes: &[(&'static str, &Outcome)]) -> Table {
    let columns = if outcomes.len() > 1 { POINTS } else { &POINTS[1..] };
    let mut table = Table::new("over-time", "The run over time", columns);
    for &(name, outcome) in outcomes {
        for point in &outcome.points {
            let p99 = |latency: Option<Percentiles>| match latency {
                Some(latency) => Value::from(latency.latency_ns_p99),
                None => Value::Missing(blockstone_base::table::Missing::Nothing),
            };
            let mut row: Vec<Value> = vec![
                name.into(),
                point.drive_fills.into(),
                point.t_ns.into(),
                point.iops.into(),
                point.write_iops.into(),
                point.wa.into(),
                p99(point.read),
                p99(point.write),
                (point.free_blocks as u64).into(),
            ];
            row.drain(..row.len() - columns.len());
            table.push(Row::from(row));
        }
    }
    table
}

const BAD_LINES: &[Heading] = &[
    count("line", "line", "Of the file, from 1."),
    text("why", "reason", "What is wrong with it."),
];

/// The trace that was replayed; lines of it that could not be read.
fn trace_section(trace: &Trace) -> Section {
    let requests = thousands(trace.requests.len() as i64);
    let lines = thousands(trace.lines as i64);
    let mut text = format!("{} trace: {requests} requests in {lines} lines", trace.format);
    if trace.bad_lines > 0 {
        text.extend(["; ", &thousands(trace.bad_lines as i64), " could not be read"]);
    }
    let mut bad = Table::new("bad-lines", "", BAD_LINES).on_screen(5);
    for line in &trace.bad {
        bad.push([Value::from(line.line), line.why.as_str().into()]);
    }
    Section::new("trace", "").with([text]).with([bad])
}
