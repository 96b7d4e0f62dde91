//! Probes checked against a second source of the same figures, and on files of other kernels.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::Bytes;
use blockstone_probe::registry::Entry;
use blockstone_probe::{
    Cell, Context, Probe, Row, Unmeasured, block, host, memory, process, resources,
};
use blockstone_sys::survey;
use blockstone_testkit::{
    Caps, CpuHog, DeviceSpec, FileKind, LoopDevice, ScratchDir, ZramDevice, require,
};

const O_DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;
const FILE_BYTES: u64 = 64 << 20;

/// Held by a test that counts what this process reads.
static READING: Mutex<()> = Mutex::new(());

fn open(entry: Entry, root: &Path, devices: &[&str]) -> Box<dyn Probe> {
    let devices = devices.iter().map(ToString::to_string).collect();
    (entry.open)(&Context::of_target(root, devices))
}

fn rows(probe: &mut dyn Probe) -> Vec<Row> {
    let mut rows = Vec::new();
    probe.sample(&mut rows);
    rows
}

/// Returns the cell of a column in the only row.
fn cell(probe: &mut dyn Probe, column: &str) -> Cell {
    let rows = rows(probe);
    assert_eq!(rows.len(), 1);
    rows[0].cells[index(probe, column)].clone()
}

fn value(probe: &mut dyn Probe, column: &str) -> i64 {
    match cell(probe, column) {
        Cell::Value(value) => value,
        other => panic!("{column} is {other:?}"),
    }
}

fn index(probe: &dyn Probe, column: &str) -> usize {
    probe.schema().columns.iter().position(|c| c.name == column).unwrap()
}

/// Reads the whole file, bypassing the page cache.
fn read_direct(path: &Path) {
    let file = File::options().read(true).custom_flags(O_DIRECT).open(path).unwrap();
    let mut memory = vec![0; (1 << 20) + 4096];
    let start = memory.as_ptr().align_offset(4096);
    for offset in (0..FILE_BYTES).step_by(1 << 20) {
        file.read_exact_at(&mut memory[start..start + (1 << 20)], offset).unwrap();
    }
}

const PROCESS: Entry = Entry { schema: &process::SCHEMA, beside_load: true, open: process::open };
const BLOCK: Entry = Entry { schema: &block::SCHEMA, beside_load: true, open: block::open };
const MEMORY: Entry = Entry { schema: &memory::SCHEMA, beside_load: false, open: memory::open };
const RESOURCES: Entry =
    Entry { schema: &resources::SCHEMA, beside_load: false, open: resources::open };
const HOST: Entry = Entry { schema: &host::SCHEMA, beside_load: true, open: host::open };

#[test]
fn a_known_amount_of_direct_reads_is_seen_by_process_and_device() {
    let _alone = READING.lock().unwrap_or_else(PoisonError::into_inner);
    let root = Path::new("/");
    let scratch = ScratchDir::on_disk().unwrap();
    let path = scratch.path().join("real");
    FileKind::Real.create(&path, Bytes(FILE_BYTES)).unwrap();
    let chain = survey::target(root, &path).unwrap().devices;
    let device = chain.last().expect("the scratch directory is on a device").name.clone();
    let mut process = open(PROCESS, root, &[]);
    let mut block = open(BLOCK, root, &[&device]);
    let before = (value(&mut *process, "read_bytes"), value(&mut *block, "read_bytes"));
    let requests = value(&mut *block, "read_ios");
    read_direct(&path);
    let seen = value(&mut *process, "read_bytes") - before.0;
    let ratio = seen as f64 / FILE_BYTES as f64;
    assert!((0.99..1.01).contains(&ratio), "process: {seen} of {FILE_BYTES}");
    let device_bytes = value(&mut *block, "read_bytes") - before.1;
    assert!(device_bytes as f64 >= FILE_BYTES as f64 * 0.99, "device: {device_bytes}");
    assert!(value(&mut *block, "read_ios") - requests >= 64 / 4, "a request is at most 4 MiB");
    assert!(value(&mut *block, "read_ns") > 0);
}

