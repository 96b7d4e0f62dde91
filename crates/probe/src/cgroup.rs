//! Control groups of the watched processes and of this one: processor time, throttling, memory,
//! I/O.

use std::collections::BTreeMap;
use std::path::PathBuf;

use blockstone_base::column::{Origin, Unit};
use blockstone_sys::account;
use blockstone_sys::cgroup::{GroupUsage, Groups};

use crate::rising::Rising;
use crate::{Cell, Context, Probe, Roles, Row, Schema, Unmeasured};

/// The schema: one row per group.
pub const SCHEMA: Schema = Schema {
    probe: "cgroup",
    doc: "The control groups of the watched processes and of this one.",
    columns: &[
        CPU.time("cpu_ns", "Processor time."),
        CPU.time("throttled_ns", "Time during which the group was throttled by its CPU quota."),
        CPU.count("throttled_periods", "Quota periods in which it was throttled."),
        Origin("memory.current").level(
            "memory_bytes",
            Unit::Bytes,
            "Memory in use, page cache included.",
        ),
        Origin("memory.max").level(
            "memory_limit_bytes",
            Unit::Bytes,
            "Its memory limit; empty without one.",
        ),
        IO.bytes("read_bytes", "Bytes read from devices."),
        IO.bytes("write_bytes", "Bytes written to devices."),
        IO.count("read_ios", "Reads from devices."),
        IO.count("write_ios", "Writes to devices."),
    ],
};

const CPU: Origin = Origin("cpu.stat, or cpu.stat and cpuacct.usage of version 1");
const IO: Origin = Origin("io.stat, or blkio.throttle.* of version 1");
const OFF: &str = "the controller is off here";
/// Indexes of the columns that are counters.
const COUNTERS: [usize; 7] = [0, 1, 2, 5, 6, 7, 8];
/// Number of ticks after which membership is looked up again: processes seldom move.
const LOOK_EVERY: u32 = 10;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let roles = context.roles();
    let root = context.root.clone();
    Box::new(Cgroup { root, roles, groups: BTreeMap::new(), ticks: 0, lacking: Vec::new() })
}

#[derive(Debug)]
struct Cgroup {
    root: PathBuf,
    roles: Roles,
    groups: BTreeMap<String, Group>,
    ticks: u32,
    /// Columns that no group has.
    lacking: Vec<usize>,
}

#[derive(Debug)]
struct Group {
    groups: Groups,
    counters: [Rising; SCHEMA.columns.len()],
}

impl Cgroup {
    fn look(&mut self) {
        let members = account::all(&self.root).into_iter().filter(|&pid| {
            let process = account::process(&self.root, pid);
            process.is_some_and(|process| self.roles.of(&process).is_some())
        });
        let of_member = members.map(|pid| Groups::of_process(&self.root, pid));
        let mut found: BTreeMap<String, Groups> =
            of_member.map(|groups| (groups.name().to_owned(), groups)).collect();
        let own = Groups::read(&self.root);
        found.insert(own.name().to_owned(), own);
        self.groups.retain(|name, _| found.contains_key(name));
        for (name, groups) in found {
            let group = || Group { groups, counters: Default::default() };
            self.groups.entry(name).or_insert_with(group);
        }
    }
}

impl Probe for Cgroup {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        if self.ticks.is_multiple_of(LOOK_EVERY) {
            self.look();
        }
        self.ticks = self.ticks.wrapping_add(1);
        self.lacking = (0..SCHEMA.columns.len()).collect();
        for (name, group) in &mut self.groups {
            let mut values = values(&group.groups.usage());
            for index in COUNTERS {
                values[index] = values[index].map(|raw| group.counters[index].at(raw));
            }
            self.lacking.retain(|&index| values[index].is_none());
            rows.push(Row { object: name.clone(), cells: values.map(Cell::from).into() });
        }
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let why = |index: &usize| {
            let column = &SCHEMA.columns[*index];
            let off = if column.name == "memory_limit_bytes" { "no limit is set" } else { OFF };
            (column.name, Unmeasured::Off(format!("no group has {}: {off}", column.source)))
        };
        self.lacking.iter().map(why).collect()
    }
}

fn values(usage: &GroupUsage) -> [Option<u64>; SCHEMA.columns.len()] {
    [
        usage.cpu_ns,
        usage.throttled_ns,
        usage.throttled_periods,
        usage.memory_bytes,
        usage.memory_limit_bytes,
        usage.read_bytes,
        usage.write_bytes,
        usage.read_ios,
        usage.write_ios,
    ]
}
