//! Rate at which duplicates and compressibility are counted: bytes per second of processor time
//! from the page cache, compared with duperemove on the same files, and from disk, compared with
//! the sequential rate that a calibration finds there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use blockstone_base::Bytes;
use blockstone_testkit::build;
use serde_json::Value;

use super::{Options, median};
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::{line, output_of, scratch, show, usage_of};

const COLUMNS: &[Column] =
    &[column("gb_per_cpu_s", "GB/s\na core", 2), column("gb_per_s", "GB/s\nof time", 2)];

struct Side {
    name: &'static str,
    /// The data set, as `blockstone reduce --generate` makes it.
    data: &'static str,
    /// Our options; `None` for duperemove.
    options: Option<&'static str>,
    /// Minimum rate per second of processor time, in GB/s.
    least: Option<f64>,
}

const ONE: &str = "--block-size 8K --offset 0 --compress not --no-shifts --no-headers";
const ALL: &str = "--compress not --no-shifts --no-headers";
const ALL_MASKS: &str = "--compress not --no-shifts";
const EVERY: &str =
    "--block-size 8K --offset 0 --compress every --codec lz4 --no-shifts --no-headers";

const SIDES: &[Side] = &[
    Side { name: "8K, dedup only", data: "random", options: Some(ONE), least: Some(4.0) },
    Side { name: "all grids, dedup only", data: "random", options: Some(ALL), least: Some(1.0) },
    Side {
        name: "8K, lz4 of every block",
        data: "pg-like",
        options: Some(EVERY),
        least: Some(0.8),
    },
    Side { name: "8K, lz4 of every block", data: "random", options: Some(EVERY), least: None },
    Side { name: "8K, lz4 of every block", data: "text", options: Some(EVERY), least: None },
    Side { name: "as users call it", data: "random", options: Some(""), least: Some(1.0) },
    Side { name: "as users call it", data: "text", options: Some(""), least: Some(1.0) },
    Side {
        name: "PostgreSQL pages, 9 masks",
        data: "pg-like",
        options: Some(ALL_MASKS),
        least: None,
    },
    Side { name: "duperemove -b 8K, hashing", data: "random", options: None, least: None },
];

/// Minimum share of the sequential rate that a calibration finds.
const DISK_GOAL: f64 = 0.95;

pub fn run(options: &Options) -> Result<Results> {
    let binary = build(&["--release", "--package", "blockstone"])?;
    let size = options.size.unwrap_or(Bytes::gib(2));
    let rounds = options.rounds.unwrap_or(3);
    let place = scratch("bench-reduce")?;
    let data = Data::new(&binary, &place, size)?;
    let mut seen: Vec<Vec<(f64, f64)>> = vec![Vec::new(); SIDES.len()];
    let (mut from_disk, mut calibrated) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        for (side, seen) in SIDES.iter().zip(&mut seen) {
            seen.push(rates(side, &binary, &data)?);
        }
        from_disk.push(disk_rate(&binary, &data)?);
        calibrated.push(calibrated_rate(&binary, &data)?);
        eprintln!("round {} of {rounds}", round + 1);
    }
    std::fs::remove_dir_all(&place).with_context(|| format!("remove {}", place.display()))?;
    let mut results = Results { columns: COLUMNS, points: Vec::new(), goals: Vec::new() };
    let mut a_core = Vec::new();
    for (side, seen) in SIDES.iter().zip(&seen) {
        let cpu = median(seen.iter().map(|rates| rates.0).collect())?;
        let wall = median(seen.iter().map(|rates| rates.1).collect())?;
        let name = format!("{} ({})", side.name, side.data);
        if let Some(least) = side.least {
            results.goals.push(Goal::at_least(format!("{name}, GB/s a core"), cpu, least));
        }
        a_core.push(cpu);
        results.points.push(Point { name, values: vec![cpu, wall] });
    }
    let peer = SIDES.iter().position(|side| side.options.is_none()).context("find duperemove")?;
    results.goals.push(Goal::at_least(
        "8K: ours ÷ duperemove, a core",
        a_core[0] / a_core[peer],
        1.0,
    ));
    let ratios: Vec<f64> = from_disk.iter().zip(&calibrated).map(|(a, b)| a / b).collect();
    let row = |name: &str, rate| Point { name: name.to_owned(), values: vec![f64::NAN, rate] };
    results.points.push(row("from disk, direct", median(from_disk)?));
    results.points.push(row("calibrate's sequential rate there", median(calibrated)?));
    let what = "from disk ÷ calibrate's sequential rate";
    results.goals.push(Goal::at_least(what, median(ratios)?, DISK_GOAL));
    Ok(results)
}

