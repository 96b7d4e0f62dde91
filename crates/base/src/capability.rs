//! What a machine, a target or an engine can do: fully, or less, and then why.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether something is available. Never an error (that is "could not") and never a verdict
/// (that is a judgement).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Capability {
    Full,
    /// Not, or only in part.
    Degraded {
        /// The reason, and what would lift it, in one sentence.
        why: String,
    },
}

impl Capability {
    pub fn degraded(why: impl Into<String>) -> Self {
        Self::Degraded { why: why.into() }
    }

    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full)
    }
}
