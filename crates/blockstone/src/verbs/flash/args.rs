//! Arguments of `flash` and its verbs: the device, the workload, and the parameters of each verb.

use std::path::PathBuf;
use std::str::FromStr;

use blockstone_base::units::{Bytes, Nanos, positive, ratio_above_zero, share};
use blockstone_flash::device::Placement;
use blockstone_flash::dies::Suspend;
use blockstone_flash::ftl::Pace;
use blockstone_flash::simulate::{Engine, Phase, Rate};
use blockstone_flash::trace::Format;
use blockstone_flash::workload::Workload;
use blockstone_flash::{Policy, preset};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand, ValueHint};

use super::axis::Axis;
use crate::choice::{Choice, one_of};
use crate::purpose::Purpose;

/// Arguments of `flash`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone flash explain                           why it has to collect
  blockstone flash sim --raw 576G --visible 400G     the write cliff of a device
  blockstone flash cliff --raw 576G --visible 400G --write-rate 50M
  blockstone flash sim --workload oltp --reads 70 --html cliff.html
  blockstone flash sim --collect atomic --throttle 15000
                                                     writes throttled meanwhile
  blockstone flash sweep op=7,12.5,20,28,44 policy=greedy,fifo,d=5
  blockstone flash sweep levelling=none,20,10,5,2 --workload hot-cold=5/99
  blockstone flash fit fio_bw.1.log --visible 400G   of a drive
  blockstone flash life --write-rate 50M --endurance 3000")]
pub struct FlashArgs {
    /// Computation
    #[command(subcommand)]
    pub verb: FlashVerb,
}

/// The verbs of `flash`.
#[derive(Debug, Subcommand)]
pub enum FlashVerb {
    /// Simulate one device under one workload, from full to steady state
    Sim(Box<SimArgs>),
    /// Simulate several settings, and compare write amplification with formulas
    ///
    /// Simulate write amplification and wear for several over-provisionings, policies, block sizes
    /// and kinds of wear levelling, and compare write amplification with formulas.
    Sweep(Box<SweepArgs>),
    /// Compute when the write cliff comes, and the rate after it
    Cliff(Box<CliffArgs>),
    /// Estimate spare and write amplification of a real drive from a measured curve
    Fit(Box<FitArgs>),
    /// Compute the lifetime of a device in years
    Life(Box<LifeArgs>),
    /// Show why flash needs garbage collection, on five blocks of ten pages
    #[command(after_help = "\
Examples:
  blockstone flash explain
  blockstone flash explain --html why.html")]
    Explain,
}

/// The device.
#[derive(Args, Debug)]
#[command(next_help_heading = "Device")]
pub struct DeviceArgs {
    /// Start from this device; other options change it
    #[arg(long, default_value = preset::ALL[0].name, value_parser = presets())]
    pub preset: String,
    /// Raw capacity: all flash of the device
    #[arg(long, value_name = "SIZE")]
    pub raw: Option<Bytes>,
    /// Capacity that the host sees
    #[arg(long, value_name = "SIZE", conflicts_with = "format_level")]
    pub visible: Option<Bytes>,
    /// Over-provisioning in percent, instead of --visible: 44 makes 400 of 576 GiB visible
    #[arg(long, value_name = "PCT", value_parser = ratio_above_zero)]
    pub format_level: Option<f64>,
    /// Size of a page, the unit that is mapped, read and programmed
    #[arg(long, value_name = "SIZE")]
    pub page_size: Option<Bytes>,
    /// Pages per block of one plane
    #[arg(long, value_name = "N")]
    pub pages_per_block: Option<u32>,
    /// Number of channels
    #[arg(long, value_name = "N")]
    pub channels: Option<u32>,
    /// Dies per channel
    #[arg(long, value_name = "N")]
    pub dies: Option<u32>,
    /// Planes per die; the planes of a die work in lockstep
    #[arg(long, value_name = "N")]
    pub planes: Option<u32>,
    /// Time to read a page
    #[arg(long, value_name = "TIME")]
    pub read_time: Option<Nanos>,
    /// Time to program each type of page, fastest first, for example 300us,2.5ms
    #[arg(long, value_name = "TIME[,TIME]", value_delimiter = ',')]
    pub program_times: Vec<Nanos>,
    /// Time to erase a block
    #[arg(long, value_name = "TIME")]
    pub erase_time: Option<Nanos>,
    /// Bytes per second of a channel [default: channels are never the limit]
    #[arg(long, value_name = "SIZE")]
    pub channel_rate: Option<Bytes>,
    /// Operations that a read suspends
    #[arg(long, value_parser = one_of(SUSPENDS))]
    pub suspend: Option<Suspend>,
}

