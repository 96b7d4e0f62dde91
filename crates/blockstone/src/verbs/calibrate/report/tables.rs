//! The tables of a calibration. They contain everything that its charts show.

use std::collections::BTreeSet;

use blockstone_base::Pacing;
use blockstone_base::load::{Access, LoadSpec, SyncMethod};
use blockstone_base::stats::Estimate;
use blockstone_base::table::{Missing, Row, Rows, Table, Text, Value, happened};
use blockstone_base::units::{Bytes, three_digits};
use blockstone_judge::buffered::BufferedWrite;
use blockstone_judge::findings::{Findings, Point};
use blockstone_judge::flushes::FlushSlope;
use blockstone_judge::visits::CachedVisits;
use blockstone_record::manifest::{Group, Manifest};
use blockstone_record::parameters::CalibrateParameters;
use blockstone_report::format;
use serde::Serialize;
use serde_json::json;

use super::rows::{
    BufferedRow, CommitRow, CommittersRow, ConcurrencyRow, CostRow, EvidenceRow, FlushTimeRow,
    GivenRateRow, LatencyRow, LoadRow, MatrixRow, RateRow, StreamsRow, Summary, VisitsRow,
};
use super::select::{self, MatrixCell};
use super::targets;

pub fn summary(manifest: &Manifest, findings: &Findings) -> Table {
    let asked = manifest.parameters::<CalibrateParameters>();
    // A measurement that was asked for and is missing did not take place before the end.
    let why = |asked: Option<bool>| match asked {
        Some(true) => Missing::Nothing,
        _ => Missing::Off,
    };
    let (flushes, buffered) = (findings.flush_slope.as_ref(), findings.buffered_write.as_ref());
    let precondition = findings.precondition.as_ref().ok_or(why(asked.precondition));
    let summary = Summary {
        drift_ratio: findings.drift_ratio.ok_or(Missing::Nothing),
        flush_ns_per_mib: flushes.map(|slope| slope.ns_per_mib).ok_or(Missing::Nothing),
        buffered_written_bytes: buffered
            .map(|writes| writes.written_bytes)
            .ok_or(why(asked.buffered_writes)),
        precondition_written_bytes: precondition.map(|done| done.written_bytes),
        precondition_pass_bytes: precondition.map(|done| done.pass_bytes),
        precondition_settled: precondition.map(|done| done.settled),
        slowest_target: happened(targets::slowest(findings).map(|share| share.path.as_str())),
    };
    Summary::table("calibration", "Calibration", [summary])
}

/// Returns the cells that describe a point, which are empty without one.
fn cells<const CELLS: usize>(
    point: Option<&Point>,
    of: impl Fn(&Point) -> [Value; CELLS],
) -> [Value; CELLS] {
    point.map_or_else(|| std::array::from_fn(|_| Value::default()), of)
}

/// Returns a row that shows two points side by side, in columns whose keys begin with these words.
/// If a rule condemns one of the points, only the cells of that point are struck through.
fn side_by_side<R: Rows>(row: R, points: [(&str, Option<&Point>); 2]) -> Row {
    let mut condemned: Vec<Text> = Vec::new();
    let mut rules: BTreeSet<&String> = BTreeSet::new();
    for (side, point) in points {
        let Some(point) = point.filter(|point| !point.condemned_by.is_empty()) else { continue };
        rules.extend(&point.condemned_by);
        let columns = R::COLUMNS.iter().filter(|column| column.key.starts_with(side));
        condemned.extend(columns.map(|column| column.key.clone()));
    }
    let rules: Vec<String> = rules.into_iter().cloned().collect();
    row.into().condemned_in(condemned, &rules)
}

