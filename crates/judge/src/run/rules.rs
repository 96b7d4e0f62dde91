//! The rules of a run: each looks at one way in which its numbers may not mean what they say. One
//! file a rule, one line in [`registry`].

mod above_calibration;
mod cap_reached;
mod compressible;
mod db_time_remainder;
mod degraded;
mod failed_session;
mod hole;
mod littles_law;
mod maintenance;
mod memory_test;
mod mostly_cached;
mod noisy_neighbour;
mod not_direct;
mod plan_changed;
pub mod registry;
mod run_queue_delay;
mod silent_writes;
mod unsafe_commits;
mod unsteady;
mod unwritten;
mod work_unit;

use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_record::manifest::{DataSample, FileEvidence, Manifest};

use super::summary::NAMES;
use super::window::RunWindow;
use super::{Efficiency, RunFindings};
use crate::rules::{Judgement, in_memory, megabytes, percent, time};

/// One rule, and all that its page in docs/verdicts.md says.
pub struct RunRule {
    /// Its id in kebab case, stable; the same as that of the rule of a calibration that asks the
    /// same question.
    pub id: &'static str,
    /// What a failure means for the numbers, unless the judgement says otherwise.
    pub weight: Weight,
    /// What it looks for, in one sentence.
    pub doc: &'static str,
    /// The thresholds and where they come from.
    pub threshold: &'static str,
    /// The likely cause of a failure.
    pub cause: &'static str,
    /// What to do after a failure.
    pub next: &'static str,
    check: fn(&RunCase) -> Judgement,
}

/// What a rule may look at.
struct RunCase<'a> {
    manifest: &'a Manifest,
    window: &'a RunWindow<'a>,
    findings: &'a RunFindings,
}

impl RunCase<'_> {
    /// What `look` concludes about the disks' files: about the first that does not pass, or else
    /// about the first.
    fn disk_files(&self, look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        Self::files(&self.manifest.disk_files, look)
    }

    /// As [`RunCase::disk_files`], or of the database's own files: how these lie is its business,
    /// and pages of them that were never used are not read.
    fn content(&self, look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        if !self.manifest.disk_files.is_empty() {
            return self.disk_files(look);
        }
        let used: Vec<_> = self.manifest.data_files.iter().map(without_unused_pages).collect();
        Self::files(&used, look)
    }

    fn files(files: &[FileEvidence], look: impl Fn(&FileEvidence) -> Judgement) -> Judgement {
        let judged: Vec<_> = files.iter().map(|file| (file, look(file))).collect();
        let passed = |judgement: &Judgement| judgement.outcome == Outcome::Pass;
        let Some((file, judgement)) =
            judged.iter().find(|(_, judgement)| !passed(judgement)).or(judged.first())
        else {
            return Judgement::inconclusive("no file of a disk was examined");
        };
        let evidence = match files.len() {
            1 => judgement.evidence.clone(),
            n if passed(judgement) => format!("{}, and so on of {n} files", judgement.evidence),
            n => format!("{}: {} (one of {n} files)", file.path, judgement.evidence),
        };
        Judgement { evidence, ..judgement.clone() }
    }

    /// The target's file system type; empty for a device.
    fn file_system(&self) -> &str {
        self.manifest.target.file_system.as_ref().map_or("", |fs| fs.kind.as_str())
    }

    /// What keeps the data in main memory, if anything does.
    fn in_memory(&self) -> Option<String> {
        in_memory(&self.manifest.target)
    }
}

/// What was sampled of a file, without its pages of zeros.
fn without_unused_pages(file: &FileEvidence) -> FileEvidence {
    let used = file.sample.as_ref().map(|sample| DataSample {
        sampled_bytes: sample.sampled_bytes - sample.zero_bytes,
        zero_bytes: 0,
        lz4_bytes: sample.lz4_bytes,
        // All pages of zeros but the first occurred before.
        duplicate_bytes: sample.duplicate_bytes.saturating_sub(sample.zero_bytes),
    });
    FileEvidence { sample: used, ..file.clone() }
}

/// Every figure.
fn all_figures() -> Vec<String> {
    NAMES.map(str::to_owned).into()
}

/// What reads are said to be like.
fn read_figures() -> Vec<String> {
    let about = |name: &&str| name.contains("read") && !name.starts_with("logical");
    NAMES.iter().filter(|name| about(name)).map(|name| (*name).to_owned()).collect()
}

