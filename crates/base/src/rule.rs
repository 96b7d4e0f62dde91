//! Rules: each checks for one way in which a number may not mean what it says. A verb declares the
//! rules for its findings where it makes them; this engine knows no verbs.
//!
//! ```
//! use blockstone_base::rule::{About, Judged, Judgement, RuleOf, judge};
//! use blockstone_base::verdict::{Outcome, Weight};
//!
//! struct Sample {
//!     reads: u64,
//! }
//!
//! impl Judged for Sample {
//!     const VERB: &'static str = "sample";
//! }
//!
//! const NOTHING_READ: About = About {
//!     id: "nothing-read",
//!     weight: Weight::Condemns,
//!     doc: "A sample without a read.",
//!     threshold: "No read.",
//!     cause: "The file is empty.",
//!     next: "Sample another file.",
//! };
//! const RULES: &[RuleOf<Sample>] = &[RuleOf::new(&NOTHING_READ, |sample| {
//!     Judgement::decide(sample.reads == 0, format!("{} reads", sample.reads), Vec::new())
//! })];
//!
//! let verdicts = judge(RULES, &Sample { reads: 0 });
//! assert_eq!((verdicts[0].rule.as_str(), verdicts[0].outcome), ("nothing-read", Outcome::Fail));
//! ```

use crate::verdict::{Outcome, Verdict, Weight};

/// Contents of a verdict and of its section in docs/verdicts.md. Rules of several verbs share one
/// if they look for the same fault.
#[derive(Debug, PartialEq, Eq)]
pub struct About {
    /// Kebab case, unique and stable, because scripts match it.
    pub id: &'static str,
    /// Effect of a failure on the numbers, unless the judgement overrides it.
    pub weight: Weight,
    pub doc: &'static str,
    /// The thresholds and their sources.
    pub threshold: &'static str,
    /// Likely cause of a failure.
    pub cause: &'static str,
    /// Advice after a failure.
    pub next: &'static str,
}

/// Something that rules judge, such as the findings of a verb.
pub trait Judged {
    /// The verb as typed: `check direct`.
    const VERB: &'static str;

    /// Returns the names of the figures that a judgement on these places concerns.
    fn figures_at(&self, places: &[String]) -> Vec<String> {
        places.to_vec()
    }
}

/// One rule; `F` is the function that judges.
pub struct Rule<F> {
    pub about: &'static About,
    check: F,
}

/// A rule for findings that borrow nothing. Those that do name their function type:
/// `Rule<fn(&Case) -> Judgement>` takes a case of any lifetime.
pub type RuleOf<S> = Rule<fn(&S) -> Judgement>;

impl<F: Copy> Rule<F> {
    pub const fn new(about: &'static About, check: F) -> Self {
        Self { about, check }
    }
}

/// A rule's conclusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub outcome: Outcome,
    /// Observation, with numbers and units; if inconclusive, what was missing.
    pub evidence: String,
    /// Labels of the points that a failure concerns or, except in a calibration, names of figures.
    pub points: Vec<String>,
    /// A weight other than the rule's, if the evidence is stronger or weaker than usual.
    pub weight: Option<Weight>,
    /// A cause more precise than the rule's.
    pub cause: Option<String>,
    /// Advice more precise than the rule's.
    pub next: Option<String>,
    /// Whether the rule applies to these findings. If it does not, no verdict is given.
    pub applies: bool,
}

impl Judgement {
    /// Concludes that the evidence was there and shows nothing wrong.
    pub fn pass(evidence: impl Into<String>) -> Self {
        Self::new(Outcome::Pass, evidence.into(), Vec::new())
    }

    /// Concludes that the evidence was missing or inconclusive; `reason` says which.
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        Self::new(Outcome::Inconclusive, reason.into(), Vec::new())
    }

    /// Returns the conclusion of `check`, if the rule applies to these findings.
    pub fn when(applies: bool, check: impl FnOnce() -> Self) -> Self {
        if applies { check() } else { Self::not_applicable() }
    }

    pub fn not_applicable() -> Self {
        Self { applies: false, ..Self::inconclusive("") }
    }

    /// Concludes that the evidence shows the fault at the points with these labels, or in these
    /// figures.
    pub fn fail(evidence: impl Into<String>, points: Vec<String>) -> Self {
        Self::new(Outcome::Fail, evidence.into(), points)
    }

    /// Concludes a failure at these points or figures, or a pass, on conclusive evidence.
    pub fn decide(failed: bool, evidence: String, points: Vec<String>) -> Self {
        if failed { Self::fail(evidence, points) } else { Self::pass(evidence) }
    }

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
        let (weight, cause, next) = (None, None, None);
        Self { outcome, evidence, points, weight, cause, next, applies: true }
    }
}

/// Returns the verdicts of all rules that apply, in the order of the rules.
pub fn judge<S: Judged, F: Fn(&S) -> Judgement>(rules: &[Rule<F>], judged: &S) -> Vec<Verdict> {
    judge_places(rules, judged).into_iter().map(|(verdict, _)| verdict).collect()
}

/// Returns the verdicts, each with the points or figures that it is about.
pub fn judge_places<S: Judged, F: Fn(&S) -> Judgement>(
    rules: &[Rule<F>],
    judged: &S,
) -> Vec<(Verdict, Vec<String>)> {
    let judgements = rules.iter().map(|rule| (rule.about, (rule.check)(judged)));
    let those = judgements.filter(|(_, judgement)| judgement.applies);
    those.map(|(about, judgement)| verdict(about, judgement, judged)).collect()
}

fn verdict(about: &About, judgement: Judgement, judged: &impl Judged) -> (Verdict, Vec<String>) {
    let failed = judgement.outcome == Outcome::Fail;
    let said = |text: String| if failed { text } else { String::new() };
    let verdict = Verdict {
        rule: about.id.to_owned(),
        outcome: judgement.outcome,
        weight: judgement.weight.unwrap_or(about.weight),
        concerns: judged.figures_at(&judgement.points),
        evidence: judgement.evidence,
        cause: said(judgement.cause.unwrap_or_else(|| about.cause.to_owned())),
        next: said(judgement.next.unwrap_or_else(|| about.next.to_owned())),
    };
    (verdict, judgement.points)
}

/// Returns each rule with the verb whose findings it judges, for docs/verdicts.md.
pub fn listed<S: Judged, F: Fn(&S) -> Judgement>(
    rules: &'static [Rule<F>],
) -> impl Iterator<Item = Listed> {
    rules.iter().map(|rule| Listed { about: rule.about, verb: S::VERB })
}

/// A rule and a verb whose findings it judges.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub about: &'static About,
    pub verb: &'static str,
}
