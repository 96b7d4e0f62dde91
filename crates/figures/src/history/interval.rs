//! Growth of every counter between two instants, and the value of every level at the later one.
//!
//! An interval lies between two ticks, or between the edges of a phase's window. Every number is a
//! figure or the reason why it is missing; nothing that was not measured is shown as zero.

pub(crate) mod charges;
mod restarts;

use std::ops::Range;

use blockstone_base::LatencyHistogram;
use blockstone_base::column::{Cell, Kind, Unmeasured};
use blockstone_base::database::SESSION;
use blockstone_base::histogram::Buckets;
use blockstone_base::table::{Known, Missing};
use blockstone_record::LatencyClock;
use blockstone_record::manifest::{ColumnInfo, Phase, ProbeInfo};

use crate::focus::{Focus, INSTANCE};
use crate::sample::Sample;

use self::charges::OVERCHARGED;
use super::{History, Probe, Row, Track};

/// Growth of a counter, or why that is not known.
pub type Grown = Result<u64, Missing>;

/// A stretch of time of a [`History`].
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    history: &'a History,
    focus: Option<&'a Focus>,
    instance: Option<&'a str>,
    pub(crate) held: Option<Held>,
    /// The first tick, in nanoseconds since the beginning.
    pub from_ns: u64,
    /// The last tick, likewise.
    pub to_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Index of the phase, as rows name it.
    pub(crate) index: i32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Start and end of the phase's window.
    pub(crate) window_ns: (u64, u64),
    /// Whether the interval is only a part of the window.
    pub(crate) is_part: bool,
}

impl<'a> Interval<'a> {
    pub(crate) fn new(history: &'a History, from_ns: u64, to_ns: u64) -> Self {
        Self { history, focus: None, instance: None, held: None, from_ns, to_ns }
    }

    pub(crate) fn of_window(history: &'a History, index: usize, phase: &Phase) -> Self {
        let Phase { start_ns, end_ns, window_start_ns, window_end_ns, .. } = *phase;
        // No recording has that many phases: such an index finds no row.
        let index = i32::try_from(index).unwrap_or(i32::MAX);
        let window_ns = (window_start_ns, window_end_ns);
        let held = Some(Held { index, start_ns, end_ns, window_ns, is_part: false });
        Self { held, ..Self::new(history, window_start_ns, window_end_ns) }
    }

    /// Returns a part of a window, between two instants in it. The growth in adjacent parts adds up
    /// to the growth in the window, and is known if that is: an inner edge needs no row of its own,
    /// since a counter has the value of its last row there.
    #[must_use]
    pub fn part(&self, from_ns: u64, to_ns: u64) -> Self {
        let held = self.held.map(|held| Held { is_part: true, ..held });
        Self { held, from_ns, to_ns, ..*self }
    }

    pub fn is_part(&self) -> bool {
        self.part_of().is_some()
    }

    /// Returns the window of which this is a part.
    fn part_of(&self) -> Option<(Held, Self)> {
        let held = self.held.filter(|held| held.is_part)?;
        let (from_ns, to_ns) = held.window_ns;
        let whole = Some(Held { is_part: false, ..held });
        Some((held, Self { held: whole, from_ns, to_ns, ..*self }))
    }

    /// Returns the same interval with only those samples of sessions that the focus admits. What is
    /// not taken from samples stays as it is. A focus on one of several instances narrows
    /// everything down to that instance.
    #[must_use]
    pub fn only(self, focus: &'a Focus) -> Self {
        let instance = focus.value(INSTANCE).filter(|it| self.instances().contains(it));
        Self { focus: Some(focus), instance: instance.or(self.instance), ..self }
    }

    /// Returns the same interval for one of several database instances: of a series that each of
    /// them has, it sees that of this instance.
    #[must_use]
    pub fn of_instance(self, instance: &'a str) -> Self {
        Self { instance: Some(instance), ..self }
    }

