//! A calibration in memory, for the tests of this crate: a healthy virtio disk, which a test then
//! spoils in one respect.

use std::collections::BTreeMap;

use blockstone_base::capability::Capability;
use blockstone_base::identity::{
    BlockDevice, DeviceKind, DirectIo, FileMap, FileSystem, Host, Link, PathKind, StorageTarget,
};
use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_base::rng::Rng;
use blockstone_base::verdict::Verdict;
use blockstone_record::manifest::{
    DataSample, End, FORMAT, FileEvidence, Group, Manifest, Phase, Stop,
};

use crate::Findings;
use crate::window::{Checks, Growth, Tick, Window};

pub const TICK_NS: u64 = 50_000_000;
pub const BLOCK: u64 = 8192;
pub const LARGE: u64 = 1 << 20;
pub const SPAN: u64 = 4 << 30;
const CPUS: u64 = 2;

/// How a load went.
#[derive(Clone)]
pub struct Behaviour {
    /// Operations a second in each tick.
    pub slices: Vec<f64>,
    /// (latency in ns, share of the operations).
    pub latencies: Vec<(f64, f64)>,
    /// Mean time of a request in the device.
    pub device_ns: f64,
    /// Device requests for each operation.
    pub requests_per_op: f64,
    /// Run-queue time of each operation.
    pub run_queue_ns: f64,
    /// User and system time of each operation.
    pub cpu_ns: (f64, f64),
}

impl Behaviour {
    /// A device at work: rates vary by 1 %, latencies by a quarter either way.
    pub fn natural(iops: f64, mean_ns: f64) -> Self {
        let mut rng = Rng::new(iops.to_bits(), mean_ns.to_bits());
        let slices = (0..20).map(|_| iops * (0.99 + 0.02 * rng.unit())).collect();
        let latencies =
            (0..9).map(|i| (mean_ns * (0.75 + f64::from(i) / 16.0), 1.0 / 9.0)).collect();
        Self {
            slices,
            latencies,
            device_ns: mean_ns * 0.9,
            requests_per_op: 1.0,
            run_queue_ns: 1_000.0,
            cpu_ns: (300.0, 5_000.0),
        }
    }

    /// What blk-throttle makes of a device that would do `device_iops` with `device_ns`: at the
    /// cap, everything at once at the start of each 100 ms, then nothing.
    pub fn capped(cap_iops: f64, in_flight: u32, device_ns: f64) -> Self {
        let each_release = cap_iops / 10.0;
        let mean_ns = f64::from(in_flight) / cap_iops * 1e9;
        let stalled = (f64::from(in_flight) / each_release).min(1.0);
        let stall_ns = (mean_ns - device_ns * (1.0 - stalled)) / stalled;
        Self {
            slices: (0..20).map(|i| if i % 2 == 0 { 2.0 * cap_iops } else { 0.0 }).collect(),
            latencies: vec![(device_ns, 1.0 - stalled), (stall_ns, stalled)],
            device_ns,
            ..Self::natural(cap_iops, mean_ns)
        }
    }
}

/// A recording's content, complete as [`crate::find_in`] needs it.
pub struct Fixture {
    pub manifest: Manifest,
    pub windows: Vec<Window>,
}

pub fn load(op: Op, engine: &str, in_flight: u32) -> LoadSpec {
    let blocking = engine == "psync";
    LoadSpec {
        engine: engine.into(),
        op,
        access: Access::Random,
        block_bytes: BLOCK,
        workers: if blocking { in_flight } else { 1 },
        depth_per_worker: if blocking { 1 } else { in_flight },
        span_bytes: SPAN,
        sync: None,
        direct: true,
        pacing: Pacing::Closed,
        seed: 1,
    }
}

pub fn large(access: Access, streams: u32) -> LoadSpec {
    LoadSpec { access, block_bytes: LARGE, ..load(Op::Read, "psync", streams) }
}

pub fn commit(sync: SyncMethod, committers: u32) -> LoadSpec {
    LoadSpec {
        access: Access::Sequential,
        sync: Some(sync),
        ..load(Op::Commit, "psync", committers)
    }
}

/// (engine, mark, operations in flight) of the random-read ladder.
pub const RUNGS: [(&str, char, u32); 15] = [
    ("psync", 'x', 1),
    ("psync", 'x', 2),
    ("psync", 'x', 4),
    ("psync", 'x', 8),
    ("psync", 'x', 16),
    ("psync", 'x', 32),
    ("psync", 'x', 64),
    ("uring", 'd', 1),
    ("uring", 'd', 2),
    ("uring", 'd', 4),
    ("uring", 'd', 8),
    ("uring", 'd', 16),
    ("uring", 'd', 32),
    ("uring", 'd', 64),
    ("uring", 'd', 128),
];

