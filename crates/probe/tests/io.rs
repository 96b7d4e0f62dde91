//! The probe `io` against loads of known, prime numbers of I/Os on a separate disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::{Bytes, Kind};
use blockstone_probe::io::{self, IoSpec, Wanted};
use blockstone_probe::{Cell, Probe, Row};
use blockstone_testkit::{DeviceSpec, FileKind, FileSystem, LoopDevice, require};

const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;
const FILE_BYTES: u64 = 16 << 20;
const BLOCK_BYTES: u64 = 8192;

/// Held by each test: they watch this process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a separate XFS.
fn disk() -> (LoopDevice, PathBuf) {
    let spec = DeviceSpec {
        size: Bytes::mib(320),
        file_system: Some(FileSystem::Xfs),
        ..DeviceSpec::default()
    };
    let device = LoopDevice::create(spec).unwrap();
    let mount = device.mount_point().unwrap();
    (device, mount)
}

/// Creates a file that was written in full.
fn file(mount: &Path, name: &str) -> PathBuf {
    let path = mount.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    FileKind::Real.create(&path, Bytes(FILE_BYTES)).unwrap();
    path
}

fn watch(tgids: &[u32]) -> (Box<dyn Probe>, Wanted) {
    let wanted = Wanted::default();
    wanted.set(tgids.iter().copied());
    let resolve = Box::new(|_: u32, _: u32, comm: &str| format!("role of {comm}"));
    let spec = IoSpec { wanted: wanted.clone(), resolve, ..IoSpec::everybody() };
    let probe = io::open(spec);
    assert_eq!(probe.unmeasured(), [], "the probe runs");
    (probe, wanted)
}

/// Starts a thread of this name that sends its I/O, block after block, to a file opened for direct
/// I/O.
fn direct(name: &str, path: &Path, count: u64, mut each: impl FnMut(&File, &mut [u8], u64) + Send) {
    let body = || {
        let mut options = File::options();
        let file = options.read(true).write(true).custom_flags(O_DIRECT).open(path).unwrap();
        let mut memory = vec![7; 2 * BLOCK_BYTES as usize];
        let start = memory.as_ptr().align_offset(BLOCK_BYTES as usize);
        let block = &mut memory[start..start + BLOCK_BYTES as usize];
        for index in 0..count {
            each(&file, block, index * BLOCK_BYTES % FILE_BYTES);
        }
    };
    thread::scope(|scope| {
        thread::Builder::new().name(name.into()).spawn_scoped(scope, body).unwrap();
    });
}

fn read(file: &File, block: &mut [u8], offset: u64) {
    file.read_exact_at(block, offset).unwrap();
}

fn write(file: &File, block: &mut [u8], offset: u64) {
    file.write_all_at(block, offset).unwrap();
}

/// Returns the rows of the first round in which the end of every I/O was seen.
///
/// Kernels of some virtual machines let no program run on top of a process that they guard, nor in
/// an interrupt that finds it running. The probe then reports that it missed something, and such a
/// round proves nothing.
fn complete(mut round: impl FnMut() -> Vec<Row>) -> Vec<Row> {
    for _ in 0..20 {
        let rows = round();
        let ours = rows.iter().filter(|row| !row.object.contains("kworker"));
        let missed: i64 = ours.map(|row| value(row, "dropped") + value(row, "in_flight")).sum();
        if missed == 0 {
            return rows;
        }
    }
    panic!("something was missed in each of 20 rounds");
}

/// Sums over the rows whose object contains all given parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IoSums {
    ios: i64,
    bytes: i64,
    asked_bytes: i64,
    submitted: i64,
    queue_ns: i64,
    device_ns: i64,
    elapsed_ns: i64,
    in_buckets: i64,
}

fn rows(probe: &mut dyn Probe) -> Vec<Row> {
    // A thread that waits for a request is woken a moment before the end of the request is
    // accounted for.
    thread::sleep(Duration::from_millis(10));
    let mut rows = Vec::new();
    probe.sample(&mut rows);
    rows
}

fn value(row: &Row, column: &str) -> i64 {
    let index = io::SCHEMA.columns.iter().position(|known| known.name == column).unwrap();
    match row.cells[index] {
        Cell::Value(value) => value,
        _ => 0,
    }
}

fn seen(rows: &[Row], parts: &[&str]) -> IoSums {
    let mut seen = IoSums::default();
    for row in rows.iter().filter(|row| parts.iter().all(|part| row.object.contains(part))) {
        seen.ios += value(row, "ios");
        seen.bytes += value(row, "bytes");
        seen.asked_bytes += value(row, "asked_bytes");
        seen.submitted += value(row, "submitted");
        seen.queue_ns += value(row, "queue_ns");
        seen.device_ns += value(row, "device_ns");
        seen.elapsed_ns += value(row, "elapsed_ns");
        let buckets = io::SCHEMA.columns.iter().filter(|c| io::bucket_start_ns(c.name).is_some());
        seen.in_buckets += buckets.map(|column| value(row, column.name)).sum::<i64>();
    }
    seen
}

