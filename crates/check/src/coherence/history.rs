//! Tests whether a history of reads and writes can be explained by one register per address. Pure.
//!
//! All values are different, so each read identifies the write whose value it returns. A history is
//! then decided in O(n log n) (Gibbons and Korach, *Testing Shared Memories*, SIAM J. Comput.
//! 26(4), 1997): a write and its reads are a *cluster*, with a zone from the earliest end to the
//! latest start of its operations. Forward zones (earliest end before latest start) must not
//! overlap, and no backward zone may be inside a forward one. Otherwise two clusters contradict
//! each other: each has an operation that ended before one of the other started.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// Value of a register before anything is written to it.
pub const INITIAL: u64 = 0;
/// End of an operation that was not acknowledged: it may have taken effect at any time.
pub const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub rank: u32,
    pub register: u32,
    pub is_write: bool,
    /// Different in every write, and never [`INITIAL`] there.
    pub value: u64,
    /// Greater than 0, the time at which the initial value was written.
    pub start_ns: u64,
    pub end_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It returned a value that was never written there.
    Invented,
    /// It returned a value before its write started.
    FromFuture,
    /// It returned a value that was replaced before it started.
    Stale,
    /// Two writes have the same value: the history decides nothing.
    Ambiguous,
}

/// Two operations that no order explains: the second should have seen the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    pub fault: Fault,
    pub first: Operation,
    pub second: Operation,
}

impl Contradiction {
    /// Returns how long before the start of the second the first had ended.
    pub fn gap_ns(&self) -> u64 {
        self.second.start_ns.saturating_sub(self.first.end_ns)
    }
}

/// A write with the reads that return it.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    /// The write; `None` for the initial value.
    write: Option<Operation>,
    /// The operation that ends first.
    earliest: Operation,
    /// The operation that starts last.
    latest: Operation,
}

type Index = HashMap<u64, usize, BuildHasherDefault<DefaultHasher>>;

/// Returns a contradiction to one register per address in real time (linearizability): the pair
/// with the longest gap of those found. `None` if the history is linearizable.
pub fn contradiction(history: &[Operation]) -> Option<Contradiction> {
    let mut sorted: Vec<Operation> = history.to_vec();
    sorted.sort_unstable_by_key(|it| it.register);
    let mut worst: Option<Contradiction> = None;
    for operations in sorted.chunk_by(|a, b| a.register == b.register) {
        let found = match clusters(operations) {
            Ok(clusters) => of_zones(clusters),
            Err(found) => Some(found),
        };
        let rank = |it: &Contradiction| (it.fault != Fault::Stale, it.gap_ns());
        if let Some(found) = found
            && worst.as_ref().is_none_or(|worst| rank(&found) > rank(worst))
        {
            worst = Some(found);
        }
    }
    worst
}

/// Returns the clusters of one register.
fn clusters(operations: &[Operation]) -> Result<Vec<Cluster>, Contradiction> {
    let mut index = Index::default();
    let mut clusters: Vec<Cluster> = Vec::new();
    for &write in operations.iter().filter(|it| it.is_write) {
        if write.value == INITIAL || index.insert(write.value, clusters.len()).is_some() {
            return Err(alone(Fault::Ambiguous, write));
        }
        clusters.push(Cluster { write: Some(write), earliest: write, latest: write });
    }
    let initial = Operation {
        rank: 0,
        register: operations[0].register,
        is_write: true,
        value: INITIAL,
        start_ns: 0,
        end_ns: 0,
    };
    for &read in operations.iter().filter(|it| !it.is_write) {
        let at = match index.get(&read.value) {
            Some(&at) => at,
            None if read.value == INITIAL => {
                index.insert(INITIAL, clusters.len());
                clusters.push(Cluster { write: None, earliest: initial, latest: initial });
                clusters.len() - 1
            }
            None => return Err(alone(Fault::Invented, read)),
        };
        let cluster = &mut clusters[at];
        if let Some(write) = cluster.write
            && read.end_ns < write.start_ns
        {
            return Err(Contradiction { fault: Fault::FromFuture, first: write, second: read });
        }
        if read.end_ns < cluster.earliest.end_ns {
            cluster.earliest = read;
        }
        if read.start_ns > cluster.latest.start_ns {
            cluster.latest = read;
        }
    }
    // A write that was neither acknowledged nor read may not have happened.
    clusters.retain(|it| it.earliest.end_ns != NEVER);
    Ok(clusters)
}

fn alone(fault: Fault, operation: Operation) -> Contradiction {
    Contradiction { fault, first: operation, second: operation }
}

