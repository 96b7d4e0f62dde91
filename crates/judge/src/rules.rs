//! The rules: each looks at one way in which a number may not mean what it says. One file a rule,
//! one line in [`registry`].

mod above_link;
mod burst;
mod cache_suspected;
pub(crate) mod compressible;
#[cfg(test)]
mod contract;
mod corrupt;
mod generator_bound;
pub(crate) mod hole;
mod io_errors;
mod lying_flush;
mod memory_test;
mod noisy_neighbour;
mod not_direct;
pub mod registry;
mod run_queue_delay;
mod throttled;
mod unsteady;
pub(crate) mod unwritten;

use blockstone_base::identity::{BlockDevice, StorageTarget};
use blockstone_base::load::Op;
use blockstone_base::units::{format_ns, three_digits};
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_record::manifest::{Figure, Group, Manifest, Phase};

use crate::findings::{Findings, Point};
use crate::window::Window;

/// One rule, and all that its page in docs/verdicts.md says.
pub struct Rule {
    /// Its id in kebab case, unique and stable: scripts look for it.
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
    /// The check itself.
    pub check: fn(&Case) -> Judgement,
}

/// What a rule may look at.
pub struct Case<'a> {
    /// The recording's manifest.
    pub manifest: &'a Manifest,
    /// Its windows, in the order of time.
    pub windows: &'a [Window],
    /// The points derived from them.
    pub points: &'a [Point],
    /// The headline figures.
    pub summary: &'a [(String, Figure)],
    /// How far the reference point moved.
    pub drift_ratio: Option<f64>,
}

/// What a rule concluded about a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What it concluded.
    pub outcome: Outcome,
    /// What was seen, with numbers and units; for an inconclusive one, what was missing.
    pub evidence: String,
    /// Labels of the points that a failure concerns; of a run, names of its figures.
    pub points: Vec<String>,
    /// A weight other than the rule's, where the evidence is stronger or weaker than usual.
    pub weight: Option<Weight>,
    /// A cause more precise than the rule's.
    pub cause: Option<String>,
}

impl Judgement {
    /// The evidence was there and shows nothing wrong.
    pub fn pass(evidence: impl Into<String>) -> Self {
        Self::new(Outcome::Pass, evidence.into(), Vec::new())
    }

    /// The evidence was missing or does not decide; `reason` says which.
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        Self::new(Outcome::Inconclusive, reason.into(), Vec::new())
    }

    /// The evidence shows the fault at the points with these labels, or in these figures of a run.
    pub fn fail(evidence: impl Into<String>, points: Vec<String>) -> Self {
        Self::new(Outcome::Fail, evidence.into(), points)
    }

    /// With this weight in place of the rule's.
    #[must_use]
    pub fn weighing(self, weight: Weight) -> Self {
        Self { weight: Some(weight), ..self }
    }

    /// With this cause in place of the rule's.
    #[must_use]
    pub fn caused_by(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    fn new(outcome: Outcome, evidence: String, points: Vec<String>) -> Self {
        Self { outcome, evidence, points, weight: None, cause: None }
    }
}

/// Applies every rule to the findings: adds the verdicts, and marks what they condemn.
pub(crate) fn judge(manifest: &Manifest, windows: &[Window], findings: &mut Findings) {
    let case = Case {
        manifest,
        windows,
        points: &findings.points,
        summary: &findings.summary,
        drift_ratio: findings.drift_ratio,
    };
    let judged: Vec<(Verdict, Vec<String>)> =
        registry::ALL.iter().map(|rule| verdict(rule, &case)).collect();
    for (verdict, labels) in judged {
        if verdict.condemns() {
            for point in findings.points.iter_mut().filter(|p| labels.contains(&p.label)) {
                point.condemned_by.push(verdict.rule.clone());
            }
            for (_, figure) in findings.summary.iter_mut().filter(|f| labels.contains(&f.1.phase)) {
                figure.condemned_by.push(verdict.rule.clone());
            }
        }
        findings.verdicts.push(verdict);
    }
}

fn verdict(rule: &Rule, case: &Case) -> (Verdict, Vec<String>) {
    let judgement = (rule.check)(case);
    let failed = judgement.outcome == Outcome::Fail;
    let said = |text: String| if failed { text } else { String::new() };
    let concerned = |figure: &Figure| judgement.points.contains(&figure.phase);
    let verdict = Verdict {
        rule: rule.id.to_owned(),
        outcome: judgement.outcome,
        weight: judgement.weight.unwrap_or(rule.weight),
        concerns: case.summary.iter().filter(|f| concerned(&f.1)).map(|f| f.0.clone()).collect(),
        evidence: judgement.evidence,
        cause: said(judgement.cause.unwrap_or_else(|| rule.cause.to_owned())),
        next: said(rule.next.to_owned()),
    };
    (verdict, judgement.points)
}

