//! The tables of a calibration: nothing a chart shows is missing here.

use std::collections::BTreeSet;

use blockstone_base::Pacing;
use blockstone_base::table::{
    Heading, Missing, Row, Table, Value, bytes, count, flow, ratio, share, text, time,
};
use blockstone_base::units::three_digits;
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Group, Manifest, Stop};
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

/// Random reads by operations in flight, both ways of keeping them in flight side by side. Two
/// points of which one is condemned stand in rows of their own.
pub fn concurrency(findings: &Findings) -> Table {
    let sides = select::blocking_and_async(findings, Group::RandomRead);
    let block = sides.0.first().or(sides.1.first()).map_or(0, |point| point.load.block_bytes);
    let title = format!("{} random reads a second", format::block_size(block));
    let mut table = Table::new("random-reads", title, CONCURRENCY).about(
        "Blocking readers, each waiting for one read, compared with one thread that keeps \
         many reads in flight.",
    );
    let both = || sides.0.iter().chain(&sides.1);
    let key = |point: &Point| (point.load.in_flight(), point.condemned_by.clone());
    let keys: BTreeSet<(u32, Vec<String>)> = both().map(|point| key(point)).collect();
    for wanted in keys {
        let of = |points: &[&Point]| {
            let found = points.iter().find(|point| key(point) == wanted);
            found.map_or([const { Value::Missing(Missing::Nothing) }; 5], |point| costs_of(point))
        };
        let cells = [&[u64::from(wanted.0).into()][..], &of(&sides.0), &of(&sides.1)].concat();
        table.push(Row::from(cells).condemned_by(&wanted.1));
    }
    table
}

