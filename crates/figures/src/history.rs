//! Raw rows in memory by probe and object, in order of time, and the histograms of a recording.

pub(crate) mod interval;
pub(crate) mod latencies;
pub(crate) mod part;
mod wall_clock;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use blockstone_base::LatencyHistogram;
use blockstone_base::column::{Cell, Kind, Unmeasured};
use blockstone_base::histogram::Buckets;
use blockstone_record::manifest::{Imported, Phase, ProbeInfo};
use blockstone_record::{HistogramRow, LatencyClock, RecordError, Recording, Series, TICKS};
use jiff::tz::TimeZone;

use interval::Interval;
use latencies::{Bucket, Latencies};
pub use wall_clock::WallClock;

use crate::sample::Sample;

const SECOND_NS: u64 = 1_000_000_000;
const PAGE_NS: u64 = 50_000_000;

/// Rows reported by probes, for as long as they are kept.
#[derive(Clone, Debug, Default)]
pub struct History {
    probes: Vec<Probe>,
    ticks: BTreeSet<u64>,
    /// Ticks that have rows but are not edges of slices.
    beside: BTreeSet<u64>,
    clock: WallClock,
    imported: Option<Imported>,
    /// Seconds by role.
    seconds: BTreeMap<String, Vec<Second>>,
    windowed: BTreeMap<i32, Histograms>,
}

/// The latencies inside one phase's window, by role and clock.
type Histograms = BTreeMap<(String, LatencyClock), LatencyHistogram>;

/// Latencies of the operations or waits of one role that ended within one second.
#[derive(Clone, Debug)]
struct Second {
    phase: i32,
    windowed: bool,
    clock: LatencyClock,
    middle_ns: u64,
    sum_ns: u128,
    /// Each latency with its number of occurrences.
    counts: Buckets,
}

impl Second {
    /// Returns whether the second was windowed and its middle is within a part of the phase's
    /// window. A second that the window cuts counts with whatever part of it was windowed.
    fn is_in(&self, phase: i32, window_ns: (u64, u64), part: &Interval<'_>) -> bool {
        let middle_ns = self.middle_ns.clamp(window_ns.0 + 1, window_ns.1);
        self.phase == phase && self.windowed && middle_ns > part.from_ns && middle_ns <= part.to_ns
    }
}

fn middle_ns(row: &HistogramRow) -> u64 {
    let in_second = row.page.map_or(SECOND_NS / 2, |page| u64::from(page) * PAGE_NS + PAGE_NS / 2);
    u64::from(row.second) * SECOND_NS + in_second
}

/// Merges the latencies of several seconds: occurrences of each latency, and the sum of all times.
fn together<'a>(seconds: impl Iterator<Item = &'a Second>) -> (BTreeMap<u64, u64>, u128) {
    let (mut counts, mut sum_ns) = (BTreeMap::new(), 0);
    for second in seconds {
        sum_ns += second.sum_ns;
        for (ns, count) in &second.counts {
            *counts.entry(*ns).or_default() += count;
        }
    }
    (counts, sum_ns)
}

#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) info: ProbeInfo,
    pub(crate) objects: BTreeMap<String, Track>,
}

/// The rows of one object, in the order of time.
pub(crate) type Track = VecDeque<Row>;

/// Inserts a row at its place in time.
fn add(track: &mut Track, mut row: Row) {
    if let Some(last) = track.back().filter(|last| last.cells == row.cells) {
        row.cells = Arc::clone(&last.cells);
    }
    // A database may answer for a tick only after its next sample.
    let place = track.iter().rev().position(|known| known.t_ns <= row.t_ns);
    track.insert(track.len() - place.unwrap_or(track.len()), row);
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) t_ns: u64,
    /// Index into the phases of the recording; zero if rows come from probes directly.
    pub(crate) phase: i32,
    /// Shared with the previous row if nothing changed: most objects of a host are idle.
    pub(crate) cells: Arc<[Cell]>,
}

impl History {
    pub fn new(probes: Vec<ProbeInfo>) -> Self {
        let probe = |info| Probe { info, objects: BTreeMap::new() };
        Self { probes: probes.into_iter().map(probe).collect(), ..Self::default() }
    }

    /// Reads a whole recording.
    pub fn read(recording: &Recording) -> Result<Self, RecordError> {
        Self::read_probes(recording, |_| true)
    }

