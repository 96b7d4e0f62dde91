//! Judgements about a measurement: the rule, its outcome, the evidence, and the advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The evidence was there and shows nothing wrong.
    Pass,
    /// The evidence shows the fault.
    Fail,
    /// The evidence was missing or inconclusive.
    Inconclusive,
}

/// Effect of a failed rule on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// The numbers do not describe the storage: they are struck through and the run exits with 3.
    Condemns,
    /// The numbers stand, but the reader must see this next to them.
    Warns,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// ID of the rule, as listed in docs/verdicts.md.
    pub rule: String,
    pub outcome: Outcome,
    /// Effect of a failure on the numbers.
    pub weight: Weight,
    /// Figures (names of summary entries) that a failure concerns.
    pub concerns: Vec<String>,
    /// Observation, with numbers.
    pub evidence: String,
    /// Likely cause; empty on a pass.
    pub cause: String,
    /// Advice on what to do next; empty on a pass.
    pub next: String,
}

impl Verdict {
    pub fn failed(&self) -> bool {
        self.outcome == Outcome::Fail
    }

    pub fn condemns(&self) -> bool {
        self.failed() && self.weight == Weight::Condemns
    }

    pub fn warns(&self) -> bool {
        self.failed() && self.weight == Weight::Warns
    }
}
