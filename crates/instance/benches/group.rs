//! Cost that a disk group adds to a bare system call: processor time of reads that the page cache
//! answers, and duration of durable writes. `cargo bench -p blockstone-instance --bench group`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_base::rng::Rng;
use blockstone_instance::disk::{Disk, FileDisk};
use blockstone_instance::group::{DiskGroup, DiskSpec, FileSpec, GroupSpec, Redundancy, unwatched};
use blockstone_sys::buffer::Arena;
use blockstone_sys::{clock, usage};

const BLOCK: usize = 8192;
const SIZE: Bytes = Bytes::mib(64);
const LONG: Duration = Duration::from_secs(1);
const ROUNDS: usize = 3;
const FLUSHES: usize = 101;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir_in("/var/tmp")?;
    if std::env::var_os("BLOCKSTONE_ONLY").is_some_and(|only| only == "flush") {
        return flushes(dir.path());
    }
    let bare = dir.path().join("bare");
    std::fs::write(&bare, vec![7; SIZE.get() as usize])?;
    for threads in [1, 2] {
        let disk = FileDisk::open(&bare, false)?;
        let group = group(dir.path(), &format!("read{threads}-"), Redundancy::Normal, false)?;
        let file = group.file("data")?;
        let (mut bare_ns, mut group_ns) = (f64::MAX, f64::MAX);
        // In turn, because the machine's own speed drifts; the best of each counts.
        for _ in 0..ROUNDS {
            bare_ns = bare_ns.min(each_ns(threads, usage::thread_cpu_ns, &|offset, memory| {
                disk.read_at(offset, memory).is_ok()
            }));
            group_ns = group_ns.min(each_ns(threads, usage::thread_cpu_ns, &|offset, memory| {
                file.read(offset, memory, &|_, _| true).is_ok()
            }));
        }
        let what = format!("cached read of 8K on {threads} threads, CPU");
        report(&what, bare_ns, group_ns)?;
    }
    let disk = FileDisk::open(&bare, true)?;
    for redundancy in [Redundancy::External, Redundancy::Normal, Redundancy::High] {
        let group = group(dir.path(), redundancy.name(), redundancy, true)?;
        let file = group.file("data")?;
        let (mut bare_ns, mut group_ns) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            bare_ns = bare_ns.min(each_ns(1, clock::now_ns, &|offset, memory| {
                disk.write_dsync_at(offset, memory).is_ok()
            }));
            group_ns = group_ns.min(each_ns(1, clock::now_ns, &|offset, memory| {
                file.write(offset, memory, true).is_ok()
            }));
        }
        let what = format!("durable write of 8K, {} redundancy", redundancy.name());
        report(&what, bare_ns, group_ns)?;
    }
    Ok(())
}

/// Flushes of redo of several sizes: each piece written durably, compared with plain writes of all
/// pieces followed by one flush of each disk. Medians, in turn.
fn flushes(dir: &Path) -> Result<(), Box<dyn Error>> {
    for (name, redundancy) in [
        ("alone", Redundancy::External),
        ("external", Redundancy::External),
        ("normal", Redundancy::Normal),
    ] {
        let group = group(dir, name, redundancy, true)?;
        let file = group.file("redo")?;
        for kib in [8, 128, 256, 512, 1024, 2048] {
            let bytes = kib << 10;
            let mut memory = Arena::new(1, bytes)?;
            let (mut durable, mut flushed) = (Vec::new(), Vec::new());
            for round in 0..FLUSHES {
                let offset = (round * bytes) as u64 % SIZE.get();
                let start_ns = clock::now_ns();
                file.write(offset, memory.slot(0), true)?;
                let then_ns = clock::now_ns();
                file.write(offset, memory.slot(0), false)?;
                file.sync()?;
                durable.push(then_ns - start_ns);
                flushed.push(clock::now_ns() - then_ns);
            }
            durable.sort_unstable();
            flushed.sort_unstable();
            let us = |sorted: &[u64]| sorted[FLUSHES / 2] as f64 / 1e3;
            let (durable, flushed) = (us(&durable), us(&flushed));
            writeln!(
                std::io::stdout(),
                "redo of {kib:>4} KiB, {name:<8} each durable {durable:>8.0} us, written and \
                 flushed {flushed:>8.0} us, ratio {:.2}",
                flushed / durable
            )?;
        }
    }
    Ok(())
}

fn report(what: &str, bare_ns: f64, group_ns: f64) -> std::io::Result<()> {
    writeln!(
        std::io::stdout(),
        "{what:40} bare {bare_ns:9.0} ns  group {group_ns:9.0} ns  ratio {:.3}",
        group_ns / bare_ns
    )
}

/// Creates a group of three disks next to each other.
fn group(
    dir: &Path,
    name: &str,
    redundancy: Redundancy,
    direct: bool,
) -> Result<DiskGroup, Box<dyn Error>> {
    let disk = |number| DiskSpec::from(dir.join(format!("{name}{number}")));
    let disks = if name == "alone" { 1 } else { 3 };
    let spec = GroupSpec {
        disks: (0..disks).map(disk).collect(),
        redundancy,
        allocation_unit: Bytes::mib(1),
        direct,
    };
    let block = Bytes(BLOCK as u64);
    let file = |name: &str, fine| FileSpec { name: name.into(), size: SIZE, block, fine };
    let files = [file("data", false), file("redo", true)];
    Ok(DiskGroup::create(&spec, &files, &unwatched)?)
}

/// Returns the nanoseconds on `clock` that each operation takes on each of `threads` threads.
fn each_ns(
    threads: usize,
    clock: fn() -> u64,
    operation: &(dyn Fn(u64, &mut [u8]) -> bool + Sync),
) -> f64 {
    let start = Barrier::new(threads);
    let one = |number: usize| {
        let mut memory = Arena::new(1, BLOCK).expect("a block of memory");
        let mut rng = Rng::new(number as u64, 0);
        let (mut count, mut failed) = (0_u64, false);
        start.wait();
        let (from, from_ns) = (Instant::now(), clock());
        while from.elapsed() < LONG {
            for _ in 0..16 {
                let offset = rng.below(SIZE.get() / BLOCK as u64) * BLOCK as u64;
                failed |= !operation(offset, memory.slot(0));
            }
            count += 16;
        }
        assert!(!failed, "an operation failed");
        (clock() - from_ns) as f64 / count as f64
    };
    let one = &one;
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|number| scope.spawn(move || one(number))).collect();
        let ns = running.into_iter().map(|thread| thread.join().expect("no operation panics"));
        ns.sum::<f64>() / threads as f64
    })
}
