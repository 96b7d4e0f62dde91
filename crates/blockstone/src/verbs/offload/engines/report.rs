//! The report of runs on cells.

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Row, Table, bytes, happened, level, ratio, share, text, time,
};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::verdict::Verdict;
use blockstone_offload::Ledger;
use blockstone_pushdown::cells::{BLOCK, Measured, Query, Ran, Settings};
use blockstone_record::manifest::End;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::render::json;
use blockstone_report::render::terminal::Style;
use blockstone_report::{Headline, Report, Section, percent};
use schemars::JsonSchema;
use serde::Serialize;

use super::counted::{SECOND_NS, asked, is_left_to_cells, ledger, name};
use super::predict::{self, Prediction};
use crate::verbs::offload::account;
use crate::verbs::offload::rules::{self, Load, OffloadFindings, OffloadRun};
use crate::verbs::offload::tables::RunKeys;

pub const TABLES: &[&str] =
    &["engines", "pushdown", "predicted", "ledger", "cpu", "evidence", "plans"];

const VERSION: &str = env!("CARGO_PKG_VERSION");

const RUNS: &[Heading] = &[
    text("query", "query", "What is asked."),
    text("filtered_by", "filtered by", "Whether the cells or the host filter rows."),
    level("cells", "cells", Measure::Count, "Servers that hold a part of the table."),
    time("elapsed_ns", "time", "Of the statement, at the host."),
    text("bound_by", "bound by", "The busiest part, and how busy it was."),
    bytes("read_bytes", "read", "What the plan asks of the table, in blocks."),
    bytes("received_bytes", "received", "Payload from the cells to the host."),
    share("received_of_read", "of read", "Received ÷ read."),
    bytes("wire_bytes", "wire", "Payload and headers of all connections to cells, both ways."),
    time("host_cpu_ns", "host CPU", "Of the backend of the host."),
    time("cell_cpu_ns", "cell CPU", "Of the backends of all cells."),
];

const EVIDENCE: &[Heading] = &[
    text("run", "run", "The run."),
    bytes("wire_bytes", "sockets", "Payload and headers, from the counters of each connection."),
    bytes("interface_bytes", "interface", "Of the network namespace."),
    text("apart", "apart", "Sockets ÷ interface − 1."),
    bytes("resent_bytes", "sent again", "Payload that either end sent again."),
    bytes("hit_bytes", "in buffers", "Blocks of the table that were in shared buffers × 8 KiB."),
    bytes("read_bytes", "not there", "Blocks that the cells say they read × 8 KiB."),
    bytes("file_bytes", "system calls", "Returned to the cells' backends, as the kernel counts."),
    bytes("storage_bytes", "storage", "Those of them that were not in the page cache."),
];

const COMPARED: &[Heading] = &[
    level("cells", "cells", Measure::Count, "Servers that hold a part of the table."),
    ratio("filtered", "full ÷ filtered", "Time of the full ingest ÷ that of the filtered one."),
    text("rounds", "in each round", "The least and the greatest quotient of a round."),
    ratio(
        "pushdown_ingest",
        "filter at the host ÷ at the cells",
        "Time of the filtered ingest with the filter at the host ÷ with it at the cells.",
    ),
    ratio("pushdown_count", "the same, count", "Likewise of the count."),
    ratio("bytes_ingest", "bytes", "Likewise received bytes of the filtered ingest."),
];

const PREDICTED: &[Heading] = &[
    text("query", "query", "What is asked, and who filters."),
    level("cells", "cells", Measure::Count, "Servers that hold a part of the table."),
    time("predicted_ns", "predicted", "By the model, fitted on runs with fewer cells."),
    time("measured_ns", "measured", "Of the statement."),
    text("error", "error", "Predicted ÷ measured − 1."),
    text("binding", "binds", "The part that binds, by the model."),
];

const PLANS: &[Heading] = &[
    text("run", "run", "The run."),
    text("remote", "sent to each cell", "The statement, from the plan of the host."),
];

/// Keys of the JSON document.
#[derive(Serialize, JsonSchema)]
pub struct EnginesDocument {
    tool_version: &'static str,
    /// `postgres`
    engine: &'static str,
    release: String,
    rows: u64,
    own_rows: u64,
    seed_of_rows: u64,
    /// Number of processors that host and cells share.
    processors: Option<u32>,
    runs: Vec<EngineRun>,
    predictions: Vec<Prediction>,
    verdicts: Vec<Verdict>,
}

