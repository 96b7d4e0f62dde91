//! How far every counter moved between two ticks, and where every level stood at the later one.

use std::ops::Range;

use blockstone_base::column::{Cell, Kind, Unmeasured};
use blockstone_base::database::SESSION;
pub use blockstone_base::table::{Known, Missing};
use blockstone_record::manifest::ColumnInfo;

use crate::focus::Focus;
use crate::history::{History, Probe, Track};

/// A part of a [`History`].
#[derive(Clone, Copy, Debug)]
pub struct Interval<'a> {
    history: &'a History,
    focus: Option<&'a Focus>,
    /// The first tick, in nanoseconds since the beginning.
    pub from_ns: u64,
    /// The last tick.
    pub to_ns: u64,
}

/// A row within an interval, as of a sampled session.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// When it was taken.
    pub t_ns: u64,
    /// What it is about.
    pub object: &'a str,
    cells: &'a [Cell],
    columns: &'a [ColumnInfo],
}

impl<'a> Sample<'a> {
    /// The text of a column; none where it was not measured.
    pub fn text(&self, column: &str) -> Option<&'a str> {
        match self.cell(column)? {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number of a column; none where it was not measured.
    pub fn number(&self, column: &str) -> Option<f64> {
        match self.cell(column)? {
            Cell::Value(value) => Some(*value as f64),
            _ => None,
        }
    }

    fn cell(&self, column: &str) -> Option<&'a Cell> {
        self.cells.get(self.columns.iter().position(|info| info.name == column)?)
    }
}

impl<'a> Interval<'a> {
    pub(crate) fn new(history: &'a History, from_ns: u64, to_ns: u64) -> Self {
        Self { history, focus: None, from_ns, to_ns }
    }

    /// The same interval, of whose samples of sessions only these are looked at. Whatever does not
    /// come from samples stays as it is.
    #[must_use]
    pub fn only(self, focus: &'a Focus) -> Self {
        Self { focus: Some(focus), ..self }
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

    /// How long it is.
    pub fn seconds(&self) -> f64 {
        self.ns() / 1e9
    }

    /// How long it is, in nanoseconds.
    pub fn ns(&self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64
    }

    /// Its history.
    pub fn history(&self) -> &'a History {
        self.history
    }

    /// Whether a probe was there at all.
    pub fn has(&self, probe: &str) -> bool {
        self.history.probe(probe).is_some()
    }

