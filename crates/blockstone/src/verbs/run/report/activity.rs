//! The run over time: what a DBA looks at first, and everything that was counted.

use std::collections::BTreeMap;

use anyhow::Result;
use blockstone_base::LatencyHistogram;
use blockstone_base::database::{BLOCKED, BLOCKED_IN, DIRECT_READ, PEER, RUNNING, wait_class};
use blockstone_base::table::Measure;
use blockstone_judge::RunFindings;
use blockstone_judge::run::{Blocked, Outside, of_server};
use blockstone_record::Recording;
use blockstone_record::manifest::Group;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_report::{Detail, Section};
use blockstone_view::{History, Interval, Known};

use crate::recorded::lanes::{self, Lane, Lanes};

/// Height of the first chart in CSS pixels.
const HEIGHT: u16 = 260;
/// Probe that counts the sessions' time, and the parts of that time that are not waits.
const EVENT: &str = "event";
const CPU: &str = "session/CPU";
const RUN_QUEUE: &str = "session/run queue";
const ROW_LOCK: &str = "session/Lock/row lock";

/// Wait classes in the order in which they are stacked, as in Oracle's charts.
const CLASSES: [(&str, Color); 12] = [
    ("CPU", Color::Cpu),
    ("Run queue", Color::RunQueue),
    ("System I/O", Color::SystemIo),
    ("User I/O", Color::UserIo),
    ("Commit", Color::Commit),
    ("Concurrency", Color::Concurrency),
    ("Configuration", Color::Configuration),
    ("Administrative", Color::Administrative),
    ("Application", Color::Application),
    ("Network", Color::Network),
    ("Cluster", Color::Cluster),
    ("Other", Color::OtherWait),
];

/// Average active sessions by wait class, followed by reads, writes and commits.
pub fn section(recording: &Recording, history: &History, findings: &RunFindings) -> Section {
    let lanes = Lanes::new(history, &recording.manifest);
    let mut charts = vec![active_sessions(&lanes, recording, history, findings)];
    for (name, title, column, color) in [
        ("reads", "Reads a second", "read_ios", Color::UserIo),
        ("writes", "Writes a second", "write_ios", Color::SystemIo),
    ] {
        let lane = Lane::new(name, color, lanes.line(|slice| of_all(slice, "role", column)));
        charts.push(lanes.chart(name, title, Measure::Count, vec![lane]));
    }
    let commits = lanes.rate("instance", "", "commits");
    let commits = vec![Lane::new("commits", Color::Commit, commits)];
    charts.push(lanes.chart("commits", "Commits a second", Measure::Count, commits));
    Section::new("activity", "The database over time")
        .about(
            "Sessions by what they waited for; reads and writes as the database sent them, a \
             mirrored write once.",
        )
        .detail(Detail::Page)
        .with(charts)
}

/// Sum of a counter over all objects of a probe, per second.
fn of_all(slice: &Interval<'_>, probe: &str, column: &str) -> Known {
    let objects = slice.objects(probe).into_iter();
    objects.map(|object| slice.per_s(probe, object, column)).sum()
}

fn active_sessions(
    lanes: &Lanes<'_>,
    recording: &Recording,
    history: &History,
    findings: &RunFindings,
) -> Chart {
    let classes = classes(recording, history, findings);
    let waits = |class: &'static str| classes.get(class).cloned().unwrap_or_default();
    let outside = |slice: &Interval<'_>| outside_of_waits(slice, &classes, findings);
    let layers = CLASSES.iter().map(|(class, color)| {
        let points = match *class {
            "CPU" => lanes.line(|slice| Ok(outside(slice)?.cpu)),
            "Run queue" => lanes.line(|slice| Ok(outside(slice)?.run_queue)),
            "Network" => lanes.line(|slice| Ok(outside(slice)?.network)),
            class => {
                let events = waits(class);
                lanes.line(|slice| Ok(shares(slice, &events)? + blocked(slice, findings, class)))
            }
        };
        Lane::new(class, *color, points)
    });
    let layers = layers.filter(Lane::moved).collect();
    let title = "Average active sessions by wait class";
    let chart = lanes.chart("active-sessions", title, Measure::Count, layers).stacked();
    let cpus = recording.manifest.host.cpus;
    let about = "Above the line for processors, sessions wait for something whatever the host \
                 has left.";
    chart.about(about).wide(HEIGHT).level(f64::from(cpus), format!("{cpus} processors"))
}