/// Garbage collection.
#[derive(Args, Debug)]
#[command(next_help_heading = "Garbage collection")]
pub struct CollectionArgs {
    /// Choice of the block to collect
    ///
    /// greedy, fifo, random, cost-benefit or d=N (the emptiest of N).
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<Policy>,
    /// Free blocks per die that are reserved for collection
    #[arg(long, value_name = "N")]
    pub reserve: Option<u32>,
    /// When valid pages are moved
    #[arg(long, value_parser = one_of(PACES))]
    pub collect: Option<Pace>,
    /// Collect in the background, on idle dies, until this percentage of blocks is free
    #[arg(long, value_name = "PCT", value_parser = share)]
    pub background: Option<f64>,
    /// Time a die must be idle before background collection starts
    #[arg(long, value_name = "TIME", requires = "background")]
    pub idle_after: Option<Nanos>,
    /// Write moved pages to separate open blocks
    #[arg(long)]
    pub separate_moves: bool,
    /// Where the parts of a workload are written
    #[arg(long, value_parser = one_of(PLACEMENTS))]
    pub placement: Option<Placement>,
    /// Percentage of blocks that take writes in their fast pages only and are folded into ordinary
    /// blocks later
    #[arg(long, value_name = "PCT", value_parser = share)]
    pub fast_blocks: Option<f64>,
    /// Wear levelling: move data out of blocks that are this many erases behind the most worn one
    #[arg(long, value_name = "ERASES")]
    pub levelling: Option<u32>,
    /// Percentage of blocks that are bad from the start
    #[arg(long, value_name = "PCT", value_parser = share)]
    pub bad_blocks: Option<f64>,
    /// Program/erase cycles after which a block is retired [default: blocks do not wear out]
    #[arg(long, value_name = "CYCLES")]
    pub wear_out: Option<u32>,
}

/// Arguments of `flash sim`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone flash sim --raw 576G --visible 400G     the write cliff of a device
  blockstone flash sim --workload oltp --reads 70 --html cliff.html
  blockstone flash sim --collect atomic --throttle 15000")]
pub struct SimArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub collection: CollectionArgs,
    /// The writes: uniform, sequential, zipf=0.99, hot-cold=20/80, oltp …
    ///
    /// Also lsm, or parts with their percentage of the writes, for example
    /// redo=20+datafile=70+undo=10.
    #[arg(long, default_value = "uniform", help_heading = "Workload")]
    pub workload: Workload,
    /// Percentage of requests that are reads
    #[arg(long, value_name = "PCT", value_parser = share, help_heading = "Workload")]
    pub reads: Option<f64>,
    /// Size of a request [default: one page]
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub io_size: Option<Bytes>,
    /// Requests in flight [default: 128]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub queue_depth: Option<u32>,
    /// Requests per second, even if the device cannot keep up, instead of --queue-depth
    #[arg(long, value_name = "IOPS", value_parser = positive, conflicts_with = "phase",
          help_heading = "Workload")]
    pub rate: Option<f64>,
    /// Phases, one after the other: 8m@2000 at 2,000 requests per second, 30s@max as fast as
    /// possible, 1s@0 idle
    #[arg(long, value_name = "TIME@RATE", value_delimiter = ',', help_heading = "Workload")]
    pub phase: Vec<PhaseArg>,
    /// Replay a trace, or the rates of a recording, instead of a workload
    #[arg(long, value_name = "FILE|RUN", value_hint = ValueHint::AnyPath,
          conflicts_with_all = ["workload", "reads", "io_size", "rate", "phase"],
          help_heading = "Workload")]
    #[arg(add = Purpose::Input)]
    pub trace: Option<PathBuf>,
    /// Format of the trace: msr, blkparse, fio or disksim [default: detected]
    #[arg(long, requires = "trace", help_heading = "Workload")]
    #[arg(conflicts_with_all = ["workload", "reads", "io_size", "rate", "phase"])]
    pub trace_format: Option<Format>,
    /// How much to write, in visible capacities [default: 4]
    #[arg(long, value_name = "FILLS", value_parser = positive,
          help_heading = "Duration and precision")]
    pub drive_fills: Option<f64>,
    /// Stop after this much simulated time
    #[arg(long = "for", aliases = ["run-time", "duration"], value_name = "TIME")]
    #[arg(help_heading = "Duration and precision")]
    pub run_time: Option<Nanos>,
    /// Start with an empty device instead of a full one
    #[arg(long, help_heading = "Duration and precision")]
    pub empty: bool,
    /// Simulate only 1/N of the blocks of every die [default: chosen to finish in seconds]
    #[arg(long, value_name = "N", help_heading = "Duration and precision")]
    pub scale: Option<u32>,
    /// How pages are tracked
    #[arg(long, value_parser = one_of(ENGINES), help_heading = "Duration and precision")]
    pub engine: Option<Engine>,
    /// Memory that the tables of the simulated device may take
    #[arg(long, default_value = "384M", value_name = "SIZE")]
    #[arg(help_heading = "Duration and precision")]
    pub memory: Bytes,
    /// Also simulate the device without background collection, for comparison
    #[arg(long, requires = "background", help_heading = "Garbage collection")]
    pub against_active: bool,
    /// Admit at most this many write requests per second while a die has to collect, which it then
    /// does between them; also simulate the device without this, for comparison
    #[arg(long, value_name = "IOPS", value_parser = positive, conflicts_with = "background",
          help_heading = "Garbage collection")]
    pub throttle: Option<f64>,
    /// Seed of all random choices; the same seed gives the same output
    #[arg(long, default_value_t = 1, help_heading = "Duration and precision")]
    pub seed: u64,
}