/// A run: the keys of `offload account`, and those that only a measurement has.
#[derive(Serialize, JsonSchema)]
pub struct EngineRun {
    #[serde(flatten)]
    run: RunKeys,
    query: &'static str,
    /// Whether the cells filtered.
    pushdown: bool,
    table_bytes: u64,
    /// Time of each round; `seconds` is the shortest.
    seconds_of_rounds: Vec<f64>,
    /// The part of `disk_bytes` that was in the shared buffers of the cells.
    buffer_hit_bytes: u64,
    /// Payload from the cells to the host.
    received_bytes: u64,
    /// Payload from the host to the cells.
    sent_bytes: u64,
    /// Bytes counted on the interface of the network namespace; null without a namespace.
    interface_bytes: Option<u64>,
    /// Payload that was retransmitted at either end.
    resent_bytes: u64,
    /// Bytes returned by system calls of the cells' backends.
    file_bytes: Option<u64>,
    /// The part of `file_bytes` that did not come from the page cache.
    storage_bytes: Option<u64>,
    /// Number of processors that host and cells share.
    processors: Option<u32>,
    /// The busiest part: `hosts`, `cells`, or `processors` that both share; null if processor time
    /// is not counted.
    bound_by: Option<&'static str>,
    /// Share of the time for which that part was busy.
    bound_share: Option<f64>,
    remote_sql: String,
}

/// Findings of the runs, without those whose cells were deliberately kept from filtering.
fn findings(runs: &[Ran]) -> OffloadFindings {
    let judged = runs.iter().filter(|ran| ran.pushdown);
    let run = |ran: &Ran| OffloadRun {
        // These servers do no other work: a cell that filters sends no blocks.
        balanced_bytes: Some(0),
        interface_bytes: ran.moved.interface_bytes,
        ..account::finding(&ledger(ran), None)
    };
    OffloadFindings { runs: judged.map(run).collect() }
}

pub fn report(
    settings: &Settings,
    measured: &Measured,
    signal: Option<&str>,
    style: &Style,
) -> Report {
    let runs = &measured.runs;
    let verdicts = rules::judge_runs(&findings(runs));
    let predictions = predict::predictions(runs);
    let pushed = runs.iter().filter(|ran| ran.pushdown).map(ledger);
    let widest = runs.iter().map(|ran| ran.cells).max().unwrap_or(1);
    let pushed: Vec<Ledger> = pushed.filter(|it| it.cells == Some(widest)).collect();
    let mut sections = vec![
        Section::of("engines", runs_table(runs)).about(ABOUT),
        Section::page("throughput", "Time against cells").with([times(runs)]),
        Section::of("pushdown", compared(runs)),
        Section::of("predicted", predicted(&predictions)),
    ];
    let of_account = account::sections_of(&pushed, &verdicts, style);
    let kept = ["bars", "ledger", "cpu"];
    sections.extend(of_account.into_iter().filter(|it| kept.contains(&it.id.as_ref())));
    sections.push(Section::of("evidence", evidence(runs)));
    sections.push(Section::page("plans", "What the host sends").with([plans(runs)]));
    sections.retain(|section| !section.blocks.is_empty());
    let cards = &settings.cards;
    Report {
        verb: "offload-run".into(),
        version: 1,
        headline: headline(measured),
        identity: vec![
            format!("PostgreSQL {} · postgres_fdw", measured.release),
            format!(
                "{} rows · {} of them with an own card · seed {}",
                cards.rows(),
                cards.own(),
                cards.seed()
            ),
        ],
        sections,
        notes: notes(measured),
        end: End::by(signal),
        partial: measured.interrupted,
        document: json::keys(document(settings, measured, predictions, &verdicts)),
        verdicts,
        ..Report::default()
    }
}

