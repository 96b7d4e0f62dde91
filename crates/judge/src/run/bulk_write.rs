//! A bulk write: the rate at which tables were made from existing rows, until the statement
//! returned and including the flush, and the cost of a byte of a table.
//!
//! A table is counted when its statement has returned. Counters of the machine are read at each
//! tick, and the edges of a window cut tables in two, so all means are taken from the end of one
//! flush to the end of another: between these there are only whole tables.

use std::collections::BTreeMap;

use blockstone_base::database::{CPU, TABLE_STEPS};
use blockstone_base::stats::Estimate;
use blockstone_figures::{Missing, Track};
use schemars::JsonSchema;
use serde::Serialize;

use super::Percentiles;
use super::window::RunWindow;

/// Fewest tables for which the interval of a mean is meaningful.
pub const ENOUGH_TABLES: u64 = 4;

const CREATE: &str = TABLE_STEPS[0];
const FLUSH: &str = TABLE_STEPS[1];

/// All tables of a window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BulkWrite {
    /// Tables that were made in the window. With fewer than four, all figures are null.
    pub tables: u64,
    /// Mean number of rows of a table.
    pub rows_mean: Option<f64>,
    /// Mean size of a table in bytes, as the database reports it.
    pub bytes_mean: Option<f64>,
    /// Pace of the statement alone, until its commit is acknowledged.
    pub returned: Pace,
    /// Pace including the flush that follows, until all bytes are on the medium.
    pub flushed: Pace,
    /// Steps of a bulk write, in their order.
    pub steps: Vec<BulkStep>,
    /// Costs of a table.
    pub costs: Vec<BulkCost>,
}

/// Write rate of one session.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct Pace {
    /// Decimal megabytes of tables a second.
    pub mb_per_s: Option<Estimate>,
    /// Rows a second.
    pub rows_per_s: Option<Estimate>,
    /// Mean time of a table, in nanoseconds.
    pub ns_mean: Option<Estimate>,
}

/// One step of a bulk write.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BulkStep {
    /// Name of the step.
    pub name: &'static str,
    /// Steps completed in the window.
    pub count: u64,
    /// Mean time, in nanoseconds; null if too few completed, as are the quantiles.
    pub ns_mean: Option<Estimate>,
    pub ns_p50: Option<Estimate>,
    pub ns_p90: Option<Estimate>,
    pub ns_p99: Option<Estimate>,
}

/// Cost of the tables in one resource.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BulkCost {
    /// Name of the cost's figure.
    pub name: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Unit of the amount.
    pub unit: &'static str,
    /// Amount for each byte of a table; for processor time, for each megabyte.
    pub amount: Option<Estimate>,
    /// Why it was not measured; null if it was.
    pub missing: Option<Missing>,
}

impl BulkWrite {
    /// Returns a cost that was measured.
    pub fn cost(&self, name: &str) -> Option<(&BulkCost, Estimate)> {
        let found = self.costs.iter().find(|cost| cost.name == name)?;
        Some((found, found.amount?))
    }
}

/// Returns `None` for a window in which the sessions made no tables.
pub fn derive(window: &RunWindow, latencies: &[Percentiles]) -> Option<BulkWrite> {
    let created = |column| window.grown("operation", CREATE, column).ok();
    let tables = created("completed_ops")?;
    let track = |step, column| window.track("operation", step, column).ok();
    let known = |track: Option<Track>| track.filter(|_| tables >= ENOUGH_TABLES);
    let ends = track(FLUSH, "completed_ops").map(|flushes| ends(&flushes)).unwrap_or_default();
    // Tables from the first end to the last.
    let whole = ends.len().saturating_sub(1) as u64;
    let counted = |estimate: Estimate| Estimate { samples: whole, ..estimate };
    let per =
        |of: Option<Track>, by: Option<Track>| window.slope(&known(of)?, &by?).ok().map(counted);
    let returned_ns = track(CREATE, "latency_ns_sum").map(|create| at(&create, &ends));
    let flushed_ns = returned_ns.as_ref().zip(track(FLUSH, "latency_ns_sum"));
    let flushed_ns = flushed_ns.map(|(create, flush)| sum(create, &flush));
    let pace = |ns: &Option<Track>| Pace {
        mb_per_s: per(track(CREATE, "bytes"), ns.clone()).map(|it| it.scaled(1e3)),
        rows_per_s: per(track(CREATE, "rows"), ns.clone()).map(|it| it.scaled(1e9)),
        ns_mean: per(ns.clone(), track(CREATE, "completed_ops")),
    };
    let bytes = known(track(CREATE, "bytes")).map(|bytes| at(&bytes, &ends));
    let cost = |(name, title, unit, of): Taken| {
        let scale = if unit == "ns" { 1e6 } else { 1.0 };
        let amount = of.map(|of| {
            let amount = window.slope(&of, bytes.as_ref()?).ok()?;
            Some(counted(amount).scaled(scale))
        });
        BulkCost { name, title, unit, amount: amount.ok().flatten(), missing: amount.err() }
    };
    let mean = |sum: Option<u64>| Some(sum? as f64 / tables as f64).filter(|it| it.is_finite());
    Some(BulkWrite {
        tables,
        rows_mean: mean(created("rows")),
        bytes_mean: mean(created("bytes")),
        returned: pace(&returned_ns),
        flushed: pace(&flushed_ns),
        steps: TABLE_STEPS.map(|name| step(window, latencies, name, &ends)).into(),
        costs: taken(window).map(cost).into(),
    })
}

