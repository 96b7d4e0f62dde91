//! The windows of a recording: for each phase, what each layer counted between the two edges.
//! Nothing is pooled or derived here; everything after this works on these and the manifest.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::LatencyHistogram;
use blockstone_base::histogram::Buckets;
use blockstone_base::identity::BlockDevice;
use blockstone_base::load::SHARES;
use blockstone_base::stats::bursts::{self, Seen};
use blockstone_figures::{CPU_USES, Grown, History, Interval, Missing, Track};
use blockstone_record::manifest::{Manifest, Measured, Phase};
use blockstone_record::{LatencyClock, RecordError, Recording};

/// Role and object of the second load in histograms and series.
const BACKGROUND: &str = "background";

#[derive(Clone, Debug)]
pub struct Window {
    /// Index into the manifest's phases.
    pub phase: usize,
    /// The load generator at each tick from edge to edge, edges included, ascending.
    pub ticks: Vec<Tick>,
    /// The second load likewise, where one ran.
    pub background: Vec<Tick>,
    /// Windowed latencies of the main load from the intended start.
    pub histogram: LatencyHistogram,
    /// The same latencies by part: of 50 ms each, or of a second in recordings of older versions.
    pub parts: Vec<Buckets>,
    /// How long operations that had not completed at the window's end had lasted; `None` in
    /// recordings of older versions.
    pub unfinished: Option<LatencyHistogram>,
    /// Sum of submission delays in the window.
    pub lag_ns_sum: u64,
    /// The longest of them since the phase began.
    pub lag_ns_max: u64,
    /// Sum of the part of these delays that the load generator itself caused.
    pub late_ns_sum: Grown,
    /// Time that workers spun until operations were due.
    pub spin_ns_sum: Grown,
    /// Blocks checked and operations failed, over the whole phase: an error during warm-up counts.
    pub checks: Checks,
    pub process: Growth,
    pub host: Growth,
    /// Pages of the files under load that this process added to the page cache.
    pub added_pages: Grown,
    /// Growth of each device's counters (`block`), in the order of the chain; with several targets,
    /// those at the top of a chain first.
    pub devices: Vec<(String, Growth)>,
    /// Number of `devices` that are at the top of a chain.
    pub tops: usize,
    /// Part of the main load that each of several targets had, by its path.
    pub shares: Vec<(String, Vec<Tick>)>,
}

/// The load generator's counters at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Time since the recording began.
    pub t_ns: u64,
    /// Operations completed since the phase began.
    pub ops: u64,
    pub bytes: u64,
    /// Sum of their latencies from the intended start.
    pub latency_ns_sum: u64,
    /// Time at which the last of the operations completed; `None` in recordings of older versions.
    pub last_completed_ns: Option<u64>,
}

/// Checked blocks and failed operations of a whole phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    pub failed_ops: u64,
    pub stamps_verified: u64,
    pub checksums_verified: u64,
    pub mismatches: u64,
}

/// Growth of counters between the edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth(BTreeMap<&'static str, Grown>);

