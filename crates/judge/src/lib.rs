//! Recordings → findings: points with their rates, latencies and evidence, the headline figures,
//! and verdicts on whether these may be believed. [`compare`] sets two findings side by side.
//!
//! Must not know: the machine. Everything comes from the recording, so that the same recording
//! gives the same findings anywhere, any time. Nor does it know how findings are rendered.
//!
//! The main type is [`Findings`]; its way is
//! recording → [`window`] → [`derive`] → [`summary`] → [`rules`]. A new verdict is one file in
//! `rules/` and one line in its registry. A workload run has findings of its own, [`RunFindings`],
//! with rules of their own in `run/rules/`.
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

pub mod compare;
pub mod derive;
pub mod findings;
pub mod grid;
mod page;
pub mod rules;
pub mod run;
pub mod summary;
#[cfg(test)]
mod testing;
pub mod window;

use blockstone_record::manifest::Manifest;
use blockstone_record::{RecordError, Recording};

pub use compare::{Change, Comparison, compare};
pub use findings::Findings;
pub use page::rules_page;
pub use run::{RunFindings, find_run};
use window::Window;

/// Why a recording could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The recording could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Derives and judges a recording.
///
/// # Errors
/// When its series or histograms cannot be read. What they lack is no error: a figure without
/// support is absent, and a rule without evidence is inconclusive.
pub fn find(recording: &Recording) -> Result<Findings, JudgeError> {
    Ok(find_in(&recording.manifest, &window::read(recording)?))
}

/// The same from windows that were already read.
pub fn find_in(manifest: &Manifest, windows: &[Window]) -> Findings {
    let points = derive::points(manifest, windows);
    let drift_ratio = derive::drift_ratio(manifest, windows);
    let summary = summary::figures(manifest, &points, drift_ratio);
    let mut findings = Findings { points, summary, verdicts: Vec::new(), drift_ratio };
    rules::judge(manifest, windows, &mut findings);
    findings
}