fn step(
    window: &RunWindow,
    latencies: &[Percentiles],
    name: &'static str,
    ends: &[u64],
) -> BulkStep {
    let count = window.grown("operation", name, "completed_ops").unwrap_or(0);
    let found = latencies.iter().find(|row| row.role.is_empty() && row.name == name);
    let [p50, p90, p99, ..] = found.map_or([None; 5], |row| row.quantiles().map(|(_, it)| it));
    let track = |column| Some(at(&window.track("operation", name, column).ok()?, ends));
    let mean = || {
        let mean = window.slope(&track("latency_ns_sum")?, &track("completed_ops")?).ok()?;
        (count >= ENOUGH_TABLES).then_some(mean)
    };
    BulkStep { name, count, ns_mean: mean(), ns_p50: p50, ns_p90: p90, ns_p99: p99 }
}

type Taken = (&'static str, &'static str, &'static str, Result<Track, Missing>);

const OF_TABLE_BYTES: &str = "of table bytes";

fn taken(window: &RunWindow) -> [Taken; 5] {
    let charged = |column| {
        if !window.objects("server").is_empty() {
            return window.track_of_all("server", column);
        }
        if window.parameters().is_apart() {
            // Another machine, or a server that does not report which process it is.
            return Err(Missing::NotPermitted);
        }
        window.track("process", "", column)
    };
    let device = || {
        let device = window.manifest.target.devices.first().ok_or(Missing::NotPermitted)?;
        window.track("block", &device.name, "write_bytes")
    };
    let redo = window.track("instance", "", "redo_bytes");
    [
        ("cpu_ns_per_table_mb", "Processor time a megabyte", "ns", processors(window)),
        ("process_read_ratio", "Read by its processes", OF_TABLE_BYTES, charged("read_bytes")),
        ("process_write_ratio", "Written by its processes", OF_TABLE_BYTES, charged("write_bytes")),
        ("device_write_ratio", "Written to the device", OF_TABLE_BYTES, device()),
        ("redo_ratio", "Redo", OF_TABLE_BYTES, redo),
    ]
}

/// Returns the processor time of all roles of the database, at the instants at which all were read.
fn processors(window: &RunWindow) -> Result<Track, Missing> {
    let of_cpu = |object: &&str| object.split_once('/').is_some_and(|(_, event)| event == CPU);
    let roles: Vec<&str> = window.objects("event").into_iter().filter(of_cpu).collect();
    let mut tracks = roles.iter().map(|role| window.track("event", role, "time_ns"));
    let first = tracks.next().ok_or(Missing::Unknown)??;
    tracks.try_fold(first, |all, role| Ok(sum(&all, &role?)))
}

/// Returns the instants at which a count had moved since the one before. The growth up to the first
/// of these may be cut off by the window's edge.
fn ends(counts: &[(u64, u64)]) -> Vec<u64> {
    counts.windows(2).filter(|pair| pair[1].1 > pair[0].1).map(|pair| pair[1].0).collect()
}

fn at(track: &[(u64, u64)], instants: &[u64]) -> Track {
    let all: BTreeMap<u64, u64> = track.iter().copied().collect();
    instants.iter().filter_map(|t_ns| Some((*t_ns, *all.get(t_ns)?))).collect()
}

fn sum(a: &[(u64, u64)], b: &[(u64, u64)]) -> Track {
    let b: BTreeMap<u64, u64> = b.iter().copied().collect();
    a.iter().filter_map(|(t_ns, count)| Some((*t_ns, count + b.get(t_ns)?))).collect()
}