impl Growth {
    pub fn of(
        interval: &Interval<'_>,
        (probe, object): (&str, &str),
        columns: &[&'static str],
    ) -> Self {
        let column = |&name: &&'static str| (name, interval.grown(probe, object, name));
        Self(columns.iter().map(column).collect())
    }

    /// Returns the growth of `column`.
    pub fn get(&self, column: &str) -> Grown {
        self.0.get(column).copied().unwrap_or(Err(Missing::NotInVersion))
    }

    /// Adds `value` to `column`, if that was measured.
    pub fn add(&mut self, column: &str, value: u64) {
        if let Some(Ok(sum)) = self.0.get_mut(column) {
            *sum += value;
        }
    }

    /// Returns the sum over `columns`.
    pub fn sum(&self, columns: &[&str]) -> Grown {
        columns.iter().map(|column| self.get(column)).sum()
    }
}

#[cfg(test)]
impl Growth {
    pub(crate) fn set(&mut self, column: &'static str, grown: u64) {
        self.0.insert(column, Ok(grown));
    }
}

impl FromIterator<(&'static str, u64)> for Growth {
    fn from_iter<I: IntoIterator<Item = (&'static str, u64)>>(columns: I) -> Self {
        Self(columns.into_iter().map(|(column, grown)| (column, Ok(grown))).collect())
    }
}

impl Default for Window {
    fn default() -> Self {
        Self {
            phase: 0,
            ticks: Vec::new(),
            background: Vec::new(),
            histogram: LatencyHistogram::new(),
            parts: Vec::new(),
            unfinished: None,
            lag_ns_sum: 0,
            lag_ns_max: 0,
            late_ns_sum: Ok(0),
            spin_ns_sum: Ok(0),
            checks: Checks::default(),
            process: Growth::default(),
            host: Growth::default(),
            added_pages: Err(Missing::NotInVersion),
            devices: Vec::new(),
            tops: 1,
            shares: Vec::new(),
        }
    }
}

impl Window {
    /// Returns the summed growth of counters of the devices at the top.
    pub fn top(&self, columns: &[&str]) -> Grown {
        self.devices.first().ok_or(Missing::Unknown)?;
        self.devices.iter().take(self.tops).map(|(_, device)| device.sum(columns)).sum()
    }

    /// Returns the ticks of the target with this path.
    pub fn share(&self, path: &str) -> &[Tick] {
        self.shares.iter().find(|(of, _)| of == path).map_or(&[], |(_, ticks)| ticks)
    }

    /// Returns the length in nanoseconds, from the first to the last tick.
    pub fn duration_ns(&self) -> u64 {
        match (self.ticks.first(), self.ticks.last()) {
            (Some(first), Some(last)) => last.t_ns - first.t_ns,
            _ => 0,
        }
    }

    /// Returns the operations completed between the edges.
    pub fn completed_ops(&self) -> u64 {
        self.grown(|tick| tick.ops)
    }

    /// Returns the sum of the latencies, from the intended start, of operations completed between
    /// the edges.
    pub fn latency_ns_sum(&self) -> u64 {
        self.grown(|tick| tick.latency_ns_sum)
    }

    /// Returns the bytes completed between the edges by the main load.
    pub fn completed_bytes(&self) -> u64 {
        self.grown(|tick| tick.bytes)
    }

    /// Returns the bytes completed between the edges by the second load, which has the same
    /// direction.
    pub fn background_bytes(&self) -> u64 {
        grown(&self.background, |tick| tick.bytes)
    }

    /// Returns (`t_ns`, operations) at each tick.
    pub fn ops_track(&self) -> Track {
        self.ticks.iter().map(|tick| (tick.t_ns, tick.ops)).collect()
    }

    /// Returns operations at the times between which their rate is computed.
    pub fn rated_ops(&self) -> Track {
        rated(&self.ticks, &self.ticks, |tick| tick.ops)
    }

    /// Returns bytes at the times between which their rate is computed.
    pub fn rated_bytes(&self) -> Track {
        rated(&self.ticks, &self.ticks, |tick| tick.bytes)
    }

    /// Returns bytes of the second load at the times between which their rate is computed.
    pub fn rated_background_bytes(&self) -> Track {
        rated(&self.background, &self.background, |tick| tick.bytes)
    }

    /// Returns a count of the target with this path at the times between which its rate is
    /// computed, which are those of the whole load.
    pub fn rated_share(&self, path: &str, count: fn(&Tick) -> u64) -> Track {
        rated(&self.ticks, self.share(path), count)
    }

    /// Returns the operations a second between neighbouring ticks.
    pub fn slices(&self) -> Vec<f64> {
        self.ticks
            .windows(2)
            .filter(|pair| pair[1].t_ns > pair[0].t_ns)
            .map(|pair| {
                let ops = pair[1].ops.saturating_sub(pair[0].ops) as f64;
                ops * 1e9 / (pair[1].t_ns - pair[0].t_ns) as f64
            })
            .collect()
    }