/// Applies every rule to the findings of a window: adds the verdicts, and marks what they condemn.
/// A run that did not come to a window is not judged: it has no numbers.
pub(super) fn judge(window: &RunWindow, findings: &mut RunFindings) {
    let case = RunCase { manifest: window.manifest, window, findings };
    let judged: Vec<Verdict> = registry::ALL.iter().map(|rule| verdict(rule, &case)).collect();
    for verdict in &judged {
        let concerned = |name: &String| verdict.condemns() && verdict.concerns.contains(name);
        for (_, figure) in findings.summary.iter_mut().filter(|(name, _)| concerned(name)) {
            figure.condemned_by.push(verdict.rule.clone());
        }
    }
    findings.verdicts = judged;
}

/// The verdicts of all windows as one list: of each rule the gravest, saying where it was seen when
/// there are several windows. Figures of window `main` are named; of another window it is said that
/// it is concerned, as `scan/m4p16/*`.
pub(super) fn united(each: &[RunFindings], main: usize) -> Vec<Verdict> {
    let Some((first, others)) = each.split_first() else { return Vec::new() };
    if others.is_empty() {
        return first.verdicts.clone();
    }
    let of = |rule: usize| {
        let all = each.iter().map(|window| (&window.label, &window.verdicts[rule]));
        let (label, gravest) = all.clone().rev().max_by_key(|(_, verdict)| gravity(verdict))?;
        let alike: Vec<_> =
            all.filter(|(_, verdict)| gravity(verdict) == gravity(gravest)).collect();
        let also = match alike.len() {
            n if n == each.len() => format!("{label}: {}; as in all {n} windows", gravest.evidence),
            1 => format!("{label}: {}", gravest.evidence),
            n => format!("{label}: {}; likewise {} more windows", gravest.evidence, n - 1),
        };
        let mut concerns: Vec<String> = Vec::new();
        for &(label, verdict) in &alike {
            if label == &each[main].label {
                concerns.extend(verdict.concerns.iter().cloned());
            } else if !verdict.concerns.is_empty() {
                concerns.push(format!("{label}/*"));
            }
        }
        Some(Verdict { evidence: also, concerns, ..gravest.clone() })
    };
    (0..first.verdicts.len()).filter_map(of).collect()
}

fn gravity(verdict: &Verdict) -> u8 {
    match (verdict.outcome, verdict.weight) {
        (Outcome::Fail, Weight::Condemns) => 3,
        (Outcome::Fail, Weight::Warns) => 2,
        (Outcome::Inconclusive, _) => 1,
        (Outcome::Pass, _) => 0,
    }
}

fn verdict(rule: &RunRule, case: &RunCase) -> Verdict {
    let judgement = (rule.check)(case);
    let failed = judgement.outcome == Outcome::Fail;
    let said = |text: String| if failed { text } else { String::new() };
    let known = |name: &String| case.findings.figure(name).is_some();
    Verdict {
        rule: rule.id.to_owned(),
        outcome: judgement.outcome,
        weight: judgement.weight.unwrap_or(rule.weight),
        concerns: judgement.points.into_iter().filter(known).collect(),
        evidence: judgement.evidence,
        cause: said(judgement.cause.unwrap_or_else(|| rule.cause.to_owned())),
        next: said(rule.next.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::Capability;
    use blockstone_base::identity::FileMap;

    use super::*;

    #[test]
    fn pages_that_were_never_used_do_not_make_a_database_compressible() {
        let sample = DataSample {
            sampled_bytes: 512 * 4096,
            zero_bytes: 128 * 4096,
            lz4_bytes: 380 * 4096,
            duplicate_bytes: 127 * 4096,
        };
        let file = FileEvidence {
            path: "/data/rows.ibd".to_owned(),
            ours: false,
            map: FileMap {
                size_bytes: 64 << 20,
                allocated_bytes: 64 << 20,
                extents: 1,
                mapped_bytes: 64 << 20,
                hole_bytes: 0,
                unwritten_bytes: 0,
                encoded_bytes: 0,
                shared_bytes: 0,
                fiemap: Capability::Full,
            },
            sample: Some(sample),
        };
        let look = crate::rules::compressible::of;
        assert_eq!(look(&file).outcome, Outcome::Fail);
        assert_eq!(look(&without_unused_pages(&file)).outcome, Outcome::Pass);
    }
}
