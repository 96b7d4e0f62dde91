//! The mark that a measurement leaves on a device: a draw of its blocks, and their checksum.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use blockstone_sys::buffer::Arena;
use blockstone_sys::file::BlockFile;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::{BLOCK_BYTES, EDGE, places};

const MAGIC: [u8; 16] = *b"blockstone-left1";
/// Magic, size, seed, checksum of the draw, and checksum of all of these.
const USED_BYTES: usize = 56;
const CHUNK_BYTES: u64 = 1 << 20;
/// Smaller devices are cleared and examined completely.
const LEAST_BYTES: u64 = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    size_bytes: u64,
    seed: u64,
    drawn: u128,
}

/// Returns the offset of the mark on a device of this size: the block before its last MiB.
pub fn offset(size_bytes: u64) -> Option<u64> {
    let last = size_bytes.saturating_sub(EDGE.get()) / BLOCK_BYTES * BLOCK_BYTES;
    (size_bytes >= LEAST_BYTES).then(|| last - BLOCK_BYTES)
}

impl Mark {
    /// Draws blocks of a device in its current state.
    pub fn take(file: &File, size_bytes: u64, seed: u64) -> io::Result<Self> {
        Ok(Self { size_bytes, seed, drawn: drawn(file, size_bytes, seed)? })
    }

    /// Reads the mark of a device; `None` if there is no intact one.
    pub fn read(file: &File, size_bytes: u64) -> io::Result<Option<Self>> {
        let Some(offset_bytes) = offset(size_bytes) else { return Ok(None) };
        let mut block = [0; USED_BYTES];
        file.read_exact_at(&mut block, offset_bytes)?;
        Ok(Self::decode(&block).filter(|mark| mark.size_bytes == size_bytes))
    }

    pub fn write(&self, file: &BlockFile, offset_bytes: u64) -> io::Result<()> {
        let mut arena = Arena::new(1, BLOCK_BYTES as usize).map_err(io::Error::other)?;
        let block = arena.slot(0);
        block.fill(0);
        block[..USED_BYTES].copy_from_slice(&self.encode());
        write_all(file, offset_bytes, block)
    }

    /// Returns whether the drawn blocks are unchanged.
    pub fn holds(&self, file: &File, size_bytes: u64) -> bool {
        drawn(file, size_bytes, self.seed).is_ok_and(|drawn| drawn == self.drawn)
    }

    fn encode(&self) -> [u8; USED_BYTES] {
        let mut out = [0; USED_BYTES];
        out[..16].copy_from_slice(&MAGIC);
        out[16..24].copy_from_slice(&self.size_bytes.to_le_bytes());
        out[24..32].copy_from_slice(&self.seed.to_le_bytes());
        out[32..48].copy_from_slice(&self.drawn.to_le_bytes());
        let sum = xxh3_64(&out[..48]);
        out[48..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8; USED_BYTES]) -> Option<Self> {
        let number =
            |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default();
        let whole = bytes[..16] == MAGIC && number(48) == xxh3_64(&bytes[..48]);
        let drawn = u128::from(number(32)) | u128::from(number(40)) << 64;
        whole.then(|| Self { size_bytes: number(16), seed: number(24), drawn })
    }
}

/// Returns the checksum of the blocks of a draw, without the one that holds the mark.
fn drawn(file: &File, size_bytes: u64, seed: u64) -> io::Result<u128> {
    let mut sum = Xxh3Default::new();
    let mut block = vec![0; BLOCK_BYTES as usize];
    for place in places(size_bytes, seed) {
        if Some(place) != offset(size_bytes) {
            file.read_exact_at(&mut block, place)?;
            sum.update(&block);
        }
    }
    Ok(sum.digest128())
}

/// Writes zeros past the page cache; they are on the device when it returns.
pub fn write_zeros(file: &BlockFile, mut offset_bytes: u64, bytes: u64) -> io::Result<()> {
    let end = offset_bytes + bytes;
    if bytes > 0 {
        let mut zeros = Arena::new(1, CHUNK_BYTES.min(bytes) as usize).map_err(io::Error::other)?;
        zeros.slot(0).fill(0);
        while offset_bytes < end {
            let len = CHUNK_BYTES.min(end - offset_bytes);
            write_all(file, offset_bytes, &zeros.slot(0)[..len as usize])?;
            offset_bytes += len;
        }
    }
    file.fsync().map_err(io::Error::from_raw_os_error)
}

fn write_all(file: &BlockFile, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
    let written = file.write_at(offset_bytes, bytes).map_err(io::Error::from_raw_os_error)?;
    if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}