    fn grown(&self, counter: fn(&Tick) -> u64) -> u64 {
        grown(&self.ticks, counter)
    }
}

fn grown(ticks: &[Tick], counter: fn(&Tick) -> u64) -> u64 {
    match (ticks.first(), ticks.last()) {
        (Some(first), Some(last)) => counter(last).saturating_sub(counter(first)),
        _ => 0,
    }
}

/// Returns the times between which the rate of a load is computed, with a count that was read at
/// the same ticks.
fn rated(load: &[Tick], ticks: &[Tick], count: fn(&Tick) -> u64) -> Track {
    let seen =
        |tick: &Tick| Seen { t_ns: tick.t_ns, count: tick.ops, reached_ns: tick.last_completed_ns };
    let seen: Vec<Seen> = load.iter().map(seen).collect();
    let edge = |(at, edge_ns): (usize, u64)| {
        let same = ticks.binary_search_by_key(&seen[at].t_ns, |tick| tick.t_ns).ok()?;
        Some((edge_ns, count(&ticks[same])))
    };
    bursts::edges(&seen).into_iter().filter_map(edge).collect()
}

/// Groups the windows by label, in the order in which labels were first measured.
pub(crate) fn by_label<'a>(
    manifest: &Manifest,
    windows: impl IntoIterator<Item = &'a Window>,
) -> Vec<Vec<&'a Window>> {
    let mut labels: Vec<(&str, Vec<&Window>)> = Vec::new();
    for window in windows {
        let label = manifest.phases[window.phase].label.as_str();
        match labels.iter_mut().find(|(known, _)| *known == label) {
            Some((_, repeats)) => repeats.push(window),
            None => labels.push((label, vec![window])),
        }
    }
    labels.into_iter().map(|(_, repeats)| repeats).collect()
}

const PROBES: [&str; 6] = ["load", "process", "host", "block", "page_cache", SHARES.probe];

/// Columns that later steps read; the probes record more.
pub(crate) const PROCESS: [&str; 7] = [
    "cpu_user_ns",
    "cpu_system_ns",
    "switches_voluntary",
    "switches_involuntary",
    "read_bytes",
    "write_bytes",
    "run_queue_ns",
];
pub(crate) const BLOCK: [&str; 7] =
    ["read_ios", "read_bytes", "read_ns", "write_ios", "write_bytes", "write_ns", "flush_ios"];

/// Reads the window of every phase that has a load between two edges, in the order of the phases.
pub fn read(recording: &Recording) -> Result<Vec<Window>, RecordError> {
    let manifest = &recording.manifest;
    let history = History::read_probes(recording, |probe| PROBES.contains(&probe))?;
    let held = |(_, phase): &(usize, &Phase)| {
        phase.load.is_some() && phase.window_end_ns > phase.window_start_ns
    };
    let phases = manifest.phases.iter().enumerate().filter(held);
    let windows = phases.map(|(index, phase)| Window {
        phase: index,
        ..Window::of(&history.window(index, phase), manifest)
    });
    let loaded = history.probes().any(|info| info.probe == "load");
    Ok(if loaded { windows.collect() } else { Vec::new() })
}

