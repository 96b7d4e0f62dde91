//! Database time that nothing explains.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;

use super::{RunCase, RunRule, percent};
use crate::run::has_server;

const ABOUT: About = About {
    id: "db-time-remainder",
    weight: Weight::Warns,
    doc: "Database time that is not processor time, run queue or a wait event, or that is counted \
          twice.",
    threshold: "More than 3 % of the database time, in either direction; 5 % on a server, whose \
                waits are sampled.",
    cause: "Waits outside of any event: page faults, the hypervisor, a stage of the server that \
            reports no event, or imprecise timing with thousands of sessions.",
    next: "Treat the shares of the events as uncertain by this much; check stolen time and memory \
           of the machine.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

const REMAINDER_MAX: f64 = 0.03;
const SERVER_REMAINDER_MAX: f64 = 0.05;

fn check(case: &RunCase) -> Judgement {
    let Some(db_time) = &case.findings.db_time else {
        return Judgement::inconclusive("the target does not report where its time goes");
    };
    let is_server = has_server(case.window);
    if is_server && db_time.network_ns.is_none() {
        return Judgement::inconclusive(
            "the waits of the server are not sampled, or its processor time cannot be seen from \
             here",
        );
    }
    let most = if is_server { SERVER_REMAINDER_MAX } else { REMAINDER_MAX };
    let fails = db_time.remainder_ratio.abs() > most;
    let mut evidence = format!(
        "CPU, run queue and waits leave {} of the database time unexplained",
        percent(db_time.remainder_ratio)
    );
    if fails && is_server && db_time.blocked_ns.is_none() {
        evidence += "; where the server's threads blocked was not recorded";
    }
    let figures = ["average_active_sessions", "db_time_remainder_ratio"].map(str::to_owned);
    Judgement::decide(fails, evidence, figures.into())
}
