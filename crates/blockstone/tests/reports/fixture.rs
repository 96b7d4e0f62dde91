//! A calibration as it comes out of a virtual disk with a ceiling near 80,000 reads a second. All
//! numbers come from one seed, so renderings of it can be compared word for word.

#[path = "fixture/identity.rs"]
pub mod identity;
#[path = "fixture/series.rs"]
pub mod series;

use blockstone_base::dist::Distribution;
use blockstone_base::histogram::LatencyHistogram;
use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_base::rng::Rng;
use blockstone_base::stats::Estimate;
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_judge::findings::{CpuCost, Evidence, Findings, Latency, Point};
use blockstone_record::Recording;
use blockstone_record::manifest::{End, Figure, Group, Manifest, Phase, Stop};
use tempfile::TempDir;

/// Bytes of the test file.
pub const FILE: u64 = 4 << 30;
const BLOCK: u64 = 8192;
const SECOND: u64 = 1_000_000_000;

/// A recording on disk, removed with this, and what was found in it.
pub struct Fixture {
    pub recording: Recording,
    pub findings: Findings,
    _dir: TempDir,
}

impl Fixture {
    /// All phases ran and nothing condemns the numbers.
    pub fn clean() -> Self {
        Self::ended(End::Complete, usize::MAX)
    }

    /// Ctrl-C after the random reads.
    pub fn interrupted() -> Self {
        Self::ended(End::Interrupted { signal: "SIGINT".to_owned() }, 20)
    }

    /// The file lay in memory: every number is condemned.
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

    fn ended(end: End, phases: usize) -> Self {
        let dir = tempfile::Builder::new().prefix("blockstone-report-").tempdir().unwrap();
        let path = dir.path().join("20261121-205700-calibrate-k3v9qz");
        let mut points = points();
        points.truncate(phases);
        let mut manifest = identity::manifest();
        manifest.end = end.clone();
        manifest.phases = phases_of(&points);
        series::write(&path, manifest, &points, end);
        let recording = Recording::open(&path).unwrap();
        let summary = summary(&points);
        let verdicts = verdicts(&recording.manifest);
        let findings = Findings { points, summary, verdicts, drift_ratio: Some(0.013) };
        Self { recording, findings, _dir: dir }
    }
}

fn points() -> Vec<Point> {
    let mut points = vec![
        Shape::new("overhead/null", Group::Overhead).engine("null").at(4_100_000.0, 240.0),
        Shape::new("layout", Group::Layout)
            .engine("uring")
            .op(Op::Write, Access::Sequential)
            .block(1 << 20)
            .depth(8)
            .at(1_210.0, 6.4e6),
    ];
    points.push(Shape::new("reference", Group::Reference).at(25_430.0, 36_000.0));
    for (threads, iops) in [
        (1, 25_430.0),
        (2, 38_900.0),
        (4, 47_200.0),
        (8, 56_100.0),
        (16, 62_800.0),
        (32, 66_900.0),
        (64, 67_400.0),
    ] {
        let label = format!("random-read/psync/x{threads}");
        points.push(Shape::new(&label, Group::RandomRead).workers(threads).closed(iops));
    }
    for (depth, iops) in [
        (1, 24_800.0),
        (2, 40_300.0),
        (4, 55_800.0),
        (8, 68_200.0),
        (16, 74_900.0),
        (32, 77_600.0),
        (64, 79_300.0),
        (128, 79_800.0),
    ] {
        let label = format!("random-read/uring/d{depth}");
        points
            .push(Shape::new(&label, Group::RandomRead).engine("uring").depth(depth).closed(iops));
    }
    for (kind, access) in [("sequential", Access::Sequential), ("random", Access::Random)] {
        for (streams, mbps) in [(1, 1_390.0), (2, 1_640.0), (4, 1_690.0), (8, 1_688.0)] {
            let slower = if access == Access::Random { 0.97 } else { 1.0 };
            points.push(
                Shape::new(&format!("large-read/{kind}/x{streams}"), Group::LargeRead)
                    .op(Op::Read, access)
                    .block(1 << 20)
                    .workers(streams)
                    .closed(mbps * slower * 1e6 / f64::from(1 << 20)),
            );
        }
    }
    points.extend(writes());
    for (name, span) in [
        ("4M", 4_u64 << 20),
        ("16M", 16 << 20),
        ("64M", 64 << 20),
        ("256M", 256 << 20),
        ("1G", 1 << 30),
        ("full", FILE),
    ] {
        let shape = Shape::new(&format!("cache-map/{name}"), Group::CacheMap).span(span);
        points.push(shape.closed(25_400.0 - span as f64 / 4e7));
    }
    points.extend(rest());
    points
}

