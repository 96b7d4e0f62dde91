//! The probe `active_set` against a load on a range of known size, on a separate disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs::File;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_probe::active_set::{self, Device, SCHEMA};
use blockstone_probe::{Cell, Probe, Row};
use blockstone_sys::file::{Access, BlockFile};
use blockstone_testkit::{DeviceSpec, FileKind, FileSystem, LoopDevice, require};

const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;
const FILE_BYTES: u64 = 64 << 20;
/// More units than the probe can keep.
const LARGE_BYTES: u64 = 320 << 20;
const UNIT_BYTES: u64 = 4096;
const BLOCK_BYTES: u64 = 8192;
/// Begins at an odd block of the file.
const HOT: std::ops::Range<u64> = 1001..4073;
const HOT_BYTES: f64 = ((HOT.end - HOT.start) * BLOCK_BYTES) as f64;

/// Creates a separate XFS with a file that was written in full.
fn disk(bytes: u64) -> (LoopDevice, PathBuf) {
    let (size, file_system) = (Bytes::mib(512), Some(FileSystem::Xfs));
    let device =
        LoopDevice::create(DeviceSpec { size, file_system, ..DeviceSpec::default() }).unwrap();
    let path = device.mount_point().unwrap().join("hot");
    FileKind::Real.create(&path, Bytes(bytes)).unwrap();
    let file = BlockFile::open(&path, Access::ReadWrite, false).unwrap();
    file.fsync().unwrap();
    file.drop_cached().unwrap();
    (device, path)
}

/// Reads each block of the range `times` on average, at random. Every block is read at least once.
fn read_hot(path: &Path, range: std::ops::Range<u64>, times: u64) -> u64 {
    let file = File::options().read(true).custom_flags(O_DIRECT).open(path).unwrap();
    let mut memory = vec![0; 2 * BLOCK_BYTES as usize];
    let start = memory.as_ptr().align_offset(BLOCK_BYTES as usize);
    let block = &mut memory[start..start + BLOCK_BYTES as usize];
    let blocks = range.end - range.start;
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let count = blocks * times;
    for _ in 0..count {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let offset = (range.start + random % blocks) * BLOCK_BYTES;
        file.read_exact_at(block, offset).unwrap();
    }
    count
}

fn sample(probe: &mut dyn Probe) -> Vec<Row> {
    thread::sleep(Duration::from_millis(10));
    let mut rows = Vec::new();
    probe.sample(&mut rows);
    rows
}

fn value(rows: &[Row], object: &str, column: &str) -> u64 {
    let index = SCHEMA.columns.iter().position(|known| known.name == column).unwrap();
    let Some(row) = rows.iter().find(|row| row.object == object) else { return 0 };
    match row.cells[index] {
        Cell::Value(value) => value.try_into().unwrap(),
        _ => panic!("{object} has no {column}: {row:?}"),
    }
}

struct Watched {
    // Unmounted and removed when dropped.
    device: LoopDevice,
    file: PathBuf,
    probe: Box<dyn Probe>,
}

impl Watched {
    /// Opens the probe and takes the first look, which begins the first window.
    fn new(file_bytes: u64) -> Self {
        let (device, file) = disk(file_bytes);
        let of_file = Device::at(&file).unwrap().unwrap();
        assert_eq!(Device::at(device.device()).unwrap(), Some(of_file));
        let probe = active_set::open(Path::new("/"), &[of_file]);
        assert_eq!(probe.unmeasured().first(), None, "the probe runs");
        let mut watched = Self { device, file, probe };
        watched.look();
        watched
    }

    fn look(&mut self) -> Vec<Row> {
        let rows = sample(self.probe.as_mut());
        assert_eq!(value(&rows, "tracing", "lost"), 0);
        rows
    }

    fn disk(&self) -> &str {
        self.device.device().to_str().unwrap()
    }

    fn name(&self) -> &str {
        self.file.to_str().unwrap()
    }
}

