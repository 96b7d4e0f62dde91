//! Checks that a recording of any length can be viewed: a week at one-second intervals of 50 disks
//! and 200 process roles is opened, an hour of it replayed, all of it reported, and two hours
//! compared. Also measures how fast iostat output for 50 disks becomes a recording, and how fast
//! `trace` reads a SQL trace.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use blockstone_sys::process;
use blockstone_testkit::build;

use super::Lab;
use super::measure::Product;
use crate::goals::{Column, Goal, Point, Results, column};
use crate::workspace::output_of;

const SIZE: [&str; 3] = ["7", "50", "200"];
/// Hours and disks in the iostat output.
const IOSTAT: [&str; 2] = ["6", "50"];
const IMPORT_MB_PER_S_MIN: f64 = 50.0;
/// Megabytes of the SQL trace.
const TRACE: [&str; 1] = ["600"];
const TRACE_MB_PER_S_MIN: f64 = 1000.0;
const MIB: f64 = 1_048_576.0;
const MEMORY_MIB_MAX: f64 = 300.0;
/// The fastest of these rounds counts: other programs only make it slower.
const ROUNDS: usize = 3;

const COLUMNS: &[Column] = &[
    column("seconds", "s", 2),
    column("cpu_s", "CPU\ns", 2),
    column("memory_mib", "peak\nMiB", 0),
];

/// Task, its arguments after the program's name, and its time limit in seconds.
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

/// Ranges of hours in which counters must have moved as they were written: all, a part that a
/// coarse level decides, and one whose edges fall between those of the levels.
const PARTS: &[(u64, u64)] = &[(0, 168), (12, 156), (72, 84)];

pub fn run(lab: &Lab) -> Result<Results> {
    let product = Product::build(lab)?;
    let example = |name| build(&["--release", "--package", "blockstone", "--example", name]);
    let (writer, iostat) = (example("long_recording")?, example("long_iostat")?);
    let tracer = example("long_trace")?;
    let at = |name: &str| product.scratch().join(name);
    let (week, page, text, imported) =
        (at("week"), at("page.html"), at("iostat.txt"), at("imported"));
    let (mut points, mut goals) = (Vec::new(), Vec::new());
    let mut point = |name: &str, cost: Cost, most_s: f64| {
        goals.push(Goal::at_most(format!("{name}, s"), cost.seconds, most_s));
        goals.push(Goal::at_most(format!("{name}, MiB"), cost.memory_mib, MEMORY_MIB_MAX));
        let values = vec![cost.seconds, cost.cpu_s, cost.memory_mib];
        points.push(Point { name: name.to_owned(), values });
    };

    product.begin("importing six hours of iostat")?;
    write(&iostat, &text, &IOSTAT)?;
    let arguments = ["watch", "--import", "TEXT", "--record", "DIR"].map(|word| match word {
        "TEXT" => text.display().to_string(),
        "DIR" => imported.display().to_string(),
        word => word.to_owned(),
    });
    let megabytes = fs::metadata(&text)?.len() as f64 / 1e6;
    let cost = measured(&product, &arguments, &imported)?;
    point("import six hours of iostat", cost, megabytes / IMPORT_MB_PER_S_MIN);
    fs::remove_file(&text)?;

    product.begin("reading a SQL trace")?;
    write(&tracer, &text, &TRACE)?;
    let arguments = ["trace".to_owned(), text.display().to_string()];
    let megabytes = fs::metadata(&text)?.len() as f64 / 1e6;
    let cost = measured(&product, &arguments, &imported)?;
    point("read a SQL trace of 600 MB", cost, megabytes / TRACE_MB_PER_S_MIN);
    fs::remove_file(&text)?;

    product.begin("writing a week")?;
    let counters = write(&writer, &week, &SIZE)?;
    for (name, arguments, most_s) in TASKS {
        product.begin(name)?;
        let (run, page_name) = (week.display().to_string(), page.display().to_string());
        let arguments: Vec<String> = arguments
            .iter()
            .map(|it| it.replace("RUN", &run).replace("PAGE", &page_name))
            .collect();
        point(name, measured(&product, &arguments, &page)?, *most_s);
    }
    for (from, to) in PARTS {
        let (all, equal) = equal(&product, &week, &counters, (*from, *to))?;
        let what = format!("of {all} counters, equal to the writer's from {from} h to {to} h");
        goals.push(Goal::at_least(what, equal as f64, all as f64));
    }
    Ok(Results { columns: COLUMNS, points, goals })
}

/// Runs the writer to make `to`, and returns its output.
fn write(writer: &Path, to: &Path, size: &[&str]) -> Result<String> {
    output_of(Command::new(writer).arg(to).args(size))
}

/// Returns the number of disk counters, and the number of those that moved in a part of the week as
/// the writer printed: per second, or per nanosecond for times.
fn equal(
    product: &Product<'_>,
    week: &Path,
    counters: &str,
    (from, to): (u64, u64),
) -> Result<(usize, usize)> {
    let mut command = Command::new(product.binary());
    command.args(["watch", "--once", "--json", "--replay"]).arg(week);
    command.args(["--from", &format!("{from}h"), "--to", &format!("{to}h")]);
    let shown = product.document(&mut command)?;
    let mut stood: HashMap<(&str, &str), Vec<f64>> = HashMap::new();
    for line in counters.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [hour, disk, column, value] = words[..] else { bail!("{line} is not a counter") };
        if [from, to].contains(&hour.parse()?) {
            stood.entry((disk, column)).or_default().push(value.parse()?);
        }
    }
    let seconds = (to - from) as f64 * 3600.0;
    let is_equal = |((disk, column), stood): &(&(&str, &str), &Vec<f64>)| {
        let time = if column.ends_with("_ns") { seconds * 1e9 } else { seconds };
        let shown = shown["probes"]["block"][disk][column].as_f64();
        // The JSON parser may be off by the last bit.
        let expected = (stood[1] - stood[0]) / time;
        shown.is_some_and(|shown| (shown - expected).abs() <= expected * f64::EPSILON)
    };
    Ok((stood.len(), stood.iter().filter(is_equal).count()))
}

struct Cost {
    seconds: f64,
    cpu_s: f64,
    memory_mib: f64,
}

/// Measures the cost of the command, which makes `made` or nothing.
fn measured(product: &Product<'_>, arguments: &[String], made: &Path) -> Result<Cost> {
    let mut cost = Cost { seconds: f64::INFINITY, cpu_s: f64::INFINITY, memory_mib: 0.0 };
    for _ in 0..ROUNDS {
        product.begin(&arguments.join(" "))?;
        let mut command = Command::new(product.binary());
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let ended = process::wait(command.spawn().context("start it")?)?;
        ensure!(ended.status.success(), "{}: {}", arguments.join(" "), ended.status);
        cost.seconds = cost.seconds.min(began.elapsed().as_secs_f64());
        cost.cpu_s = cost.cpu_s.min(ended.cpu.cpu_ns() as f64 / 1e9);
        cost.memory_mib = cost.memory_mib.max(ended.memory_peak_bytes as f64 / MIB);
        if made.is_dir() {
            fs::remove_dir_all(made)?;
        } else if made.exists() {
            fs::remove_file(made)?;
        }
    }
    Ok(cost)
}
