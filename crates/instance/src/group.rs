//! A disk group: files striped and mirrored over disks, as a storage manager does for a database.
//!
//! Every file is cut into allocation units. The primary copies of a file are distributed
//! round-robin over all disks, so every disk serves its share of the reads. The other copies of a
//! unit are in other failure groups, so that no common failure takes all copies. A coarse file
//! fills one unit after the other. A fine file is striped over eight units, 128 KiB at a time, so
//! that one log write of a megabyte occupies eight disks.
//!
//! **Guarantees.** When a write returns, it is on every disk that was online, or all other disks
//! have durably recorded which disk missed it. A disk goes offline when a write or sync to it
//! fails, or when its file vanishes, which is noticed within 200 ms. But if some unit would lose
//! its last copy, the write fails instead. Reads take the primary, then the mirrors, and write a
//! good copy over a bad one. A disk that returns is resynced: it gets the units it missed, or all
//! of its units after a crash and whenever it is unknown which it missed. Every block of them is
//! verified and taken from an intact copy; a block without an intact copy is reported by name.
//!
//! A successful sync covers every write that had returned when the sync was called, whichever
//! caller did the flush. A failed flush is not repeated: its disk goes offline and counts as having
//! missed what the flush covered. If that was a last copy, the group takes no more writes until it
//! is opened again.
//!
//! **No guarantees.** When the machine dies, a write that had not returned may be on one copy and
//! not on the other, although both are intact. Recovery makes the copies equal: it rewrites every
//! block that it finds in the redo, even if the copy that it read is up to date. And a disk that
//! was offline when all others went away cannot know what it missed. Opened alone, it serves the
//! data it has; when the others return, the two halves are recognised as different and are not
//! joined.

mod alloc;
mod batch;
mod codec;
mod copy;
mod damage;
mod error;
mod header;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod locate;
mod map;
mod member;
mod open;
mod read;
mod resync;
mod setup;
mod state;
mod units;
mod write;

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use blockstone_base::{Bytes, Capability, named};
use serde::Serialize;

use crate::disk::Disk;
pub use damage::{BadBlock, BadBlocks, Verifier};
pub use error::GroupError;
use map::FileMap;
pub use member::{DiskCounters, DiskState};
use state::Shared;

/// Bytes that a fine file deals to one allocation unit before it moves to the next.
pub const FINE_STRIPE: Bytes = Bytes::kib(128);
/// Number of allocation units over which a fine file deals its stripes.
pub const FINE_WIDTH: u64 = 8;

