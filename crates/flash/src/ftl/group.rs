//! The blocks of one pool on one die.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::Reason;
use super::levelling::Lagging;
use super::victims::Victims;
use crate::policy::Policy;

/// Number of writes over which a block emptied by wear levelling is moved: it gains no space, so
/// its share of stale pages cannot set the pace.
const LEVELLING_WRITES: u32 = 16;

/// A victim whose pages are moved out a few at a time.
#[derive(Clone, Debug)]
pub struct Partial {
    pub victim: u32,
    pub reason: Reason,
    /// Valid pages when it was chosen.
    pub valid: u32,
    /// Writes since then, times `valid`, less the moves already made for them.
    pub credit: u32,
}

impl Partial {
    /// Returns the moves due for one more write in a block of `used` pages: valid ÷ stale on
    /// average.
    pub fn due(&mut self, used: u32) -> u32 {
        if self.reason == Reason::Wear {
            return used.div_ceil(LEVELLING_WRITES);
        }
        let gained = used - self.valid;
        if gained == 0 {
            return used;
        }
        self.credit += self.valid;
        let count = self.credit / gained;
        self.credit %= gained;
        count
    }
}

/// Consecutive blocks that form a log.
#[derive(Debug)]
pub struct Group {
    first: u32,
    pub count: u32,
    /// The least worn first, which is all that dynamic wear levelling needs.
    pub free: BinaryHeap<Reverse<(u32, u32)>>,
    pub victims: Victims,
    pub partial: Option<Partial>,
    pub lagging: Lagging,
}

impl Group {
    pub fn new(first: u32, count: u32, policy: Policy, pages_used: u32) -> Self {
        Self {
            first,
            count,
            free: BinaryHeap::new(),
            victims: Victims::new(policy, pages_used),
            partial: None,
            lagging: Lagging::default(),
        }
    }

    pub fn range(&self) -> Range<u32> {
        self.first..self.first + self.count
    }

    pub fn take_free(&mut self) -> Option<u32> {
        self.free.pop().map(|Reverse((_, block))| block)
    }

    pub fn take_most_worn(&mut self) -> Option<u32> {
        // The order of the heap is reversed.
        let &worst = self.free.iter().min()?;
        self.free.retain(|&free| free != worst);
        let Reverse((_, block)) = worst;
        Some(block)
    }

    pub fn give_free(&mut self, block: u32, erases: u32) {
        self.free.push(Reverse((erases, block)));
    }
}