    /// Returns the instance that is selected, `None` if all are or only one was watched.
    pub fn instance(&self) -> Option<&'a str> {
        self.instance
    }

    /// Returns the selected instances in the order in which they were named. Empty if only one was
    /// watched.
    pub fn instances(&self) -> Vec<&'a str> {
        if let Some(instance) = self.instance {
            return vec![instance];
        }
        let mut instances = Vec::new();
        for instance in self.history.probes().filter_map(ProbeInfo::instance) {
            if !instances.contains(&instance) {
                instances.push(instance);
            }
        }
        instances
    }

    /// Returns the selected instances that have this series.
    pub fn instances_with(&self, probe: &str) -> Vec<&'a str> {
        let has = |instance: &&str| self.history.series(probe, Some(instance)).is_some();
        self.instances().into_iter().filter(has).collect()
    }

    /// Returns the focus on samples of sessions, `None` if all samples count.
    pub fn focus(&self) -> Option<&'a Focus> {
        self.focus
    }

    /// Returns when a session of the focus was last sampled, up to the end. This may be before the
    /// first tick.
    pub fn last_sampled_ns(&self) -> Option<u64> {
        let before = Self { from_ns: 0, ..*self };
        before.samples(SESSION.probe).map(|sample| sample.t_ns).max()
    }

    pub fn seconds(&self) -> f64 {
        self.ns() / 1e9
    }

    pub fn ns(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64
    }

    pub fn history(&self) -> &'a History {
        self.history
    }

    /// Returns whether this series was read, for any of the selected instances.
    pub fn has(&self, probe: &str) -> bool {
        self.probe(probe).is_some() || !self.instances_with(probe).is_empty()
    }

    /// Returns the series of the selected instance. A series that belongs to no instance is the
    /// same for all.
    pub(crate) fn probe(&self, name: &str) -> Option<&'a Probe> {
        self.history.series(name, self.instance).or_else(|| self.history.probe(name))
    }

    /// Returns the time between the first and the last row of a series in the interval. It is
    /// shorter than the interval for series that are too expensive to read at every tick. `None` if
    /// the series was read fewer than twice.
    pub fn read_ns(&self, probe: &str) -> Option<f64> {
        let tracks = self.probe(probe)?.objects.values();
        let times = |track: &Track| {
            let within = self.within(track);
            Some((track.get(within.start)?.t_ns, track.range(within).next_back()?.t_ns))
        };
        let (first, last) = tracks
            .filter_map(times)
            .reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
        (last > first).then_some((last - first) as f64)
    }

    /// Returns the names of the objects that a probe saw in the interval; in a window, those it saw
    /// at any time in the phase: an object that existed only during warm-up must not vanish
    /// silently from a sum.
    pub fn objects(&self, probe: &str) -> Vec<&'a str> {
        let objects = self.probe(probe).into_iter().flat_map(|probe| &probe.objects);
        let present = objects.filter(|(_, track)| match self.held {
            Some(held) => self.rows_of(track, held.start_ns, held.end_ns).next().is_some(),
            None => !self.within(track).is_empty(),
        });
        present.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the growth of a counter. [`Missing::Unknown`] if there are not two rows in the
    /// interval or the counter was reset in between; [`Missing::NoEvidence`] for bytes charged as
    /// written that were never written. In a window there must be a row at both edges, and only
    /// these count: some kernel counters, such as iowait, occasionally step back by a tick.
    pub fn grown(&self, probe: &str, object: &str, column: &str) -> Grown {
        let grown = self.counted(probe, object, column)?;
        self.believed(grown, (probe, object, column))
    }

    fn counted(&self, probe: &str, object: &str, column: &str) -> Grown {
        if let Some((held, window)) = self.part_of() {
            window.counted(probe, object, column)?;
            return self.grown_inside(held, (probe, object, column));
        }
        let counts = match self.held {
            Some(_) => self.at_edges(probe, object, column)?,
            None => self.counts(probe, object, column)?,
        };
        match counts[..] {
            [(_, first), .., (_, last)] => last
                .checked_sub(first)
                .and_then(|by| u64::try_from(by).ok())
                .ok_or(Missing::Unknown),
            _ => Err(Missing::Unknown),
        }
    }

    /// [`Self::grown`] as a figure.
    pub fn moved(&self, probe: &str, object: &str, column: &str) -> Known {
        self.grown(probe, object, column).map(|by| by as f64)
    }

    /// Returns the growth of a counter that begins at zero with its object, such as a process. If
    /// the object appeared in the interval and has rows from then on, this is the counter's value.
    /// One row is enough.
    pub fn grown_from_zero(&self, probe: &str, object: &str, column: &str) -> Grown {
        let grown = self.counted_from_zero(probe, object, column)?;
        self.believed(grown, (probe, object, column))
    }

    fn counted_from_zero(&self, probe: &str, object: &str, column: &str) -> Grown {
        if let Some((held, window)) = self.part_of() {
            window.counted_from_zero(probe, object, column)?;
            return self.grown_inside(held, (probe, object, column));
        }
        if self.held.is_some() {
            return self.counted(probe, object, column).or_else(|why| {
                let (track, _) = self.find(probe, object, column, Kind::Counter)?;
                let before = self.rows_of(track, 0, self.from_ns).next();
                let last = self.track(probe, object, column)?.last().map(|&(_, count)| count);
                last.filter(|_| before.is_none()).ok_or(why)
            });
        }
        let by = match self.counts(probe, object, column)?[..] {
            [(since_ns, first), .., (_, last)] if since_ns <= self.from_ns => last - first,
            [(since_ns, _), ..] if since_ns <= self.from_ns => 0,
            [.., (_, last)] => last,
            [] => return Err(Missing::Unknown),
        };
        u64::try_from(by).map_err(|_| Missing::Unknown)
    }

    /// Returns the growth of a counter in a part of a window at whose edges it is known. Before its
    /// first row in the phase the counter was at zero.
    fn grown_inside(&self, held: Held, of: (&str, &str, &str)) -> Grown {
        let (track, index) = self.find(of.0, of.1, of.2, Kind::Counter)?;
        let stood = |t_ns| {
            let mut rows = self.rows_of(track, held.start_ns, t_ns).rev();
            rows.find_map(|row| number(row, index)).map_or(0, |(_, count)| count)
        };
        u64::try_from(stood(self.to_ns) - stood(self.from_ns)).map_err(|_| Missing::Unknown)
    }

    /// [`Self::grown_from_zero`] as a figure.
    pub fn moved_from_zero(&self, probe: &str, object: &str, column: &str) -> Known {
        self.grown_from_zero(probe, object, column).map(|by| by as f64)
    }

    /// Returns the growth over all objects of a probe. Missing if that of any object is;
    /// [`Missing::Unknown`] without an object.
    pub fn grown_of_all(&self, probe: &str, column: &str) -> Grown {
        let objects = self.objects(probe);
        if objects.is_empty() {
            return Err(if self.has(probe) { Missing::Unknown } else { Missing::NotInVersion });
        }
        objects.into_iter().map(|object| self.grown(probe, object, column)).sum()
    }

    /// Returns the value, at the phase's last row, of a counter that begins at zero with its phase:
    /// it includes warm-up and what followed the window. Missing if this is not the window of a
    /// phase.
    pub fn in_phase(&self, probe: &str, object: &str, column: &str) -> Grown {
        let (track, index) = self.find(probe, object, column, Kind::Counter)?;
        let held = self.held.ok_or(Missing::Unknown)?;
        let counts = self.rows_of(track, held.start_ns, u64::MAX).rev();
        let mut counts = counts.filter_map(|row| u64::try_from(number(row, index)?.1).ok());
        counts.next().ok_or_else(|| self.why(probe, column, true))
    }

    /// Returns the windowed latencies by role and clock, in the order of roles.
    pub fn histograms(
        &self,
    ) -> impl Iterator<Item = (&'a str, LatencyClock, &'a LatencyHistogram)> + use<'a> {
        let windowed = self.held.map(|held| self.history.windowed(held.index));
        windowed.into_iter().flatten().map(|((role, clock), all)| (role.as_str(), *clock, all))
    }

    /// Returns the windowed latencies of a part of a window, from the seconds whose middles are
    /// within it.
    pub fn histograms_of_part(&self) -> Vec<(&'a str, LatencyClock, LatencyHistogram)> {
        let of = |held: Held| self.history.windowed_in(held.index, held.window_ns, self);
        self.held.map(of).unwrap_or_default()
    }

    /// Returns the latencies of a role in each second of a window or of a part of it, in order of
    /// time: their variation from second to second bounds their quantiles.
    pub fn seconds_of(&self, role: &str, clock: LatencyClock) -> Vec<&'a Buckets> {
        let Some(held) = self.held else { return Vec::new() };
        self.history.seconds_in((held.index, held.window_ns), (role, clock), self)
    }

    pub fn histogram(&self, role: &str, clock: LatencyClock) -> Option<&'a LatencyHistogram> {
        let mut histograms = self.histograms();
        histograms.find(|found| (found.0, found.1) == (role, clock)).map(|(.., all)| all)
    }

    /// Returns the growth of a counter per second.
    pub fn per_s(&self, probe: &str, object: &str, column: &str) -> Known {
        Ok(self.moved(probe, object, column)? / self.seconds())
    }

    /// Returns the growth of a counter of time as a share of the time that passed.
    pub fn share(&self, probe: &str, object: &str, column: &str) -> Known {
        Ok(self.moved(probe, object, column)? / self.ns())
    }

    /// Returns the value of a level at the end.
    pub fn level(&self, probe: &str, object: &str, column: &str) -> Known {
        self.at_end((probe, object, column), Kind::Gauge)
    }

    /// Returns the value at the end of a counter that counts from the creation of its object.
    pub fn stood(&self, probe: &str, object: &str, column: &str) -> Known {
        self.at_end((probe, object, column), Kind::Counter)
    }

    fn at_end(&self, (probe, object, column): (&str, &str, &str), kind: Kind) -> Known {
        let (track, index) = self.find(probe, object, column, kind)?;
        match self.last(track).map(|cells| &cells[index]) {
            Some(Cell::Value(value)) => Ok(*value as f64),
            Some(_) => Err(self.why(probe, column, true)),
            None => Err(Missing::Unknown),
        }
    }

    /// Returns the text of a state at the end.
    pub fn text(&self, probe: &str, object: &str, column: &str) -> Option<&'a str> {
        let (track, index) = self.find(probe, object, column, Kind::State).ok()?;
        match self.last(track).map(|cells| &cells[index]) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a state that was recorded once for an object, at any time up to the end.
    pub fn said(&self, probe: &str, object: &str, column: &str) -> Option<&'a str> {
        let (track, index) = self.find(probe, object, column, Kind::State).ok()?;
        let before = track.partition_point(|row| row.t_ns <= self.to_ns);
        match track.get(before.checked_sub(1)?).map(|row| &row.cells[index]) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns all rows of a probe after the first tick, in no particular order; for sessions,
    /// those of the focus.
    pub fn samples(&self, probe: &str) -> impl Iterator<Item = Sample<'a>> {
        let (from_ns, to_ns) = (self.from_ns, self.to_ns);
        let focus = self.focus.filter(|_| probe == SESSION.probe);
        let samples = self.probe(probe).into_iter().flat_map(move |probe| {
            let columns = probe.info.columns.as_slice();
            let instance = probe.info.instance();
            probe.objects.iter().flat_map(move |(object, track)| {
                let first = track.partition_point(|row| row.t_ns <= from_ns);
                let end = track.partition_point(|row| row.t_ns <= to_ns).max(first);
                let rows = track.range(first..end);
                rows.map(move |row| {
                    let cells = &*row.cells;
                    Sample { t_ns: row.t_ns, instance, object, cells, columns }
                })
            })
        });
        samples.filter(move |sample| focus.is_none_or(|focus| focus.admits(sample)))
    }

    /// Returns the cells of an object at the beginning, `None` if it appeared later and began at
    /// zero, and those of its last row.
    pub(crate) fn ends(
        &self,
        probe: &str,
        object: &str,
    ) -> Option<(Option<&'a [Cell]>, &'a [Cell])> {
        let track = self.probe(probe)?.objects.get(object)?;
        let first = track.get(self.within(track).start)?;
        let first = (first.t_ns <= self.from_ns).then_some(&*first.cells);
        Some((first, self.last(track)?))
    }

    /// Splits the interval into slices of whole ticks: one per tick, but not more than `most`.
    pub fn slices(&self, most: usize) -> Vec<Self> {
        let inside = |tick: &u64| (self.from_ns..=self.to_ns).contains(tick);
        let ticks: Vec<u64> = self.history.ticks().filter(inside).collect();
        let joined = ticks.len().saturating_sub(1).div_ceil(most.max(1)).max(1);
        let edges: Vec<u64> = ticks.into_iter().step_by(joined).collect();
        let slice = |edges: &[u64]| Self { from_ns: edges[0], to_ns: edges[1], ..*self };
        edges.windows(2).map(slice).collect()
    }

    /// Returns why a column is empty, in the words of its probe.
    pub fn reason(&self, probe: &str, column: &str) -> Option<&'a Unmeasured> {
        let columns = &self.probe(probe)?.info.columns;
        columns.iter().find(|info| info.name == column)?.unmeasured.as_ref()
    }

    /// Returns the reasons why columns of a probe are empty, each with the names of those columns.
    /// Charges that are not evidence are listed too, without a column.
    pub fn reasons(&self, probe: &str) -> Vec<(Unmeasured, Vec<&'a str>)> {
        let mut reasons: Vec<(Unmeasured, Vec<&str>)> = Vec::new();
        for info in self.columns(probe) {
            let Some(why) = &info.unmeasured else { continue };
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, columns)) => columns.push(&info.name),
                None => reasons.push((why.clone(), vec![&info.name])),
            }
        }
        let overcharged = || (Unmeasured::NoEvidence(OVERCHARGED.to_owned()), Vec::new());
        reasons.extend(self.has_overcharged(probe).then(overcharged));
        reasons
    }

    pub fn probes(&self) -> impl Iterator<Item = &'a str> {
        self.history.probes().map(|info| info.probe.as_str())
    }

    /// Returns the columns of a probe; empty if the probe was not there.
    pub fn columns(&self, probe: &str) -> &'a [ColumnInfo] {
        self.probe(probe).map_or(&[], |probe| &probe.info.columns)
    }

    /// Returns a counter's readings at the first and the last row between the first and the last
    /// tick: none, one or two.
    fn counts(&self, probe: &str, object: &str, column: &str) -> Result<Vec<(u64, i64)>, Missing> {
        let (track, index) = self.find(probe, object, column, Kind::Counter)?;
        let (mut ends, mut is_whole, mut ascends) = (Vec::with_capacity(2), true, true);
        for row in self.rows_of(track, self.from_ns, self.to_ns) {
            let Some(count) = number(row, index) else {
                is_whole = false;
                continue;
            };
            ascends &= ends.last().is_none_or(|last: &(u64, i64)| last.1 <= count.1);
            ends.truncate(1);
            ends.push(count);
        }
        if !is_whole {
            return Err(self.why(probe, column, ends.is_empty()));
        }
        if ascends { Ok(ends) } else { Err(Missing::Unknown) }
    }

    /// Returns a counter's readings at the edges of a window. A tick can fall on an edge: the row
    /// that was read for the edge is the later one.
    fn at_edges(
        &self,
        probe: &str,
        object: &str,
        column: &str,
    ) -> Result<Vec<(u64, i64)>, Missing> {
        let (track, index) = self.find(probe, object, column, Kind::Counter)?;
        let edge = |t_ns| {
            let row = self.rows_of(track, t_ns, t_ns).last().ok_or(Missing::Unknown)?;
            number(row, index).ok_or_else(|| self.why(probe, column, false))
        };
        Ok(vec![edge(self.from_ns)?, edge(self.to_ns)?])
    }

    /// Returns the rows from one instant to another, both included; in a window, those of its
    /// phase.
    pub(crate) fn rows_of(
        &self,
        track: &'a Track,
        from_ns: u64,
        to_ns: u64,
    ) -> impl DoubleEndedIterator<Item = &'a Row> + use<'a> {
        let first = track.partition_point(|row| row.t_ns < from_ns);
        let end = track.partition_point(|row| row.t_ns <= to_ns).max(first);
        let phase = self.held.map(|held| held.index);
        track.range(first..end).filter(move |row| phase.is_none_or(|phase| row.phase == phase))
    }

    pub(crate) fn find(
        &self,
        probe: &str,
        object: &str,
        column: &str,
        kind: Kind,
    ) -> Result<(&'a Track, usize), Missing> {
        let known: &Probe = self.probe(probe).ok_or(Missing::NotInVersion)?;
        let mut columns = known.info.columns.iter();
        let index = columns.position(|info| info.name == column && info.kind == kind);
        let index = index.ok_or(Missing::NotInVersion)?;
        Ok((known.objects.get(object).ok_or(Missing::Unknown)?, index))
    }

    fn last(&self, track: &'a Track) -> Option<&'a [Cell]> {
        let mut rows = self.rows_of(track, self.from_ns, self.to_ns);
        rows.next_back().map(|row| &*row.cells)
    }

    /// Returns the index range of the interval's rows in a track.
    fn within(&self, track: &Track) -> Range<usize> {
        let first = track.partition_point(|row| row.t_ns < self.from_ns);
        let end = track.partition_point(|row| row.t_ns <= self.to_ns).max(first);
        first..end
    }

    /// Returns why cells of a column are empty. If no reason is given and no cell has a value,
    /// there is nothing to count: a process that never reads has no reads.
    pub(crate) fn why(&self, probe: &str, column: &str, never: bool) -> Missing {
        match self.reason(probe, column) {
            Some(Unmeasured::Off(_)) => Missing::Off,
            Some(Unmeasured::NotInVersion(_)) => Missing::NotInVersion,
            Some(Unmeasured::NotPermitted(_)) => Missing::NotPermitted,
            Some(Unmeasured::NoEvidence(_)) => Missing::NoEvidence,
            None if never => Missing::Nothing,
            None => Missing::Unknown,
        }
    }
}

