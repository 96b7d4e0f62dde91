//! Cost of an I/O on each side.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use blockstone_base::Capability;
use blockstone_testkit::{FileKind, Need, ScratchDir, ZramDevice};

use super::side::{Load, Side};
use super::turns::{self, Tally};
use super::{Extent, Options};
use crate::goals::{Column, Goal, Point, Results, column};

/// Maximum ratio of our user time per I/O to fio's.
const USER_RATIO_GOAL: f64 = 0.5;
/// Maximum ratio of our processor time per I/O, in the kernel and in total, to fio's with io_uring:
/// the ring is set up and entered in the cheapest way the kernel has.
const CPU_RATIO_GOAL: f64 = 1.0;
/// Minimum ratio of our IOPS to fio's on zram.
const IOPS_RATIO_GOAL: f64 = 1.2;

/// A device in memory, where nothing waits for hardware.
const ZRAM: &str = "zram";

const POINTS: &[Load] = &[
    Load { engine: "psync", fio_engine: "psync", depth: 1 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 1 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 4 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 16 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 64 },
];

/// Results of all sides at one point on one device.
struct Cell<'a> {
    device: &'static str,
    path: &'a Path,
    point: Load,
    /// Ours, fio, and fio once more, to show how far two runs of the same side differ.
    tallies: [Tally; 3],
}

const COLUMNS: &[Column] = &[
    column("iops", "ours\nIOPS", 0),
    column("fio_iops", "fio\nIOPS", 0),
    column("iops_ratio", "\nratio", 2),
    column("user_ns_per_io", "ours\nuser ns", 0),
    column("fio_user_ns_per_io", "fio\nuser ns", 0),
    column("user_ratio", "\nratio", 2),
    column("system_ns_per_io", "ours\nsystem ns", 0),
    column("fio_system_ns_per_io", "fio\nsystem ns", 0),
    column("system_ratio", "\nratio", 2),
    column("cpu_ratio", "CPU ratio\nours ÷ fio", 2),
    column("fio_cpu_ratio", "CPU ratio\nfio ÷ fio", 2),
];

pub fn run(options: &Options) -> Result<Results> {
    let Extent { seconds, rounds, size } = options.extent();
    let ours = Side::ours()?;
    let dir = ScratchDir::on_disk()?;
    let file = dir.path().join("file");
    FileKind::Real.create(&file, size)?;
    let zram = match Need::Zram.capability() {
        Capability::Full => Some(ZramDevice::create(size)?),
        Capability::Degraded { why } => {
            eprintln!("no zram device, so no comparison without a disk: {why}");
            None
        }
    };
    let devices = zram.iter().map(|zram| (ZRAM, zram.device())).chain([("disk", file.as_path())]);
    let mut cells = Vec::new();
    for (device, path) in devices {
        let cell = |&point: &Load| Cell { device, path, point, tallies: Default::default() };
        cells.extend(POINTS.iter().map(cell));
    }
    eprintln!(
        "8 KiB random direct reads of {size}; {rounds} rounds of {seconds} s a side, in short turns"
    );
    let sides = [&ours, &Side::Fio, &Side::Fio];
    let length = Duration::from_secs(seconds.into());
    for round in 0..rounds {
        for cell in &mut cells {
            turns::take(&sides, cell.point, cell.path, length, &mut cell.tallies)?;
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    let mut results = Results { columns: COLUMNS, points: Vec::new(), goals: Vec::new() };
    cells.iter().try_for_each(|cell| cell.conclude(&mut results))?;
    Ok(results)
}

impl Cell<'_> {
    fn conclude(&self, results: &mut Results) -> Result<()> {
        let [ours, fio, again] = &self.tallies;
        let (ours, fio, again) = (ours.cost()?, fio.cost()?, again.cost()?);
        let compared = |ours: f64, fio: f64| [ours, fio, ours / fio];
        let iops = compared(ours.iops, fio.iops);
        let user = compared(ours.user_ns, fio.user_ns);
        let system = compared(ours.system_ns, fio.system_ns);
        let cpu_ratios = [ours.cpu_ns / fio.cpu_ns, again.cpu_ns / fio.cpu_ns];
        let name = format!("{} {}", self.device, self.point.name());
        let mut at_most = |what: &str, seen: f64, most: f64| {
            results.goals.push(Goal::at_most(format!("{name}: {what}, ours ÷ fio"), seen, most));
        };
        at_most("user time", user[2], USER_RATIO_GOAL);
        if self.point.engine == "uring" {
            at_most("kernel time", system[2], CPU_RATIO_GOAL);
            at_most("processor time", cpu_ratios[0], CPU_RATIO_GOAL);
        }
        // On a disk, IOPS measure the disk, not the engine.
        if self.device == ZRAM {
            let goal = format!("{name}: IOPS, ours ÷ fio");
            results.goals.push(Goal::at_least(goal, iops[2], IOPS_RATIO_GOAL));
        }
        let values = [&iops[..], &user, &system, &cpu_ratios].concat();
        results.points.push(Point { name, values });
        Ok(())
    }
}
