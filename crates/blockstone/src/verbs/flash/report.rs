//! Reports of the verbs of `flash`: each returns a [`Report`].

mod charts;
mod explain;
mod models;
mod rows;
mod sweep;
#[cfg(test)]
mod tests;
mod words;

use blockstone_base::table::{Heading, Rows as _, Table, Text};
use blockstone_base::units::{thousands, three_digits};
use blockstone_flash::simulate::Outcome;
use blockstone_flash::trace::Trace;
use blockstone_record::manifest::End;
use blockstone_report::render::json::schema::{Document, Tables};
use blockstone_report::report::Earlier;
use blockstone_report::{Card, Headline, Report, Section, Tone, percent};

use super::earlier;
use rows::{
    BadLineRow, BlockRow, CliffRow, EraseRow, FigureRow, FitRow, LatencyRow, LifeRow, PageRow,
    PointRow, ProgramRow, ProgramTimeRow, SimSummary, StepRow, SweepSummary, SweptRow, WearRow,
};

pub use explain::explain;
pub use models::{cliff, fit, life};
pub use sweep::sweep;
pub use words::given;

const DOCS: &str = "computed by a model; `blockstone help flash.md` lists its limits";

const SIM: &str = "flash-sim";
const SWEEP: &str = "flash-sweep";
const CLIFF: &str = "flash-cliff";
const FIT: &str = "flash-fit";
const LIFE: &str = "flash-life";
const EXPLAIN: &str = "flash-explain";
const VERSION: u32 = 2;

/// Every document of `flash`.
pub const DOCUMENTS: &[Document] = &[
    document(
        SIM,
        "A simulated flash device",
        SimSummary::COLUMNS,
        &[&[
            ("programs", ProgramRow::COLUMNS),
            ("latencies", LatencyRow::COLUMNS),
            ("figures", FigureRow::COLUMNS),
            ("pages", PageRow::COLUMNS),
            ("program-times", ProgramTimeRow::COLUMNS),
            ("erases", EraseRow::COLUMNS),
            ("over-time", PointRow::COLUMNS),
            ("bad-lines", BadLineRow::COLUMNS),
        ]],
    ),
    document(
        SWEEP,
        "Write amplification over parameters",
        SweepSummary::COLUMNS,
        &[&[("points", SweptRow::COLUMNS), ("wear", WearRow::COLUMNS)]],
    ),
    document(
        CLIFF,
        "When the write cliff comes, by formulas",
        &[],
        &[&[("cliff", CliffRow::COLUMNS)]],
    ),
    document(FIT, "What a measured curve of writes tells", &[], &[&[("fit", FitRow::COLUMNS)]]),
    document(LIFE, "How long a device lives", &[], &[&[("life", LifeRow::COLUMNS)]]),
    document(
        EXPLAIN,
        "Garbage collection, step by step",
        &[],
        &[&[("steps", StepRow::COLUMNS), ("blocks", BlockRow::COLUMNS)]],
    ),
];

const fn document(
    name: &'static str,
    about: &'static str,
    scalars: &'static [Heading],
    tables: &'static [Tables],
) -> Document {
    Document::of_tables((name, VERSION), about, scalars, tables)
}

