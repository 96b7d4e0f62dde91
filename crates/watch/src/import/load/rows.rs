//! Converts intervals to rows: counters that start at zero, and an empty row inside every gap.

use std::collections::BTreeMap;

use blockstone_base::column::{Cell, Kind, Reading, Schema};
use blockstone_base::database::{LOAD, LOAD_ADVICE, LOAD_STATEMENT, LOAD_STATISTIC};
use blockstone_import::{Advice, Database, Interval, Series, Statement};

use crate::import::Snapshot;
use crate::import::writer::empty_row;

const SECOND_NS: f64 = 1e9;
const SECOND: u64 = 1_000_000_000;
const PPM: f64 = 1e6;
/// Delay of the first row of a counter that was unknown in the previous interval, as the end of
/// that interval already has a row.
const JUST_AFTER_NS: u64 = 1_000_000;
/// Larger values are left unmeasured.
const LARGEST: f64 = 9e18;

/// Returns a unique name for each database, and for each pluggable one: `CDB:PDB`.
pub fn names(series: &[Series]) -> Vec<String> {
    let plain = |series: &Series| {
        let Database { name, container, .. } = &series.database;
        let container = container.iter().map(|it| format!(":{}", it.name));
        (name.clone() + &container.collect::<String>()).replace('/', "_")
    };
    let name = |one: &Series| {
        let name = plain(one);
        let same = series.iter().filter(|other| plain(other) == name).count();
        let Database { id, container, .. } = &one.database;
        match container.as_ref().map_or(*id, |it| it.id) {
            Some(id) if same > 1 || name.is_empty() => format!("{name}-{id}"),
            _ => name,
        }
    };
    series.iter().map(name).collect()
}

/// Returns the rows of all databases, in order of time.
pub fn snapshots(series: &[Series], names: &[String]) -> Vec<Snapshot> {
    let mut tracks = Tracks::default();
    for (series, name) in series.iter().zip(names) {
        for interval in &series.intervals {
            tracks.interval(&format!("{name}/{}", interval.instance.object()), interval);
        }
    }
    let snapshot = |(at_ns, readings)| Snapshot { at_ns, readings };
    tracks.rows.into_iter().map(snapshot).collect()
}

#[derive(Default)]
struct Tracks {
    rows: BTreeMap<u64, Vec<Reading>>,
    known: BTreeMap<(&'static str, String), Track>,
}

/// One object: the current values of its counters, and the end of its last interval.
struct Track {
    sums: Vec<f64>,
    end_ns: u64,
    had: Vec<bool>,
}

impl Tracks {
    fn interval(&mut self, object: &str, interval: &Interval) {
        let at_ns = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(SECOND);
        let span = (at_ns(interval.begin_s), at_ns(interval.end_s));
        let totals = LOAD.columns.iter().map(|column| interval.totals.get(column.name));
        self.add(&LOAD, object, span, &totals.collect::<Vec<_>>());
        for statement in &interval.statements {
            let object = format!("{object}/{}", statement.id);
            self.add(&LOAD_STATEMENT, &object, span, &of_statement(statement));
        }
        for (name, total) in &interval.statistics {
            self.add(&LOAD_STATISTIC, &format!("{object}/{name}"), span, &[Some(*total)]);
        }
        for advice in &interval.advice {
            self.advice(object, span.1, advice);
        }
    }

    fn add(
        &mut self,
        schema: &'static Schema,
        object: &str,
        (begin_ns, end_ns): (u64, u64),
        values: &[Option<f64>],
    ) {
        let is_counter = |index: usize| schema.columns[index].kind == Kind::Counter;
        let has: Vec<bool> = values.iter().map(Option::is_some).collect();
        let key = (schema.probe, object.to_owned());
        let before = self.known.remove(&key);
        let is_joined = before.as_ref().is_some_and(|track| track.end_ns == begin_ns);
        let sums = match &before {
            Some(track) => track.sums.clone(),
            None => vec![0.0; values.len()],
        };
        let is_new =
            |track: &Track| (0..has.len()).any(|at| is_counter(at) && has[at] && !track.had[at]);
        if !is_joined || before.as_ref().is_some_and(is_new) {
            if let Some(track) = before.as_ref().filter(|_| !is_joined) {
                let middle_ns = track.end_ns + begin_ns.saturating_sub(track.end_ns) / 2;
                self.row(schema, object, middle_ns, empty_row(schema));
            }
            let opening = |at: usize| {
                if is_counter(at) && has[at] { cell(sums[at]) } else { Cell::Unmeasured }
            };
            let at_ns = if is_joined { begin_ns + JUST_AFTER_NS } else { begin_ns };
            self.row(schema, object, at_ns, (0..values.len()).map(opening).collect());
        }
        let mut track = Track { sums, end_ns, had: has };
        let closing = |(at, value): (usize, &Option<f64>)| match value {
            None => Cell::Unmeasured,
            Some(value) if !is_counter(at) => cell(*value),
            Some(value) => {
                track.sums[at] += value;
                cell(track.sums[at])
            }
        };
        let cells = values.iter().enumerate().map(closing).collect();
        self.row(schema, object, end_ns, cells);
        self.known.insert(key, track);
    }

    fn advice(&mut self, object: &str, at_ns: u64, advice: &Advice) {
        let object = format!("{object}/{}/{:.0}", advice.pool, advice.size_bytes);
        let cells = vec![cell(advice.size_factor * PPM), cell(advice.physical_reads)];
        self.row(&LOAD_ADVICE, &object, at_ns, cells);
    }

    fn row(&mut self, schema: &Schema, object: &str, at_ns: u64, cells: Vec<Cell>) {
        let reading = Reading { probe: schema.probe, object: object.to_owned(), cells };
        self.rows.entry(at_ns).or_default().push(reading);
    }
}

fn cell(value: f64) -> Cell {
    if (0.0..=LARGEST).contains(&value) {
        Cell::Value(value.round() as i64)
    } else {
        Cell::Unmeasured
    }
}

/// Returns the cells of a statement, in the order of the columns.
fn of_statement(statement: &Statement) -> [Option<f64>; 6] {
    [
        statement.executions,
        statement.elapsed_s.map(|seconds| seconds * SECOND_NS),
        statement.cpu_s.map(|seconds| seconds * SECOND_NS),
        statement.physical_reads,
        statement.read_ios,
        statement.logical_reads,
    ]
}
