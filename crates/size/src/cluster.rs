//! Groups observations of instances into snapshots of databases.

use std::collections::{BTreeMap, BTreeSet};

use crate::Observation;

/// The instances and snapshots of one database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Database {
    pub name: String,
    pub instances: BTreeSet<String>,
    /// In order of time.
    pub snapshots: Vec<Snapshot>,
}

/// The instances of a database over the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Sum over all instances that were observed.
    pub load: Observation,
    pub parts: Vec<Observation>,
    /// Instances of the database that were not observed: `load` is a lower bound.
    pub missing: usize,
}

/// Instances whose snapshots end within this time of each other, or within a tenth of their length,
/// belong to one snapshot.
const APART_S: f64 = 60.0;

/// Returns the snapshots of every database, sorted by name.
pub fn databases(observations: &[Observation]) -> Vec<Database> {
    let mut by_name: BTreeMap<&str, Vec<&Observation>> = BTreeMap::new();
    for observation in observations {
        by_name.entry(&observation.database).or_default().push(observation);
    }
    by_name.into_iter().map(|(name, all)| database(name, all)).collect()
}

fn database(name: &str, mut all: Vec<&Observation>) -> Database {
    all.sort_by(|a, b| a.end_s().total_cmp(&b.end_s()));
    let instances: BTreeSet<String> = all.iter().map(|it| it.instance.clone()).collect();
    let mut groups: Vec<Vec<Observation>> = Vec::new();
    for observation in all {
        let belongs = groups.last().is_some_and(|group| {
            let apart_s = observation.end_s() - group[0].end_s();
            let known = group.iter().any(|it| it.instance == observation.instance);
            !known && apart_s <= APART_S.max(group[0].seconds.min(observation.seconds) / 10.0)
        });
        match groups.last_mut().filter(|_| belongs) {
            Some(group) => group.push(observation.clone()),
            None => groups.push(vec![observation.clone()]),
        }
    }
    // A report of the whole cluster includes all of its instances.
    let single = instances.iter().filter(|it| !it.is_empty()).count();
    let snapshot = |parts: Vec<Observation>| {
        let mut load = Observation::sum(&parts)?;
        let whole = parts.iter().any(|it| it.instance.is_empty());
        load.instance = if single > 1 { String::new() } else { load.instance };
        let missing = if whole { 0 } else { single.saturating_sub(parts.len()) };
        Some(Snapshot { load, parts, missing })
    };
    Database {
        name: name.to_owned(),
        snapshots: groups.into_iter().filter_map(snapshot).collect(),
        instances,
    }
}

impl Database {
    /// Returns the number of snapshots that lack instances.
    pub fn partial(&self) -> usize {
        self.snapshots.iter().filter(|it| it.missing > 0).count()
    }

    /// Returns the start of the first snapshot and the end of the last.
    pub fn span_s(&self) -> (f64, f64) {
        let begin = self.snapshots.iter().map(|it| it.load.begin_s).fold(f64::INFINITY, f64::min);
        let end = self.snapshots.iter().map(|it| it.load.end_s()).fold(0.0, f64::max);
        (begin.min(end), end)
    }
}
