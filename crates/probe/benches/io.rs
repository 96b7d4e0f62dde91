//! Cost of counting I/O in the kernel: fio alone, with the probe `io`, and with one histogram of
//! latencies by bpftrace, in turns, measured as the processor time of the whole machine per I/O.
//! `cargo bench -p blockstone-probe --bench io`, as root, with fio, bpftrace and tracefs on
//! `/sys/kernel/tracing`, on an idle machine.

#![allow(clippy::print_stdout, reason = "the figures are what it is run for")]

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_probe::io::{self, IoSpec};
use blockstone_probe::{Cell, Probe, Row};
use blockstone_testkit::{FileKind, ScratchDir};

const ROUNDS: usize = 9;
const SECONDS: u32 = 2;
const FILE: Bytes = Bytes(256 << 20);

/// The peer: latencies of all requests in one histogram, like its tool biolatency, at the same
/// tracepoints as the probe.
const BIOLATENCY: &str = "\
tracepoint:block:block_io_start { @start[args->dev, args->sector] = nsecs; }
tracepoint:block:block_io_done /@start[args->dev, args->sector]/ {
    @usecs = hist((nsecs - @start[args->dev, args->sector]) / 1000);
    delete(@start[args->dev, args->sector]);
}
END { clear(@start); }";
/// bpftrace takes about a second to compile.
const ATTACHED: Duration = Duration::from_secs(2);

/// Tracing that is active during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tracing {
    Off,
    Bpftrace,
    Requests,
    RequestsAndCalls,
}

fn main() -> Result<()> {
    let scratch = ScratchDir::on_disk().map_err(Error::other)?;
    let path = scratch.path().join("file");
    FileKind::Real.create(&path, FILE).map_err(Error::other)?;
    let engines: [&[&str]; 2] = [
        &["--ioengine=psync", "--numjobs=4"],
        &["--ioengine=io_uring", "--iodepth=64", "--iodepth_batch_complete_max=16"],
    ];
    for engine in engines {
        println!("{}", engine.join(" "));
        let variants =
            [Tracing::Off, Tracing::Bpftrace, Tracing::Requests, Tracing::RequestsAndCalls];
        let mut costs = variants.map(|_| Vec::new());
        let mut iops = variants.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (index, tracing) in variants.into_iter().enumerate() {
                let (cost_ns, rate) = run(&path, engine, tracing)?;
                costs[index].push(cost_ns);
                iops[index].push(rate);
            }
        }
        let off = median(&costs[0]);
        for ((tracing, costs), iops) in variants.iter().zip(&costs).zip(&iops) {
            let (cost_ns, rate) = (median(costs), median(iops));
            let more = 100.0 * (cost_ns / off - 1.0);
            println!("  {tracing:?}: {rate:.0} IOPS, {cost_ns:.0} ns CPU per I/O ({more:+.1} %)");
        }
    }
    Ok(())
}

/// Returns the processor time of the machine per I/O in nanoseconds, and I/Os per second.
fn run(path: &Path, engine: &[&str], tracing: Tracing) -> Result<(f64, f64)> {
    let system_calls = tracing == Tracing::RequestsAndCalls;
    let ours = system_calls || tracing == Tracing::Requests;
    let mut probe = ours.then(|| io::open(IoSpec { system_calls, ..IoSpec::everybody() }));
    let peer = (tracing == Tracing::Bpftrace).then(bpftrace).transpose()?;
    let mut fio = Command::new("fio");
    fio.args(["--name=cost", "--direct=1", "--rw=randread", "--bs=4k", "--thread"]);
    fio.args(["--time_based", "--group_reporting", "--output-format=terse"]);
    fio.arg(format!("--runtime={SECONDS}")).arg(format!("--filename={}", path.display()));
    let before = busy_ns()?;
    let output = fio.args(engine).output()?;
    let spent_ns = busy_ns()? - before;
    let text = String::from_utf8_lossy(&output.stdout);
    // Field 8 of fio's terse format, version 3, is reads per second.
    let iops = text.split(';').nth(7).and_then(|field| field.parse::<f64>().ok());
    let iops = iops.ok_or_else(|| Error::other(format!("fio said {text}")))?;
    if let Some(peer) = peer {
        seen_by(peer, iops * f64::from(SECONDS))?;
    }
    if let Some(probe) = &mut probe {
        report(&mut **probe, iops * f64::from(SECONDS));
    }
    Ok((spent_ns / (iops * f64::from(SECONDS)), iops))
}

fn bpftrace() -> Result<Child> {
    let mut command = Command::new("bpftrace");
    // As much as fits into the limit of locked memory is enough.
    command.env("BPFTRACE_NO_RLIMIT", "1").args(["-e", BIOLATENCY]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    sleep(ATTACHED);
    Ok(child)
}

/// Stops the peer, which must have seen about as many I/Os as there were.
fn seen_by(peer: Child, ios: f64) -> Result<()> {
    Command::new("kill").args(["-INT", &peer.id().to_string()]).status()?;
    let text = String::from_utf8(peer.wait_with_output()?.stdout).map_err(Error::other)?;
    let counts = text.lines().filter_map(|line| line.split('|').next()?.split(')').nth(1));
    let seen: f64 = counts.filter_map(|count| count.trim().parse::<f64>().ok()).sum();
    if seen < 0.9 * ios {
        return Err(Error::other(format!("bpftrace saw {seen} of {ios} I/Os: {text}")));
    }
    Ok(())
}

/// Prints the cost that the probe reports for itself.
fn report(probe: &mut dyn Probe, ios: f64) {
    let mut rows: Vec<Row> = Vec::new();
    probe.sample(&mut rows);
    let own = io::SCHEMA.columns.iter().position(|column| column.name == "own_ns");
    let tracing = rows.iter().find(|row| row.object == "tracing");
    if let Some(Cell::Value(own_ns)) = tracing.zip(own).map(|(row, index)| &row.cells[index]) {
        println!("    own time {:.0} ns per I/O, {} rows", *own_ns as f64 / ios, rows.len());
    }
}

/// Returns the time that processors were not idle, from `/proc/stat`.
fn busy_ns() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    let idle = [3, 4, 7];
    let busy = ticks.iter().take(8).enumerate().filter(|(index, _)| !idle.contains(index));
    Ok(busy.map(|(_, ticks)| ticks * 10_000_000.0).sum())
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
