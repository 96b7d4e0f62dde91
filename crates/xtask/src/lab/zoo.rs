//! Checks that deceptive storage is caught: set-ups that must each get the verdict of a rule, and
//! honest ones that must get none. Adding a set-up takes one line of a table.
//!
//! Other activity of the machine (other programs on its processors, a disk whose speed wanders)
//! affects honest set-ups too: a verdict of a rule in [`SURROUNDINGS`] is not a false alarm.
//! Set-ups that need a kernel of their own are in a machine that QEMU emulates.

mod guests;
mod setups;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::packages;

/// A set-up and its required verdicts.
struct Setup {
    name: &'static str,
    must: Must,
    /// Rules that `must` applies to; all rules if empty.
    rules: &'static [&'static str],
    measure: Measure,
}

/// Required outcome of the rules for a set-up.
#[derive(Clone, Copy, PartialEq)]
enum Must {
    /// Deceptive: one of them must fail.
    Fail,
    /// Deceptive in a way that cannot be seen: none of them may pass.
    NotPass,
    /// Honest: none of them may fail.
    NotFail,
}

/// Arranges a set-up, measures it and returns the product's document.
type Measure = fn(&Product<'_>) -> Result<Value>;

/// Rules about other programs on the machine.
const SURROUNDINGS: [&str; 8] = [
    "unsteady",
    "noisy-neighbour",
    "run-queue-delay",
    "generator-bound",
    "late-start",
    "maintenance",
    "clock-pause",
    "clock-step",
];

const COLUMNS: &[Column] = &[
    column("deceptive", "deceptive", 0),
    column("caught", "caught", 0),
    column("false_alarms", "false\nalarms", 0),
];

pub fn run(lab: &Lab) -> Result<Results> {
    let only = lab.options.only.as_deref().unwrap_or("");
    let all = setups::ALL.iter().chain(guests::ALL).filter(|setup| setup.name.contains(only));
    let all: Vec<&Setup> = all.collect();
    ensure!(!all.is_empty(), "no set-up has a name that contains {only:?}");
    packages::guest()?;
    let product = Product::build(lab)?;
    let (mut points, mut totals) = (Vec::new(), [0.0; 4]);
    for (at, setup) in all.iter().enumerate() {
        product.begin(&format!("{} of {}: {}", at + 1, all.len(), setup.name))?;
        let values = setup.show(&product).or_else(|error| {
            product.begin(&format!("    not measured: {error:#}"))?;
            anyhow::Ok([f64::NAN; 3])
        })?;
        for (total, value) in totals.iter_mut().zip([values[0], values[1], values[2], 1.0]) {
            *total += value;
        }
        points.push(Point { name: setup.name.to_owned(), values: values.into() });
    }
    let [deceptive, caught, alarmed, tried] = totals;
    let mut goals = vec![
        Goal::within("deceptive set-ups caught", caught, deceptive, deceptive),
        Goal::at_most("honest set-ups with a false alarm", alarmed, 0.0),
    ];
    if lab.options.only.is_none() {
        goals.push(Goal::at_least("deceptive set-ups", deceptive, 36.0));
        goals.push(Goal::at_least("honest set-ups", tried - deceptive, 16.0));
    }
    Ok(Results { columns: COLUMNS, points, goals })
}

impl Setup {
    /// Returns whether it is deceptive, whether it was caught, and whether it is honest but gave a
    /// false alarm, each as 0 or 1.
    fn show(&self, product: &Product<'_>) -> Result<[f64; 3]> {
        let document = (self.measure)(product)?;
        let failed = rules(&document, "fail")?;
        for verdict in failed_verdicts(&document) {
            eprintln!("    {verdict}");
        }
        let counts = |rule: &&str| match self.rules {
            [] => !SURROUNDINGS.contains(rule),
            named => named.contains(rule),
        };
        let fails = failed.iter().any(counts);
        let passes = rules(&document, "pass")?.iter().any(counts);
        let found = match self.must {
            Must::Fail => [true, fails, false],
            Must::NotPass => [true, !passes, false],
            Must::NotFail => [false, false, fails],
        };
        Ok(found.map(|yes| f64::from(u8::from(yes))))
    }
}

/// Returns each verdict that failed, with what was seen: an honest set-up that fails needs reading.
fn failed_verdicts(document: &Value) -> Vec<String> {
    let verdicts = document["verdicts"].as_array().into_iter().flatten();
    let failed = verdicts.filter(|verdict| verdict["outcome"] == "fail");
    let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
    failed.map(|it| format!("{}: {}", text(&it["rule"]), text(&it["evidence"]))).collect()
}

/// Returns the rules with this outcome, whatever they condemn or warn of.
fn rules<'a>(document: &'a Value, outcome: &str) -> Result<Vec<&'a str>> {
    let verdicts = document["verdicts"].as_array().context("find the verdicts")?;
    let these = verdicts.iter().filter(|verdict| verdict["outcome"] == outcome);
    Ok(these.filter_map(|verdict| verdict["rule"].as_str()).collect())
}
