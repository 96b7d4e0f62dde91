//! The tables of a calibration. They contain everything that its charts show.

use std::collections::BTreeSet;

use blockstone_base::Pacing;
use blockstone_base::load::Access;
use blockstone_base::row;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{
    Heading, Missing, Row, Table, Text, Value, bytes, count, flow, happened, ratio, share, text,
    time,
};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_judge::buffered::BufferedWrite;
use blockstone_judge::findings::{Findings, Point};
use blockstone_judge::flushes::FlushSlope;
use blockstone_judge::visits::CachedVisits;
use blockstone_record::manifest::{Group, Manifest, Stop};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_report::format;

use super::select::{self, MatrixCell};

const CONCURRENCY: &[Heading] = &[
    count("in_flight", "in flight", "Reads in flight."),
    count("blocking_iops", "blocking", "Reads a second by as many threads, each waiting for one."),
    time("blocking_latency_ns_p50", "p50", "Their median latency."),
    time("blocking_latency_ns_p99", "p99", "99 % of them take no longer."),
    count("blocking_switches_per_io", "sw/IO", "Context switches for each."),
    time("blocking_cpu_ns_per_io", "CPU/IO", "Processor time for each."),
    count("async_iops", "async", "Reads a second by one thread with as many in flight."),
    time("async_latency_ns_p50", "p50", "Their median latency."),
    time("async_latency_ns_p99", "p99", "99 % of them take no longer."),
    count("async_switches_per_io", "sw/IO", "Context switches for each."),
    time("async_cpu_ns_per_io", "CPU/IO", "Processor time for each."),
];

/// Returns a row that shows two points side by side, after the cell that names it. If a rule
/// condemns one of the points, only the cells of that point are struck through.
fn side_by_side<const CELLS: usize>(
    columns: &[Heading],
    name: Value,
    points: [Option<&Point>; 2],
    cells_of: impl Fn(&Point) -> [Value; CELLS],
) -> Row {
    let mut cells = vec![name];
    let mut condemned: Vec<Text> = Vec::new();
    let mut rules: BTreeSet<&String> = BTreeSet::new();
    for (point, columns) in points.into_iter().zip(columns[1..].chunks(CELLS)) {
        let nothing = || std::array::from_fn(|_| Value::default());
        cells.extend(point.map_or_else(nothing, &cells_of));
        let Some(point) = point.filter(|point| !point.condemned_by.is_empty()) else { continue };
        rules.extend(&point.condemned_by);
        condemned.extend(columns.iter().map(|column| column.key.clone()));
    }
    let rules: Vec<String> = rules.into_iter().cloned().collect();
    Row::from(cells).condemned_in(condemned, &rules)
}

/// Random reads by operations in flight, with both ways of keeping them in flight side by side.
pub fn concurrency<'a>(findings: &'a Findings) -> Table {
    let sides = select::blocking_and_async(findings, Group::RandomRead);
    let block = sides.0.first().or(sides.1.first()).map_or(0, |point| point.load.block_bytes);
    let title = format!("{} random reads a second", format::block_size(block));
    let mut table = Table::new("random-reads", title, CONCURRENCY).about(
        "Blocking readers, each waiting for one read, compared with one thread that keeps \
         many reads in flight.",
    );
    let both = sides.0.iter().chain(&sides.1);
    let depths: BTreeSet<u32> = both.clone().map(|point| point.load.in_flight()).collect();
    for depth in depths {
        let at = |points: &[&'a Point]| {
            points.iter().copied().find(|point| point.load.in_flight() == depth)
        };
        let points = [at(&sides.0), at(&sides.1)];
        table.push(side_by_side(CONCURRENCY, depth.into(), points, costs_of));
    }
    let sound = both.filter(|point| point.condemned_by.is_empty());
    let most = sound.map(|point| point.iops.value).fold(0.0, f64::max);
    table.notes.extend(why_the_most_is_less(findings, most));
    table
}

/// Explains why the headline figure is lower than the highest point in the table.
fn why_the_most_is_less(findings: &Findings, greatest: f64) -> Option<String> {
    let figure = select::figure(findings, "max_iops")?;
    let stands = figure.condemned_by.is_empty() && greatest > figure.estimate.high;
    let by = if figure.phase.starts_with("confirm/") {
        "it is that of a longer window, measured again, because the greatest of many short windows \
         is often chance"
    } else {
        "a greater one here exceeds the limit of latency, or a longer window did not confirm it"
    };
    stands.then(|| {
        let [most, greatest] = [figure.estimate.value, greatest].map(three_digits);
        format!("The most is given as {most}, not as {greatest}: {by}.")
    })
}

