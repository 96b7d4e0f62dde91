//! Headline figures of a run, and their ratio to the calibration of the same storage.

use blockstone_base::stats::{self, Estimate};
use blockstone_figures::Track;
use blockstone_record::manifest::{Figure, Manifest};

use crate::summary::names;

use super::time::{CPU, SESSION};
use super::window::RunWindow;
use super::{BulkWrite, Efficiency, Percentiles, RunFindings, TransactionKind};

/// Names of all figures, in their order; a figure that was not measured is absent.
pub const NAMES: [&str; 47] = names(&ABOUT);

/// Description of each of them.
pub const ABOUT: [(&str, &str); 47] = [
    ("read_iops", "Read requests a second of the database's processes."),
    ("write_iops", "Write requests a second of the same; a mirrored write counts once."),
    ("hardware_read_iops", "Read requests a second sent to the disks."),
    ("hardware_write_iops", "Write requests a second; a mirrored write counts on each disk."),
    ("commits_per_s", "Transactions a second whose commit was acknowledged."),
    ("physical_reads_per_cpu_s", "Blocks read from storage per processor second of the sessions."),
    ("physical_reads_per_s", "Blocks that sessions read from storage, a second."),
    ("logical_reads_per_s", "Blocks visited, in the cache or not, a second."),
    ("read_mbps", "Decimal megabytes read a second."),
    ("write_mbps", "Decimal megabytes written a second; a mirrored write counts once."),
    ("redo_mbps", "Decimal megabytes of redo generated a second."),
    ("read_latency_ns_mean", "Mean of db file sequential read of the sessions."),
    ("read_latency_ns_p50", "Median of db file sequential read of the sessions."),
    ("read_latency_ns_p99", "99th percentile of db file sequential read of the sessions."),
    ("commit_latency_ns_mean", "Mean of log file sync of the sessions."),
    ("commit_latency_ns_p50", "Median of log file sync of the sessions."),
    ("commit_latency_ns_p99", "99th percentile of log file sync of the sessions."),
    ("dbwr_latency_ns_mean", "Mean of db file parallel write of the database writer: a batch."),
    ("lgwr_latency_ns_mean", "Mean of log file parallel write of the log writer."),
    ("ckpt_latency_ns_mean", "Mean of control file parallel write of the checkpoint process."),
    ("free_buffer_waits_ns_mean", "Mean of free buffer waits of the sessions."),
    ("write_complete_waits_ns_mean", "Mean of write complete waits of the sessions."),
    ("reads_per_write", "Read requests of the database for each of its write requests."),
    ("cpu_ns_per_commit", "Processor time a commit, of the database and its sessions."),
    ("operations_per_s", "Selects, updates and scans, or transactions, completed a second."),
    ("transactions_per_s", "Transactions of order entry completed a second, of all kinds."),
    ("new_order_latency_ns_p50", "Median response time of the transaction new-order."),
    ("new_order_latency_ns_p90", "90th percentile of the same."),
    ("new_order_latency_ns_p99", "99th percentile of the same."),
    ("cpu_ns_per_transaction", "Processor time of the sessions a transaction of order entry."),
    ("physical_reads_per_transaction", "Blocks read from storage a transaction of order entry."),
    (
        "bulk_returned_mbps",
        "Decimal megabytes of tables a second of a session, as the statement returned.",
    ),
    ("bulk_flushed_mbps", "The same with the flush of each table, until it is on the medium."),
    ("bulk_rows_per_s", "Rows written to tables a second of a session, as the statement returned."),
    ("table_latency_ns_mean", "Mean time of a statement that makes a table, commit included."),
    ("table_latency_ns_p50", "Median of the same."),
    ("table_latency_ns_p90", "90th percentile of the same."),
    ("cpu_ns_per_table_mb", "Processor time of the database a megabyte of tables."),
    ("process_read_ratio", "Bytes charged as read to the database, of those of the tables."),
    ("process_write_ratio", "Bytes charged as written to the database, of those of the tables."),
    ("device_write_ratio", "Bytes written to the device by all processes, of those of the tables."),
    ("redo_ratio", "Bytes of redo, of those of the tables."),
    ("scan_read_mbps", "Decimal megabytes a second that statements that scan read."),
    ("scan_rows_per_s", "Rows a second of these statements, one in a block."),
    ("cpu_ns_per_row", "Processor time of the database for each of these rows."),
    ("average_active_sessions", "Database time a second: sessions inside a call on average."),
    ("db_time_remainder_ratio", "Share of database time that CPU, run queue and waits leave."),
];

