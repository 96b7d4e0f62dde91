//! Turns rates back into the counters that they were derived from.
//!
//! A tool prints rounded rates, and times in whole seconds. A counter that grows by rate × time
//! yields the printed rate again over the same time. If the true length of an interval differs from
//! the printed one (1.06 s, not 1 s), it can be derived from the counts, which are whole numbers:
//! it is the nearest length, in the hundredths of a second that sysstat uses, with which every
//! printed rate is a whole count.
//!
//! A rate that cannot be, such as one of a counter that went back, is unknown in its interval: a
//! row in the middle of the interval has no value for it, and the counter goes on from where it
//! was.

use std::collections::BTreeMap;

use blockstone_base::column::{Cell, Kind, Reading, Schema, Unit};
use blockstone_probe::host;

use super::writer::{empty_row, is_state};
use super::{Failure, Sink, Snapshot};

const CENTISECOND_NS: u64 = 10_000_000;
/// Largest difference of an interval from its printed times, which are in whole seconds.
const SLACK_NS: u64 = 1_500_000_000;
/// The rounding error of two decimals.
const ROUNDING: f64 = 0.005;

/// Nothing has more requests, packets or events a second.
const COUNT_MAX: f64 = 1e9;
/// Nothing moves more bytes a second.
const BYTES_MAX: f64 = 1e14;
/// No million things wait at once, and none longer than a day.
const TIME_MAX: f64 = 1e15;

/// The value of a column over an interval. One that is not a number or cannot be is unknown in this
/// interval.
#[derive(Clone, Debug)]
pub enum Amount {
    /// Growth of a counter per second, in its unit.
    PerSecond(f64),
    /// Growth of a counter for each step of another, such as the time of each request.
    Each(&'static str, f64),
    /// A level at the end.
    Level(u64),
    Text(String),
}

/// The columns of one object over an interval.
#[derive(Clone, Debug)]
pub struct IntervalRow {
    schema: &'static Schema,
    object: String,
    amounts: Vec<Option<Amount>>,
    /// The column after the one that was set last.
    next: usize,
}

impl IntervalRow {
    pub fn new(schema: &'static Schema, object: &str) -> Self {
        let amounts = schema.columns.iter().map(|_| None).collect();
        Self { schema, object: object.to_owned(), amounts, next: 0 }
    }

