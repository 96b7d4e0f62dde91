//! A rank: does what rank 0 asks, on its own path.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::coherence::findings::{ReadMode, WriteMode};
use blockstone_base::rng::Rng;
use blockstone_measure::scratch;
use blockstone_sys::buffer::{ArenaError, Slot};
use blockstone_sys::clock::now_ns;
use blockstone_sys::file::{Access, BlockFile, FileError};
use blockstone_sys::held::{HeldDir, OFlags};
use blockstone_sys::mapped::Mapped;
use blockstone_sys::range_lock::{self, RangeLock};
use rustix::fs::{Advice, AtFlags, Dir, FlockOperation, Mode, Stat, fchmod, statat};
use rustix::io::Errno;

use super::ask::{
    Act, Answer, Ask, BLOCKS, FILE_BYTES, FREE_RUN_MAX, FreeRun, Look, NAMES, RECORD_BYTES,
    RECORDS_MAX, Records, Reply, STRIDE_BYTES, Step,
};
use super::stamp::{self, BLOCK_BYTES, Content, SECTOR_BYTES};

/// Maximum number of directory entries that are searched.
const LISTED_MAX: usize = 50_000;
/// Bytes at the start of the file that ranks lock.
const LOCKED_BYTES: u64 = 8;
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
const FREE_RUN_LONGEST: Duration = Duration::from_secs(10);
/// Maximum number of files that are held open at the same time.
const KEPT_OPEN_MAX: usize = 8;
const EIO: i32 = Errno::IO.raw_os_error();
/// Pause between two attempts to take a lock.
const AGAIN: Duration = Duration::from_micros(100);
/// Offset of the mark in the file of a check in a directory: after the first block, in the part
/// that no block occupies.
const MARK: u64 = BLOCK_BYTES as u64;
const _: () = assert!(MARK + SECTOR_BYTES as u64 <= STRIDE_BYTES, "the mark is between two blocks");

/// Storage that a rank uses.
#[derive(Debug)]
pub enum Place {
    /// Contains the files of the check, which belong to `owner`.
    Directory { dir: Arc<HeldDir>, owner: u32 },
    /// A file that was prepared.
    File(BlockFile),
    /// A device, claimed for as long as it is open.
    Device(BlockFile),
}

impl Place {
    /// Holds a directory. Fails if it cannot be held, or, if it may be written to, cannot hold a
    /// new file.
    pub fn directory(path: &Path, can_write: bool) -> io::Result<Self> {
        let dir = HeldDir::hold(path)?;
        let me = || rustix::process::geteuid().as_raw();
        let owner = if can_write { dir.owner_of_new()? } else { me() };
        Ok(Self::Directory { dir: Arc::new(dir), owner })
    }
}

#[derive(Debug)]
pub struct Agent {
    place: Place,
    can_write: bool,
    id: u64,
    held: Option<BlockFile>,
    direct: Option<Result<BlockFile, i32>>,
    mapped: Option<Result<Mapped, i32>>,
    memory: Slot,
    /// The file, if this rank made it.
    made: Option<BlockFile>,
    /// Names that this rank made, with the locks that keep others from removing them, unless they
    /// were closed.
    names: BTreeMap<u32, Option<File>>,
    /// Files that are held open while others change their names.
    kept_open: BTreeMap<u32, File>,
}

type Done = Result<Answer, i32>;

impl Agent {
    pub fn new(place: Place, can_write: bool) -> Result<Self, ArenaError> {
        let memory = Slot::new(BLOCK_BYTES)?;
        Ok(Self {
            place,
            can_write,
            id: 0,
            held: None,
            direct: None,
            mapped: None,
            memory,
            made: None,
            names: BTreeMap::new(),
            kept_open: BTreeMap::new(),
        })
    }

    pub fn answer(&mut self, ask: &Ask) -> Reply {
        let start_ns = now_ns();
        let done = self.act(ask);
        let end_ns = now_ns();
        let answer = done.unwrap_or_else(Answer::Failed);
        Reply { start_ns, end_ns, answer }
    }