/// Returns when a row was read and the number in one of its columns.
pub(crate) fn number(row: &Row, column: usize) -> Option<(u64, i64)> {
    match row.cells.get(column)? {
        Cell::Value(value) => Some((row.t_ns, *value)),
        _ => None,
    }
}

/// Returns `part` ÷ `whole`; missing if the whole is zero.
pub fn ratio(part: Known, whole: Known) -> Known {
    let (part, whole) = (part?, whole?);
    if whole == 0.0 { Err(Missing::Nothing) } else { Ok(part / whole) }
}

/// Returns the sum of the parts; missing if any of them is.
pub fn sum(parts: impl IntoIterator<Item = Known>) -> Known {
    // An empty sum is zero, not the negative zero that `Iterator::sum` makes of it.
    parts.into_iter().try_fold(0.0, |sum, part| Ok(sum + part?))
}

#[cfg(test)]
mod tests {
    use blockstone_record::manifest::Group;
    use blockstone_record::testing;
    use proptest::prelude::*;

    use super::*;

    fn history(rows: &[(u64, Option<i64>)]) -> History {
        let columns = [(Kind::Counter, "ios"), (Kind::Gauge, "depth")];
        let mut history = History::new(vec![testing::probe("host", &columns)]);
        for &(t_ns, value) in rows {
            let cell = value.map_or(Cell::Unmeasured, Cell::Value);
            history.push("host", t_ns, "vda", vec![cell.clone(), cell]);
        }
        history
    }

