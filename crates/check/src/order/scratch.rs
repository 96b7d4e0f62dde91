//! Scratch files without a name: they disappear when they are closed, even if the process is
//! killed.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::order::findings::Mode;
use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_measure::claim::{ClaimError, Device};
use blockstone_measure::{contents, scratch};
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{Access, BlockFile, FileError};

use crate::CheckError;

pub const BLOCK: usize = 4096;
/// Blocks that are written beforehand, for all writers together, which reuse them in turn.
const WRITTEN: u64 = 1024;
/// Blocks that are not, each of which is written once.
const FRESH: u64 = 4096;

/// Place for the scratch files.
#[derive(Clone, Copy, Debug)]
pub struct Scratch<'a> {
    pub path: &'a Path,
    pub id: u64,
    /// Whether it is a claimed device instead of a directory.
    pub is_device: bool,
    /// Whether I/O goes through the page cache.
    pub is_buffered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All threads use one file.
    OneFile,
    /// Each thread has its own file; or readers share one and the writer next to them has another.
    OwnFiles,
}

#[derive(Debug)]
pub struct ScratchFile {
    /// Through the page cache, to prepare the file.
    buffered: BlockFile,
    /// The descriptor under test, or why it cannot be opened.
    pub tested: Result<BlockFile, FileError>,
    plain: File,
    /// Offset at which it begins on a device.
    pub first_byte: u64,
    /// Number of requests that fit in it.
    pub requests: u64,
}

/// Files of one side of a mode.
#[derive(Debug)]
pub struct Files {
    /// One for all, or one for each.
    pub files: Vec<ScratchFile>,
    /// File that one writer fills next to readers of the others; none if it is the first.
    pub beside: Option<ScratchFile>,
}

impl Files {
    /// Prepares the files; `None` if the file system does not support such files.
    pub fn prepared(
        place: &Scratch<'_>,
        mode: Mode,
        sharing: Sharing,
        writers: u32,
    ) -> Result<Option<Self>, CheckError> {
        if place.is_device {
            let file = ScratchFile::on_device(place)?;
            return Ok(Some(Self { files: vec![file], beside: None }));
        }
        let one = sharing == Sharing::OneFile;
        if mode == Mode::Readers {
            let mut file = ScratchFile::create(place)?;
            file.write(0..WRITTEN)?;
            file.requests = WRITTEN;
            let beside = if one {
                file.resize(WRITTEN + FRESH)?;
                None
            } else {
                Some(ScratchFile::prepared(place, Mode::Hole, FRESH)?).flatten()
            };
            file.settle()?;
            return Ok(Some(Self { files: vec![file], beside }));
        }
        let (count, blocks) = if one { (1, 1) } else { (writers, u64::from(writers)) };
        let blocks = if goes_round(mode) { WRITTEN } else { FRESH } / blocks;
        let mut files = Vec::new();
        for _ in 0..count {
            let Some(file) = ScratchFile::prepared(place, mode, blocks)? else { return Ok(None) };
            files.push(file);
        }
        Ok(Some(Self { files, beside: None }))
    }

    /// Returns the files whose locks are watched.
    pub fn watched(&self) -> Vec<&File> {
        self.files.iter().map(|file| &file.plain).collect()
    }

    /// Returns the blocks up to the ends of the files.
    pub fn blocks(&self) -> Result<u64, FileError> {
        let sizes = self.files.iter().map(|file| file.buffered.size_bytes());
        let bytes = sizes.sum::<Result<u64, _>>()?;
        Ok(bytes / BLOCK as u64)
    }

    /// Returns the file that one writer fills next to readers, and where its hole begins.
    pub fn filled(&self) -> (&ScratchFile, u64) {
        match &self.beside {
            Some(file) => (file, 0),
            None => (&self.files[0], WRITTEN),
        }
    }
}

/// Returns whether requests may go to the same blocks again.
pub fn goes_round(mode: Mode) -> bool {
    matches!(mode, Mode::Overwrite | Mode::SubBlock | Mode::SecondPass | Mode::Readers)
}

/// Requests that a writer next to readers may send.
pub const FILLED: u64 = FRESH;

impl ScratchFile {
    /// Prepares a file of this many blocks; `None` if the file system does not support such a file.
    fn prepared(place: &Scratch<'_>, mode: Mode, blocks: u64) -> Result<Option<Self>, CheckError> {
        let mut file = Self::create(place)?;
        file.requests = blocks;
        match mode {
            Mode::Overwrite | Mode::SubBlock | Mode::Readers => file.write(0..blocks)?,
            Mode::Append | Mode::Extend => {}
            Mode::Hole => file.resize(blocks)?,
            Mode::AllocateAhead => {
                // Its size afterwards shows whether the file system supports it.
                file.reserve(1)?;
                if file.buffered.size_bytes()? == 0 {
                    return Ok(None);
                }
            }
            Mode::Unwritten | Mode::Straddle | Mode::SecondPass => {
                file.reserve(blocks)?;
                if file.buffered.size_bytes()? == 0 {
                    return Ok(None);
                }
                if mode != Mode::Unwritten {
                    file.buffered.fsync().map_err(|errno| file.failed(errno))?;
                    // Fewer, because each is some work for the file system to distinguish.
                    let blocks = if goes_round(mode) { blocks } else { blocks / 4 };
                    file.write((0..blocks).filter(|block| block % 2 == 1))?;
                    file.requests = blocks / 2;
                    if mode == Mode::SecondPass {
                        file.buffered.fsync().map_err(|errno| file.failed(errno))?;
                        file.write((0..blocks).filter(|block| block % 2 == 0))?;
                    }
                }
            }
        }
        file.settle()?;
        Ok(Some(file))
    }