impl Window {
    fn of(interval: &Interval<'_>, manifest: &Manifest) -> Self {
        let share = |target: &Measured| {
            let path = target.target.path.clone();
            let ticks = ticks(interval, (SHARES.probe, &path));
            (path, ticks)
        };
        let in_phase = |column| interval.in_phase("load", "", column).unwrap_or(0);
        let lag_ns_max = interval.level("load", "", "lag_ns_max").unwrap_or(0.0);
        let (mut histogram, mut parts) = (LatencyHistogram::new(), Vec::new());
        let of_main_load = |(role, clock, _): &(&str, LatencyClock, _)| {
            *role != BACKGROUND && *clock == LatencyClock::Intended
        };
        for (role, clock, all) in interval.histograms().filter(of_main_load) {
            histogram.merge(all);
            parts.extend(interval.seconds_of(role, clock).into_iter().cloned());
        }
        let device =
            |name: &String| (name.clone(), Growth::of(interval, ("block", name.as_str()), &BLOCK));
        let devices = manifest.target.devices.iter();
        Self {
            phase: 0,
            ticks: ticks(interval, ("load", "")),
            background: ticks(interval, ("load", BACKGROUND)),
            histogram,
            parts,
            unfinished: interval.histogram("", LatencyClock::Unfinished).cloned(),
            lag_ns_sum: interval.grown("load", "", "lag_ns_sum").unwrap_or(0),
            lag_ns_max: lag_ns_max as u64,
            late_ns_sum: interval.grown("load", "", "late_ns_sum"),
            spin_ns_sum: interval.grown("load", "", "spin_ns_sum"),
            checks: Checks {
                failed_ops: in_phase("failed_ops"),
                stamps_verified: in_phase("stamps_verified"),
                checksums_verified: in_phase("checksums_verified"),
                mismatches: in_phase("mismatches"),
            },
            process: Growth::of(interval, ("process", ""), &PROCESS),
            host: Growth::of(interval, ("host", ""), &CPU_USES),
            added_pages: interval.grown("page_cache", "", "added_pages"),
            devices: devices.map(|device_at| device(&device_at.name)).collect(),
            tops: tops(manifest),
            shares: manifest.targets.iter().map(share).collect(),
        }
    }
}

/// Returns the counters of a load generator at each tick.
fn ticks(interval: &Interval<'_>, (probe, object): (&str, &str)) -> Vec<Tick> {
    let track = |column| interval.track(probe, object, column).unwrap_or_default();
    let at = |column| track(column).into_iter().collect::<BTreeMap<u64, u64>>();
    let (bytes, latency) = (at("completed_bytes"), at("latency_ns_sum"));
    let last = at("last_completed_ns");
    let tick = |(t_ns, ops)| Tick {
        t_ns,
        ops,
        bytes: bytes.get(&t_ns).copied().unwrap_or(0),
        latency_ns_sum: latency.get(&t_ns).copied().unwrap_or(0),
        last_completed_ns: last.get(&t_ns).copied(),
    };
    track("completed_ops").into_iter().map(tick).collect()
}

