//! A calibration as it results from a virtual disk with a ceiling near 80,000 reads per second. All
//! numbers are derived from one seed, so its renderings can be compared word for word.

use blockstone_base::Capability;
use blockstone_base::column::Schema;
use blockstone_base::dist::Distribution;
use blockstone_base::histogram::{Buckets, LatencyHistogram};
use blockstone_base::identity::{BlockDevice, DeviceKind};
use blockstone_base::load::{LoadSpec, Op, SERIES};
use blockstone_base::rng::Rng;
use blockstone_base::stats::Estimate;
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_judge::findings::{CpuCost, Evidence, Findings, Latency, Point};
use blockstone_judge::flushes::{self, Flush};
use blockstone_judge::precondition::{Precondition, Round};
use blockstone_record::Recording;
use blockstone_record::manifest::{End, Figure, Group, Manifest, Phase, Stop};
use blockstone_record::testing::{self, RecordingBuilder, SECOND_NS, counters, schema};
use serde_json::json;
use tempfile::TempDir;

static PROCESS: Schema =
    schema("process", &counters(["cpu_user_ns", "cpu_system_ns", "run_queue_ns"]));
static HOST: Schema = schema(
    "host",
    &counters([
        "cpu_user_ns",
        "cpu_nice_ns",
        "cpu_system_ns",
        "cpu_irq_ns",
        "cpu_softirq_ns",
        "cpu_steal_ns",
    ]),
);
static BLOCK: Schema = schema("block", &counters(["busy_ns"]));

/// A recording on disk, which is removed with this value, and its findings.
pub struct Fixture {
    pub recording: Recording,
    pub findings: Findings,
    _dir: TempDir,
}

impl Fixture {
    /// Returns one fixture of each kind.
    pub fn all() -> [Self; 4] {
        [Self::clean(), Self::condemned(), Self::interrupted(), Self::preconditioned()]
    }

    /// All phases ran and nothing condemns the numbers.
    pub fn clean() -> Self {
        Self::ended(End::Complete, usize::MAX)
    }

    /// Interrupted by Ctrl-C after the random reads.
    pub fn interrupted() -> Self {
        Self::ended(End::Interrupted { signal: "SIGINT".to_owned() }, 20)
    }

    /// The file was in memory: every number is condemned.
    pub fn condemned() -> Self {
        let mut fixture = Self::clean();
        for point in &mut fixture.findings.points {
            point.condemned_by = vec!["memory-test".to_owned()];
        }
        for (_, figure) in &mut fixture.findings.summary {
            figure.condemned_by = vec!["memory-test".to_owned()];
        }
        let concerns = fixture.findings.summary.iter().map(|(name, _)| name.clone()).collect();
        fixture.findings.verdicts[0] = Verdict {
            rule: "memory-test".to_owned(),
            outcome: Outcome::Fail,
            weight: Weight::Condemns,
            concerns,
            evidence: "8.31 GiB were completed and the kernel charged 0 B of storage I/O to this \
                       process"
                .to_owned(),
            cause: "the reads were answered from memory: the path is on tmpfs, or in a cache"
                .to_owned(),
            next: "measure a path on a block device, or a file larger than any cache".to_owned(),
        };
        fixture
    }

    /// On a file that was written twice, then at random in rounds until the rate had settled.
    pub fn preconditioned() -> Self {
        let mut fixture = Self::clean();
        let rates =
            [91_000.0, 64_000.0, 41_000.0, 34_000.0, 33_500.0, 34_100.0, 33_900.0, 33_950.0];
        let round = |rate: f64| Round {
            written_bytes: (rate * 60.0) as u64 * 8192,
            iops: estimate(rate, 0.004, rate as u64 * 60),
        };
        let rounds: Vec<Round> = rates.map(round).into();
        let pass_bytes = 2 * testing::FILE_BYTES;
        let random: u64 = rounds.iter().map(|round| round.written_bytes).sum();
        let written_bytes = pass_bytes + random;
        let done = Precondition { written_bytes, pass_bytes, rounds, settled: true };
        fixture.findings.precondition = Some(done);
        fixture
    }

    /// With additional points for random reads and writes together.
    pub fn mixed() -> Self {
        let mut fixture = Self::clean();
        let rates = [("mix/100:0", 79_300.0), ("mix/0:100", 99_100.0), ("mix/70:30", 84_800.0)];
        let points = &mut fixture.findings.points;
        points.extend(rates.map(|(label, rate)| point(label, rate)));
        fixture
    }

