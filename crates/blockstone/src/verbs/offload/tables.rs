//! Tables and documents of runs, whichever way they were measured.

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Table, bytes, count, flow, happened, level, share, text, time,
};
use blockstone_offload::Ledger;
use schemars::JsonSchema;
use serde::Serialize;

const SECOND_NS: f64 = 1e9;

const LEDGER: &[Heading] = &[
    text("run", "run", "The run."),
    text("line", "bytes", "What the bytes are, from the plan to the client."),
    bytes("bytes", "", "As many."),
    share("share", "of the first", "Share of the first line of the run."),
];

const RUNS: &[Heading] = &[
    text("run", "run", "The run."),
    time("elapsed_ns", "time", "Between its first and last snapshot."),
    level("hosts", "hosts", Measure::Count, "Instances that took bytes."),
    bytes("disk_bytes", "read", "What the plan asked of the storage."),
    bytes("eligible_bytes", "eligible", "What the storage was allowed to filter."),
    bytes("returned_bytes", "returned", "What it returned of that."),
    bytes("wire_bytes", "wire", "Between storage and hosts."),
    share("saved_of_all", "saved of all", "(eligible − returned) ÷ read."),
    flow("read_bytes_per_s", "read/s", "Read a second."),
    flow("wire_bytes_per_s", "wire/s", "On the wire a second."),
];

const REFUSALS: &[Heading] = &[
    text("run", "run", "The run."),
    text("reason", "not filtered because", "By the name of the counter."),
    bytes("bytes", "bytes", "Sent unfiltered; where bytes are counted."),
    count("events", "events", "Sessions or rows; where these are counted."),
];

/// A run, for scripts.
#[derive(Serialize, JsonSchema)]
pub struct RunKeys {
    pub name: String,
    /// Null where the run was not timed.
    pub seconds: Option<f64>,
    /// Hosts that took rows.
    pub hosts: Option<u32>,
    /// Storage servers that read.
    pub cells: Option<u32>,
    /// What the plan asked of the storage.
    pub disk_bytes: u64,
    /// What the storage was allowed to filter.
    pub eligible_bytes: Option<u64>,
    /// All bytes of the wire where those returned are not counted by themselves.
    pub returned_bytes: Option<u64>,
    pub wire_bytes: Option<u64>,
    pub returned_of_eligible: Option<f64>,
    /// (eligible − returned) ÷ all that was read.
    pub saved_of_all: Option<f64>,
    /// (wire − (read − eligible + returned)) ÷ written; null where the arithmetic does not allow
    /// it.
    pub mirror_copies: Option<f64>,
    /// Processor time of the hosts and of the storage.
    pub host_cpu_s: Option<f64>,
    pub cell_cpu_s: Option<f64>,
}

impl RunKeys {
    pub fn of(ledger: &Ledger) -> Self {
        Self {
            name: ledger.name.clone(),
            seconds: ledger.seconds,
            hosts: ledger.hosts,
            cells: ledger.cells,
            disk_bytes: ledger.read_bytes,
            eligible_bytes: ledger.eligible_bytes,
            returned_bytes: ledger.returned_bytes,
            wire_bytes: ledger.wire_bytes,
            returned_of_eligible: ledger.returned_of_eligible(),
            saved_of_all: ledger.saved_of_all(),
            mirror_copies: ledger.copies().measured(),
            host_cpu_s: ledger.host_cpu_s,
            cell_cpu_s: ledger.cell_cpu_s,
        }
    }
}

/// The lines of a ledger in their fixed order, those that are known.
pub fn lines(ledger: &Ledger) -> Vec<(String, u64)> {
    let mut lines = vec![("asked by the plan".to_owned(), Some(ledger.read_bytes))];
    for (how, bytes) in &ledger.skipped {
        lines.push((format!("skipped: {how}"), Some(*bytes)));
    }
    let skipped = ledger.skipped_bytes();
    let read = ledger.read_bytes.saturating_sub(skipped);
    let flash = ledger.optimized_bytes.map(|bytes| bytes.saturating_sub(skipped));
    let disk = ledger.optimized_bytes.map(|bytes| ledger.read_bytes.saturating_sub(bytes));
    let writes = ledger.writes_and_rest();
    let mut add = |line: &str, bytes| lines.push((line.to_owned(), bytes));
    add("read at the storage", Some(read));
    add("  from flash", flash);
    add("  from disk", disk);
    add("examined by the storage", ledger.examined_bytes());
    add("sent unfiltered", ledger.unfiltered_bytes());
    add("not eligible", ledger.not_eligible_bytes());
    add("returned", ledger.returned_bytes.filter(|_| !ledger.is_returned_all_wire));
    add("on the wire", ledger.wire_bytes);
    add("  writes with their copies", writes.map(|(writes, _)| writes));
    add("  rest", writes.map(|(_, rest)| rest));
    add("to the client", ledger.client_bytes);
    lines.into_iter().filter_map(|(line, bytes)| Some((line, bytes?))).collect()
}

pub fn ledger(ledgers: &[Ledger]) -> Table {
    let rows = ledgers.iter().flat_map(|ledger| {
        let first = ledger.read_bytes;
        lines(ledger).into_iter().map(move |(line, bytes)| {
            let share = (first > 0).then(|| bytes as f64 / first as f64);
            row![ledger.name.clone(), line, bytes, happened(share)]
        })
    });
    Table::new("ledger", "Where the bytes went", LEDGER).with(rows.collect::<Vec<_>>())
}

pub fn runs(ledgers: &[Ledger]) -> Table {
    let row = |ledger: &Ledger| {
        row![
            ledger.name.clone(),
            ledger.seconds.map(|seconds| seconds * SECOND_NS),
            ledger.hosts,
            ledger.read_bytes,
            ledger.eligible_bytes,
            ledger.returned_bytes,
            ledger.wire_bytes,
            ledger.saved_of_all(),
            ledger.read_bytes_per_s(),
            ledger.wire_bytes_per_s(),
        ]
    };
    Table::new("runs", "Runs", RUNS).with(ledgers.iter().map(row))
}

pub fn refusals(ledgers: &[Ledger]) -> Table {
    let rows = ledgers.iter().flat_map(|ledger| {
        ledger.refusals.iter().map(|refusal| {
            let bytes = happened(refusal.bytes);
            row![ledger.name.clone(), refusal.reason.clone(), bytes, happened(refusal.count)]
        })
    });
    Table::new("refusals", "Not filtered, by reason", REFUSALS).with(rows.collect::<Vec<_>>())
}