    /// Sets a column; `None` leaves it unmeasured. Setting columns in order is fastest.
    pub fn set(&mut self, column: &str, amount: Option<Amount>) {
        let columns = self.schema.columns;
        let from = |start: usize| columns[start..].iter().position(|it| it.name == column);
        let at = from(self.next).map(|at| self.next + at).or_else(|| from(0));
        debug_assert!(at.is_some(), "{} has no column {column}", self.schema.probe);
        if let Some(at) = at {
            self.amounts[at] = amount;
            self.next = at + 1;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Nanoseconds since 1970.
    pub from_ns: u64,
    /// Later than `from_ns`.
    pub to_ns: u64,
    /// Whether its length was derived from whole counts.
    pub exact: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Timeline {
    end_ns: Option<u64>,
}

impl Timeline {
    /// Starts over at about this time: the time until the next interval is unknown.
    pub fn restart(&mut self, at_ns: u64) {
        let after = self.end_ns.map_or(0, |end_ns| end_ns + CENTISECOND_NS);
        self.end_ns = Some(at_ns.max(after));
    }

    /// Returns the interval of about this length that ends at about this time. `counts` are rates
    /// of counted events per second, with two decimals. It begins at the end of the previous
    /// interval, unless there is a gap between them.
    pub fn next(&mut self, stamp_ns: u64, about_ns: u64, counts: &[f64]) -> Span {
        let begins_ns = stamp_ns.saturating_sub(about_ns);
        let from_ns = match self.end_ns {
            Some(end_ns) if begins_ns.abs_diff(end_ns) <= SLACK_NS => end_ns,
            Some(end_ns) => begins_ns.max(end_ns + CENTISECOND_NS),
            None => begins_ns,
        };
        let found_ns = length_ns(about_ns, counts);
        let (to_ns, exact) =
            (from_ns.saturating_add(found_ns.unwrap_or(about_ns)), found_ns.is_some());
        let span = match to_ns.abs_diff(stamp_ns) {
            0..=SLACK_NS => Span { from_ns, to_ns, exact },
            // The derived length contradicts the clock.
            _ => Span { from_ns, to_ns: stamp_ns.max(from_ns + CENTISECOND_NS), exact: false },
        };
        self.end_ns = Some(span.to_ns);
        span
    }
}

/// Returns the length nearest to `about_ns` with which these rates are whole counts; `None` if
/// there is none, or if the interval is so long that any length would fit.
fn length_ns(about_ns: u64, counts: &[f64]) -> Option<u64> {
    let about = about_ns / CENTISECOND_NS;
    let counts = || counts.iter().filter(|rate| (0.0..=COUNT_MAX).contains(*rate));
    let fits = |length: &u64| {
        let seconds = *length as f64 / 100.0;
        let hidden = ROUNDING * seconds + 1e-6;
        let is_whole = |rate: &f64| (rate * seconds - (rate * seconds).round()).abs() <= hidden;
        hidden < 0.25 && counts().all(is_whole)
    };
    let near = (0..100).flat_map(|off| [about.checked_add(off), about.checked_sub(off)]);
    let found = near.flatten().filter(|length| *length > 0).find(fits)?;
    Some(found * CENTISECOND_NS)
}

/// Counters reconstructed from rates.
pub struct Ledger<'a, 's> {
    sink: &'a mut Sink<'s>,
    /// Totals by probe and object.
    known: BTreeMap<&'static str, BTreeMap<String, Totals>>,
    objects: usize,
    end_ns: Option<u64>,
    /// Number of values that cannot be.
    impossible: usize,
}

struct Totals {
    schema: &'static Schema,
    sums: Vec<i64>,
    /// Whether each counter ever had a value, and those that have none in the interval being added.
    known: Vec<bool>,
    lacking: Vec<usize>,
    /// Growth in the last interval.
    steps: Vec<i64>,
    /// Fractions of a step, carried over to the next one.
    rests: Vec<f64>,
    /// Index of its row in the interval being added. Of two rows with one name, the first one
    /// counts.
    row: Option<usize>,
    /// Whether it has a row at the end of the last interval.
    was_present: bool,
}

impl<'a, 's> Ledger<'a, 's> {
    /// Creates a ledger that passes its snapshots to a sink.
    pub fn new(sink: &'a mut Sink<'s>) -> Self {
        Self { sink, known: BTreeMap::new(), objects: 0, end_ns: None, impossible: 0 }
    }

    /// Returns the end of the last interval.
    pub fn end_ns(&self) -> Option<u64> {
        self.end_ns
    }

    /// Adds the rows of an interval. An object without a row or a value becomes unknown in it, and
    /// so does time not covered by any interval.
    pub fn add(&mut self, span: Span, rows: &[IntervalRow]) -> Result<(), Failure> {
        let is_gap = self.end_ns.is_some_and(|end_ns| end_ns != span.from_ns);
        if let Some(end_ns) = self.end_ns.filter(|_| is_gap) {
            let at_ns = end_ns + (span.from_ns - end_ns) / 2;
            let readings = self.readings(|totals| Some(empty_row(totals.schema)));
            (self.sink)(Snapshot { at_ns, readings })?;
        }
        let mut begin = Vec::new();
        let mut found = 0;
        for (index, row) in rows.iter().enumerate() {
            let IntervalRow { schema, object, .. } = row;
            let objects = self.known.entry(schema.probe).or_default();
            if !objects.contains_key(object) {
                objects.insert(object.clone(), Totals::of(schema));
                self.objects += 1;
            }
            let Some(totals) = objects.get_mut(object) else { continue };
            found += usize::from(totals.row.is_none());
            totals.row.get_or_insert(index);
            self.impossible += totals.judge(row);
            if is_gap || !std::mem::replace(&mut totals.was_present, true) {
                begin.push(reading(schema.probe, object, totals.cells(row, false)));
            }
        }
        (self.sink)(Snapshot { at_ns: span.from_ns, readings: begin })?;
        self.middle(span, rows, found)?;
        let readings = self.readings(|totals| {
            totals.was_present = totals.row.is_some();
            let row = &rows[totals.row.take()?];
            totals.advance(span, row);
            Some(totals.cells(row, true))
        });
        self.end_ns = Some(span.to_ns);
        (self.sink)(Snapshot { at_ns: span.to_ns, readings })
    }

    /// Adds rows, in the middle of an interval, for what is unknown in it.
    fn middle(&mut self, span: Span, rows: &[IntervalRow], found: usize) -> Result<(), Failure> {
        let mut all = self.known.values().flat_map(BTreeMap::values);
        if found == self.objects && !all.any(Totals::has_gaps) {
            return Ok(());
        }
        let readings = self.readings(|totals| match totals.row {
            None => Some(empty_row(totals.schema)),
            Some(index) => totals.has_gaps().then(|| totals.gaps(&rows[index])),
        });
        let at_ns = span.from_ns + (span.to_ns - span.from_ns) / 2;
        (self.sink)(Snapshot { at_ns, readings })
    }

    /// Returns a note on rates that cannot be.
    pub fn note(&self) -> Option<String> {
        let count = self.impossible;
        let what = "values that cannot be, unknown in their intervals";
        (count > 0).then(|| format!("{what}: {count}"))
    }

    /// Returns readings of all objects for which there are cells.
    fn readings(&mut self, cells: impl Fn(&mut Totals) -> Option<Vec<Cell>>) -> Vec<Reading> {
        let all = self.known.iter_mut();
        let all = all.flat_map(|(probe, objects)| objects.iter_mut().map(move |it| (*probe, it)));
        all.filter_map(|(probe, (object, totals))| Some(reading(probe, object, cells(totals)?)))
            .collect()
    }
}

fn reading(probe: &'static str, object: &str, cells: Vec<Cell>) -> Reading {
    Reading { probe, object: object.to_owned(), cells }
}

impl Totals {
    fn of(schema: &'static Schema) -> Self {
        let width = schema.columns.len();
        Self {
            schema,
            sums: vec![0; width],
            known: vec![false; width],
            lacking: Vec::new(),
            steps: vec![0; width],
            rests: vec![0.0; width],
            row: None,
            was_present: false,
        }
    }

    /// Finds the counters that have no value in an interval although they have one in others;
    /// returns the number of values that cannot be.
    fn judge(&mut self, row: &IntervalRow) -> usize {
        self.lacking.clear();
        let mut impossible = 0;
        for (index, amount) in row.amounts.iter().enumerate() {
            let is_known = match amount {
                Some(Amount::PerSecond(_) | Amount::Each(..)) => {
                    self.known[index] = true;
                    amount.as_ref().is_some_and(|amount| can_be(amount, self.schema, index))
                }
                _ => !self.known[index],
            };
            if !is_known {
                self.lacking.push(index);
                impossible += usize::from(amount.is_some());
            }
        }
        // A mean is known only with its events.
        for (index, amount) in row.amounts.iter().enumerate() {
            let Some(Amount::Each(what, _)) = amount else { continue };
            let is_of = |of: &usize| self.schema.columns[*of].name == *what;
            if !self.lacking.contains(&index) && self.lacking.iter().any(is_of) {
                self.lacking.push(index);
            }
        }
        impossible
    }

    /// Whether a row in the middle of the interval shows what is unknown. One of the host would be
    /// a tick.
    fn has_gaps(&self) -> bool {
        !self.lacking.is_empty() && self.schema.probe != host::SCHEMA.probe
    }

    fn advance(&mut self, span: Span, row: &IntervalRow) {
        let seconds = (span.to_ns - span.from_ns) as f64 / 1e9;
        for (index, amount) in row.amounts.iter().enumerate() {
            let before = self.sums[index];
            if let Some(Amount::PerSecond(rate)) = amount
                && !self.lacking.contains(&index)
            {
                self.step(index, rate * seconds, span.exact);
            }
            self.steps[index] = self.sums[index] - before;
        }
        for (index, amount) in row.amounts.iter().enumerate() {
            let Some(Amount::Each(what, size)) = amount else { continue };
            let of = self.schema.columns.iter().position(|column| column.name == *what);
            let Some(of) = of.filter(|_| !self.lacking.contains(&index)) else { continue };
            self.step(index, self.steps[of] as f64 * size, true);
        }
    }

    /// Advances a counter by the whole number nearest to `moved`. The rest is carried over to the
    /// next step, unless it is known to be a rounding error.
    fn step(&mut self, index: usize, moved: f64, exact: bool) {
        let moved = moved + if exact { 0.0 } else { self.rests[index] };
        let whole = moved.round().max(0.0);
        self.rests[index] = if exact { 0.0 } else { moved - whole };
        self.sums[index] = self.sums[index].saturating_add(whole as i64);
    }

    /// Returns the current cells, including the levels at the end of the interval.
    fn cells(&self, row: &IntervalRow, at_end: bool) -> Vec<Cell> {
        // A row of the host is a tick: in its middle there can be none.
        let is_lacking = |index| !self.has_gaps() && self.lacking.contains(&index);
        let cell = |(index, amount): (usize, &Option<Amount>)| match amount {
            Some(Amount::Text(text)) => Cell::Text(text.clone()),
            Some(Amount::Level(level)) if at_end => Cell::from(*level),
            _ if !self.known[index] || is_lacking(index) => Cell::Unmeasured,
            _ => Cell::Value(self.sums[index]),
        };
        let cells: Vec<Cell> = row.amounts.iter().enumerate().map(cell).collect();
        debug_assert!(cells.iter().enumerate().all(|(index, cell)| match cell {
            Cell::Text(_) => is_state(self.schema, index),
            Cell::Value(_) => self.schema.columns[index].kind != Kind::State,
            Cell::Unmeasured => true,
        }));
        cells
    }

    /// Returns cells inside an interval in which some are unknown.
    fn gaps(&self, row: &IntervalRow) -> Vec<Cell> {
        let mut cells = self.cells(row, false);
        self.lacking.iter().for_each(|index| cells[*index] = Cell::Unmeasured);
        cells
    }
}

/// Whether a counter can have grown like this. A mean cannot be known without its events.
fn can_be(amount: &Amount, schema: &Schema, index: usize) -> bool {
    let (value, most) = match amount {
        Amount::PerSecond(rate) => {
            let most = match schema.columns[index].unit {
                Unit::Bytes => BYTES_MAX,
                Unit::Nanoseconds => TIME_MAX,
                _ => COUNT_MAX,
            };
            (*rate, most)
        }
        Amount::Each(_, size) => (*size, TIME_MAX),
        Amount::Level(_) | Amount::Text(_) => return true,
    };
    (0.0..=most).contains(&value)
}

#[cfg(test)]
mod tests {
    use blockstone_probe::network;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_true_length_is_the_nearest_with_which_counts_are_whole() {
        assert_eq!(length_ns(S, &[190.57]), Some(1_060_000_000), "202 in 1.06 s");
        assert_eq!(length_ns(S, &[190.0, 3.0]), Some(S));
        assert_eq!(length_ns(3 * S, &[2031.67, 54.67, 1.0]), Some(3 * S));
        assert_eq!(length_ns(S, &[0.5, 0.123]), None, "no length up to two seconds");
        assert_eq!(length_ns(600 * S, &[0.35]), None, "any would do");
        assert_eq!(length_ns(S, &[]), Some(S));
    }

    #[test]
    fn an_interval_longer_than_time_itself_ends_at_its_stamp() {
        let mut line = Timeline::default();
        line.next(1_700_000_000 * S, S, &[]);
        let span = line.next(1_700_000_100 * S, u64::MAX, &[]);
        assert_eq!((span.to_ns, span.exact), (1_700_000_100 * S, false));
    }

    fn looks(steps: &[(Span, Vec<IntervalRow>)]) -> Vec<Snapshot> {
        let mut looks = Vec::new();
        let mut sink = |snapshot| {
            looks.push(snapshot);
            Ok(())
        };
        let mut ledger = Ledger::new(&mut sink);
        for (span, rows) in steps {
            ledger.add(*span, rows).unwrap();
        }
        looks
    }

    fn row_of(object: &str, packets: f64) -> IntervalRow {
        let mut row = IntervalRow::new(&network::SCHEMA, object);
        row.set("received_packets", Some(Amount::PerSecond(packets)));
        row
    }

    fn packets(snapshot: &Snapshot, object: &str) -> Option<Cell> {
        let reading = snapshot.readings.iter().find(|reading| reading.object == object)?;
        Some(reading.cells[1].clone())
    }

    #[test]
    fn small_rates_add_up_and_a_gap_is_unknown() {
        let span = |from: u64| Span { from_ns: from * S, to_ns: (from + 1) * S, exact: false };
        let steps: Vec<_> = [0, 1, 2, 3, 9].map(|at| (span(at), vec![row_of("eth0", 0.5)])).into();
        let looks = looks(&steps);
        let seen: Vec<_> = looks.iter().map(|snapshot| packets(snapshot, "eth0")).collect();
        let value = |value| Some(Cell::Value(value));
        assert_eq!(seen[..2], [value(0), value(1)]);
        assert_eq!(seen.iter().flatten().filter(|cell| **cell == Cell::Unmeasured).count(), 1);
        let gap = seen.iter().position(|cell| *cell == Some(Cell::Unmeasured)).unwrap();
        assert_eq!((looks[gap].at_ns, &seen[gap - 1]), (6 * S + S / 2, &value(2)));
        assert_eq!((looks[gap + 1].at_ns, &seen[gap + 1]), (9 * S, &value(2)));
    }

    #[test]
    fn what_comes_begins_at_zero_and_what_goes_is_unknown() {
        let span = |from: u64| Span { from_ns: from * S, to_ns: (from + 1) * S, exact: true };
        let looks = looks(&[
            (span(0), vec![row_of("eth0", 4.0)]),
            (span(1), vec![row_of("eth0", 4.0), row_of("eth1", 7.0)]),
            (span(2), vec![row_of("eth1", 7.0)]),
        ]);
        let of = |object| looks.iter().map(|l| packets(l, object)).collect::<Vec<_>>();
        let value = |value| Some(Cell::Value(value));
        assert_eq!(of("eth1"), [None, None, value(0), value(7), None, None, value(14)]);
        assert_eq!(of("eth0")[3..], [value(8), None, Some(Cell::Unmeasured), None]);
    }

    /// Four packets a second, unknown in the second of three seconds.
    const AFTER_A_GAP: [(u64, Cell); 5] = [
        (0, Cell::Value(0)),
        (S, Cell::Value(4)),
        (S + S / 2, Cell::Unmeasured),
        (2 * S, Cell::Value(4)),
        (3 * S, Cell::Value(8)),
    ];

    #[test]
    fn what_cannot_be_is_unknown_in_its_interval_alone() {
        let span = |from: u64| Span { from_ns: from * S, to_ns: (from + 1) * S, exact: true };
        for odd in [1.8e19, -1.0, f64::NAN, f64::INFINITY] {
            let rates = [4.0, odd, 4.0];
            let steps =
                rates.iter().zip(0..).map(|(rate, at)| (span(at), vec![row_of("eth0", *rate)]));
            let looks = looks(&steps.collect::<Vec<_>>());
            let seen = looks.iter().filter_map(|look| Some((look.at_ns, packets(look, "eth0")?)));
            assert_eq!(seen.collect::<Vec<_>>(), AFTER_A_GAP, "{odd}");
        }
    }

    #[test]
    fn what_returns_is_known_from_then_on() {
        let span = |from: u64| Span { from_ns: from * S, to_ns: (from + 1) * S, exact: true };
        let eth0 = || row_of("eth0", 4.0);
        let eth1 = || row_of("eth1", 1.0);
        let looks = looks(&[
            (span(0), vec![eth0(), eth1()]),
            (span(1), vec![eth1()]),
            (span(2), vec![eth0(), eth1()]),
        ]);
        let seen = looks.iter().filter_map(|look| Some((look.at_ns, packets(look, "eth0")?)));
        assert_eq!(seen.collect::<Vec<_>>(), AFTER_A_GAP);
    }

    #[test]
    fn the_times_of_intervals_follow_their_lengths_and_never_leave_the_clock() {
        let mut line = Timeline::default();
        line.restart(100 * S);
        let first = line.next(101 * S, S, &[190.57]);
        assert_eq!((first.from_ns, first.to_ns), (100 * S, 101 * S + 60_000_000));
        assert!(first.exact);
        let after_a_gap = line.next(200 * S, S, &[5.0]);
        assert_eq!((after_a_gap.from_ns, after_a_gap.to_ns), (199 * S, 200 * S));
        for second in 201..400 {
            let span = line.next(second * S, S, &[1.0 / 1.02]);
            assert!(span.to_ns.abs_diff(second * S) <= SLACK_NS, "{second}");
        }
    }
}
