//! collectl's plot files (`collectl -P`): figures of intervals in columns such as
//! `[DSK:sda]Reads`, rounded to whole numbers.

use std::collections::BTreeMap;

use blockstone_probe::{cpu, memory, network};

use super::collectl;
use super::instant;
use super::ledger::{Amount, IntervalRow};
use super::steps::{self, Steps, level, number, rate, share};
use super::sysstat::Disks;
use super::text::Text;
use super::{Failure, Format, Origin, Sink};

pub const FORMAT: Format = Format {
    tool: "collectl -P",
    holds: "figures of intervals, rounded to whole numbers",
    goes_on: false,
    made_by: "collectl's plot files (collectl -P -sDcmnt -f DIR)",
    recognises: |text| text.lines().any(is_heading),
    read,
};

const KIB: f64 = 1024.0;
const MS_NS: f64 = 1e6;
const PERCENT_NS: f64 = 1e7;
const PPM: f64 = 1e6;
const SECOND_NS: u64 = 1_000_000_000;
const NO_HEAD: &str = "it has no head: the first interval and the time of processors are unknown";

/// Column of a series, its name here, and the factor to our unit.
type Of = (&'static str, &'static str, f64);

const OF_DISK: [Of; 7] = [
    ("read_ios", "Reads", 1.0),
    ("read_merges", "RMerge", 1.0),
    ("read_bytes", "RKBytes", KIB),
    ("write_ios", "Writes", 1.0),
    ("write_merges", "WMerge", 1.0),
    ("write_bytes", "WKBytes", KIB),
    ("busy_ns", "Util", PERCENT_NS),
];
const OF_ALL_DISKS: [Of; 4] = [
    ("read_ios", "ReadTot", 1.0),
    ("read_bytes", "ReadKBTot", KIB),
    ("write_ios", "WriteTot", 1.0),
    ("write_bytes", "WriteKBTot", KIB),
];
const OF_INTERFACE: [Of; 6] = [
    ("received_bytes", "RxKB", KIB),
    ("received_packets", "RxPkt", 1.0),
    ("receive_drops", "RxDrp", 1.0),
    ("sent_bytes", "TxKB", KIB),
    ("sent_packets", "TxPkt", 1.0),
    ("send_drops", "TxDrp", 1.0),
];
const OF_PROCESSOR: [Of; 8] = [
    ("cpu_user_ns", "User%", 1.0),
    ("cpu_nice_ns", "Nice%", 1.0),
    ("cpu_system_ns", "Sys%", 1.0),
    ("cpu_irq_ns", "Irq%", 1.0),
    ("cpu_softirq_ns", "Soft%", 1.0),
    ("cpu_iowait_ns", "Wait%", 1.0),
    ("cpu_idle_ns", "Idle%", 1.0),
    ("cpu_steal_ns", "Steal%", 1.0),
];
const MEMORY_LEVELS: [Of; 8] = [
    ("memory_bytes", "Tot", KIB),
    ("free_bytes", "Free", KIB),
    ("buffers_bytes", "Buf", KIB),
    ("file_cache_bytes", "Cached", KIB),
    ("anonymous_bytes", "Anon", KIB),
    ("slab_bytes", "Slab", KIB),
    ("swap_total_bytes", "SwapTot", KIB),
    ("swap_free_bytes", "SwapFree", KIB),
];
const MEMORY_RATES: [Of; 4] = [
    ("paged_in_bytes", "PageIn", KIB),
    ("paged_out_bytes", "PageOut", KIB),
    ("page_faults", "PageFaults", 1.0),
    ("major_page_faults", "PageMajFaults", 1.0),
];

/// Columns of all processors that the series of the host has.
const OF_HOST: [&str; 8] =
    ["Intrpt/sec", "Ctx/sec", "Proc/sec", "RunTot", "BlkTot", "L-Avg1", "L-Avg5", "L-Avg15"];

fn is_heading(line: &str) -> bool {
    line.starts_with("#Date") || line.starts_with("#UTC")
}

/// Headings of the columns, by what they are about: `DSK:sda`, `CPU`.
#[derive(Default)]
struct Headings {
    separator: char,
    wants: usize,
    columns: BTreeMap<String, BTreeMap<String, usize>>,
    disks: Vec<String>,
    left_out: Vec<String>,
}

