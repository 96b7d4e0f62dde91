//! The need, as percentiles over time.
//!
//! The requests that reach the disks are derived from each snapshot first, and percentiles are
//! taken of these: the 95th percentiles of reads and of writes need not fall into the same hour.

use blockstone_base::table::Measure;

use crate::cluster::Database;
use crate::consolidation::{Consolidation, of_databases, of_instances, together, week};
use crate::growth::{Growth, growth};
use crate::hardware::Demand;
use crate::hardware::cpu::{Processors, SMT_FACTOR};
use crate::hours::{Filter, HOUR_S, HOURS, Week};
use crate::observation::Levels;
use crate::percentile::{Percentiles, Weighted};
use crate::{Observation, Snapshot};

/// Parameters of a need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// Writes to disks per write of a database.
    pub penalty: f64,
    pub filter: Filter,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    pub hardware_iops: Percentiles,
    /// From the highest values inside intervals: an upper bound of `hardware_iops`.
    pub most_hardware_iops: Option<f64>,
    /// The median of maximum ÷ mean inside an interval.
    pub peak_factor: Option<f64>,
    /// Averaging time of the `most` values, in seconds.
    pub most_averaging_s: Option<f64>,
    /// The other quantities, in display order.
    pub quantities: Vec<(Quantity, Percentiles)>,
    /// The requests that reach the disks, by hour of the week.
    pub week: Week,
    /// Present for one database with several instances, or for several databases.
    pub consolidation: Option<Consolidation>,
    pub growth: Result<Growth, String>,
    /// Values of hardware IOPS with their seconds, in descending order.
    pub durations: Vec<Weighted>,
    /// Shortest and longest averaging time of the values, in seconds.
    pub averaging_s: (f64, f64),
    /// Number of snapshots that lack instances, and of all snapshots.
    pub partial: (usize, usize),
    /// Number of snapshots excluded by `filter`.
    pub filtered: usize,
}

/// A kind of resource that is needed.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The key in tables.
    pub key: &'static str,
    pub name: &'static str,
    pub measure: Measure,
    pub value: fn(&Observation) -> Option<f64>,
    /// Whether it is a level at the end of an interval, whose percentiles are not weighted.
    pub is_level: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

const fn rate(
    key: &'static str,
    name: &'static str,
    measure: Measure,
    value: fn(&Observation) -> Option<f64>,
) -> Quantity {
    Quantity { key, name, measure, value, is_level: false }
}

/// All quantities except the requests that reach the disks, which depend on the penalty.
pub const QUANTITIES: &[Quantity] = &[
    rate("reads_per_s", "reads/s", Measure::Count, |it| it.reads_per_s),
    rate("writes_per_s", "writes/s", Measure::Count, |it| it.writes_per_s),
    rate("read_bytes_per_s", "read", Measure::BytesPerS, |it| it.read_bytes_per_s),
    rate("write_bytes_per_s", "written", Measure::BytesPerS, |it| it.write_bytes_per_s),
    rate("redo_bytes_per_s", "redo", Measure::BytesPerS, |it| it.redo_bytes_per_s),
    rate("commits_per_s", "commits/s", Measure::Count, |it| it.commits_per_s),
    rate("data_ios_per_s", "requests/s of data", Measure::Count, |it| it.class_ios_per_s[0]),
    rate("index_ios_per_s", "requests/s of indexes", Measure::Count, |it| it.class_ios_per_s[1]),
    rate("undo_ios_per_s", "requests/s of undo", Measure::Count, |it| it.class_ios_per_s[2]),
    rate("temporary_ios_per_s", "requests/s, temporary", Measure::Count, |it| {
        it.class_ios_per_s[3]
    }),
    rate("system_ios_per_s", "requests/s of the system", Measure::Count, |it| {
        it.class_ios_per_s[4]
    }),
    rate("database_cores", "CPU of the database, cores", Measure::Count, |it| it.database_cores),
    rate("busy_processors", "busy processors of the hosts", Measure::Count, |it| {
        it.busy_processors
    }),
    level("memory_bytes", "memory", Measure::Bytes, |it| it.levels.memory_bytes),
    level("sessions", "sessions", Measure::Count, |it| it.levels.sessions),
    level("size_bytes", "data files", Measure::Bytes, |it| it.levels.size_bytes),
];

const fn level(
    key: &'static str,
    name: &'static str,
    measure: Measure,
    value: fn(&Observation) -> Option<f64>,
) -> Quantity {
    Quantity { key, name, measure, value, is_level: true }
}

