//! What an I/O costs on each side.

use std::path::Path;

use anyhow::Result;
use blockstone_base::Capability;
use blockstone_testkit::{FileKind, Need, ScratchDir, ZramDevice};

use super::side::{Cost, Load, Side};
use super::{Extent, Options, median};
use crate::goals::{Column, Goal, Point, Results, column};

/// Our user time an I/O is at most this part of fio's.
const USER_RATIO_GOAL: f64 = 0.5;
/// Our IOPS are at least this multiple of fio's on zram.
const IOPS_RATIO_GOAL: f64 = 1.2;

/// A device in memory, where no device waits.
const ZRAM: &str = "zram";

const POINTS: &[Load] = &[
    Load { engine: "psync", fio_engine: "psync", depth: 1 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 1 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 16 },
    Load { engine: "uring", fio_engine: "io_uring", depth: 64 },
];

/// A point on a device, and what both sides did there in each round.
struct Cell<'a> {
    device: &'static str,
    path: &'a Path,
    point: Load,
    /// Ours and fio: IOPS, and the cost of a read.
    rounds: Vec<[(f64, Cost); 2]>,
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
        let cell = |&point: &Load| Cell { device, path, point, rounds: Vec::new() };
        cells.extend(POINTS.iter().map(cell));
    }
    eprintln!(
        "8 KiB random direct reads of {size}; medians of {rounds} rounds of {seconds} s a side"
    );
    for round in 0..rounds {
        for cell in &mut cells {
            let turn = |side: &Side| side.measure_cost(cell.point, cell.path, seconds);
            // The order alternates, so that drift within a pair favours neither side.
            let pair = if round % 2 == 0 {
                let ours = turn(&ours)?;
                [ours, turn(&Side::Fio)?]
            } else {
                let fio = turn(&Side::Fio)?;
                [turn(&ours)?, fio]
            };
            cell.rounds.push(pair);
        }
        eprintln!("round {} of {rounds}", round + 1);
    }
    let mut results = Results { columns: COLUMNS, points: Vec::new(), goals: Vec::new() };
    cells.iter().try_for_each(|cell| cell.conclude(&mut results))?;
    Ok(results)
}

impl Cell<'_> {
    fn conclude(&self, results: &mut Results) -> Result<()> {
        let iops = self.compare(|(iops, _)| *iops)?;
        let user = self.compare(|(_, cost)| cost.user_ns)?;
        let system = self.compare(|(_, cost)| cost.system_ns)?;
        let name = format!("{} {}", self.device, self.point.name());
        let [.., iops_ratio] = iops;
        let [.., user_ratio] = user;
        let goal = format!("{name}: user time, ours ÷ fio");
        results.goals.push(Goal::at_most(goal, user_ratio, USER_RATIO_GOAL));
        // On a disk, IOPS measure the disk, not the engine.
        if self.device == ZRAM {
            let goal = format!("{name}: IOPS, ours ÷ fio");
            results.goals.push(Goal::at_least(goal, iops_ratio, IOPS_RATIO_GOAL));
        }
        results.points.push(Point { name, values: [iops, user, system].concat() });
        Ok(())
    }

    /// The medians of a figure, ours and fio's, and the median of the rounds' ratios: not the ratio
    /// of the medians, because a round's two sides ran one after the other and the rounds did not.
    fn compare(&self, part: impl Fn(&(f64, Cost)) -> f64) -> Result<[f64; 3]> {
        let ours = median(self.rounds.iter().map(|[ours, _]| part(ours)).collect())?;
        let fio = median(self.rounds.iter().map(|[_, fio]| part(fio)).collect())?;
        let ratios = self.rounds.iter().map(|[ours, fio]| part(ours) / part(fio)).collect();
        Ok([ours, fio, median(ratios)?])
    }
}
