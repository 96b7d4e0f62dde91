//! Blocks that will be compressed unless the share of contents shrinks before. A sample of a fixed
//! size has most of its first blocks replaced by later ones, and to compress each at once would
//! take many times as long. So their bytes are kept, and compressed when the files end, when the
//! scan is saved, or when there is no more room.

use std::collections::HashMap;

use blockstone_reduce::counter::Counter;
use blockstone_reduce::digest::Fingerprint;

/// A block of a grid: its content, and its bytes.
pub type Copied = (usize, Fingerprint, Box<[u8]>);

#[derive(Debug)]
pub struct Pending {
    blocks: HashMap<(usize, Fingerprint), Box<[u8]>>,
    bytes: usize,
    bytes_max: usize,
}

/// Bytes of blocks in one task: enough to be worth a message, few enough for all threads to share.
const TASK_BYTES: usize = 1 << 20;

impl Pending {
    pub fn new(bytes_max: usize) -> Self {
        Self { blocks: HashMap::new(), bytes: 0, bytes_max }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub fn put(&mut self, grid: usize, print: Fingerprint, bytes: impl FnOnce() -> Box<[u8]>) {
        self.blocks.entry((grid, print)).or_insert_with(|| {
            let bytes = bytes();
            self.bytes += bytes.len();
            bytes
        });
    }

    /// Returns whether its blocks have to be compressed now. Those that no longer have to be are
    /// dropped first; if that makes little room, it would soon be full again.
    pub fn is_full(&mut self, counter: &Counter) -> bool {
        if self.bytes <= self.bytes_max {
            return false;
        }
        self.blocks.retain(|&(grid, print), _| counter.lacks(grid, print));
        self.bytes = self.blocks.values().map(|bytes| bytes.len()).sum();
        self.bytes > self.bytes_max / 4 * 3
    }

    /// Removes all blocks and returns those that still have to be compressed, as tasks.
    pub fn take(&mut self, counter: &Counter) -> Vec<Vec<Copied>> {
        self.bytes = 0;
        let (mut tasks, mut bytes) = (vec![Vec::new()], 0);
        for ((grid, print), block) in std::mem::take(&mut self.blocks) {
            if !counter.lacks(grid, print) {
                continue;
            }
            if bytes >= TASK_BYTES {
                tasks.push(Vec::new());
                bytes = 0;
            }
            bytes += block.len();
            tasks.last_mut().expect("there is one").push((grid, print, block));
        }
        tasks.retain(|task| !task.is_empty());
        tasks
    }
}
