//! Checks that a 95 % interval contains the true value that often: loads that vary in known ways
//! are measured thousands of times with the functions that reports use.
//!
//! Some effects remain that a window is too short to see: correlation over more than the window
//! (AR(1) 0.99, 1/f wander) and bursts that are rare within it. These are shown and have no goal.

use std::process::Command;

use anyhow::{Context, Result};
use blockstone_testkit::build;
use serde_json::Value;

use super::Lab;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::output_of;

const TRIALS: u32 = 2_000;

/// Percentage of intervals that contain the true value, for windows of one second as `calibrate`
/// measures them, windows of 30 seconds as `run` does, and three windows at intervals of 5 s, which
/// confirm a headline of `calibrate`.
const COLUMNS: &[Column] = &[
    column("mean_fixed_1s", "rate\n1 s", 1),
    column("mean_run_30s", "rate\n30 s", 1),
    column("mean_adaptive", "rate\n0.5–1 s", 1),
    column("mean_adaptive_early", "those\nthat ended early", 1),
    column("early", "ended\nearly", 1),
    column("p50_run_30s", "p50\n30 s", 1),
    column("p99_run_30s", "p99\n30 s", 1),
    column("p50_1s", "p50\n1 s", 1),
    column("p99_1s", "p99\n1 s", 1),
    column("mean_one_window", "rate\n2.4 s", 1),
    column("mean_spaced", "rate\n3 × 0.8 s", 1),
    column("p50_spaced", "p50\n3 × 0.8 s", 1),
    column("p99_spaced", "p99\n3 × 0.8 s", 1),
];

/// Columns with goals: figures that a report prints, over all windows.
const PROMISES: &[&str] = &[
    "mean_fixed_1s",
    "mean_run_30s",
    "mean_adaptive",
    "p50_run_30s",
    "p99_run_30s",
    "p50_1s",
    "p99_1s",
    "mean_spaced",
    "p50_spaced",
    "p99_spaced",
];
/// Columns of headlines, with goals even if the level wanders over seconds.
const SPACED: &[&str] = &["mean_spaced", "p50_spaced", "p99_spaced"];

/// Minimum coverage in percent for each kind of load, and the columns that it applies to.
const GOALS: &[(&str, f64, &[&str])] = &[
    ("independent", 94.0, PROMISES),
    ("AR(1) 0.5", 94.0, PROMISES),
    ("AR(1) 0.9", 90.0, PROMISES),
    ("wander 1 %", 90.0, SPACED),
    ("wander 3 %", 90.0, SPACED),
    ("wander 5 %", 90.0, SPACED),
];

pub fn run(_: &Lab) -> Result<Results> {
    let program = build(&["--release", "--package", "blockstone-base", "--example", "coverage"])?;
    let text = output_of(Command::new(&program).arg(TRIALS.to_string()))?;
    let document: Value = serde_json::from_str(&text).context("read its document")?;
    let loads = document["loads"].as_array().context("find its loads")?;
    Ok(Results { columns: COLUMNS, points: loads.iter().map(point).collect(), goals: goals(loads) })
}

fn percent(load: &Value, key: &str) -> f64 {
    load[key].as_f64().unwrap_or(f64::NAN) * 100.0
}

fn point(load: &Value) -> Point {
    let name = load["load"].as_str().unwrap_or_default().to_owned();
    Point { name, values: COLUMNS.iter().map(|column| percent(load, column.name)).collect() }
}

fn goals(loads: &[Value]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for (name, least, promises) in GOALS {
        let load = loads.iter().find(|load| load["load"] == *name).unwrap_or(&Value::Null);
        goals.extend(
            promises
                .iter()
                .map(|key| Goal::at_least(format!("{name}: {key}, %"), percent(load, key), *least)),
        );
    }
    goals
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_load_that_covers_too_little_or_is_absent_misses_its_goals() {
        let load = |name: &str, share: f64| {
            let mut load = json!({ "load": name });
            for key in PROMISES {
                load[key] = share.into();
            }
            load
        };
        let mut loads: Vec<Value> =
            GOALS.iter().map(|(name, least, _)| load(name, least / 100.0 + 0.01)).collect();
        assert!(goals(&loads).iter().all(Goal::is_met), "{:#?}", goals(&loads));
        loads[1] = load("AR(1) 0.5", 0.93);
        loads.pop();
        let missed = goals(&loads).iter().filter(|goal| !goal.is_met()).count();
        assert_eq!(missed, PROMISES.len() + SPACED.len());
    }
}
