//! Checks that no acknowledged commit can be lost: lives of the instance on hostile disks, each cut
//! at many points and recovered from many images, with the recovery cut at its own operations. With
//! `--mutations`, checks that bugs planted in the instance would be found.

use std::iter;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use blockstone_testkit::build;
use serde_json::Value;

use super::Lab;
use crate::goals::{Column, Goal, Point, Results, column};

const SEEDS: u64 = 2000;
/// Number of seeds within which a planted bug must be found.
const MUTATION_SEEDS: u64 = 500;

const COLUMNS: &[Column] = &[
    column("seeds_per_s", "seeds/s", 2),
    column("acknowledged", "acknowledged\ncommits", 0),
    column("images", "power\nlosses", 0),
    column("recovery_cuts", "losses in\nrecovery", 0),
    column("cut_everywhere", "recoveries cut\neverywhere", 0),
    column("recoveries", "recoveries", 0),
    column("damaged", "rows named\nas damaged", 0),
    column("failures", "bad\nends", 0),
];

const MUTATION_COLUMNS: &[Column] =
    &[column("seed", "found\nat seed", 0), column("seconds", "\nseconds", 1)];

pub fn run(lab: &Lab) -> Result<Results> {
    let example = ["--release", "--package", "blockstone-instance", "--example", "durability"];
    let mut command = Command::new(build(&example)?);
    let seeds = if lab.options.mutations { MUTATION_SEEDS } else { SEEDS };
    let seeds = lab.options.seeds.unwrap_or(seeds).to_string();
    command.args(["--seeds", &seeds]);
    // Freed memory stays with the process: trimming it and faulting it in for every recovery cost a
    // third.
    command.envs([("MALLOC_TOP_PAD_", "67108864"), ("MALLOC_TRIM_THRESHOLD_", "1000000000")]);
    if lab.options.mutations {
        command.arg("--mutations");
    }
    // Findings are printed immediately, each with the case that replays it.
    let output = command.stderr(Stdio::inherit()).output().context("start the example")?;
    if !output.status.success() {
        bail!("the example failed with {}", output.status);
    }
    let document: Value = serde_json::from_slice(&output.stdout).context("read its document")?;
    let lines = document.as_array().context("its document is a list")?;
    Ok(if lab.options.mutations { mutations(lines) } else { lives(lines) })
}

fn number(line: &Value, key: &str) -> f64 {
    line[key].as_f64().unwrap_or(f64::NAN)
}

fn name(line: &Value, key: &str) -> String {
    line[key].as_str().unwrap_or_default().to_owned()
}

fn lives(lines: &[Value]) -> Results {
    let values = |line: &Value| {
        let speed = number(line, "seeds") / number(line, "seconds");
        let rest = COLUMNS[1..].iter().map(|column| number(line, column.name));
        iter::once(speed).chain(rest).collect()
    };
    let point = |line: &Value| Point { name: name(line, "setting"), values: values(line) };
    let goal = |line: &Value| {
        let what = format!("bad ends of {}", name(line, "setting"));
        Goal::at_most(what, number(line, "failures"), 0.0)
    };
    Results {
        columns: COLUMNS,
        points: lines.iter().map(point).collect(),
        goals: lines.iter().map(goal).collect(),
    }
}

fn mutations(lines: &[Value]) -> Results {
    let point = |line: &Value| Point {
        name: format!("{} ({})", name(line, "bug"), name(line, "by")),
        values: vec![number(line, "seed"), number(line, "seconds")],
    };
    let missed = lines.iter().filter(|line| line["seed"].is_null()).count();
    Results {
        columns: MUTATION_COLUMNS,
        points: lines.iter().map(point).collect(),
        goals: vec![Goal::at_most("planted bugs that were not found", missed as f64, 0.0)],
    }
}
