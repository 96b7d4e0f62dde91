//! Inspection of a translation layer: its invariants, its wear and the state of its blocks.

use std::cmp::Reverse;

use blockstone_base::rng::{Rng, mix};

use crate::policy::Policy;

use super::{Block, CLOSED, Config, Frontier, Ftl, Group, Mapping, State, Totals};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("page {page} lies at block {block} slot {slot}, which holds another or none")]
    Maps { page: u32, block: u32, slot: u32 },
    #[error("block {block} counts {counted} valid pages and has {bits}")]
    Valid { block: u32, counted: u32, bits: u32 },
    #[error("blocks count {counted} valid pages, {mapped} are mapped")]
    Sum { counted: u64, mapped: u64 },
    #[error("group {group}: {found} blocks are free and {listed} are in its list")]
    Free { group: usize, found: usize, listed: usize },
    #[error("group {group} has {free} free blocks, less than its reserve of {reserve}")]
    Reserve { group: usize, free: usize, reserve: u32 },
}

/// Pages of each block by state, in the order of the blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMap {
    pub valid: Vec<u32>,
    /// Pages that were overwritten or trimmed but not yet erased.
    pub stale: Vec<u32>,
}

impl<M: Mapping> Ftl<M> {
    pub(super) fn new(config: Config, map: M) -> Self {
        let dies = config.dies;
        let mut groups = Vec::new();
        let mut blocks = Vec::new();
        for pool in &config.pools {
            // A block to be folded need not have stale pages: the oldest goes first.
            let policy = pool.fold_into.map_or(config.policy, |_| Policy::Fifo);
            for _ in 0..dies {
                let (first, group) = (blocks.len() as u32, groups.len() as u16);
                groups.push(Group::new(first, pool.blocks, policy, pool.pages_used));
                blocks.extend((0..pool.blocks).map(|_| Block { valid: 0, group }));
            }
        }
        let frontiers = frontiers(&config);
        let mut ftl = Self {
            states: vec![State::Free; blocks.len()],
            writers: vec![0; blocks.len()],
            erases: vec![0; blocks.len()],
            limits: vec![0; groups.len()],
            open: vec![CLOSED; frontiers.len() * dies as usize],
            cursors: vec![0; config.streams.len()],
            totals: Totals::default(),
            rng: Rng::new(config.seed, 1),
            closings: 0,
            config,
            map,
            blocks,
            groups,
            frontiers,
        };
        ftl.list_free();
        ftl
    }

    /// Marks bad blocks and lists the others as free. Every group has the same number of bad
    /// blocks.
    fn list_free(&mut self) {
        let mut rng = Rng::new(self.config.seed, 3);
        for group in &mut self.groups {
            let mut blocks: Vec<u32> = group.range().collect();
            let bad = (f64::from(group.count) * self.config.wear.bad_blocks).round() as usize;
            for index in 0..bad {
                let other = index + rng.below((blocks.len() - index) as u64) as usize;
                blocks.swap(index, other);
                self.states[blocks[index] as usize] = State::Bad;
            }
            group.free = blocks.drain(bad..).map(|block| Reverse((0, block))).collect();
        }
    }

    /// Erase counts of all blocks that were not bad from the beginning.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        let used = |(&erases, &state): (&u32, &State)| {
            (state != State::Bad || erases > 0).then_some(erases)
        };
        self.erases.iter().zip(&self.states).filter_map(used)
    }

    /// Memory used by everything that grows with the device, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let blocks = self.blocks.len() as u64;
        // Valid count and group, state, writer, erases, and a place in a list.
        self.map.memory_bytes() + blocks * (4 + 1 + 1 + 4 + 8)
    }

    pub fn mapped_pages(&self) -> u64 {
        self.map.mapped_pages()
    }

    pub fn free_blocks_min(&self) -> usize {
        self.groups.iter().map(|group| group.free.len()).min().unwrap_or(0)
    }

    /// Returns whether a pool of this die has fewer than `wanted` free blocks.
    pub fn lacks_free_blocks(&self, die: u32, wanted: u32) -> bool {
        let pools = 0..self.config.pools.len() as u32;
        pools
            .into_iter()
            .any(|pool| self.groups[self.group(pool, die)].free.len() < wanted as usize)
    }

    pub fn block_map(&self, count: usize) -> BlockMap {
        let count = count.clamp(1, self.blocks.len());
        let mut map = BlockMap { valid: Vec::new(), stale: Vec::new() };
        for index in 0..count {
            let block = index * self.blocks.len() / count;
            let valid = u32::from(self.blocks[block].valid);
            let group = usize::from(self.blocks[block].group);
            let used = self.config.pools[group / self.config.dies as usize].pages_used;
            let written = match self.states[block] {
                State::Free => 0,
                State::Closed | State::Victim | State::Bad => used,
                State::Open => {
                    let open = self.open.iter().find(|open| open.block as usize == block);
                    open.map_or(0, |open| open.slot)
                }
            };
            map.valid.push(valid);
            map.stale.push(written - valid);
        }
        map
    }

    /// Checks all invariants that must hold between two writes; it scans the whole state.
    pub fn check(&self) -> Result<(), Fault> {
        if let Some(fault) = self.map.faults(&self.blocks) {
            return Err(fault);
        }
        let counted = self.blocks.iter().map(|block| u64::from(block.valid)).sum();
        let mapped = self.map.mapped_pages();
        if counted != mapped {
            return Err(Fault::Sum { counted, mapped });
        }
        for (index, group) in self.groups.iter().enumerate() {
            let is_free = |&block: &u32| self.states[block as usize] == State::Free;
            let (found, listed) = (group.range().filter(is_free).count(), group.free.len());
            if found != listed {
                return Err(Fault::Free { group: index, found, listed });
            }
            let reserve = self.config.reserve_blocks;
            if listed < reserve as usize {
                return Err(Fault::Reserve { group: index, free: listed, reserve });
            }
        }
        Ok(())
    }

    /// Digest of the whole state: the same configuration and writes give the same digest.
    pub fn digest(&self) -> u64 {
        let totals = [self.totals.programs(), self.totals.erased_blocks, self.totals.trimmed_pages];
        let start = totals.iter().fold(self.map.digest(), |all, &total| mix(all ^ total));
        let blocks = self.blocks.iter().zip(&self.erases);
        blocks.fold(start, |all, (block, &erases)| {
            mix(all ^ (u64::from(block.valid) << 32 | u64::from(erases)))
        })
    }
}

/// The host's frontiers by stream, then those for moved pages, then those for cold data.
fn frontiers(config: &Config) -> Vec<Frontier> {
    let streams = config.streams.len() as u32;
    let moves_behind = if config.separate_moves { streams } else { 0 };
    let host = |stream: u32| {
        let pool = config.streams[stream as usize];
        let fold_into = config.pools[pool as usize].fold_into;
        let target = fold_into.unwrap_or(stream) + moves_behind;
        Frontier { pool, target, fast: fold_into.is_some() }
    };
    let mut frontiers: Vec<Frontier> = (0..streams).map(host).collect();
    if config.separate_moves {
        let moved = |stream| Frontier { target: stream + streams, ..host(stream) };
        frontiers.extend((0..streams).map(moved));
    }
    if config.wear.levelling_spread.is_some() {
        let cold = |pool| Frontier { pool, target: config.levelling_frontier(pool), fast: false };
        frontiers.extend((0..config.pools.len() as u32).map(cold));
    }
    frontiers
}
