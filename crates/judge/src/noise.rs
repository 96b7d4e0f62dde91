//! Noise alone: what the writers achieved, and what other users of the storage, and a database that
//! was watched, achieved without the noise and during it.

use blockstone_base::rule::{Listed, judge_places, listed};
use blockstone_base::stats::Estimate;
use blockstone_base::verdict::Verdict;
use blockstone_figures::compare::{Better, compare};
use blockstone_figures::{History, Interval, rate};
use blockstone_record::manifest::{Figure, Group, Manifest, Phase};
use blockstone_record::{RecordError, Recording};

use crate::derive;
use crate::findings::Point;
use crate::rules::{Case, mark, registry};
use crate::run::{Noise, NoiseEffect, NoiseLatency, noise_mode};
use crate::summary::names;
use crate::window;

/// Names of the figures of noise.
pub const NAMES: [&str; 4] = names(&ABOUT);

/// Description of each of them.
pub const ABOUT: [(&str, &str); 4] = [
    ("write_mbps", "Decimal megabytes a second of all writers."),
    ("write_iops", "Writes a second of all writers."),
    ("write_latency_ns_mean", "Mean latency of a write, in nanoseconds."),
    ("write_latency_ns_p99", "99th percentile of the latency of a write, in nanoseconds."),
];

#[derive(Clone, Debug, Default)]
pub struct NoiseFindings {
    /// Achieved by the writers over all phases with noise; `None` if none of these reached a
    /// window.
    pub noise: Option<Noise>,
    /// The writers as a point, with the evidence of other layers.
    pub point: Option<Point>,
    /// Number of phases without noise and with it.
    pub phases: (usize, usize),
    pub summary: Vec<(String, Figure)>,
    pub verdicts: Vec<Verdict>,
}

/// Returns the rules for noise, for docs/verdicts.md.
pub fn rules() -> Vec<Listed> {
    let all = listed(registry::NOISE).chain(listed(registry::MERGED_CALIBRATION));
    all.map(|rule| Listed { verb: "noise", ..rule }).collect()
}

/// A figure of others, as probes count it.
struct Quantity {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    of: Of,
}

enum Of {
    /// Growth per second.
    Rate(Counter),
    /// Growth of one counter per unit of another.
    Each(Counter, Counter),
}

#[derive(Clone, Copy)]
struct Counter {
    probe: &'static str,
    object: Object,
    column: &'static str,
}

