//! Recordings → findings: points with their rates, latencies and evidence, the headline figures,
//! and verdicts on whether these may be believed. [`compare`] hands them to a comparison.
//!
//! Must not know: the machine. Everything comes from the recording, so that the same recording
//! gives the same findings anywhere, any time. Nor does it know how findings are rendered.
//!
//! The main type is [`Findings`]; its way is
//! recording → [`window`] → [`derive`] → [`summary`] → [`rules`]. A workload run has findings of
//! its own, [`RunFindings`]; those of a scan come from crate `reduce`, and [`judge_scan`] adds the
//! verdicts. A new rule is one file in `rules/` and one line in its registry.
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
pub mod claim;
pub mod compare;
pub mod derive;
pub mod findings;
pub mod flushes;
pub mod grid;
pub mod mixes;
pub mod noise;
mod page;
pub mod precondition;
pub mod rules;
pub mod run;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod visits;
pub mod window;

use blockstone_base::coherence::CoherenceFindings;
use blockstone_base::copy::CopyFindings;
use blockstone_base::direct::DirectFindings;
use blockstone_base::durability::DurabilityFindings;
use blockstone_base::metadata::MetadataFindings;
use blockstone_base::need::NeedFindings;
use blockstone_base::offload::OffloadFindings;
use blockstone_base::order::OrderFindings;
use blockstone_base::subset::SubsetFindings;
use blockstone_base::trace::TraceFindings;
use blockstone_base::verdict::{Outcome, Verdict};
use blockstone_figures::Interval;
use blockstone_record::manifest::Manifest;
use blockstone_record::{RecordError, Recording};

use blockstone_reduce::findings::{FileNote, Findings as ScanFindings};
use claim::{Answer, Claim};
pub use findings::Findings;
use flushes::Flush;
pub use page::rules_page;
use rules::{Case, Evidence, Observed, RunCase, ScanCase, judge};
pub use run::RunFindings;
use visits::CachedVisits;
use window::Window;

/// Derives and judges a recording. What it lacks is no error: a figure without support is absent,
/// and a rule without evidence is inconclusive.
pub fn find(recording: &Recording) -> Result<Findings, RecordError> {
    let windows = window::read(recording)?;
    let mut findings = find_in(&recording.manifest, &windows, &flushes::read(recording)?);
    findings.buffered_write = buffered::read(recording)?;
    findings.cached_visits = visits::read(recording)?;
    findings.summary.extend(findings.cached_visits.as_ref().map(CachedVisits::figure));
    Ok(findings)
}

/// The same from windows and flushes that were already read.
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
    let judged = judge(&Evidence::Calibration(Case {
        manifest,
        windows,
        points: &findings.points,
        summary: &findings.summary,
        drift_ratio,
        flush_slope: findings.flush_slope.as_ref(),
        precondition: findings.precondition.as_ref(),
    }));
    findings.verdicts = judged.mark(&mut findings.summary, &mut findings.points);
    findings
}

/// Derives and judges a run; with the manifest of a calibration of the same path, also against
/// that. As in [`find`], what it lacks is no error.
pub fn find_run(
    recording: &Recording,
    calibration: Option<&Manifest>,
) -> Result<RunFindings, RecordError> {
    run::find(recording, calibration, |window, findings| {
        let case = RunCase { manifest: window.manifest, window, findings: &*findings };
        let judged = judge(&Evidence::Run(case));
        findings.verdicts = judged.mark(&mut findings.summary, &mut []);
    })
}

/// The verdicts on what was watched of a host and its databases in an interval.
pub fn judge_watch(interval: &Interval) -> Vec<Verdict> {
    judge(&Evidence::Watch(Observed { interval: *interval, run: None })).mark(&mut [], &mut [])
}

/// Judges what a scan found in the blocks of `files`; `chunks` says whether it looked for chunks.
pub fn judge_scan(findings: &mut ScanFindings, files: &[FileNote], chunks: bool) {
    let judged = judge(&Evidence::Scan(ScanCase { findings: &*findings, files, chunks }));
    findings.verdicts = judged.mark(&mut [], &mut []);
}

/// The verdicts on what `check direct` found.
pub fn judge_direct(findings: &DirectFindings) -> Vec<Verdict> {
    judge(&Evidence::Direct(findings)).mark(&mut [], &mut [])
}

/// The verdicts on what `check metadata` found.
pub fn judge_metadata(findings: &MetadataFindings) -> Vec<Verdict> {
    judge(&Evidence::Metadata(findings)).mark(&mut [], &mut [])
}

/// The verdicts on what `check coherence` found.
pub fn judge_coherence(findings: &CoherenceFindings) -> Vec<Verdict> {
    judge(&Evidence::Coherence(findings)).mark(&mut [], &mut [])
}

/// The verdicts on what `check durability` found.
pub fn judge_durability(findings: &DurabilityFindings) -> Vec<Verdict> {
    judge(&Evidence::Durability(findings)).mark(&mut [], &mut [])
}

/// The verdicts on what `check write-order` found; none where nothing was tried.
pub fn judge_order(findings: &OrderFindings) -> Vec<Verdict> {
    if findings.cells.is_empty() {
        return Vec::new();
    }
    judge(&Evidence::Order(findings)).mark(&mut [], &mut [])
}

/// The verdicts on what a copy left behind.
pub fn judge_copy(findings: &CopyFindings) -> Vec<Verdict> {
    judge(&Evidence::Copy(findings)).mark(&mut [], &mut [])
}

/// The verdicts on a need for hardware, and on a run that was held against it.
pub fn judge_need(findings: &NeedFindings) -> Vec<Verdict> {
    judge(&Evidence::Size(findings)).mark(&mut [], &mut [])
}

/// The verdicts on what a trace of statements contains.
pub fn judge_trace(findings: &TraceFindings) -> Vec<Verdict> {
    judge(&Evidence::Trace(findings)).mark(&mut [], &mut [])
}

/// The verdicts on a subset of a database.
pub fn judge_subset(findings: &SubsetFindings) -> Vec<Verdict> {
    judge(&Evidence::Subset(findings)).mark(&mut [], &mut [])
}

/// The verdicts on runs on a storage that filters rows; none where there are none.
pub fn judge_offload(findings: &OffloadFindings) -> Vec<Verdict> {
    if findings.runs.is_empty() {
        return Vec::new();
    }
    judge(&Evidence::Offload(findings)).mark(&mut [], &mut [])
}

/// The verdicts on a claim, and the answer that follows: memory explains a rate above the link, and
/// so does a wrong unit.
pub fn judge_claim(claim: &Claim) -> (Answer, Vec<Verdict>) {
    let verdicts = judge(&Evidence::Claim(claim)).mark(&mut [], &mut []);
    let failed = |rule: &str| verdicts.iter().any(|it| it.rule == rule && it.failed());
    let answer = if failed("memory-test") {
        Answer::Memory
    } else if failed("wrong-unit") {
        Answer::WrongUnit
    } else if failed("above-link") {
        Answer::AboveLink
    } else if verdicts.iter().any(|it| it.outcome == Outcome::Pass) {
        Answer::Possible
    } else {
        Answer::Unknown
    };
    (answer, verdicts)
}
