//! From the directories of ranks to one recording.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use blockstone_base::histogram::least_samples;
use blockstone_base::identity::{Host, StorageTarget};
use blockstone_base::units::Nanos;
use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::{Group, Merged, MergedRank};
use blockstone_record::{End, Manifest, Recorder};
use jiff::Timestamp;
use serde_json::Value;

use crate::FleetError;
use crate::common::{self, Common};
use crate::counters::{self, Counters};
use crate::latencies::Latencies;
use crate::outliers;
use crate::source::{self, Source};

/// Counters of completed operations: series, object if only one counts, column.
const OPERATIONS: [(&str, Option<&str>, &str); 2] =
    [("operation", None, "completed_ops"), ("load", Some(""), "completed_ops")];

#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether ranks may be missing.
    pub partial: bool,
    /// Bound on how far the clock of each rank may be from UTC, where the recording has none.
    pub clock_bound_ns: Option<u64>,
}

/// Recordings that can be merged.
pub struct Merge {
    sources: Vec<Source>,
    phases: Vec<Common>,
    /// Labels of phases whose windows have no time in common.
    apart: Vec<String>,
    counters: Counters,
    /// Series and phases that cannot be merged, and why.
    left_out: Vec<String>,
    expected: u32,
    missing: Vec<String>,
}

/// Reads the manifests of the ranks, and finds out what they have in common. Fails if they are not
/// ranks of one load, or if one is missing and the merge may not be partial.
pub fn merge(dirs: &[PathBuf], options: Options) -> Result<Merge, FleetError> {
    let mut sources = Vec::new();
    for (number, dir) in dirs.iter().enumerate() {
        sources.push(Source::read(dir, number)?);
    }
    if sources.len() < 2 {
        return Err(FleetError::TooFew { found: sources.len() });
    }
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    // The settings of a rank that failed early are not complete.
    let model = sources.iter().position(|source| source.unfinished().is_none()).unwrap_or(0);
    for source in &sources {
        let path = source.dir.clone();
        if let Some(other) = named.insert(source.manifest.id.clone(), path.clone()) {
            return Err(FleetError::Same { path, other });
        }
        let is_complete = source.unfinished().is_none();
        if let Some(why) = source.differs(&sources[model]).filter(|_| is_complete) {
            return Err(FleetError::Different { path, why });
        }
    }
    sources.sort_by_key(|source| source.rank);
    if let Some(pair) = sources.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
        let (path, other) = (pair[1].dir.clone(), pair[0].dir.clone());
        return Err(FleetError::Twice { path, rank: pair[1].rank, other });
    }
    let stated = sources.iter().filter_map(|it| it.manifest.rank.as_ref()).map(|it| it.ranks).max();
    let expected = stated.unwrap_or(sources.len() as u32);
    let known: BTreeSet<u32> = sources.iter().map(|source| source.rank).collect();
    let mut missing: Vec<String> = (0..stated.unwrap_or(0))
        .filter(|rank| !known.contains(rank))
        .map(|rank| format!("rank {rank} has no recording here"))
        .collect();
    missing.extend(sources.iter().filter_map(Source::unfinished));
    if let (Some(why), false) = (missing.first(), options.partial) {
        let why = match missing.len() - 1 {
            0 => why.clone(),
            1 => format!("{why}, and another rank is missing or failed"),
            others => format!("{why}, and {others} others are missing or failed"),
        };
        return Err(FleetError::Missing { why });
    }
    sources.retain(|source| source.unfinished().is_none());
    if sources.len() < 2 {
        return Err(FleetError::TooFew { found: sources.len() });
    }
    for source in &mut sources {
        source.clock_bound_ns = source.clock_bound_ns.or(options.clock_bound_ns);
    }
    source::align(&mut sources)?;
    let phases = common::phases(&sources);
    if let Some(common) = phases.iter().find(|common| is_measured(common)) {
        let (first, last) = common.first_and_last();
        let of = |index: usize| sources[index].dir.clone();
        let is_apart = phases.iter().filter(|it| is_measured(it)).all(|it| it.window_ns() == 0);
        if is_apart {
            let (path, other) = (of(last), of(first));
            let apart = Nanos(common.apart_ns());
            return Err(FleetError::Apart { path, other, apart });
        }
    } else {
        return Err(FleetError::NoPhase);
    }
    let (phases, apart): (Vec<_>, Vec<_>) = phases.into_iter().partition(|it| it.window_ns() > 0);
    let apart = apart.iter().filter(|it| is_measured(it)).map(|it| it.phase.label.clone());
    let apart = apart.collect();
    let (counters, mut left_out) = Counters::new(&sources);
    left_out.extend(common::lacking(&sources, &phases));
    Ok(Merge { sources, phases, apart, counters, left_out, expected, missing })
}