    fn ended(end: End, phases: usize) -> Self {
        let dir = tempfile::Builder::new().prefix("blockstone-report-").tempdir().unwrap();
        let path = dir.path().join("20261121-205700-calibrate-k3v9qz");
        let mut points = points();
        points.truncate(phases);
        let end_complete = end == End::Complete;
        let recording = recorded(&points, end).write(&path);
        let summary = summary(&points);
        let verdicts = verdicts(&recording.manifest);
        let flush_slope = flushes::slope(&flushes()).filter(|_| end_complete);
        let drift_ratio = Some(0.013);
        let precondition = None;
        let findings = Findings {
            points,
            summary,
            verdicts,
            drift_ratio,
            flush_slope,
            buffered_write: None,
            cached_visits: None,
            precondition,
        };
        Self { recording, findings, _dir: dir }
    }
}

/// Flushes of a volatile cache that writes out 2 GB/s.
fn flushes() -> Vec<Flush> {
    let mut rng = Rng::new(7, 25);
    let rounds = (0..25).flat_map(|_| [0, 64 << 10, 1 << 20, 8 << 20]);
    let flush = |unflushed_bytes| {
        let time_ns = 6e5 + unflushed_bytes as f64 / 2.0;
        Flush { unflushed_bytes, flush_ns: (time_ns * (0.9 + 0.2 * rng.unit())) as u64 }
    };
    rounds.map(flush).collect()
}

/// Prefixes of labels, each with suffixes and their operations per second (MB/s for large reads).
const RATES: &[(&str, &[(&str, f64)])] = &[
    ("", &[("overhead/null", 4_100_000.0), ("layout", 1_210.0), ("reference", 25_430.0)]),
    ("random-read/psync/x", &[("1", 25_430.0), ("2", 38_900.0), ("4", 47_200.0), ("8", 56_100.0)]),
    ("random-read/psync/x", &[("16", 62_800.0), ("32", 66_900.0), ("64", 67_400.0)]),
    ("random-read/uring/d", &[("1", 24_800.0), ("2", 40_300.0), ("4", 55_800.0), ("8", 68_200.0)]),
    ("random-read/uring/d", &[("16", 74_900.0), ("32", 77_600.0), ("64", 79_300.0)]),
    ("random-read/uring/d", &[("128", 79_800.0)]),
    ("large-read/sequential/x", &[("1", 1_390.0), ("2", 1_640.0), ("4", 1_690.0), ("8", 1_688.0)]),
    ("large-read/random/x", &[("1", 1_348.0), ("2", 1_591.0), ("4", 1_639.0), ("8", 1_637.0)]),
    ("random-write/psync/x", &[("1", 33_100.0), ("4", 61_000.0), ("16", 78_000.0)]),
    ("random-write/uring/d", &[("8", 81_000.0), ("32", 98_900.0), ("64", 99_400.0)]),
    ("commit/dsync/", &[("overwrite/8K/x1", 16_900.0), ("append/8K/x1", 7_041.7)]),
    ("commit/fdatasync/", &[("overwrite/8K/x1", 15_794.4), ("append/8K/x1", 6_581.0)]),
    ("commit/fsync/", &[("overwrite/8K/x1", 12_518.5), ("append/8K/x1", 5_216.0)]),
    ("commit/dsync/overwrite/", &[("512/x1", 17_400.0), ("4K/x1", 17_300.0)]),
    ("commit/dsync/overwrite/", &[("16K/x1", 15_800.0), ("64K/x1", 11_200.0)]),
    ("commit/dsync/overwrite/8K/x", &[("2", 27_800.0), ("4", 39_100.0)]),
    ("commit/dsync/overwrite/8K/x", &[("8", 45_200.0), ("16", 47_900.0)]),
    ("cache-map/", &[("4M", 25_400.0), ("16M", 25_399.6), ("64M", 25_398.3)]),
    ("cache-map/", &[("256M", 25_393.3), ("1G", 25_373.2), ("full", 25_292.6)]),
    ("matrix/", &[("s1l0", 24_800.0), ("s1l2", 8_266.7), ("s8l0", 63_219.0), ("s8l2", 21_073.0)]),
    ("", &[("open-loop/20000", 20_003.0)]),
    ("cached-read/", &[("cached", 8_130.0), ("buffered", 1_480.0), ("direct", 1_688.0)]),
    ("", &[("confirm/max-iops", 79_650.0)]),
];