fn writes() -> Vec<Point> {
    let mut points = Vec::new();
    for (threads, iops) in [(1, 33_100.0), (4, 61_000.0), (16, 78_000.0)] {
        let shape = Shape::new(&format!("random-write/psync/x{threads}"), Group::RandomWrite);
        points.push(shape.op(Op::Write, Access::Random).workers(threads).closed(iops));
    }
    for (depth, iops) in [(8, 81_000.0), (32, 98_900.0), (64, 99_400.0)] {
        let shape = Shape::new(&format!("random-write/uring/d{depth}"), Group::RandomWrite);
        let shape = shape.op(Op::Write, Access::Random).engine("uring").depth(depth);
        points.push(shape.closed(iops));
    }
    for (method, name, cost) in [
        (SyncMethod::Dsync, "dsync", 1.0),
        (SyncMethod::Fdatasync, "fdatasync", 1.07),
        (SyncMethod::Fsync, "fsync", 1.35),
    ] {
        for (kind, access, growth) in
            [("overwrite", Access::Random, 1.0), ("append", Access::Append, 2.4)]
        {
            let shape = Shape::new(&format!("commit/{name}/{kind}/8K/x1"), Group::Commit);
            points.push(shape.commit(method, access).closed(16_900.0 / cost / growth));
        }
    }
    for (name, block, iops) in [
        ("512", 512, 17_400.0),
        ("4K", 4096, 17_300.0),
        ("16K", 16_384, 15_800.0),
        ("64K", 65_536, 11_200.0),
    ] {
        let shape = Shape::new(&format!("commit/dsync/overwrite/{name}/x1"), Group::Commit);
        points.push(shape.commit(SyncMethod::Dsync, Access::Random).block(block).closed(iops));
    }
    for (committers, iops) in [(2, 27_800.0), (4, 39_100.0), (8, 45_200.0), (16, 47_900.0)] {
        let shape = Shape::new(&format!("commit/dsync/overwrite/8K/x{committers}"), Group::Commit);
        let shape = shape.commit(SyncMethod::Dsync, Access::Random).workers(committers);
        points.push(shape.closed(iops));
    }
    points
}

fn rest() -> Vec<Point> {
    let mut points = Vec::new();
    for (small, large) in [(1, 0), (1, 2), (8, 0), (8, 2)] {
        let shape = Shape::new(&format!("matrix/s{small}l{large}"), Group::Matrix);
        let iops = 24_800.0 * f64::from(small).powf(0.45) / f64::from(1 + large);
        let mut point = shape.engine("uring").depth(small).closed(iops);
        if large > 0 {
            let load = LoadSpec {
                block_bytes: 1 << 20,
                workers: large,
                depth_per_worker: 1,
                ..point.load.clone()
            };
            point.background = Some((load, estimate(1_100.0, 0.02, 900)));
        }
        points.push(point);
    }
    let mut open = Shape::new("open-loop/20000", Group::OpenLoop).workers(16).closed(20_003.0);
    open.load.pacing = Pacing::Open { rate_per_s: 20_000.0, poisson: true };
    (open.latency.lag_ns_mean, open.latency.lag_ns_max) = (8_100.0, 1_940_000);
    points.push(open);
    for (name, mbps) in [("cached", 8_130.0), ("buffered", 1_480.0), ("direct", 1_688.0)] {
        let shape = Shape::new(&format!("cached-read/{name}"), Group::CachedRead);
        let shape = shape.op(Op::Read, Access::Sequential).block(1 << 20);
        let mut point = shape.closed(mbps * 1e6 / f64::from(1 << 20));
        point.load.direct = name == "direct";
        points.push(point);
    }
    let confirmed = Shape::new("confirm/max-iops", Group::Confirm).engine("uring").depth(128);
    points.push(confirmed.closed(79_650.0));
    points
}

/// A load and what came of it.
struct Shape {
    label: String,
    group: Group,
    load: LoadSpec,
}

impl Shape {
    fn new(label: &str, group: Group) -> Self {
        let load = LoadSpec {
            engine: "psync".to_owned(),
            op: Op::Read,
            access: Access::Random,
            block_bytes: BLOCK,
            workers: 1,
            depth_per_worker: 1,
            span_bytes: FILE,
            sync: None,
            direct: true,
            pacing: Pacing::Closed,
            seed: 7,
        };
        Self { label: label.to_owned(), group, load }
    }

    fn engine(mut self, engine: &str) -> Self {
        engine.clone_into(&mut self.load.engine);
        self
    }

    fn op(mut self, op: Op, access: Access) -> Self {
        (self.load.op, self.load.access) = (op, access);
        self
    }

    fn commit(mut self, method: SyncMethod, access: Access) -> Self {
        self.load.sync = Some(method);
        self.op(Op::Commit, access)
    }

    fn block(mut self, bytes: u64) -> Self {
        self.load.block_bytes = bytes;
        self
    }

    fn span(mut self, bytes: u64) -> Self {
        self.load.span_bytes = bytes;
        self
    }

