//! How far every counter moved between two instants, and where every level stood at the later one.
//!
//! An interval lies between two ticks, or between the edges of a phase's window. Every number is a
//! figure or the reason why it is missing; no zero stands for what was not measured.

pub(crate) mod charges;

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

/// By how much a counter grew, or why that is not known.
pub type Grown = Result<u64, Missing>;

/// A part of a [`History`].
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    history: &'a History,
    focus: Option<&'a Focus>,
    instance: Option<&'a str>,
    pub(crate) held: Option<Held>,
    /// The first tick, in nanoseconds since the beginning.
    pub from_ns: u64,
    /// The last tick.
    pub to_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Its index, as rows name it.
    pub(crate) index: i32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// From where to where its window goes.
    pub(crate) window_ns: (u64, u64),
    /// Whether a part of it is meant.
    pub(crate) is_part: bool,
}

impl<'a> Interval<'a> {
    pub(crate) fn new(history: &'a History, from_ns: u64, to_ns: u64) -> Self {
        Self { history, focus: None, instance: None, held: None, from_ns, to_ns }
    }

    pub(crate) fn of_window(history: &'a History, index: usize, phase: &Phase) -> Self {
        let Phase { start_ns, end_ns, window_start_ns, window_end_ns, .. } = *phase;
        // No recording has as many phases: such an index finds no row.
        let index = i32::try_from(index).unwrap_or(i32::MAX);
        let window_ns = (window_start_ns, window_end_ns);
        let held = Some(Held { index, start_ns, end_ns, window_ns, is_part: false });
        Self { held, ..Self::new(history, window_start_ns, window_end_ns) }
    }

    /// A part of a window, between two instants in it. What grew in parts that lie side by side
    /// adds up to what grew in the window, and is known where that is: an inner edge needs no row
    /// of its own, a counter stands there where its last row left it.
    #[must_use]
    pub fn part(&self, from_ns: u64, to_ns: u64) -> Self {
        let held = self.held.map(|held| Held { is_part: true, ..held });
        Self { held, from_ns, to_ns, ..*self }
    }

    pub fn is_part(&self) -> bool {
        self.part_of().is_some()
    }

    /// The window of which this is a part.
    fn part_of(&self) -> Option<(Held, Self)> {
        let held = self.held.filter(|held| held.is_part)?;
        let (from_ns, to_ns) = held.window_ns;
        let whole = Some(Held { is_part: false, ..held });
        Some((held, Self { held: whole, from_ns, to_ns, ..*self }))
    }

    /// The same interval, of whose samples of sessions only these are looked at. Whatever does not
    /// come from samples stays as it is. A focus on one of several instances is one on all that is
    /// known of it.
    #[must_use]
    pub fn only(self, focus: &'a Focus) -> Self {
        let instance = focus.value(INSTANCE).filter(|it| self.instances().contains(it));
        Self { focus: Some(focus), instance: instance.or(self.instance), ..self }
    }

    /// The same interval, of one of several instances of databases: a series that each of them has
    /// is that of this one.
    #[must_use]
    pub fn of_instance(self, instance: &'a str) -> Self {
        Self { instance: Some(instance), ..self }
    }

