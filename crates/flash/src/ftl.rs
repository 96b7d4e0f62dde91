//! The flash translation layer: where pages are stored, which block is collected next, and how much
//! that moves.
//!
//! One mechanism, two ways of tracking pages. [`Ftl`] is generic over its [`Mapping`]: [`Exact`]
//! has the mapping tables of a drive and knows the place of every single page; [`Counts`] knows
//! only how many valid pages each block has, which suffices if the pages of a class are
//! exchangeable, and is several times faster and smaller.
//!
//! A die is divided into as many *groups* of blocks as there are pools. Each group is a separate
//! log: it has free blocks, open blocks that are being written (*frontiers*) and closed ones, among
//! which victims are found. Nothing moves between dies; only folded data moves between pools.

mod config;
mod counts;
mod exact;
mod group;
mod inspect;
mod levelling;
mod totals;
mod victims;

use std::ops::Range;

use blockstone_base::rng::Rng;

pub use config::{Config, ConfigError, Pace, Pool, Wear};
pub use counts::Counts;
pub use exact::Exact;
pub use inspect::{BlockMap, Fault};
pub use totals::{Full, Placed, Totals};

use group::{Group, Partial};

const NONE: u32 = u32::MAX;
/// Number of pages whose table entries are fetched together, so that their cache misses overlap.
pub const BATCH: usize = 256;

/// Valid pages of a block and its group, stored together because an overwrite needs both.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    valid: u16,
    group: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Closed,
    Victim,
    Bad,
}

/// How an engine tracks pages.
pub trait Mapping {
    /// Name of the engine in results.
    const NAME: &'static str;
    /// Puts `page` into a slot; returns the block where it was valid before.
    fn write(&mut self, page: u32, block: u32, slot: u32, blocks: &[Block]) -> Option<u32>;
    /// Forgets `page`; returns the block where it was valid.
    fn trim(&mut self, page: u32, blocks: &[Block]) -> Option<u32>;
    /// Returns the block where `page` is valid.
    fn locate(&mut self, page: u32, blocks: &[Block]) -> Option<u32>;
    /// Moves the next `count` valid pages of `from` to the slots of `to` starting at `slot`.
    fn relocate(&mut self, from: u32, to: u32, slot: u32, count: u32);
    /// Prefetches the entries that these writes will need.
    fn prefetch(&self, writes: &[Write], blocks: &[Block]);
    /// Size of the tables in bytes.
    fn memory_bytes(&self) -> u64;
    /// Number of pages that are valid somewhere.
    fn mapped_pages(&self) -> u64;
    /// Returns an inconsistency between the tables and the counts of valid pages, if there is one.
    fn faults(&self, blocks: &[Block]) -> Option<Fault>;
    /// Digest that changes when anything in the tables changes.
    fn digest(&self) -> u64;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Write {
    pub page: u32,
    /// Index into [`Config::streams`].
    pub stream: u32,
}

/// Receives the operations that the dies have to perform, in order.
pub trait Operations {
    /// `count` pages were read and programmed into the slots starting at `slot`, all on one die;
    /// `fast` if the block belongs to a pool that uses fast pages only.
    fn moved(&mut self, die: u32, slot: u32, count: u32, fast: bool);
    fn erased(&mut self, die: u32);
}

/// Ignores all operations: for write amplification without time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untimed;

impl Operations for Untimed {
    fn moved(&mut self, _: u32, _: u32, _: u32, _: bool) {}
    fn erased(&mut self, _: u32) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Space,
    Wear,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    block: u32,
    slot: u32,
    left: u32,
}

const CLOSED: Open = Open { block: NONE, slot: 0, left: 0 };

/// A frontier: one stream of the host, or the pages moved on its behalf.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    pool: u32,
    /// The frontier that takes the pages moved out of its blocks.
    target: u32,
    fast: bool,
}

