//! The content of a disk: pages that copies of an image share until one of them writes.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// Size of a sector, which a power loss leaves either whole or unwritten.
pub const SECTOR_BYTES: usize = 512;
const PAGE_BYTES: usize = 4096;
const PAGE_SECTORS: u32 = (PAGE_BYTES / SECTOR_BYTES) as u32;

/// Pages per chunk, the unit in which copies of an image share content.
const CHUNK_PAGES: usize = 64;

type Page = [u8; PAGE_BYTES];
type Chunk = [Option<Arc<Page>>; CHUNK_PAGES];

static ZEROS: LazyLock<Arc<Page>> = LazyLock::new(|| Arc::new([0; PAGE_BYTES]));
static EMPTY: LazyLock<Arc<Chunk>> = LazyLock::new(|| Arc::new([const { None }; CHUNK_PAGES]));

/// The content of a disk; parts never written read as zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    chunks: Vec<Arc<Chunk>>,
    /// Sectors that cannot be read until they are written again.
    unreadable: BTreeSet<u32>,
}

impl Image {
    pub fn new(bytes: u64) -> Self {
        let chunks = bytes.div_ceil((CHUNK_PAGES * PAGE_BYTES) as u64) as usize;
        Self { chunks: vec![Arc::clone(&EMPTY); chunks], unreadable: BTreeSet::new() }
    }

    pub fn size_bytes(&self) -> u64 {
        (self.chunks.len() * CHUNK_PAGES * PAGE_BYTES) as u64
    }

    fn page(&self, number: usize) -> Option<&Arc<Page>> {
        self.chunks[number / CHUNK_PAGES][number % CHUNK_PAGES].as_ref()
    }

    fn page_mut(&mut self, number: usize) -> &mut Option<Arc<Page>> {
        let chunk = Arc::make_mut(&mut self.chunks[number / CHUNK_PAGES]);
        &mut chunk[number % CHUNK_PAGES]
    }

    /// Reads whole sectors. The error is the offset of the first byte that cannot be read.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), u64> {
        let sectors = sectors(offset, out.len());
        if let Some(bad) = self.unreadable.range(sectors).next() {
            return Err(u64::from(*bad) * SECTOR_BYTES as u64);
        }
        let mut at = offset as usize;
        let mut rest = out;
        while !rest.is_empty() {
            let within = at % PAGE_BYTES;
            let len = rest.len().min(PAGE_BYTES - within);
            let (part, left) = rest.split_at_mut(len);
            match self.page(at / PAGE_BYTES) {
                Some(page) => part.copy_from_slice(&page[within..within + len]),
                None => part.fill(0),
            }
            at += len;
            rest = left;
        }
        Ok(())
    }

    /// Writes whole sectors.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        if !self.unreadable.is_empty() {
            for sector in sectors(offset, data.len()) {
                self.unreadable.remove(&sector);
            }
        }
        let mut at = offset as usize;
        let mut rest = data;
        while !rest.is_empty() {
            let within = at % PAGE_BYTES;
            let len = rest.len().min(PAGE_BYTES - within);
            let (part, left) = rest.split_at(len);
            let page = self.page_mut(at / PAGE_BYTES);
            match <&Page>::try_from(part) {
                Ok(whole) if *whole == **ZEROS => *page = Some(Arc::clone(&ZEROS)),
                Ok(whole) => *page = Some(Arc::new(*whole)),
                Err(_) => {
                    let page = page.get_or_insert_with(|| Arc::clone(&ZEROS));
                    Arc::make_mut(page)[within..within + len].copy_from_slice(part);
                }
            }
            at += len;
            rest = left;
        }
    }

    pub fn write_sector(&mut self, sector: u32, data: &[u8]) {
        self.write(u64::from(sector) * SECTOR_BYTES as u64, data);
    }

    /// Flips one bit of a sector, like silent bit rot.
    pub fn rot(&mut self, sector: u32, bit: u32) {
        let page = self.page_mut((sector / PAGE_SECTORS) as usize);
        let page = page.get_or_insert_with(|| Arc::clone(&ZEROS));
        let first = (sector % PAGE_SECTORS) as usize * SECTOR_BYTES;
        let bit = bit as usize % (SECTOR_BYTES * 8);
        Arc::make_mut(page)[first + bit / 8] ^= 1 << (bit % 8);
    }

    pub fn make_unreadable(&mut self, sector: u32) {
        self.unreadable.insert(sector);
    }

    pub fn unreadable(&self) -> impl Iterator<Item = u32> + '_ {
        self.unreadable.iter().copied()
    }

    /// Returns the pages that hold data, with their numbers.
    pub fn pages(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let pages = self.chunks.iter().flat_map(|chunk| chunk.iter()).enumerate();
        pages.filter_map(|(number, page)| page.as_ref().map(|page| (number, &page[..])))
    }

    /// Returns the offsets of the pages that hold `wanted`.
    pub fn find(&self, wanted: &[u8]) -> Vec<u64> {
        let found = self.pages().filter(|(_, page)| *page == wanted);
        found.map(|(number, _)| (number * PAGE_BYTES) as u64).collect()
    }

    /// Whether the 4 KiB page around `offset` was ever written.
    pub fn is_taken(&self, offset: u64) -> bool {
        self.page(offset as usize / PAGE_BYTES).is_some()
    }
}

/// Returns the sectors of a request.
pub(super) fn sectors(offset: u64, len: usize) -> std::ops::Range<u32> {
    assert!(
        len.is_multiple_of(SECTOR_BYTES) && offset.is_multiple_of(SECTOR_BYTES as u64),
        "{len} bytes at {offset} are not whole sectors"
    );
    let first = (offset / SECTOR_BYTES as u64) as u32;
    first..first + (len / SECTOR_BYTES) as u32
}
