//! Static wear levelling: which cold block is moved, and when.

use super::{Ftl, Mapping, State};

impl<M: Mapping> Ftl<M> {
    /// The closed block with the fewest erases, if it lags too far behind: looked for each time a
    /// thirty-second of the group's blocks was erased.
    pub(super) fn coldest_if_due(&mut self, group: usize) -> Option<u32> {
        let spread = self.config.wear.levelling_spread?;
        let state = &mut self.groups[group];
        if state.since_levelling < state.count.div_ceil(32) {
            return None;
        }
        state.since_levelling = 0;
        let range = state.range();
        let most = range.clone().map(|block| self.erases[block as usize]).max()?;
        let closed = range.filter(|&block| self.states[block as usize] == State::Closed);
        let coldest = closed.min_by_key(|&block| self.erases[block as usize])?;
        (most - self.erases[coldest as usize] > spread).then_some(coldest)
    }
}
