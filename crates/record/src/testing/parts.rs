//! Building blocks of test recordings. A test changes the parts that it is about.

use blockstone_base::capability::Capability;
use blockstone_base::column::{Column, Kind, Schema, Unit};
use blockstone_base::identity::{
    BlockDevice, DeviceKind, DirectIo, FileMap, FileSystem, Host, PathKind, StorageTarget,
};
use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_base::stats::Estimate;

use crate::manifest::{
    ClockReading, ColumnInfo, DataSample, DriveReading, End, FORMAT, Figure, FileEvidence, Group,
    Manifest, NamedCapability, Phase, ProbeInfo, Stop,
};

/// Size of the test file in bytes.
pub const FILE_BYTES: u64 = 4 << 30;

/// Creates a probe with these columns, as returned by [`counters`].
pub const fn schema(probe: &'static str, columns: &'static [Column]) -> Schema {
    Schema { probe, doc: "A probe of tests.", columns }
}

/// Creates counter columns with these names.
pub const fn counters<const N: usize>(names: [&'static str; N]) -> [Column; N] {
    let column =
        Column { name: "", unit: Unit::Count, kind: Kind::Counter, source: "test", doc: "" };
    let mut columns = [column; N];
    let mut at = 0;
    while at < N {
        columns[at].name = names[at];
        at += 1;
    }
    columns
}

/// Creates a probe without ticks; its columns are given by kind, with their names separated by
/// spaces.
pub fn probe(name: &str, columns: &[(Kind, &str)]) -> ProbeInfo {
    let column = |kind, name: &str| ColumnInfo {
        name: name.to_owned(),
        unit: match kind {
            Kind::State => Unit::Text,
            _ if name.ends_with("_ns") => Unit::Nanoseconds,
            _ if name.ends_with("_bytes") => Unit::Bytes,
            _ => Unit::Count,
        },
        kind,
        source: "test".to_owned(),
        doc: String::new(),
        unmeasured: None,
    };
    let columns = columns.iter().flat_map(|(kind, names)| {
        names.split_whitespace().map(|name| column(*kind, name)).collect::<Vec<_>>()
    });
    let columns = columns.collect();
    ProbeInfo { probe: name.to_owned(), doc: String::new(), columns, ticks: 0, missed_ticks: 0 }
}

/// A complete calibration of a directory on one virtual disk, without any measurements.
pub fn manifest() -> Manifest {
    Manifest {
        format: FORMAT.to_owned(),
        id: "k3v9qz".to_owned(),
        tool_version: "0.1.0".to_owned(),
        verb: "calibrate".to_owned(),
        argv: vec!["blockstone".to_owned(), "calibrate".to_owned(), "/data".to_owned()],
        settings: [("block_bytes".to_owned(), 8192.into())].into(),
        seed: 42,
        started_at: "2026-11-21T20:57:00Z".to_owned(),
        ended_at: Some("2026-11-21T20:58:19Z".to_owned()),
        end: End::Complete,
        host: Host {
            hostname: "db01".to_owned(),
            kernel: "6.18.5".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu_model: "Intel Xeon Platinum 8481C".to_owned(),
            cpus: 2,
            cpus_allowed_milli: 2000,
            memory_bytes: 16_768_348_160,
            hypervisor: Some("KVM".to_owned()),
            cloud: None,
            machine_type: None,
            processors: None,
            boot_id: None,
            databases_running: Vec::new(),
        },
        target: target(),
        file: Some(file("/data/.blockstone", FILE_BYTES)),
        targets: Vec::new(),
        disk_files: Vec::new(),
        data_files: Vec::new(),
        capabilities: vec![capability("direct-io", Capability::Full)],
        phases: Vec::new(),
        clocks: Vec::new(),
        drives: Vec::new(),
        probes: Vec::new(),
        summary: [].into(),
        imported: None,
        rank: None,
        merged: None,
        dropped_before_ns: None,
        verdicts: Vec::new(),
    }
}

fn target() -> StorageTarget {
    StorageTarget {
        path: "/data".to_owned(),
        kind: PathKind::Directory,
        file_system: Some(FileSystem {
            kind: "ext4".to_owned(),
            source: "/dev/vda1".to_owned(),
            mount_point: "/data".to_owned(),
            options: "rw,relatime".to_owned(),
            beneath: None,
        }),
        devices: vec![device("vda", DeviceKind::Disk)],
        direct_io: DirectIo {
            capability: Capability::Full,
            offset_align_bytes: 512,
            memory_align_bytes: 512,
            source: "statx STATX_DIOALIGN".to_owned(),
        },
        caps: Vec::new(),
        free_bytes: 61 << 30,
    }
}

pub fn device(name: &str, kind: DeviceKind) -> BlockDevice {
    BlockDevice {
        name: name.to_owned(),
        number: "254:0".to_owned(),
        kind,
        size_bytes: 100 << 30,
        model: None,
        scheduler: Some("none".to_owned()),
        write_cache: Some("write back".to_owned()),
        drive_cache: None,
        zoned: Some("none".to_owned()),
        rotational: Some(false),
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
        queue_depth: Some(256),
        max_request_bytes: Some(1 << 20),
        beneath: Vec::new(),
        backing_file_system: None,
        link: None,
        state: None,
        numa_node: None,
        raid: None,
    }
}

/// A file that was written completely, with random data.
pub fn file(path: &str, size_bytes: u64) -> FileEvidence {
    FileEvidence {
        path: path.to_owned(),
        ours: true,
        map: FileMap {
            size_bytes,
            allocated_bytes: size_bytes,
            extents: 8,
            mapped_bytes: size_bytes,
            hole_bytes: 0,
            unwritten_bytes: 0,
            encoded_bytes: 0,
            shared_bytes: 0,
            attributes: None,
            fiemap: Capability::Full,
        },
        sample: Some(DataSample {
            sampled_bytes: 1 << 20,
            zero_bytes: 0,
            lz4_bytes: 1 << 20,
            duplicate_bytes: 0,
        }),
    }
}

/// Clocks with constant offsets.
pub fn clocks(t_ns: u64) -> ClockReading {
    ClockReading { t_ns, realtime_offset_ns: 1_795_000_000_000_000_000, boottime_offset_ns: 0 }
}

/// The controller `nvme0`, cool and at full power.
pub fn drive(t_ns: u64) -> DriveReading {
    DriveReading {
        t_ns,
        controller: "nvme0".to_owned(),
        temperature_kelvin: Some(311),
        is_hot: false,
        warm_minutes: 0,
        critical_minutes: 0,
        throttled: [0, 0],
        throttled_s: [0, 0],
        power_state: Some(0),
        power_mw_max: Some(25_000),
    }
}

pub fn capability(name: &str, capability: Capability) -> NamedCapability {
    NamedCapability { name: name.to_owned(), capability }
}

/// A figure that no rule condemns.
pub fn figure(title: &str, unit: &str, estimate: Estimate, phase: &str) -> Figure {
    let (title, unit, phase) = (title.to_owned(), unit.to_owned(), phase.to_owned());
    Figure { title, unit, estimate, phase, condemned_by: Vec::new() }
}

/// A single worker that sends one random 8K operation after the other, bypassing the page cache.
pub fn load(op: Op) -> LoadSpec {
    LoadSpec {
        engine: "psync".to_owned(),
        op,
        read_pct: None,
        access: Access::Random,
        block_bytes: 8192,
        workers: 1,
        depth_per_worker: 1,
        span_bytes: FILE_BYTES,
        offset_bytes: 0,
        sync: (op == Op::Commit).then_some(SyncMethod::Dsync),
        flush_alone: false,
        direct: true,
        pacing: Pacing::Closed,
        seed: 42,
    }
}

/// A phase without a load, with all times zero.
pub fn phase(label: &str, group: Group) -> Phase {
    Phase {
        label: label.to_owned(),
        group,
        repeat: 0,
        load: None,
        background: None,
        start_ns: 0,
        window_start_ns: 0,
        window_end_ns: 0,
        end_ns: 0,
        stop: Stop::TimeLimit,
        settled: None,
        processors: None,
        first_error: None,
        note: None,
    }
}

/// A phase of a calibration with the load named in its label, such as `commit/dsync/append/8K/x4`;
/// for `confirm/…`, which names none, the load of a single reader.
pub fn point(label: &str) -> Phase {
    let parts: Vec<&str> = label.split('/').collect();
    let read = load(Op::Read);
    let large = large(1);
    let mut background = None;
    let (group, load) = match parts[..] {
        ["overhead", engine] => (Group::Overhead, at(&read, engine, "x1")),
        ["layout"] => (Group::Layout, LoadSpec { op: Op::Write, ..at(&large, "uring", "d8") }),
        ["precondition", kind] => {
            let (load, access) = if kind == "fill" {
                (at(&large, "uring", "d32"), Access::Sequential)
            } else {
                (at(&read, "uring", "d32"), Access::Random)
            };
            (Group::Precondition, LoadSpec { op: Op::Write, access, ..load })
        }
        ["reference"] => (Group::Reference, read),
        ["random-read", engine, n] => (Group::RandomRead, at(&read, engine, n)),
        ["random-write", engine, n] => (Group::RandomWrite, at(&load(Op::Write), engine, n)),
        ["large-read", order, n] => {
            (Group::LargeRead, LoadSpec { access: access(order), ..at(&large, "psync", n) })
        }
        ["commit", sync, kind, block, n] => (
            Group::Commit,
            LoadSpec {
                access: access(kind),
                sync: Some(sync_method(sync)),
                block_bytes: size(block),
                ..at(&load(Op::Commit), "psync", n)
            },
        ),
        ["cache-map", span] => (Group::CacheMap, LoadSpec { span_bytes: size(span), ..read }),
        ["cached-read", how] => (Group::CachedRead, LoadSpec { direct: how == "direct", ..large }),
        ["confirm", _] => (Group::Confirm, read),
        ["matrix", cell] => {
            let (small, streams) = cell.split_once('l').unwrap();
            background = Some(self::large(number(streams))).filter(|load| load.workers > 0);
            (Group::Matrix, at(&read, "uring", &small.replace('s', "d")))
        }
        ["mix", share] => (Group::Mix, LoadSpec { workers: 16, ..mixed(&read, share) }),
        ["open-loop", .., rate] => {
            let rate_per_s = f64::from(number(rate.trim_start_matches('r')));
            let pacing = Pacing::Open { rate_per_s, poisson: true };
            (Group::OpenLoop, LoadSpec { pacing, ..at(&read, "psync", "x16") })
        }
        _ => panic!("no phase of a calibration: {label}"),
    };
    Phase { load: Some(load), background, ..phase(label, group) }
}

/// Streams of large sequential reads.
fn large(streams: u32) -> LoadSpec {
    let access = Access::Sequential;
    LoadSpec { access, block_bytes: 1 << 20, workers: streams, ..load(Op::Read) }
}

/// The load with four workers (`x4`), or with four operations in flight from one worker (`d4`).
fn at(load: &LoadSpec, engine: &str, n: &str) -> LoadSpec {
    let count = number(&n[1..]);
    let (workers, depth_per_worker) = if n.starts_with('x') { (count, 1) } else { (1, count) };
    LoadSpec { engine: engine.to_owned(), workers, depth_per_worker, ..load.clone() }
}

/// The load of a mix such as `70:30`.
fn mixed(read: &LoadSpec, share: &str) -> LoadSpec {
    let read_pct = number(share.split(':').next().unwrap());
    match read_pct {
        100 => read.clone(),
        0 => load(Op::Write),
        _ => LoadSpec { read_pct: Some(read_pct), ..load(Op::Mixed) },
    }
}

fn access(order: &str) -> Access {
    match order {
        "sequential" => Access::Sequential,
        "append" => Access::Append,
        _ => Access::Random,
    }
}

fn sync_method(name: &str) -> SyncMethod {
    match name {
        "fsync" => SyncMethod::Fsync,
        "fdatasync" => SyncMethod::Fdatasync,
        _ => SyncMethod::Dsync,
    }
}

/// Parses `512`, `8K`, `4M`, `1G`; `full` is the whole file.
fn size(text: &str) -> u64 {
    let shift = match text.as_bytes().last() {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        _ if text == "full" => return FILE_BYTES,
        _ => 0,
    };
    u64::from(number(text.trim_end_matches(['K', 'M', 'G']))) << shift
}

fn number(text: &str) -> u32 {
    text.parse().unwrap()
}
