//! How the recordings of two sets lie in time: whatever changes slowly on a machine affects both
//! sides alike only if their recordings alternate.

use super::{Recorded, Side};

/// Of one side, so many recordings may follow each other in sets that are interleaved: ABBA too
/// balances a drift.
const CONSECUTIVE_MAX: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All of one side, then all of the other.
    OneAfterTheOther,
    PartlyInterleaved,
    Interleaved,
    /// A recording does not say when it was made.
    Unknown,
}

impl Order {
    pub fn of(a: &Side, b: &Side) -> Self {
        let starts = |side: &Side| side.recordings.iter().map(start_ns).collect::<Option<Vec<_>>>();
        let (Some(a), Some(b)) = (starts(a), starts(b)) else { return Self::Unknown };
        let a = a.into_iter().map(|start_ns| (start_ns, 'A'));
        let mut sides: Vec<(i128, char)> = a.chain(b.into_iter().map(|ns| (ns, 'B'))).collect();
        sides.sort_unstable();
        let consecutive: Vec<usize> = sides.chunk_by(|x, y| x.1 == y.1).map(<[_]>::len).collect();
        match consecutive.iter().max() {
            _ if consecutive.len() <= 2 => Self::OneAfterTheOther,
            Some(most) if *most > CONSECUTIVE_MAX => Self::PartlyInterleaved,
            _ => Self::Interleaved,
        }
    }

    /// What a reader of the comparison has to know of it.
    pub const fn caveat(self) -> &'static str {
        match self {
            Self::OneAfterTheOther => {
                "A and B were measured one after the other, not interleaved: what changed on the \
                 machine between them counts as a difference between them."
            }
            Self::PartlyInterleaved => {
                "The recordings of A and B were only partly interleaved: what changed slowly on \
                 the machine may count as a difference between them."
            }
            Self::Interleaved => {
                "The recordings of A and B were interleaved: what changed slowly on the machine \
                 affects both alike."
            }
            Self::Unknown => {
                "When A and B were measured is unknown: what changed on the machine between them \
                 counts as a difference between them."
            }
        }
    }
}

/// When what is compared of a recording began, since the epoch.
fn start_ns(recorded: &Recorded) -> Option<i128> {
    let started: jiff::Timestamp = recorded.started_at.parse().ok()?;
    Some(started.as_nanosecond() + i128::from(recorded.from_ns.unwrap_or(0)))
}
