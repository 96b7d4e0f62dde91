//! The tables of numbers: nothing a chart shows is missing here.

use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_base::{Estimate, Pacing};
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::{Group, Manifest, Stop};

use super::table::Table;
use crate::format::{self, optional, percent, quantity};
use crate::select::{self, MatrixCell};

/// Random reads by operations in flight, both ways of keeping them in flight.
pub fn concurrency(findings: &Findings) -> Table {
    let mut table = Table::of_numbers(
        "Blocking readers beside asynchronous depth: random reads, cost per I/O",
        &[
            "Load",
            "IOPS",
            "95 % interval",
            "p50",
            "p99",
            "Context switches",
            "User CPU µs",
            "System CPU µs",
            "Run-queue wait",
        ],
    );
    let (blocking, asynchronous) = select::blocking_and_async(findings, Group::RandomRead);
    for point in blocking.into_iter().chain(asynchronous) {
        let cpu = &point.cpu;
        let switches =
            cpu.switches_voluntary_per_io.zip(cpu.switches_involuntary_per_io).map(|(v, i)| v + i);
        let cells = vec![
            three_digits(point.iops.value),
            format::interval(&point.iops, "IOPS"),
            quantity(point.latency.ns_p50.value, "ns"),
            quantity(point.latency.ns_p99.value, "ns"),
            optional(switches, |n| format!("{n:.2}")),
            optional(cpu.user_ns_per_io, format::microseconds),
            optional(cpu.system_ns_per_io, format::microseconds),
            optional(cpu.run_queue_ns_per_io, format_ns),
        ];
        table.judged_row(format::load(&point.load), cells, &point.condemned_by);
    }
    table
}

/// Reads at a given rate: what they waited beyond what the device took.
pub fn open_loop(findings: &Findings) -> Table {
    let mut table = Table::of_numbers(
        "At a given rate: latency counts from the intended start",
        &["Intended rate", "IOPS", "p50", "p99", "p99.9", "Longest", "Mean lag", "Longest lag"],
    );
    for point in select::group(findings, Group::OpenLoop) {
        let Pacing::Open { rate_per_s, poisson } = point.load.pacing else { continue };
        let arrivals = if poisson { "Poisson" } else { "fixed" };
        let latency = &point.latency;
        let cells = vec![
            three_digits(point.iops.value),
            quantity(latency.ns_p50.value, "ns"),
            quantity(latency.ns_p99.value, "ns"),
            quantity(latency.ns_p999.value, "ns"),
            format_ns(latency.ns_max as f64),
            format_ns(latency.lag_ns_mean),
            format_ns(latency.lag_ns_max as f64),
        ];
        let head = format!("{}/s, {arrivals} arrivals", three_digits(rate_per_s));
        table.judged_row(head, cells, &point.condemned_by);
    }
    table
}

/// Commits of one block by one committer.
pub fn commits(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let mut table = Table::of_numbers(
        format!("{} commits of one committer, by method", format::block_size(block_bytes)),
        &["Method", "Commits/s", "95 % interval", "p50", "p99", "p99.9", "Context switches"],
    );
    for (method, overwrite, append) in select::commits(findings, block_bytes).methods {
        for (kind, point) in [("overwrite", overwrite), ("append", append)] {
            let Some(point) = point else { continue };
            let cells = vec![
                three_digits(point.iops.value),
                format::interval(&point.iops, ""),
                quantity(point.latency.ns_p50.value, "ns"),
                quantity(point.latency.ns_p99.value, "ns"),
                quantity(point.latency.ns_p999.value, "ns"),
                optional(point.cpu.switches_voluntary_per_io, |n| format!("{n:.2}")),
            ];
            table.judged_row(format!("{} {kind}", method.name()), cells, &point.condemned_by);
        }
    }
    table
}

/// What more committers bring.
pub fn committers(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let mut table = Table::of_numbers(
        "Committers side by side: O_DSYNC, overwriting",
        &["Committers", "Commits/s", "95 % interval", "p50", "p99", "Flushes", "Commits a flush"],
    );
    for point in select::commits(findings, block_bytes).committers {
        let cells = vec![
            three_digits(point.iops.value),
            format::interval(&point.iops, ""),
            quantity(point.latency.ns_p50.value, "ns"),
            quantity(point.latency.ns_p99.value, "ns"),
            optional(point.evidence.device_flushes, |n| thousands(n as i64)),
            optional(select::group_factor(point), three_digits),
        ];
        table.judged_row(point.load.workers.to_string(), cells, &point.condemned_by);
    }
    table
}

/// Small random and large sequential reads together.
pub fn matrix(findings: &Findings) -> Table {
    let mut table = Table::of_numbers(
        "Small and large reads together",
        &["Small × large in flight", "Small-read IOPS", "p50", "p99", "Large-read MB/s"],
    );
    for MatrixCell { small, large, point, large_mb_per_s } in select::matrix(findings) {
        let small_reads = (small > 0).then_some(point);
        let cells = vec![
            optional(small_reads, |p| three_digits(p.iops.value)),
            optional(small_reads, |p| quantity(p.latency.ns_p50.value, "ns")),
            optional(small_reads, |p| quantity(p.latency.ns_p99.value, "ns")),
            optional(large_mb_per_s, |m| three_digits(m.value)),
        ];
        table.judged_row(format!("{small} × {large}"), cells, &point.condemned_by);
    }
    table
}