    #[test]
    fn a_counter_that_was_set_back_is_unknown_over_any_interval_that_holds_it() {
        let history = history(&[(0, Some(5)), (1, Some(9)), (2, Some(1)), (3, Some(20))]);
        let moved = |from, to| history.interval(from, to).moved("host", "vda", "ios");
        assert_eq!(moved(0, 1), Ok(4.0));
        assert_eq!(moved(1, 2), Err(Missing::Unknown));
        assert_eq!(moved(0, 3), Err(Missing::Unknown), "although 20 is more than 5");
        assert_eq!(moved(2, 3), Ok(19.0));
    }

    /// Growth in a window from 10 to 20, and in its parts between these edges.
    fn parts(history: &History, edges: &[u64]) -> (Grown, Vec<Grown>) {
        let mut phase = testing::phase("run", Group::Workload);
        (phase.start_ns, phase.end_ns) = (5, 25);
        (phase.window_start_ns, phase.window_end_ns) = (10, 20);
        let window = history.window(0, &phase);
        let grown = |it: &Interval<'_>| it.grown("host", "vda", "ios");
        let part = |edges: &[u64]| grown(&window.part(edges[0], edges[1]));
        (grown(&window), edges.windows(2).map(part).collect())
    }

    #[test]
    fn parts_add_up_to_their_window_and_need_no_row_at_their_edges() {
        let rows = [(6, Some(1)), (10, Some(5)), (12, None), (13, Some(9)), (20, Some(30))];
        let found = parts(&history(&rows), &[10, 12, 13, 17, 20]);
        assert_eq!(found, (Ok(25), vec![Ok(0), Ok(4), Ok(0), Ok(21)]));
        let found = parts(&history(&rows), &[10, 20]);
        assert_eq!(found, (Ok(25), vec![Ok(25)]));
    }