    fn act(&mut self, ask: &Ask) -> Done {
        match *ask {
            Ask::Time => Ok(Answer::CanWrite(self.can_write)),
            Ask::Start { id } => {
                self.clean();
                self.id = id;
                Ok(Answer::Done)
            }
            Ask::Create => self.create(),
            Ask::Open { to_write } => self.open(to_write),
            Ask::Write { mode, block, version } if block < BLOCKS => {
                stamp::write(
                    self.id,
                    stamp::sectors_before(block.into()),
                    version,
                    &mut self.memory,
                );
                self.write(mode, offset_of(block), BLOCK_BYTES)
            }
            Ask::WriteSector { mode, block, sector, version } if is_sector(block, sector) => {
                let number = stamp::sectors_before(block.into()) + u64::from(sector);
                let data = &mut self.memory[..SECTOR_BYTES];
                stamp::write(self.id, number, version, data);
                let offset = offset_of(block) + u64::from(sector) * SECTOR_BYTES as u64;
                self.write(mode, offset, SECTOR_BYTES)
            }
            Ask::Read { mode, block } if block < BLOCKS => {
                self.read(mode, block)?;
                let first = stamp::sectors_before(block.into());
                Ok(Answer::Content(stamp::read(self.id, first, &self.memory)))
            }
            Ask::ReadSector { mode, block, sector } if is_sector(block, sector) => {
                self.read(mode, block)?;
                let number = stamp::sectors_before(block.into()) + u64::from(sector);
                let at = sector as usize * SECTOR_BYTES;
                let data = &self.memory[at..at + SECTOR_BYTES];
                Ok(Answer::Content(stamp::read(self.id, number, data)))
            }
            Ask::Drop { block } if block < BLOCKS => {
                let (file, offset) = (self.held()?, offset_of(block));
                let _ = file.fdatasync();
                // Mapped pages are not dropped.
                if let Some(Ok(mapped)) = &self.mapped {
                    mapped.forget(offset as usize, BLOCK_BYTES);
                }
                file.drop_cached_part(offset, BLOCK_BYTES as u64);
                Ok(Answer::Done)
            }
            Ask::Cut if self.dir().is_some() => {
                let file = self.held()?;
                let cut = file.set_size(offset_of(BLOCKS - 1));
                let extended = cut.and_then(|()| file.set_size(FILE_BYTES));
                extended.map(|()| Answer::Done).map_err(|error| errno_of(&error))
            }
            Ask::FreeRun(run) if is_bounded(&run) => self.free_run(&run),
            Ask::Lock { lock, wait_ms } => {
                let wait = Duration::from_millis(wait_ms.into()).min(LOCK_WAIT_MAX);
                self.lock(lock, wait).map(Answer::Locked)
            }
            Ask::Count { rounds, block } if block < BLOCKS && rounds <= FREE_RUN_MAX => {
                self.count(rounds, block)
            }
            Ask::Name { name, act } if name < NAMES && self.dir().is_some() => self.name(name, act),
            Ask::End(_) => {
                self.clean();
                Ok(Answer::Done)
            }
            _ => Ok(Answer::Refused),
        }
    }

    fn dir(&self) -> Option<(&Arc<HeldDir>, u32)> {
        match &self.place {
            Place::Directory { dir, owner } => Some((dir, *owner)),
            Place::File(_) | Place::Device(_) => None,
        }
    }

    fn file_name(&self) -> OsString {
        scratch::name(self.id, "coherence").into()
    }

    fn name_of(&self, name: u32) -> OsString {
        scratch::name(self.id, &format!("coherence-{name}")).into()
    }