/// A flash translation layer. The same configuration and writes give the same state.
#[derive(Debug)]
pub struct Ftl<M> {
    config: Config,
    map: M,
    blocks: Vec<Block>,
    states: Vec<State>,
    /// By block: the frontier that filled it.
    writers: Vec<u8>,
    erases: Vec<u32>,
    groups: Vec<Group>,
    /// By group: a block with fewer valid pages than this is noted as a candidate.
    limits: Vec<u16>,
    frontiers: Vec<Frontier>,
    /// Open blocks, by die and frontier.
    open: Vec<Open>,
    /// By stream: the die that takes the next write of [`Ftl::write_many`].
    cursors: Vec<u32>,
    totals: Totals,
    rng: Rng,
    /// Blocks closed so far: the clock of cost-benefit.
    closings: u64,
}

impl Ftl<Exact> {
    /// Creates an engine with mapping tables. `advise` is shown the large tables before they are
    /// touched and may ask the operating system for huge pages.
    pub fn exact(config: Config, advise: &dyn Fn(&mut [u32])) -> Result<Self, ConfigError> {
        config.check()?;
        let map = Exact::new(&config, advise);
        Ok(Self::new(config, map))
    }
}

impl Ftl<Counts> {
    /// Creates an engine with valid counts only. `classes` are the sizes of the page ranges, from
    /// page 0 on, each of which is written uniformly; together they cover all logical pages.
    pub fn counts(config: Config, classes: &[u32]) -> Result<Self, ConfigError> {
        config.check()?;
        let covered: u64 = classes.iter().map(|&pages| u64::from(pages)).sum();
        if covered != u64::from(config.logical_pages) {
            return Err(ConfigError::Classes { covered, logical: config.logical_pages });
        }
        let map = Counts::new(&config, classes);
        Ok(Self::new(config, map))
    }
}

impl<M: Mapping> Ftl<M> {
    pub const fn name(&self) -> &'static str {
        M::NAME
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Writes one page on `die`, collecting first if there is no room.
    #[inline]
    pub fn write<O: Operations>(
        &mut self,
        write: Write,
        die: u32,
        operations: &mut O,
    ) -> Result<Placed, Full> {
        let at = self.at(die, write.stream);
        let Open { block, slot, .. } = self.opened(at, die, write.page, operations)?;
        if let Some(old) = self.map.write(write.page, block, slot, &self.blocks) {
            self.invalidate(old);
        }
        self.filled(at, 1);
        self.totals.host_pages += 1;
        Ok(Placed { slot, fast: self.frontiers[write.stream as usize].fast })
    }

    /// Writes many pages without time. Each stream fills a block on one die, then on the next. If a
    /// die is full, the pages before that one have been written.
    pub fn write_many(&mut self, writes: &[Write]) -> Result<(), Full> {
        for batch in writes.chunks(BATCH) {
            self.prefetch(batch);
            let mut left = batch;
            while let [first, ..] = left {
                let count = match self.config.pace {
                    Pace::Atomic => self.write_run(left)?,
                    Pace::Spread => {
                        let die = self.cursors[first.stream as usize];
                        self.keep_pace(first.stream, die, &mut Untimed);
                        self.write(*first, die, &mut Untimed)?;
                        1
                    }
                };
                self.rotate(first.stream);
                left = &left[count..];
            }
        }
        Ok(())
    }

    /// Writes these pages of a stream in order.
    pub fn fill(&mut self, pages: Range<u32>, stream: u32) -> Result<(), Full> {
        let mut batch = Vec::with_capacity(BATCH);
        for start in pages.clone().step_by(BATCH) {
            let end = pages.end.min(start.saturating_add(BATCH as u32));
            batch.clear();
            batch.extend((start..end).map(|page| Write { page, stream }));
            self.write_many(&batch)?;
        }
        Ok(())
    }

