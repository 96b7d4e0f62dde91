//! Blocks in which every sector states its run, writer, write and place, so that what a cut left of
//! a block can be identified sector by sector.

use blockstone_base::rng;
use xxhash_rust::xxh3::xxh3_64;

/// Unit in which a device tears a block.
pub const SECTOR: usize = 512;

const MAGIC: &[u8; 8] = b"BSdurab1";
const HEADER: usize = 40;
const SUM_AT: usize = SECTOR - 8;

/// Identity stamped on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub run: u64,
    /// Number of the writer.
    pub stream: u16,
    /// Sequence number of the write; 0 is the content before the first write.
    pub sequence: u64,
    /// Where it belongs: offset in bytes from the start of its file, or of its part of a device.
    pub offset_bytes: u64,
}

impl Stamp {
    /// Fills `block`, whose length is a multiple of [`SECTOR`].
    pub fn fill(&self, block: &mut [u8]) {
        for (number, sector) in block.chunks_exact_mut(SECTOR).enumerate() {
            let key = rng::mix(self.run ^ rng::mix(self.sequence ^ (u64::from(self.stream) << 48)))
                .wrapping_add(number as u64);
            sector[..8].copy_from_slice(MAGIC);
            sector[8..16].copy_from_slice(&self.run.to_le_bytes());
            sector[16..18].copy_from_slice(&self.stream.to_le_bytes());
            sector[18..24].copy_from_slice(&(number as u64).to_le_bytes()[..6]);
            sector[24..32].copy_from_slice(&self.sequence.to_le_bytes());
            sector[32..40].copy_from_slice(&self.offset_bytes.to_le_bytes());
            rng::fill(key, &mut sector[HEADER..SUM_AT]);
            let sum = xxh3_64(&sector[..SUM_AT]);
            sector[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Returns the hash that identifies a block to the witness.
pub fn hash(block: &[u8]) -> u64 {
    xxh3_64(block)
}

/// Content of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sector {
    Zeros,
    /// A sector with this number of a block with this stamp.
    Stamped(Stamp, u64),
    Damaged,
}

/// Reads a sector, whatever its bytes are.
pub fn read(sector: &[u8]) -> Sector {
    if sector.iter().all(|&byte| byte == 0) {
        return Sector::Zeros;
    }
    let number = |at: usize, bytes: usize| {
        let part = sector.get(at..at + bytes)?;
        let mut whole = [0; 8];
        whole[..bytes].copy_from_slice(part);
        Some(u64::from_le_bytes(whole))
    };
    let stamped = || {
        let stamp = Stamp {
            run: number(8, 8)?,
            stream: number(16, 2)? as u16,
            sequence: number(24, 8)?,
            offset_bytes: number(32, 8)?,
        };
        let is_whole = sector.len() == SECTOR
            && sector.starts_with(MAGIC)
            && number(SUM_AT, 8)? == xxh3_64(&sector[..SUM_AT]);
        is_whole.then_some(Sector::Stamped(stamp, number(18, 6)?))
    };
    stamped().unwrap_or(Sector::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAMP: Stamp = Stamp { run: 7, stream: 3, sequence: 11, offset_bytes: 4096 };

    #[test]
    fn each_sector_says_what_it_is() {
        let mut block = vec![0; 4096];
        assert_eq!(read(&block[..SECTOR]), Sector::Zeros);
        STAMP.fill(&mut block);
        for (number, sector) in block.chunks(SECTOR).enumerate() {
            assert_eq!(read(sector), Sector::Stamped(STAMP, number as u64));
        }
        let mut other = vec![0; 4096];
        Stamp { sequence: 12, ..STAMP }.fill(&mut other);
        assert_ne!(hash(&block), hash(&other));
        assert_eq!(read(&[1; 40]), Sector::Damaged, "too short");
    }

    proptest! {
        #[test]
        fn one_wrong_byte_is_damage(at in 0..SECTOR, by in 1_u8..=255) {
            let mut sector = vec![0; SECTOR];
            STAMP.fill(&mut sector);
            sector[at] ^= by;
            prop_assert_eq!(read(&sector), Sector::Damaged);
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let found = read(&bytes);
            let zeros = bytes.iter().all(|&byte| byte == 0);
            prop_assert_eq!(found, if zeros { Sector::Zeros } else { Sector::Damaged });
        }
    }
}
