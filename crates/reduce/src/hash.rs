//! Hashes of a segment of a file, computed before anything is counted. Any number of threads may do
//! this; counting is done by one thread.

use std::sync::Arc;

use crate::chunk::{self, Chunk};
use crate::digest::{self, Fingerprint, SECTOR_BYTES};
use crate::mask::{MaskedUnit, Masker};
use crate::page::{Recognised, Rows};

/// A multiple of every page size and of the largest block. The last segment of a file may be
/// shorter.
pub const SEGMENT_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    pub masks: bool,
    pub chunks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// Only zeros, or a hole: its length in bytes.
    Zeros(u64),
    Data(Prints),
}

impl Hashed {
    pub fn len_bytes(&self) -> u64 {
        match self {
            Self::Zeros(bytes) => *bytes,
            Self::Data(prints) => prints.len_bytes,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prints {
    pub len_bytes: u64,
    pub sectors: Arc<[Fingerprint]>,
    /// Its units with their fields separated, if the format of its file is known.
    pub masked: Vec<MaskedUnit>,
    /// Rows of its pages, if the format of its file is known.
    pub rows: Rows,
    pub chunks: Vec<Chunk>,
}

/// Hashes segments; holds the memory needed for that. One per thread.
#[derive(Debug, Default)]
pub struct Hasher {
    masker: Masker,
    sectors: Vec<Fingerprint>,
}

impl Hasher {
    pub fn hash(&mut self, data: &[u8], format: Option<Recognised>, depth: Depth) -> Hashed {
        self.sectors.clear();
        self.sectors.reserve(data.len().div_ceil(SECTOR_BYTES));
        digest::sectors(data, &mut self.sectors);
        if self.sectors.iter().all(|&sector| sector == *digest::ZERO_SECTOR) {
            return Hashed::Zeros(data.len() as u64);
        }
        let mut prints = Prints {
            len_bytes: data.len() as u64,
            sectors: self.sectors.as_slice().into(),
            ..Prints::default()
        };
        if let (true, Some(format)) = (depth.masks, format) {
            self.masker.units(data, format, &mut prints.masked);
            prints.rows = self.masker.take_rows();
        }
        if depth.chunks {
            chunk::chunks(data, &mut prints.chunks);
        }
        Hashed::Data(prints)
    }
}
