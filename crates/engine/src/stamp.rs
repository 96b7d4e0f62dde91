//! Block stamps. Every written block records which file it belongs to, its address and the write it
//! came from, at its beginning and again at its end, and carries a checksum over all of itself. A
//! hole, a misdirected write, a torn write and a flipped bit are each detected.
//!
//! A lost write is detected if the reader knows which writes a block may come from. A block read
//! during a load may come from any write since the layout: a lost write of the layout is detected,
//! a lost overwrite is not, because it leaves an earlier block, whole and in its place.
//!
//! ```text
//! byte  0  magic "blkstone"        24  address: byte offset of the block in its file
//!       8  version of this layout  32  sequence: number of the write that made it
//!      12  length of the block     40  XXH3-64 over all other bytes of the block
//!      16  file id                 48  payload … then, in the last 16 bytes:
//!     −16  sequence                −8  address, complemented
//! ```
//! All numbers are little-endian. The stamp takes 64 bytes, so a 512-byte commit carries 448 bytes
//! of payload. The payload is incompressible and, as it depends on file, address and sequence,
//! never occurs twice: neither compression nor deduplication can answer for the device.

use std::ops::RangeInclusive;

use blockstone_base::rng;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes of a block that are not payload; also the shortest block.
pub const STAMP_BYTES: usize = 64;

const MAGIC: u64 = u64::from_le_bytes(*b"blkstone");
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 48;
const TRAILER_BYTES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub file_id: u64,
    pub offset_bytes: u64,
    /// Sequences of the writes it may come from: lower ones must have been replaced by a later
    /// write, higher ones were never made.
    pub sequence: RangeInclusive<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("never written: the block is all zeros")]
    Zeros,
    #[error("it carries no stamp")]
    NoStamp,
    #[error("its stamp has version {found}, not {VERSION}")]
    Version { found: u32 },
    /// A block of another length, so the beginning of a different write.
    #[error("its stamp says {found_bytes} bytes")]
    Length { found_bytes: u32 },
    #[error("it belongs to file {found:#x}")]
    File { found: u64 },
    #[error("it belongs to offset {found_bytes}")]
    Address { found_bytes: u64 },
    #[error("it is torn: it begins with write {head} and ends with write {tail}")]
    Torn { head: u64, tail: u64 },
    /// A complete block of a write that should have been overwritten, or was never made.
    #[error("it is from write {found}, expected {low} to {high}")]
    Sequence { found: u64, low: u64, high: u64 },
    #[error("its checksum does not match its content")]
    Checksum,
}

/// Fills `block` as write number `sequence` of the block at `offset_bytes`: payload, then stamp.
///
/// # Panics
/// If the block is shorter than [`STAMP_BYTES`].
pub fn seal(block: &mut [u8], file_id: u64, offset_bytes: u64, sequence: u64) {
    let (len, end) = (block.len(), block.len() - TRAILER_BYTES);
    assert!(len >= STAMP_BYTES, "a block of {len} bytes cannot hold its stamp");
    let key = rng::mix(file_id ^ rng::mix(offset_bytes ^ rng::mix(sequence)));
    rng::fill(key, &mut block[HEADER_BYTES..end]);
    put(block, 0, MAGIC);
    put(block, 8, u64::from(VERSION) | (len as u64) << 32);
    put(block, 16, file_id);
    put(block, 24, offset_bytes);
    put(block, 32, sequence);
    put(block, end, sequence);
    put(block, end + 8, !offset_bytes);
    let sum = checksum(block);
    put(block, 40, sum);
}

/// Checks the stamp of `block` and, with `whole`, its checksum too; returns its sequence.
///
/// # Panics
/// If the block is shorter than [`STAMP_BYTES`].
pub fn check(block: &[u8], expected: &Expected, whole: bool) -> Result<u64, Fault> {
    let (len, end) = (block.len(), block.len() - TRAILER_BYTES);
    assert!(len >= STAMP_BYTES, "a block of {len} bytes cannot hold a stamp");
    if get(block, 0) != MAGIC {
        let zeros = block.iter().all(|&byte| byte == 0);
        return Err(if zeros { Fault::Zeros } else { Fault::NoStamp });
    }
    let (version, found_bytes) = (get(block, 8) as u32, (get(block, 8) >> 32) as u32);
    let (file_id, address, head) = (get(block, 16), get(block, 24), get(block, 32));
    let tail = get(block, end);
    let (low, high) = (*expected.sequence.start(), *expected.sequence.end());
    if version != VERSION {
        Err(Fault::Version { found: version })
    } else if found_bytes as usize != len {
        Err(Fault::Length { found_bytes })
    } else if file_id != expected.file_id {
        Err(Fault::File { found: file_id })
    } else if address != expected.offset_bytes {
        Err(Fault::Address { found_bytes: address })
    } else if tail != head || get(block, end + 8) != !address {
        Err(Fault::Torn { head, tail })
    } else if !(low..=high).contains(&head) {
        Err(Fault::Sequence { found: head, low, high })
    } else if whole && get(block, 40) != checksum(block) {
        Err(Fault::Checksum)
    } else {
        Ok(head)
    }
}

