//! Rows of the two tables that every recording has besides its series: histograms and events.

use std::path::Path;

use blockstone_base::LatencyHistogram;
use blockstone_base::load::Op;

use crate::error::RecordError;
use crate::table::{Data, Field, Numbers, PHASE, T_NS, Table, Type, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencyClock {
    /// From the intended start of the operation: time spent waiting for a slow one counts.
    Intended,
    /// From submission: the latency of the device alone.
    Submitted,
    /// From the intended start to the end of the window, for operations that had not completed by
    /// then: each lasted at least as long.
    Unfinished,
}

impl LatencyClock {
    pub const ALL: [Self; 3] = [Self::Intended, Self::Submitted, Self::Unfinished];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Intended => "intended",
            Self::Submitted => "submitted",
            Self::Unfinished => "unfinished",
        }
    }
}

/// Latencies of one operation in one second, or in 50 ms of it, of one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramRow {
    /// Index into the manifest's phases.
    pub phase: i32,
    /// Whole seconds from the recording's start to the second in which the operations completed.
    pub second: u32,
    /// The 50 ms interval of that second, 0 to 19; `None` for the whole second.
    pub page: Option<u8>,
    pub op: Op,
    /// Source of the operations: empty for the main load, `background` for the second one. In a
    /// run, what was timed: an object of the series `operation` or `event`.
    pub role: String,
    /// Whether the operations completed inside the phase's window; a second that contains an edge
    /// of the window is split into two rows.
    pub windowed: bool,
    pub clock: LatencyClock,
    /// Latencies of this interval alone, not cumulative.
    pub histogram: LatencyHistogram,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the recording began, in nanoseconds.
    pub t_ns: u64,
    /// Index into the manifest's phases, −1 between phases.
    pub phase: i32,
    /// Kind of event: `skipped`, for example, when there was no time for a phase.
    pub kind: String,
    pub detail: String,
}

pub(crate) const SECOND: &str = "second";
const PAGE: &str = "page";
pub(crate) const HISTOGRAMS: &str = "histograms";
/// Maximum number of samples per row, so that the sums of all rows stay exact in 64 bits.
const MOST_SAMPLES: u64 = 1 << 32;
pub(crate) const EVENTS: &str = "events";

pub(crate) fn histogram_fields() -> Vec<Field> {
    vec![
        Field::new(PHASE, Type::Index),
        Field::new(SECOND, Type::Index),
        Field::new("op", Type::Text),
        Field::new("role", Type::Text),
        Field::new("windowed", Type::Flag),
        Field::new("clock", Type::Text),
        Field::new("count", Type::Number),
        Field::new("sum_ns", Type::Number),
        Field::new("beyond", Type::Number),
        Field::new("min_ns", Type::Number),
        Field::new("max_ns", Type::Number),
        Field::nullable(PAGE, Type::Number),
        Field::new("histogram", Type::Bytes),
    ]
}

pub(crate) fn event_fields() -> Vec<Field> {
    vec![
        Field::new(T_NS, Type::Number),
        Field::new(PHASE, Type::Index),
        Field::new("kind", Type::Text),
        Field::new("detail", Type::Text),
    ]
}

pub(crate) fn push_histogram(table: &mut Table, row: HistogramRow) -> Result<(), RecordError> {
    let HistogramRow { phase, second, page, op, role, windowed, clock, histogram } = row;
    let second = i32::try_from(second)
        .map_err(|_| RecordError::rejected(HISTOGRAMS, "second is beyond 68 years"))?;
    let numbers = [
        number(HISTOGRAMS, "count", histogram.count())?,
        // The sum is 128 bits wide in memory because a long run may need them. The sum of one
        // second does not: 63 bits are 292 years of waiting.
        number(HISTOGRAMS, "sum_ns", histogram.sum_ns())?,
        number(HISTOGRAMS, "beyond", histogram.beyond())?,
        number(HISTOGRAMS, "min_ns", histogram.min_ns())?,
        number(HISTOGRAMS, "max_ns", histogram.max_ns())?,
    ];
    let key = [
        Value::Index(phase),
        Value::Index(second),
        Value::Text(op.name()),
        Value::Text(&role),
        Value::Flag(windowed),
        Value::Text(clock.name()),
    ];
    let encoded = Value::Bytes(histogram.encode());
    let page = page.map_or(Value::Empty, |page| Value::Number(page.into()));
    table.push(key.into_iter().chain(numbers.map(Value::Number)).chain([page, encoded]));
    Ok(())
}

/// Converts a number that must fit Parquet's signed 64 bits.
pub(crate) fn number(
    table: &str,
    column: &str,
    value: impl TryInto<i64>,
) -> Result<i64, RecordError> {
    value.try_into().map_err(|_| {
        RecordError::rejected(format!("{table}, column {column}"), "the value exceeds 63 bits")
    })
}

