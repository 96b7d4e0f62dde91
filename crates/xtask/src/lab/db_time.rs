//! Checks that `size --on --db-time` predicts. A database runs on a slow disk; what the same
//! sessions would do on a faster one, and what the same work would take there, is predicted, and
//! then the database runs on the faster one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use blockstone_base::Bytes;
use blockstone_testkit::{Caps, DeviceSpec, FileSystem, LoopDevice, postgres_programs};
use serde_json::Value;

use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};

/// A database, and the caps of two disks for reads and for writes.
struct Pair {
    name: &'static str,
    slow_iops: u64,
    fast_iops: u64,
    /// Options of the run; `DISK` is where the disk is mounted.
    options: &'static str,
}

const PAIRS: [Pair; 6] = [
    Pair {
        name: "instance",
        slow_iops: 500,
        fast_iops: 3_000,
        options: "--scale 256M --cache 32M --sessions 8 DISK",
    },
    Pair {
        name: "instance, 30 % updates",
        slow_iops: 300,
        fast_iops: 2_000,
        options: "--scale 256M --cache 32M --sessions 4 --update-pct 30 DISK",
    },
    Pair {
        name: "MariaDB",
        slow_iops: 500,
        fast_iops: 4_000,
        options: "--target mariadb:scratch --mariadb-conf innodb_flush_method=O_DIRECT \
                  --scale 48M --cache 8M --sessions 4 DISK",
    },
    Pair {
        name: "SQLite",
        slow_iops: 1_000,
        fast_iops: 5_000,
        options: "--target sqlite:DISK --io direct --scale 32M --cache 2M --sessions 4",
    },
    Pair {
        name: "PostgreSQL 18",
        slow_iops: 500,
        fast_iops: 4_000,
        options: "--target postgres:scratch --pg-bin PROGRAMS --pg-conf debug_io_direct=data \
                  --scale 48M --cache 8M --sessions 4 DISK",
    },
    Pair {
        name: "PostgreSQL 15",
        slow_iops: 500,
        fast_iops: 3_000,
        options: "--target postgres:scratch --page-cache 32M --scale 160M --cache 8M \
                  --sessions 4 DISK",
    },
];

/// Bounds no wider than this, as a share of their middle, in all pairs but one or two.
const WIDTH_MAX: f64 = 0.25;
const NARROW_LEAST: f64 = 4.0;
/// The time of the loads that `size` drives.
const DRIVE_FOR: &str = "10s";

const COLUMNS: &[Column] = &[
    column("before_per_s", "operations/s\nslow disk", 1),
    column("low_per_s", "predicted\nat least", 1),
    column("high_per_s", "\nat most", 1),
    column("after_per_s", "measured\nfast disk", 1),
    column("before_active", "database time, s/s\nslow disk", 2),
    column("low_active", "predicted\nat least", 2),
    column("high_active", "\nat most", 2),
    column("after_active", "measured\nsame rate", 2),
];

pub fn run(lab: &Lab) -> Result<Results> {
    let product = Product::build(lab)?;
    let predictions: Vec<Prediction> =
        PAIRS.iter().map(|pair| Prediction::of(&product, pair, lab)).collect::<Result<_>>()?;
    let count = |is: fn(&Prediction) -> bool| predictions.iter().filter(|it| is(it)).count() as f64;
    let all = PAIRS.len() as f64;
    let narrow = |it: &Prediction| it.throughput.half_width() <= WIDTH_MAX;
    Ok(Results {
        columns: COLUMNS,
        goals: vec![
            Goal::at_least(
                "throughputs within their bounds",
                count(|it| it.throughput.holds()),
                all,
            ),
            Goal::at_least("database times within theirs", count(|it| it.db_time.holds()), all),
            Goal::at_least("bounds of ± 25 % or less", count(narrow), NARROW_LEAST),
        ],
        points: predictions.iter().map(Prediction::point).collect(),
    })
}

/// A figure on the slow disk, its prediction for the fast one, and what it is there.
struct Held {
    before: f64,
    low: f64,
    high: f64,
    after: f64,
}

