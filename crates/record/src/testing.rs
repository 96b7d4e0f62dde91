//! Recordings for tests: a manifest to start from, phases with the loads named in their labels, and
//! a builder that writes them through [`Recorder`], as a measurement does.
//!
//! ```
//! # use blockstone_base::column::Schema;
//! # use blockstone_base::load::Op;
//! # use blockstone_record::LatencyClock;
//! # use blockstone_record::testing::{self, RecordingBuilder, SECOND_NS, counters, schema};
//! # let parent = tempfile::tempdir().unwrap();
//! # let dir = parent.path().join("run");
//! static DISK: Schema = schema("disk", &counters(["read_ios", "read_bytes"]));
//!
//! let mut recording = RecordingBuilder::new(testing::manifest(), &[&DISK]);
//! recording.add(testing::point("random-read/psync/x4"), (SECOND_NS, 10 * SECOND_NS));
//! recording.series("disk", ["read_ios", "read_bytes"], &[("vda", [6_000, 6_000 << 13])]);
//! recording.latencies("", Op::Read, LatencyClock::Intended, &[(100_000, 990), (2_000_000, 10)]);
//! let series = recording.write(&dir).series("disk").unwrap();
//! assert_eq!(series.delta(0, "vda", SECOND_NS, 11 * SECOND_NS, "read_ios"), Some(60_000));
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "only tests use it: a panic is how they fail"
)]

mod parts;

use std::collections::BTreeMap;
use std::path::Path;

use blockstone_base::LatencyHistogram;
use blockstone_base::column::{Cell, Column, Kind, Schema};
use blockstone_base::load::Op;

pub use parts::{
    FILE_BYTES, capability, clocks, counters, device, drive, figure, file, load, manifest, phase,
    point, probe, schema,
};

use crate::manifest::{Manifest, Phase};
use crate::{HistogramRow, LatencyClock, Recorder, Recording};

/// A recording under construction: its phases and their counters.
#[derive(Clone)]
pub struct RecordingBuilder {
    /// The manifest without phases and probes, which are filled in when it is written.
    pub manifest: Manifest,
    pub phases: Vec<PhaseBuilder>,
    /// Interval between two rows of a probe.
    pub tick_ns: u64,
    probes: Vec<&'static Schema>,
}

/// A phase and its rows: every counter that is set has a row at each tick.
#[derive(Clone)]
pub struct PhaseBuilder {
    pub phase: Phase,
    /// By (probe, object), then column. Other columns of these objects do not change.
    counters: BTreeMap<(String, String), BTreeMap<String, Counter>>,
    bursts: Vec<(String, String)>,
    /// Latencies; their phase is set when they are written.
    pub histograms: Vec<HistogramRow>,
}

/// How a counter changes.
#[derive(Clone)]
enum Counter {
    /// Grows evenly by this total over the window.
    Grows(u64),
    /// Takes these values at the ticks of the window.
    Reads(Vec<u64>),
    Unmeasured,
}

pub const SECOND_NS: u64 = 1_000_000_000;
/// Interval between bursts: there are then too few for a rate, so that its interval is wide.
const BURST_NS: u64 = 2 * SECOND_NS;

/// Value of a counter at the start of its phase.
const BASE: u64 = 1_000;

