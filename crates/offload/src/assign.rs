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
const ASSIGNMENTS_MAX: usize = 5_040;
/// Steps of the search for them.
const STEPS_MAX: usize = 100_000;
/// Instances of which the least and the greatest selectivity are further apart did not filter
/// alike.
const ALIKE: f64 = 1.25;
/// Assignments that are kept to be shown.
const KEPT: usize = 4;
const INSTANCES_MAX: usize = 16;

/// How the instances of two snapshots were matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Assigned {
    pub run: String,
    /// Whether selectivity prefers the chosen assignment clearly.
    pub is_decided: bool,
    /// By the labels of the rows, with a counter that falls.
    pub listed: Vec<Share>,
    /// In which no counter falls, the chosen one first; the best of them.
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
    pub is_decided: bool,
    pub listed: Vec<Share>,
    pub candidates: Vec<Candidate>,
}

/// Which row of `after` continues each row of `before`, of all ways in which no counter falls; none
/// where there is no way in which the instances filtered alike. Both have the same instances with
/// the same counters.
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

/// All ways to take one of the possible rows each.
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
