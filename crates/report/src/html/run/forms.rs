//! Sections that only some runs have: the direct-path matrix, and noise beside the sessions.

use blockstone_base::Estimate;
use blockstone_base::units::{thousands, three_digits};
use blockstone_judge::Change;
use blockstone_judge::run::{Noise, Scan, ScanPoint};
use plotly::common::{DashType, HoverInfo, Line, Marker, Mode};
use plotly::layout::{Axis, AxisType, BarMode, Layout, Margin};
use plotly::{Bar, Scatter, Trace};

use super::super::Section;
use super::super::charts::{BLUE, Chart, GREEN, ORANGE, PURPLE, errors, rate_axis, spanning};
use super::super::table::Table;
use crate::format::{self, block_size, microseconds, optional, percent};
use crate::terminal::noise_itself;

const COLORS: [&str; 4] = [BLUE, ORANGE, GREEN, PURPLE];

/// The direct-path matrix.
pub fn scan(scan: &Scan) -> Section {
    Section {
        id: "scan",
        title: "Scans past the buffer cache",
        intro: "Every size of read with every number of sessions, on one table. A session keeps \
                several reads outstanding and waits only when the next one has not returned yet: \
                the wait interface of a database therefore counts fewer waits than there are \
                reads, and of those it counts only the rest.",
        charts: vec![throughput(scan), latencies(scan)],
        tables: vec![points(scan), effects(scan), spreads(scan)],
    }
}

fn points(scan: &Scan) -> Table {
    let columns = [
        "Blocks × sessions",
        "MB/s",
        "Reads/s",
        "Reads",
        "Mean µs",
        "p50 µs",
        "p99 µs",
        "Outstanding",
        "Waits",
        "Waits ÷ reads",
        "Mean wait µs",
        "p99 wait µs",
        "Mean wait ÷ mean read",
        "Wait time ÷ read time",
    ];
    let caption = "Every read, and the same reads as direct path read waits";
    let mut table = Table::of_numbers(caption, &columns);
    let with_interval = |estimate: &Estimate| {
        format!("{} {}", three_digits(estimate.value), format::plus_minus(estimate))
    };
    for point in &scan.points {
        let waits = &point.waits;
        let cells = vec![
            with_interval(&point.mb_per_s),
            with_interval(&point.iops),
            thousands(point.ios as i64),
            microseconds(point.io_ns_mean.value),
            microseconds(point.io_ns_p50.value),
            microseconds(point.io_ns_p99.value),
            three_digits(point.outstanding),
            thousands(waits.count as i64),
            percent(waits.count_ratio),
            optional(waits.ns_mean, microseconds),
            optional(waits.ns_p99, |ns| microseconds(ns as f64)),
            optional(waits.mean_ratio, percent),
            percent(waits.time_ratio),
        ];
        table.judged_row(name(point), cells, &point.condemned_by);
    }
    table
}

fn name(point: &ScanPoint) -> String {
    format!("{} × {}", point.multiblock, point.parallel)
}

fn effects(scan: &Scan) -> Table {
    let columns = [
        "Blocks",
        "Sessions",
        "MB/s",
        "Mean of a read",
        "Waits for each byte",
        "Mean wait",
        "Wait time for each byte",
    ];
    let mut table =
        Table::of_numbers("The same bytes with more sessions: after ÷ before", &columns);
    let times = |value: Option<f64>| optional(value, |value| format!("{}×", three_digits(value)));
    for effect in &scan.effects {
        let cells = vec![
            format!("{} → {}", effect.from_parallel, effect.to_parallel),
            times(effect.mb_per_s.map(|ratio| ratio.value)),
            times(effect.io_ns_mean.map(|ratio| ratio.value)),
            times(effect.waits),
            times(effect.wait_ns_mean),
            times(effect.wait_time),
        ];
        table.row(effect.multiblock.to_string(), cells);
    }
    table
}

