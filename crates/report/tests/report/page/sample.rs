//! A report with everything that a page can show: thirty slices of a run with a stall in it.

use std::borrow::Cow;

use blockstone_base::Estimate;
use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Row, Table, Value, column, count, flow, quotient, share,
    share_of, text, time, total,
};
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_report::chart::{Axis, Chart, Color, Form, HeatCell, Point};
use blockstone_report::{Card, Headline, Report, Section, Sliced, Timeline, Tone};

pub const SLICES: usize = 30;
const S: f64 = 1e9;

pub const WAITS: &[Heading] = &[
    text("wait", "wait event", "What sessions waited for."),
    text("class", "class", "The class of the event."),
    count("sessions", "AAS", "Average active sessions in it."),
    share_of("sessions", "db_time", "DB time", "Share of the time of all sessions."),
    count("waits_per_s", "waits/s", "How often it ended, a second."),
    column(
        "wait_ns_mean",
        "mean",
        Measure::Nanoseconds,
        Merge::WeightedBy("waits_per_s"),
        "Mean length of a wait.",
    ),
    column("wait_ns_p99", "p99", Measure::Nanoseconds, Merge::Never, "99 % were shorter."),
    column("waits", "waits", Measure::Count, Merge::Sum, "How often it ended."),
];

pub const DISKS: &[Heading] = &[
    text("disk", "disk", "The device."),
    count("reads_per_s", "reads/s", "Reads completed a second."),
    flow("read_bytes_per_s", "read", "Bytes read a second."),
    column(
        "read_ns_mean",
        "read latency",
        Measure::Nanoseconds,
        Merge::WeightedBy("reads_per_s"),
        "Mean time of a read.",
    ),
    column("queue_max", "queue max", Measure::Count, Merge::Greatest, "Most requests in flight."),
    column("bytes_used", "used", Measure::Bytes, Merge::Last, "Bytes used."),
    share("busy", "busy", "Share of time with a request in flight."),
];

pub const LOAD: &[Heading] = &[
    count("reads_per_s", "reads/s", "Reads of the database."),
    share("hit_ratio", "cache hits", "Share of logical reads that the cache answered."),
    column("commits", "commits", Measure::Count, Merge::Sum, "How many."),
];

pub const LATENCIES: &[Heading] = &[
    text("event", "event", "What was timed."),
    total("count", "count", Measure::Count, "How many."),
    total("time_ns", "time", Measure::Nanoseconds, "Their time."),
    quotient("time_ns", "count", "ns_mean", "mean", Measure::Nanoseconds, "Their mean."),
    column("ns_p50", "p50", Measure::Nanoseconds, Merge::Quantile(5_000), "Half were shorter."),
    column(
        "ns_p999",
        "p99.9",
        Measure::Nanoseconds,
        Merge::Quantile(9_990),
        "99.9 % were shorter.",
    ),
];

const CLASSES: [(&str, &str, Color); 6] = [
    ("CPU", "CPU", Color::Cpu),
    ("db file sequential read", "User I/O", Color::UserIo),
    ("db file parallel write", "System I/O", Color::SystemIo),
    ("log file sync", "Commit", Color::Commit),
    ("buffer busy waits", "Concurrency", Color::Concurrency),
    ("run queue", "run queue", Color::RunQueue),
];

/// Returns a number with few digits that looks random and never changes.
fn noise(a: usize, b: usize) -> f64 {
    let mixed = (a * 2_654_435_761 + b * 40_503 + 12_345) % 65_537;
    (mixed % 100) as f64 / 100.0
}

fn sessions(class: usize, slice: usize) -> f64 {
    let stall = if (18..22).contains(&slice) { 4.0 } else { 1.0 };
    let base = [3.0, 2.5, 0.5, 0.75, 0.25 * stall * stall, 0.25][class];
    base + noise(class, slice) * base
}

fn wait_row(class: usize, slice: usize) -> Row {
    let (name, group, _) = CLASSES[class];
    let aas = sessions(class, slice);
    let waits = (1_000.0 * aas).round();
    let p99 = if class == 0 { Value::Missing(Missing::Nothing) } else { (aas * 5e6).into() };
    Row::from([
        name.into(),
        group.into(),
        aas.into(),
        (aas / (0..CLASSES.len()).map(|class| sessions(class, slice)).sum::<f64>()).into(),
        waits.into(),
        (aas * 1e6).into(),
        p99,
        waits.into(),
    ])
}

fn disk_row(disk: usize, slice: usize) -> Row {
    let reads = 500.0 * (disk + 1) as f64 + (noise(disk, slice) * 1_000.0).round();
    Row::from([
        format!("nvme{disk}n1").into(),
        reads.into(),
        (reads * 8192.0).into(),
        if reads > 2_000.0 { Value::Missing(Missing::NotPermitted) } else { (2e5 + reads).into() },
        (noise(slice, disk) * 64.0).round().into(),
        (1_073_741_824.0 + 8192.0 * slice as f64).into(),
        noise(disk + 3, slice).into(),
    ])
}

