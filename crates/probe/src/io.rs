//! Storage I/O as the kernel sees it: where it is requested (system calls) and where it reaches a
//! device (block requests), by role, file, operation and mode, with times and their distribution.
//! docs/bpf.md says what exactly is counted.
//!
//! It is not among the probes that always run: it needs privileges, adds a small cost to each I/O,
//! and must be given the processes to watch and the roles of threads.

mod accounts;
mod board;
mod by_process;
mod columns;
mod dirt;
mod file_type;
mod ledger;
mod names;
mod process_columns;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use blockstone_base::Capability;
use blockstone_base::hint::Hint as _;
use blockstone_sys::bpf::io::{IoKey, IoTotals, IoTracer, Layer, Mode, Operation};
use blockstone_sys::bpf::{self, Audit, BpfError, Device, Subject};
use blockstone_sys::proc::under;

pub use columns::{SCHEMA, bucket_start_ns};
pub use file_type::{FileType, file_type};
pub use process_columns::SCHEMA as BY_PROCESS;

use self::accounts::Accounts;
use self::board::{Board, Growth};
use self::by_process::{ByProcess, Shared};
use self::columns::LEADING;
use self::ledger::{Ledger, Sums, Thread};
pub(crate) use self::names::{Label, Names, Shelf};
use crate::source::all_unmeasured;
use crate::{Cell, Probe, Roles, Row, Schema, Unmeasured};

/// Returns the role of a thread, from its process, its id and its name when it was first seen.
/// Called once for each name a thread has, possibly after the thread has ended.
pub type Resolve = Box<dyn FnMut(u32, u32, &str) -> String + Send>;

pub struct IoSpec {
    /// Root of `/proc` and `/sys`, for the names of files, devices and threads.
    pub root: PathBuf,
    /// Whether system calls are counted too. That costs every process on the machine a little;
    /// block requests need it where nothing else identifies the file: flushes and raw devices.
    pub system_calls: bool,
    /// Maximum number of file names in rows; files beyond it count as `other files` of their type.
    pub files_max: usize,
    pub wanted: Wanted,
    pub resolve: Resolve,
}

impl IoSpec {
    /// Watches all processes of this machine, with the names of threads as roles.
    pub fn everybody() -> Self {
        Self {
            root: "/".into(),
            system_calls: true,
            files_max: 1000,
            wanted: Wanted::default(),
            resolve: Box::new(|_, _, comm| comm.to_owned()),
        }
    }
}

impl fmt::Debug for IoSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { root, system_calls, files_max, wanted, resolve: _ } = self;
        let mut fields = f.debug_struct("IoSpec");
        fields.field("root", root).field("system_calls", system_calls);
        fields.field("files_max", files_max).field("wanted", wanted).finish_non_exhaustive()
    }
}

/// The processes to watch: a handle that stays with whoever opened the probe. Children that a
/// watched process starts are watched from their first moment, even if they are not listed here.
#[derive(Clone, Debug, Default)]
pub struct Wanted(Arc<Mutex<BTreeSet<u32>>>);

impl Wanted {
    /// Watches these processes, by id, from the next sample on; an empty set means all processes.
    /// Kernel threads are watched at the block layer in either case.
    pub fn set(&self, tgids: impl IntoIterator<Item = u32>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tgids.into_iter().collect();
    }

