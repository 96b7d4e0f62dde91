//! Sections that only some runs have: the direct-path matrix, and noise in parallel with the
//! sessions.

use std::collections::BTreeSet;

use blockstone_base::Estimate;
use blockstone_base::stats;
use blockstone_base::table::{Measure, Row, Rows as _, Table, happened};
use blockstone_base::units::{Bytes, counted, format_ns, three_digits};
use blockstone_figures::compare::Outcome;
use blockstone_judge::run::{
    Noise, NoiseEffect, Scan, ScanEffect, ScanPoint, ScanSpread, ScanUnmeasured, ScanWait,
};
use blockstone_report::chart::{Axis, Chart, Color, Form, Level, Point};
use blockstone_report::format::{block_size, optional};
use blockstone_report::{Card, Detail, Section};
use blockstone_workload::noise::NoiseMode;

use super::rows::{
    NoiseRow, ScanCountRow, ScanEffectRow, ScanRow, ScanSpreadRow, StatementRow, StatementWaitRow,
    UnmeasuredRow, WholeScanRow, WritersRow,
};
use super::tables::measure;
use crate::recorded::identity::reason;

fn sessions(count: u32) -> String {
    counted(count.into(), "session")
}

/// Returns the highest throughput and its settings.
pub fn fastest(scan: &Scan) -> Option<Card> {
    let (point, mb_per_s) = scan.fastest()?;
    let size = point.multiblock.map(|blocks| format!("{blocks} blocks per read"));
    let with: Vec<String> = size.into_iter().chain([sessions(point.parallel)]).collect();
    let with = with.join(", ");
    Some(Card {
        words: format!("MB/s, the maximum, with {with}").into(),
        source: point.label.clone(),
        condemned_by: point.condemned_by.clone(),
        ..Card::new("read_mbps", "Most megabytes read a second", mb_per_s, "MB/s")
    })
}

/// Returns the matrix of scans. For the miniature instance, it compares what every read took with
/// what a database says about the same reads; for a database, it shows what its statements read and
/// cost.
pub fn scan(scan: &Scan, table: Option<Bytes>) -> [Section; 3] {
    if scan.points.iter().any(|point| point.statements.is_some()) {
        return of_statements(scan);
    }
    let whole = table.map(|size| whole(scan, size));
    let about = "Every read size with every number of sessions, on one table. A session keeps \
                 several reads in flight and waits only if the next one has not completed yet: \
                 the wait interface of a database therefore reports fewer waits than reads, and \
                 only the remaining part of each read.";
    let details = [counts(scan), effects(scan), spreads(scan)];
    [
        Section::new("scan", "Scans past the buffer cache")
            .about(about)
            .with([points(scan)])
            .with(whole),
        Section::new("scan-in-words", "")
            .detail(Detail::Terminal)
            .with(scan.effects.iter().map(effect_in_words).chain([spreads_in_words(scan)])),
        Section::page("scan-in-detail", "Scans in detail")
            .with([throughput(scan), latencies(scan)])
            .with(details),
    ]
}

fn spreads_in_words(scan: &Scan) -> String {
    let spreads = scan.spreads.iter().map(|spread| {
        if !spread.is_established() {
            let sessions = sessions(spread.parallel);
            return format!("{sessions}: no difference between read sizes is established");
        }
        format!(
            "{}: {} blocks are {}× as fast as {}",
            sessions(spread.parallel),
            spread.fastest_multiblock.unwrap_or(1),
            three_digits(spread.ratio.value),
            spread.slowest_multiblock.unwrap_or(1)
        )
    });
    spreads.collect::<Vec<_>>().join(" · ")
}

