//! State shared by sessions and background processes, and the conditions under which the latter
//! have work to do.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use blockstone_base::Capability;
use blockstone_base::hint::Hint as _;
use blockstone_sys::process;
use parking_lot::Mutex;

use crate::block::Fill;
use crate::cache::Cache;
use crate::control::Control;
use crate::error::InstanceError;
use crate::files::Files;
use crate::group::DiskGroup;
use crate::health::{Bell, Health};
use crate::layout::Permutation;
use crate::redo::buffer::{Log, Logs, Mark};
use crate::spec::{OpenSpec, TornProtection};
use crate::wait::{Histograms, Ledger, Role};

const LOG_WRITER_NICE: i32 = -20;
const BACKGROUND_NICE: i32 = -10;

#[derive(Debug)]
pub(crate) struct Shared {
    pub files: Files,
    pub control: Control,
    pub cache: Cache,
    pub log: Log,
    pub health: Arc<Health>,
    pub histograms: Histograms,
    pub writer_bell: Bell,
    pub checkpoint_bell: Bell,
    pub keeper_bell: Bell,
    pub group: DiskGroup,
    pub news: Mutex<Vec<String>>,
    /// Delay before the first attempt to bring back a disk that left.
    pub return_after: Duration,
    pub protection: TornProtection,
    pub fill: Fill,
    pub block_bytes: u64,
    pub copies: u64,
    pub dirty_limit: usize,
    /// Position in the redo up to which every changed block must be written, however recent.
    pub flush_to: AtomicU64,
    pub loaded: AtomicU32,
    pub orders: Vec<Permutation>,
    pub favoured: Mutex<Capability>,
    pub sessions: Mutex<Vec<Arc<Ledger>>>,
    pub background: Vec<Arc<Ledger>>,
}

impl Shared {
    /// Fails the instance because `role` cannot continue; waits for its redo end.
    pub fn fail(&self, role: &str, why: &dyn fmt::Display, hint: Option<String>) {
        self.health.fail(role, why, hint);
        self.log.stop();
    }

