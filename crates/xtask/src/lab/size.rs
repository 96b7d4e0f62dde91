//! Checks that `size` predicts. A load runs on a disk that the kernel limits to 2,000 reads and
//! 2,000 writes a second, and `watch` records it; `size` makes a need of the recording and names
//! the command that drives it. Driven on an equal disk, the need must be met as predicted; on one
//! limited to 400, the run must be found to fall short.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use blockstone_base::Bytes;
use blockstone_testkit::{Caps, DeviceSpec};
use serde_json::Value;

use super::Lab;
use super::measure::Rig;
use crate::goals::{Column, Goal, Point, Results, column};

const IOPS: u64 = 2_000;
const IOPS_OF_SLOW: u64 = 400;
/// The watched load; most of its visits are reads of the disk.
const LOAD: &str = "--rate 600 --work-unit 1 --update-pct 20 --cache 16M --seed 1";
/// Relative tolerance; it covers cached requests, group commits and rounding.
const WITHIN: f64 = 0.03;
const PATIENCE: Duration = Duration::from_secs(30);

const COLUMNS: &[Column] = &[
    column("predicted_iops", "predicted\nIOPS", 0),
    column("iops", "measured\nIOPS", 0),
    column("predicted_p99_ms", "predicted p99\nat most, ms", 1),
    column("p99_ms", "measured\np99, ms", 1),
    column("held", "prediction\nheld", 0),
];

pub fn run(lab: &Lab) -> Result<Results> {
    let slow = rig(lab, IOPS_OF_SLOW)?.blank()?;
    let rig = rig(lab, IOPS)?;
    let curve = rig.calibrate("its latency under load", rig.disks()[0], &[])?;
    let rig = rig.blank()?;
    let watched = watch(&rig, lab.options.seconds)?;
    let equal = Held::of(&rig, &watched, &curve, "driven on an equal disk")?;
    let slow = Held::of(&slow, &watched, &curve, "driven on a slow disk")?;
    let goals = vec![
        Goal::near("IOPS ÷ predicted", equal.iops / equal.predicted_iops, 1.0, WITHIN),
        Goal::at_most("p99 of reads ÷ predicted", equal.p99_ms / equal.predicted_p99_ms, 1.0),
        Goal::within("the prediction held on an equal disk", equal.passed, 1.0, 1.0),
        Goal::within("and on a slow one", slow.passed, 0.0, 0.0),
    ];
    let points = vec![equal.point("2,000 IOPS"), slow.point("400 IOPS")];
    Ok(Results { columns: COLUMNS, points, goals })
}

fn rig(lab: &Lab, iops: u64) -> Result<Rig<'_>> {
    let caps = Caps { read_iops: Some(iops), write_iops: Some(iops), ..Caps::default() };
    Rig::set_up(lab, vec![DeviceSpec { size: Bytes::mib(1536), file_system: None, caps }])
}

fn disk<'a>(rig: &'a Rig<'_>) -> Result<&'a str> {
    rig.disks().first().and_then(|it| it.to_str()).context("a disk")
}

/// Records the load with `watch` while it runs, and returns the recording.
fn watch(rig: &Rig<'_>, seconds: u32) -> Result<PathBuf> {
    let product = rig.product();
    let recording = product.runs_dir().join("watched");
    let disk = disk(rig)?;
    let arguments: Vec<&str> = LOAD.split_whitespace().chain([disk]).collect();
    rig.run_while("a load, and watch beside it", &arguments, |_| {
        let from = Instant::now();
        loop {
            let mut watch = Command::new(product.binary());
            watch.args(["watch", "--quiet", "--db", "run:last", "--for"]);
            watch.arg(format!("{}s", seconds.max(2) - 1));
            watch.arg("--record").arg(&recording).arg("--runs-dir").arg(product.runs_dir());
            let output = watch.stdin(Stdio::null()).output().context("start watch")?;
            if output.status.success() {
                return Ok(());
            }
            ensure!(!recording.exists(), "{}", String::from_utf8_lossy(&output.stderr));
            if from.elapsed() > PATIENCE {
                bail!("no load to watch: {}", String::from_utf8_lossy(&output.stderr));
            }
            sleep(Duration::from_millis(200));
        }
    })?;
    Ok(recording)
}

/// A run compared with the need.
struct Held {
    predicted_iops: f64,
    iops: f64,
    predicted_p99_ms: f64,
    p99_ms: f64,
    /// 1 if the rule passed, else 0.
    passed: f64,
}

impl Held {
    fn of(rig: &Rig<'_>, watched: &Path, curve: &Path, what: &str) -> Result<Self> {
        let product = rig.product();
        let size = || {
            let mut command = Command::new(product.binary());
            command.args(["size", "--json", "--disk", &format!("{IOPS}iops")]).arg(watched);
            command.arg("--curve").arg(curve).args(["--p99", "1s"]);
            command
        };
        let need = product.document(&mut size())?;
        let drive = need["drive"].as_str().context("find the command")?;
        let arguments = drive.strip_prefix("blockstone run ").context("a command that runs")?;
        let arguments = arguments.split(" PATH").next().unwrap_or(arguments);
        // The experiment sets how long runs last.
        let arguments: Vec<&str> = arguments.split_whitespace().chain([disk(rig)?]).collect();
        let at = arguments.iter().position(|it| *it == "--for").context("a time")?;
        let arguments = [&arguments[..at], &arguments[at + 2..]].concat();
        let run = rig.run(what, &arguments)?;
        let document = product.document(size().arg("--verify").arg(run.recording()?))?;
        let mut verdicts = document["verdicts"].as_array().into_iter().flatten();
        let held = verdicts.find(|it| it["rule"] == "prediction-held").context("find the rule")?;
        eprintln!("    {}: {}", text(held, "outcome"), text(held, "evidence"));
        let compared = &document["tables"]["run-against-need"];
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        Ok(Self {
            predicted_iops: number(&compared[0]["predicted"]["value"]),
            iops: number(&compared[0]["measured"]["value"]),
            predicted_p99_ms: number(&compared[2]["predicted"]) / 1e6,
            p99_ms: number(&compared[1]["measured"]["value"]) / 1e6,
            passed: if held["outcome"] == "pass" { 1.0 } else { 0.0 },
        })
    }

    fn point(&self, name: &str) -> Point {
        let Self { predicted_iops, iops, predicted_p99_ms, p99_ms, passed } = *self;
        Point {
            name: name.to_owned(),
            values: vec![predicted_iops, iops, predicted_p99_ms, p99_ms, passed],
        }
    }
}

fn text<'a>(verdict: &'a Value, key: &str) -> &'a str {
    verdict[key].as_str().unwrap_or_default()
}