/// Groups the sessions' events by class; events of windows without findings are in class Other.
fn classes(
    recording: &Recording,
    history: &History,
    findings: &RunFindings,
) -> BTreeMap<&'static str, Vec<String>> {
    let mut classes: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let end_ns = crate::recorded::identity::duration_ns(&recording.manifest);
    let known = |event: &str| {
        let mut waits = findings.waits.iter();
        waits.find(|wait| wait.event == event).map_or("Other", |wait| wait.class)
    };
    for object in history.interval(0, end_ns).objects(EVENT) {
        if let Some(event) = object.strip_prefix("session/")
            && ![CPU, RUN_QUEUE].contains(&object)
        {
            classes.entry(known(event)).or_default().push(object.to_owned());
        }
    }
    classes
}

/// Returns how many sessions were in these events on average. An event without rows has not
/// occurred yet.
fn shares(slice: &Interval<'_>, events: &[String]) -> Known {
    let seen = slice.objects(EVENT);
    let present = events.iter().filter(|event| seen.contains(&event.as_str()));
    let waited = present.map(|event| slice.moved_from_zero(EVENT, event, "time_ns"));
    Ok(waited.sum::<Known>()? / slice.ns())
}

/// Returns how many sessions were in a call but not in a wait, on average. Processor time is
/// charged inside waits too, so it counts only up to the time outside of them; if the target
/// samples that time, it is split by the shares of the sample.
fn outside_of_waits(
    slice: &Interval<'_>,
    classes: &BTreeMap<&'static str, Vec<String>>,
    findings: &RunFindings,
) -> Result<Outside, blockstone_view::Missing> {
    let instance = |column: &str| slice.share("instance", "", column);
    let charged = |object: &str| slice.share(EVENT, object, "time_ns");
    let run_queue = charged(RUN_QUEUE).unwrap_or(0.0);
    let Ok(db_time) = instance("db_time_ns") else {
        return Ok(Outside { cpu: charged(CPU)?, run_queue, blocked: 0.0, network: 0.0 });
    };
    let waits: f64 = classes.values().map(|events| shares(slice, events)).sum::<Known>()?;
    let outside = (db_time - waits).max(0.0);
    let sampled = instance("outside_sampled_ns").unwrap_or(0.0);
    let (cpu, run_queue) = match instance("outside_sampled_cpu_ns") {
        Ok(cpu) if sampled > 0.0 => {
            let blocked = instance("outside_sampled_blocked_ns")?;
            let scale = outside / sampled;
            (cpu * scale, (sampled - cpu - blocked).max(0.0) * scale)
        }
        Err(_) if sampled > 0.0 => {
            let row_locks = charged(ROW_LOCK).unwrap_or(0.0);
            let network = network(slice, db_time, charged(CPU)? + run_queue);
            let at_work =
                network.map_or(sampled - row_locks, |network| (outside - network).max(0.0));
            let blocked = CLASSES.iter().map(|(class, _)| blocked(slice, findings, class)).sum();
            let charged = (charged(CPU)?, run_queue);
            return Ok(of_server(outside, at_work, blocked, charged));
        }
        _ => (charged(CPU).unwrap_or(0.0), run_queue),
    };
    let cpu = cpu.min(outside);
    Ok(Outside { cpu, run_queue: run_queue.min(outside - cpu), blocked: 0.0, network: 0.0 })
}

/// Returns how many sessions were in a call while their threads waited for the peer, on average, if
/// the kernel showed that.
fn network(slice: &Interval<'_>, db_time: f64, ran: f64) -> Known {
    let seen = |object: &str| slice.share(BLOCKED.probe, &format!("session/{object}"), "time_ns");
    let (peer, running) = (seen(PEER)?, seen(RUNNING)?);
    let blocked = BLOCKED_IN.iter().map(|(place, _)| seen(place)).sum::<Known>()?;
    let (off, all) = (blocked + peer, blocked + peer + running);
    let ratio = if off > 0.0 { (all - ran).max(0.0) / off } else { 1.0 };
    Ok((peer * ratio - (all - db_time).max(0.0)).max(0.0))
}

