//! `blockstone offload account`: the ledger of runs from their counters.

use anyhow::Result;
use blockstone_base::table::Rows as _;
use blockstone_base::units::{Bytes, three_digits};
use blockstone_base::verdict::Verdict;
use blockstone_offload::{Assigned, Copies, Ledger};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Block, Detail, Headline, Report, Section, Tone};
use blockstone_sys::memory;

use super::args::AccountArgs;
use super::rows::{
    AssignedRow, ComparedRow, CpuRow, DigitsRow, LedgerRow, LinkRow, RefusalRow, RunRow, UsualRow,
};
use super::rules::{self, OffloadFindings, OffloadRun};
use super::words::digits;
use super::{charts, earlier, input, tables};
use crate::exit::Exit;
use crate::finish::finish;
use crate::verb::Context;
use crate::verbs::trace::subject;

/// Maximum number of runs whose bars a terminal shows.
const BARS_MAX: usize = 6;
/// Below this share of eligible bytes, the remainder says nothing about chained rows.
const MOST: f64 = 0.9;

/// All runs that were read.
struct Account {
    subject: String,
    ledgers: Vec<Ledger>,
    assigned: Vec<Assigned>,
    notes: Vec<String>,
    link_bytes_per_s: Option<f64>,
}

pub const TABLES: Tables = &[
    ("ledger", LedgerRow::COLUMNS),
    ("runs", RunRow::COLUMNS),
    ("usual", UsualRow::COLUMNS),
    ("compared", ComparedRow::COLUMNS),
    ("links", LinkRow::COLUMNS),
    ("cpu", CpuRow::COLUMNS),
    ("refusals", RefusalRow::COLUMNS),
    ("digits", DigitsRow::COLUMNS),
    ("assignments", AssignedRow::COLUMNS),
];

pub fn run(args: &AccountArgs, context: &Context) -> Result<Exit> {
    memory::hold_to(Some(memory::READING));
    let mut account = Account {
        subject: subject(&args.files),
        ledgers: Vec::new(),
        assigned: Vec::new(),
        notes: Vec::new(),
        link_bytes_per_s: args.link.map(|it| it.0),
    };
    let mut is_unit_used = false;
    for path in &args.files {
        let read = input::read(path, args.unit)?;
        is_unit_used |= read.is_unit_used;
        account.notes.extend(read.counters.notes);
        account.ledgers.extend(read.counters.ledgers);
        account.assigned.extend(read.counters.assigned);
        account.notes.extend(read.notes);
    }
    input::check_unit(args.unit, is_unit_used)?;
    finish(&report(&account), context)
}

/// Returns the findings that rules judge.
pub fn findings(ledgers: &[Ledger], link_bytes_per_s: Option<f64>) -> OffloadFindings {
    OffloadFindings { runs: ledgers.iter().map(|it| finding(it, link_bytes_per_s)).collect() }
}

pub fn finding(ledger: &Ledger, link_bytes_per_s: Option<f64>) -> OffloadRun {
    OffloadRun {
        name: ledger.name.clone(),
        seconds: ledger.seconds,
        hosts: ledger.hosts,
        read_bytes: ledger.read_bytes,
        eligible_bytes: ledger.eligible_bytes,
        returned_bytes: ledger.returned_bytes,
        balanced_bytes: ledger.balanced_bytes,
        wire_bytes: ledger.wire_bytes,
        interface_bytes: None,
        link_bytes_per_s,
        host_cpu_s: ledger.host_cpu_s,
        host_processors: ledger.host_processors,
        cell_cpu_s: ledger.cell_cpu_s,
        cell_processors: ledger.cell_processors,
        shared_processors: ledger.shared_processors,
    }
}

fn report(account: &Account) -> Report {
    let ledgers = &account.ledgers;
    let verdicts = rules::judge_runs(&findings(ledgers, account.link_bytes_per_s));
    let (text, tone) = headline(ledgers);
    let mut sections = sections_of(ledgers, &verdicts);
    if let Some(link) = account.link_bytes_per_s {
        sections.push(Section::of("links", tables::links(ledgers, link)));
    }
    sections.push(Section::of("assignments", tables::assigned(&account.assigned)).about(
        "Counters do not fall in any of these. All instances scanned parts of the same table, so \
         the assignment is right in which they filtered alike.",
    ));
    sections.retain(|section| !section.blocks.is_empty());
    Report {
        verb: "offload-account".into(),
        version: 2,
        headline: Headline { subject: account.subject.clone(), text, tone, ..Headline::default() },
        sections,
        notes: notes(account),
        verdicts,
        earlier: Some(earlier::account),
        ..Report::default()
    }
}

