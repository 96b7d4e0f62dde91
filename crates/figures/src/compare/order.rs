//! Order of two sets of recordings in time. A slow change of a machine affects both sides alike
//! only if their recordings alternate.

use super::{Recorded, Side};

/// Maximum number of consecutive recordings of one side in sets that count as interleaved: ABBA
/// balances a drift, too.
const CONSECUTIVE_MAX: usize = 2;

/// Returns what a reader must know about the order.
pub fn caveat(a: &Side, b: &Side) -> &'static str {
    match consecutive(a, b).as_deref() {
        None => {
            "When A and B were measured is unknown: what changed on the machine between them \
             counts as a difference between them."
        }
        Some([] | [_] | [_, _]) => {
            "A and B were measured one after the other, not interleaved: what changed on the \
             machine between them counts as a difference between them."
        }
        Some(counts) if counts.iter().all(|count| *count <= CONSECUTIVE_MAX) => {
            "The recordings of A and B were interleaved: what changed slowly on the machine \
             affects both alike."
        }
        Some(_) => {
            "The recordings of A and B were only partly interleaved: what changed slowly on the \
             machine may count as a difference between them."
        }
    }
}

/// Returns the lengths of the runs of recordings of the same side, in order of time: AABA is 2, 1,
/// 1. `None` if a recording does not say when it began.
fn consecutive(a: &Side, b: &Side) -> Option<Vec<usize>> {
    let starts = |side: &Side| side.recordings.iter().map(start_ns).collect::<Option<Vec<_>>>();
    let a = starts(a)?.into_iter().map(|start_ns| (start_ns, 'A'));
    let b = starts(b)?.into_iter().map(|start_ns| (start_ns, 'B'));
    let mut sides: Vec<(i128, char)> = a.chain(b).collect();
    sides.sort_unstable();
    Some(sides.chunk_by(|x, y| x.1 == y.1).map(<[_]>::len).collect())
}

/// Returns the start of the compared part of a recording, in nanoseconds since the epoch.
fn start_ns(recorded: &Recorded) -> Option<i128> {
    let started: jiff::Timestamp = recorded.started_at.parse().ok()?;
    Some(started.as_nanosecond() + i128::from(recorded.from_ns.unwrap_or(0)))
}