    fn create(&mut self) -> Done {
        let Some((dir, _)) = self.dir() else { return Ok(Answer::Done) };
        let file = BlockFile::create_in(dir, &self.file_name(), false);
        let file = file.map_err(|error| errno_of(&error))?;
        let held = file.reopen(Access::Read, false).map_err(|error| errno_of(&error))?;
        // If locks are not supported, nothing else removes it either. On NFS the first, a lock of
        // the whole file, is only available to descriptors open for writing, and the second keeps
        // off anyone who requests it.
        let _ = held.lock_exclusive();
        let rest = FILE_BYTES - LOCKED_BYTES;
        let _ = range_lock::set(&held, RangeLock::Shared, LOCKED_BYTES, rest);
        let marked = file.write_at(MARK, &mark(self.id));
        let made = file.set_size(FILE_BYTES).map_err(|error| errno_of(&error));
        let _ = dir.sync(Path::new(""));
        self.made = Some(held);
        marked.and(made)?;
        file.fsync().map(|()| Answer::Done)
    }

    /// Opens the file. An NFS client that has it open for writing takes changes for its own and
    /// keeps its pages, so a rank that only reads must not open it for writing.
    fn open(&mut self, to_write: bool) -> Done {
        (self.held, self.direct, self.mapped) = (None, None, None);
        let to_write = to_write && self.can_write;
        let access = if to_write { Access::ReadWrite } else { Access::Read };
        let held = self.open_file(access)?;
        if self.dir().is_some() && !is_marked(&held, self.id) {
            return Err(Errno::STALE.raw_os_error());
        }
        let direct = held.reopen(access, true).map_err(|error| errno_of(&error));
        let direct = direct.inspect(forget_read_ahead);
        let mapped = Mapped::new(&held, FILE_BYTES as usize, to_write);
        self.mapped = Some(mapped.map_err(|error| error.raw_os_error().unwrap_or(EIO)));
        self.held = Some(held);
        self.direct = Some(direct);
        Ok(Answer::Done)
    }

    /// Opens the file through the page cache, without read-ahead: in a directory by its name, as
    /// others see it, and only if a rank of this user can have made it.
    fn open_file(&self, access: Access) -> Result<BlockFile, i32> {
        let file = match &self.place {
            Place::Directory { dir, owner } => {
                let (name, flags) = (self.file_name(), flags_of(access));
                let file = dir.open_own(&name, *owner, flags).map_err(|error| errno(&error))?;
                BlockFile::of(file, &dir.path().join(name), false)
            }
            Place::File(file) | Place::Device(file) => {
                file.reopen(access, false).map_err(|error| errno_of(&error))?
            }
        };
        forget_read_ahead(&file);
        Ok(file)
    }

    fn held(&self) -> Result<&BlockFile, i32> {
        opened(self.held.as_ref())
    }

    /// Writes this many bytes of its memory.
    fn write(&self, mode: WriteMode, offset: u64, bytes: usize) -> Done {
        let data = &self.memory[..bytes];
        let written = match mode {
            WriteMode::Buffered => self.held()?.write_at(offset, data)?,
            WriteMode::Fdatasync => {
                let file = self.held()?;
                let written = file.write_at(offset, data)?;
                file.fdatasync()?;
                written
            }
            WriteMode::Dsync => self.held()?.write_dsync_at(offset, data)?,
            WriteMode::Direct => tried(self.direct.as_ref())?.write_at(offset, data)?,
            WriteMode::Mapped => {
                let mapped = tried(self.mapped.as_ref())?;
                mapped.write(offset as usize, data)?;
                mapped.sync(offset as usize, bytes)?;
                bytes
            }
        };
        if written == bytes { Ok(Answer::Done) } else { Err(EIO) }
    }

