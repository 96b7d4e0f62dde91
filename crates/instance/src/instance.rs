//! An instance: its parameters, its processes, its beginning and its end.

mod load;
mod shared;
mod snapshot;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_base::{Bytes, Capability};
use blockstone_sys::buffer::Pages;

use crate::block::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::checkpoint;
use crate::checkpoint::control::{CONTROL_BYTES, COPY_BYTES, Control, Identity, State};
use crate::error::InstanceError;
use crate::group::{DiskGroup, FileSpec};
use crate::health::LOOK_AGAIN;
use crate::keeper;
use crate::recovery::{self, Recovery};
use crate::redo::buffer::{Mark, Place};
use crate::redo::{Lsn, REDO_BLOCK_BYTES};
use crate::session::Session;
use crate::wait::{Ledger, Role};
use crate::writer::{self, BATCH_BLOCKS, WRITERS_MAX};
pub use load::LoadProgress;
use shared::redo_name;
pub(crate) use shared::{Files, Shared};
pub use snapshot::Snapshot;

/// Sessions that a cache of so many blocks serves: one each.
const BLOCKS_PER_SESSION: usize = 8;
const CACHE_BLOCKS_MIN: u64 = 64;
const REDO_BYTES_MIN: u64 = 256 << 10;
const LOG_BUFFER_MIN: u64 = 128 << 10;
const STACK_BYTES: usize = 256 << 10;

/// What an instance is made as; kept in its control file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceSpec {
    /// Size of a block: 4, 8, 16 or 32 KiB.
    pub block: Bytes,
    /// Schemas, each with its own tables.
    pub schemas: u32,
    /// Rows of a schema; one row is one block.
    pub rows: u64,
    /// Blocks of the second table of a schema, which is scanned; may be zero.
    pub scan_blocks: u64,
    /// Redo logs that are written in turn; at least two.
    pub redo_logs: u32,
    /// Size of each.
    pub redo: Bytes,
    /// Seed of the physical order of rows and of their content.
    pub seed: u64,
    /// Share of a column that no compressor shortens, 0 to 100 %.
    pub random_percent: u8,
}

/// How a torn block write is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TornProtection {
    /// Not at all, as Oracle does: a torn block is detected by its checksum and is lost.
    None = 0,
    /// Before the first change since a block was last written, the whole block goes into the redo,
    /// as `PostgreSQL` does after each checkpoint.
    FullPage = 1,
    /// Blocks are written to a double-write area first, as `InnoDB` does.
    DoubleWrite = 2,
}

/// How an instance is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSpec {
    /// Size of the buffer cache.
    pub cache: Bytes,
    /// Database writers.
    pub writers: u32,
    /// Size of the log buffer: half of it gathers while the other half is written.
    pub log_buffer: Bytes,
    /// How torn writes are mended.
    pub protection: TornProtection,
    /// After this time it is first tried whether a disk that left the group is back; then again and
    /// again, less often each time.
    pub return_after: Duration,
}

/// An open instance. Dropping it without [`Instance::shutdown`] is a crash.
#[derive(Debug)]
pub struct Instance {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    recovery: Recovery,
}

impl InstanceSpec {
    /// The files that the disk group must have.
    ///
    /// # Errors
    /// When a parameter has a value it cannot have.
    pub fn files(&self) -> Result<Vec<FileSpec>, InstanceError> {
        self.check()?;
        let redo_block = Bytes(REDO_BLOCK_BYTES as u64);
        let file =
            |name: &str, size, block, fine| FileSpec { name: name.into(), size, block, fine };
        let double_write = u64::from(WRITERS_MAX) * BATCH_BLOCKS as u64 * self.block.get();
        let mut files = vec![
            file("control", Bytes(CONTROL_BYTES as u64), Bytes(COPY_BYTES as u64), false),
            file("double-write", Bytes(double_write), self.block, false),
        ];
        files.extend(
            (0..self.redo_logs).map(|log| file(&redo_name(log), self.redo, redo_block, true)),
        );
        files.push(file("data", Bytes(self.blocks() * self.block.get()), self.block, false));
        Ok(files)
    }

    /// Blocks of the data file.
    pub fn blocks(&self) -> u64 {
        u64::from(self.schemas) * self.schema_blocks()
    }

    pub(crate) fn schema_blocks(&self) -> u64 {
        self.rows + self.scan_blocks
    }