fn of_statements(scan: &Scan) -> [Section; 3] {
    let about = "A statement of the database that visits every row, each in a block of its own, \
                 with every number of sessions. Each session scans tables of its own, again and \
                 again. The database decides how it reads.";
    let more = |effect: &ScanEffect| {
        let size = effect.multiblock.map(|blocks| format!("{blocks} blocks, ")).unwrap_or_default();
        let (from, to) = (effect.from_parallel, effect.to_parallel);
        let ratio = effect.mb_per_s.map(|ratio| three_digits(ratio.value));
        format!("{size}{from} → {to} sessions: {}× the MB/s", optional(ratio, |ratio| ratio))
    };
    let spreads = Some(spreads_in_words(scan)).filter(|text| !text.is_empty());
    [
        Section::new("scan", "Scans by a statement").about(about).with([statements(scan)]),
        Section::new("scan-in-words", "")
            .detail(Detail::Terminal)
            .with(scan.effects.iter().map(more).chain(spreads)),
        Section::page("scan-in-detail", "Scans in detail")
            .with([throughput(scan)])
            .with([waits(scan), counts(scan), effects(scan), self::spreads(scan)])
            .with([unmeasured(scan)]),
    ]
}

fn statements(scan: &Scan) -> Table {
    let row = |point: &ScanPoint| {
        let statements = point.statements.as_ref()?;
        let cells = StatementRow {
            multiblock: happened(point.multiblock),
            parallel: point.parallel,
            mb_per_s: point.mb_per_s,
            rows_per_s: statements.rows_per_s,
            cpu_ns_per_row: statements.cpu_ns_per_row,
            read_wait_ratio: statements.read_wait_ratio(),
            device_bytes_per_s: statements.device_mb_per_s.map(|rate| rate.scaled(1e6)),
            device_read_bytes_mean: statements.device_read_bytes_mean,
            device_read_ns_mean: statements.device_read_ns_mean,
        };
        Some(Row::from(cells).condemned_by(&point.condemned_by))
    };
    let rows = scan.points.iter().filter_map(row);
    let mut table = Table::new("scan", "Scans by a statement", StatementRow::COLUMNS).with(rows);
    table.notes.push(
        "MB/s includes what the page cache answered; the device columns count the reads of all \
         processes."
            .to_owned(),
    );
    table.notes.extend(without_rate(scan));
    table
}

fn without_rate(scan: &Scan) -> Option<String> {
    let labels = scan.without_rate.join(", ");
    let note = format!("No rate for {labels}: a counter was read too rarely (--run-time).");
    (!labels.is_empty()).then_some(note)
}

fn waits(scan: &Scan) -> Table {
    let of = |point: &ScanPoint| {
        let waits = point.statements.iter().flat_map(|statements| &statements.waits);
        let row = |wait: &ScanWait| StatementWaitRow {
            point: point.label.clone(),
            event: wait.event.clone(),
            class: wait.class,
            time_ns: wait.time_ns,
            db_time_ratio: wait.db_time_ratio,
        };
        waits.map(row).collect::<Vec<_>>()
    };
    let rows = scan.points.iter().flat_map(of);
    StatementWaitRow::table("scan-waits", "What the sessions waited for", rows)
}

fn unmeasured(scan: &Scan) -> Table {
    let statements = scan.points.iter().find_map(|point| point.statements.as_ref());
    let all = statements.into_iter().flat_map(|statements| &statements.unmeasured);
    let row =
        |one: &ScanUnmeasured| UnmeasuredRow { what: one.what.clone(), why: reason(&one.why) };
    UnmeasuredRow::table("scan-unmeasured", "What was not measured", all.map(row))
}

