//! Tables of derived figures, as views make them.

use blockstone_base::database::SESSION;

use crate::interval::{Interval, Known, Missing};

/// A way to look at an interval: one table.
#[derive(Debug)]
pub struct View {
    /// Its name in commands and documents.
    pub name: &'static str,
    /// What stands above it.
    pub title: &'static str,
    /// What it shows, in one sentence.
    pub doc: &'static str,
    /// The probe without which there is nothing to show.
    pub probe: &'static str,
    /// How it is best drawn.
    pub shape: Shape,
    /// Its columns. The first ones that are texts name a row.
    pub columns: &'static [Heading],
    /// Makes its rows, each with a value a column.
    pub rows: fn(&Interval<'_>) -> Vec<Vec<Value>>,
}

/// How a table is best drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One row, drawn as names and values below each other.
    Record,
    /// Rows below their headings.
    Table,
}

/// A column of a view.
#[derive(Clone, Copy, Debug)]
pub struct Heading {
    /// Its key in documents: the recorded column and what was made of it, unit last.
    pub key: &'static str,
    /// What stands above it, as short as its reader knows it.
    pub heading: &'static str,
    /// What its numbers are.
    pub measure: Measure,
    /// What it means, in a sentence.
    pub doc: &'static str,
}

/// What numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// No number.
    Text,
    /// A number of things, a second or as a mean.
    Count,
    /// Bytes, a level or a mean.
    Bytes,
    /// Bytes a second.
    BytesPerS,
    /// Nanoseconds.
    Nanoseconds,
    /// A share of one.
    Share,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number in the column's measure.
    Number(f64),
    /// A text.
    Text(String),
    /// Nothing, and why.
    Missing(Missing),
}

/// What a view made of an interval.
#[derive(Clone, Debug)]
pub struct Table {
    /// The view.
    pub view: &'static View,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

impl View {
    /// The table of an interval; none when its probe was not there.
    pub fn table(&'static self, interval: &Interval<'_>) -> Option<Table> {
        interval.has(self.probe).then(|| Table { view: self, rows: (self.rows)(interval) })
    }

    /// Whether it shows samples of sessions, and so follows a [`Focus`](crate::Focus).
    pub fn is_sampled(&self) -> bool {
        self.probe == SESSION.probe
    }

    /// The place of a column.
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }
}

impl Table {
    /// Orders the rows by a column, the greatest first, texts by the alphabet; what is missing
    /// comes last.
    pub fn sort(&mut self, column: usize) {
        self.rows.sort_by(|a, b| match (&a[column], &b[column]) {
            (Value::Number(a), Value::Number(b)) => b.total_cmp(a),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (a, b) => rank(a).cmp(&rank(b)),
        });
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::Text(_) => 1,
        Value::Missing(_) => 2,
    }
}

impl From<Known> for Value {
    fn from(known: Known) -> Self {
        known.map_or_else(Self::Missing, Self::Number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::Missing(Missing::Unknown), Self::from)
    }
}

/// A column of texts.
pub(crate) const fn text(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    Heading { key, heading, measure: Measure::Text, doc }
}

/// A column of numbers of things.
pub(crate) const fn count(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    Heading { key, heading, measure: Measure::Count, doc }
}

/// A column of bytes.
pub(crate) const fn bytes(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    Heading { key, heading, measure: Measure::Bytes, doc }
}

/// A column of bytes a second.
pub(crate) const fn flow(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    Heading { key, heading, measure: Measure::BytesPerS, doc }
}

/// A column of times.
pub(crate) const fn time(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    Heading { key, heading, measure: Measure::Nanoseconds, doc }
}

/// A column of shares.
pub(crate) const fn share(key: &'static str, heading: &'static str, doc: &'static str) -> Heading {
    Heading { key, heading, measure: Measure::Share, doc }
}
