//! Flash pages per second that the flash device simulator writes, and the memory it takes.

use std::process::Command;

use anyhow::{Context, Result};
use blockstone_testkit::build;
use serde_json::Value;

use super::{Options, median};
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::output_of;

/// Argument, minimum rate in millions of flash pages per second, and name of each run.
const SIDES: &[(&str, f64, &str)] = &[
    ("exact", 60.0, "mapping tables"),
    ("timed", 30.0, "mapping tables, 64 dies, histograms"),
    ("counts", 200.0, "valid counts"),
    ("timed-counts", 30.0, "valid counts, 64 dies, histograms"),
];
/// Maximum memory of the tables, in MiB per GiB that the host sees.
const MEMORY_MIB_PER_GIB: f64 = 2.5;

const COLUMNS: &[Column] = &[
    column("cpu_mpages_per_s", "M pages/s\nof CPU", 1),
    column("wall_mpages_per_s", "M pages/s\nof time", 1),
    column("wa", "WA", 4),
    column("memory_mib_per_gib", "MiB\na GiB", 3),
];

pub fn run(options: &Options) -> Result<Results> {
    let selection = ["--release", "--package", "blockstone", "--example", "flash_speed"];
    let program = build(&selection)?;
    let mut rounds: Vec<Vec<[f64; 4]>> = vec![Vec::new(); SIDES.len()];
    let count = options.rounds.unwrap_or(5);
    for round in 0..count {
        for (&(side, ..), seen) in SIDES.iter().zip(&mut rounds) {
            let text = output_of(Command::new(&program).arg(side))?;
            let document: Value = serde_json::from_str(&text).context("read its document")?;
            seen.push(figures(&document));
        }
        eprintln!("round {} of {count}", round + 1);
    }
    let mut results = Results { columns: COLUMNS, points: Vec::new(), goals: Vec::new() };
    for (&(_, least, name), seen) in SIDES.iter().zip(&rounds) {
        let middle = |index: usize| median(seen.iter().map(|round| round[index]).collect());
        let values = [middle(0)?, middle(1)?, middle(2)?, middle(3)?];
        results.goals.push(Goal::at_least(format!("{name}, M pages/s"), values[0], least));
        let memory = format!("{name}, MiB a GiB");
        results.goals.push(Goal::at_most(memory, values[3], MEMORY_MIB_PER_GIB));
        results.points.push(Point { name: name.to_owned(), values: values.into() });
    }
    Ok(results)
}

fn figures(document: &Value) -> [f64; 4] {
    let number = |key: &str| document[key].as_f64().unwrap_or(f64::NAN);
    let rate = |key: &str| number("flash_pages") * 1e3 / number(key);
    let mib = number("memory_bytes_per_gib") / f64::from(1 << 20);
    [rate("cpu_ns"), rate("wall_ns"), number("wa"), mib]
}
