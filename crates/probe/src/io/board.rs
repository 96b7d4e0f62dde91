//! Bytes moved by disk, role, process and file, from the same sums in the kernel as the probe
//! `kernel_io`. Pages that a kernel thread writes back are charged to the processes that made them
//! dirty, as far as their system calls are counted.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blockstone_sys::account;
use blockstone_sys::bpf::io::{IoKey, Layer, Operation};
use blockstone_sys::bpf::{Device, Subject};

use super::dirt::Dirt;
use super::file_type::FileType;
use super::names::{Label, Names};
use crate::{Cell, Row};

/// Maximum number of rows; I/O beyond that counts as `other files` of its process or, if there are
/// too many processes as well, of its role.
const OBJECTS_MAX: usize = 1000;
/// Rows that remain for these sums.
const OTHERS_MAX: usize = 200;
/// Readings after which an idle object makes room for any other, and after which it is dropped.
const READINGS_TO_STAY: u64 = 3;
const READINGS_KEPT: u64 = 600;
const OWNERS_MAX: usize = 8192;

const OTHER_FILES: &str = "other files";
const OTHER_PROCESSES: &str = "other processes";
/// Name of what the kernel's workers write for processes that are not known.
const WRITE_BACK: &str = "kernel write-back";
const WORKER: &str = "kernel worker";
const KERNEL: &str = "kernel";
const WORKERS: &str = "kworker";
/// End of the role of a thread that is a session of a database.
const SESSION: &str = "/session";

/// A process under one role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub role: Arc<str>,
    /// Empty for the kernel's workers.
    pub pid: String,
    pub process: String,
    /// The thread of a session; otherwise empty.
    pub thread: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    disk: Arc<str>,
    owner: Arc<Owner>,
    file: Arc<str>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    read_bytes: u64,
    write_bytes: u64,
    read_ios: u64,
    write_ios: u64,
    write_back_bytes: u64,
}

#[derive(Debug)]
struct Line {
    sums: Moved,
    /// Reading at which it last moved.
    reading: u64,
}

/// Growth of one of the kernel's sums, with what is known of its thread.
#[derive(Clone, Debug)]
pub(super) struct Growth {
    pub key: IoKey,
    pub ios: u64,
    pub bytes: u64,
    /// Name of the thread.
    pub comm: String,
}

/// The sums by process and file, which grow with every reading of the kernel's sums.
#[derive(Debug)]
pub(super) struct Board {
    root: PathBuf,
    /// I/Os and bytes of each key at the last reading.
    seen: HashMap<IoKey, (u64, u64)>,
    /// By process, thread of a session, role, and whether it writes.
    owners: HashMap<(u32, u32, Arc<str>, bool), Arc<Owner>>,
    disks: HashMap<Device, Arc<str>>,
    lines: BTreeMap<Object, Line>,
    dirt: Dirt<(Subject, Device), Arc<Owner>>,
    reading: u64,
}