fn points(scan: &Scan) -> Table {
    let row = |point: &ScanPoint| {
        let waits = point.waits.as_ref();
        let a_second = 1e9 / point.window_ns.max(1) as f64;
        let cells = ScanRow {
            multiblock: point.multiblock,
            parallel: point.parallel,
            mb_per_s: point.mb_per_s,
            iops: point.iops,
            io_ns_mean: point.io_ns_mean,
            io_ns_p50: point.io_ns_p50,
            io_ns_p99: point.io_ns_p99,
            waits_per_s: waits.map(|waits| waits.count as f64 * a_second),
            waits_ratio: waits.map(|waits| waits.count_ratio),
            wait_ns_mean: happened(waits.and_then(|waits| waits.ns_mean)),
            wait_mean_ratio: happened(waits.and_then(|waits| waits.mean_ratio)),
        };
        Row::from(cells).condemned_by(&point.condemned_by)
    };
    let title = "Scans past the buffer cache";
    let mut table = Table::new("scan", title, ScanRow::COLUMNS).with(scan.points.iter().map(row));
    table.notes.push(
        "Columns up to p99 describe the reads; columns from waits/s on, the waits (direct path \
         read) that a database would report for them: only the reads that a session had to wait \
         for, and only the time it waited."
            .to_owned(),
    );
    table.notes.extend(without_rate(scan));
    table
}

/// Returns the elapsed time, the waits and their sum for one scan of the table, as a trace of a
/// database's session shows them.
fn whole(scan: &Scan, table: Bytes) -> Table {
    let row = |point: &ScanPoint| {
        let once = Estimate::around(table.get() as f64 / 1e6, 0.0, 1, 0);
        let read = point.mb_per_s.value * 1e6 * point.window_ns as f64 / 1e9;
        let scans = (read > 0.0).then(|| read / table.get() as f64);
        let per_scan = |count: u64| scans.map(|scans| count as f64 / scans);
        let waits = point.waits.as_ref();
        let cells = WholeScanRow {
            multiblock: happened(point.multiblock),
            parallel: point.parallel,
            elapsed_ns: happened(stats::ratio(&point.mb_per_s, &once).map(|s| s.scaled(1e9))),
            ios: point.ios.and_then(per_scan),
            waits: waits.and_then(|waits| per_scan(waits.count)),
            wait_ns: waits.and_then(|waits| per_scan(waits.time_ns)),
            wait_ns_mean: happened(waits.and_then(|waits| waits.ns_mean)),
        };
        Row::from(cells).condemned_by(&point.condemned_by)
    };
    let title = format!("One scan of the whole table ({table})");
    let mut rows =
        Table::new("scan-whole", title, WholeScanRow::COLUMNS).with(scan.points.iter().map(row));
    rows.notes.push(
        "At the rates of each window, which may be shorter or longer than one scan. The total \
         wait is that of all sessions, so it may exceed the elapsed time."
            .to_owned(),
    );
    rows
}

fn counts(scan: &Scan) -> Table {
    let row = |point: &ScanPoint| {
        let waits = point.waits.as_ref();
        let statements = point.statements.as_ref();
        let cells = ScanCountRow {
            multiblock: point.multiblock,
            parallel: point.parallel,
            point: point.label.clone(),
            read_bytes: point.read_bytes,
            slots: point.slots.map(u64::from),
            window_ns: point.window_ns,
            stop: point.stop.words(),
            ios: point.ios,
            io_ns: point.io_ns,
            outstanding: point.outstanding,
            waits: waits.map(|waits| waits.count),
            wait_ns: waits.map(|waits| waits.time_ns),
            wait_ns_p50: happened(waits.and_then(|waits| waits.ns_p50)),
            wait_ns_p99: happened(waits.and_then(|waits| waits.ns_p99)),
            wait_time_ratio: waits.map(|waits| waits.time_ratio),
            statements: statements.map(|statements| statements.count),
            read_bytes_mean: statements.and_then(|statements| statements.read_bytes_mean),
        };
        Row::from(cells).condemned_by(&point.condemned_by)
    };
    let rows = scan.points.iter().map(row);
    Table::new("scan-counts", "Reads and waits in numbers", ScanCountRow::COLUMNS).with(rows)
}

