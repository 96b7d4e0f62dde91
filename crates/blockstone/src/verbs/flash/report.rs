//! Reports of the verbs of `flash`: each returns a [`Report`].

mod charts;
pub mod documents;
mod explain;
mod models;
mod sweep;
#[cfg(test)]
mod tests;
mod words;

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Merge, Table, Text, column, count, happened, share, text, time,
};
use blockstone_base::table::{Measure, Row, ratio};
use blockstone_base::units::{thousands, three_digits};
use blockstone_flash::simulate::{Outcome, Percentiles, Point};
use blockstone_flash::trace::Trace;
use blockstone_record::manifest::End;
use blockstone_report::render::json;
use blockstone_report::{Card, Headline, Report, Section, Tone, percent};
use serde::Serialize;

pub use explain::explain;
pub use models::{cliff, fit, life};
pub use sweep::sweep;

const DOCS: &str = "computed by a model; docs/flash.md lists its limits";

/// Returns a report that consists only of its document.
fn base_report(verb: &'static str, document: impl Serialize) -> Report {
    Report {
        verb: verb.into(),
        version: 1,
        notes: vec![DOCS.to_owned()],
        document: json::keys(document),
        ..Report::default()
    }
}

/// Returns the report of a simulation, or of two simulations of the same load side by side. Each
/// has a name; that of a single one is empty.
pub fn simulation(
    outcomes: &[(&'static str, &Outcome)],
    trace: Option<&Trace>,
    signal: Option<&str>,
) -> Report {
    let Some(&(_, first)) = outcomes.first() else { return Report::default() };
    let beside = outcomes.get(1).map(|&(_, beside)| beside);
    let mut sections = vec![
        Section::new("figures", "Programs and erases").with([programs(outcomes)]),
        Section::new("latency", "Latency in the last quarter").with([latencies(outcomes)]),
        charts::over_time(outcomes).with([words::extent(first)]),
        charts::distributions(outcomes),
        charts::blocks(outcomes),
        Section::page("numbers", "All figures").with([figures(outcomes), points(outcomes)]),
    ];
    sections.extend(trace.map(trace_section));
    sections.retain(|section| !section.blocks.is_empty());
    Report {
        headline: headline(first, trace),
        identity: vec![words::device(first), words::collection(first), words::simulated(first)],
        cards: outcomes.iter().flat_map(|&(name, outcome)| cards(name, outcome)).collect(),
        sections,
        warnings: words::throttling(first).into_iter().collect(),
        end: End::by(signal),
        ..base_report("flash-sim", documents::sim(first, beside, trace))
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
    let rate = Card::exact("iops_steady", "After the cliff", outcome.steady.iops, "IOPS");
    let mut figures = vec![Card { words: "IOPS after the cliff".into(), ..rate }];
    figures.extend(outcome.steady.wa.map(|wa| {
        let card = Card::exact("wa", "Write amplification", wa, "×");
        Card { words: "write amplification".into(), ..card }
    }));
    Headline { subject: words::load(outcome), figures, text, tone }
}

/// Returns the figures of a device. If there are several devices, the figures of each are a group
/// with its name.
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
            let card = Card::exact(key("iops_fresh"), "Before the cliff", rate, "IOPS");
            ("before", card.source("before garbage collection starts"))
        }),
        outcome.cliff_drive_fills.map(|fills| {
            let card = Card::exact(key("cliff_drive_fills"), "The cliff", fills, "drive fills");
            let by_arithmetic = outcome.cliff_drive_fills_analytic;
            ("cliff", card.source(format!("{fills:.3}, calculated {by_arithmetic:.3}")))
        }),
        Some({
            let card = Card::exact(key("iops_steady"), "After the cliff", steady.iops, "IOPS");
            ("behind", card.source(by_formula.unwrap_or_default()))
        }),
        steady.wa.map(|wa| {
            let card = Card::exact(key("wa"), "Write amplification", wa, "×");
            ("WA", card.source(formula))
        }),
        Some({
            let value = plan.device.over_provisioning() * 100.0;
            let card = Card::exact(key("over_provisioning"), "Over-provisioning", value, "%");
            ("OP", card.source(spare))
        }),
    ];
    let named = |(prefix, card): (&'static str, Card)| match device {
        "" => card,
        device => Card { group: device.into(), prefix: prefix.into(), ..card },
    };
    all.into_iter().flatten().map(named).collect()
}

const DEVICE: Heading =
    text("device", "device", "Empty for the only one; else how it differs from the other.");

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