fn load_row(slice: usize) -> Row {
    let commits = (noise(slice, 9) * 100.0).round();
    Row::from([(4_000.0 + commits).into(), noise(slice, 4).into(), commits.into()])
}

/// Returns a table with slices of its own, 2.5 s each after five seconds of warm-up. Commits pause
/// now and then, and are few.
fn latencies() -> Sliced {
    let row = |name: &str, slice: usize, count: u64| {
        let ns = |n: u64| 1_000 + (n * n * 7_919 + slice as u64 * 104_729) % 5_000_000;
        let all = || (0..count).map(ns);
        let cells = [
            name.into(),
            count.into(),
            all().sum::<u64>().into(),
            Value::default(),
            Value::default(),
            Value::default(),
        ];
        Row::from(cells).spread(all().map(|ns| (ns, 1)).collect())
    };
    let rows = |slice: usize| {
        let reads = row("read", slice, 900 + 37 * slice as u64);
        let commits = row("commit", slice, (slice % 3 * 20) as u64);
        (slice > 0).then(|| vec![reads, commits])
    };
    let edges = (2..=12).map(|n| n * 2_500_000_000);
    let edges_ns: Vec<u64> = std::iter::once(0).chain(edges).collect();
    Sliced {
        table: "latencies".into(),
        rows: (0..edges_ns.len() - 1).map(rows).collect(),
        edges_ns,
    }
}

pub fn timeline() -> Timeline {
    let waits = (0..SLICES).map(|slice| {
        // Buffer busy waits occur only in the stall.
        let there = move |class: &usize| *class != 4 || (18..22).contains(&slice);
        (0..CLASSES.len()).filter(there).map(|class| wait_row(class, slice)).collect()
    });
    let load = (0..SLICES).map(|slice| vec![load_row(slice)]);
    let disks = (0..SLICES).map(|slice| (0..3).map(|disk| disk_row(disk, slice)).collect());
    let edges_ns: Vec<u64> = (0..=SLICES as u64).map(|n| n * 1_000_000_000).collect();
    let sliced = |table: &'static str, rows: Vec<Vec<Row>>| Sliced {
        table: table.into(),
        edges_ns: edges_ns.clone(),
        rows: rows.into_iter().map(Some).collect(),
    };
    let tables = vec![
        sliced("waits", waits.collect()),
        sliced("disks", disks.collect()),
        sliced("load", load.collect()),
        latencies(),
    ];
    Timeline { edges_ns, tables }
}

/// Returns the tables that follow a window, over the whole time.
pub fn tables() -> [Table; 4] {
    let timeline = timeline();
    let mut waits = Table::new("waits", "Where the time went", WAITS)
        .about("Each second of each session is on the processor, waiting to run, or in one wait.");
    for class in 0..CLASSES.len() {
        waits.push(wait_row(class, 0));
    }
    let end = SLICES as u64 * 1_000_000_000;
    waits.rows = timeline.window(&waits, 0, end);
    waits.sort(2);
    let mut disks = Table::new("disks", "Disks", DISKS);
    disks.push(disk_row(0, 0));
    disks.rows = timeline.window(&disks, 0, end);
    disks.rows[1].condemned_by = vec!["hole".to_owned()];
    let mut load = Table::new("load", "The load", LOAD).record();
    load.push(load_row(0));
    load.rows = timeline.window(&load, 0, end);
    let mut latencies = Table::new("latencies", "Latencies", LATENCIES);
    latencies.rows = timeline.window(&latencies, 0, end);
    [waits, disks, load, latencies]
}

fn estimate(value: f64) -> Estimate {
    let (low, high) = (value * 0.98, value * 1.015);
    Estimate { value, low, high, samples: 12_345, duration_ns: 30_000_000_000 }
}

fn card(name: &'static str, title: &'static str, value: f64, unit: &'static str) -> Card {
    Card {
        name: name.into(),
        title: title.into(),
        group: "".into(),
        prefix: "".into(),
        estimate: estimate(value),
        unit: unit.into(),
        words: "".into(),
        source: "16 sessions, 30 s".to_owned(),
        condemned_by: Vec::new(),
    }
}

/// Returns a chart of average active sessions by class, with the number of processors.
pub fn stack() -> Chart {
    let axis = Axis::new("average active sessions", Measure::Count);
    let mut chart = Chart::new("aas", "Average active sessions", Axis::time(), axis)
        .about("Where sessions spend their time; above the line they wait for processors.")
        .wide(320);
    for (class, (_, name, color)) in CLASSES.iter().enumerate() {
        let points =
            (0..SLICES).map(|slice| ((slice as f64 + 0.5) * S, Some(sessions(class, slice))));
        chart = chart.layer(*name, *color, Form::area(points));
    }
    chart = chart.level(8.0, "8 processors");
    chart.band(0.0, 5.0 * S, "warm-up").band(5.0 * S, 30.0 * S, "measured")
}

