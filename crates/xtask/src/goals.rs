//! Results of an experiment: figures side by side, and whether each goal was met.

use anyhow::{Context, Result, bail};
use blockstone_base::Capability;
use blockstone_base::units::thousands;
use blockstone_testkit::Need;
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde_json::{Map, Value, json};

use crate::packages;

/// An experiment as a registry lists it; `O` is the type of its options.
#[derive(Debug)]
pub struct Entry<O> {
    pub name: &'static str,
    pub doc: &'static str,
    /// Requirements on the machine.
    pub needs: &'static [Need],
    pub run: fn(&O) -> Result<Results>,
}

/// Returns a parser of the experiments' names on the command line.
pub fn names<O>(all: &'static [Entry<O>]) -> PossibleValuesParser {
    let value = |entry: &Entry<O>| PossibleValue::new(entry.name).help(entry.doc);
    PossibleValuesParser::new(all.iter().map(value))
}

/// Runs the experiment of this name and shows its results.
pub fn run<O>(all: &[Entry<O>], name: &str, options: &O, json: bool) -> Result<Results> {
    let entry = all.iter().find(|entry| entry.name == name);
    let entry = entry.with_context(|| format!("there is no experiment {name}"))?;
    packages::all_of(entry.needs)?;
    for need in entry.needs {
        if let Capability::Degraded { why } = need.capability() {
            bail!("it needs {}: {why}", need.name());
        }
    }
    let results = (entry.run)(options)?;
    results.show(name, json);
    Ok(results)
}

#[derive(Debug)]
pub struct Results {
    /// Columns of [`Point::values`], in order.
    pub columns: &'static [Column],
    pub points: Vec<Point>,
    pub goals: Vec<Goal>,
}

#[derive(Debug)]
pub struct Column {
    /// Key in JSON, with the unit last.
    pub name: &'static str,
    pub heading: &'static str,
    pub decimals: usize,
}

#[derive(Debug)]
pub struct Point {
    pub name: String,
    /// One value per column; NaN if there is none.
    pub values: Vec<f64>,
}

/// A figure and the range it must be in, bounds included.
#[derive(Debug)]
pub struct Goal {
    what: String,
    seen: f64,
    least: f64,
    most: f64,
}

impl Goal {
    /// Requires `seen` to be `aim`, give or take the fraction `tolerance` of it.
    pub fn near(what: impl Into<String>, seen: f64, aim: f64, tolerance: f64) -> Self {
        Self::within(what, seen, aim * (1.0 - tolerance), aim * (1.0 + tolerance))
    }

    pub fn within(what: impl Into<String>, seen: f64, least: f64, most: f64) -> Self {
        Self { what: what.into(), seen, least, most }
    }

    pub fn at_least(what: impl Into<String>, seen: f64, least: f64) -> Self {
        Self::within(what, seen, least, f64::INFINITY)
    }

    pub fn at_most(what: impl Into<String>, seen: f64, most: f64) -> Self {
        Self::within(what, seen, f64::NEG_INFINITY, most)
    }

    /// Returns whether the goal was met; a figure that could not be computed does not meet it.
    pub fn is_met(&self) -> bool {
        (self.least..=self.most).contains(&self.seen)
    }

    fn word(&self) -> &'static str {
        if self.is_met() { "met" } else { "missed" }
    }

    fn range(&self) -> String {
        match (self.least.is_finite(), self.most.is_finite()) {
            (true, true) => format!("{} … {}", figure(self.least), figure(self.most)),
            (false, _) => format!("≤ {}", figure(self.most)),
            (true, false) => format!("≥ {}", figure(self.least)),
        }
    }
}

impl Results {
    pub fn all_met(&self) -> bool {
        self.goals.iter().all(Goal::is_met)
    }

    /// Prints the table and the goals, or both as a document of the experiment `name`.
    fn show(&self, name: &str, json: bool) {
        if json { println!("{:#}", self.document(name)) } else { self.print() }
    }

