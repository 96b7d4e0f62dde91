//! A calibration in memory, for the tests of this crate: a healthy virtio disk, which a test then
//! changes in one respect.

use blockstone_base::histogram::Buckets;
use blockstone_base::identity::{
    BlockDevice, CpuUse, DeviceKind, IdleState, IdleUse, Link, ProcessorUse, Processors,
};
use blockstone_base::load::{Access, LoadSpec, Op, SyncMethod};
use blockstone_base::rng::Rng;
use blockstone_base::verdict::Verdict;
use blockstone_base::{Bytes, Nanos};
use blockstone_record::manifest::{Group, Manifest, Phase, Stop};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_record::testing::{self, FILE_BYTES, point};

use crate::Findings;
use crate::flushes::Flush;
use crate::window::{Checks, Growth, Tick, Window};

pub const TICK_NS: u64 = 50_000_000;
pub const LARGE: u64 = 1 << 20;
pub const SPAN: u64 = FILE_BYTES;
const CPUS: u64 = 2;

/// Outcome of a load.
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

    /// A device that alone would do `device_iops` with `device_ns`, behind blk-throttle: at the
    /// cap, everything happens at the start of each 100 ms, then nothing.
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
    pub flushes: Vec<Flush>,
}

/// Returns flushes in 20 rounds that take `time_ns` of the mebibytes written before, ±5 %.
pub fn flushes(time_ns: impl Fn(f64) -> f64) -> Vec<Flush> {
    let mut rng = Rng::new(20, 4);
    let rounds = (0..20).flat_map(|_| [0, 64 << 10, 1 << 20, 8 << 20]);
    let flush = |unflushed_bytes| {
        let noise = 0.95 + 0.1 * rng.unit();
        let flush_ns = (time_ns(unflushed_bytes as f64 / f64::from(1 << 20)) * noise) as u64;
        Flush { unflushed_bytes, flush_ns }
    };
    rounds.map(flush).collect()
}

pub fn load(op: Op, engine: &str, in_flight: u32) -> LoadSpec {
    let (workers, depth_per_worker) =
        if engine == "psync" { (in_flight, 1) } else { (1, in_flight) };
    LoadSpec { engine: engine.into(), workers, depth_per_worker, ..testing::load(op) }
}

pub fn large(access: Access, streams: u32) -> LoadSpec {
    LoadSpec { access, block_bytes: LARGE, ..load(Op::Read, "psync", streams) }
}

pub fn commit(sync: SyncMethod, committers: u32) -> LoadSpec {
    LoadSpec { sync: Some(sync), ..load(Op::Commit, "psync", committers) }
}

/// Returns the labels of a ladder: up to 64 threads, and up to 128 operations in flight of one.
fn rungs(ladder: &str) -> Vec<String> {
    let threads = (0..7).map(|n| format!("{ladder}/psync/x{}", 1 << n));
    threads.chain((0..8).map(|n| format!("{ladder}/uring/d{}", 1 << n))).collect()
}

/// Returns the rate and mean latency at `in_flight` of a device with a ceiling and this many units
/// inside: X(N) = C·N ÷ (N + P − 1), a balanced closed network (Lazowska et al., Quantitative
/// System Performance, 5.4).
pub fn saturating(ceiling_iops: f64, units: f64, in_flight: u32) -> Behaviour {
    let n = f64::from(in_flight);
    let iops = ceiling_iops * n / (n + units - 1.0);
    Behaviour::natural(iops, n / iops * 1e9)
}

impl Fixture {
    /// No phases yet.
    pub fn empty() -> Self {
        Self { manifest: manifest(), windows: Vec::new(), flushes: Vec::new() }
    }

    /// A complete, trustworthy calibration of a device.
    pub fn healthy() -> Self {
        let mut fixture = Self::reads_as(|load| {
            let n = load.in_flight();
            if load.block_bytes == LARGE {
                let pieces = Behaviour { requests_per_op: 2.0, ..saturating(1700.0, 1.5, n) };
                return Behaviour { device_ns: 250e3, ..pieces };
            }
            saturating(80_000.0, 3.2, n)
        });
        fixture.writes_as(|load| saturating(99_000.0, 3.0, load.in_flight()));
        fixture.commits_as(|load| saturating(6_000.0, 3.5, load.in_flight()));
        fixture
    }

