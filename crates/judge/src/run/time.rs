//! Database time: CPU, run queue, waits, and what remains.

use std::collections::BTreeMap;

use super::window::RunWindow;
use super::{DbTime, Wait, WaitClass};

pub const SESSION: &str = "session";
/// Events that are no waits, as [`RUN_QUEUE`].
pub const CPU: &str = "CPU";
pub const RUN_QUEUE: &str = "run queue";

pub fn db_time(window: &RunWindow) -> Option<DbTime> {
    let db_time_ns = window.statistic("db_time_ns").ok().filter(|&ns| ns > 0)?;
    let of = |object: &str| window.grown("event", object, "time_ns").ok();
    let (mut session_cpu_ns, mut session_run_queue_ns) = (0, 0);
    let (mut waits_ns, mut background_cpu_ns) = (0, 0);
    for object in window.objects("event") {
        let (Some((role, event)), Some(ns)) = (object.split_once('/'), of(object)) else {
            continue;
        };
        match (role == SESSION, event) {
            (true, CPU) => session_cpu_ns += ns,
            (true, RUN_QUEUE) => session_run_queue_ns += ns,
            (true, _) => waits_ns += ns,
            (false, CPU) => background_cpu_ns += ns,
            (false, _) => {}
        }
    }
    let outside_ns = db_time_ns as f64 - waits_ns as f64;
    let sampled = |column| window.statistic(column).map_or(0.0, |ns| ns as f64);
    let sampled_ns = sampled("outside_sampled_ns");
    let (cpu_ns, run_queue_ns) = if sampled_ns > 0.0 && outside_ns > 0.0 {
        // A ratio estimate: the sample's shares are those of all time outside of waits.
        let scale = outside_ns / sampled_ns;
        let sampled_cpu_ns = sampled("outside_sampled_cpu_ns");
        let ready_ns = sampled_ns - sampled_cpu_ns - sampled("outside_sampled_blocked_ns");
        ((sampled_cpu_ns * scale) as u64, (ready_ns.max(0.0) * scale) as u64)
    } else {
        (session_cpu_ns, session_run_queue_ns)
    };
    let remainder_ns = outside_ns - cpu_ns as f64 - run_queue_ns as f64;
    Some(DbTime {
        db_time_ns,
        cpu_ns,
        run_queue_ns,
        waits_ns,
        remainder_ns,
        remainder_ratio: remainder_ns / db_time_ns as f64,
        session_cpu_ns,
        session_run_queue_ns,
        cpu_in_waits_ns: session_cpu_ns.saturating_sub(cpu_ns),
        run_queue_in_waits_ns: session_run_queue_ns.saturating_sub(run_queue_ns),
        background_cpu_ns,
        average_active_sessions: db_time_ns as f64 / window.duration_ns() as f64,
    })
}

/// All events. CPU and run queue of the sessions are those outside of waits, so that the shares of
/// the database time add up. What never happened is listed for the sessions alone.
pub fn waits(window: &RunWindow, db_time: Option<&DbTime>) -> Vec<Wait> {
    let mut waits: Vec<Wait> = Vec::new();
    for object in window.objects("event") {
        let Some((role, event)) = object.split_once('/') else { continue };
        let grown = |column| window.grown("event", object, column).ok();
        let Some(time_ns) = grown("time_ns") else { continue };
        let foreground = role == SESSION;
        // Waits that are sampled are not counted: there, no time is no wait.
        let count = grown("waits");
        if time_ns == 0 && (!foreground || count.is_none()) {
            continue;
        }
        let count = count.unwrap_or(0);
        let time_ns = match (db_time.filter(|_| foreground), event) {
            (Some(db_time), CPU) => db_time.cpu_ns,
            (Some(db_time), RUN_QUEUE) => db_time.run_queue_ns,
            _ => time_ns,
        };
        let db_time = db_time.filter(|_| foreground);
        waits.push(Wait {
            event: event.to_owned(),
            role: role.to_owned(),
            class: class(event),
            count,
            time_ns,
            ns_mean: (count > 0).then(|| time_ns as f64 / count as f64),
            db_time_ratio: db_time.map(|all| time_ns as f64 / all.db_time_ns as f64),
            average_active: time_ns as f64 / window.duration_ns() as f64,
        });
    }
    waits.sort_by(|a, b| {
        let key = |wait: &Wait| (wait.role != SESSION, std::cmp::Reverse(wait.time_ns));
        key(a).cmp(&key(b)).then_with(|| a.event.cmp(&b.event))
    });
    waits
}

pub fn classes(window: &RunWindow, waits: &[Wait], db_time: Option<&DbTime>) -> Vec<WaitClass> {
    let Some(db_time) = db_time else { return Vec::new() };
    let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
    for wait in waits.iter().filter(|wait| wait.role == SESSION && wait.time_ns > 0) {
        *sums.entry(wait.class).or_default() += wait.time_ns;
    }
    let mut classes: Vec<WaitClass> = sums
        .into_iter()
        .map(|(class, time_ns)| WaitClass {
            class,
            time_ns,
            db_time_ratio: time_ns as f64 / db_time.db_time_ns as f64,
            average_active_sessions: time_ns as f64 / window.duration_ns() as f64,
        })
        .collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.time_ns));
    classes
}

/// The classes as Oracle's `V$EVENT_NAME` has them.
fn class(event: &str) -> &'static str {
    match event {
        CPU => "CPU",
        RUN_QUEUE => "Run queue",
        "db file sequential read"
        | "db file scattered read"
        | "direct path read"
        | "read by other session" => "User I/O",
        "db file parallel write" | "log file parallel write" | "control file parallel write" => {
            "System I/O"
        }
        "log file sync" => "Commit",
        "free buffer waits" | "write complete waits" | "log buffer space" => "Configuration",
        "buffer busy waits" => "Concurrency",
        event if event.starts_with("log file switch") => "Configuration",
        event if event.starts_with("latch") => "Concurrency",
        "commit" => "Commit",
        // Names of PostgreSQL, and of MariaDB's performance schema, begin with their class.
        event if event.starts_with("IO/") || event.starts_with("wait/io/") => "User I/O",
        event
            if ["Lock/", "LWLock/", "wait/lock/", "wait/synch/"]
                .iter()
                .any(|class| event.starts_with(class)) =>
        {
            "Concurrency"
        }
        _ => "Other",
    }
}