    /// Reads the wanted probes of a recording and all its histograms.
    pub fn read_probes(
        recording: &Recording,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, RecordError> {
        let probes = recording.manifest.probes.iter().filter(|info| wanted(&info.probe));
        let mut history = Self::new(probes.cloned().collect());
        history.imported.clone_from(&recording.manifest.imported);
        history.clock = WallClock::of(&recording.manifest);
        let names: Vec<String> = history.probes.iter().map(|p| p.info.probe.clone()).collect();
        for name in names {
            history.push_series(&name, &recording.series(&name)?);
        }
        recording.each_histogram(|row| history.push_histogram(row))?;
        Ok(history)
    }

    fn push_series(&mut self, probe: &str, series: &Series) {
        let width = series.columns().len();
        let mut rows: Vec<_> = series.rows().collect();
        // Rows are ordered by phase, then by object; within an object, only time matters here.
        if rows.first().map(|row| row.phase) != rows.last().map(|row| row.phase) {
            rows.sort_by_key(|row| row.t_ns);
        }
        if probe == TICKS {
            self.ticks.extend(rows.iter().map(|row| row.t_ns));
        }
        let Some(known) = self.probes.iter_mut().find(|known| known.info.probe == probe) else {
            return;
        };
        for of_object in rows.chunk_by(|a, b| a.object == b.object) {
            let track = known.objects.entry(of_object[0].object.to_owned()).or_default();
            for row in of_object {
                let cells = (0..width).map(|column| row.cell(column)).collect();
                add(track, Row { t_ns: row.t_ns, phase: row.phase, cells });
            }
        }
    }

    fn push_histogram(&mut self, row: HistogramRow) {
        let second = Second {
            phase: row.phase,
            windowed: row.windowed,
            clock: row.clock,
            middle_ns: middle_ns(&row),
            sum_ns: row.histogram.sum_ns(),
            counts: row.histogram.buckets().collect(),
        };
        self.seconds.entry(row.role.clone()).or_default().push(second);
        if row.windowed {
            let histograms = self.windowed.entry(row.phase).or_default();
            histograms.entry((row.role, row.clock)).or_default().merge(&row.histogram);
        }
    }

    /// Returns the tool that measured, if it was not Blockstone.
    pub fn imported(&self) -> Option<&Imported> {
        self.imported.as_ref()
    }

    pub fn set_imported(&mut self, imported: Imported) {
        self.imported = Some(imported);
    }

    /// Returns the latencies of an event in the seconds whose middles are within an interval.
    pub(crate) fn waited(&self, event: &str, interval: &Interval<'_>) -> Vec<Latencies> {
        let Some(seconds) = self.seconds.get(event) else { return Vec::new() };
        let inside = |second: &&Second| {
            second.clock == LatencyClock::Submitted
                && second.middle_ns > interval.from_ns
                && second.middle_ns <= interval.to_ns
        };
        let (counts, sum_ns) = together(seconds.iter().filter(inside));
        let bucket = |(ns, count)| Bucket { from_ns: ns, to_ns: Some(ns), count: count as f64 };
        vec![Latencies {
            operation: "wait".to_owned(),
            buckets: counts.into_iter().map(bucket).collect(),
            sum_ns: Some(sum_ns as f64),
            queue_ns: None,
        }]
    }

    /// Returns the windowed latencies of a phase, by role and clock, from the seconds whose middles
    /// are within a part of its window.
    pub(crate) fn windowed_in(
        &self,
        phase: i32,
        window_ns: (u64, u64),
        part: &Interval<'_>,
    ) -> Vec<(&str, LatencyClock, LatencyHistogram)> {
        let inside = |second: &&Second| second.is_in(phase, window_ns, part);
        let mut found = Vec::new();
        for (role, seconds) in &self.seconds {
            for clock in LatencyClock::ALL {
                let of_clock = |second: &&Second| second.clock == clock;
                let (counts, sum_ns) = together(seconds.iter().filter(of_clock).filter(inside));
                if !counts.is_empty() {
                    let histogram = LatencyHistogram::of_buckets(counts, sum_ns);
                    found.push((role.as_str(), clock, histogram));
                }
            }
        }
        found
    }

    /// Returns the latencies of a role in each of those seconds, in order of time.
    pub(crate) fn seconds_in(
        &self,
        (phase, window_ns): (i32, (u64, u64)),
        (role, clock): (&str, LatencyClock),
        part: &Interval<'_>,
    ) -> Vec<&Buckets> {
        let seconds = self.seconds.get(role).into_iter().flatten();
        let inside =
            seconds.filter(|second| second.clock == clock && second.is_in(phase, window_ns, part));
        let mut inside: Vec<&Second> = inside.collect();
        inside.sort_by_key(|second| second.middle_ns);
        inside.into_iter().map(|second| &second.counts).collect()
    }

    /// Sets how far the wall clock is ahead of the history from an instant on.
    pub fn set_clock(&mut self, t_ns: u64, ahead_ns: i128) {
        self.clock.set(t_ns, ahead_ns);
    }

    /// Sets the time zone of the wall clock.
    #[must_use]
    pub fn in_zone(mut self, zone: TimeZone) -> Self {
        self.clock.zone = zone;
        self
    }

    /// Returns the time of the wall clock in nanoseconds since 1970, `None` if that is not known.
    pub fn realtime_ns(&self, t_ns: u64) -> Option<i128> {
        self.clock.realtime_ns(t_ns)
    }

    /// Returns the wall-clock time in the history's zone, in seconds.
    pub fn local_s(&self, t_ns: u64) -> Option<f64> {
        self.clock.local_s(t_ns)
    }

    /// Returns the wall-clock time as ISO 8601 with its offset from UTC.
    pub fn time(&self, t_ns: u64) -> Option<String> {
        self.clock.text(t_ns)
    }

    /// Adds a row. A row of an unknown probe is ignored.
    pub fn push(&mut self, probe: &str, t_ns: u64, object: &str, cells: Vec<Cell>) {
        if probe == TICKS {
            self.ticks.insert(t_ns);
        }
        let Some(known) = self.probes.iter_mut().find(|known| known.info.probe == probe) else {
            return;
        };
        let row = Row { t_ns, phase: 0, cells: cells.into() };
        match known.objects.get_mut(object) {
            Some(track) => add(track, row),
            None => drop(known.objects.insert(object.to_owned(), VecDeque::from([row]))),
        }
    }

    /// Adds a series that has no rows yet.
    pub fn add_probe(&mut self, info: ProbeInfo) {
        self.probes.push(Probe { info, objects: BTreeMap::new() });
    }

    /// Records why a column is empty.
    pub fn unmeasured(&mut self, probe: &str, column: &str, why: &Unmeasured) {
        let known = self.probes.iter_mut().filter(|known| known.info.probe == probe);
        for info in known.flat_map(|known| &mut known.info.columns) {
            if info.name == column {
                info.unmeasured = Some(why.clone());
            }
        }
    }

    /// Drops all rows before an instant, and objects that have no later ones. Probes whose columns
    /// are all states are kept: they are recorded once and for all.
    pub fn forget_before(&mut self, t_ns: u64) {
        self.ticks = self.ticks.split_off(&t_ns);
        self.beside = self.beside.split_off(&t_ns);
        for probe in &mut self.probes {
            if probe.info.columns.iter().all(|column| column.kind == Kind::State) {
                continue;
            }
            for track in probe.objects.values_mut() {
                while track.front().is_some_and(|row| row.t_ns < t_ns) {
                    track.pop_front();
                }
            }
            probe.objects.retain(|_, track| !track.is_empty());
        }
    }

    /// Returns the instants at which everything was read, in order.
    pub fn ticks(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.ticks.iter().copied()
    }

    /// Returns the last tick at or before an instant.
    pub fn tick_at(&self, t_ns: u64) -> Option<u64> {
        self.ticks.range(..=t_ns).next_back().copied()
    }

    /// Returns the tick nearest to an instant among those that have rows.
    pub fn tick_near(&self, t_ns: u64) -> Option<u64> {
        let near = |ticks: &BTreeSet<u64>| {
            let around = [ticks.range(..t_ns).next_back(), ticks.range(t_ns..).next()];
            around.into_iter().flatten().copied().min_by_key(|tick| tick.abs_diff(t_ns))
        };
        let found = [near(&self.ticks), near(&self.beside)];
        found.into_iter().flatten().min_by_key(|tick| tick.abs_diff(t_ns))
    }

    /// Returns the latest interval: that between the last two ticks.
    pub fn latest(&self) -> Option<Interval<'_>> {
        let mut ticks = self.ticks().rev();
        let to_ns = ticks.next()?;
        Some(self.interval(ticks.next()?, to_ns))
    }

