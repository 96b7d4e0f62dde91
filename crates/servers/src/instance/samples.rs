//! Samples and counters of the miniature instance's sessions, in the form of those of a monitored
//! database.

use std::time::Duration;

use blockstone_base::column::{Cell, Reading, Schema, Unmeasured};
use blockstone_base::database::{
    ROLE, SESSION, SESSION_EVENT, SESSION_STATISTICS, SESSIONS, wait_class,
};
use blockstone_instance::wait::{Doing, Event, Role, Statistic};
use blockstone_instance::{Instance, Process};
use blockstone_sys::usage::ThreadUsage;

use crate::monitor::recent::CHARGED_IO;
use crate::unmeasured::{Missing, some};

/// Many sessions are sampled less often, so that a recording has at most a thousand rows per
/// second.
pub const PAUSE_PER_SESSION: Duration = Duration::from_millis(1);
/// The same for their counters.
pub const PAUSE_PER_ROW: Duration = Duration::from_millis(1);
/// Monitors' name for a session that waits for nothing.
const ON_CPU: &str = "On CPU";
/// Columns of samples that an instance cannot fill.
const NONE: [&str; 8] = [
    "user",
    "database",
    "application",
    "query_id",
    "blockers",
    "thread",
    "transaction_age_ns",
    "statement_age_ns",
];

/// Appends a sample of each session in a call and of each background process in a wait, and the
/// number of sessions, which it also returns.
pub fn look(instance: &Instance, readings: &mut Vec<Reading>) -> u32 {
    let (mut connected, mut active) = (0, 0);
    instance.each_process(|process| {
        let (is_session, doing) = (process.role == Role::Session, process.doing());
        connected += u32::from(is_session);
        active += u32::from(is_session && doing != Doing::Nothing);
        match doing {
            Doing::Nothing => {}
            Doing::Working => readings.push(sample(process, None)),
            Doing::Waiting(event) => readings.push(sample(process, Some(event))),
        }
    });
    readings.push(of(&SESSIONS, String::new(), |name| match name {
        "connected" => Cell::Value(connected.into()),
        "active" => Cell::Value(active.into()),
        "idle" => Cell::Value((connected - active).into()),
        // Transactions end within a call, and there are no row locks.
        _ => Cell::Unmeasured,
    }));
    connected
}

/// Appends the counters of each session and background process, and of each of its waits. Returns
/// the number of wait counters other than zero. `used` is the processor time of each process.
pub fn count(
    instance: &Instance,
    used: &[ThreadUsage],
    exact: bool,
    readings: &mut Vec<Reading>,
) -> u32 {
    let (mut used, mut counted) = (used.iter(), 0);
    instance.each_process(|process| {
        let (used, object) = (used.next(), object(process));
        counted += 1;
        for &event in Event::ALL {
            let waits = process.waits(event);
            counted += u32::from(waits.count > 0);
            // Zeros are recorded only at an exact look: an event without waits may still occur
            // before the next.
            if exact || waits.count > 0 {
                let object = format!("{object}/{}", event.name());
                let cells = vec![Cell::from(waits.count), Cell::from(waits.time_ns)];
                readings.push(Reading { probe: SESSION_EVENT.probe, object, cells });
            }
        }
        let transfers = process.transfers().values();
        let statistic = |name: &str| {
            let known = Statistic::ALL.iter().find(|statistic| statistic.name() == name);
            let of_role =
                ROLE.columns.iter().zip(transfers).find(|(column, _)| column.name == name);
            let moved = of_role.map(|(_, value)| value);
            known.map(|&statistic| process.statistic(statistic)).or(moved)
        };
        let records = || ["block_changes", "full_page_images", "commits"].map(statistic);
        readings.push(of(&SESSION_STATISTICS, object, |column| match column {
            "role" => Cell::Text(process.role.name().to_owned()),
            "cpu_ns" => Cell::from(used.map(|used| used.cpu_ns)),
            "run_queue_ns" => Cell::from(used.map(|used| used.run_queue_ns)),
            "hits" => Cell::from(process.statistic(Statistic::CacheHits)),
            "redo_bytes" => Cell::from(process.statistic(Statistic::GeneratedRedoBytes)),
            "redo_records" => Cell::from(records().into_iter().flatten().sum::<u64>()),
            name => Cell::from(statistic(name)),
        }));
    });
    counted
}

fn object(process: &Process<'_>) -> String {
    match process.role {
        Role::Session => (process.number + 1).to_string(),
        other => format!("{}{}", other.name(), process.number),
    }
}

fn sample(process: &Process<'_>, event: Option<Event>) -> Reading {
    let name = event.map_or("", Event::name);
    of(&SESSION, object(process), |column| match column {
        "role" => Cell::Text(process.role.name().to_owned()),
        "state" => Cell::Text("active".to_owned()),
        "wait_class" => Cell::Text(event.map_or(ON_CPU, |_| wait_class(name)).to_owned()),
        "event" => Cell::Text(name.to_owned()),
        _ => Cell::Unmeasured,
    })
}

fn of(schema: &Schema, object: String, cell: impl Fn(&str) -> Cell) -> Reading {
    let cells = schema.columns.iter().map(|column| cell(column.name)).collect();
    Reading { probe: schema.probe, object, cells }
}

pub fn unmeasured() -> Missing {
    let why = Unmeasured::NotInVersion(
        "sessions of the miniature instance have no user, statement or blocker".to_owned(),
    );
    let none = ["idle_in_transaction", "waiting_for_locks"];
    let uncharged = Unmeasured::NotInVersion(
        "the miniature instance counts the requests of its sessions itself".to_owned(),
    );
    let charged = some(&SESSION_STATISTICS, &CHARGED_IO, &uncharged);
    [some(&SESSION, &NONE, &why), some(&SESSIONS, &none, &why), charged].concat()
}