#[test]
fn a_hole_is_read_without_any_physical_byte() {
    let _alone = READING.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = ScratchDir::on_disk().unwrap();
    let path = scratch.path().join("hole");
    FileKind::Hole.create(&path, Bytes(FILE_BYTES)).unwrap();
    let mut process = open(PROCESS, Path::new("/"), &[]);
    let before = value(&mut *process, "read_bytes");
    read_direct(&path);
    let seen = value(&mut *process, "read_bytes") - before;
    assert!(seen < FILE_BYTES as i64 / 100, "{seen} of {FILE_BYTES}");
}

#[test]
fn a_zram_device_counts_although_its_switch_is_off() {
    require!(Root, Zram);
    let _alone = READING.lock().unwrap_or_else(PoisonError::into_inner);
    let zram = ZramDevice::create(Bytes(FILE_BYTES)).unwrap();
    let name = zram.device().file_name().unwrap().to_str().unwrap();
    let mut block = open(BLOCK, Path::new("/"), &[name]);
    let before = value(&mut *block, "read_bytes");
    read_direct(zram.device());
    assert_eq!(value(&mut *block, "read_bytes") - before, FILE_BYTES as i64);
}

#[test]
fn flushes_that_reach_a_device_are_counted() {
    require!(Root, Loop);
    let spec = DeviceSpec { size: Bytes::mib(16), file_system: None, caps: Caps::default() };
    let device = LoopDevice::create(spec).unwrap();
    let name = device.device().file_name().unwrap().to_str().unwrap();
    let mut block = open(BLOCK, Path::new("/"), &[name]);
    let before = value(&mut *block, "flush_ios");
    let file = File::options().write(true).open(device.device()).unwrap();
    for offset in 0..10 {
        file.write_all_at(&[1; 4096], offset * 4096).unwrap();
        file.sync_all().unwrap();
    }
    let seen = value(&mut *block, "flush_ios") - before;
    assert!((9..=20).contains(&seen), "{seen} flushes of 10");
}

#[test]
fn the_block_probe_says_what_the_device_file_says() {
    let root = Path::new("/");
    let scratch = ScratchDir::on_disk().unwrap();
    let devices = survey::target(root, scratch.path()).unwrap().devices;
    for device in devices {
        let mut block = open(BLOCK, root, &[&device.name]);
        let stat = || -> Vec<i64> {
            let text = fs::read_to_string(format!("/sys/class/block/{}/stat", device.name));
            text.unwrap().split_whitespace().map(|field| field.parse().unwrap()).collect()
        };
        // Between two readings of the other source, as the device may be in use.
        let (before, row, after) = (stat(), rows(&mut *block), stat());
        for (column, field, unit) in [
            ("read_ios", 0, 1),
            ("read_merges", 1, 1),
            ("read_bytes", 2, 512),
            ("read_ns", 3, 1_000_000),
            ("write_ios", 4, 1),
            ("write_merges", 5, 1),
            ("write_bytes", 6, 512),
            ("write_ns", 7, 1_000_000),
            ("busy_ns", 9, 1_000_000),
            ("queue_ns", 10, 1_000_000),
            ("discard_ios", 11, 1),
            ("discard_bytes", 13, 512),
            ("flush_ios", 15, 1),
            ("flush_ns", 16, 1_000_000),
        ] {
            let Cell::Value(value) = row[0].cells[index(&*block, column)] else { continue };
            let range = before[field] * unit..=after[field] * unit;
            assert!(range.contains(&value), "{}.{column}: {value} not in {range:?}", device.name);
        }
    }
}

