//! A recording of a workload run whose every counter is known: each grows at a constant rate. The
//! tests of the reports use it too.

use std::collections::BTreeMap;
use std::path::Path;

use blockstone_base::LatencyHistogram;
use blockstone_base::column::{Cell, Column, Kind, Schema, Unit};
use blockstone_base::database::{self, DIRECT_READ};
use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SERIES, SyncMethod};
use blockstone_record::manifest::{End, Figure, Group, Manifest, Phase, Stop};
use blockstone_record::{HistogramRow, LatencyClock, Recorder, Recording};
use serde_json::{Value, json};

const SECOND_NS: u64 = 1_000_000_000;
const TICK_NS: u64 = 100_000_000;
/// The window: from the third second on, ten seconds.
const WINDOW: (u64, u64) = (3 * SECOND_NS, 13 * SECOND_NS);
/// From one window to the next.
const APART_NS: u64 = 15 * SECOND_NS;
/// The sessions' phase.
const RUN: i32 = 1;

const fn counter(name: &'static str) -> Column {
    Column { name, unit: Unit::Count, kind: Kind::Counter, source: "test", doc: "A counter." }
}

static PROCESS: Schema = Schema {
    probe: "process",
    doc: "This process.",
    columns: &[
        counter("cpu_user_ns"),
        counter("cpu_system_ns"),
        counter("read_bytes"),
        counter("run_queue_ns"),
    ],
};
static HOST: Schema = Schema {
    probe: "host",
    doc: "The machine.",
    columns: &[
        counter("cpu_user_ns"),
        counter("cpu_nice_ns"),
        counter("cpu_system_ns"),
        counter("cpu_irq_ns"),
        counter("cpu_softirq_ns"),
        counter("cpu_iowait_ns"),
        counter("cpu_idle_ns"),
        counter("cpu_steal_ns"),
    ],
};
static BLOCK: Schema = Schema {
    probe: "block",
    doc: "The device.",
    columns: &[
        counter("read_ios"),
        counter("read_bytes"),
        counter("write_ios"),
        counter("write_bytes"),
        counter("busy_ns"),
    ],
};

