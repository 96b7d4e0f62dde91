//! Combines many reports of one database.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::report::{Database, Interval, Kind, Report};

/// Maximum distance between the snapshots of one interval in two reports: some print only minutes.
const SAME_S: i64 = 60;
/// Maximum difference between the printed length of an interval and the distance of its snapshots.
const ROUNDED_S: i64 = 120;

/// Intervals of one database, by instance and time; no two intervals of an instance overlap, and
/// those of the whole cluster do not overlap with those of instances.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub database: Database,
    /// Kinds of the reports that the intervals were taken from, in order.
    pub kinds: Vec<Kind>,
    pub intervals: Vec<Interval>,
    pub skipped: Vec<Skipped>,
    /// Remarks for the reader about gaps, restarts and intervals that were left out.
    pub notes: Vec<String>,
}

/// An interval that was left out, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    /// Index of the report.
    pub report: usize,
    pub why: &'static str,
}

const TWICE: &str = "the same interval is in another report: counted once";
const COARSER: &str = "shorter intervals of the same time are known: they are taken";
const OF_CLUSTER: &str = "the whole cluster is known for this time: instances are not added to it";
const OF_INSTANCES: &str =
    "shorter intervals of instances are known: the whole cluster is not added to them";

const UNDATED: &str = "its time is unknown: it cannot be put among others";

/// Sorts the intervals of reports, in any order, into one series per database: each interval once.
pub fn series(reports: &[Report]) -> Vec<Series> {
    let mut groups: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (index, report) in reports.iter().enumerate() {
        groups.entry(key(reports, report)).or_default().push(index);
    }
    groups.into_values().map(|members| of_database(reports, &members)).collect()
}

/// A database, or a pluggable one in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    name: String,
    id: Option<u64>,
    container: Option<String>,
}

/// Identifies a database by its id, or by its name if that leads to a single id. A pluggable
/// database is apart from the others and from the whole.
fn key(reports: &[Report], report: &Report) -> Key {
    if let Some(container) = &report.database.container {
        if container.id.is_some() {
            let (name, id) = (String::new(), container.id);
            return Key { name, id, container: Some(String::new()) };
        }
        let name = Some(container.name.to_uppercase());
        return Key { container: name, ..of_whole(reports, report) };
    }
    of_whole(reports, report)
}

fn of_whole(reports: &[Report], report: &Report) -> Key {
    let name = report.database.name.to_uppercase();
    let key = |name, id| Key { name, id, container: None };
    if let Some(id) = report.database.id {
        // The names of a standby differ; the id is the same.
        return key(String::new(), Some(id));
    }
    let is_same = |other: &&Report| {
        other.database.container.is_none() && other.database.name.to_uppercase() == name
    };
    let same = reports.iter().filter(is_same);
    let mut ids: Vec<u64> = same.filter_map(|other| other.database.id).collect();
    ids.sort_unstable();
    ids.dedup();
    match ids[..] {
        [id] => key(String::new(), Some(id)),
        _ => key(name, None),
    }
}

#[derive(Clone)]
struct Candidate<'a> {
    report: usize,
    kind: Kind,
    interval: &'a Interval,
}

impl Candidate<'_> {
    fn length_s(&self) -> i64 {
        self.interval.end_s - self.interval.begin_s
    }

    /// Sort key: shorter intervals first; among equal ones, the whole cluster, then the most
    /// detailed.
    fn order(&self) -> impl Ord + use<> {
        let known = self.interval.totals.iter().count() + self.interval.statistics.len();
        // Seconds that one report rounds away must not affect the order.
        let minutes = (self.length_s() + SAME_S / 2) / SAME_S;
        let digits = !matches!(self.kind, Kind::AwrHtml | Kind::AwrMarkdown);
        let of_instance = self.interval.instance.number.is_some();
        (
            self.interval.is_undated,
            minutes,
            of_instance,
            digits,
            Reverse(known),
            self.kind,
            self.interval.begin_s,
        )
    }
}

fn of_database(reports: &[Report], members: &[usize]) -> Series {
    let mut candidates: Vec<Candidate<'_>> = Vec::new();
    for &report in members {
        let kind = reports[report].kind;
        let intervals = reports[report].intervals.iter();
        candidates.extend(intervals.map(|interval| Candidate { report, kind, interval }));
    }
    candidates.sort_by_cached_key(Candidate::order);
    let mut series = Series::default();
    let database = members.iter().map(|&report| &reports[report].database);
    // Independent of the order of the files.
    series.database = database
        .max_by_key(|it| (it.id, it.release.clone(), Reverse(it.name.clone())))
        .cloned()
        .unwrap_or_default();
    let mut taken: BTreeMap<Option<u32>, Taken> = BTreeMap::new();
    for candidate in candidates {
        let undated = Some(UNDATED).filter(|_| candidate.interval.is_undated && !taken.is_empty());
        let why = undated.or_else(|| {
            taken.get(&candidate.interval.instance.number).and_then(|of| of.why_not(&candidate))
        });
        if let Some(why) = why.or_else(|| why_not_beside(&taken, &candidate)) {
            series.skipped.push(Skipped { report: candidate.report, why });
            continue;
        }
        series.kinds.push(candidate.kind);
        taken.entry(candidate.interval.instance.number).or_default().add(&candidate);
        series.intervals.push(candidate.interval.clone());
    }
    series.kinds.sort_unstable();
    series.kinds.dedup();
    series.intervals.sort_by_key(|interval| (interval.instance.number, interval.begin_s));
    series.skipped.sort_by_key(|skipped| (skipped.report, skipped.why));
    series.join();
    series.note();
    series
}

