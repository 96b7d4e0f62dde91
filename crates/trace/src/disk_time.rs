//! Time that storage took in a statement that also read from memory.
//!
//! Disk time is elapsed time less a cost for each logical read; divided by physical reads it is the
//! time of one read. A row source includes its children, so its own part of time and reads is
//! corrected first.

use crate::model::{Component, Kind, RowSource, Spent, Statement, Trace};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskTime {
    pub total_ns: f64,
    pub per_read_ns: f64,
}

/// Disk time of `physical_reads` in something that took `elapsed_ns`; `None` if nothing was read,
/// or if logical reads alone would have taken longer.
pub fn disk_time(
    elapsed_ns: f64,
    logical_reads: f64,
    memory_cost_ns: f64,
    physical_reads: f64,
) -> Option<DiskTime> {
    let total_ns = elapsed_ns - logical_reads * memory_cost_ns;
    let valid = total_ns.is_finite() && total_ns >= 0.0 && physical_reads > 0.0;
    valid.then(|| DiskTime { total_ns, per_read_ns: total_ns / physical_reads })
}

/// Disk time of a row source with its children.
pub fn row_disk_time(row: &RowSource, memory_cost_ns: f64) -> Option<DiskTime> {
    disk_time(row.ns?, row.logical_reads?, memory_cost_ns, row.physical_reads?)
}

/// Disk time of a row source without its children.
pub fn own_disk_time(row: &RowSource, memory_cost_ns: f64) -> Option<DiskTime> {
    disk_time(row.own_ns?, row.own_logical_reads?, memory_cost_ns, row.own_physical_reads?)
}

/// Throughput of sequential reads of this size, one at a time.
pub fn mib_per_second(block_bytes: f64, per_read_ns: f64) -> Option<f64> {
    const MIB: f64 = 1_048_576.0;
    let rate = block_bytes / MIB / (per_read_ns / 1e9);
    (per_read_ns > 0.0 && rate.is_finite()).then_some(rate)
}

/// Time of a logical read in statements that read nothing from storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryCost {
    pub ns: f64,
    pub statements: usize,
    pub logical_reads: f64,
}

/// Derives the cost from the fetches of statements without physical reads, with enough logical
/// reads that the call itself costs little in comparison; waits do not count.
pub fn memory_cost(trace: &Trace) -> Option<MemoryCost> {
    const LEAST_READS_A_CALL: f64 = 10.0;
    // Its times are too coarse.
    if trace.kind == Some(Kind::Tkprof) {
        return None;
    }
    let mut cost = MemoryCost { ns: 0.0, statements: 0, logical_reads: 0.0 };
    for statement in &trace.statements {
        let fetch = statement.parts.iter().find(|part| part.name == "fetch");
        let (Some(fetch), Some(0.0)) = (fetch, statement.physical_reads) else { continue };
        let reads = fetch.consistent_reads + fetch.current_reads;
        if reads <= 0.0 || reads < fetch.calls * LEAST_READS_A_CALL {
            continue;
        }
        cost.ns += (fetch.elapsed_ns - waited_ns(statement)).max(0.0);
        cost.statements += 1;
        cost.logical_reads += reads;
    }
    cost.ns /= cost.logical_reads;
    (cost.statements > 0 && cost.ns > 0.0).then_some(cost)
}

/// Time waited within calls, excluding waits for the client.
fn waited_ns(statement: &Statement) -> f64 {
    let in_calls = |(component, spent): (&Component, &Spent)| match component {
        Component::Wait(event) if event != "SQL*Net message from client" => Some(spent.ns),
        _ => None,
    };
    statement.components.iter().filter_map(in_calls).sum()
}
