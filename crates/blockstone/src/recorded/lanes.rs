//! Counters over time: charts below each other on one time axis, under bands that name the phases.

use blockstone_base::table::Measure;
use blockstone_record::manifest::{Group, Manifest};
use blockstone_report::chart::{Axis, Band, Chart, Color, Form, Point};
use blockstone_view::{History, Interval, Known};

/// Points of a line at most: what a page has room for.
const POINTS: u64 = 300;
/// Height of one chart in CSS pixels.
const HEIGHT: u16 = 130;
/// A slice this much shorter than the usual one is left out: it lies between a tick and the edge of
/// a window beside it, and a rate over so short a time shows the moment of reading.
const SHORT: f64 = 0.25;

/// A recording's time in slices, none of which spans two phases.
pub struct Lanes<'a> {
    manifest: &'a Manifest,
    phases: Vec<Vec<Interval<'a>>>,
}

pub struct Lane {
    pub name: String,
    pub color: Color,
    pub points: Vec<Point>,
}

impl<'a> Lanes<'a> {
    /// Creates the lanes of all phases that use a device: rates of the others would dwarf theirs.
    pub fn new(history: &'a History, manifest: &'a Manifest) -> Self {
        let slice_ns = (super::identity::duration_ns(manifest) / POINTS).max(1);
        let measured = manifest.phases.iter().filter(|phase| phase.group != Group::Overhead);
        let sliced = measured.map(|phase| {
            let length_ns = phase.end_ns.saturating_sub(phase.start_ns);
            let count = length_ns.div_ceil(slice_ns).max(2) as usize;
            let mut slices = history.interval(phase.start_ns, phase.end_ns).slices(count);
            let usual_ns = length_ns as f64 / slices.len().max(1) as f64;
            slices.retain(|slice| slice.ns() >= usual_ns * SHORT);
            slices
        });
        let phases = sliced.filter(|slices| !slices.is_empty()).collect();
        Self { manifest, phases }
    }

    /// A value at the end of each slice, with a gap before each phase.
    pub fn line(&self, value: impl Fn(&Interval<'a>) -> Known) -> Vec<Point> {
        let mut points = Vec::new();
        for slices in &self.phases {
            points.push(Point { x: slices[0].from_ns as f64, ..Point::default() });
            points.extend(slices.iter().map(|slice| {
                let y = value(slice).ok().filter(|y| y.is_finite()).map(rounded);
                Point { x: slice.to_ns as f64, y, ..Point::default() }
            }));
        }
        points
    }

    /// A counter of one object, a second.
    pub fn rate(&self, probe: &str, object: &str, column: &str) -> Vec<Point> {
        self.line(|slice| slice.per_s(probe, object, column))
    }

    /// A counter of each of these objects, a second, without those that never moved.
    pub fn each(&self, probe: &str, objects: &[String], column: &str) -> Vec<Lane> {
        let lanes = objects.iter().zip(0..).map(|(object, index)| Lane {
            name: object.clone(),
            color: Color::Series(index),
            points: self.rate(probe, object, column),
        });
        lanes.filter(Lane::moved).collect()
    }

    /// Lines on the time axis.
    pub fn chart(
        &self,
        name: &'static str,
        title: &'static str,
        measure: Measure,
        lanes: Vec<Lane>,
    ) -> Chart {
        let mut chart = Chart::new(name, title, Axis::time(), Axis::new("", measure)).wide(HEIGHT);
        chart.bands = bands(self.manifest);
        let layer = |chart: Chart, Lane { name, color, points }| {
            chart.layer(name, color, Form::Line { points, dashed: false, marks: false })
        };
        lanes.into_iter().fold(chart, layer)
    }
}

impl Lane {
    pub fn new(name: &str, color: Color, points: Vec<Point>) -> Self {
        Self { name: name.to_owned(), color, points }
    }