/// Random reads by operations in flight, with both ways of keeping them in flight side by side.
pub fn concurrency<'a>(findings: &'a Findings) -> Table {
    let sides = select::blocking_and_async(findings, Group::RandomRead);
    let block = sides.0.first().or(sides.1.first()).map_or(0, |point| point.load.block_bytes);
    let title = format!("{} random reads a second", format::block_size(block));
    let mut table = Table::new("random-reads", title, ConcurrencyRow::COLUMNS).about(
        "Blocking readers, each waiting for one read, compared with one thread that keeps \
         many reads in flight.",
    );
    let both = sides.0.iter().chain(&sides.1);
    let depths: BTreeSet<u32> = both.clone().map(|point| point.load.in_flight()).collect();
    for depth in depths {
        let at = |points: &[&'a Point]| {
            points.iter().copied().find(|point| point.load.in_flight() == depth)
        };
        let (blocking, asynchronous) = (at(&sides.0), at(&sides.1));
        let [
            blocking_iops,
            blocking_latency_ns_p50,
            blocking_latency_ns_p99,
            blocking_switches_per_io,
            blocking_cpu_ns_per_io,
        ] = cells(blocking, costs_of);
        let [
            async_iops,
            async_latency_ns_p50,
            async_latency_ns_p99,
            async_switches_per_io,
            async_cpu_ns_per_io,
        ] = cells(asynchronous, costs_of);
        let row = ConcurrencyRow {
            in_flight: depth,
            blocking_iops,
            blocking_latency_ns_p50,
            blocking_latency_ns_p99,
            blocking_switches_per_io,
            blocking_cpu_ns_per_io,
            async_iops,
            async_latency_ns_p50,
            async_latency_ns_p99,
            async_switches_per_io,
            async_cpu_ns_per_io,
        };
        table.push(side_by_side(row, [("blocking_", blocking), ("async_", asynchronous)]));
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
        point.iops.into(),
        point.latency.ns_p50.into(),
        point.latency.ns_p99.into(),
        sum(cpu.switches_voluntary_per_io, cpu.switches_involuntary_per_io).into(),
        sum(cpu.user_ns_per_io, cpu.system_ns_per_io).into(),
    ]
}

/// Large reads by number of streams, if `--streams` was given.
pub fn streams(manifest: &Manifest, findings: &Findings) -> Table {
    let mut table = StreamsRow::table("streams", "Streams of 1 MiB reads", []);
    let asked = manifest.parameters::<CalibrateParameters>().streams.unwrap_or_default();
    let points = || select::group(findings, Group::LargeRead);
    for streams in asked {
        let of = |random: bool| {
            let mut found = points().filter(|point| point.load.in_flight() == streams);
            found.find(|point| (point.load.access == Access::Random) == random)
        };
        let (sequential, random) = (of(false), of(true));
        if sequential.or(random).is_none() {
            continue;
        }
        let figures =
            |point: &Point| [point.mb_per_s.scaled(1e6).into(), point.latency.ns_p50.into()];
        let [sequential_bytes_per_s, sequential_latency_ns_p50] = cells(sequential, figures);
        let [random_bytes_per_s, random_latency_ns_p50] = cells(random, figures);
        let row = StreamsRow {
            streams,
            sequential_bytes_per_s,
            sequential_latency_ns_p50,
            random_bytes_per_s,
            random_latency_ns_p50,
        };
        table.push(side_by_side(row, [("sequential_", sequential), ("random_", random)]));
    }
    table
}

/// Reads at a fixed rate: their wait beyond the time that the device took.
pub fn open_loop(findings: &Findings) -> Table {
    let title = "At a fixed rate: latency from the intended start";
    let points = select::group(findings, Group::OpenLoop);
    let paced = points.filter_map(|point| Some((point, arrivals(&point.load)?)));
    let rows = paced.map(|(point, (arrivals, intended_per_s))| {
        let latency = &point.latency;
        let row = GivenRateRow {
            arrivals,
            intended_per_s,
            iops: point.iops,
            latency_ns_p50: latency.ns_p50,
            latency_ns_p99: latency.ns_p99,
            latency_ns_p999: latency.ns_p999,
            latency_ns_max: latency.ns_max,
            lag_ns_mean: latency.lag_ns_mean,
            lag_ns_max: latency.lag_ns_max,
        };
        Row::from(row).condemned_by(&point.condemned_by)
    });
    Table::new("given-rate", title, GivenRateRow::COLUMNS).with(rows)
}

/// Returns how the intended starts of an open loop are spaced, and their number a second.
fn arrivals(load: &LoadSpec) -> Option<(&'static str, f64)> {
    let Pacing::Open { rate_per_s, poisson } = load.pacing else { return None };
    Some((if poisson { "Poisson" } else { "fixed" }, rate_per_s))
}

/// Commits of one block by one committer, by sync method.
pub fn commits(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let title = format!("{} commits", format::block_size(block_bytes));
    let figures =
        |point: &Point| [point.latency.ns_p50, point.latency.ns_p99, point.iops].map(Value::from);
    let methods = select::commits(findings, block_bytes).methods.into_iter();
    let rows = methods.map(|(method, overwrite, append)| {
        let [overwrite_latency_ns_p50, overwrite_latency_ns_p99, overwrite_commits_per_s] =
            cells(overwrite, figures);
        let [append_latency_ns_p50, append_latency_ns_p99, append_commits_per_s] =
            cells(append, figures);
        let row = CommitRow {
            sync_method: method.name(),
            overwrite_latency_ns_p50,
            overwrite_latency_ns_p99,
            overwrite_commits_per_s,
            append_latency_ns_p50,
            append_latency_ns_p99,
            append_commits_per_s,
        };
        side_by_side(row, [("overwrite_", overwrite), ("append_", append)])
    });
    Table::new("commits", title, CommitRow::COLUMNS).with(rows)
}