    fn check(&self) -> Result<(), InstanceError> {
        let refuse = |what: String, hint| Err(InstanceError::parameter(what, hint));
        let block = self.block.get();
        if !block.is_power_of_two() || !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block) {
            return refuse(format!("blocks of {}", self.block), "use 4K, 8K, 16K or 32K");
        }
        if self.schemas == 0 || self.rows == 0 {
            let what = format!("{} schemas of {} rows", self.schemas, self.rows);
            return refuse(what, "use at least one schema and one row");
        }
        let redo = self.redo.get();
        if self.redo_logs < 2
            || redo < REDO_BYTES_MIN
            || !redo.is_multiple_of(REDO_BLOCK_BYTES as u64)
        {
            let what = format!("{} redo logs of {}", self.redo_logs, self.redo);
            return refuse(what, "use at least two, of at least 256K and whole 4K blocks");
        }
        if self.random_percent > 100 {
            let what = format!("{} % of a column incompressible", self.random_percent);
            return refuse(what, "use 0 to 100");
        }
        Ok(())
    }
}

impl TornProtection {
    pub(crate) fn from_number(number: u64) -> Self {
        match number {
            1 => Self::FullPage,
            2 => Self::DoubleWrite,
            _ => Self::None,
        }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::FullPage => "full-page",
            Self::DoubleWrite => "double-write",
        }
    }
}

impl OpenSpec {
    /// Whether an instance made as `made` can be opened so, for `sessions` at a time.
    ///
    /// # Errors
    /// When a parameter has a value it cannot have, or the cache is too small.
    pub fn check(&self, made: &InstanceSpec, sessions: u32) -> Result<(), InstanceError> {
        let refuse = |what: String, hint| Err(InstanceError::parameter(what, hint));
        if self.cache.get() < CACHE_BLOCKS_MIN * made.block.get() {
            let what = format!("a cache of {} for blocks of {}", self.cache, made.block);
            return refuse(what, "use a --cache of at least 64 blocks");
        }
        if !(1..=WRITERS_MAX).contains(&self.writers) {
            return refuse(format!("{} database writers", self.writers), "use 1 to 16");
        }
        if self.log_buffer.get() < LOG_BUFFER_MIN {
            return refuse(format!("a log buffer of {}", self.log_buffer), "use at least 128K");
        }
        check_sessions((self.cache.get() / made.block.get()) as usize, sessions)
    }
}

impl Default for OpenSpec {
    /// 128 MiB of cache, one writer, a log buffer of 4 MiB, full pages in the redo.
    fn default() -> Self {
        Self {
            cache: Bytes::mib(128),
            writers: 1,
            log_buffer: Bytes::mib(4),
            protection: TornProtection::FullPage,
            return_after: Duration::from_secs(5),
        }
    }
}

impl Instance {
    /// Makes `group`, which has the files of `spec`, an instance without data.
    ///
    /// # Errors
    /// When a parameter has a value it cannot have, or the disks fail.
    pub fn create(spec: &InstanceSpec, group: &DiskGroup) -> Result<(), InstanceError> {
        spec.check()?;
        let files = Files::open(group, spec.redo_logs)?;
        // Position zero means "none", so the redo begins one log's length behind it.
        let start = Mark { first: Lsn(spec.redo.get()), place: Place { sequence: 1, offset: 0 } };
        let state = State {
            sequence: 0,
            checkpoint: start.first,
            mark: start,
            loaded: 0,
            protection: TornProtection::None,
            writers: 0,
        };
        Control::create(files.control, Identity { id: draw_id(), spec: *spec }, state)
    }

    /// What the instance in `group` was made as, and how many of its schemas are loaded, without
    /// opening it.
    ///
    /// # Errors
    /// When there is none, or its control file is damaged or of another version.
    pub fn inspect(group: &DiskGroup) -> Result<(InstanceSpec, u32), InstanceError> {
        let control = Control::open(group.file("control")?)?;
        Ok((control.identity().spec, control.state().loaded))
    }

    /// Opens the instance in `group`: recovers it and starts its processes.
    ///
    /// # Errors
    /// When the control file is damaged or of another version, the disks fail, a parameter has a
    /// value it cannot have, or memory or threads are not to be had.
    pub fn open(group: &DiskGroup, spec: &OpenSpec) -> Result<Self, InstanceError> {
        let control = Control::open(group.file("control")?)?;
        let identity = *control.identity();
        spec.check(&identity.spec, 0)?;
        let files = Files::open(group, identity.spec.redo_logs)?;
        let (recovery, start) = recovery::recover(&files, &control)?;
        // Before the first record: once redo is overwritten, this is where recovery must begin.
        control.write(|state| {
            state.checkpoint = start.first;
            state.mark = start;
            state.protection = spec.protection;
            state.writers = spec.writers;
        })?;
        let shared = Arc::new(Shared::new(files, control, start, spec, group)?);
        let mut instance = Self { shared, threads: Vec::new(), recovery };
        instance.start(spec.writers)?;
        Ok(instance)
    }

