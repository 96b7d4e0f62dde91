//! A part of a long recording, read as finely as tables and charts need it. What it takes in memory
//! follows from the part, not from the length of the recording.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::database::{SESSION, SESSIONS};
use blockstone_record::manifest::kind_and_instance;
use blockstone_record::{
    HistogramRow, Level, Part, RecordError, Recording, Series, TICKS, ticks_of,
};

use super::wall_clock::WallClock;
use super::{History, SECOND_NS};

/// Ticks of a part that are kept at most, about.
const MOST_TICKS: usize = 1024;
/// Their rows are samples, of which each counts.
const SAMPLED: [&str; 2] = [SESSION.probe, SESSIONS.probe];

/// Which rows of a series decide a part of its time.
struct Plan {
    ticks: Vec<u64>,
    /// The part's ticks that are kept, from its first to its last.
    edges: Vec<u64>,
    /// Their distance in ticks; 1 where all are kept.
    step: usize,
    /// The level that has all edges but the first and the last.
    level: Level,
}

impl Plan {
    /// For the time between two ticks.
    fn new(ticks: Vec<u64>, (from_ns, to_ns): (u64, u64), coarsest: Level) -> Self {
        let at = |t_ns: u64| ticks.partition_point(|&tick| tick < t_ns);
        let (first, last) = (at(from_ns), at(to_ns));
        let mut step = last.saturating_sub(first).div_ceil(MOST_TICKS).max(1);
        let level = (1..=coarsest).take_while(|&level| ticks_of(level) <= step).last();
        let level = level.unwrap_or(0);
        step = step.next_multiple_of(ticks_of(level));
        let inner = (first + 1..last).filter(|at| at.is_multiple_of(step)).map(|at| ticks[at]);
        let edges: BTreeSet<u64> = inner.chain([from_ns, to_ns]).collect();
        Self { edges: edges.into_iter().collect(), step, level, ticks }
    }

    fn span(&self) -> (u64, u64) {
        let last = self.edges.len().saturating_sub(1);
        (self.edges.first().copied().unwrap_or(0), self.edges.get(last).copied().unwrap_or(0))
    }

    /// The parts of a series to read, in the order of time: what was before, the part, what came
    /// after. Edges that are not of the level are read from all rows.
    fn parts(&self, coarsest: Level) -> Vec<Part<'_>> {
        let (from_ns, to_ns) = self.span();
        let edges = (self.step > 1).then_some(self.edges.as_slice());
        let part = |(from_ns, to_ns), level, edges| Part { from_ns, to_ns, level, edges };
        let mut parts = Vec::new();
        if let Some(before) = from_ns.checked_sub(1) {
            parts.push(part((0, before), coarsest, Some(&[][..])));
        }
        match self.edges[..] {
            [_, second, .., before_last, _] if self.level > 0 => {
                parts.push(part((from_ns, second), 0, edges));
                parts.push(part((second + 1, before_last), self.level, edges));
                parts.push(part((before_last + 1, to_ns), 0, edges));
            }
            _ => parts.push(part((from_ns, to_ns), 0, edges)),
        }
        parts.push(part((to_ns.saturating_add(1), u64::MAX), coarsest, Some(&[][..])));
        parts
    }
}

impl History {
    /// What decides the time between two ticks of a recording, of which these are all: figures of
    /// that time, and of its slices between the ticks that are kept, are those of all rows.
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
            if SAMPLED.contains(&kind_and_instance(&name).0) {
                let (from_ns, to_ns) = plan.span();
                let part = Part { from_ns, to_ns, level: 0, edges: None };
                history.push_pieces(&name, &recording.part(&name, &part)?);
                continue;
            }
            for part in plan.parts(coarsest) {
                history.push_pieces(&name, &recording.part(&name, &part)?);
            }
        }
        history.ticks = plan.edges.iter().copied().collect();
        history.ticks.extend(plan.ticks.first().into_iter().chain(plan.ticks.last()));
        history.read_latencies(recording, &plan)?;
        Ok(history)
    }

    fn push_pieces(&mut self, probe: &str, pieces: &[Series]) {
        for series in pieces {
            self.push_series(probe, series);
        }
    }

    /// The latencies of the part; where ticks are left out, those between two edges together.
    fn read_latencies(&mut self, recording: &Recording, plan: &Plan) -> Result<(), RecordError> {
        let (from_ns, to_ns) = plan.span();
        let second = |t_ns: u64| u32::try_from(t_ns / SECOND_NS).unwrap_or(u32::MAX);
        let seconds = second(from_ns)..=second(to_ns);
        if plan.step == 1 {
            return recording.each_histogram_within(seconds, |row| self.push_histogram(row));
        }
        let mut together: BTreeMap<(usize, String, &str), HistogramRow> = BTreeMap::new();
        recording.each_histogram_within(seconds, |row| {
            let cell = plan.edges.partition_point(|&edge| edge < super::middle_ns(&row));
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