named! {
    /// How many copies of everything a group keeps: one, if the disks are safe on their own, two or
    /// three.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    Redundancy {
        External = "external",
        Normal = "normal",
        High = "high",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskSpec {
    /// A directory, a file that does not exist yet, or a block device that may be overwritten.
    pub path: PathBuf,
    /// Failure group, whose disks fail together; a group of its own if none is named.
    pub failure_group: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    pub disks: Vec<DiskSpec>,
    pub redundancy: Redundancy,
    /// Size of an allocation unit: 1 MiB or 4 MiB.
    pub allocation_unit: Bytes,
    /// Bypass the page cache.
    pub direct: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    pub name: String,
    /// Size of the file, in whole blocks.
    pub size: Bytes,
    /// Size of a block, the unit of verification and repair.
    pub block: Bytes,
    /// Whether it is finely striped, like redo.
    pub fine: bool,
}

/// A disk that is already open, with its failure group: for groups on hostile disks.
#[derive(Clone, Debug)]
pub struct Member {
    pub disk: Arc<dyn Disk>,
    pub failure_group: String,
}

/// An open disk group. Clones are the same group.
#[derive(Clone)]
pub struct DiskGroup(Arc<Shared>);

/// A file in a group. Clones are the same file; it keeps its group open.
#[derive(Clone)]
pub struct GroupFile {
    shared: Arc<Shared>,
    index: usize,
}

/// One block, or several adjacent ones, of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchWrite<'a> {
    pub offset: u64,
    /// The data; aligned in memory to [`crate::disk::ALIGN_BYTES`] if the group is direct.
    pub data: &'a [u8],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadInfo {
    pub ios: u32,
    /// Whether a copy other than the primary had to serve the read.
    pub degraded: bool,
    /// Bad copies of blocks that were overwritten with good ones.
    pub repaired_blocks: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchInfo {
    /// I/Os at the disks: adjacent blocks count as one, each copy counts separately.
    pub ios: u64,
    /// Bytes at the disks, all copies.
    pub bytes: u64,
    /// Sum of the service times of these I/Os, in nanoseconds, however many were in flight
    /// together.
    pub service_ns: u64,
}

/// Receives the number of bytes laid out and the total, and may end the work; called from several
/// threads.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) -> ControlFlow<()> + Sync);

pub fn unwatched(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl Redundancy {
    pub const fn copies(self) -> usize {
        self as usize + 1
    }

    fn from_copies(copies: usize) -> Option<Self> {
        Self::ALL.iter().copied().find(|redundancy| redundancy.copies() == copies)
    }
}

impl From<PathBuf> for DiskSpec {
    fn from(path: PathBuf) -> Self {
        Self { path, failure_group: None }
    }
}

impl From<Arc<dyn Disk>> for Member {
    /// Puts the disk in a failure group of its own.
    fn from(disk: Arc<dyn Disk>) -> Self {
        Self { failure_group: disk.name().to_owned(), disk }
    }
}

impl DiskGroup {
    /// Creates a group with all its files, and writes every byte of them once, so that no hole and
    /// no unwritten extent is left to answer a read. If it fails it leaves nothing behind. Fails if
    /// the spec contradicts itself, a disk is in use or not empty, there is no room, or `progress`
    /// ended it.
    pub fn create(
        spec: &GroupSpec,
        files: &[FileSpec],
        progress: Progress<'_>,
    ) -> Result<Self, GroupError> {
        setup::create(spec, files, progress).map(|shared| Self(Arc::new(shared)))
    }

    /// Returns the bytes that [`DiskGroup::create`] would take of each disk, in their order.
    /// Nothing is inspected or written; a device may still turn out to be too small. Fails if the
    /// spec contradicts itself.
    pub fn requirements(spec: &GroupSpec, files: &[FileSpec]) -> Result<Vec<Bytes>, GroupError> {
        setup::requirements(spec, files)
    }

    /// Creates a group on disks that are already open. Nothing is laid out. Fails if the parameters
    /// contradict each other, or a disk is too small or fails.
    pub fn create_on(
        members: Vec<Member>,
        redundancy: Redundancy,
        allocation_unit: Bytes,
        files: &[FileSpec],
    ) -> Result<Self, GroupError> {
        let shared = setup::create_on(members, redundancy, allocation_unit, files)?;
        Ok(Self(Arc::new(shared)))
    }

    /// Opens the group on the disks at `paths` and locks every one of them. A disk that is missing
    /// or damaged is offline, as long as every unit has another copy. Fails if a disk is in use,
    /// belongs to another group, or too many are missing.
    pub fn open(paths: &[PathBuf], direct: bool) -> Result<Self, GroupError> {
        open::open(paths, direct).map(|shared| Self(Arc::new(shared)))
    }

    /// Opens the group on disks that are already open.
    pub fn open_on(disks: Vec<Arc<dyn Disk>>) -> Result<Self, GroupError> {
        open::open_on(disks, Vec::new()).map(|shared| Self(Arc::new(shared)))
    }

    /// Removes the group on the disks at `paths`: files are deleted, devices become empty. Fails if
    /// a disk is in use or holds no group, or none is there; disks before it have then already been
    /// removed.
    pub fn remove(paths: &[PathBuf]) -> Result<(), GroupError> {
        setup::remove(paths)
    }

    /// Returns a file by its name. Fails if the group has no such file.
    pub fn file(&self, name: &str) -> Result<GroupFile, GroupError> {
        let found = self.0.files.iter().position(|file| file.name == name);
        let index = found.ok_or_else(|| GroupError::NoSuchFile { name: name.to_owned() })?;
        Ok(GroupFile { shared: Arc::clone(&self.0), index })
    }

    /// Returns the names of its files, in the order of creation.
    pub fn file_names(&self) -> Vec<String> {
        self.0.files.iter().map(|file| file.name.clone()).collect()
    }

    pub fn redundancy(&self) -> Redundancy {
        self.0.identity.redundancy
    }

    pub fn allocation_unit(&self) -> Bytes {
        Bytes(self.0.identity.unit_bytes)
    }

    /// Whether all disks bypass the page cache, and if not, why.
    pub fn direct(&self) -> Capability {
        self.0.direct()
    }

    pub fn disk_names(&self) -> Vec<String> {
        self.0.members.iter().map(|member| member.name.clone()).collect()
    }

    /// Returns the cumulative counters of each disk since the group was opened, by disk number.
    pub fn counters(&self) -> Vec<DiskCounters> {
        self.0.members.iter().map(member::Slot::counters).collect()
    }

    /// Takes the blocks without an intact copy that were found since the last call, while disks
    /// returned.
    pub fn take_bad_blocks(&self) -> BadBlocks {
        std::mem::take(&mut self.0.bad_blocks.lock())
    }

    /// Makes durable every write of every file that returned before, by flushes that begin after
    /// the call; calls that wait for each other share one. Fails if a disk that holds a last copy
    /// fails. Data written since the last sync may then be lost, and the group takes no more writes
    /// until it is opened again.
    pub fn sync(&self) -> Result<(), GroupError> {
        self.0.sync()
    }

    /// Takes a disk offline, as if its writes had failed. Fails if it holds the last copy of
    /// something, or the other disks cannot be updated.
    pub fn offline(&self, disk: usize) -> Result<(), GroupError> {
        self.0.take_offline(disk)
    }

    /// Opens an offline disk again where it was, gives it the units that it missed while reads and
    /// writes continue, reads them back, and puts it online, for as long as `go_on` returns true.
    /// Returns the number of units copied. Fails if the disk is not offline, cannot be opened,
    /// belongs to another group, or fails again, or if `go_on` ended it.
    pub fn online_and_resync(
        &self,
        disk: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Result<u64, GroupError> {
        self.0.return_from_path(disk, go_on)
    }

    /// Creates a new disk in place of an offline one that is gone for good: a file where it was, or
    /// the device there, which must be empty. It gets all of its units from their other copies.
    /// Returns the number of units copied. Fails if the disk is not offline, something is in its
    /// place, there is no room, or it fails.
    pub fn replace(&self, disk: usize) -> Result<u64, GroupError> {
        self.0.replace(disk)
    }

    /// Like [`DiskGroup::online_and_resync`], with a disk that is already open.
    pub fn online_and_resync_on(
        &self,
        disk: usize,
        returned: &Arc<dyn Disk>,
    ) -> Result<u64, GroupError> {
        self.0.return_disk(disk, returned, &|| true)
    }

    /// Closes the group in order: syncs, and records exactly what offline disks missed.
    pub fn close(&self) -> Result<(), GroupError> {
        self.0.close()
    }
}

impl fmt::Debug for DiskGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskGroup")
            .field("redundancy", &self.redundancy())
            .field("files", &self.file_names())
            .field("disks", &self.disk_names())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for GroupFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupFile").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl GroupFile {
    fn map(&self) -> &FileMap {
        &self.shared.files[self.index]
    }

    pub fn name(&self) -> &str {
        &self.map().name
    }

    pub fn size(&self) -> u64 {
        self.map().size_bytes
    }

    /// Returns the size of a block, the unit of verification and repair, in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.map().block_bytes
    }

    /// Sets the verifier for blocks that are copied to a returning disk from now on: it says
    /// whether the block at an offset is intact. Blocks that were never written need not be.
    pub fn verify_with(&self, verifier: Verifier) {
        self.shared.verifiers.write()[self.index] = Some(verifier);
    }

    /// Reads `out.len()` bytes at `offset`, both whole blocks. `verify` is called for every block
    /// with its offset in the file, and possibly again for another copy of a block that it refused.
    /// A copy that it refuses or that cannot be read is overwritten with a good one. Fails if no
    /// copy of some block can be read, or none is accepted.
    #[inline]
    pub fn read(
        &self,
        offset: u64,
        out: &mut [u8],
        verify: &dyn Fn(u64, &[u8]) -> bool,
    ) -> Result<ReadInfo, GroupError> {
        self.shared.read(self.map(), offset, out, verify)
    }

    /// Like [`GroupFile::read`], but returns false if no copy of some block is accepted. Fails if
    /// no copy of some block can be read.
    pub fn read_if_whole(
        &self,
        offset: u64,
        out: &mut [u8],
        verify: &dyn Fn(u64, &[u8]) -> bool,
    ) -> Result<bool, GroupError> {
        match self.read(offset, out, verify) {
            Ok(_) => Ok(true),
            Err(GroupError::Corrupt { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Reads one block at `offset` from every disk that has it, the primary first, and passes each
    /// copy to `seen`: for data that must be found even if its copies differ. Fails if no copy can
    /// be read.
    pub fn read_copies(
        &self,
        offset: u64,
        block: &mut [u8],
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GroupError> {
        self.shared.read_copies(self.map(), offset, block, seen)
    }

    /// Makes every copy of one block at `offset` equal to `block`, durably and one after the other.
    /// Copies that are already equal stay untouched, so that a power loss leaves at least one.
    pub fn restore(&self, offset: u64, block: &[u8]) -> Result<(), GroupError> {
        self.shared.restore(self.map(), offset, block)
    }

    /// Writes `data` at `offset` to all copies concurrently; durably if `durable`. Fails if no copy
    /// of some part took it, or the last copy of something would be lost. The content of the disks
    /// is then unknown.
    pub fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<BatchInfo, GroupError> {
        self.shared.write(self.map(), &[BatchWrite { offset, data }], durable)
    }

    /// Writes a batch in any order, all copies of all blocks in flight together; blocks that are
    /// adjacent on a disk become one I/O of up to 1 MiB. Durable after [`DiskGroup::sync`]. Fails
    /// like [`GroupFile::write`]; which of the other blocks were written is then unknown.
    pub fn write_batch(&self, writes: &[BatchWrite<'_>]) -> Result<BatchInfo, GroupError> {
        self.shared.write(self.map(), writes, false)
    }

    /// Makes durable every write to the group that returned before.
    pub fn sync(&self) -> Result<(), GroupError> {
        self.shared.sync()
    }
}
