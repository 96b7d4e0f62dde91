//! What is not measured, and what would change that.

use blockstone_base::column::Unmeasured::{self, NotInVersion, NotPermitted, Off};
use blockstone_base::database::{
    DATABASE, EVENT, INSTANCE, IO, ROLE, SERVER, SESSION, SESSION_STATISTICS, SESSIONS, SQL,
};

use super::{Postgres, REDO_UNTIMED, Timed, UNTIMED};
use crate::monitor::recent::{CHARGED_IO, CHARGED_TIME};
use crate::monitor::values::{Missing, all, numbers, some};

/// Times of I/O on data files, and of redo.
const TIMES: [&str; 2] = ["read_ns", "write_ns"];
const REDO_TIMES: [&str; 2] = ["redo_write_ns", "redo_flush_ns"];

/// Columns on the server as a whole, by the version that has them first.
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
        ],
    ),
    (18, &["redo_written_bytes"]),
];
/// What the server counts of a session of its own.
const COUNTED: [&str; 10] = [
    "read_ios",
    "read_bytes",
    "read_ns",
    "write_ios",
    "write_bytes",
    "write_ns",
    "hits",
    "redo_records",
    "redo_bytes",
    "full_page_images",
];

/// Whether column `name` is a time that the server does not take.
pub fn untimed(name: &str, timed: Timed) -> bool {
    (TIMES.contains(&name) && !timed.io) || (REDO_TIMES.contains(&name) && !timed.redo)
}

/// All of it, as of the last look.
pub fn missing(monitor: &Postgres) -> Missing {
    let mut missing = of_the_whole(monitor);
    missing.extend(of_io(monitor));
    missing.extend(of_sessions(monitor));
    missing.extend(of_processes(monitor));
    missing.extend(monitor.queries.statements.missing(&monitor.link, monitor.timed.io));
    missing
}

fn of_the_whole(monitor: &Postgres) -> Missing {
    let (timed, version, queries) = (monitor.timed, monitor.link.version, &monitor.queries);
    let refused = [&queries.totals, &queries.redo, &queries.checkpoints, &queries.wal];
    let refused = refused.into_iter().find_map(|query| query.unanswered.as_ref());
    let why = |name: &str| {
        if ["retries", "commit_ns"].contains(&name) {
            return NotInVersion("only a run that drives the database knows it".to_owned());
        }
        if name == "flushes" && version < 14 {
            return later(14);
        }
        if untimed(name, timed) && !(version < 14 && REDO_TIMES.contains(&name)) {
            let why = if TIMES.contains(&name) { UNTIMED } else { REDO_UNTIMED };
            return Off(why.to_owned());
        }
        let since = SINCE.iter().find(|(_, names)| names.contains(&name));
        match (since, refused) {
            (Some((since, _)), _) if version < *since => later(*since),
            (Some(_), Some(why)) => why.clone(),
            _ => NotInVersion("PostgreSQL keeps no count of it".to_owned()),
        }
    };
    let schemas = [&INSTANCE, &SQL, &DATABASE].into_iter();
    let columns =
        schemas.flat_map(|schema| schema.columns.iter().map(|column| (schema.probe, column.name)));
    let absent = columns.filter(|(_, name)| !monitor.values.contains_key(name));
    absent.map(|(probe, name)| (probe, name, why(name))).collect()
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
    if monitor.timed.io {
        return Missing::new();
    }
    let off = Off(UNTIMED.to_owned());
    let times = ["read_ns", "write_ns", "extend_ns", "writeback_ns", "flush_ns"];
    [some(&IO, &times, &off), some(&ROLE, &TIMES, &off)].concat()
}

fn of_sessions(monitor: &Postgres) -> Missing {
    let link = &monitor.link;
    if !link.sees_all {
        let why = format!("only sessions of {} are seen: {}", link.user, link.hint());
        let why = NotPermitted(why);
        return [all(&SESSION, &why), all(&SESSIONS, &why)].concat();
    }
    if monitor.queries.sample.is_untracked {
        let why = Off("track_activities is off for some sessions".to_owned());
        return [all(&SESSION, &why), all(&SESSIONS, &why)].concat();
    }
    Missing::new()
}

fn of_processes(monitor: &Postgres) -> Missing {
    let mut missing = Missing::new();
    let version = monitor.link.version;
    if version < 18 {
        missing.extend(some(&SESSION_STATISTICS, &COUNTED, &later(18)));
    } else if let Some(why) = &monitor.queries.per_session.unanswered {
        missing.extend(some(&SESSION_STATISTICS, &COUNTED, why));
    } else if !monitor.timed.io {
        missing.extend(some(&SESSION_STATISTICS, &TIMES, &Off(UNTIMED.to_owned())));
    }
    if monitor.link.own_process.is_none() {
        let elsewhere = NotPermitted("the server is not on this machine".to_owned());
        missing.extend([numbers(&SERVER, &elsewhere), numbers(&EVENT, &elsewhere)].concat());
        missing.extend(some(&SESSION_STATISTICS, &CHARGED_TIME, &elsewhere));
        missing.extend(some(&SESSION_STATISTICS, &CHARGED_IO, &elsewhere));
    } else if monitor.io_of_processes == Some(false) {
        let why = "/proc/PID/io of the server's processes: run as its user, or as root";
        let why = NotPermitted(why.to_owned());
        let io = ["requested_read_bytes", "requested_write_bytes", "read_bytes", "write_bytes"];
        missing.extend(some(&SERVER, &io, &why));
        missing.extend(some(&SESSION_STATISTICS, &CHARGED_IO, &why));
    }
    missing
}

fn later(version: u32) -> Unmeasured {
    NotInVersion(format!("PostgreSQL {version} has it"))
}
