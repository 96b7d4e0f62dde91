//! Victim selection.
//!
//! Greedy must find the emptiest of many thousands of blocks although every overwrite makes one of
//! them emptier. Only blocks near the minimum matter: a block below a *limit* is noted in a stack
//! by its count each time it loses a page; above the limit nothing is done at all. When the stacks
//! run empty, the counts are scanned once and the limit is set a little above their minimum. A note
//! is out of date once the block's count has changed; it is dropped when it is found. The choice is
//! exact.

use std::collections::VecDeque;
use std::ops::Range;

use blockstone_base::rng::Rng;

use super::{Block, State};
use crate::policy::Policy;

/// Distance of the limit above the minimum.
const SLACK: u16 = 3;

pub struct View<'a> {
    pub blocks: &'a [Block],
    pub states: &'a [State],
    /// Pages in a full block of this group.
    pub pages_used: u16,
    /// Blocks closed so far.
    pub now: u64,
}

#[derive(Debug)]
pub enum Victims {
    Greedy { stacks: Vec<VecDeque<u32>>, lowest: usize, notes: usize },
    Fifo(VecDeque<u32>),
    Drawn { closed: Vec<u32>, draws: u32 },
    CostBenefit(Vec<Aged>),
}

#[derive(Clone, Copy, Debug)]
pub struct Aged {
    block: u32,
    closed_at: u64,
}

impl Victims {
    pub fn new(policy: Policy, pages_used: u32) -> Self {
        match policy {
            Policy::Greedy => {
                let stacks = vec![VecDeque::new(); pages_used as usize + 1];
                Self::Greedy { stacks, lowest: 0, notes: 0 }
            }
            Policy::Fifo => Self::Fifo(VecDeque::new()),
            Policy::Choices(draws) => Self::Drawn { closed: Vec::new(), draws },
            Policy::Random => Self::Drawn { closed: Vec::new(), draws: 1 },
            Policy::CostBenefit => Self::CostBenefit(Vec::new()),
        }
    }

    /// Adds a block that is full and may be chosen from now on.
    pub fn add(&mut self, block: u32, valid: u16, limit: u16, now: u64) {
        match self {
            Self::Greedy { .. } => {
                if valid < limit {
                    self.note(block, valid);
                }
            }
            Self::Fifo(queue) => queue.push_back(block),
            Self::Drawn { closed, .. } => closed.push(block),
            Self::CostBenefit(closed) => closed.push(Aged { block, closed_at: now }),
        }
    }

    /// Notes that a block below the limit lost a page.
    pub fn note(&mut self, block: u32, valid: u16) {
        if let Self::Greedy { stacks, lowest, notes } = self {
            stacks[usize::from(valid)].push_back(block);
            *lowest = usize::from(valid).min(*lowest);
            *notes += 1;
        }
    }

    /// Removes a block that is collected for another reason.
    pub fn remove(&mut self, block: u32) {
        match self {
            // Its notes are dropped when they are found, as it is no longer closed.
            Self::Greedy { .. } => {}
            Self::Fifo(queue) => queue.retain(|&other| other != block),
            Self::Drawn { closed, .. } => closed.retain(|&other| other != block),
            Self::CostBenefit(closed) => closed.retain(|other| other.block != block),
        }
    }

    /// Removes a victim; `None` without a closed block or, if the policy counts them, a stale page.
    pub fn pick(
        &mut self,
        view: &View<'_>,
        range: Range<u32>,
        limit: &mut u16,
        rng: &mut Rng,
    ) -> Option<u32> {
        match self {
            Self::Greedy { .. } => self.emptiest(view, range, limit),
            Self::Fifo(queue) => queue.pop_front(),
            Self::Drawn { closed, draws } => {
                let draw = |rng: &mut Rng| rng.below(closed.len() as u64) as usize;
                if closed.is_empty() {
                    return None;
                }
                let mut best = draw(rng);
                for _ in 1..*draws {
                    let other = draw(rng);
                    if view.valid(closed[other]) < view.valid(closed[best]) {
                        best = other;
                    }
                }
                Some(closed.swap_remove(best))
            }
            Self::CostBenefit(closed) => {
                let best = (0..closed.len())
                    .filter(|&index| view.valid(closed[index].block) < view.pages_used)
                    .max_by(|&a, &b| view.benefit(closed[a]).total_cmp(&view.benefit(closed[b])))?;
                Some(closed.swap_remove(best).block)
            }
        }
    }

    fn emptiest(&mut self, view: &View<'_>, range: Range<u32>, limit: &mut u16) -> Option<u32> {
        let Self::Greedy { stacks, lowest, notes } = self else { return None };
        let found = pop(stacks, lowest, *limit, view);
        let found = match found {
            // A new scan clears outdated notes away before they outgrow the blocks.
            Some(found) if *notes <= 8 * range.len() => Some(found),
            _ => {
                *notes = 0;
                *limit = rescan(stacks, view, range);
                *lowest = 0;
                pop(stacks, lowest, *limit, view)
            }
        };
        found.filter(|&block| view.valid(block) < view.pages_used)
    }
}

/// Returns the first note that is still valid, starting from the emptiest.
fn pop(
    stacks: &mut [VecDeque<u32>],
    lowest: &mut usize,
    limit: u16,
    view: &View<'_>,
) -> Option<u32> {
    while *lowest < usize::from(limit) {
        while let Some(block) = stacks[*lowest].pop_front() {
            if view.is_closed(block) && usize::from(view.valid(block)) == *lowest {
                return Some(block);
            }
        }
        *lowest += 1;
    }
    None
}

/// Notes all closed blocks near the minimum and returns the new limit.
fn rescan(stacks: &mut [VecDeque<u32>], view: &View<'_>, range: Range<u32>) -> u16 {
    stacks.iter_mut().for_each(VecDeque::clear);
    let closed = || range.clone().filter(|&block| view.is_closed(block));
    let Some(minimum) = closed().map(|block| view.valid(block)).min() else { return 0 };
    let limit = (minimum + SLACK).min(view.pages_used + 1);
    for block in closed().filter(|&block| view.valid(block) < limit) {
        stacks[usize::from(view.valid(block))].push_back(block);
    }
    limit
}

impl View<'_> {
    fn valid(&self, block: u32) -> u16 {
        self.blocks[block as usize].valid
    }

    fn is_closed(&self, block: u32) -> bool {
        self.states[block as usize] == State::Closed
    }

    fn benefit(&self, aged: Aged) -> f64 {
        let valid = f64::from(self.valid(aged.block));
        let stale = f64::from(self.pages_used) - valid;
        (self.now - aged.closed_at + 1) as f64 * stale / (2.0 * valid.max(0.5))
    }
}
