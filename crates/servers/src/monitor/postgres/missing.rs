//! Columns that are not measured, and what would change that.

use blockstone_base::column::Unmeasured::{self, NotInVersion, NotPermitted, Off};
use blockstone_base::database::{
    DATABASE, EVENT, INSTANCE, IO, ROLE, SESSION, SESSION_STATISTICS, SESSIONS, SQL,
};

use super::{Postgres, Tracked, UNTIMED};
use crate::monitor::values::{OF_INSTANCES, PER_SESSION};
use crate::unmeasured::{Missing, absent, all, numbers, others, some};

/// Times of I/O on data files, and of redo.
const TIMES: [&str; 2] = ["read_ns", "write_ns"];
const REDO_TIMES: [&str; 2] = ["redo_write_ns", "redo_flush_ns"];
/// Flushes of redo by separate calls.
const REDO_FLUSHES: [&str; 2] = ["redo_flushes", "redo_flush_ns"];
/// Columns counted by table.
const COUNTS: [&str; 11] = [
    "logical_reads",
    "physical_reads",
    "rows_read",
    "rows_fetched",
    "rows_inserted",
    "rows_updated",
    "rows_deleted",
    "temp_files",
    "temp_bytes",
    "deadlocks",
    "maintenance_runs",
];

/// Columns of the whole server, by the first version that has them.
const SINCE: [(u32, &[&str]); 2] = [
    (
        14,
        &[
            "db_time_ns",
            "logons",
            "idle_in_transaction_ns",
            "redo_records",
            "full_page_images",
            "redo_buffer_full",
            "redo_writes",
            "redo_flushes",
            "redo_write_ns",
            "redo_flush_ns",
            "flushes",
        ],
    ),
    (18, &["redo_written_bytes"]),
];
const UNKNOWN: [&str; 18] = [
    "single_block_reads",
    "multiblock_reads",
    "direct_reads",
    "block_changes",
    "write_requests",
    "protection_bytes",
    "log_switches",
    "blocks_repaired",
    "degraded_reads",
    "outside_sampled_ns",
    "outside_sampled_cpu_ns",
    "outside_sampled_blocked_ns",
    "dirty_blocks",
    "statements",
    "rows_sent",
    "row_lock_waits",
    "row_lock_ns",
    "history_length",
];
/// Returns why column `name` is off, if the server does not collect it.
pub fn off(name: &str, tracked: Tracked) -> Option<&'static str> {
    let reasons: [(&[&str], bool, &str); 4] = [
        (&COUNTS, tracked.counts, "track_counts is off"),
        (&TIMES, tracked.io_times, UNTIMED),
        (&REDO_FLUSHES, tracked.redo_flushes, "wal_sync_method=open_… flushes with each write"),
        (&REDO_TIMES, tracked.redo_times, "track_wal_io_timing is off"),
    ];
    let found = reasons.iter().find(|(names, is_on, _)| !is_on && names.contains(&name));
    found.map(|(.., why)| *why)
}

pub fn missing(monitor: &Postgres) -> Missing {
    let mut missing = of_the_whole(monitor);
    missing.extend(of_io(monitor));
    missing.extend(of_sessions(monitor));
    missing.extend(of_processes(monitor));
    missing.extend(monitor.queries.statements.missing(&monitor.link, monitor.tracked.io_times));
    missing
}

fn of_the_whole(monitor: &Postgres) -> Missing {
    let (tracked, version) = (monitor.tracked, monitor.link.version);
    let queries = &monitor.queries;
    let refused = [&queries.totals, &queries.redo, &queries.checkpoints, &queries.wal];
    let refused = refused.into_iter().find_map(|query| query.unanswered.as_ref());
    let why = |name: &str| {
        if ["retries", "commit_ns"].contains(&name) {
            return NotInVersion("only a run that drives the database knows it".to_owned());
        }
        if UNKNOWN.contains(&name) {
            return uncounted();
        }
        let since = SINCE.iter().find(|(_, names)| names.contains(&name));
        if let Some((since, _)) = since.filter(|(since, _)| version < *since) {
            return later(*since);
        }
        match (off(name, tracked), refused) {
            (Some(why), _) => Off(why.to_owned()),
            (None, Some(why)) => why.clone(),
            (None, None) => Off("the server did not answer in time".to_owned()),
        }
    };
    absent(&[&INSTANCE, &SQL, &DATABASE], |name| monitor.values.contains_key(name), why)
}

fn of_io(monitor: &Postgres) -> Missing {
    if monitor.link.version < 16 {
        let mut missing = all(&IO, &later(16));
        missing.extend(some(&ROLE, &TIMES, &later(16)));
        return missing;
    }
    if let Some(why) = &monitor.queries.io.unanswered {
        return [all(&IO, why), all(&ROLE, why)].concat();
    }
    if monitor.tracked.io_times {
        return Missing::new();
    }
    let off = Off(UNTIMED.to_owned());
    let times = ["read_ns", "write_ns", "extend_ns", "writeback_ns", "flush_ns"];
    [some(&IO, &times, &off), some(&ROLE, &TIMES, &off)].concat()
}

fn of_sessions(monitor: &Postgres) -> Missing {
    let link = &monitor.link;
    if !link.sees_all {
        return others(&link.user, &link.hint());
    }
    if monitor.queries.sample.is_untracked {
        let why = Off("track_activities is off for some sessions".to_owned());
        return [all(&SESSION, &why), all(&SESSIONS, &why)].concat();
    }
    Missing::new()
}

fn of_processes(monitor: &Postgres) -> Missing {
    let mut missing = some(&SESSION_STATISTICS, &OF_INSTANCES, &uncounted());
    let version = monitor.link.version;
    if version < 18 {
        missing.extend(some(&SESSION_STATISTICS, &PER_SESSION, &later(18)));
    } else if let Some(why) = &monitor.queries.per_session.unanswered {
        missing.extend(some(&SESSION_STATISTICS, &PER_SESSION, why));
    } else if !monitor.tracked.io_times {
        missing.extend(some(&SESSION_STATISTICS, &TIMES, &Off(UNTIMED.to_owned())));
    }
    let elsewhere = monitor.link.own_process.is_none();
    let elsewhere = elsewhere.then(|| NotPermitted("the server is not on this machine".to_owned()));
    missing.extend(elsewhere.iter().flat_map(|why| numbers(&EVENT, why)));
    let hidden = "/proc/PID/io of the server's processes: run as its user, or as root";
    missing.extend(monitor.accounts.missing(elsewhere, hidden));
    missing
}

fn uncounted() -> Unmeasured {
    NotInVersion("PostgreSQL keeps no count of it".to_owned())
}

fn later(version: u32) -> Unmeasured {
    NotInVersion(format!("PostgreSQL {version} has it"))
}
