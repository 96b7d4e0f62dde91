//! Cost of an instance: cached visits per second and core, processor time of a physical read
//! compared with a bare pread of the same size on the same file, and commits compared with log
//! writes as sessions are added. `cargo bench -p blockstone-instance --bench instance [--
//! DIRECTORY]` measures all; `BLOCKSTONE_ONLY=cached,crowd` skips the rest. `cargo xtask bench
//! instance` compares the figures, which `-- --figures` prints as separate lines, with their goals.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench is a program to look at")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_base::rng::Rng;
use blockstone_instance::group::{DiskGroup, DiskSpec, GroupSpec, Redundancy, unwatched};
use blockstone_instance::wait::{Event, Role, Statistic};
use blockstone_instance::{Instance, InstanceSpec, OpenSpec, RedoStress, Snapshot, TornProtection};
use blockstone_sys::buffer::Arena;
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::usage;

const ROWS: u64 = 32_768;
const ROUNDS: usize = 5;
const TURNS: usize = 400;
const UNIT: u64 = 64;
const WINDOW: Duration = Duration::from_secs(3);

fn main() {
    let asked = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let root = asked.map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    let dir = tempfile::tempdir_in(root).unwrap();
    let spec = InstanceSpec {
        block: Bytes::kib(8),
        schemas: 1,
        rows: ROWS,
        scan_blocks: 0,
        redo_logs: 3,
        redo: Bytes::mib(64),
        seed: 1,
        random_percent: 100,
    };
    let group = GroupSpec {
        disks: vec![DiskSpec { path: dir.path().to_owned(), failure_group: None }],
        redundancy: Redundancy::External,
        allocation_unit: Bytes::mib(4),
        direct: true,
    };
    let group = DiskGroup::create(&group, &spec.files().unwrap(), &unwatched).unwrap();
    Instance::create(&spec, &group).unwrap();
    let only = std::env::var("BLOCKSTONE_ONLY").unwrap_or_default();
    let start = Instant::now();
    let instance = Instance::open(&group, &large_cache()).unwrap();
    instance.load(1, &mut |_, _| {}).unwrap();
    println!("load       {:>8.0} MB/s", mb(ROWS * 8192) / start.elapsed().as_secs_f64());
    let parts = |name: &str| only.is_empty() || only.split(',').any(|part| part == name);
    for sessions in [1, 2].into_iter().filter(|_| parts("cached")) {
        cached(&instance, sessions);
    }
    instance.shutdown().unwrap();
    drop(group);
    let reopen = || DiskGroup::open(&[dir.path().to_owned()], true).unwrap();
    if parts("physical") {
        physical(&reopen(), dir.path());
    }
    for protection in [TornProtection::None, TornProtection::FullPage, TornProtection::DoubleWrite]
    {
        if parts("commits") {
            commits(&reopen(), protection);
        }
    }
    if parts("committers") {
        committers(&reopen);
    }
    if parts("crowd") {
        crowd(&reopen(), Bytes::mib(64));
        crowd(&reopen(), Bytes::mib(320));
    }
}

/// Prints a machine-readable figure: the measured point, and the figure's name and value.
fn figure(point: &str, name: &str, value: f64) {
    if std::env::args().any(|argument| argument == "--figures") {
        println!("figure\t{point}\t{name}\t{value}");
    }
}

fn mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn large_cache() -> OpenSpec {
    OpenSpec { cache: Bytes::mib(320), ..OpenSpec::default() }
}