    /// Reads a block into its memory.
    fn read(&mut self, mode: ReadMode, block: u32) -> Result<(), i32> {
        let offset = offset_of(block);
        let again = matches!(mode, ReadMode::Reopened).then(|| self.open_file(Access::Read));
        let memory = &mut self.memory;
        let read = match mode {
            ReadMode::Held => opened(self.held.as_ref())?.read_at(offset, memory),
            ReadMode::Direct => tried(self.direct.as_ref())?.read_at(offset, memory),
            ReadMode::Mapped => {
                let mapped = tried(self.mapped.as_ref())?;
                mapped.read(offset as usize, memory).map(|()| BLOCK_BYTES)
            }
            ReadMode::Reopened => again.ok_or(EIO)??.read_at(offset, memory),
        };
        // Bytes that are not read are zeros, as in a file that is too short.
        let read = read?;
        self.memory[read..].fill(0);
        Ok(())
    }

    fn free_run(&mut self, run: &FreeRun) -> Done {
        let longest = Duration::from_millis(run.milliseconds.into()).min(FREE_RUN_LONGEST);
        let until = Instant::now() + longest;
        let mut rng = Rng::new(run.seed, run.rank.into());
        let mut steps = Vec::new();
        for number in 0..u64::from(run.operations) {
            if Instant::now() > until {
                break;
            }
            let block = run.first_block + rng.below(run.blocks.into()) as u32;
            let write = run.write.filter(|_| rng.below(2) == 0);
            let version = run.first_version.saturating_add(number);
            let first = stamp::sectors_before(block.into());
            let start_ns;
            let version = if let Some(mode) = write {
                stamp::write(self.id, first, version, &mut self.memory);
                start_ns = now_ns();
                self.write(mode, offset_of(block), BLOCK_BYTES)?;
                Some(version)
            } else {
                start_ns = now_ns();
                self.read(run.read, block)?;
                None
            };
            let end_ns = now_ns();
            let is_write = version.is_some();
            let version = version.or_else(|| match stamp::read(self.id, first, &self.memory) {
                Content::Whole(version) => Some(version),
                Content::Mixed(..) | Content::Foreign => None,
            });
            steps.push(Step { is_write, block, version, start_ns, end_ns });
        }
        Ok(Answer::History(steps))
    }

    fn lock(&self, lock: bool, wait: Duration) -> Result<bool, i32> {
        let until = Instant::now() + wait;
        let kind = if lock { RangeLock::Exclusive } else { RangeLock::None };
        loop {
            let taken = range_lock::set(self.held()?, kind, 0, LOCKED_BYTES)
                .map_err(|error| error.raw_os_error().unwrap_or(EIO))?;
            if taken || Instant::now() >= until {
                return Ok(taken);
            }
            thread::sleep(AGAIN);
        }
    }

    fn count(&mut self, rounds: u32, block: u32) -> Done {
        let first = stamp::sectors_before(block.into());
        for _ in 0..rounds {
            if !self.lock(true, LOCK_WAIT_MAX)? {
                return Err(Errno::TIMEDOUT.raw_os_error());
            }
            let counted = self.read(ReadMode::Held, block).and_then(|()| {
                let Content::Whole(number) = stamp::read(self.id, first, &self.memory) else {
                    return Err(EIO);
                };
                stamp::write(self.id, first, number.wrapping_add(1), &mut self.memory);
                self.write(WriteMode::Buffered, offset_of(block), BLOCK_BYTES)
            });
            self.lock(false, Duration::ZERO)?;
            counted?;
        }
        Ok(Answer::Done)
    }

