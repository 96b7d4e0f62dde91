//! The report of the balance of a machine.

use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Row, Table, count, flow, happened, level, share, text, time,
};
use blockstone_base::units::counted;
use blockstone_offload::model::{Bound, Part};
use blockstone_report::chart::{Axis, Chart, Color, Form};
use blockstone_report::render::json;
use blockstone_report::{Headline, Report, Section, percent};
use schemars::JsonSchema;
use serde::Serialize;

use super::Modelled;
use crate::verbs::offload::words::digits;

pub const TABLES: &[&str] = &["parts", "points", "crossings", "gains", "selectivity", "fitted"];

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SECOND_NS: f64 = 1e9;
const MIB: f64 = 1_048_576.0;
/// Steps of the returned share per power of ten, and the lowest power.
const STEPS: i32 = 10;
const LEAST_POWER: i32 = -3;
const SCREEN_ROWS: usize = 24;

const PARTS: &[Heading] = &[
    text("part", "part", "A part that may bind."),
    level("count", "count", Measure::Count, "Their number."),
    flow("each_bytes_per_s", "each", "What one of them does."),
    flow("read_bytes_per_s", "read/s", "What all of them allow, in bytes that the storage reads."),
    text("exact", "exact", "What one of them does, with five digits."),
];

const POINTS: &[Heading] = &[
    count("hosts", "hosts", "Number of hosts."),
    flow("throughput_bytes_per_s", "read/s", "Bytes that the storage reads."),
    flow("wire_bytes_per_s", "wire/s", "Those of them that cross the wire."),
    text("binding", "binds", "The part that allows no more."),
    time("size_ns", "time", "To read the bytes of --size."),
];

const CROSSINGS: &[Heading] = &[
    count("measured_with", "rate of", "With the rate that one of this many hosts has."),
    text("hosts", "crossing", "Hosts that could take what the storage gives."),
    count("hosts_whole", "hosts", "The next whole number."),
    text("binding", "then binds", "The part that binds from there on."),
];

const GAINS: &[Heading] = &[
    text("one_more", "one more", "The part that is added."),
    share("gained", "gains", "Of the throughput now."),
    flow("throughput_bytes_per_s", "read/s", "Bytes that the storage reads then."),
    text("binding", "then binds", "The part that binds then."),
];

const SELECTIVITY: &[Heading] = &[
    share("returned", "returned", "Share of what is read that crosses the wire."),
    flow("throughput_bytes_per_s", "read/s", "Bytes that the storage reads."),
    text("binding", "binds", "The part that allows no more."),
];

const FITTED: &[Heading] = &[
    text("run", "run", "The run."),
    count("hosts", "hosts", "Hosts in it."),
    count("cells", "cells", "Cells in it."),
    share("returned", "returned", "Share of what was read that crossed the wire."),
    flow("read_bytes_per_s", "measured", "Bytes read a second."),
    flow("model_bytes_per_s", "model", "What the model gives for it."),
    share("error", "model off by", "(model − measured) ÷ measured."),
    text("binding", "binds", "By the model."),
];

/// Keys of the JSON document.
#[derive(Serialize, JsonSchema)]
pub struct ModelDocument {
    tool_version: &'static str,
    /// Share of the bytes read that crosses the wire.
    returned: f64,
    /// Number of hosts that exist now.
    hosts: u32,
    cells: u32,
    /// Throughput by the number of hosts.
    points: Vec<PointKeys>,
    crossings: Vec<CrossingKeys>,
    gains: Vec<GainKeys>,
    /// With the present number of hosts, the returned share above which links or hosts bind; null
    /// if one side is not known.
    crossing_returned: Option<f64>,
    selectivity: Vec<SelectivityKeys>,
}

