//! I/O as the database claims it, as the kernel charges it to the database's processes, and as the
//! device did it: three accounts of the same window.

use blockstone_base::column::Unmeasured;
use blockstone_base::units::Bytes;
use blockstone_figures::{Grown, Missing, OVERCHARGED};
use schemars::JsonSchema;
use serde::Serialize;

use super::window::RunWindow;

/// One line of the ledger.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LedgerRow {
    /// Quantity that is counted.
    pub what: &'static str,
    /// Unit of the counts: `bytes` or `count`.
    #[schemars(extend("enum" = ["bytes", "count"]))]
    pub unit: &'static str,
    /// Counted by the database.
    pub claimed: LedgerCell,
    /// Charged by the kernel to the processes of the database.
    pub process: LedgerCell,
    /// Counted by the block layer on the device, for all processes.
    pub device: LedgerCell,
    /// How the database executes the statements that cause it; null if no statement applies.
    pub plan: Option<String>,
}

/// A number, or the reason why there is none; never zero for what was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LedgerCell {
    /// Number that was counted.
    Value(u64),
    /// Reason why it was not measured.
    Unmeasured(Unmeasured),
}

impl LedgerCell {
    fn of(found: Grown, why: impl FnOnce() -> Unmeasured) -> Self {
        found.map_or_else(|_| Self::Unmeasured(why()), Self::Value)
    }

    pub fn value(&self) -> Option<u64> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Unmeasured(_) => None,
        }
    }
}

pub fn rows(window: &RunWindow) -> Vec<LedgerRow> {
    let plans = window.parameters().plans.unwrap_or_default();
    let plan = |kind: &str| plans.get(kind).cloned();
    let row = |what, unit, [claimed, process, device]: [LedgerCell; 3], plan| LedgerRow {
        what,
        unit,
        claimed,
        process,
        device,
        plan,
    };
    let process = |column| charged(window, column);
    let device = |column| on_device(window, column);
    let nothing_charged = || {
        LedgerCell::Unmeasured(Unmeasured::NotInVersion(
            "the kernel charges no flush to a process".to_owned(),
        ))
    };
    let (reads, writes) = (claimed_reads(window), claimed_writes(window));
    let mut rows = vec![
        row("reads", "bytes", [reads, process("read_bytes"), device("read_bytes")], plan("select")),
        row(
            "writes",
            "bytes",
            [writes, process("write_bytes"), device("write_bytes")],
            plan("update"),
        ),
    ];
    if has_server(window) {
        let redo = counted(window, "instance", "redo_bytes");
        let wal = LedgerCell::Unmeasured(Unmeasured::NotInVersion(
            "neither processes nor devices tell the log from the data".to_owned(),
        ));
        rows.push(row("redo, of the writes", "bytes", [redo, wal.clone(), wal], None));
        let flushes = counted(window, "sql", "flushes");
        rows.push(row("flushes", "count", [flushes, nothing_charged(), device("flush_ios")], None));
    }
    rows
}

/// Returns whether the run drove a database of its own.
pub fn has_server(window: &RunWindow) -> bool {
    window.parameters().server.is_some()
}

fn block_bytes(window: &RunWindow) -> u64 {
    window.parameters().block_bytes.map_or(0, Bytes::get)
}

/// Returns the reads that the database claims: the miniature instance counts what it sends to its
/// disks, a database counts pages.
fn claimed_reads(window: &RunWindow) -> LedgerCell {
    if let Ok(bytes) = window.grown_of_all("disk", "read_bytes") {
        return LedgerCell::Value(bytes);
    }
    match counted(window, "instance", "physical_reads") {
        LedgerCell::Value(blocks) => LedgerCell::Value(blocks * block_bytes(window)),
        unmeasured @ LedgerCell::Unmeasured(_) => unmeasured,
    }
}

fn claimed_writes(window: &RunWindow) -> LedgerCell {
    if let Ok(bytes) = window.grown_of_all("disk", "write_bytes") {
        return LedgerCell::Value(bytes);
    }
    let statistic = |name| window.statistic(name);
    let Ok(blocks) = statistic("physical_writes") else {
        return counted(window, "instance", "physical_writes");
    };
    let redo = statistic("redo_bytes").unwrap_or(0) + statistic("protection_bytes").unwrap_or(0);
    LedgerCell::Value(blocks * block_bytes(window) + redo)
}

fn counted(window: &RunWindow, probe: &str, column: &str) -> LedgerCell {
    LedgerCell::of(window.grown(probe, "", column), || {
        let known = window.reason(probe, column).cloned();
        known.unwrap_or_else(|| Unmeasured::NotInVersion("the target does not count it".to_owned()))
    })
}

/// Returns what the kernel charged to the server, or to this process for a database inside it.
fn charged(window: &RunWindow, column: &str) -> LedgerCell {
    let server = !window.objects("server").is_empty();
    let (probe, found) = if server {
        ("server", window.charged_to_server(column))
    } else if has_server(window) {
        ("server", Err(Missing::Unknown))
    } else {
        ("process", window.grown("process", "", column))
    };
    LedgerCell::of(found, || {
        if found == Err(Missing::NoEvidence) {
            return Unmeasured::NoEvidence(OVERCHARGED.to_owned());
        }
        let known = window.reason(probe, column).cloned();
        known.unwrap_or_else(|| {
            let why = if probe == "server" && !server {
                "the server is on another machine, or does not say which process it is"
            } else {
                "/proc/PID/io belongs to another user"
            };
            Unmeasured::NotPermitted(why.to_owned())
        })
    })
}

/// Returns what the first device of the chain did.
fn on_device(window: &RunWindow, column: &str) -> LedgerCell {
    let device = window.manifest.target.devices.first().ok_or(Missing::Unknown);
    let found = device.and_then(|device| window.grown("block", &device.name, column));
    LedgerCell::of(found, || {
        let why = "no block device beneath the data can be seen from here".to_owned();
        Unmeasured::NotPermitted(why)
    })
}
