//! The run in time: raw counters of every tick, under bands that name the phases.

mod database;

use blockstone_record::manifest::{Group, Manifest};
use blockstone_record::{Recording, Series};
use plotly::common::{Anchor, HoverInfo, Line, Mode};
use plotly::layout::{
    Annotation, Axis, HoverMode, Layout, Margin, RangeMode, Shape, ShapeLayer, ShapeLine, ShapeType,
};
use plotly::{Scatter, Trace};

use super::charts::{BLUE, Chart, GREEN, GREY, ORANGE, PURPLE, RED};
use crate::{ReportError, select};

pub use database::charts as of_a_database;

/// Points a trace at most; beyond, neighbouring ticks are taken together, which counters allow
/// without loss.
const POINTS: usize = 1500;

/// A value at an instant; none breaks the line.
type Track = Vec<(u64, Option<f64>)>;

/// One of the stacked diagrams.
struct Lane {
    title: &'static str,
    tracks: Vec<(String, &'static str, Track)>,
}

/// The chart, or none when nothing was recorded yet.
///
/// # Errors
/// When a recorded series cannot be read.
pub fn chart(recording: &Recording) -> Result<Option<Chart>, ReportError> {
    let caption = "Bands are the phases. A gap means that nothing was recorded.".to_owned();
    Ok(stacked("Counters over the run", caption, &recording.manifest, lanes(recording)?))
}

/// Lanes above each other on one time axis; none when all are empty.
fn stacked(
    title: &str,
    caption: String,
    manifest: &Manifest,
    mut lanes: Vec<Lane>,
) -> Option<Chart> {
    for lane in &mut lanes {
        lane.tracks.retain(|(_, _, track)| track.iter().any(|(_, value)| value.is_some()));
    }
    lanes.retain(|lane| !lane.tracks.is_empty());
    if lanes.is_empty() {
        return None;
    }
    let count = lanes.len();
    let mut traces: Vec<Box<dyn Trace>> = Vec::new();
    let mut layout = Layout::new()
        .hover_mode(HoverMode::XUnified)
        .x_axis(time_axis(manifest, count))
        // Room for the names of the phases.
        .margin(Margin::new().left(64).right(40).top(84).bottom(48))
        .shapes(bands(manifest))
        .annotations(band_names(manifest));
    for (index, lane) in lanes.into_iter().enumerate() {
        layout = placed(layout, index, axis(lane.title, index, count));
        for (name, color, track) in lane.tracks {
            traces.push(trace(&name, color, &track, index));
        }
    }
    let height = 130 * count as u32 + 120;
    Some(Chart::new(title, caption, traces, layout).wide(height))
}

fn lanes(recording: &Recording) -> Result<Vec<Lane>, ReportError> {
    let optional = |probe: &str| series(recording, probe);
    let source = Source { manifest: &recording.manifest };
    let mut lanes = Vec::new();
    if let Some(load) = optional("load")? {
        lanes.extend(load_lanes(&source, &load));
    }
    let (process, host) = (optional("process")?, optional("host")?);
    lanes.extend(processor_lanes(&source, process.as_ref(), host.as_ref()));
    if let Some(block) = optional("block")? {
        lanes.push(device_lane(&source, &block));
    }
    Ok(lanes)
}

/// The series of `probe`; none when the recording does not have it.
fn series(recording: &Recording, probe: &str) -> Result<Option<Series>, ReportError> {
    if !recording.manifest.probes.iter().any(|info| info.probe == probe) {
        return Ok(None);
    }
    let recording_dir = || recording.dir.display().to_string();
    let series = recording.series(probe);
    series.map(Some).map_err(|source| ReportError::Series { recording: recording_dir(), source })
}

fn load_lanes(source: &Source, load: &Series) -> [Lane; 2] {
    let ops = source.rate(load, "", &["completed_ops"], 1.0);
    let bytes = source.rate(load, "", &["completed_bytes"], 1e-6);
    let background = source.rate(load, "background", &["completed_bytes"], 1e-6);
    [
        Lane { title: "IOPS", tracks: vec![("IOPS".to_owned(), BLUE, ops)] },
        Lane {
            title: "MB/s",
            tracks: vec![
                ("MB/s".to_owned(), GREEN, bytes),
                ("MB/s beside it".to_owned(), GREY, background),
            ],
        },
    ]
}

/// Processor time as percent of all processors, and how many threads waited for one.
fn processor_lanes(source: &Source, process: Option<&Series>, host: Option<&Series>) -> Vec<Lane> {
    const OWN: [&str; 2] = ["cpu_user_ns", "cpu_system_ns"];
    const BUSY: [&str; 5] =
        ["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns", "cpu_irq_ns", "cpu_softirq_ns"];
    let percent = 100.0 / 1e9 / f64::from(source.manifest.host.cpus.max(1));
    let own = process.map(|s| source.rate(s, "", &OWN, percent)).unwrap_or_default();
    let busy = host.map(|s| source.rate(s, "", &BUSY, percent)).unwrap_or_default();
    let steal = host.map(|s| source.rate(s, "", &["cpu_steal_ns"], percent)).unwrap_or_default();
    // Interrupts run on behalf of the load too, so only what is neither counts as foreign.
    let user_and_system = host
        .map(|s| source.rate(s, "", &["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns"], percent))
        .unwrap_or_default();
    let foreign = less(&user_and_system, &own);
    let waiting = process.map(|s| source.rate(s, "", &["run_queue_ns"], 1e-9)).unwrap_or_default();
    vec![
        Lane {
            title: "CPU %",
            tracks: vec![
                ("all busy %".to_owned(), GREY, busy),
                ("Blockstone %".to_owned(), BLUE, own),
                ("foreign %".to_owned(), RED, foreign),
                ("stolen %".to_owned(), PURPLE, steal),
            ],
        },
        Lane {
            title: "waiting",
            tracks: vec![("own threads waiting for a CPU".to_owned(), ORANGE, waiting)],
        },
    ]
}

/// Share of time each device of the chain had a request, as percent.
fn device_lane(source: &Source, block: &Series) -> Lane {
    const COLORS: [&str; 4] = [GREEN, BLUE, PURPLE, ORANGE];
    let tracks = source
        .manifest
        .target
        .devices
        .iter()
        .enumerate()
        .map(|(index, device)| {
            let busy = source.rate(block, &device.name, &["busy_ns"], 100.0 / 1e9);
            (format!("{} busy %", device.name), COLORS[index % COLORS.len()], busy)
        })
        .collect();
    Lane { title: "device %", tracks }
}

/// Reads rates out of series, phase by phase.
struct Source<'a> {
    manifest: &'a Manifest,
}

