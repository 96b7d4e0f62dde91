//! How much of the page cache belongs to the files that watched processes hold open, by server and
//! by file. docs/cached-files.md says what exactly is counted.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use blockstone_base::column::{Origin, Unit};
use blockstone_sys::cached::{self, Cached, Look};
use blockstone_sys::descriptors::{self, Descriptor};
use blockstone_sys::{account, path, proc};

use crate::io::file_type;
use crate::roles::Role;
use crate::source::all_unmeasured;
use crate::{Cell, Context, Probe, Roles, Row, Schema, Scope, Unmeasured};

/// The schema: one row for each server and for each of its files with the most cached pages.
pub const SCHEMA: Schema = Schema {
    probe: "cached_files",
    doc: "Page cache of the files that watched processes hold open, by server and by file. \
          Examining all files takes several ticks; the rows are from the last complete pass.",
    columns: &[
        FILES.state("kind", "`server`, with the sums of all its files, or `file`."),
        FILES.state("server", "The server or group whose processes hold the file open."),
        FILES.state("file", "The path of the file, as its processes see it."),
        FILES.state("file_type", "`data`, `redo`, `temp`, `control` or `other`."),
        Origin("/proc/PID/fdinfo").state(
            "open_mode",
            "`direct` if every descriptor bypasses the page cache (O_DIRECT), `buffered` if none \
             does, `both`.",
        ),
        FILES.level("files", Unit::Count, "Files that were looked at."),
        FILES.level(
            "unseen_files",
            Unit::Count,
            "Files that this user may not open, or that take too long.",
        ),
        FILES.level("size_bytes", Unit::Bytes, "Size of the files."),
        FILES.level(
            "buffered_size_bytes",
            Unit::Bytes,
            "Size of the files that at least one descriptor opens without O_DIRECT.",
        ),
        CACHE.level("cached_bytes", Unit::Bytes, "Bytes of them in the page cache."),
        CACHE.level(
            "dirty_bytes",
            Unit::Bytes,
            "Those of them that are to be written, or are being written.",
        ),
    ],
};

const FILES: Origin = Origin("/proc/PID/fd");
const CACHE: Origin = Origin("cachestat(2)");

/// How often to scan all files, and for how long at each tick.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Time from the start of one scan of all files to the start of the next.
    period: Duration,
    tick: Duration,
}

const OF_HOST: Pace = Pace { period: Duration::from_secs(10), tick: Duration::from_millis(10) };
/// Pace during a load, with ten ticks per second: windows are shorter, and the time is taken from
/// the load.
const BESIDE_LOAD: Pace = Pace { period: Duration::from_secs(2), tick: Duration::from_millis(2) };
/// Maximum time that one file may take.
const FILE: Duration = Duration::from_millis(10);
/// Maximum number of distinct files; files beyond it count as unseen.
const FILES_MAX: usize = 20_000;
/// Maximum number of files per server that have a row.
const ROWS_MAX: usize = 40;
const ENOSYS: i32 = 38;

/// Files of one database: a handle that stays with whoever opened the probe.
#[derive(Clone, Debug, Default)]
pub struct DatabaseFiles(Arc<OnceLock<Database>>);

#[derive(Debug)]
struct Database {
    name: String,
    /// Prefixes of the paths of its files.
    beginnings: Vec<String>,
}

impl DatabaseFiles {
    /// From now on, scans the files in these directories, and those whose paths begin with one of
    /// these files, as files of the server `name`.
    pub fn set(&self, name: &str, paths: &[PathBuf]) {
        let beginning = |path: &PathBuf| {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            let path = if path.is_dir() { path.join("") } else { path };
            path.to_string_lossy().into_owned()
        };
        let beginnings = paths.iter().map(beginning).collect();
        // A run has one database, which is opened once.
        let _ = self.0.set(Database { name: name.to_owned(), beginnings });
    }
}

pub fn open(context: &Context) -> Box<dyn Probe> {
    Box::new(CachedFiles::new(context, OF_HOST, None))
}

/// Opens the probe for the files of one database on this machine only, in its server or in this
/// process, during a load on it.
pub fn open_beside(files: &DatabaseFiles) -> Box<dyn Probe> {
    let scope = Scope::Host(Roles::with(vec![std::process::id()], Vec::new()));
    let context = Context { root: PathBuf::from("/"), scope };
    Box::new(CachedFiles::new(&context, BESIDE_LOAD, Some(files.clone())))
}