#[test]
fn a_busy_machine_shows_in_every_layer() {
    let root = Path::new("/");
    let cpus = thread::available_parallelism().unwrap().get();
    let (mut host, mut process) = (open(HOST, root, &[]), open(PROCESS, root, &[]));
    let columns = [
        "cpu_user_ns",
        "cpu_idle_ns",
        "cpu_nice_ns",
        "cpu_system_ns",
        "cpu_irq_ns",
        "cpu_softirq_ns",
        "cpu_iowait_ns",
        "cpu_steal_ns",
    ];
    let start = Instant::now();
    let before = columns.map(|column| value(&mut *host, column));
    let waited = value(&mut *process, "run_queue_ns");
    let hog = CpuHog::start(cpus * 2).unwrap();
    let until = Instant::now() + Duration::from_millis(600);
    let burner = thread::spawn(move || while Instant::now() < until {});
    thread::sleep(Duration::from_millis(500));
    let runnable = value(&mut *host, "runnable");
    let waited = value(&mut *process, "run_queue_ns") - waited;
    burner.join().unwrap();
    let elapsed_ns = start.elapsed().as_nanos() as f64 * cpus as f64;
    drop(hog);
    let spent: Vec<i64> =
        columns.iter().zip(before).map(|(c, before)| value(&mut *host, c) - before).collect();
    // Counted in ticks of 10 ms.
    let ratio = spent.iter().sum::<i64>() as f64 / elapsed_ns;
    assert!((0.7..1.3).contains(&ratio), "{ratio}: {columns:?} {spent:?}");
    let idle = spent[1] + spent[6];
    assert!(idle < spent.iter().sum::<i64>() / 2, "more busy than idle: {columns:?} {spent:?}");
    assert!(runnable > cpus as i64, "{runnable} runnable");
    assert!(waited > 50_000_000, "the thread waited {waited} ns for a processor");
}

/// Creates a device with hardware queues and these counters.
fn device(root: &Path, name: &str, stat: &str) {
    let directory = root.join("sys/class/block").join(name);
    fs::create_dir_all(directory.join("mq")).unwrap();
    fs::create_dir_all(directory.join("queue")).unwrap();
    fs::write(directory.join("queue/iostats"), "1\n").unwrap();
    fs::write(directory.join("stat"), format!("{stat}\n")).unwrap();
}