fn within_two_percent(found: u64, expected: f64) {
    assert!((found as f64 / expected - 1.0).abs() < 0.02, "{found} of {expected}");
}

#[test]
fn a_hot_range_of_known_size_is_found_within_two_percent() {
    require!(Root, Bpf, Loop, Xfs);
    let mut watched = Watched::new(FILE_BYTES);
    let ios = read_hot(&watched.file, HOT, 6);
    let rows = watched.look();
    let of = |column| value(&rows, watched.name(), column);
    assert_eq!((of("size_bytes"), of("written_bytes")), (FILE_BYTES, 0));
    assert_eq!(value(&rows, "tracing", "windows"), 1);
    assert_eq!(of("accesses"), ios * BLOCK_BYTES / UNIT_BYTES);
    within_two_percent(of("touched_bytes"), HOT_BYTES);
    let disk = |column| value(&rows, watched.disk(), column);
    assert!(disk("accesses") >= of("accesses") && disk("touched_bytes") >= of("touched_bytes"));
    // Uniform reads: half of them go to slightly less than half of the range.
    assert!(of("hot_half_bytes") < of("touched_bytes") / 2);
    assert!(of("hot_half_bytes") > of("touched_bytes") / 4);
}

#[test]
fn what_moves_on_is_no_longer_the_same() {
    require!(Root, Bpf, Loop, Xfs);
    let mut watched = Watched::new(FILE_BYTES);
    read_hot(&watched.file, HOT, 6);
    let first = watched.look();
    // A quarter of the range is new, a quarter is no longer read.
    let quarter = (HOT.end - HOT.start) / 4;
    read_hot(&watched.file, HOT.start + quarter..HOT.end + quarter, 6);
    let second = watched.look();
    let third = watched.look();
    let of = |rows: &[Row], column| value(rows, watched.name(), column);
    assert_eq!(of(&first, "compared_bytes"), 0, "nothing to compare with");
    let touched = of(&second, "touched_bytes") - of(&first, "touched_bytes");
    assert_eq!(of(&second, "compared_bytes"), touched);
    within_two_percent(of(&second, "again_bytes"), HOT_BYTES * 0.75);
    // Nothing was read, so the third window is empty.
    assert_eq!(of(&third, "touched_bytes"), of(&second, "touched_bytes"));
    assert_eq!(value(&third, "tracing", "windows"), 3);
}

#[test]
fn a_sample_stands_for_what_does_not_fit() {
    require!(Root, Bpf, Loop, Xfs);
    let mut watched = Watched::new(LARGE_BYTES);
    // Every unit of the file, more than the probe can keep: large requests through the page cache.
    let read = std::fs::read(&watched.file).unwrap();
    assert_eq!(read.len() as u64, LARGE_BYTES);
    let rows = watched.look();
    let of = |column| value(&rows, watched.name(), column);
    assert!(of("sampled_units") < LARGE_BYTES / UNIT_BYTES, "{}", of("sampled_units"));
    within_two_percent(of("touched_bytes"), LARGE_BYTES as f64);
    within_two_percent(of("accesses"), (LARGE_BYTES / UNIT_BYTES) as f64);
}

#[test]
fn files_that_one_request_writes_together_keep_their_own_parts() {
    require!(Root, Bpf, Loop, Xfs);
    let mut watched = Watched::new(1 << 20);
    let dir = watched.file.parent().unwrap().to_owned();
    let files: Vec<_> = (0..8).map(|index| dir.join(format!("small-{index}"))).collect();
    for file in &files {
        std::fs::write(file, vec![7; 2 * UNIT_BYTES as usize]).unwrap();
    }
    rustix::fs::syncfs(File::open(&dir).unwrap()).unwrap();
    let rows = watched.look();
    for file in &files {
        let of = |column| value(&rows, file.to_str().unwrap(), column);
        assert_eq!(of("written_bytes"), 2 * UNIT_BYTES, "{}", file.display());
        assert_eq!(of("size_bytes"), 2 * UNIT_BYTES);
    }
}