fn costs_of(point: &Point) -> [Value; 5] {
    let cpu = &point.cpu;
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    [
        point.iops.value.into(),
        point.latency.ns_p50.without_interval(),
        point.latency.ns_p99.without_interval(),
        sum(cpu.switches_voluntary_per_io, cpu.switches_involuntary_per_io).into(),
        sum(cpu.user_ns_per_io, cpu.system_ns_per_io).into(),
    ]
}

const STREAMS: &[Heading] = &[
    count("streams", "streams", "Readers, each of which waits for one read of 1 MiB."),
    flow("sequential_bytes_per_s", "in order", "Each reads a part of its own in order."),
    time("sequential_latency_ns_p50", "p50", "Median latency of such a read."),
    flow("random_bytes_per_s", "random", "Each reads at random places."),
    time("random_latency_ns_p50", "p50", "Median latency of such a read."),
];

/// Large reads by number of streams, if `--streams` was given.
pub fn streams(manifest: &Manifest, findings: &Findings) -> Table {
    let mut table = Table::new("streams", "Streams of 1 MiB reads", STREAMS);
    let asked = manifest.parameters::<CalibrateParameters>().streams.unwrap_or_default();
    let points = || select::group(findings, Group::LargeRead);
    for streams in asked {
        let of = |random: bool| {
            let mut found = points().filter(|point| point.load.in_flight() == streams);
            found.find(|point| (point.load.access == Access::Random) == random)
        };
        let pair = [of(false), of(true)];
        if pair.iter().all(Option::is_none) {
            continue;
        }
        table.push(side_by_side(STREAMS, streams.into(), pair, |point| {
            [point.mb_per_s.scaled(1e6).into(), point.latency.ns_p50.without_interval()]
        }));
    }
    table
}

const OPEN_LOOP: &[Heading] = &[
    text("arrivals", "arrivals", "How intended starts are spaced."),
    count("intended_per_s", "intended/s", "Intended starts a second."),
    count("iops", "IOPS", "Reads completed a second."),
    time("latency_ns_p50", "p50", "Median latency, from the intended start."),
    time("latency_ns_p99", "p99", "99 % take no longer."),
    time("latency_ns_p999", "p99.9", "99.9 % take no longer."),
    time("latency_ns_max", "max", "The longest."),
    time("lag_ns_mean", "mean lag", "Mean delay of a submission behind its intended start."),
    time("lag_ns_max", "max lag", "The longest such delay."),
];

/// Reads at a fixed rate: their wait beyond the time that the device took.
pub fn open_loop(findings: &Findings) -> Table {
    let title = "At a fixed rate: latency from the intended start";
    let mut table = Table::new("given-rate", title, OPEN_LOOP);
    for point in select::group(findings, Group::OpenLoop) {
        let Pacing::Open { rate_per_s, poisson } = point.load.pacing else { continue };
        let arrivals = if poisson { "Poisson" } else { "fixed" };
        let latency = &point.latency;
        let [p50, p99, p999] =
            [latency.ns_p50, latency.ns_p99, latency.ns_p999].map(Estimate::without_interval);
        let (max, lag, lag_max) = (latency.ns_max, latency.lag_ns_mean, latency.lag_ns_max);
        let row = row![arrivals, rate_per_s, point.iops, p50, p99, p999, max, lag, lag_max];
        table.push(row.condemned_by(&point.condemned_by));
    }
    table
}

const COMMITS: &[Heading] = &[
    text("sync_method", "one committer", "How a commit is made durable."),
    time("overwrite_latency_ns_p50", "overwrite p50", "Median, overwriting written blocks."),
    time("overwrite_latency_ns_p99", "p99", "99 % take no longer."),
    count("overwrite_commits_per_s", "per s", "Commits a second."),
    time("append_latency_ns_p50", "append p50", "Median, growing the file."),
    time("append_latency_ns_p99", "p99", "99 % take no longer."),
    count("append_commits_per_s", "per s", "Commits a second."),
];

