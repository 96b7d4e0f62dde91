//! Counters of the work done, and the placement of a write.

/// Work done since the beginning, in pages and blocks; cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Pages programmed for the host.
    pub host_pages: u64,
    /// Pages moved to make room.
    pub collected_pages: u64,
    /// Pages moved to even out wear.
    pub levelled_pages: u64,
    /// Pages moved from fast blocks to ordinary ones.
    pub folded_pages: u64,
    pub trimmed_pages: u64,
    pub erased_blocks: u64,
    pub retired_blocks: u64,
}

impl Totals {
    /// Pages programmed for any reason.
    pub fn programs(&self) -> u64 {
        self.host_pages + self.moves()
    }

    /// Pages moved for any reason.
    pub fn moves(&self) -> u64 {
        self.collected_pages + self.levelled_pages + self.folded_pages
    }

    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            host_pages: self.host_pages - before.host_pages,
            collected_pages: self.collected_pages - before.collected_pages,
            levelled_pages: self.levelled_pages - before.levelled_pages,
            folded_pages: self.folded_pages - before.folded_pages,
            trimmed_pages: self.trimmed_pages - before.trimmed_pages,
            erased_blocks: self.erased_blocks - before.erased_blocks,
            retired_blocks: self.retired_blocks - before.retired_blocks,
        }
    }

    /// Programs ÷ host pages; `None` before the first host page.
    pub fn amplification(&self) -> Option<f64> {
        (self.host_pages > 0).then(|| self.programs() as f64 / self.host_pages as f64)
    }
}

/// No page can be written any more: either nothing stale is left to collect, or too many blocks
/// wore out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, blockstone_base::hint::Hint)]
#[error(
    "write page {page}: die {die} has no space left after {host_pages} host pages; the device is \
     read-only"
)]
#[hint("give it more spare, fewer bad blocks or a smaller reserve")]
pub struct Full {
    pub page: u32,
    pub die: u32,
    pub host_pages: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of the page in its block; determines the page type and thus the program time.
    pub slot: u32,
    /// Whether the block uses fast pages only.
    pub fast: bool,
}