    /// Writes the leading pages that belong to one stream and fit into its open block.
    fn write_run(&mut self, writes: &[Write]) -> Result<usize, Full> {
        let Write { page, stream } = writes[0];
        let die = self.cursors[stream as usize];
        let at = self.at(die, stream);
        let Open { block, slot, left } = self.opened(at, die, page, &mut Untimed)?;
        let same = writes.iter().take(left as usize).take_while(|write| write.stream == stream);
        let mut next = slot;
        for write in same {
            if let Some(old) = self.map.write(write.page, block, next, &self.blocks) {
                self.invalidate(old);
            }
            self.blocks[block as usize].valid += 1;
            next += 1;
        }
        let count = next - slot;
        self.totals.host_pages += u64::from(count);
        self.advance(at, count);
        Ok(count as usize)
    }

    /// Returns the open block of a frontier on `die`, with room for `page`.
    #[inline]
    fn opened<O: Operations>(
        &mut self,
        at: usize,
        die: u32,
        page: u32,
        operations: &mut O,
    ) -> Result<Open, Full> {
        if self.open[at].left == 0 {
            let room = self.make_room(at, operations);
            room.ok_or(Full { page, die, host_pages: self.totals.host_pages })?;
        }
        Ok(self.open[at])
    }

    /// Moves on to the next die when the stream has filled its block.
    fn rotate(&mut self, stream: u32) {
        let die = self.cursors[stream as usize];
        if self.open[self.at(die, stream)].left == 0 {
            self.cursors[stream as usize] = (die + 1) % self.config.dies;
        }
    }

    /// Performs the share of collection that is due before a write, which waits for it: as many
    /// moves as empty the victim by the time the writes have used up the space it frees. Does
    /// nothing if collection is atomic.
    #[inline]
    pub fn keep_pace<O: Operations>(&mut self, stream: u32, die: u32, operations: &mut O) {
        if self.config.pace == Pace::Spread {
            let group = self.group(self.frontiers[stream as usize].pool, die);
            self.spread(group, operations);
        }
    }

    pub fn prefetch(&self, writes: &[Write]) {
        self.map.prefetch(&writes[..writes.len().min(BATCH)], &self.blocks);
    }

    /// Marks a page as unused; its space is stale immediately.
    pub fn trim(&mut self, page: u32) {
        if let Some(block) = self.map.trim(page, &self.blocks) {
            self.invalidate(block);
            self.totals.trimmed_pages += 1;
        }
    }

    /// Returns the die that holds a page; `None` if it was trimmed or never written.
    pub fn locate(&mut self, page: u32) -> Option<u32> {
        let block = self.map.locate(page, &self.blocks)?;
        Some(u32::from(self.blocks[block as usize].group) % self.config.dies)
    }

    /// Performs one step of collection on an idle die: moves a page or erases a block in a group
    /// with fewer than `free_wanted` free blocks. Returns false if there is nothing to do.
    pub fn background<O: Operations>(
        &mut self,
        die: u32,
        free_wanted: u32,
        operations: &mut O,
    ) -> bool {
        for pool in 0..self.config.pools.len() as u32 {
            let group = self.group(pool, die);
            if self.groups[group].free.len() < free_wanted as usize
                && self.step(group, 1, operations)
            {
                return true;
            }
        }
        false
    }

    fn at(&self, die: u32, frontier: u32) -> usize {
        die as usize * self.frontiers.len() + frontier as usize
    }

    fn group(&self, pool: u32, die: u32) -> usize {
        (pool * self.config.dies + die) as usize
    }

    fn group_of(&self, block: u32) -> usize {
        usize::from(self.blocks[block as usize].group)
    }

    /// Returns the group from which the frontier at an index into `open` takes its blocks.
    fn group_at(&self, at: usize) -> usize {
        let (die, frontier) = (at / self.frontiers.len(), at % self.frontiers.len());
        self.group(self.frontiers[frontier].pool, die as u32)
    }

    #[inline]
    fn invalidate(&mut self, block: u32) {
        let state = &mut self.blocks[block as usize];
        state.valid -= 1;
        let Block { valid, group } = *state;
        if valid < self.limits[usize::from(group)] {
            self.groups[usize::from(group)].victims.note(block, valid);
        }
    }

    #[inline]
    fn filled(&mut self, at: usize, count: u32) {
        self.blocks[self.open[at].block as usize].valid += count as u16;
        self.advance(at, count);
    }