/// Commits of one block by one committer, by sync method.
pub fn commits(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let title = format!("{} commits", format::block_size(block_bytes));
    let mut table = Table::new("commits", title, COMMITS);
    for (method, overwrite, append) in select::commits(findings, block_bytes).methods {
        let name = method.name().into();
        table.push(side_by_side(COMMITS, name, [overwrite, append], |point| {
            let [p50, p99] =
                [point.latency.ns_p50, point.latency.ns_p99].map(Estimate::without_interval);
            [p50, p99, point.iops.value.into()]
        }));
    }
    table
}

/// A table with a row for each point, struck through by the rules that condemn it.
fn of_points<'a>(
    table: Table,
    points: impl IntoIterator<Item = &'a Point>,
    row: impl Fn(&'a Point) -> Row,
) -> Table {
    table.with(points.into_iter().map(|point| row(point).condemned_by(&point.condemned_by)))
}

/// Describes the effect of more committers in a sentence: from one to the greatest number, with the
/// group factor of the latter.
pub fn more_committers(manifest: &Manifest, findings: &Findings) -> Option<String> {
    let points = select::commits(findings, select::block_bytes(manifest, findings)).committers;
    let stands = |point: &&&Point| point.condemned_by.is_empty();
    let (first, last) = (points.first().filter(stands)?, points.last().filter(stands)?);
    if first.load.workers == last.load.workers {
        return None;
    }
    let factor = select::group_factor(last)
        .map(|n| format!(", {} commits a flush", three_digits(n)))
        .unwrap_or_default();
    Some(format!(
        "O_DSYNC by {} to {} committers: {} to {} commits/s{factor}",
        first.load.workers,
        last.load.workers,
        three_digits(first.iops.value),
        three_digits(last.iops.value),
    ))
}

const COMMITTERS: &[Heading] = &[
    count("committers", "committers", "Threads that commit."),
    count("commits_per_s", "commits/s", "Commits a second of all."),
    time("latency_ns_p50", "p50", "Median latency of a commit."),
    time("latency_ns_p99", "p99", "99 % take no longer."),
    count("device_flushes", "flushes", "Cache flushes of the device in the window."),
    count("commits_per_flush", "commits/flush", "Commits that one flush made durable."),
];

pub fn committers(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let title = "Concurrent committers: O_DSYNC, overwriting";
    let points = select::commits(findings, block_bytes).committers;
    of_points(Table::new("committers", title, COMMITTERS), points, |point| {
        let [p50, p99] =
            [point.latency.ns_p50, point.latency.ns_p99].map(Estimate::without_interval);
        let (flushes, factor) = (point.evidence.device_flushes, select::group_factor(point));
        row![point.load.workers, point.iops, p50, p99, flushes, factor]
    })
}

pub const FLUSHES: &[Heading] = &[
    bytes("unflushed_bytes", "written before", "Bytes written past the page cache before each."),
    time("flush_ns_p50", "p50", "Median time of the flush, fdatasync(2)."),
    time("flush_ns_min", "min", "The shortest."),
    time("flush_ns_max", "max", "The longest."),
    count("flushes", "flushes", "How many were timed."),
];

/// Flushes by the amount written before them.
pub fn flushes(slope: &FlushSlope) -> Table {
    let mib = &slope.ns_per_mib;
    let each = |ns: f64| format::quantity(ns, "ns");
    let about = format!(
        "For each MiB written before it a flush takes {} longer (95 % interval {} to {}). A \
         volatile cache has to be written out; a time that does not depend on what was written \
         shows a protected cache, an empty one, or a flush that does nothing.",
        each(mib.value),
        each(mib.low),
        each(mib.high)
    );
    let title = "Flush time by bytes written before it";
    Table::new("flushes", title, FLUSHES).about(about).with(slope.sizes.iter().map(|time| {
        row![
            time.unflushed_bytes,
            time.flush_ns_p50,
            time.flush_ns_min,
            time.flush_ns_max,
            time.flush_ns_p50.samples
        ]
    }))
}

const BUFFERED: &[Heading] = &[
    text("way", "writes of 1 MiB in order", "When they count as written."),
    flow("bytes_per_s", "rate", "Bytes a second."),
    count("rounds", "rounds", "How often all were written."),
];

/// The same bytes written in three ways.
pub fn buffered_writes(writes: &BufferedWrite) -> Table {
    let about = "Until write(2) returns, data are copied into the page cache: that is the speed of \
                 memory, and a crash loses them. Only fsync(2) after them, or direct I/O and its \
                 flush, shows the storage.";
    let ways = [
        ("buffered, as write(2) returned", writes.returned_mb_per_s),
        ("buffered, as fsync(2) returned", writes.flushed_mb_per_s),
        ("direct, as write(2) returned", writes.direct_mb_per_s),
    ];
    let title = format!("{} written in each of three ways", Bytes(writes.written_bytes));
    let rows = ways.map(|(way, rate)| row![way, rate.scaled(1e6), rate.samples]);
    Table::new("buffered-writes", title, BUFFERED).about(about).with(rows)
}