fn effects(scan: &Scan) -> Table {
    let title = "The same bytes with more sessions: after ÷ before";
    let row = |effect: &ScanEffect| ScanEffectRow {
        multiblock: effect.multiblock,
        from_parallel: effect.from_parallel,
        to_parallel: effect.to_parallel,
        mb_per_s_ratio: happened(effect.mb_per_s),
        io_ns_mean_ratio: happened(effect.io_ns_mean),
        waits_ratio: happened(effect.waits),
        wait_ns_mean_ratio: happened(effect.wait_ns_mean),
        wait_time_ratio: happened(effect.wait_time),
    };
    ScanEffectRow::table("scan-effects", title, scan.effects.iter().map(row))
}

fn effect_in_words(effect: &ScanEffect) -> String {
    let times = |value: Option<f64>| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{}×", three_digits(value)))
    };
    format!(
        "{} blocks, {} → {} sessions: {} the MB/s, a read takes {} as long; reported for the same \
         bytes: {} the waits, mean wait {}, wait time {}",
        effect.multiblock.unwrap_or(1),
        effect.from_parallel,
        effect.to_parallel,
        times(effect.mb_per_s.map(|ratio| ratio.value)),
        times(effect.io_ns_mean.map(|ratio| ratio.value)),
        times(effect.waits),
        times(effect.wait_ns_mean),
        times(effect.wait_time)
    )
}

fn spreads(scan: &Scan) -> Table {
    let row = |it: &ScanSpread| ScanSpreadRow {
        parallel: it.parallel,
        fastest_multiblock: it.fastest_multiblock,
        slowest_multiblock: it.slowest_multiblock,
        ratio: it.ratio,
    };
    let rows = scan.spreads.iter().map(row);
    let mut table = ScanSpreadRow::table("scan-spreads", "Differences between read sizes", rows);
    table.notes.push(
        "Intervals of the fastest and the slowest of several (Tukey's studentized range). Where \
         one includes 1, no difference between read sizes is established."
            .to_owned(),
    );
    table
}

/// Returns the value of a point that is drawn; `None` if there is none.
type Drawn = fn(&ScanPoint) -> Option<Estimate>;

fn mark(point: &ScanPoint, x: f64, y: Estimate) -> Point {
    Point {
        x,
        y: Some(y.value),
        interval: (y.low < y.high).then_some((y.low, y.high)),
        condemned: !point.condemned_by.is_empty(),
    }
}

/// Adds a layer for each number of sessions: points by read size.
fn layered(mut chart: Chart, scan: &Scan, prefix: &str, dashed: bool, drawn: Drawn) -> Chart {
    let counts: BTreeSet<u32> = scan.points.iter().map(|point| point.parallel).collect();
    for (parallel, color) in counts.into_iter().zip(0..) {
        let mut points: Vec<&ScanPoint> =
            scan.points.iter().filter(|point| point.parallel == parallel).collect();
        points.sort_by_key(|point| point.multiblock);
        let points = points
            .into_iter()
            .filter_map(|point| Some(mark(point, point.multiblock? as f64, drawn(point)?)));
        let form = Form::Line { points: points.collect(), dashed, marks: true };
        let name = format!("{prefix}{}", sessions(parallel));
        chart = chart.layer(name, Color::Series(color), form);
    }
    chart
}

fn throughput(scan: &Scan) -> Chart {
    let has_sizes = scan.points.iter().any(|point| point.multiblock.is_some());
    let (title, by) =
        if has_sizes { ("blocks per read", "size of read") } else { ("sessions", "sessions") };
    let (x, y) = (Axis::new(title, Measure::Count).log(), Axis::new("", Measure::BytesPerS));
    let chart = Chart::new("scan-throughput", "Scan throughput", x, y)
        .about(format!("Bytes a second by {by}; whiskers are the 95 % intervals."));
    if has_sizes {
        return layered(chart, scan, "", false, |point| Some(point.mb_per_s.scaled(1e6)));
    }
    let mut points: Vec<&ScanPoint> = scan.points.iter().collect();
    points.sort_by_key(|point| point.parallel);
    let rate = |point: &ScanPoint| mark(point, point.parallel.into(), point.mb_per_s.scaled(1e6));
    let points = points.into_iter().map(rate).collect();
    chart.layer("MB/s", Color::Series(0), Form::Line { points, dashed: false, marks: true })
}

