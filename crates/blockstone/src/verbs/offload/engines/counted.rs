//! Runs on cells, as ledgers.

use blockstone_base::units::counted;
use std::thread;

use blockstone_offload::Ledger;
use blockstone_pushdown::cells::{Query, Ran};

pub const SECOND_NS: f64 = 1e9;

pub fn name(ran: &Ran) -> String {
    format!("{}, {}", asked(ran), counted(ran.cells.into(), "cell"))
}

pub fn asked(ran: &Ran) -> String {
    match (ran.query, ran.pushdown) {
        (query, true) => query.name().to_owned(),
        (query, false) => format!("{} without pushdown", query.name()),
    }
}

/// Whether the cells really received the condition, or all rows were wanted.
pub fn is_left_to_cells(ran: &Ran) -> bool {
    ran.pushdown && (ran.query == Query::Full || ran.remote.contains("WHERE"))
}

/// Number of processors that a statement can use at the same time on this many servers: each has
/// one process that executes it.
fn usable(servers: u32) -> u32 {
    servers.min(processors().unwrap_or(u32::MAX))
}

/// Number of processors that host and cells share.
pub fn processors() -> Option<u32> {
    thread::available_parallelism().ok().map(|it| it.get() as u32)
}

pub fn ledger(ran: &Ran) -> Ledger {
    let moved = &ran.moved;
    let read = ran.asked_bytes();
    let (eligible, returned) =
        if is_left_to_cells(ran) { (read, moved.received_bytes) } else { (0, 0) };
    let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 / SECOND_NS);
    Ledger {
        name: name(ran),
        seconds: Some(moved.seconds),
        hosts: Some(1),
        cells: Some(ran.cells),
        read_bytes: read,
        eligible_bytes: Some(eligible),
        returned_bytes: Some(returned),
        wire_bytes: Some(moved.wire_bytes),
        host_cpu_s: seconds(moved.host_cpu_ns),
        host_processors: Some(usable(1)),
        cell_cpu_s: seconds(moved.cell_cpu_ns),
        cell_processors: Some(usable(ran.cells)),
        shared_processors: processors(),
        ..Ledger::default()
    }
}
