//! The processes of databases and others that are requested, by role: processor, run queue, system
//! calls, storage. A process that ended keeps counting with its values at the last look.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use blockstone_base::column::{Origin, Unit};
use blockstone_sys::account::{self, Process};

use crate::roles::Role;
use crate::servers::Servers;
use crate::{Cell, Context, Probe, Roles, Row, Schema, Unmeasured};

/// The schema: one row per role.
pub const SCHEMA: Schema = Schema {
    probe: "processes",
    doc: "Processes and threads by role, as `postgres/checkpointer`: processor time, run queue, \
          system calls, storage I/O.",
    columns: &[
        Origin("/proc").level(
            "processes",
            Unit::Count,
            "Processes in this role, or threads where a process has several roles.",
        ),
        SCHEDSTAT.time("cpu_ns", "Time on a processor."),
        SCHEDSTAT.time("run_queue_ns", "Time ready to run but waiting for a processor."),
        IO.bytes("requested_read_bytes", "Bytes returned by read system calls."),
        IO.bytes("requested_write_bytes", "Bytes passed to write system calls."),
        IO.count("read_calls", "Read system calls; io_uring makes none."),
        IO.count("write_calls", "Write system calls; io_uring makes none."),
        IO.bytes("read_bytes", "Bytes that had to be fetched from storage."),
        IO.bytes(
            "write_bytes",
            "Bytes sent, or to be sent, to storage: direct writes as they are sent, buffered ones \
             as pages become dirty. A file system with large folios charges a whole folio then, \
             which may be many times what was asked.",
        ),
    ],
};

const SCHEDSTAT: Origin = Origin("/proc/PID/task/*/schedstat");
const IO: Origin = Origin("/proc/PID/task/*/io");
/// Number of counters: all columns but the first.
const COUNTERS: usize = 8;
/// Number of looks at a new process, which may still carry its parent's title, or be about to
/// execute another program.
const LOOKS: u32 = 3;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let roles = context.roles();
    Box::new(Processes {
        root: context.root.clone(),
        roles,
        servers: Servers::default(),
        seen: BTreeMap::new(),
        known: BTreeMap::new(),
        left: BTreeMap::new(),
        not_permitted: None,
    })
}

/// A process and a thread of it.
type Member = (u32, u32);

#[derive(Debug)]
struct Processes {
    root: PathBuf,
    roles: Roles,
    servers: Servers,
    /// Every process of the machine: its role, if it has one, and how often it was looked at.
    seen: BTreeMap<u32, (Option<Role>, u32)>,
    known: BTreeMap<Member, Known>,
    /// Sums, by role, of members that ended or changed their role.
    left: BTreeMap<String, Sum>,
    /// A process whose `io` this user may not read.
    not_permitted: Option<u32>,
}

/// State of a member at the last look.
#[derive(Clone, Debug)]
struct Known {
    role: String,
    sum: Sum,
    /// Its sum when it took this role, which counts for the previous role.
    before: Sum,
}

impl Known {
    fn in_role(&self) -> Sum {
        let mut sum = self.sum;
        for (sum, before) in sum.0.iter_mut().zip(self.before.0) {
            *sum = sum.map(|sum| sum - before.unwrap_or(0).min(sum));
        }
        sum
    }
}

/// Consumption of members; `None` if one of them may not be inspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum([Option<u64>; COUNTERS]);

impl Sum {
    const ZERO: Self = Self([Some(0); COUNTERS]);

    fn add(&mut self, other: &Self) {
        for (sum, part) in self.0.iter_mut().zip(other.0) {
            *sum = sum.zip(part).map(|(sum, part)| sum + part);
        }
    }

    /// Returns the greater of the previous and the current value, for a number that cannot fall: a
    /// member that ends in the middle of a look keeps its previous values.
    fn since(self, Self(before): &Self) -> Self {
        let mut sums = self;
        for (sum, before) in sums.0.iter_mut().zip(before) {
            *sum = (*sum).max(*before);
        }
        sums
    }
}

impl Processes {
    fn look(&mut self) {
        self.not_permitted = None;
        let pids: BTreeSet<u32> = account::all(&self.root).into_iter().collect();
        self.seen.retain(|pid, _| pids.contains(pid));
        let mut now = BTreeMap::new();
        let is_new = |pid: &u32| self.seen.get(pid).is_none_or(|(_, looks)| *looks < LOOKS);
        let found = |pid: u32| Some((pid, account::process(&self.root, pid)?));
        let new: BTreeMap<u32, Process> =
            pids.iter().copied().filter(is_new).filter_map(found).collect();
        self.servers.keep(&pids);
        for process in new.values() {
            self.servers.look_at(&self.root, process);
        }
        if self.roles.tell_apart(self.servers.names()) {
            // A second server has appeared: the roles of both now begin with other names.
            self.seen.values_mut().for_each(|(_, looks)| *looks = 0);
        }
        for pid in pids {
            let (role, looks) = self.seen.entry(pid).or_default();
            if *looks < LOOKS || self.roles.reported(pid, None).is_some() {
                *looks = looks.saturating_add(1);
                let process = new.get(&pid).cloned();
                let process = process.or_else(|| account::process(&self.root, pid));
                *role = process.and_then(|process| self.roles.of(&process));
            }
            if let Some(role) = role.clone() {
                self.look_at(pid, &role, &mut now);
            }
        }
        for (member, before) in std::mem::take(&mut self.known) {
            let Some(present) = now.get_mut(&member) else {
                self.left.entry(before.role.clone()).or_insert(Sum::ZERO).add(&before.in_role());
                continue;
            };
            present.sum = present.sum.since(&before.sum);
            if present.role == before.role {
                present.before = before.before;
            } else {
                let part = Known { sum: present.sum, ..before };
                self.left.entry(part.role.clone()).or_insert(Sum::ZERO).add(&part.in_role());
                present.before = present.sum;
            }
        }
        self.known = now;
    }