const VISITS: &[Heading] = &[
    count("sessions", "sessions", "At the same time, each in a thread."),
    count("visits_per_core_s", "blocks per CPU-second", "Blocks visited per CPU-second of these."),
    ratio("ratio", "of one alone", "That, divided by that of one session."),
    share(
        "on_processor_ratio",
        "on CPU",
        "Share of the time in which they had a processor: the rest went to other processes and to \
         the hypervisor.",
    ),
    count("turns", "turns", "How often it was measured."),
];

/// Visits of cached blocks by one session, and by one on each processor.
pub fn cached_visits(visits: &CachedVisits) -> Table {
    let about = "Blocks of 8 KiB that sessions of the miniature instance visited by key, 64 to a \
                 statement, all of them in the buffer cache. It compares processors: what a \
                 database itself spends on a visit is more. On processors that are threads of one \
                 core, each gets less than it would alone.";
    let alone = visits.per_core_s;
    let mut table =
        Table::new("cached-visits", "Cached blocks visited per CPU-second", VISITS).about(about);
    table.push(row![1_u64, alone, happened(None::<f64>), happened(None::<f64>), alone.samples]);
    if let Some(together) = &visits.together {
        let rate = together.per_core_s;
        let on_cpu = together.on_processor_ratio;
        table.push(row![together.sessions, rate, together.ratio, on_cpu, rate.samples]);
    }
    table
}

const MATRIX: &[Heading] = &[
    count("small_in_flight", "small", "Small random reads in flight."),
    count("large_in_flight", "large", "Large sequential reads in flight."),
    count("small_iops", "small-read IOPS", "Small reads a second."),
    time("small_latency_ns_p50", "p50", "Their median latency."),
    time("small_latency_ns_p99", "p99", "99 % of them take no longer."),
    flow("large_bytes_per_s", "large reads", "Throughput of the large reads."),
];

pub fn matrix(findings: &Findings) -> Table {
    let mut table = Table::new("mixed-reads", "Small and large reads together", MATRIX);
    for MatrixCell { small, large, point, large_mb_per_s } in select::matrix(findings) {
        let of_small = |value: Value| happened((small > 0).then_some(value));
        let quantiles = [point.latency.ns_p50, point.latency.ns_p99];
        let [p50, p99] = quantiles.map(|estimate| of_small(estimate.without_interval()));
        let rate = happened(large_mb_per_s.map(|rate| rate.scaled(1e6)));
        let row = row![small, large, of_small(point.iops.value.into()), p50, p99, rate];
        table.push(row.condemned_by(&point.condemned_by));
    }
    table
}

const EVIDENCE: &[Heading] = &[
    text("point", "point", "The load."),
    bytes("completed_bytes", "completed", "Bytes that the load generator completed."),
    bytes("process_bytes", "process", "Bytes that the kernel charged to this process."),
    ratio("process_ratio", "÷ completed", "Charged ÷ completed."),
    bytes("device_bytes", "device", "Bytes that the top device moved in this direction."),
    ratio("device_ratio", "÷ completed", "Moved ÷ completed."),
    count("device_ios", "requests", "Requests of that device."),
    time("device_ns_mean", "mean", "Mean time of such a request."),
    count("device_flushes", "flushes", "Cache flushes that reached the chain."),
    count("stamps_verified", "stamps", "Blocks whose stamp was checked."),
    count("checksums_verified", "payloads", "Blocks whose payload was checked."),
    count("mismatches", "mismatches", "Blocks that differ from what was written."),
    count("failed_ops", "failed", "Operations that failed."),
    text("stop", "ended by", "Why the window ended."),
];

