//! Cost of counting I/O in the kernel, beside one histogram of latencies by bpftrace and by
//! biolatency of libbpf-tools: fio alone and with each of them, in turns.
//!
//! `cargo bench -p blockstone-probe --bench io`, as root, with fio, and with bpftrace, libbpf-tools
//! and tracefs on `/sys/kernel/tracing` to compare with these.
//!
//! fio runs at a real-time priority and its own processor time is measured, so that other load on
//! the machine takes no processor from it; cold caches remain. Interrupts that find another process
//! are not in it. The kernel measures the time of the programs in rounds of their own, because
//! measuring takes time itself.

#![allow(clippy::print_stdout, reason = "the figures are what it is run for")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_sys::bpf::io::IoTracer;
use blockstone_testkit::{FileKind, ScratchDir};

const ROUNDS: usize = 15;
const MEASURED_ROUNDS: usize = 5;
const SECONDS: u32 = 1;
const FILE: Bytes = Bytes(256 << 20);
/// Limit of what counting block requests adds to the processor time of an I/O, in percent.
const GOAL: f64 = 3.0;

/// Latencies of all requests in one histogram, at the same tracepoints as the probe.
const HISTOGRAM: &str = "\
tracepoint:block:block_io_start { @start[args->dev, args->sector] = nsecs; }
tracepoint:block:block_io_done /@start[args->dev, args->sector]/ {
    @usecs = hist((nsecs - @start[args->dev, args->sector]) / 1000);
    delete(@start[args->dev, args->sector]);
}
END { clear(@start); }";
/// From loading the programs of a tool until they are attached.
const ATTACHED: Duration = Duration::from_secs(1);
/// Limit of the time in which a tool loads its programs, and of that in which it ends.
const PATIENCE: Duration = Duration::from_mins(3);
/// The kernel measures the first programs at least so long.
const MEASURED: Duration = Duration::from_millis(250);
const STATS: &str = "/proc/sys/kernel/bpf_stats_enabled";

const LOADS: [(&str, &[&str]); 2] = [
    ("pread by four threads", &["--ioengine=psync", "--numjobs=4"]),
    (
        "io_uring, 64 in flight",
        &["--ioengine=io_uring", "--iodepth=64", "--iodepth_batch_complete_max=16"],
    ),
];

/// Tracing that is active during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tracing {
    Off,
    Bpftrace,
    Biolatency,
    Requests,
    RequestsAndCalls,
}

#[derive(Clone, Copy)]
struct Ran {
    iops: f64,
    ios: f64,
    cpu_ns: f64,
}

fn main() -> Result<()> {
    let scratch = ScratchDir::on_disk().map_err(Error::other)?;
    let path = scratch.path().join("file");
    FileKind::Real.create(&path, FILE).map_err(Error::other)?;
    let mut variants = vec![Tracing::Off];
    for (tool, tracing) in [("bpftrace", Tracing::Bpftrace), ("biolatency", Tracing::Biolatency)] {
        match Command::new(tool).arg("--version").output() {
            Ok(_) => variants.push(tracing),
            Err(error) => println!("without {tool}: {error}"),
        }
    }
    variants.extend([Tracing::Requests, Tracing::RequestsAndCalls]);
    for (name, load) in LOADS {
        println!("{name}");
        compare(&path, load, &variants)?;
        programs(&path, load, &variants)?;
    }
    Ok(())
}