/// Returns the number of leading devices that count everything the targets moved, and nothing
/// twice. A partition is not among them if the whole disk is another target.
fn tops(manifest: &Manifest) -> usize {
    let chains = || manifest.targets.iter().map(|target| &target.target.devices);
    let tops: BTreeSet<&str> =
        chains().filter_map(|chain| Some(chain.first()?.name.as_str())).collect();
    let counted = |chain: &&Vec<BlockDevice>| {
        !chain.iter().skip(1).any(|device| tops.contains(device.name.as_str()))
    };
    let counted: BTreeSet<&str> =
        chains().filter(counted).filter_map(|chain| Some(chain.first()?.name.as_str())).collect();
    counted.len().max(1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use blockstone_base::column::Schema;
    use blockstone_base::load::SERIES;
    use blockstone_record::HistogramRow;
    use blockstone_record::manifest::Group;
    use blockstone_record::testing::{PhaseBuilder, RecordingBuilder, counters, schema};

    use super::*;
    use crate::testing::{Fixture, TICK_NS};

    static LOAD: Schema = SERIES;
    static PROCESS_SCHEMA: Schema = schema("process", &counters(PROCESS));
    static HOST_SCHEMA: Schema = schema("host", &counters(CPU_USES));
    static BLOCK_SCHEMA: Schema = schema("block", &counters(BLOCK));

    fn record(fixture: &Fixture, dir: &Path) -> Recording {
        let schemas = [&LOAD, &PROCESS_SCHEMA, &HOST_SCHEMA, &BLOCK_SCHEMA];
        let mut recording = RecordingBuilder::new(fixture.manifest.clone(), &schemas);
        recording.tick_ns = TICK_NS;
        for window in &fixture.windows {
            let phase = fixture.manifest.phases[window.phase].clone();
            held(window, recording.push(phase));
        }
        recording.write(dir)
    }

    /// Adds what the probes recorded of this window.
    fn held(window: &Window, phase: &mut PhaseBuilder) {
        let checks = window.checks;
        let mut load = |column, of: fn(&Tick) -> u64| {
            phase.read(("load", ""), column, window.ticks.iter().map(of).collect());
        };
        load("completed_ops", |tick| tick.ops);
        load("completed_bytes", |tick| tick.bytes);
        load("latency_ns_sum", |tick| tick.latency_ns_sum);
        for (column, total) in [
            ("stamps_verified", checks.stamps_verified),
            ("checksums_verified", checks.checksums_verified),
            ("mismatches", checks.mismatches),
            ("failed_ops", checks.failed_ops),
            ("lag_ns_max", 0),
        ] {
            phase.read(("load", ""), column, vec![total; window.ticks.len()]);
        }
        let mut grown = |of: (&str, &str), growth: &Growth, columns: &[&'static str]| {
            for column in columns {
                phase.grow(of, column, growth.get(column).ok());
            }
        };
        grown(("process", ""), &window.process, &PROCESS);
        grown(("host", ""), &window.host, &CPU_USES);
        for (name, growth) in &window.devices {
            grown(("block", name), growth, &BLOCK);
        }
        let row = |windowed, clock, role: &str| HistogramRow {
            phase: 0,
            second: (window.ticks[0].t_ns / 1_000_000_000) as u32,
            page: None,
            op: phase.phase.load.as_ref().unwrap().op,
            role: role.to_owned(),
            windowed,
            clock,
            histogram: window.histogram.clone(),
        };
        let pages = window.parts.iter().zip(&window.ticks).map(|(part, tick)| {
            let mut histogram = LatencyHistogram::new();
            for (ns, _) in part {
                histogram.record(*ns);
            }
            HistogramRow {
                second: (tick.t_ns / 1_000_000_000) as u32,
                page: Some((tick.t_ns % 1_000_000_000 / TICK_NS) as u8),
                histogram,
                ..row(true, LatencyClock::Intended, "")
            }
        });
        let others = [
            // Warm-up, the other clock and the background load do not belong to the point.
            row(false, LatencyClock::Intended, ""),
            row(true, LatencyClock::Submitted, ""),
            row(true, LatencyClock::Intended, BACKGROUND),
        ];
        phase.histograms = pages.chain(others).collect();
    }

    #[test]
    fn a_recording_gives_the_findings_of_what_was_put_into_it() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        let mut fixture = Fixture::healthy();
        fixture.window_mut("confirm/max-iops").process.set("read_bytes", 0);
        let recording = record(&fixture, &dir);
        let (read, direct) = (crate::find(&recording).unwrap(), fixture.find());
        assert_eq!(read.summary, direct.summary);
        assert_eq!(read.verdicts, direct.verdicts);
        assert_eq!(read.points.len(), direct.points.len());
        for (a, b) in read.points.iter().zip(&direct.points) {
            assert_eq!(a.iops, b.iops, "{}", a.label);
            assert_eq!(a.histogram, b.histogram, "{}", a.label);
            assert_eq!(a.latency.ns_p99, b.latency.ns_p99, "{}", a.label);
            assert_eq!(a.evidence.device_bytes, b.evidence.device_bytes, "{}", a.label);
        }
        let condemned: Vec<&str> = read.condemned().map(|v| v.rule.as_str()).collect();
        assert_eq!(condemned, ["memory-test"]);
    }

    #[test]
    fn unmeasured_columns_stay_unmeasured() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        let mut fixture = Fixture::healthy();
        for window in &mut fixture.windows {
            window.process = Growth::default();
        }
        let findings = crate::find(&record(&fixture, &dir)).unwrap();
        let single = findings.points.iter().find(|p| p.label == "random-read/psync/x1").unwrap();
        assert_eq!(single.evidence.process_bytes, None);
        assert_eq!(single.cpu.user_ns_per_io, None);
        assert_eq!(single.cpu.foreign_busy_ratio, None);
        assert!(single.cpu.host_busy_ratio.is_some());
        assert_eq!(single.group, Group::RandomRead);
    }
}
