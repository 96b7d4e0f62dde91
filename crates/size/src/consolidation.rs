//! Several databases, or the instances of one, on the same storage: the sum of their peaks is the
//! need if the times of the peaks are unknown, the peak of their sums is the need as observed.

use std::collections::BTreeMap;

use crate::Observation;
use crate::cluster::Database;
use crate::hours::{self, Mean, Week};

#[derive(Clone, Debug, PartialEq)]
pub struct Consolidation {
    /// `databases` or `instances`.
    pub of: &'static str,
    pub sum_of_peaks: f64,
    pub peak_of_sums: f64,
    /// Time of the peak of sums: an hour of the week, or the start of a snapshot.
    pub at: String,
    /// Contributors to the peak, the largest share first.
    pub parts: Vec<Contributor>,
    /// The highest sum of the maxima inside intervals: an upper bound.
    pub most: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Contributor {
    pub name: String,
    pub peak: f64,
    /// Its part of the peak of sums; `None` if it is unknown at that time.
    pub at_peak: Option<f64>,
}

/// Consolidates several databases, aligned by the hour of the week: they need not have been
/// observed in the same weeks.
pub fn of_databases(
    databases: &[Database],
    value: impl Fn(&Observation) -> Option<f64>,
    most: impl Fn(&Observation) -> Option<f64>,
) -> Option<Consolidation> {
    if databases.len() < 2 {
        return None;
    }
    let weeks: Vec<Week> = databases.iter().map(|database| week(database, &value)).collect();
    let (peak_of_sums, hour) = together(&weeks).peak()?;
    let parts: Vec<Contributor> = databases
        .iter()
        .zip(&weeks)
        .filter_map(|(database, week)| {
            let (peak, _) = week.peak()?;
            Some(Contributor { name: database.name.clone(), peak, at_peak: week.0[hour] })
        })
        .collect();
    let highest = |database: &Database| {
        let all = database.snapshots.iter().filter_map(|it| most(&it.load));
        all.reduce(f64::max)
    };
    Some(Consolidation {
        of: "databases",
        sum_of_peaks: parts.iter().map(|part| part.peak).sum(),
        peak_of_sums,
        at: hours::name(hour),
        parts: sorted(parts),
        most: databases.iter().map(highest).sum(),
    })
}

/// Consolidates the instances of one database, which have the same snapshots.
pub fn of_instances(
    database: &Database,
    value: impl Fn(&Observation) -> Option<f64>,
    most: impl Fn(&Observation) -> Option<f64>,
) -> Option<Consolidation> {
    if database.instances.len() < 2 {
        return None;
    }
    let mut peaks: BTreeMap<&str, f64> = BTreeMap::new();
    for part in database.snapshots.iter().flat_map(|it| &it.parts) {
        if let Some(value) = value(part) {
            let peak = peaks.entry(&part.instance).or_insert(value);
            *peak = peak.max(value);
        }
    }
    let known = database.snapshots.iter().filter_map(|it| Some((value(&it.load)?, it)));
    let (peak_of_sums, at) = known.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let part = |(name, peak): (&str, f64)| {
        let there = at.parts.iter().find(|it| it.instance == name);
        Contributor { name: name.to_owned(), peak, at_peak: there.and_then(&value) }
    };
    Some(Consolidation {
        of: "instances",
        sum_of_peaks: peaks.values().sum(),
        peak_of_sums,
        at: hours::clock(at.load.begin_s),
        parts: sorted(peaks.into_iter().map(part).collect()),
        most: database.snapshots.iter().filter_map(|it| most(&it.load)).reduce(f64::max),
    })
}

fn sorted(mut parts: Vec<Contributor>) -> Vec<Contributor> {
    parts.sort_by(|a, b| b.at_peak.unwrap_or(-1.0).total_cmp(&a.at_peak.unwrap_or(-1.0)));
    parts
}

/// Returns the hours of the week of one database.
pub fn week(database: &Database, value: impl Fn(&Observation) -> Option<f64>) -> Week {
    let mean = |load: &Observation| {
        Some(Mean { value: value(load)?, begin_s: load.begin_s, seconds: load.seconds })
    };
    let dated = database.snapshots.iter().filter(|it| !it.load.is_undated);
    Week::of(dated.filter_map(|it| mean(&it.load)))
}

/// Returns the sum of several weeks. An hour that is unknown in one of them is the sum of the
/// others, unless it is unknown in all.
pub fn together(weeks: &[Week]) -> Week {
    let hour = |hour: usize| {
        let known = weeks.iter().filter_map(|week| week.0[hour]);
        known.reduce(|sum, value| sum + value)
    };
    Week((0..hours::HOURS).map(hour).collect())
}
