//! A disk group: files striped and mirrored over disks, as a storage manager does for a database.
//!
//! Every file is cut into allocation units. The primary copies of a file go round over all disks,
//! so every disk serves its share of the reads; the other copies of a unit lie in other failure
//! groups, so that what fails together never takes all copies. A coarse file has one unit after the
//! other; a fine one deals 128 KiB at a time to eight units, so that one log write of a megabyte
//! occupies eight disks.
//!
//! **What is promised.** A write that returned is on every disk that was online, or the disk that
//! missed it is known on all others, durably, before the write returns. A disk goes offline when a
//! write or sync to it fails, or when its file vanishes, which is noticed within 200 ms; unless
//! some unit would lose its last copy: then the write fails instead. Reads take the primary, then
//! the mirrors, and write a good copy over a bad one. A disk that returns gets the units it missed;
//! after a crash, and whenever it cannot be known which those are, all of its units. Every block of
//! them is verified and taken from a copy that is intact; where there is none, it is named.
//!
//! A sync that returned well covers every write that had returned when it was called, whichever
//! caller flushed. A flush that fails is not repeated: its disk goes offline and missed what the
//! flush covered. If that was a last copy, the group takes no more writes until it is opened again.
//!
//! **What is not.** When the machine dies, writes that had not returned may be on one copy and not
//! on the other, both whole. Recovery writes every block that it finds in the redo again, also when
//! the copy that it read is up to date; that makes the copies equal. And a disk that was offline
//! when all others went away cannot know what it missed: opened alone it serves what it has, and
//! when the others return the two are told apart and not joined.

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

use crate::disk::Disk;
pub use damage::{BadBlock, BadBlocks, Verifier};
pub use error::GroupError;
use map::FileMap;
pub use member::{DiskCounters, DiskState};
use state::Shared;

/// Bytes that a fine file deals to one allocation unit before it goes on to the next.
pub const FINE_STRIPE: Bytes = Bytes::kib(128);
/// Allocation units between which a fine file deals its stripes.
pub const FINE_WIDTH: u64 = 8;

named! {
    /// How many copies of everything a group keeps: one, as the disks are safe by themselves, two
    /// or three.
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
    /// What it fails together with; by itself when none is named.
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
    /// Its size, whole blocks.
    pub size: Bytes,
    /// What is verified and repaired as one.
    pub block: Bytes,
    /// Whether it is striped finely, as redo is.
    pub fine: bool,
}

/// A disk that is open already, with its failure group: for groups on hostile disks.
#[derive(Clone, Debug)]
pub struct Member {
    pub disk: Arc<dyn Disk>,
    pub failure_group: String,
}

/// A disk group that is open. Clones are the same group.
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
    /// The data; aligned in memory to [`crate::disk::ALIGN_BYTES`] where the group is direct.
    pub data: &'a [u8],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadInfo {
    pub ios: u32,
    /// Whether another copy than the primary had to serve.
    pub degraded: bool,
    /// Bad copies of blocks that were overwritten with good ones.
    pub repaired_blocks: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchInfo {
    /// I/Os at the disks: adjacent blocks are one, every copy is another.
    pub ios: u64,
    /// Bytes at the disks, all copies.
    pub bytes: u64,
    /// Service times of these I/Os added up, in nanoseconds: however many were in flight at once.
    pub service_ns: u64,
}

/// Receives how many bytes of how many were laid out, and may end the work; called from several
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
    /// The disk in a failure group of its own.
    fn from(disk: Arc<dyn Disk>) -> Self {
        Self { failure_group: disk.name().to_owned(), disk }
    }
}

impl DiskGroup {
    /// Creates a group with all its files, and writes every byte of them once, so that no hole and
    /// no unwritten extent is left to answer a read. When it fails it leaves nothing behind. Fails
    /// when the spec contradicts itself, a disk is in use or not empty, there is no room, or
    /// `progress` ended it.
    pub fn create(
        spec: &GroupSpec,
        files: &[FileSpec],
        progress: Progress<'_>,
    ) -> Result<Self, GroupError> {
        setup::create(spec, files, progress).map(|shared| Self(Arc::new(shared)))
    }

    /// What [`DiskGroup::create`] would take of each disk, in their order. Nothing is looked at or
    /// written; a device may still turn out to be too small. Fails when the spec contradicts
    /// itself.
    pub fn requirements(spec: &GroupSpec, files: &[FileSpec]) -> Result<Vec<Bytes>, GroupError> {
        setup::requirements(spec, files)
    }

    /// Creates a group on disks that are open already. Nothing is laid out. Fails when the
    /// parameters contradict each other, or a disk is too small or fails.
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
    /// or damaged is offline, as long as every unit has another copy. Fails when a disk is in use,
    /// belongs elsewhere, or too many are missing.
    pub fn open(paths: &[PathBuf], direct: bool) -> Result<Self, GroupError> {
        open::open(paths, direct).map(|shared| Self(Arc::new(shared)))
    }

    /// Opens the group on disks that are open already.
    pub fn open_on(disks: Vec<Arc<dyn Disk>>) -> Result<Self, GroupError> {
        open::open_on(disks, Vec::new()).map(|shared| Self(Arc::new(shared)))
    }

    /// Removes the group on the disks at `paths`: files are deleted, devices become empty. Fails
    /// when a disk is in use or holds no group, or none is there; disks before it are removed
    /// already.
    pub fn remove(paths: &[PathBuf]) -> Result<(), GroupError> {
        setup::remove(paths)
    }

