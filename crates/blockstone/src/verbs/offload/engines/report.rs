//! The report of runs on cells.

use blockstone_base::table::{Measure, Row, Rows as _, Table, happened};
use blockstone_base::units::{Bytes, thousands, three_digits};
use blockstone_base::verdict::Verdict;
use blockstone_offload::Ledger;
use blockstone_pushdown::cells::{BLOCK, Measured, Query, Ran, Settings};
use blockstone_record::manifest::End;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section, percent};

use super::counted::{SECOND_NS, asked, is_left_to_cells, ledger, name, processors};
use super::predict::predictions;
use super::rows::{EngineRow, EvidenceRow, PlanRow, PredictedRow, PushdownRow, RoundRow, Summary};
use crate::verbs::offload::rows::{CpuRow, LedgerRow};
use crate::verbs::offload::rules::{self, Load, OffloadFindings, OffloadRun};
use crate::verbs::offload::{account, earlier, tables};

pub const TABLES: Tables = &[
    ("engines", EngineRow::COLUMNS),
    ("rounds", RoundRow::COLUMNS),
    ("pushdown", PushdownRow::COLUMNS),
    ("predicted", PredictedRow::COLUMNS),
    ("ledger", LedgerRow::COLUMNS),
    ("cpu", CpuRow::COLUMNS),
    ("evidence", EvidenceRow::COLUMNS),
    ("plans", PlanRow::COLUMNS),
];

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

pub fn report(settings: &Settings, measured: &Measured, signal: Option<&str>) -> Report {
    let runs = &measured.runs;
    let verdicts = rules::judge_runs(&findings(runs));
    let pushed = runs.iter().filter(|ran| ran.pushdown).map(ledger);
    let widest = runs.iter().map(|ran| ran.cells).max().unwrap_or(1);
    let pushed: Vec<Ledger> = pushed.filter(|it| it.cells == Some(widest)).collect();
    let mut sections = vec![
        Section::of("engines", runs_table(runs, &verdicts)).about(ABOUT),
        Section::page("throughput", "Time against cells").with([times(runs)]).with([rounds(runs)]),
        Section::of("pushdown", compared(runs)),
        Section::of("predicted", predicted(runs)),
    ];
    let of_account = account::sections_of(&pushed, &verdicts);
    let kept = ["bars", "ledger", "cpu"];
    sections.extend(of_account.into_iter().filter(|it| kept.contains(&it.id.as_ref())));
    sections.push(Section::of("evidence", evidence(runs)));
    sections.push(Section::page("plans", "What the host sends").with([plans(runs)]));
    sections.retain(|section| !section.blocks.is_empty());
    let cards = &settings.cards;
    let summary = Summary {
        engine: "postgres",
        release: measured.release.clone(),
        rows: cards.rows(),
        own_rows: cards.own(),
        seed: cards.seed().to_string(),
        processors: processors(),
    };
    Report {
        verb: "offload-run".into(),
        version: 2,
        headline: headline(measured),
        identity: vec![
            "postgres_fdw".to_owned(),
            format!(
                "{} rows · {} of them with an own card · seed {}",
                thousands(cards.rows() as i64),
                thousands(cards.own() as i64),
                cards.seed()
            ),
        ],
        sections,
        notes: notes(measured),
        end: End::by(signal),
        partial: measured.interrupted,
        scalars: Some(Summary::table("offload-run", "", [summary])),
        earlier: Some(earlier::engines),
        verdicts,
        ..Report::default()
    }
}

const ABOUT: &str = "Each statement is sent once to a host that keeps no rows. Without pushdown \
                     the condition has a collation that is not the column's, which is never left \
                     to a cell.";

