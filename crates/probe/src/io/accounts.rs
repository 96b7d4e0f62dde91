//! Bytes by process as the kernel charges them, where I/O is not counted by file.
//!
//! The charge of a process includes that of its children once it has waited for them. A child that
//! was seen keeps its own bytes, which its parent then does not get a second time; one that came
//! and went between two readings counts for its parent.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use blockstone_sys::account;

use super::process_columns::SCHEMA;
use crate::{Cell, Roles, Row, Unmeasured};

/// Readings for which a process that ended keeps its row.
const READINGS_KEPT: u64 = 600;
const UNKNOWN: [&str; 5] = ["disk", "file", "read_ios", "write_ios", "write_back_bytes"];

#[derive(Debug)]
pub struct Accounts {
    root: PathBuf,
    roles: Roles,
    /// Why I/O is not counted by file.
    why: Unmeasured,
    known: BTreeMap<u32, Known>,
    ended: Vec<(u64, Known)>,
    reading: u64,
    /// Whether some processes may not be inspected.
    hides: bool,
}

#[derive(Clone, Debug)]
struct Known {
    pid: u32,
    parent: u32,
    role: String,
    process: String,
    /// Charged to it and to the children that it waited for: bytes read and bytes written.
    charged: [u64; 2],
    /// The same, two readings ago.
    before: [[u64; 2]; 2],
    /// The part of its charge that children keep.
    of_children: [u64; 2],
}

impl Accounts {
    pub fn new(root: PathBuf, roles: Roles, why: Unmeasured) -> Self {
        let (known, ended) = (BTreeMap::new(), Vec::new());
        Self { root, roles, why, known, ended, reading: 0, hides: false }
    }

    pub fn sample(&mut self, rows: &mut Vec<Row>) {
        self.reading += 1;
        self.hides = false;
        let pids: BTreeSet<u32> = account::all(&self.root).into_iter().collect();
        let mut gone: Vec<u32> =
            self.known.keys().copied().filter(|pid| !pids.contains(pid)).collect();
        for pid in pids {
            match account::account(&self.root, pid, None).map(|account| account.io) {
                Some(Some(io)) => self.charge(pid, [io.read_bytes, io.write_bytes]),
                Some(None) => self.hides = true,
                None => gone.push(pid),
            }
        }
        for pid in gone {
            self.end(pid);
        }
        let oldest = self.reading.saturating_sub(READINGS_KEPT);
        self.ended.retain(|(reading, _)| *reading >= oldest);
        let is_reused = |known: &&Known| self.known.contains_key(&known.pid);
        let ended = self.ended.iter().map(|(_, known)| known).filter(|known| !is_reused(known));
        rows.extend(self.known.values().chain(ended).filter_map(Known::row));
    }

    fn charge(&mut self, pid: u32, charged: [u64; 2]) {
        // A number is used again for another process, whose charge begins at zero.
        let is_other = |known: &Known| known.charged.iter().zip(charged).any(|(was, is)| is < *was);
        if self.known.get(&pid).is_some_and(is_other) {
            self.end(pid);
        }
        if let Some(known) = self.known.get_mut(&pid) {
            known.before = [known.before[1], known.charged];
            known.charged = charged;
            return;
        }
        if charged == [0, 0] {
            return;
        }
        let process = account::thread_name(&self.root, pid, pid).unwrap_or_default();
        let role = self.roles.of_any(&self.root, pid, pid, &process);
        let parent = account::process(&self.root, pid).map_or(0, |process| process.parent);
        // Bytes charged before the first reading are no news.
        let before = if self.reading <= 1 { [charged; 2] } else { [[0; 2]; 2] };
        let of_children = [0; 2];
        let known = Known { pid, parent, role, process, charged, before, of_children };
        self.known.insert(pid, known);
    }

    fn end(&mut self, pid: u32) {
        let Some(ended) = self.known.remove(&pid) else { return };
        if let Some(parent) = self.known.get_mut(&ended.parent) {
            for index in 0..2 {
                let jump = parent.charged[index] - parent.before[0][index];
                parent.of_children[index] += ended.charged[index].min(jump);
            }
        }
        self.ended.push((self.reading, ended));
    }

    pub fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let mut missing: Vec<_> = UNKNOWN.map(|column| (column, self.why.clone())).into();
        if self.hides {
            let why = "processes of other users are not in the table; root sees them";
            let why = Unmeasured::NotPermitted(why.to_owned());
            missing.extend(["read_bytes", "write_bytes"].map(|column| (column, why.clone())));
        }
        missing
    }
}

impl Known {
    fn own(&self, index: usize) -> u64 {
        self.charged[index].saturating_sub(self.of_children[index])
    }

    fn row(&self) -> Option<Row> {
        let [read_bytes, write_bytes] = [self.own(0), self.own(1)];
        if read_bytes == 0 && write_bytes == 0 {
            return None;
        }
        let text = |text: &str| Cell::Text(text.to_owned());
        let pid = self.pid.to_string();
        let cells = SCHEMA.columns.iter().map(|column| match column.name {
            "role" => text(&self.role),
            "pid" => text(&pid),
            "process" => text(&self.process),
            "thread" => text(""),
            "read_bytes" => Cell::from(read_bytes),
            "write_bytes" => Cell::from(write_bytes),
            _ => Cell::Unmeasured,
        });
        let object = format!("{} | {pid} | {}", self.role, self.process);
        Some(Row { object, cells: cells.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(pid: u32, parent: u32, charged: u64) -> Known {
        Known {
            pid,
            parent,
            role: "sh".to_owned(),
            process: "sh".to_owned(),
            charged: [0, charged],
            before: [[0; 2]; 2],
            of_children: [0; 2],
        }
    }

    #[test]
    fn bytes_of_a_child_that_was_seen_stay_with_the_child() {
        let why = Unmeasured::Off("a test".to_owned());
        let mut accounts = Accounts::new("/nowhere".into(), Roles::default(), why);
        accounts.known.insert(7, known(7, 1, 10));
        accounts.known.insert(8, known(8, 7, 500));
        // It waited for the child, and for another one that was never seen.
        accounts.charge(7, [0, 10]);
        accounts.charge(7, [0, 530]);
        accounts.end(8);
        assert_eq!(accounts.known[&7].own(1), 30);
        assert_eq!(accounts.ended[0].1.own(1), 500);
        // It has not waited for this one: nothing is taken from what it wrote.
        accounts.known.insert(9, known(9, 7, 400));
        accounts.charge(7, [0, 530]);
        accounts.charge(7, [0, 530]);
        accounts.end(9);
        assert_eq!(accounts.known[&7].own(1), 30);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let why = Unmeasured::Off("a test".to_owned());
        let mut accounts = Accounts::new("/nowhere".into(), Roles::default(), why);
        accounts.charge(7, [0, 100]);
        accounts.charge(7, [0, 40]);
        assert_eq!((accounts.known[&7].own(1), accounts.ended[0].1.own(1)), (40, 100));
        let rows = |accounts: &mut Accounts| {
            let mut rows = Vec::new();
            accounts.sample(&mut rows);
            rows.len()
        };
        assert_eq!(rows(&mut accounts), 2, "both ended");
    }
}