/// Runs `work` on `count` threads, each with its number, for one second per round.
fn on_threads(count: u32, work: impl Fn(u32) -> u64 + Sync) -> u64 {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || work(n))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn cached(instance: &Instance, sessions: u32) {
    instance.session(0).unwrap().select(0, 0, ROWS).unwrap();
    let mut best: f64 = 0.0;
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let start = Instant::now();
        let visits = on_threads(sessions, |number| {
            let mut session = instance.session(number).unwrap();
            let mut rng = Rng::new(round as u64, u64::from(number));
            let mut visits = 0;
            while start.elapsed() < Duration::from_secs(1) {
                for _ in 0..64 {
                    visits += session.select(0, rng.below(ROWS - UNIT), UNIT).unwrap();
                }
            }
            visits
        });
        let rate = visits as f64 / start.elapsed().as_secs_f64() / f64::from(sessions) / 1e6;
        best = best.max(rate);
        all.push(rate);
    }
    all.sort_by(f64::total_cmp);
    println!(
        "cached     {sessions} sessions: {:.2} M visits/s a core, best of {ROUNDS} {best:.2}",
        all[ROUNDS / 2]
    );
    let point = format!("cached visits, {sessions} sessions");
    figure(&point, "visits_per_s_per_core", all[ROUNDS / 2] * 1e6);
}

/// Measures the processor time of a read, all on its own thread, in short turns with a bare pread.
fn physical(group: &DiskGroup, dir: &Path) {
    let spec = OpenSpec { cache: Bytes::mib(8), ..OpenSpec::default() };
    let instance = Instance::open(group, &spec).unwrap();
    let path = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    let file = BlockFile::open(&path, Access::Read, true).unwrap();
    let mut memory = Arena::new(1, 8192).unwrap();
    let mut session = instance.session(0).unwrap();
    let mut rng = Rng::new(1, 7);
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        bare.push(cpu_ns(|| {
            for _ in 0..UNIT {
                let offset = (64 << 20) + rng.below(ROWS) * 8192;
                assert_eq!(file.read_at(offset, memory.slot(0)), Ok(8192));
            }
            UNIT
        }));
        ours.push(cpu_ns(|| {
            let before = instance.snapshot().statistic(Statistic::SingleBlockReads);
            session.select(0, rng.below(ROWS - UNIT), UNIT).unwrap();
            instance.snapshot().statistic(Statistic::SingleBlockReads) - before
        }));
    }
    let quartiles = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        [values[TURNS / 4], values[TURNS / 2]]
    };
    let (bare, ours) = (quartiles(bare), quartiles(ours));
    for (name, at) in [("lower quartile", 0), ("median", 1)] {
        println!(
            "physical   {name} of {TURNS}: pread {:.0} ns of CPU, instance {:.0} ns, {:.2} times",
            bare[at],
            ours[at],
            ours[at] / bare[at]
        );
    }
    figure("physical read", "pread_cpu_ns", bare[1]);
    figure("physical read", "cpu_ns", ours[1]);
    figure("physical read", "cpu_ratio", ours[1] / bare[1]);
    instance.shutdown().unwrap();
}

/// Returns the processor time of one of the reads of `work`.
fn cpu_ns(work: impl FnOnce() -> u64) -> f64 {
    let start_ns = usage::thread_cpu_ns();
    let reads = work();
    (usage::thread_cpu_ns() - start_ns) as f64 / reads.max(1) as f64
}

fn commits(group: &DiskGroup, protection: TornProtection) {
    let instance = Instance::open(group, &OpenSpec { protection, ..large_cache() }).unwrap();
    for sessions in [1, 4, 16, 64] {
        let before = instance.snapshot();
        let start = Instant::now();
        on_threads(sessions, |number| {
            let mut session = instance.session(number).unwrap();
            let mut rng = Rng::new(3, u64::from(number));
            while start.elapsed() < Duration::from_secs(2) {
                session.update(0, rng.below(ROWS - 1), 1, RedoStress::Lite).unwrap();
                session.commit().unwrap();
            }
            0
        });
        let seconds = start.elapsed().as_secs_f64();
        let after = instance.snapshot();
        let rate = |s| (after.statistic(s) - before.statistic(s)) as f64 / seconds;
        let waits = |s: &Snapshot| s.waits(Role::Session, Event::LogFileSync).time_ns;
        let sync_ms = (waits(&after) - waits(&before)) as f64 / 1e6;
        let commits = after.statistic(Statistic::Commits) - before.statistic(Statistic::Commits);
        println!(
            "commits    {:<12} {sessions:>3} sessions: {:>7.0} commits/s, {:>6.0} log writes/s, \
             {:>6.1} MB/s redo, sync {:.2} ms",
            protection.name(),
            rate(Statistic::Commits),
            rate(Statistic::RedoWrites),
            rate(Statistic::RedoWrittenBytes) / 1e6,
            sync_ms / commits as f64,
        );
    }
    instance.crash();
    let again = Instance::open(group, &large_cache()).unwrap();
    let recovery = again.recovery();
    println!(
        "recovery   {:<12} {:>7.1} MB of redo, {} blocks written, {:.2} s",
        protection.name(),
        (recovery.to.0 - recovery.from.0) as f64 / 1e6,
        recovery.blocks_written,
        recovery.elapsed_ns as f64 / 1e9
    );
    again.shutdown().unwrap();
}