    pub fn guarded(&self, role: &str, work: impl FnOnce() -> Result<(), InstanceError>) {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(()) | Err(InstanceError::Stopped | InstanceError::Failed { .. })) => {}
            Ok(Err(error)) => {
                self.fail(role, &error, error.hint().map(std::borrow::Cow::into_owned));
            }
            Err(_) => self.fail(role, &"it panicked", None),
        }
    }

    pub fn stop(&self) {
        self.health.stop();
        self.writer_bell.ring();
        self.checkpoint_bell.ring();
        self.keeper_bell.ring();
        self.log.stop();
    }

    pub fn tell(&self, news: String) {
        self.news.lock().push(news);
    }

    /// Lets a background process run ahead of the sessions that wait for it, as databases do: with
    /// hundreds of sessions on few processors, every commit would otherwise wait for all of them.
    pub fn favour(&self, role: Role) {
        // The log writer runs briefly and often, and every commit waits for it.
        if role == Role::Lgwr && process::favour_thread_at_once().is_full() {
            return;
        }
        let nice = if role == Role::Lgwr { LOG_WRITER_NICE } else { BACKGROUND_NICE };
        let capability = process::favour_thread(nice);
        if !capability.is_full() {
            *self.favoured.lock() = capability;
        }
    }

    pub fn new(
        files: Files,
        control: Control,
        start: Mark,
        spec: &OpenSpec,
        group: &DiskGroup,
    ) -> Result<Self, InstanceError> {
        let made = control.identity().spec;
        let health = Arc::new(Health::default());
        let logs = Logs { count: u64::from(made.redo_logs), bytes: made.redo.get() };
        let half = (spec.log_buffer.get() / 2).min(logs.bytes / 2);
        let frames = (spec.cache.get() / made.block.get()) as usize;
        let background = [Role::Lgwr, Role::Ckpt].into_iter().map(|role| (role, 0));
        let writers = (0..spec.writers as usize).map(|number| (Role::Dbwr, number));
        let ledgers = background.chain(writers);
        let loaded = AtomicU32::new(control.state().loaded);
        Ok(Self {
            cache: Cache::new(frames, made.block.get() as usize)?,
            log: Log::new(logs, half, start, Arc::clone(&health))?,
            files,
            control,
            health,
            histograms: Histograms::new(),
            writer_bell: Bell::default(),
            checkpoint_bell: Bell::default(),
            keeper_bell: Bell::default(),
            group: group.clone(),
            news: Mutex::default(),
            return_after: spec.return_after,
            protection: spec.protection,
            fill: Fill::new(made.seed, made.random_percent),
            block_bytes: made.block.get(),
            copies: group.redundancy().copies() as u64,
            dirty_limit: (frames / 4).max(1),
            flush_to: AtomicU64::new(0),
            loaded,
            orders: (0..u64::from(made.schemas)).map(|schema| made.order(schema)).collect(),
            favoured: Mutex::new(Capability::Full),
            sessions: Mutex::default(),
            background: ledgers.map(|(role, number)| Arc::new(Ledger::new(role, number))).collect(),
        })
    }

    #[inline]
    pub fn row_block(&self, schema: u32, key: u64) -> u64 {
        let order = &self.orders[schema as usize];
        u64::from(schema) * self.control.identity().spec.schema_blocks() + order.at(key)
    }

    pub fn scan_block(&self, schema: u32, index: u64) -> u64 {
        let spec = &self.control.identity().spec;
        u64::from(schema) * spec.schema_blocks() + spec.rows + index
    }

    /// Refuses rows that do not exist, and a stopped instance.
    pub fn check_range(&self, schema: u32, first_key: u64, rows: u64) -> Result<(), InstanceError> {
        self.health.check()?;
        self.check_loaded(schema)?;
        let len = self.control.identity().spec.rows;
        match first_key.checked_add(rows) {
            Some(end) if end <= len => Ok(()),
            _ => Err(InstanceError::OutOfRange { schema, first_key, rows, len }),
        }
    }

    pub fn check_scan(&self, schema: u32) -> Result<u64, InstanceError> {
        self.health.check()?;
        self.check_loaded(schema)?;
        match self.control.identity().spec.scan_blocks {
            0 => Err(InstanceError::parameter(
                "the schema has no table to scan".into(),
                "create it with a scan table",
            )),
            blocks => Ok(blocks),
        }
    }

    fn check_loaded(&self, schema: u32) -> Result<(), InstanceError> {
        let loaded = schema < self.loaded.load(Ordering::Acquire);
        if loaded { Ok(()) } else { Err(InstanceError::NotLoaded { schema }) }
    }

    /// Whether database writers have something to do: too many changed blocks, too much redo to
    /// recover, a session without a frame, a log that cannot be overwritten yet.
    pub fn must_write(&self) -> bool {
        let dirty = self.cache.dirty();
        if dirty == 0 {
            return false;
        }
        if dirty >= self.dirty_limit || self.cache.is_wanted() {
            return true;
        }
        let distance = self.log.distance(&self.cache);
        distance.blocked
            || distance.oldest.0 < self.flush_to.load(Ordering::Acquire)
            || distance.tail.0 - distance.oldest.0 > self.log.logs.pace_bytes()
    }

    /// Wakes the threads that have work after a log write.
    pub fn pace_writers(&self) {
        if self.must_write() {
            self.writer_bell.ring();
        }
        self.pace_checkpoint();
    }

    /// Wakes the checkpoint process if there is much redo after its last checkpoint.
    pub fn pace_checkpoint(&self) {
        let distance = self.log.distance(&self.cache);
        let checkpoint = self.control.state().checkpoint;
        let gained = distance.oldest.0.saturating_sub(checkpoint.0);
        if gained > 0 && (distance.blocked || gained > self.log.logs.pace_bytes() / 4) {
            self.checkpoint_bell.ring();
        }
    }
}

impl Logs {
    /// Bytes of redo allowed between the oldest changed block and the end: half of all logs except
    /// the current one, so that the next log is usually free when it is needed.
    pub(crate) fn pace_bytes(self) -> u64 {
        (self.count - 1) * self.bytes / 2
    }
}