impl Need {
    /// Returns the need of one database, or of several on the same storage. `None` if reads and
    /// writes are unknown in all selected snapshots.
    pub fn of(databases: &[Database], question: &Question) -> Option<Self> {
        let meant: Vec<Database> = databases.iter().map(|it| admitted(it, question)).collect();
        let hardware = |it: &Observation| it.hardware_iops(question.penalty);
        let most = |it: &Observation| it.most_hardware_iops(question.penalty);
        let values = |of: &dyn Fn(&Observation) -> Option<f64>| match &meant[..] {
            [one] => snapshots(one, of),
            _ => hours_of_week(&together(&weeks(&meant, of))),
        };
        let (of_hardware, week) = (values(&hardware), together(&weeks(&meant, &hardware)));
        let consolidation = match &meant[..] {
            [one] => of_instances(one, hardware, most),
            _ => of_databases(&meant, hardware, most),
        };
        let all = || meant.iter().flat_map(|it| &it.snapshots);
        let most_of_one = all().filter_map(|it| most(&it.load)).reduce(f64::max);
        let most_hardware_iops = if meant.len() == 1 {
            most_of_one
        } else {
            consolidation.as_ref().and_then(|it| it.most)
        };
        let lengths = || all().map(|it| it.load.seconds);
        let of_quantity = |quantity: &Quantity| {
            let found = Percentiles::of(&values(&quantity.value));
            (found.samples > 0).then_some((*quantity, found))
        };
        let mut durations = of_hardware.clone();
        durations.sort_by(|a, b| b.0.total_cmp(&a.0));
        (!of_hardware.is_empty()).then(|| Self {
            hardware_iops: Percentiles::of(&of_hardware),
            most_hardware_iops,
            peak_factor: median(all().filter_map(|it| {
                let mean = hardware(&it.load).filter(|mean| *mean > 0.0)?;
                Some(most(&it.load)? / mean)
            })),
            most_averaging_s: all().find_map(|it| Some(it.load.most?.averaging_s)),
            quantities: QUANTITIES.iter().filter_map(of_quantity).collect(),
            week,
            consolidation,
            growth: grown(&meant, &hardware),
            durations,
            averaging_s: (lengths().fold(f64::INFINITY, f64::min), lengths().fold(0.0, f64::max)),
            partial: (meant.iter().map(Database::partial).sum(), all().count()),
            filtered: databases.iter().map(|it| it.snapshots.len()).sum::<usize>() - all().count(),
        })
    }

    /// Returns the demand on hardware at this percentile: `p50`, `p95`, `p99` or `max`. Reads and
    /// writes are in the mix of the snapshot nearest to the percentile of the requests that reach
    /// the disks, so that they add up to it.
    pub fn demand(&self, databases: &[Database], question: &Question, percentile: &str) -> Demand {
        let of = |key: &str| {
            let found = self.quantities.iter().find(|(quantity, _)| quantity.key == key)?;
            // A level is known only at the end of an interval, so its maximum is taken.
            let name = if found.0.is_level { "max" } else { percentile };
            found.1.named(name)
        };
        let iops = self.hardware_iops.named(percentile);
        let mix = iops.and_then(|iops| mix_at(databases, question, iops));
        Demand {
            reads_per_s: mix.map(|it| it.0),
            writes_per_s: mix.map(|it| it.1),
            read_bytes_per_s: of("read_bytes_per_s"),
            write_bytes_per_s: of("write_bytes_per_s"),
            redo_bytes_per_s: of("redo_bytes_per_s"),
            commits_per_s: of("commits_per_s"),
            size_bytes: of("size_bytes"),
            cores: of("busy_processors")
                .map(|busy| busy_cores(busy, databases))
                .or_else(|| of("database_cores")),
            memory_bytes: of("memory_bytes"),
            sessions: of("sessions"),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<Weighted> = values.map(|value| (value, 1.0)).collect();
    Percentiles::of(&values).p50.map(|it| it.value)
}

/// Converts busy threads to busy cores if the number of threads per core is known; else each thread
/// counts as a core.
fn busy_cores(busy: f64, databases: &[Database]) -> f64 {
    let all = |level: fn(&Levels) -> Option<f64>| {
        let of_one =
            |it: &Database| it.snapshots.iter().rev().find_map(|it| level(&it.load.levels));
        databases.iter().map(of_one).sum::<Option<f64>>()
    };
    let hosts = all(|it| it.cores).zip(all(|it| it.processors));
    let known = hosts.and_then(|(cores, processors)| {
        let threads_per_core = processors / cores;
        Processors { busy, cores, threads_per_core, smt_factor: SMT_FACTOR }.busy_cores().ok()
    });
    known.unwrap_or(busy)
}

/// Returns reads and writes that make `iops` at the disks, in the mix of the nearest snapshot.
fn mix_at(databases: &[Database], question: &Question, iops: f64) -> Option<(f64, f64)> {
    let snapshots = databases.iter().flat_map(|it| &it.snapshots);
    let known = snapshots.filter_map(|it| {
        let hardware = it.load.hardware_iops(question.penalty).filter(|it| *it > 0.0)?;
        Some((hardware, it.load.reads_per_s?, it.load.writes_per_s?))
    });
    let (hardware, reads, writes) =
        known.min_by(|a, b| (a.0 - iops).abs().total_cmp(&(b.0 - iops).abs()))?;
    Some((reads * iops / hardware, writes * iops / hardware))
}

fn admitted(database: &Database, question: &Question) -> Database {
    let admits = |it: &&Snapshot| it.load.is_in(question.filter);
    let snapshots = database.snapshots.iter().filter(admits).cloned().collect();
    Database { snapshots, ..database.clone() }
}

fn snapshots(database: &Database, of: &dyn Fn(&Observation) -> Option<f64>) -> Vec<Weighted> {
    database.snapshots.iter().filter_map(|it| Some((of(&it.load)?, it.load.seconds))).collect()
}

fn weeks(databases: &[Database], of: &dyn Fn(&Observation) -> Option<f64>) -> Vec<Week> {
    databases.iter().map(|database| week(database, of)).collect()
}

fn hours_of_week(week: &Week) -> Vec<Weighted> {
    week.0.iter().flatten().map(|value| (*value, HOUR_S)).collect()
}

fn grown(
    databases: &[Database],
    of: &dyn Fn(&Observation) -> Option<f64>,
) -> Result<Growth, String> {
    let [one] = databases else {
        return Err("no growth of several databases together".to_owned());
    };
    let known = one
        .snapshots
        .iter()
        .filter(|it| !it.load.is_undated)
        .filter_map(|it| Some((it.load.begin_s, (of(&it.load)?, it.load.seconds))));
    growth(&known.collect::<Vec<_>>())
}

/// Returns how many hours of the week are known.
pub fn known_hours(week: &Week) -> usize {
    week.0.iter().flatten().count().min(HOURS)
}