type Object = (&'static str, &'static str);
type Latencies = (&'static str, Op, LatencyClock, Vec<(u64, u64)>);

/// A run in the making.
pub struct RunFixture {
    pub manifest: Manifest,
    /// Growth a second by probe, object and column; what is not named stands still.
    rates: BTreeMap<Object, BTreeMap<&'static str, u64>>,
    /// (role of the histogram, direction, clock, latencies of each second as (ns, how many)).
    latencies: Vec<Latencies>,
    /// What moves once a second only, all at once.
    bursts: Vec<Object>,
    /// Label and group of the window's phase.
    pub label: (&'static str, Group),
    /// The load in the terms of block I/O, and what ran beside it.
    pub loads: (Option<LoadSpec>, Option<LoadSpec>),
    /// Windows that follow this one in the same recording; of them only what is counted matters.
    pub then: Vec<RunFixture>,
}

impl RunFixture {
    /// 16 sessions on four mirrored disks: 6,000 reads, 300 updates of 4 rows a second.
    pub fn healthy() -> Self {
        let mut run = Self {
            manifest: manifest(),
            rates: BTreeMap::new(),
            latencies: Vec::new(),
            bursts: Vec::new(),
            label: ("run", Group::Workload),
            loads: (None, None),
            then: Vec::new(),
        };
        run.operations();
        run.events();
        run.transfers();
        run.set("instance", "", "logical_reads", 6_400);
        run.set("instance", "", "physical_reads", 6_000);
        run.set("instance", "", "single_block_reads", 6_000);
        run.set("instance", "", "block_changes", 1_200);
        run.set("instance", "", "physical_writes", 1_200);
        run.set("instance", "", "redo_bytes", 2_400_000);
        run.set("instance", "", "redo_writes", 200);
        run.set("instance", "", "commits", 300);
        run.set("instance", "", "db_time_ns", 15_600_000_000);
        run.set("instance", "", "outside_sampled_ns", 100_000_000);
        run.set("instance", "", "outside_sampled_cpu_ns", 50_000_000);
        run.set("instance", "", "outside_sampled_blocked_ns", 20_000_000);
        run.set("process", "", "cpu_user_ns", 400_000_000);
        run.set("process", "", "cpu_system_ns", 300_000_000);
        run.set("process", "", "read_bytes", 6_000 * 8192);
        run.set("host", "", "cpu_user_ns", 450_000_000);
        run.set("host", "", "cpu_system_ns", 320_000_000);
        run.set("host", "", "cpu_idle_ns", 1_230_000_000);
        run.set("block", "vda", "read_ios", 6_000);
        run.set("block", "vda", "read_bytes", 6_000 * 8192);
        run.set("block", "vda", "write_ios", 1_600);
        run.set("block", "vda", "write_bytes", 30_000_000);
        run.set("block", "vda", "busy_ns", 700_000_000);
        run
    }

    /// 128 sessions that only read, 2,400 blocks a second.
    pub fn readers() -> Self {
        let mut run = Self::healthy();
        run.manifest.settings.insert("sessions".into(), 128.into());
        run.manifest.settings.insert("readers".into(), 128.into());
        run.manifest.settings.insert("writers".into(), 0.into());
        run.manifest.settings.remove("update_pct");
        run.set("instance", "", "logical_reads", 2_400);
        run.set("instance", "", "physical_reads", 2_400);
        run.set("instance", "", "commits", 0);
        run.set("instance", "", "db_time_ns", 127_800_000_000);
        run.set("operation", "select", "completed_ops", 600);
        run.set("operation", "select", "rows", 2_400);
        run.set("operation", "select", "service_ns_sum", 127_900_000_000);
        for column in ["completed_ops", "rows", "commits", "service_ns_sum"] {
            run.set("operation", "update", column, 0);
        }
        run.set("event", "session/db file sequential read", "waits", 2_400);
        run.set("event", "session/db file sequential read", "time_ns", 126_900_000_000);
        for column in ["waits", "time_ns"] {
            run.set("event", "session/log file sync", column, 0);
        }
        run
    }

    /// The healthy sessions, then half of their reads and commits beside two noisy writers.
    pub fn noise() -> Self {
        let mut noisy = Self::healthy();
        noisy.set("role", "session", "read_ios", 3_000);
        noisy.set("event", "session/db file sequential read", "waits", 3_000);
        noisy.set("operation", "update", "commits", 150);
        noisy.set("load", "background", "completed_ops", 1_000);
        noisy.set("load", "background", "completed_bytes", 1_000 << 17);
        let writes = vec![(2_000_000, 990), (8_000_000, 10)];
        noisy.latencies.push(("background", Op::Commit, LatencyClock::Intended, writes));
        noisy.label = ("noisy", Group::Workload);
        noisy.loads.1 = Some(load(Op::Commit, 131_072, 2));
        let mut quiet = Self::healthy();
        quiet.label = ("quiet", Group::Workload);
        quiet.manifest.settings.insert("noise_writers".into(), 2.into());
        quiet.then = vec![noisy];
        quiet
    }

    /// A matrix of two sizes and two numbers of sessions: with one session a database is told of
    /// half the reads, each a tenth as long as it was.
    pub fn matrix() -> Self {
        let mut points = [
            ("scan/m4p1", 4, 1, 2_000, 500_000),
            ("scan/m128p1", 128, 1, 200, 3_000_000),
            ("scan/m4p16", 4, 16, 6_400, 5_000_000),
            ("scan/m128p16", 128, 16, 200, 160_000_000),
        ]
        .map(|(label, blocks, parallel, ios, io_ns)| {
            Self::point(label, (blocks, parallel), ios, io_ns)
        })
        .into_iter();
        let mut first = points.next().unwrap();
        first.then = points.collect();
        first
    }

    fn point(label: &'static str, (blocks, parallel): (u64, u32), ios: u64, io_ns: u64) -> Self {
        let mut point = Self::healthy();
        point.rates.retain(|(probe, _), _| ["process", "host", "block"].contains(probe));
        point.latencies.clear();
        point.manifest.settings.insert("profile".into(), "scan".into());
        point.manifest.settings.insert("scan_rows".into(), 8.into());
        point.manifest.settings.remove("update_pct");
        point.label = (label, Group::Scan);
        point.loads.0 = Some(load(Op::Read, blocks * 8192, parallel));
        let bytes = ios * blocks * 8192;
        for (column, value) in [("read_ios", ios), ("read_bytes", bytes), ("read_ns", ios * io_ns)]
        {
            point.set("role", "session", column, value);
            point.set("disk", "/d1", column, value);
        }
        let (waits, wait_ns) = if parallel == 1 { (ios / 2, io_ns / 10) } else { (ios, io_ns / 2) };
        point.set("event", "session/direct path read", "waits", waits);
        point.set("event", "session/direct path read", "time_ns", waits * wait_ns);
        for (column, value) in [("completed_ops", 10), ("rows", 80), ("failed_ops", 0)] {
            point.set("operation", "scan", column, value);
        }
        for column in ["logical_reads", "physical_reads", "direct_reads"] {
            point.set("instance", "", column, ios * blocks);
        }
        point.set("process", "", "read_bytes", bytes);
        let histogram =
            |role, ns, count| (role, Op::Read, LatencyClock::Submitted, vec![(ns, count)]);
        point.latencies.push(histogram(DIRECT_READ, io_ns, ios));
        point.latencies.push(histogram("session/direct path read", wait_ns, waits));
        point
    }

    /// Sets the growth a second of a counter.
    pub fn set(
        &mut self,
        probe: &'static str,
        object: &'static str,
        column: &'static str,
        a_second: u64,
    ) {
        self.rates.entry((probe, object)).or_default().insert(column, a_second);
    }

    /// As if a probe had not been there.
    pub fn remove(&mut self, probe: &str) {
        self.rates.retain(|(known, _), _| *known != probe);
    }

    /// Lets the counters of an object move once a second, all at once.
    pub fn in_bursts(&mut self, probe: &'static str, object: &'static str) {
        self.bursts.push((probe, object));
    }

    /// As a target that says nothing about itself.
    pub fn without_database(mut self) -> Self {
        self.rates.retain(|(probe, _), _| !["event", "role", "disk", "instance"].contains(probe));
        self.latencies.retain(|(role, ..)| !role.contains('/'));
        self
    }

    fn operations(&mut self) {
        for (kind, ops, rows, commits, service_ns) in [
            ("select", 1_200, 4_800, 0, 12_600_000_000),
            ("update", 300, 1_200, 300, 3_150_000_000),
            ("scan", 0, 0, 0, 0),
        ] {
            self.set("operation", kind, "completed_ops", ops);
            self.set("operation", kind, "rows", rows);
            self.set("operation", kind, "commits", commits);
            self.set("operation", kind, "latency_ns_sum", service_ns);
            self.set("operation", kind, "service_ns_sum", service_ns);
            self.set("operation", kind, "failed_ops", 0);
        }
        let fast = vec![(10_000_000, 1_200)];
        self.latencies.push(("select", Op::Read, LatencyClock::Intended, fast));
        let slow = vec![(10_000_000, 290), (40_000_000, 10)];
        self.latencies.push(("update", Op::Commit, LatencyClock::Intended, slow));
    }

    fn events(&mut self) {
        for (event, waits, time_ns) in [
            ("session/db file sequential read", 6_000, 14_000_000_000),
            ("session/log file sync", 300, 600_000_000),
            ("session/free buffer waits", 0, 0),
            ("session/CPU", 0, 800_000_000),
            ("session/run queue", 0, 400_000_000),
            ("dbwr/db file parallel write", 40, 400_000_000),
            ("lgwr/log file parallel write", 200, 300_000_000),
            ("dbwr/CPU", 0, 50_000_000),
            ("lgwr/CPU", 0, 30_000_000),
            ("ckpt/CPU", 0, 0),
        ] {
            self.set("event", event, "waits", waits);
            self.set("event", event, "time_ns", time_ns);
        }
        for (role, op, latencies) in [
            (
                "session/db file sequential read",
                Op::Read,
                vec![(2_000_000, 5_900), (9_000_000, 100)],
            ),
            ("session/log file sync", Op::Commit, vec![(1_500_000, 290), (9_000_000, 10)]),
            ("dbwr/db file parallel write", Op::Write, vec![(10_000_000, 40)]),
        ] {
            self.latencies.push((role, op, LatencyClock::Submitted, latencies));
        }
    }

    fn transfers(&mut self) {
        for (role, reads, writes, bytes_a_write) in [
            ("session", 6_000, 0, 0),
            ("dbwr", 0, 600, 16_384),
            ("lgwr", 0, 200, 12_288),
            ("ckpt", 0, 0, 0),
        ] {
            self.transfer("role", role, reads, (writes, bytes_a_write));
        }
        for disk in ["/d1", "/d2", "/d3", "/d4"] {
            // Two copies of every write on four disks.
            self.transfer("disk", disk, 1_500, (400, 15_360));
        }
    }

    fn transfer(
        &mut self,
        probe: &'static str,
        object: &'static str,
        reads: u64,
        (writes, bytes_a_write): (u64, u64),
    ) {
        self.set(probe, object, "read_ios", reads);
        self.set(probe, object, "read_bytes", reads * 8192);
        self.set(probe, object, "read_ns", reads * 2_300_000);
        self.set(probe, object, "write_ios", writes);
        self.set(probe, object, "write_bytes", writes * bytes_a_write);
        self.set(probe, object, "write_ns", writes * 1_000_000);
    }

    /// Writes the recording to `dir` and opens it.
    pub fn record(&self, dir: &Path) -> Recording {
        let schemas: Vec<&'static Schema> =
            database::ALL.iter().copied().chain([&PROCESS, &HOST, &BLOCK, &SERIES]).collect();
        let mut manifest = self.manifest.clone();
        let end = std::mem::replace(&mut manifest.end, End::Running);
        let windows: Vec<&Self> = [self].into_iter().chain(&self.then).collect();
        manifest.phases = vec![phase("load", Group::Load, (0, (0, 0), 2 * SECOND_NS))];
        for (index, window) in windows.iter().enumerate() {
            let from_ns = index as u64 * APART_NS;
            let edges = (from_ns + WINDOW.0, from_ns + WINDOW.1);
            let times = (from_ns + 2 * SECOND_NS, edges, edges.1 + TICK_NS);
            let (load, background) = window.loads.clone();
            let held = phase(window.label.0, window.label.1, times);
            manifest.phases.push(Phase { load, background, ..held });
        }
        let mut recorder = Recorder::create(dir, manifest, &schemas).unwrap();
        for (index, window) in windows.iter().enumerate() {
            window.rows(&mut recorder, &schemas, RUN + index as i32);
        }
        recorder.close(end).unwrap();
        Recording::open(dir).unwrap()
    }

    /// Counters and latencies of this window, as phase `phase`.
    fn rows(&self, recorder: &mut Recorder, schemas: &[&'static Schema], phase: i32) {
        let from_ns = (phase - RUN) as u64 * APART_NS;
        for (&(probe, object), rates) in &self.rates {
            let schema = schemas.iter().find(|schema| schema.probe == probe).unwrap();
            // Two ticks of warm-up, then the window and its edges.
            for t_ns in (WINDOW.0 - 2 * TICK_NS..=WINDOW.1).step_by(TICK_NS as usize) {
                let ticks = t_ns / TICK_NS;
                let bursts = self.bursts.contains(&(probe, object));
                let moved = if bursts { ticks / 10 * 10 } else { ticks };
                let cell = |column: &Column| {
                    let rate = rates.get(column.name).copied().unwrap_or(0);
                    Cell::from(1_000 + rate / 10 * moved)
                };
                let cells: Vec<Cell> = schema.columns.iter().map(cell).collect();
                recorder.row(probe, from_ns + t_ns, phase, object, &cells).unwrap();
            }
        }
        for second in 2..13 {
            for (role, op, clock, latencies) in &self.latencies {
                let mut histogram = LatencyHistogram::new();
                for &(ns, count) in latencies {
                    (0..count).for_each(|_| histogram.record(ns));
                }
                recorder
                    .histogram(HistogramRow {
                        phase,
                        second: second + (from_ns / SECOND_NS) as u32,
                        op: *op,
                        role: (*role).to_owned(),
                        windowed: second > 2,
                        clock: *clock,
                        histogram,
                    })
                    .unwrap();
            }
        }
    }
}

/// A phase without loads: its start, the edges of its window, its end.
fn phase(label: &str, group: Group, times: (u64, (u64, u64), u64)) -> Phase {
    let (start_ns, window, end_ns) = times;
    Phase {
        label: label.to_owned(),
        group,
        repeat: 0,
        load: None,
        background: None,
        start_ns,
        window_start_ns: window.0,
        window_end_ns: window.1,
        end_ns,
        stop: Stop::TimeLimit,
        first_error: None,
        note: None,
    }
}

fn load(op: Op, block_bytes: u64, workers: u32) -> LoadSpec {
    LoadSpec {
        engine: "instance".to_owned(),
        op,
        access: Access::Sequential,
        block_bytes,
        workers,
        depth_per_worker: if op == Op::Read { 2 } else { 1 },
        span_bytes: 1 << 30,
        sync: (op == Op::Commit).then_some(SyncMethod::Dsync),
        direct: true,
        pacing: Pacing::Closed,
        seed: 1,
    }
}

/// A calibration that found 8,000 reads a second at most.
pub fn calibration() -> Manifest {
    let mut calibration = manifest();
    "calibrate".clone_into(&mut calibration.verb);
    "cal001".clone_into(&mut calibration.id);
    for (name, unit, value) in [
        ("max_iops", "IOPS", 8_000.0),
        ("max_commits_per_s", "commits/s", 3_000.0),
        ("read_latency_ns_p50", "ns", 500_000.0),
    ] {
        let figure: Figure = serde_json::from_value(json!({
            "title": name, "unit": unit, "value": value, "low": value * 0.98,
            "high": value * 1.02, "samples": 9_000, "duration_ns": 1_000_000_000,
            "phase": "confirm/max-iops", "condemned_by": [],
        }))
        .unwrap();
        calibration.summary.insert(name.to_owned(), figure);
    }
    calibration
}

fn manifest() -> Manifest {
    let mut manifest = json!({
        "format": "blockstone.recording/1", "id": "run001", "tool_version": "0.1.0",
        "verb": "run", "argv": ["blockstone", "run", "/data"], "seed": 42,
        "started_at": "2026-11-21T22:35:41Z", "ended_at": "2026-11-21T22:35:55Z",
        "end": { "state": "complete" }, "settings": settings(), "target": target(),
        "file": null, "disk_files": disk_files(),
        "phases": [], "probes": [], "summary": {}, "verdicts": [],
        "capabilities": [{ "name": "direct-io", "state": "full" }],
    });
    manifest["host"] = json!({
        "hostname": "db1", "kernel": "6.18.44", "architecture": "x86_64",
        "cpu_model": "AMD EPYC", "cpus": 2, "cpus_allowed_milli": 2000,
        "memory_bytes": 25_276_510_208_u64, "hypervisor": "KVM", "databases_running": [],
    });
    serde_json::from_value(manifest).unwrap()
}

fn disk_files() -> Value {
    let map = json!({
        "size_bytes": 1_u64 << 30, "allocated_bytes": 1_u64 << 30, "extents": 3,
        "mapped_bytes": 1_u64 << 30, "hole_bytes": 0, "unwritten_bytes": 0, "encoded_bytes": 0,
        "shared_bytes": 0, "fiemap": { "state": "full" },
    });
    let sample = json!({
        "sampled_bytes": 2_097_152, "zero_bytes": 0, "lz4_bytes": 2_097_152, "duplicate_bytes": 0,
    });
    let file = |path: &str| json!({ "path": path, "ours": true, "map": map, "sample": sample });
    json!([file("/d1/disk0"), file("/d2/disk1")])
}

fn settings() -> Value {
    json!({
        "target": "instance", "block_bytes": 8192, "cache_bytes": 134_217_728,
        "redundancy": "normal", "torn_protection": "full-page", "schemas": 4, "threads": 4,
        "sessions": 16, "rows_per_schema": 32_768, "work_unit": 4, "update_work_unit": 4,
        "update_pct": 20, "scan_pct": 0, "redo_stress": "lite", "run_time_ns": 10_000_000_000_u64,
    })
}

fn target() -> Value {
    json!({
        "path": "/data", "kind": "directory",
        "file_system": {
            "kind": "xfs", "source": "/dev/vda", "mount_point": "/data", "options": "rw",
        },
        "devices": [{
            "name": "vda", "number": "254:0", "kind": "disk", "size_bytes": 274_877_906_944_u64,
            "model": "QEMU", "scheduler": "none", "write_cache": "write back",
            "rotational": false, "logical_block_bytes": 512, "physical_block_bytes": 4096,
            "queue_depth": 256, "max_request_bytes": 4_194_304, "beneath": [], "link": null,
        }],
        "direct_io": {
            "capability": { "state": "full" }, "offset_align_bytes": 512,
            "memory_align_bytes": 512, "source": "statx STATX_DIOALIGN",
        },
        "caps": [], "free_bytes": 72_360_521_728_u64,
    })
}
