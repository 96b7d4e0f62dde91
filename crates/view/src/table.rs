//! Views: how a table is made from an interval.

use std::borrow::Cow;
use std::collections::VecDeque;

use blockstone_base::database::{SESSION, SESSION_STATISTICS};
pub(crate) use blockstone_base::table::Measure::{Bytes, Count, Nanoseconds, Share, Text};
use blockstone_base::table::{self, Row};
pub use blockstone_base::table::{
    Heading, Measure, Merge, Shape, Table, Value, column, count, flow, level, mean_of, share,
    share_of, text, time, total, unmerged,
};
use blockstone_figures::{History, Interval, Known, ratio, sum};

#[derive(Debug)]
pub struct View {
    /// The name in commands and documents.
    pub name: &'static str,
    pub title: &'static str,
    pub doc: &'static str,
    /// The probe that the view cannot do without.
    pub probe: &'static str,
    pub shape: Shape,
    /// The leading text columns name a row.
    pub columns: &'static [Heading],
    /// Makes the rows, each with a value for each column.
    pub rows: fn(&Interval<'_>) -> Vec<Vec<Value>>,
}

impl View {
    /// Returns the table of an interval; `None` if its probe was not recorded. If several database
    /// instances are watched, each row about one of them begins with its name.
    pub fn table(&self, interval: &Interval<'_>) -> Option<Table> {
        if !interval.has(self.probe) {
            return None;
        }
        let table = |columns| Table {
            about: self.doc.into(),
            shape: self.shape,
            folds_idle: FOLDED.contains(&self.name),
            ..Table::new(self.name, self.title, columns)
        };
        let instances = interval.instances_with(self.probe);
        if instances.is_empty() {
            let rows = (self.rows)(interval).into_iter().map(Row::from).collect();
            return Some(Table { rows, ..table(Cow::Borrowed(self.columns)) });
        }
        let own = self.columns.iter().cloned().map(within_instance);
        let columns: Vec<Heading> = std::iter::once(INSTANCE).chain(own).collect();
        let rows = instances.into_iter().map(|instance| {
            let name = || std::iter::once(Value::from(instance));
            let rows = (self.rows)(&interval.of_instance(instance)).into_iter();
            rows.map(|row| name().chain(row).collect::<Vec<_>>().into()).collect()
        });
        let rows = taking_turns(self.columns, rows.collect());
        Some(Table { rows, shape: Shape::Table, ..table(columns.into()) })
    }

    /// Whether slices of its tables say nothing about the whole, because its rows are themselves
    /// slices of time, or cover only the last seconds.
    pub fn is_of_instants(&self) -> bool {
        self.column("time").is_some()
    }

    /// Whether a history has data for this view.
    pub fn is_in(&self, history: &History) -> bool {
        history.has(self.probe)
    }

    /// Returns the number of columns of its tables of a history.
    pub fn width(&self, history: &History) -> usize {
        let of_instances = !history.interval(0, 0).instances_with(self.probe).is_empty();
        self.columns.len() + usize::from(of_instances)
    }

    /// Splits a row into the instance that it begins with, if several are watched, and its own
    /// cells.
    pub(crate) fn parts<'a>(&self, row: &'a [Value]) -> (Option<&'a str>, &'a [Value]) {
        let (before, own) = row.split_at(row.len().saturating_sub(self.columns.len()));
        match before {
            [Value::Text(instance)] => (Some(instance), own),
            _ => (None, own),
        }
    }

    /// Whether the view is about single sessions, and so follows a [`Focus`](crate::Focus).
    pub fn is_sampled(&self) -> bool {
        [SESSION.probe, SESSION_STATISTICS.probe].contains(&self.probe)
    }

    pub fn column(&self, key: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.key == key)
    }

    /// Returns the name of a row: its texts before the first number.
    pub fn name_of(&self, row: &[Value]) -> String {
        let (instance, own) = self.parts(row);
        let name = table::name_of(self.columns, own);
        instance.map_or(name.clone(), |instance| format!("{instance} {name}").trim_end().to_owned())
    }
}

/// Views of devices, many of which may be idle.
const FOLDED: [&str; 2] = ["disks", "network"];

/// The first column if several instances are watched.
pub(crate) const INSTANCE: Heading =
    text("instance", "instance", "The database, where several are watched.");

/// Adapts a column to one instance among others: shares of the whole become shares of the instance.
fn within_instance(column: Heading) -> Heading {
    let of_instance = |within| match within {
        "" => "instance",
        "role" => "instance role",
        other => other,
    };
    let merge = match column.merge {
        Merge::ShareOf { part, within } => Merge::ShareOf { part, within: of_instance(within) },
        Merge::Per { part, within } => Merge::Per { part, within: of_instance(within) },
        other => other,
    };
    Heading { merge, ..column }
}