    fn workers(mut self, workers: u32) -> Self {
        self.load.workers = workers;
        self
    }

    fn depth(mut self, depth: u32) -> Self {
        self.load.depth_per_worker = depth;
        self
    }

    /// In a closed loop Little's law gives the mean latency.
    fn closed(self, iops: f64) -> Point {
        let mean_ns = f64::from(self.load.in_flight()) / iops * 1e9;
        self.at(iops, mean_ns * 0.86)
    }

    fn at(self, iops: f64, median_ns: f64) -> Point {
        let samples = (iops * 0.8) as u64;
        let bytes = samples * self.load.block_bytes;
        let blocking = self.load.engine == "psync";
        let histogram = histogram(&self.label, median_ns, samples.min(60_000));
        let (switches, user_ns, system_ns) =
            if blocking { (1.02, 310.0, 4_900.0) } else { (0.11, 70.0, 3_800.0) };
        let commit = self.load.op == Op::Commit;
        Point {
            iops: estimate(iops, 0.007, samples),
            mb_per_s: estimate(iops * self.load.block_bytes as f64 / 1e6, 0.007, samples),
            latency: latency(&histogram),
            cpu: CpuCost {
                user_ns_per_io: Some(user_ns),
                system_ns_per_io: Some(system_ns),
                switches_voluntary_per_io: Some(switches),
                switches_involuntary_per_io: Some(0.004),
                run_queue_ns_per_io: Some(410.0 * f64::from(self.load.workers)),
                host_busy_ratio: Some(0.42),
                foreign_busy_ratio: Some(0.013),
                steal_ratio: None,
            },
            evidence: Evidence {
                completed_bytes: bytes,
                process_bytes: Some(bytes + bytes / 900),
                device_bytes: Some(bytes + bytes / 700),
                device_ios: Some(samples + samples / 700),
                device_flushes: commit.then_some(samples / u64::from(self.load.workers.min(3))),
                device_ns_mean: Some(median_ns * 0.8),
                stamps_verified: samples,
                checksums_verified: samples / 64,
                mismatches: 0,
                failed_ops: 0,
            },
            windows: if self.group == Group::Reference { 3 } else { 1 },
            background: None,
            slices: Vec::new(),
            histogram,
            stop: if commit { Stop::TimeLimit } else { Stop::IntervalReached },
            condemned_by: Vec::new(),
            label: self.label,
            group: self.group,
            load: self.load,
        }
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
    let quantile = |q| {
        let (low, high) = histogram.quantile_interval_ns(q);
        Estimate {
            value: histogram.quantile_ns(q) as f64,
            low: low as f64,
            high: high as f64,
            samples: histogram.count(),
            duration_ns: 800_000_000,
        }
    };
    Latency {
        ns_mean: estimate(histogram.mean_ns(), 0.01, histogram.count()),
        ns_p50: quantile(0.5),
        ns_p90: quantile(0.9),
        ns_p99: quantile(0.99),
        ns_p999: quantile(0.999),
        ns_p9999: quantile(0.9999),
        ns_min: histogram.min_ns(),
        ns_max: histogram.max_ns(),
        lag_ns_mean: 0.0,
        lag_ns_max: 0,
    }
}

fn estimate(value: f64, half: f64, samples: u64) -> Estimate {
    let (low, high) = (value * (1.0 - half), value * (1.0 + half));
    Estimate { value, low, high, samples, duration_ns: 800_000_000 }
}

/// The figures: name, title, unit, and the point each is read from.
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
        let figure = Figure {
            title: (*title).to_owned(),
            unit: (*unit).to_owned(),
            estimate,
            phase: (*label).to_owned(),
            condemned_by: Vec::new(),
        };
        Some(((*name).to_owned(), figure))
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

/// One phase a point, a second each, and the reference twice more later on.
fn phases_of(points: &[Point]) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    let mut start_ns = SECOND / 2;
    let reference = points.iter().filter(|p| p.group == Group::Reference);
    let order = points[..points.len().min(20)]
        .iter()
        .chain(reference.clone())
        .chain(&points[points.len().min(20)..])
        .chain(reference);
    for point in order {
        let long_ns = if point.group == Group::Layout { 3 * SECOND } else { SECOND };
        let repeat = phases.iter().filter(|p| p.label == point.label).count() as u32;
        phases.push(Phase {
            label: point.label.clone(),
            group: point.group,
            repeat,
            load: Some(point.load.clone()),
            background: point.background.as_ref().map(|(load, _)| load.clone()),
            start_ns,
            window_start_ns: start_ns + SECOND / 5,
            window_end_ns: start_ns + long_ns,
            end_ns: start_ns + long_ns,
            stop: point.stop,
            first_error: None,
            note: (point.group == Group::Layout)
                .then(|| "written once, in stamped blocks".to_owned()),
        });
        start_ns += long_ns + SECOND / 20;
    }
    phases
}
