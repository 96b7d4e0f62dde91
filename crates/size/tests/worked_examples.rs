//! The figures of docs/size.md, computed by the functions that `size` uses.
//! `UPDATE_EXPECTED=1 cargo test -p blockstone-size --test worked_examples` writes its table.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::fmt::Write as _;

use blockstone_base::link::LinkKind;
use blockstone_base::units::thousands;
use blockstone_size::hardware::headroom::{self, latency_s};
use blockstone_size::hardware::queue::Queue;
use blockstone_size::hardware::{
    Answer, Catalogue, Demand, Plan, Redundancy, Unit, answer, cache, cpu, disk, mixed_iops, money,
};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/size.md");
const OPENS: &str = "<!-- figures -->\n";
const CLOSES: &str = "<!-- end of figures -->\n";

/// What, as published, computed, how or why it differs.
type Row = [String; 4];

fn row(what: &str, published: &str, computed: String, how: &str) -> Row {
    [what.to_owned(), published.to_owned(), computed, how.to_owned()]
}

fn whole(value: f64) -> String {
    thousands(value.round() as i64)
}

fn half_and_half(iops: f64) -> Demand {
    let half = Some(iops / 2.0);
    Demand { reads_per_s: half, writes_per_s: half, ..Demand::default() }
}

fn writes(iops: f64) -> Demand {
    Demand { reads_per_s: Some(0.0), writes_per_s: Some(iops), ..Demand::default() }
}

fn with(redundancy: Redundancy) -> Plan {
    Plan { redundancy, ..Plan::default() }
}

fn catalogue() -> Catalogue {
    Catalogue::example().unwrap()
}

fn unit(name: &str) -> Unit {
    catalogue().unit(name).unwrap()
}

fn on(name: &str, demand: &Demand, redundancy: Redundancy) -> Answer {
    answer(demand, &unit(name), &with(redundancy)).unwrap()
}

/// Need ÷ capacity of all units of the answer.
fn used(answer: &Answer) -> f64 {
    answer.binding().unwrap().utilisation
}

/// Disks of an answer, and the cells and racks that hold them.
fn packed(answer: &Answer) -> String {
    let binding = answer.binding().unwrap();
    let exact = binding.need / binding.unit_capacity;
    let mut text = format!("{exact:.1} → {} disks", answer.units);
    for step in catalogue().packed(&answer.unit, answer.units) {
        if step.unit == "cell" {
            write!(text, " → {:.2} → {} cells", step.exact, step.units).unwrap();
        } else {
            write!(text, " → {} {}", step.units, step.unit).unwrap();
        }
    }
    text
}

fn disks() -> Vec<Row> {
    let demand = half_and_half(10_000.0);
    let iops = |redundancy| whole(demand.hardware_iops(redundancy).unwrap());
    let [external, normal, high] =
        [Redundancy::External, Redundancy::Normal, Redundancy::High].map(iops);
    let of_writes = 2.0 * 5000.0 / demand.hardware_iops(Redundancy::Normal).unwrap();
    let seen = on("rack-full", &writes(60_000.0), Redundancy::Normal);
    let three = seen.units as f64 * unit("rack-full").iops.unwrap();
    let full = unit("rack-full").iops.unwrap();
    let data_sheet = |redundancy: Redundancy| whole(redundancy.workload_writes(full));
    vec![
        row(
            "10,000 IOPS, half of them writes: external, normal, high",
            "10,000, 15,000, 20,000",
            format!("{external}, {normal}, {high}"),
            "reads + penalty × writes, penalties 1, 2, 3: `blockstone size --iops 10000 --reads \
             50% --redundancy high`",
        ),
        row(
            "disks of 180 IOPS for 15,000",
            "≠ 83 disks, 6.9 cells, half rack",
            packed(&on("disk-15k", &demand, Redundancy::Normal)),
            "83 disks do 14,940; a part of a disk cannot be bought: `blockstone size --iops \
             10000 --reads 50% --redundancy normal --disk disk-15k`",
        ),
        row(
            "disks for 20,000",
            "full rack",
            packed(&on("disk-15k", &demand, Redundancy::High)),
            "the same with `--redundancy high`; a half rack has 7 cells, a full one 14",
        ),
        row(
            "10,000 writes/s in a report of the database, normal redundancy",
            "20,000",
            whole(writes(10_000.0).hardware_iops(Redundancy::Normal).unwrap()),
            "a database counts its writes, not the mirrors: `blockstone size --iops 10000 \
             --reads 0% --redundancy normal`",
        ),
        row(
            "writes among 15,000 hardware IOPS",
            "≠ 50 %, 7,500",
            format!("{:.1} %, {}", of_writes * 100.0, whole(10_000.0)),
            "the workload is half writes, the hardware is not: each is done twice",
        ),
        row(
            "writes/s of a full rack with 50,000 disk IOPS: normal, high",
            "25,000",
            format!("{}, {}", data_sheet(Redundancy::Normal), data_sheet(Redundancy::High)),
            "50,000 in a data sheet are not 50,000 writes of a database",
        ),
        row(
            "three full racks, 42 cells: IOPS, writes at normal redundancy",
            "150,000, 75,000",
            format!("{}, {}", whole(three), whole(Redundancy::Normal.workload_writes(three))),
            "3 × 14 cells",
        ),
        row(
            "utilisation of these at 60,000 writes/s",
            "0.80",
            format!("{:.2}", used(&seen)),
            "U = R ÷ C: `blockstone size --iops 60000 --reads 0% --redundancy normal --disk \
             rack-full`",
        ),
    ]
}