fn objects(rows: &[Row]) -> String {
    let line = |row: &Row| format!("{} {}\n", row.object, value(row, "ios"));
    rows.iter().map(line).collect()
}

/// Returns the bytes that the kernel charged to this process as storage I/O: read, written.
fn charged() -> (i64, i64) {
    let text = fs::read_to_string("/proc/self/io").unwrap();
    let field = |key: &str| -> i64 {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().parse().unwrap()
    };
    (field("read_bytes:"), field("write_bytes:"))
}

#[test]
fn prime_numbers_of_direct_ios_are_counted_exactly_in_both_layers() {
    require!(Root, Loop, Xfs, Bpf);
    let _alone = alone();
    let (_device, mount) = disk();
    let (data, log) = (file(&mount, "base/5/16384"), file(&mount, "pg_wal/0000000100000001"));
    let (mut wall_ns, mut charged_bytes) = (0, [0; 2]);
    let rows = complete(|| {
        let (mut probe, _) = watch(&[std::process::id()]);
        let (start, before) = (Instant::now(), charged());
        thread::scope(|scope| {
            scope.spawn(|| direct("reader", &data, 1009, read));
            scope.spawn(|| direct("writer", &data, 757, write));
            scope.spawn(|| {
                direct("committer", &log, 251, |file, block, offset| {
                    write(file, block, offset);
                    file.sync_data().unwrap();
                });
            });
        });
        let after = charged();
        wall_ns = start.elapsed().as_nanos() as i64;
        charged_bytes = [after.0 - before.0, after.1 - before.1];
        rows(&mut *probe)
    });
    let table = objects(&rows);
    let tracing = rows.iter().find(|row| row.object == "tracing").unwrap();
    let data = format!("{} | data | ", data.display());
    let log = format!("{}/pg_wal/* | redo | ", mount.display());
    let mut layers = [IoSums::default(); 2];
    for (role, file, operation, ios) in [
        ("reader", &data, "read", 1009),
        ("writer", &data, "write", 757),
        ("committer", &log, "write", 251),
        ("committer", &log, "flush", 251),
    ] {
        for (layer, sum) in ["block", "system call"].iter().zip(&mut layers) {
            let object = format!("{layer} | role of {role} | {file}{operation} | sync");
            let seen = seen(&rows, &[&object]);
            let bytes = if operation == "flush" { 0 } else { ios * BLOCK_BYTES as i64 };
            assert_eq!((seen.ios, seen.bytes), (ios, bytes), "{object} of:\n{table}");
            assert_eq!(seen.in_buckets, ios, "{object}");
            assert!(seen.elapsed_ns > ios * 1000 && seen.elapsed_ns < wall_ns, "{seen:?}");
            if *layer == "block" {
                assert_eq!(seen.queue_ns + seen.device_ns, seen.elapsed_ns, "{object}");
                assert!(seen.device_ns > ios * 1000, "{seen:?}");
            } else {
                assert_eq!(seen.asked_bytes, bytes, "{object}");
            }
            sum.elapsed_ns += seen.elapsed_ns;
        }
    }
    assert!(layers[1].elapsed_ns > layers[0].elapsed_ns, "a call lasts longer than its request");
    let read = seen(&rows, &["block | ", &data, " | read"]).bytes;
    let written = seen(&rows, &["block | role of ", " | write"]).bytes
        - seen(&rows, &["block | role of kworker", " | write"]).bytes;
    for (seen, charged) in [read, written].into_iter().zip(charged_bytes) {
        let off = (seen - charged).abs() as f64 / charged as f64;
        assert!(off < 0.003, "{seen} seen, {charged} in /proc/self/io:\n{table}");
    }
    assert!(value(tracing, "runs") > 2 * (1009 + 757 + 251 + 251));
    assert!((1..wall_ns).contains(&value(tracing, "own_ns")));
}

#[test]
fn buffered_writes_are_charged_to_their_file_when_they_are_synced() {
    require!(Root, Loop, Xfs, Bpf);
    let _alone = alone();
    let (_device, mount) = disk();
    let path = mount.join("base/5/16390");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let body = || {
        let mut file = File::create(&path).unwrap();
        for _ in 0..509 {
            file.write_all(&[7; BLOCK_BYTES as usize]).unwrap();
        }
        file.sync_all().unwrap();
    };
    let rows = complete(|| {
        let _ = fs::remove_file(&path);
        let (mut probe, _) = watch(&[std::process::id()]);
        thread::scope(|scope| {
            thread::Builder::new().name("buffered".into()).spawn_scoped(scope, body).unwrap();
        });
        rows(&mut *probe)
    });
    let of = |layer: &str, operation: &str| {
        let object = format!("{layer} | role of buffered | {} | data", path.display());
        seen(&rows, &[&object, operation])
    };
    let bytes = 509 * BLOCK_BYTES as i64;
    assert_eq!(of("system call", "write | sync").ios, 509);
    assert_eq!(of("block", "write | sync").bytes, bytes, "{}", objects(&rows));
    assert!(of("block", "write | sync").ios < 509, "pages are written together");
    assert_eq!(of("system call", "flush | sync").ios, 1);
}