fn costs_of(point: &Point) -> [Value; 5] {
    let cpu = &point.cpu;
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    [
        point.iops.value.into(),
        point.latency.ns_p50.value.into(),
        point.latency.ns_p99.value.into(),
        sum(cpu.switches_voluntary_per_io, cpu.switches_involuntary_per_io).into(),
        sum(cpu.user_ns_per_io, cpu.system_ns_per_io).into(),
    ]
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

/// Reads at a given rate: what they waited beyond what the device took.
pub fn open_loop(findings: &Findings) -> Table {
    let title = "At a fixed rate: latency from the intended start";
    let mut table = Table::new("given-rate", title, OPEN_LOOP);
    for point in select::group(findings, Group::OpenLoop) {
        let Pacing::Open { rate_per_s, poisson } = point.load.pacing else { continue };
        let latency = &point.latency;
        let row = Row::from([
            if poisson { "Poisson" } else { "fixed" }.into(),
            rate_per_s.into(),
            point.iops.into(),
            latency.ns_p50.value.into(),
            latency.ns_p99.value.into(),
            latency.ns_p999.value.into(),
            latency.ns_max.into(),
            latency.lag_ns_mean.into(),
            latency.lag_ns_max.into(),
        ]);
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

/// Commits of one block by one committer, by method. A pair of which one is condemned stands in
/// rows of their own.
pub fn commits(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let title = format!("{} commits", format::block_size(block_bytes));
    let mut table = Table::new("commits", title, COMMITS);
    for (method, overwrite, append) in select::commits(findings, block_bytes).methods {
        let both = || overwrite.iter().chain(&append);
        let keys: BTreeSet<&[String]> = both().map(|point| &*point.condemned_by).collect();
        for condemned_by in keys {
            let of = |point: Option<&Point>| {
                let point = point.filter(|point| point.condemned_by == condemned_by);
                point.map_or([const { Value::Missing(Missing::Nothing) }; 3], |point| {
                    let latency = &point.latency;
                    [latency.ns_p50, latency.ns_p99, point.iops].map(|e| e.value.into())
                })
            };
            let cells = [&[method.name().into()][..], &of(overwrite), &of(append)].concat();
            table.push(Row::from(cells).condemned_by(condemned_by));
        }
    }
    table
}

/// What more committers bring, in a sentence: from one to the most, with the group factor of the
/// most.
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

/// What more committers bring.
pub fn committers(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let title = "Concurrent committers: O_DSYNC, overwriting";
    let mut table = Table::new("committers", title, COMMITTERS);
    for point in select::commits(findings, block_bytes).committers {
        let row = Row::from([
            u64::from(point.load.workers).into(),
            point.iops.into(),
            point.latency.ns_p50.value.into(),
            point.latency.ns_p99.value.into(),
            point.evidence.device_flushes.into(),
            select::group_factor(point).into(),
        ]);
        table.push(row.condemned_by(&point.condemned_by));
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

/// Small random and large sequential reads together.
pub fn matrix(findings: &Findings) -> Table {
    let mut table = Table::new("mixed-reads", "Small and large reads together", MATRIX);
    for MatrixCell { small, large, point, large_mb_per_s } in select::matrix(findings) {
        let of_small = |value: f64| {
            if small > 0 { Value::Number(value) } else { Value::Missing(Missing::Nothing) }
        };
        let rate = large_mb_per_s.map(|rate| rate.scaled(1e6));
        let row = Row::from([
            u64::from(small).into(),
            u64::from(large).into(),
            of_small(point.iops.value),
            of_small(point.latency.ns_p50.value),
            of_small(point.latency.ns_p99.value),
            rate.map_or(Value::Missing(Missing::Nothing), Value::Estimate),
        ]);
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

/// What each layer saw of the same window.
pub fn evidence(findings: &Findings) -> Table {
    let title = "Bytes completed, charged to the process, and moved by the device; stamps checked";
    let mut table = Table::new("evidence", title, EVIDENCE);
    for point in &findings.points {
        let seen = &point.evidence;
        let share = |bytes: Option<u64>| {
            let share = bytes.map(|bytes| bytes as f64 / seen.completed_bytes.max(1) as f64);
            Value::from(share)
        };
        let row = Row::from([
            point.label.as_str().into(),
            seen.completed_bytes.into(),
            seen.process_bytes.into(),
            share(seen.process_bytes),
            seen.device_bytes.into(),
            share(seen.device_bytes),
            seen.device_ios.into(),
            seen.device_ns_mean.into(),
            seen.device_flushes.into(),
            seen.stamps_verified.into(),
            seen.checksums_verified.into(),
            seen.mismatches.into(),
            seen.failed_ops.into(),
            stop(point.stop).into(),
        ]);
        table.push(row.condemned_by(&point.condemned_by));
    }
    table
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

/// Every point's rate and sample.
pub fn rates(findings: &Findings) -> Table {
    let mut table = Table::new("rates", "Rates", RATES);
    for point in &findings.points {
        let row = Row::from([
            point.label.as_str().into(),
            format::load(&point.load).into(),
            point.iops.into(),
            point.mb_per_s.scaled(1e6).into(),
            point.iops.samples.into(),
            point.iops.duration_ns.into(),
            u64::from(point.windows).into(),
        ]);
        table.push(row.condemned_by(&point.condemned_by));
    }
    table
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
    time("lag_ns_mean", "mean lag", "Mean delay of a submission behind its intended start."),
    time("lag_ns_max", "max lag", "The longest such delay."),
];

/// Every point's latencies.
pub fn latencies(findings: &Findings) -> Table {
    let mut table = Table::new("latencies", "Latencies", LATENCIES);
    for point in &findings.points {
        let l = &point.latency;
        let quantiles = [l.ns_mean, l.ns_p50, l.ns_p90, l.ns_p99, l.ns_p999, l.ns_p9999];
        let mut cells = vec![point.label.as_str().into(), l.ns_min.into()];
        cells.extend(quantiles.map(Value::from));
        cells.extend([l.ns_max.into(), l.lag_ns_mean.into(), l.lag_ns_max.into()]);
        table.push(Row::from(cells).condemned_by(&point.condemned_by));
    }
    table
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

/// Every point's cost to the processors.
pub fn costs(findings: &Findings) -> Table {
    let mut table = Table::new("processor-cost", "Processor cost", COSTS);
    for point in &findings.points {
        let cpu = &point.cpu;
        let row = Row::from([
            point.label.as_str().into(),
            cpu.user_ns_per_io.into(),
            cpu.system_ns_per_io.into(),
            cpu.switches_voluntary_per_io.into(),
            cpu.switches_involuntary_per_io.into(),
            cpu.run_queue_ns_per_io.into(),
            cpu.host_busy_ratio.into(),
            cpu.foreign_busy_ratio.into(),
            cpu.steal_ratio.into(),
        ]);
        table.push(row.condemned_by(&point.condemned_by));
    }
    table
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