fn racks() -> Vec<Row> {
    let demand = half_and_half(10_000.0);
    let of = |name: &str| on(name, &demand, Redundancy::Normal);
    let times = |name: &str| {
        let found = of(name);
        let binding = found.binding().unwrap();
        binding.need / binding.unit_capacity
    };
    let full = of("rack-full-capacity");
    let quarter = unit("cell").iops.unwrap() * 3.0;
    let log = cache::log_writes(4000.0, 1000.0).unwrap();
    let cached = Plan { cached_reads: 1.0, ..with(Redundancy::Normal) };
    let cached = answer(&writes(10_000.0), &unit("disk-15k"), &cached).unwrap();
    vec![
        row(
            "15,000 on a half rack of 12,500, on a full one of 25,000",
            "12,500, 25,000 disk IOPS",
            format!("{:.2}, {:.2}", times("rack-half-capacity"), used(&full)),
            "84 disks of 180 IOPS fit into a half rack; with disks of high capacity (149 IOPS a \
             disk by the same data sheet) it is a full one: `blockstone size --iops 10000 \
             --reads 50% --redundancy normal --disk rack-half-capacity`",
        ),
        row(
            "15,000 on a quarter rack: by its disks, by its data sheet",
            "≠ fits \"because of the flash\"",
            format!("{:.2}, {:.2}", 15_000.0 / quarter, times("rack-quarter")),
            "contradiction: 36 disks do 6,480, the data sheet says 10,800, and writes reach the \
             disks whatever the flash does: the same with `--disk rack-quarter`",
        ),
        row(
            "10,000 writes/s on disks with a flash log and a flash cache",
            "20,000: both sides of a write go to flash and to disk",
            whole(cached.binding().unwrap().need),
            "nothing is taken off for a flash log; a flash cache takes off reads only: \
             `blockstone size --iops 10000 --reads 0% --redundancy normal --cached-reads 100%`",
        ),
        row(
            "4,000 writes/s of the data writers, 1,000 of the log writer",
            "a flash log helps nothing",
            format!("{:.0} % redo, data dominates: {}", log.redo_share * 100.0, log.data_dominates),
            "commits get faster, the disks stay as busy",
        ),
        row(
            "writes/s of eight disks that do 1,000: external, normal, high",
            "1 : ½ : ⅓; about 300 at high",
            [Redundancy::External, Redundancy::Normal, Redundancy::High]
                .map(|redundancy| whole(redundancy.workload_writes(1000.0)))
                .join(", "),
            "the disks do 1,000 throughout; 300 was seen",
        ),
        row(
            "latency of 128 readers at 2,400 reads/s",
            "≠ 900 ms",
            format!("{:.0} ms", latency_s(128.0, 2400.0).unwrap() * 1e3),
            "Little's law: requests in flight ÷ rate",
        ),
        row(
            "84 disks at 83.3: utilisation, mean response, p99 of the wait",
            "–",
            waiting(84),
            "Erlang C, in service times; from utilisation rounded to 0.992 it is 2.36 and 6.7. \
             84 disks carry the load, not the latency",
        ),
        row(
            "93 disks, of which 90 % are used",
            "–",
            waiting(reserved()),
            "`blockstone size --iops 10000 --reads 50% --redundancy normal --utilisation 90%`; \
             one queue for all disks is the best case",
        ),
    ]
}

fn reserved() -> u64 {
    let plan = Plan { utilisation: 0.9, ..with(Redundancy::Normal) };
    answer(&half_and_half(10_000.0), &unit("disk-15k"), &plan).unwrap().units
}

fn waiting(units: u64) -> String {
    let queued = headroom::queued(15_000.0, 180.0, units).unwrap();
    format!("{:.3}, {:.2}, {:.1}", queued.utilisation, queued.mean_response, queued.p99_wait)
}

