//! A view: how a table is made of an interval.

use std::borrow::Cow;

use blockstone_base::database::SESSION;
pub(crate) use blockstone_base::table::Measure::{Bytes, Count, Nanoseconds, Share, Text};
use blockstone_base::table::{self, Row};
pub use blockstone_base::table::{
    Heading, Measure, Merge, Shape, Table, Value, column, count, flow, level, mean_of, share,
    share_of, text, time, total, unmerged,
};
use blockstone_figures::{Interval, Known, ratio, sum};

#[derive(Debug)]
pub struct View {
    /// Its name in commands and documents.
    pub name: &'static str,
    pub title: &'static str,
    pub doc: &'static str,
    /// The probe without which there is nothing to show.
    pub probe: &'static str,
    pub shape: Shape,
    /// Its columns. The leading text columns name a row.
    pub columns: &'static [Heading],
    /// Makes its rows, each with a value for each column.
    pub rows: fn(&Interval<'_>) -> Vec<Vec<Value>>,
}

impl View {
    /// The table of an interval; none when its probe was not there.
    pub fn table(&self, interval: &Interval<'_>) -> Option<Table> {
        interval.has(self.probe).then(|| Table {
            about: self.doc.into(),
            shape: self.shape,
            rows: (self.rows)(interval).into_iter().map(Row::from).collect(),
            ..Table::new(self.name, self.title, Cow::Borrowed(self.columns))
        })
    }

    /// Whether it shows samples of sessions, and so follows a [`Focus`](crate::Focus).
    pub fn is_sampled(&self) -> bool {
        self.probe == SESSION.probe
    }

    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// What names a row: its texts before the first number.
    pub fn name_of(&self, row: &[Value]) -> String {
        table::name_of(self.columns, row)
    }
}

/// A column of mean sizes of requests, where the column `events` has their rate.
pub(crate) const fn mean_size(
    events: &'static str,
    key: &'static str,
    heading: &'static str,
    doc: &'static str,
) -> Heading {
    mean_of(events, key, heading, Bytes, doc)
}

/// A column of mean times of events, where the column `events` has their rate.
pub(crate) const fn mean_time(
    events: &'static str,
    key: &'static str,
    heading: &'static str,
    doc: &'static str,
) -> Heading {
    mean_of(events, key, heading, Nanoseconds, doc)
}

/// A row about each object of the view's probe.
pub(crate) fn of_objects(interval: &Interval<'_>, view: &View) -> Vec<Vec<Value>> {
    let row = |object| row_of(interval, view.probe, object, view.columns);
    interval.objects(view.probe).into_iter().map(row).collect()
}

/// A row about one object of a probe: its name, then what [`derived`] makes of the other columns.
pub(crate) fn row_of(
    interval: &Interval<'_>,
    probe: &str,
    object: &str,
    columns: &[Heading],
) -> Vec<Value> {
    let cells = columns[1..].iter().map(|heading| derived(interval, probe, &[object], heading));
    std::iter::once(Value::from(object)).chain(cells).collect()
}

/// What the key of a column says of the recorded columns behind it, summed over `objects`:
/// `reads_per_s` is the counter `reads`, `cpu_share` the time `cpu_ns`, `read_size_bytes` and
/// `read_await_ns` are `read_bytes` and `read_ns` for each event of the column that weights them;
/// any other key is a level or a state.
pub(crate) fn derived(
    interval: &Interval<'_>,
    probe: &str,
    objects: &[&str],
    heading: &Heading,
) -> Value {
    let key = &*heading.key;
    let moved = |column: &str| -> Known {
        sum(objects.iter().map(|object| interval.moved(probe, object, column)))
    };
    if let Merge::WeightedBy(events) = heading.merge {
        let amount = key.replace("_size_bytes", "_bytes").replace("_await_ns", "_ns");
        return ratio(moved(&amount), moved(events.trim_end_matches("_per_s"))).into();
    }
    let known = if let Some(counter) = key.strip_suffix("_per_s") {
        moved(counter).map(|moved| moved / interval.seconds())
    } else if let Some(time) = key.strip_suffix("_share") {
        moved(&format!("{time}_ns")).map(|moved| moved / interval.ns())
    } else if heading.measure == Text {
        return objects.first().and_then(|object| interval.text(probe, object, key)).into();
    } else {
        sum(objects.iter().map(|object| interval.level(probe, object, key)))
    };
    known.into()
}

/// Whether a row has a number that is not zero.
pub(crate) fn moves(row: &[Value]) -> bool {
    row.iter().any(|value| matches!(value, Value::Number(number) if *number != 0.0))
}

/// Rows sorted by a column: numbers descending, texts alphabetically, missing cells last.
pub(crate) fn sorted(mut rows: Vec<Vec<Value>>, column: usize) -> Vec<Vec<Value>> {
    rows.sort_by(|a, b| table::order(&a[column], &b[column]));
    rows
}
