//! Resource usage that the operating system charges to a server's processes or threads, summed by
//! role. Those that have ended keep counting with their last known values.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{EVENT, SERVER};
use blockstone_sys::account::{self, Account};
use blockstone_sys::usage;

use super::Member;

/// Reading accounts may use 1/`SHARE` of a processor. This is CPU time, not elapsed time: on a busy
/// machine the reader itself waits for a processor, which must not lower the sampling rate.
const SHARE: u32 = 50;

/// The role of the processes or threads that serve sessions.
pub const SESSION: &str = "session";

#[derive(Debug, Default)]
pub struct Processes {
    known: BTreeMap<Member, (String, Sum)>,
    ended: BTreeMap<String, Sum>,
    due: Option<Instant>,
}

/// Sums of accounts. A value that is missing in one account is missing in the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum([Option<u64>; 6]);

impl Sum {
    const ZERO: Self = Self([Some(0); 6]);

    fn of(account: &Account) -> Self {
        let io = account.io;
        Self([
            account.cpu_ns,
            account.run_queue_ns,
            io.map(|io| io.requested_read_bytes),
            io.map(|io| io.requested_write_bytes),
            io.map(|io| io.read_bytes),
            io.map(|io| io.write_bytes),
        ])
    }

    fn lacks_something(&self) -> bool {
        self.0.contains(&None)
    }

    /// Fills in missing values from `other`.
    fn or(self, Self(other): &Self) -> Self {
        let mut sums = self;
        sums.0.iter_mut().zip(other).for_each(|(sum, other)| *sum = sum.or(*other));
        sums
    }

    fn add(&mut self, other: &Self) {
        for (sum, part) in self.0.iter_mut().zip(other.0) {
            *sum = sum.zip(part).map(|(sum, part)| sum + part);
        }
    }
}

impl Processes {
    /// Returns rows of the series `server` and, for processor time and run queue, `event`.
    /// `members` is called only when a look is due. Between looks there are no rows: repeating the
    /// last ones would claim that nothing was used since.
    pub fn look(
        &mut self,
        exact: bool,
        members: impl FnOnce() -> Vec<(Member, String)>,
    ) -> Vec<Reading> {
        let started = Instant::now();
        if !exact && self.due.is_some_and(|due| started < due) {
            return Vec::new();
        }
        let before_ns = usage::thread_cpu_ns();
        self.refresh(members());
        let readings = self.readings();
        let took = Duration::from_nanos(usage::thread_cpu_ns() - before_ns);
        self.due = Some(started + took * SHARE);
        readings
    }

    /// Returns the bytes that read system calls of `role` returned up to the last look; `None` if
    /// unknown.
    pub fn requested_read_bytes(&self, role: &str) -> Option<u64> {
        let known = self.known.values().filter(|(known, _)| known == role).map(|(_, sum)| sum);
        let ended = self.ended.get(role);
        known.chain(ended).map(|Sum(values)| values[2]).sum()
    }

    fn refresh(&mut self, members: Vec<(Member, String)>) {
        let mut now = BTreeMap::new();
        let look = |member: Member| account::account(Path::new("/"), member.pid, member.thread);
        for (member, role) in members {
            let Some(account) = look(member) else { continue };
            let mut sum = Sum::of(&account);
            if sum.lacks_something() {
                // The process may have ended during the look; its earlier values then count.
                match (self.known.get(&member), look(member)) {
                    (Some((_, before)), _) => sum = sum.or(before),
                    (None, None) => continue,
                    (None, Some(_)) => {}
                }
            }
            now.insert(member, (role, sum));
        }
        for (member, (role, sum)) in std::mem::take(&mut self.known) {
            if !now.contains_key(&member) {
                self.ended.entry(role).or_insert(Sum::ZERO).add(&sum);
            }
        }
        self.known = now;
    }

    fn readings(&self) -> Vec<Reading> {
        let mut roles = self.ended.clone();
        for (role, sum) in self.known.values() {
            roles.entry(role.clone()).or_insert(Sum::ZERO).add(sum);
        }
        let mut readings = Vec::new();
        for (role, Sum(values)) in roles {
            for (event, ns) in [("CPU", values[0]), ("run queue", values[1])] {
                readings.push(Reading {
                    probe: EVENT.probe,
                    object: format!("{role}/{event}"),
                    cells: vec![Cell::Value(0), Cell::from(ns)],
                });
            }
            let cells = values.map(Cell::from).into();
            readings.push(Reading { probe: SERVER.probe, object: role, cells });
        }
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_a_look_does_not_make_looks_rare_and_between_looks_there_are_no_rows() {
        let member = Member { pid: std::process::id(), thread: None };
        let mut processes = Processes::default();
        let mut rows = |wait_ms| {
            let looked = processes.look(false, || {
                std::thread::sleep(Duration::from_millis(wait_ms));
                vec![(member, "checkpointer".to_owned())]
            });
            looked.len()
        };
        let all = rows(500);
        assert!(all > 0);
        // Much longer than 50 times the processor time for reading one process.
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(rows(0), all);
        assert_eq!(rows(0), 0, "the next look was not due");
    }

    #[test]
    fn a_process_that_ended_still_counts() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "n=0; while [ $n -lt 50000 ]; do n=$((n+1)); done; read x"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let member = Member { pid: child.id(), thread: None };
        let mut processes = Processes::default();
        std::thread::sleep(Duration::from_millis(300));
        let cpu = |readings: Vec<Reading>| {
            let row = readings.into_iter().find(|row| row.probe == SERVER.probe).unwrap();
            assert_eq!(row.object, "checkpointer");
            match row.cells[0] {
                Cell::Value(value) => value,
                ref other => panic!("{other:?}"),
            }
        };
        let before = cpu(processes.look(true, || vec![(member, "checkpointer".to_owned())]));
        assert!(before > 0);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(cpu(processes.look(true, Vec::new)), before);
    }
}