/// Returns a report without sections.
fn base_report(verb: &'static str, earlier: Earlier) -> Report {
    Report {
        verb: verb.into(),
        version: VERSION,
        notes: vec![DOCS.to_owned()],
        earlier: Some(earlier),
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
    let programs = of_devices(outcomes, |device, outcome| vec![ProgramRow::of(device, outcome)]);
    let programs = ProgramRow::table("programs", "", programs);
    let latencies = of_devices(outcomes, LatencyRow::of);
    let mut latencies = LatencyRow::table("latencies", "Latency in the last quarter", latencies);
    latencies.notes.extend(words::behind_an_erase(first));
    let mut sections = vec![
        Section::new("figures", "Programs and erases").with([programs]),
        Section::new("latency", "Latency in the last quarter").with([latencies]),
        charts::over_time(outcomes).with([words::extent(first)]),
        charts::distributions(outcomes),
        charts::blocks(outcomes),
        Section::page("numbers", "All figures").with(numbers(outcomes)),
    ];
    sections.extend(trace.map(trace_section));
    sections.retain(|section| !section.blocks.is_empty());
    Report {
        headline: headline(first, trace),
        identity: vec![
            words::device(&first.plan.device),
            words::collection(first),
            words::simulated(first),
        ],
        cards: outcomes.iter().flat_map(|&(name, outcome)| cards(name, outcome)).collect(),
        sections,
        warnings: words::throttling(first).into_iter().collect(),
        end: End::by(signal),
        scalars: Some(SimSummary::table("sim", "Simulation", [SimSummary::of(first, trace)])),
        ..base_report(SIM, earlier::sim)
    }
}

/// Returns rows of each device.
fn of_devices<R: IntoIterator>(
    outcomes: &[(&'static str, &Outcome)],
    rows: impl Fn(&'static str, &Outcome) -> R,
) -> Vec<R::Item> {
    outcomes.iter().flat_map(|&(device, outcome)| rows(device, outcome)).collect()
}

/// Returns the tables of the page.
fn numbers(outcomes: &[(&'static str, &Outcome)]) -> Vec<Table> {
    let figures = outcomes.iter().map(|&(device, outcome)| FigureRow::of(device, outcome));
    let pages = of_devices(outcomes, PageRow::of);
    let times = outcomes.iter().take(1).flat_map(|(_, it)| &it.plan.device.times.program_ns);
    let times =
        times.zip(1..).map(|(&program_ns, page_type)| ProgramTimeRow { page_type, program_ns });
    let erases = outcomes.iter().flat_map(|&(device, outcome)| {
        let row = move |&(erases, blocks): &_| EraseRow { device, erases, blocks };
        outcome.erases.iter().map(row)
    });
    let points = outcomes.iter().flat_map(|&(device, outcome)| {
        outcome.points.iter().map(move |point| PointRow::of(device, point))
    });
    vec![
        FigureRow::table("figures", "Figures", figures).record(),
        PageRow::table("pages", "Pages and blocks", pages),
        ProgramTimeRow::table("program-times", "Time to program a page", times),
        EraseRow::table("erases", "Blocks by erases", erases),
        PointRow::table("over-time", "The run over time", points),
    ]
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
    let names = Names::of(outcome);
    let rate = Card::exact("iops_steady", names.last, outcome.steady.iops, "IOPS");
    let mut figures = vec![Card { words: names.last_words.into(), ..rate }];
    figures.extend(outcome.steady.wa.map(|wa| {
        let card = Card::exact("wa", "Write amplification", wa, "×");
        Card { words: "write amplification".into(), ..card }
    }));
    Headline { subject: words::load(outcome), figures, text, tone, ..Headline::default() }
}

/// Names of the rates at the two ends of a run.
struct Names {
    first: &'static str,
    last: &'static str,
    /// The same beside others, and as the end of a sentence.
    first_prefix: &'static str,
    last_prefix: &'static str,
    last_words: &'static str,
}

impl Names {
    /// Without a cliff there is nothing before or after it.
    fn of(outcome: &Outcome) -> Self {
        match outcome.cliff_drive_fills {
            Some(_) => Self {
                first: "Before the cliff",
                last: "After the cliff",
                first_prefix: "before",
                last_prefix: "after",
                last_words: "IOPS after the cliff",
            },
            None => Self {
                first: "At first",
                last: "In the long run",
                first_prefix: "at first",
                last_prefix: "in the long run",
                last_words: "IOPS in the long run",
            },
        }
    }
}

/// Returns the figures of a device. If there are several devices, the figures of each are a group
/// with its name.
fn cards(device: &'static str, outcome: &Outcome) -> Vec<Card> {
    let (plan, steady) = (&outcome.plan, &outcome.steady);
    let names = Names::of(outcome);
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
            let card = Card::exact(key("iops_fresh"), names.first, rate, "IOPS");
            (names.first_prefix, card.source("before garbage collection starts"))
        }),
        outcome.cliff_drive_fills.map(|fills| {
            let card = Card::exact(key("cliff_drive_fills"), "The cliff", fills, "drive fills");
            let by_arithmetic = outcome.cliff_drive_fills_analytic;
            ("cliff", card.source(format!("{fills:.3}, calculated {by_arithmetic:.3}")))
        }),
        Some({
            let card = Card::exact(key("iops_steady"), names.last, steady.iops, "IOPS");
            (names.last_prefix, card.source(by_formula.unwrap_or_default()))
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
    let grouped = |(prefix, card): (&'static str, Card)| match device {
        "" => card,
        device => Card { group: device.into(), prefix: prefix.into(), ..card },
    };
    all.into_iter().flatten().map(grouped).collect()
}

/// Describes the trace that was replayed, and lists lines that could not be read.
fn trace_section(trace: &Trace) -> Section {
    let requests = thousands(trace.requests.len() as i64);
    let lines = thousands(trace.lines as i64);
    let mut text = format!("{} trace: {requests} requests in {lines} lines", trace.format.name());
    if trace.bad_lines > 0 {
        text.extend(["; ", &thousands(trace.bad_lines as i64), " could not be read"]);
    }
    let bad = trace.bad.iter().map(|bad| BadLineRow { line: bad.line, why: bad.why.clone() });
    let bad = BadLineRow::table("bad-lines", "", bad).on_screen(5);
    Section::new("trace", "").with([text]).with([bad])
}