fn lines() -> Chart {
    let axis = Axis::new("reads/s", Measure::Count);
    let points = |n: usize| {
        (0..SLICES).map(move |slice| {
            let gap = n == 1 && (9..12).contains(&slice);
            (
                (slice as f64 + 0.5) * S,
                (!gap).then(|| 4_000.0 * (n + 1) as f64 + 900.0 * noise(n, slice)),
            )
        })
    };
    Chart::new("reads", "Reads", Axis::time(), axis)
        .about("A gap is where nothing was measured.")
        .layer("logical", Color::Series(0), Form::line(points(1)))
        .layer("physical", Color::Series(1), Form::line(points(0)))
}

fn latency_heat() -> Chart {
    let buckets = 14;
    let cells = (0..SLICES).flat_map(|slice| {
        (0..buckets).filter_map(move |bucket| {
            let (peak, second) = (4.0 + noise(1, slice), 9.0);
            let density = |at: f64| (-(f64::from(bucket) - at).powi(2) / 2.0).exp();
            let heat = (density(peak) + 0.5 * density(second)).min(1.0);
            let y = (1e4 * 2_f64.powi(bucket), 1e4 * 2_f64.powi(bucket + 1));
            let x = (slice as f64 * S, (slice + 1) as f64 * S);
            let text = format!("{:.0} reads", heat * 1e3);
            (heat > 0.02).then_some(HeatCell { x, y, heat, text })
        })
    });
    let axis = Axis::new("read latency", Measure::Nanoseconds).log();
    let p99 =
        (0..SLICES).map(|slice| ((slice as f64 + 0.5) * S, Some(9e6 + 3e6 * noise(2, slice))));
    Chart::new("latency-heat", "Read latency over time", Axis::time(), axis)
        .about("Two bands are two kinds of reads: from a cache and from the medium.")
        .layer("reads", Color::Grey, Form::Heat(cells.collect()))
        .layer("p99", Color::Bad, Form::line(p99))
}

fn curve() -> Chart {
    let axis = |title: &'static str, measure| Axis::new(title, measure);
    let point = |n: i32| {
        let y = 80_000.0 * (1.0 - (-f64::from(n) / 3.0).exp()) + 1.0;
        let interval = Some((y * 0.93, y * 1.05));
        Point { x: 2_f64.powi(n), y: Some(y), interval, condemned: n == 6 }
    };
    let form = Form::Line { points: (0..8).map(point).collect(), dashed: false, marks: true };
    Chart::new(
        "curve",
        "Throughput over depth",
        axis("readers", Measure::Count).log(),
        axis("IOPS", Measure::Count),
    )
    .about("Hollow points are condemned.")
    .layer("blocking", Color::Series(0), form)
    .layer(
        "asynchronous",
        Color::Series(2),
        Form::Dots(
            (0..8).map(|n| (2_f64.powi(n), Some(9_000.0 * f64::from(n + 1))).into()).collect(),
        ),
    )
}

fn bars(name: &'static str, stacked: bool) -> Chart {
    let names: Vec<String> = ["4 KiB", "8 KiB", "64 KiB", "1 MiB"].map(str::to_owned).into();
    let points = |factor: f64| {
        (0..4)
            .map(|n| (f64::from(n), Some(factor * f64::from(n + 1))).into())
            .collect::<Vec<Point>>()
    };
    let form = |factor| Form::Bars { points: points(factor), stacked };
    let title = if stacked { "Bytes by size, stacked" } else { "Bytes by size, side by side" };
    let chart = Chart::new(name, title, Axis::names("", names), Axis::new("", Measure::BytesPerS))
        .layer("read", Color::Series(0), form(41e6))
        .layer("written", Color::Series(1), form(23e6));
    chart.third()
}

fn week() -> Chart {
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map(str::to_owned).to_vec();
    let cells = (0..7).flat_map(|day| {
        (0..24).map(move |hour| {
            let at = |n: usize| (n as f64 - 0.5, n as f64 + 0.5);
            let heat =
                noise(day, hour) * if day < 5 && (8..18).contains(&hour) { 1.0 } else { 0.4 };
            HeatCell { x: at(hour), y: at(day), heat, text: format!("{:.1} AAS", heat * 16.0) }
        })
    });
    let hours = (0..24).map(|hour| format!("{hour:02}")).collect();
    let chart =
        Chart::new("week", "Hour and weekday", Axis::names("hour", hours), Axis::names("", days))
            .layer("AAS", Color::Grey, Form::Heat(cells.collect()));
    chart.third()
}