/// A table with a row for each point, struck through by the rules that condemn it.
fn of_points<'a, R: Rows>(
    name: &'static str,
    title: &'static str,
    points: impl IntoIterator<Item = &'a Point>,
    row: impl Fn(&'a Point) -> R,
) -> Table {
    let row = |point: &'a Point| row(point).into().condemned_by(&point.condemned_by);
    Table::new(name, title, R::COLUMNS).with(points.into_iter().map(row))
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

pub fn committers(manifest: &Manifest, findings: &Findings) -> Table {
    let block_bytes = select::block_bytes(manifest, findings);
    let title = "Concurrent committers: O_DSYNC, overwriting";
    let points = select::commits(findings, block_bytes).committers;
    of_points("committers", title, points, |point| {
        let device_flushes = point.evidence.device_flushes;
        let why = device_flushes.map_or(Missing::Unknown, |_| Missing::Nothing);
        CommittersRow {
            committers: point.load.workers,
            commits_per_s: point.iops,
            latency_ns_p50: point.latency.ns_p50,
            latency_ns_p99: point.latency.ns_p99,
            device_flushes,
            commits_per_flush: select::group_factor(point).ok_or(why),
        }
    })
}

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
    let rows = slope.sizes.iter().map(|time| FlushTimeRow {
        unflushed_bytes: time.unflushed_bytes,
        flush_ns_p50: time.flush_ns_p50,
        flush_ns_min: time.flush_ns_min,
        flush_ns_max: time.flush_ns_max,
        flushes: time.flush_ns_p50.samples,
    });
    FlushTimeRow::table("flushes", title, rows).about(about)
}

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
    let rows = ways.map(|(way, rate)| BufferedRow {
        way,
        bytes_per_s: rate.scaled(1e6),
        rounds: rate.samples,
    });
    Table::new("buffered-writes", title, BufferedRow::COLUMNS).about(about).with(rows)
}

/// Visits of cached blocks by one session, and by one on each processor.
pub fn cached_visits(visits: &CachedVisits) -> Table {
    let about = "Blocks of 8 KiB that sessions of the miniature instance visited by key, 64 to a \
                 statement, all of them in the buffer cache. It compares processors: what a \
                 database itself spends on a visit is more. On processors that are threads of one \
                 core, each gets less than it would alone.";
    let row = |sessions, rate: Estimate| VisitsRow {
        sessions,
        visits_per_core_s: rate,
        ratio: Value::default(),
        on_processor_ratio: Value::default(),
        turns: rate.samples,
    };
    let together = visits.together.as_ref().map(|together| VisitsRow {
        ratio: together.ratio.into(),
        on_processor_ratio: together.on_processor_ratio.into(),
        ..row(together.sessions, together.per_core_s)
    });
    let rows = [row(1, visits.per_core_s)].into_iter().chain(together);
    VisitsRow::table("cached-visits", "Cached blocks visited per CPU-second", rows).about(about)
}

pub fn matrix(findings: &Findings) -> Table {
    let cells = select::matrix(findings).into_iter();
    let rows = cells.map(|MatrixCell { small, large, point, large_mb_per_s }| {
        let of_small = |estimate| happened((small > 0).then_some(estimate));
        let row = MatrixRow {
            small_in_flight: small,
            large_in_flight: large,
            small_iops: of_small(point.iops),
            small_latency_ns_p50: of_small(point.latency.ns_p50),
            small_latency_ns_p99: of_small(point.latency.ns_p99),
            large_bytes_per_s: happened(large_mb_per_s.map(|rate| rate.scaled(1e6))),
        };
        Row::from(row).condemned_by(&point.condemned_by)
    });
    let title = "Small and large reads together";
    Table::new("mixed-reads", title, MatrixRow::COLUMNS).with(rows)
}