impl Held {
    fn of(predicted: &Value, after: f64) -> Result<Self> {
        let number = |key: &str| predicted[key].as_f64().with_context(|| format!("find `{key}`"));
        Ok(Self { before: number("before")?, low: number("low")?, high: number("high")?, after })
    }

    fn holds(&self) -> bool {
        (self.low..=self.high).contains(&self.after)
    }

    fn half_width(&self) -> f64 {
        (self.high - self.low) / (self.high + self.low)
    }

    const fn values(&self) -> [f64; 4] {
        [self.before, self.low, self.high, self.after]
    }
}

struct Prediction {
    name: &'static str,
    throughput: Held,
    db_time: Held,
}

impl Prediction {
    fn of(product: &Product<'_>, pair: &Pair, lab: &Lab) -> Result<Self> {
        let [slow, fast] = [pair.slow_iops, pair.fast_iops].map(disk);
        let (slow, fast) = (slow?, fast?);
        let run = |what: &str, disk: &LoopDevice, more: &[&str]| {
            product.begin(&format!("{}: {what}", pair.name))?;
            let mut command = of_disk(product, disk, "run");
            command.args(["--for", &format!("{}s", lab.options.seconds)]);
            for word in pair.options.split_whitespace() {
                command.arg(replaced(word, disk)?);
            }
            product.document(command.args(more))
        };
        let before = run("on the slow disk", &slow, &[])?;
        let recording = before["recording"]["path"].as_str().context("find the recording")?;
        product.begin(&format!("{}: the prediction", pair.name))?;
        let mut size = of_disk(product, &fast, "size");
        size.args(["--db-time", "--drive-for", DRIVE_FOR, "--on"]).arg(mounted(&fast)?);
        let predicted = product.document(size.arg(recording))?;
        let after = run("on the fast disk", &fast, &[])?;
        let rate = format!("{:.3}", figure(&before, "operations_per_s")?);
        let same = run("on the fast disk, at the same rate", &fast, &["--rate", &rate])?;
        // How many operations arrive is chance.
        let share = figure(&before, "operations_per_s")? / figure(&same, "operations_per_s")?;
        let active = figure(&same, "average_active_sessions")? * share;
        let throughput = Held::of(&predicted["throughput"], figure(&after, "operations_per_s")?)?;
        let db_time = Held::of(&predicted["db_time"], active)?;
        eprintln!("{}: {:.2?} {:.3?}", pair.name, throughput.values(), db_time.values());
        Ok(Self { name: pair.name, throughput, db_time })
    }

    fn point(&self) -> Point {
        let values = [self.throughput.values(), self.db_time.values()].concat();
        Point { name: self.name.to_owned(), values }
    }
}

fn disk(iops: u64) -> Result<LoopDevice> {
    let caps = Caps { read_iops: Some(iops), write_iops: Some(iops), ..Caps::default() };
    let (size, file_system) = (Bytes::gib(3), Some(FileSystem::Ext4));
    Ok(LoopDevice::create(DeviceSpec { size, file_system, caps })?)
}

fn mounted(disk: &LoopDevice) -> Result<std::path::PathBuf> {
    disk.mount_point().context("a file system")
}

/// Returns the command of a verb under the caps of a disk.
fn of_disk(product: &Product<'_>, disk: &LoopDevice, verb: &str) -> Command {
    let mut command = disk.command(product.binary());
    command.args([verb, "--json", "--runs-dir"]).arg(product.runs_dir());
    command
}

fn replaced(word: &str, disk: &LoopDevice) -> Result<String> {
    let text = |path: &Path| path.display().to_string();
    let word = word.replace("DISK", &text(&mounted(disk)?));
    Ok(word.replace("PROGRAMS", &text(&postgres_programs(18))))
}

fn figure(document: &Value, name: &str) -> Result<f64> {
    let figure = &document["figures"][name];
    figure["value"].as_f64().with_context(|| format!("find the figure {name}: it is {figure}"))
}