/// Returns the figures that were measured, in the order of [`NAMES`].
pub fn figures(window: &RunWindow, findings: &RunFindings) -> Vec<(String, Figure)> {
    let figure = |name: &str| {
        let (title, unit, found) = figure(name, window, findings)?;
        let (title, unit) = (title.to_owned(), unit.to_owned());
        let estimate =
            Estimate { samples: samples(name, window).unwrap_or(found.samples), ..found };
        let phase = window.phase.label.clone();
        Some((name.to_owned(), Figure { title, unit, estimate, phase, condemned_by: Vec::new() }))
    };
    NAMES.iter().filter_map(|name| figure(name)).collect()
}

/// Returns the samples behind a rate of bytes or of time: the requests and operations that moved
/// them.
fn samples(name: &str, window: &RunWindow) -> Option<u64> {
    match name {
        "read_mbps" => window.grown_of_all("role", "read_ios").ok(),
        "write_mbps" => window.grown_of_all("role", "write_ios").ok(),
        "redo_mbps" => window.statistic("redo_writes").ok(),
        "average_active_sessions" | "db_time_remainder_ratio" => {
            window.grown_of_all("operation", "completed_ops").ok()
        }
        _ => None,
    }
}

type Found = (&'static str, &'static str, Estimate);

fn figure(name: &str, window: &RunWindow, findings: &RunFindings) -> Option<Found> {
    let of_all = |probe, column| window.rate_of_all(probe, column).ok();
    let statistic = |column| window.rate("instance", "", column).ok();
    let waits = |event: &str| event_latency(findings, event);
    let mean = |event: &str| event_mean(window, SESSION, event);
    let commits = || waits(LOG_SYNC).or_else(|| waits(COMMIT));
    Some(match name {
        "read_iops" => ("Reads of the database", "IOPS", of_all("role", "read_ios")?),
        "write_iops" => ("Writes of the database", "IOPS", of_all("role", "write_ios")?),
        "hardware_read_iops" => ("Reads of all disks", "IOPS", of_all("disk", "read_ios")?),
        "hardware_write_iops" => ("Writes of all disks", "IOPS", of_all("disk", "write_ios")?),
        "commits_per_s" => ("Commits a second", "commits/s", of_all("operation", "commits")?),
        "physical_reads_per_cpu_s" => {
            let reads = window.track("instance", "", "physical_reads").ok()?;
            let per_ns = window.slope(&reads, &processor(window)?).ok()?;
            ("Physical reads per CPU-second", "blocks/s", per_ns.scaled(1e9))
        }
        "physical_reads_per_s" => ("Blocks read", "blocks/s", statistic("physical_reads")?),
        "logical_reads_per_s" => ("Blocks visited", "blocks/s", statistic("logical_reads")?),
        "read_mbps" => ("Read", "MB/s", of_all("role", "read_bytes")?.scaled(1e-6)),
        "write_mbps" => ("Written", "MB/s", of_all("role", "write_bytes")?.scaled(1e-6)),
        "redo_mbps" => ("Redo", "MB/s", statistic("redo_bytes")?.scaled(1e-6)),
        "read_latency_ns_mean" => ("Mean single-block read", "ns", mean(SINGLE_READ)?),
        "read_latency_ns_p50" => ("Median single-block read", "ns", waits(SINGLE_READ)?.ns_p50),
        "read_latency_ns_p99" => ("99 % of single-block reads", "ns", waits(SINGLE_READ)?.ns_p99),
        "commit_latency_ns_mean" => ("Mean commit", "ns", mean_commit(window)?),
        "commit_latency_ns_p50" => ("Median commit", "ns", commits()?.ns_p50),
        "commit_latency_ns_p99" => ("99 % of commits", "ns", commits()?.ns_p99),
        "cpu_ns_per_commit" => {
            let commits = window.track_of_all("operation", "commits").ok()?;
            ("CPU per commit", "ns", window.slope(&processor(window)?, &commits).ok()?)
        }
        // The steps of a table are not operations of one kind.
        "operations_per_s" if findings.bulk_write.is_some() => return None,
        "operations_per_s" => ("Operations", "ops/s", of_all("operation", "completed_ops")?),
        "transactions_per_s" => {
            findings.transactions.as_ref()?;
            ("Transactions a second", "transactions/s", of_all("operation", "completed_ops")?)
        }
        "new_order_latency_ns_p50" => ("Median new order", "ns", new_order(findings)?.ns_p50?),
        "new_order_latency_ns_p90" => ("90 % of new orders", "ns", new_order(findings)?.ns_p90?),
        "new_order_latency_ns_p99" => ("99 % of new orders", "ns", new_order(findings)?.ns_p99?),
        "cpu_ns_per_transaction" => {
            findings.transactions.as_ref()?;
            ("CPU per transaction", "ns", per_operation(window, &processor(window)?)?)
        }
        "physical_reads_per_transaction" => {
            findings.transactions.as_ref()?;
            let reads = window.track("instance", "", "physical_reads").ok()?;
            ("Blocks read per transaction", "blocks", per_operation(window, &reads)?)
        }
        "scan_read_mbps" => ("Scanned", "MB/s", findings.statements.as_ref()?.mb_per_s),
        "scan_rows_per_s" => ("Rows", "rows/s", findings.statements.as_ref()?.rows_per_s?),
        "cpu_ns_per_row" => ("CPU per row", "ns", findings.statements.as_ref()?.cpu_ns_per_row?),
        "average_active_sessions" => {
            ("Average active sessions", "sessions", statistic("db_time_ns")?.scaled(1e-9))
        }
        "db_time_remainder_ratio" => {
            let value = findings.db_time.as_ref()?.remainder_ratio;
            let duration_ns = window.duration_ns();
            let exact = Estimate { value, low: value, high: value, samples: 1, duration_ns };
            ("DB time unaccounted", "of DB time", exact)
        }
        _ => {
            let of_writes = of_writes(name, window);
            return of_writes.or_else(|| of_bulk_write(name, findings.bulk_write.as_ref()?));
        }
    })
}