/// Measures commits from one session to as many as SLOB ever started, all of which do nothing else:
/// each figure is read while all of them run.
fn committers(reopen: &dyn Fn() -> DiskGroup) {
    let open = OpenSpec { cache: Bytes::mib(1024), ..OpenSpec::default() };
    for sessions in [1, 8, 64, 512, 1024, 4096, 12_288] {
        let instance = Instance::open(&reopen(), &open).unwrap();
        let connected = AtomicU32::new(0);
        let ended = AtomicBool::new(false);
        let (window, seconds) = thread::scope(|scope| {
            for number in 0..sessions {
                let (instance, connected, ended) = (&instance, &connected, &ended);
                let work = move || {
                    let mut session = instance.session(number).unwrap();
                    let mut rng = Rng::new(3, u64::from(number));
                    connected.fetch_add(1, Ordering::Relaxed);
                    while !ended.load(Ordering::Relaxed) {
                        session.update(0, rng.below(ROWS - 1), 1, RedoStress::Lite).unwrap();
                        session.commit().unwrap();
                    }
                };
                thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work).unwrap();
            }
            while connected.load(Ordering::Relaxed) < sessions {
                thread::sleep(Duration::from_millis(10));
            }
            thread::sleep(WINDOW);
            let (start, before) = (Instant::now(), instance.snapshot());
            thread::sleep(WINDOW);
            let (seconds, after) = (start.elapsed().as_secs_f64(), instance.snapshot());
            ended.store(true, Ordering::Relaxed);
            ((before, after), seconds)
        });
        print_commits(sessions, &window, seconds);
        instance.shutdown().unwrap();
    }
}

/// Prints the commits and log writes of a window, and what the sessions waited for most.
fn print_commits(sessions: u32, (before, after): &(Snapshot, Snapshot), seconds: f64) {
    let grown = |s| (after.statistic(s) - before.statistic(s)) as f64;
    let rate = |s| grown(s) / seconds;
    let waits = |event| {
        let (now, then) = (after.waits(Role::Session, event), before.waits(Role::Session, event));
        (now.time_ns - then.time_ns) as f64 / grown(Statistic::DbTimeNs) * 100.0
    };
    let mut shares: Vec<(f64, &str)> =
        Event::ALL.iter().map(|&event| (waits(event), event.name())).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shares: Vec<String> =
        shares.iter().take(3).map(|(share, name)| format!("{name} {share:.1} %")).collect();
    println!(
        "committers {sessions:>5} sessions: {:>7.0} commits/s, {:>6.0} log writes/s, {:>6.1} MB/s \
         redo; {}",
        rate(Statistic::Commits),
        rate(Statistic::RedoWrites),
        rate(Statistic::RedoWrittenBytes) / 1e6,
        shares.join(", ")
    );
    let point = format!("{sessions} committers");
    figure(&point, "commits_per_s", rate(Statistic::Commits));
    figure(&point, "log_writes_per_s", rate(Statistic::RedoWrites));
}

