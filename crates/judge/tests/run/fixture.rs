//! A recording of a workload run in which every counter is known: each grows at a constant rate.
//! The tests of the reports use it too.

use std::collections::BTreeMap;

use blockstone_base::column::Schema;
use blockstone_base::database::{self, DIRECT_READ, TABLE_STEPS, TRANSACTIONS};
use blockstone_base::load::{Access, LoadSpec, Op, SERIES};
use blockstone_base::stats::Estimate;
use blockstone_record::LatencyClock::{Intended, Submitted};
use blockstone_record::manifest::{Group, Manifest, Phase};
use blockstone_record::testing::{self, RecordingBuilder, SECOND_NS, counters, schema};
use serde_json::json;

/// The sessions warm up for a second, then the window is ten seconds long.
const TIMES: (u64, u64) = (SECOND_NS, 10 * SECOND_NS);

static PROCESS: Schema =
    schema("process", &counters(["cpu_user_ns", "cpu_system_ns", "read_bytes", "run_queue_ns"]));
static HOST: Schema = schema(
    "host",
    &counters([
        "cpu_user_ns",
        "cpu_nice_ns",
        "cpu_system_ns",
        "cpu_irq_ns",
        "cpu_softirq_ns",
        "cpu_iowait_ns",
        "cpu_idle_ns",
        "cpu_steal_ns",
    ]),
);
static BLOCK: Schema = schema(
    "block",
    &counters([
        "read_ios",
        "read_bytes",
        "write_ios",
        "write_bytes",
        "busy_ns",
        "flush_ios",
        "flush_ns",
    ]),
);

/// A run that has loaded its data.
fn loaded() -> RecordingBuilder {
    let probes = database::ALL.iter().copied().chain([&PROCESS, &HOST, &BLOCK, &SERIES]);
    let mut run = RecordingBuilder::new(manifest(), &probes.collect::<Vec<_>>());
    run.push(Phase { end_ns: 19 * SECOND_NS / 10, ..testing::phase("load", Group::Load) });
    run
}

/// 16 sessions on four mirrored disks: 6,000 reads, 300 updates of 4 rows a second.
pub fn healthy() -> RecordingBuilder {
    let mut run = loaded();
    sessions(&mut run, "run");
    run
}

/// 128 sessions that only read, 2,400 blocks a second.
pub fn readers() -> RecordingBuilder {
    let mut run = healthy();
    let settings = &mut run.manifest.settings;
    settings.remove("update_pct");
    for (name, count) in [("sessions", 128), ("readers", 128), ("writers", 0)] {
        settings.insert(name.to_owned(), count.into());
    }
    let columns = ["logical_reads", "physical_reads", "commits", "db_time_ns"];
    run.series("instance", columns, &[("", [2_400, 2_400, 0, 127_800_000_000])]);
    let columns = ["completed_ops", "rows", "commits", "service_ns_sum"];
    let rows = [("select", [600, 2_400, 0, 127_900_000_000]), ("update", [0; 4])];
    run.series("operation", columns, &rows);
    let reads = ("session/db file sequential read", [2_400, 126_900_000_000]);
    run.series("event", WAITS, &[reads, ("session/log file sync", [0, 0])]);
    run
}

/// Order entry: 1,000 transactions a second, with these shares of each 100.
pub fn order_entry(shares: [u64; 5]) -> RecordingBuilder {
    let mut run = healthy();
    let asked = TRANSACTIONS.into_iter().zip([45, 43, 4, 4, 4]).collect::<BTreeMap<_, _>>();
    let settings = &mut run.manifest.settings;
    settings.remove("update_pct");
    settings.insert("profile".into(), "oltp".into());
    settings.insert("transaction_pct".into(), json!(asked));
    run.remove("operation");
    let columns = ["completed_ops", "rows", "commits", "latency_ns_sum", "service_ns_sum"];
    let row = |(name, share): (&'static str, u64)| {
        let count = 10 * share;
        (name, [count, 4 * count, count, 156 * 10 * share * 100_000, 156 * 10 * share * 100_000])
    };
    let rows: Vec<_> = TRANSACTIONS.into_iter().zip(shares).map(row).collect();
    run.series("operation", columns, &rows);
    run.latencies("new-order", Op::Commit, Intended, &[(10_000_000, 440), (40_000_000, 10)]);
    run
}

/// A bulk write: two tables of 80 MiB a second, made in 250 ms and flushed in 150 ms each. For each
/// byte of a table, three are charged as written.
pub fn bulk_write() -> RecordingBuilder {
    let mut run = healthy();
    let settings = &mut run.manifest.settings;
    settings.remove("update_pct");
    settings.insert("profile".into(), "bulk-write".into());
    for (name, value) in [("sessions", 1), ("schemas", 1), ("rows_per_schema", 10_240)] {
        settings.insert(name.into(), value.into());
    }
    run.remove("operation");
    let columns = ["completed_ops", "rows", "commits", "latency_ns_sum", "bytes"];
    let [create, flush, drop] = TABLE_STEPS;
    let bytes = 2 * 10_240 * 8192;
    let rows = [
        (create, [2, 2 * 10_240, 2, 500_000_000, bytes]),
        (flush, [2, 0, 0, 300_000_000, 0]),
        (drop, [2, 0, 0, 10_000_000, 0]),
    ];
    run.series("operation", columns, &rows);
    run.latencies(create, Op::Commit, Intended, &[(250_000_000, 2)]);
    let columns = ["read_bytes", "write_bytes"];
    let server = [("session", [6_000 * 8192, bytes]), ("checkpointer", [0, 2 * bytes])];
    run.series("server", columns, &server);
    run
}