    /// Overhead, reference and all read phases, each behaving as `behave` says.
    pub fn reads_as(behave: impl Fn(&LoadSpec) -> Behaviour) -> Self {
        let mut fixture = Self::empty();
        fixture.points_as(&["overhead/null"], |_| Behaviour::natural(4e6, 200.0));
        let sets = ["cache-map/4M", "cache-map/64M", "cache-map/full"];
        let streams = ["sequential", "random"]
            .iter()
            .flat_map(|access| [1, 2, 4, 8].map(|n| format!("large-read/{access}/x{n}")));
        let cached = ["cached-read/cached", "cached-read/buffered", "cached-read/direct"];
        fixture.points_as(&["reference"], &behave);
        fixture.points_as(&rungs("random-read"), &behave);
        fixture.points_as(&sets, &behave);
        fixture.points_as(&["reference"], &behave);
        fixture.points_as(&streams.collect::<Vec<_>>(), &behave);
        fixture.points_as(&cached, &behave);
        fixture.points_as(&["reference"], &behave);
        for (name, spec) in [
            ("max-iops", load(Op::Read, "uring", 128)),
            ("knee", load(Op::Read, "uring", 128)),
            ("plateau", load(Op::Read, "uring", 64)),
            ("max-mbps", large(Access::Sequential, 8)),
        ] {
            let behaviour = behave(&spec);
            fixture.add(&format!("confirm/{name}"), Group::Confirm, spec, &behaviour);
        }
        fixture.window_mut("cached-read/cached").process.set("read_bytes", 0);
        fixture
    }

    /// Adds the layout and the random writes.
    pub fn writes_as(&mut self, behave: impl Fn(&LoadSpec) -> Behaviour) {
        let laid_out =
            Behaviour { requests_per_op: 2.0, device_ns: 1e6, ..Behaviour::natural(1100.0, 3.6e6) };
        self.points_as(&["layout"], |_| laid_out.clone());
        self.points_as(&rungs("random-write"), behave);
    }

    /// Adds the commits.
    pub fn commits_as(&mut self, behave: impl Fn(&LoadSpec) -> Behaviour) {
        let commits = ["dsync/x1", "fdatasync/x1", "fsync/x1", "dsync/x4", "dsync/x16"];
        self.points_as(
            &commits.map(|c| format!("commit/{}", c.replace('/', "/overwrite/8K/"))),
            behave,
        );
    }

    /// Adds the phases of these labels.
    fn points_as<S: AsRef<str>>(&mut self, labels: &[S], behave: impl Fn(&LoadSpec) -> Behaviour) {
        for label in labels {
            let Phase { label, group, load, .. } = point(label.as_ref());
            let load = load.unwrap();
            let behaviour = behave(&load);
            self.add(&label, group, load, &behaviour);
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
            repeat: repeats as u32,
            load: Some(load),
            start_ns,
            window_start_ns,
            window_end_ns,
            end_ns: window_end_ns + TICK_NS,
            stop: Stop::IntervalReached,
            processors: Some(used(&window)),
            ..testing::phase(label, group)
        });
        self.windows.push(window);
    }

    /// Adds preconditioning: `written` bytes in both passes, which include the layout, and rounds
    /// at these rates.
    pub fn preconditioned(self, written: u64, rates: &[f64]) -> Self {
        let mut fixture = self.without(&[Group::Layout]);
        for label in ["precondition/fill", "layout"] {
            let Phase { group, load, .. } = point(label);
            let load = load.unwrap();
            let seconds = 4.0;
            let iops = written as f64 / 2.0 / load.block_bytes as f64 / seconds;
            let slices = vec![iops; (seconds * 1e9 / TICK_NS as f64) as usize];
            let behaviour = Behaviour { slices, ..Behaviour::natural(iops, 1e6) };
            fixture.add(label, group, load, &behaviour);
        }
        for &rate in rates {
            let Phase { group, load, .. } = point("precondition/round");
            let behaviour = Behaviour::natural(rate, 32e9 / rate);
            let behaviour = Behaviour { slices: vec![rate; 20], ..behaviour };
            fixture.add("precondition/round", group, load.unwrap(), &behaviour);
        }
        fixture
    }

    /// Returns the first window of a label.
    pub fn window_mut(&mut self, label: &str) -> &mut Window {
        let phases = &self.manifest.phases;
        self.windows.iter_mut().find(|window| phases[window.phase].label == label).unwrap()
    }

    /// Returns all windows of a direction except the tool's own cost and the cached reads.
    pub fn windows_mut(&mut self, op: Op) -> impl Iterator<Item = &mut Window> {
        let phases = &self.manifest.phases;
        self.windows.iter_mut().filter(move |window| {
            let phase = &phases[window.phase];
            phase.load.as_ref().is_some_and(|load| load.op == op)
                && !matches!(phase.group, Group::Overhead | Group::CachedRead)
        })
    }

    /// Returns the device at the top of the chain.
    pub fn top_device(&mut self) -> &mut BlockDevice {
        &mut self.manifest.target.devices[0]
    }

    /// Removes the phases of these groups.
    pub fn without(mut self, groups: &[Group]) -> Self {
        let phases = &self.manifest.phases;
        self.windows.retain(|window| !groups.contains(&phases[window.phase].group));
        self
    }

    pub fn find(&self) -> Findings {
        crate::find_in(&self.manifest, &self.windows, &self.flushes)
    }

    pub fn verdict(&self, rule: &str) -> Verdict {
        self.find().verdicts.into_iter().find(|verdict| verdict.rule == rule).unwrap()
    }
}