    fn name(&mut self, name: u32, act: Act) -> Done {
        let Some((dir, owner)) = self.dir() else { return Ok(Answer::Refused) };
        let (dir, path) = (Arc::clone(dir), self.name_of(name));
        let open = |flags| dir.open_own(&path, owner, flags);
        let done = |result: io::Result<()>| result.map(|()| Answer::Done);
        let result = match act {
            Act::Create => {
                let made = BlockFile::create_in(&dir, &path, false);
                // Not for writing, like the file of the check; a process that removes files locks
                // all of it.
                let file = made.and_then(|file| file.plain()).map_err(|error| errno_of(&error))?;
                let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
                self.names.insert(name, Some(file));
                Ok(Answer::Done)
            }
            Act::Remove => done(dir.remove(Path::new(&path))).inspect(|_| {
                self.names.remove(&name);
            }),
            Act::RenameTo(other) if other < NAMES => {
                let to = self.name_of(other);
                done(dir.rename(Path::new(&path), Path::new(&to))).inspect(|_| {
                    if let Some(file) = self.names.remove(&name) {
                        self.names.insert(other, file);
                    }
                })
            }
            Act::Resize(bytes) if bytes <= FILE_BYTES => {
                done(open(OFlags::WRONLY).and_then(|file| file.set_len(bytes)))
            }
            Act::Chmod(mode) => {
                let mode = Mode::from_raw_mode(mode & 0o700);
                done(open(OFlags::RDONLY).and_then(|file| Ok(fchmod(file, mode)?)))
            }
            Act::Append { tag, records } if records <= RECORDS_MAX => {
                open(OFlags::WRONLY | OFlags::APPEND).and_then(|mut file| {
                    for _ in 0..records {
                        file.write_all(&[tag; RECORD_BYTES])?;
                    }
                    Ok(Answer::Done)
                })
            }
            Act::CountRecords => open(OFlags::RDONLY).and_then(|file| count_records(&file)),
            Act::Look => look(&dir, &path),
            Act::Open => look_at(open(OFlags::RDONLY)),
            Act::Close => {
                self.names.entry(name).and_modify(|file| *file = None);
                Ok(Answer::Done)
            }
            Act::Hold if self.kept_open.len() < KEPT_OPEN_MAX => open(OFlags::RDONLY).map(|file| {
                self.kept_open.insert(name, file);
                Answer::Done
            }),
            Act::CountHeld => match self.kept_open.get(&name) {
                Some(file) => count_again(file),
                None => Err(Errno::BADF.into()),
            },
            Act::Release => {
                self.kept_open.remove(&name);
                Ok(Answer::Done)
            }
            Act::List => lists(&dir, &path).map(Answer::Listed),
            _ => Ok(Answer::Refused),
        };
        result.map_err(|error| errno(&error))
    }

    /// Removes what this rank made, and the traces of the check on a device.
    fn clean(&mut self) {
        let is_used = matches!(self.place, Place::Device(_)) && self.held.is_some();
        if is_used && self.can_write && self.open(true).is_ok() {
            self.blank();
        }
        let mut made: Vec<OsString> = self.names.keys().map(|&name| self.name_of(name)).collect();
        made.extend(self.made.is_some().then(|| self.file_name()));
        if let Some((dir, _)) = self.dir() {
            for name in &made {
                let _ = dir.remove(Path::new(name));
            }
        }
        (self.names, self.kept_open, self.made) = (BTreeMap::new(), BTreeMap::new(), None);
        (self.held, self.direct, self.mapped) = (None, None, None);
    }

    /// Writes zeros over what the check wrote to a device, which counted as empty before.
    fn blank(&mut self) {
        self.memory.fill(0);
        for block in 0..BLOCKS {
            let mode = if matches!(self.direct, Some(Ok(_))) {
                WriteMode::Direct
            } else {
                WriteMode::Buffered
            };
            let _ = self.write(mode, offset_of(block), BLOCK_BYTES);
        }
        if let Ok(file) = self.held() {
            let _ = file.fdatasync();
            let _ = file.drop_cached();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.clean();
    }
}

fn opened(file: Option<&BlockFile>) -> Result<&BlockFile, i32> {
    file.ok_or(Errno::BADF.raw_os_error())
}

fn tried<T>(opened: Option<&Result<T, i32>>) -> Result<&T, i32> {
    match opened {
        Some(Ok(opened)) => Ok(opened),
        Some(Err(errno)) => Err(*errno),
        None => Err(Errno::BADF.raw_os_error()),
    }
}

fn offset_of(block: u32) -> u64 {
    u64::from(block) * STRIDE_BYTES
}

fn is_sector(block: u32, sector: u32) -> bool {
    block < BLOCKS && (sector as usize) < BLOCK_BYTES / SECTOR_BYTES
}

fn is_bounded(run: &FreeRun) -> bool {
    let last = run.first_block.checked_add(run.blocks);
    run.blocks > 0 && last.is_some_and(|it| it <= BLOCKS) && run.operations <= FREE_RUN_MAX
}

fn forget_read_ahead(file: &BlockFile) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
}