/// Rate and mean latency at `in_flight` of a device with a ceiling and this many units inside:
/// X(N) = C·N ÷ (N + P − 1), a balanced closed network (Lazowska et al., Quantitative System
/// Performance, 5.4).
pub fn saturating(ceiling_iops: f64, units: f64, in_flight: u32) -> Behaviour {
    let n = f64::from(in_flight);
    let iops = ceiling_iops * n / (n + units - 1.0);
    Behaviour::natural(iops, n / iops * 1e9)
}

impl Fixture {
    /// No phases yet.
    pub fn empty() -> Self {
        Self { manifest: manifest(), windows: Vec::new() }
    }

    /// A complete calibration of a device that can be believed.
    pub fn healthy() -> Self {
        let mut fixture = Self::reads_as(|load| {
            let n = load.in_flight();
            if load.block_bytes == LARGE {
                let pieces = Behaviour { requests_per_op: 2.0, ..saturating(1700.0, 2.0, n) };
                return Behaviour { device_ns: 250e3, ..pieces };
            }
            saturating(80_000.0, 3.2, n)
        });
        fixture.writes_as(|load| saturating(99_000.0, 3.0, load.in_flight()));
        fixture.commits_as(|load| saturating(60_000.0, 3.5, load.in_flight()));
        fixture
    }

    /// Overhead, reference and all read phases, each behaving as `behave` says.
    pub fn reads_as(behave: impl Fn(&LoadSpec) -> Behaviour) -> Self {
        let mut fixture = Self::empty();
        let single = load(Op::Read, "psync", 1);
        let null = LoadSpec { engine: "null".into(), ..single.clone() };
        fixture.add("overhead/null", Group::Overhead, null, &Behaviour::natural(4e6, 200.0));
        let mut add = |label: &str, group, load: LoadSpec| {
            let behaviour = behave(&load);
            fixture.add(label, group, load, &behaviour);
        };
        add("reference", Group::Reference, single.clone());
        for (engine, mark, n) in RUNGS {
            let label = format!("random-read/{engine}/{mark}{n}");
            add(&label, Group::RandomRead, load(Op::Read, engine, n));
        }
        for (name, span_bytes) in [("4M", 4 << 20), ("64M", 64 << 20), ("full", SPAN)] {
            let load = LoadSpec { span_bytes, ..single.clone() };
            add(&format!("cache-map/{name}"), Group::CacheMap, load);
        }
        add("reference", Group::Reference, single.clone());
        for (name, access) in [("sequential", Access::Sequential), ("random", Access::Random)] {
            for n in [1, 2, 4, 8] {
                add(&format!("large-read/{name}/x{n}"), Group::LargeRead, large(access, n));
            }
        }
        for (name, direct) in [("cached", false), ("buffered", false), ("direct", true)] {
            let load = LoadSpec { direct, ..large(Access::Sequential, 1) };
            add(&format!("cached-read/{name}"), Group::CachedRead, load);
        }
        add("reference", Group::Reference, single);
        for (name, spec) in [
            ("max-iops", load(Op::Read, "uring", 128)),
            ("knee", load(Op::Read, "uring", 128)),
            ("plateau", load(Op::Read, "uring", 64)),
            ("max-mbps", large(Access::Sequential, 8)),
        ] {
            add(&format!("confirm/{name}"), Group::Confirm, spec);
        }
        fixture.window_mut("cached-read/cached").process.set("read_bytes", 0);
        fixture
    }

    /// Adds the layout and the random writes.
    pub fn writes_as(&mut self, behave: impl Fn(&LoadSpec) -> Behaviour) {
        let layout = LoadSpec {
            engine: "uring".into(),
            access: Access::Sequential,
            block_bytes: LARGE,
            workers: 1,
            depth_per_worker: 4,
            ..load(Op::Write, "uring", 4)
        };
        let behaviour =
            Behaviour { requests_per_op: 2.0, device_ns: 1e6, ..Behaviour::natural(1100.0, 3.6e6) };
        self.add("layout", Group::Layout, layout, &behaviour);
        for (engine, mark, n) in RUNGS.into_iter().filter(|(_, _, n)| n.is_power_of_two()) {
            let spec = load(Op::Write, engine, n);
            let behaviour = behave(&spec);
            let label = format!("random-write/{engine}/{mark}{n}");
            self.add(&label, Group::RandomWrite, spec, &behaviour);
        }
    }

