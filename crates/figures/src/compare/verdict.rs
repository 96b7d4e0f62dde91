//! The verdict on one set against another, in a word.

use super::{Outcome, Row, Subject};

/// Verdict by the headline figures, each of which has a better direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some figures are better, and none is worse.
    Faster,
    /// Some figures are worse, and none is better.
    Slower,
    /// No difference is established, and none that is still possible is larger than a tenth.
    Same,
    /// Some figures are better, others worse.
    Mixed,
    /// No difference is established, but there may be one.
    NotEstablished,
}

/// Two figures count as the same if the interval of their ratio is within 1 ± this.
const SAME: f64 = 0.1;

impl Verdict {
    /// Returns its word in documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Mixed => "mixed",
            Self::NotEstablished => "not-established",
        }
    }

    /// Returns `None` if no row is a headline figure.
    pub(super) fn of(rows: &[Row]) -> Option<Self> {
        let mut headline = rows.iter().filter(|row| row.is_headline()).peekable();
        headline.peek()?;
        let headline: Vec<&Row> = headline.collect();
        let has = |worse: bool| headline.iter().any(|row| row.is_worse() == Some(worse));
        Some(match (has(false), has(true)) {
            (true, true) => Self::Mixed,
            (true, false) => Self::Faster,
            (false, true) => Self::Slower,
            (false, false) if are_alike(&headline) => Self::Same,
            (false, false) => Self::NotEstablished,
        })
    }
}

/// Returns whether all figures that can be compared are known to be alike.
fn are_alike(rows: &[&Row]) -> bool {
    let mut compared = rows.iter().filter(|row| row.outcome == Outcome::NotEstablished).peekable();
    let alike = |row: &&Row| {
        row.ratio.is_some_and(|ratio| ratio.low >= 1.0 - SAME && ratio.high <= 1.0 + SAME)
    };
    compared.peek().is_some() && compared.all(alike)
}

impl Row {
    /// Returns whether B is worse (`true`) or better (`false`); `None` if no difference is
    /// established, or neither direction is better. Figures that a rule warns of count too: they
    /// differ, whatever the cause.
    pub fn is_worse(&self) -> Option<bool> {
        let Subject::Measured { lower_is_faster, .. } = self.key.subject else { return None };
        match self.outcome {
            Outcome::Faster => Some(false),
            Outcome::Slower => Some(true),
            Outcome::Higher => Some(lower_is_faster),
            Outcome::Lower => Some(!lower_is_faster),
            _ => None,
        }
    }
}