/// A thousand sessions that read, with more threads ready than processors, and one in sixteen that
/// commits: how long the log writer's own writes take, how long commits wait, and how much of the
/// database time is accounted for.
fn crowd(group: &DiskGroup, cache: Bytes) {
    let instance = Instance::open(group, &OpenSpec { cache, ..OpenSpec::default() }).unwrap();
    let start = Instant::now();
    on_threads(1024, |number| {
        let mut session = instance.session(number).unwrap();
        let mut rng = Rng::new(4, u64::from(number));
        while start.elapsed() < Duration::from_secs(5) {
            if number % 16 == 0 {
                session.update(0, rng.below(ROWS - 1), 1, RedoStress::Lite).unwrap();
                session.commit().unwrap();
            } else {
                session.select(0, rng.below(ROWS - UNIT), UNIT).unwrap();
            }
        }
        0
    });
    let seen = instance.snapshot();
    let mean_ms = |role, event| {
        let waits = seen.waits(role, event);
        waits.time_ns as f64 / waits.count.max(1) as f64 / 1e6
    };
    println!(
        "crowd      1024 sessions, cache {cache}: {} reads, {} commits, {} log writes; log file \
         parallel write {:.2} ms, log file sync {:.2} ms, db file sequential read {:.2} ms",
        seen.statistic(Statistic::SingleBlockReads),
        seen.statistic(Statistic::Commits),
        seen.statistic(Statistic::RedoWrites),
        mean_ms(Role::Lgwr, Event::LogFileParallelWrite),
        mean_ms(Role::Session, Event::LogFileSync),
        mean_ms(Role::Session, Event::DbFileSequentialRead),
    );
    for (role, event, histogram) in instance.take_histograms() {
        println!(
            "crowd      {:<8} {:<28} {:>7} waits, p50 {:>8.2} ms, p99 {:>8.2} ms",
            role.name(),
            event.name(),
            histogram.count(),
            histogram.quantile_ns(0.5) as f64 / 1e6,
            histogram.quantile_ns(0.99) as f64 / 1e6
        );
    }
    let log_writer = instance.processor(Role::Lgwr);
    println!(
        "crowd      the log writer ran {:.0} ms and waited {:.0} ms for a processor",
        log_writer.cpu_ns as f64 / 1e6,
        log_writer.run_queue_ns as f64 / 1e6
    );
    let seconds = start.elapsed().as_secs_f64();
    crowd_figures(cache, &seen, log_writer.run_queue_ns, seconds);
    let usage = instance.processor(Role::Session);
    let of = |statistic| seen.statistic(statistic) as f64;
    let waits: u64 = Event::ALL.iter().map(|&e| seen.waits(Role::Session, e).time_ns).sum();
    let time = of(Statistic::DbTimeNs);
    let outside = time - waits as f64;
    let share = |part| outside * part / of(Statistic::OutsideSampledNs) / time * 100.0;
    let (cpu, blocked) =
        (of(Statistic::OutsideSampledCpuNs), of(Statistic::OutsideSampledBlockedNs));
    println!(
        "crowd      database time {:.1} s = waits {:.1} % + CPU {:.1} % + run queue {:.1} % + \
         remainder {:.1} %; in all, sessions ran {:.1} s and were ready for {:.1} s more",
        time / 1e9,
        waits as f64 / time * 100.0,
        share(cpu),
        share(of(Statistic::OutsideSampledNs) - cpu - blocked),
        share(blocked),
        usage.cpu_ns as f64 / 1e9,
        usage.run_queue_ns as f64 / 1e9,
    );
    instance.shutdown().unwrap();
}

fn crowd_figures(cache: Bytes, seen: &Snapshot, log_writer_run_queue_ns: u64, seconds: f64) {
    let point = format!("1024 sessions, {cache} of cache");
    figure(&point, "commits_per_s", seen.statistic(Statistic::Commits) as f64 / seconds);
    figure(&point, "log_writes_per_s", seen.statistic(Statistic::RedoWrites) as f64 / seconds);
    let waited_s = log_writer_run_queue_ns as f64 / 1e9;
    figure(&point, "log_writer_run_queue_ratio", waited_s / seconds);
}