fn document(
    settings: &Settings,
    measured: &Measured,
    predictions: Vec<Prediction>,
    verdicts: &[Verdict],
) -> EnginesDocument {
    let run = |ran: &Ran| {
        let known = predict::measured(ran);
        let keys = RunKeys::of(&ledger(ran), verdicts);
        EngineRun {
            run: RunKeys { returned_of_read: known.returned_of_read, ..keys },
            query: ran.query.name(),
            pushdown: ran.pushdown,
            table_bytes: ran.table_bytes,
            seconds_of_rounds: ran.seconds_of_rounds.clone(),
            buffer_hit_bytes: ran.moved.buffer_hits * BLOCK,
            received_bytes: ran.moved.received_bytes,
            sent_bytes: ran.moved.sent_bytes,
            interface_bytes: ran.moved.interface_bytes,
            resent_bytes: ran.moved.resent_bytes,
            file_bytes: ran.moved.file_bytes,
            storage_bytes: ran.moved.storage_bytes,
            processors: known.processors,
            bound_by: busiest(ran).map(|it| it.part),
            bound_share: busiest(ran).map(|it| it.share),
            remote_sql: ran.remote.clone(),
        }
    };
    let runs: Vec<EngineRun> = measured.runs.iter().map(run).collect();
    EnginesDocument {
        tool_version: VERSION,
        engine: "postgres",
        release: measured.release.clone(),
        rows: settings.cards.rows(),
        own_rows: settings.cards.own(),
        seed_of_rows: settings.cards.seed(),
        processors: runs.first().and_then(|run| run.processors),
        runs,
        predictions,
        verdicts: verdicts.to_vec(),
    }
}

const ABOUT: &str = "Each statement is sent once to a host that keeps no rows. Without pushdown \
                     the condition has a collation that is not the column's, which is never left \
                     to a cell.";

/// Compares the pair of runs on the fewest cells: the gain from filtering at the storage.
fn headline(measured: &Measured) -> Headline {
    let fewest = measured.runs.iter().map(|ran| ran.cells).min().unwrap_or(1);
    let subject = format!("PostgreSQL {} cells", measured.release);
    let text = match times_as_fast(&measured.runs, fewest) {
        Some(times) => {
            let cells = if fewest == 1 { "1 cell" } else { "these cells" };
            format!("full ingest ÷ filtered ingest: {}× on {cells}", three_digits(times))
        }
        None => "the pair was not measured".to_owned(),
    };
    Headline { subject, text, ..Headline::default() }
}

fn find(runs: &[Ran], cells: u32, query: Query, pushdown: bool) -> Option<&Ran> {
    runs.iter().find(|ran| (ran.cells, ran.query, ran.pushdown) == (cells, query, pushdown))
}

fn times_as_fast(runs: &[Ran], cells: u32) -> Option<f64> {
    let full = find(runs, cells, Query::Full, true)?;
    Some(full.moved.seconds / find(runs, cells, Query::Filtered, true)?.moved.seconds)
}

/// Full ÷ filtered ingest, from the smallest to the largest of all rounds; `None` for one round.
fn of_rounds(runs: &[Ran], cells: u32) -> Option<String> {
    let full = &find(runs, cells, Query::Full, true)?.seconds_of_rounds;
    let filtered = &find(runs, cells, Query::Filtered, true)?.seconds_of_rounds;
    let times = full.iter().zip(filtered).map(|(full, filtered)| full / filtered);
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let (least, greatest) = (times.first()?, times.last()?);
    (times.len() > 1).then(|| format!("{}–{}×", three_digits(*least), three_digits(*greatest)))
}

/// Returns the busiest part of the machine.
fn busiest(ran: &Ran) -> Option<Load> {
    let loads = account::finding(&ledger(ran), None).loads();
    loads.into_iter().max_by(|a, b| a.share.total_cmp(&b.share))
}

fn runs_table(runs: &[Ran]) -> Table {
    let row = |ran: &Ran| -> Row {
        let moved = &ran.moved;
        let read = ran.asked_bytes() as f64;
        row![
            ran.query.name(),
            if is_left_to_cells(ran) && ran.query != Query::Full {
                "cells"
            } else if ran.query == Query::Full {
                "–"
            } else {
                "host"
            },
            f64::from(ran.cells),
            moved.seconds * SECOND_NS,
            busiest(ran).map(|it| format!("{} {}", it.part, percent(it.share))).unwrap_or_default(),
            read,
            moved.received_bytes as f64,
            happened((read > 0.0).then(|| moved.received_bytes as f64 / read)),
            moved.wire_bytes as f64,
            happened(moved.host_cpu_ns.map(|ns| ns as f64)),
            happened(moved.cell_cpu_ns.map(|ns| ns as f64))
        ]
    };
    Table::new("engines", "Runs", RUNS).with(runs.iter().map(row))
}

