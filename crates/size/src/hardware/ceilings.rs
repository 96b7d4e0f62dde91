//! The ceilings: for each, the need of hardware and the capacity of one unit.

use super::{Demand, Plan, Unit};

pub const IOPS: &str = "IOPS";

pub struct Kind {
    pub name: &'static str,
    pub need: fn(&Demand, &Plan) -> Option<f64>,
    pub capacity: fn(&Unit, &Plan, &Demand) -> Option<f64>,
    /// Whether it is an amount held at any time, rather than a rate.
    pub holds: bool,
    /// Whether to report that a storage unit does not state it.
    pub expected: bool,
}

macro_rules! rate {
    ($name:expr, $need:expr, $key:ident) => {
        Kind {
            name: $name,
            need: $need,
            capacity: |unit, _, _| unit.$key,
            holds: false,
            expected: false,
        }
    };
}

macro_rules! level {
    ($name:expr, $need:expr, $key:ident) => {
        Kind { holds: true, ..rate!($name, $need, $key) }
    };
}

fn reads(demand: &Demand, plan: &Plan) -> Option<f64> {
    Some(demand.reads_per_s? * (1.0 - plan.cached_reads))
}

fn writes(demand: &Demand, plan: &Plan) -> Option<f64> {
    Some(demand.writes_per_s? * plan.redundancy.penalty())
}

fn read_mbps(demand: &Demand, plan: &Plan) -> Option<f64> {
    Some(demand.read_bytes_per_s? * (1.0 - plan.cached_reads) / 1e6)
}

fn write_mbps(demand: &Demand, plan: &Plan) -> Option<f64> {
    Some(demand.write_bytes_per_s? * plan.redundancy.penalty() / 1e6)
}

/// The flash cache is on the far side of the link, so reads that it serves cross the link.
fn link_mbps(demand: &Demand, plan: &Plan) -> Option<f64> {
    let written = demand.write_bytes_per_s? * plan.redundancy.over_link();
    Some((demand.read_bytes_per_s? + written) / 1e6)
}

/// Returns the IOPS of reads and writes together. If they share the device and each rate was
/// measured alone, a mix of r and w takes r/R + w/W of its time.
fn iops(unit: &Unit, plan: &Plan, demand: &Demand) -> Option<f64> {
    let shared = || {
        let (Some(read), Some(write), Some(true)) = (unit.read_iops, unit.write_iops, unit.shared)
        else {
            return None;
        };
        let (reads, writes) = (reads(demand, plan)?, writes(demand, plan)?);
        if reads + writes > 0.0 { mixed_iops(reads, read, writes, write) } else { Some(read) }
    };
    plan.measured_iops.or(unit.iops).or_else(shared)
}

/// Returns the rate of a mix of `reads` and `writes` (in any unit) on a device that does
/// `read_iops` or `write_iops` alone, one at the expense of the other.
pub fn mixed_iops(reads: f64, read_iops: f64, writes: f64, write_iops: f64) -> Option<f64> {
    let rate = (reads + writes) / (reads / read_iops + writes / write_iops);
    (rate > 0.0 && rate.is_finite()).then_some(rate)
}

pub const ALL: &[Kind] = &[
    Kind {
        name: IOPS,
        need: |d, p| Some(reads(d, p)? + writes(d, p)?),
        capacity: iops,
        holds: false,
        expected: true,
    },
    rate!("read IOPS", reads, read_iops),
    rate!("write IOPS", writes, write_iops),
    Kind {
        expected: true,
        ..rate!("MB/s", |d, p| Some(read_mbps(d, p)? + write_mbps(d, p)?), mbps)
    },
    rate!("read MB/s", read_mbps, read_mbps),
    rate!("write MB/s", write_mbps, write_mbps),
    rate!("link MB/s", link_mbps, link_mbps),
    rate!("redo MB/s", |d, p| Some(d.redo_bytes_per_s? * p.redundancy.penalty() / 1e6), redo_mbps),
    rate!("commits/s", |d, _| d.commits_per_s, commits_per_s),
    Kind {
        expected: true,
        ..level!("GB", |d, p| Some(d.size_bytes? * p.redundancy.copies() / 1e9), gb)
    },
    rate!("cores", |d, _| d.cores, cores),
    level!("memory GB", |d, _| Some(d.memory_bytes? / 1e9), memory_gb),
    level!("sessions", |d, _| d.sessions, sessions),
];
