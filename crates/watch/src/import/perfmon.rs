//! CSV of Windows Performance Monitor (`typeperf`, `logman`, `relog -f csv`): means of the interval
//! that ends with each row. Its counters are read by their English names.

use std::collections::{BTreeMap, BTreeSet};

use blockstone_base::identity::{DeviceKind, Host};
use blockstone_probe::{block, memory, network};

use super::dool::cells;
use super::instant;
use super::ledger::{Amount, IntervalRow};
use super::steps::{self, Steps, level, number, rate, share};
use super::text::Text;
use super::{Failure, Format, Origin, Sink};

pub const FORMAT: Format = Format {
    tool: "perfmon",
    holds: "means of intervals",
    goes_on: false,
    made_by: "CSV of Windows Performance Monitor (typeperf \"\\PhysicalDisk(*)\\*\" -o FILE)",
    recognises: has_disks,
    read,
};

const SECOND_NS: f64 = 1e9;
const MIB: f64 = 1024.0 * 1024.0;
const DISK: &str = "physicaldisk(";
const TOTAL: &str = "_total";
/// The counters that are read, by their object. Windows does not distinguish case.
const READ: [(&str, &[&str]); 5] = [
    (
        "physicaldisk",
        &[
            "disk reads/sec",
            "disk read bytes/sec",
            "disk writes/sec",
            "disk write bytes/sec",
            "avg. disk sec/read",
            "avg. disk sec/write",
            "avg. disk queue length",
            "current disk queue length",
        ],
    ),
    ("processor", &["% user time", "% privileged time", "% idle time", "interrupts/sec"]),
    ("memory", &["available bytes", "available mbytes"]),
    ("system", &["context switches/sec"]),
    (
        "network interface",
        &["bytes received/sec", "packets received/sec", "bytes sent/sec", "packets sent/sec"],
    ),
];

fn has_disks(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    first.starts_with("\"(PDH-CSV") && first.to_ascii_lowercase().contains(DISK)
}

/// Positions of counters by object and instance: `PhysicalDisk`, `0 C:`.
type Columns = BTreeMap<(String, String), BTreeMap<String, usize>>;

#[derive(Default)]
struct Headings {
    host: String,
    wants: usize,
    /// Seconds to add to local time for UTC.
    offset_s: Option<i64>,
    columns: Columns,
    left_out: BTreeSet<String>,
}

impl Headings {
    /// Reads `"(PDH-CSV 4.0) (UTC)(0)","\\HOST\PhysicalDisk(0 C:)\Disk Reads/sec"`.
    fn read(cells: &[String]) -> Self {
        let mut headings = Self { wants: cells.len(), ..Self::default() };
        let minutes = cells[0].rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        headings.offset_s =
            minutes.and_then(|it| it.parse::<i32>().ok()).map(|it| 60 * i64::from(it));
        for (at, cell) in cells.iter().enumerate().skip(1) {
            let Some((path, counter)) = cell.rsplit_once('\\') else { continue };
            let (host, object) = path.rsplit_once('\\').unwrap_or(("", path));
            host.trim_start_matches('\\').clone_into(&mut headings.host);
            let (object, instance) = match object.split_once('(') {
                Some((object, rest)) => (object, rest.strip_suffix(')').unwrap_or(rest)),
                None => (object, ""),
            };
            let (kind, name) = (object.to_ascii_lowercase(), counter.to_ascii_lowercase());
            let counters = READ.iter().find(|(read, _)| *read == kind).map(|(_, names)| names);
            if !counters.is_some_and(|names| names.contains(&name.as_str())) {
                headings.left_out.insert(format!("{object}\\{counter}"));
            }
            let is_total = instance.eq_ignore_ascii_case(TOTAL);
            let of = (kind, if is_total { TOTAL } else { instance }.to_owned());
            headings.columns.entry(of).or_default().insert(name, at);
        }
        headings
    }
}

fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let mut steps = Steps::new(sink);
    let mut headings = Headings::default();
    let mut without_zone = false;
    while let Some((line, is_cut, row)) = text.next_numbered()? {
        let damage = |what| Failure::Damage { line, what };
        // typeperf ends with lines of its own: `Exiting, please wait...`.
        if is_cut || !row.trim_start().starts_with('"') {
            continue;
        }
        let cells = cells(row);
        if cells[0].starts_with("(PDH-CSV") {
            headings = Headings::read(&cells);
            steps.restart();
            continue;
        }
        if cells.len() != headings.wants {
            let (has, wants) = (cells.len(), headings.wants);
            return Err(damage(format!("a row of {has} cells for {wants} headings")));
        }
        let instant = instant::parse(&cells[0], None);
        without_zone |= headings.offset_s.is_none();
        let offset_ns = headings.offset_s.unwrap_or_default() * 1_000_000_000;
        let at_ns = instant.and_then(|it| it.at_ns.checked_add_signed(offset_ns));
        let unknown = || damage(format!("`{}` is not a known form of time", cells[0]));
        let at_ns = at_ns.filter(|ns| *ns <= instant::LATEST_NS).ok_or_else(unknown)?;
        steps.add(at_ns, &headings.rows(&cells))?;
    }
    let mut notes = Vec::new();
    if text.is_cut() {
        notes.push("the file is truncated: its last row was skipped".to_owned());
    }
    notes.extend(without_zone.then(|| instant::NO_ZONE.to_owned()));
    if !headings.left_out.is_empty() {
        let names: Vec<String> = headings.left_out.iter().cloned().collect();
        notes.push(format!("counters that were not read: {}", steps::list(&names)));
    }
    notes.extend(steps.note());
    let cpus = headings.processors().unwrap_or_default();
    let host = Host {
        hostname: headings.host.clone(),
        cpus,
        cpus_allowed_milli: cpus.saturating_mul(1000),
        ..Host::default()
    };
    Ok(Origin { host, notes, tool_version: None })
}

impl Headings {
    /// Returns the number of processors, if each has counters.
    fn processors(&self) -> Option<u32> {
        let is_one = |(object, instance): &&(String, String)| {
            object == "processor"
                && !instance.is_empty()
                && instance.bytes().all(|b| b.is_ascii_digit())
        };
        u32::try_from(self.columns.keys().filter(is_one).count()).ok().filter(|it| *it > 0)
    }

    fn rows(&self, cells: &[String]) -> Vec<IntervalRow> {
        let of = |object: &str, instance: &str, counter: &str| {
            let columns = self.columns.get(&(object.to_owned(), instance.to_owned()))?;
            number(&cells[*columns.get(counter)?])
        };
        let cpu = |counter: &str| of("processor", TOTAL, counter);
        let cpus = self.processors();
        let mut host = steps::of_host();
        host.set("cpu_user_ns", share(cpu("% user time"), cpus));
        host.set("cpu_system_ns", share(cpu("% privileged time"), cpus));
        host.set("cpu_idle_ns", share(cpu("% idle time"), cpus));
        host.set("switches", rate(of("system", "", "context switches/sec"), 1.0));
        host.set("interrupts", rate(cpu("interrupts/sec"), 1.0));
        let mut rows = vec![host];
        let available = of("memory", "", "available mbytes").map(|it| it * MIB);
        let available = of("memory", "", "available bytes").or(available);
        if available.is_some() {
            let mut row = IntervalRow::new(&memory::SCHEMA, "");
            row.set("available_bytes", level(available, 1.0));
            rows.push(row);
        }
        for (object, instance) in self.columns.keys() {
            let of = |counter: &str| of(object, instance, counter);
            match object.as_str() {
                "physicaldisk" if instance == TOTAL => {
                    let mut row = steps::together();
                    transfers(&mut row, &of);
                    rows.push(row);
                }
                "physicaldisk" => rows.push(disk(instance, &of)),
                "network interface" => {
                    let mut row = IntervalRow::new(&network::SCHEMA, instance);
                    row.set("received_bytes", rate(of("bytes received/sec"), 1.0));
                    row.set("received_packets", rate(of("packets received/sec"), 1.0));
                    row.set("sent_bytes", rate(of("bytes sent/sec"), 1.0));
                    row.set("sent_packets", rate(of("packets sent/sec"), 1.0));
                    rows.push(row);
                }
                _ => {}
            }
        }
        rows
    }
}

fn transfers(row: &mut IntervalRow, of: &impl Fn(&str) -> Option<f64>) {
    row.set("read_ios", rate(of("disk reads/sec"), 1.0));
    row.set("read_bytes", rate(of("disk read bytes/sec"), 1.0));
    row.set("write_ios", rate(of("disk writes/sec"), 1.0));
    row.set("write_bytes", rate(of("disk write bytes/sec"), 1.0));
}

fn disk(name: &str, of: &impl Fn(&str) -> Option<f64>) -> IntervalRow {
    let mut row = IntervalRow::new(&block::SCHEMA, name);
    row.set("device_kind", Some(Amount::Text(DeviceKind::Disk.name().to_owned())));
    transfers(&mut row, of);
    let mean = |each, counter| of(counter).map(|seconds| Amount::Each(each, seconds * SECOND_NS));
    row.set("read_ns", mean("read_ios", "avg. disk sec/read"));
    row.set("write_ns", mean("write_ios", "avg. disk sec/write"));
    row.set("queue_ns", rate(of("avg. disk queue length"), SECOND_NS));
    row.set("in_flight", level(of("current disk queue length"), 1.0));
    row
}