impl Board {
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            seen: HashMap::new(),
            owners: HashMap::new(),
            disks: HashMap::new(),
            lines: BTreeMap::new(),
            dirt: Dirt::new(),
            reading: 0,
        }
    }

    pub fn begin(&mut self) {
        self.reading += 1;
        let oldest = self.reading.saturating_sub(READINGS_KEPT);
        self.lines.retain(|_, line| line.reading >= oldest);
    }

    /// Returns how far a sum has grown since it was last seen; `None` if it does not matter here
    /// or has not grown.
    pub fn grown(&mut self, key: &IoKey, ios: u64, bytes: u64) -> Option<(u64, u64)> {
        match (key.layer(), key.operation()) {
            (_, Operation::Write) | (Layer::Block, Operation::Read) => {}
            _ => return None,
        }
        let before = self.seen.insert(*key, (ios, bytes)).unwrap_or_default();
        let by = (ios.saturating_sub(before.0), bytes.saturating_sub(before.1));
        (by != (0, 0)).then_some(by)
    }

    /// Forgets a sum that was removed from the kernel's table.
    pub fn forget(&mut self, key: &IoKey) {
        self.seen.remove(key);
    }

    /// Adds growth, with the role and the label of each, all of one reading.
    pub fn add(&mut self, all: Vec<(Growth, Arc<str>, Arc<Label>)>, names: &mut Names) {
        // Calls that made pages dirty count before the requests that wrote them.
        let (calls, requests): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(growth, ..)| growth.key.layer() == Layer::SystemCall);
        for (growth, role, _) in calls {
            let owner = self.owner(&growth, &role);
            let file = (growth.key.subject(), growth.key.device());
            self.dirt.add(file, &owner, growth.bytes, self.reading);
        }
        for (growth, role, label) in requests {
            self.add_request(&growth, &role, &label, names);
        }
    }

    fn add_request(&mut self, growth: &Growth, role: &Arc<str>, label: &Label, names: &mut Names) {
        let Growth { key, ios, bytes, .. } = growth;
        let owner = self.owner(growth, role);
        let device = key.device();
        let disk = self.disks.entry(device).or_insert_with(|| names.disk(device).into());
        let disk = Arc::clone(disk);
        let file: Arc<str> = match label.file_type {
            FileType::Metadata | FileType::Swap => label.file_type.name().into(),
            _ => label.file.as_str().into(),
        };
        let object = |owner| Object { disk: Arc::clone(&disk), owner, file: Arc::clone(&file) };
        if key.operation() == Operation::Read {
            let moved = Moved { read_bytes: *bytes, read_ios: *ios, ..Moved::default() };
            return self.move_by(object(owner), moved);
        }
        let moved = Moved { write_bytes: *bytes, write_ios: *ios, ..Moved::default() };
        let subject = (key.subject(), device);
        if !is_kernel(&owner) {
            self.dirt.written_by(&subject, &owner, *bytes);
            return self.move_by(object(owner), moved);
        }
        let charges = self.dirt.charge(&subject, *ios, *bytes);
        if charges.is_empty() {
            return self.move_by(object(owner), moved);
        }
        for charge in charges {
            let (write_bytes, write_ios) = (charge.bytes, charge.ios);
            let write_back_bytes = write_bytes;
            let part = Moved { write_bytes, write_ios, write_back_bytes, ..Moved::default() };
            self.move_by(object(charge.owner), part);
        }
    }

    fn move_by(&mut self, object: Object, by: Moved) {
        let object = self.placed(object, by.read_bytes + by.write_bytes);
        let line = self.lines.entry(object);
        let line = line.or_insert(Line { sums: Moved::default(), reading: 0 });
        line.reading = self.reading;
        let sums = &mut line.sums;
        sums.read_bytes += by.read_bytes;
        sums.write_bytes += by.write_bytes;
        sums.read_ios += by.read_ios;
        sums.write_ios += by.write_ios;
        sums.write_back_bytes += by.write_back_bytes;
    }

    /// Returns the object itself if there is room for it, otherwise the sum in which it counts. An
    /// idle object makes room, or one that moved less: the rows of earlier readings have its bytes.
    fn placed(&mut self, object: Object, bytes: u64) -> Object {
        if self.lines.len() < OBJECTS_MAX || self.lines.contains_key(&object) {
            return object;
        }
        let idle = self.reading.saturating_sub(READINGS_TO_STAY);
        let reported = self.lines.iter().filter(|(_, line)| line.reading < self.reading);
        let less = |line: &Line| line.sums.read_bytes + line.sums.write_bytes < bytes;
        let spare = reported.filter(|(_, line)| line.reading < idle || less(line));
        let spare = spare.min_by_key(|(_, line)| line.sums.read_bytes + line.sums.write_bytes);
        if let Some(spare) = spare.map(|(object, _)| object.clone()) {
            self.lines.remove(&spare);
            return object;
        }
        let others = Object { file: OTHER_FILES.into(), ..object };
        if self.lines.len() < OBJECTS_MAX + OTHERS_MAX || self.lines.contains_key(&others) {
            return others;
        }
        let process = OTHER_PROCESSES.to_owned();
        let [pid, thread] = [String::new(), String::new()];
        let owner = Owner { role: Arc::clone(&others.owner.role), pid, process, thread };
        Object { owner: Arc::new(owner), ..others }
    }

    fn owner(&mut self, growth: &Growth, role: &Arc<str>) -> Arc<Owner> {
        let tgid = growth.key.tgid;
        let writes = growth.key.operation() == Operation::Write;
        let is_session = role.ends_with(SESSION) && growth.key.tid != tgid;
        let thread = if is_session { growth.key.tid } else { 0 };
        let place = (tgid, thread, Arc::clone(role), writes);
        if let Some(known) = self.owners.get(&place) {
            return Arc::clone(known);
        }
        if self.owners.len() >= OWNERS_MAX {
            self.owners.clear();
        }
        let comm = &growth.comm;
        let owner = if comm.starts_with(WORKERS) {
            let process = if writes { WRITE_BACK } else { WORKER };
            let [pid, thread] = [String::new(), String::new()];
            Owner { role: process.into(), pid, process: process.to_owned(), thread }
        } else {
            let name = account::thread_name(&self.root, tgid, tgid);
            let process = name.unwrap_or_else(|| comm.clone());
            let thread = if is_session { thread.to_string() } else { String::new() };
            Owner { role: Arc::clone(role), pid: tgid.to_string(), process, thread }
        };
        let owner = Arc::new(owner);
        self.owners.insert(place, Arc::clone(&owner));
        owner
    }

    pub fn rows(&self, rows: &mut Vec<Row>) {
        rows.extend(self.lines.iter().map(|(object, line)| {
            let Object { disk, owner, file } = object;
            let Owner { role, pid, process, thread } = &**owner;
            let states: [&str; 6] = [disk, role, pid, process, thread, file];
            let Moved { read_bytes, write_bytes, read_ios, write_ios, write_back_bytes } =
                line.sums;
            let counters = [read_bytes, write_bytes, read_ios, write_ios, write_back_bytes];
            let cells = states.map(|state| Cell::Text(state.to_owned())).into_iter();
            let cells = cells.chain(counters.map(Cell::from)).collect();
            Row { object: states.join(" | "), cells }
        }));
    }
}