fn window(phase: usize, start_ns: u64, load: &LoadSpec, behaviour: &Behaviour) -> Window {
    // The warm-up completed as many operations again.
    let mean_ns: f64 = behaviour.latencies.iter().map(|(ns, share)| ns * share).sum();
    let tick = |i: usize, ops: u64| Tick {
        t_ns: start_ns + i as u64 * TICK_NS,
        ops,
        bytes: ops * load.block_bytes,
        latency_ns_sum: (ops as f64 * mean_ns) as u64,
        last_completed_ns: None,
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
    let samples = (done / 100).max(400) as f64;
    window.parts = vec![Buckets::new(); behaviour.slices.len()];
    for &(ns, share) in &behaviour.latencies {
        let count = (samples * share).round() as u64;
        for at in 0..count {
            window.histogram.record(ns.max(1.0) as u64);
            let part = at as usize % window.parts.len();
            window.parts[part].push((ns.max(1.0) as u64, 1));
        }
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
    let read_pct = load.read_pct.unwrap_or(if load.op == Op::Read { 100 } else { 0 });
    let reads_of = |all: u64| all * u64::from(read_pct) / 100;
    let bytes = if physical { bytes } else { 0 };
    let (read_bytes, write_bytes) = (reads_of(bytes), bytes - reads_of(bytes));
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
    let reads = (reads_of(requests), reads_of(busy_ns));
    let writes = (requests - reads.0, busy_ns - reads.1);
    let device = Growth::from_iter([
        ("read_ios", reads.0),
        ("read_bytes", read_bytes),
        ("read_ns", reads.1),
        ("write_ios", writes.0),
        ("write_bytes", write_bytes),
        ("write_ns", writes.1),
        ("flush_ios", if load.sync.is_some() { ops as u64 } else { 0 }),
    ]);
    window.devices = vec![("nvme0n1".to_owned(), device)];
}

/// A device; a disk has a link of four lanes.
pub fn device(name: &str, kind: DeviceKind) -> BlockDevice {
    let link = (kind == DeviceKind::Disk).then(|| Link {
        description: "PCIe 8.0 GT/s x4".into(),
        bytes_per_s: 3.94e9,
        bytes_per_s_max: Some(3.94e9),
        description_max: Some("PCIe 8.0 GT/s x4".into()),
        source: "/sys".into(),
    });
    BlockDevice { rotational: Some(true), link, ..testing::device(name, kind) }
}

/// Idle states with negligible exit latencies, and the highest frequency.
fn processors() -> Processors {
    let state = |name: &str, exit_latency_ns| IdleState {
        name: name.to_owned(),
        exit_latency_ns,
        disabled: false,
    };
    Processors {
        idle_driver: Some("intel_idle".to_owned()),
        idle_states: vec![state("POLL", 0), state("C1", 1_000)],
        frequency_driver: Some("intel_pstate".to_owned()),
        frequency_governor: Some("performance".to_owned()),
        frequency_hz_min: Some(800_000_000),
        frequency_hz_max: Some(3_500_000_000),
        hardware_hz_max: Some(3_500_000_000),
        numa_nodes: 1,
    }
}

/// Both processors take interrupts and go idle after each operation.
fn used(window: &Window) -> ProcessorUse {
    let operations = window.completed_ops();
    let idle = IdleUse { state: "C1".to_owned(), entries: 2 * operations, time_ns: 0 };
    let cpu = |cpu| CpuUse {
        cpu,
        node: Some(0),
        busy_ns: window.duration_ns() / 4,
        interrupts: Some(operations / 2),
    };
    ProcessorUse {
        idle: vec![idle],
        frequency_hz_fastest: Some(3_400_000_000),
        cpus: vec![cpu(0), cpu(1)],
    }
}

fn manifest() -> Manifest {
    let mut manifest = testing::manifest();
    manifest.set_parameters(&CalibrateParameters {
        max_latency_ns: Some(Nanos::millis(20)),
        size_bytes: Some(Bytes(SPAN)),
        ..CalibrateParameters::default()
    });
    manifest.host.hypervisor = None;
    manifest.clocks = [0, 79_000_000_000].map(testing::clocks).into();
    manifest.drives = [0, 79_000_000_000].map(testing::drive).into();
    manifest.host.processors = Some(processors());
    manifest.target.devices = vec![device("nvme0n1", DeviceKind::Disk)];
    manifest
}
