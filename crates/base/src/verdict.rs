//! Judgements about a measurement: which rule, what came out, on what evidence, and what to do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The evidence was there and shows nothing wrong.
    Pass,
    /// The evidence shows the fault.
    Fail,
    /// The evidence was missing or does not decide.
    Inconclusive,
}

/// What a failed rule means for the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// The numbers do not describe the storage: they are struck through and the run exits with 3.
    Condemns,
    /// The numbers stand, but the reader must know this beside them.
    Warns,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The rule's id, as listed in docs/verdicts.md.
    pub rule: String,
    pub outcome: Outcome,
    /// What a failure means for the numbers.
    pub weight: Weight,
    /// The figures (names of summary entries) that a failure concerns.
    pub concerns: Vec<String>,
    /// What was seen, with numbers.
    pub evidence: String,
    /// The likely cause; empty on a pass.
    pub cause: String,
    /// What to do next; empty on a pass.
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
