//! The report of the balance of a machine.

use blockstone_base::table::{Measure, Rows as _, Table, happened};
use blockstone_base::units::counted;
use blockstone_offload::fit::Fitted;
use blockstone_offload::model::{Bound, Crossing, Gain, Resource};
use blockstone_report::chart::{Axis, Chart, Color, Form};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Headline, Report, Section, percent};

use super::Modelled;
use super::rows::{CrossingRow, FittedRow, GainRow, PartRow, PointRow, SelectivityRow, Summary};
use crate::verbs::offload::earlier;
use crate::verbs::offload::words::digits;

pub const TABLES: Tables = &[
    ("parts", PartRow::COLUMNS),
    ("points", PointRow::COLUMNS),
    ("crossings", CrossingRow::COLUMNS),
    ("gains", GainRow::COLUMNS),
    ("selectivity", SelectivityRow::COLUMNS),
    ("fitted", FittedRow::COLUMNS),
];

const SECOND_NS: f64 = 1e9;
const MIB: f64 = 1_048_576.0;
/// The lowest power of ten of the returned share.
const LEAST_POWER: i32 = -3;
const SCREEN_ROWS: usize = 24;

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
        // Round shares, each of which is written differently.
        let digits = |power| (1..10).map(move |digit| f64::from(digit) * 10_f64.powi(power));
        let mut shares: Vec<f64> = (least..0).flat_map(digits).chain([1.0]).collect();
        let crossing = self.machine.crossing_returned(f64::from(self.hosts));
        shares.extend(crossing.filter(|it| *it > 10_f64.powi(least) && *it < 1.0));
        shares.sort_by(f64::total_cmp);
        let hosts = f64::from(self.hosts);
        let point = |share| Some((share, self.machine.bound(hosts, share)?));
        shares.into_iter().filter_map(point).collect()
    }

    fn count(&self, part: Resource) -> Option<u32> {
        match part {
            Resource::Cells | Resource::CellCpu | Resource::CellLinks => Some(self.machine.cells),
            Resource::Hosts | Resource::HostLinks => Some(self.hosts),
            Resource::Fabric => Some(1),
            Resource::Processors => self.machine.shared.map(|it| it.processors),
        }
    }

    /// Rate of one unit of a part: bytes read for cells and processors, bytes on the wire for
    /// others.
    fn each(&self, part: Resource) -> Option<f64> {
        let machine = &self.machine;
        match part {
            Resource::Cells => machine.scan_rate,
            Resource::CellCpu => machine.cell_cpu_rate,
            Resource::CellLinks => machine.cell_link,
            Resource::HostLinks => machine.host_link,
            Resource::Fabric => machine.fabric,
            Resource::Hosts => machine.consume_rate(f64::from(self.hosts)),
            Resource::Processors => machine.shared.map(|it| 1.0 / it.s_per_byte),
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
    let summary = Summary {
        returned: model.returned,
        hosts: model.hosts,
        cells: model.machine.cells,
        crossing_returned: model.machine.crossing_returned(f64::from(model.hosts)),
    };
    Report {
        verb: "offload-model".into(),
        version: 2,
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
        scalars: Some(Summary::table("offload-model", "", [summary])),
        earlier: Some(earlier::model),
        ..Report::default()
    }
}

fn binds(part: Resource) -> &'static str {
    match part {
        Resource::Cells => "the cells bind",
        Resource::CellCpu => "the processors of the cells bind",
        Resource::CellLinks => "the links of the cells bind",
        Resource::HostLinks => "the links of the hosts bind",
        Resource::Fabric => "the fabric binds",
        Resource::Hosts => "the hosts bind",
        Resource::Processors => "the shared processors bind",
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
    let row = |part, count, each_bytes_per_s, read_bytes_per_s| PartRow {
        part,
        count,
        each_bytes_per_s,
        read_bytes_per_s,
        exact: exact(each_bytes_per_s),
    };
    let parts = limits.iter().map(|&Bound { binding, bytes_per_s }| {
        row(binding.name(), model.count(binding), model.each(binding), bytes_per_s)
    });
    let cells = limits.iter().find(|limit| limit.binding == Resource::Cells);
    let disks = model.disks.zip(cells).map(|(disks, cells)| {
        let each = cells.bytes_per_s / f64::from(disks);
        row("disks", Some(disks), Some(each), cells.bytes_per_s)
    });
    PartRow::table("parts", "What each part allows", parts.chain(disks))
}

fn exact(rate: Option<f64>) -> String {
    rate.map_or(String::new(), |it| {
        format!("{} MiB/s = {} MB/s", digits(it / MIB), digits(it / 1e6))
    })
}

fn points(model: &Modelled) -> Table {
    let row = |(hosts, bound): (u32, Bound)| {
        let time = model.size_bytes.map(|bytes| bytes / bound.bytes_per_s * SECOND_NS);
        PointRow {
            hosts,
            throughput_bytes_per_s: bound.bytes_per_s,
            wire_bytes_per_s: bound.bytes_per_s * model.returned,
            binding: bound.binding.name(),
            size_ns: happened(time),
        }
    };
    let points = model.points().into_iter().map(row);
    PointRow::table("points", "Throughput against hosts", points).on_screen(SCREEN_ROWS)
}

fn crossings(model: &Modelled) -> Table {
    let row = |it: Crossing| CrossingRow {
        measured_with: it.measured_with,
        hosts: it.hosts,
        hosts_whole: it.hosts.ceil().max(1.0),
        binding: it.binds.name(),
    };
    let crossings = model.machine.crossings(model.returned).into_iter().map(row);
    CrossingRow::table("crossings", "From how many hosts on something else binds", crossings)
}

fn gains(model: &Modelled) -> Table {
    let row = |gain: Gain| GainRow {
        one_more: gain.what,
        gained: gain.gained,
        throughput_bytes_per_s: gain.then.bytes_per_s,
        binding: gain.then.binding.name(),
    };
    let gains = model.machine.gains(model.hosts, model.returned).into_iter().map(row);
    GainRow::table("gains", "What one more brings", gains)
}

fn selectivity(model: &Modelled) -> Table {
    let row = |(returned, bound): (f64, Bound)| SelectivityRow {
        returned,
        throughput_bytes_per_s: bound.bytes_per_s,
        binding: bound.binding.name(),
    };
    let points = model.selectivity().into_iter().map(row);
    SelectivityRow::table("selectivity", "Throughput against what is returned", points)
}

fn fitted(model: &Modelled) -> Table {
    let row = |run: &Fitted| {
        let mut machine = model.machine.clone();
        machine.cells = run.cells;
        let bound = machine.bound(f64::from(run.hosts), run.returned);
        let rate = bound.map(|it| it.bytes_per_s);
        FittedRow {
            run: run.name.clone(),
            hosts: run.hosts,
            cells: run.cells,
            returned: run.returned,
            read_bytes_per_s: run.read_bytes_per_s,
            model_bytes_per_s: rate,
            error: rate.map(|rate| rate / run.read_bytes_per_s - 1.0),
            binding: bound.map_or("", |it| it.binding.name()),
        }
    };
    FittedRow::table("fitted", "The runs and the model", model.fitted.iter().map(row))
}

fn color(part: Resource) -> Color {
    match part {
        Resource::Cells => Color::UserIo,
        Resource::CellCpu => Color::SystemIo,
        Resource::CellLinks | Resource::HostLinks => Color::Network,
        Resource::Fabric => Color::Cluster,
        Resource::Hosts => Color::Cpu,
        Resource::Processors => Color::RunQueue,
    }
}

/// Adds one line for each part that binds, over the range where it binds.
fn by_binding(mut chart: Chart, points: &[(f64, Bound)]) -> Chart {
    for &part in Resource::ALL {
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
