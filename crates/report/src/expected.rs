//! Limits on figures that were expected, and their outcomes.

use std::fmt;

use blockstone_base::stats::Estimate;
use blockstone_base::table::{Measure, Value};
use schemars::JsonSchema;
use serde::Serialize;

use crate::format;

/// Name of the table and of the key of the document.
pub const EXPECTATIONS: &str = "expectations";

/// Outcome of a limit.
///
/// The worst is the last in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All of the interval keeps to the limit.
    Pass,
    /// The interval contains the limit, or a sound figure is missing.
    NotEstablished,
    /// All of the interval is beyond the limit.
    Fail,
}

/// A limit and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Expected {
    /// Figure, as it was written.
    pub name: String,
    /// Comparison and limit, as they were written.
    pub limit: String,
    /// The number, in the base unit of the figure; of a table, that of the row which decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    pub outcome: Outcome,
    /// Row of the table that decides, and why a limit is not established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The one who states the limit, unless it is the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    #[serde(skip)]
    pub(crate) found: Found,
}

/// A number as a report has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub value: Value,
    pub measure: Measure,
}

/// `commit.p99 < 2ms`.
impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.limit.find(|sign| !['<', '>', '=', '!'].contains(&sign)).unwrap_or(0);
        let (sign, limit) = self.limit.split_at(at);
        write!(f, "{} {sign} {limit}", self.name)
    }
}

impl Expected {
    /// Returns the limit without a measurement.
    #[must_use]
    pub fn unmeasured(&self) -> Self {
        let (value, low, high) = (None, None, None);
        let found = Found { value: Value::default(), measure: self.found.measure };
        let why = Some("it was not measured".to_owned());
        Self { value, low, high, outcome: Outcome::NotEstablished, why, found, ..self.clone() }
    }

    /// Whether the figure may be at most the limit, as a latency.
    pub fn is_ceiling(&self) -> bool {
        self.limit.starts_with('<')
    }

    /// Returns the number that was measured, with its interval, for people.
    pub fn measured(&self) -> String {
        let Found { value, measure } = &self.found;
        let shown = |number: f64| format::value(&number.into(), *measure);
        let text = format::value(value, *measure);
        match value {
            Value::Estimate(Estimate { low, high, .. }) if high.is_infinite() => {
                format!("{text} (≥ {})", shown(*low))
            }
            Value::Estimate(Estimate { low, high, .. }) if low < high => {
                format!("{text} ({} – {})", shown(*low), shown(*high))
            }
            _ => text,
        }
    }
}

impl Outcome {
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::NotEstablished => "not established",
        }
    }
}
