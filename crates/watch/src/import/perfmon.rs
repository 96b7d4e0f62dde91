//! CSV of Windows Performance Monitor (`typeperf`, `logman`, `relog -f csv`): means of the interval
//! that ends with each row. Its counters are read by their English names.

use std::collections::BTreeMap;

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
const DISK: &str = "PhysicalDisk(";
const TOTAL: &str = "_Total";
const OTHERS: &str = "only the counters of PhysicalDisk, Processor, Memory, System and Network \
                      Interface are read";

fn has_disks(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or_default();
    first.starts_with("\"(PDH-CSV") && first.contains(DISK)
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
    has_others: bool,
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
            let is_read = ["PhysicalDisk", "Processor", "Memory", "System", "Network Interface"];
            headings.has_others |= !is_read.contains(&object);
            let of = (object.to_owned(), instance.to_owned());
            headings.columns.entry(of).or_default().insert(counter.to_owned(), at);
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
    notes.extend(headings.has_others.then(|| OTHERS.to_owned()));
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
            object == "Processor" && instance.bytes().all(|b| b.is_ascii_digit())
        };
        u32::try_from(self.columns.keys().filter(is_one).count()).ok().filter(|it| *it > 0)
    }

    fn rows(&self, cells: &[String]) -> Vec<IntervalRow> {
        let of = |object: &str, instance: &str, counter: &str| {
            let columns = self.columns.get(&(object.to_owned(), instance.to_owned()))?;
            number(&cells[*columns.get(counter)?])
        };
        let cpu = |counter: &str| of("Processor", TOTAL, counter);
        let cpus = self.processors();
        let mut host = steps::of_host();
        host.set("cpu_user_ns", share(cpu("% User Time"), cpus));
        host.set("cpu_system_ns", share(cpu("% Privileged Time"), cpus));
        host.set("cpu_idle_ns", share(cpu("% Idle Time"), cpus));
        host.set("switches", rate(of("System", "", "Context Switches/sec"), 1.0));
        host.set("interrupts", rate(cpu("Interrupts/sec"), 1.0));
        let mut rows = vec![host];
        let available = of("Memory", "", "Available MBytes").map(|it| it * MIB);
        let available = of("Memory", "", "Available Bytes").or(available);
        if available.is_some() {
            let mut row = IntervalRow::new(&memory::SCHEMA, "");
            row.set("available_bytes", level(available, 1.0));
            rows.push(row);
        }
        for (object, instance) in self.columns.keys() {
            let of = |counter: &str| of(object, instance, counter);
            match object.as_str() {
                "PhysicalDisk" if instance == TOTAL => {
                    let mut row = steps::together();
                    transfers(&mut row, &of);
                    rows.push(row);
                }
                "PhysicalDisk" => rows.push(disk(instance, &of)),
                "Network Interface" => {
                    let mut row = IntervalRow::new(&network::SCHEMA, instance);
                    row.set("received_bytes", rate(of("Bytes Received/sec"), 1.0));
                    row.set("received_packets", rate(of("Packets Received/sec"), 1.0));
                    row.set("sent_bytes", rate(of("Bytes Sent/sec"), 1.0));
                    row.set("sent_packets", rate(of("Packets Sent/sec"), 1.0));
                    rows.push(row);
                }
                _ => {}
            }
        }
        rows
    }
}

fn transfers(row: &mut IntervalRow, of: &impl Fn(&str) -> Option<f64>) {
    row.set("read_ios", rate(of("Disk Reads/sec"), 1.0));
    row.set("read_bytes", rate(of("Disk Read Bytes/sec"), 1.0));
    row.set("write_ios", rate(of("Disk Writes/sec"), 1.0));
    row.set("write_bytes", rate(of("Disk Write Bytes/sec"), 1.0));
}

fn disk(name: &str, of: &impl Fn(&str) -> Option<f64>) -> IntervalRow {
    let mut row = IntervalRow::new(&block::SCHEMA, name);
    row.set("device_kind", Some(Amount::Text(DeviceKind::Disk.name().to_owned())));
    transfers(&mut row, of);
    let mean = |each, counter| of(counter).map(|seconds| Amount::Each(each, seconds * SECOND_NS));
    row.set("read_ns", mean("read_ios", "Avg. Disk sec/Read"));
    row.set("write_ns", mean("write_ios", "Avg. Disk sec/Write"));
    row.set("queue_ns", rate(of("Avg. Disk Queue Length"), SECOND_NS));
    row.set("in_flight", level(of("Current Disk Queue Length"), 1.0));
    row
}
