//! `blockstone offload account`: the ledger of runs that were counted.

use anyhow::Result;
use blockstone_offload::{Assigned, Copies, Ledger};
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Section, percent};
use schemars::JsonSchema;
use serde::Serialize;

use super::args::AccountArgs;
use super::input;
use super::tables::{self, RunKeys};
use crate::exit::Exit;
use crate::finish::finish;
use crate::verb::Context;
use crate::verbs::trace::subject;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Keys of the JSON document.
#[derive(Serialize, JsonSchema)]
pub struct AccountDocument {
    tool_version: &'static str,
    runs: Vec<RunKeys>,
}

/// All runs that were read.
struct Account {
    subject: String,
    ledgers: Vec<Ledger>,
    assigned: Vec<Assigned>,
    notes: Vec<String>,
}

pub fn run(args: &AccountArgs, context: &Context) -> Result<Exit> {
    let mut account = Account {
        subject: subject(&args.files),
        ledgers: Vec::new(),
        assigned: Vec::new(),
        notes: Vec::new(),
    };
    for path in &args.files {
        let read = input::read(path, args.unit)?;
        account.ledgers.extend(read.counters.ledgers);
        account.assigned.extend(read.counters.assigned);
        account.notes.extend(read.notes);
    }
    finish(&report(&account), context)
}

fn report(account: &Account) -> Report {
    let ledgers = &account.ledgers;
    let document =
        AccountDocument { tool_version: VERSION, runs: ledgers.iter().map(RunKeys::of).collect() };
    Report {
        verb: "offload-account".into(),
        version: 1,
        tool_version: VERSION.to_owned(),
        headline: Headline {
            subject: account.subject.clone(),
            text: headline(ledgers),
            ..Headline::default()
        },
        sections: vec![
            Section::of("ledger", tables::ledger(ledgers)),
            Section::of("runs", tables::runs(ledgers)),
            Section::of("refusals", tables::refusals(ledgers)),
        ]
        .into_iter()
        .filter(|section| !section.blocks.is_empty())
        .collect(),
        notes: notes(account),
        document: json::keys(document),
        ..Report::default()
    }
}

fn headline(ledgers: &[Ledger]) -> String {
    let saved = |ledger: &Ledger| {
        let saved = ledger.saved_of_all().map_or("?".to_owned(), percent);
        format!("saved {saved} of all bytes")
    };
    match ledgers {
        [] => String::new(),
        [only] => saved(only),
        [first, others @ ..] => {
            format!("{} in {}, of {} runs", saved(first), first.name, others.len() + 1)
        }
    }
}

fn notes(account: &Account) -> Vec<String> {
    let mut notes = account.notes.clone();
    for ledger in &account.ledgers {
        let name = &ledger.name;
        notes.push(match ledger.copies() {
            Copies::Whole { copies, .. } => format!("{name}: {copies} copies of each write"),
            Copies::Odd { measured } => format!(
                "{name}: {measured:.1} copies of each write is no whole number: part of the \
                 writes went elsewhere or with other redundancy"
            ),
            Copies::Unknown(why) => format!("{name}: copies of writes are unknown: {why}"),
        });
        if ledger.is_returned_all_wire {
            notes.push(format!(
                "{name}: bytes returned are not counted by themselves: all bytes of the wire take \
                 their place"
            ));
        }
    }
    for assigned in &account.assigned {
        notes.push(format!(
            "{}: instances are listed in another order after the run: assignment by selectivity; \
             totals do not depend on it",
            assigned.run
        ));
    }
    notes
}