/// Background writes, and what sessions wait for because of them.
fn of_writes(name: &str, window: &RunWindow) -> Option<Found> {
    let mean = |event: &str| event_mean(window, SESSION, event);
    let mean_of = |role: &str, event: &str| event_mean(window, role, event);
    Some(match name {
        "dbwr_latency_ns_mean" => ("dbwr batch", "ns", mean_of("dbwr", DATA_WRITE)?),
        "lgwr_latency_ns_mean" => ("lgwr write", "ns", mean_of("lgwr", LOG_WRITE)?),
        "ckpt_latency_ns_mean" => ("ckpt write", "ns", mean_of("ckpt", CONTROL_WRITE)?),
        "free_buffer_waits_ns_mean" => ("free buffer wait", "ns", mean("free buffer waits")?),
        "write_complete_waits_ns_mean" => {
            ("write complete wait", "ns", mean("write complete waits")?)
        }
        "reads_per_write" => {
            let requests = |column| window.track_of_all("role", column).ok();
            let ratio = window.slope(&requests("read_ios")?, &requests("write_ios")?).ok()?;
            ("Reads per write", "reads", ratio)
        }
        _ => return None,
    })
}

fn of_bulk_write(name: &str, bulk_write: &BulkWrite) -> Option<Found> {
    let BulkWrite { returned, flushed, .. } = bulk_write;
    let create = bulk_write.steps.first()?;
    Some(match name {
        "bulk_returned_mbps" => ("Tables, returned", "MB/s", returned.mb_per_s?),
        "bulk_flushed_mbps" => ("Tables, flushed", "MB/s", flushed.mb_per_s?),
        "bulk_rows_per_s" => ("Rows, returned", "rows/s", returned.rows_per_s?),
        "table_latency_ns_mean" => ("Mean table", "ns", create.ns_mean?),
        "table_latency_ns_p50" => ("Median table", "ns", create.ns_p50?),
        "table_latency_ns_p90" => ("90 % of tables", "ns", create.ns_p90?),
        _ => {
            let (cost, amount) = bulk_write.cost(name)?;
            (cost.title, cost.unit, amount)
        }
    })
}

