//! The answer of `size --on`, and the loads that it rests on.

use blockstone_base::stats::Estimate;

/// Name of the load with the mean rates of the source.
pub const MEAN: &str = "mean";
/// Name of the load of as many sessions as the source had, in the same mix.
pub const SAME_SESSIONS: &str = "same sessions";

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Carries,
    DoesNotCarry,
    NotEstablished,
}

impl Outcome {
    /// Value in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Carries => "carries",
            Self::DoesNotCarry => "does-not-carry",
            Self::NotEstablished => "not-established",
        }
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::Carries => "carries the need",
            Self::DoesNotCarry => "does not carry the need",
            Self::NotEstablished => "not established whether it carries the need",
        }
    }

    /// Returns the worse of two outcomes.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::DoesNotCarry, _) | (_, Self::DoesNotCarry) => Self::DoesNotCarry,
            (Self::NotEstablished, _) | (_, Self::NotEstablished) => Self::NotEstablished,
            (Self::Carries, Self::Carries) => Self::Carries,
        }
    }
}

/// The storage compared with a need.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// The most that the storage did, as a multiple of the need.
    pub headroom: Option<Estimate>,
    /// The limit that more load would meet first.
    pub binds: String,
    pub why: Option<String>,
    pub loads: Vec<Load>,
    pub db_time: Option<Faster>,
    /// Whether a signal ended it early.
    pub is_interrupted: bool,
}

/// One load on the storage.
#[derive(Clone, Debug)]
pub struct Load {
    /// Part of the need, or `ceiling`.
    pub name: String,
    /// Operations or requests a second that were wanted; `None` for the ceiling.
    pub wanted_per_s: Option<f64>,
    pub done_per_s: Option<Estimate>,
    pub reads_per_s: Option<Estimate>,
    pub writes_per_s: Option<Estimate>,
    /// The p99 of a read that a calibration predicts at this load, of its two neighbours.
    pub predicted_ns_p99: Option<(f64, f64)>,
    pub read_ns_mean: Option<Estimate>,
    pub commit_ns_mean: Option<Estimate>,
    pub read_ns_p99: Option<Estimate>,
    pub commit_ns_p99: Option<Estimate>,
    pub outcome: Option<Outcome>,
    pub why: Option<String>,
    pub recording: String,
}

/// A value now, and between which values it would lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub before: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faster {
    pub reads: Change,
    pub commits: Change,
    /// Processor, network, locks and whatever else sessions did or waited for.
    pub rest: Change,
    /// Database time a second for the same work.
    pub db_time: Change,
    /// Operations a second of the same sessions.
    pub throughput: Change,
}