fn evidence(runs: &[Ran]) -> Table {
    let row = |ran: &Ran| -> Row {
        let moved = &ran.moved;
        let apart = moved.interface_bytes.filter(|it| *it > 0).map(|interface| {
            let apart = moved.wire_bytes as f64 / interface as f64 - 1.0;
            format!("{:+.4} %", apart * 100.0)
        });
        let number = |value: Option<u64>| happened(value.map(|value| value as f64));
        let blocks = |count: u64| (count * BLOCK) as f64;
        row![
            name(ran),
            moved.wire_bytes as f64,
            number(moved.interface_bytes),
            apart.unwrap_or_default(),
            moved.resent_bytes as f64,
            blocks(moved.buffer_hits),
            blocks(moved.buffer_reads),
            number(moved.file_bytes),
            number(moved.storage_bytes)
        ]
    };
    Table::new("evidence", "The same, counted in other ways", EVIDENCE).with(runs.iter().map(row))
}

fn compared(runs: &[Ran]) -> Table {
    let mut counts: Vec<u32> = runs.iter().map(|ran| ran.cells).collect();
    counts.dedup();
    let quotient = |cells, query, of: fn(&Ran) -> f64| {
        let host = find(runs, cells, query, false)?;
        Some(of(host) / of(find(runs, cells, query, true)?))
    };
    let row = |cells: &u32| -> Row {
        row![
            f64::from(*cells),
            happened(times_as_fast(runs, *cells)),
            of_rounds(runs, *cells).unwrap_or_default(),
            happened(quotient(*cells, Query::Filtered, |ran| ran.moved.seconds)),
            happened(quotient(*cells, Query::Count, |ran| ran.moved.seconds)),
            happened(quotient(*cells, Query::Filtered, |ran| ran.moved.received_bytes as f64))
        ]
    };
    Table::new("pushdown", "What the filter at the cells brings", COMPARED)
        .with(counts.iter().map(row))
}

fn predicted(predictions: &[Prediction]) -> Table {
    let row = |it: &Prediction| -> Row {
        let who = if it.pushdown { "" } else { " without pushdown" };
        row![
            format!("{}{who}", it.query),
            f64::from(it.cells),
            it.predicted_s * SECOND_NS,
            it.measured_s * SECOND_NS,
            format!("{:+.1} %", it.error * 100.0),
            it.binding
        ]
    };
    Table::new("predicted", "The model against the run with the most cells", PREDICTED)
        .with(predictions.iter().map(row))
}

fn plans(runs: &[Ran]) -> Table {
    let row = |ran: &Ran| -> Row { row![name(ran), ran.remote.clone()] };
    Table::new("plans", "", PLANS).with(runs.iter().map(row))
}

fn times(runs: &[Ran]) -> Chart {
    let x = Axis::new("cells", Measure::Count);
    let y = Axis::new("time", Measure::Nanoseconds);
    let mut chart = Chart::new("cells-chart", "Time against cells", x, y).wide(320).about(
        "Where the cells bind, twice as many halve the time; where the host or the processors of \
         the machine bind, more cells bring nothing.",
    );
    let mut asked_before: Vec<String> = Vec::new();
    for ran in runs {
        let named = asked(ran);
        if asked_before.contains(&named) {
            continue;
        }
        let points = runs.iter().filter(|it| asked(it) == named);
        let points =
            points.map(|it| Point::from((f64::from(it.cells), Some(it.moved.seconds * SECOND_NS))));
        let form = Form::Line { points: points.collect(), dashed: !ran.pushdown, marks: true };
        chart = chart.layer(named.clone(), Color::Series(asked_before.len() as u8), form);
        asked_before.push(named);
    }
    chart
}

fn notes(measured: &Measured) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = &measured.not_apart {
        notes.push(format!("sockets were not compared with an interface of their own: {why}"));
    }
    if let Some(ran) = measured.runs.first() {
        let table = Bytes(ran.table_bytes);
        let text = ran.moved.received_bytes as f64 / ran.table_bytes.max(1) as f64;
        notes.push(format!(
            "the table takes {table} in the cells; all of its rows are {} of that on the wire, as \
             text",
            percent(text)
        ));
    }
    let from_cache =
        |ran: &Ran| ran.moved.storage_bytes.is_some_and(|it| it * 10 < ran.table_bytes);
    if measured.runs.iter().any(from_cache) {
        notes.push("the cells read from the page cache: their rate is not the device's".to_owned());
    }
    for path in &measured.removed {
        notes.push(format!("removed what a killed run left: {}", path.display()));
    }
    notes
}
