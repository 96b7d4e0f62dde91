//! Samples of the sessions of the miniature instance, in the form of a monitored database's.

use std::time::Duration;

use blockstone_base::column::{Cell, Reading, Schema, Unmeasured};
use blockstone_base::database::{SESSION, SESSIONS, wait_class};
use blockstone_instance::Instance;
use blockstone_instance::wait::{Doing, Event, Role};

use crate::unmeasured::{Missing, some};

/// A sample of many sessions is taken less often: a recording has a thousand rows a second at most.
pub const PAUSE_PER_SESSION: Duration = Duration::from_millis(1);
/// What monitors call it when a session waits for nothing.
const ON_CPU: &str = "On CPU";
/// Columns of samples that an instance has nothing for.
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

/// Appends a sample of each session in a call and of each background process in a wait, and how
/// many sessions there are, which is returned.
pub fn look(instance: &Instance, readings: &mut Vec<Reading>) -> u32 {
    let (mut connected, mut active) = (0, 0);
    instance.each_doing(|role, number, doing| {
        let is_session = role == Role::Session;
        connected += u32::from(is_session);
        active += u32::from(is_session && doing != Doing::Nothing);
        match doing {
            Doing::Nothing => {}
            Doing::Working => readings.push(sample(role, number, None)),
            Doing::Waiting(event) => readings.push(sample(role, number, Some(event))),
        }
    });
    readings.push(of(&SESSIONS, String::new(), |name| match name {
        "connected" => Cell::Value(connected.into()),
        "active" => Cell::Value(active.into()),
        "idle" => Cell::Value((connected - active).into()),
        // Transactions end within a call, and rows have no locks.
        _ => Cell::Unmeasured,
    }));
    connected
}

fn sample(role: Role, number: usize, event: Option<Event>) -> Reading {
    let name = event.map_or("", Event::name);
    let object = match role {
        Role::Session => (number + 1).to_string(),
        other => format!("{}{number}", other.name()),
    };
    of(&SESSION, object, |column| match column {
        "role" => Cell::Text(role.name().to_owned()),
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
    [some(&SESSION, &NONE, &why), some(&SESSIONS, &none, &why)].concat()
}
