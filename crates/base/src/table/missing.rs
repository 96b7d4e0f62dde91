//! Reasons why a table has no number.

use schemars::JsonSchema;
use serde::Serialize;

use super::keyed;

/// A number, or the reason why there is none.
pub type Known = Result<f64, Missing>;

/// Reason why a number is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "Option<keyed::Unmeasured>")]
pub enum Missing {
    /// It could be measured, but is switched off.
    Off,
    /// This kernel or server does not have it.
    NotInVersion,
    /// The log that was read does not contain it.
    NotInLog,
    /// This user may not read it.
    NotPermitted,
    /// The interval cannot show it: the object appeared or disappeared, or its counter was reset.
    Unknown,
    /// There is a number, but others contradict it: bytes charged that were never written.
    NoEvidence,
    /// Nothing happened that the number could describe, such as the latency of no requests.
    Nothing,
}

impl Missing {
    /// The variants that say why something was not measured.
    pub const REASONS: [Self; 6] = [
        Self::Off,
        Self::NotInVersion,
        Self::NotInLog,
        Self::NotPermitted,
        Self::Unknown,
        Self::NoEvidence,
    ];

    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::NotInVersion,
        Self::NotInLog,
        Self::NotPermitted,
        Self::Unknown,
        Self::NoEvidence,
        Self::Nothing,
    ];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NotInVersion => "not in this version",
            Self::NotInLog => "not in this log",
            Self::NotPermitted => "not permitted",
            Self::Unknown => "unknown",
            Self::NoEvidence => "no evidence",
            Self::Nothing => "nothing happened",
        }
    }
}
