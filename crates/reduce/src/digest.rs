//! Fingerprints, which represent the content of blocks.
//!
//! Content is hashed once, in sectors of 512 bytes; everything larger is derived from these
//! digests, so that twelve grids of blocks over the same bytes cost little more than one:
//!
//! ```text
//! sector   XXH3-128 of its 512 bytes
//! unit     XXH3-128 of the digests of its 8 sectors                      (4 KiB)
//! block    XXH3-128 of the fingerprints of its two halves, down to units
//! ```
//! Digests are hashed in turn in big-endian form, the canonical form of XXH3. The probability that
//! two blocks among 2^40 distinct ones have the same fingerprint is below 1 in 10^14.

use std::sync::LazyLock;

use twox_hash::XxHash3_128;

/// Bytes of a sector: the smallest step of a grid's offset.
pub const SECTOR_BYTES: usize = 512;
/// Bytes of a unit: the smallest block that is counted.
pub const UNIT_BYTES: usize = 4096;
pub const UNIT_SECTORS: usize = UNIT_BYTES / SECTOR_BYTES;

pub type Fingerprint = u128;

#[inline]
pub fn of(bytes: &[u8]) -> Fingerprint {
    XxHash3_128::oneshot(bytes)
}

/// Appends the digests of all sectors of `data`; the last is padded with zeros, as on a device.
pub fn sectors(data: &[u8], out: &mut Vec<Fingerprint>) {
    let whole = data.chunks_exact(SECTOR_BYTES);
    let rest = whole.remainder();
    out.extend(whole.map(of));
    if !rest.is_empty() {
        let mut padded = [0; SECTOR_BYTES];
        padded[..rest.len()].copy_from_slice(rest);
        out.push(of(&padded));
    }
}

/// Returns the fingerprint of the unit with these sectors.
///
/// # Panics
/// If their number is not [`UNIT_SECTORS`].
#[inline]
pub fn unit(sectors: &[Fingerprint]) -> Fingerprint {
    assert_eq!(sectors.len(), UNIT_SECTORS, "a unit has eight sectors");
    let mut bytes = [0; UNIT_SECTORS * 16];
    for (place, sector) in bytes.chunks_exact_mut(16).zip(sectors) {
        place.copy_from_slice(&sector.to_be_bytes());
    }
    of(&bytes)
}

#[inline]
pub fn pair(first: Fingerprint, second: Fingerprint) -> Fingerprint {
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&first.to_be_bytes());
    bytes[16..].copy_from_slice(&second.to_be_bytes());
    of(&bytes)
}

/// Fingerprint of a sector of zeros.
pub static ZERO_SECTOR: LazyLock<Fingerprint> = LazyLock::new(|| of(&[0; SECTOR_BYTES]));

/// Fingerprints of zeros: the sector, the unit, and blocks of 2^n units.
#[derive(Clone, Debug, Default)]
pub struct Zeros {
    pub sector: Fingerprint,
    levels: Vec<Fingerprint>,
}

impl Zeros {
    /// Computes them for blocks of up to 2^`level` units.
    pub fn up_to(level: usize) -> Self {
        let sector = *ZERO_SECTOR;
        let mut levels = vec![unit(&[sector; UNIT_SECTORS])];
        for below in 0..level {
            levels.push(pair(levels[below], levels[below]));
        }
        Self { sector, levels }
    }

    #[inline]
    pub fn level(&self, level: usize) -> Fingerprint {
        self.levels[level]
    }
}

/// Computes the fingerprint of a whole block, the slow way: for tests, generators and single
/// blocks.
///
/// # Panics
/// If `block` is not 2^n units long.
pub fn block(block: &[u8]) -> Fingerprint {
    assert!(
        block.len() >= UNIT_BYTES && block.len().is_power_of_two(),
        "a block is 4 KiB times a power of two, not {} bytes",
        block.len()
    );
    if block.len() == UNIT_BYTES {
        let mut digests = Vec::with_capacity(UNIT_SECTORS);
        sectors(block, &mut digests);
        return unit(&digests);
    }
    let (first, second) = block.split_at(block.len() / 2);
    pair(self::block(first), self::block(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_xxh3_as_others_compute_it() {
        // `xxh128sum` of the empty file.
        assert_eq!(of(b""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
    }

    #[test]
    fn zeros_are_known_at_every_level_and_a_short_sector_is_padded() {
        let zeros = Zeros::up_to(3);
        for level in 0..=3 {
            assert_eq!(zeros.level(level), block(&vec![0; UNIT_BYTES << level]));
        }
        let mut padded = Vec::new();
        sectors(&[7; 700], &mut padded);
        let mut whole = [0; 2 * SECTOR_BYTES];
        whole[..700].fill(7);
        let mut expected = Vec::new();
        sectors(&whole, &mut expected);
        assert_eq!(padded, expected);
    }

    #[test]
    fn one_bit_anywhere_makes_another_block() {
        let mut bytes = vec![3; 4 * UNIT_BYTES];
        let before = block(&bytes);
        for place in [0, 511, 512, 4095, 4096, 16383] {
            bytes[place] ^= 1;
            assert_ne!(block(&bytes), before, "byte {place}");
            bytes[place] ^= 1;
        }
        assert_eq!(block(&bytes), before);
    }
}