fn spreads(scan: &Scan) -> Table {
    let columns = ["Sessions", "Fastest size", "Slowest size", "Fastest ÷ slowest"];
    let mut table = Table::of_numbers("How far the sizes of reads differ", &columns);
    for spread in &scan.spreads {
        let cells = vec![
            format!("{} blocks", spread.fastest_multiblock),
            format!("{} blocks", spread.slowest_multiblock),
            format!("{}×", three_digits(spread.ratio.value)),
        ];
        table.row(spread.parallel.to_string(), cells);
    }
    table
}

/// The points with `parallel` sessions, by size of read.
fn of_sessions(scan: &Scan, parallel: u32) -> Vec<&ScanPoint> {
    let mut points: Vec<&ScanPoint> =
        scan.points.iter().filter(|point| point.parallel == parallel).collect();
    points.sort_by_key(|point| point.multiblock);
    points
}

fn numbers_of_sessions(scan: &Scan) -> Vec<u32> {
    let mut all: Vec<u32> = scan.points.iter().map(|point| point.parallel).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn curve(
    points: &[&ScanPoint],
    name: String,
    color: &str,
    y: fn(&ScanPoint) -> f64,
) -> Box<Scatter<f64, f64>> {
    let (xs, ys) = points.iter().map(|point| (point.multiblock as f64, y(point))).unzip();
    Scatter::new(xs, ys)
        .name(name)
        .mode(Mode::LinesMarkers)
        .hover_info(HoverInfo::All)
        .marker(Marker::new().color(color.to_owned()).size(7))
}

fn sessions(parallel: u32) -> String {
    format!("{parallel} session{}", if parallel == 1 { "" } else { "s" })
}

fn sizes_axis(scan: &Scan) -> Axis {
    let mut sizes: Vec<u64> = scan.points.iter().map(|point| point.multiblock).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (values, texts) = sizes.iter().map(|&n| (n as f64, n.to_string())).unzip();
    Axis::new().type_(AxisType::Log).title("blocks a read").tick_values(values).tick_text(texts)
}

fn throughput(scan: &Scan) -> Chart {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    for (index, parallel) in numbers_of_sessions(scan).into_iter().enumerate() {
        let points = of_sessions(scan, parallel);
        let color = COLORS[index % COLORS.len()];
        let whiskers = errors(points.iter().map(|point| {
            let rate = &point.mb_per_s;
            (rate.value, Some((rate.low, rate.high)))
        }));
        let name = sessions(parallel);
        let trace = curve(&points, name, color, |point| point.mb_per_s.value);
        traces.push(trace.error_y(whiskers).line(Line::new().color(color).width(1.8)));
    }
    let layout = Layout::new().x_axis(sizes_axis(scan)).y_axis(rate_axis("MB/s").tick_format(",d"));
    let caption = "Decimal megabytes a second by size of read; whiskers are the 95 % intervals.";
    Chart::new("Scan throughput", caption.to_owned(), traces, layout)
}

fn latencies(scan: &Scan) -> Chart {
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let (mut least, mut greatest) = (f64::INFINITY, 0_f64);
    for (index, parallel) in numbers_of_sessions(scan).into_iter().enumerate() {
        let color = COLORS[index % COLORS.len()];
        let points = of_sessions(scan, parallel);
        let waited: Vec<&ScanPoint> =
            points.iter().copied().filter(|point| point.waits.ns_mean.is_some()).collect();
        for (what, points, dash, mean_s) in [
            ("reads", &points, DashType::Solid, read_s as fn(&ScanPoint) -> f64),
            ("waits", &waited, DashType::Dot, wait_s),
        ] {
            for point in points {
                let ns = mean_s(point) * 1e9;
                (least, greatest) = (least.min(ns), greatest.max(ns));
            }
            let name = format!("{what}, {}", sessions(parallel));
            let line = Line::new().color(color).width(1.8).dash(dash);
            traces.push(curve(points, name, color, mean_s).line(line));
        }
    }
    let axis = spanning(least.max(1.0), greatest.max(least * 2.0));
    let layout = Layout::new().x_axis(sizes_axis(scan)).y_axis(axis);
    let caption = "Mean of every read (solid), and the mean wait that a database reports of the \
                   same reads (dotted).";
    Chart::new("Reads and reported waits", caption.to_owned(), traces, layout)
}

/// Mean of a read in seconds.
fn read_s(point: &ScanPoint) -> f64 {
    point.io_ns_mean.value / 1e9
}

/// Mean of a wait in seconds.
fn wait_s(point: &ScanPoint) -> f64 {
    point.waits.ns_mean.unwrap_or(0.0) / 1e9
}

/// The sessions without and with noise.
pub fn noise(noise: &Noise) -> Section {
    Section {
        id: "noise",
        title: "Noise beside the sessions",
        intro: "The same sessions in two windows: alone, then beside writers that go through an \
                area of their own one durable write after the other, as log writers do. All other \
                sections describe the first window.",
        charts: vec![shares(noise)],
        tables: vec![effect(noise), itself(noise)],
    }
}

fn effect(noise: &Noise) -> Table {
    let columns = [
        "",
        "Quiet",
        "95 % interval",
        "Noisy",
        "95 % interval",
        "Noisy ÷ quiet",
        "95 % interval",
        "",
    ];
    let mut table = Table::of_numbers("Without and with noise", &columns);
    for row in &noise.effect {
        let both = |estimate: &Estimate| {
            [format::quantity(estimate.value, &row.unit), format::interval(estimate, &row.unit)]
        };
        let ratio = [
            optional(row.ratio, |ratio| percent(ratio.value)),
            optional(row.ratio, |ratio| format::interval(&ratio, "of quiet")),
        ];
        let says = match row.outcome {
            Change::Condemned => format!("condemned: {}", row.condemned_by.join(", ")),
            other => other.words().to_owned(),
        };
        let mut cells = [both(&row.quiet), both(&row.noisy), ratio].concat();
        cells.push(says);
        table.judged_row(row.title.clone(), cells, &row.condemned_by);
    }
    table
}

fn itself(noise: &Noise) -> Table {
    let mut table = Table::of_texts("The noise itself", &["", ""]);
    table.row("writers", vec![noise.writers.to_string()]);
    table.row("write", vec![format!("{}, durable", block_size(noise.write_bytes))]);
    table.row("together", vec![noise_itself(noise)]);
    table
}

/// Every figure with noise as a share of that without.
fn shares(noise: &Noise) -> Chart {
    let rows: Vec<_> = noise.effect.iter().filter(|row| row.ratio.is_some()).collect();
    let names: Vec<String> = rows.iter().map(|row| row.title.clone()).collect();
    let ratio = |row: &&blockstone_judge::run::NoiseEffect| row.ratio.map_or(0.0, |r| r.value);
    let values: Vec<f64> = rows.iter().map(ratio).collect();
    let whiskers = errors(rows.iter().map(|row| {
        let ratio = row.ratio.as_ref();
        (ratio.map_or(0.0, |r| r.value), ratio.map(|r| (r.low, r.high)))
    }));
    let colors = rows.iter().map(|row| match row.outcome {
        Change::Slower => ORANGE,
        Change::Faster => GREEN,
        _ => super::super::charts::GREY,
    });
    let bars = Bar::new(names, values)
        .name("noisy ÷ quiet")
        .marker(Marker::new().color_array(colors.collect()))
        .error_y(whiskers)
        .hover_info(HoverInfo::All);
    let axis = rate_axis("noisy ÷ quiet").tick_format(".0%");
    // The titles of figures are long, and stand aslant below their bars.
    let margin = Margin::new().left(64).right(60).top(24).bottom(130);
    let layout = Layout::new().bar_mode(BarMode::Group).margin(margin).y_axis(axis);
    let caption = "100 % is the window without noise; whiskers are the 95 % intervals. Orange is \
                   slower, green faster, grey not told apart.";
    Chart::new("Noisy against quiet", caption.to_owned(), vec![bars], layout).wide(440)
}