pub fn verdict(rule: &str, outcome: Outcome, weight: Weight, concerns: &[&str]) -> Verdict {
    let passed = outcome == Outcome::Pass;
    let text = |text: &str| if passed { String::new() } else { text.to_owned() };
    Verdict {
        rule: rule.to_owned(),
        outcome,
        weight,
        concerns: concerns.iter().map(|name| (*name).to_owned()).collect(),
        evidence: "4 s of 30 s had fewer than half of the mean commits".to_owned(),
        cause: text("checkpoints write more than the disk takes"),
        next: text("spread the checkpoint, or measure for longer than one"),
    }
}

fn host() -> Table {
    let columns = vec![
        text("host", "host", ""),
        text("model", "processor", "As the kernel names it."),
        count("cpus", "processors", ""),
        column("memory_bytes", "memory", Measure::Bytes, Merge::Last, ""),
    ];
    let mut table = Table::new("host", "The machine", Cow::Owned::<[Heading]>(columns)).record();
    table.push(["db-17".into(), "AMD EPYC 9354".into(), 8.0.into(), Value::from(34_359_738_368.0)]);
    table
}

fn estimates() -> Table {
    let columns = vec![
        count("readers", "readers", "Concurrent readers."),
        count("iops", "IOPS", "Reads a second."),
        time("latency_ns_p99", "p99", "99 % were shorter."),
    ];
    let mut table = Table::new("points", "Every point measured", Cow::Owned::<[Heading]>(columns));
    for n in 0..16_i32 {
        let row = Row::from([
            f64::from(1 << n).into(),
            estimate(1_234.5 * f64::from(n + 1)).into(),
            if n == 3 {
                Value::Missing(Missing::NotInVersion)
            } else {
                estimate(3e5 + 1e5 * f64::from(n)).into()
            },
        ]);
        table.push(if n == 5 { row.condemned_by(&["cap_reached".to_owned()]) } else { row });
    }
    table.notes.push("One point was not measured: the kernel is too old.".to_owned());
    table
}

pub fn report() -> Report {
    let warned = card("commit_latency_ns_p99", "Commit latency p99", 4.2e6, "ns");
    let mut condemned = card("read_mbps", "Bytes read", 812.0, "MB/s");
    condemned.condemned_by = vec!["hole".to_owned()];
    let headline = vec![
        card("read_iops", "Reads of the database", 8_412.0, "IOPS"),
        card("commits_per_s", "Commits", 1_204.0, "commits/s"),
        warned.clone(),
    ];
    let grouped = |mut card: Card, group: &'static str| {
        card.group = group.into();
        card
    };
    let [waits, disks, load, latencies] = tables();
    Report {
        verb: "run".into(),
        version: 1,
        headline: Headline {
            subject: "/var/lib/postgresql on nvme0n1".to_owned(),
            figures: headline,
            text: String::new(),
            tone: Tone::Plain,
            ..Headline::default()
        },
        identity: vec![
            "SLOB · 16 sessions · 30 s · 8 KiB blocks".to_owned(),
            "db-17 · Linux 6.1 · XFS · 2026-11-22T20:00:00Z".to_owned(),
        ],
        cards: vec![
            grouped(card("read_latency_ns_p50", "Read latency p50", 3.1e5, "ns"), "Reads"),
            grouped(card("read_latency_ns_p99", "Read latency p99", 1.9e6, "ns"), "Reads"),
            grouped(condemned, "Reads"),
            grouped(
                card("db_time_remainder_ratio", "Time not explained", 0.031, "of DB time"),
                "Sessions",
            ),
        ],
        sections: vec![
            Section::new("time", "Where the time went")
                .with([stack()])
                .with([lines(), latency_heat()])
                .with([load, waits]),
            Section::new("disks", "Disks")
                .about("As the kernel counts them.")
                .with([disks, latencies]),
            Section::new("curves", "Curves")
                .with([curve().wide(260)])
                .with([bars("stacked", true), bars("grouped", false), week()])
                .with([estimates()]),
            Section::new("machine", "The machine").with([host()]).with(["A paragraph.".to_owned()]),
        ],
        verdicts: vec![
            verdict("clock_steady", Outcome::Pass, Weight::Warns, &[]),
            verdict("unsteady", Outcome::Fail, Weight::Warns, &["commit_latency_ns_p99"]),
            verdict("hole", Outcome::Fail, Weight::Condemns, &["read_mbps"]),
            verdict("memory_test", Outcome::Inconclusive, Weight::Warns, &[]),
        ],
        notes: vec!["Page faults were not measured: the kernel does not permit it.".to_owned()],
        recording: "blockstone-runs/example".to_owned(),
        tool_version: Some("0.1.0".to_owned()),
        timeline: Some(timeline()),
        ..Report::default()
    }
}