    fn get(&self) -> BTreeSet<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether the probe can run here, and what would enable it, as far as that can be known without
/// starting it. Anything that only a start reveals is among the reasons of [`Probe::unmeasured`].
pub fn capability() -> Capability {
    bpf::capability(Path::new("/"))
}

/// Starts counting. If that is not possible, everything is unmeasured.
pub fn open(spec: IoSpec) -> Box<dyn Probe> {
    Box::new(start(spec))
}

/// Starts counting, also by process and file. If that is not possible and `roles` are given, the
/// second probe reports what the kernel charges to processes, under these roles.
pub fn open_by_process(spec: IoSpec, roles: Option<Roles>) -> [Option<Box<dyn Probe>>; 2] {
    let (root, calls) = (spec.root.clone(), spec.system_calls);
    let io = start(spec);
    let by_process: Option<Box<dyn Probe>> = match (&io.why, roles) {
        (None, _) => {
            let why = "only --who charges what the kernel writes back to processes";
            let uncharged = (!calls).then(|| Unmeasured::Off(why.to_owned()));
            Some(Box::new(ByProcess::of_board(Arc::clone(&io.board), uncharged)))
        }
        (Some(why), Some(roles)) => Some(charged(root, roles, why.clone())),
        (Some(_), None) => None,
    };
    [Some(Box::new(io)), by_process]
}

/// Reports what the kernel charges to processes, without counting I/O.
pub fn charged(root: PathBuf, roles: Roles, why: Unmeasured) -> Box<dyn Probe> {
    Box::new(ByProcess::of_accounts(Accounts::new(root, roles, why)))
}

fn start(spec: IoSpec) -> Io {
    let applied = spec.wanted.get();
    let started = match bpf::capability(&spec.root) {
        Capability::Full => {
            IoTracer::start(spec.system_calls, &applied).map_err(|error| reason(&error))
        }
        Capability::Degraded { why } => Err(absent(why)),
    };
    let (tracer, why) = match started {
        Ok(tracer) => (Some(tracer), None),
        Err(why) => (None, Some(why)),
    };
    let book = Book::new(&spec.root, spec.files_max);
    let board = Arc::new(Mutex::new(Board::new(&spec.root)));
    let (ledger, ended) = (Ledger::new(), HashSet::new());
    Io { spec, tracer, why, applied, ledger, book, board, ended }
}

/// Number of threads that each sample checks for having ended.
const THREADS_PER_SAMPLE: usize = 64;
/// Maximum number of names of files in memory beside those of the rows.
const NAMED_MAX: usize = 10_000;
/// Object and layer of the row on the tracing itself.
const TRACING: &str = "tracing";

#[derive(Debug)]
struct Io {
    spec: IoSpec,
    tracer: Option<IoTracer>,
    /// Reason why there is no tracer.
    why: Option<Unmeasured>,
    /// Processes that the tracer currently watches.
    applied: BTreeSet<u32>,
    ledger: Ledger<IoKey, Object>,
    book: Book,
    board: Shared,
    /// Threads that had ended when they were last checked.
    ended: HashSet<Thread>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    layer: Layer,
    role: Arc<str>,
    label: Arc<Label>,
    operation: Operation,
    mode: Mode,
}

#[derive(Debug)]
struct Book {
    names: Names,
    roles: HashMap<Thread, Vec<(String, Arc<str>)>>,
    labels: HashMap<(Subject, Device), Arc<Label>>,
    shelf: Shelf,
    /// Names of files, also of those beyond the shelf, for sums that come and go.
    named: HashMap<(Subject, Device), Arc<Label>>,
}

impl Probe for Io {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let audit = self.tracer.take().and_then(|mut tracer| match self.read(&mut tracer) {
            Ok(()) => {
                let audit = tracer.audit();
                self.tracer = Some(tracer);
                Some(audit)
            }
            Err(error) => {
                self.why = Some(reason(&error));
                None
            }
        });
        if audit.is_some() {
            rows.extend(self.ledger.rows().map(|(object, sums)| row(object, sums)));
        }
        rows.push(tracing_row(audit));
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        if let Some(why) = &self.why {
            return all_unmeasured(&SCHEMA, why);
        }
        let mut missing = Vec::new();
        if !self.spec.system_calls {
            let off = Unmeasured::Off("system calls are not traced".into());
            missing.extend(["asked_bytes", "submitted"].map(|column| (column, off.clone())));
        }
        if self.tracer.as_ref().is_some_and(|tracer| tracer.audit().own_ns.is_none()) {
            let why = "the kernel measures what programs cost for CAP_SYS_ADMIN only";
            let why = Unmeasured::NotPermitted(why.into());
            missing.extend(["runs", "own_ns"].map(|column| (column, why.clone())));
        }
        missing
    }
}