    /// Looks at a process thread by thread: the kernel's totals of a process include those of its
    /// children, once they are known to have ended, and exclude the time of its threads.
    fn look_at(&mut self, pid: u32, role: &Role, now: &mut BTreeMap<Member, Known>) {
        for thread in account::thread_ids(&self.root, pid) {
            let role = match role {
                Role::Process(role) => role.clone(),
                Role::Threads(above) => {
                    let name = account::thread_name(&self.root, pid, thread).unwrap_or_default();
                    self.roles.of_thread(above, pid, thread, &name)
                }
            };
            if let Some(sum) = self.sum(pid, thread) {
                now.insert((pid, thread), Known { role, sum, before: Sum::ZERO });
            }
        }
    }

    fn sum(&mut self, pid: u32, thread: u32) -> Option<Sum> {
        let account = account::account(&self.root, pid, Some(thread))?;
        let io = account.io;
        if io.is_none() {
            self.not_permitted = Some(pid);
        }
        Some(Sum([
            account.cpu_ns,
            account.run_queue_ns,
            io.map(|io| io.requested_read_bytes),
            io.map(|io| io.requested_write_bytes),
            io.map(|io| io.read_calls),
            io.map(|io| io.write_calls),
            io.map(|io| io.read_bytes),
            io.map(|io| io.write_bytes),
        ]))
    }
}

impl Probe for Processes {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        self.look();
        let left = self.left.iter().map(|(role, sum)| (role.clone(), (0, *sum)));
        let mut roles: BTreeMap<String, (u64, Sum)> = left.collect();
        for ((pid, thread), known) in &self.known {
            let (processes, total) = roles.entry(known.role.clone()).or_insert((0, Sum::ZERO));
            total.add(&known.in_role());
            let by_thread = matches!(self.seen.get(pid), Some((Some(Role::Threads(_)), _)));
            *processes += u64::from(by_thread || thread == pid);
        }
        for (object, (processes, Sum(values))) in roles {
            let cells = std::iter::once(Cell::from(processes));
            rows.push(Row { object, cells: cells.chain(values.map(Cell::from)).collect() });
        }
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let why = |pid: u32| {
            let owner = owner(&self.root, pid)
                .map_or(String::new(), |uid| format!(" of user {uid}; that user or root may"));
            Unmeasured::NotPermitted(format!("read /proc/{pid}/task/*/io{owner}"))
        };
        let columns = SCHEMA.columns.iter().filter(|column| column.source == IO.0);
        let of = |pid: u32| columns.map(|column| (column.name, why(pid))).collect();
        self.not_permitted.map_or(Vec::new(), of)
    }
}

fn owner(root: &Path, pid: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let dir = blockstone_sys::proc::under(root, format!("/proc/{pid}"));
    Some(blockstone_sys::path::look(&dir).ok()?.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_changes_its_role_takes_nothing_from_the_role_before() {
        let roles = Roles::with(vec![std::process::id()], Vec::new());
        let scope = crate::Scope::Host(roles.clone());
        let mut probe = open(&Context { root: "/".into(), scope });
        let cpu = |probe: &mut dyn Probe| -> BTreeMap<String, i64> {
            let mut rows = Vec::new();
            probe.sample(&mut rows);
            let value = |cell: &Cell| match cell {
                Cell::Value(value) => *value,
                other => panic!("{other:?}"),
            };
            rows.iter().map(|row| (row.object.clone(), value(&row.cells[1]))).collect()
        };
        let before = cpu(probe.as_mut());
        let (own, had) = before.iter().find(|(role, _)| role.contains("blockstone_probe")).unwrap();
        roles.report([((std::process::id(), None), "told".to_owned())]);
        std::hint::black_box((0..50_000_000_u64).fold(0, |sum, n| sum ^ n));
        // Titles are read again for as long as a process is new.
        let after = cpu(probe.as_mut());
        assert!(after[own] >= *had, "{after:?}");
        let later = cpu(probe.as_mut());
        assert!(later["told"] < *had + 50_000_000_000 && later[own] == after[own], "{later:?}");
    }
}
