//! Tables of derived figures: what views, judges and models hand over for printing, drawing or
//! saving. A table carries its headings with units and meaning, so that the terminal, the HTML
//! page, JSON and CSV show the same numbers under the same keys.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::stats::Estimate;

mod headings;
mod keyed;
mod merge;
mod missing;
pub mod rows;
mod spread;

pub use headings::{
    bytes, column, count, flag, flow, level, mean_of, quotient, ratio, share, share_of, text, time,
    total, unmerged,
};
pub use keyed::Unmeasured;
pub use merge::{divisors, merge};
pub use missing::{Known, Missing};
pub use rows::Rows;
pub use spread::Spread;

/// Key of the unit of a row in JSON and CSV.
pub const UNIT: &str = "unit";

/// Text that is usually a constant.
pub type Text = Cow<'static, str>;

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Key in JSON and name for `--csv`: kebab case, unique within a report.
    pub name: Text,
    pub title: Text,
    /// Contents of the table and how to read it, in a sentence or two; may be empty.
    pub about: Text,
    pub shape: Shape,
    /// The leading text columns name a row.
    pub columns: Cow<'static, [Heading]>,
    /// Each row has one cell for each column.
    pub rows: Vec<Row>,
    /// Number of rows that one terminal screen shows; the rest are on the page and in CSV. `None`:
    /// all.
    pub screen_rows: Option<usize>,
    /// Number of rows that the page shows; the rest are in JSON and CSV. `None`: all.
    pub page_rows: Option<usize>,
    /// Confidence of the intervals of its estimates, in percent.
    pub confidence: u8,
    /// Whether a screen folds the names of rows without a number other than zero into one line.
    pub folds_idle: bool,
    /// Remarks below the table, such as why cells are empty.
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One row, drawn as names and values.
    Record,
    /// Rows below their headings.
    Table,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Heading {
    /// JSON key and CSV heading: the measured quantity, with unit and qualifier last.
    pub key: Text,
    /// Displayed heading, as short as its readers will understand.
    pub heading: Text,
    pub measure: Measure,
    /// Rule by which its values over consecutive slices of time combine into the value over all of
    /// them.
    pub merge: Merge,
    pub doc: Text,
    /// Whether readers look for this column: it is shown however narrow the screen is.
    pub is_answer: bool,
    /// A sentence: on a narrow screen it stands below its row, in full.
    pub is_prose: bool,
    /// A path: where it does not fit, its end is shown, which tells files apart.
    pub is_path: bool,
    /// Whether people see estimates without their intervals, which documents have.
    pub is_plain: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    Text,
    /// Whether something is so, written as `yes` and `no`.
    Flag,
    /// A number of things, per second or as a mean.
    Count,
    /// Bytes: a level or a mean, written with binary prefixes.
    Bytes,
    /// Bytes per second, written with decimal prefixes.
    BytesPerS,
    /// Nanoseconds, written in the unit that suits them.
    Nanoseconds,
    /// A fraction from 0 to 1, written as a percentage.
    Share,
    /// A ratio of two like quantities, written as `1.25×`.
    Ratio,
    /// A ratio of the original amount to what remains of it, written as `4.00:1`.
    ToOne,
    /// Differs by row: [`Row::measure`].
    OfRow,
}

impl Measure {
    /// Returns the unit of the numbers in JSON and CSV; empty for texts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Text | Self::Flag => "",
            Self::Count | Self::OfRow => "count",
            Self::Bytes => "bytes",
            Self::BytesPerS => "bytes_per_s",
            Self::Nanoseconds => "ns",
            Self::Share => "share",
            Self::Ratio | Self::ToOne => "ratio",
        }
    }
}