impl Merge {
    /// Returns the verb of the ranks.
    pub fn verb(&self) -> &str {
        &self.sources[0].manifest.verb
    }

    /// Writes the merged recording into a new directory. `read` learns how many ranks of all were
    /// read; returns false if it did, which ends the work before anything is written.
    pub fn write(
        mut self,
        (dir, id): (&Path, &str),
        argv: &[String],
        mut read: impl FnMut(usize, usize) -> bool,
    ) -> Result<bool, FleetError> {
        let main = self.main_phase();
        let mut latencies = Latencies::default();
        let mut ranks = Vec::new();
        for (number, source) in self.sources.iter().enumerate() {
            let recording = source.recording()?;
            let of = (number, source);
            self.counters.add(of, &self.phases, |probe| recording.series(probe))?;
            let own = latencies.add(of, &recording, &self.phases, main)?;
            let grown = OPERATIONS.iter().find_map(|(probe, object, column)| {
                let series = recording.series(probe).ok()?;
                counters::grown(&series, (*object, column), of, &self.phases[main])
            });
            let window_s = self.phases[main].window_ns() as f64 / 1e9;
            let known = own.count() >= least_samples(0.99);
            let verdicts = &source.manifest.verdicts;
            let rules = |fails: fn(&Verdict) -> bool| {
                verdicts.iter().filter(|it| fails(it)).map(|it| it.rule.clone()).collect()
            };
            ranks.push(MergedRank {
                rank: source.rank,
                host: source.manifest.host.hostname.clone(),
                recording: source.manifest.id.clone(),
                ops_per_s: grown.map(|ops| ops as f64 / window_s),
                latency_ns_mean: (own.count() > 0).then(|| own.mean_ns()),
                latency_ns_p99: known.then(|| own.quantile_ns(0.99)),
                overlap_ratio: self.phases[main].overlaps[number],
                clock_bound_ns: source.clock_bound_ns,
                outlier_ratio: None,
                is_judged: !verdicts.is_empty(),
                condemned_by: rules(Verdict::condemns),
                warned_by: rules(Verdict::warns),
            });
            if !read(number + 1, self.sources.len()) {
                return Ok(false);
            }
        }
        let rates: Vec<Option<f64>> = ranks.iter().map(|rank| rank.ops_per_s).collect();
        for (rank, ratio) in ranks.iter_mut().zip(outliers::ratios(&rates)) {
            rank.outlier_ratio = ratio;
        }
        let mut manifest = self.manifest(id, argv, self.merged(main, ranks));
        manifest.probes = self.counters.infos().to_vec();
        let mut recorder = Recorder::create_of(dir, manifest)?;
        self.counters.write(&mut recorder, &self.phases)?;
        latencies.write(&mut recorder)?;
        recorder.close(End::Complete)?;
        Ok(true)
    }

    /// Returns the phase that best compares ranks: that of the sessions of a run, or the longest of
    /// the main load.
    fn main_phase(&self) -> usize {
        let weight = |common: &Common| {
            let is_main = matches!(common.phase.group, Group::Workload | Group::Scan);
            let reads = common.phase.group == Group::RandomRead;
            (is_main, reads, common.window_ns())
        };
        let phases = self.phases.iter().enumerate();
        phases.max_by_key(|(_, common)| weight(common)).map_or(0, |(at, _)| at)
    }