pub fn evidence(findings: &Findings) -> Table {
    let title = "Bytes completed, charged to the process, and moved by the device; stamps checked";
    of_points(Table::new("evidence", title, EVIDENCE), &findings.points, |point| {
        let seen = &point.evidence;
        let share = |bytes: Option<u64>| {
            bytes.map(|bytes| bytes as f64 / seen.completed_bytes.max(1) as f64)
        };
        let charged = |value: Value| match value {
            Value::Missing(_) if seen.process_overcharged => Missing::NoEvidence.into(),
            value => value,
        };
        row![
            &point.label,
            seen.completed_bytes,
            charged(seen.process_bytes.into()),
            charged(share(seen.process_bytes).into()),
            seen.device_bytes,
            share(seen.device_bytes),
            seen.device_ios,
            seen.device_ns_mean,
            seen.device_flushes,
            seen.stamps_verified,
            seen.checksums_verified,
            seen.mismatches,
            seen.failed_ops,
            stop(point.stop)
        ]
    })
}

const RATES: &[Heading] = &[
    text("point", "point", "The load."),
    text("load", "load", "In words."),
    count("iops", "IOPS", "Operations a second."),
    flow("bytes_per_s", "throughput", "Bytes a second."),
    count("ios", "I/Os", "Operations in the windows."),
    time("measured_ns", "measured", "Length of the windows."),
    count("windows", "windows", "Windows that were pooled."),
];

pub fn rates(findings: &Findings) -> Table {
    of_points(Table::new("rates", "Rates", RATES), &findings.points, |point| {
        row![
            &point.label,
            format::load(&point.load),
            point.iops,
            point.mb_per_s.scaled(1e6),
            point.iops.samples,
            point.iops.duration_ns,
            point.windows
        ]
    })
}

const LATENCIES: &[Heading] = &[
    text("point", "point", "The load."),
    time("latency_ns_min", "min", "The shortest."),
    time("latency_ns_mean", "mean", "The mean."),
    time("latency_ns_p50", "p50", "Half take no longer."),
    time("latency_ns_p90", "p90", "90 % take no longer."),
    time("latency_ns_p99", "p99", "99 % take no longer."),
    time("latency_ns_p999", "p99.9", "99.9 % take no longer."),
    time("latency_ns_p9999", "p99.99", "99.99 % take no longer."),
    time("latency_ns_max", "max", "The longest."),
    count(
        "unfinished",
        "unfinished",
        "Operations that had not completed at the window's end: they count as at least as long as \
         they had lasted, and a quantile that they decide is a lower bound (≥).",
    ),
    time("lag_ns_mean", "mean lag", "Mean delay of a submission behind its intended start."),
    time("lag_ns_max", "max lag", "The longest such delay."),
];

pub fn latencies(findings: &Findings) -> Table {
    of_points(Table::new("latencies", "Latencies", LATENCIES), &findings.points, |point| {
        let l = &point.latency;
        row![
            &point.label,
            l.ns_min,
            l.ns_mean,
            l.ns_p50,
            l.ns_p90,
            l.ns_p99,
            l.ns_p999,
            l.ns_p9999,
            l.ns_max,
            l.unfinished,
            l.lag_ns_mean,
            l.lag_ns_max
        ]
    })
}

const COSTS: &[Heading] = &[
    text("point", "point", "The load."),
    time("cpu_user_ns_per_io", "user/IO", "User time for each operation."),
    time("cpu_system_ns_per_io", "system/IO", "System time for each operation."),
    count("switches_voluntary_per_io", "voluntary switches/IO", "A thread blocked."),
    count("switches_involuntary_per_io", "involuntary switches/IO", "A thread was preempted."),
    time("run_queue_ns_per_io", "run queue/IO", "Time without a processor for each operation."),
    share("host_busy_ratio", "processors busy", "Of all processors."),
    share("foreign_busy_ratio", "other processes", "By other processes, interrupts aside."),
    share("steal_ratio", "stolen", "By the hypervisor."),
];

pub fn costs(findings: &Findings) -> Table {
    of_points(Table::new("processor-cost", "Processor cost", COSTS), &findings.points, |point| {
        let cpu = &point.cpu;
        row![
            &point.label,
            cpu.user_ns_per_io,
            cpu.system_ns_per_io,
            cpu.switches_voluntary_per_io,
            cpu.switches_involuntary_per_io,
            cpu.run_queue_ns_per_io,
            cpu.host_busy_ratio,
            cpu.foreign_busy_ratio,
            cpu.steal_ratio
        ]
    })
}

fn stop(stop: Stop) -> &'static str {
    match stop {
        Stop::IntervalReached => "narrow interval",
        Stop::TimeLimit => "time limit",
        Stop::WorkDone => "work done",
        Stop::Interrupted => "interrupted",
        Stop::Failed => "failed",
    }
}