fn of_zones(clusters: Vec<Cluster>) -> Option<Contradiction> {
    let (mut forward, backward): (Vec<Cluster>, Vec<Cluster>) =
        clusters.into_iter().partition(|it| it.earliest.end_ns < it.latest.start_ns);
    forward.sort_unstable_by_key(|it| it.earliest.end_ns);
    let mut worst: Option<Contradiction> = None;
    let mut note = |a: &Cluster, b: &Cluster| {
        let found = between(a, b);
        if worst.as_ref().is_none_or(|worst| found.gap_ns() > worst.gap_ns()) {
            worst = Some(found);
        }
    };
    // Each is compared with the furthest-reaching of those that begin before it.
    let mut furthest: Option<Cluster> = None;
    for zone in &forward {
        if let Some(before) = &furthest
            && zone.earliest.end_ns < before.latest.start_ns
        {
            note(before, zone);
        }
        if furthest.is_none_or(|before| zone.latest.start_ns > before.latest.start_ns) {
            furthest = Some(*zone);
        }
    }
    // The furthest end of the zones up to each one.
    let mut reach: Vec<usize> = Vec::with_capacity(forward.len());
    for (number, zone) in forward.iter().enumerate() {
        let before = reach.last().copied();
        let is_further = |at: usize| forward[at].latest.start_ns >= zone.latest.start_ns;
        reach.push(before.filter(|&at| is_further(at)).unwrap_or(number));
    }
    for zone in &backward {
        // It lies between its latest start and its earliest end.
        let before = forward.partition_point(|it| it.earliest.end_ns < zone.latest.start_ns);
        let Some(&at) = before.checked_sub(1).and_then(|at| reach.get(at)) else { continue };
        if zone.earliest.end_ns < forward[at].latest.start_ns {
            note(&forward[at], zone);
        }
    }
    worst
}

/// Returns the contradiction of two clusters, each of which must precede the other.
fn between(a: &Cluster, b: &Cluster) -> Contradiction {
    let stale = |first, second| Contradiction { fault: Fault::Stale, first, second };
    // The operation of the newer value that had ended, and the one that returned the older value.
    let (b_first, a_first) = (stale(b.earliest, a.latest), stale(a.earliest, b.latest));
    let is_before = |one: &Cluster, other: &Cluster| match (one.write, other.write) {
        (None, _) => true,
        (Some(one), Some(other)) => one.end_ns < other.start_ns,
        _ => false,
    };
    if is_before(a, b) || (!is_before(b, a) && !b_first.second.is_write && a_first.second.is_write)
    {
        return b_first;
    }
    let a_decides = is_before(b, a) || b_first.second.is_write;
    if a_decides || a_first.gap_ns() > b_first.gap_ns() { a_first } else { b_first }
}

/// Returns a contradiction to one order of the writes of each address that every rank sees, late or
/// not (sequential consistency of each register): two operations of one rank, the second of which
/// goes back to an older value. `history` has the operations of each rank in order.
pub fn regression(history: &[Operation]) -> Option<Contradiction> {
    let mut sorted: Vec<Operation> = history.to_vec();
    sorted.sort_by_key(|it| (it.register, it.rank));
    sorted.chunk_by(|a, b| a.register == b.register).find_map(regression_of_one)
}

fn regression_of_one(operations: &[Operation]) -> Option<Contradiction> {
    let mut index = Index::default();
    let mut writes: Vec<Option<Operation>> = vec![None];
    index.insert(INITIAL, 0);
    for write in operations.iter().filter(|it| it.is_write) {
        if index.insert(write.value, writes.len()).is_some() {
            return Some(alone(Fault::Ambiguous, *write));
        }
        writes.push(Some(*write));
    }
    // If a rank goes from one value to another, that is their order. All follow the initial value.
    let mut after: Vec<Vec<(usize, Operation, Operation)>> = vec![Vec::new(); writes.len()];
    let mut before_count = vec![0_usize; writes.len()];
    for of_rank in operations.chunk_by(|a, b| a.rank == b.rank) {
        let mut last: Option<(usize, Operation)> = None;
        for &operation in of_rank {
            let Some(&at) = index.get(&operation.value) else {
                return Some(alone(Fault::Invented, operation));
            };
            match last {
                Some((from, first)) if from != at => {
                    if at == 0 {
                        return Some(back(first, operation));
                    }
                    after[from].push((at, first, operation));
                    before_count[at] += 1;
                }
                // The rank read its own write before it wrote.
                Some((_, second)) if operation.is_write => {
                    let first = operation;
                    return Some(Contradiction { fault: Fault::FromFuture, first, second });
                }
                _ => {}
            }
            last = Some((at, operation));
        }
    }
    let mut ready: Vec<usize> = (0..writes.len()).filter(|&at| before_count[at] == 0).collect();
    let mut left = writes.len();
    while let Some(at) = ready.pop() {
        left -= 1;
        for &(next, ..) in &after[at] {
            before_count[next] -= 1;
            if before_count[next] == 0 {
                ready.push(next);
            }
        }
    }
    if left == 0 {
        return None;
    }
    // An edge of the cycle that goes back in time.
    let circle = (0..writes.len()).filter(|&at| before_count[at] > 0);
    let edges = circle.flat_map(|at| after[at].iter().map(move |edge| (at, edge)));
    let started = |at: usize| writes[at].map_or(0, |write| write.start_ns);
    let in_circle = edges.filter(|(_, edge)| before_count[edge.0] > 0);
    in_circle
        .max_by_key(|(from, edge)| started(*from).saturating_sub(started(edge.0)))
        .map(|(_, &(_, first, second))| back(first, second))
}

fn back(first: Operation, second: Operation) -> Contradiction {
    Contradiction { fault: Fault::Stale, first, second }
}

#[cfg(test)]
mod tests;