#[derive(Debug)]
struct CachedFiles {
    root: PathBuf,
    roles: Roles,
    pace: Pace,
    /// Files to scan; `None` means all.
    only: Option<DatabaseFiles>,
    /// When the current scan of all files began, or the last one.
    started: Option<Instant>,
    /// Processes still to be scanned, with the server that each belongs to.
    queue: VecDeque<(u32, String)>,
    found: HashMap<Identity, Found>,
    unseen: BTreeMap<String, HashSet<Identity>>,
    /// Rows of the last complete scan.
    rows: Vec<Row>,
    /// Reason why some files were not scanned.
    denied: Option<Unmeasured>,
    /// Reason why nothing can be measured.
    why: Option<Unmeasured>,
}

/// Device and inode.
type Identity = (u64, u64);

#[derive(Debug)]
struct Found {
    server: String,
    path: String,
    size_bytes: u64,
    cached: Cached,
    is_direct: bool,
    is_buffered: bool,
}

impl Probe for CachedFiles {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let now = Instant::now();
        let is_due = self.started.is_none_or(|started| now >= started + self.pace.period);
        if self.queue.is_empty() && is_due && !self.waits() {
            self.begin(now);
        }
        let until = now + self.pace.tick;
        while Instant::now() < until {
            let Some((pid, server)) = self.queue.pop_front() else { break };
            self.look_at(pid, &server);
            if self.queue.is_empty() {
                self.rows = self.finished();
                // If anything was seen, the rest counts as unseen.
                self.why = self.denied.clone().filter(|_| self.rows.is_empty());
            }
        }
        rows.extend(self.rows.iter().cloned());
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        if self.waits() {
            let why = Unmeasured::Off("no database of this machine was opened".to_owned());
            return all_unmeasured(&SCHEMA, &why);
        }
        self.why.as_ref().map_or(Vec::new(), |why| all_unmeasured(&SCHEMA, why))
    }
}

impl CachedFiles {
    fn new(context: &Context, pace: Pace, only: Option<DatabaseFiles>) -> Self {
        Self {
            root: context.root.clone(),
            roles: context.roles(),
            pace,
            only,
            started: None,
            queue: VecDeque::new(),
            found: HashMap::new(),
            unseen: BTreeMap::new(),
            rows: Vec::new(),
            denied: None,
            why: None,
        }
    }

    /// The only database to scan, once it is open.
    fn database(&self) -> Option<&Database> {
        self.only.as_ref()?.0.get()
    }

    fn waits(&self) -> bool {
        self.only.is_some() && self.database().is_none_or(|it| it.beginnings.is_empty())
    }

    /// Whether the file at this path should be scanned.
    fn is_meant(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.database()
            .is_none_or(|only| only.beginnings.iter().any(|begin| path.starts_with(begin)))
    }

    fn begin(&mut self, now: Instant) {
        self.started = Some(now);
        self.found.clear();
        self.unseen.clear();
        self.denied = None;
        let of = |pid: u32| {
            let process = account::process(&self.root, pid)?;
            let (Role::Process(role) | Role::Threads(role)) = self.roles.of(&process)?;
            let server = role.split('/').next().unwrap_or_default();
            Some((pid, self.database().map_or(server, |only| &only.name).to_owned()))
        };
        self.queue = account::all(&self.root).into_iter().filter_map(of).collect();
        // Files that this process has open are scanned here, and not opened through another
        // process.
        let own = std::process::id();
        self.queue.make_contiguous().sort_by_key(|(pid, _)| *pid != own);
        if self.queue.is_empty() {
            self.rows.clear();
        }
    }

