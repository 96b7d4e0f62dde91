//! The set-ups: files, memory, caches, file systems, limits, flushes, neighbours, databases.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use blockstone_base::Bytes;
use blockstone_testkit::{
    Backing, Caps, CpuHog, DeviceSpec, FileKind, FileSystem, FuseCache, FuseMounts, LoopDevice,
    ScratchDir, VolatileDevice, WriteCache, ZramDevice, unmount,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Measure, Must, Setup};
use crate::lab::measure::Product;

/// Larger than the cache that a single disk is assumed to have.
const SIZE: Bytes = Bytes::mib(320);
const NO_CAPS: Caps =
    Caps { read_iops: None, write_iops: None, read_bytes_per_s: None, write_bytes_per_s: None };
const MEMORY: &[&str] = &["memory-backed", "memory-test"];
const BUFFERED: &[&str] = &["not-direct", "buffered-direct"];
/// For a device that holds data.
const READS: &[&str] = &["--read-only"];
const NEIGHBOURS: &[&str] = &["noisy-neighbour", "run-queue-delay"];

pub(super) const fn deceptive(
    name: &'static str,
    rules: &'static [&'static str],
    measure: Measure,
) -> Setup {
    Setup { name, must: Must::Fail, rules, measure }
}

/// Makes a set-up that cannot be told from an honest one by anything visible from above.
const fn hidden(name: &'static str, rules: &'static [&'static str], measure: Measure) -> Setup {
    Setup { name, must: Must::NotPass, rules, measure }
}

/// Makes a set-up for which no rule may fail.
pub(super) const fn honest(name: &'static str, measure: Measure) -> Setup {
    Setup { name, must: Must::NotFail, rules: &[], measure }
}

/// Makes a set-up under a constant cap, which other rules may report.
const fn steady(name: &'static str, measure: Measure) -> Setup {
    Setup { name, must: Must::NotFail, rules: &["not-preconditioned"], measure }
}

/// Makes a set-up that flushes. Other rules may report other things, which are true: it is served
/// by a program, or is so small a database that its reads come from memory.
pub(super) const fn flushes(name: &'static str, measure: Measure) -> Setup {
    Setup { name, must: Must::NotFail, rules: &["unsafe-commits", "lying-flush"], measure }
}

pub(super) const ALL: &[Setup] = &[
    deceptive("a file without blocks", &["hole"], |it| file(it, FileKind::Hole)),
    deceptive("a file never written", &["unwritten"], |it| file(it, FileKind::Fallocated)),
    deceptive("a file of zeros", &["compressible"], |it| file(it, FileKind::Zero)),
    deceptive("a file of text", &["compressible"], |it| repeated(it, b"lorem ipsum dolor sit ")),
    deceptive("a file of one block", &["compressible"], of_one_block),
    honest("a file of random data", |it| file(it, FileKind::Real)),
    deceptive("a cached file, buffered", &["memory-test"], |it| cached(it, &["--buffered"])),
    honest("the same file, direct", |it| cached(it, &[])),
    deceptive("a directory on a tmpfs", MEMORY, |it| {
        calibrate_in(it, &ScratchDir::in_memory()?, &["--size", "320M"])
    }),
    deceptive("an overlay on a tmpfs", MEMORY, |it| on_overlay(it, &ScratchDir::in_memory()?)),
    honest("an overlay on a disk", |it| on_overlay(it, &ScratchDir::on_disk()?)),
    deceptive("files of a program", &["network-file-system"], |it| {
        let mounts = FuseMounts::create(&[FuseCache::NOTHING])?;
        calibrate(it, &mounts.paths()[0], &["--size", "64M"])
    }),
    deceptive("a loop device over a tmpfs", MEMORY, |it| on_device(it, Backing::Memory)),
    deceptive("a zram device", MEMORY, |it| {
        calibrate(it, ZramDevice::create(SIZE)?.device(), READS)
    }),
    deceptive("a disk in its host's cache", &["memory-test", "cache-suspected"], |it| {
        on_device(it, Backing::PageCache)
    }),
    deceptive("a device of zeros", &["compressible"], |it| {
        let device = LoopDevice::create(bare(NO_CAPS))?;
        device.blank()?;
        calibrate(it, device.device(), READS)
    }),
    honest("a loop device over a disk", |it| on_device(it, Backing::Disk)),
    deceptive("btrfs with checksums", BUFFERED, |it| in_file_system(it, FileSystem::Btrfs, None)),
    honest("btrfs without checksums", |it| in_file_system(it, FileSystem::Btrfs, Some("+C"))),
    deceptive("ext4 that journals data", BUFFERED, |it| {
        in_file_system(it, FileSystem::Ext4DataJournal, None)
    }),
    honest("ext4", |it| in_file_system(it, FileSystem::Ext4, None)),
    honest("XFS", |it| in_file_system(it, FileSystem::Xfs, None)),
    deceptive("a cap of 3,000 reads a second", &["throttled"], |it| {
        capped(it, Caps { read_iops: Some(3_000), ..NO_CAPS })
    }),
    deceptive("a cap of 3,137 reads a second", &["throttled"], |it| {
        capped(it, Caps { read_iops: Some(3_137), ..NO_CAPS })
    }),
    deceptive("a cap of 500 writes a second", &["throttled"], |it| {
        capped(it, Caps { write_iops: Some(500), ..NO_CAPS })
    }),
    deceptive("a cap of 20 MB/s read", &["throttled"], |it| {
        capped(it, Caps { read_bytes_per_s: Some(20_000_000), ..NO_CAPS })
    }),
    deceptive("credits that end", &["burst", "throttled"], credits_that_end),
    deceptive("a write cache that fills up", &["not-preconditioned"], |it| {
        laid_out(it, Some(10_000_000))
    }),
    steady("a device that writes as fast at all times", |it| laid_out(it, None)),
    deceptive("more than its link carries", &["above-link"], |it| {
        with_file(it, FileKind::Real, &["--link-mbps", "10"])
    }),
    hidden("a cache that ignores flushes", &["lying-flush"], |it| volatile(it, WriteCache::Lying)),
    flushes("a cache that flushes", |it| volatile(it, WriteCache::Honest)),
    deceptive("programs on all processors", NEIGHBOURS, |it| {
        let _hogs = CpuHog::start(8)?;
        file(it, FileKind::Real)
    }),
    deceptive("another reader of the device", &["noisy-neighbour"], beside_a_reader),
    deceptive("a process that was stopped", &["clock-pause", "unsteady"], stopped),
    deceptive("a run in its cache", &["mostly-cached"], |it| {
        run(it, &ScratchDir::on_disk()?, &["--cache", "512M", "--scale", "64M", "--schemas", "1"])
    }),
    deceptive("a run on a tmpfs", MEMORY, |it| {
        run(it, &ScratchDir::in_memory()?, &["--scale", "64M", "--cache", "16M"])
    }),
    deceptive("a run beside programs", NEIGHBOURS, |it| {
        let _hogs = CpuHog::start(8)?;
        run(it, &ScratchDir::on_disk()?, &[])
    }),
    deceptive("a run beside a copy", &["noisy-neighbour"], run_beside_a_copy),
    deceptive("a run under a cap on reads", &["throttled"], |it| {
        run_capped(it, Caps { read_iops: Some(3_000), ..NO_CAPS })
    }),
    deceptive("a run under a cap on writes", &["throttled"], |it| {
        run_capped(it, Caps { write_iops: Some(300), ..NO_CAPS })
    }),
    deceptive("a run under a cap on bytes", &["throttled"], |it| {
        run_capped(it, Caps { read_bytes_per_s: Some(2_000_000), ..NO_CAPS })
    }),
    honest("a run on a disk", |it| run(it, &ScratchDir::on_disk()?, &[])),
    deceptive("SQLite that does not flush", &["unsafe-commits"], |it| {
        sqlite(it, &["--pragma", "synchronous=off"])
    }),
    flushes("SQLite", |it| sqlite(it, &[])),
    deceptive("PostgreSQL that does not flush", &["unsafe-commits"], |it| {
        database(it, "postgres:scratch", &["--pg-conf", "fsync=off"])
    }),
    deceptive("PostgreSQL that checkpoints", &["maintenance"], |it| {
        let often = ["--pg-conf", "max_wal_size=32MB", "--pg-conf", "min_wal_size=32MB"];
        database(it, "postgres:scratch", &[&often[..], &["--update-pct", "100"]].concat())
    }),
    flushes("PostgreSQL", |it| database(it, "postgres:scratch", &[])),
];

/// Completes `program` to a `calibrate --quick`, or a short `run`.
fn command(product: &Product<'_>, mut program: Command, verb: &str, words: &[&str]) -> Command {
    program.args([verb, "--json", "--runs-dir"]).arg(product.runs_dir());
    let short: &[&str] = if verb == "calibrate" { &["--quick"] } else { &["--for", "8s"] };
    program.args(short).args(words);
    program
}

fn calibrate(product: &Product<'_>, path: &Path, words: &[&str]) -> Result<Value> {
    let program = Command::new(product.binary());
    product.document(command(product, program, "calibrate", words).arg(path))
}

fn calibrate_in(product: &Product<'_>, dir: &ScratchDir, words: &[&str]) -> Result<Value> {
    calibrate(product, dir.path(), words)
}

fn run(product: &Product<'_>, dir: &ScratchDir, words: &[&str]) -> Result<Value> {
    let program = Command::new(product.binary());
    product.document(command(product, program, "run", words).arg(dir.path()))
}

/// Runs `calibrate` on a device under its caps, while `meanwhile` acts.
fn under_caps(
    product: &Product<'_>,
    device: &LoopDevice,
    words: &[&str],
    meanwhile: impl FnOnce(&Child) -> Result<()>,
) -> Result<Value> {
    let program = device.command(product.binary());
    let path = device.mount_point().unwrap_or_else(|| device.device().to_owned());
    product.document_while(command(product, program, "calibrate", words).arg(path), meanwhile)
}

fn file(product: &Product<'_>, kind: FileKind) -> Result<Value> {
    with_file(product, kind, &[])
}

fn with_file(product: &Product<'_>, kind: FileKind, words: &[&str]) -> Result<Value> {
    let dir = ScratchDir::on_disk()?;
    let path = dir.path().join("zoo.dat");
    kind.create(&path, SIZE)?;
    calibrate(product, &path, words)
}

/// Measures a file that repeats `pattern`.
fn repeated(product: &Product<'_>, pattern: &[u8]) -> Result<Value> {
    let dir = ScratchDir::on_disk()?;
    let path = dir.path().join("zoo.dat");
    let mut file = File::create_new(&path).context("create a file")?;
    let piece: Vec<u8> = pattern.iter().copied().cycle().take(1 << 20).collect();
    for _ in 0..SIZE.get() >> 20 {
        file.write_all(&piece).context("write a file")?;
    }
    file.sync_all().context("sync a file")?;
    calibrate(product, &path, &[])
}

/// Measures a file that repeats one incompressible block.
fn of_one_block(product: &Product<'_>) -> Result<Value> {
    let mut block = vec![0; 8192];
    let source = File::open("/dev/urandom");
    source.and_then(|mut file| file.read_exact(&mut block)).context("read random bytes")?;
    repeated(product, &block)
}

fn cached(product: &Product<'_>, words: &[&str]) -> Result<Value> {
    let dir = ScratchDir::on_disk()?;
    let path = dir.path().join("zoo.dat");
    FileKind::Real.create(&path, SIZE)?;
    warm(&path)?;
    calibrate(product, &path, words)
}

/// Reads a whole file into the page cache.
fn warm(path: &Path) -> Result<()> {
    let read = File::open(path).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
    read.map(drop).with_context(|| format!("read {}", path.display()))
}

fn on_device(product: &Product<'_>, backing: Backing) -> Result<Value> {
    let device = LoopDevice::create_on(backing, bare(NO_CAPS))?;
    if backing == Backing::PageCache {
        warm(&device.backing_file())?;
    }
    calibrate(product, device.device(), READS)
}

fn bare(caps: Caps) -> DeviceSpec {
    DeviceSpec { size: Bytes::mib(512), file_system: None, caps }
}

fn mounted(file_system: FileSystem, caps: Caps) -> DeviceSpec {
    DeviceSpec { size: Bytes::mib(768), file_system: Some(file_system), caps }
}

/// Measures a directory in a file system of its own, to which chattr gives `attribute`.
fn in_file_system(
    product: &Product<'_>,
    file_system: FileSystem,
    attribute: Option<&str>,
) -> Result<Value> {
    let device = LoopDevice::create(mounted(file_system, NO_CAPS))?;
    let dir = device.mount_point().context("find the mount point")?.join("data");
    fs::create_dir(&dir).context("create a directory")?;
    if let Some(attribute) = attribute {
        let status = Command::new("chattr").arg(attribute).arg(&dir).status();
        ensure!(status.context("start chattr")?.success(), "chattr {attribute} failed");
    }
    calibrate(product, &dir, &["--size", "320M"])
}

fn capped(product: &Product<'_>, caps: Caps) -> Result<Value> {
    let device = LoopDevice::create(mounted(FileSystem::Ext4, caps))?;
    under_caps(product, &device, &["--size", "320M"], |_| Ok(()))
}

/// Measures a volume that serves 20,000 reads a second until its credits end, then 2,000.
fn credits_that_end(product: &Product<'_>) -> Result<Value> {
    let caps = |iops| Caps { read_iops: Some(iops), ..NO_CAPS };
    let mut device = LoopDevice::create(bare(caps(20_000)))?;
    let (program, path) = (device.command(product.binary()), device.device().to_owned());
    let mut command = command(product, program, "calibrate", READS);
    product.document_while(command.arg(path), |_| {
        sleep(Duration::from_secs(7));
        Ok(device.set_caps(caps(2_000))?)
    })
}

/// Measures a volume that writes 60 MB/s, or only `then` from the middle of the layout on.
fn laid_out(product: &Product<'_>, then: Option<u64>) -> Result<Value> {
    let caps = |write_bytes_per_s| Caps { write_bytes_per_s, ..NO_CAPS };
    let fast = Some(60_000_000);
    let mut device = LoopDevice::create(mounted(FileSystem::Ext4, caps(fast)))?;
    let path = device.mount_point().context("find the mount point")?;
    let program = device.command(product.binary());
    let mut command = command(product, program, "calibrate", &["--size", "320M"]);
    product.document_while(command.arg(path), |_| {
        sleep(Duration::from_secs(3));
        Ok(device.set_caps(caps(then.or(fast)))?)
    })
}

fn volatile(product: &Product<'_>, cache: WriteCache) -> Result<Value> {
    let mut device = VolatileDevice::create(SIZE)?;
    device.cut_under(&mut || ())?;
    device.set_write_cache(cache);
    device.power_on()?;
    let path = device.device().context("find the device")?;
    // Without `--quick`, so that flushes are timed against the amount written before them.
    let mut program = Command::new(product.binary());
    program.args(["calibrate", "--json", "--runs-dir"]).arg(product.runs_dir());
    product.document(program.arg(path).arg("--destroy").arg(path))
}

/// A process that is killed on drop.
struct Beside(Child);

impl Beside {
    /// Starts a shell script whose `$0` is `path`.
    fn start(script: &str, path: &Path) -> Result<Self> {
        let mut shell = Command::new("sh");
        shell.args([OsStr::new("-c"), script.as_ref(), path.as_os_str()]);
        let started = shell.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        started.map(Self).context("start a program beside it")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Both calls fail only if the process has already ended on its own.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn beside_a_reader(product: &Product<'_>) -> Result<Value> {
    const AGAIN: &str = "while [ -d /proc/$PPID ]; do \
                         dd if=\"$0\" of=/dev/null bs=256k iflag=direct 2>/dev/null; done";
    let device = LoopDevice::create(bare(NO_CAPS))?;
    let _reader = Beside::start(AGAIN, device.device())?;
    calibrate(product, device.device(), READS)
}

/// Simulates a virtual machine that is paused: nothing happens for two seconds, three times.
fn stopped(product: &Product<'_>) -> Result<Value> {
    let device = LoopDevice::create(bare(NO_CAPS))?;
    under_caps(product, &device, READS, |child| {
        let pid = Pid::from_child(child);
        for _ in 0..3 {
            sleep(Duration::from_secs(3));
            kill_process(pid, Signal::STOP).context("stop it")?;
            sleep(Duration::from_secs(2));
            kill_process(pid, Signal::CONT).context("let it go on")?;
        }
        Ok(())
    })
}

fn run_capped(product: &Product<'_>, caps: Caps) -> Result<Value> {
    let device = LoopDevice::create(mounted(FileSystem::Ext4, caps))?;
    let words = ["--scale", "64M", "--cache", "16M", "--update-pct", "50"];
    let mut command = command(product, device.command(product.binary()), "run", &words);
    product.document(command.arg(device.mount_point().context("find the mount point")?))
}

fn run_beside_a_copy(product: &Product<'_>) -> Result<Value> {
    const AGAIN: &str = "while [ -d /proc/$PPID ]; do \
                         dd if=\"$0\" of=\"$0.copy\" bs=256k iflag=direct oflag=direct; \
                         done 2>/dev/null";
    let device = LoopDevice::create(mounted(FileSystem::Ext4, NO_CAPS))?;
    let path = device.mount_point().context("find the mount point")?;
    let source = path.join("source.dat");
    FileKind::Real.create(&source, Bytes::mib(128))?;
    let _copy = Beside::start(AGAIN, &source)?;
    let words = ["--scale", "64M", "--cache", "16M"];
    let mut command = command(product, Command::new(product.binary()), "run", &words);
    product.document(command.arg(path))
}

/// Measures a directory of an overlay whose upper layer is in `layers`.
fn on_overlay(product: &Product<'_>, layers: &ScratchDir) -> Result<Value> {
    let [lower, upper, work, merged] =
        ["lower", "upper", "work", "merged"].map(|name| layers.path().join(name));
    for dir in [&lower, &upper, &work, &merged] {
        fs::create_dir(dir).context("create a layer")?;
    }
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let mut mount = Command::new("mount");
    mount.args(["-t", "overlay", "-o", &options, "overlay"]).arg(&merged);
    ensure!(mount.status().context("start mount")?.success(), "an overlay cannot be mounted");
    let measured = calibrate(product, &merged, &["--size", "320M"]);
    unmount(&merged)?;
    measured
}

fn sqlite(product: &Product<'_>, words: &[&str]) -> Result<Value> {
    let dir = ScratchDir::on_disk()?;
    database(product, &format!("sqlite:{}", dir.path().display()), words)
}

fn database(product: &Product<'_>, target: &str, words: &[&str]) -> Result<Value> {
    let small = ["--target", target, "--scale", "32M", "--schemas", "2", "--threads", "2"];
    let mut command = command(product, Command::new(product.binary()), "run", &small);
    product.document(command.args(words).current_dir(product.scratch()))
}
