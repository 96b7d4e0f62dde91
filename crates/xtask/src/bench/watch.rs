//! Cost of watching: processor time of recording every layer once a second, compared with other
//! programs that record a host that way, in turn, on the machine as it is.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use blockstone_testkit::build;

use super::{Options, median};
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::{scratch, usage_of};

/// Maximum share of one processor that recording may take.
const SHARE_GOAL: f64 = 0.005;

const COLUMNS: &[Column] =
    &[column("cpu_share", "of one\nprocessor", 4), column("cpu_us_per_look", "CPU µs\na look", 0)];

struct Side {
    name: &'static str,
    /// Builds the command from the binary, the directory for its files and the seconds that it
    /// runs.
    command: fn(&Path, &Path, u32) -> Command,
}

const SIDES: [Side; 3] = [
    Side { name: "blockstone, with counts of the kernel", command: |b, p, s| ours(b, p, s, &[]) },
    Side { name: "blockstone --no-bpf", command: |b, p, s| ours(b, p, s, &["--no-bpf"]) },
    Side { name: "collectl -sDcmn", command: collectl },
];

/// Seconds of a run that measures the cost of starting and stopping.
const SHORT: u32 = 2;

pub fn run(options: &Options) -> Result<Results> {
    let (seconds, rounds) = (options.seconds.unwrap_or(20), options.extent().rounds);
    ensure!(options.size.is_none(), "there is no size\nhint: leave out --size");
    let binary = build(&["--release", "--package", "blockstone"])?;
    let place = scratch("bench-watch")?;
    let mut shares = vec![Vec::new(); SIDES.len()];
    for _ in 0..rounds {
        for (side, shares) in SIDES.iter().zip(&mut shares) {
            let short_ns = cpu_ns(side, &binary, &place, SHORT)?;
            let long_ns = cpu_ns(side, &binary, &place, SHORT + seconds)?;
            // A negative value means that starting varied more than recording cost.
            shares.push((long_ns as f64 - short_ns as f64) / 1e9 / f64::from(seconds));
        }
    }
    let shares = shares.into_iter().map(median).collect::<Result<Vec<f64>>>()?;
    let points = SIDES.iter().zip(&shares).map(|(side, share)| Point {
        name: side.name.to_owned(),
        values: vec![*share, share * 1e6],
    });
    let ours = SIDES.iter().zip(&shares).filter(|(side, _)| side.name.starts_with("blockstone"));
    let goals = ours.map(|(side, share)| {
        Goal::at_most(format!("{}: of a processor", side.name), *share, SHARE_GOAL)
    });
    Ok(Results { columns: COLUMNS, points: points.collect(), goals: goals.collect() })
}

/// Runs a side that records for some seconds, removes its files and returns its processor time.
fn cpu_ns(side: &Side, binary: &Path, place: &Path, seconds: u32) -> Result<u64> {
    let _ = std::fs::remove_dir_all(place);
    std::fs::create_dir_all(place).with_context(|| format!("create {}", place.display()))?;
    let mut command = (side.command)(binary, place, seconds);
    let usage = usage_of(&mut command)?;
    std::fs::remove_dir_all(place).with_context(|| format!("remove {}", place.display()))?;
    Ok(usage.cpu_ns())
}

fn ours(binary: &Path, place: &Path, seconds: u32, options: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(["watch", "--interval", "1s", "--for"]).arg(format!("{seconds}s"));
    command.arg("--record").arg(place.join("recording")).args(options);
    command
}

fn collectl(_: &Path, place: &Path, seconds: u32) -> Command {
    let mut command = Command::new("collectl");
    command.args(["-sDcmn", "-i1"]).arg(format!("-c{seconds}"));
    command.arg("-f").arg(place.join("collectl"));
    command
}
