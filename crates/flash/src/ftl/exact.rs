//! Tracking of every single page: the tables of a page-mapped drive.

use std::hint::black_box;

use blockstone_base::rng::mix;

use super::{BATCH, Block, Config, Fault, Mapping, Write};

const WORD: u32 = u32::BITS;

/// Mapping tables: 4 bytes per logical page, 4 bytes and a bit per flash page.
#[derive(Debug)]
pub struct Exact {
    /// By logical page: its address plus one. Zero means unmapped, so fresh tables need no writing.
    forward: Vec<u32>,
    /// By flash page: the logical page that was written there.
    backward: Vec<u32>,
    /// By flash page: whether it is valid.
    valid: Vec<u32>,
    pages_per_block: u32,
    /// An address is block << shift | slot.
    shift: u32,
    words_per_block: u32,
    /// Pages being moved from one block to another.
    moving: Vec<u32>,
    mapped: u64,
}

impl Exact {
    pub(super) fn new(config: &Config, advise: &dyn Fn(&mut [u32])) -> Self {
        let table = |pages: u64| {
            let mut table = vec![0_u32; pages as usize];
            advise(&mut table);
            table
        };
        let words_per_block = config.pages_per_block.div_ceil(WORD);
        Self {
            forward: table(u64::from(config.logical_pages)),
            backward: table(config.raw_pages()),
            valid: table(config.blocks() * u64::from(words_per_block)),
            pages_per_block: config.pages_per_block,
            shift: config.pages_per_block.next_power_of_two().ilog2(),
            words_per_block,
            moving: Vec::with_capacity(config.pages_per_block as usize),
            mapped: 0,
        }
    }

    fn word(&self, block: u32, slot: u32) -> usize {
        (block * self.words_per_block + slot / WORD) as usize
    }

    fn flash_page(&self, block: u32, slot: u32) -> usize {
        block as usize * self.pages_per_block as usize + slot as usize
    }

    fn split(&self, entry: u32) -> Option<(u32, u32)> {
        let address = entry.checked_sub(1)?;
        Some((address >> self.shift, address & ((1 << self.shift) - 1)))
    }

    #[inline]
    fn forget(&mut self, entry: u32) -> Option<u32> {
        let (block, slot) = self.split(entry)?;
        let word = self.word(block, slot);
        self.valid[word] &= !(1 << (slot % WORD));
        Some(block)
    }

    /// Lifts the first `count` valid pages of a block.
    fn lift(&mut self, block: u32, count: u32) {
        self.moving.clear();
        let first = (block * self.words_per_block) as usize;
        let base = self.flash_page(block, 0);
        // One load per cache line, all of them in flight together.
        let lines = self.backward[base..base + self.pages_per_block as usize].iter().step_by(16);
        black_box(lines.fold(0, |all, page| all ^ page));
        for index in 0..self.words_per_block as usize {
            let mut bits = self.valid[first + index];
            while bits != 0 && self.moving.len() < count as usize {
                let slot = index * WORD as usize + bits.trailing_zeros() as usize;
                self.moving.push(self.backward[base + slot]);
                bits &= bits - 1;
            }
            self.valid[first + index] = bits;
            if self.moving.len() == count as usize {
                break;
            }
        }
    }

    fn mark(&mut self, block: u32, slot: u32, count: u32) {
        let mut at = slot;
        while at < slot + count {
            let bit = at % WORD;
            let run = (WORD - bit).min(slot + count - at);
            let word = self.word(block, at);
            self.valid[word] |= (u32::MAX >> (WORD - run)) << bit;
            at += run;
        }
    }
}

impl Mapping for Exact {
    const NAME: &'static str = "exact";

    #[inline]
    fn write(&mut self, page: u32, block: u32, slot: u32, _: &[Block]) -> Option<u32> {
        let address = (block << self.shift | slot) + 1;
        let old = std::mem::replace(&mut self.forward[page as usize], address);
        let at = self.flash_page(block, slot);
        self.backward[at] = page;
        let word = self.word(block, slot);
        self.valid[word] |= 1 << (slot % WORD);
        let old = self.forget(old);
        self.mapped += u64::from(old.is_none());
        old
    }

    fn trim(&mut self, page: u32, _: &[Block]) -> Option<u32> {
        let entry = std::mem::take(&mut self.forward[page as usize]);
        let old = self.forget(entry);
        self.mapped -= u64::from(old.is_some());
        old
    }

    fn locate(&mut self, page: u32, _: &[Block]) -> Option<u32> {
        self.split(self.forward[page as usize]).map(|(block, _)| block)
    }

    fn relocate(&mut self, from: u32, to: u32, slot: u32, count: u32) {
        self.lift(from, count);
        let at = self.flash_page(to, slot);
        self.backward[at..at + count as usize].copy_from_slice(&self.moving);
        let address = (to << self.shift | slot) + 1;
        for (address, &page) in (address..).zip(&self.moving) {
            self.forward[page as usize] = address;
        }
        self.mark(to, slot, count);
    }

    fn prefetch(&self, writes: &[Write], blocks: &[Block]) {
        // Plain loads that depend on nothing: the processor has many of their misses in flight
        // together, and the writes that follow find everything in its nearest cache.
        let mut entries = [0; BATCH];
        for (entry, write) in entries.iter_mut().zip(writes) {
            *entry = self.forward[write.page as usize];
        }
        let mut seen = 0;
        for (block, slot) in entries.iter().filter_map(|&entry| self.split(entry)) {
            seen ^= self.valid[self.word(block, slot)] ^ u32::from(blocks[block as usize].valid);
        }
        black_box(seen);
    }

    fn memory_bytes(&self) -> u64 {
        4 * (self.forward.len() + self.backward.len() + self.valid.len()) as u64
    }

    fn mapped_pages(&self) -> u64 {
        self.mapped
    }

    fn faults(&self, blocks: &[Block]) -> Option<Fault> {
        for (page, &entry) in self.forward.iter().enumerate() {
            let Some((block, slot)) = self.split(entry) else { continue };
            let is_valid = self.valid[self.word(block, slot)] >> (slot % WORD) & 1 == 1;
            if !is_valid || self.backward[self.flash_page(block, slot)] as usize != page {
                return Some(Fault::Maps { page: page as u32, block, slot });
            }
        }
        let words = self.valid.chunks_exact(self.words_per_block as usize);
        for (block, (words, state)) in words.zip(blocks).enumerate() {
            let bits: u32 = words.iter().map(|word| word.count_ones()).sum();
            if bits != u32::from(state.valid) {
                let (block, counted) = (block as u32, state.valid.into());
                return Some(Fault::Valid { block, counted, bits });
            }
        }
        None
    }

    fn digest(&self) -> u64 {
        self.forward.iter().fold(0, |all, &entry| mix(all ^ u64::from(entry)))
    }
}
