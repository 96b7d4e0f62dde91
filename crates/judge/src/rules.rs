//! The rules: each looks at one way in which a number may not mean what it says. One file a rule,
//! one line in [`registry`]. A rule may ask the same question of several kinds of recording.

mod above_calibration;
mod above_link;
mod alignment_refused;
mod appends_lost;
mod block_sampling;
mod bound_by_host;
mod burst;
mod cache_displaced;
mod cache_suspected;
mod cached_metadata;
mod clock_pause;
mod clock_step;
mod cloud_volume;
mod compressible;
mod compressible_filler;
#[cfg(test)]
mod contract;
mod corrupt;
mod db_time_remainder;
mod degraded;
mod device_locality;
mod double_caching;
mod evidence;
mod failed_session;
mod file_may_fit_cache;
mod flags_contradict_settings;
mod generator_bound;
mod hole;
mod import_adds_up;
mod incoherent;
mod io_errors;
mod late_start;
mod link_trained_down;
mod littles_law;
mod lost_after_cut;
mod lying_flush;
mod maintenance;
mod memory_backed;
mod memory_test;
mod mostly_cached;
mod multipath_leg;
mod network_file_system;
mod never_used_blocks;
mod noisy_neighbour;
mod not_direct;
mod not_offloaded;
mod not_preconditioned;
mod orphans;
mod plan_changed;
mod prediction_held;
mod processor_frequency;
mod raid_degraded;
mod ratio_misleading;
pub mod registry;
mod run_queue_delay;
mod scale;
mod sent_back;
mod shifted_copy;
mod silent_writes;
mod source_saturated;
mod throttled;
mod trace_truncated;
mod unaccounted_time;
mod unsafe_commits;
mod unsteady;
mod unwritten;
mod wire_disagrees;
mod work_unit;
mod writers_wait;
mod wrong_unit;

use blockstone_base::coherence::CoherenceFindings;
use blockstone_base::copy::CopyFindings;
use blockstone_base::database::LOAD;
use blockstone_base::direct::DirectFindings;
use blockstone_base::durability::{Cuts, DurabilityFindings, Stage};
use blockstone_base::metadata::MetadataFindings;
use blockstone_base::named;
use blockstone_base::need::{NeedFindings, RunOfNeed};
use blockstone_base::offload::OffloadFindings;
use blockstone_base::order::OrderFindings;
use blockstone_base::subset::SubsetFindings;
use blockstone_base::trace::TraceFindings;
pub(crate) use blockstone_base::units::format_ns as time;
use blockstone_base::units::three_digits;
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_record::manifest::{Figure, Manifest};

use crate::claim::Claim;
use crate::findings::Point;
use crate::run::FIGURES;
pub use evidence::{Case, Evidence, Observed, RunCase, ScanCase};
use evidence::{beyond_sight, direct_elsewhere, file_system, in_memory, is_served, kernel_version};

/// One rule, and all that its page in docs/verdicts.md says.
pub struct Rule {
    /// Its id in kebab case, unique and stable: scripts look for it.
    pub id: &'static str,
    /// What a failure means for the numbers, unless the judgement says otherwise.
    pub weight: Weight,
    pub doc: &'static str,
    /// The thresholds and where they come from.
    pub threshold: &'static str,
    /// The likely cause of a failure.
    pub cause: &'static str,
    /// What to do after a failure.
    pub next: &'static str,
    /// One applies to each kind of subject, or none.
    pub checks: &'static [Check],
}

#[derive(Clone, Copy)]
pub enum Check {
    /// Of what the manifest says about the storage, in a calibration and in a run: a failure
    /// concerns all numbers of the storage.
    Storage(fn(&Manifest) -> Judgement),
    Calibration(fn(&Case) -> Judgement),
    /// Of a calibration, each of several targets by itself: what its file and file system show.
    Target(fn(&Case) -> Judgement),
    Run(fn(&RunCase) -> Judgement),
    /// Of what was observed of a machine and its databases, in a watch and in a run. It applies
    /// only to a watch in which one of these series saw something, and to a run that has the first.
    Observed {
        series: &'static [&'static str],
        check: fn(&Observed) -> Judgement,
    },
    /// Of the history that a database kept of its load. It applies to imports that have it.
    Imported(fn(&Observed) -> Judgement),
    Scan(fn(&ScanCase) -> Judgement),
    Claim(fn(&Claim) -> Judgement),
    /// Of what `check direct` found on a path, or of processes.
    Direct(fn(&DirectFindings) -> Judgement),
    /// Of a path only.
    DirectPath(fn(&DirectFindings) -> Judgement),
    /// Of open files only.
    OpenFiles(fn(&DirectFindings) -> Judgement),
    /// Of what `check metadata` found.
    Metadata(fn(&MetadataFindings) -> Judgement),
    /// Of what `check coherence` found.
    Coherence(fn(&CoherenceFindings) -> Judgement),
    /// Of what `check durability` found on a path without a cut.
    Flushes(fn(&DurabilityFindings) -> Judgement),
    /// Of what it found after one.
    Cut(fn(&DurabilityFindings) -> Judgement),
    /// Of what `check write-order` found.
    Order(fn(&OrderFindings) -> Judgement),
    /// Of what a copy left behind.
    Copy(fn(&CopyFindings) -> Judgement),
    /// Of how the load that `size` takes a need from was distributed over time.
    Need(fn(&NeedFindings) -> Judgement),
    /// Of a run that was held against a need.
    Prediction(fn(&RunOfNeed) -> Judgement),
    /// Of what a trace of statements contains.
    Trace(fn(&TraceFindings) -> Judgement),
    /// Of a subset of a database.
    Subset(fn(&SubsetFindings) -> Judgement),
    /// Of runs on a storage that filters rows.
    Offload(fn(&OffloadFindings) -> Judgement),
}

