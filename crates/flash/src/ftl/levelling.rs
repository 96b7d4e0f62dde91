//! Static wear levelling: which cold block is moved, and when.

use super::{Ftl, Mapping, State};

/// Minimum number of victims collected for space between two collected for wear levelling.
const BETWEEN: u32 = 2;
/// Wear is compared each time one in this many of a group's blocks has been collected.
const LOOKS: u32 = 32;

/// Blocks of a group that lag behind in wear.
#[derive(Debug, Default)]
pub struct Lagging {
    /// Blocks found by the last comparison, the least worn last.
    blocks: Vec<u32>,
    /// A block lags behind as long as it has fewer erases than this.
    below: u32,
    /// Victims collected for space since the last one collected for wear.
    since_moved: u32,
    since_compared: u32,
}

impl Lagging {
    /// Counts a victim that was collected for space.
    pub fn collected(&mut self) {
        self.since_moved += 1;
        self.since_compared += 1;
    }
}

impl<M: Mapping> Ftl<M> {
    /// Returns the closed block with the fewest erases, if it lags too far behind and a move is
    /// due.
    pub(super) fn coldest_if_due(&mut self, group: usize) -> Option<u32> {
        let spread = self.config.wear.levelling_spread?;
        let state = &mut self.groups[group];
        if state.lagging.since_moved < BETWEEN {
            return None;
        }
        let is_closed = |block: u32| self.states[block as usize] == State::Closed;
        if state.lagging.since_compared >= state.count.div_ceil(LOOKS) {
            let range = state.range();
            let most = range.clone().map(|block| self.erases[block as usize]).max()?;
            let below = most.saturating_sub(spread);
            let lags = |&block: &u32| self.erases[block as usize] < below && is_closed(block);
            let mut blocks: Vec<u32> = range.filter(lags).collect();
            blocks.sort_by_key(|&block| std::cmp::Reverse((self.erases[block as usize], block)));
            (state.lagging.blocks, state.lagging.below) = (blocks, below);
            state.lagging.since_compared = 0;
        }
        while let Some(block) = state.lagging.blocks.pop() {
            if is_closed(block) && self.erases[block as usize] < state.lagging.below {
                state.lagging.since_moved = 0;
                return Some(block);
            }
        }
        None
    }
}
