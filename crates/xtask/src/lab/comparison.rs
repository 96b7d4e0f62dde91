//! Checks that `compare` calls equal storage equal and different storage different. Devices under
//! one cap and under three lower ones are calibrated in turn, several times, with and without
//! `--quick`. Each recording is compared with the next one under the same cap, and each one under
//! the highest cap with those of the same round under the lower caps.

use std::path::PathBuf;

use anyhow::{Context, Result};
use blockstone_base::Bytes;
use blockstone_testkit::{Caps, DeviceSpec};
use serde_json::Value;

use super::Lab;
use super::measure::Rig;
use crate::goals::{Column, Goal, Point, Results, column};

/// The highest cap, in reads a second: typical of a cloud volume, and far below what the machine
/// can do.
const CAP_IOPS: u64 = 3_000;
/// The lower caps, in percent of the highest.
const LOWER_PCT: [u64; 3] = [90, 80, 50];
/// Name, arguments of `calibrate`, and number of recordings under each cap.
const MODES: [(&str, &[&str], usize); 2] = [("--quick", &["--quick"], 6), ("as usual", &[], 3)];
/// The figure that a cap on reads determines.
const CAPPED: &str = "max_iops";
const ESTABLISHED: [&str; 4] = ["faster", "slower", "higher", "lower"];

const COLUMNS: &[Column] = &[
    column("pairs", "pairs", 0),
    column("headlines", "headline rows\ncompared", 0),
    column("different_pct", "called\ndifferent %", 1),
    column("max_iops_pct", "max_iops\ndifferent %", 1),
];

/// Summary of the comparisons of many pairs.
#[derive(Default)]
struct Called {
    pairs: f64,
    headlines: f64,
    different: f64,
    /// Pairs in which [`CAPPED`] is called different.
    capped: f64,
}

pub fn run(lab: &Lab) -> Result<Results> {
    let spec = |pct| {
        let caps = Caps { read_iops: Some(CAP_IOPS * pct / 100), ..Caps::default() };
        DeviceSpec { size: Bytes::mib(512), file_system: None, caps }
    };
    let all_pct = [&[100][..], &LOWER_PCT].concat();
    let rig = Rig::set_up(lab, all_pct.iter().map(|pct| spec(*pct)).collect())?;
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    let mut equal = Called::default();
    for (mode, arguments, rounds) in MODES {
        let mut sets: Vec<Vec<PathBuf>> = vec![Vec::new(); all_pct.len()];
        for round in 1..=rounds {
            for ((set, disk), pct) in sets.iter_mut().zip(rig.disks()).zip(&all_pct) {
                let what = format!("{mode}: calibration {round} of {rounds}, cap at {pct} %");
                set.push(rig.calibrate(&what, disk, arguments)?);
            }
        }
        let neighbours = sets.iter().flat_map(|set| set.iter().zip(&set[1..]));
        let here = Called::of(&rig, neighbours)?;
        equal.pairs += here.pairs;
        equal.headlines += here.headlines;
        equal.different += here.different;
        points.push(here.point(format!("equal caps, {mode}")));
        let (full, lower) = sets.split_first().context("find the recordings")?;
        for (set, pct) in lower.iter().zip(LOWER_PCT) {
            let called = Called::of(&rig, full.iter().zip(set))?;
            goals.push(Goal::at_least(
                format!("cap at {pct} %, {mode}: pairs in which it shows, %"),
                called.capped_pct(),
                90.0,
            ));
            points.push(called.point(format!("cap at {pct} %, {mode}")));
        }
    }
    let what = "equal caps: headline rows called different, %";
    goals.insert(0, Goal::at_most(what, equal.different_pct(), 5.0));
    Ok(Results { columns: COLUMNS, points, goals })
}

impl Called {
    fn of<'a>(
        rig: &Rig<'_>,
        pairs: impl Iterator<Item = (&'a PathBuf, &'a PathBuf)>,
    ) -> Result<Self> {
        let mut called = Self::default();
        for (first, second) in pairs {
            called.add(&rig.compare(first, second)?)?;
        }
        Ok(called)
    }

    fn add(&mut self, comparison: &Value) -> Result<()> {
        let rows = comparison["tables"]["rows"].as_array().context("find the rows")?;
        let is_headline = |row: &&Value| row["figure"] == "" && row["label"].is_string();
        let tested = rows.iter().filter(is_headline).filter(|row| row["p_value"].is_number());
        let different = |row: &&Value| ESTABLISHED.iter().any(|word| row["outcome"] == **word);
        for row in tested.clone().filter(different) {
            let (label, ratio) = (&row["label"], row["ratio"]["value"].as_f64());
            let ratio = ratio.context("find the ratio of a row that is called different")?;
            eprintln!("called different: {label} {ratio:.3}×, p = {}", row["p_value"]);
        }
        self.pairs += 1.0;
        self.headlines += tested.clone().count() as f64;
        self.different += tested.clone().filter(different).count() as f64;
        let capped = tested.filter(different).any(|row| row["label"] == CAPPED);
        self.capped += f64::from(u8::from(capped));
        Ok(())
    }

    fn different_pct(&self) -> f64 {
        100.0 * self.different / self.headlines
    }

    fn capped_pct(&self) -> f64 {
        100.0 * self.capped / self.pairs
    }

    fn point(&self, name: String) -> Point {
        let values = vec![self.pairs, self.headlines, self.different_pct(), self.capped_pct()];
        Point { name, values }
    }
}
