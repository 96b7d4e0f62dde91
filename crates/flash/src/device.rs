//! A device as its data sheet describes it, and the translation layer derived from it.

use blockstone_base::hint::Hint;

use crate::dies::Times;
use crate::ftl::{Config, ConfigError, Pace, Pool, Wear};
use crate::policy::Policy;
use crate::workload::Workload;

/// Where the data of a workload's parts is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// All parts share the same open blocks.
    #[default]
    Mixed,
    /// Each part has its own open blocks; blocks and spare are shared.
    Frontiers,
    /// Each part has its own blocks and its own share of the spare.
    Pools,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    pub raw_bytes: u64,
    /// Capacity visible to the host, in bytes.
    pub visible_bytes: u64,
    pub page_bytes: u32,
    /// Pages per block of one plane.
    pub pages_per_block: u32,
    pub channels: u32,
    pub dies_per_channel: u32,
    pub times: Times,
    pub policy: Policy,
    /// Free blocks per die that only collection may use.
    pub reserve_blocks: u32,
    pub pace: Pace,
    /// Collect on idle dies until this share of their blocks is free, 0 to 0.5; 0 means on demand.
    pub background: f64,
    /// Time a die must be idle before background collection starts, in nanoseconds.
    pub idle_ns: u64,
    pub separate_moves: bool,
    pub placement: Placement,
    /// Share of the blocks, 0 to 0.5, that is written in fast pages only and folded later.
    pub fast_blocks: f64,
    pub wear: Wear,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum DeviceError {
    #[error("configure the device: {visible_bytes} bytes visible, but only {raw_bytes} bytes raw")]
    #[hint("without spare capacity nothing can be overwritten")]
    NoSpare { raw_bytes: u64, visible_bytes: u64 },
    #[error(
        "configure the device: background collection keeps {wanted} % of the blocks free, but \
         only {spare:.1} % are effective spare"
    )]
    #[hint("lower --background, or leave more spare")]
    Background { wanted: f64, spare: f64 },
    #[error("configure the device: {what} is {value}")]
    #[hint("{hint}")]
    Quantity { what: &'static str, value: f64, hint: &'static str },
    #[error(transparent)]
    #[hint(transparent)]
    Config(#[from] ConfigError),
}

impl Device {
    /// Raw ÷ visible − 1: a device with 576 GB, 400 of them visible, has 0.44.
    pub fn over_provisioning(&self) -> f64 {
        self.raw_bytes as f64 / self.visible_bytes as f64 - 1.0
    }

    /// Fraction of the raw capacity that is spare.
    pub fn spare_factor(&self) -> f64 {
        1.0 - self.visible_bytes as f64 / self.raw_bytes as f64
    }

    pub fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Pages that are erased together: one block of every plane of a die.
    pub fn pages_per_erase(&self) -> u32 {
        self.pages_per_block * self.times.planes
    }

    /// Returns the scale, as one over this number, at which about `pages` visible pages are
    /// simulated. At least 256 blocks per die remain, so that the reserved ones do not weigh too
    /// much.
    pub fn scale_for(&self, pages: u64) -> u32 {
        let visible = self.visible_bytes / u64::from(self.page_bytes.max(1));
        let block = u64::from(self.page_bytes) * u64::from(self.pages_per_erase().max(1));
        let blocks_per_die = self.raw_bytes / block.max(1) / u64::from(self.dies().max(1));
        let most = (blocks_per_die / 256).max(1);
        visible.div_ceil(pages.max(1)).clamp(1, most).next_power_of_two().min(most) as u32
    }

    /// Builds the translation layer of one `scale`-th of the device for this workload.
    pub fn layout(
        &self,
        workload: &Workload,
        scale: u32,
        seed: u64,
    ) -> Result<Config, DeviceError> {
        self.check(scale)?;
        let pages = |bytes: u64| bytes / u64::from(self.page_bytes) / u64::from(scale);
        let per_erase = self.pages_per_erase();
        let a_die = pages(self.raw_bytes) / u64::from(self.dies()) / u64::from(per_erase);
        let a_die = u32::try_from(a_die).unwrap_or(u32::MAX);
        let logical_pages = u32::try_from(pages(self.visible_bytes)).unwrap_or(u32::MAX);
        let plain = Config::plain(logical_pages, per_erase, self.dies(), a_die);
        let parts = workload.parts.len();
        let (pools, streams) = match self.placement {
            Placement::Mixed => (plain.pools.clone(), vec![0]),
            Placement::Frontiers => (plain.pools.clone(), vec![0; parts]),
            Placement::Pools => (self.pools(workload, &plain), (0..parts as u32).collect()),
        };
        let mut config = Config {
            pools,
            streams,
            separate_moves: self.separate_moves,
            policy: self.policy,
            reserve_blocks: self.reserve_blocks,
            pace: self.pace,
            wear: self.wear,
            seed,
            ..plain
        };
        if self.fast_blocks > 0.0 {
            self.add_fast(&mut config);
        }
        config.check()?;
        self.check_background(&config)?;
        Ok(config)
    }