    /// Adds the commits.
    pub fn commits_as(&mut self, behave: impl Fn(&LoadSpec) -> Behaviour) {
        for (name, sync, n) in [
            ("dsync", SyncMethod::Dsync, 1),
            ("fdatasync", SyncMethod::Fdatasync, 1),
            ("fsync", SyncMethod::Fsync, 1),
            ("dsync", SyncMethod::Dsync, 4),
            ("dsync", SyncMethod::Dsync, 16),
        ] {
            let spec = commit(sync, n);
            let behaviour = behave(&spec);
            let label = format!("commit/{name}/overwrite/8K/x{n}");
            self.add(&label, Group::Commit, spec, &behaviour);
        }
    }

    /// Adds one phase with its window.
    pub fn add(&mut self, label: &str, group: Group, load: LoadSpec, behaviour: &Behaviour) {
        let start_ns = self.manifest.phases.last().map_or(0, |phase| phase.end_ns + TICK_NS);
        let window_start_ns = start_ns + 5 * TICK_NS;
        let window_end_ns = window_start_ns + behaviour.slices.len() as u64 * TICK_NS;
        let window = window(self.manifest.phases.len(), window_start_ns, &load, behaviour);
        let repeats = self.manifest.phases.iter().filter(|phase| phase.label == label).count();
        self.manifest.phases.push(Phase {
            label: label.to_owned(),
            group,
            repeat: repeats as u32,
            load: Some(load),
            background: None,
            start_ns,
            window_start_ns,
            window_end_ns,
            end_ns: window_end_ns + TICK_NS,
            stop: Stop::IntervalReached,
            first_error: None,
            note: None,
        });
        self.windows.push(window);
    }

    /// The first window of a label.
    pub fn window_mut(&mut self, label: &str) -> &mut Window {
        let phases = &self.manifest.phases;
        self.windows.iter_mut().find(|window| phases[window.phase].label == label).unwrap()
    }

    /// All windows of a direction, the tool's own cost and the cached reads left out.
    pub fn windows_mut(&mut self, op: Op) -> impl Iterator<Item = &mut Window> {
        let phases = &self.manifest.phases;
        self.windows.iter_mut().filter(move |window| {
            let phase = &phases[window.phase];
            phase.load.as_ref().is_some_and(|load| load.op == op)
                && !matches!(phase.group, Group::Overhead | Group::CachedRead)
        })
    }

    /// The device at the top of the chain.
    pub fn top_device(&mut self) -> &mut BlockDevice {
        &mut self.manifest.target.devices[0]
    }

    /// Forgets the phases of these groups.
    pub fn without(mut self, groups: &[Group]) -> Self {
        let phases = &self.manifest.phases;
        self.windows.retain(|window| !groups.contains(&phases[window.phase].group));
        self
    }

    pub fn find(&self) -> Findings {
        crate::find_in(&self.manifest, &self.windows)
    }

    pub fn verdict(&self, rule: &str) -> Verdict {
        self.find().verdicts.into_iter().find(|verdict| verdict.rule == rule).unwrap()
    }
}

fn window(phase: usize, start_ns: u64, load: &LoadSpec, behaviour: &Behaviour) -> Window {
    // As much again was completed during warm-up.
    let mean_ns: f64 = behaviour.latencies.iter().map(|(ns, share)| ns * share).sum();
    let tick = |i: usize, ops: u64| Tick {
        t_ns: start_ns + i as u64 * TICK_NS,
        ops,
        bytes: ops * load.block_bytes,
        latency_ns_sum: (ops as f64 * mean_ns) as u64,
    };
    let mut ops = 100.0;
    let mut ticks = vec![tick(0, 100)];
    for (i, rate) in behaviour.slices.iter().enumerate() {
        ops += rate * TICK_NS as f64 / 1e9;
        ticks.push(tick(i + 1, ops.round() as u64));
    }
    let mut window = Window { phase, ticks, ..Window::default() };
    let done = window.completed_ops();
    // A hundredth of the operations is enough for quantiles and keeps the tests quick.
    let samples = (done / 100).max(200) as f64;
    for &(ns, share) in &behaviour.latencies {
        let count = (samples * share).round() as u64;
        (0..count).for_each(|_| window.histogram.record(ns.max(1.0) as u64));
    }
    window.checks =
        Checks { stamps_verified: done, checksums_verified: done / 64, ..Checks::default() };
    counters(&mut window, load, behaviour);
    window
}

