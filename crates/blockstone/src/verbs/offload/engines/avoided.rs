//! Parquet over HTTP: what a reader avoids by the statistics of a file. Nothing is filtered at the
//! storage, so that nothing is "returned".

use anyhow::Result;
use blockstone_base::row;
use blockstone_base::table::{Heading, Measure, Row, Table, bytes, level, share, text, time};
use blockstone_base::verdict::Verdict;
use blockstone_offload::Ledger;
use blockstone_pushdown::duckdb::DuckdbError;
use blockstone_pushdown::parquet::{self, Measured, Order, ParquetError, Query, Ran, Settings};
use blockstone_record::manifest::End;
use blockstone_report::render::json;
use blockstone_report::render::terminal::Style;
use blockstone_report::{Headline, Report, Section, percent};
use schemars::JsonSchema;
use serde::Serialize;

use super::args::RunArgs;
use super::counted::SECOND_NS;
use crate::exit::Exit;
use crate::finish::finish;
use crate::progress::Progress;
use crate::recordings;
use crate::verb::Context;
use crate::verbs::offload::account;
use crate::verbs::offload::tables::RunKeys;

const VERSION: &str = env!("CARGO_PKG_VERSION");

const RUNS: &[Heading] = &[
    text("query", "query", "What is asked."),
    text("order", "file", "Sorted by the column of the filter, or not."),
    bytes("file_bytes", "file", "Its size."),
    bytes(
        "fetched_bytes",
        "fetched",
        "Of the file, over HTTP: what is fetched twice counts twice.",
    ),
    share("avoided", "avoided", "1 − fetched ÷ file."),
    level("groups", "row groups", Measure::Count, "Of the file."),
    level("groups_skipped", "skipped", Measure::Count, "Row groups of which nothing was fetched."),
    share("pruned", "pruned", "Skipped ÷ all row groups."),
    level("requests", "requests", Measure::Count, "Of the reader."),
    time("elapsed_ns", "time", "Of the reader's process, with its start."),
    time("reader_cpu_ns", "CPU", "Processor time of the reader."),
];

const EVIDENCE: &[Heading] = &[
    text("run", "run", "The run."),
    bytes("server_bytes", "server", "Heads and bodies of all answers, as the server counts them."),
    bytes("socket_bytes", "sockets", "Payload that the kernel counts for its sockets."),
    level("difference_bytes", "difference", Measure::Count, "In bytes."),
    level("connections", "connections", Measure::Count, "Of the reader."),
];

/// Keys of the JSON document.
#[derive(Serialize, JsonSchema)]
pub struct AvoidedDocument {
    tool_version: &'static str,
    /// `parquet`
    engine: &'static str,
    /// DuckDB's version.
    reader: String,
    rows: u64,
    seed_of_rows: u64,
    runs: Vec<AvoidedRun>,
    verdicts: Vec<Verdict>,
}

/// A run: the keys of `offload account`, of which a reader over HTTP has few, and its own.
#[derive(Serialize, JsonSchema)]
pub struct AvoidedRun {
    #[serde(flatten)]
    run: RunKeys,
    query: &'static str,
    /// `sorted` or `shuffled`
    order: &'static str,
    file_bytes: u64,
    /// Of the file, over HTTP.
    fetched_bytes: u64,
    /// Heads and bodies of all answers.
    server_bytes: u64,
    /// The same as the kernel counts it for the sockets.
    socket_bytes: u64,
    requests: u64,
    row_groups: u64,
    row_groups_skipped: u64,
    /// Skipped ÷ all row groups.
    pruned: f64,
}

pub fn run(args: &RunArgs, context: &Context) -> Result<Exit> {
    let settings = Settings {
        dir: args.dir.clone(),
        cards: args.cards.cards()?,
        duckdb: args.duckdb.clone(),
        id: recordings::draw_seed(),
    };
    let mut bar = Progress::start(context.printer)?;
    let measured = parquet::measure(&settings, &mut |done, text| bar.step(done, text));
    bar.finish();
    let signal = bar.signal();
    match measured {
        Ok(measured) if !(measured.runs.is_empty() && measured.interrupted) => {
            let style = context.printer.style();
            finish(&report(&settings, &measured, signal, &style), context)
        }
        Err(error) if !matches!(error, ParquetError::Duckdb(DuckdbError::Interrupted)) => {
            Err(error.into())
        }
        Ok(_) | Err(_) => {
            context.printer.note("interrupted: nothing was measured, and the files are removed");
            Ok(Exit::Interrupted)
        }
    }
}

fn name(ran: &Ran) -> String {
    format!("{}, {}", ran.query.name(), ran.order.name())
}

