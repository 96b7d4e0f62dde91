//! Commits that a power loss would undo.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::parameters::RunParameters;

use super::{RunCase, RunRule, commit_figures};
use crate::run::has_server;

const ABOUT: About = About {
    id: "unsafe-commits",
    weight: Weight::Condemns,
    doc: "A database that acknowledges commits before they are durable: its commit rate is that of \
          memory.",
    threshold: "One of these settings: fsync = off or synchronous_commit = off (PostgreSQL), \
                innodb_flush_log_at_trx_commit other than 1, synchronous below 2 (SQLite).",
    cause: "A setting for tests or for data that may be lost.",
    next: "Restore the safe setting, or compare commits only with others that are not durable.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

fn check(case: &RunCase) -> Judgement {
    let run: RunParameters = case.manifest.parameters();
    let Some(settings) = &run.server_settings else {
        return if has_server(case.window) {
            Judgement::inconclusive("the settings of the database are not known")
        } else {
            Judgement::pass("the miniature instance acknowledges only durable commits")
        };
    };
    let durable = run.durable_settings();
    let known = durable.iter().filter_map(|(name, durable)| {
        let value = settings.get(name)?;
        Some((name, value, durable.contains(value)))
    });
    let known: Vec<_> = known.collect();
    let said: Vec<String> =
        known.iter().map(|(name, value, _)| format!("{name} = {value}")).collect();
    if known.is_empty() {
        return Judgement::inconclusive("the settings of the database are not known");
    }
    let unsafe_one = known.iter().any(|(_, _, is_durable)| !is_durable);
    let commits = case.window.grown_of_all("operation", "commits").unwrap_or(0);
    let figures = commit_figures();
    // Recordings of older versions do not say which settings their database has.
    let unknown = durable.keys().find(|name| !settings.contains_key(*name));
    match unknown.filter(|_| run.durable_settings.is_some() && !unsafe_one) {
        Some(name) => Judgement::inconclusive(format!("{}; {name} is not known", said.join(", "))),
        None => Judgement::decide(unsafe_one && commits > 0, said.join(", "), figures),
    }
}