    /// Advances by `count` slots, and closes the block after the last one.
    #[inline]
    fn advance(&mut self, at: usize, count: u32) {
        let open = &mut self.open[at];
        open.slot += count;
        open.left -= count;
        if open.left == 0 {
            self.close(at);
        }
    }

    #[cold]
    fn close(&mut self, at: usize) {
        let block = self.open[at].block;
        self.states[block as usize] = State::Closed;
        self.open[at] = CLOSED;
        self.closings += 1;
        let group = self.group_of(block);
        let valid = self.blocks[block as usize].valid;
        self.groups[group].victims.add(block, valid, self.limits[group], self.closings);
    }

    /// Opens the least worn free block of the frontier's group, or the most worn one for cold data;
    /// `None` if no block is free.
    fn open_block(&mut self, at: usize) -> Option<()> {
        let group = self.group_at(at);
        let frontier = at % self.frontiers.len();
        let is_cold = frontier >= self.config.levelling_frontier(0) as usize;
        let free = &mut self.groups[group];
        let block = if is_cold { free.take_most_worn() } else { free.take_free() }?;
        self.states[block as usize] = State::Open;
        self.writers[block as usize] = frontier as u8;
        let pool = self.frontiers[frontier].pool as usize;
        self.open[at] = Open { block, slot: 0, left: self.config.pools[pool].pages_used };
        Some(())
    }

    /// Makes sure that the frontier can take a page: opens a block while more than the reserve is
    /// free, otherwise collects. Returns `None` once collecting no longer gains space.
    #[cold]
    fn make_room<O: Operations>(&mut self, at: usize, operations: &mut O) -> Option<()> {
        let group = self.group_at(at);
        let reserve = self.config.reserve_blocks as usize;
        for _ in 0..4 * self.groups[group].count {
            // A retired block leaves the reserve short until the next collection.
            let free = self.groups[group].free.len();
            if self.open[at].left > 0 && free >= reserve {
                return Some(());
            }
            if self.open[at].left == 0 && free > reserve {
                return self.open_block(at);
            }
            self.collect(group, operations)?;
        }
        None
    }

    fn collect<O: Operations>(&mut self, group: usize, operations: &mut O) -> Option<()> {
        let (victim, reason) = self.begin(group)?;
        self.groups[group].partial = None;
        let valid = u32::from(self.blocks[victim as usize].valid);
        self.evacuate(victim, valid, reason, operations)?;
        self.erase(victim, operations);
        Some(())
    }

    /// Moves up to `count` pages of the group's victim and erases it when empty. Returns false if
    /// there is no victim.
    fn step<O: Operations>(&mut self, group: usize, count: u32, operations: &mut O) -> bool {
        let Some((victim, reason)) = self.begin(group) else { return false };
        let valid = u32::from(self.blocks[victim as usize].valid);
        let target = self.target(victim, reason);
        // A step that takes a block of the reserve must return one before it is needed again.
        let takes_reserve = self.open[target].left < count
            && self.groups[group].free.len() <= self.config.reserve_blocks as usize;
        let count = if takes_reserve { valid } else { count.min(valid) };
        if self.evacuate(victim, count, reason, operations).is_none() {
            return false;
        }
        if count == valid {
            self.groups[group].partial = None;
            self.erase(victim, operations);
        }
        true
    }

    fn spread<O: Operations>(&mut self, group: usize, operations: &mut O) {
        let early = self.config.free_blocks() as usize;
        // While there is room, background collection finishes the blocks that it started.
        if self.groups[group].free.len() > early {
            return;
        }
        let Some((victim, _)) = self.begin(group) else { return };
        let used = self.config.pools[group / self.config.dies as usize].pages_used;
        let valid = u32::from(self.blocks[victim as usize].valid);
        let Some(partial) = &mut self.groups[group].partial else { return };
        let count = partial.due(used);
        if count > 0 || valid == 0 {
            self.step(group, count, operations);
        }
    }