impl Io {
    /// Updates the ledger with what the kernel has counted so far.
    fn read(&mut self, tracer: &mut IoTracer) -> Result<(), BpfError> {
        let wanted = self.spec.wanted.get();
        if wanted != self.applied {
            tracer.want(&wanted)?;
            self.applied = wanted;
        }
        let (mut new, mut busy, mut grown) = (Vec::new(), HashSet::new(), Vec::new());
        self.ledger.begin();
        let shared = Arc::clone(&self.board);
        let mut board = shared.lock().unwrap_or_else(PoisonError::into_inner);
        board.begin();
        tracer.each(|key, totals| {
            grown.extend(growth(&mut board, key, totals));
            if totals.in_flight() > 0 {
                busy.insert(*key);
            }
            if !self.ledger.add(key, &totals.into()) {
                new.push((*key, *totals));
            }
        })?;
        for (key, totals) in &new {
            let object = self.book.object(&mut self.spec.resolve, tracer, (key, totals))?;
            self.ledger.introduce(*key, (key.tgid, key.tid), object);
            self.ledger.add(key, &totals.into());
        }
        self.settle_ended(tracer, &busy, (&mut board, &mut grown))?;
        let mut all = Vec::with_capacity(grown.len());
        for growth in grown {
            let thread = (growth.key.tgid, growth.key.tid);
            let role = self.book.role(&mut self.spec.resolve, thread, growth.comm.clone());
            let label = self.book.named(tracer, &growth.key)?;
            all.push((growth, role, label));
        }
        board.add(all, &mut self.book.names);
        Ok(())
    }

    /// Removes the sums of ended threads from the kernel's table. A thread that had ended before
    /// this reading and has nothing in flight will never count again.
    fn settle_ended(
        &mut self,
        tracer: &IoTracer,
        busy: &HashSet<IoKey>,
        (board, grown): (&mut Board, &mut Vec<Growth>),
    ) -> Result<(), BpfError> {
        for _ in 0..THREADS_PER_SAMPLE.min(self.ledger.threads()) {
            let Some((thread, keys)) = self.ledger.next_thread() else { break };
            let task = format!("/proc/{}/task/{}", thread.0, thread.1);
            if under(&self.spec.root, task).exists() {
                self.ended.remove(&thread);
            } else if self.ended.insert(thread) {
                continue;
            } else {
                for key in keys.iter().filter(|key| !busy.contains(key)) {
                    let last = tracer.take(key)?;
                    grown.extend(last.as_ref().and_then(|last| growth(board, key, last)));
                    board.forget(key);
                    self.ledger.settle(key, thread, &last.as_ref().map_or(Sums::ZERO, Sums::from));
                }
            }
            if keys.is_empty() {
                self.ended.remove(&thread);
                self.book.roles.remove(&thread);
            }
        }
        Ok(())
    }
}

impl Book {
    fn new(root: &Path, files_max: usize) -> Self {
        Self {
            names: Names::new(root),
            roles: HashMap::new(),
            labels: HashMap::new(),
            shelf: Shelf::new(files_max),
            named: HashMap::new(),
        }
    }

    fn object(
        &mut self,
        resolve: &mut Resolve,
        tracer: &IoTracer,
        (key, totals): (&IoKey, &IoTotals),
    ) -> Result<Object, BpfError> {
        let label = self.known_label(tracer, key)?;
        let role = self.role(resolve, (key.tgid, key.tid), totals.comm());
        let (layer, operation, mode) = (key.layer(), key.operation(), key.mode());
        Ok(Object { layer, role, label, operation, mode })
    }

    /// Returns the role of a thread. After exec(2) or prctl(2) a thread has another name, and most
    /// likely another role.
    fn role(&mut self, resolve: &mut Resolve, thread: Thread, comm: String) -> Arc<str> {
        let known = self.roles.entry(thread).or_default();
        if let Some((_, role)) = known.iter().find(|(name, _)| *name == comm) {
            return Arc::clone(role);
        }
        let role: Arc<str> = resolve(thread.0, thread.1, &comm).into();
        known.push((comm, Arc::clone(&role)));
        role
    }