/// Rule by which the values of a column over consecutive slices of time combine into one over all
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// It names the row: equal by definition.
    Key,
    /// A rate or a share of time: the mean weighted by the length of the slices. A slice without
    /// the row counts as zero.
    Mean,
    /// A mean per event: weighted by the column of this key, a rate of those events or their
    /// number.
    WeightedBy(&'static str),
    /// The level at the end: the last slice that has it.
    Last,
    /// A number of events in the slice.
    Sum,
    /// The greatest value of the slices.
    Greatest,
    /// The column `part`, divided by its sum over all rows, or over those with the same text in the
    /// columns `within`, separated by blanks.
    ShareOf { part: &'static str, within: &'static str },
    /// The column `part`, divided by something that is not a column but common to all rows, or to
    /// those with the same text in the columns `within`: transactions, database time.
    Per { part: &'static str, within: &'static str },
    /// The column `part` of the same row divided by its column `by`.
    Quotient { part: &'static str, by: &'static str },
    /// A quantile of the samples behind the row ([`Row::spread`]), in ten-thousandths: 9,990 is
    /// p99.9.
    Quantile(u16),
    /// Cannot be derived from slices; unknown over more than one of them.
    Never,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub cells: Vec<Value>,
    /// Measure of the numbers in columns of [`Measure::OfRow`].
    pub measure: Option<Measure>,
    /// IDs of the rules that condemn the numbers of the row: they are struck through wherever they
    /// are shown.
    pub condemned_by: Vec<String>,
    /// Keys of the columns that these rules condemn. If empty, they condemn the whole row.
    pub condemned_columns: Vec<Text>,
    /// Distribution of the numbers whose quantiles the row shows; empty if it shows none.
    pub spread: Spread,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    #[serde(serialize_with = "plain")]
    Number(f64),
    /// A number with its interval, in the column's measure.
    Estimate(Estimate),
    Text(String),
    Flag(bool),
    /// No value, and why.
    Missing(Missing),
}

/// Writes whole numbers without a point: a count is `32` and not `32.0`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn plain<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
    /// Above this, not every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        to.serialize_i64(*number as i64)
    } else {
        to.serialize_f64(*number)
    }
}

impl Table {
    /// Returns an empty table of rows below headings.
    pub fn new(
        name: impl Into<Text>,
        title: impl Into<Text>,
        columns: impl Into<Cow<'static, [Heading]>>,
    ) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            about: Text::default(),
            shape: Shape::Table,
            columns: columns.into(),
            rows: Vec::new(),
            screen_rows: None,
            page_rows: None,
            confidence: 95,
            folds_idle: false,
            notes: Vec::new(),
        }
    }

    #[must_use]
    pub fn about(self, about: impl Into<Text>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// Draws the only row as names and values.
    #[must_use]
    pub fn record(self) -> Self {
        Self { shape: Shape::Record, ..self }
    }

    /// Shows at most `rows` rows on a terminal screen.
    #[must_use]
    pub fn on_screen(self, rows: usize) -> Self {
        Self { screen_rows: Some(rows), ..self }
    }

    /// Shows at most `rows` rows on the page.
    #[must_use]
    pub fn on_page(self, rows: usize) -> Self {
        Self { page_rows: Some(rows), ..self }
    }

    /// Sets the confidence of its intervals, in percent.
    #[must_use]
    pub fn confidence(self, confidence: u8) -> Self {
        Self { confidence, ..self }
    }

    /// Keeps only these columns, in this order.
    #[must_use]
    pub fn only(self, keys: &[&str]) -> Self {
        let kept: Vec<usize> = keys.iter().filter_map(|key| self.column(key)).collect();
        let columns: Vec<Heading> = kept.iter().map(|at| self.columns[*at].clone()).collect();
        let rows = self.rows.into_iter().map(|row| {
            let cells = kept.iter().map(|at| row[*at].clone()).collect();
            Row { cells, ..row }
        });
        Self { rows: rows.collect(), columns: Cow::Owned(columns), ..self }
    }

    /// Returns the table without columns of sentences that have none.
    pub fn without_blank_prose(&self) -> Cow<'_, Self> {
        let is_blank =
            |row: &Row, at: usize| matches!(&row[at], Value::Text(text) if text.is_empty());
        let is_kept = |at: &usize| {
            !self.columns[*at].is_prose || !self.rows.iter().all(|row| is_blank(row, *at))
        };
        let kept: Vec<usize> = (0..self.columns.len()).filter(is_kept).collect();
        if kept.len() == self.columns.len() {
            return Cow::Borrowed(self);
        }
        let keys: Vec<&str> = kept.iter().map(|at| &*self.columns[*at].key).collect();
        Cow::Owned(self.clone().only(&keys))
    }

    pub fn push(&mut self, row: impl Into<Row>) {
        self.rows.push(row.into());
    }

    /// Adds these rows.
    #[must_use]
    pub fn with<R: Into<Row>>(mut self, rows: impl IntoIterator<Item = R>) -> Self {
        self.rows.extend(rows.into_iter().map(Into::into));
        self
    }

    /// Returns the index of the column with this key.
    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// Returns whether rules condemn this cell of a row. Text and the cell that names the row are
    /// never condemned.
    pub fn condemns(&self, row: &Row, column: usize) -> bool {
        let columns = &row.condemned_columns;
        !row.condemned_by.is_empty()
            && row[column].number().is_some()
            && (column > 0 || self.shape == Shape::Record)
            && (columns.is_empty() || columns.contains(&self.columns[column].key))
    }

    /// Returns whether JSON and CSV need a unit for each row, because its columns do not fix one.
    pub fn has_units_of_rows(&self) -> bool {
        let differs = self.columns.iter().any(|column| column.measure == Measure::OfRow);
        differs && self.column(UNIT).is_none()
    }

    /// Returns the name of a row: its texts before the first number, joined by blanks.
    pub fn name_of(&self, row: &Row) -> String {
        name_of(&self.columns, row)
    }

    /// Sorts by a column: numbers descending, texts alphabetically, missing cells last.
    pub fn sort(&mut self, column: usize) {
        self.rows.sort_by(|a, b| order(&a[column], &b[column]));
    }
}