    #[test]
    fn what_a_window_does_not_know_no_part_knows() {
        let rows = [(10, Some(5)), (13, Some(9)), (19, Some(30))];
        let unknown = Err(Missing::Unknown);
        assert_eq!(parts(&history(&rows), &[10, 13, 19]), (unknown, vec![unknown; 2]));
        let rows = [(10, Some(5)), (13, Some(9)), (15, Some(7)), (20, Some(30))];
        let found = parts(&history(&rows), &[10, 13, 15, 20]);
        assert_eq!(found, (Ok(25), vec![Ok(4), unknown, Ok(23)]), "it was set back");
    }

    #[test]
    fn a_sum_of_nothing_is_a_zero_without_a_sign() {
        assert!(sum([]).is_ok_and(f64::is_sign_positive));
        assert_eq!(sum([Ok(1.0), Ok(2.0)]), Ok(3.0));
        assert_eq!(sum([Ok(1.0), Err(Missing::Off)]), Err(Missing::Off));
    }

    #[test]
    fn what_came_or_went_is_unknown_and_what_is_off_says_so() {
        let mut history = history(&[(0, Some(5)), (1, None)]);
        let moved = |history: &History| history.interval(0, 1).moved("host", "vda", "ios");
        assert_eq!(moved(&history), Err(Missing::Unknown));
        history.unmeasured("host", "ios", &Unmeasured::Off("switched off".to_owned()));
        assert_eq!(moved(&history), Err(Missing::Off));
        let interval = history.interval(0, 1);
        assert_eq!(interval.moved("host", "vdb", "ios"), Err(Missing::Unknown));
        assert_eq!(interval.moved("host", "vda", "depth"), Err(Missing::NotInVersion));
        assert_eq!(history.interval(0, 0).moved("host", "vda", "ios"), Err(Missing::Unknown));
    }

