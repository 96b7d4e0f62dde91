//! Contents of a device before it is overwritten.
//!
//! A device counts as empty if its first and last MiB are zeros, as well as every place where a
//! file system keeps a superblock or a copy of it, and 1,024 blocks drawn at random, one from each
//! of as many equal parts. Data on 1 % of a device, wherever it is, is missed in one of 30,000
//! checks.
//!
//! A measurement leaves a device with zeros at both ends and with its own data between them. It
//! writes a mark before the last MiB: the seed of a draw and the checksum of the drawn blocks.
//! While that is still valid, nothing else was written, and the device counts as empty.

mod mark;
mod signatures;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use blockstone_base::rng::{self, Rng};
use blockstone_base::units::Bytes;
use blockstone_sys::clock;
use blockstone_sys::file::{Access, BlockFile, FileError};
use rustix::fs::{Advice, SeekFrom};

use mark::Mark;

/// Size of each end of a device, where partition tables, superblocks, LVM and RAID labels of every
/// version are stored.
pub const EDGE: Bytes = Bytes::mib(1);
/// Unit in which a device is sampled.
pub const BLOCK_BYTES: u64 = 4096;
const SAMPLES: u64 = 1024;

/// Contents found on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// A device without any bytes, such as a loop device without a file.
    NoBytes,
    Empty,
    /// A file system, volume, partition table or the like.
    Known(&'static str),
    /// Something else, with a block at this offset.
    Unknown {
        offset_bytes: u64,
    },
}

/// Examines a device, which must not be in use: the kernel refuses when a mount, swap, a RAID or
/// another program holds it, in whatever namespace. Fails when it is held or unreadable.
pub fn of(device: &Path) -> Result<Contents, FileError> {
    let held = BlockFile::open_device_to_read(device)?;
    look(&held.plain()?).map_err(|source| held.error("read", source))
}

/// Returns whether an end of a device holds data. Fails when the device is held or unreadable.
pub fn edges_hold_data(device: &Path) -> Result<bool, FileError> {
    let held = BlockFile::open_device_to_read(device)?;
    ends_hold_data(&held.plain()?).map_err(|source| held.error("read", source))
}

fn ends_hold_data(file: &File) -> io::Result<bool> {
    Ok(edge_data(file, size_of(file)?)?.is_some())
}

/// Returns the offsets at which blocks of a device of this size are examined, in ascending order:
/// the places of superblocks and a draw determined by `seed`. A small device is examined
/// completely.
pub fn places(size_bytes: u64, seed: u64) -> Vec<u64> {
    let blocks = size_bytes / BLOCK_BYTES;
    let mut found: Vec<u64> = if blocks <= SAMPLES {
        (0..blocks).collect()
    } else {
        let mut rng = Rng::new(seed, 0xd5);
        let start =
            |part: u64| (u128::from(blocks) * u128::from(part) / u128::from(SAMPLES)) as u64;
        let drawn = (0..SAMPLES).map(|part| {
            start(part) + rng.below(start(part + 1).saturating_sub(start(part)).max(1))
        });
        drawn.collect()
    };
    found.extend(signatures::superblocks(size_bytes).map(|at| at / BLOCK_BYTES));
    found.retain(|&block| block < blocks);
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|block| block * BLOCK_BYTES).collect()
}

/// Clears both ends of a device that was measured, and marks what is between them as left by the
/// measurement. If that fails, the next claim reports that the device is not empty.
pub fn clear(device: &Path) {
    if let Ok(file) = BlockFile::open(device, Access::Read, false)
        && file.is_device()
    {
        clear_open(&file);
    }
}

