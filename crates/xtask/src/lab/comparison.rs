//! Whether `compare` calls equal storage equal and different storage different: the same device is
//! calibrated again and again under one cap, and under a cap that is 10 % lower, in turns. Each
//! recording is compared with each other one of its cap, and each pair of neighbours with different
//! caps.

use std::path::PathBuf;

use anyhow::{Context, Result};
use blockstone_base::Bytes;
use blockstone_testkit::{Caps, DeviceSpec};
use serde_json::Value;

use super::Lab;
use super::measure::Rig;
use crate::goals::{Column, Goal, Point, Results, column};

/// Reads a second that the caps allow: of a cloud volume, and far below what the machine does.
const CAPS_IOPS: [u64; 2] = [3_000, 2_700];
/// Calibrations under each cap; 11 have 55 pairs, of both caps 110.
const RECORDINGS: usize = 11;
/// Figures that a cap on reads decides.
const CAPPED: [&str; 1] = ["max_iops"];
const ESTABLISHED: [&str; 4] = ["faster", "slower", "higher", "lower"];

const COLUMNS: &[Column] = &[
    column("pairs", "pairs", 0),
    column("rows", "rows\ncompared", 0),
    column("different_pct", "called\ndifferent %", 2),
    column("max_iops_pct", "max_iops\ndifferent %", 1),
];

/// What the comparisons of many pairs said.
#[derive(Default)]
struct Called {
    pairs: f64,
    rows: f64,
    different: f64,
    /// Pairs in which a figure that the cap decides is different, times how many of them there are.
    capped: f64,
}

pub fn run(lab: &Lab) -> Result<Results> {
    let caps = |iops| Caps { read_iops: Some(iops), ..Caps::default() };
    let spec = |iops| DeviceSpec { size: Bytes::mib(512), file_system: None, caps: caps(iops) };
    let rig = Rig::set_up(lab, CAPS_IOPS.map(spec).into())?;
    let disks: Vec<PathBuf> = rig.disks().into_iter().map(PathBuf::from).collect();
    let mut sets = [Vec::new(), Vec::new()];
    for round in 1..=RECORDINGS {
        for (set, disk) in sets.iter_mut().zip(&disks) {
            set.push(rig.calibrate(&format!("calibration {round} of {RECORDINGS}"), disk)?);
        }
    }
    let [a, b] = &sets;
    let (mut equal, mut lower) = (Called::default(), Called::default());
    for set in &sets {
        for (at, first) in set.iter().enumerate() {
            for second in &set[at + 1..] {
                equal.add(&rig.compare(first, second)?)?;
            }
        }
    }
    for (first, second) in a.iter().zip(b).chain(b.iter().zip(&a[1..])) {
        lower.add(&rig.compare(first, second)?)?;
    }
    let goals = vec![
        Goal::at_most("equal caps: rows called different, %", equal.different_pct(), 5.0),
        Goal::at_least("a cap 10 % lower: pairs in which it shows, %", lower.capped_pct(), 90.0),
    ];
    let points = vec![equal.point("equal caps"), lower.point("a cap 10 % lower")];
    Ok(Results { columns: COLUMNS, points, goals })
}

impl Called {
    fn add(&mut self, comparison: &Value) -> Result<()> {
        let rows = comparison["rows"].as_array().context("find the rows")?;
        let tested = rows.iter().filter(|row| row["q_value"].is_number());
        let different = |row: &&Value| ESTABLISHED.iter().any(|word| row["outcome"] == **word);
        self.pairs += 1.0;
        self.rows += tested.clone().count() as f64;
        self.different += tested.clone().filter(different).count() as f64;
        let capped = |row: &&Value| CAPPED.iter().any(|label| row["label"] == **label);
        self.capped += tested.filter(different).filter(capped).count() as f64;
        Ok(())
    }

    fn different_pct(&self) -> f64 {
        100.0 * self.different / self.rows
    }

    fn capped_pct(&self) -> f64 {
        100.0 * self.capped / self.pairs / CAPPED.len() as f64
    }

    fn point(&self, name: &str) -> Point {
        let values = vec![self.pairs, self.rows, self.different_pct(), self.capped_pct()];
        Point { name: name.to_owned(), values }
    }
}