fn links() -> Vec<Row> {
    let mbps = |kind: LinkKind| kind.bytes_per_s() / 1e6;
    let gbe = LinkKind::Ethernet { gigabits: 1.0 };
    let fc = LinkKind::FibreChannel { gigabits: 2.0 };
    let infiniband = mbps(LinkKind::InfiniBand { gigabits: 20.0, lanes: 4 });
    let used = unit("link-ib-20g").link_mbps.unwrap();
    let hbas = 15.0 * 2.0 * mbps(fc);
    let demand = Demand {
        read_bytes_per_s: Some(hbas * 1e6),
        write_bytes_per_s: Some(0.0),
        ..Demand::default()
    };
    let path = Unit { link_mbps: Some(1600.0), ..Unit::default() };
    let paths = answer(&demand, &path, &Plan::default()).unwrap();
    vec![
        row(
            "a link of 20 Gb/s",
            "1,850 MB/s",
            format!(
                "{} of {} MB/s, {:.1} %",
                whole(used),
                whole(infiniband),
                used / infiniband * 100.0
            ),
            "what the line code leaves is 2,000; 1,850 was reached: `blockstone claim '1,850 \
             MB/s over 20Gb InfiniBand'`",
        ),
        row(
            "1 Gb/s against 1 GB/s",
            "–",
            format!("{} against {} MB/s", whole(mbps(gbe)), whole(1000.0)),
            "eight times: `blockstone claim '1 GB/s over 1Gb Ethernet'`",
        ),
        row(
            "2 × 2 Gb/s Fibre Channel",
            "400 MB/s",
            format!("{} MB/s", whole(2.0 * mbps(fc))),
            "`blockstone claim '400 MB/s over 2x2Gb FC'`",
        ),
        row(
            "15 host adapters of 400 MB/s",
            "6 GB/s",
            format!("{} MB/s", whole(hbas)),
            "the same pair of links, 15 times",
        ),
        row(
            "6 GB/s from 72 disks",
            "85.3 MB/s a disk",
            format!("{:.1} MB/s", 6.0 * 1024.0 / 72.0),
            "of 6 × 1,024 MB; of 6,000 MB it is 83.3",
        ),
        row(
            "InfiniBand paths of 1.6 GB/s for these 6,000 MB/s",
            "1.6 GB/s into a node",
            format!("{} paths", paths.units),
            "6,000 ÷ 1,600 = 3.75",
        ),
    ]
}

fn rates() -> Vec<Row> {
    let gbe = LinkKind::Ethernet { gigabits: 1.0 };
    let fast = LinkKind::Ethernet { gigabits: 0.1 };
    let in_180_s = |kind: LinkKind| format!("{:.2} GB", kind.bytes_per_s() * 180.0 / 1e9);
    vec![
        row(
            "40 TB a week",
            "66.1 MB/s",
            format!("{:.1} MB/s", 40e12 / (7.0 * 86_400.0) / 1e6),
            "a mean: a week has hours without load. `blockstone claim '40 TB a week'`",
        ),
        row(
            "180 s on Gigabit Ethernet",
            "about 20 GB",
            in_180_s(gbe),
            "at line rate; headers of packets take a few percent: `blockstone claim '22.5 GB in \
             180 s over GbE'`",
        ),
        row(
            "180 s on 100BaseT",
            "2 GB or so",
            in_180_s(fast),
            "`blockstone claim '2.25 GB in 180 s over 100BaseT'`",
        ),
        row(
            "300 GB a month",
            "3.6 TB a year",
            format!("{:.1} TB", 300.0 * 12.0 / 1000.0),
            "a mean of 0.11 MB/s: `blockstone claim '300 GB a month'`",
        ),
    ]
}

