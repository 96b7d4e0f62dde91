//! Remains of a block, according to its sectors.

use super::stamp::{self, SECTOR, Sector, Stamp};

/// Content found where a block belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// No file, a file that ends before it, zeros, or data of another run in this place.
    Nothing,
    /// The whole block with this sequence and hash.
    Whole { sequence: u64, hash: u64 },
    /// Sectors of several blocks that belong here.
    Mixed(Mix),
    /// Some sectors belong elsewhere.
    Foreign { sectors: u64 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    /// Numbers of sectors by the sequence of their block, ascending.
    pub sequences: Vec<(u64, u64)>,
    /// Zeros, and sectors of another run.
    pub blank: u64,
    pub damaged: u64,
}

/// Returns the sequence of the write that the first sector belongs to.
pub fn sequence(bytes: &[u8]) -> Option<u64> {
    match stamp::read(bytes.chunks(SECTOR).next()?) {
        Sector::Stamped(found, _) => Some(found.sequence),
        Sector::Zeros | Sector::Damaged => None,
    }
}

/// Examines the bytes where the block of `expected` belongs, whatever its sequence; fewer bytes
/// than a block mean that the file ends within it.
pub fn content(bytes: &[u8], block_bytes: usize, expected: &Stamp) -> Content {
    let mut mix = Mix::default();
    let mut foreign = 0;
    for (number, sector) in bytes.chunks(SECTOR).enumerate() {
        match stamp::read(sector) {
            Sector::Zeros => mix.blank += 1,
            Sector::Damaged => mix.damaged += 1,
            Sector::Stamped(found, at) => {
                let here = Stamp { sequence: found.sequence, run: found.run, ..*expected };
                if found != here || at != number as u64 {
                    foreign += 1;
                } else if found.run == expected.run {
                    mix.add(found.sequence);
                } else {
                    mix.blank += 1;
                }
            }
        }
    }
    let sectors = block_bytes.div_ceil(SECTOR) as u64;
    mix.blank += sectors.saturating_sub(bytes.len().div_ceil(SECTOR) as u64);
    if foreign > 0 {
        return Content::Foreign { sectors: foreign };
    }
    match mix.sequences[..] {
        [] if mix.damaged == 0 => Content::Nothing,
        [(sequence, count)] if count == sectors => {
            Content::Whole { sequence, hash: stamp::hash(bytes) }
        }
        _ => Content::Mixed(mix),
    }
}

impl Mix {
    fn add(&mut self, sequence: u64) {
        match self.sequences.binary_search_by_key(&sequence, |known| known.0) {
            Ok(at) => self.sequences[at].1 += 1,
            Err(at) => self.sequences.insert(at, (sequence, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(sequence: u64) -> Vec<u8> {
        let mut block = vec![0; 4096];
        stamp(sequence).fill(&mut block);
        block
    }

    fn stamp(sequence: u64) -> Stamp {
        Stamp { run: 7, stream: 3, sequence, offset_bytes: 8192 }
    }

    fn read(bytes: &[u8]) -> Content {
        content(bytes, 4096, &stamp(0))
    }

    #[test]
    fn whole_torn_foreign_and_missing_blocks_are_told_apart() {
        let whole = block(5);
        let hash = stamp::hash(&whole);
        assert_eq!(read(&whole), Content::Whole { sequence: 5, hash });
        assert_eq!(read(&[]), Content::Nothing);
        assert_eq!(read(&[0; 4096]), Content::Nothing);
        let mut torn = block(5);
        torn[..1024].copy_from_slice(&block(133)[..1024]);
        let sequences = vec![(5, 6), (133, 2)];
        let mix = Mix { sequences, ..Mix::default() };
        assert_eq!(read(&torn), Content::Mixed(mix.clone()));
        assert_eq!(read(&whole[..1024]), {
            Content::Mixed(Mix { sequences: vec![(5, 2)], blank: 6, damaged: 0 })
        });
        torn[600] ^= 1;
        let sequences = vec![(5, 6), (133, 1)];
        assert_eq!(read(&torn), Content::Mixed(Mix { sequences, blank: 0, damaged: 1 }));
        // Data of another run, where this one never arrived.
        let mut older = vec![0; 4096];
        Stamp { run: 6, ..stamp(9) }.fill(&mut older);
        assert_eq!(read(&older), Content::Nothing);
        older[..1024].copy_from_slice(&whole[..1024]);
        assert_eq!(read(&older), {
            Content::Mixed(Mix { sequences: vec![(5, 2)], blank: 6, damaged: 0 })
        });
        // A block of another place or writer; and sectors that swapped places.
        let mut other = vec![0; 4096];
        Stamp { offset_bytes: 0, ..stamp(5) }.fill(&mut other);
        assert_eq!(read(&other), Content::Foreign { sectors: 8 });
        let mut swapped = whole.clone();
        swapped.swap_with_slice(&mut [&whole[512..1024], &whole[..512], &whole[1024..]].concat());
        assert_eq!(read(&swapped), Content::Foreign { sectors: 2 });
    }
}
