//! Plan of a simulation.

use blockstone_base::hint::Hint;

use crate::Policy;
use crate::device::{Device, DeviceError, Placement};
use crate::ftl::{Config, ConfigError, Full};
use crate::theory::{self, Class};
use crate::workload::{Pattern, Workload, WorkloadError, WorkloadPart};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A new request starts when one completes, with this many in flight.
    Closed,
    /// This many requests per second at exponential gaps, whatever the device does; zero is an idle
    /// window.
    Open(f64),
}

/// A period of the load. Phases follow each other and then repeat.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Duration in nanoseconds of the whole device; [`u64::MAX`] means without end.
    pub duration_ns: u64,
    pub pace: Pace,
}

/// How pages are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Counts for large devices where they suffice, otherwise exact.
    #[default]
    Auto,
    Exact,
    Counts,
}

/// Contents of the device at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Every page, written once in order.
    #[default]
    Filled,
    Empty,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub device: Device,
    pub workload: Workload,
    pub phases: Vec<Phase>,
    /// Requests in flight in a closed loop.
    pub queue_depth: u32,
    /// Amount of data to write, in visible capacities.
    pub drive_fills: f64,
    /// Time limit, in nanoseconds of the whole device, after which the run ends early.
    pub time_limit_ns: u64,
    pub start: Start,
    pub engine: Engine,
    /// Every die is simulated with one block in this many. Rates, latencies and visible capacities
    /// written are those of the whole device; simulated times are multiplied by this factor.
    pub scale: u32,
    pub points: u32,
    /// Number of blocks and of frames in the block maps.
    pub frames: (u32, u32),
    pub seed: u64,
    pub memory_limit_bytes: u64,
    /// Write requests per second that are admitted while a die has to collect; the others wait
    /// outside, and dies collect in between.
    pub throttle: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum SimulationError {
    #[error(transparent)]
    #[hint(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    #[hint(transparent)]
    Workload(#[from] WorkloadError),
    #[error("simulate: {what} is {value}")]
    #[hint("{hint}")]
    Quantity { what: &'static str, value: f64, hint: &'static str },
    #[error("simulate by counts: the pages of this workload are not exchangeable")]
    #[hint("only uniform and hot-cold workloads are; omit --engine")]
    NotExchangeable,
    #[error(transparent)]
    #[hint(transparent)]
    Full(#[from] Full),
    #[error("simulate: the tables need {needed} MiB of memory, the limit is {limit} MiB")]
    #[hint(
        "simulate a smaller part with --scale, count with --engine counts, or allow more with \
         --memory"
    )]
    Memory { needed: u64, limit: u64 },
}

impl From<ConfigError> for SimulationError {
    fn from(error: ConfigError) -> Self {
        Self::Device(error.into())
    }
}

impl Plan {
    /// A plan for a device full of data, written with 128 requests in flight for four visible
    /// capacities, and scaled to a part that can be simulated in seconds.
    pub fn new(device: Device, workload: Workload) -> Self {
        let scale = device.scale_for(4 << 20);
        Self {
            device,
            workload,
            phases: vec![Phase { duration_ns: u64::MAX, pace: Pace::Closed }],
            queue_depth: 128,
            drive_fills: 4.0,
            time_limit_ns: u64::MAX,
            start: Start::Filled,
            engine: Engine::Auto,
            scale,
            points: 200,
            frames: (600, 80),
            seed: 1,
            memory_limit_bytes: u64::MAX,
            throttle: None,
        }
    }