fn flags_of(access: Access) -> OFlags {
    match access {
        Access::Read => OFlags::RDONLY,
        Access::ReadWrite => OFlags::RDWR,
    }
}

/// Returns the mark after the first block of a check's file.
fn mark(id: u64) -> [u8; SECTOR_BYTES] {
    let mut sector = [0; SECTOR_BYTES];
    stamp::write(id, stamp::sectors_before(BLOCKS.into()), 0, &mut sector);
    sector
}

fn is_marked(file: &BlockFile, id: u64) -> bool {
    let mut found = [0; SECTOR_BYTES];
    let read = file.read_at(MARK, &mut found);
    file.drop_cached_part(MARK, BLOCK_BYTES as u64);
    read == Ok(SECTOR_BYTES) && found == mark(id)
}

/// Looks at a file that was opened. A server that knows no file of this handle any more answers as
/// if there were none.
fn look_at(file: io::Result<File>) -> io::Result<Answer> {
    let gone = |error: &io::Error| {
        [Errno::NOENT, Errno::STALE]
            .iter()
            .any(|it| error.raw_os_error() == Some(it.raw_os_error()))
    };
    match file.and_then(|file| Ok(rustix::fs::fstat(&file)?)) {
        Ok(found) => Ok(Answer::Look(Some(look_of(&found)))),
        Err(error) if gone(&error) => Ok(Answer::Look(None)),
        Err(error) => Err(error),
    }
}

fn look_of(found: &Stat) -> Look {
    Look { inode: found.st_ino, bytes: found.st_size as u64, mode: found.st_mode & 0o777 }
}

/// Looks at the file that a name leads to.
fn look(dir: &HeldDir, name: &OsStr) -> io::Result<Answer> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Answer::Look(Some(look_of(&found)))),
        Err(Errno::NOENT) => Ok(Answer::Look(None)),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether a directory lists a name.
fn lists(dir: &HeldDir, name: &OsStr) -> io::Result<bool> {
    let mut entries = Dir::read_from(dir)?.take(LISTED_MAX).flatten();
    Ok(entries.any(|entry| entry.file_name().to_bytes() == name.as_bytes()))
}

/// Counts the records of a file that was counted before, and whose pages may be cached.
fn count_again(mut file: &File) -> io::Result<Answer> {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    file.rewind()?;
    count_records(file)
}

/// Counts records of tag 1, of tag 2, and of neither.
fn count_records(file: &File) -> io::Result<Answer> {
    let mut content = Vec::new();
    let most = 4 * u64::from(RECORDS_MAX) * RECORD_BYTES as u64;
    file.take(most).read_to_end(&mut content)?;
    let mut records = Records::default();
    for record in content.chunks(RECORD_BYTES) {
        let is_all = |tag: u8| record.len() == RECORD_BYTES && record.iter().all(|&it| it == tag);
        *if is_all(1) {
            &mut records.first
        } else if is_all(2) {
            &mut records.second
        } else {
            &mut records.damaged
        } += 1;
    }
    Ok(Answer::Records(records))
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(EIO)
}

fn errno_of(error: &FileError) -> i32 {
    match error {
        FileError::Open { source, .. }
        | FileError::Create { source, .. }
        | FileError::Io { source, .. } => errno(source),
        FileError::Locked { .. } => Errno::WOULDBLOCK.raw_os_error(),
    }
}