fn latencies(scan: &Scan) -> Chart {
    let x = Axis::new("blocks per read", Measure::Count).log();
    let y = Axis::new("mean", Measure::Nanoseconds).log();
    let chart = Chart::new("reads-and-reported-waits", "Reads and reported waits", x, y).about(
        "Mean of every read (solid), and the mean wait that a database reports of the same reads \
         (dashed).",
    );
    let chart = layered(chart, scan, "reads, ", false, |point| point.io_ns_mean);
    layered(chart, scan, "waits, ", true, |point| {
        let value = point.waits.as_ref()?.ns_mean?;
        Some(Estimate { value, low: value, high: value, ..point.io_ns_mean? })
    })
}

/// Compares the same sessions without and with noise.
pub fn noise(noise: &Noise) -> [Section; 3] {
    let about = "The same sessions in two windows: alone, then beside noise writers. Each writer \
                 loops over its own area with one write after the other. All other sections \
                 describe the first window.";
    [
        Section::new("noise", "Effect of noise on the sessions").about(about).with([effect(noise)]),
        Section::page("noise-chart", "Noisy against quiet").with([shares(noise)]),
        Section::page("noise-in-detail", "The noise writers").with([writers(noise)]),
    ]
}

fn effect(noise: &Noise) -> Table {
    let title = "Effect of noise on the sessions";
    let mut table = Table::new("noise", title, NoiseRow::COLUMNS);
    for row in &noise.effect {
        let cells = NoiseRow {
            figure: row.title.clone(),
            quiet: row.quiet,
            noisy: row.noisy,
            ratio: happened(row.ratio),
            outcome: row.outcome.short(),
            of: if row.unit == "ns" { String::new() } else { row.unit.clone() },
        };
        table.push(Row::from(cells).of(measure(&row.unit)).condemned_by(&row.condemned_by));
    }
    table.notes.push(format!("{}. What follows is the window without it.", in_words(noise)));
    table
}

fn in_words(noise: &Noise) -> String {
    let latency = noise.latency.as_ref().map_or_else(
        || "–".to_owned(),
        |latency| {
            let [p50, p99] =
                [latency.ns_p50, latency.ns_p99].map(|ns| optional(ns, |ns| format_ns(ns as f64)));
            format!("mean {}, p50 {p50}, p99 {p99}", format_ns(latency.ns_mean))
        },
    );
    let rate = |rate: Option<Estimate>| {
        rate.map_or_else(|| "–".to_owned(), |rate| three_digits(rate.value))
    };
    let written = noise.device_mb_per_s.map_or_else(String::new, |written| {
        let written = three_digits(written.value);
        format!(" into the page cache (the device wrote {written} MB/s, all writes included)")
    });
    format!(
        "noise: {} writers, each one {} {} write at a time, {} MB/s{written}, {} writes/s: \
         {latency}",
        noise.writers,
        mode(noise),
        block_size(noise.write_bytes),
        rate(noise.mb_per_s),
        rate(noise.iops),
    )
}

/// Describes how a write is made.
pub fn mode(noise: &Noise) -> &'static str {
    let mode = NoiseMode::ALL.iter().find(|mode| mode.name() == noise.mode);
    mode.map_or("", |mode| mode.words())
}

pub fn writers(noise: &Noise) -> Table {
    let latency = noise.latency.as_ref();
    let row = WritersRow {
        writers: noise.writers,
        mode: noise.mode,
        write_bytes: noise.write_bytes,
        bytes_per_s: happened(noise.mb_per_s.map(|rate| rate.scaled(1e6))),
        iops: happened(noise.iops),
        writes: happened(latency.map(|it| it.count)),
        latency_ns_mean: happened(latency.map(|it| it.ns_mean)),
        latency_ns_p50: happened(latency.and_then(|it| it.ns_p50)),
        latency_ns_p99: happened(latency.and_then(|it| it.ns_p99)),
        window_ns: noise.window_ns,
    };
    WritersRow::table("noise-writers", "The noise writers", [row]).record()
}

