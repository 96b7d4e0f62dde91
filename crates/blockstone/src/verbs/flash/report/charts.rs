//! Charts of a simulated device: the cliff, latency, the blocks over time.

use blockstone_base::table::Measure;
use blockstone_flash::simulate::{Outcome, Percentiles, Point, heat_from_ns};
use blockstone_report::chart::{Axis, Chart, Color, Form, HeatCell, Level};
use blockstone_report::{Section, percent};

/// Columns and rows of heat maps, in total over all devices of a page: a cell takes some 100 bytes.
const LATENCY_COLUMNS: usize = 48;
const BLOCK_CELLS: (usize, usize) = (40, 30);

type Outcomes<'a> = [(&'static str, &'a Outcome)];
type Of = fn(&Point) -> Option<Percentiles>;
type Pick = fn(&Percentiles) -> Option<u64>;

pub fn over_time(outcomes: &Outcomes<'_>) -> Section {
    let mut charts = vec![cliff(outcomes), amplification(outcomes)];
    charts.extend(outcomes.iter().map(|&(name, outcome)| percentiles(name, outcome)));
    Section::new("run", "From full to steady state")
        .about(
            "The device was full when time began, unless asked otherwise; what is written \
             overwrites. A drive fill is its visible capacity.",
        )
        .with(charts)
}

/// Returns the charts that only a page can draw: all requests, and wear.
pub fn distributions(outcomes: &Outcomes<'_>) -> Section {
    let mut charts: Vec<Chart> = outcomes
        .iter()
        .map(|&(name, outcome)| requests(name, outcome, LATENCY_COLUMNS / outcomes.len()))
        .collect();
    if outcomes.len() > 1 {
        charts.push(tails(outcomes));
    }
    charts.push(erases(outcomes));
    Section::page("requests", "All requests and blocks").with(charts)
}

pub fn blocks(outcomes: &Outcomes<'_>) -> Section {
    let each = outcomes.iter().flat_map(|&(name, outcome)| {
        [pages(name, outcome), map(name, outcome, BLOCK_CELLS.0 / outcomes.len())]
    });
    Section::page("blocks", "The blocks")
        .about(
            "A page is in use, stale because it was overwritten, or erased. Garbage collection \
             looks for blocks with few pages in use: it moves these and erases the block.",
        )
        .with(each)
}

fn fills() -> Axis {
    Axis::new("drive fills written", Measure::Count)
}

/// Returns a name for the chart's anchor or title; with several devices, it includes the device.
fn named(device: &str, name: &str, joint: &str) -> String {
    if device.is_empty() { name.to_owned() } else { format!("{name}{joint}{device}") }
}

fn line(outcome: &Outcome, value: impl Fn(&Point) -> Option<f64>) -> Form {
    Form::line(outcome.points.iter().map(|point| (point.drive_fills, value(point))))
}

fn lines(
    chart: Chart,
    outcomes: &Outcomes<'_>,
    name: &str,
    value: impl Fn(&Point) -> Option<f64> + Copy,
) -> Chart {
    outcomes.iter().zip(0..).fold(chart, |chart, (&(device, outcome), color)| {
        chart.layer(named(device, name, ", "), Color::Series(color), line(outcome, value))
    })
}

fn cliff(outcomes: &Outcomes<'_>) -> Chart {
    let y = Axis::new("requests per second", Measure::Count);
    let chart = Chart::new("cliff", "The write cliff", fills(), y).wide(320).about(
        "A device is fast until its spare is written; from then on every write pays for what must \
         be moved before it.",
    );
    let mut chart = lines(chart, outcomes, "IOPS", |point| Some(point.iops));
    if let Some(&(_, outcome)) = outcomes.first() {
        let steady = |y| Level { y, name: "steady, by formula".to_owned() };
        chart.levels.extend(outcome.iops_analytic.map(steady));
        let end = outcome.points.last().map_or(0.0, |point| point.drive_fills);
        let to = outcome.cliff_drive_fills_analytic.min(end);
        chart = chart.band(0.0, to, "spare left, calculated");
    }
    chart
}

fn amplification(outcomes: &Outcomes<'_>) -> Chart {
    let y = Axis::new("write amplification", Measure::Ratio);
    let chart = Chart::new("amplification", "Write amplification", fills(), y)
        .about("Pages programmed for each page that the host writes.");
    let mut chart = lines(chart, outcomes, "write amplification", |point| point.wa);
    let wa = outcomes.first().and_then(|(_, outcome)| outcome.wa_analytic);
    chart.levels.extend(wa.map(|y| Level { y, name: "by formula".to_owned() }));
    chart
}

fn tails(outcomes: &Outcomes<'_>) -> Chart {
    let y = Axis::new("latency", Measure::Nanoseconds).log();
    let chart = Chart::new("write-tail", "Write latency, p99.9", fills(), y)
        .wide(300)
        .about("The same requests: 999 of 1,000 writes are faster.");
    let p999 = |point: &Point| Some(point.write?.latency_ns_p999? as f64);
    lines(chart, outcomes, "write p99.9", p999)
}