fn points() -> Vec<Point> {
    let labels = RATES.iter().flat_map(|(start, ends)| {
        ends.iter().map(move |(end, rate)| (format!("{start}{end}"), *rate))
    });
    labels.map(|(label, rate)| point(&label, rate)).collect()
}

/// Returns the point of the load with this label. In a closed loop, Little's law gives the mean
/// latency.
fn point(label: &str, rate: f64) -> Point {
    let Phase { label, group, load, background, .. } = testing::point(label);
    let mut load = load.unwrap();
    if group == Group::Confirm {
        load = testing::point("random-read/uring/d128").load.unwrap();
    }
    let megabytes = matches!(group, Group::LargeRead | Group::CachedRead);
    let iops = if megabytes { rate * 1e6 / load.block_bytes as f64 } else { rate };
    let median_ns = f64::from(load.in_flight()) / iops * 1e9 * 0.86;
    let samples = (iops * 0.8) as u64;
    let bytes = samples * load.block_bytes;
    let commit = load.op == Op::Commit;
    let histogram = histogram(&label, median_ns, samples.min(60_000));
    let mut latency = latency(&histogram);
    if group == Group::OpenLoop {
        (latency.lag_ns_mean, latency.lag_ns_max) = (8_100.0, 1_940_000);
    }
    Point {
        iops: estimate(iops, 0.007, samples),
        mb_per_s: estimate(iops * load.block_bytes as f64 / 1e6, 0.007, samples),
        latency,
        cpu: cost(&load),
        evidence: Evidence {
            process_overcharged: false,
            completed_bytes: bytes,
            process_bytes: Some(bytes + bytes / 900),
            added_pages: Some(0),
            device_bytes: Some(bytes + bytes / 700),
            device_ios: Some(samples + samples / 700),
            device_flushes: commit.then_some(samples / u64::from(load.workers.min(3))),
            device_ns_mean: Some(median_ns * 0.8),
            stamps_verified: samples,
            checksums_verified: samples / 64,
            mismatches: 0,
            failed_ops: 0,
        },
        windows: if group == Group::Reference { 3 } else { 1 },
        background: background.map(|load| (load, estimate(1_100.0, 0.02, 900))),
        targets: Vec::new(),
        slices: Vec::new(),
        histogram,
        stop: if commit { Stop::TimeLimit } else { Stop::IntervalReached },
        condemned_by: Vec::new(),
        warned_by: Vec::new(),
        label,
        group,
        load,
    }
}

fn cost(load: &LoadSpec) -> CpuCost {
    let (switches, user_ns, system_ns) =
        if load.engine == "psync" { (1.02, 310.0, 4_900.0) } else { (0.11, 70.0, 3_800.0) };
    CpuCost {
        user_ns_per_io: Some(user_ns),
        system_ns_per_io: Some(system_ns),
        switches_voluntary_per_io: Some(switches),
        switches_involuntary_per_io: Some(0.004),
        run_queue_ns_per_io: Some(410.0 * f64::from(load.workers)),
        host_busy_ratio: Some(0.42),
        foreign_busy_ratio: Some(0.013),
        steal_ratio: None,
    }
}

fn histogram(label: &str, median_ns: f64, samples: u64) -> LatencyHistogram {
    let stream = label.bytes().fold(0, |hash: u64, byte| hash.wrapping_mul(31) + u64::from(byte));
    let mut rng = Rng::new(2026, stream);
    let body = Distribution::LogNormal { median_ns, sigma: 0.35 };
    let tail = Distribution::LogNormal { median_ns: median_ns * 9.0, sigma: 0.6 };
    let mut histogram = LatencyHistogram::new();
    for _ in 0..samples {
        let part = if rng.below(400) == 0 { &tail } else { &body };
        histogram.record(part.sample_ns(&mut rng) as u64);
    }
    histogram
}