pub fn evidence(findings: &Findings) -> Table {
    let title = "Bytes completed, charged to the process, and moved by the device; stamps checked";
    of_points("evidence", title, &findings.points, |point| {
        let seen = &point.evidence;
        let ratio = |bytes: u64| bytes as f64 / seen.completed_bytes.max(1) as f64;
        let overcharged = seen.process_overcharged;
        let why = if overcharged { Missing::NoEvidence } else { Missing::Unknown };
        EvidenceRow {
            point: point.label.clone(),
            completed_bytes: seen.completed_bytes,
            process_bytes: seen.process_bytes.ok_or(why),
            process_ratio: seen.process_bytes.map(ratio).ok_or(why),
            device_bytes: seen.device_bytes,
            device_ratio: seen.device_bytes.map(ratio),
            device_ios: seen.device_ios,
            device_ns_mean: seen.device_ns_mean,
            device_flushes: seen.device_flushes,
            stamps_verified: seen.stamps_verified,
            checksums_verified: seen.checksums_verified,
            mismatches: seen.mismatches,
            failed_ops: seen.failed_ops,
            stop: point.stop.words(),
            added_pages: seen.added_pages,
        }
    })
}

pub fn rates(findings: &Findings) -> Table {
    of_points("rates", "Rates", &findings.points, |point| {
        let background = point.background.as_ref().map(|(_, rate)| rate.scaled(1e6));
        let warned_by = point.warned_by.join(", ");
        RateRow {
            point: point.label.clone(),
            load: format::load(&point.load),
            iops: point.iops,
            bytes_per_s: point.mb_per_s.scaled(1e6),
            ios: point.iops.samples,
            measured_ns: point.iops.duration_ns,
            windows: point.windows,
            background_bytes_per_s: happened(background),
            warned_by: happened(Some(warned_by).filter(|rules| !rules.is_empty())),
        }
    })
}

pub fn latencies(findings: &Findings) -> Table {
    of_points("latencies", "Latencies", &findings.points, |point| {
        let latency = &point.latency;
        LatencyRow {
            point: point.label.clone(),
            latency_ns_min: latency.ns_min,
            latency_ns_mean: latency.ns_mean,
            latency_ns_p50: latency.ns_p50,
            latency_ns_p90: latency.ns_p90,
            latency_ns_p99: latency.ns_p99,
            latency_ns_p999: latency.ns_p999,
            latency_ns_p9999: latency.ns_p9999,
            latency_ns_max: latency.ns_max,
            unfinished: latency.unfinished,
            lag_ns_mean: latency.lag_ns_mean,
            lag_ns_max: latency.lag_ns_max,
        }
    })
}

pub fn costs(findings: &Findings) -> Table {
    of_points("processor-cost", "Processor cost", &findings.points, |point| {
        let cpu = &point.cpu;
        CostRow {
            point: point.label.clone(),
            cpu_user_ns_per_io: cpu.user_ns_per_io,
            cpu_system_ns_per_io: cpu.system_ns_per_io,
            switches_voluntary_per_io: cpu.switches_voluntary_per_io,
            switches_involuntary_per_io: cpu.switches_involuntary_per_io,
            run_queue_ns_per_io: cpu.run_queue_ns_per_io,
            host_busy_ratio: cpu.host_busy_ratio,
            foreign_busy_ratio: cpu.foreign_busy_ratio,
            steal_ratio: cpu.steal_ratio,
        }
    })
}

/// Settings of the loads, from which each can be repeated.
pub fn loads(findings: &Findings) -> Table {
    let rows = findings.points.iter().flat_map(|point| {
        let background =
            point.background.iter().map(|(load, _)| load_row(point, "background", load));
        [load_row(point, "measured", &point.load)].into_iter().chain(background)
    });
    LoadRow::table("loads", "Loads", rows)
}

fn load_row(point: &Point, part: &'static str, load: &LoadSpec) -> LoadRow {
    let arrivals = arrivals(load);
    LoadRow {
        point: point.label.clone(),
        part,
        group: word(point.group),
        engine: load.engine.clone(),
        operation: load.op.name(),
        read_pct: happened(load.read_pct),
        access: word(load.access),
        block_bytes: load.block_bytes,
        workers: load.workers,
        depth_per_worker: load.depth_per_worker,
        span_bytes: load.span_bytes,
        offset_bytes: load.offset_bytes,
        sync_method: happened(load.sync.map(SyncMethod::name)),
        direct: load.direct,
        arrivals: happened(arrivals.map(|(arrivals, _)| arrivals)),
        intended_per_s: happened(arrivals.map(|(_, intended_per_s)| intended_per_s)),
        seed: load.seed.to_string(),
    }
}

/// Returns the word for a variant, as a recording has it.
fn word(variant: impl Serialize) -> String {
    json!(variant).as_str().unwrap_or_default().to_owned()
}