/// Returns the name of a row of these columns: its texts before the first number, joined by blanks.
pub fn name_of(columns: &[Heading], row: &[Value]) -> String {
    let texts = columns.iter().zip(row).take_while(|(column, _)| column.measure == Measure::Text);
    let words = texts.filter_map(|(_, value)| match value {
        Value::Text(text) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Compares two cells of a sorted table: numbers descending, texts alphabetically, missing cells
/// last.
pub fn order(a: &Value, b: &Value) -> std::cmp::Ordering {
    let rank = |value: &Value| match value {
        Value::Number(_) | Value::Estimate(_) => 0,
        Value::Text(_) | Value::Flag(_) => 1,
        Value::Missing(_) => 2,
    };
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Flag(a), Value::Flag(b)) => b.cmp(a),
        (a, b) => match (a.number(), b.number()) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            _ => rank(a).cmp(&rank(b)),
        },
    }
}

impl Heading {
    /// Makes a heading at run time, such as one for each block size.
    pub fn new(
        key: impl Into<Text>,
        heading: impl Into<Text>,
        measure: Measure,
        doc: impl Into<Text>,
    ) -> Self {
        let merge = if measure == Measure::Text { Merge::Key } else { Merge::Mean };
        let (key, heading, doc) = (key.into(), heading.into(), doc.into());
        Self {
            key,
            heading,
            measure,
            merge,
            doc,
            is_answer: false,
            is_prose: false,
            is_path: false,
            is_plain: false,
        }
    }

    /// The same column as one of paths.
    #[must_use]
    pub const fn path(mut self) -> Self {
        self.is_path = true;
        self
    }

    /// The same column as one of sentences.
    #[must_use]
    pub const fn prose(mut self) -> Self {
        self.is_prose = true;
        self
    }

    /// Leaves the intervals of the column to documents and to tooltips, to spare width.
    #[must_use]
    pub const fn plain(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Sets the rule by which its values over slices of time combine.
    #[must_use]
    pub const fn merged(mut self, merge: Merge) -> Self {
        self.merge = merge;
        self
    }

    /// Marks the column as one that a reader looks for.
    #[must_use]
    pub const fn answer(mut self) -> Self {
        self.is_answer = true;
        self
    }
}

impl Row {
    /// Strikes the row through on account of these rules.
    #[must_use]
    pub fn condemned_by(self, rules: &[String]) -> Self {
        Self { condemned_by: rules.to_vec(), ..self }
    }