/// File systems that keep their files in main memory.
const MEMORY_FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// Points that read through the page cache by intention, for contrast.
const CACHED_BY_INTENTION: [&str; 2] = ["cached-read/cached", "cached-read/buffered"];

impl<'a> Case<'a> {
    /// Points that claim to describe the storage: not the tool's own cost, and not the reads that
    /// are cached by intention.
    pub fn storage_points(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.points.iter().filter(|point| about_storage(point.group, &point.label))
    }

    /// Those that read.
    pub fn reads(&self) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.storage_points().filter(|point| point.load.op == Op::Read)
    }

    /// Whether the reference point moved by more than `ratio` over the run: then two points that
    /// were measured at different times cannot be told apart by less.
    pub fn moved(&self, ratio: f64) -> bool {
        self.drift_ratio.is_some_and(|drift| drift > ratio)
    }

    /// The points of one group.
    pub fn group(&self, group: Group) -> impl Iterator<Item = &'a Point> + use<'a> {
        self.points.iter().filter(move |point| point.group == group)
    }

    /// The point with this label.
    pub fn point(&self, label: &str) -> Option<&'a Point> {
        self.points.iter().find(|point| point.label == label)
    }

    /// Storage points from which a headline figure was read.
    pub fn headlines(&self) -> impl Iterator<Item = &'a Point> {
        let summary = self.summary;
        self.storage_points()
            .filter(move |point| summary.iter().any(|(_, figure)| figure.phase == point.label))
    }

    /// The windows of one label, in the order of time.
    pub fn windows_of(&self, label: &str) -> Vec<&'a Window> {
        let manifest = self.manifest;
        self.windows.iter().filter(|w| manifest.phases[w.phase].label == label).collect()
    }

    /// The phase of a window.
    pub fn phase(&self, window: &Window) -> &'a Phase {
        &self.manifest.phases[window.phase]
    }

    /// Windows whose load claims to describe the storage, in the order of time.
    pub fn storage_windows(&self) -> impl Iterator<Item = &'a Window> {
        let manifest = self.manifest;
        self.windows.iter().filter(move |window| {
            let phase = &manifest.phases[window.phase];
            about_storage(phase.group, &phase.label)
        })
    }

    /// The target's file system type; empty for a device.
    pub fn file_system(&self) -> &'a str {
        self.manifest.target.file_system.as_ref().map_or("", |fs| fs.kind.as_str())
    }

    /// What keeps the data in main memory, if anything does.
    pub fn in_memory(&self) -> Option<String> {
        in_memory(&self.manifest.target)
    }

    /// The devices from the top of the chain to its bottom.
    pub fn devices(&self) -> &'a [BlockDevice] {
        &self.manifest.target.devices
    }
}

/// Whether a file system of this type keeps its files in main memory.
pub(crate) fn keeps_in_memory(kind: &str) -> bool {
    MEMORY_FILE_SYSTEMS.contains(&kind)
}

/// The file system under test, or that of a loop device's backing file, where it keeps its files
/// in main memory: `tmpfs`, `loop0 on tmpfs`.
pub(crate) fn in_memory(target: &StorageTarget) -> Option<String> {
    let file_system = target.file_system.as_ref().map(|fs| fs.kind.clone());
    file_system.filter(|kind| keeps_in_memory(kind)).or_else(|| {
        target.devices.iter().find_map(|device| {
            let kind =
                device.backing_file_system.as_deref().filter(|kind| keeps_in_memory(kind))?;
            Some(format!("{} on {kind}", device.name))
        })
    })
}

fn about_storage(group: Group, label: &str) -> bool {
    group != Group::Overhead && !CACHED_BY_INTENTION.contains(&label)
}

fn labels<'a>(points: impl IntoIterator<Item = &'a Point>) -> Vec<String> {
    points.into_iter().map(|point| point.label.clone()).collect()
}

/// `12.3 %`.
pub(crate) fn percent(ratio: f64) -> String {
    format!("{} %", three_digits((ratio * 1e4).round() / 1e2))
}

/// `4.2 MB`: decimal, as rates are.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{} MB", three_digits((bytes as f64 / 1e4).round() / 1e2))
}

/// `33 µs`.
pub(crate) fn time(value_ns: f64) -> String {
    format_ns(value_ns)
}