fn latency(histogram: &LatencyHistogram) -> Latency {
    // Sixteen equal parts of a window.
    let part: Buckets = histogram.buckets().map(|(ns, count)| (ns, count.div_ceil(16))).collect();
    let quantile = |q| histogram.quantile(q, &[&part; 16], 800_000_000);
    Latency {
        ns_mean: estimate(histogram.mean_ns(), 0.01, histogram.count()),
        ns_p50: quantile(0.5),
        ns_p90: quantile(0.9),
        ns_p99: quantile(0.99),
        ns_p999: quantile(0.999),
        ns_p9999: quantile(0.9999),
        ns_min: histogram.min_ns(),
        ns_max: histogram.max_ns(),
        unfinished: Some(0),
        lag_ns_mean: 0.0,
        lag_ns_max: 0,
    }
}

fn estimate(value: f64, half: f64, samples: u64) -> Estimate {
    let (low, high) = (value * (1.0 - half), value * (1.0 + half));
    Estimate { value, low, high, samples, duration_ns: 800_000_000 }
}

/// The figures: name, title, unit, and the point from which each is read.
const FIGURES: [[&str; 4]; 16] = [
    ["max_iops", "Most random reads a second", "IOPS", "confirm/max-iops"],
    ["max_mbps", "Most megabytes read a second", "MB/s", "large-read/sequential/x4"],
    ["actual_latency_ns_mean", "Mean read latency at max_iops", "ns", "confirm/max-iops"],
    ["knee_iops", "Most random reads a second with p99 in bounds", "IOPS", "random-read/uring/d64"],
    ["knee_latency_ns_p99", "Read latency p99 at the knee", "ns", "random-read/uring/d64"],
    ["read_latency_ns_p50", "Single-block read latency p50", "ns", "random-read/psync/x1"],
    ["read_latency_ns_p99", "Single-block read latency p99", "ns", "random-read/psync/x1"],
    ["max_write_iops", "Most random writes a second", "IOPS", "random-write/uring/d64"],
    ["write_mbps", "Megabytes written a second", "MB/s", "layout"],
    ["write_latency_ns_p50", "Single-block write latency p50", "ns", "random-write/psync/x1"],
    ["commit_latency_ns_p50", "Commit latency p50", "ns", "commit/dsync/overwrite/8K/x1"],
    ["commit_latency_ns_p99", "Commit latency p99", "ns", "commit/dsync/overwrite/8K/x1"],
    ["max_commits_per_s", "Most commits a second", "commits/s", "commit/dsync/overwrite/8K/x16"],
    ["cached_read_mbps", "Sequential read from the page cache", "MB/s", "cached-read/cached"],
    [
        "buffered_read_mbps",
        "Sequential read through the page cache",
        "MB/s",
        "cached-read/buffered",
    ],
    ["direct_read_mbps", "Sequential read past the page cache", "MB/s", "cached-read/direct"],
];

fn summary(points: &[Point]) -> Vec<(String, Figure)> {
    let found = FIGURES.iter().filter_map(|[name, title, unit, label]| {
        let point = points.iter().find(|p| p.label == *label)?;
        let estimate = match name.rsplit('_').next().unwrap() {
            "mean" => point.latency.ns_mean,
            "p50" => point.latency.ns_p50,
            "p99" => point.latency.ns_p99,
            "mbps" => point.mb_per_s,
            _ => point.iops,
        };
        Some(((*name).to_owned(), testing::figure(title, unit, estimate, label)))
    });
    found.collect()
}

fn verdicts(manifest: &Manifest) -> Vec<Verdict> {
    let verdict = |rule: &str, outcome, weight, evidence: &str| Verdict {
        rule: rule.to_owned(),
        outcome,
        weight,
        concerns: Vec::new(),
        evidence: evidence.to_owned(),
        cause: String::new(),
        next: String::new(),
    };
    let pass = |rule, evidence| verdict(rule, Outcome::Pass, Weight::Condemns, evidence);
    let complete = manifest.end == End::Complete;
    let mut all = vec![
        pass("memory-test", "the kernel charged 1.001 × the completed bytes to this process"),
        pass("hole", "no hole in 12 extents"),
        pass("unwritten", "no unwritten extent"),
        pass("not-direct", "every window bypassed the page cache"),
        verdict(
            "above-link",
            Outcome::Inconclusive,
            Weight::Condemns,
            "the kernel knows no link speed of vda; give it with --link",
        ),
        pass("throttled", "no plateau that all loads share"),
        pass("burst", "the rate did not fall within a window"),
        pass("unsteady", "the reference moved by 1.3 % over the run"),
        pass("noisy-neighbour", "foreign work took 1.3 % of the processors"),
        pass("generator-bound", "the tool costs 0.24 µs per I/O, 0.7 % of a read"),
        pass("compressible", "LZ4 leaves 100 % of the sample"),
    ];
    if complete {
        all.push(Verdict {
            concerns: vec!["commit_latency_ns_p99".to_owned()],
            cause: "runnable committers wait for a processor, not for the device".to_owned(),
            next: "repeat on an idle host, or give the committers processors of their own"
                .to_owned(),
            ..verdict(
                "run-queue-delay",
                Outcome::Fail,
                Weight::Warns,
                "committers were runnable but not running for 14 % of the commit latency",
            )
        });
    }
    all
}