    #[test]
    fn what_began_at_zero_moved_to_where_it_stands() {
        let history = history(&[(3, Some(5)), (4, Some(9))]);
        let moved = |from, to| history.interval(from, to).moved_from_zero("host", "vda", "ios");
        assert_eq!(moved(2, 3), Ok(5.0), "it came up with these");
        assert_eq!(moved(2, 4), Ok(9.0));
        assert_eq!(moved(3, 4), Ok(4.0));
        assert_eq!(moved(4, 6), Ok(0.0), "it was let go");
        assert_eq!(moved(5, 6), Err(Missing::Unknown));
    }

    /// A phase from 0 to 100 whose window is from 10 to 30, at index `index`.
    fn phase() -> Phase {
        Phase {
            window_start_ns: 10,
            window_end_ns: 30,
            end_ns: 100,
            ..testing::phase("a", Group::Workload)
        }
    }

    #[test]
    fn a_window_has_exact_edges_and_looks_at_nothing_between_them() {
        let rows = [(0, Some(1)), (10, Some(4)), (20, Some(3)), (30, Some(9)), (40, Some(90))];
        let grown = |rows: &[(u64, Option<i64>)], index| {
            history(rows).window(index, &phase()).grown("host", "vda", "ios")
        };
        assert_eq!(grown(&rows, 0), Ok(5), "although it stepped back in between");
        assert_eq!(grown(&rows, 1), Err(Missing::Unknown), "rows of another phase");
        assert_eq!(grown(&rows[..3], 0), Err(Missing::Unknown), "no row at the end");
        let twice = [(10, Some(4)), (10, Some(5)), (30, Some(9))];
        assert_eq!(grown(&twice, 0), Ok(4), "the later row at an instant is the edge's");
    }