/// Identity of the file that a stamp was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub file_id: u64,
    pub block_bytes: u32,
}

/// Returns whose first block `head` begins with; `None` if it has no stamp of address zero. Only
/// the header is examined, so `head` may be shorter than the block.
pub fn identify(head: &[u8]) -> Option<Identity> {
    let ours = head.len() >= HEADER_BYTES
        && get(head, 0) == MAGIC
        && get(head, 8) as u32 == VERSION
        && get(head, 24) == 0;
    ours.then(|| Identity { file_id: get(head, 16), block_bytes: (get(head, 8) >> 32) as u32 })
}

/// Returns the id of the file this block belongs to, at whatever address; `None` if it has no
/// stamp.
pub fn file_of(block: &[u8]) -> Option<u64> {
    let ours = block.len() >= HEADER_BYTES && get(block, 0) == MAGIC;
    ours.then(|| get(block, 16))
}

/// Computes the checksum over everything but the checksum itself.
fn checksum(block: &[u8]) -> u64 {
    xxh3_64_with_seed(&block[HEADER_BYTES..], xxh3_64(&block[..40]))
}

fn put(block: &mut [u8], at: usize, value: u64) {
    block[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get(block: &[u8], at: usize) -> u64 {
    let bytes = block[at..at + 8].try_into().expect("a range of eight has eight bytes");
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: u64 = 0xf11e;

    fn sealed(len: usize, offset_bytes: u64, sequence: u64) -> Vec<u8> {
        let mut block = vec![0; len];
        seal(&mut block, FILE, offset_bytes, sequence);
        block
    }

    fn expect(offset_bytes: u64, sequence: u64) -> Expected {
        Expected { file_id: FILE, offset_bytes, sequence: sequence..=sequence }
    }

    fn block_bytes() -> impl Strategy<Value = usize> {
        prop::sample::select(vec![64, 512, 4096, 8192, 65536])
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_accepted(len in block_bytes(), offset: u64, sequence: u64) {
            let block = sealed(len, offset, sequence);
            prop_assert_eq!(check(&block, &expect(offset, sequence), true), Ok(sequence));
        }

        #[test]
        fn any_flipped_bit_shows(len in block_bytes(), at: prop::sample::Index, bit in 0_u32..8) {
            let mut block = sealed(len, 8192, 7);
            block[at.index(len)] ^= 1_u8 << bit;
            prop_assert!(check(&block, &expect(8192, 7), true).is_err());
        }

        #[test]
        fn any_two_swapped_sectors_show(a in 0_usize..16, b in 0_usize..16) {
            prop_assume!(a != b);
            let mut block = sealed(8192, 8192, 7);
            let (low, high) = (a.min(b) * 512, a.max(b) * 512);
            let (left, right) = block.split_at_mut(high);
            left[low..low + 512].swap_with_slice(&mut right[..512]);
            prop_assert!(check(&block, &expect(8192, 7), true).is_err());
        }

        #[test]
        fn any_mix_of_two_writes_shows(kept in 1_u32..0xffff) {
            let (old, mut block) = (sealed(8192, 0, 1), sealed(8192, 0, 2));
            for sector in (0..16).filter(|sector| kept >> sector & 1 == 1) {
                let range = sector * 512..(sector + 1) * 512;
                block[range.clone()].copy_from_slice(&old[range]);
            }
            let any = Expected { file_id: FILE, offset_bytes: 0, sequence: 0..=u64::MAX };
            prop_assert!(check(&block, &any, true).is_err());
        }
    }

    #[test]
    fn each_fault_has_its_name() {
        let block = sealed(8192, 8192, 7);
        let at = |file_id, offset_bytes, sequence| Expected { file_id, offset_bytes, sequence };
        assert_eq!(check(&[0; 8192], &expect(0, 1), false), Err(Fault::Zeros));
        assert_eq!(check(&[1; 8192], &expect(0, 1), false), Err(Fault::NoStamp));
        for (expected, fault) in [
            (at(1, 8192, 7..=7), Fault::File { found: FILE }),
            (at(FILE, 0, 7..=7), Fault::Address { found_bytes: 8192 }),
            (at(FILE, 8192, 8..=9), Fault::Sequence { found: 7, low: 8, high: 9 }),
            (at(FILE, 8192, 5..=6), Fault::Sequence { found: 7, low: 5, high: 6 }),
        ] {
            assert_eq!(check(&block, &expected, false), Err(fault));
        }
        assert_eq!(
            check(&block[..4096], &expect(8192, 7), false),
            Err(Fault::Length { found_bytes: 8192 })
        );
        let mut torn = block.clone();
        torn[4096..].copy_from_slice(&sealed(8192, 8192, 6)[4096..]);
        assert_eq!(check(&torn, &expect(8192, 7), false), Err(Fault::Torn { head: 7, tail: 6 }));
        let mut flipped = block;
        flipped[100] ^= 1;
        assert_eq!(check(&flipped, &expect(8192, 7), false), Ok(7), "only the checksum can see it");
        assert_eq!(check(&flipped, &expect(8192, 7), true), Err(Fault::Checksum));
    }
}