    /// The instance that is looked at; none where all are, or only one was watched.
    pub fn instance(&self) -> Option<&'a str> {
        self.instance
    }

    /// The instances that are looked at, in the order in which they were named; none where only one
    /// was watched.
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

    /// Those of them that have this series.
    pub fn instances_with(&self, probe: &str) -> Vec<&'a str> {
        let has = |instance: &&str| self.history.series(probe, Some(instance)).is_some();
        self.instances().into_iter().filter(has).collect()
    }

    /// The samples of sessions that are looked at; none when all are.
    pub fn focus(&self) -> Option<&'a Focus> {
        self.focus
    }

    /// When a session of the focus was sampled last, up to the end, also before the first tick.
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

    /// Whether this was read, of whatever instance is looked at.
    pub fn has(&self, probe: &str) -> bool {
        self.probe(probe).is_some() || !self.instances_with(probe).is_empty()
    }

    /// The series of the instance that is looked at; what is of no instance is the same for all.
    pub(crate) fn probe(&self, name: &str) -> Option<&'a Probe> {
        self.history.series(name, self.instance).or_else(|| self.history.probe(name))
    }

    /// The time between the first and the last row of a series in the interval. It is shorter than
    /// the interval for series that are too expensive to read at every tick. `None` if the series
    /// was read fewer than twice.
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

    /// What a probe saw in the interval, by name; in a window, what it saw at any time in the
    /// phase: an object that was there during warm-up alone must not vanish from a sum unseen.
    pub fn objects(&self, probe: &str) -> Vec<&'a str> {
        let objects = self.probe(probe).into_iter().flat_map(|probe| &probe.objects);
        let present = objects.filter(|(_, track)| match self.held {
            Some(held) => self.rows_of(track, held.start_ns, held.end_ns).next().is_some(),
            None => !self.within(track).is_empty(),
        });
        present.map(|(name, _)| name.as_str()).collect()
    }

    /// By how much a counter grew. [`Missing::Unknown`] when there are not two rows in the
    /// interval, or it was reset in between; [`Missing::NoEvidence`] for bytes charged as written
    /// that nobody wrote. In a window there must be a row at either edge, and
    /// only these count: some counters of the kernel, such as iowait, step back by a tick now and
    /// then.
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

    /// As [`Self::grown`], as a figure.
    pub fn moved(&self, probe: &str, object: &str, column: &str) -> Known {
        self.grown(probe, object, column).map(|by| by as f64)
    }

    /// By how much a counter grew that begins at zero with its object, such as a process: one whose
    /// object appeared in the interval, and has rows from then on, grew to where it stands. One row
    /// is enough.
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

    /// By how much a counter grew in a part of a window, at whose edges it is known. Before its
    /// first row in the phase it stood at zero.
    fn grown_inside(&self, held: Held, of: (&str, &str, &str)) -> Grown {
        let (track, index) = self.find(of.0, of.1, of.2, Kind::Counter)?;
        let stood = |t_ns| {
            let mut rows = self.rows_of(track, held.start_ns, t_ns).rev();
            rows.find_map(|row| number(row, index)).map_or(0, |(_, count)| count)
        };
        u64::try_from(stood(self.to_ns) - stood(self.from_ns)).map_err(|_| Missing::Unknown)
    }

    /// As [`Self::grown_from_zero`], as a figure.
    pub fn moved_from_zero(&self, probe: &str, object: &str, column: &str) -> Known {
        self.grown_from_zero(probe, object, column).map(|by| by as f64)
    }

    /// The growth over all objects of a probe; missing if that of any object is, and
    /// [`Missing::Unknown`] without an object.
    pub fn grown_of_all(&self, probe: &str, column: &str) -> Grown {
        let objects = self.objects(probe);
        if objects.is_empty() {
            return Err(if self.has(probe) { Missing::Unknown } else { Missing::NotInVersion });
        }
        objects.into_iter().map(|object| self.grown(probe, object, column)).sum()
    }

    /// Where a counter that begins at zero with its phase stood at the phase's last row: warm-up
    /// and what followed the window included. Missing where this is not the window of a phase.
    pub fn in_phase(&self, probe: &str, object: &str, column: &str) -> Grown {
        let (track, index) = self.find(probe, object, column, Kind::Counter)?;
        let held = self.held.ok_or(Missing::Unknown)?;
        let counts = self.rows_of(track, held.start_ns, u64::MAX).rev();
        let mut counts = counts.filter_map(|row| u64::try_from(number(row, index)?.1).ok());
        counts.next().ok_or_else(|| self.why(probe, column, true))
    }

    /// Windowed latencies by role and clock, in the order of roles.
    pub fn histograms(
        &self,
    ) -> impl Iterator<Item = (&'a str, LatencyClock, &'a LatencyHistogram)> + use<'a> {
        let windowed = self.held.map(|held| self.history.windowed(held.index));
        windowed.into_iter().flatten().map(|((role, clock), all)| (role.as_str(), *clock, all))
    }

    /// The same of a part of a window, from the seconds whose middles lie in it.
    pub fn histograms_of_part(&self) -> Vec<(&'a str, LatencyClock, LatencyHistogram)> {
        let of = |held: Held| self.history.windowed_in(held.index, held.window_ns, self);
        self.held.map(of).unwrap_or_default()
    }

    /// The latencies of a role in each second of a window or of a part of it, in the order of time:
    /// how they vary from one to the next bounds their quantiles.
    pub fn seconds_of(&self, role: &str, clock: LatencyClock) -> Vec<&'a Buckets> {
        let Some(held) = self.held else { return Vec::new() };
        self.history.seconds_in((held.index, held.window_ns), (role, clock), self)
    }

    pub fn histogram(&self, role: &str, clock: LatencyClock) -> Option<&'a LatencyHistogram> {
        let mut histograms = self.histograms();
        histograms.find(|found| (found.0, found.1) == (role, clock)).map(|(.., all)| all)
    }

    /// How far it moved a second.
    pub fn per_s(&self, probe: &str, object: &str, column: &str) -> Known {
        Ok(self.moved(probe, object, column)? / self.seconds())
    }

    /// How far a time moved, of the time that passed.
    pub fn share(&self, probe: &str, object: &str, column: &str) -> Known {
        Ok(self.moved(probe, object, column)? / self.ns())
    }

    /// Where a level stood at the end.
    pub fn level(&self, probe: &str, object: &str, column: &str) -> Known {
        self.at_end((probe, object, column), Kind::Gauge)
    }

    /// Where a counter stood at the end, of one that counts the life of its object.
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

    /// What a state was at the end.
    pub fn text(&self, probe: &str, object: &str, column: &str) -> Option<&'a str> {
        let (track, index) = self.find(probe, object, column, Kind::State).ok()?;
        match self.last(track).map(|cells| &cells[index]) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// What was said of an object once, at any time up to the end.
    pub fn said(&self, probe: &str, object: &str, column: &str) -> Option<&'a str> {
        let (track, index) = self.find(probe, object, column, Kind::State).ok()?;
        let before = track.partition_point(|row| row.t_ns <= self.to_ns);
        match track.get(before.checked_sub(1)?).map(|row| &row.cells[index]) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// All rows of a probe after the first tick, in no order; of sessions those of the focus.
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

    /// Where an object stood at the beginning, none if it came up later and began at zero, and at
    /// its last row.
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

    /// The interval in slices of whole ticks, as many as there are ticks but not more than `most`.
    pub fn slices(&self, most: usize) -> Vec<Self> {
        let inside = |tick: &u64| (self.from_ns..=self.to_ns).contains(tick);
        let ticks: Vec<u64> = self.history.ticks().filter(inside).collect();
        let joined = ticks.len().saturating_sub(1).div_ceil(most.max(1)).max(1);
        let edges: Vec<u64> = ticks.into_iter().step_by(joined).collect();
        let slice = |edges: &[u64]| Self { from_ns: edges[0], to_ns: edges[1], ..*self };
        edges.windows(2).map(slice).collect()
    }

    /// Why a column is empty, in the words of its probe.
    pub fn reason(&self, probe: &str, column: &str) -> Option<&'a Unmeasured> {
        let columns = &self.probe(probe)?.info.columns;
        columns.iter().find(|info| info.name == column)?.unmeasured.as_ref()
    }

    /// The reasons why columns of a probe are empty, each with the names of those columns. Charges
    /// that are no evidence are listed too, without a column.
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

    /// The columns of a probe; none where it was not there.
    pub fn columns(&self, probe: &str) -> &'a [ColumnInfo] {
        self.probe(probe).map_or(&[], |probe| &probe.info.columns)
    }

    /// Where a counter stood at the first and at the last row from the first tick to the last: no
    /// row, one or two.
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

    /// Where a counter stood at the edges of a window. A tick can fall on an edge: the row that was
    /// read for the edge is the later one.
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

    /// Rows from one instant to another, both included; in a window those of its phase.
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

    /// Where in a track they are.
    fn within(&self, track: &Track) -> Range<usize> {
        let first = track.partition_point(|row| row.t_ns < self.from_ns);
        let end = track.partition_point(|row| row.t_ns <= self.to_ns).max(first);
        first..end
    }

    /// Why cells of a column are empty. Where no reason is given and none has a value, there is no
    /// such thing: a process that never reads has no reads.
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

/// The number in a row's column, and when it was read.
pub(crate) fn number(row: &Row, column: usize) -> Option<(u64, i64)> {
    match row.cells.get(column)? {
        Cell::Value(value) => Some((row.t_ns, *value)),
        _ => None,
    }
}

/// `part` for each of `whole`; nothing when there was none.
pub fn ratio(part: Known, whole: Known) -> Known {
    let (part, whole) = (part?, whole?);
    if whole == 0.0 { Err(Missing::Nothing) } else { Ok(part / whole) }
}

/// The sum; missing when one part is.
pub fn sum(parts: impl IntoIterator<Item = Known>) -> Known {
    // A sum of nothing is zero, not the negative zero that `Iterator::sum` makes of it.
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

    /// Parts between these edges, of a window from 10 to 20.
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

    /// A phase from 0 to 100 whose window goes from 10 to 30, at index `index`.
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