/// Chart of every figure with noise as a share of that without.
pub fn shares(noise: &Noise) -> Chart {
    let rows: Vec<(&NoiseEffect, Estimate)> =
        noise.effect.iter().filter_map(|row| Some((row, row.ratio?))).collect();
    let names = rows.iter().map(|(row, _)| row.title.clone()).collect();
    let y = Axis::new("noisy ÷ quiet", Measure::Share);
    let x = Axis::names("", names);
    let mut chart = Chart::new("noisy-against-quiet", "Noisy against quiet", x, y)
        .about("100 % is the figure without noise; whiskers are the 95 % intervals.")
        .wide(360);
    chart.levels.push(Level { y: 1.0, name: "quiet".to_owned() });
    let kinds = [
        ("slower", Color::Series(1), Some(Outcome::Slower)),
        ("faster", Color::Series(2), Some(Outcome::Faster)),
        ("difference not established", Color::Grey, None),
    ];
    for (name, color, kind) in kinds {
        let of_kind = |row: &NoiseEffect| match row.outcome {
            Outcome::Slower | Outcome::Faster => Some(row.outcome) == kind,
            _ => kind.is_none(),
        };
        let bars = rows.iter().enumerate().filter(|(_, (row, _))| of_kind(row));
        let points: Vec<Point> = bars
            .map(|(index, (row, ratio))| Point {
                x: index as f64,
                y: Some(ratio.value),
                interval: (ratio.low < ratio.high).then_some((ratio.low.max(0.0), ratio.high)),
                condemned: !row.condemned_by.is_empty(),
            })
            .collect();
        chart = chart.layer(name, color, Form::Bars { points, stacked: true });
    }
    chart
}

#[cfg(test)]
mod tests {
    use blockstone_record::manifest::Stop;

    use super::*;

    fn point(multiblock: Option<u64>, parallel: u32) -> ScanPoint {
        let mb_per_s =
            Estimate { value: 100.0, low: 90.0, high: 110.0, samples: 9, duration_ns: 1 };
        ScanPoint {
            label: String::new(),
            multiblock,
            read_bytes: None,
            parallel,
            slots: None,
            window_ns: 1,
            stop: Stop::TimeLimit,
            mb_per_s,
            iops: None,
            ios: None,
            io_ns: None,
            io_ns_mean: None,
            io_ns_p50: None,
            io_ns_p99: None,
            outstanding: None,
            waits: None,
            statements: None,
            condemned_by: Vec::new(),
        }
    }

    #[test]
    fn without_a_choice_of_sizes_throughput_is_drawn_by_sessions() {
        let drawn = |points: &[(Option<u64>, u32)]| {
            let points = points.iter().map(|&(multiblock, parallel)| point(multiblock, parallel));
            let (effects, spreads, without_rate) = Default::default();
            let scan = Scan { points: points.collect(), effects, spreads, without_rate };
            let chart = throughput(&scan);
            let places = chart.layers.iter().map(|layer| match &layer.form {
                Form::Line { points, .. } => points.iter().map(|point| point.x).collect(),
                _ => Vec::new(),
            });
            (chart.x.title.to_string(), places.collect::<Vec<Vec<f64>>>())
        };
        let (title, places) = drawn(&[(None, 4), (None, 1)]);
        assert_eq!((title.as_str(), places), ("sessions", vec![vec![1.0, 4.0]]));
        let (title, places) = drawn(&[(Some(16), 1), (Some(4), 1), (Some(4), 4)]);
        assert_eq!(title, "blocks per read");
        assert_eq!(places, [vec![4.0, 16.0], vec![4.0]]);
    }
}