    /// A file by its name. Fails when the group has no such file.
    pub fn file(&self, name: &str) -> Result<GroupFile, GroupError> {
        let found = self.0.files.iter().position(|file| file.name == name);
        let index = found.ok_or_else(|| GroupError::NoSuchFile { name: name.to_owned() })?;
        Ok(GroupFile { shared: Arc::clone(&self.0), index })
    }

    /// The names of its files, in the order of creation.
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

    /// What each disk did since the group was opened, by disk number; cumulative.
    pub fn counters(&self) -> Vec<DiskCounters> {
        self.0.members.iter().map(member::Slot::counters).collect()
    }

    /// The blocks without an intact copy that were found since this was last asked, while disks
    /// returned.
    pub fn take_bad_blocks(&self) -> BadBlocks {
        std::mem::take(&mut self.0.bad_blocks.lock())
    }

    /// Makes durable every write of every file that returned before, by flushes that begin after
    /// the call; calls that wait for each other share one. Fails when a disk that holds a last copy
    /// fails. What was written since the last sync may then be lost, and the group takes no more
    /// writes until it is opened again.
    pub fn sync(&self) -> Result<(), GroupError> {
        self.0.sync()
    }

    /// Takes a disk offline, as when its writes fail. Fails when it holds the last copy of
    /// something, or the other disks cannot be updated.
    pub fn offline(&self, disk: usize) -> Result<(), GroupError> {
        self.0.take_offline(disk)
    }

    /// Opens an offline disk again where it was, gives it the units that it missed while reads and
    /// writes go on, reads back what it took, and takes it back, for as long as `go_on` says so.
    /// Returns the number of units copied. Fails when the disk is not offline, cannot be opened,
    /// belongs elsewhere, or fails again, and when it was aborted.
    pub fn online_and_resync(
        &self,
        disk: usize,
        go_on: &dyn Fn() -> bool,
    ) -> Result<u64, GroupError> {
        self.0.return_from_path(disk, go_on)
    }

    /// Makes a new disk in the place of an offline one that is gone for good: a file where it was,
    /// or the device there, which must be empty. It gets all of its units from their other copies.
    /// Returns the number of units copied. Fails when the disk is not offline, something is in its
    /// place, there is no room, or it fails.
    pub fn replace(&self, disk: usize) -> Result<u64, GroupError> {
        self.0.replace(disk)
    }

    /// As [`DiskGroup::online_and_resync`], with a disk that is open already.
    pub fn online_and_resync_on(
        &self,
        disk: usize,
        returned: &Arc<dyn Disk>,
    ) -> Result<u64, GroupError> {
        self.0.return_disk(disk, returned, &|| true)
    }

    /// Ends the use of the group in order: syncs, and notes exactly what offline disks missed.
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

    /// The size of what is verified and repaired as one, in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.map().block_bytes
    }

    /// Has every block that is copied to a returning disk verified from now on: `verifier` says
    /// whether the block at an offset is intact. Blocks that were never written need not be.
    pub fn verify_with(&self, verifier: Verifier) {
        self.shared.verifiers.write()[self.index] = Some(verifier);
    }

    /// Reads `out.len()` bytes at `offset`, both whole blocks. `verify` is asked for every block
    /// with its offset in the file; it may be asked again for another copy of a block that it
    /// refused. A copy that it refuses or that cannot be read is overwritten with a good one. Fails
    /// when no copy of some block can be read, or none is accepted.
    #[inline]
    pub fn read(
        &self,
        offset: u64,
        out: &mut [u8],
        verify: &dyn Fn(u64, &[u8]) -> bool,
    ) -> Result<ReadInfo, GroupError> {
        self.shared.read(self.map(), offset, out, verify)
    }

    /// As [`GroupFile::read`]; false when no copy of some block is accepted. Fails when no copy of
    /// some block can be read.
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

    /// Reads one block at `offset` from every disk that has it, the primary first, and shows each
    /// copy to `seen`: for what must be found although its copies differ. Fails when no copy can be
    /// read.
    pub fn read_copies(
        &self,
        offset: u64,
        block: &mut [u8],
        seen: &mut dyn FnMut(&[u8]),
    ) -> Result<(), GroupError> {
        self.shared.read_copies(self.map(), offset, block, seen)
    }

    /// Makes every copy of one block at `offset` what `block` is, durably and one after the other.
    /// Copies that are equal to it already stay untouched, so that a power loss leaves at least
    /// one.
    pub fn restore(&self, offset: u64, block: &[u8]) -> Result<(), GroupError> {
        self.shared.restore(self.map(), offset, block)
    }

    /// Writes `data` at `offset` to all copies at once; durably when `durable`. Fails when no copy
    /// of some part took it, or the last copy of something would be lost. What is then on the disks
    /// is unknown.
    pub fn write(&self, offset: u64, data: &[u8], durable: bool) -> Result<BatchInfo, GroupError> {
        self.shared.write(self.map(), &[BatchWrite { offset, data }], durable)
    }

    /// Writes a batch in any order, all copies of all blocks in flight at once; blocks that are
    /// adjacent on a disk become one I/O of up to 1 MiB. Durable after [`DiskGroup::sync`]. As
    /// [`GroupFile::write`]; which of the others were written is unknown.
    pub fn write_batch(&self, writes: &[BatchWrite<'_>]) -> Result<BatchInfo, GroupError> {
        self.shared.write(self.map(), writes, false)
    }

    /// Makes durable every write to the group that returned before.
    pub fn sync(&self) -> Result<(), GroupError> {
        self.shared.sync()
    }
}