impl Headings {
    /// Reads `#Date Time [CPU]User% …`, with any separator.
    fn read(line: &str) -> Self {
        let words = line.trim_start_matches('#');
        let separator = words.trim_start_matches(char::is_alphanumeric).chars().next();
        let separator = separator.unwrap_or(' ');
        let mut headings = Self { separator, ..Self::default() };
        for (at, word) in words.split(separator).enumerate() {
            headings.wants = at + 1;
            let named = word.strip_prefix('[').and_then(|word| word.split_once(']'));
            if let Some((about, name)) = named {
                if !is_read(about, name) {
                    headings.left_out.push(word.to_owned());
                }
                let about = headings.columns.entry(about.to_owned()).or_default();
                about.insert(name.to_owned(), at);
            }
        }
        let disks = headings.columns.keys().filter_map(|about| about.strip_prefix("DSK:"));
        headings.disks = disks.map(str::to_owned).collect();
        headings
    }
}

/// Whether a series has such a column.
fn is_read(about: &str, name: &str) -> bool {
    let has = |all: &[Of]| all.iter().any(|(_, of, _)| *of == name);
    match about.split(':').next().unwrap_or_default() {
        "CPU" => has(&OF_PROCESSOR) || !about.contains(':') && OF_HOST.contains(&name),
        "DSK" if about.contains(':') => has(&OF_DISK) || matches!(name, "Name" | "WaitR" | "WaitW"),
        "DSK" => has(&OF_ALL_DISKS),
        "NET" if about.contains(':') => has(&OF_INTERFACE) || name == "Name",
        "MEM" => has(&MEMORY_LEVELS) || has(&MEMORY_RATES) || name == "Dirty",
        _ => false,
    }
}

struct Reader {
    origin: Origin,
    /// Seconds of an interval, by the head.
    interval_s: Option<f64>,
    offset_s: Option<i64>,
    headings: Headings,
    disks: Disks,
    is_first: bool,
    without_zone: bool,
}

fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let mut steps = Steps::new(sink);
    let mut reader = Reader {
        origin: Origin::default(),
        interval_s: None,
        offset_s: None,
        headings: Headings::default(),
        disks: Disks::default(),
        is_first: true,
        without_zone: false,
    };
    while let Some((line, is_cut, row)) = text.next_numbered()? {
        let damage = |what| Failure::Damage { line, what };
        if is_heading(row) {
            reader.headings = Headings::read(row);
            let names = reader.headings.disks.iter().map(String::as_str);
            reader.disks.list(names);
            // collectl writes its headings again when it starts again.
            reader.is_first = true;
        } else if row.starts_with('#') {
            collectl::head(row, &mut reader.origin);
            reader.head(row);
        } else if !is_cut && !row.trim().is_empty() {
            let at_ns = reader.time(row).ok_or_else(|| {
                let words: String = row.chars().take(40).collect();
                damage(format!("`{words}` does not begin with a time of collectl"))
            })?;
            let cells: Vec<&str> = row.split(reader.headings.separator).collect();
            let (has, wants) = (cells.len(), reader.headings.wants);
            if has < wants {
                return Err(damage(format!("{has} values for {wants} headings")));
            }
            if std::mem::take(&mut reader.is_first) {
                reader.begin(at_ns, &mut steps);
            }
            steps.add(at_ns, &reader.rows(&cells))?;
        }
    }
    let mut notes = Vec::new();
    if text.is_cut() {
        notes.push("the file is truncated: its last row was skipped".to_owned());
    }
    notes.extend(reader.without_zone.then(|| instant::NO_ZONE.to_owned()));
    notes.extend(reader.interval_s.is_none().then(|| NO_HEAD.to_owned()));
    if !reader.headings.left_out.is_empty() {
        let names = steps::list(&reader.headings.left_out);
        notes.push(format!("columns that were not read: {names}"));
    }
    notes.extend(steps.note());
    Ok(Origin { notes, ..reader.origin })
}

impl Reader {
    /// Reads a line of the head: `# Date: 20261122-101635  Secs: 1795342595 TZ: +0000`.
    fn head(&mut self, line: &str) {
        let value = |name: &str| line.split_once(name)?.1.split_whitespace().next();
        if let Some(interval) = value("Interval:") {
            // The intervals of processes and of the environment may follow: `1:60`.
            let first = interval.split(':').next().unwrap_or_default();
            self.interval_s = number(first).filter(|seconds| *seconds > 0.0);
        }
        if let Some(zone) = value("TZ:") {
            self.offset_s = offset_s(zone);
        }
    }

    /// Returns the time of a row in nanoseconds since 1970.
    fn time(&mut self, row: &str) -> Option<u64> {
        let mut words = row.split(self.headings.separator);
        let first = words.next()?;
        if first.contains('.') || first.len() > 8 && first.bytes().all(|b| b.is_ascii_digit()) {
            return instant::epoch(number(first)?);
        }
        let date = match (first.len(), first.is_ascii()) {
            (8, true) if !first.contains('/') => {
                format!("{}-{}-{}", &first[..4], &first[4..6], &first[6..])
            }
            _ => first.to_owned(),
        };
        let instant = instant::parse(&format!("{date} {}", words.next()?), None)?;
        let offset_ns = self.offset_s.unwrap_or_default() * SECOND_NS as i64;
        self.without_zone |= self.offset_s.is_none();
        instant.at_ns.checked_add_signed(-offset_ns)
    }

