//! Foreground sessions: one thread each, visiting rows one after the other, like a database process
//! on behalf of a client.

mod copy;
mod direct;
mod scan;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blockstone_base::hint::Hint as _;
use blockstone_base::named;
use blockstone_sys::buffer::Slot;
use blockstone_sys::usage::ThreadId;
use serde::Serialize;

use crate::block::{self, COLUMNS};
use crate::cache::{Claim, Exclusive, Found, Freed};
use crate::error::InstanceError;
use crate::group::GroupError;
use crate::planted::{Planted, planted};
use crate::redo::buffer::Append;
use crate::redo::{self, Change, Lsn};
use crate::shared::Shared;
use crate::spec::TornProtection;
use crate::wait::{Direction, Event, Histograms, Ledger, Statistic};
use direct::DirectReader;
pub use scan::{SCAN_READ_MAX, Scan};

named! {
    /// Columns of a row that an update changes: two, or all.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    RedoStress {
        Lite = "lite",
        Heavy = "heavy",
    }
}

/// The first and the last column, the ones that SLOB's light update changes.
const LITE: [usize; 2] = [0, COLUMNS - 1];

/// A foreground session. It belongs to the thread that makes its calls.
#[derive(Debug)]
pub struct Session {
    shared: Arc<Shared>,
    ledger: Arc<Ledger>,
    number: u32,
    thread: Option<ThreadId>,
    commits: u64,
    /// End of the session's redo, and whether it belongs to an open transaction.
    end: Lsn,
    changed: bool,
    records: Vec<u8>,
    scan_memory: Option<Slot>,
    direct: Option<DirectReader>,
    copy_memory: Vec<Slot>,
    stop: Option<Arc<AtomicBool>>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, ledger: Arc<Ledger>, number: u32) -> Self {
        Self {
            shared,
            ledger,
            number,
            thread: None,
            commits: 0,
            end: Lsn(0),
            changed: false,
            records: Vec::new(),
            scan_memory: None,
            direct: None,
            copy_memory: Vec::new(),
            stop: None,
        }
    }

    /// Sets a flag that ends scans early, with the rows visited so far.
    pub fn set_stop_flag(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Visits `rows` rows of `schema` by key, from `first_key` on, and counts those whose second
    /// column is present, which is all of them. Fails if the rows do not exist, a block cannot be
    /// read, or the instance has stopped.
    pub fn select(&mut self, schema: u32, first_key: u64, rows: u64) -> Result<u64, InstanceError> {
        self.call(|session| {
            session.shared.check_range(schema, first_key, rows)?;
            let mut found = 0;
            for key in first_key..first_key + rows {
                found += session.visit(schema, key)?;
            }
            Ok(found)
        })
    }

    /// Updates `rows` rows of `schema` by key, from `first_key` on. Durable after a commit. Fails
    /// for the same reasons as [`Session::select`]; rows before the one that failed are updated.
    pub fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u64,
        stress: RedoStress,
    ) -> Result<u64, InstanceError> {
        self.call(|session| {
            session.shared.check_range(schema, first_key, rows)?;
            for key in first_key..first_key + rows {
                session.change(schema, key, stress)?;
            }
            Ok(rows)
        })
    }

    /// Ends the transaction: returns the position of its end once its redo is durable. A
    /// transaction that changed nothing has no redo and ends immediately. Fails if the instance
    /// stops before; whether the transaction is durable is then unknown.
    pub fn commit(&mut self) -> Result<Lsn, InstanceError> {
        self.call(|session| {
            session.shared.health.check()?;
            if !session.changed {
                return Ok(session.end);
            }
            session.records.clear();
            let number = session.commits + 1;
            redo::encode_commit(u64::from(session.number), number, &mut session.records);
            let log = &session.shared.log;
            let what = Append { records: &session.records, dirties: None, flush: true };
            let mut room = None;
            let end = loop {
                match log.append(&what, room, session.waits()) {
                    Ok(end) => break end,
                    Err(reason) => {
                        let bytes = what.records.len();
                        room = Some(log.wait_for_room(reason, bytes, session.waits())?);
                    }
                }
            };
            if log.durable() < end && !planted(Planted::CommitAtOnce) {
                let (ledger, histograms) = session.waits();
                ledger.timed(histograms, Event::LogFileSync, || log.wait_durable(end)).0?;
            }
            session.end = end;
            session.commits = number;
            session.changed = false;
            session.ledger.add(Statistic::Commits, 1);
            session.ledger.add(Statistic::GeneratedRedoBytes, session.records.len() as u64);
            Ok(end)
        })
    }

    /// Returns the columns of a row and how often it was updated, for checks of the data.
    pub fn row(&mut self, schema: u32, key: u64) -> Result<Row, InstanceError> {
        self.call(|session| {
            session.shared.check_range(schema, key, 1)?;
            let number = session.shared.row_block(schema, key);
            let copy = |body: &[u8]| Row { number, block: body.to_vec() };
            session.with_block(number, copy)
        })
    }

    /// Runs a call of the session and counts its time as database time.
    fn call<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, InstanceError>,
    ) -> Result<T, InstanceError> {
        if self.thread.is_none() {
            self.ledger.attach();
            self.thread = Some(ThreadId::current());
        }
        let ledger = Arc::clone(&self.ledger);
        ledger.called(|| work(self))
    }

    fn waits(&self) -> (&Ledger, &Histograms) {
        (&self.ledger, &self.shared.histograms)
    }

    #[inline]
    fn visit(&self, schema: u32, key: u64) -> Result<u64, InstanceError> {
        let number = self.shared.row_block(schema, key);
        let found = self.with_block(number, |body| {
            black_box(block::column(body, 0)[0]);
            block::key(body)
        })?;
        if found == key { Ok(1) } else { Err(self.wrong_row(schema, key, number, found)) }
    }

    #[cold]
    fn wrong_row(&self, schema: u32, key: u64, number: u64, found: u64) -> InstanceError {
        let error = InstanceError::WrongRow { schema, key, number, found };
        self.shared.fail("session", &error, error.hint().map(std::borrow::Cow::into_owned));
        error
    }

    /// Calls `look` with the block `number`, from the cache or after reading it.
    #[inline]
    fn with_block<T>(
        &self,
        number: u64,
        look: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, InstanceError> {
        self.ledger.add(Statistic::LogicalReads, 1);
        loop {
            if let Found::Here(body) = self.shared.cache.read(number, self.waits()) {
                self.ledger.add(Statistic::CacheHits, 1);
                return Ok(look(&body));
            }
            if let Some((_, body)) = self.read_in(number)? {
                return Ok(look(&body));
            }
        }
    }

    /// Returns the block `number`, latched for changing, with its frame.
    fn block_to_change(&self, number: u64) -> Result<(u32, Exclusive<'_>), InstanceError> {
        loop {
            if let Found::Here(found) = self.shared.cache.write(number, self.waits()) {
                self.ledger.add(Statistic::CacheHits, 1);
                return Ok(found);
            }
            if let Some(found) = self.read_in(number)? {
                return Ok(found);
            }
        }
    }

    /// Reads a block into the cache; returns `None` if another session has done so in the meantime.
    #[cold]
    fn read_in(&self, number: u64) -> Result<Option<(u32, Exclusive<'_>)>, InstanceError> {
        let shared = &*self.shared;
        loop {
            shared.health.check()?;
            let mut claimed = match shared.cache.claim(number, true, self.waits()) {
                Claim::Frame(claimed) => claimed,
                Claim::Present => return Ok(None),
                Claim::NoFrame(since) => {
                    self.wait_for_frame(since);
                    continue;
                }
            };
            self.read_blocks(number, claimed.memory(), Event::DbFileSequentialRead)?;
            self.ledger.add(Statistic::SingleBlockReads, 1);
            return Ok(Some(claimed.filled()));
        }
    }

    fn wait_for_frame(&self, since: Freed) {
        self.shared.writer_bell.ring();
        self.shared.cache.wait_for_frame(since, self.waits());
    }

    /// Reads adjacent blocks from block `number` on; all of them are whole, or it fails.
    fn read_blocks(
        &self,
        number: u64,
        memory: &mut [u8],
        event: Event,
    ) -> Result<(), InstanceError> {
        let (ledger, histograms) = self.waits();
        let bytes = memory.len() as u64;
        let (read, elapsed_ns) =
            ledger.timed(histograms, event, || self.shared.read_data(number, memory));
        let info = read?;
        ledger.moved(Direction::Read, 1, bytes, elapsed_ns);
        ledger.add(Statistic::PhysicalReads, bytes / self.shared.block_bytes);
        if info.degraded {
            ledger.add(Statistic::DegradedReads, 1);
            ledger.add(Statistic::BlocksRepaired, u64::from(info.repaired_blocks));
        }
        Ok(())
    }

    /// Updates one row: redo first, under the latch of its block, then the block.
    fn change(&mut self, schema: u32, key: u64, stress: RedoStress) -> Result<(), InstanceError> {
        let all: [usize; COLUMNS] = std::array::from_fn(|index| index);
        let columns: &[usize] = match stress {
            RedoStress::Lite => &LITE,
            RedoStress::Heavy => &all,
        };
        let number = self.shared.row_block(schema, key);
        let mut records = std::mem::take(&mut self.records);
        let mut room = None;
        loop {
            self.shared.health.check()?;
            self.ledger.add(Statistic::LogicalReads, 1);
            let (frame, mut body) = self.block_to_change(number)?;
            if block::key(&body) != key {
                return Err(self.wrong_row(schema, key, number, block::key(&body)));
            }
            let clean = self.shared.cache.first_change(frame) == 0;
            records.clear();
            let images = self.shared.protection == TornProtection::FullPage;
            if clean && images && !planted(Planted::ImagesOmitted) {
                redo::encode_image(&body, &mut records);
            }
            let version = block::version(&body) + 1;
            let fill = &self.shared.fill;
            let value = |index: usize, out: &mut [u8]| fill.column(number, index, version, out);
            let change_at = records.len();
            Change::encode(&body, version, columns, value, &mut records);
            let dirties = clean.then(|| (frame, self.shared.cache.first_change_of(frame)));
            let what = Append { records: &records, dirties, flush: false };
            match self.shared.log.append(&what, room.take(), self.waits()) {
                Ok(end) => {
                    redo::apply_encoded(&records[change_at..], &mut body, end);
                    // Counted while latched: no database writer can clean it earlier.
                    let dirty = if clean { self.shared.cache.became_dirty() } else { 0 };
                    drop(body);
                    if dirty == self.shared.dirty_limit {
                        self.shared.writer_bell.ring();
                    }
                    self.end = end;
                    self.changed = true;
                    self.ledger.add(Statistic::BlockChanges, 1);
                    self.ledger.add(Statistic::GeneratedRedoBytes, records.len() as u64);
                    self.ledger.add(Statistic::ProtectionBytes, change_at as u64);
                    self.ledger.add(Statistic::FullPageImages, u64::from(change_at > 0));
                    self.records = records;
                    return Ok(());
                }
                Err(reason) => {
                    drop(body);
                    let bytes = records.len();
                    room = Some(self.shared.log.wait_for_room(reason, bytes, self.waits())?);
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.ledger.detach();
        }
    }
}

/// A row at the time it was visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    number: u64,
    block: Vec<u8>,
}

impl Row {
    pub fn block_number(&self) -> u64 {
        self.number
    }

    pub fn version(&self) -> u64 {
        block::version(&self.block)
    }

    pub fn scn(&self) -> Lsn {
        Lsn(block::scn(&self.block))
    }

    pub fn column(&self, index: usize) -> &[u8] {
        block::column(&self.block, index)
    }
}

impl Shared {
    /// Reads adjacent whole blocks of the data file from block `number` on.
    pub(crate) fn read_data(
        &self,
        number: u64,
        memory: &mut [u8],
    ) -> Result<crate::group::ReadInfo, InstanceError> {
        let (id, block_bytes) = (self.control.identity().id, self.block_bytes);
        let is_whole =
            |offset: u64, bytes: &[u8]| block::check(bytes, id, offset / block_bytes).is_ok();
        match self.files.data.read(number * block_bytes, memory, &is_whole) {
            Ok(info) => Ok(info),
            Err(GroupError::Corrupt { offset, .. }) => {
                let (at, len) = (offset - number * block_bytes, block_bytes as usize);
                let bytes = &memory[at as usize..at as usize + len];
                let number = offset / block_bytes;
                let fault = block::check(bytes, id, number).err();
                let fault = fault.unwrap_or(block::Fault::Checksum);
                Err(InstanceError::Corrupt { number, fault })
            }
            Err(other) => Err(other.into()),
        }
    }
}