    pub fn moved(&self) -> bool {
        self.points.iter().any(|point| point.y.is_some_and(|y| y > 0.0))
    }
}

/// Four digits: a smaller page.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let scale = 10_f64.powf(3.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

/// Processor time as shares of all processors, and threads that waited for one.
pub fn processors(lanes: &Lanes<'_>) -> [Chart; 2] {
    let cpus = f64::from(lanes.manifest.host.cpus.max(1));
    let of = |probe: &'static str, columns: &'static [&'static str]| {
        move |slice: &Interval<'_>| -> Known {
            let each = columns.iter().map(|column| slice.share(probe, "", column));
            Ok(each.sum::<Known>()? / cpus)
        }
    };
    let own = of("process", &["cpu_user_ns", "cpu_system_ns"]);
    let busy = of(
        "host",
        &["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns", "cpu_irq_ns", "cpu_softirq_ns"],
    );
    // Interrupts run on behalf of the load too, so only what is neither counts as other processes.
    let programs = of("host", &["cpu_user_ns", "cpu_nice_ns", "cpu_system_ns"]);
    let steal = of("host", &["cpu_steal_ns"]);
    let others = |slice: &Interval<'_>| Ok((programs(slice)? - own(slice)?).max(0.0));
    let shares = vec![
        Lane::new("all", Color::Grey, lanes.line(busy)),
        Lane::new("Blockstone", Color::Cpu, lanes.line(own)),
        Lane::new("other processes", Color::Series(1), lanes.line(others)),
        Lane::new("stolen by the hypervisor", Color::Bad, lanes.line(steal)),
    ];
    let waiting = lanes.line(|slice| slice.share("process", "", "run_queue_ns"));
    let waiting = vec![Lane::new("threads", Color::RunQueue, waiting)];
    let busy = lanes.chart("processors", "Processors busy", Measure::Share, shares);
    let queue = "Threads of Blockstone waiting for a processor";
    let waiting = lanes.chart("run-queue", queue, Measure::Count, waiting);
    let above = "Interrupts are included in the total, but not in Blockstone or other processes.";
    [busy.about(above), waiting]
}

/// Share of the time in which each device of the chain had a request.
pub fn devices(lanes: &Lanes<'_>) -> Chart {
    let devices = lanes.manifest.target.devices.iter().zip(0..);
    let busy = devices.map(|(device, index)| {
        let busy = lanes.line(|slice| slice.share("block", &device.name, "busy_ns"));
        Lane::new(&device.name, Color::Series(index), busy)
    });
    let title = "Time in which a device had requests";
    lanes.chart("devices-busy", title, Measure::Share, busy.collect())
}

/// Neighbouring phases of one group, or windows of a workload with one label, as one band.
fn bands(manifest: &Manifest) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for phase in &manifest.phases {
        let (from, to) = (phase.start_ns as f64, phase.end_ns as f64);
        let name = match phase.group {
            Group::Workload if !phase.label.is_empty() => &*phase.label,
            other => group(other),
        };
        match bands.last_mut() {
            Some(band) if band.name == name => band.to = to,
            _ => bands.push(Band { from, to, name: name.to_owned() }),
        }
    }
    bands
}

fn group(group: Group) -> &'static str {
    match group {
        Group::Overhead => "overhead",
        Group::Layout => "layout",
        Group::Precondition => "preconditioning",
        Group::Reference => "reference",
        Group::RandomRead => "random reads",
        Group::LargeRead => "large reads",
        Group::RandomWrite => "random writes",
        Group::Commit => "commits",
        Group::FlushSlope => "flushes",
        Group::BufferedWrite => "buffered writes",
        Group::CachedVisits => "cached visits",
        Group::CacheMap => "cache map",
        Group::Matrix => "matrix",
        Group::Mix => "mixes",
        Group::Store => "store",
        Group::OpenLoop => "fixed rate",
        Group::CachedRead => "cached reads",
        Group::Confirm => "confirm",
        Group::Load => "load",
        Group::Workload => "workload",
        Group::Scan => "scans",
        Group::Noise => "noise",
        Group::Quiet => "quiet",
        Group::Watch => "watch",
    }
}
