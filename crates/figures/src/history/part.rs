//! A part of a long recording, read as finely as tables and charts need it. Its memory depends on
//! the part, not on the length of the recording.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::database::{SESSION, SESSIONS};
use blockstone_record::manifest::kind_and_instance;
use blockstone_record::{
    HistogramRow, Level, RecordError, Recording, Series, TICKS, TimeRange, ticks_of,
};

use super::wall_clock::WallClock;
use super::{History, SECOND_NS};

/// Approximate maximum of the ticks of a part that are kept.
const MOST_TICKS: usize = 1024;
/// Series whose rows are samples, each of which counts.
const SAMPLED: [&str; 2] = [SESSION.probe, SESSIONS.probe];

/// A probe that is read seldom, and the longest time between its readings, in nanoseconds. Its
/// rates are those between readings, so that shorter slices need all of its rows.
const SELDOM: (&str, u64) = ("nvme", 25 * SECOND_NS);
/// Lengths of the most recent stretches of an interval that views also show, in seconds.
pub const RECENT_S: [u64; 2] = [15, 60];
/// How far views look back before the start of a short interval.
const LOOK_BACK_NS: u64 = 60 * SECOND_NS;

/// Selection of the rows of a series that determine the figures of a part.
struct Plan {
    ticks: Vec<u64>,
    /// Ticks of the part that are kept, from its first to its last.
    edges: Vec<u64>,
    /// Other ticks whose rows are kept.
    beside: Vec<u64>,
    /// Both of these, and the first tick that is looked back at.
    rows: Vec<u64>,
    /// Distance between edges in ticks; 1 if all ticks are kept.
    step: usize,
    /// Level that has all edges but the first and the last.
    level: Level,
}

impl Plan {
    /// Plans for the time between two ticks.
    fn new(ticks: Vec<u64>, (from_ns, to_ns): (u64, u64), coarsest: Level) -> Self {
        let at = |t_ns: u64| ticks.partition_point(|&tick| tick < t_ns);
        let (first, last) = (at(from_ns), at(to_ns));
        let mut step = last.saturating_sub(first).div_ceil(MOST_TICKS).max(1);
        let level = (1..=coarsest).take_while(|&level| ticks_of(level) <= step).last();
        let level = level.unwrap_or(0);
        step = step.next_multiple_of(ticks_of(level));
        let inner = (first + 1..last).filter(|at| at.is_multiple_of(step)).map(|at| ticks[at]);
        let edges: BTreeSet<u64> = inner.chain([from_ns, to_ns]).collect();
        let start = at(from_ns.saturating_sub(LOOK_BACK_NS)).min(first);
        let beside = if step == 1 {
            ticks[start..first].to_vec()
        } else {
            let back = RECENT_S.map(|seconds| to_ns.saturating_sub(seconds * SECOND_NS));
            back.iter().filter_map(|&t_ns| nearest(&ticks, t_ns)).collect()
        };
        let rows: BTreeSet<u64> =
            edges.iter().chain(&beside).chain(ticks.get(start)).copied().collect();
        let [edges, rows] = [edges, rows].map(|set| set.into_iter().collect());
        Self { ticks, edges, beside, rows, step, level }
    }

    fn span(&self) -> (u64, u64) {
        let last = self.rows.len().saturating_sub(1);
        (self.rows.first().copied().unwrap_or(0), self.rows.get(last).copied().unwrap_or(0))
    }

    /// Returns the approximate length of a slice between two edges.
    fn slice_ns(&self) -> u64 {
        let (from_ns, to_ns) = self.span();
        (to_ns - from_ns) / self.edges.len().max(1) as u64
    }