/// Returns the sections for any runs.
pub fn sections_of(ledgers: &[Ledger], verdicts: &[Verdict]) -> Vec<Section> {
    let mut bytes = Section::new("bars", "Where the bytes went").detail(Detail::Terminal);
    for ledger in &ledgers[..ledgers.len().min(BARS_MAX)] {
        if ledgers.len() > 1 {
            bytes.blocks.push(Block::Text(ledger.name.clone()));
        }
        bytes.blocks.push(Block::Bars(charts::bars(ledger)));
    }
    vec![
        bytes,
        Section::page("ledger", "Where the bytes went")
            .with([charts::ledger(ledgers)])
            .with([tables::ledger(ledgers)]),
        Section::of("runs", tables::runs(ledgers)),
        Section::of("usual", tables::usual(ledgers, verdicts)),
        Section::of("compared", tables::compared(ledgers)),
        Section::of("cpu", tables::cpu(ledgers)),
        Section::of("refusals", tables::refusals(ledgers)),
        Section::of("digits", tables::with_digits(ledgers)).detail(Detail::Page),
    ]
}

fn of_100(share: f64) -> String {
    three_digits(share * 100.0)
}

/// States the savings of the run that saved most and of the one that saved least.
fn headline(ledgers: &[Ledger]) -> (String, Tone) {
    let known = ledgers.iter().filter_map(|it| Some((it, it.saved_of_all()?)));
    let mut known: Vec<(&Ledger, f64)> = known.collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    let saved = |share: f64| match share {
        share if share < 0.0 => format!("{} % more than was read came back", of_100(-share)),
        share => format!("{} % of all bytes were saved", of_100(share)),
    };
    match &known[..] {
        [] => ("what was saved is not counted".to_owned(), Tone::Warning),
        [(_, share)] => (saved(*share), Tone::Plain),
        [(most, share), .., (least, other)] => {
            let (most, least) = (&most.name, &least.name);
            let text = format!("{most}: {}; {least}: {} %", saved(*share), of_100(*other));
            (text, Tone::Plain)
        }
    }
}

/// Remarks, each with the runs that it applies to.
#[derive(Default)]
struct Remarks(Vec<(String, Vec<String>)>);

impl Remarks {
    fn add(&mut self, run: &str, remark: String) {
        match self.0.iter_mut().find(|(known, _)| *known == remark) {
            Some((_, runs)) => runs.push(run.to_owned()),
            None => self.0.push((remark, vec![run.to_owned()])),
        }
    }

    fn lines(self, runs: usize) -> Vec<String> {
        let line = |(remark, of): (String, Vec<String>)| match of.len() {
            count if count == runs && runs > 1 => format!("all runs: {remark}"),
            _ => format!("{}: {remark}", of.join(", ")),
        };
        self.0.into_iter().map(line).collect()
    }
}

fn notes(account: &Account) -> Vec<String> {
    let mut notes = account.notes.clone();
    notes.extend(remarks(&account.ledgers));
    for assigned in &account.assigned {
        let how = if assigned.is_decided {
            "assignment by selectivity"
        } else {
            "selectivity does not decide between the assignments"
        };
        notes.push(format!(
            "{}: instances are listed in another order after the run: {how}; totals do not depend \
             on it",
            assigned.run
        ));
    }
    notes
}

/// Returns remarks on the figures of these runs.
pub fn remarks(ledgers: &[Ledger]) -> Vec<String> {
    let mut remarks = Remarks::default();
    for ledger in ledgers {
        let mut remark = |text: String| remarks.add(&ledger.name, text);
        remark(match ledger.copies() {
            Copies::Whole { copies, .. } => format!("{copies} copies of each write"),
            Copies::Odd { measured } => format!(
                "copies of each write: {}; this is not a whole number: part of the writes went \
                 elsewhere or with other redundancy",
                three_digits(measured)
            ),
            Copies::Unknown(why) => format!("copies of writes are unknown: {why}"),
        });
        if ledger.is_read_with_writes {
            remark(
                "bytes read are not counted by themselves; `physical IO disk bytes`, which has \
                 those written too, takes their place"
                    .to_owned(),
            );
        }
        if ledger.eligible_bytes.is_none() {
            remark(
                "eligible bytes are not counted: what was saved is unknown; reports as text cut \
                 the names of such counters, HTML has them"
                    .to_owned(),
            );
        }
        if ledger.is_returned_all_wire {
            remark(
                "bytes returned are not counted by themselves; all bytes of the wire take their \
                 place"
                    .to_owned(),
            );
        }
    }
    let mut lines = remarks.lines(ledgers.len());
    lines.extend(not_eligible(ledgers));
    lines
}

/// Names blocks that were sent whole although nearly everything was filtered.
fn not_eligible(ledgers: &[Ledger]) -> Option<String> {
    let scanned = |it: &&Ledger| it.eligible_of_all().is_some_and(|share| share >= MOST);
    let some = ledgers.iter().filter(scanned).filter_map(|ledger| {
        let bytes = ledger.not_eligible_bytes().filter(|it| *it > 0)?;
        let share = digits(bytes as f64 / ledger.read_bytes as f64 * 100.0);
        Some(format!("{} ({share} %) of {}", Bytes(bytes), ledger.name))
    });
    let some: Vec<String> = some.collect();
    (!some.is_empty()).then(|| {
        let named = some[..some.len().min(BARS_MAX)].join("; ");
        format!("not eligible: {named}; in a full scan such bytes are a sign of chained rows")
    })
}
