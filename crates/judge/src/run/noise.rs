//! Effect of noise on the sessions: their window without noise compared with the one with it.

use blockstone_base::histogram::LatencyHistogram;
use blockstone_base::load::{LoadSpec, Op};
use blockstone_base::stats::Estimate;
use blockstone_figures::compare::{Better, Outcome, compare};
use blockstone_record::LatencyClock;
use blockstone_record::manifest::Figure;
use serde::Serialize;

use super::RunFindings;
use super::window::RunWindow;

/// Name of the noise in series and histograms.
const BACKGROUND: &str = "background";

/// Figures that are compared, in the order in which they are shown.
const FIGURES: [&str; 11] = [
    "operations_per_s",
    "read_iops",
    "read_latency_ns_mean",
    "read_latency_ns_p50",
    "read_latency_ns_p99",
    "commits_per_s",
    "commit_latency_ns_mean",
    "commit_latency_ns_p50",
    "commit_latency_ns_p99",
    "write_iops",
    "average_active_sessions",
];

/// The noise and its effect.
#[derive(Clone, Debug, Serialize)]
pub struct Noise {
    /// Number of writers.
    pub writers: u32,
    /// Way in which they write: `redo`, `direct` or `buffered`.
    pub mode: &'static str,
    /// Size of each of their writes, in bytes.
    pub write_bytes: u64,
    /// Decimal megabytes a second of all writers.
    pub mb_per_s: Option<Estimate>,
    /// Writes a second of all writers.
    pub iops: Option<Estimate>,
    /// Decimal megabytes a second that the device wrote for all processes, if the writers write
    /// through the page cache and need not wait for it.
    #[serde(skip)]
    pub device_mb_per_s: Option<Estimate>,
    /// Latencies of their writes.
    pub latency: Option<NoiseLatency>,
    /// Length of the noisy window, in nanoseconds.
    pub window_ns: u64,
    /// Figures of the sessions without and with noise.
    pub effect: Vec<NoiseEffect>,
}

/// Latencies of the noise itself.
#[derive(Clone, Debug, Serialize)]
pub struct NoiseLatency {
    pub count: u64,
    pub ns_mean: f64,
    /// Median, in nanoseconds; null if too few writes bound it, as is p99.
    pub ns_p50: Option<u64>,
    pub ns_p99: Option<u64>,
}

/// A figure of the sessions without and with noise.
#[derive(Clone, Debug, Serialize)]
pub struct NoiseEffect {
    /// Name of the figure among those of a run.
    pub figure: String,
    /// Title for people.
    pub title: String,
    /// Unit of both values.
    pub unit: String,
    /// Value without noise.
    pub quiet: Estimate,
    /// Value with noise.
    pub noisy: Estimate,
    /// With ÷ without noise; null if nothing happened without.
    pub ratio: Option<Estimate>,
    /// Outcome of comparing the figure with and without noise.
    pub outcome: Outcome,
    /// Rules that condemn the figure on either side.
    pub condemned_by: Vec<String>,
}

impl Noise {
    /// Returns the figures with noise, to be compared with those of another run.
    pub(super) fn figures(&self) -> impl Iterator<Item = (String, Figure)> {
        self.effect.iter().map(|row| {
            let figure = Figure {
                title: row.title.clone(),
                unit: row.unit.clone(),
                estimate: row.noisy,
                phase: "noisy".to_owned(),
                condemned_by: row.condemned_by.clone(),
            };
            (format!("noisy/{}", row.figure), figure)
        })
    }
}

/// Derives the effect of the noise if one window had none and a later one had.
pub(super) fn derive(windows: &[RunWindow], each: &[RunFindings]) -> Option<Noise> {
    let [quiet, noisy] = each else { return None };
    let window = windows.get(1).filter(|window| !window.scans())?;
    let load = window.phase.background.as_ref()?;
    let rate = |column| window.rate("load", BACKGROUND, column).ok();
    let iops = rate("completed_ops");
    let mb_per_s = rate("completed_bytes").map(|rate| rate.scaled(1e-6));
    Some(Noise {
        writers: load.workers,
        mode: mode(load),
        write_bytes: load.block_bytes,
        // Bytes are not samples: the writes that moved them are.
        mb_per_s: mb_per_s.zip(iops).map(|(mb, ios)| Estimate { samples: ios.samples, ..mb }),
        iops,
        device_mb_per_s: written_back(window, load),
        latency: window.histogram(BACKGROUND, LatencyClock::Intended).and_then(NoiseLatency::of),
        window_ns: window.duration_ns(),
        effect: FIGURES.iter().filter_map(|name| effect(name, quiet, noisy)).collect(),
    })
}

fn written_back(window: &RunWindow, load: &LoadSpec) -> Option<Estimate> {
    let device = window.manifest.target.devices.first()?;
    let is_deferred = load.op == Op::Write && !load.direct;
    let rate = window.rate("block", &device.name, "write_bytes").ok()?;
    is_deferred.then(|| rate.scaled(1e-6))
}

/// Returns how this load writes.
pub fn mode(load: &LoadSpec) -> &'static str {
    match (load.op, load.direct) {
        (Op::Commit, _) => "redo",
        (_, true) => "direct",
        (_, false) => "buffered",
    }
}

impl NoiseLatency {
    /// Returns `None` without a write.
    pub fn of(histogram: &LatencyHistogram) -> Option<Self> {
        (histogram.count() > 0).then(|| Self {
            count: histogram.count(),
            ns_mean: histogram.mean_ns(),
            ns_p50: histogram.bounded_quantile_ns(0.5),
            ns_p99: histogram.bounded_quantile_ns(0.99),
        })
    }
}

fn effect(name: &str, quiet: &RunFindings, noisy: &RunFindings) -> Option<NoiseEffect> {
    let (without, with) = (quiet.figure(name)?, noisy.figure(name)?);
    if without.estimate.samples == 0 && with.estimate.samples == 0 {
        return None;
    }
    let mut condemned_by = without.condemned_by.clone();
    condemned_by.extend(with.condemned_by.iter().cloned());
    condemned_by.sort();
    condemned_by.dedup();
    // More sessions that are busy with the same work are not an improvement.
    let lower_is_faster = without.unit == "ns" || name == "average_active_sessions";
    let better = if lower_is_faster { Better::Less } else { Better::More };
    let compared = compare(&[without.estimate], &[with.estimate], better);
    let outcome = if condemned_by.is_empty() { compared.outcome } else { Outcome::Condemned };
    Some(NoiseEffect {
        figure: name.to_owned(),
        title: without.title.clone(),
        unit: without.unit.clone(),
        quiet: without.estimate,
        noisy: with.estimate,
        outcome,
        ratio: compared.ratio,
        condemned_by,
    })
}