    fn print(&self) {
        let name_width = widest(self.points.iter().map(|point| point.name.as_str()));
        let widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
        for line in 0..2 {
            let headings = self.columns.iter().zip(&widths);
            let cells = headings.map(|(column, width)| format!("{:>width$}", column.line(line)));
            println!("{}", row(&format!("{:name_width$}", ""), cells));
        }
        for point in &self.points {
            let values = self.columns.iter().zip(&point.values).zip(&widths);
            let cells = values.map(|((column, value), width)| column.cell(*value, *width));
            println!("{}", row(&format!("{:name_width$}", point.name), cells));
        }
        let what_width = widest(self.goals.iter().map(|goal| goal.what.as_str()));
        println!("\n{:what_width$}  {:>12}  {:>19}", "goal", "seen", "wanted");
        for goal in &self.goals {
            let (what, seen, range) = (&goal.what, figure(goal.seen), goal.range());
            println!("{what:what_width$}  {seen:>12}  {range:>19}  {}", goal.word());
        }
    }

    fn document(&self, name: &str) -> Value {
        let points = self.points.iter().map(|point| {
            let mut object = Map::from_iter([("point".to_owned(), json!(point.name))]);
            let values = self.columns.iter().zip(&point.values);
            object.extend(values.map(|(column, value)| (column.name.to_owned(), json!(value))));
            Value::Object(object)
        });
        let goals = self.goals.iter().map(|goal| {
            json!({
                "goal": goal.what,
                "seen": goal.seen,
                "least": goal.least,
                "most": goal.most,
                "met": goal.is_met(),
            })
        });
        json!({
            "experiment": name,
            "points": points.collect::<Vec<_>>(),
            "goals": goals.collect::<Vec<_>>(),
            "met": self.all_met(),
        })
    }
}

/// Returns a column; `\n` breaks its heading into two lines.
pub const fn column(name: &'static str, heading: &'static str, decimals: usize) -> Column {
    Column { name, heading, decimals }
}

impl Column {
    /// Returns the width of its heading, with room for a figure.
    fn width(&self) -> usize {
        widest([self.line(0), self.line(1)]).max(9)
    }

    fn line(&self, number: usize) -> &str {
        let (first, second) = self.heading.split_once('\n').unwrap_or(("", self.heading));
        if number == 0 { first } else { second }
    }

    fn cell(&self, value: f64, width: usize) -> String {
        let text = match self.decimals {
            _ if !value.is_finite() => "–".to_owned(),
            0 => thousands(value.round() as i64),
            decimals => format!("{value:.decimals$}"),
        };
        format!("{text:>width$}")
    }
}

fn row(name: &str, cells: impl Iterator<Item = String>) -> String {
    let row = std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>().join("  ");
    row.trim_end().to_owned()
}

fn widest<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts.into_iter().map(|text| text.chars().count()).max().unwrap_or(0)
}

/// Formats a figure with as many digits as it takes to distinguish it from its bounds.
fn figure(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        100.0.. => thousands(value.round() as i64),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_within_its_bounds_and_never_by_what_is_no_number() {
        assert!(Goal::near("a", 2_328.0, 2_400.0, 0.03).is_met());
        assert!(!Goal::near("a", 2_320.0, 2_400.0, 0.03).is_met());
        assert!(Goal::at_least("a", 1.0, 1.0).is_met() && !Goal::at_least("a", 0.9, 1.0).is_met());
        assert!(Goal::at_most("a", 1.0, 1.0).is_met() && !Goal::at_most("a", 1.1, 1.0).is_met());
        assert!(!Goal::at_most("a", f64::NAN, 1.0).is_met());
    }

    #[test]
    fn a_document_names_what_was_not_measured_as_null() {
        const COLUMNS: &[Column] = &[column("read_iops", "reads", 0)];
        let points = vec![Point { name: "one".to_owned(), values: vec![f64::NAN] }];
        let goals = vec![Goal::at_least("more", 2.0, 1.0)];
        let document = Results { columns: COLUMNS, points, goals }.document("test");
        assert_eq!(document["points"][0]["read_iops"], Value::Null);
        assert_eq!(document["met"], true);
        assert_eq!(document["goals"][0]["most"], Value::Null);
    }

    #[test]
    fn ranges_and_headings_read_well() {
        assert_eq!(Goal::near("a", 0.0, 2_400.0, 0.03).range(), "2,328 … 2,472");
        assert_eq!(Goal::at_most("a", 0.0, 1.25).range(), "≤ 1.250");
        let column = column("read_iops", "disk\nreads/s", 1);
        assert_eq!((column.line(0), column.line(1), column.width()), ("disk", "reads/s", 9));
        assert_eq!(column.cell(2.26, 5), "  2.3");
    }
}
