//! Verifiers that decide whether a block is intact, and the blocks that have no intact copy.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns whether the block at an offset of its file is intact.
pub type Verifier = Arc<dyn Fn(u64, &[u8]) -> bool + Send + Sync>;

/// Maximum number of bad blocks that are named; further ones are only counted.
const NAMED_MAX: usize = 1000;

/// A block for which a returning disk could not be given an intact copy from another disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadBlock {
    pub file: String,
    pub offset: u64,
    /// The disk that returned.
    pub disk: String,
    /// Whether that disk's own copy was intact and now serves reads. It is not known whether the
    /// disk missed a write of this block.
    pub is_kept: bool,
}

/// Bad blocks that were found while disks returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadBlocks {
    pub count: u64,
    /// The first 1,000 of them.
    pub named: BTreeSet<BadBlock>,
}

impl BadBlocks {
    pub(super) fn insert(&mut self, block: BadBlock) {
        if self.named.contains(&block) {
            return;
        }
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.insert(block);
        }
    }
}
