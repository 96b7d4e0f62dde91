//! Instances that are listed in another order after a run than before it.
//!
//! Counters never fall: that leaves few ways to say which row after the run continues which row
//! before it. Among them the one is right in which all instances filtered alike, since they scanned
//! parts of the same table with the same predicate. Sums over the instances are the same for all.

use crate::snapshot::{CountersOf, Snapshot};
use crate::statistics::{ELIGIBLE, READ, WIRE, normal};

/// The second best assignment must spread this many times as much as the best.
const DECIDES: f64 = 2.0;
/// Assignments that are looked at.
const ASSIGNMENTS_MAX: usize = 50_000;
const INSTANCES_MAX: usize = 16;

/// How the instances of two snapshots were matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Assigned {
    pub run: String,
    /// By the labels of the rows, with a counter that falls.
    pub listed: Vec<Share>,
    /// In which no counter falls, the chosen one first.
    pub candidates: Vec<Candidate>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub shares: Vec<Share>,
    /// Greatest ÷ least selectivity of its instances; infinite where one returned nothing.
    pub spread: f64,
}

/// What one instance did.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    pub instance: String,
    /// As the row is labelled that continues it.
    pub listed_as: String,
    pub read_bytes: f64,
    pub wire_bytes: f64,
    pub wire_of_eligible: f64,
}

/// Why there is no assignment.
#[derive(Debug, PartialEq)]
pub enum Unassigned {
    /// A counter falls in each of them.
    Falls,
    /// Several filter about alike.
    Ambiguous(usize),
}

type Rows<'a> = Vec<(&'a str, [f64; 3], Vec<f64>)>;

/// The counters that decide first, then all others.
fn rows<'a>(snapshot: &'a Snapshot) -> Option<Rows<'a>> {
    let deciding = [READ, ELIGIBLE, WIRE].map(normal);
    let row = |(instance, counters): (&'a String, &'a CountersOf)| {
        let value = |name: &String| Some(counters.get(name)?.value);
        let [read, eligible, wire] = &deciding;
        let deciding = [value(read)?, value(eligible)?, value(wire)?];
        let all = counters.values().map(|it| it.value).collect();
        Some((instance.as_str(), deciding, all))
    };
    snapshot.instances.iter().map(row).collect()
}

/// A way to continue the rows: indices into the instances after the run, and what it means.
pub struct Way {
    pub chosen: Vec<usize>,
    pub listed: Vec<Share>,
    pub candidates: Vec<Candidate>,
}

/// Which row of `after` continues each row of `before`, of all ways in which no counter falls. Both
/// have the same instances with the same counters.
pub fn assign(before: &Snapshot, after: &Snapshot) -> Result<Way, Unassigned> {
    let (Some(before), Some(after)) = (rows(before), rows(after)) else {
        return Err(Unassigned::Falls);
    };
    if before.len() < 2 || before.len() > INSTANCES_MAX {
        return Err(Unassigned::Falls);
    }
    let continues = |from: usize, to: usize| {
        before[from].2.iter().zip(&after[to].2).all(|(from, to)| from <= to)
    };
    let possible: Vec<Vec<usize>> = (0..before.len())
        .map(|from| (0..after.len()).filter(|&to| continues(from, to)).collect())
        .collect();
    let mut found = Vec::new();
    search(&possible, &mut Vec::new(), &mut found);
    if found.len() > ASSIGNMENTS_MAX {
        return Err(Unassigned::Ambiguous(found.len()));
    }
    let mut candidates: Vec<(Vec<usize>, Candidate)> = found
        .into_iter()
        .map(|assigned| {
            let candidate = candidate(&before, &after, &assigned);
            (assigned, candidate)
        })
        .collect();
    candidates.sort_by(|(_, a), (_, b)| a.spread.total_cmp(&b.spread));
    let spread = |at: usize| candidates.get(at).map(|(_, it)| it.spread);
    let excess = |spread: f64| spread - 1.0;
    match (spread(0), spread(1)) {
        (None, _) => Err(Unassigned::Falls),
        (Some(best), _) if !best.is_finite() => Err(Unassigned::Ambiguous(candidates.len())),
        (Some(best), Some(next)) if excess(next) < DECIDES * excess(best) => {
            Err(Unassigned::Ambiguous(candidates.len()))
        }
        _ => {
            let as_listed: Vec<usize> = (0..before.len()).collect();
            Ok(Way {
                chosen: candidates[0].0.clone(),
                listed: candidate(&before, &after, &as_listed).shares,
                candidates: candidates.into_iter().map(|(_, candidate)| candidate).collect(),
            })
        }
    }
}

fn search(possible: &[Vec<usize>], taken: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    let Some(ways) = possible.get(taken.len()) else {
        found.push(taken.clone());
        return;
    };
    for &to in ways {
        if taken.contains(&to) || found.len() > ASSIGNMENTS_MAX {
            continue;
        }
        taken.push(to);
        search(possible, taken, found);
        taken.pop();
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
