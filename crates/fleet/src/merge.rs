//! From the directories of ranks to one recording.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blockstone_base::histogram::least_samples;
use blockstone_base::identity::Host;
use blockstone_base::units::Nanos;
use blockstone_record::manifest::{Group, Merged, MergedRank};
use blockstone_record::{End, Manifest, Recorder};
use serde_json::Value;

use crate::FleetError;
use crate::common::{self, Common};
use crate::counters::Counters;
use crate::latencies::Latencies;
use crate::outliers;
use crate::source::{self, Source};

/// Counters of completed operations, by the series of a verb.
const OPERATIONS: [(&str, &str); 2] = [("operation", "completed_ops"), ("load", "completed_ops")];

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
    expected: u32,
    missing: Vec<String>,
}

/// Reads the manifests of the ranks, and finds out what they have in common. Fails if they are not
/// ranks of one load, or if one is missing and the merge may not be partial.
pub fn merge(dirs: &[PathBuf], options: Options) -> Result<Merge, FleetError> {
    if dirs.len() < 2 {
        return Err(FleetError::TooFew { found: dirs.len() });
    }
    let mut sources = Vec::new();
    for (number, dir) in dirs.iter().enumerate() {
        sources.push(Source::read(dir, number)?);
    }
    let mut named: BTreeMap<String, PathBuf> = BTreeMap::new();
    for source in &sources {
        let path = source.dir.clone();
        if let Some(other) = named.insert(source.manifest.id.clone(), path.clone()) {
            return Err(FleetError::Same { path, other });
        }
        if let Some(why) = source.differs(&sources[0]) {
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
    let mut missing: Vec<String> = (0..expected)
        .filter(|rank| stated.is_some() && sources.iter().all(|source| source.rank != *rank))
        .map(|rank| format!("rank {rank} has no recording here"))
        .collect();
    missing.extend(sources.iter().filter_map(Source::unfinished));
    if let (Some(why), false) = (missing.first(), options.partial) {
        let others = missing.len() - 1;
        let why = match others {
            0 => why.clone(),
            _ => format!("{why}, and {others} more ranks are missing"),
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
    source::align(&mut sources);
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
    Ok(Merge { sources, phases, apart, expected, missing })
}

impl Merge {
    /// Returns the verb of the ranks.
    pub fn verb(&self) -> &str {
        &self.sources[0].manifest.verb
    }

    /// Writes the merged recording into a new directory. `read` learns how many ranks of all were
    /// read; returns false if it did, which ends the work before anything is written.
    pub fn write(
        self,
        (dir, id): (&Path, &str),
        argv: &[String],
        mut read: impl FnMut(usize, usize) -> bool,
    ) -> Result<bool, FleetError> {
        let main = self.main_phase();
        let mut counters = Counters::new(&self.sources);
        let mut latencies = Latencies::default();
        let mut ranks = Vec::new();
        let mut before = Some(0);
        for (number, source) in self.sources.iter().enumerate() {
            let recording = source.recording()?;
            let of = (number, source);
            counters.add(of, &self.phases, |probe| recording.series(probe))?;
            let own = latencies.add(of, &recording, &self.phases, main)?;
            let completed =
                OPERATIONS.iter().find_map(|(probe, column)| counters.moved(probe, column, main));
            let window_s = self.phases[main].window_ns() as f64 / 1e9;
            let grown = completed.zip(before).map(|(all, before)| all - before);
            before = completed;
            let known = own.count() >= least_samples(0.99);
            ranks.push(MergedRank {
                rank: source.rank,
                host: source.manifest.host.hostname.clone(),
                recording: source.manifest.id.clone(),
                ops_per_s: grown.filter(|_| window_s > 0.0).map(|ops| ops as f64 / window_s),
                latency_ns_mean: (own.count() > 0).then(|| own.mean_ns()),
                latency_ns_p99: known.then(|| own.quantile_ns(0.99)),
                overlap_ratio: self.phases[main].overlaps[number],
                clock_bound_ns: source.clock_bound_ns,
                outlier_ratio: None,
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
        manifest.probes = counters.infos().to_vec();
        let mut recorder = Recorder::create_of(dir, manifest)?;
        counters.write(&mut recorder, &self.phases)?;
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
            clock_bound_ns: bounds.map(|bounds| bounds.iter().rev().take(2).sum()),
            phase: self.phases[main].phase.label.clone(),
            ranks,
        }
    }

    fn manifest(&self, id: &str, argv: &[String], merged: Merged) -> Manifest {
        let first = &self.sources[0].manifest;
        let all = || self.sources.iter().map(|source| &source.manifest);
        let began = self.sources.iter().min_by_key(|source| source.shift_ns);
        Manifest {
            id: id.to_owned(),
            argv: argv.to_owned(),
            settings: settings(&self.sources),
            started_at: began.map_or_else(String::new, |it| it.manifest.started_at.clone()),
            ended_at: all().filter_map(|it| it.ended_at.clone()).max(),
            end: End::Running,
            host: hosts(all()),
            rank: None,
            merged: Some(merged),
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
    const ADDED: [&str; 4] = ["sessions", "readers", "writers", "schemas"];
    let mut settings = sources[0].manifest.settings.clone();
    let values = |key: &str| {
        let all = sources.iter().filter_map(|source| source.manifest.settings.get(key));
        all.cloned().collect::<Vec<Value>>()
    };
    for key in ADDED {
        let sum: u64 = values(key).iter().filter_map(Value::as_u64).sum();
        if sum > 0 {
            settings.insert(key.to_owned(), sum.into());
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
fn hosts<'a>(manifests: impl Iterator<Item = &'a Manifest>) -> Host {
    let mut names: Vec<String> = Vec::new();
    let mut all = Host::default();
    for host in manifests.map(|manifest| &manifest.host) {
        if names.contains(&host.hostname) {
            continue;
        }
        if names.is_empty() {
            all = host.clone();
        } else {
            all.cpus = all.cpus.saturating_add(host.cpus);
            all.cpus_allowed_milli = all.cpus_allowed_milli.saturating_add(host.cpus_allowed_milli);
            all.memory_bytes = all.memory_bytes.saturating_add(host.memory_bytes);
        }
        names.push(host.hostname.clone());
    }
    if names.len() > 1 {
        all.hostname = format!("{} and {} more hosts", names[0], names.len() - 1);
    }
    all
}