    /// Returns the block that the group is emptying. If there is none, chooses one: a block that
    /// lags behind in wear if levelling is due, otherwise a victim of the policy.
    fn begin(&mut self, group: usize) -> Option<(u32, Reason)> {
        if let Some(partial) = &self.groups[group].partial {
            return Some((partial.victim, partial.reason));
        }
        let (victim, reason) = if let Some(coldest) = self.coldest_if_due(group) {
            self.groups[group].victims.remove(coldest);
            self.states[coldest as usize] = State::Victim;
            (coldest, Reason::Wear)
        } else {
            self.groups[group].lagging.collected();
            (self.pick(group)?, Reason::Space)
        };
        let valid = u32::from(self.blocks[victim as usize].valid);
        self.groups[group].partial = Some(Partial { victim, reason, valid, credit: 0 });
        Some((victim, reason))
    }

    fn pick(&mut self, group: usize) -> Option<u32> {
        let pool = group / self.config.dies as usize;
        let view = victims::View {
            blocks: &self.blocks,
            states: &self.states,
            pages_used: self.config.pools[pool].pages_used as u16,
            now: self.closings,
        };
        let range = self.groups[group].range();
        let limit = &mut self.limits[group];
        let victim = self.groups[group].victims.pick(&view, range, limit, &mut self.rng)?;
        self.states[victim as usize] = State::Victim;
        Some(victim)
    }

    /// Moves `count` valid pages out of `victim`; within its group they may use the reserve.
    fn evacuate<O: Operations>(
        &mut self,
        victim: u32,
        count: u32,
        reason: Reason,
        operations: &mut O,
    ) -> Option<()> {
        let group = self.group_of(victim);
        let die = group as u32 % self.config.dies;
        let at = self.target(victim, reason);
        let folds = self.group_at(at) != group;
        let fast = self.frontiers[at % self.frontiers.len()].fast;
        let mut left = count;
        while left > 0 {
            if self.open[at].left == 0 {
                if folds {
                    self.make_room(at, operations)?;
                } else {
                    self.open_block(at)?;
                }
                if reason == Reason::Wear && !folds {
                    // Cold data still belongs to its stream: when it is collected, it goes back
                    // there.
                    self.writers[self.open[at].block as usize] = self.writers[victim as usize];
                }
            }
            let Open { block, slot, left: room } = self.open[at];
            let count = left.min(room);
            self.map.relocate(victim, block, slot, count);
            self.blocks[victim as usize].valid -= count as u16;
            self.filled(at, count);
            operations.moved(die, slot, count, fast);
            left -= count;
        }
        let moved = match reason {
            _ if folds => &mut self.totals.folded_pages,
            Reason::Space => &mut self.totals.collected_pages,
            Reason::Wear => &mut self.totals.levelled_pages,
        };
        *moved += u64::from(count);
        Some(())
    }

    /// Returns the open block for pages moved out of `victim`. Cold data moved by wear levelling is
    /// kept apart: mixed with pages that are soon overwritten, it would keep that space from being
    /// collected.
    fn target(&self, victim: u32, reason: Reason) -> usize {
        let group = self.group_of(victim);
        let pool = group / self.config.dies as usize;
        let die = group as u32 % self.config.dies;
        let frontier = match reason {
            Reason::Wear if self.config.pools[pool].fold_into.is_none() => {
                self.config.levelling_frontier(pool as u32)
            }
            _ => self.frontiers[usize::from(self.writers[victim as usize])].target,
        };
        self.at(die, frontier)
    }

    fn erase<O: Operations>(&mut self, block: u32, operations: &mut O) {
        let group = self.group_of(block);
        self.totals.erased_blocks += 1;
        self.erases[block as usize] += 1;
        operations.erased(group as u32 % self.config.dies);
        let erases = self.erases[block as usize];
        if self.config.endures(block).is_some_and(|endured| erases >= endured) {
            self.states[block as usize] = State::Bad;
            self.totals.retired_blocks += 1;
            return;
        }
        self.states[block as usize] = State::Free;
        self.groups[group].give_free(block, erases);
    }
}