impl Source<'_> {
    /// The sum of counters as a rate a second times `factor`, with a gap after each phase.
    fn rate(&self, series: &Series, object: &str, columns: &[&str], factor: f64) -> Track {
        let mut track: Vec<Vec<(u64, u64)>> = Vec::new();
        for (index, phase) in self.manifest.phases.iter().enumerate() {
            // The null engine asks no device; its rates would dwarf all others.
            if phase.group == Group::Overhead {
                continue;
            }
            let read = |column: &&str| {
                series.track(index as i32, object, phase.start_ns, phase.end_ns, column)
            };
            let parts: Vec<Vec<(u64, u64)>> = columns.iter().map(read).collect();
            track.push(sum(&parts));
        }
        let ticks: usize = track.iter().map(Vec::len).sum();
        let step = ticks.div_ceil(POINTS).max(1);
        let mut out = Track::new();
        for ticks in track.iter().filter(|ticks| ticks.len() > 1) {
            out.push((ticks[0].0, None));
            let last = ticks.len() - 1;
            let mut kept: Vec<(u64, u64)> =
                (0..last).step_by(step).chain([last]).map(|i| ticks[i]).collect();
            apart(&mut kept);
            out.extend(kept.windows(2).filter(|w| w[1].0 > w[0].0).map(|w| {
                let moved = w[1].1.checked_sub(w[0].1);
                let seconds = (w[1].0 - w[0].0) as f64 / 1e9;
                (w[1].0, moved.map(|n| n as f64 / seconds * factor))
            }));
        }
        out
    }
}

/// Leaves out ticks that lie next to another, as an edge of a window does when it falls beside a
/// tick: a rate over so short a time shows the moment of reading, not the counter.
fn apart(ticks: &mut Vec<(u64, u64)>) {
    const CLOSE: u64 = 4;
    let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { return };
    let usual_ns = (last.0 - first.0) / (ticks.len() as u64 - 1).max(1);
    let mut before: Option<u64> = None;
    ticks.retain(|(t_ns, _)| {
        let close = before.is_some_and(|before| t_ns - before < usual_ns / CLOSE);
        before = if close { before } else { Some(*t_ns) };
        !close
    });
}

/// Counters added up where all of them have a value at the same instants; otherwise nothing, for a
/// part of the sum is not the sum.
fn sum(parts: &[Vec<(u64, u64)>]) -> Vec<(u64, u64)> {
    let Some((first, rest)) = parts.split_first() else { return Vec::new() };
    if rest.iter().any(|part| part.len() != first.len()) {
        return Vec::new();
    }
    first
        .iter()
        .enumerate()
        .map(|(i, &(t, value))| (t, value + rest.iter().map(|part| part[i].1).sum::<u64>()))
        .collect()
}