#[test]
fn older_kernels_have_fewer_columns_and_say_so() {
    let root = tempfile::tempdir().unwrap();
    device(root.path(), "sda", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15");
    let mut block = open(BLOCK, root.path(), &["sda"]);
    assert_eq!(value(&mut *block, "discard_bytes"), 14 * 512);
    assert_eq!(cell(&mut *block, "flush_ios"), Cell::Unmeasured);
    let missing: Vec<&str> = block.unmeasured().iter().map(|(column, _)| *column).collect();
    assert_eq!(missing, ["flush_ios", "flush_ns"]);
    device(root.path(), "sda", "1 2 3 4 5 6 7 8 9 10 11");
    assert_eq!(value(&mut *block, "queue_ns"), 11_000_000);
    assert_eq!(cell(&mut *block, "discard_ios"), Cell::Unmeasured);
    assert_eq!(block.unmeasured().len(), 4);
}

#[test]
fn flushes_of_a_device_that_does_not_count_them_are_not_zero() {
    let root = tempfile::tempdir().unwrap();
    device(root.path(), "sda", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17");
    device(root.path(), "dm-0", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 0");
    fs::remove_dir(root.path().join("sys/class/block/dm-0/mq")).unwrap();
    let mut both = open(BLOCK, root.path(), &["dm-0", "sda"]);
    let flushes = index(&*both, "flush_ios");
    let seen: Vec<Cell> =
        rows(&mut *both).into_iter().map(|row| row.cells[flushes].clone()).collect();
    assert_eq!(seen, [Cell::Unmeasured, Cell::Value(16)]);
    assert_eq!(both.unmeasured(), [], "one of the devices has it");
    let mut mapped = open(BLOCK, root.path(), &["dm-0"]);
    rows(&mut *mapped);
    let why = format!("{:?}", mapped.unmeasured());
    assert!(why.contains("whole devices with request queues only"), "{why}");
}

#[test]
fn milliseconds_that_wrap_at_32_bits_go_on() {
    let root = tempfile::tempdir().unwrap();
    let stat = |ms: u64| device(root.path(), "sda", &format!("1 0 8 {ms} 0 0 0 0 0 0 {ms}"));
    stat(u64::from(u32::MAX));
    let mut block = open(BLOCK, root.path(), &["sda"]);
    let before = value(&mut *block, "read_ns");
    stat(9);
    assert_eq!(value(&mut *block, "read_ns") - before, 10_000_000);
    assert_eq!(value(&mut *block, "queue_ns"), ((1 << 32) + 9) * 1_000_000);
}

#[test]
fn counters_that_are_switched_off_or_gone_are_not_zero() {
    let root = tempfile::tempdir().unwrap();
    device(root.path(), "sda", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    fs::write(root.path().join("sys/class/block/sda/queue/iostats"), "0\n").unwrap();
    let mut off = open(BLOCK, root.path(), &["sda"]);
    assert_eq!(cell(&mut *off, "read_ios"), Cell::Unmeasured);
    assert!(matches!(
        &off.unmeasured()[0],
        ("read_ios", Unmeasured::Off(why)) if why.contains("iostats")
    ));
    let mut gone = open(BLOCK, root.path(), &["sdz"]);
    assert_eq!(cell(&mut *gone, "read_ios"), Cell::Unmeasured);
    assert_eq!(gone.unmeasured().len(), gone.schema().columns.len());
}

#[test]
fn a_kernel_without_pressure_or_accounting_leaves_those_columns_out() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("proc")).unwrap();
    fs::write(
        root.path().join("proc/stat"),
        "cpu  1 2 3 4 5 6 7 8 9 10\nintr 13 1 2\nctxt 11\nprocesses 17\nprocs_running 12\n\
         procs_blocked 19\n",
    )
    .unwrap();
    fs::write(root.path().join("proc/loadavg"), "2.39 128.03 0.07 3/100 41\n").unwrap();
    fs::write(root.path().join("proc/meminfo"), "Buffers: 1 kB\nCached: 2 kB\nDirty: 3 kB\n")
        .unwrap();
    let mut host = open(HOST, root.path(), &[]);
    for (column, expected) in [
        ("cpu_user_ns", 10_000_000),
        ("cpu_nice_ns", 20_000_000),
        ("cpu_system_ns", 30_000_000),
        ("cpu_irq_ns", 60_000_000),
        ("cpu_softirq_ns", 70_000_000),
        ("cpu_iowait_ns", 50_000_000),
        ("cpu_idle_ns", 40_000_000),
        ("cpu_steal_ns", 80_000_000),
        ("switches", 11),
        ("runnable", 12),
        ("blocked", 19),
        ("interrupts", 13),
        ("forks", 17),
        ("load_one_minute_ppm", 2_390_000),
        ("load_five_minutes_ppm", 128_030_000),
        ("load_fifteen_minutes_ppm", 70_000),
        ("dirty_bytes", 3072),
        ("cached_bytes", 3072),
    ] {
        assert_eq!(value(&mut *host, column), expected, "{column}");
    }
    let missing: Vec<&str> = host.unmeasured().iter().map(|(column, _)| *column).collect();
    assert_eq!(missing, ["psi_cpu_some_ns", "psi_io_some_ns", "psi_io_full_ns"]);
    fs::create_dir(root.path().join("proc/pressure")).unwrap();
    let pressure = "some avg10=1.00 avg60=0.00 avg300=0.00 total=14\nfull avg10=0.00 total=9\n";
    fs::write(root.path().join("proc/pressure/cpu"), pressure).unwrap();
    fs::write(root.path().join("proc/pressure/io"), pressure).unwrap();
    let mut host = open(HOST, root.path(), &[]);
    assert_eq!(value(&mut *host, "psi_cpu_some_ns"), 14_000);
    assert_eq!(value(&mut *host, "psi_io_full_ns"), 9_000);

    let mut process = open(PROCESS, root.path(), &[]);
    assert_eq!(cell(&mut *process, "read_bytes"), Cell::Unmeasured);
    assert_eq!(cell(&mut *process, "run_queue_ns"), Cell::Unmeasured);
    assert!(value(&mut *process, "cpu_user_ns") + value(&mut *process, "cpu_system_ns") > 0);
    assert_eq!(process.unmeasured().len(), 6);
}

/// Creates the tree of a machine with these files.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn each_kernel_resource_is_read_from_its_own_field() {
    let root = tree(&[
        ("proc/sys/fs/inode-nr", "7919\t1009\n"),
        ("proc/sys/fs/file-nr", "2003\t0\t104729\n"),
        (
            "proc/net/sockstat",
            "sockets: used 499\nTCP: inuse 17 orphan 19 tw 23 alloc 29 mem 31\n\
             UDP: inuse 37 mem 41\n",
        ),
        ("proc/net/sockstat6", "TCP6: inuse 43\nUDP6: inuse 47\n"),
    ]);
    let mut probe = open(RESOURCES, root.path(), &[]);
    for (column, expected) in [
        ("inodes", 7919),
        ("inodes_unused", 1009),
        ("file_handles", 2003),
        ("file_handles_max", 104_729),
        ("sockets", 499),
        ("tcp_in_use", 17 + 43),
        ("tcp_orphans", 19),
        ("tcp_time_wait", 23),
    ] {
        assert_eq!(value(&mut *probe, column), expected, "{column}");
    }
    assert_eq!(probe.unmeasured(), []);
    fs::remove_file(root.path().join("proc/net/sockstat6")).unwrap();
    fs::remove_file(root.path().join("proc/sys/fs/inode-nr")).unwrap();
    fs::write(root.path().join("proc/net/sockstat"), "TCP: inuse 17 orphan\n").unwrap();
    let mut probe = open(RESOURCES, root.path(), &[]);
    assert_eq!(value(&mut *probe, "tcp_in_use"), 17, "a host without IPv6");
    let missing: Vec<&str> = probe.unmeasured().iter().map(|(column, _)| *column).collect();
    assert_eq!(missing, ["inodes", "inodes_unused", "sockets", "tcp_orphans", "tcp_time_wait"]);
}

#[test]
fn limits_and_settings_of_dirty_memory_are_in_our_units() {
    let root = tree(&[
        ("proc/vmstat", "nr_dirty_threshold 7\nnr_dirty_background_threshold 3\npgpgin 5\n"),
        ("proc/sys/vm/dirty_ratio", "19\n"),
        ("proc/sys/vm/dirty_background_ratio", "11\n"),
        ("proc/sys/vm/dirty_bytes", "104729\n"),
        ("proc/sys/vm/dirty_background_bytes", "7919\n"),
        ("proc/sys/vm/dirty_expire_centisecs", "3001\n"),
        ("proc/sys/vm/dirty_writeback_centisecs", "503\n"),
    ]);
    let mut memory = open(MEMORY, root.path(), &[]);
    let page = rustix::param::page_size() as i64;
    for (column, expected) in [
        ("dirty_limit_bytes", 7 * page),
        ("dirty_background_limit_bytes", 3 * page),
        ("dirty_ratio_ppm", 190_000),
        ("dirty_background_ratio_ppm", 110_000),
        ("dirty_fixed_bytes", 104_729),
        ("dirty_background_fixed_bytes", 7919),
        ("dirty_expire_ns", 30_010_000_000),
        ("dirty_writeback_ns", 5_030_000_000),
        ("paged_in_bytes", 5 * 1024),
    ] {
        assert_eq!(value(&mut *memory, column), expected, "{column}");
    }
    fs::remove_file(root.path().join("proc/sys/vm/dirty_bytes")).unwrap();
    let mut memory = open(MEMORY, root.path(), &[]);
    assert_eq!(cell(&mut *memory, "dirty_fixed_bytes"), Cell::Unmeasured);
    let why = memory.unmeasured().into_iter().find(|(column, _)| *column == "dirty_fixed_bytes");
    let why = format!("{why:?}");
    assert!(why.contains("NotInVersion") && why.contains("/proc/sys/vm/dirty_bytes"), "{why}");
}

#[test]
fn a_file_that_opens_but_cannot_be_read_is_unmeasured() {
    let root = tempfile::tempdir().unwrap();
    // A directory opens like a file and refuses the read, as the file of a device that has gone.
    fs::create_dir_all(root.path().join("sys/class/block/sda/stat")).unwrap();
    let mut block = open(BLOCK, root.path(), &["sda"]);
    assert_eq!(cell(&mut *block, "read_ios"), Cell::Unmeasured);
    let why = format!("{:?}", block.unmeasured()[0]);
    assert!(why.contains("read /sys/class/block/sda/stat"), "{why}");
}