/// Arguments of `flash sweep`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone flash sweep op=7,12.5,20,28,44 policy=greedy,fifo,d=5
  blockstone flash sweep levelling=none,20,10,5,2 --workload hot-cold=5/99
  blockstone flash sweep pages-per-block=64,256 --json")]
pub struct SweepArgs {
    /// Parameters to vary: op=7,20,44, policy=greedy,fifo,d=5 …
    ///
    /// op (over-provisioning in percent), policy, pages-per-block=64,256, levelling=none,20,5 (as
    /// --levelling of flash sim), reserve=1,4, bad-blocks=0,2 (in percent).
    #[arg(value_name = "KEY=VALUE,VALUE", required = true)]
    pub over: Vec<Axis>,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The writes, as in flash sim
    #[arg(long, default_value = "uniform", help_heading = "Workload")]
    pub workload: Workload,
    /// Seed of all random choices; the same seed gives the same output
    #[arg(long, default_value_t = 1, help_heading = "Workload")]
    pub seed: u64,
}

/// Arguments of `flash cliff`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone flash cliff --raw 576G --visible 400G --write-rate 50M
  blockstone flash cliff --format-level 44 --write-rate 50M")]
pub struct CliffArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub collection: CollectionArgs,
    /// Random overwrites, in bytes per second
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub write_rate: Bytes,
}

/// Arguments of `flash fit`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone flash fit last --visible 400G             a recording
  blockstone flash fit fio_bw.1.log --visible 400G     a log of fio
  blockstone flash fit fio_iops.1.log --io-size 4K --visible 400G")]
pub struct FitArgs {
    /// A recording: its directory, its id, or `last`; or a log of fio
    ///
    /// Logs of fio are those of `--write_bw_log` and `--write_iops_log`.
    #[arg(value_name = "RUN|FIO-LOG")]
    #[arg(add = Purpose::Input)]
    pub curve: String,
    /// Size of an I/O in a log of IOPS [default: 4K]
    #[arg(long, value_name = "SIZE")]
    pub io_size: Option<Bytes>,
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Arguments of `flash life`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone flash life --write-rate 50M --endurance 3000
  blockstone flash life --write-rate 50M --wa 2.5      as measured")]
pub struct LifeArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub collection: CollectionArgs,
    /// Writes of the host, in bytes per second
    #[arg(long, value_name = "SIZE", help_heading = "Workload")]
    pub write_rate: Bytes,
    /// Write amplification [default: by formula, for uniform random writes]
    #[arg(long, value_parser = positive, help_heading = "Workload")]
    pub wa: Option<f64>,
    /// Program/erase cycles that a block endures [default: the preset's]
    #[arg(long, value_name = "CYCLES", help_heading = "Device")]
    pub endurance: Option<u32>,
}

const SUSPENDS: &[Choice<Suspend>] = &[
    ("none", "None: a read waits for all that came before it", Suspend::None),
    ("erase", "Erases", Suspend::Erase),
    ("both", "Erases and programs", Suspend::Both),
];
const PACES: &[Choice<Pace>] = &[
    ("atomic", "A write waits for a whole block", Pace::Atomic),
    ("spread", "Each write waits for a few moves", Pace::Spread),
];
const PLACEMENTS: &[Choice<Placement>] = &[
    ("mixed", "Into the same open blocks", Placement::Mixed),
    ("frontiers", "Into open blocks of their own, with common spare", Placement::Frontiers),
    ("pools", "Into blocks of their own, with spare of their own", Placement::Pools),
];
const ENGINES: &[Choice<Engine>] = &[
    ("exact", "Mapping tables", Engine::Exact),
    ("counts", "Valid counts, where pages are exchangeable", Engine::Counts),
];

/// `TIME@RATE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseArg(pub Phase);

impl FromStr for PhaseArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("`{text}` is not a phase; write TIME@RATE: 30s@2000 or 30s@max");
        let (time, rate) = text.split_once('@').ok_or_else(fail)?;
        let duration: Nanos = time.parse().map_err(|_| fail())?;
        let pace = match rate {
            "max" => Rate::Closed,
            rate => match rate.parse::<f64>() {
                Ok(rate) if rate >= 0.0 && rate.is_finite() => Rate::Open(rate),
                _ => return Err(fail()),
            },
        };
        if duration.get() == 0 {
            Err(fail())
        } else {
            Ok(Self(Phase { duration_ns: duration.get(), pace }))
        }
    }
}

fn presets() -> PossibleValuesParser {
    let value = |preset: &preset::Preset| PossibleValue::new(preset.name).help(preset.doc);
    PossibleValuesParser::new(preset::ALL.iter().map(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_read() {
        let phase = Phase { duration_ns: 30_000_000_000, pace: Rate::Open(2000.0) };
        assert_eq!("30s@2000".parse(), Ok(PhaseArg(phase)));
        for text in ["30s", "30@1", "0s@1", "1s@-1", "1s@nan"] {
            assert!(text.parse::<PhaseArg>().is_err(), "{text}");
        }
    }
}