/// Like [`clear`], for an open device. Bypasses the page cache, which would send a request for
/// every 4 KiB to a device under a cap.
pub fn clear_open(file: &BlockFile) {
    let Ok(file) = file.reopen(Access::ReadWrite, true) else { return };
    let Ok(size_bytes) = file.size_bytes() else { return };
    let edge_bytes = EDGE.get().min(size_bytes);
    if edge_bytes == 0 || mark::write_zeros(&file, 0, edge_bytes).is_err() {
        return;
    }
    let last = size_bytes - edge_bytes;
    if mark::write_zeros(&file, last, edge_bytes).is_ok() {
        leave_mark(&file, size_bytes);
    }
}

/// Marks a device whose ends are clear as left by a measurement that was cut short.
pub fn mark_if_clear(device: &Path) {
    if let Ok(file) = BlockFile::open_device(device, true) {
        mark_open_if_clear(&file);
    }
}

fn mark_open_if_clear(file: &BlockFile) {
    let Ok(size_bytes) = file.size_bytes() else { return };
    let Ok(buffered) = file.plain() else { return };
    if matches!(edge_data(&buffered, size_bytes), Ok(None)) {
        leave_mark(file, size_bytes);
    }
}

/// Writes the mark; a device too small for a mark is cleared completely.
fn leave_mark(file: &BlockFile, size_bytes: u64) {
    let Some(offset_bytes) = mark::offset(size_bytes) else {
        let middle = size_bytes.saturating_sub(2 * EDGE.get());
        let _ = mark::write_zeros(file, EDGE.get(), middle);
        return;
    };
    let seed = rng::mix(clock::now_ns() ^ rng::mix(u64::from(std::process::id())));
    let Ok(buffered) = file.plain() else { return };
    let _ = rustix::fs::fadvise(&buffered, 0, None, Advice::Random);
    if let Ok(mark) = Mark::take(&buffered, size_bytes, seed) {
        let _ = mark.write(file, offset_bytes);
    }
    let _ = rustix::fs::fadvise(&buffered, 0, None, Advice::DontNeed);
}

fn look(file: &File) -> io::Result<Contents> {
    let size_bytes = size_of(file)?;
    if size_bytes == 0 {
        return Ok(Contents::NoBytes);
    }
    if let Some(known) = signatures::find(file, size_bytes)? {
        return Ok(Contents::Known(known));
    }
    if let Some(offset_bytes) = edge_data(file, size_bytes)? {
        return Ok(Contents::Unknown { offset_bytes });
    }
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
    let data = if Mark::read(file, size_bytes)?.is_some_and(|mark| mark.holds(file, size_bytes)) {
        None
    } else {
        sampled_data(file, size_bytes)?
    };
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    Ok(data.map_or(Contents::Empty, |offset_bytes| Contents::Unknown { offset_bytes }))
}

/// Returns the first place in the first or last MiB that is not zero.
fn edge_data(file: &File, size_bytes: u64) -> io::Result<Option<u64>> {
    let edge_bytes = EDGE.get().min(size_bytes);
    let mut bytes = vec![0; edge_bytes as usize];
    for offset_bytes in [0, size_bytes - edge_bytes] {
        file.read_exact_at(&mut bytes, offset_bytes)?;
        if let Some(at) = bytes.iter().position(|&byte| byte != 0) {
            return Ok(Some(offset_bytes + at as u64));
        }
    }
    Ok(None)
}

/// Returns the first of the sampled blocks that is not zero.
fn sampled_data(file: &File, size_bytes: u64) -> io::Result<Option<u64>> {
    let mut block = vec![0; BLOCK_BYTES as usize];
    for offset_bytes in places(size_bytes, rng::mix(clock::now_ns())) {
        file.read_exact_at(&mut block, offset_bytes)?;
        if block.iter().any(|&byte| byte != 0) {
            return Ok(Some(offset_bytes));
        }
    }
    Ok(None)
}

/// Returns the size in bytes; `stat` returns zero for a block device.
fn size_of(file: &File) -> io::Result<u64> {
    Ok(rustix::fs::seek(file, SeekFrom::End(0))?)
}

#[cfg(test)]
mod tests;