fn flash() -> Vec<Row> {
    let per = |usd: f64, gb: f64| money::per(usd, gb).unwrap();
    let mix = |reads: f64| mixed_iops(reads, 2800.0, 1.0 - reads, 27.0).unwrap();
    let reads = disk::reads_by_index(2e9, 400.0).unwrap();
    let cores = cpu::cores_of_io(130_000.0, 10e-6).unwrap();
    let host = Unit { cores: Some(cores.ceil()), ..Unit::default() };
    let licence = catalogue().licence("oracle-ee").unwrap().of(&host, 1).unwrap();
    let failures = |units| disk::failures_per_year(units, 1e6).unwrap();
    vec![
        row(
            "flash drive of 32 GB for 700 USD",
            "22 $/GB",
            format!("{:.1} $/GB", per(700.0, 32.0)),
            "beside 0.35 of SATA and 3 to 4 of Fibre Channel disks then",
        ),
        row("the same at 8 $/GB", "256 USD", format!("{} USD", whole(8.0 * 32.0)), "8 × 32"),
        row(
            "16 × the capacity for this price after four years",
            "≠ 1.35 $/GB",
            format!("{:.2} $/GB", per(700.0, 32.0 * 16.0)),
            "700 ÷ 512; twice as much each year",
        ),
        row(
            "latency from 130,000 IOPS",
            "≠ approximately 7 µs",
            format!("{:.1} µs", latency_s(1.0, 130_000.0).unwrap() * 1e6),
            "and 1 ÷ IOPS is a latency only with one request in flight",
        ),
        row(
            "latency of 2,800 reads/s measured at depth 4",
            "–",
            format!("{:.2} ms", latency_s(4.0, 2800.0).unwrap() * 1e3),
            "Little's law again",
        ),
        row(
            "2,800 reads/s or 27 writes/s of 8 KB: mixed 50:50, 70:30",
            "1,700 hoped for at 50:50",
            format!("{:.1}, {:.1} IOPS", mix(0.5), mix(0.7)),
            "1 ÷ (r/R + w/W): writes take nearly all of the time. A unit with `read_iops`, \
             `write_iops` and `shared = true` is sized so",
        ),
        row(
            "MTBF of 1,000,000 h: failures a year, of one, of 84",
            "–",
            format!("{:.2} %, {:.2}", failures(1.0) * 100.0, failures(84.0)),
            "8,766 h a year; no drive lives for 114 years",
        ),
        row(
            "a row among 2,000 million by its index",
            "2 s",
            format!("{reads} reads, {:.0} ms", f64::from(reads) / 180.0 * 1e3),
            "400 entries a block: 4 levels and the block of the table, one after the other at \
             180 IOPS; 2 s are 360 such reads",
        ),
        row(
            "a driver that spends 10 µs on the host for each of 130,000 IOPS",
            "\"throwing away license money\"",
            format!(
                "{cores:.1} cores → {} licence, {} USD as of {}",
                licence.licences,
                whole(licence.usd.unwrap()),
                licence.as_of
            ),
            "list price without discount; IOPS × processor time, rounded up to cores, × 0.5",
        ),
    ]
}

fn table() -> String {
    let mut text =
        "| figure | as published | computed | how, and why it differs |\n|---|---|---|---|\n"
            .to_owned();
    for row in [disks(), racks(), links(), rates(), flash()].concat() {
        writeln!(text, "| {} |", row.join(" | ")).unwrap();
    }
    text
}

#[test]
fn the_page_has_the_figures_that_are_computed() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(OPENS).unwrap();
    let (there, after) = rest.split_once(CLOSES).unwrap();
    let table = table();
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(PAGE, format!("{before}{OPENS}{table}{CLOSES}{after}")).unwrap();
        return;
    }
    for (there, computed) in there.lines().zip(table.lines()) {
        assert_eq!(there, computed);
    }
    assert_eq!(there, table);
}

/// Those that the page must not get wrong, whatever the functions say.
#[test]
fn the_figures_are_these() {
    let table = table();
    for figure in [
        "| 10,000, 15,000, 20,000 | 10,000, 15,000, 20,000 |",
        "| 83.3 → 84 disks → 7.00 → 7 cells → 1 rack-half |",
        "| 111.1 → 112 disks → 9.33 → 10 cells → 1 rack-full |",
        "| 20,000 | 20,000 |",
        "| 66.7 %, 10,000 |",
        "| 25,000, 16,667 |",
        "| 150,000, 75,000 | 150,000, 75,000 |",
        "| 0.80 | 0.80 |",
        "| 1,000, 500, 333 |",
        "| 53 ms |",
        "| 1,850 of 2,000 MB/s, 92.5 % |",
        "| 400 MB/s | 400 MB/s |",
        "| 66.1 MB/s | 66.1 MB/s |",
        "| 22.50 GB |",
        "| 2.25 GB |",
        "| 3.6 TB |",
        "| 21.9 $/GB |",
        "| 256 USD | 256 USD |",
        "| 1.37 $/GB |",
        "| 7.7 µs |",
        "| 53.5, 88.0 IOPS |",
        "| 0.992, 2.37, 6.8 |",
    ] {
        assert!(table.contains(figure), "{figure} is not in\n{table}");
    }
    assert_eq!(reserved(), 93);
    let rounded = Queue::new(84, 0.992).unwrap();
    assert_eq!(format!("{:.2}", rounded.mean_response()), "2.36");
    assert_eq!(format!("{:.1}", rounded.wait_quantile(0.99).unwrap()), "6.7");
}