    /// Scans those files of a process that no process before had open. Once a process is reached,
    /// all its files are scanned; a single file may take no longer than [`FILE`].
    fn look_at(&mut self, pid: u32, server: &str) {
        let descriptors = match descriptors::of(&self.root, pid) {
            Ok(descriptors) => descriptors,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = format!("read /proc/{pid}/fd: {error}; its user or root may");
                self.denied = Some(Unmeasured::NotPermitted(why));
                return;
            }
            // The process has ended.
            Err(_) => return,
        };
        let mounts = descriptors::local_mounts(&self.root, pid);
        for Descriptor { path, mount, flags } in descriptors {
            let name = proc::link_target(&path).unwrap_or_default();
            if !self.is_meant(&name) {
                continue;
            }
            if !mount.is_some_and(|mount| mounts.contains(&mount)) {
                continue;
            }
            let is_direct = flags.is_direct();
            let Ok(found) = path::look(&path) else { continue };
            if !found.is_file() || found.len() == 0 {
                continue;
            }
            let identity = (found.dev(), found.ino());
            if let Some(known) = self.found.get_mut(&identity) {
                known.is_direct |= is_direct;
                known.is_buffered |= !is_direct;
                continue;
            }
            if self.unseen.get(server).is_some_and(|unseen| unseen.contains(&identity)) {
                continue;
            }
            let look = if self.found.len() < FILES_MAX {
                look(pid, &path, &found)
            } else {
                Ok(Look::Unfinished)
            };
            match look {
                Ok(Look::Cached(cached)) => {
                    let path = name.to_string_lossy().into_owned();
                    let (server, size_bytes) = (server.to_owned(), found.len());
                    let is_buffered = !is_direct;
                    let found = Found { server, path, size_bytes, cached, is_direct, is_buffered };
                    self.found.insert(identity, found);
                }
                Ok(Look::InMemory) => {}
                Err(error) if error.raw_os_error() == Some(ENOSYS) => {
                    let why = "no cachestat(2): Linux 6.5 or later has it".to_owned();
                    self.denied = Some(Unmeasured::NotInVersion(why));
                    return;
                }
                Ok(Look::Unfinished) | Err(_) => {
                    self.unseen.entry(server.to_owned()).or_default().insert(identity);
                }
            }
        }
    }

    fn finished(&self) -> Vec<Row> {
        let mut servers: BTreeMap<&str, Vec<&Found>> = BTreeMap::new();
        for found in self.found.values() {
            servers.entry(&found.server).or_default().push(found);
        }
        for server in self.unseen.keys() {
            servers.entry(server).or_default();
        }
        let mut rows = Vec::new();
        for (server, mut files) in servers {
            let unseen = self.unseen.get(server).map_or(0, HashSet::len);
            rows.push(row(("server", server, None), &files, unseen));
            files.sort_by(|a, b| {
                let by_size = |found: &Found| (found.cached.cached_bytes, found.size_bytes);
                by_size(b).cmp(&by_size(a)).then_with(|| a.path.cmp(&b.path))
            });
            files.truncate(ROWS_MAX);
            rows.extend(files.iter().map(|file| row(("file", server, Some(file)), &[*file], 0)));
        }
        rows
    }
}

/// Determines how much of a file is in the page cache; a process has it open at this path. A file
/// of this process is not opened: closing it would drop the locks of a database in this process.
fn look(pid: u32, path: &Path, found: &Metadata) -> io::Result<Look> {
    let until = Instant::now() + FILE;
    let name = path.file_name().and_then(OsStr::to_str);
    let own = name.and_then(|name| name.parse().ok()).filter(|_| pid == std::process::id());
    let Some(number) = own else { return cached::look(path, found.len(), until) };
    let look = cached::look_at_own(number, found.len(), until)?;
    let now = path::look(path)?;
    if (now.dev(), now.ino()) == (found.dev(), found.ino()) {
        Ok(look)
    } else {
        Err(io::Error::other("another file has its number"))
    }
}