/// Starts dd, which reads the file once it gets a line; `forks` says whether a child of it does.
fn dd(path: &Path, count: u32, forks: bool) -> Child {
    let exec = if forks { "" } else { "exec " };
    let script = format!(
        "read go; {exec}dd if={} of=/dev/null iflag=direct bs=8k count={count} 2>/dev/null; true",
        path.display()
    );
    Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap()
}

fn go(children: [&mut Child; 2]) {
    for child in children {
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn only_wanted_processes_and_their_children_are_counted() {
    require!(Root, Loop, Xfs, Bpf);
    let _alone = alone();
    let (_device, mount) = disk();
    let (one, other) = (file(&mount, "one"), file(&mount, "other"));
    let rows = complete(|| {
        let (mut first, mut second) = (dd(&one, 101, true), dd(&other, 103, false));
        let (mut probe, wanted) = watch(&[first.id()]);
        go([&mut first, &mut second]);
        // Now another process is wanted, and then all of them.
        let (mut first, mut second) = (dd(&one, 107, false), dd(&other, 109, false));
        wanted.set([second.id()]);
        rows(&mut *probe);
        go([&mut first, &mut second]);
        let (mut first, mut second) = (dd(&one, 113, false), dd(&other, 127, false));
        wanted.set([]);
        rows(&mut *probe);
        go([&mut first, &mut second]);
        rows(&mut *probe)
    });
    for layer in ["block", "system call"] {
        for (path, reads) in [(&one, 101 + 113), (&other, 109 + 127)] {
            let object = format!("{layer} | role of dd | {} | other | read", path.display());
            assert_eq!(seen(&rows, &[&object]).ios, reads, "{object} of:\n{}", objects(&rows));
        }
    }
}

#[test]
fn an_ended_thread_keeps_counting_and_nothing_ever_falls() {
    require!(Root, Loop, Xfs, Bpf);
    let _alone = alone();
    let (_device, mount) = disk();
    let data = file(&mount, "data");
    let rows = complete(|| {
        let (mut probe, _) = watch(&[std::process::id()]);
        let mut last: Vec<Row> = Vec::new();
        for count in [101, 103, 107] {
            direct("short-lived", &data, count, read);
            // Long enough for an ended thread to be found and settled.
            for _ in 0..4 {
                let now = rows(&mut *probe);
                rises(&last, &now);
                last = now;
            }
        }
        last
    });
    for layer in ["block", "system call"] {
        let object = format!("{layer} | role of short-lived | {}", data.display());
        let seen = seen(&rows, &[&object]);
        assert_eq!((seen.ios, seen.in_buckets), (311, 311), "{}", objects(&rows));
    }
}

fn rises(before: &[Row], now: &[Row]) {
    for before in before {
        let same = now.iter().find(|row| row.object == before.object).expect("a row stays");
        for column in io::SCHEMA.columns.iter().filter(|column| column.kind == Kind::Counter) {
            let (before, now) = (value(before, column.name), value(same, column.name));
            assert!(now >= before, "{}: {before}, {now}", column.name);
        }
    }
}

#[test]
fn requests_of_a_ring_are_asynchronous_and_find_their_file() {
    require!(Root, Loop, Xfs, Bpf, Uring, Fio);
    let _alone = alone();
    let (_device, mount) = disk();
    let data = file(&mount, "data");
    let rows = complete(|| {
        let mut fio = Command::new("sh");
        fio.args(["-c", "read go; exec fio \"$@\"", "sh", "--name=ring", "--ioengine=io_uring"]);
        fio.args(["--direct=1", "--rw=randread", "--bs=8k", "--iodepth=16", "--output=/dev/null"]);
        fio.arg(format!("--filename={}", data.display())).arg(format!("--size={FILE_BYTES}"));
        let mut fio = fio.stdin(Stdio::piped()).spawn().unwrap();
        let (mut probe, _) = watch(&[fio.id()]);
        fio.stdin.take().unwrap().write_all(b"go\n").unwrap();
        assert!(fio.wait().unwrap().success());
        rows(&mut *probe)
    });
    let object = format!("block | role of fio | {} | other | read | async", data.display());
    let requests = seen(&rows, &[&object]);
    assert_eq!(requests.bytes, FILE_BYTES as i64, "{}", objects(&rows));
    let calls = seen(&rows, &["system call | role of fio | several files", "submit | async"]);
    assert_eq!(calls.submitted, (FILE_BYTES / BLOCK_BYTES) as i64);
    assert!(requests.ios <= calls.submitted && requests.ios > calls.submitted / 2);
    assert_eq!(calls.in_buckets, calls.ios, "some only wait");
}
