//! The first section of a database: average active sessions by what they wait for, followed by what
//! the database read, wrote and committed.

use blockstone_base::table::{Measure, Value};
use blockstone_record::manifest::Manifest;
use blockstone_report::chart::{Axis, Chart, Color, Form, HeatCell, Level};
use blockstone_report::{Section, cell};
use blockstone_view::{Interval, registry};

/// Recordings longer than this also get a chart of hours by weekday.
const DAY_NS: f64 = 86_400e9;
const HOUR_NS: f64 = 3_600e9;
const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Returns `None` if neither sessions nor a database were watched and the recording is short.
pub fn section(
    manifest: Option<&Manifest>,
    interval: &Interval<'_>,
    slices: &[Interval<'_>],
) -> Option<Section> {
    let charts = [
        Some(sessions(manifest, slices)),
        Some(transfers(slices)),
        manifest.and_then(|manifest| hours(manifest, interval)),
    ];
    let section =
        Section::page("activity", "Activity over time").with(charts.into_iter().flatten());
    (!section.blocks.is_empty()).then_some(section)
}

/// A wait or processor time: its name, its colour, and the average number of sessions in it.
type Active = (String, Color, f64);

/// Returns sessions by wait class as sampled, or by event as a run times them.
fn active(interval: &Interval<'_>) -> Vec<Active> {
    let rows = |view: &str| {
        let view = registry::find(view)?;
        let table = view.table(interval)?;
        (!table.rows.is_empty()).then_some((view, table))
    };
    let mut layers = Vec::new();
    if let Some((_, table)) = rows("wait-classes") {
        let [role, class, sessions] =
            ["role", "wait_class", "average_active_sessions"].map(|key| table.column(key));
        let instance = table.column("instance");
        for row in &table.rows {
            let text = |index: Option<usize>| match index.and_then(|index| row.get(index)) {
                Some(Value::Text(text)) => text.as_str(),
                _ => "",
            };
            let number = sessions.and_then(|index| row[index].number());
            if let (Some(number), "session") = (number, text(role)) {
                let name = format!("{} {}", text(instance), text(class));
                layers.push((name.trim_start().to_owned(), of_class(text(class)), number));
            }
        }
    } else if let Some((view, table)) = rows("top-events") {
        let [event, sessions] = ["event", "average_active_sessions"].map(|key| table.column(key));
        for row in &table.rows {
            let color = match event.map(|index| &row[index]) {
                Some(Value::Text(event)) => of_event(event),
                _ => Color::OtherWait,
            };
            let number = sessions.and_then(|index| row[index].number());
            layers.extend(number.map(|number| (view.name_of(row), color, number)));
        }
    }
    layers
}

fn sessions(manifest: Option<&Manifest>, slices: &[Interval<'_>]) -> Chart {
    let seen: Vec<(f64, Vec<Active>)> =
        slices.iter().map(|slice| (slice.to_ns as f64, active(slice))).collect();
    let mut names: Vec<(String, Color)> = Vec::new();
    for (name, color, _) in seen.iter().flat_map(|(_, layers)| layers) {
        if !names.iter().any(|(known, _)| known == name) {
            names.push((name.clone(), *color));
        }
    }
    // Processor time at the bottom, as every reader of such a chart expects.
    names.sort_by_key(|(name, color)| (*color != Color::Cpu, name.clone()));
    let axis = Axis::new("average active sessions", Measure::Count);
    let mut chart = Chart::new("active-sessions-over-time", "Active sessions", Axis::time(), axis)
        .about("Average active sessions by what they did; above the line of processors they wait.")
        .wide(340);
    for (name, color) in names {
        let at = |(at, layers): &(f64, Vec<Active>)| {
            let own = layers.iter().find(|(known, ..)| *known == name);
            (*at, Some(own.map_or(0.0, |(.., number)| *number)))
        };
        let form = Form::area(seen.iter().map(at));
        chart = chart.layer(name, color, form);
    }
    if let Some(manifest) = manifest {
        let y = f64::from(manifest.host.cpus);
        chart.levels.push(Level { y, name: format!("{} processors", manifest.host.cpus) });
        let allowed = f64::from(manifest.host.cpus_allowed_milli) / 1e3;
        if allowed < y {
            chart.levels.push(Level { y: allowed, name: format!("{allowed} allowed") });
        }
    }
    chart
}

/// Returns Oracle's colour for a wait class of another database.
fn of_class(class: &str) -> Color {
    match class {
        "On CPU" | "CPU" => Color::Cpu,
        "IO" | "User I/O" => Color::UserIo,
        "System I/O" => Color::SystemIo,
        "Commit" => Color::Commit,
        "LWLock" | "BufferPin" | "Concurrency" => Color::Concurrency,
        "Lock" | "Application" => Color::Application,
        "Client" | "Network" => Color::Network,
        "IPC" | "Cluster" => Color::Cluster,
        "Timeout" | "Administrative" => Color::Administrative,
        "Configuration" => Color::Configuration,
        _ => Color::OtherWait,
    }
}

/// Returns the colour that Oracle uses for an event of this name.
fn of_event(event: &str) -> Color {
    let begins = |names: &[&str]| names.iter().any(|name| event.starts_with(name));
    match event {
        "DB CPU" => Color::Cpu,
        "run queue" => Color::RunQueue,
        "log file sync" => Color::Commit,
        _ if begins(&["db file parallel", "log file parallel", "control file"]) => Color::SystemIo,
        _ if begins(&["db file", "direct path", "IO:"]) => Color::UserIo,
        _ if begins(&["log buffer", "log file switch", "free buffer", "write complete"]) => {
            Color::Configuration
        }
        _ if begins(&["latch", "buffer busy", "LWLock:", "BufferPin:"]) => Color::Concurrency,
        _ if begins(&["enq", "Lock:"]) => Color::Application,
        _ if begins(&["SQL*Net", "Client:"]) => Color::Network,
        _ => Color::OtherWait,
    }
}

/// Reads, writes and commits of the database per second.
fn transfers(slices: &[Interval<'_>]) -> Chart {
    const LINES: [(&str, &str, Color); 3] = [
        ("physical_reads", "blocks read", Color::Series(0)),
        ("physical_writes", "blocks written", Color::Series(1)),
        ("commits", "commits", Color::Series(2)),
    ];
    let y = Axis::new("per second", Measure::Count);
    let mut chart =
        Chart::new("transfers-over-time", "Reads, writes, commits", Axis::time(), y).wide(220);
    for (column, name, color) in LINES {
        // All databases together: each has its own line in the load profile.
        let point = |slice: &Interval<'_>| (slice.to_ns as f64, transferred(slice, column));
        chart = chart.layer(name, color, Form::line(slices.iter().map(point)));
    }
    chart
}

/// Sum over all databases of this counter per second; `None` if that of any of them is unknown.
fn transferred(interval: &Interval<'_>, column: &str) -> Option<f64> {
    let instances = interval.instances_with("instance");
    if instances.is_empty() {
        return interval.per_s("instance", "", column).ok();
    }
    let of = |instance: &str| interval.of_instance(instance).per_s("instance", "", column).ok();
    instances.into_iter().map(of).sum()
}

/// How busy each hour of each weekday was; only for recordings longer than a day.
fn hours(manifest: &Manifest, interval: &Interval<'_>) -> Option<Chart> {
    if interval.ns() <= DAY_NS {
        return None;
    }
    let started: jiff::Timestamp = manifest.started_at.parse().ok()?;
    let mut means = [[(0.0, 0.0); 24]; 7];
    let hours = (interval.ns() / HOUR_NS).ceil() as usize;
    for slice in super::slices(interval, &[], hours) {
        let middle = jiff::SignedDuration::from_nanos((slice.from_ns.midpoint(slice.to_ns)) as i64);
        let at = started.checked_add(middle).ok()?.to_zoned(jiff::tz::TimeZone::UTC);
        let Some(load) = load(&slice) else { continue };
        let day = at.weekday().to_monday_zero_offset() as usize;
        let mean: &mut (f64, f64) = &mut means[day][at.hour() as usize];
        mean.0 += load * slice.seconds();
        mean.1 += slice.seconds();
    }
    let mean = |(sum, seconds): (f64, f64)| (seconds > 0.0).then(|| sum / seconds);
    let greatest = means.iter().flatten().filter_map(|it| mean(*it)).fold(0.0, f64::max);
    let mut cells = Vec::new();
    for (day, row) in means.iter().enumerate() {
        for (hour, value) in row.iter().enumerate() {
            let Some(value) = mean(*value) else { continue };
            let (x, y) = (hour as f64, day as f64);
            let number = cell(&Value::Number(value), Measure::Count);
            cells.push(HeatCell {
                x: (x, x + 1.0),
                y: (y - 0.5, y + 0.5),
                heat: if greatest > 0.0 { value / greatest } else { 0.0 },
                text: format!("{} {hour}:00 UTC: {number} active", WEEKDAYS[day]),
            });
        }
    }
    let days = WEEKDAYS.map(str::to_owned).to_vec();
    let (x, y) = (Axis::new("hour (UTC)", Measure::Count), Axis::names("", days));
    let chart = Chart::new("hours", "Hours by weekday", x, y)
        .about("Mean of active sessions, or of busy processors where no database was watched.")
        .wide(260)
        .layer("active", Color::Series(0), Form::Heat(cells));
    Some(chart)
}

/// Active sessions, or busy processors if only a host was watched.
fn load(interval: &Interval<'_>) -> Option<f64> {
    let active = active(interval);
    if !active.is_empty() {
        return Some(active.iter().map(|(.., number)| number).sum());
    }
    let cpus = interval.objects("cpu").len().max(1) as f64;
    let view = registry::find("host")?;
    let idle = view.table(interval)?.rows.first()?[view.column("cpu_idle_share")?].number()?;
    Some((1.0 - idle) * cpus)
}