/// What each layer saw of the same window.
pub fn evidence(findings: &Findings) -> Table {
    let mut table = Table::of_numbers(
        "Bytes completed, charged to the process, and moved by the device; stamps checked",
        &[
            "Point",
            "Completed",
            "Process (÷ completed)",
            "Device (÷ completed)",
            "Device requests",
            "Device mean",
            "Flushes",
            "Stamps checked",
            "Payloads checked",
            "Mismatches",
            "Failed",
            "Window closed by",
        ],
    );
    for point in &findings.points {
        let seen = &point.evidence;
        let share =
            |bytes: u64| format!("{:.3}", bytes as f64 / seen.completed_bytes.max(1) as f64);
        let beside = |b: u64| format!("{} ({})", Bytes(b), share(b));
        let cells = vec![
            Bytes(seen.completed_bytes).to_string(),
            optional(seen.process_bytes, beside),
            optional(seen.device_bytes, beside),
            optional(seen.device_ios, |n| thousands(n as i64)),
            optional(seen.device_ns_mean, format_ns),
            optional(seen.device_flushes, |n| thousands(n as i64)),
            thousands(seen.stamps_verified as i64),
            thousands(seen.checksums_verified as i64),
            thousands(seen.mismatches as i64),
            thousands(seen.failed_ops as i64),
            stop(point.stop).to_owned(),
        ];
        table.judged_row(&point.label, cells, &point.condemned_by);
    }
    table
}

/// Every point's rate and sample.
pub fn rates(findings: &Findings) -> Table {
    let columns = [
        "Point",
        "Load",
        "IOPS",
        "95 % interval",
        "MB/s",
        "95 % interval",
        "I/Os",
        "Measured",
        "Windows",
    ];
    let mut table = Table::of_numbers("Rates", &columns).folded();
    for point in &findings.points {
        let cells = vec![
            format::load(&point.load),
            three_digits(point.iops.value),
            format::interval(&point.iops, "IOPS"),
            three_digits(point.mb_per_s.value),
            format::interval(&point.mb_per_s, "MB/s"),
            thousands(point.iops.samples as i64),
            format_ns(point.iops.duration_ns as f64),
            point.windows.to_string(),
        ];
        table.judged_row(&point.label, cells, &point.condemned_by);
    }
    table
}

/// Every point's latencies.
pub fn latencies(findings: &Findings) -> Table {
    let columns = [
        "Point",
        "Least",
        "Mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
        "Longest",
        "Mean lag",
        "Longest lag",
    ];
    let mut table = Table::of_numbers("Latencies, 95 % intervals below", &columns).folded();
    for point in &findings.points {
        let latency = &point.latency;
        let with_interval = |estimate: &Estimate| {
            let interval = format::interval(estimate, "ns");
            let value = quantity(estimate.value, "ns");
            if interval.is_empty() { value } else { format!("{value}\n{interval}") }
        };
        let mut cells = vec![format_ns(latency.ns_min as f64)];
        cells.extend(quantiles(point).map(with_interval));
        cells.push(format_ns(latency.ns_max as f64));
        cells.push(format_ns(latency.lag_ns_mean));
        cells.push(format_ns(latency.lag_ns_max as f64));
        table.judged_row(&point.label, cells, &point.condemned_by);
    }
    table
}

/// Every point's cost to the processors.
pub fn costs(findings: &Findings) -> Table {
    let columns = [
        "Point",
        "User µs per I/O",
        "System µs per I/O",
        "Voluntary switches per I/O",
        "Involuntary switches per I/O",
        "Run-queue wait per I/O",
        "Processors busy",
        "Of it foreign",
        "Stolen",
    ];
    let mut table = Table::of_numbers("Processor cost", &columns).folded();
    for point in &findings.points {
        let cpu = &point.cpu;
        let cells = vec![
            optional(cpu.user_ns_per_io, format::microseconds),
            optional(cpu.system_ns_per_io, format::microseconds),
            optional(cpu.switches_voluntary_per_io, |n| format!("{n:.3}")),
            optional(cpu.switches_involuntary_per_io, |n| format!("{n:.3}")),
            optional(cpu.run_queue_ns_per_io, format_ns),
            optional(cpu.host_busy_ratio, percent),
            optional(cpu.foreign_busy_ratio, percent),
            optional(cpu.steal_ratio, percent),
        ];
        table.judged_row(&point.label, cells, &point.condemned_by);
    }
    table
}

fn quantiles(point: &Point) -> [&Estimate; 6] {
    let l = &point.latency;
    [&l.ns_mean, &l.ns_p50, &l.ns_p90, &l.ns_p99, &l.ns_p999, &l.ns_p9999]
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