    /// Returns the parts of a series to read, in order of time: what was before, the part itself,
    /// what came after. Edges that the level does not have are read from all rows.
    fn parts(&self, coarsest: Level) -> Vec<TimeRange<'_>> {
        let (from_ns, to_ns) = self.span();
        let rows = (self.step > 1).then_some(self.rows.as_slice());
        let part = |(from_ns, to_ns), level, edges| TimeRange { from_ns, to_ns, level, edges };
        let mut parts = Vec::new();
        if let Some(before) = from_ns.checked_sub(1) {
            parts.push(part((0, before), coarsest, Some(&[][..])));
        }
        // Between these two, all edges are edges of the level.
        let head = self.edges.get(1).copied();
        let tail = self.edges.partition_point(|&edge| edge.saturating_add(LOOK_BACK_NS) < to_ns);
        let tail = tail.checked_sub(1).map(|at| self.edges[at]);
        match (head, tail) {
            (Some(head), Some(tail)) if self.level > 0 && head < tail => {
                parts.push(part((from_ns, head), 0, rows));
                parts.push(part((head + 1, tail), self.level, rows));
                parts.push(part((tail + 1, to_ns), 0, rows));
            }
            _ => parts.push(part((from_ns, to_ns), 0, rows)),
        }
        parts.push(part((to_ns.saturating_add(1), u64::MAX), coarsest, Some(&[][..])));
        parts
    }
}

/// Returns the tick nearest to an instant.
fn nearest(ticks: &[u64], t_ns: u64) -> Option<u64> {
    let at = ticks.partition_point(|&tick| tick < t_ns);
    let around = ticks[at.saturating_sub(1)..].iter().take(2);
    around.copied().min_by_key(|tick| tick.abs_diff(t_ns))
}

impl History {
    /// Reads what determines the figures between two ticks; `ticks` are all ticks of the recording.
    /// The figures of that time, and of its slices between the ticks that are kept, are those from
    /// all rows.
    pub fn read_part(
        recording: &Recording,
        ticks: Vec<u64>,
        span_ns: (u64, u64),
    ) -> Result<Self, RecordError> {
        let mut history = Self::new(recording.manifest.probes.clone());
        history.imported.clone_from(&recording.manifest.imported);
        history.clock = WallClock::of(&recording.manifest);
        let coarsest = recording.coarsest(TICKS);
        let plan = Plan::new(ticks, span_ns, coarsest);
        for index in 0..history.probes.len() {
            let name = history.probes[index].info.probe.clone();
            let kind = kind_and_instance(&name).0;
            if SAMPLED.contains(&kind) || kind == SELDOM.0 && plan.slice_ns() < SELDOM.1 {
                let (from_ns, to_ns) = plan.span();
                let part = TimeRange { from_ns, to_ns, level: 0, edges: None };
                history.push_pieces(&name, &recording.part(&name, &part)?);
                continue;
            }
            for part in plan.parts(coarsest) {
                history.push_pieces(&name, &recording.part(&name, &part)?);
            }
        }
        history.ticks = plan.edges.iter().copied().collect();
        history.ticks.extend(plan.ticks.first().into_iter().chain(plan.ticks.last()));
        history.beside = plan.beside.iter().copied().collect();
        history.read_latencies(recording, &plan)?;
        Ok(history)
    }

    fn push_pieces(&mut self, probe: &str, pieces: &[Series]) {
        for series in pieces {
            self.push_series(probe, series);
        }
    }

    /// Reads the latencies of the part. Where ticks are left out, those between two edges are
    /// merged.
    fn read_latencies(&mut self, recording: &Recording, plan: &Plan) -> Result<(), RecordError> {
        let (from_ns, to_ns) = plan.span();
        let second = |t_ns: u64| u32::try_from(t_ns / SECOND_NS).unwrap_or(u32::MAX);
        let seconds = second(from_ns)..=second(to_ns);
        if plan.step == 1 {
            return recording.each_histogram_within(seconds, |row| self.push_histogram(row));
        }
        let mut together: BTreeMap<(usize, String, &str), HistogramRow> = BTreeMap::new();
        recording.each_histogram_within(seconds, |row| {
            let cell = plan.rows.partition_point(|&edge| edge < super::middle_ns(&row));
            let key = (cell, row.role.clone(), row.clock.name());
            together
                .entry(key)
                .and_modify(|sum| sum.histogram.merge(&row.histogram))
                .or_insert(row);
        })?;
        for row in together.into_values() {
            self.push_histogram(row);
        }
        Ok(())
    }
}