    /// Returns the interval from the first tick to the last.
    pub fn whole(&self) -> Option<Interval<'_>> {
        let (from_ns, to_ns) = (self.ticks.first()?, self.ticks.last()?);
        (from_ns < to_ns).then(|| self.interval(*from_ns, *to_ns))
    }

    /// Returns the interval between two ticks.
    pub fn interval(&self, from_ns: u64, to_ns: u64) -> Interval<'_> {
        Interval::new(self, from_ns, to_ns)
    }

    /// Returns the window of a phase: its edges are exact, and only rows of that phase count.
    pub fn window(&self, index: usize, phase: &Phase) -> Interval<'_> {
        Interval::of_window(self, index, phase)
    }

    /// Returns the latencies inside the window of a phase, by role and clock.
    pub(crate) fn windowed(
        &self,
        phase: i32,
    ) -> impl Iterator<Item = (&(String, LatencyClock), &LatencyHistogram)> {
        self.windowed.get(&phase).into_iter().flatten()
    }

    pub fn probes(&self) -> impl Iterator<Item = &ProbeInfo> {
        self.probes.iter().map(|probe| &probe.info)
    }

    /// Returns the objects that a probe saw at the last tick, with their cells.
    pub fn last_rows(&self, probe: &str) -> Vec<(&str, &[Cell])> {
        let (Some(last_ns), Some(probe)) = (self.ticks.last(), self.probe(probe)) else {
            return Vec::new();
        };
        let last = probe.objects.iter().filter_map(|(object, track)| {
            let row = track.back()?;
            (row.t_ns == *last_ns).then_some((object.as_str(), &*row.cells))
        });
        last.collect()
    }

    /// Returns the rows since an instant in order of time, each with its series and object. Texts
    /// that were recorded once are all among them, with the instant at the earliest.
    pub fn rows_since(&self, from_ns: u64) -> Vec<(u64, &str, &str, &[Cell])> {
        let mut rows = Vec::new();
        for probe in &self.probes {
            let is_text = probe.info.columns.iter().all(|column| column.kind == Kind::State);
            for (object, track) in &probe.objects {
                let first = track.partition_point(|row| row.t_ns < from_ns);
                let kept = track.range(if is_text { 0 } else { first }..);
                rows.extend(kept.map(|row| {
                    let name = (probe.info.probe.as_str(), object.as_str());
                    (row.t_ns.max(from_ns), name.0, name.1, &*row.cells)
                }));
            }
        }
        rows.sort_by_key(|row| row.0);
        rows
    }

    /// Returns all rows of a series of any instance, by object, then in order of time.
    pub fn rows(&self, kind: &str) -> impl Iterator<Item = Sample<'_>> {
        let probes = self.probes.iter().filter(move |probe| probe.info.kind() == kind);
        probes.flat_map(|probe| {
            let (columns, instance) = (probe.info.columns.as_slice(), probe.info.instance());
            let objects = probe.objects.iter();
            objects.flat_map(move |(object, track)| {
                track.iter().map(move |row| {
                    let (t_ns, cells) = (row.t_ns, &*row.cells);
                    Sample { t_ns, instance, object, cells, columns }
                })
            })
        })
    }

    /// Returns a probe's series of one of several instances.
    pub(crate) fn series(&self, kind: &str, instance: Option<&str>) -> Option<&Probe> {
        instance?;
        let is_it = |probe: &&Probe| (probe.info.kind(), probe.info.instance()) == (kind, instance);
        self.probes.iter().find(is_it)
    }

    /// Returns whether the history has this series, for one instance or for several.
    pub fn has(&self, kind: &str) -> bool {
        self.probes.iter().any(|probe| probe.info.kind() == kind)
    }

    pub(crate) fn probe(&self, name: &str) -> Option<&Probe> {
        self.probes.iter().find(|probe| probe.info.probe == name)
    }
}

#[cfg(test)]
mod tests {
    use blockstone_record::testing;

    use super::*;

    #[test]
    fn an_idle_object_takes_the_memory_of_one_row() {
        let disk = testing::probe("disk", &[(Kind::Counter, "ios"), (Kind::State, "kind")]);
        let mut history = History::new(vec![disk]);
        for t_ns in 0..600 {
            for (object, ios) in [("idle", 7), ("busy", t_ns as i64)] {
                let cells = vec![Cell::Value(ios), Cell::Text("disk".to_owned())];
                history.push("disk", t_ns, object, cells);
            }
        }
        let different = |object: &str| {
            let track = &history.probe("disk").unwrap().objects[object];
            track.iter().map(|row| Arc::as_ptr(&row.cells).cast::<Cell>()).collect::<BTreeSet<_>>()
        };
        assert_eq!((different("idle").len(), different("busy").len()), (1, 600));
        assert_eq!(history.interval(3, 599).grown("disk", "busy", "ios"), Ok(596));
        assert_eq!(history.interval(3, 599).grown("disk", "idle", "ios"), Ok(0));
    }
}