/// Interleaves the rows of the instances: the first row of each, then the second, each followed by
/// the rows of the other instances with the same name. Like rows stand together, and the first rows
/// cover all instances.
fn taking_turns(columns: &[Heading], instances: Vec<Vec<Row>>) -> Vec<Row> {
    let name = |row: &Row| table::name_of(columns, &row[1..]);
    let mut left: Vec<VecDeque<Row>> = instances.into_iter().map(VecDeque::from).collect();
    let mut rows = Vec::new();
    while left.iter().any(|rows| !rows.is_empty()) {
        for turn in 0..left.len() {
            let Some(row) = left[turn].pop_front() else { continue };
            let wanted = name(&row);
            rows.push(row);
            let others = left.iter_mut().enumerate().filter(|(at, _)| *at != turn);
            for (_, others) in others {
                let same = others.iter().position(|row| name(row) == wanted);
                rows.extend(same.and_then(|at| others.remove(at)));
            }
        }
    }
    rows
}

/// Returns a column of mean sizes of requests, whose rate is in the column `events`.
pub(crate) const fn mean_size(
    events: &'static str,
    key: &'static str,
    heading: &'static str,
    doc: &'static str,
) -> Heading {
    mean_of(events, key, heading, Bytes, doc)
}

/// Returns a column of mean times of events, whose rate is in the column `events`.
pub(crate) const fn mean_time(
    events: &'static str,
    key: &'static str,
    heading: &'static str,
    doc: &'static str,
) -> Heading {
    mean_of(events, key, heading, Nanoseconds, doc)
}

/// Returns a row for each object of the view's probe.
pub(crate) fn of_objects(interval: &Interval<'_>, view: &View) -> Vec<Vec<Value>> {
    let row = |object| row_of(interval, view.probe, object, view.columns);
    interval.objects(view.probe).into_iter().map(row).collect()
}

/// Returns the row of one object of a probe: its name, then the other columns by [`derived`].
pub(crate) fn row_of(
    interval: &Interval<'_>,
    probe: &str,
    object: &str,
    columns: &[Heading],
) -> Vec<Value> {
    let cells = columns[1..].iter().map(|heading| derived(interval, probe, &[object], heading));
    std::iter::once(Value::from(object)).chain(cells).collect()
}

/// Derives the value of a column from the recorded columns that its key names, summed over
/// `objects`: `reads_per_s` is the counter `reads`, `cpu_share` the time `cpu_ns`,
/// `read_size_bytes` and `read_await_ns` are `read_bytes` and `read_ns` per event of the column
/// that weights them; any other key is a level or a state.
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

/// Whether a row has a nonzero number.
pub(crate) fn moves(row: &[Value]) -> bool {
    row.iter().any(|value| matches!(value, Value::Number(number) if *number != 0.0))
}

/// Sorts rows by a column: numbers descending, texts alphabetically, missing cells last.
pub(crate) fn sorted(mut rows: Vec<Vec<Value>>, column: usize) -> Vec<Vec<Value>> {
    rows.sort_by(|a, b| table::order(&a[column], &b[column]));
    rows
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_record::testing;

    use super::*;
    use crate::registry;

    #[test]
    fn rows_of_several_instances_begin_with_their_names_and_stand_side_by_side() {
        let columns = [(Kind::Counter, "waits time_ns")];
        let of = |name: &str| {
            let probe = format!("event@{name}");
            ProbeInfo { probe, ..testing::probe("event", &columns) }
        };
        let mut history = History::new(vec![of("a"), of("b")]);
        for (t_ns, by) in [(0, 0), (1_000_000_000, 1_000_000)] {
            for (instance, event, time) in
                [("a", "x", 9), ("a", "y", 1), ("b", "y", 5), ("b", "z", 2)]
            {
                let cells = vec![Cell::Value(by), Cell::Value(by * time)];
                history.push(&format!("event@{instance}"), t_ns, event, cells);
            }
        }
        let view = registry::find("events").unwrap();
        let interval = history.interval(0, 1_000_000_000);
        let table = view.table(&interval).unwrap();
        let names: Vec<String> = table.rows.iter().map(|row| view.name_of(row)).collect();
        assert_eq!(names, ["a x", "b y", "a y", "b z"]);
        assert_eq!((table.columns[0].key.as_ref(), view.width(&history)), ("instance", 5));
        let shares: Vec<&Value> = table.rows.iter().map(|row| &row[2]).collect();
        assert_eq!(shares, [9e-3, 5e-3, 1e-3, 2e-3].map(Value::Number).each_ref());
        let one = view.table(&interval.of_instance("b")).unwrap();
        assert!(one.rows.len() == 2 && one.columns[0].key == "instance", "{one:?}");
        assert!(!interval.has("session") && interval.has("event"));
    }
}