/// Records one phase of a second per point, and the reference twice more later on.
fn recorded(points: &[Point], end: End) -> RecordingBuilder {
    let mut recording = RecordingBuilder::new(manifest(end), &[&SERIES, &PROCESS, &HOST, &BLOCK]);
    recording.tick_ns = SECOND_NS / 20;
    let reference = || points.iter().filter(|point| point.group == Group::Reference);
    let (early, late) = points.split_at(points.len().min(20));
    for point in early.iter().chain(reference()).chain(late).chain(reference()) {
        let layout = point.group == Group::Layout;
        let phase = Phase {
            load: Some(point.load.clone()),
            background: point.background.as_ref().map(|(load, _)| load.clone()),
            stop: point.stop,
            note: layout.then(|| "written once, in stamped blocks".to_owned()),
            ..testing::phase(&point.label, point.group)
        };
        let window_ns = if layout { 3_300_000_000 } else { 800_000_000 };
        recording.add(phase, (200_000_000, window_ns));
        count(&mut recording, point);
    }
    recording
}

/// Records the counters of a phase, at the rates of the point.
fn count(recording: &mut RecordingBuilder, point: &Point) {
    let iops = point.iops.value;
    let (ops, bytes) = (iops as u64, (point.mb_per_s.value * 1e6) as u64);
    recording.series("load", ["completed_ops", "completed_bytes"], &[("", [ops, bytes])]);
    if let Some((_, mb_per_s)) = &point.background {
        recording.set("load", "background", "completed_bytes", (mb_per_s.value * 1e6) as u64);
    }
    let each = |cost: Option<f64>| (iops * cost.unwrap()) as u64;
    let user = each(point.cpu.user_ns_per_io).min(SECOND_NS / 2);
    let system = each(point.cpu.system_ns_per_io).min(SECOND_NS);
    let waiting = each(point.cpu.run_queue_ns_per_io);
    let columns = ["cpu_user_ns", "cpu_system_ns", "run_queue_ns"];
    recording.series("process", columns, &[("", [user, system, waiting])]);
    let all = [user + SECOND_NS / 40, system, SECOND_NS / 15];
    recording.series("host", ["cpu_user_ns", "cpu_system_ns", "cpu_softirq_ns"], &[("", all)]);
    let busy_ns = (9e8 * (iops / 80e3).clamp(0.3, 1.0)) as u64;
    recording.series("block", ["busy_ns"], &[("vda1", [busy_ns]), ("vda", [busy_ns])]);
}

fn manifest(end: End) -> Manifest {
    let mut manifest = Manifest { end, ..testing::manifest() };
    manifest.argv =
        ["blockstone", "calibrate", "/u02/oradata", "--matrix"].map(str::to_owned).into();
    let settings = [
        ("max_latency_ns", json!(20_000_000)),
        ("size_bytes", json!(testing::FILE_BYTES)),
        ("buffered", json!(false)),
        ("matrix", json!(true)),
        ("quick", json!(false)),
    ];
    manifest.settings.extend(settings.map(|(name, value)| (name.to_owned(), value)));
    "/u02/oradata".clone_into(&mut manifest.target.path);
    let partition = testing::device("vda1", DeviceKind::Partition);
    let partition = BlockDevice { beneath: vec!["vda".to_owned()], ..partition };
    manifest.target.devices.insert(0, partition);
    let unreadable = "the io controller is not readable; run as root to see caps";
    let unreadable = testing::capability("cgroup-caps", Capability::degraded(unreadable));
    manifest.capabilities.push(unreadable);
    manifest
}