    #[test]
    fn a_window_knows_what_was_there_in_warm_up_and_what_appeared_in_it() {
        let mut history = history(&[(10, Some(4)), (30, Some(9))]);
        history.push("host", 5, "vdb", vec![Cell::Value(1), Cell::Value(1)]);
        let window = history.window(0, &phase());
        assert_eq!(window.objects("host"), ["vda", "vdb"]);
        assert_eq!(window.grown_of_all("host", "ios"), Err(Missing::Unknown));
        assert_eq!(window.in_phase("host", "vdb", "ios"), Ok(1));
        assert_eq!(window.grown_from_zero("host", "vdb", "ios"), Err(Missing::Unknown));
        history.push("host", 25, "vdc", vec![Cell::Value(7), Cell::Value(1)]);
        let window = history.window(0, &phase());
        assert_eq!(window.grown_from_zero("host", "vdc", "ios"), Ok(7));
        assert_eq!(window.grown("host", "vdc", "ios"), Err(Missing::Unknown));
        assert_eq!(
            history.window(0, &phase()).grown_of_all("none", "ios"),
            Err(Missing::NotInVersion)
        );
    }

    proptest! {
        #[test]
        fn no_interval_ever_gives_a_negative_number(
            values in prop::collection::vec(prop::option::of(0_i64..1_000), 2..20),
            from in 0_u64..20, length in 1_u64..20,
        ) {
            let rows: Vec<_> = (0..).zip(values).collect();
            let history = history(&rows);
            if let Ok(moved) = history.interval(from, from + length).moved("host", "vda", "ios") {
                prop_assert!(moved >= 0.0);
            }
        }

        #[test]
        fn what_is_forgotten_changes_no_later_interval(
            steps in prop::collection::vec(0_i64..100, 6..20), forget in 0_u64..4,
        ) {
            let sums = steps.iter().scan(0, |sum, step| { *sum += step; Some(Some(*sum)) });
            let whole = history(&(0..).zip(sums).collect::<Vec<_>>());
            let mut kept = whole.clone();
            kept.forget_before(forget);
            let of = |history: &History| history.interval(4, 5).moved("host", "vda", "ios");
            prop_assert_eq!(of(&whole), of(&kept));
            prop_assert_eq!(kept.ticks().next(), Some(forget));
        }
    }
}
