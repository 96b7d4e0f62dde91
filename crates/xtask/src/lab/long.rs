//! Whether a recording of any length can be looked at: a week at one second of 50 disks and 200
//! roles of processes is opened, an hour of it replayed, all of it reported, two hours compared.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use blockstone_sys::process;
use blockstone_testkit::build;

use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};

const SIZE: [&str; 3] = ["7", "50", "200"];
const MIB: f64 = 1_048_576.0;
const MEMORY_MIB_MAX: f64 = 300.0;
/// The fastest of these counts: other programs only make it slower.
const ROUNDS: usize = 3;

const COLUMNS: &[Column] = &[column("seconds", "s", 2), column("memory_mib", "peak\nMiB", 0)];

/// What is done with the recording, the arguments for it, and how long it may take.
const TASKS: &[(&str, &[&str], f64)] = &[
    ("open it, for ten seconds", &["watch", "--replay", "RUN", "--once", "--to", "10s"], 1.0),
    (
        "replay an hour",
        &["watch", "--replay", "RUN", "--once", "--from", "72h", "--to", "73h"],
        0.5,
    ),
    ("the page of the week", &["report", "RUN", "--html", "PAGE"], 5.0),
    ("compare two hours", &["compare", "RUN@1h..3h", "RUN@25h..27h"], 5.0),
];

pub fn run(lab: &Lab) -> Result<Results> {
    let product = Product::build(lab)?;
    let writer = build(&["--release", "--package", "blockstone", "--example", "long_recording"])?;
    let run = product.scratch().join("week");
    product.begin("writing a week")?;
    let written = Command::new(writer).arg(&run).args(SIZE).status().context("write a week")?;
    ensure!(written.success(), "writing a week failed");
    let page = product.scratch().join("page.html");
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    let (run, page) = (run.display().to_string(), page.display().to_string());
    for (name, arguments, most_s) in TASKS {
        product.begin(name)?;
        let arguments: Vec<String> =
            arguments.iter().map(|it| it.replace("RUN", &run).replace("PAGE", &page)).collect();
        let (mut seconds, mut memory_mib) = (f64::INFINITY, 0.0_f64);
        for _ in 0..ROUNDS {
            let mut command = Command::new(product.binary());
            command.args(&arguments).stdout(Stdio::null()).stderr(Stdio::null());
            let began = Instant::now();
            let ended = process::wait(command.spawn().context("start it")?)?;
            ensure!(ended.status.success(), "{name}: {}", ended.status);
            seconds = seconds.min(began.elapsed().as_secs_f64());
            memory_mib = memory_mib.max(ended.memory_peak_bytes as f64 / MIB);
            let _ = fs::remove_file(&page);
        }
        points.push(Point { name: (*name).to_owned(), values: vec![seconds, memory_mib] });
        goals.push(Goal::at_most(format!("{name}, s"), seconds, *most_s));
        goals.push(Goal::at_most(format!("{name}, MiB"), memory_mib, MEMORY_MIB_MAX));
    }
    Ok(Results { columns: COLUMNS, points, goals })
}