#[derive(Clone, Copy)]
enum Object {
    /// The device at the top of the chain under the noise.
    Device,
    Named(&'static str),
    All,
}

const fn device(column: &'static str) -> Counter {
    Counter { probe: "block", object: Object::Device, column }
}

const fn database(column: &'static str) -> Counter {
    Counter { probe: "instance", object: Object::Named(""), column }
}

const fn of(probe: &'static str, object: Object, column: &'static str) -> Counter {
    Counter { probe, object, column }
}

const fn event(object: &'static str, column: &'static str) -> Counter {
    of("event", Object::Named(object), column)
}

const READ: &str = "session/db file sequential read";
const SYNC: &str = "session/log file sync";

/// Quantities that are compared, where they were measured. Writes to the device are not among them:
/// most of them are the noise.
const QUANTITIES: [Quantity; 11] = [
    Quantity {
        name: "device_reads_per_s",
        title: "Device reads/s",
        unit: "IOPS",
        of: Of::Rate(device("read_ios")),
    },
    Quantity {
        name: "device_read_latency_ns_mean",
        title: "Device read",
        unit: "ns",
        of: Of::Each(device("read_ns"), device("read_ios")),
    },
    Quantity {
        name: "operations_per_s",
        title: "Operations/s",
        unit: "operations/s",
        of: Of::Rate(of("operation", Object::All, "completed_ops")),
    },
    Quantity {
        name: "operation_latency_ns_mean",
        title: "Operation",
        unit: "ns",
        of: Of::Each(
            of("operation", Object::All, "latency_ns_sum"),
            of("operation", Object::All, "completed_ops"),
        ),
    },
    Quantity {
        name: "physical_reads_per_s",
        title: "Blocks read/s",
        unit: "blocks/s",
        of: Of::Rate(database("physical_reads")),
    },
    Quantity {
        name: "read_latency_ns_mean",
        title: "Single-block read",
        unit: "ns",
        of: Of::Each(event(READ, "time_ns"), event(READ, "waits")),
    },
    Quantity {
        name: "read_ns_per_block",
        title: "Read time per block",
        unit: "ns",
        of: Of::Each(of("database", Object::Named(""), "read_ns"), database("physical_reads")),
    },
    Quantity {
        name: "commits_per_s",
        title: "Commits/s",
        unit: "commits/s",
        of: Of::Rate(database("commits")),
    },
    Quantity {
        name: "commit_wait_ns_mean",
        title: "Wait for a commit",
        unit: "ns",
        of: Of::Each(event(SYNC, "time_ns"), event(SYNC, "waits")),
    },
    Quantity {
        name: "commit_latency_ns_mean",
        title: "Commit",
        unit: "ns",
        of: Of::Each(of("sql", Object::Named(""), "commit_ns"), database("commits")),
    },
    Quantity {
        name: "physical_writes_per_s",
        title: "Blocks written/s",
        unit: "blocks/s",
        of: Of::Rate(database("physical_writes")),
    },
];

/// Derives the findings of a recording of noise. Missing data are not an error.
pub fn find(recording: &Recording) -> Result<NoiseFindings, RecordError> {
    let manifest = &recording.manifest;
    let history = History::read(recording)?;
    let windows = window::read(recording)?;
    let mut points = derive::points(manifest, &windows);
    points.truncate(1);
    let mut summary: Vec<(String, Figure)> = points.iter().flat_map(figures).collect();
    let case = Case {
        manifest,
        windows: &windows,
        points: &points,
        summary: &summary,
        drift_ratio: None,
        flush_slope: None,
        precondition: None,
    };
    let rules = match manifest.merged {
        Some(_) => registry::MERGED_CALIBRATION,
        None => registry::NOISE,
    };
    let judged = judge_places(rules, &case);
    let verdicts = mark(judged, &mut summary, &mut points);
    let point = points.pop();
    let held = |(_, phase): &(usize, &Phase)| phase.window_end_ns > phase.window_start_ns;
    let phases = || manifest.phases.iter().enumerate().filter(held);
    let interval = |(index, phase): (usize, &'_ Phase)| history.window(index, phase);
    let quiet: Vec<Interval<'_>> =
        phases().filter(|(_, phase)| phase.group == Group::Quiet).map(interval).collect();
    let noisy: Vec<Interval<'_>> =
        phases().filter(|(_, phase)| phase.group == Group::Noise).map(interval).collect();
    let effect = QUANTITIES.iter().filter_map(|it| it.effect(manifest, &quiet, &noisy)).collect();
    Ok(NoiseFindings {
        phases: (quiet.len(), noisy.len()),
        summary,
        verdicts,
        noise: point.as_ref().map(|point| noise(point, effect)),
        point,
    })
}

fn noise(point: &Point, effect: Vec<NoiseEffect>) -> Noise {
    Noise {
        writers: point.load.workers,
        mode: noise_mode(&point.load),
        write_bytes: point.load.block_bytes,
        mb_per_s: Some(point.mb_per_s),
        iops: Some(point.iops),
        device_mb_per_s: None,
        latency: NoiseLatency::of(&point.histogram),
        window_ns: point.iops.duration_ns,
        effect,
    }
}

fn figures(point: &Point) -> [(String, Figure); 4] {
    let Point { mb_per_s, iops, latency, label, .. } = point;
    let figures = [
        ("Noise written", "MB/s", *mb_per_s),
        ("Writes of the noise", "IOPS", *iops),
        ("Mean write of the noise", "ns", latency.ns_mean),
        ("p99 of the noise's writes", "ns", latency.ns_p99),
    ];
    let mut names = NAMES.into_iter();
    figures.map(|(title, unit, estimate)| {
        let figure = Figure {
            title: title.to_owned(),
            unit: unit.to_owned(),
            estimate,
            phase: label.clone(),
            condemned_by: Vec::new(),
        };
        (names.next().unwrap_or_default().to_owned(), figure)
    })
}

impl Quantity {
    /// Returns the effect of noise on this quantity. `None` if it was not measured without and with
    /// noise, or nothing happened.
    fn effect(
        &self,
        manifest: &Manifest,
        quiet: &[Interval<'_>],
        noisy: &[Interval<'_>],
    ) -> Option<NoiseEffect> {
        let top = manifest.target.devices.first().map_or("", |device| &device.name);
        let of = |set: &[Interval<'_>]| -> Vec<Estimate> {
            let found = set.iter().filter_map(|window| self.of.estimate(window, top));
            found.filter(|estimate| estimate.value.is_finite()).collect()
        };
        let (without, with) = (of(quiet), of(noisy));
        let better = if self.unit == "ns" { Better::Less } else { Better::More };
        let compared = compare(&without, &with, better);
        let (quiet, noisy) = (compared.a?, compared.b?);
        (quiet.value > 0.0 || noisy.value > 0.0).then(|| NoiseEffect {
            figure: self.name.to_owned(),
            title: self.title.to_owned(),
            unit: self.unit.to_owned(),
            quiet,
            noisy,
            ratio: compared.ratio,
            outcome: compared.outcome,
            condemned_by: Vec::new(),
        })
    }
}

impl Of {
    fn estimate(&self, window: &Interval<'_>, device: &str) -> Option<Estimate> {
        match self {
            Self::Rate(counter) => rate(&counter.track(window, device)?).ok(),
            Self::Each(of, by) => {
                window.slope(&of.track(window, device)?, &by.track(window, device)?).ok()
            }
        }
    }
}

impl Counter {
    fn track(&self, window: &Interval<'_>, device: &str) -> Option<Vec<(u64, u64)>> {
        let Self { probe, object, column } = *self;
        match object {
            Object::Device => window.track(probe, device, column),
            Object::Named(name) => window.track(probe, name, column),
            Object::All => window.track_of_all(probe, column),
        }
        .ok()
    }
}
