//! The content of blocks: arbitrary data, or stamped data that is verified on reading.

use std::fmt::Debug;

use blockstone_base::rng;

use crate::stamp::{self, Expected, Fault};

/// Produces the data of writes and checks the data of reads. Shared by all workers of a load.
pub trait Content: Send + Sync + Debug {
    /// Whether there is anything to do. If not, the loop calls neither of the other two methods and
    /// saves the clock read that would keep their time out of the latency.
    fn is_active(&self) -> bool {
        true
    }

    /// Fills in the data of a write; `sequence` is unique to that write.
    fn prepare(&self, offset_bytes: u64, sequence: u64, data: &mut [u8]);

    /// Checks the data of a read. With `sample_checksum`, one whole block of it is checked, not
    /// only stamps.
    fn verify(&self, offset_bytes: u64, data: &[u8], sample_checksum: bool) -> Check;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// Blocks whose stamp was checked.
    pub stamps: u32,
    /// Blocks whose whole content was checked as well.
    pub checksums: u32,
    /// Blocks that do not hold what was written.
    pub mismatches: u32,
    pub first: Option<Mismatch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block at offset {offset_bytes}: {fault}")]
pub struct Mismatch {
    pub offset_bytes: u64,
    pub fault: Fault,
}

/// Writes whatever the memory holds and verifies nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoContent;

impl Content for NoContent {
    fn is_active(&self) -> bool {
        false
    }

    fn prepare(&self, _offset_bytes: u64, _sequence: u64, _data: &mut [u8]) {}

    fn verify(&self, _offset_bytes: u64, _data: &[u8], _sample_checksum: bool) -> Check {
        Check::default()
    }
}

/// Stamped blocks of one file.
///
/// A request is cut into blocks of `block_bytes` from its beginning, the last one taking the
/// remainder: a 1 MiB write of 8 KiB blocks carries 128 stamps, a 512-byte commit is one block of
/// 512 bytes. Reads must therefore begin at a block boundary, and a write shorter than a block
/// damages the block it falls in: such commits belong in a file or range of their own.
#[derive(Clone, Copy, Debug)]
pub struct Stamped {
    file_id: u64,
    block_bytes: usize,
    oldest_sequence: u64,
}

impl Stamped {
    /// Describes blocks of `block_bytes` in file `file_id`; a block from a write before
    /// `oldest_sequence` (that of the layout) is stale. Which of the later writes is the last is
    /// not known, so a lost overwrite goes undetected.
    ///
    /// # Panics
    /// If a block could not hold its stamp.
    pub fn new(file_id: u64, block_bytes: u64, oldest_sequence: u64) -> Self {
        assert!(block_bytes >= stamp::STAMP_BYTES as u64, "a block holds its stamp");
        Self { file_id, block_bytes: block_bytes as usize, oldest_sequence }
    }

    fn check(&self, offset_bytes: u64, data: &[u8], index: usize, whole: bool, out: &mut Check) {
        let start = index * self.block_bytes;
        let block = &data[start..data.len().min(start + self.block_bytes)];
        let offset_bytes = offset_bytes + start as u64;
        let sequence = self.oldest_sequence..=u64::MAX;
        let expected = Expected { file_id: self.file_id, offset_bytes, sequence };
        out.stamps += 1;
        out.checksums += u32::from(whole);
        if let Err(fault) = stamp::check(block, &expected, whole) {
            out.mismatches += 1;
            out.first.get_or_insert(Mismatch { offset_bytes, fault });
        }
    }
}

impl Content for Stamped {
    fn prepare(&self, offset_bytes: u64, sequence: u64, data: &mut [u8]) {
        for (index, block) in data.chunks_mut(self.block_bytes).enumerate() {
            let address = offset_bytes + (index * self.block_bytes) as u64;
            stamp::seal(block, self.file_id, address, sequence);
        }
    }

    /// Checks the first and the last stamp of the request and, if a checksum is asked for, a third
    /// block chosen by its address.
    fn verify(&self, offset_bytes: u64, data: &[u8], sample_checksum: bool) -> Check {
        let last = data.len().div_ceil(self.block_bytes) - 1;
        let sampled = sample_checksum
            .then(|| (rng::mix(offset_bytes ^ self.file_id) % (last as u64 + 1)) as usize);
        let mut out = Check::default();
        self.check(offset_bytes, data, 0, sampled == Some(0), &mut out);
        if last > 0 {
            self.check(offset_bytes, data, last, sampled == Some(last), &mut out);
        }
        if let Some(middle) = sampled.filter(|&index| index > 0 && index < last) {
            self.check(offset_bytes, data, middle, true, &mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_write_of_the_layout_shows_and_a_lost_overwrite_does_not() {
        let content = Stamped::new(9, 8192, 5);
        let mut data = vec![0; 8192];
        let mut mismatches = |sequence| {
            content.prepare(0, sequence, &mut data);
            content.verify(0, &data, true).mismatches
        };
        assert_eq!(mismatches(4), 1, "the layout's own write, 5, did not arrive");
        // As docs/glossary.md says: this is what remains if the overwrite, 6, did not arrive.
        assert_eq!(mismatches(5), 0);
    }

    #[test]
    fn a_large_request_is_many_blocks_each_readable_alone() {
        let content = Stamped::new(9, 8192, 5);
        let mut data = vec![0; 1 << 20];
        content.prepare(1 << 20, 5, &mut data);
        let whole = content.verify(1 << 20, &data, true);
        assert_eq!((whole.checksums, whole.mismatches), (1, 0));
        assert!((2..=3).contains(&whole.stamps));
        for (index, block) in data.chunks(8192).enumerate() {
            let one = content.verify((1 << 20) + index as u64 * 8192, block, true);
            assert_eq!(one, Check { stamps: 1, checksums: 1, mismatches: 0, first: None });
        }
    }

    #[test]
    fn the_smallest_commit_is_a_block_of_its_own() {
        let content = Stamped::new(9, 8192, 0);
        let mut data = vec![0; 512];
        content.prepare(1536, 1, &mut data);
        assert_eq!(content.verify(1536, &data, true).mismatches, 0);
        assert_eq!(content.verify(2048, &data, false).mismatches, 1);
    }

    #[test]
    fn a_stale_block_and_a_lost_end_are_mismatches_at_their_place() {
        let mut data = vec![0; 3 * 8192];
        Stamped::new(9, 8192, 0).prepare(0, 4, &mut data);
        let stale = Stamped::new(9, 8192, 5).verify(0, &data, false);
        assert_eq!(stale.mismatches, 2);
        data[2 * 8192..].fill(0);
        let lost = Stamped::new(9, 8192, 0).verify(0, &data, false);
        assert_eq!(lost.first, Some(Mismatch { offset_bytes: 16384, fault: Fault::Zeros }));
    }
}