    fn merged(&self, main: usize, ranks: Vec<MergedRank>) -> Merged {
        let bounds = self.sources.iter().map(|source| source.clock_bound_ns);
        let mut bounds: Option<Vec<u64>> = bounds.collect();
        if let Some(bounds) = &mut bounds {
            bounds.sort_unstable();
        }
        let mut overlaps: BTreeMap<String, f64> = BTreeMap::new();
        overlaps.extend(self.apart.iter().map(|label| (label.clone(), 0.0)));
        for common in self.phases.iter().filter(|common| is_measured(common)) {
            let least = overlaps.entry(common.phase.label.clone()).or_insert(1.0);
            *least = least.min(common.overlap());
        }
        Merged {
            expected: self.expected,
            missing: self.missing.clone(),
            overlap_ratio: overlaps.values().copied().fold(1.0, f64::min),
            overlaps,
            left_out: self.left_out.clone(),
            clock_bound_ns: bounds.map(|bounds| bounds.iter().rev().take(2).sum()),
            phase: self.phases[main].phase.label.clone(),
            ranks,
        }
    }

    fn manifest(&self, id: &str, argv: &[String], merged: Merged) -> Manifest {
        let first = &self.sources[0].manifest;
        let all = || self.sources.iter().map(|source| &source.manifest);
        let targets: Vec<StorageTarget> = all().map(|it| it.target.clone()).collect();
        let began = self.sources.iter().min_by_key(|source| source.shift_ns);
        Manifest {
            id: id.to_owned(),
            argv: argv.to_owned(),
            settings: settings(&self.sources),
            started_at: began.map_or_else(String::new, |it| it.manifest.started_at.clone()),
            ended_at: all().filter_map(|it| it.ended_at.clone()).max_by_key(|at| instant(at)),
            end: End::Running,
            host: hosts(&self.sources),
            rank: None,
            merged: Some(merged),
            target: StorageTarget::united(&targets).unwrap_or_else(|| first.target.clone()),
            targets: all().flat_map(|it| it.targets.clone()).collect(),
            disk_files: all().flat_map(|it| it.disk_files.clone()).collect(),
            data_files: all().flat_map(|it| it.data_files.clone()).collect(),
            phases: self.phases.iter().map(|common| common.phase.clone()).collect(),
            clocks: Vec::new(),
            summary: BTreeMap::new(),
            verdicts: Vec::new(),
            ..first.clone()
        }
    }
}

/// Returns whether figures come from the phase. A preparation need not be simultaneous.
fn is_measured(common: &Common) -> bool {
    let preparations = [Group::Overhead, Group::Layout, Group::Precondition, Group::Load];
    !preparations.contains(&common.phase.group)
}

/// Returns the settings of all ranks together: sessions add up, disks are all of them.
fn settings(sources: &[Source]) -> BTreeMap<String, Value> {
    const ADDED: [&str; 6] =
        ["sessions", "readers", "writers", "schemas", "cache_bytes", "rate_per_s"];
    let mut settings = sources[0].manifest.settings.clone();
    let values = |key: &str| {
        let all = sources.iter().filter_map(|source| source.manifest.settings.get(key));
        all.cloned().collect::<Vec<Value>>()
    };
    for key in ADDED {
        let all = values(key);
        let whole: Option<Vec<u64>> = all.iter().map(Value::as_u64).collect();
        let sum = match whole {
            Some(all) => all.into_iter().fold(0, u64::saturating_add).into(),
            None => all.iter().filter_map(Value::as_f64).sum::<f64>().into(),
        };
        if !all.is_empty() && all.iter().all(Value::is_number) {
            settings.insert(key.to_owned(), sum);
        }
    }
    let disks: Vec<Value> =
        values("disks").into_iter().filter_map(|it| it.as_array().cloned()).flatten().collect();
    if !disks.is_empty() {
        settings.insert("disks".to_owned(), disks.into());
    }
    settings
}

/// Returns the hosts as one machine with the processors and the memory of all.
fn hosts(sources: &[Source]) -> Host {
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut all = Host::default();
    for source in sources {
        let host = &source.manifest.host;
        if !known.insert(source.machine()) {
            continue;
        }
        if known.len() == 1 {
            all = host.clone();
        } else {
            all.cpus = all.cpus.saturating_add(host.cpus);
            all.cpus_allowed_milli = all.cpus_allowed_milli.saturating_add(host.cpus_allowed_milli);
            all.memory_bytes = all.memory_bytes.saturating_add(host.memory_bytes);
        }
    }
    if known.len() > 1 {
        all.hostname = format!("{} and {} more hosts", all.hostname, known.len() - 1);
        all.boot_id = None;
    }
    all
}

fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}
