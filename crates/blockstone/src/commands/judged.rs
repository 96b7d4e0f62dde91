//! A recording with the findings that its verb has, and how these are written.

use std::path::Path;

use anyhow::{Result, bail};
use blockstone_base::Verdict;
use blockstone_judge::{Findings, RunFindings};
use blockstone_record::manifest::{End, Figure, Manifest};
use blockstone_record::{Recording, RunState};
use blockstone_report::{awr_info, html, json, terminal};

use crate::printer::Printer;

/// A recording and what it says.
pub struct Judged {
    pub recording: Recording,
    findings: Kind,
}

enum Kind {
    Calibration(Findings),
    Run(Box<RunFindings>),
}

impl Judged {
    /// Judges a recording by the rules of its verb; a workload run also against the last
    /// calibration of the same path before it, among the recordings in `runs_dir`.
    pub fn of(recording: Recording, runs_dir: &Path) -> Result<Self> {
        let findings = if recording.manifest.verb == "run" {
            let calibration = calibration_before(&recording.manifest, runs_dir);
            Kind::Run(Box::new(blockstone_judge::find_run(&recording, calibration.as_ref())?))
        } else {
            Kind::Calibration(blockstone_judge::find(&recording)?)
        };
        Ok(Self { recording, findings })
    }

    pub fn trustworthy(&self) -> bool {
        match &self.findings {
            Kind::Calibration(findings) => findings.trustworthy(),
            Kind::Run(findings) => findings.trustworthy(),
        }
    }

    pub fn summary(&self) -> &[(String, Figure)] {
        match &self.findings {
            Kind::Calibration(findings) => &findings.summary,
            Kind::Run(findings) => &findings.summary,
        }
    }

    pub fn verdicts(&self) -> &[Verdict] {
        match &self.findings {
            Kind::Calibration(findings) => &findings.verdicts,
            Kind::Run(findings) => &findings.verdicts,
        }
    }

    /// The answer: text for people, or one JSON document.
    pub fn text(&self, printer: Printer) -> Result<String> {
        let recording = &self.recording;
        if !printer.json {
            let style = printer.style();
            return Ok(match &self.findings {
                Kind::Calibration(findings) => terminal::render(recording, findings, &style),
                Kind::Run(findings) => terminal::run_terminal(recording, findings, &style),
            });
        }
        let document = match &self.findings {
            Kind::Calibration(findings) => json::document(recording, findings),
            Kind::Run(findings) => json::run_json(recording, findings),
        };
        Ok(format!("{}\n", serde_json::to_string_pretty(&document)?))
    }

    /// One HTML page.
    pub fn page(&self) -> Result<String> {
        Ok(match &self.findings {
            Kind::Calibration(findings) => html::page(&self.recording, findings)?,
            Kind::Run(findings) => html::run_page(&self.recording, findings)?,
        })
    }

    /// SLOB's columns, heading and values.
    pub fn awr_info(&self) -> Result<String> {
        match &self.findings {
            Kind::Run(findings) => Ok(awr_info(&self.recording, findings)),
            Kind::Calibration(_) => bail!(
                "print awr_info of {}: it is a calibration\n\
                 hint: only the recording of a run has these columns",
                self.recording.dir.display()
            ),
        }
    }

    /// The findings in the form in which two recordings are compared: a run has figures only.
    pub fn comparable(self) -> (Manifest, Findings) {
        let findings = match self.findings {
            Kind::Calibration(findings) => findings,
            Kind::Run(findings) => findings.comparable(),
        };
        (self.recording.manifest, findings)
    }
}

/// The manifest of the last complete calibration of the same path on the same machine that began
/// before this run. What cannot be read is passed over: a run needs none.
fn calibration_before(run: &Manifest, runs_dir: &Path) -> Option<Manifest> {
    let started: jiff::Timestamp = run.started_at.parse().ok()?;
    let mut runs = blockstone_record::list_runs(runs_dir).ok()?;
    runs.retain(|entry| {
        entry.verb == "calibrate"
            && entry.target_path.as_deref() == Some(run.target.path.as_str())
            && entry.state == RunState::Ended(End::Complete)
            && entry.started_at.is_some_and(|at| at <= started)
    });
    let last = runs.into_iter().max_by_key(|entry| entry.started_at)?;
    let manifest = Recording::open(&last.path).ok()?.manifest;
    (manifest.host.hostname == run.host.hostname).then_some(manifest)
}