    /// Strikes through only the columns with these keys, on account of these rules.
    #[must_use]
    pub fn condemned_in(self, columns: Vec<Text>, rules: &[String]) -> Self {
        Self { condemned_columns: columns, ..self.condemned_by(rules) }
    }

    /// Sets the measure of the numbers in columns of [`Measure::OfRow`].
    #[must_use]
    pub fn of(self, measure: Measure) -> Self {
        Self { measure: Some(measure), ..self }
    }

    /// Sets the distribution of the numbers behind the row.
    #[must_use]
    pub fn spread(self, spread: Spread) -> Self {
        Self { spread, ..self }
    }

    /// Returns the unit of the numbers in columns of [`Measure::OfRow`].
    pub fn unit(&self) -> &'static str {
        self.measure.unwrap_or(Measure::Count).unit()
    }

    /// Returns the measure of the numbers under `heading` in this row.
    pub fn measure(&self, heading: &Heading) -> Measure {
        match heading.measure {
            Measure::OfRow => self.measure.unwrap_or(Measure::Count),
            measure => measure,
        }
    }
}

/// Makes a row of cells, each of anything that converts into a [`Value`](crate::table::Value).
#[macro_export]
macro_rules! row {
    ($($cell:expr),+ $(,)?) => {
        $crate::table::Row::from([$($crate::table::Value::from($cell)),+])
    };
}

impl From<Vec<Value>> for Row {
    fn from(cells: Vec<Value>) -> Self {
        Self { cells, ..Self::default() }
    }
}

impl<const N: usize> From<[Value; N]> for Row {
    fn from(cells: [Value; N]) -> Self {
        Vec::from(cells).into()
    }
}

impl Deref for Row {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.cells
    }
}

impl Value {
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Estimate(estimate) => Some(estimate.value),
            Self::Text(_) | Self::Flag(_) | Self::Missing(_) => None,
        }
    }
}

/// Nothing happened.
impl Default for Value {
    fn default() -> Self {
        Self::Missing(Missing::Nothing)
    }
}

impl<T: Into<Self>> From<Result<T, Missing>> for Value {
    fn from(known: Result<T, Missing>) -> Self {
        known.map_or_else(Self::Missing, Into::into)
    }
}

impl From<bool> for Value {
    fn from(is_so: bool) -> Self {
        Self::Flag(is_so)
    }
}

impl From<Missing> for Value {
    fn from(missing: Missing) -> Self {
        Self::Missing(missing)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<Estimate> for Value {
    fn from(estimate: Estimate) -> Self {
        Self::Estimate(estimate)
    }
}

impl Estimate {
    /// Returns the number without its interval; a lower bound stays one.
    pub fn without_interval(self) -> Value {
        if self.is_lower_bound() { self.into() } else { self.value.into() }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Not measured: unknown. Use [`happened`] for something that did not happen.
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing(Missing::Unknown), Into::into)
    }
}

/// Converts a value that is missing because nothing happened, which is not unknown.
pub fn happened<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or_else(Value::default, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Heading] =
        &[text("disk", "disk", "The device."), count("reads", "reads", "Reads.")];

    #[test]
    fn rows_sort_by_number_then_text_and_missing_cells_come_last() {
        let mut table = Table::new("disks", "Disks", COLUMNS);
        let missing = Value::Missing(Missing::Off);
        for (name, reads) in [("a", 1_u64.into()), ("b", missing), ("c", 7_u64.into())] {
            table.push([Value::from(name), reads]);
        }
        table.sort(1);
        let names: Vec<String> = table.rows.iter().map(|row| table.name_of(row)).collect();
        assert_eq!(names, ["c", "a", "b"]);
        assert_eq!(table.column("reads"), Some(1));
    }

    #[test]
    fn a_row_may_decide_what_its_numbers_are() {
        let heading = Heading::new("value", "value", Measure::OfRow, "");
        let row = Row::from([Value::Number(1.0)]);
        assert_eq!(row.measure(&heading), Measure::Count);
        assert_eq!(row.of(Measure::Nanoseconds).measure(&heading), Measure::Nanoseconds);
    }
}
