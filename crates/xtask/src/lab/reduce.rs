//! Checks that estimates of deduplication keep their word: 100 streams of 64 GiB with a known
//! number of distinct blocks, counted within 96 MiB; the true number must nearly always be inside
//! the interval.

use std::process::Command;

use anyhow::{Context, Result};
use blockstone_testkit::build;
use serde_json::Value;

use super::Lab;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::output_of;

const TRIALS: u32 = 100;
const GIB: u32 = 64;
const MEMORY_MIB: u32 = 96;
/// Minimum number of 100 intervals of 99 % that contain the true number.
const INSIDE: f64 = 95.0;

const COLUMNS: &[Column] = &[
    column("inside", "truth\ninside", 0),
    column("mean_half_width", "interval\n±", 4),
    column("smallest_share", "smallest\nshare", 4),
    column("memory_mib", "memory\nMiB", 0),
];

pub fn run(_: &Lab) -> Result<Results> {
    let program = build(&["--release", "--package", "blockstone", "--example", "reduce_trials"])?;
    let numbers = [TRIALS, GIB, MEMORY_MIB].map(|number| number.to_string());
    let text = output_of(Command::new(&program).args(numbers))?;
    let document: Value = serde_json::from_str(&text).context("read its document")?;
    let number = |key: &str| document[key].as_f64().unwrap_or(f64::NAN);
    let memory_mib = number("memory_bytes") / f64::from(1 << 20);
    let values =
        vec![number("inside"), number("mean_half_width"), number("smallest_share"), memory_mib];
    let goals = vec![
        Goal::at_least(format!("truth inside the interval, of {TRIALS}"), values[0], INSIDE),
        Goal::at_most("memory, MiB", memory_mib, MEMORY_MIB.into()),
    ];
    let name = format!("{TRIALS} streams of {GIB} GiB");
    Ok(Results { columns: COLUMNS, points: vec![Point { name, values }], goals })
}