/// Prints the processor time of fio per I/O with each tracing, and its ratio to that without.
fn compare(path: &Path, load: &[&str], variants: &[Tracing]) -> Result<()> {
    let mut rounds = vec![Vec::new(); variants.len()];
    for _ in 0..ROUNDS {
        for (tracing, ran) in variants.iter().zip(&mut rounds) {
            ran.push(traced(*tracing, || fio(path, load))?);
        }
    }
    for (tracing, ran) in variants.iter().zip(&rounds) {
        let cost_ns = |ran: &Ran| ran.cpu_ns / ran.ios;
        let more = ran.iter().zip(&rounds[0]).map(|(it, off)| cost_ns(it) / cost_ns(off) - 1.0);
        let more = sorted(more.map(|ratio| ratio * 100.0));
        let [iops, cost_ns] =
            [sorted(ran.iter().map(|ran| ran.iops)), sorted(ran.iter().map(cost_ns))]
                .map(|values| values[values.len() / 2]);
        let (low, middle, high) = (more[ROUNDS / 4], more[ROUNDS / 2], more[ROUNDS * 3 / 4]);
        let goal = match tracing {
            Tracing::Requests if middle <= GOAL => format!("; goal {GOAL:+} %: met"),
            Tracing::Requests => format!("; goal {GOAL:+} %: missed"),
            _ => String::new(),
        };
        println!(
            "  {tracing:?}: {iops:.0} IOPS, {cost_ns:.0} ns CPU per I/O, {middle:+.1} % \
             ({low:+.1} to {high:+.1}){goal}"
        );
    }
    Ok(())
}

/// Prints how long the programs of each tracing take, as the kernel measures them.
fn programs(path: &Path, load: &[&str], variants: &[Tracing]) -> Result<()> {
    for tracing in &variants[1..] {
        let mut costs = BTreeMap::<String, Vec<(f64, f64)>>::new();
        for _ in 0..MEASURED_ROUNDS {
            let (ran, measured) = measured(*tracing, || fio(path, load))?;
            for (program, runs, ns) in measured.into_iter().filter(|(_, runs, _)| *runs > 0.0) {
                costs.entry(program).or_default().push((ns / runs, runs / ran.ios));
            }
        }
        for (program, costs) in costs {
            let ns = sorted(costs.iter().map(|cost| cost.0));
            let runs = sorted(costs.iter().map(|cost| cost.1));
            let (ns, least, runs) = (ns[ns.len() / 2], ns[0], runs[runs.len() / 2]);
            if runs > 0.01 {
                println!("    {tracing:?}, {program}: {ns:.0} ns (least {least:.0}) × {runs:.2}");
            }
        }
    }
    Ok(())
}

/// Runs under a tracing that the kernel does not measure.
fn traced(tracing: Tracing, run: impl FnOnce() -> Result<Ran>) -> Result<Ran> {
    let tracer = tracer(tracing)?;
    if let Some(tracer) = &tracer {
        // Long enough, so that the kernel stops to measure.
        sleep(MEASURED);
        tracer.costs();
    }
    Ok(with_peer(tracing, run)?.0)
}

/// The name of a program, its runs, and the nanoseconds that these took.
type Program = (String, f64, f64);

/// Runs under a tracing that the kernel measures.
fn measured(tracing: Tracing, run: impl FnOnce() -> Result<Ran>) -> Result<(Ran, Vec<Program>)> {
    if let Some(tracer) = tracer(tracing)? {
        let ran = run()?;
        let costs = tracer.costs().unwrap_or_default().into_iter();
        return Ok((ran, costs.map(|it| (it.program, it.runs as f64, it.ns as f64)).collect()));
    }
    let before = fs::read_to_string(STATS)?;
    fs::write(STATS, "1")?;
    let ran = with_peer(tracing, run);
    fs::write(STATS, before.trim())?;
    ran
}

fn with_peer(tracing: Tracing, run: impl FnOnce() -> Result<Ran>) -> Result<(Ran, Vec<Program>)> {
    let peer = peer(tracing)?;
    let ran = run()?;
    let Some(peer) = peer else { return Ok((ran, Vec::new())) };
    let costs = of_process(peer.id())?;
    stop(peer, tracing, ran.ios)?;
    Ok((ran, costs))
}

