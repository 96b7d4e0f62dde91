//! `size … --on --db-time`: what the database time of a run would be on the other storage.
//!
//! The waits for reads and commits change: as many of them as in the run, each as long as it was on
//! the storage of `--on` at the mean rates of the run. Processor time and the network stay. Of the
//! rest (locks, latches, the run queue, what no event explains) it is not known how much of it was
//! behind a session that waited for the storage: between none and all. With the same work, the
//! rates are those of the run. With the same sessions, less time a transaction means more
//! transactions: the storage is then as busy as these sessions make it, so that their number is
//! driven there as well, in the same mix and without any pause.

use anyhow::{Result, bail};
use blockstone_base::database::{CPU, NETWORK, wait_class};
use blockstone_judge::RunFindings;
use blockstone_size::hardware::{Demand, Redundancy};

use super::answer::{Answer, Change, Faster, Load, MEAN, SAME_SESSIONS};
use super::args::SizeArgs;
use super::drive::{self, Drive};
use crate::failure::Failure;
use crate::recordings;
use crate::verb::Context;

const NS: f64 = 1e9;

/// Time of the sessions of a run, in seconds a second: sessions that are in it on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spent {
    pub reads: f64,
    pub commits: f64,
    /// On a processor, or with the network and the client.
    pub fixed: f64,
    /// Everything else.
    pub rest: f64,
    pub reads_per_s: f64,
    pub commits_per_s: f64,
    pub operations_per_s: f64,
}

/// Mean latencies of reads and commits, in seconds: shortest and longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    pub read: (f64, f64),
    pub commit: (f64, f64),
}

impl Spent {
    pub fn of(findings: &RunFindings) -> Option<Self> {
        let time = findings.db_time.as_ref()?;
        let per_s = |ns: u64| ns as f64 / findings.window_ns.max(1) as f64;
        let class = |name: &str| {
            let found = findings.classes.iter().find(|class| class.class == name);
            found.map_or(0.0, |class| per_s(class.time_ns))
        };
        let rate = |name: &str| findings.figure(name).map(|it| it.estimate.value);
        let (reads, commits) = (class("User I/O"), class("Commit"));
        let fixed = class(wait_class(CPU)) + class(wait_class(NETWORK));
        let all = per_s(time.db_time_ns);
        Some(Self {
            reads,
            commits,
            fixed,
            rest: (all - reads - commits - fixed).max(0.0),
            // A library in the process has no process of its own whose reads the kernel counts.
            reads_per_s: rate("read_iops").or_else(|| rate("physical_reads_per_s"))?,
            commits_per_s: rate("commits_per_s").unwrap_or(0.0),
            operations_per_s: rate("operations_per_s")?,
        })
    }

    /// Returns the times with the latencies at the rates of the run, and the throughput. `most` is
    /// that of as many sessions that do nothing but wait for the storage, from least to most.
    pub fn with(&self, at_need: Latencies, most: Option<(f64, f64)>) -> Faster {
        let times = |count: f64, (low, high): (f64, f64), before: f64| Change {
            before,
            low: count * low / AGAIN,
            high: count * high * AGAIN,
        };
        let reads = times(self.reads_per_s, at_need.read, self.reads);
        let reads = Change { low: reads.low / CACHED.1, high: reads.high / CACHED.0, ..reads };
        let commits = times(self.commits_per_s, at_need.commit, self.commits);
        let waits = self.reads + self.commits;
        let shrunk = |to: f64| if waits > 0.0 { self.rest * to / waits } else { self.rest };
        let rest = Change {
            before: self.fixed + self.rest,
            low: self.fixed + shrunk(reads.low + commits.low).min(self.rest),
            high: self.fixed + shrunk(reads.high + commits.high).max(self.rest),
        };
        let sessions = waits + rest.before;
        let db_time = Change {
            before: sessions,
            low: reads.low + commits.low + rest.low,
            high: reads.high + commits.high + rest.high,
        };
        // The time of the storage for the work of a second, while one session waits for it, and
        // while all do. By Little's law, the latter is their number for the work that they do.
        let of = |end: fn((f64, f64)) -> f64, other_end: fn((f64, f64)) -> f64, rest: f64| {
            let idle =
                self.reads_per_s * end(at_need.read) + self.commits_per_s * end(at_need.commit);
            let busy = most.map(|most| sessions * self.operations_per_s / other_end(most));
            let busy = busy.map_or(idle, |busy| busy.max(idle));
            self.operations_per_s * closed(sessions, rest, idle, busy)
        };
        let throughput = Change {
            before: self.operations_per_s,
            low: of(|it| it.1, |it| it.0, rest.high) * CACHED.0,
            high: of(|it| it.0, |it| it.1, rest.low) * CACHED.1,
        };
        Faster { reads, commits, rest, db_time, throughput }
    }
}

