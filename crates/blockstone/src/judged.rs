//! A recording with the findings that its verb has, and how these are written.

use std::path::Path;

use anyhow::{Context, Result, bail};
use blockstone_base::Verdict;
use blockstone_judge::{Findings, RunFindings};
use blockstone_record::Recording;
use blockstone_record::manifest::{End, Figure, Manifest};
use blockstone_report::{awr_info, html, json, terminal};

use crate::cli::Global;
use crate::exit::Exit;
use crate::printer::{Printer, answer};
use crate::recordings;

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
            let calibration = recordings::calibration_before(&recording.manifest, runs_dir);
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

/// Judges the recording, keeps the judgement in it, writes the report and prints: everything, or
/// SLOB's columns only.
pub fn conclude(dir: &Path, awr_info: bool, global: &Global, printer: Printer) -> Result<Exit> {
    let judged = Judged::of(Recording::open(dir)?, &global.runs_dir)?;
    let summary = judged.summary().iter().cloned().collect();
    blockstone_record::keep_judgement(dir, summary, judged.verdicts().to_vec())?;
    let file = dir.join("report.html");
    std::fs::write(&file, judged.page()?).with_context(|| format!("write {}", file.display()))?;
    answer(&if awr_info { judged.awr_info()? } else { judged.text(printer)? })?;
    if let End::Failed { error } = &judged.recording.manifest.end {
        printer.error(&anyhow::anyhow!("{error}"));
    }
    Ok(exit_code(&judged))
}

/// Writes an HTML page to `file`, or to standard output for `-`.
pub fn write_page(page: &str, file: &Path, printer: Printer) -> Result<()> {
    if file == Path::new("-") {
        return Ok(answer(page)?);
    }
    std::fs::write(file, page).with_context(|| format!("write {}", file.display()))?;
    printer.note(&format!("report: {}", file.display()));
    Ok(())
}

/// What a recording's end and verdicts mean for the exit code.
pub fn exit_code(judged: &Judged) -> Exit {
    match judged.recording.manifest.end {
        End::Interrupted { .. } => Exit::Interrupted,
        End::Failed { .. } => Exit::CouldNotRun,
        End::Complete | End::Running if judged.trustworthy() => Exit::Done,
        End::Complete | End::Running => Exit::NotTrustworthy,
    }
}
