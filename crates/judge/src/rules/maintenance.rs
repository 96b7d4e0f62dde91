//! Maintenance work of the database during the window.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, all_figures};
use crate::run::has_server;

const ABOUT: About = About {
    id: "maintenance",
    weight: Weight::Warns,
    doc: "A checkpoint, vacuum or analyze that the database started by itself during the window: \
          the rates before and after it differ.",
    threshold: "One, for a real database, beside the checkpoints with which a bulk write flushes \
                its tables. The miniature instance checkpoints continuously.",
    cause: "Timers and limits of the database, such as checkpoint_timeout, max_wal_size or \
            autovacuum.",
    next: "Use a window that contains several of them, or settings that prevent them, and report \
           which you used.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

fn check(case: &RunCase) -> Judgement {
    if !has_server(case.window) {
        return Judgement::pass("checkpoints of the miniature instance are part of its load");
    }
    let checkpoints = case.window.statistic("checkpoints");
    let runs = case.window.grown("sql", "", "maintenance_runs");
    if checkpoints.is_err() && runs.is_err() {
        return Judgement::inconclusive("the database counts neither checkpoints nor vacuums");
    }
    let uncounted = checkpoints.is_err() || runs.is_err();
    let (checkpoints, runs) = (checkpoints.unwrap_or(0), runs.unwrap_or(0));
    // One flush may have been counted on either side of the window's edge.
    let asked = case.window.grown("operation", "flush-table", "completed_ops");
    let checkpoints = checkpoints.saturating_sub(asked.map_or(0, |flushes| flushes + 1));
    if uncounted && checkpoints + runs == 0 {
        return Judgement::inconclusive("the database counts either checkpoints or vacuums only");
    }
    let evidence = format!("{checkpoints} checkpoints and {runs} vacuums or analyzes started");
    Judgement::decide(checkpoints + runs > 0, evidence, all_figures())
}