fn ledger(ran: &Ran) -> Ledger {
    let fetched = ran.sent.body_bytes;
    Ledger {
        name: name(ran),
        seconds: Some(ran.answer.seconds),
        hosts: Some(1),
        read_bytes: ran.file_bytes.max(fetched),
        skipped: vec![(
            "columns and row groups".to_owned(),
            ran.file_bytes.saturating_sub(fetched),
        )],
        wire_bytes: Some(ran.sent.socket_sent_bytes + ran.sent.socket_received_bytes),
        host_cpu_s: Some(ran.answer.cpu_ns as f64 / SECOND_NS),
        ..Ledger::default()
    }
}

fn avoided(ran: &Ran) -> f64 {
    1.0 - ran.sent.body_bytes as f64 / ran.file_bytes.max(1) as f64
}

fn pruned(ran: &Ran) -> f64 {
    ran.groups_skipped as f64 / ran.groups.max(1) as f64
}

fn server_bytes(ran: &Ran) -> u64 {
    ran.sent.head_bytes + ran.sent.body_bytes
}

fn report(settings: &Settings, measured: &Measured, signal: Option<&str>, style: &Style) -> Report {
    let runs = &measured.runs;
    let ledgers: Vec<Ledger> = runs.iter().map(ledger).collect();
    let of_account = account::sections_of(&ledgers, &[], style);
    let mut sections = vec![Section::of("avoided", runs_table(runs)).about(
        "The reader skips columns that a query does not name, and row groups whose least and \
         greatest value exclude the filter. What it fetches, it filters itself: this is avoidance, \
         as by a storage index, and no filter at the storage.",
    )];
    let kept = ["bars", "ledger"];
    sections.extend(of_account.into_iter().filter(|it| kept.contains(&it.id.as_ref())));
    sections.push(Section::of("evidence", evidence(runs)));
    sections.retain(|section| !section.blocks.is_empty());
    let run = |ran: &Ran| AvoidedRun {
        run: RunKeys::of(&ledger(ran), &[]),
        query: ran.query.name(),
        order: ran.order.name(),
        file_bytes: ran.file_bytes,
        fetched_bytes: ran.sent.body_bytes,
        server_bytes: server_bytes(ran),
        socket_bytes: ran.sent.socket_sent_bytes,
        requests: ran.sent.requests,
        row_groups: ran.groups,
        row_groups_skipped: ran.groups_skipped,
        pruned: pruned(ran),
    };
    let rows = settings.cards.rows();
    let removed =
        |path: &std::path::PathBuf| format!("removed what a killed run left: {}", path.display());
    Report {
        verb: "offload-parquet".into(),
        version: 1,
        tool_version: VERSION.to_owned(),
        headline: headline(measured),
        identity: vec![
            format!("DuckDB {} · Parquet over HTTP", measured.version),
            format!("{rows} rows · seed {}", settings.cards.seed()),
        ],
        sections,
        notes: measured.removed.iter().map(removed).collect(),
        end: End::by(signal),
        partial: measured.interrupted,
        document: json::keys(AvoidedDocument {
            tool_version: VERSION,
            engine: "parquet",
            reader: measured.version.clone(),
            rows,
            seed_of_rows: settings.cards.seed(),
            runs: runs.iter().map(run).collect(),
            verdicts: Vec::new(),
        }),
        ..Report::default()
    }
}

fn headline(measured: &Measured) -> Headline {
    let subject = format!("Parquet, read by DuckDB {}", measured.version);
    let find = |order: Order| {
        measured.runs.iter().find(|ran| (ran.order, ran.query) == (order, Query::Filtered))
    };
    let text = match (find(Order::Sorted), find(Order::Shuffled)) {
        (Some(sorted), Some(shuffled)) => format!(
            "row groups pruned: {} where the column is sorted, {} where it is not",
            percent(pruned(sorted)),
            percent(pruned(shuffled))
        ),
        _ => "the pair was not measured".to_owned(),
    };
    Headline { subject, text, ..Headline::default() }
}

fn runs_table(runs: &[Ran]) -> Table {
    let row = |ran: &Ran| -> Row {
        row![
            ran.query.name(),
            ran.order.name(),
            ran.file_bytes as f64,
            ran.sent.body_bytes as f64,
            avoided(ran),
            ran.groups as f64,
            ran.groups_skipped as f64,
            pruned(ran),
            ran.sent.requests as f64,
            ran.answer.seconds * SECOND_NS,
            ran.answer.cpu_ns as f64
        ]
    };
    Table::new("avoided", "Avoided", RUNS).with(runs.iter().map(row))
}

fn evidence(runs: &[Ran]) -> Table {
    let row = |ran: &Ran| -> Row {
        let (server, socket) = (server_bytes(ran), ran.sent.socket_sent_bytes);
        row![
            name(ran),
            server as f64,
            socket as f64,
            server as f64 - socket as f64,
            ran.sent.connections as f64
        ]
    };
    Table::new("evidence", "Bytes counted twice", EVIDENCE).with(runs.iter().map(row))
}