    fn start(&mut self, writers: u32) -> Result<(), InstanceError> {
        self.spawn("lgwr", 0, crate::redo::writer::run)?;
        self.spawn("ckpt", 1, checkpoint::run)?;
        for number in 0..writers {
            let work = move |shared: &Shared, ledger: &Ledger| writer::run(shared, ledger, number);
            self.spawn(&format!("dbwr-{number}"), 2 + number as usize, work)?;
        }
        let shared = Arc::clone(&self.shared);
        self.spawn_as("keeper", move || {
            shared.guarded("keeper", || {
                keeper::run(&shared);
                Ok(())
            });
        })
    }

    /// Starts a background process, whose failure is that of the instance.
    fn spawn(
        &mut self,
        name: &str,
        ledger: usize,
        work: impl FnOnce(&Shared, &Ledger) -> Result<(), InstanceError> + Send + 'static,
    ) -> Result<(), InstanceError> {
        let shared = Arc::clone(&self.shared);
        let ledger = Arc::clone(&shared.background[ledger]);
        let role = name.to_owned();
        self.spawn_as(name, move || {
            ledger.attach();
            shared.favour(ledger.role);
            shared.guarded(&role, || work(&shared, &ledger));
            ledger.detach();
        })
    }

    fn spawn_as(
        &mut self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<(), InstanceError> {
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES);
        let spawned = thread.spawn(body);
        let name = name.to_owned();
        self.threads.push(spawned.map_err(|source| InstanceError::Thread { name, source })?);
        Ok(())
    }

    /// A session, to be used by one thread. One of the same `number` that ended before is continued
    /// in the statistics. A session keeps the disk group open until it is dropped.
    ///
    /// # Errors
    /// When the cache is too small for so many sessions.
    pub fn session(&self, number: u32) -> Result<Session, InstanceError> {
        self.shared.health.check()?;
        check_sessions(self.shared.cache.frames(), number + 1)?;
        let mut ledgers = self.shared.sessions.lock();
        while ledgers.len() <= number as usize {
            let next = Ledger::new(Role::Session, ledgers.len());
            ledgers.push(Arc::new(next));
        }
        let ledger = Arc::clone(&ledgers[number as usize]);
        Ok(Session::new(Arc::clone(&self.shared), ledger, number))
    }

    /// What it was made as.
    pub fn spec(&self) -> InstanceSpec {
        self.shared.control.identity().spec
    }

    /// What recovery did when it was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The disk group it lives in.
    pub fn group(&self) -> &DiskGroup {
        &self.shared.group
    }

    /// What happened to its disks since this was last asked: which left, which came back.
    pub fn take_news(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.news.lock())
    }

    /// Blocks of its cache.
    pub fn cache_blocks(&self) -> usize {
        self.shared.cache.frames()
    }

    /// What backs the memory of its cache.
    pub fn cache_pages(&self) -> Pages {
        self.shared.cache.pages()
    }

    /// Whether its background processes run before the sessions, and if not, why.
    pub fn favoured(&self) -> Capability {
        self.shared.favoured.lock().clone()
    }

    /// Whether it runs; the error says why not.
    ///
    /// # Errors
    /// When it was stopped or has failed.
    pub fn check(&self) -> Result<(), InstanceError> {
        self.shared.health.check()
    }

    /// Writes every changed block and advances the checkpoint to the end of the redo.
    ///
    /// # Errors
    /// When the instance fails meanwhile.
    pub fn checkpoint(&self) -> Result<(), InstanceError> {
        let shared = &self.shared;
        let target = shared.log.distance(&shared.cache).tail;
        shared.flushing.store(true, Ordering::Release);
        let result = loop {
            if let Err(error) = shared.health.check() {
                break Err(error);
            }
            if shared.control.state().checkpoint >= target {
                break Ok(());
            }
            shared.writer_bell.ring();
            shared.checkpoint_bell.ring();
            thread::sleep(LOOK_AGAIN / 50);
        };
        shared.flushing.store(false, Ordering::Release);
        result
    }

    /// Ends the instance in order: everything is written, and the next opening recovers nothing.
    ///
    /// # Errors
    /// When it fails meanwhile, or failed before; the next opening then recovers.
    pub fn shutdown(mut self) -> Result<(), InstanceError> {
        let result = self.checkpoint();
        self.stop();
        result?;
        Ok(self.shared.group.close()?)
    }

    /// Ends the instance as a crash of its process would: threads stop where they are, nothing more
    /// is written.
    pub fn crash(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A panic was caught inside and is the reason why the instance has failed.
            let _ = thread.join();
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.stop();
    }
}

fn check_sessions(frames: usize, sessions: u32) -> Result<(), InstanceError> {
    let served = frames / BLOCKS_PER_SESSION;
    if sessions as usize > served {
        return Err(InstanceError::CacheTooSmall { session: sessions - 1, frames, served });
    }
    Ok(())
}

/// A number that no other instance has: what an earlier one left on the same disks is foreign.
fn draw_id() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u64(blockstone_sys::clock::now_ns());
    hasher.finish()
}