#[derive(Serialize, JsonSchema)]
struct PointKeys {
    hosts: u32,
    /// Bytes per second that the storage reads.
    throughput_bytes_per_s: f64,
    binding: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct CrossingKeys {
    /// Number of hosts with which the rate per host was measured.
    measured_with: u32,
    hosts: f64,
    /// The part that binds from this number of hosts on.
    binding: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct GainKeys {
    one_more: &'static str,
    gained: f64,
    throughput_bytes_per_s: f64,
    binding: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct SelectivityKeys {
    returned: f64,
    throughput_bytes_per_s: f64,
    binding: &'static str,
}

impl Modelled {
    fn bound(&self, hosts: u32) -> Option<Bound> {
        self.machine.bound(f64::from(hosts), self.returned)
    }

    fn points(&self) -> Vec<(u32, Bound)> {
        (1..=self.hosts_max).filter_map(|hosts| Some((hosts, self.bound(hosts)?))).collect()
    }

    /// Throughput by the share that the storage returns, and where the binding part changes.
    fn selectivity(&self) -> Vec<(f64, Bound)> {
        let least = (self.returned.log10().floor() as i32).clamp(-12, LEAST_POWER);
        let steps = (least * STEPS)..=0;
        let mut shares: Vec<f64> =
            steps.map(|step| 10_f64.powf(f64::from(step) / f64::from(STEPS))).collect();
        let crossing = self.machine.crossing_returned(f64::from(self.hosts));
        shares.extend(crossing.filter(|it| *it > 10_f64.powi(least) && *it < 1.0));
        shares.sort_by(f64::total_cmp);
        let hosts = f64::from(self.hosts);
        let point = |share| Some((share, self.machine.bound(hosts, share)?));
        shares.into_iter().filter_map(point).collect()
    }

    fn count(&self, part: Part) -> Option<u32> {
        match part {
            Part::Cells | Part::CellCpu | Part::CellLinks => Some(self.machine.cells),
            Part::Hosts | Part::HostLinks => Some(self.hosts),
            Part::Fabric => Some(1),
            Part::Processors => self.machine.shared.map(|it| it.processors),
        }
    }

    /// Rate of one unit of a part: bytes read for cells and processors, bytes on the wire for
    /// others.
    fn each(&self, part: Part) -> Option<f64> {
        let machine = &self.machine;
        match part {
            Part::Cells => machine.scan_rate,
            Part::CellCpu => machine.cell_cpu_rate,
            Part::CellLinks => machine.cell_link,
            Part::HostLinks => machine.host_link,
            Part::Fabric => machine.fabric,
            Part::Hosts => machine.consume_rate(f64::from(self.hosts)),
            Part::Processors => machine.shared.map(|it| 1.0 / it.s_per_byte),
        }
    }
}

pub fn report(model: &Modelled) -> Report {
    let mut sections = vec![
        Section::of("parts", parts(model)),
        Section::of("points", points(model)).with([hosts_chart(model)]),
        Section::of("crossings", crossings(model)),
        Section::of("gains", gains(model)),
        Section::new("returned", "Throughput against what is returned")
            .with([selectivity_chart(model)]),
        Section::page("selectivity", "Throughput against what is returned, in steps")
            .with([selectivity(model)]),
        Section::of("fitted", fitted(model)),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    Report {
        verb: "offload-model".into(),
        version: 1,
        headline: Headline {
            subject: model.subject.clone(),
            text: headline(model),
            ..Headline::default()
        },
        identity: vec![format!(
            "{} · {} · {} of what is read crosses the wire",
            counted(model.machine.cells.into(), "cell"),
            counted(model.hosts.into(), "host"),
            percent(model.returned)
        )],
        sections,
        notes: notes(model),
        document: json::keys(document(model)),
        ..Report::default()
    }
}

fn binds(part: Part) -> &'static str {
    match part {
        Part::Cells => "the cells bind",
        Part::CellCpu => "the processors of the cells bind",
        Part::CellLinks => "the links of the cells bind",
        Part::HostLinks => "the links of the hosts bind",
        Part::Fabric => "the fabric binds",
        Part::Hosts => "the hosts bind",
        Part::Processors => "the shared processors bind",
    }
}

fn headline(model: &Modelled) -> String {
    let Some(now) = model.bound(model.hosts) else { return String::new() };
    let now = format!("with {}, {}", counted(model.hosts.into(), "host"), binds(now.binding));
    let crossings = model.machine.crossings(model.returned);
    match crossings.iter().max_by(|a, b| a.measured_with.cmp(&b.measured_with)) {
        Some(it) => {
            let from = (it.hosts.ceil().max(1.0)) as u32;
            format!("{now}; from {} on, {}", counted(from.into(), "host"), binds(it.binds))
        }
        None => now,
    }
}

fn notes(model: &Modelled) -> Vec<String> {
    let mut notes = Vec::new();
    if !model.fitted.is_empty() {
        notes.push(
            "Each rate is the greatest that a run reached: a part that bound no run may do more."
                .to_owned(),
        );
        if model.machine.consume.is_empty() {
            notes.push(
                "In no run cells waited for hosts: what a host consumes is not known.".to_owned(),
            );
        }
    }
    if let Some(share) = model.machine.crossing_returned(f64::from(model.hosts)) {
        let hosts = counted(model.hosts.into(), "host");
        notes.push(match share {
            share if share >= 1.0 => format!("{hosts} take all that the storage can read."),
            share => format!(
                "With {hosts} filtering gains until {} % of what is read is returned; below that \
                 the storage binds.",
                digits(share * 100.0)
            ),
        });
    }
    notes
}

fn parts(model: &Modelled) -> Table {
    let limits = model.machine.limits(f64::from(model.hosts), model.returned);
    let row = |limit: &Bound| {
        let each = model.each(limit.binding);
        let name = limit.binding.name();
        row![name, model.count(limit.binding), each, limit.bytes_per_s, exact(each)]
    };
    let mut table =
        Table::new("parts", "What each part allows", PARTS).with(limits.iter().map(row));
    let cells = limits.iter().find(|limit| limit.binding == Part::Cells);
    if let Some((disks, cells)) = model.disks.zip(cells) {
        let each = Some(cells.bytes_per_s / f64::from(disks));
        table.push(row!["disks", disks, each, cells.bytes_per_s, exact(each)]);
    }
    table
}

fn exact(rate: Option<f64>) -> String {
    rate.map_or(String::new(), |it| {
        format!("{} MiB/s = {} MB/s", digits(it / MIB), digits(it / 1e6))
    })
}

fn points(model: &Modelled) -> Table {
    let row = |(hosts, bound): (u32, Bound)| {
        let wire = bound.bytes_per_s * model.returned;
        let time = model.size_bytes.map(|bytes| bytes / bound.bytes_per_s * SECOND_NS);
        row![hosts, bound.bytes_per_s, wire, bound.binding.name(), happened(time)]
    };
    Table::new("points", "Throughput against hosts", POINTS)
        .on_screen(SCREEN_ROWS)
        .with(model.points().into_iter().map(row))
}

fn crossings(model: &Modelled) -> Table {
    let row = |it: &blockstone_offload::model::Crossing| {
        let (exact, whole) = (format!("{:.2}", it.hosts), it.hosts.ceil().max(1.0));
        row![it.measured_with, exact, whole, it.binds.name()]
    };
    let crossings = model.machine.crossings(model.returned);
    Table::new("crossings", "From how many hosts on something else binds", CROSSINGS)
        .with(crossings.iter().map(row))
}

fn gains(model: &Modelled) -> Table {
    let gains = model.machine.gains(model.hosts, model.returned);
    let row = |gain: &blockstone_offload::model::Gain| {
        row![gain.what, gain.gained, gain.then.bytes_per_s, gain.then.binding.name()]
    };
    Table::new("gains", "What one more brings", GAINS).with(gains.iter().map(row))
}

fn selectivity(model: &Modelled) -> Table {
    let row = |(share, bound): (f64, Bound)| row![share, bound.bytes_per_s, bound.binding.name()];
    Table::new("selectivity", "Throughput against what is returned", SELECTIVITY)
        .with(model.selectivity().into_iter().map(row))
}

fn fitted(model: &Modelled) -> Table {
    let row = |run: &blockstone_offload::fit::Fitted| -> Row {
        let mut machine = model.machine.clone();
        machine.cells = run.cells;
        let bound = machine.bound(f64::from(run.hosts), run.returned);
        let rate = bound.map(|it| it.bytes_per_s);
        row![
            run.name.clone(),
            run.hosts,
            run.cells,
            run.returned,
            run.read_bytes_per_s,
            rate,
            rate.map(|rate| rate / run.read_bytes_per_s - 1.0),
            bound.map_or("", |it| it.binding.name()),
        ]
    };
    Table::new("fitted", "The runs and the model", FITTED).with(model.fitted.iter().map(row))
}

fn color(part: Part) -> Color {
    match part {
        Part::Cells => Color::UserIo,
        Part::CellCpu => Color::SystemIo,
        Part::CellLinks | Part::HostLinks => Color::Network,
        Part::Fabric => Color::Cluster,
        Part::Hosts => Color::Cpu,
        Part::Processors => Color::RunQueue,
    }
}

/// Adds one line for each part that binds, over the range where it binds.
fn by_binding(mut chart: Chart, points: &[(f64, Bound)]) -> Chart {
    for &part in Part::ALL {
        let touches = |at: usize| points.get(at).is_some_and(|(_, it)| it.binding == part);
        let form = Form::line(points.iter().enumerate().map(|(at, (x, bound))| {
            // The line of a part ends where that of the next part begins.
            let is_drawn = touches(at) || (at > 0 && touches(at - 1));
            (*x, is_drawn.then_some(bound.bytes_per_s))
        }));
        chart = chart.layer(binds(part), color(part), form);
    }
    chart
}

fn hosts_chart(model: &Modelled) -> Chart {
    let x = Axis::new("hosts", Measure::Count);
    let y = Axis::new("read", Measure::BytesPerS);
    let mut chart = Chart::new("hosts-chart", "Throughput against hosts", x, y).wide(300).about(
        "What the storage reads, in the colour of the part that allows no more. Before the \
         crossing each more host brings its rate, after it none.",
    );
    let mut points: Vec<(f64, Bound)> =
        model.points().into_iter().map(|(hosts, it)| (f64::from(hosts), it)).collect();
    let crossings = model.machine.crossings(model.returned);
    if let Some(last) = crossings.iter().max_by_key(|it| it.measured_with)
        && last.hosts < f64::from(model.hosts_max)
        && let Some(storage) = model.machine.storage(model.returned)
    {
        points.push((last.hosts, storage));
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let name = format!("from {:.2} hosts on, {}", last.hosts, binds(last.binds));
        chart = chart.level(storage.bytes_per_s, name);
    }
    by_binding(chart, &points)
}

fn selectivity_chart(model: &Modelled) -> Chart {
    let x = Axis::new("returned", Measure::Share).log();
    let y = Axis::new("read", Measure::BytesPerS);
    let title = "Throughput against what is returned";
    let mut chart = Chart::new("selectivity-chart", title, x, y).wide(300).about(format!(
        "With {}. To the left of the change filtering better gains nothing; to the right what is \
         returned costs throughput.",
        counted(model.hosts.into(), "host")
    ));
    let (hosts, mut points) = (f64::from(model.hosts), model.selectivity());
    if let Some(share) = model.machine.crossing_returned(hosts).filter(|it| *it < 1.0)
        && let Some(bound) = model.machine.bound(hosts, share)
    {
        let name = format!("up to {} returned, {}", percent(share), binds(bound.binding));
        chart = chart.level(bound.bytes_per_s, name);
        // The line of the next part begins here.
        let after = share * 1.000_1;
        points.extend(model.machine.bound(hosts, after).map(|bound| (after, bound)));
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    by_binding(chart, &points)
}

fn document(model: &Modelled) -> ModelDocument {
    let machine = &model.machine;
    let point = |(hosts, it): (u32, Bound)| PointKeys {
        hosts,
        throughput_bytes_per_s: it.bytes_per_s,
        binding: it.binding.name(),
    };
    let crossings = machine.crossings(model.returned).into_iter().map(|it| CrossingKeys {
        measured_with: it.measured_with,
        hosts: it.hosts,
        binding: it.binds.name(),
    });
    let gains = machine.gains(model.hosts, model.returned).into_iter().map(|it| GainKeys {
        one_more: it.what,
        gained: it.gained,
        throughput_bytes_per_s: it.then.bytes_per_s,
        binding: it.then.binding.name(),
    });
    let selectivity = model.selectivity().into_iter().map(|(returned, it)| SelectivityKeys {
        returned,
        throughput_bytes_per_s: it.bytes_per_s,
        binding: it.binding.name(),
    });
    ModelDocument {
        tool_version: VERSION,
        returned: model.returned,
        hosts: model.hosts,
        cells: machine.cells,
        points: model.points().into_iter().map(point).collect(),
        crossings: crossings.collect(),
        gains: gains.collect(),
        crossing_returned: machine.crossing_returned(f64::from(model.hosts)),
        selectivity: selectivity.collect(),
    }
}