fn row((kind, server, file): (&str, &str, Option<&Found>), files: &[&Found], unseen: usize) -> Row {
    let sum = |of: fn(&Found) -> u64| files.iter().map(|file| of(file)).sum::<u64>();
    let mode = match (
        files.iter().any(|file| file.is_direct),
        files.iter().any(|file| file.is_buffered),
    ) {
        (true, false) => "direct",
        (false, true) => "buffered",
        (true, true) => "both",
        (false, false) => "",
    };
    let path = file.map_or("", |file| file.path.as_str());
    let file_type = file.map_or("", |file| file_type(&file.path).name());
    let states = [kind, server, path, file_type, mode].map(|text| Cell::Text(text.to_owned()));
    let mut cells: Vec<Cell> = states.into();
    cells.extend([
        (files.len() as u64).into(),
        (unseen as u64).into(),
        sum(|file| file.size_bytes).into(),
        sum(|file| if file.is_buffered { file.size_bytes } else { 0 }).into(),
        sum(|file| file.cached.cached_bytes).into(),
        Cell::from(sum(|file| file.cached.dirty_bytes)),
    ]);
    let object = if path.is_empty() { server.to_owned() } else { format!("{server} | {path}") };
    Row { object, cells }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use blockstone_testkit::{ScratchDir, require};
    use rustix::fs::{FlockOperation, fcntl_lock};

    use super::*;

    /// Returns the rows of the first complete scan.
    fn looked(probe: &mut dyn Probe) -> Vec<Row> {
        let mut rows = Vec::new();
        for _ in 0..1000 {
            rows.clear();
            probe.sample(&mut rows);
            if !rows.is_empty() || !probe.unmeasured().is_empty() {
                break;
            }
        }
        rows
    }

    fn value(row: &Row, column: &str) -> u64 {
        let index = SCHEMA.columns.iter().position(|known| known.name == column).unwrap();
        match row.cells[index] {
            Cell::Value(value) => value.try_into().unwrap(),
            ref other => panic!("{column}: {other:?}"),
        }
    }

    #[test]
    fn files_of_a_watched_process_are_summed_by_server() {
        require!(Cachestat);
        let scratch = ScratchDir::on_disk().unwrap();
        let paths = ["a", "b"].map(|name| scratch.path().join(name));
        for path in &paths {
            std::fs::write(path, vec![7; 64 << 10]).unwrap();
        }
        let _open: Vec<File> =
            [&paths[0], &paths[0], &paths[1]].map(|path| File::open(path).unwrap()).into();
        let roles = Roles::with(vec![std::process::id()], Vec::new());
        let mut probe = open(&Context { root: "/".into(), scope: Scope::Host(roles) });
        let is_ours =
            |row: &Row, path: &Path| row.object.ends_with(&format!(" | {}", path.display()));
        let rows = looked(probe.as_mut());
        let server = rows.iter().find(|row| value(row, "files") >= 2).unwrap();
        assert!(value(server, "cached_bytes") >= 128 << 10, "{server:?}");
        for path in &paths {
            let file = rows.iter().find(|row| is_ours(row, path)).unwrap();
            assert_eq!(value(file, "cached_bytes"), 64 << 10);
            assert_eq!(value(file, "buffered_size_bytes"), 64 << 10);
            assert_eq!(file.cells[4], Cell::Text("buffered".to_owned()));
        }
    }

    #[test]
    fn a_look_leaves_this_process_its_locks() {
        require!(Cachestat);
        let scratch = ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("locked");
        std::fs::write(&path, vec![7; 16 << 10]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
        let found = file.metadata().unwrap();
        let is_locked = || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            let ours = format!("{} ", std::process::id());
            let of_file = format!(":{} ", found.ino());
            locks.lines().any(|line| {
                line.contains("POSIX") && line.contains(&ours) && line.contains(&of_file)
            })
        };
        assert!(is_locked());
        let files = DatabaseFiles::default();
        files.set("sqlite", &[path]);
        let mut probe = open_beside(&files);
        let rows = looked(probe.as_mut());
        assert_eq!(value(&rows[0], "cached_bytes"), 16 << 10);
        assert!(is_locked(), "the look dropped it");
    }

    #[test]
    fn beside_a_load_only_the_files_of_its_database_are_looked_at() {
        require!(Cachestat);
        let scratch = ScratchDir::on_disk().unwrap();
        let path = |name: &str| scratch.path().join(name);
        std::fs::create_dir(path("data")).unwrap();
        let names = ["data/rows", "data/log", "rows.db-wal", "database", "other"];
        let open = |name: &str| {
            std::fs::write(path(name), vec![7; 16 << 10]).unwrap();
            File::open(path(name)).unwrap()
        };
        let _open = names.map(open);
        let files = DatabaseFiles::default();
        let mut probe = open_beside(&files);
        let mut none = Vec::new();
        probe.sample(&mut none);
        assert!(none.is_empty() && probe.unmeasured().len() == SCHEMA.columns.len());
        files.set("postgres", &[path("data"), path("rows.db")]);
        let rows = looked(probe.as_mut());
        let mut objects: Vec<&str> = rows.iter().map(|row| row.object.as_str()).collect();
        objects.sort_unstable();
        let all = ["data/log", "data/rows", "rows.db-wal"];
        let all = all.map(|name| format!("postgres | {}", path(name).display()));
        let expected = [&["postgres".to_owned()][..], &all].concat();
        assert_eq!(objects, expected);
        assert_eq!(value(&rows[0], "cached_bytes"), 3 * (16 << 10));
    }
}