    fn begin(&self, at_ns: u64, steps: &mut Steps<'_, '_>) {
        steps.restart();
        let length_ns = self.interval_s.map(|seconds| (seconds * SECOND_NS as f64) as u64);
        let from_ns = length_ns.and_then(|length_ns| at_ns.checked_sub(length_ns));
        if let Some(from_ns) = from_ns.filter(|from_ns| *from_ns < at_ns) {
            steps.begin(from_ns);
        }
    }

    fn rows(&self, cells: &[&str]) -> Vec<IntervalRow> {
        let cpus = Some(self.origin.host.cpus).filter(|cpus| *cpus > 0);
        let mut rows = vec![self.host(cells, cpus)];
        let columns = &self.headings.columns;
        let get = |about: &BTreeMap<String, usize>, name: &str| {
            about.get(name).and_then(|at| number(cells[*at]))
        };
        for (name, about) in columns {
            let fill = |row: &mut IntervalRow, of: &[Of]| {
                for (column, name, unit) in of {
                    row.set(column, rate(get(about, name), *unit));
                }
            };
            let row = if let Some(disk) = name.strip_prefix("DSK:") {
                let mut row = self.disks.row(disk);
                fill(&mut row, &OF_DISK);
                for (column, each, wait) in
                    [("read_ns", "read_ios", "WaitR"), ("write_ns", "write_ios", "WaitW")]
                {
                    let wait = get(about, wait).map(|ms| Amount::Each(each, ms * MS_NS));
                    row.set(column, wait);
                }
                row
            } else if let Some(interface) = name.strip_prefix("NET:") {
                let mut row = IntervalRow::new(&network::SCHEMA, interface);
                fill(&mut row, &OF_INTERFACE);
                row
            } else if let Some(number) = name.strip_prefix("CPU:") {
                let mut row = IntervalRow::new(&cpu::SCHEMA, &format!("cpu{number}"));
                for (column, name, _) in OF_PROCESSOR {
                    row.set(column, share(get(about, name), Some(1)));
                }
                row
            } else if name == "DSK" {
                let mut row = steps::together();
                fill(&mut row, &OF_ALL_DISKS);
                row
            } else if name == "MEM" {
                let mut row = IntervalRow::new(&memory::SCHEMA, "");
                for (column, name, unit) in MEMORY_LEVELS {
                    row.set(column, level(get(about, name), unit));
                }
                fill(&mut row, &MEMORY_RATES);
                row
            } else {
                continue;
            };
            rows.push(row);
        }
        rows
    }

    fn host(&self, cells: &[&str], cpus: Option<u32>) -> IntervalRow {
        let of = |about: &str, name: &str| {
            let at = self.headings.columns.get(about)?.get(name)?;
            number(cells[*at])
        };
        let cpu = |name: &str| of("CPU", name);
        let mut host = steps::of_host();
        for (column, name, _) in OF_PROCESSOR {
            host.set(column, share(cpu(name), cpus));
        }
        host.set("switches", rate(cpu("Ctx/sec"), 1.0));
        // collectl does not count itself.
        host.set("runnable", level(cpu("RunTot").map(|others| others + 1.0), 1.0));
        host.set("blocked", level(cpu("BlkTot"), 1.0));
        host.set("interrupts", rate(cpu("Intrpt/sec"), 1.0));
        host.set("forks", rate(cpu("Proc/sec"), 1.0));
        host.set("load_one_minute_ppm", level(cpu("L-Avg1"), PPM));
        host.set("load_five_minutes_ppm", level(cpu("L-Avg5"), PPM));
        host.set("load_fifteen_minutes_ppm", level(cpu("L-Avg15"), PPM));
        host.set("dirty_bytes", level(of("MEM", "Dirty"), KIB));
        let cache = of("MEM", "Cached").zip(of("MEM", "Buf"));
        host.set("cached_bytes", level(cache.map(|(cached, buffers)| cached + buffers), KIB));
        host
    }
}

/// Parses the distance from UTC, such as `+0530`, into seconds.
fn offset_s(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, zone.strip_prefix('+')?),
    };
    let number: i64 = digits.parse().ok().filter(|_| digits.len() == 4)?;
    Some(sign * (number / 100 * 3600 + number % 100 * 60))
}
