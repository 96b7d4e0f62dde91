//! Whether storage that deceives is caught: set-ups of which each must get the verdict of a rule,
//! and honest ones that must get no verdict of any. Adding a set-up is one line of a table.
//!
//! What the machine does beside (other programs on its processors, a disk whose speed wanders) is
//! true of honest set-ups too: the rules in [`SURROUNDINGS`] are no false alarm.

mod setups;

use anyhow::{Context, Result};
use serde_json::Value;

use self::setups::ALL;
use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};

/// A set-up and what must be said of it.
struct Setup {
    name: &'static str,
    deceptive: bool,
    /// One of these must fail, of an honest set-up none; where none is named, none of all rules.
    rules: &'static [&'static str],
    measure: Measure,
}

/// Arranges a set-up and measures it: the document of the product.
type Measure = fn(&Product<'_>) -> Result<Value>;

/// Rules about other programs on the machine.
const SURROUNDINGS: [&str; 7] = [
    "unsteady",
    "noisy-neighbour",
    "run-queue-delay",
    "generator-bound",
    "late-start",
    "maintenance",
    "clock-pause",
];

const COLUMNS: &[Column] = &[
    column("deceptive", "deceptive", 0),
    column("caught", "caught", 0),
    column("false_alarms", "false\nalarms", 0),
];

pub fn run(lab: &Lab) -> Result<Results> {
    let product = Product::build(lab)?;
    let (mut points, mut totals) = (Vec::new(), [0.0; 4]);
    for (at, setup) in ALL.iter().enumerate() {
        product.begin(&format!("{} of {}: {}", at + 1, ALL.len(), setup.name))?;
        let values = setup.show(&product).or_else(|error| {
            product.begin(&format!("    not measured: {error:#}"))?;
            anyhow::Ok([f64::NAN; 3])
        })?;
        for (total, value) in totals.iter_mut().zip([values[0], values[1], values[2], 1.0]) {
            *total += value;
        }
        points.push(Point { name: setup.name.to_owned(), values: values.into() });
    }
    let [deceptive, caught, alarmed, all] = totals;
    let goals = vec![
        Goal::at_least("deceptive set-ups", deceptive, 25.0),
        Goal::at_least("caught, %", 100.0 * caught / deceptive, 100.0),
        Goal::at_most("honest set-ups with a false alarm", alarmed, 0.0),
        Goal::at_least("honest set-ups", all - deceptive, 8.0),
    ];
    Ok(Results { columns: COLUMNS, points, goals })
}

impl Setup {
    /// Whether it is deceptive, was caught, and is honest but gave a false alarm: 0 or 1.
    fn show(&self, product: &Product<'_>) -> Result<[f64; 3]> {
        let failed = failed_rules(&(self.measure)(product)?)?;
        eprintln!("    {}", if failed.is_empty() { "nothing".into() } else { failed.join(", ") });
        let counts = |rule: &String| match self.rules {
            [] => !SURROUNDINGS.contains(&rule.as_str()),
            rules => rules.contains(&rule.as_str()),
        };
        let said = failed.iter().any(counts);
        let found = [self.deceptive, self.deceptive && said, !self.deceptive && said];
        Ok(found.map(|yes| f64::from(u8::from(yes))))
    }
}

/// The rules that failed, whatever they condemn or warn of.
fn failed_rules(document: &Value) -> Result<Vec<String>> {
    let verdicts = document["verdicts"].as_array().context("find the verdicts")?;
    let failed = verdicts.iter().filter(|verdict| verdict["outcome"] == "fail");
    Ok(failed.filter_map(|verdict| verdict["rule"].as_str().map(str::to_owned)).collect())
}