/// Returns a table with the device in the first column, which is omitted for a single device.
fn of_devices(
    table: (&'static str, &'static str, &'static [Heading]),
    outcomes: &[(&'static str, &Outcome)],
    rows: impl Fn(&Outcome) -> Vec<Row>,
) -> Table {
    let (name, title, columns) = table;
    let named = outcomes.len() > 1;
    let mut table = Table::new(name, title, if named { columns } else { &columns[1..] });
    for (device, outcome) in outcomes {
        for mut row in rows(outcome) {
            if named {
                row.cells.insert(0, (*device).into());
            }
            table.push(row);
        }
    }
    table
}

/// Table of the reasons for which pages were programmed, and how evenly blocks wear.
fn programs(outcomes: &[(&'static str, &Outcome)]) -> Table {
    let table = of_devices(("programs", "", PROGRAMS), outcomes, |outcome| {
        let pages = outcome.steady.totals;
        let part = |count: u64| count as f64 / pages.programs().max(1) as f64;
        let blocks: u64 = outcome.erases.iter().map(|(_, count)| count).sum();
        let sum: u64 = outcome.erases.iter().map(|(n, count)| u64::from(*n) * count).sum();
        let end = |end: Option<&(u32, u64)>| end.map(|(erases, _)| *erases);
        vec![row![
            part(pages.host_pages),
            part(pages.collected_pages),
            part(pages.levelled_pages),
            part(pages.folded_pages),
            sum as f64 / blocks.max(1) as f64,
            end(outcome.erases.first()),
            end(outcome.erases.last())
        ]]
    });
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
    let table = ("latencies", "Latency in the last quarter", LATENCIES);
    of_devices(table, outcomes, |outcome| {
        let sides = [("read", &outcome.steady.reads), ("write", &outcome.steady.writes)];
        let row = |(side, histogram)| {
            let l = Percentiles::of(histogram)?;
            let [p50, p99, p999, p9999] =
                [l.latency_ns_p50, l.latency_ns_p99, l.latency_ns_p999, l.latency_ns_p9999]
                    .map(happened);
            Some(row![side, l.count, l.latency_ns_mean, p50, p99, p999, p9999, l.latency_ns_max])
        };
        sides.into_iter().filter_map(row).collect()
    })
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

/// Table of all figures that summarize a simulation.
fn figures(outcomes: &[(&'static str, &Outcome)]) -> Table {
    let table = of_devices(("figures", "Figures", FIGURES), outcomes, |outcome| {
        let device = &outcome.plan.device;
        let pages = u64::from(outcome.config.pages_per_block);
        vec![row![
            device.over_provisioning(),
            device.spare_factor(),
            outcome.effective_spare(),
            outcome.iops_fresh,
            outcome.steady.iops,
            outcome.iops_analytic,
            outcome.steady.wa,
            outcome.wa_analytic,
            outcome.wa_error().map(|error| error * 100.0),
            outcome.cliff_drive_fills,
            outcome.cliff_drive_fills_analytic,
            outcome.engine,
            outcome.config.blocks() as f64,
            pages * u64::from(device.page_bytes),
            outcome.elapsed_ns
        ]]
    });
    table.record()
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

/// Table of the run over time.
fn points(outcomes: &[(&'static str, &Outcome)]) -> Table {
    of_devices(("over-time", "The run over time", POINTS), outcomes, |outcome| {
        let row = |point: &Point| {
            let p99 =
                |latency: Option<Percentiles>| happened(latency.and_then(|l| l.latency_ns_p99));
            let Point { drive_fills, t_ns, iops, write_iops, wa, read, write, free_blocks, .. } =
                *point;
            let free_blocks = free_blocks as u64;
            row![drive_fills, t_ns, iops, write_iops, wa, p99(read), p99(write), free_blocks]
        };
        outcome.points.iter().map(row).collect()
    })
}

const BAD_LINES: &[Heading] = &[
    count("line", "line", "Of the file, from 1."),
    text("why", "reason", "What is wrong with it."),
];

/// Describes the trace that was replayed, and lists lines that could not be read.
fn trace_section(trace: &Trace) -> Section {
    let requests = thousands(trace.requests.len() as i64);
    let lines = thousands(trace.lines as i64);
    let mut text = format!("{} trace: {requests} requests in {lines} lines", trace.format.name());
    if trace.bad_lines > 0 {
        text.extend(["; ", &thousands(trace.bad_lines as i64), " could not be read"]);
    }
    let bad = trace.bad.iter().map(|line| row![line.line, &line.why]);
    let bad = Table::new("bad-lines", "", BAD_LINES).on_screen(5).with(bad);
    Section::new("trace", "").with([text]).with([bad])
}
