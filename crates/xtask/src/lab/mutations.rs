//! Checks that a damaged file is at worst refused: for every kind of file that the program reads,
//! valid files with flipped bits, cut, spliced, with lengths at their limits, and with their
//! checksums recomputed. The built program must end with a documented exit code, without a panic,
//! within 512 MiB, and print nothing that a terminal obeys.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use blockstone_testkit::{build, build_as_tested};
use serde_json::Value;

use super::Lab;
use crate::goals::{Column, Goal, Point, Results, column};

const FILES: u64 = 3000;
const MEMORY_MIB_MAX: f64 = 512.0;

const COLUMNS: &[Column] = &[
    column("starts", "starts", 0),
    column("done", "exit\ncode 0", 0),
    column("refused", "exit\ncode 2", 0),
    column("judged", "exit\ncodes 3, 4", 0),
    column("interrupted", "exit\ncode 130", 0),
    column("panics", "panics", 0),
    column("aborts", "aborts", 0),
    column("hangs", "hangs", 0),
    column("odd", "else", 0),
    column("memory_peak_mib", "peak MiB", 0),
    column("slowest_s", "slowest s", 1),
];

pub fn run(lab: &Lab) -> Result<Results> {
    let mut results = started("files", lab.options.seeds.unwrap_or(FILES))?;
    let peak = results.points.iter().filter_map(|point| point.values.get(PEAK)).copied();
    let peak = peak.fold(0.0, f64::max);
    results.goals.push(Goal::at_most("MiB of memory at most", peak, MEMORY_MIB_MAX));
    Ok(results)
}

/// Index of the peak in [`COLUMNS`].
const PEAK: usize = 9;

/// Returns what the fuzzer prints when it runs this job on the program.
pub fn document(job: &[&str]) -> Result<Vec<Value>> {
    let program = build(&["--release", "--workspace", "--bin", "blockstone"])?;
    let fuzzer = build_as_tested("blockstone-fuzz")?;
    let mut command = Command::new(fuzzer);
    command.args(job).args(["--json", "--binary"]).arg(program);
    let output = command.stderr(Stdio::inherit()).output().context("start the fuzzer")?;
    // The fuzzer fails if it has found something, and says so in its document.
    let document: Value = serde_json::from_slice(&output.stdout).context("read its document")?;
    let Value::Array(lines) = document else { bail!("its document is not a list") };
    for line in &lines {
        let findings = line["findings"].as_array().into_iter().flatten();
        findings.filter_map(Value::as_str).for_each(|finding| eprintln!("{finding}"));
    }
    Ok(lines)
}

/// Runs the fuzzer's `job` with that many starts of each class and returns the results.
pub fn started(job: &str, inputs: u64) -> Result<Results> {
    let lines = document(&[job, "--inputs", &inputs.to_string()])?;
    let number = |line: &Value, key: &str| line[key].as_f64().unwrap_or(f64::NAN);
    let point = |line: &Value| Point {
        name: line["class"].as_str().unwrap_or_default().to_owned(),
        values: COLUMNS.iter().map(|column| number(line, column.name)).collect(),
    };
    let sum = |key: &str| lines.iter().map(|line| number(line, key)).sum();
    let goal = |key: &str| Goal::at_most(key, sum(key), 0.0);
    Ok(Results {
        columns: COLUMNS,
        points: lines.iter().map(point).collect(),
        goals: ["panics", "aborts", "hangs", "odd"].map(goal).into(),
    })
}