struct Data {
    place: PathBuf,
    bytes: u64,
}

impl Data {
    fn new(binary: &Path, place: &Path, size: Bytes) -> Result<Self> {
        let mut made: Vec<&str> = SIDES.iter().map(|side| side.data).collect();
        made.sort_unstable();
        made.dedup();
        for kind in made {
            let dir = place.join(kind);
            let size = format!("{}B", size.0);
            let mut command = Command::new(binary);
            command.args(["reduce", "--generate", kind, "--files", "1", "--size", &size]);
            show(command.arg(dir))?;
        }
        Ok(Self { place: place.to_owned(), bytes: size.0 })
    }

    fn dir(&self, kind: &str) -> PathBuf {
        self.place.join(kind)
    }

    fn file(&self) -> PathBuf {
        self.dir("random").join("random-1.dbf")
    }
}

/// Returns GB per second of processor time and per second of elapsed time, including start and
/// exit.
fn rates(side: &Side, binary: &Path, data: &Data) -> Result<(f64, f64)> {
    let dir = data.dir(side.data);
    let mut command = if let Some(options) = side.options {
        let mut command = Command::new(binary);
        command.args(["reduce", "--json", "--quiet", "--buffered", "--threads", "1"]);
        command.args(options.split_whitespace());
        command
    } else {
        let mut command = Command::new("duperemove");
        command.args(["-r", "-b", "8K", "--io-threads=1", "--cpu-threads=1"]);
        command
    };
    command.arg(&dir);
    warm(&dir)?;
    let start = Instant::now();
    let usage = usage_of(&mut command)?;
    let elapsed_s = start.elapsed().as_secs_f64();
    let gb = data.bytes as f64 / 1e9;
    Ok((gb / (usage.cpu_ns() as f64 / 1e9), gb / elapsed_s))
}

/// Reads all files once to bring them into the page cache.
fn warm(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let mut file = std::fs::File::open(entry?.path())?;
        std::io::copy(&mut file, &mut std::io::sink())?;
    }
    Ok(())
}

/// Returns the rate at which a scan of one block size reads past the page cache, in GB/s.
fn disk_rate(binary: &Path, data: &Data) -> Result<f64> {
    let mut command = Command::new(binary);
    command
        .args(["reduce", "--json", "--quiet"])
        .args(ONE.split_whitespace())
        .arg(data.dir("random"));
    let document: Value = serde_json::from_str(&output_of(&mut command)?)?;
    let time_ns = document["time_ns"].as_f64().context("find time_ns")?;
    Ok(data.bytes as f64 / time_ns)
}

/// Returns the rate at which a calibration finds the same file can be read, in GB/s.
fn calibrated_rate(binary: &Path, data: &Data) -> Result<f64> {
    let runs = data.place.join("runs");
    let mut command = Command::new(binary);
    command.args(["calibrate", "--quick", "--json", "--quiet", "--runs-dir"]).arg(&runs);
    command.arg(data.file());
    // A verdict may condemn the figures (exit code 3); only the rate is wanted here.
    let output = command.output().with_context(|| format!("start {}", line(&command)))?;
    let document: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("read the output of {}", line(&command)))?;
    let mbps = document["figures"]["max_mbps"]["value"].as_f64().context("find max_mbps")?;
    Ok(mbps / 1e3)
}
