//! Names of statistics, and where each belongs in the ledger.

use std::collections::BTreeMap;

use crate::ledger::{Ledger, Refusal};

pub const READ: &str = "physical read total bytes";
/// All bytes that disks moved, in both directions: a statistic of Oracle 11, which takes the place
/// of the bytes read where those are not listed. Oracle does not document it; in listings that have
/// all three, it exceeds the bytes read by what was written.
pub const DISK: &str = "physical IO disk bytes";
pub const ELIGIBLE: &str = "cell physical IO bytes eligible for predicate offload";
pub const WIRE: &str = "cell physical IO interconnect bytes";
const RETURNED: &str = "cell physical IO interconnect bytes returned by smart scan";
const OPTIMIZED: &str = "physical read total bytes optimized";
const INDEX: &str = "cell physical IO bytes saved by storage index";
const COLUMNS: &str = "cell physical IO bytes saved by columnar cache";
const WRITTEN: &str = "physical write total bytes";
const BALANCED: &str = "cell physical IO bytes sent directly to DB node to balance CPU";
const PASSTHRU: &str = "cell num bytes in passthru during predicate offload";
const BLOCK_IO: &str = "cell num bytes in block IO during predicate offload";
const CLIENT: &str = "bytes sent via SQL*Net to client";
/// Counted in hundredths of a second.
const HOST_CPU: &str = "CPU used by this session";
const HOST_CPU_S: &str = "host CPU seconds";
const CELL_CPU_S: &str = "cell CPU seconds";

/// Prefixes of the names of statistics that count refusals, in bytes or in events.
const REFUSALS: [&str; 6] = [
    "cell num bytes in passthru",
    "cell num bytes in block IO",
    "cell num smart IO sessions using passthru mode due to",
    "cell num smart IO sessions in rdbms block IO due to",
    "chained rows rejected by cell",
    "table fetch continued row",
];

const CENTISECONDS: f64 = 100.0;
/// Above this value, `f64` no longer represents every whole number of bytes.
const BYTES_MAX: f64 = 9e15;

/// Normalises a name for comparison: lower case, runs of white space as one blank.
pub fn normal(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Whether the statistic counts bytes.
pub fn is_bytes(name: &str) -> bool {
    normal(name).split(' ').any(|word| word == "bytes")
}

/// Builds a ledger from counted values by statistic name; `None` without a counter of reads.
pub fn of_statistics(name: &str, counted: &BTreeMap<String, f64>) -> Option<Ledger> {
    let counted: BTreeMap<String, f64> =
        counted.iter().map(|(name, value)| (normal(name), *value)).collect();
    let number = |name: &str| counted.get(&normal(name)).copied();
    let bytes = |name: &str| number(name).filter(|it| *it <= BYTES_MAX).map(|it| it.round() as u64);
    let wire_bytes = bytes(WIRE);
    let returned = bytes(RETURNED);
    let skipped = [("storage index", bytes(INDEX)), ("columns not read", bytes(COLUMNS))];
    let host_cpu_s = number(HOST_CPU_S).or(number(HOST_CPU).map(|it| it / CENTISECONDS));
    let balanced = bytes(BALANCED);
    let sent_back = balanced.filter(|bytes| *bytes > 0);
    let sent_back = sent_back.map(|bytes| Refusal::of_bytes("cells short of CPU", bytes));
    let mut refusals: Vec<Refusal> = sent_back.into_iter().collect();
    for (name, value) in &counted {
        let is_one = |begin: &str| name.starts_with(&normal(begin));
        if *value > 0.0 && REFUSALS.iter().any(|begin| is_one(begin)) {
            let reason = name.strip_prefix("cell num ").unwrap_or(name).to_owned();
            let mut refusal = Refusal { reason, ..Refusal::default() };
            if is_bytes(name) {
                refusal.bytes = Some(value.round() as u64);
            } else {
                refusal.count = Some(value.round() as u64);
            }
            refusals.push(refusal);
        }
    }
    let written_bytes = bytes(WRITTEN);
    let moved = bytes(DISK).map(|moved| moved.saturating_sub(written_bytes.unwrap_or(0)));
    Some(Ledger {
        name: name.to_owned(),
        read_bytes: bytes(READ).or(moved)?,
        is_read_with_writes: bytes(READ).is_none() && written_bytes.is_none(),
        skipped: skipped.into_iter().filter_map(|(how, it)| Some((how.to_owned(), it?))).collect(),
        optimized_bytes: bytes(OPTIMIZED),
        eligible_bytes: bytes(ELIGIBLE),
        returned_bytes: returned.or(wire_bytes),
        is_returned_all_wire: returned.is_none() && wire_bytes.is_some(),
        balanced_bytes: balanced,
        passthru_bytes: match (bytes(PASSTHRU), bytes(BLOCK_IO)) {
            (None, None) => None,
            (passthru, blocks) => Some(passthru.unwrap_or(0) + blocks.unwrap_or(0)),
        },
        wire_bytes,
        written_bytes,
        client_bytes: bytes(CLIENT),
        host_cpu_s,
        cell_cpu_s: number(CELL_CPU_S),
        refusals,
        ..Ledger::default()
    })
}
