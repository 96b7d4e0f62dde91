//! Columns that are not measured, and what would change that.

use blockstone_base::column::Unmeasured::{self, NotInVersion, NotPermitted, Off};
use blockstone_base::database::{
    DATABASE, EVENT, INSTANCE, IO, ROLE, SESSION, SESSION_STATISTICS, SQL, STATEMENT,
};

use super::Mariadb;
use super::schema::{OF_STATEMENTS, of_file};
use crate::monitor::values::{OF_INSTANCES, PER_SESSION};
use crate::unmeasured::{Missing, absent, all, numbers, others, some};

/// Times of data files, which only the performance schema measures.
const TIMES: [&str; 2] = ["read_ns", "write_ns"];

pub fn missing(monitor: &Mariadb) -> Missing {
    let mut missing = of_the_whole(monitor);
    if let Some(why) = without_schema(monitor) {
        missing.extend([all(&IO, &why), all(&STATEMENT, &why)].concat());
        missing.extend(some(&ROLE, &TIMES, &why));
    } else {
        missing.extend(absent(&[&IO], |name| of_file(name).is_some(), |_| uncounted()));
        let counted = |name| OF_STATEMENTS.contains(&name);
        missing.extend(absent(&[&STATEMENT], counted, |_| uncounted()));
    }
    missing.extend(of_sessions(monitor));
    missing.extend(of_threads(monitor));
    missing
}

/// Returns why the performance schema provides nothing; `None` if it does.
fn without_schema(monitor: &Mariadb) -> Option<Unmeasured> {
    let schema = monitor.link.schema;
    if !schema.is_on {
        let why = "the performance schema is off: set performance_schema=ON in the server's \
                   configuration and restart it";
        return Some(Off(why.to_owned()));
    }
    (!schema.is_readable).then(|| NotPermitted(monitor.link.schema_hint()))
}

fn uncounted() -> Unmeasured {
    NotInVersion("the server keeps no count of it".to_owned())
}

fn of_the_whole(monitor: &Mariadb) -> Missing {
    let why = |name: &str| match name {
        "retries" | "commit_ns" => {
            NotInVersion("only a run that drives the database knows it".to_owned())
        }
        "db_time_ns" | "read_ns" | "write_ns" => without_schema(monitor).unwrap_or_else(uncounted),
        _ => uncounted(),
    };
    absent(&[&INSTANCE, &SQL, &DATABASE], |name| monitor.values.contains_key(name), why)
}

fn of_sessions(monitor: &Mariadb) -> Missing {
    let link = &monitor.link;
    if !link.sees_all {
        return others(&link.user, &link.hint());
    }
    let mut missing = Missing::new();
    if let Some(why) = without_schema(monitor) {
        missing.extend(some(&SESSION, &["application"], &why));
    }
    if monitor.sample.blind {
        let why = "the server does not say what sessions wait for: enable the consumer \
                   events_waits_current of its performance schema";
        missing.extend(some(&SESSION, &["wait_class"], &Off(why.to_owned())));
    }
    missing
}

fn of_threads(monitor: &Mariadb) -> Missing {
    let elsewhere = monitor.link.pid.is_none().then(|| {
        let why = "the server is not on this machine, or this user may not read its pid_file";
        NotPermitted(why.to_owned())
    });
    let uncounted_of_each = [&PER_SESSION[..], &OF_INSTANCES].concat();
    let mut missing = some(&SESSION_STATISTICS, &uncounted_of_each, &uncounted());
    if let Some(why) = elsewhere.as_ref().and_then(|_| without_schema(monitor)) {
        missing.extend(numbers(&EVENT, &why));
    }
    let hidden = "/proc/PID/task/TID/io of the server's threads: run as its user, or as root";
    missing.extend(monitor.accounts.missing(elsewhere, hidden));
    missing
}