/// Whether this is a kernel thread, which writes on behalf of others.
fn is_kernel(owner: &Owner) -> bool {
    [KERNEL, WRITE_BACK].contains(&&*owner.role)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(board: &mut Board, pid: usize, write_bytes: u64) {
        let [process, thread] = ["p", ""].map(str::to_owned);
        let owner = Arc::new(Owner { role: "r".into(), pid: pid.to_string(), process, thread });
        let object = Object { disk: "vda".into(), owner, file: "f".into() };
        board.move_by(object, Moved { write_bytes, ..Moved::default() });
    }

    fn pids(board: &Board) -> Vec<&str> {
        board.lines.keys().map(|object| object.owner.pid.as_str()).collect()
    }

    #[test]
    fn who_writes_much_takes_the_row_of_one_that_wrote_little_once_that_was_reported() {
        let mut board = Board::new(Path::new("/"));
        board.begin();
        (0..OBJECTS_MAX).for_each(|pid| moved(&mut board, pid, 100 + pid as u64));
        moved(&mut board, 5_000, 1 << 20);
        let files = board.lines.keys().filter(|object| &*object.file == OTHER_FILES).count();
        assert_eq!(files, 1, "no row was reported yet");
        board.begin();
        moved(&mut board, 6_000, 1 << 20);
        moved(&mut board, 7_000, 1);
        let pids = pids(&board);
        assert!(pids.contains(&"6000") && !pids.contains(&"0"), "{pids:?}");
        let of_little = board.lines.keys().find(|object| object.owner.pid == "7000").unwrap();
        assert_eq!(&*of_little.file, OTHER_FILES, "it moved less than all others");
    }
}
