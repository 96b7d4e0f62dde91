//! Capabilities of a machine, a target or an engine: full, or degraded for a stated reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Availability of something. Never an error (that is "could not") and never a verdict (that is a
/// judgement).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Capability {
    Full,
    /// Not available, or only in part.
    Degraded {
        /// The reason and the remedy, in one sentence.
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