/// Returns the programs that a process has loaded, from what the kernel says of its descriptors.
fn of_process(pid: u32) -> Result<Vec<Program>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        let value = |key: &str| {
            text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<f64>().ok())
        };
        // A link says which program it is of, but not its time.
        let program = value("prog_id:").zip(value("run_cnt:")).zip(value("run_time_ns:"));
        found.extend(program.map(|((id, runs), ns)| (id, runs, ns)));
    }
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    let programs = found.into_iter().enumerate();
    Ok(programs
        .map(|(index, (_, runs, ns))| (format!("program {}", index + 1), runs, ns))
        .collect())
}

fn tracer(tracing: Tracing) -> Result<Option<IoTracer>> {
    let system_calls = match tracing {
        Tracing::Requests => false,
        Tracing::RequestsAndCalls => true,
        _ => return Ok(None),
    };
    IoTracer::start(system_calls, &BTreeSet::new()).map(Some).map_err(Error::other)
}

fn peer(tracing: Tracing) -> Result<Option<Child>> {
    let mut command = match tracing {
        Tracing::Bpftrace => Command::new("bpftrace"),
        Tracing::Biolatency => Command::new("biolatency"),
        _ => return Ok(None),
    };
    if tracing == Tracing::Bpftrace {
        // As much as fits into the limit of locked memory is enough.
        command.env("BPFTRACE_NO_RLIMIT", "1").args(["-e", HISTOGRAM]);
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Err(error) = await_that(|| Ok(!of_process(child.id())?.is_empty())) {
        child.kill()?;
        return Err(error);
    }
    sleep(ATTACHED);
    Ok(Some(child))
}

fn await_that(mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    let begin = Instant::now();
    while !condition()? {
        if begin.elapsed() > PATIENCE {
            return Err(Error::other("a tool does not load its programs, or does not end"));
        }
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Stops the peer, which must have seen about as many I/Os as there were.
fn stop(mut peer: Child, tracing: Tracing, ios: f64) -> Result<()> {
    await_that(|| {
        // Again and again: one that comes before the tool expects it may be ignored.
        Command::new("kill")
            .args(["-INT", &peer.id().to_string()])
            .stderr(Stdio::null())
            .status()?;
        sleep(Duration::from_millis(300));
        Ok(peer.try_wait()?.is_some())
    })?;
    let text = String::from_utf8(peer.wait_with_output()?.stdout).map_err(Error::other)?;
    // `[4K, 8K)  17 |@@@ |` and `4 -> 7  : 17  |*** |`.
    let mark = if tracing == Tracing::Bpftrace { ')' } else { ':' };
    let counts = text.lines().filter_map(|line| line.split('|').next()?.split(mark).nth(1));
    let seen: f64 = counts.filter_map(|count| count.trim().parse::<f64>().ok()).sum();
    if seen < 0.9 * ios {
        return Err(Error::other(format!("{tracing:?} saw {seen} of {ios} I/Os: {text}")));
    }
    Ok(())
}

fn fio(path: &Path, load: &[&str]) -> Result<Ran> {
    let mut fio = Command::new("chrt");
    fio.args(["--fifo", "50", "fio", "--name=cost", "--direct=1", "--rw=randread", "--bs=4k"]);
    fio.args(["--thread", "--time_based", "--group_reporting", "--output-format=json"]);
    fio.arg(format!("--runtime={SECONDS}")).arg(format!("--filename={}", path.display()));
    let output = fio.args(load).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // The first of each is that of the job, and of its reads.
    let number = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("\"{key}\" : ")));
        let value = line.and_then(|value| value.trim_end_matches(',').parse::<f64>().ok());
        value.ok_or_else(|| Error::other(format!("fio said {text}")))
    };
    let share = (number("usr_cpu")? + number("sys_cpu")?) / 100.0;
    // In milliseconds, summed over the threads.
    let runtime_ns = number("job_runtime")? * 1e6;
    Ok(Ran { iops: number("iops")?, ios: number("total_ios")?, cpu_ns: share * runtime_ns })
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