named! {
    /// What is judged, by the verb that makes it.
    #[derive(PartialOrd, Ord)]
    Subject {
        Calibration = "calibrate",
        Run = "run",
        Watch = "watch",
        Scan = "reduce",
        Claim = "claim",
        Direct = "check direct",
        Metadata = "check metadata",
        Coherence = "check coherence",
        Durability = "check durability",
        Order = "check write-order",
        Copy = "copy",
        Size = "size",
        Trace = "trace",
        Subset = "subset",
        Offload = "offload",
    }
}

impl Check {
    pub const fn subjects(self) -> &'static [Subject] {
        match self {
            Self::Storage(_) => &[Subject::Calibration, Subject::Run],
            Self::Calibration(_) | Self::Target(_) => &[Subject::Calibration],
            Self::Run(_) => &[Subject::Run],
            Self::Observed { .. } => &[Subject::Run, Subject::Watch],
            Self::Imported(_) => &[Subject::Watch],
            Self::Scan(_) => &[Subject::Scan],
            Self::Claim(_) => &[Subject::Claim],
            Self::Direct(_) | Self::DirectPath(_) | Self::OpenFiles(_) => &[Subject::Direct],
            Self::Metadata(_) => &[Subject::Metadata],
            Self::Coherence(_) => &[Subject::Coherence],
            Self::Flushes(_) | Self::Cut(_) => &[Subject::Durability],
            Self::Order(_) => &[Subject::Order],
            Self::Copy(_) => &[Subject::Copy],
            Self::Need(_) | Self::Prediction(_) => &[Subject::Size],
            Self::Trace(_) => &[Subject::Trace],
            Self::Subset(_) => &[Subject::Subset],
            Self::Offload(_) => &[Subject::Offload],
        }
    }
}

impl Rule {
    pub fn applies_to(&self) -> impl Iterator<Item = Subject> {
        self.checks.iter().flat_map(|check| check.subjects().iter().copied())
    }