fn percentiles(device: &str, outcome: &Outcome) -> Chart {
    let y = Axis::new("latency", Measure::Nanoseconds).log();
    let title = named(device, "Latency over the run", ": ");
    let mut chart = Chart::new(named(device, "latency-over-time", "-"), title, fills(), y)
        .about("Percentiles of every interval, from arrival to completion.");
    let sides: [(&str, Of); 2] = [("read", |point| point.read), ("write", |point| point.write)];
    let picks: [(&str, Pick); 3] = [
        ("p50", |latency| latency.latency_ns_p50),
        ("p99", |latency| latency.latency_ns_p99),
        ("p99.9", |latency| latency.latency_ns_p999),
    ];
    for (side, (name, of)) in sides.into_iter().enumerate() {
        for (index, (quantile, pick)) in picks.into_iter().enumerate() {
            let color = Color::Series((side * picks.len() + index) as u8);
            let form = line(outcome, |point| Some(pick(&of(point)?)? as f64));
            let name = named(device, &format!("{name} {quantile}"), ", ");
            chart = chart.layer(name, color, form);
        }
    }
    chart
}

fn requests(device: &str, outcome: &Outcome, columns: usize) -> Chart {
    const STEP: u16 = 2;
    let y = Axis::new("latency", Measure::Nanoseconds).log();
    let title = named(device, "Latency of every request", ": ");
    let chart = Chart::new(named(device, "requests", "-"), title, fills(), y).wide(340).about(
        "Every request, by when it came and how long it took; the stronger the colour, the more \
         of them, on a logarithmic scale from one in a million to all.",
    );
    let mut cells = Vec::new();
    let mut from = 0.0;
    for points in outcome.points.chunks(outcome.points.len().div_ceil(columns.max(1)).max(1)) {
        let Some(last) = points.last() else { continue };
        let all: u64 = points.iter().flat_map(|point| &point.heat).map(|&(_, count)| count).sum();
        let mut rows: std::collections::BTreeMap<u16, u64> = std::collections::BTreeMap::new();
        for &(bucket, count) in points.iter().flat_map(|point| &point.heat) {
            *rows.entry(bucket / STEP * STEP).or_default() += count;
        }
        for (bucket, count) in rows {
            let part = count as f64 / all.max(1) as f64;
            cells.push(HeatCell {
                x: (from, last.drive_fills),
                y: (heat_from_ns(bucket), heat_from_ns(bucket + STEP)),
                heat: (part.log10() / 6.0 + 1.0).clamp(0.0, 1.0),
                text: percent(part),
            });
        }
        from = last.drive_fills;
    }
    chart.layer("requests", Color::Grey, Form::Heat(cells))
}

fn erases(outcomes: &Outcomes<'_>) -> Chart {
    let x = Axis::new("erases", Measure::Count);
    let chart =
        Chart::new("erases", "Erases of the blocks", x, Axis::new("blocks", Measure::Count))
            .about("Distribution of wear.");
    outcomes.iter().zip(0..).fold(chart, |chart, (&(device, outcome), color)| {
        let name = if device.is_empty() { "blocks" } else { device };
        let points = outcome.erases.iter();
        let points = points.map(|&(at, blocks)| (f64::from(at), Some(blocks as f64)).into());
        let form = Form::Bars { points: points.collect(), stacked: false };
        chart.layer(name, Color::Series(color), form)
    })
}

fn pages(device: &str, outcome: &Outcome) -> Chart {
    let title = named(device, "Pages of the device", ": ");
    let y = Axis::new("part of the pages", Measure::Share);
    let chart = Chart::new(named(device, "pages", "-"), title, fills(), y)
        .about("Stale pages are what collection can win back.");
    let part = |count: fn(&blockstone_flash::ftl::BlockMap) -> &Vec<u32>| {
        let points = outcome.frames.iter().map(|frame| {
            let pages: u64 = count(&frame.map).iter().copied().map(u64::from).sum();
            let blocks = frame.map.valid.len() as u64;
            let all = (blocks * u64::from(outcome.config.pages_per_block)).max(1);
            (drive_fills(frame), Some(pages as f64 / all as f64))
        });
        Form::area(points)
    };
    let chart = chart.layer("in use", Color::Series(0), part(|map| &map.valid));
    chart.layer("stale", Color::Series(1), part(|map| &map.stale))
}

fn drive_fills(frame: &blockstone_flash::simulate::Frame) -> f64 {
    frame.drive_fills_millionth as f64 / 1e6
}

/// Heat map with a row for each of some blocks spread over the device: how much of each is in use.
fn map(device: &str, outcome: &Outcome, columns: usize) -> Chart {
    let title = named(device, "Blocks over time", ": ");
    let y = Axis::new("block", Measure::Count);
    let chart = Chart::new(named(device, "block-map", "-"), title, fills(), y).wide(380).about(
        "A row is a block, a column a moment: the stronger the colour, the more of its pages are \
         in use. A block fades while the host overwrites its pages elsewhere, is erased, and \
         fills again.",
    );
    let pages = f64::from(outcome.config.pages_per_block.max(1));
    let step = outcome.frames.len().div_ceil(columns.max(1)).max(1);
    let frames: Vec<_> = outcome.frames.iter().step_by(step).collect();
    let mut cells = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let from = drive_fills(frame);
        let to = match frames.get(index + 1) {
            Some(next) => drive_fills(next),
            None => outcome.points.last().map_or(from, |point| point.drive_fills),
        };
        let blocks = frame.map.valid.len();
        let every = blocks.div_ceil(BLOCK_CELLS.1).max(1);
        for (row, block) in (0..blocks).step_by(every).enumerate() {
            let used = f64::from(frame.map.valid[block]) / pages;
            let stale = f64::from(frame.map.stale[block]) / pages;
            cells.push(HeatCell {
                x: (from, to),
                y: (row as f64, row as f64 + 1.0),
                heat: used.clamp(0.0, 1.0),
                text: format!("{} in use, {} stale", percent(used), percent(stale)),
            });
        }
    }
    cells.retain(|cell| cell.x.1 > cell.x.0);
    chart.layer("in use", Color::Grey, Form::Heat(cells))
}