    /// What a probe saw in the interval, by name.
    pub fn objects(&self, probe: &str) -> Vec<&'a str> {
        let objects = self.history.probe(probe).into_iter().flat_map(|probe| &probe.objects);
        let present = objects.filter(|(_, track)| !self.within(track).is_empty());
        present.map(|(name, _)| name.as_str()).collect()
    }

    /// How far a counter moved.
    ///
    /// # Errors
    /// When it was not measured; [`Missing::Unknown`] when there are not two rows in the interval,
    /// or it was set back in between.
    pub fn moved(&self, probe: &str, object: &str, column: &str) -> Known {
        match self.counts(probe, object, column)?[..] {
            [(_, first), .., (_, last)] => Ok((last - first) as f64),
            _ => Err(Missing::Unknown),
        }
    }

    /// How far a counter moved that began at zero when its object came up: one that came up in the
    /// interval, and has rows from then on, moved to where it stands.
    ///
    /// # Errors
    /// As [`Self::moved`], but that one row is enough.
    pub fn moved_from_zero(&self, probe: &str, object: &str, column: &str) -> Known {
        match self.counts(probe, object, column)?[..] {
            [(since_ns, first), .., (_, last)] if since_ns <= self.from_ns => {
                Ok((last - first) as f64)
            }
            [(since_ns, _), ..] if since_ns <= self.from_ns => Ok(0.0),
            [.., (_, last)] => Ok(last as f64),
            [] => Err(Missing::Unknown),
        }
    }

    /// How far it moved a second.
    ///
    /// # Errors
    /// As [`Self::moved`].
    pub fn per_s(&self, probe: &str, object: &str, column: &str) -> Known {
        Ok(self.moved(probe, object, column)? / self.seconds())
    }

    /// How far a time moved, of the time that passed.
    ///
    /// # Errors
    /// As [`Self::moved`].
    pub fn share(&self, probe: &str, object: &str, column: &str) -> Known {
        Ok(self.moved(probe, object, column)? / self.ns())
    }

    /// Where a level stood at the end.
    ///
    /// # Errors
    /// When it was not measured.
    pub fn level(&self, probe: &str, object: &str, column: &str) -> Known {
        let (track, index) = self.find(probe, object, column, Kind::Gauge)?;
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
        let before = track.partition_point(|(t_ns, _)| *t_ns <= self.to_ns);
        match track.get(before.checked_sub(1)?).map(|(_, cells)| &cells[index]) {
            Some(Cell::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// All rows of a probe after the first tick, in no order; of sessions those of the focus.
    pub fn samples(&self, probe: &str) -> impl Iterator<Item = Sample<'a>> {
        let (from_ns, to_ns) = (self.from_ns, self.to_ns);
        let focus = self.focus.filter(|_| probe == SESSION.probe);
        let samples = self.history.probe(probe).into_iter().flat_map(move |probe| {
            let columns = probe.info.columns.as_slice();
            probe.objects.iter().flat_map(move |(object, track)| {
                let first = track.partition_point(|(t_ns, _)| *t_ns <= from_ns);
                let end = track.partition_point(|(t_ns, _)| *t_ns <= to_ns).max(first);
                let rows = track.range(first..end);
                rows.map(move |(t_ns, cells)| Sample { t_ns: *t_ns, object, cells, columns })
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
        let track = self.history.probe(probe)?.objects.get(object)?;
        let (since_ns, first) = track.get(self.within(track).start)?;
        let first = (*since_ns <= self.from_ns).then_some(first.as_slice());
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
        let columns = &self.history.probe(probe)?.info.columns;
        columns.iter().find(|info| info.name == column)?.unmeasured.as_ref()
    }

    /// Why columns of a probe are empty, in the words of the probe.
    pub fn reasons(&self, probe: &str) -> impl Iterator<Item = &'a Unmeasured> {
        self.columns(probe).iter().filter_map(|info| info.unmeasured.as_ref())
    }

    pub(crate) fn probes(&self) -> impl Iterator<Item = &'a str> {
        self.history.probes().map(|info| info.probe.as_str())
    }

    pub(crate) fn columns(&self, probe: &str) -> &'a [ColumnInfo] {
        self.history.probe(probe).map_or(&[], |probe| &probe.info.columns)
    }

    /// Where a counter stood at each row from the first tick to the last.
    fn counts(&self, probe: &str, object: &str, column: &str) -> Result<Vec<(u64, i64)>, Missing> {
        let (track, index) = self.find(probe, object, column, Kind::Counter)?;
        let rows = self.rows(track);
        let count = |row: &&(u64, Vec<Cell>)| match row.1[index] {
            Cell::Value(value) => Some((row.0, value)),
            _ => None,
        };
        let counts: Vec<(u64, i64)> = rows.iter().filter_map(count).collect();
        if counts.len() < rows.len() {
            return Err(self.why(probe, column, counts.is_empty()));
        }
        if counts.is_sorted_by_key(|(_, count)| *count) {
            Ok(counts)
        } else {
            Err(Missing::Unknown)
        }
    }

    fn find(
        &self,
        probe: &str,
        object: &str,
        column: &str,
        kind: Kind,
    ) -> Result<(&'a Track, usize), Missing> {
        let known: &Probe = self.history.probe(probe).ok_or(Missing::NotInVersion)?;
        let mut columns = known.info.columns.iter();
        let index = columns.position(|info| info.name == column && info.kind == kind);
        let index = index.ok_or(Missing::NotInVersion)?;
        Ok((known.objects.get(object).ok_or(Missing::Unknown)?, index))
    }

    /// The rows from the first tick to the last, both included.
    fn rows(&self, track: &'a Track) -> Vec<&'a (u64, Vec<Cell>)> {
        track.range(self.within(track)).collect()
    }

    /// The last of them.
    fn last(&self, track: &'a Track) -> Option<&'a [Cell]> {
        let within = self.within(track);
        let last = within.end.checked_sub(1).filter(|last| within.contains(last))?;
        track.get(last).map(|(_, cells)| cells.as_slice())
    }

    /// Where in a track they are.
    fn within(&self, track: &Track) -> Range<usize> {
        let first = track.partition_point(|(t_ns, _)| *t_ns < self.from_ns);
        let end = track.partition_point(|(t_ns, _)| *t_ns <= self.to_ns).max(first);
        first..end
    }

    /// Why cells of a column are empty. Where nobody says why and none has a value, there is no
    /// such thing: a process that never reads has no reads.
    fn why(&self, probe: &str, column: &str, never: bool) -> Missing {
        match self.reason(probe, column) {
            Some(Unmeasured::Off(_)) => Missing::Off,
            Some(Unmeasured::NotInVersion(_)) => Missing::NotInVersion,
            Some(Unmeasured::NotPermitted(_)) => Missing::NotPermitted,
            None if never => Missing::Nothing,
            None => Missing::Unknown,
        }
    }
}

/// `part` for each of `whole`; nothing when there was none.
pub(crate) fn ratio(part: Known, whole: Known) -> Known {
    let (part, whole) = (part?, whole?);
    if whole == 0.0 { Err(Missing::Nothing) } else { Ok(part / whole) }
}

/// The sum; missing when one part is.
pub(crate) fn sum(parts: impl IntoIterator<Item = Known>) -> Known {
    // A sum of nothing is zero, not the negative zero that `Iterator::sum` makes of it.
    parts.into_iter().try_fold(0.0, |sum, part| Ok(sum + part?))
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::Unit;
    use blockstone_record::manifest::ProbeInfo;
    use proptest::prelude::*;

    use super::*;

    fn history(rows: &[(u64, Option<i64>)]) -> History {
        let column = |name: &str, kind| ColumnInfo {
            name: name.to_owned(),
            unit: Unit::Count,
            kind,
            source: String::new(),
            doc: String::new(),
            unmeasured: None,
        };
        let mut history = History::new(vec![ProbeInfo {
            probe: "host".to_owned(),
            doc: String::new(),
            columns: vec![column("ios", Kind::Counter), column("depth", Kind::Gauge)],
            ticks: 0,
            missed_ticks: 0,
        }]);
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