/// Compares the pair of runs on the fewest cells: the gain from filtering at the storage.
fn headline(measured: &Measured) -> Headline {
    let fewest = measured.runs.iter().map(|ran| ran.cells).min().unwrap_or(1);
    let subject = format!("Cells of PostgreSQL {}", measured.release);
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

fn runs_table(runs: &[Ran], verdicts: &[Verdict]) -> Table {
    let row = |ran: &Ran| {
        let (moved, ledger) = (&ran.moved, ledger(ran));
        let read = ran.asked_bytes();
        let bound = busiest(ran);
        let row = EngineRow {
            query: ran.query.name(),
            filtered_by: match ran.query {
                Query::Full => "–",
                _ if is_left_to_cells(ran) => "cells",
                _ => "host",
            },
            cells: ran.cells,
            time_ns: moved.seconds * SECOND_NS,
            bound_by: bound.map(|it| it.part),
            bound_share: bound.map(|it| it.share),
            disk_bytes: read,
            received_bytes: moved.received_bytes,
            received_of_read: happened(
                (read > 0).then(|| moved.received_bytes as f64 / read as f64),
            ),
            wire_bytes: moved.wire_bytes,
            host_cpu_ns: happened(moved.host_cpu_ns),
            cell_cpu_ns: happened(moved.cell_cpu_ns),
            run: name(ran),
            pushdown: ran.pushdown,
            table_bytes: ran.table_bytes,
            sent_bytes: moved.sent_bytes,
            eligible_bytes: ledger.eligible_bytes,
            returned_bytes: ledger.returned_bytes,
            returned_of_eligible: ledger.returned_of_eligible(),
            saved_of_all: ledger.saved_of_all(),
        };
        let condemned = tables::condemned(&ledger, verdicts);
        Row::from(row).condemned_in(vec!["returned_of_eligible".into()], &condemned)
    };
    EngineRow::table("engines", "Runs", []).with(runs.iter().map(row))
}

fn rounds(runs: &[Ran]) -> Table {
    let rows = runs.iter().flat_map(|ran| {
        ran.seconds_of_rounds.iter().zip(1..).map(|(seconds, round)| RoundRow {
            run: name(ran),
            round,
            time_ns: seconds * SECOND_NS,
        })
    });
    RoundRow::table("rounds", "Rounds", rows)
}

fn evidence(runs: &[Ran]) -> Table {
    let row = |ran: &Ran| {
        let moved = &ran.moved;
        let apart = moved.interface_bytes.filter(|it| *it > 0).map(|interface| {
            let apart = moved.wire_bytes as f64 / interface as f64 - 1.0;
            format!("{:+.4} %", apart * 100.0)
        });
        EvidenceRow {
            run: name(ran),
            wire_bytes: moved.wire_bytes,
            interface_bytes: happened(moved.interface_bytes),
            apart: apart.unwrap_or_default(),
            resent_bytes: moved.resent_bytes,
            hit_bytes: moved.buffer_hits * BLOCK,
            read_bytes: moved.buffer_reads * BLOCK,
            file_bytes: happened(moved.file_bytes),
            storage_bytes: happened(moved.storage_bytes),
        }
    };
    EvidenceRow::table("evidence", "The same, counted in other ways", runs.iter().map(row))
}

fn compared(runs: &[Ran]) -> Table {
    let mut counts: Vec<u32> = runs.iter().map(|ran| ran.cells).collect();
    counts.dedup();
    let quotient = |cells, query, of: fn(&Ran) -> f64| {
        let host = find(runs, cells, query, false)?;
        Some(of(host) / of(find(runs, cells, query, true)?))
    };
    let seconds = |ran: &Ran| ran.moved.seconds;
    let received = |ran: &Ran| ran.moved.received_bytes as f64;
    let row = |cells: u32| PushdownRow {
        cells,
        filtered: happened(times_as_fast(runs, cells)),
        rounds: of_rounds(runs, cells).unwrap_or_default(),
        pushdown_ingest: happened(quotient(cells, Query::Filtered, seconds)),
        pushdown_count: happened(quotient(cells, Query::Count, seconds)),
        bytes_ingest: happened(quotient(cells, Query::Filtered, received)),
    };
    let rows = counts.into_iter().map(row);
    PushdownRow::table("pushdown", "What the filter at the cells brings", rows)
}

fn predicted(runs: &[Ran]) -> Table {
    let title = "The model against the run with the most cells";
    PredictedRow::table("predicted", title, predictions(runs))
}

fn plans(runs: &[Ran]) -> Table {
    let row = |ran: &Ran| PlanRow { run: name(ran), remote: ran.remote.clone() };
    PlanRow::table("plans", "", runs.iter().map(row))
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