    /// Opens the claimed device, on which only as much is written as the modes need.
    fn on_device(place: &Scratch<'_>) -> Result<Self, CheckError> {
        let buffered = BlockFile::open(place.path, Access::ReadWrite, false)?;
        let tested = buffered.reopen(Access::ReadWrite, !place.is_buffered);
        let plain = buffered.plain()?;
        let first_byte = contents::EDGE.get();
        let file = Self { buffered, tested, plain, first_byte, requests: WRITTEN };
        file.write(0..WRITTEN)?;
        file.settle()?;
        Ok(file)
    }

    fn create(place: &Scratch<'_>) -> Result<Self, CheckError> {
        let path = place.path.join(scratch::name(place.id, "order"));
        let buffered = BlockFile::create_new(&path, false)?;
        // From here until its name is gone, the next check finds it if this one is killed.
        let locked = buffered.lock_exclusive();
        buffered.remove()?;
        locked?;
        let tested = buffered.reopen(Access::ReadWrite, !place.is_buffered);
        let plain = buffered.plain()?;
        Ok(Self { buffered, tested, plain, first_byte: 0, requests: 0 })
    }

    fn write(&self, blocks: impl IntoIterator<Item = u64>) -> Result<(), CheckError> {
        let mut data = Slot::new(BLOCK)?;
        for block in blocks {
            rng::fill(block, &mut data);
            match self.buffered.write_at(self.first_byte + block * BLOCK as u64, &data) {
                Ok(BLOCK) => {}
                Ok(_) => return Err(self.failed(NO_SPACE).into()),
                Err(errno) => return Err(self.failed(errno).into()),
            }
        }
        Ok(())
    }

    /// Allocates the first blocks, which are then part of the file.
    pub fn reserve(&self, blocks: u64) -> Result<(), FileError> {
        self.buffered.reserve(blocks * BLOCK as u64)
    }

    fn resize(&self, blocks: u64) -> Result<(), CheckError> {
        Ok(self.buffered.set_size(blocks * BLOCK as u64)?)
    }

    /// Puts what was prepared on the device and drops it from the page cache.
    fn settle(&self) -> Result<(), CheckError> {
        self.buffered.fsync().map_err(|errno| self.failed(errno))?;
        // This fails if there is no cache to drop from, which does no harm.
        let _ = self.buffered.drop_cached();
        Ok(())
    }

    fn failed(&self, errno: i32) -> FileError {
        self.buffered.error("write", io::Error::from_raw_os_error(errno))
    }
}

const NO_SPACE: i32 = 28;

/// A device that may be overwritten; it is cleared at the end.
#[derive(Debug)]
pub struct Claimed(BlockFile);

impl Claimed {
    /// Fails if the device was named only once, is in use, not empty, or too small.
    pub fn new(path: &Path, destroy: bool) -> Result<Self, CheckError> {
        let instead = Some("name a directory on it instead");
        Device { path, destroy, instead }.claim(is_ours)?;
        let file = BlockFile::open_device(path, false)?;
        let least = Bytes(2 * contents::EDGE.get() + (WRITTEN + FRESH) * BLOCK as u64);
        let (path, size) = (path.to_owned(), Bytes(file.size_bytes()?));
        if size < least {
            let hint = "use a larger device".to_owned();
            return Err(ClaimError::TooSmall { path, least, size, hint }.into());
        }
        Ok(Self(file))
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        contents::clear(self.0.path());
    }
}

/// Returns whether a killed check left this: its first sector is that of one of the writers.
fn is_ours(device: &Path) -> Result<bool, FileError> {
    let (mut found, mut written) = ([0; 512], [0; 512]);
    let device = BlockFile::open(device, Access::Read, false)?;
    if device.read_at(contents::EDGE.get(), &mut found) != Ok(found.len()) {
        return Ok(false);
    }
    Ok((0..=WRITERS_MAX).any(|writer| {
        rng::fill(writer, &mut written);
        written == found
    }))
}

/// Each writer fills its buffer by its number, including the writer next to readers.
const WRITERS_MAX: u64 = 16;

/// Returns whether `look` says so for a file there.
pub fn is_in_memory(
    place: &Scratch<'_>,
    look: impl Fn(&File) -> io::Result<bool>,
) -> Result<bool, CheckError> {
    Ok(look(&ScratchFile::create(place)?.plain).unwrap_or(false))
}

/// Removes files that killed checks left in the moment before they were unlinked.
pub fn remove_orphans(dir: &Path) {
    scratch::remove_orphans(dir, &[]);
}
