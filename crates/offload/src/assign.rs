//! Matches the instances of two snapshots that list them in different orders.
//!
//! Counters never decrease, so a row after the run can continue only some of the rows before it. Of
//! the assignments that remain, the right one is that in which all instances had a similar
//! selectivity, because they scanned parts of the same table with the same predicate. The sums over
//! all instances do not depend on the assignment.

use crate::snapshot::{CountersOf, Snapshot};
use crate::statistics::{DISK, ELIGIBLE, READ, WIRE, normal};

/// The spread of the second best assignment must exceed that of the best by this factor.
const DECIDES: f64 = 2.0;
/// Maximum number of assignments to examine.
const ASSIGNMENTS_MAX: usize = 5_040;
/// Maximum number of steps of the search for assignments.
const STEPS_MAX: usize = 100_000;
/// If the greatest selectivity of the instances exceeds the least by more than this factor, they
/// did not run the same filter.
const ALIKE: f64 = 1.25;
/// Number of assignments kept for display.
const KEPT: usize = 4;
const INSTANCES_MAX: usize = 16;

/// Result of matching the instances of two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct Assigned {
    pub run: String,
    /// Whether the selectivities clearly favour the chosen assignment.
    pub is_decided: bool,
    /// The assignment by row labels, in which a counter decreases.
    pub listed: Vec<Share>,
    /// The best assignments in which no counter decreases, starting with the chosen one.
    pub candidates: Vec<Candidate>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub shares: Vec<Share>,
    /// Greatest ÷ least selectivity of its instances; infinite if an instance returned nothing.
    pub spread: f64,
}

/// Bytes and selectivity of one instance during the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    pub instance: String,
    /// The label of the row that continues this instance.
    pub listed_as: String,
    pub read_bytes: f64,
    pub wire_bytes: f64,
    pub wire_of_eligible: f64,
}

type Rows<'a> = Vec<(&'a str, [f64; 3], Vec<f64>)>;

/// Splits the counters of each row into those that decide the assignment and all counters.
fn rows<'a>(snapshot: &'a Snapshot) -> Option<Rows<'a>> {
    let (deciding, disk) = ([READ, ELIGIBLE, WIRE].map(normal), normal(DISK));
    let row = |(instance, counters): (&'a String, &'a CountersOf)| {
        let value = |name: &String| Some(counters.get(name)?.value);
        let [read, eligible, wire] = &deciding;
        let read = value(read).or_else(|| value(&disk))?;
        let deciding = [read, value(eligible)?, value(wire)?];
        let all = counters.values().map(|it| it.value).collect();
        Some((instance.as_str(), deciding, all))
    };
    snapshot.instances.iter().map(row).collect()
}

/// An assignment: for each row before the run, the index of the row after it that continues it.
pub struct Way {
    pub chosen: Vec<usize>,
    pub is_decided: bool,
    pub listed: Vec<Share>,
    pub candidates: Vec<Candidate>,
}

/// Finds the row of `after` that continues each row of `before`, among all assignments in which no
/// counter decreases. Returns `None` if none of them has similar selectivities. Both snapshots must
/// have the same instances with the same counters.
pub fn assign(before: &Snapshot, after: &Snapshot) -> Option<Way> {
    let (before, after) = (rows(before)?, rows(after)?);
    if before.len() < 2 || before.len() > INSTANCES_MAX {
        return None;
    }
    let continues = |from: usize, to: usize| {
        before[from].2.iter().zip(&after[to].2).all(|(from, to)| from <= to)
    };
    let possible: Vec<Vec<usize>> = (0..before.len())
        .map(|from| (0..after.len()).filter(|&to| continues(from, to)).collect())
        .collect();
    let mut search = Search { possible: &possible, found: Vec::new(), steps: 0 };
    search.from(&mut Vec::new());
    let is_whole = search.found.len() <= ASSIGNMENTS_MAX && search.steps <= STEPS_MAX;
    let spread = |assigned: &[usize]| candidate(&before, &after, assigned).spread;
    let mut found: Vec<(f64, Vec<usize>)> =
        search.found.into_iter().map(|assigned| (spread(&assigned), assigned)).collect();
    found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let best = found.first().map(|(spread, _)| *spread).filter(|best| *best <= ALIKE)?;
    let next = found.get(1).map(|(spread, _)| *spread);
    let is_decided = is_whole && next.is_none_or(|next| next - 1.0 > DECIDES * (best - 1.0));
    let as_listed: Vec<usize> = (0..before.len()).collect();
    let shown = found.iter().take(KEPT);
    Some(Way {
        is_decided,
        listed: candidate(&before, &after, &as_listed).shares,
        candidates: shown.map(|(_, assigned)| candidate(&before, &after, assigned)).collect(),
        chosen: found.swap_remove(0).1,
    })
}

/// Search for all assignments in which each row gets one of its possible continuations.
struct Search<'a> {
    possible: &'a [Vec<usize>],
    found: Vec<Vec<usize>>,
    steps: usize,
}

impl Search<'_> {
    fn from(&mut self, taken: &mut Vec<usize>) {
        self.steps += 1;
        let Some(ways) = self.possible.get(taken.len()) else {
            self.found.push(taken.clone());
            return;
        };
        for &to in ways {
            let is_enough = self.found.len() > ASSIGNMENTS_MAX || self.steps > STEPS_MAX;
            if taken.contains(&to) || is_enough {
                continue;
            }
            taken.push(to);
            self.from(taken);
            taken.pop();
        }
    }
}

fn candidate(before: &Rows<'_>, after: &Rows<'_>, assigned: &[usize]) -> Candidate {
    let share = |(from, &to): (usize, &usize)| {
        let grown = |at: usize| after[to].1[at] - before[from].1[at];
        Share {
            instance: before[from].0.to_owned(),
            listed_as: after[to].0.to_owned(),
            read_bytes: grown(0),
            wire_bytes: grown(2),
            wire_of_eligible: grown(2) / grown(1),
        }
    };
    let shares: Vec<Share> = assigned.iter().enumerate().map(share).collect();
    let ratios = shares.iter().map(|share| share.wire_of_eligible);
    let greatest = ratios.clone().fold(f64::NEG_INFINITY, f64::max);
    let least = ratios.clone().fold(f64::INFINITY, f64::min);
    let is_known = ratios.into_iter().all(f64::is_finite) && least > 0.0;
    let spread = if is_known { greatest / least } else { f64::INFINITY };
    Candidate { shares, spread }
}