/// The intervals of one instance that were taken: end by beginning.
#[derive(Default)]
struct Taken(BTreeMap<i64, i64>);

impl Taken {
    fn add(&mut self, candidate: &Candidate<'_>) {
        self.0.insert(candidate.interval.begin_s, candidate.interval.end_s);
    }

    /// Returns a taken interval that overlaps by more than rounding.
    fn overlapping(&self, candidate: &Candidate<'_>) -> Option<(i64, i64)> {
        let (begin, end) = (candidate.interval.begin_s, candidate.interval.end_s);
        let short = |length: i64| SAME_S.min(length / 2);
        let overlaps = |(from, to): (&i64, &i64)| {
            let both = end.min(*to) - begin.max(*from);
            (both > short(candidate.length_s()).min(short(to - from))).then_some((*from, *to))
        };
        let before = self.0.range(..=begin).rev().take(2).find_map(overlaps);
        before.or_else(|| self.0.range(begin + 1..end.max(begin + 1)).find_map(overlaps))
    }

    fn why_not(&self, candidate: &Candidate<'_>) -> Option<&'static str> {
        let (from, to) = self.overlapping(candidate)?;
        let (begin, end) = (candidate.interval.begin_s, candidate.interval.end_s);
        let is_same = (from - begin).abs() <= SAME_S && (to - end).abs() <= SAME_S;
        Some(if is_same { TWICE } else { COARSER })
    }
}

/// Returns a reason if the cluster, or an instance of it, is already present for this time.
fn why_not_beside(
    taken: &BTreeMap<Option<u32>, Taken>,
    candidate: &Candidate<'_>,
) -> Option<&'static str> {
    if candidate.interval.instance.number.is_some() {
        let cluster = taken.get(&None)?;
        return cluster.overlapping(candidate).map(|_| OF_CLUSTER);
    }
    let mut instances = taken.iter().filter(|(number, _)| number.is_some());
    instances.find_map(|(_, of)| of.overlapping(candidate)).map(|_| OF_INSTANCES)
}

impl Series {
    /// Makes an interval begin where the previous one ended, if their snapshots or times match.
    fn join(&mut self) {
        for index in 1..self.intervals.len() {
            let (before, after) = self.intervals.split_at_mut(index);
            let (Some(before), Some(after)) = (before.last(), after.first_mut()) else { return };
            if before.instance.number != after.instance.number {
                continue;
            }
            let apart = (after.begin_s - before.end_s).abs();
            let is_chained = match (before.snapshots, after.snapshots) {
                (Some((_, end)), Some((begin, _))) => end == begin,
                _ => false,
            };
            let joins = apart <= if is_chained { ROUNDED_S } else { SAME_S };
            if (joins || after.begin_s < before.end_s) && before.end_s < after.end_s {
                after.begin_s = before.end_s;
            }
        }
    }

    fn note(&mut self) {
        let pairs = || {
            let pairs = self.intervals.windows(2);
            pairs.filter(|pair| pair[0].instance.number == pair[1].instance.number)
        };
        let gaps: Vec<i64> =
            pairs().map(|pair| pair[1].begin_s - pair[0].end_s).filter(|gap| *gap > 0).collect();
        let is_restart = |pair: &&[Interval]| match (pair[0].started_s, pair[1].started_s) {
            (Some(before), Some(after)) => (after - before).abs() > SAME_S,
            _ => false,
        };
        let restarts = pairs().filter(is_restart).count();
        let mut notes = Vec::new();
        if let Some(longest) = gaps.iter().max() {
            let hours = *longest as f64 / 3600.0;
            notes.push(format!(
                "{} gaps between intervals, the longest of {hours:.1} h",
                gaps.len()
            ));
        }
        if restarts > 0 {
            notes.push(format!("{restarts} restarts of instances"));
        }
        for why in [TWICE, COARSER, OF_CLUSTER, OF_INSTANCES, UNDATED] {
            match self.skipped.iter().filter(|skipped| skipped.why == why).count() {
                0 => {}
                count => notes.push(format!("{count} intervals are not taken: {why}")),
            }
        }
        self.notes = notes;
    }
}