/// Returns how many sessions of this class were blocked without an event, on average: the time that
/// the kernel saw, scaled by the share of it that counts in the whole window.
fn blocked(slice: &Interval<'_>, findings: &RunFindings, class: &str) -> f64 {
    let all = findings.db_time.iter().flat_map(|db_time| &db_time.blocked);
    let of_class = all.filter(|one| one.ns > 0 && wait_class(one.event) == class);
    let share = |one: &Blocked| {
        let object = format!("session/{}", one.place);
        let seen = slice.share(BLOCKED.probe, &object, "time_ns").unwrap_or(0.0);
        seen * one.ns as f64 / one.seen_ns as f64
    };
    of_class.map(share).sum()
}

/// Everything that was counted, and the latencies of every second.
pub fn detail(recording: &Recording, history: &History, findings: &RunFindings) -> Result<Section> {
    let lanes = Lanes::new(history, &recording.manifest);
    let roles: Vec<String> = findings.roles.iter().map(|role| role.name.clone()).collect();
    let disks: Vec<String> = findings.disks.iter().map(|disk| disk.name.clone()).collect();
    let operations = ["select", "update", "scan"].map(str::to_owned);
    let all = [
        ("role-reads", "Reads a second by role", "role", &roles[..], "read_ios"),
        ("role-writes", "Writes a second by role", "role", &roles, "write_ios"),
        ("disk-reads", "Reads a second by disk", "disk", &disks, "read_ios"),
        ("disk-writes", "Writes a second by disk", "disk", &disks, "write_ios"),
        ("operations", "Operations a second", "operation", &operations, "completed_ops"),
    ];
    let mut charts: Vec<Chart> = Vec::new();
    for (name, title, probe, objects, column) in all {
        let each = lanes.each(probe, objects, column);
        charts.push(lanes.chart(name, title, Measure::Count, each));
    }
    charts.push(latencies(recording)?);
    charts.extend(lanes::processors(&lanes));
    charts.push(lanes::devices(&lanes));
    Ok(Section::new("time", "The run over time")
        .about("Counters of every tick; a window lies inside each phase after the load.")
        .detail(Detail::Page)
        .with(charts))
}

/// Curves of latencies: role of the histogram, name, colour.
const LATENCIES: [(&str, &str, Color); 6] = [
    ("session/db file sequential read", "db file sequential read", Color::UserIo),
    ("session/log file sync", "log file sync", Color::Commit),
    (DIRECT_READ, "direct path I/O", Color::UserIo),
    ("session/direct path read", "direct path read", Color::Commit),
    ("select", "select", Color::Series(2)),
    ("update", "update", Color::Series(3)),
];

/// Chart of p50 and p99 of every second.
fn latencies(recording: &Recording) -> Result<Chart> {
    let phases = &recording.manifest.phases;
    let mut seconds: BTreeMap<(usize, u32), LatencyHistogram> = BTreeMap::new();
    recording.each_histogram(|row| {
        let phase = usize::try_from(row.phase).ok().and_then(|at| phases.get(at));
        let held = phase.is_some_and(|p| matches!(p.group, Group::Workload | Group::Scan));
        let known = LATENCIES.iter().position(|(role, _, _)| *role == row.role);
        if let Some(index) = known.filter(|_| held) {
            seconds.entry((index, row.second)).or_default().merge(&row.histogram);
        }
    })?;
    let y = Axis::new("", Measure::Nanoseconds).log();
    let mut chart =
        Chart::new("latencies-over-time", "Latencies over time", Axis::time(), y).wide(320).about(
            "Median (solid) and 99th percentile (dashed) of every second: a checkpoint or a log \
             switch is a peak, a full cache is a plateau.",
        );
    for (index, (_, name, color)) in LATENCIES.iter().enumerate() {
        for (quantile, label, dashed) in [(0.5, "p50", false), (0.99, "p99", true)] {
            let of = seconds.range((index, 0)..=(index, u32::MAX)).filter(|(_, h)| h.count() > 0);
            let point = |((_, second), histogram): (&(usize, u32), &LatencyHistogram)| {
                let middle_ns = (f64::from(*second) + 0.5) * 1e9;
                let latency_ns = histogram.bounded_quantile_ns(quantile);
                Point::from((middle_ns, latency_ns.map(|ns| ns as f64)))
            };
            let points: Vec<Point> = of.map(point).collect();
            let form = Form::Line { points, dashed, marks: false };
            chart = chart.layer(format!("{name} {label}"), *color, form);
        }
    }
    Ok(chart)
}
