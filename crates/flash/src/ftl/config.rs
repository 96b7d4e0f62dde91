//! Configuration of a translation layer, and its validation.

use blockstone_base::hint::Hint;
use blockstone_base::rng::mix;

use crate::policy::Policy;

/// How foreground collection is paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A write that finds no room waits for the collection of a whole block.
    Atomic,
    /// Collection starts one block earlier and moves a few pages with each write.
    Spread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Blocks on each die.
    pub blocks: u32,
    /// Pages used of each block: all of them, or only the fast ones.
    pub pages_used: u32,
    /// For fast blocks: the stream whose frontier takes the pages of their victims.
    pub fold_into: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wear {
    /// Static levelling: a closed block this many erases behind the most worn one is moved.
    pub levelling_spread: Option<u32>,
    /// Erases that a block endures, ±10 %; after that it is retired.
    pub endurance: Option<u32>,
    /// Fraction of the blocks that is bad from the beginning, 0 to 1.
    pub bad_blocks: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub logical_pages: u32,
    /// Pages per block; with planes in step, of their blocks together.
    pub pages_per_block: u32,
    pub dies: u32,
    pub pools: Vec<Pool>,
    /// The pool of each stream; writes name a stream.
    pub streams: Vec<u32>,
    /// Whether moved pages get their own open blocks, apart from those of the host's writes.
    pub separate_moves: bool,
    pub policy: Policy,
    /// Free blocks of each pool on each die that only collection may use; at least one.
    pub reserve_blocks: u32,
    pub pace: Pace,
    pub wear: Wear,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum ConfigError {
    #[error("configure the device: {what} is {value}, it must be {least} to {most}")]
    #[hint("{hint}")]
    Range { what: &'static str, value: u64, least: u64, most: u64, hint: &'static str },
    #[error(
        "configure the device: {logical} logical pages need spare, but only {usable} of {raw} \
         pages remain after bad blocks, the reserve and open blocks"
    )]
    #[hint(
        "raise the raw capacity, or lower the visible capacity, the reserve or the number of dies"
    )]
    NoSpare { logical: u64, raw: u64, usable: u64 },
    #[error("configure the device: {what} refers to number {index} of {count}")]
    #[hint("numbers start at zero")]
    Index { what: &'static str, index: u32, count: usize },
    #[error("configure the device: classes cover {covered} pages of {logical}")]
    #[hint("every page belongs to one class")]
    Classes { covered: u64, logical: u32 },
}

impl Config {
    /// One pool, one stream, greedy collection with the least reserve.
    pub fn plain(logical_pages: u32, pages_per_block: u32, dies: u32, blocks_per_die: u32) -> Self {
        let pool = Pool { blocks: blocks_per_die, pages_used: pages_per_block, fold_into: None };
        Self {
            logical_pages,
            pages_per_block,
            dies,
            pools: vec![pool],
            streams: vec![0],
            separate_moves: false,
            policy: Policy::Greedy,
            reserve_blocks: 1,
            pace: Pace::Atomic,
            wear: Wear::default(),
            seed: 1,
        }
    }

    /// Blocks of all pools on all dies.
    pub fn blocks(&self) -> u64 {
        let a_die: u64 = self.pools.iter().map(|pool| u64::from(pool.blocks)).sum();
        a_die * u64::from(self.dies)
    }

    /// All pages, whether used or not.
    pub fn raw_pages(&self) -> u64 {
        self.blocks() * u64::from(self.pages_per_block)
    }

    /// Pages that hold data when a victim is chosen: excludes bad blocks, the reserve, and half of
    /// each open block other than the one just filled. This is T − b·reserved of the formulas.
    pub fn usable_pages(&self) -> u64 {
        let mut usable = 0.0;
        for (index, pool) in self.pools.iter().enumerate() {
            if pool.fold_into.is_some() {
                continue;
            }
            let hosts = self.streams.iter().filter(|&&pool| pool as usize == index).count();
            let open = if self.separate_moves { 2 * hosts } else { hosts } + self.levels();
            let good = f64::from(pool.blocks) * (1.0 - self.wear.bad_blocks);
            let held = f64::from(self.free_blocks()) + (open as f64 - 1.0) / 2.0;
            usable += (good - held).max(0.0) * f64::from(pool.pages_used) * f64::from(self.dies);
        }
        usable as u64
    }

