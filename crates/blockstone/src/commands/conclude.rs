//! What measurements share: where their recording goes, and what becomes of it afterwards.

use std::path::Path;

use anyhow::{Context, Result, bail};
use blockstone_base::rng;
use blockstone_record::manifest::End;
use blockstone_record::{Recording, RunDir};

use super::judged::Judged;
use super::report;
use crate::cli::Global;
use crate::exit::Exit;
use crate::printer::{Printer, answer};

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
    Ok(report::exit_code(&judged))
}

/// Where a measurement of `subjects` records: a new directory among the runs, or the one named
/// with `--out`.
pub fn recording_dir(
    verb: &str,
    out: Option<&Path>,
    global: &Global,
    subjects: &[&Path],
) -> Result<RunDir> {
    let Some(out) = out else {
        let now = jiff::Zoned::now();
        return Ok(blockstone_record::new_run_dir(&global.runs_dir, verb, &now)?);
    };
    let real = |path: &Path| path.canonicalize().ok();
    if real(out).is_some() && subjects.iter().any(|subject| real(subject) == real(out)) {
        bail!(
            "write the recording to {}: that is the directory under test\n\
             hint: name another with --out",
            out.display()
        );
    }
    Ok(blockstone_record::out_run_dir(out)?)
}

/// A seed for a run that was given none.
pub fn draw_seed() -> u64 {
    rng::mix(jiff::Timestamp::now().as_nanosecond() as u64 ^ u64::from(std::process::id()))
}