    /// What it concludes; `None` where it does not apply.
    fn check(&self, evidence: &Evidence) -> Option<Judgement> {
        self.checks.iter().find_map(|check| match (check, evidence) {
            (Check::Storage(check), Evidence::Calibration(case)) => {
                let check = |case: &Case| check(case.manifest);
                Some(case.of_each_target(check).at(labels(case.storage_points())))
            }
            (Check::Storage(check), Evidence::Run(case)) => {
                Some(check(case.manifest).at(all_figures()))
            }
            (Check::Calibration(check), Evidence::Calibration(case)) => Some(check(case)),
            (Check::Target(check), Evidence::Calibration(case)) => Some(case.of_each_target(check)),
            (Check::Run(check), Evidence::Run(case)) => Some(check(case)),
            (Check::Observed { series, check }, Evidence::Run(case)) => {
                series.first().is_none_or(|it| case.window.has(it)).then(|| check(&case.observed()))
            }
            (Check::Observed { series, check }, Evidence::Watch(observed)) => {
                series.iter().any(|probe| observed.saw(probe)).then(|| check(observed))
            }
            (Check::Imported(check), Evidence::Watch(observed)) => {
                observed.saw(LOAD.probe).then(|| check(observed))
            }
            (Check::Scan(check), Evidence::Scan(case)) => Some(check(case)),
            (Check::Claim(check), Evidence::Claim(claim)) => Some(check(claim)),
            (Check::Direct(check), Evidence::Direct(found)) => Some(check(found)),
            (Check::DirectPath(check), Evidence::Direct(found)) => {
                found.is_of_path().then(|| check(found))
            }
            (Check::OpenFiles(check), Evidence::Direct(found)) => {
                (!found.is_of_path()).then(|| check(found))
            }
            (Check::Metadata(check), Evidence::Metadata(found)) => Some(check(found)),
            (Check::Coherence(check), Evidence::Coherence(found)) => Some(check(found)),
            (Check::Flushes(check), Evidence::Durability(found)) => {
                (found.stage == Stage::Examined).then(|| check(found))
            }
            (Check::Cut(check), Evidence::Durability(found)) => {
                let cut =
                    found.stage == Stage::Verified || found.witnessed_cuts() != Cuts::default();
                cut.then(|| check(found))
            }
            (Check::Order(check), Evidence::Order(found)) => Some(check(found)),
            (Check::Copy(check), Evidence::Copy(found)) => Some(check(found)),
            (Check::Need(check), Evidence::Size(found)) => {
                (found.intervals > 0).then(|| check(found))
            }
            (Check::Prediction(check), Evidence::Size(found)) => found.run.as_ref().map(check),
            (Check::Trace(check), Evidence::Trace(found)) => Some(check(found)),
            (Check::Subset(check), Evidence::Subset(found)) => Some(check(found)),
            (Check::Offload(check), Evidence::Offload(found)) => Some(check(found)),
            _ => None,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub outcome: Outcome,
    /// What was seen, with numbers and units; for an inconclusive one, what was missing.
    pub evidence: String,
    /// Labels of the points that a failure concerns; but for a calibration, names of figures.
    pub points: Vec<String>,
    /// A weight other than the rule's, where the evidence is stronger or weaker than usual.
    pub weight: Option<Weight>,
    /// A cause more precise than the rule's.
    pub cause: Option<String>,
    /// Advice more precise than the rule's.
    pub next: Option<String>,
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

    /// A failure at these points or figures, or a pass, on evidence that decides.
    pub fn decide(failed: bool, evidence: String, points: Vec<String>) -> Self {
        if failed { Self::fail(evidence, points) } else { Self::pass(evidence) }
    }

    /// With this weight in place of the rule's.
    #[must_use]
    pub fn weighing(self, weight: Weight) -> Self {
        Self { weight: Some(weight), ..self }
    }

    #[must_use]
    pub fn caused_by(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    #[must_use]
    pub fn advising(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }

    #[must_use]
    pub fn at(self, points: Vec<String>) -> Self {
        Self { points, ..self }
    }

    fn new(outcome: Outcome, evidence: String, points: Vec<String>) -> Self {
        Self { outcome, evidence, points, weight: None, cause: None, next: None }
    }
}

/// The verdicts on a recording, and the places that each is about.
pub(crate) struct Judged(Vec<(Verdict, Vec<String>)>);

pub(crate) fn judge(evidence: &Evidence) -> Judged {
    let judged = |rule: &Rule| Some(verdict(rule, rule.check(evidence)?, evidence));
    Judged(registry::ALL.iter().filter_map(judged).collect())
}

impl Judged {
    /// Marks the points that a verdict warns of and the figures and points that one condemns, and
    /// returns the verdicts.
    pub(crate) fn mark(
        self,
        summary: &mut [(String, Figure)],
        points: &mut [Point],
    ) -> Vec<Verdict> {
        for (verdict, places) in self.0.iter().filter(|(verdict, _)| verdict.failed()) {
            for point in points.iter_mut().filter(|point| places.contains(&point.label)) {
                let rules = match verdict.weight {
                    Weight::Condemns => &mut point.condemned_by,
                    Weight::Warns => &mut point.warned_by,
                };
                rules.push(verdict.rule.clone());
            }
            let concerned = summary
                .iter_mut()
                .filter(|(name, _)| verdict.condemns() && verdict.concerns.contains(name));
            for (_, figure) in concerned {
                figure.condemned_by.push(verdict.rule.clone());
            }
        }
        self.0.into_iter().map(|(verdict, _)| verdict).collect()
    }
}

fn verdict(rule: &Rule, judgement: Judgement, evidence: &Evidence) -> (Verdict, Vec<String>) {
    let failed = judgement.outcome == Outcome::Fail;
    let said = |text: String| if failed { text } else { String::new() };
    let verdict = Verdict {
        rule: rule.id.to_owned(),
        outcome: judgement.outcome,
        weight: judgement.weight.unwrap_or(rule.weight),
        concerns: evidence.figures_at(&judgement.points),
        evidence: judgement.evidence,
        cause: said(judgement.cause.unwrap_or_else(|| rule.cause.to_owned())),
        next: said(judgement.next.unwrap_or_else(|| rule.next.to_owned())),
    };
    (verdict, judgement.points)
}

fn all_figures() -> Vec<String> {
    FIGURES.map(str::to_owned).into()
}

fn read_figures() -> Vec<String> {
    // What was charged to processes is what the kernel knows, not what the database says.
    let elsewhere = |name: &str| name.starts_with("logical") || name.starts_with("process");
    let about = |name: &&str| name.contains("read") && !elsewhere(name);
    FIGURES.iter().filter(|name| about(name)).map(|name| (*name).to_owned()).collect()
}

fn commit_figures() -> Vec<String> {
    FIGURES.iter().filter(|name| name.contains("commit")).map(|name| (*name).to_owned()).collect()
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