    /// Returns the label of a key's file, which is named when it is first seen.
    fn known_label(&mut self, tracer: &IoTracer, key: &IoKey) -> Result<Arc<Label>, BpfError> {
        let place = (key.subject(), key.device());
        if let Some(label) = self.labels.get(&place) {
            return Ok(Arc::clone(label));
        }
        let named = self.named(tracer, key)?;
        let label = Arc::new(self.shelf.place((*named).clone()));
        self.labels.insert(place, Arc::clone(&label));
        Ok(label)
    }

    /// Returns the name of a key's file, whether there is room for it on the shelf or not.
    fn named(&mut self, tracer: &IoTracer, key: &IoKey) -> Result<Arc<Label>, BpfError> {
        let place = (key.subject(), key.device());
        if let Some(label) = self.named.get(&place) {
            return Ok(Arc::clone(label));
        }
        if self.named.len() >= NAMED_MAX {
            self.named.clear();
        }
        let path = tracer.path_of(key)?;
        let label = Arc::new(self.names.label(place.0, place.1, path.as_deref()));
        self.named.insert(place, Arc::clone(&label));
        Ok(label)
    }
}

fn growth(board: &mut Board, key: &IoKey, totals: &IoTotals) -> Option<Growth> {
    let (ios, bytes) = board.grown(key, totals.ios(), totals.bytes)?;
    Some(Growth { key: *key, ios, bytes, comm: totals.comm() })
}

fn row(object: &Object, sums: &Sums) -> Row {
    let Object { layer, role, label, operation, mode } = object;
    let layer_name = match layer {
        Layer::Block => "block",
        Layer::SystemCall => "system call",
    };
    let operation_name = match operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Flush => "flush",
        Operation::Discard => "discard",
        Operation::Submit => "submit",
    };
    let mode_name = match mode {
        Mode::Synchronous => "sync",
        Mode::Asynchronous => "async",
    };
    let (file, file_type) = (label.file.as_str(), label.file_type.name());
    let states = [layer_name, role, file, file_type, operation_name, mode_name];
    let (is_block, is_submission) = (*layer == Layer::Block, *operation == Operation::Submit);
    let only = |holds: bool, value: u64| Cell::from(holds.then_some(value));
    let counters = [
        sums.ios.into(),
        only(is_block, sums.in_flight),
        only(!is_submission, sums.bytes),
        only(!is_block && !is_submission, sums.asked_bytes),
        only(is_submission, sums.submitted),
        only(is_block, sums.queue_ns),
        only(is_block, sums.device_ns),
        sums.elapsed_ns.into(),
    ];
    let mut cells: Vec<Cell> = states.map(|state| Cell::Text(state.to_owned())).into();
    cells.extend(counters);
    cells.resize(LEADING, Cell::Unmeasured);
    cells.extend(sums.buckets.map(Cell::from));
    Row { object: states.join(" | "), cells }
}

fn tracing_row(audit: Option<Audit>) -> Row {
    let mut cells = vec![Cell::Unmeasured; SCHEMA.columns.len()];
    if let Some(Audit { dropped, runs, own_ns }) = audit {
        cells[0] = Cell::Text(TRACING.into());
        cells[LEADING - 3] = dropped.into();
        cells[LEADING - 2] = runs.into();
        cells[LEADING - 1] = own_ns.into();
    }
    Row { object: TRACING.into(), cells }
}

pub(crate) fn absent(why: String) -> Unmeasured {
    if why.contains("CAP_") { Unmeasured::NotPermitted(why) } else { Unmeasured::NotInVersion(why) }
}

pub(crate) fn reason(error: &BpfError) -> Unmeasured {
    let why = error.in_a_line();
    match error {
        BpfError::Refused { message, .. } if message.contains("Operation not permitted") => {
            Unmeasured::NotPermitted(why)
        }
        BpfError::Table { .. } => Unmeasured::NoEvidence(why),
        _ => Unmeasured::NotInVersion(why),
    }
}
