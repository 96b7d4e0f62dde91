//! Tracking by valid counts only. If the pages of a class are exchangeable, it does not matter
//! which of them is overwritten, only which block holds it. That block is drawn with the right
//! probability: a slot of the device is drawn at random, and accepted if it is below the block's
//! valid count.

use std::hint::black_box;

use blockstone_base::rng::{Rng, mix};

use super::{Block, Config, Fault, Mapping, Write};

#[derive(Clone, Debug)]
struct Class {
    first: u32,
    /// Number of mapped pages; as pages are exchangeable, they are the first ones.
    mapped: u32,
}

/// Takes two bytes per block and class, none per page.
#[derive(Debug)]
pub struct Counts {
    /// Classes in the order of their pages.
    classes: Vec<Class>,
    /// By class and block, if there are several classes; with a single class the valid counts of
    /// the blocks suffice.
    valid: Vec<Vec<u16>>,
    blocks: u64,
    pages_per_block: u64,
    rng: Rng,
    /// Slots drawn ahead, as (block, slot), so that the cache misses of looking them up overlap.
    drawn: [(u32, u32); AHEAD],
    /// Number of those already used.
    used: usize,
}

const AHEAD: usize = 64;

impl Counts {
    pub(super) fn new(config: &Config, classes: &[u32]) -> Self {
        let mut first = 0;
        let mut starts = Vec::new();
        for &pages in classes {
            starts.push(Class { first, mapped: 0 });
            first += pages;
        }
        let own = if classes.len() > 1 { classes.len() } else { 0 };
        Self {
            classes: starts,
            valid: vec![vec![0; config.blocks() as usize]; own],
            blocks: config.blocks(),
            pages_per_block: u64::from(config.pages_per_block),
            rng: Rng::new(config.seed, 2),
            drawn: [(0, 0); AHEAD],
            used: AHEAD,
        }
    }

    #[inline]
    fn class_of(&self, page: u32) -> usize {
        self.classes.iter().skip(1).take_while(|class| class.first <= page).count()
    }

    /// Draws the block of a page of a class, each page being equally likely. At least one must be
    /// mapped.
    #[inline]
    fn draw(&mut self, class: usize, blocks: &[Block]) -> u32 {
        loop {
            if self.used == AHEAD {
                self.draw_ahead(blocks);
            }
            let (block, slot) = self.drawn[self.used];
            self.used += 1;
            let valid = match self.valid.get(class) {
                Some(of_class) => of_class[block as usize],
                None => blocks[block as usize].valid,
            };
            if slot < u32::from(valid) {
                return block;
            }
        }
    }

    fn draw_ahead(&mut self, blocks: &[Block]) {
        self.used = 0;
        let mut seen = 0;
        for drawn in &mut self.drawn {
            let bits = self.rng.next_u64();
            let block = ((bits >> 32) * self.blocks) >> 32;
            let slot = ((bits & 0xffff_ffff) * self.pages_per_block) >> 32;
            *drawn = (block as u32, slot as u32);
            seen ^= blocks[block as usize].valid;
        }
        black_box(seen);
    }

    #[inline]
    fn find(&self, page: u32) -> (usize, bool) {
        let class = self.class_of(page);
        let Class { first, mapped } = self.classes[class];
        (class, page - first < mapped)
    }

    #[inline]
    fn remove(&mut self, class: usize, blocks: &[Block]) -> u32 {
        let block = self.draw(class, blocks);
        if let Some(of_class) = self.valid.get_mut(class) {
            of_class[block as usize] -= 1;
        }
        block
    }
}

impl Mapping for Counts {
    const NAME: &'static str = "counts";

    #[inline]
    fn write(&mut self, page: u32, block: u32, _: u32, blocks: &[Block]) -> Option<u32> {
        let (class, mapped) = self.find(page);
        let old = if mapped {
            Some(self.remove(class, blocks))
        } else {
            self.classes[class].mapped += 1;
            None
        };
        if let Some(of_class) = self.valid.get_mut(class) {
            of_class[block as usize] += 1;
        }
        old
    }

    fn trim(&mut self, page: u32, blocks: &[Block]) -> Option<u32> {
        let (class, mapped) = self.find(page);
        mapped.then(|| {
            self.classes[class].mapped -= 1;
            self.remove(class, blocks)
        })
    }

    fn locate(&mut self, page: u32, blocks: &[Block]) -> Option<u32> {
        let (class, mapped) = self.find(page);
        mapped.then(|| self.draw(class, blocks))
    }

    fn relocate(&mut self, from: u32, to: u32, _: u32, count: u32) {
        let mut left = count as u16;
        for of_class in &mut self.valid {
            let moved = of_class[from as usize].min(left);
            of_class[from as usize] -= moved;
            of_class[to as usize] += moved;
            left -= moved;
        }
    }

    fn prefetch(&self, _: &[Write], _: &[Block]) {}

    fn memory_bytes(&self) -> u64 {
        2 * self.valid.iter().map(|of_class| of_class.len() as u64).sum::<u64>()
    }

    fn mapped_pages(&self) -> u64 {
        self.classes.iter().map(|class| u64::from(class.mapped)).sum()
    }

    fn faults(&self, blocks: &[Block]) -> Option<Fault> {
        if self.valid.is_empty() {
            return None;
        }
        let sum = |block: usize| self.valid.iter().map(|of_class| u32::from(of_class[block])).sum();
        blocks.iter().enumerate().find_map(|(block, state)| {
            let bits: u32 = sum(block);
            let counted = u32::from(state.valid);
            (bits != counted).then_some(Fault::Valid { block: block as u32, counted, bits })
        })
    }

    fn digest(&self) -> u64 {
        let counts = self.valid.iter().flatten();
        counts.fold(self.mapped_pages(), |all, &count| mix(all ^ u64::from(count)))
    }
}