    /// Blocks of each pool on each die that stay free under foreground collection.
    pub fn free_blocks(&self) -> u32 {
        self.reserve_blocks + self.early_blocks()
    }

    /// Blocks above the reserve at which spread collection begins: one, plus one to move cold data
    /// into while the other is written.
    fn early_blocks(&self) -> u32 {
        if self.pace == Pace::Spread { 1 + self.levels() as u32 } else { 0 }
    }

    /// Open blocks for cold data in each pool on each die.
    fn levels(&self) -> usize {
        usize::from(self.wear.levelling_spread.is_some())
    }

    /// Index of the frontier that takes the cold data of a pool; it follows those of the streams.
    pub(super) fn levelling_frontier(&self, pool: u32) -> u32 {
        let streams = self.streams.len() as u32;
        pool + if self.separate_moves { 2 * streams } else { streams }
    }

    /// α of the formulas: usable ÷ logical pages.
    pub fn effective_alpha(&self) -> f64 {
        self.usable_pages() as f64 / f64::from(self.logical_pages)
    }

    pub(super) fn endures(&self, block: u32) -> Option<u32> {
        let mean = u64::from(self.wear.endurance?);
        let spread = mean / 5 + 1;
        let drawn = mix(self.seed ^ mix(u64::from(block))) % spread;
        Some((mean - mean / 10 + drawn).max(1) as u32)
    }

    /// Checks the configuration as a whole.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        let pools = self.pools.len();
        let folds = self.pools.iter().filter_map(|pool| pool.fold_into);
        for stream in folds.clone() {
            check_index("fold_into", stream, self.streams.len())?;
        }
        for &pool in &self.streams {
            check_index("a stream", pool, pools)?;
        }
        for stream in folds {
            let target = self.streams[stream as usize];
            if self.pools[target as usize].fold_into.is_some() {
                let (what, index) = ("a fold into folds", target);
                return Err(ConfigError::Index { what, index, count: pools });
            }
        }
        let (logical, usable) = (u64::from(self.logical_pages), self.usable_pages());
        if usable <= logical {
            return Err(ConfigError::NoSpare { logical, raw: self.raw_pages(), usable });
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        let range = |what, value, least, most, hint| {
            if (least..=most).contains(&value) {
                Ok(())
            } else {
                Err(ConfigError::Range { what, value, least, most, hint })
            }
        };
        let logical = u64::from(self.logical_pages);
        range("visible pages", logical, 1, u64::from(u32::MAX), "give it a capacity")?;
        let b = u64::from(self.pages_per_block);
        range("pages a block", b, 1, 32_768, "a block has 64 to a few thousand pages")?;
        range("dies", u64::from(self.dies), 1, 4096, "a device has 1 to a few hundred dies")?;
        range("pools", self.pools.len() as u64, 1, 16, "one pool is the ordinary case")?;
        range("streams", self.streams.len() as u64, 1, 64, "one stream is the ordinary case")?;
        let slots = self.blocks() * b.next_power_of_two();
        let most = u64::from(u32::MAX);
        range("raw pages", slots, 1, most, "simulate a part of the device: --scale")?;
        for pool in &self.pools {
            let used = u64::from(pool.pages_used);
            range("pages used of a block", used, 1, b, "at most all pages of a block")?;
            let least = u64::from(self.reserve_blocks) + 2;
            let hint = "more blocks a die, fewer dies, or a smaller reserve";
            range("blocks of a pool on a die", u64::from(pool.blocks), least, most, hint)?;
        }
        let reserve = u64::from(self.reserve_blocks);
        let (least, hint) = match self.wear.endurance {
            None => (1, "collection needs one block to move into"),
            Some(_) => (2, "where blocks wear out, collection needs two blocks to move into"),
        };
        range("reserved blocks", reserve, least, 1 << 20, hint)?;
        let bad = self.wear.bad_blocks;
        let percent = if bad.is_finite() { (bad * 100.0).ceil() as u64 } else { u64::MAX };
        let percent = if bad < 0.0 { u64::MAX } else { percent };
        range("percent of bad blocks", percent, 0, 50, "a device ships with at most a few")?;
        let endurance = u64::from(self.wear.endurance.unwrap_or(1));
        range("P/E cycles", endurance, 1, most, "omit it for blocks that do not wear out")
    }
}

fn check_index(what: &'static str, index: u32, count: usize) -> Result<(), ConfigError> {
    if (index as usize) < count { Ok(()) } else { Err(ConfigError::Index { what, index, count }) }
}