/// Returns how many times as much these sessions do, if the work of a second takes `rest` besides
/// the storage, and of the storage `idle` while one of them waits for it, and `busy` while all do.
/// Between these its time is taken to grow evenly with the sessions that wait.
fn closed(sessions: f64, rest: f64, idle: f64, busy: f64) -> f64 {
    let mut storage = busy;
    for _ in 0..ROUNDS {
        let waiting = sessions * storage / (rest + storage).max(f64::MIN_POSITIVE);
        let share = ((waiting - 1.0) / (sessions - 1.0).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        storage = idle + (busy - idle) * share;
    }
    sessions / (rest + storage).max(f64::MIN_POSITIVE)
}

/// How far the mean latency of an uncontended disk is from that of the next quarter of an hour, as
/// a ratio: the interval of one measurement says nothing of it.
const AGAIN: f64 = 1.2;
/// How many times as much may be done for one read. Of twelve runs on pairs of disks, the
/// throughputs that were furthest from the model were 2 % below its middle and 30 % above: reads
/// for each operation vary with what is in the cache, which is fuller in a faster run.
const CACHED: (f64, f64) = (0.9, 1.35);
/// Rounds in which the number of sessions that wait settles.
const ROUNDS: u32 = 100;

/// Returns the mean latencies of a load. Commits that did not occur take no time.
fn latencies(load: &Load) -> Option<Latencies> {
    let both = |found: blockstone_base::stats::Estimate| (found.low / NS, found.high / NS);
    let read = both(load.read_ns_mean?);
    let commit = load.commit_ns_mean.map_or((0.0, 0.0), both);
    (read.1.is_finite() && commit.1.is_finite()).then_some(Latencies { read, commit })
}

/// The recorded run for which the prediction is made.
pub struct Source {
    pub spent: Spent,
    pub sessions: u64,
    /// Its mean load.
    pub drive: Drive,
}

/// Returns the run that the options name, before anything is driven.
pub fn source(
    args: &SizeArgs,
    log_share: Option<f64>,
    context: &Context,
) -> Result<Option<Source>> {
    if !args.db_time {
        return Ok(None);
    }
    let hint = "name one recording of blockstone run: it knows what its sessions waited for";
    let [from] = args.inputs().collect::<Vec<_>>()[..] else {
        bail!(Failure::new("predict database time: not one source is named", hint));
    };
    let name = from.display().to_string();
    if from.is_file() {
        bail!(Failure::new(
            format!("predict database time of {name}: it is a file, not a recording"),
            hint
        ));
    }
    let recording = recordings::open(&name, &context.global.runs_dir)?;
    if recording.manifest.verb != "run" {
        bail!(Failure::new(
            format!("predict database time of {name}: it was made by {}", recording.manifest.verb),
            hint
        ));
    }
    let findings = blockstone_judge::find_run(&recording, None)?;
    let Some(spent) = Spent::of(&findings) else {
        bail!(Failure::new(
            format!("predict database time of {name}: its target does not report it"),
            hint
        ));
    };
    let writes_per_s = findings.figure("write_iops").map(|it| it.estimate.value);
    let demand = Demand {
        reads_per_s: Some(spent.reads_per_s),
        // A log write for each commit, where the kernel does not say whose the writes are.
        writes_per_s: Some(writes_per_s.unwrap_or(spent.commits_per_s)),
        commits_per_s: Some(spent.commits_per_s),
        ..Demand::default()
    };
    let Some(drive) = drive::load(&demand, log_share, Redundancy::External, None) else {
        bail!(Failure::new(format!("predict database time of {name}: it has no requests"), hint));
    };
    Ok(Some(Source { spent, sessions: findings.sessions, drive }))
}

/// Returns what changes on the storage that was driven or recorded; `None` if its latencies have no
/// bounds.
pub fn of(source: &Source, answer: &Answer) -> Option<Faster> {
    let named = |name: &str| answer.loads.iter().find(|load| load.name == name);
    let at_need = named(MEAN).or_else(|| answer.loads.first()).and_then(latencies)?;
    let done = named(SAME_SESSIONS).and_then(|load| load.done_per_s);
    let times = source.spent.operations_per_s / source.drive.rate_per_s;
    let most = done.filter(|it| it.low > 0.0).map(|it| (it.low * times, it.high * times));
    Some(source.spent.with(at_need, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPENT: Spent = Spent {
        reads: 4.0,
        commits: 2.0,
        fixed: 1.5,
        rest: 0.5,
        reads_per_s: 400.0,
        commits_per_s: 100.0,
        operations_per_s: 200.0,
    };

    #[test]
    fn the_same_storage_changes_nothing() {
        let same = Latencies { read: (0.01, 0.01), commit: (0.02, 0.02) };
        let found = SPENT.with(same, None);
        let Change { before, low, high } = found.reads;
        assert!((low * AGAIN * CACHED.1 - before).abs() < 1e-9, "{low}");
        assert!((high / AGAIN * CACHED.0 - before).abs() < 1e-9, "{high}");
        for Change { before, low, high } in [found.db_time, found.throughput] {
            assert!(low < before && before < high, "{found:?}");
        }
    }

    #[test]
    fn without_any_wait_for_storage_the_processor_remains() {
        let none = Latencies { read: (0.0, 0.0), commit: (0.0, 0.0) };
        let found = SPENT.with(none, None);
        assert_eq!(found.db_time, Change { before: 8.0, low: 1.5, high: 2.0 }, "locks or none");
        let Change { before, low, high } = found.throughput;
        assert_eq!((before, low), (200.0, 800.0 * CACHED.0));
        assert!((high - 200.0 * 8.0 / 1.5 * CACHED.1).abs() < 1e-9, "{high}");
    }

    #[test]
    fn sessions_that_use_the_processor_leave_the_storage_less_busy() {
        // A read takes 4 ms while one session waits. All eight, without any pause, do the work of
        // 2.5 times 200 operations a second, so that the storage has 3.2 s for each time that work.
        let idle = Latencies { read: (0.004, 0.004), commit: (0.0, 0.0) };
        let found = SPENT.with(idle, Some((500.0, 500.0))).throughput;
        let storage = 8.0 * found.before * CACHED.0 / found.low - 2.0;
        let waiting = 8.0 * storage / (2.0 + storage);
        assert!((storage - 1.6 - 1.6 * (waiting - 1.0) / 7.0).abs() < 1e-3, "{found:?}");
        // Without any rest, they do what was measured.
        let all = Spent { reads: 6.0, fixed: 0.0, rest: 0.0, ..SPENT };
        let found = all.with(idle, Some((490.0, 510.0))).throughput;
        assert!((found.low - 490.0 * CACHED.0).abs() < 1e-6, "{found:?}");
        assert!((found.high - 510.0 * CACHED.1).abs() < 1e-6, "{found:?}");
    }
}