fn counters(window: &mut Window, load: &LoadSpec, behaviour: &Behaviour) {
    let (ops, bytes) = (window.completed_ops() as f64, window.completed_bytes());
    let each = |ns: f64| (ns * ops) as u64;
    let (user_ns, system_ns) = (each(behaviour.cpu_ns.0), each(behaviour.cpu_ns.1));
    let physical = load.engine != "null";
    let read_bytes = if physical && load.op == Op::Read { bytes } else { 0 };
    let write_bytes = if physical && load.op != Op::Read { bytes } else { 0 };
    window.process = Growth::from_iter([
        ("cpu_user_ns", user_ns),
        ("cpu_system_ns", system_ns),
        ("switches_voluntary", each(1.0)),
        ("switches_involuntary", each(0.01)),
        ("read_bytes", read_bytes),
        ("write_bytes", write_bytes),
        ("run_queue_ns", each(behaviour.run_queue_ns)),
    ]);
    let all_ns = window.duration_ns() * CPUS;
    window.host = Growth::from_iter([
        ("cpu_user_ns", user_ns),
        ("cpu_nice_ns", 0),
        ("cpu_system_ns", system_ns),
        ("cpu_irq_ns", 0),
        ("cpu_softirq_ns", each(200.0)),
        ("cpu_iowait_ns", 0),
        ("cpu_idle_ns", all_ns.saturating_sub(user_ns + system_ns + each(200.0))),
        ("cpu_steal_ns", 0),
    ]);
    let requests = if physical { (ops * behaviour.requests_per_op) as u64 } else { 0 };
    let busy_ns = (requests as f64 * behaviour.device_ns) as u64;
    let (reads, writes) = if load.op == Op::Read {
        ((requests, busy_ns), (0, 0))
    } else {
        ((0, 0), (requests, busy_ns))
    };
    let device = Growth::from_iter([
        ("read_ios", reads.0),
        ("read_bytes", read_bytes),
        ("read_ns", reads.1),
        ("write_ios", writes.0),
        ("write_bytes", write_bytes),
        ("write_ns", writes.1),
        ("flush_ios", if load.sync.is_some() { ops as u64 } else { 0 }),
    ]);
    window.devices = vec![("vda".to_owned(), device)];
}

pub fn device(name: &str, kind: DeviceKind) -> BlockDevice {
    BlockDevice {
        name: name.into(),
        number: "254:0".into(),
        kind,
        size_bytes: 256 << 30,
        model: None,
        scheduler: Some("none".into()),
        write_cache: Some("write back".into()),
        rotational: Some(true),
        logical_block_bytes: 512,
        physical_block_bytes: 512,
        queue_depth: Some(256),
        max_request_bytes: Some(512 << 10),
        beneath: Vec::new(),
        backing_file_system: None,
        link: (kind == DeviceKind::Disk).then(|| Link {
            description: "PCIe 8.0 GT/s x4".into(),
            bytes_per_s: 3.94e9,
            source: "/sys".into(),
        }),
    }
}

fn manifest() -> Manifest {
    let settings = [("block_bytes", BLOCK), ("max_latency_ns", 20_000_000), ("size_bytes", SPAN)];
    let settings: BTreeMap<String, serde_json::Value> =
        settings.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    Manifest {
        format: FORMAT.into(),
        id: "abc123".into(),
        tool_version: "0.1.0".into(),
        verb: "calibrate".into(),
        argv: Vec::new(),
        settings,
        seed: 1,
        started_at: "2026-11-21T12:00:00Z".into(),
        ended_at: None,
        end: End::Complete,
        host: Host {
            hostname: "box".into(),
            cpus: CPUS as u32,
            cpus_allowed_milli: CPUS as u32 * 1000,
            ..Host::default()
        },
        target: StorageTarget {
            path: "/data".into(),
            kind: PathKind::Directory,
            file_system: Some(FileSystem {
                kind: "ext4".into(),
                source: "/dev/vda".into(),
                mount_point: "/".into(),
                options: "rw,relatime".into(),
            }),
            devices: vec![device("vda", DeviceKind::Disk)],
            direct_io: DirectIo {
                capability: Capability::Full,
                offset_align_bytes: 512,
                memory_align_bytes: 512,
                source: "statx STATX_DIOALIGN".into(),
            },
            caps: Vec::new(),
            free_bytes: 100 << 30,
        },
        disk_files: Vec::new(),
        data_files: Vec::new(),
        file: Some(FileEvidence {
            path: "/data/.blockstone".into(),
            ours: true,
            map: FileMap {
                size_bytes: SPAN,
                allocated_bytes: SPAN,
                extents: 4,
                mapped_bytes: SPAN,
                hole_bytes: 0,
                unwritten_bytes: 0,
                encoded_bytes: 0,
                shared_bytes: 0,
                fiemap: Capability::Full,
            },
            sample: Some(DataSample {
                sampled_bytes: 1 << 21,
                zero_bytes: 0,
                lz4_bytes: 1 << 21,
                duplicate_bytes: 0,
            }),
        }),
        capabilities: Vec::new(),
        phases: Vec::new(),
        probes: Vec::new(),
        summary: BTreeMap::new(),
        imported: None,
        verdicts: Vec::new(),
    }
}
