//! Statements that were not always executed in the same way.

use blockstone_base::rule::{About, Judgement};
use blockstone_base::verdict::Weight;
use blockstone_record::parameters::RunParameters;

use super::{RunCase, RunRule, all_figures};
use crate::run::has_server;

const ABOUT: About = About {
    id: "plan-changed",
    weight: Weight::Condemns,
    doc: "A statement whose plan changed during the window, or a select by key that uses a bitmap \
          scan or a full scan.",
    threshold: "Any difference; a bitmap scan or a full scan for a select or an update.",
    cause: "Statistics collected during the window, or a setting of the server.",
    next: "See both plans in the manifest; analyze the tables before the run.",
};

pub(super) const RUN: RunRule = RunRule::new(&ABOUT, check);

fn check(case: &RunCase) -> Judgement {
    let run: RunParameters = case.manifest.parameters();
    let Some(before) = &run.plans else {
        return if has_server(case.window) {
            Judgement::inconclusive("the plans of the database are not known")
        } else {
            Judgement::pass("the miniature instance has no plans to choose from")
        };
    };
    if before.is_empty() {
        return Judgement::inconclusive("the database shows no plans");
    }
    let plan = |kind: &str| before.get(kind).map_or("", String::as_str);
    for kind in ["select", "update"] {
        let text = plan(kind).to_lowercase();
        let physical = ["bitmap", "seq scan", "full table scan", "scan of"];
        if let Some(word) = physical.iter().find(|word| text.contains(*word)) {
            return Judgement::fail(format!("the {kind} has a {word} in its plan"), all_figures());
        }
    }
    match &run.plans_after {
        None => Judgement::inconclusive("the plans after the window are not known"),
        Some(after) if after == before => {
            let first = plan("select").lines().nth(1).unwrap_or(plan("select")).trim().to_owned();
            Judgement::pass(format!("before and after the window: {first}"))
        }
        Some(_) => Judgement::fail("a plan changed during the window", all_figures()),
    }
}