/// Returns the transaction whose response time stands for the mix, as in TPC-C.
fn new_order(findings: &RunFindings) -> Option<&TransactionKind> {
    findings.transactions.as_ref()?.kinds.first()
}

fn per_operation(window: &RunWindow, of: &Track) -> Option<Estimate> {
    let operations = window.track_of_all("operation", "completed_ops").ok()?;
    window.slope(of, &operations).ok()
}

/// Returns the processor time of the sessions; if threads of the database read for them, that of
/// the process.
fn processor(window: &RunWindow) -> Option<Track> {
    if !window.scans() {
        return window.track("event", &format!("{SESSION}/{CPU}"), "time_ns").ok();
    }
    let process = |column| window.track("process", "", column).ok();
    let (user, system) = (process("cpu_user_ns")?, process("cpu_system_ns")?);
    let both = user.into_iter().zip(system).filter(|((a, _), (b, _))| a == b);
    Some(both.map(|((t_ns, user), (_, system))| (t_ns, user + system)).collect())
}

const SINGLE_READ: &str = "db file sequential read";
const DATA_WRITE: &str = "db file parallel write";
const LOG_WRITE: &str = "log file parallel write";
const CONTROL_WRITE: &str = "control file parallel write";
const LOG_SYNC: &str = "log file sync";
/// A commit as the sessions of a real database see it.
const COMMIT: &str = "commit";

fn mean_commit(window: &RunWindow) -> Option<Estimate> {
    event_mean(window, SESSION, LOG_SYNC).or_else(|| {
        let commits = window.track("instance", "", "commits").ok()?;
        let mean = window.slope(&window.track("sql", "", "commit_ns").ok()?, &commits).ok()?;
        Some(Estimate { samples: window.statistic("commits").ok()?, ..mean })
    })
}

fn event_latency<'a>(findings: &'a RunFindings, event: &str) -> Option<&'a Percentiles> {
    findings.latencies.iter().find(|row| row.role == SESSION && row.name == event)
}

/// Returns the mean of a wait of a role: the growth of its time over its count.
fn event_mean(window: &RunWindow, role: &str, event: &str) -> Option<Estimate> {
    let object = format!("{role}/{event}");
    let track = |column| window.track("event", &object, column).ok();
    let mean = window.slope(&track("time_ns")?, &track("waits")?).ok()?;
    // A mean rests on its waits, not on their nanoseconds.
    Some(Estimate { samples: window.grown("event", &object, "waits").ok()?, ..mean })
}

/// Pairs of a figure of a run and the figure of a calibration with which it is compared.
const AGAINST: [(&str, &str); 6] = [
    ("hardware_read_iops", "max_iops"),
    ("hardware_write_iops", "max_write_iops"),
    ("commits_per_s", "max_commits_per_s"),
    ("read_mbps", "max_mbps"),
    ("read_latency_ns_p50", "read_latency_ns_p50"),
    ("commit_latency_ns_p50", "commit_latency_ns_p50"),
];

/// Returns this run ÷ calibration, for all figures that are in the calibration and happened here.
pub fn efficiency(summary: &[(String, Figure)], calibration: Option<&Manifest>) -> Vec<Efficiency> {
    let Some(calibration) = calibration else { return Vec::new() };
    let of = |&(figure, calibrated_figure): &(&'static str, &'static str)| {
        let (_, Figure { title, estimate: here, .. }) =
            summary.iter().find(|(name, _)| name == figure)?;
        let there = calibration.summary.get(calibrated_figure)?;
        if here.value <= 0.0 || !there.condemned_by.is_empty() {
            return None;
        }
        Some(Efficiency {
            figure,
            title: title.clone(),
            calibrated_figure,
            calibrated_title: there.title.clone(),
            calibration: calibration.id.clone(),
            calibrated: there.estimate,
            unit: there.unit.clone(),
            ratio: stats::ratio(&there.estimate, here)?,
        })
    };
    AGAINST.iter().filter_map(of).collect()
}
