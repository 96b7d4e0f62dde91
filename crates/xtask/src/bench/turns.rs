//! Cost of a read on each side, measured in turns of some tens of milliseconds.
//!
//! The cost of a read at a low depth is bimodal. If a request is completed on a different processor
//! from the one that waits for it, by an io_uring worker or by an interrupt, each read pays for
//! waking a processor; in a virtual machine that costs several times the read itself. The scheduler
//! chooses, keeps its choice for seconds, and chooses anew for every process, so two runs of one
//! program can differ by a factor of ten.
//!
//! Therefore both sides run throughout, each stopped while another has its turn, and the result is
//! the quartile of the cheapest turns: the same placement on both sides.
//!
//! User and kernel time are separated by sampling at a rate of our own. The kernel's figures
//! (`utime`, `stime`, getrusage(2)) divide the time by what its tick finds 250 times a second, and
//! a process that sleeps and wakes for each read does not meet the tick at random: they charge fio
//! with two to three times its user time, which is then missing from its kernel time.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use blockstone_sys::child::{self, Signal};
use blockstone_sys::perf::{Record, Sampler};
use blockstone_sys::process;

use super::side::{Load, Side};
use crate::workspace::line;

/// Time that a side runs before it is measured: after its start, and in each turn.
const START: Duration = Duration::from_millis(500);
const SETTLE: Duration = Duration::from_millis(5);
const TURN: Duration = Duration::from_millis(50);

/// Not a multiple of the kernel's tick rate. In a virtual machine a sample takes 20 µs: 4 % of the
/// time, on all sides alike.
const SAMPLES_PER_SECOND: u32 = 1_999;

/// Size of a read on these sides, in bytes.
const READ_BYTES: u64 = 8192;

/// The cheapest quartile.
const QUARTILE: f64 = 0.25;

/// Record of a side's turns at one point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    turns: Vec<Turn>,
    samples: Samples,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Turn {
    reads: u64,
    cpu_ns: u64,
    elapsed_ns: u64,
}

/// Number of samples that found a side on a processor, by mode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Samples {
    user: u64,
    kernel: u64,
}

/// Cost of a read on a side, and its read rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub iops: f64,
    /// Total processor time, including kernel threads that work on behalf of the process.
    pub cpu_ns: f64,
    pub user_ns: f64,
    pub system_ns: f64,
}

/// A side that runs, or is stopped between its turns; killed on drop.
struct Standing {
    child: Child,
    command: String,
}

/// Gives each side turns for `length` in total and adds the results to the tallies.
pub fn take(
    sides: &[&Side],
    point: Load,
    target: &Path,
    length: Duration,
    tallies: &mut [Tally],
) -> Result<()> {
    let mut standing = Vec::new();
    for side in sides {
        standing.push(Standing::start(side, point, target)?);
    }
    let mut sampler = Sampler::start(Path::new("/"), SAMPLES_PER_SECOND)?;
    let turns = (length.as_millis() / TURN.as_millis()).max(1) as usize;
    for number in 0..turns * sides.len() {
        // The first side changes from one round of turns to the next, so that none profits from
        // drift.
        let which = (number + number / sides.len()) % sides.len();
        sampler.drain(|_| ());
        let turn = standing[which].turn()?;
        // A neighbour can take the disk or the processors for a whole turn.
        if turn.reads > 0 {
            tallies[which].turns.push(turn);
            tallies[which].samples.add(&mut sampler, standing[which].child.id())?;
        }
    }
    Ok(())
}

impl Samples {
    /// Adds the samples taken of a process.
    fn add(&mut self, sampler: &mut Sampler, process: u32) -> Result<()> {
        let mut lost = 0;
        sampler.drain(|record| match record {
            Record::Sample(sample) if sample.process == process => {
                *(if sample.is_kernel { &mut self.kernel } else { &mut self.user }) += 1;
            }
            Record::Lost { records } => lost += records,
            _ => {}
        });
        ensure!(lost == 0, "sample a turn: {lost} samples were lost");
        Ok(())
    }
}

impl Tally {
    /// Returns the cost of a read.
    ///
    /// # Errors
    /// If nothing was read.
    pub fn cost(&self) -> Result<Cost> {
        let per_read = |turn: &Turn| turn.cpu_ns as f64 / turn.reads as f64;
        let per_second = |turn: &Turn| turn.reads as f64 / turn.elapsed_ns as f64 * 1e9;
        let cpu_ns = quantile(self.turns.iter().map(per_read).collect(), QUARTILE)?;
        let iops = quantile(self.turns.iter().map(per_second).collect(), 1.0 - QUARTILE)?;
        // A single turn has too few samples in user mode. That work is the same wherever the
        // kernel's half runs, so the mean of all turns holds for it.
        let (reads, cpu) = self
            .turns
            .iter()
            .fold((0, 0), |(reads, cpu), turn| (reads + turn.reads, cpu + turn.cpu_ns));
        let Samples { user, kernel } = self.samples;
        let user_ns = cpu as f64 / reads as f64 * user as f64 / (user + kernel) as f64;
        Ok(Cost { iops, cpu_ns, user_ns, system_ns: cpu_ns - user_ns })
    }
}