/// The healthy sessions, then half of their reads and commits during the noise of two writers.
pub fn noise() -> RecordingBuilder {
    let mut run = loaded();
    run.manifest.settings.insert("noise_writers".into(), 2.into());
    sessions(&mut run, "quiet");
    sessions(&mut run, "noisy");
    run.set("role", "session", "read_ios", 3_000);
    run.set("event", "session/db file sequential read", "waits", 3_000);
    run.set("operation", "update", "commits", 150);
    let columns = ["completed_ops", "completed_bytes"];
    run.series("load", columns, &[("background", [1_000, 1_000 << 17])]);
    let writes = [(2_000_000, 990), (8_000_000, 10)];
    run.latencies("background", Op::Commit, Intended, &writes);
    run.last().phase.background = Some(load(Op::Commit, 131_072, 2));
    run
}

/// A matrix of two sizes and two numbers of sessions: with one session, a database sees only half
/// of the reads, each as a wait of a tenth of its length.
pub fn matrix() -> RecordingBuilder {
    let mut run = loaded();
    run.manifest.settings.insert("profile".into(), "scan".into());
    run.manifest.settings.insert("scan_rows".into(), 8.into());
    run.manifest.settings.remove("update_pct");
    for (label, blocks, parallel, ios, io_ns) in [
        ("scan/m4p1", 4, 1, 2_000, 500_000),
        ("scan/m128p1", 128, 1, 200, 3_000_000),
        ("scan/m4p16", 4, 16, 6_400, 5_000_000),
        ("scan/m128p16", 128, 16, 200, 160_000_000),
    ] {
        let phase = testing::phase(label, Group::Scan);
        let load = Some(load(Op::Read, blocks * 8192, parallel));
        run.add(Phase { load, ..phase }, TIMES);
        machine(&mut run);
        let bytes = ios * blocks * 8192;
        run.set("process", "", "read_bytes", bytes);
        for (probe, object) in [("role", "session"), ("disk", "/d1")] {
            let columns = ["read_ios", "read_bytes", "read_ns"];
            run.series(probe, columns, &[(object, [ios, bytes, ios * io_ns])]);
        }
        let (waits, wait_ns) = if parallel == 1 { (ios / 2, io_ns / 10) } else { (ios, io_ns / 2) };
        run.series("event", WAITS, &[("session/direct path read", [waits, waits * wait_ns])]);
        run.series("operation", ["completed_ops", "rows", "failed_ops"], &[("scan", [10, 80, 0])]);
        let columns = ["logical_reads", "physical_reads", "direct_reads"];
        run.series("instance", columns, &[("", [ios * blocks; 3])]);
        run.latencies(DIRECT_READ, Op::Read, Submitted, &[(io_ns, ios)]);
        run.latencies("session/direct path read", Op::Read, Submitted, &[(wait_ns, waits)]);
    }
    run
}

/// The healthy run on a target that reports nothing about itself.
pub fn without_database() -> RecordingBuilder {
    let mut run = healthy();
    run.last().retain(|probe| !["event", "role", "disk", "instance"].contains(&probe));
    run.last().histograms.retain(|row| !row.role.contains('/'));
    run
}

/// A phase in which the healthy sessions work.
fn sessions(run: &mut RecordingBuilder, label: &str) {
    run.add(testing::phase(label, Group::Workload), TIMES);
    machine(run);
    run.series(
        "instance",
        ["logical_reads", "physical_reads", "single_block_reads", "physical_writes"],
        &[("", [6_400, 6_000, 6_000, 1_200])],
    );
    run.series(
        "instance",
        ["block_changes", "redo_bytes", "redo_writes", "commits"],
        &[("", [1_200, 2_400_000, 200, 300])],
    );
    run.series(
        "instance",
        [
            "db_time_ns",
            "outside_sampled_ns",
            "outside_sampled_cpu_ns",
            "outside_sampled_blocked_ns",
        ],
        &[("", [15_600_000_000, 100_000_000, 50_000_000, 20_000_000])],
    );
    run.series(
        "operation",
        ["completed_ops", "rows", "commits", "latency_ns_sum", "service_ns_sum", "failed_ops"],
        &[
            ("select", [1_200, 4_800, 0, 12_600_000_000, 12_600_000_000, 0]),
            ("update", [300, 1_200, 300, 3_150_000_000, 3_150_000_000, 0]),
            ("scan", [0; 6]),
        ],
    );
    run.latencies("select", Op::Read, Intended, &[(10_000_000, 1_200)]);
    run.latencies("update", Op::Commit, Intended, &[(10_000_000, 290), (40_000_000, 10)]);
    waits(run);
    // Reads, writes and their bytes; for the disks, two copies of every write on four disks.
    let io = |reads: u64, writes: u64, bytes_a_write: u64| {
        let (read_ns, write_ns) = (reads * 2_300_000, writes * 1_000_000);
        [reads, reads * 8192, read_ns, writes, writes * bytes_a_write, write_ns]
    };
    let columns = ["read_ios", "read_bytes", "read_ns", "write_ios", "write_bytes", "write_ns"];
    let session = ("session", io(6_000, 0, 0));
    let writers = [("dbwr", io(0, 600, 16_384)), ("lgwr", io(0, 200, 12_288))];
    run.series("role", columns, &[session, writers[0], writers[1], ("ckpt", [0; 6])]);
    run.series("disk", columns, &["/d1", "/d2", "/d3", "/d4"].map(|d| (d, io(1_500, 400, 15_360))));
}

