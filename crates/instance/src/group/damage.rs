//! Who says that a block is intact, and the blocks of which no copy was.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Says whether the block at an offset of its file is intact.
pub type Verifier = Arc<dyn Fn(u64, &[u8]) -> bool + Send + Sync>;

/// More bad blocks than this are counted and not named.
const NAMED_MAX: usize = 1000;

/// A block that a returning disk could not be given from an intact copy of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadBlock {
    pub file: String,
    pub offset: u64,
    /// The disk that returned.
    pub disk: String,
    /// Whether that disk's own copy was intact and now serves. It is not known whether the disk
    /// missed a write of this block.
    pub is_kept: bool,
}

/// The bad blocks that were found while disks returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadBlocks {
    pub count: u64,
    /// The first thousand.
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
