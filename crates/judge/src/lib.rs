//! Recordings → findings: points with their rates, latencies and evidence, the headline figures,
//! and verdicts on whether these can be believed. [`compare`] hands them to a comparison.
//!
//! Must not know: the machine. Everything is taken from the recording, so that the same recording
//! yields the same findings anywhere, any time. Nor does it know how findings are rendered.
//!
//! The main type is [`Findings`]; it is made in the steps recording → [`window`] → [`derive`] →
//! [`summary`] → [`rules`]. A workload run has findings of its own, [`RunFindings`]. A new rule is
//! one file in `rules/` and a line in its registry.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recording = blockstone_record::Recording::open("blockstone-runs/last".as_ref())?;
//! let findings = blockstone_judge::find(&recording)?;
//! for (name, figure) in &findings.summary {
//!     let stands = if figure.condemned_by.is_empty() { "" } else { " (condemned)" };
//!     println!("{name}: {} {}{stands}", figure.estimate.value, figure.unit);
//! }
//! # Ok(()) }
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod buffered;
pub mod compare;
pub mod derive;
pub mod findings;
pub mod flushes;
pub mod grid;
pub mod mixes;
pub mod noise;
pub mod precondition;
pub mod rules;
pub mod run;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod visits;
pub mod window;

use blockstone_base::rule::{judge, judge_places};
use blockstone_base::verdict::Verdict;
use blockstone_figures::Interval;
use blockstone_record::manifest::Manifest;
use blockstone_record::{RecordError, Recording};

pub use findings::Findings;
use flushes::Flush;
use rules::{Case, Observed, RunCase, mark, registry};
pub use run::RunFindings;
use visits::CachedVisits;
use window::Window;

/// Derives and judges a recording. Missing data are not an error: a figure without support is
/// absent, and a rule without evidence is inconclusive.
pub fn find(recording: &Recording) -> Result<Findings, RecordError> {
    let windows = window::read(recording)?;
    let mut findings = find_in(&recording.manifest, &windows, &flushes::read(recording)?);
    findings.buffered_write = buffered::read(recording)?;
    findings.cached_visits = visits::read(recording)?;
    findings.summary.extend(findings.cached_visits.as_ref().map(CachedVisits::figure));
    Ok(findings)
}

/// Derives and judges windows and flushes that were already read.
pub fn find_in(manifest: &Manifest, windows: &[Window], flushes: &[Flush]) -> Findings {
    let points = derive::points(manifest, windows);
    let drift_ratio = derive::drift_ratio(manifest, windows);
    let summary = summary::figures(manifest, &points, drift_ratio);
    let flush_slope = flushes::slope(flushes);
    let precondition = precondition::find(manifest, windows);
    let verdicts = Vec::new();
    let mut findings = Findings {
        points,
        summary,
        verdicts,
        drift_ratio,
        flush_slope,
        buffered_write: None,
        cached_visits: None,
        precondition,
    };
    let case = Case {
        manifest,
        windows,
        points: &findings.points,
        summary: &findings.summary,
        drift_ratio,
        flush_slope: findings.flush_slope.as_ref(),
        precondition: findings.precondition.as_ref(),
    };
    let rules = match manifest.merged {
        Some(_) => registry::MERGED_CALIBRATION,
        None => registry::CALIBRATION,
    };
    let judged = judge_places(rules, &case);
    findings.verdicts = mark(judged, &mut findings.summary, &mut findings.points);
    findings
}

/// Derives and judges a run; with the manifest of a calibration of the same path, also against
/// that. As in [`find`], missing data are not an error.
pub fn find_run(
    recording: &Recording,
    calibration: Option<&Manifest>,
) -> Result<RunFindings, RecordError> {
    run::find(recording, calibration, |window, findings| {
        let case = RunCase { manifest: window.manifest, window, findings: &*findings };
        let rules = match window.manifest.merged {
            Some(_) => registry::MERGED_RUN,
            None => registry::RUN,
        };
        let judged = judge_places(rules, &case);
        findings.verdicts = mark(judged, &mut findings.summary, &mut []);
    })
}

/// Returns the verdicts on what was watched of a host and its databases in an interval.
pub fn judge_watch(interval: &Interval) -> Vec<Verdict> {
    judge(registry::WATCH, &Observed { interval: *interval, run: None })
}