const WAITS: [&str; 2] = ["waits", "time_ns"];

fn waits(run: &mut RecordingBuilder) {
    run.series(
        "event",
        WAITS,
        &[
            ("session/db file sequential read", [6_000, 14_000_000_000]),
            ("session/log file sync", [300, 600_000_000]),
            ("session/free buffer waits", [0, 0]),
            ("session/CPU", [0, 800_000_000]),
            ("session/run queue", [0, 400_000_000]),
            ("dbwr/db file parallel write", [40, 400_000_000]),
            ("lgwr/log file parallel write", [200, 300_000_000]),
            ("dbwr/CPU", [0, 50_000_000]),
            ("lgwr/CPU", [0, 30_000_000]),
            ("ckpt/CPU", [0, 0]),
        ],
    );
    let read = "session/db file sequential read";
    run.latencies(read, Op::Read, Submitted, &[(2_000_000, 5_900), (9_000_000, 100)]);
    let sync = "session/log file sync";
    run.latencies(sync, Op::Commit, Submitted, &[(1_500_000, 290), (9_000_000, 10)]);
    run.latencies("dbwr/db file parallel write", Op::Write, Submitted, &[(10_000_000, 40)]);
}

/// Counters of the host and of this process during the healthy sessions.
fn machine(run: &mut RecordingBuilder) {
    let columns = ["cpu_user_ns", "cpu_system_ns", "read_bytes"];
    run.series("process", columns, &[("", [400_000_000, 300_000_000, 6_000 * 8192])]);
    let columns = ["cpu_user_ns", "cpu_system_ns", "cpu_idle_ns"];
    run.series("host", columns, &[("", [450_000_000, 320_000_000, 1_230_000_000])]);
    let columns = ["read_ios", "read_bytes", "write_ios", "write_bytes", "busy_ns"];
    let vda = ("vda", [6_000, 6_000 * 8192, 1_600, 30_000_000, 700_000_000]);
    run.series("block", columns, &[vda]);
}

fn load(op: Op, block_bytes: u64, workers: u32) -> LoadSpec {
    LoadSpec {
        engine: "instance".to_owned(),
        access: Access::Sequential,
        block_bytes,
        workers,
        depth_per_worker: if op == Op::Read { 2 } else { 1 },
        ..testing::load(op)
    }
}

/// A calibration that found at most 8,000 reads a second.
pub fn calibration() -> Manifest {
    let figures = [
        ("max_iops", "IOPS", 8_000.0),
        ("max_commits_per_s", "commits/s", 3_000.0),
        ("read_latency_ns_p50", "ns", 500_000.0),
    ]
    .map(|(name, unit, value)| {
        let (low, high) = (value * 0.98, value * 1.02);
        let estimate = Estimate { value, low, high, samples: 9_000, duration_ns: SECOND_NS };
        (name.to_owned(), testing::figure(name, unit, estimate, "confirm/max-iops"))
    });
    Manifest { id: "cal001".to_owned(), summary: figures.into(), ..testing::manifest() }
}

fn manifest() -> Manifest {
    let settings = json!({
        "target": "instance", "block_bytes": 8192, "cache_bytes": 134_217_728,
        "redundancy": "normal", "torn_protection": "full-page", "schemas": 4, "threads": 4,
        "sessions": 16, "rows_per_schema": 32_768, "work_unit": 4, "update_work_unit": 4,
        "update_pct": 20, "scan_pct": 0, "redo_stress": "lite", "run_time_ns": 10_000_000_000_u64,
    });
    let mut manifest = Manifest {
        id: "run001".to_owned(),
        verb: "run".to_owned(),
        argv: ["blockstone", "run", "/data"].map(str::to_owned).into(),
        settings: serde_json::from_value(settings).unwrap(),
        file: None,
        disk_files: ["/d1/disk0", "/d2/disk1"].map(|path| testing::file(path, 1 << 30)).into(),
        ..testing::manifest()
    };
    manifest.target.devices[0].model = Some("QEMU".to_owned());
    manifest.clocks = [0, 12_000_000_000].map(testing::clocks).into();
    manifest
}
