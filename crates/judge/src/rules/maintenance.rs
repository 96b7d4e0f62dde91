//! What the database did for itself during the window.

use blockstone_base::verdict::Weight;

use super::{Check, Judgement, Rule, RunCase, all_figures};
use crate::run::has_server;

pub(super) const RULE: Rule = Rule {
    id: "maintenance",
    weight: Weight::Warns,
    doc: "A checkpoint, or a cleaning or analysis of a table, that the database began by itself \
          during the window: the rates before and after are not the same.",
    threshold: "One, for a real database. The miniature instance checkpoints all the time.",
    cause: "Timers and limits of the database: checkpoint_timeout, max_wal_size, autovacuum.",
    next: "Use a window that holds several, or settings that keep them out of it; say which.",
    checks: &[Check::Run(check)],
};

fn check(case: &RunCase) -> Judgement {
    if !has_server(case.window) {
        return Judgement::pass("checkpoints of the miniature instance are part of its load");
    }
    let checkpoints = case.window.statistic("checkpoints");
    let runs = case.window.grown("sql", "", "maintenance_runs");
    if checkpoints.is_err() && runs.is_err() {
        return Judgement::inconclusive("the database counts neither checkpoints nor cleaning");
    }
    let (checkpoints, runs) = (checkpoints.unwrap_or(0), runs.unwrap_or(0));
    let evidence =
        format!("{checkpoints} checkpoints and {runs} cleanings or analyses of tables began");
    Judgement::decide(checkpoints + runs > 0, evidence, all_figures())
}