/// The difference of two tracks at the instants they share, never below zero.
fn less(of: &Track, by: &Track) -> Track {
    if of.len() != by.len() {
        return Track::new();
    }
    of.iter().zip(by).map(|(a, b)| (a.0, a.1.zip(b.1).map(|(a, b)| (a - b).max(0.0)))).collect()
}

fn trace(name: &str, color: &'static str, track: &Track, lane: usize) -> Box<dyn Trace> {
    let seconds = track.iter().map(|(t, _)| rounded(*t as f64 / 1e9, 3)).collect();
    let values = track.iter().map(|(_, v)| v.map(|v| rounded(v, 2))).collect();
    let y_axis = if lane == 0 { "y".to_owned() } else { format!("y{}", lane + 1) };
    Scatter::new(seconds, values)
        .name(name)
        .mode(Mode::Lines)
        .line(Line::new().color(color).width(1.2))
        .hover_info(HoverInfo::All)
        .show_legend(true)
        .y_axis(y_axis)
}

/// Fewer digits, a smaller page.
fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

fn time_axis(manifest: &Manifest, lanes: usize) -> Axis {
    let end = select::duration_ns(manifest) as f64 / 1e9;
    let lowest = if lanes == 1 { "y".to_owned() } else { format!("y{lanes}") };
    Axis::new().title("seconds since the recording began").range(vec![0.0, end]).anchor(&lowest)
}

fn axis(title: &'static str, index: usize, count: usize) -> Axis {
    let height = 1.0 / count as f64;
    let top = 1.0 - index as f64 * height;
    Axis::new()
        .title(title)
        .domain(&[top - height * 0.86, top])
        .range_mode(RangeMode::ToZero)
        .tick_format("~s")
        .n_ticks(4)
}

fn placed(layout: Layout, index: usize, axis: Axis) -> Layout {
    match index {
        0 => layout.y_axis(axis),
        1 => layout.y_axis2(axis),
        2 => layout.y_axis3(axis),
        3 => layout.y_axis4(axis),
        _ => layout.y_axis5(axis),
    }
}

/// Neighbouring phases of one group as (group, start, end) in seconds.
fn grouped(manifest: &Manifest) -> Vec<(Group, f64, f64)> {
    let mut bands: Vec<(Group, f64, f64)> = Vec::new();
    for phase in &manifest.phases {
        let (start, end) = (phase.start_ns as f64 / 1e9, phase.end_ns as f64 / 1e9);
        match bands.last_mut() {
            Some(band) if band.0 == phase.group => band.2 = end,
            _ => bands.push((phase.group, start, end)),
        }
    }
    bands
}

fn bands(manifest: &Manifest) -> Vec<Shape> {
    grouped(manifest)
        .iter()
        .enumerate()
        .filter(|(index, _)| index % 2 == 0)
        .map(|(_, (_, start, end))| {
            Shape::new()
                .shape_type(ShapeType::Rect)
                .layer(ShapeLayer::Below)
                .x_ref("x")
                .x0(*start)
                .x1(*end)
                .y_ref("paper")
                .y0(0.0)
                .y1(1.0)
                .fill_color("rgba(139,146,156,0.13)")
                .line(ShapeLine::new().width(0.0))
        })
        .collect()
}

/// Names of the bands, slanted; a name that would run into the one before is left out.
fn band_names(manifest: &Manifest) -> Vec<Annotation> {
    let room = select::duration_ns(manifest) as f64 / 1e9 * 0.022;
    let mut last = f64::NEG_INFINITY;
    let mut names = Vec::new();
    for (group, start, end) in grouped(manifest) {
        let middle = f64::midpoint(start, end);
        if middle - last < room {
            continue;
        }
        last = middle;
        names.push(
            Annotation::new()
                .x_ref("x")
                .x(middle)
                .x_anchor(Anchor::Left)
                .y_ref("paper")
                .y(1.0)
                .y_anchor(Anchor::Bottom)
                .text_angle(-45.0)
                .show_arrow(false)
                .text(name(group)),
        );
    }
    names
}

fn name(group: Group) -> &'static str {
    match group {
        Group::Overhead => "own cost",
        Group::Layout => "layout",
        Group::Reference => "reference",
        Group::RandomRead => "random reads",
        Group::LargeRead => "large reads",
        Group::RandomWrite => "random writes",
        Group::Commit => "commits",
        Group::CacheMap => "cache map",
        Group::Matrix => "matrix",
        Group::OpenLoop => "given rate",
        Group::CachedRead => "cached reads",
        Group::Confirm => "confirm",
        Group::Load => "load",
        Group::Workload => "workload",
        Group::Scan => "scans",
        Group::Watch => "watch",
    }
}