/// Passes each row on separately: a histogram takes a hundred times its encoded size.
pub(crate) fn histograms(
    table: &Table,
    path: &Path,
    each: &mut dyn FnMut(HistogramRow) -> Result<(), &'static str>,
) -> Result<(), RecordError> {
    let cells = Cells::new(table, path);
    let (phases, seconds) = (cells.index(PHASE)?, cells.index(SECOND)?);
    let (ops, roles, clocks) = (cells.text("op")?, cells.text("role")?, cells.text("clock")?);
    let (counts, sums) = (cells.number("count")?, cells.number("sum_ns")?);
    let beyond = cells.number("beyond")?;
    let windowed = cells.flag("windowed")?;
    let encodings = cells.bytes("histogram")?;
    // Versions that did not keep 50 ms intervals have no such column.
    let pages = cells.numbers(PAGE).ok();
    let damaged = |row: usize, why: String| RecordError::damaged(path, format!("row {row}: {why}"));
    (0..table.len()).try_for_each(|row| {
        let op = [Op::Read, Op::Write, Op::Commit, Op::Mixed]
            .into_iter()
            .find(|op| op.name() == ops[row]);
        let clock = LatencyClock::ALL.into_iter().find(|clock| clock.name() == clocks[row]);
        let (Some(op), Some(clock)) = (op, clock) else {
            return Err(damaged(row, format!("unknown {} or {}", ops[row], clocks[row])));
        };
        let histogram = LatencyHistogram::decode(
            &encodings[row],
            u128::try_from(sums[row]).unwrap_or(0),
            u64::try_from(beyond[row]).unwrap_or(0),
        )
        .map_err(|e| damaged(row, e.to_string()))?;
        if histogram.count() as i64 != counts[row] {
            let why = format!("holds {} of {} samples", histogram.count(), counts[row]);
            return Err(damaged(row, why));
        }
        if histogram.count() > MOST_SAMPLES || histogram.beyond() > histogram.count() {
            return Err(damaged(row, "no second holds that many samples".to_owned()));
        }
        let found = HistogramRow {
            phase: phases[row],
            second: u32::try_from(seconds[row]).unwrap_or(0),
            page: pages.and_then(|pages| u8::try_from(pages.get(row)?).ok()),
            op,
            role: roles[row].to_owned(),
            windowed: windowed[row],
            clock,
            histogram,
        };
        each(found).map_err(|why| damaged(row, why.to_owned()))
    })
}

pub(crate) fn events(table: &Table, path: &Path) -> Result<Vec<Event>, RecordError> {
    let cells = Cells::new(table, path);
    let (instants, phases) = (cells.number(T_NS)?, cells.index(PHASE)?);
    let (kinds, details) = (cells.text("kind")?, cells.text("detail")?);
    let event = |row: usize| Event {
        t_ns: u64::try_from(instants[row]).unwrap_or(0),
        phase: phases[row],
        kind: kinds[row].to_owned(),
        detail: details[row].to_owned(),
    };
    Ok((0..table.len()).map(event).collect())
}

/// Columns of a table by name; a missing column means that the file is damaged.
pub(crate) struct Cells<'a> {
    table: &'a Table,
    path: &'a Path,
}

impl<'a> Cells<'a> {
    pub fn new(table: &'a Table, path: &'a Path) -> Self {
        Self { table, path }
    }

    fn missing(&self, name: &str) -> RecordError {
        RecordError::damaged(self.path, format!("it has no column `{name}`"))
    }

    pub fn number(&self, name: &str) -> Result<&'a [i64], RecordError> {
        Ok(&self.numbers(name)?.values)
    }

    /// Returns the numbers of a column that may be empty.
    pub fn numbers(&self, name: &str) -> Result<&'a Numbers, RecordError> {
        match self.table.column(name) {
            Some(Data::Number(numbers)) => Ok(numbers),
            _ => Err(self.missing(name)),
        }
    }

    fn index(&self, name: &str) -> Result<&'a [i32], RecordError> {
        match self.table.column(name) {
            Some(Data::Index(values)) => Ok(values),
            _ => Err(self.missing(name)),
        }
    }

    pub fn flag(&self, name: &str) -> Result<&'a [bool], RecordError> {
        match self.table.column(name) {
            Some(Data::Flag(values)) => Ok(values),
            _ => Err(self.missing(name)),
        }
    }

    fn text(&self, name: &str) -> Result<Vec<&'a str>, RecordError> {
        match self.table.column(name) {
            Some(Data::Text(texts)) => {
                Ok((0..self.table.len()).map(|row| texts.get(row).unwrap_or_default()).collect())
            }
            _ => Err(self.missing(name)),
        }
    }

    fn bytes(&self, name: &str) -> Result<&'a [Vec<u8>], RecordError> {
        match self.table.column(name) {
            Some(Data::Bytes(values)) => Ok(values),
            _ => Err(self.missing(name)),
        }
    }
}