/// Returns the quantile `part` of the values, by nearest rank.
fn quantile(mut values: Vec<f64>, part: f64) -> Result<f64> {
    ensure!(!values.is_empty(), "compute a quantile: no turn had a read");
    values.sort_by(f64::total_cmp);
    let rank = (part * values.len() as f64).ceil() as usize;
    Ok(values[rank.clamp(1, values.len()) - 1])
}

impl Standing {
    fn start(side: &Side, point: Load, target: &Path) -> Result<Self> {
        let mut command = side.standing(point, target);
        // A stopped process would outlive this one.
        child::confine(&mut command, None, Signal::KILL);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        let child = child.with_context(|| format!("start {}", line(&command)))?;
        let standing = Self { child, command: line(&command) };
        thread::sleep(START);
        standing.signal(Signal::STOP)?;
        Ok(standing)
    }

    fn turn(&mut self) -> Result<Turn> {
        let ended = self.child.try_wait().context("look whether it runs")?;
        ensure!(ended.is_none(), "`{}` ended too early", self.command);
        self.signal(Signal::CONT)?;
        thread::sleep(SETTLE);
        let (from, before) = (Instant::now(), self.consumed()?);
        thread::sleep(TURN);
        let (elapsed, after) = (from.elapsed(), self.consumed()?);
        self.signal(Signal::STOP)?;
        Ok(Turn {
            reads: (after[0] - before[0]) / READ_BYTES,
            cpu_ns: after[1] - before[1],
            elapsed_ns: elapsed.as_nanos() as u64,
        })
    }

    /// Returns the bytes that it read from the device, and its processor time in nanoseconds.
    fn consumed(&self) -> Result<[u64; 2]> {
        let path = format!("/proc/{}/io", self.child.id());
        let io = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        let bytes = io.lines().find_map(|line| line.strip_prefix("read_bytes: "));
        let bytes = bytes.and_then(|number| number.parse().ok());
        let bytes = bytes.with_context(|| format!("find read_bytes in {io}"))?;
        let cpu_ns = process::cpu_ns(self.child.id()).context("read its processor time")?;
        Ok([bytes, cpu_ns])
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        child::signal(self.child.id(), signal)
            .with_context(|| format!("stop or continue `{}`", self.command))
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        // If this fails, there is nothing left to do about it here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten turns of 1,000 reads; in `elsewhere` of them the kernel ran on another processor.
    fn tally(cpu_ns: u64, elsewhere: usize) -> Tally {
        let turn = |number: usize| {
            let cpu_ns = if number < elsewhere { 70_000 } else { cpu_ns };
            Turn { reads: 1000, cpu_ns: cpu_ns * 1000, elapsed_ns: cpu_ns * 1000 }
        };
        Tally { turns: (0..10).map(turn).collect(), samples: Samples { user: 0, kernel: 100 } }
    }

    #[test]
    fn where_the_scheduler_put_a_side_does_not_change_what_it_costs() {
        let cost = |elsewhere| tally(5000, elsewhere).cost().unwrap();
        for elsewhere in 0..=7 {
            assert_eq!(cost(elsewhere), cost(0), "{elsewhere} turns on another processor");
        }
        assert_eq!((cost(7).cpu_ns, cost(7).iops), (5000.0, 200_000.0));
        let dearer = tally(5500, 0).cost().unwrap();
        assert!((dearer.cpu_ns / cost(7).cpu_ns - 1.1).abs() < 1e-9, "a true difference shows");
    }

    #[test]
    fn user_and_kernel_time_are_all_of_it() {
        let samples = Samples { user: 10, kernel: 90 };
        let cost = Tally { samples, ..tally(5000, 0) }.cost().unwrap();
        assert_eq!((cost.user_ns, cost.system_ns), (500.0, 4500.0));
        assert!(Tally::default().cost().is_err());
    }

    #[test]
    fn a_side_is_measured_in_its_turn_and_rests_between_them() {
        let child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        let mut side = Standing { child: child.unwrap(), command: "sh".into() };
        let deadline = Instant::now() + Duration::from_secs(30);
        while side.turn().unwrap().cpu_ns == 0 {
            assert!(Instant::now() < deadline, "it is never continued");
        }
        let stat = format!("/proc/{}/stat", side.child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") T ") {
            assert!(Instant::now() < deadline, "it is never stopped");
            thread::yield_now();
        }
        let before = side.consumed().unwrap();
        assert_eq!(side.consumed().unwrap(), before);
        side.child.kill().unwrap();
        side.child.wait().unwrap();
        assert!(side.turn().is_err(), "it has ended");
    }
}