    /// Blocks of each pool that every die keeps free in the background; zero without it.
    pub fn background_blocks(&self, config: &Config) -> u32 {
        (f64::from(config.pools[0].blocks) * self.background) as u32
    }

    /// Blocks kept free no longer count as spare. With no spare left, collection would never end.
    fn check_background(&self, config: &Config) -> Result<(), DeviceError> {
        let spare = 1.0 - 1.0 / config.effective_alpha();
        if self.background < spare {
            return Ok(());
        }
        Err(DeviceError::Background { wanted: self.background * 100.0, spare: spare * 100.0 })
    }

    fn check(&self, scale: u32) -> Result<(), DeviceError> {
        let whole = "it must be at least one";
        let read = "it must be above zero; the default is 50us";
        let erase = "it must be above zero; the default is 3ms";
        let program = "it must be above zero; 300us to 2.5ms is usual";
        let quantities = [
            ("the visible capacity", self.visible_bytes as f64, whole),
            ("the page size", f64::from(self.page_bytes), whole),
            ("the number of pages per block", f64::from(self.pages_per_block), whole),
            ("the number of channels", f64::from(self.channels), whole),
            ("the number of dies per channel", f64::from(self.dies_per_channel), whole),
            ("the number of planes", f64::from(self.times.planes), whole),
            ("the scale", f64::from(scale), whole),
            ("the read time", self.times.read_ns as f64, read),
            ("the erase time", self.times.erase_ns as f64, erase),
            ("the program time", self.times.program_ns_mean(), program),
        ];
        for (what, value, hint) in quantities {
            if value < 1.0 {
                return Err(DeviceError::Quantity { what, value, hint });
            }
        }
        if self.raw_bytes <= self.visible_bytes {
            let &Self { raw_bytes, visible_bytes, .. } = self;
            return Err(DeviceError::NoSpare { raw_bytes, visible_bytes });
        }
        let shares = [
            ("the share of fast blocks", self.fast_blocks),
            ("the share of blocks to free in the background", self.background),
        ];
        for (what, value) in shares {
            if !(0.0..=0.5).contains(&value) {
                return Err(DeviceError::Quantity { what, value, hint: "0 to 0.5" });
            }
        }
        Ok(())
    }

    /// Blocks for each part: its pages, plus spare ∝ √(pages · writes), which is nearly optimal.
    fn pools(&self, workload: &Workload, plain: &Config) -> Vec<Pool> {
        let b = f64::from(plain.pages_per_block) * f64::from(plain.dies);
        let blocks = plain.pools[0].blocks;
        let regions = workload.regions(plain.logical_pages);
        let own = |pages: u32| f64::from(pages) / b + f64::from(self.reserve_blocks);
        let spare = f64::from(blocks) - regions.iter().map(|&(_, pages)| own(pages)).sum::<f64>();
        let weight = |(part, &(_, pages)): (&crate::workload::WorkloadPart, &(u32, u32))| {
            (f64::from(pages) * part.writes).sqrt()
        };
        let weights: Vec<f64> = workload.parts.iter().zip(&regions).map(weight).collect();
        let all: f64 = weights.iter().sum::<f64>().max(1e-300);
        let mut left = blocks;
        let mut pools = Vec::new();
        for (index, (&(_, pages), weight)) in regions.iter().zip(&weights).enumerate() {
            let wanted = (own(pages) + spare.max(0.0) * weight / all).round() as u32;
            let last = index + 1 == regions.len();
            let blocks = if last { left } else { wanted.min(left) };
            left -= blocks;
            pools.push(Pool { blocks, pages_used: plain.pages_per_block, fold_into: None });
        }
        pools
    }

    /// Sets fast blocks aside; every stream writes to them first.
    fn add_fast(&self, config: &mut Config) {
        let types = self.times.program_ns.len().max(1) as u32;
        let fast = (f64::from(config.pools[0].blocks) * self.fast_blocks).round() as u32;
        config.pools[0].blocks -= fast;
        let pages_used = (config.pages_per_block / types).max(1);
        let ordinary = config.streams.len() as u32;
        let pool = config.pools.len() as u32;
        // The host's streams come first; the data they fold goes to the streams behind them.
        let behind = config.streams.clone();
        config.streams = vec![pool; behind.len()];
        config.streams.extend(behind);
        config.pools.push(Pool { blocks: fast, pages_used, fold_into: Some(ordinary) });
    }
}