    /// Checks the plan and returns the translation layer's configuration.
    pub fn check(&self) -> Result<Config, SimulationError> {
        let positive = "it must be more than zero";
        let at_rate = |phase: &Phase| match phase.pace {
            Pace::Closed => None,
            Pace::Open(rate) => Some(rate),
        };
        let quantity = |what, value, hint| Err(SimulationError::Quantity { what, value, hint });
        for phase in &self.phases {
            if let Some(rate) = at_rate(phase).filter(|rate| !(0.0..=1e9).contains(rate)) {
                return quantity("the rate", rate, "requests a second, 0 for an idle window");
            }
            if phase.duration_ns == 0 {
                return quantity("the duration of a phase", 0.0, positive);
            }
        }
        if self.phases.iter().all(|phase| at_rate(phase) == Some(0.0)) {
            return quantity("the rate", 0.0, "at least one phase must not be idle");
        }
        if !(self.drive_fills > 0.0 && self.drive_fills <= 1e6) {
            return quantity("the number of drive fills", self.drive_fills, positive);
        }
        if self.time_limit_ns == 0 {
            return quantity("the simulated time", 0.0, positive);
        }
        if self.workload.reads >= 1.0 && self.time_limit_ns == u64::MAX {
            return quantity("the share of reads", 1.0, "with reads only, say for how long");
        }
        if let Some(rate) = self.throttle.filter(|rate| !(*rate > 0.0 && *rate <= 1e9)) {
            return quantity("the rate of throttled writes", rate, positive);
        }
        if !(1..=65_536).contains(&self.queue_depth) {
            return quantity("the queue depth", self.queue_depth.into(), "1 to 65,536");
        }
        if !(1..=100_000).contains(&self.points) {
            return quantity("the number of points", self.points.into(), "1 to 100,000");
        }
        let config = self.device.layout(&self.workload, self.scale, self.seed)?;
        self.workload.requests(config.logical_pages, self.seed)?;
        if self.engine == Engine::Counts && !self.workload.is_exchangeable() {
            return Err(SimulationError::NotExchangeable);
        }
        let (needed, limit) = (self.memory_bytes(&config), self.memory_limit_bytes);
        if needed > limit {
            let (needed, limit) = (needed.div_ceil(1 << 20), limit >> 20);
            return Err(SimulationError::Memory { needed, limit });
        }
        Ok(config)
    }

    pub fn counts(&self, config: &Config) -> bool {
        match self.engine {
            Engine::Exact => false,
            Engine::Counts => true,
            Engine::Auto => self.workload.is_exchangeable() && config.logical_pages > 32 << 20,
        }
    }

    fn memory_bytes(&self, config: &Config) -> u64 {
        let tables =
            4 * (u64::from(config.logical_pages) + config.raw_pages()) + config.raw_pages() / 8;
        18 * config.blocks() + if self.counts(config) { 0 } else { tables }
    }

    /// Write requests per second by formula, for a load that only writes, as fast as it can.
    pub fn analytic_iops(&self, config: &Config, amplification: Option<f64>) -> Option<f64> {
        let writes_only = self.workload.reads == 0.0;
        if self.throttle.is_some()
            || !writes_only
            || self.phases[0].pace != Pace::Closed
            || self.device.fast_blocks > 0.0
        {
            return None;
        }
        // With one request in flight, one die works at a time.
        let dies = if self.queue_depth == 1 && self.workload.pages_per_request == 1 {
            1
        } else {
            config.dies
        };
        let costs = self.device.times.costs();
        let b = config.pages_per_block;
        let pages = theory::sustained_iops(dies, costs, b, amplification?);
        Some(pages / f64::from(self.workload.pages_per_request))
    }

    /// Write amplification by formula, if there is one for this workload and placement.
    pub fn analytic_amplification(&self, config: &Config) -> Option<f64> {
        let alpha = config.effective_alpha();
        let (policy, b) = (self.device.policy, config.pages_per_block);
        let keeps_free = self.device.background > 0.0 || self.throttle.is_some();
        if self.device.fast_blocks > 0.0 || keeps_free {
            return None;
        }
        let parts = &self.workload.parts;
        if let [only] = parts.as_slice() {
            return match only.pattern {
                Pattern::Uniform => theory::write_amplification(policy, alpha, b),
                Pattern::Circular => Some(1.0),
                Pattern::Zipf(_) | Pattern::Temporary | Pattern::Segments(_) => None,
            };
        }
        if !self.workload.is_exchangeable() {
            return None;
        }
        let (pages, writes): (f64, f64) =
            parts.iter().fold((0.0, 0.0), |(p, w), part| (p + part.pages, w + part.writes));
        match (self.device.placement, policy) {
            (Placement::Mixed, Policy::Fifo) => {
                let class = |part: &WorkloadPart| Class {
                    pages: part.pages / pages,
                    writes: part.writes / writes,
                };
                let classes: Vec<Class> = parts.iter().map(class).collect();
                Some(theory::mixed_fifo(&classes, alpha))
            }
            (Placement::Pools, _) => {
                let regions = self.workload.regions(config.logical_pages);
                let of_one = |(index, part): (usize, &WorkloadPart)| {
                    let blocks = config.pools[index].blocks - config.reserve_blocks;
                    let usable = f64::from(blocks) * f64::from(b) * f64::from(config.dies);
                    let alpha = usable / f64::from(regions[index].1);
                    Some(part.writes / writes * theory::write_amplification(policy, alpha, b)?)
                };
                parts.iter().enumerate().map(of_one).sum()
            }
            _ => None,
        }
    }
}