impl RecordingBuilder {
    /// Creates a complete recording of these probes, without phases.
    pub fn new(manifest: Manifest, probes: &[&'static Schema]) -> Self {
        let (phases, probes) = (Vec::new(), probes.to_vec());
        Self { manifest, phases, tick_ns: SECOND_NS / 10, probes }
    }

    /// Adds a probe.
    pub fn observe(&mut self, schema: &'static Schema) {
        self.probes.push(schema);
    }

    /// Adds a phase that starts a tick after the last one, with this warm-up and window.
    pub fn add(&mut self, phase: Phase, (warm_up_ns, window_ns): (u64, u64)) -> &mut PhaseBuilder {
        let start_ns = self.phases.last().map_or(0, |last| last.phase.end_ns + self.tick_ns);
        let same = self.phases.iter().filter(|last| last.phase.label == phase.label);
        let repeat = same.count() as u32;
        let window_start_ns = start_ns + warm_up_ns;
        let end_ns = window_start_ns + window_ns;
        self.push(Phase {
            repeat,
            start_ns,
            window_start_ns,
            window_end_ns: end_ns,
            end_ns,
            ..phase
        })
    }

    /// Adds a phase with its times already set.
    pub fn push(&mut self, phase: Phase) -> &mut PhaseBuilder {
        let (counters, bursts, histograms) = (BTreeMap::new(), Vec::new(), Vec::new());
        self.phases.push(PhaseBuilder { phase, counters, bursts, histograms });
        self.last()
    }

    /// Returns the phase that was added last.
    pub fn last(&mut self) -> &mut PhaseBuilder {
        self.phases.last_mut().unwrap()
    }

    /// Returns the first phase with this label.
    pub fn phase(&mut self, label: &str) -> &mut PhaseBuilder {
        self.phases.iter_mut().find(|built| built.phase.label == label).unwrap()
    }

    /// [`PhaseBuilder::set`] for the last phase.
    pub fn set(&mut self, probe: &str, object: &str, column: &str, a_second: u64) {
        self.last().set(probe, object, column, a_second);
    }

    /// Sets the growth per second of counters in the last phase: one row per object.
    pub fn series<const N: usize>(
        &mut self,
        probe: &str,
        columns: [&str; N],
        rows: &[(&str, [u64; N])],
    ) {
        for (object, values) in rows {
            for (column, a_second) in columns.into_iter().zip(values) {
                self.set(probe, object, column, *a_second);
            }
        }
    }

    /// Removes a probe from the last phase, as if it had seen nothing.
    pub fn remove(&mut self, probe: &str) {
        self.last().retain(|known| known != probe);
    }

    /// Makes the counters of an object move only every two seconds in the last phase, all together.
    pub fn in_bursts(&mut self, probe: &str, object: &str) {
        self.last().bursts.push((probe.to_owned(), object.to_owned()));
    }

    /// [`PhaseBuilder::latencies`] for the last phase.
    pub fn latencies(&mut self, role: &str, op: Op, clock: LatencyClock, each: &[(u64, u64)]) {
        self.last().latencies(role, op, clock, each);
    }

    /// Writes the recording to `dir`, which must not exist or be empty, and opens it.
    pub fn write(&self, dir: &Path) -> Recording {
        let phases = self.phases.iter().map(|built| built.phase.clone()).collect();
        let manifest = Manifest { phases, ..self.manifest.clone() };
        let mut recorder = Recorder::create(dir, manifest, &self.probes).unwrap();
        for (index, built) in (0..).zip(&self.phases) {
            self.rows(&mut recorder, index, built);
            for row in &built.histograms {
                recorder.histogram(HistogramRow { phase: index, ..row.clone() }).unwrap();
            }
        }
        recorder.close(self.manifest.end.clone()).unwrap();
        Recording::open(dir).unwrap()
    }

    fn rows(&self, recorder: &mut Recorder, index: i32, built: &PhaseBuilder) {
        let Phase { start_ns, window_end_ns, .. } = built.phase;
        for ((probe, object), counters) in &built.counters {
            let schema = self.probes.iter().find(|schema| schema.probe == probe).unwrap();
            let bursts = built.bursts.contains(&(probe.clone(), object.clone()));
            for t_ns in (start_ns..=window_end_ns).step_by(self.tick_ns as usize) {
                let spent_ns = t_ns - start_ns;
                let spent_ns = if bursts { spent_ns / BURST_NS * BURST_NS } else { spent_ns };
                let cell = |column: &Column| match (counters.get(column.name), column.kind) {
                    (_, Kind::State) | (Some(Counter::Unmeasured), _) => Cell::Unmeasured,
                    (None, _) => Cell::from(BASE),
                    (Some(Counter::Grows(total)), _) => {
                        let grown = u128::from(*total) * u128::from(spent_ns);
                        Cell::from(BASE + (grown / u128::from(built.window_ns())) as u64)
                    }
                    (Some(Counter::Reads(numbers)), _) => {
                        let since_ns = t_ns.saturating_sub(built.phase.window_start_ns);
                        Cell::from(numbers[(since_ns / self.tick_ns) as usize])
                    }
                };
                let cells: Vec<Cell> = schema.columns.iter().map(cell).collect();
                recorder.row(probe, t_ns, index, object, &cells).unwrap();
            }
        }
    }
}

impl PhaseBuilder {
    fn window_ns(&self) -> u64 {
        self.phase.window_end_ns - self.phase.window_start_ns
    }

    fn counter(&mut self, (probe, object): (&str, &str), column: &str, counter: Counter) {
        let of = self.counters.entry((probe.to_owned(), object.to_owned())).or_default();
        of.insert(column.to_owned(), counter);
    }

    /// Sets the growth per second of a counter.
    pub fn set(&mut self, probe: &str, object: &str, column: &str, a_second: u64) {
        let total = u128::from(a_second) * u128::from(self.window_ns()) / u128::from(SECOND_NS);
        self.counter((probe, object), column, Counter::Grows(total as u64));
    }

    /// Sets the growth of a counter from edge to edge of the window; `None` if it was not measured.
    pub fn grow(&mut self, of: (&str, &str), column: &str, total: Option<u64>) {
        self.counter(of, column, total.map_or(Counter::Unmeasured, Counter::Grows));
    }

    /// Sets the value at each tick of the window; before it, the first value applies.
    pub fn read(&mut self, of: (&str, &str), column: &str, numbers: Vec<u64>) {
        self.counter(of, column, Counter::Reads(numbers));
    }

    /// Keeps only these probes, as if there had been no others.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.counters.retain(|(probe, _), _| keep(probe));
    }

    /// Adds the same latencies in every second of the phase, as (ns, count).
    pub fn latencies(&mut self, role: &str, op: Op, clock: LatencyClock, each: &[(u64, u64)]) {
        let mut histogram = LatencyHistogram::new();
        for &(ns, count) in each {
            (0..count).for_each(|_| histogram.record(ns));
        }
        let role = role.to_owned();
        let (phase, second, page, windowed) = (0, 0, None, true);
        let row = HistogramRow { phase, second, page, op, role, windowed, clock, histogram };
        let Phase { start_ns, window_start_ns, end_ns, .. } = self.phase;
        self.histograms.extend((start_ns..end_ns).step_by(SECOND_NS as usize).map(|t_ns| {
            let second = (t_ns / SECOND_NS) as u32;
            HistogramRow { second, windowed: t_ns >= window_start_ns, ..row.clone() }
        }));
    }
}
