//! iostat's reports as JSON or text: rates over the interval since the previous report. The first
//! report, which covers all the time since boot, only marks the start of the next interval.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockstone_base::identity::{DeviceKind, Host};
use blockstone_probe::{block, host};
use serde_json::{Map, Value};

use super::ledger::{Amount, IntervalRow, Ledger, Timeline};
use super::sysstat::{Disks, Document, Figures, KIB};
use super::text::Text;
use super::{Failure, Format, Origin, Sink, stamp};

pub const JSON: Format = Format {
    tool: "iostat",
    holds: HOLDS,
    goes_on: false,
    made_by: "iostat's JSON (S_TIME_FORMAT=ISO iostat -o JSON -x -t 1)",
    recognises: |text| text.trim_start().starts_with('{') && text.contains("\"sysstat\""),
    read: json,
};

pub const TEXT: Format = Format {
    tool: "iostat",
    holds: HOLDS,
    goes_on: false,
    made_by: "iostat's text (S_TIME_FORMAT=ISO iostat -x -t 1)",
    recognises: |text| text.starts_with(TITLE) && text.contains("\nDevice"),
    read: plain,
};

const HOLDS: &str = "rates of intervals, rounded to two decimals";
/// Prefix of iostat's first line.
const TITLE: &str = "Linux ";
const NO_TIME: &str = "a report without a time: run iostat with -t";
const SECTOR_BYTES: f64 = 512.0;
const MIB: f64 = KIB * 1024.0;
const SECOND_NS: f64 = 1e9;
const MS_NS: f64 = 1e6;
const PERCENT_NS: f64 = SECOND_NS / 100.0;

/// Rates whose product with the interval is a whole count.
const COUNTS: [&str; 5] = ["r/s", "w/s", "d/s", "f/s", "tps"];

/// A column of a disk: its names in versions of iostat, each with the factor to our unit, and, for
/// a mean, the column of the events that it is over.
struct OfDisk {
    column: &'static str,
    keys: &'static [(&'static str, f64)],
    each: Option<&'static str>,
}

const fn rate(column: &'static str, keys: &'static [(&'static str, f64)]) -> OfDisk {
    OfDisk { column, keys, each: None }
}

const fn mean(
    column: &'static str,
    each: &'static str,
    keys: &'static [(&'static str, f64)],
) -> OfDisk {
    OfDisk { column, keys, each: Some(each) }
}

const COLUMNS: usize = 14;
/// In the order of our columns.
static OF_DISK: [OfDisk; COLUMNS] = [
    rate("read_ios", &[("r/s", 1.0)]),
    rate("read_merges", &[("rrqm/s", 1.0)]),
    rate(
        "read_bytes",
        &[("rkB/s", KIB), ("rMB/s", MIB), ("rsec/s", SECTOR_BYTES), ("kB_read/s", KIB)],
    ),
    mean("read_ns", "read_ios", &[("r_await", MS_NS)]),
    rate("write_ios", &[("w/s", 1.0)]),
    rate("write_merges", &[("wrqm/s", 1.0)]),
    rate(
        "write_bytes",
        &[("wkB/s", KIB), ("wMB/s", MIB), ("wsec/s", SECTOR_BYTES), ("kB_wrtn/s", KIB)],
    ),
    mean("write_ns", "write_ios", &[("w_await", MS_NS)]),
    rate("busy_ns", &[("util", PERCENT_NS)]),
    rate("queue_ns", &[("aqu-sz", SECOND_NS), ("avgqu-sz", SECOND_NS)]),
    rate("discard_ios", &[("d/s", 1.0)]),
    rate(
        "discard_bytes",
        &[("dkB/s", KIB), ("dMB/s", MIB), ("dsec/s", SECTOR_BYTES), ("kB_dscd/s", KIB)],
    ),
    rate("flush_ios", &[("f/s", 1.0)]),
    mean("flush_ns", "flush_ios", &[("f_await", MS_NS)]),
];

/// One report: shares of processor time, and figures of disks, by iostat's names.
#[derive(Debug, Default)]
struct Report {
    line: usize,
    time: String,
    processors: Held,
    disks: BTreeMap<String, Held>,
}

/// Figures as read.
#[derive(Debug)]
enum Held {
    Json(Map<String, Value>),
    Row(Arc<Headings>, Vec<f64>),
}

/// Headings of the numbers of a line, and the positions of the figures used for a disk.
#[derive(Debug)]
struct Headings {
    names: Vec<String>,
    /// Position and factor to our unit, by index of [`OF_DISK`].
    of_disk: [Option<(usize, f64)>; COLUMNS],
    counts: [Option<usize>; COUNTS.len()],
}

impl Headings {
    fn new(names: Vec<String>) -> Self {
        let at = |key: &str| names.iter().position(|name| name == key);
        let find = |of: &OfDisk| of.keys.iter().find_map(|(key, size)| Some((at(key)?, *size)));
        let of_disk = OF_DISK.each_ref().map(find);
        let counts = COUNTS.map(at);
        Self { names, of_disk, counts }
    }
}

impl Default for Held {
    fn default() -> Self {
        Self::Json(Map::new())
    }
}

impl Held {
    fn figures(&self) -> Figures<'_> {
        match self {
            Self::Json(object) => Figures::Json(object),
            Self::Row(headings, numbers) => Figures::Row(&headings.names, numbers),
        }
    }

    /// Returns the rates of [`COUNTS`] that are present.
    fn counts(&self) -> impl Iterator<Item = f64> {
        let found = match self {
            Self::Json(_) => COUNTS.map(|key| self.figures().number(key)),
            Self::Row(headings, numbers) => headings.counts.map(|at| known(numbers[at?])),
        };
        found.into_iter().flatten()
    }

    /// Returns the figure at an index of [`OF_DISK`].
    fn of_disk(&self, index: usize) -> Option<Amount> {
        let OfDisk { keys, each, .. } = &OF_DISK[index];
        let found = match self {
            Self::Json(_) => {
                keys.iter().find_map(|(key, size)| Some(self.figures().number(key)? * size))
            }
            Self::Row(headings, numbers) => {
                let (at, size) = headings.of_disk[index]?;
                known(numbers[at]).map(|number| number * size)
            }
        }?;
        Some(each.map_or(Amount::PerSecond(found), |each| Amount::Each(each, found)))
    }
}

fn known(number: f64) -> Option<f64> {
    (number >= 0.0).then_some(number)
}

fn json(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let (head, mut document) = Document::open(text)?;
    let host = head.host();
    let mut intervals = Intervals::new(host.cpus, sink);
    while let Some((line, mut report)) = document.next()? {
        let time = report.get("timestamp").and_then(Value::as_str);
        let damage = || Failure::Damage { line, what: NO_TIME.to_owned() };
        let time = time.ok_or_else(damage)?.to_owned();
        let object = |value: Option<Value>| match value {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        };
        let processors = Held::Json(object(report.remove("avg-cpu")));
        let mut disks = BTreeMap::new();
        let list = report.get_mut("disk").and_then(Value::as_array_mut);
        for figures in list.into_iter().flatten().map(|disk| object(Some(disk.take()))) {
            let name = figures.get("disk_device").and_then(Value::as_str).unwrap_or_default();
            disks.insert(name.to_owned(), Held::Json(figures));
        }
        intervals.add(&Report { line, time, processors, disks })?;
    }
    let mut notes = intervals.notes();
    notes.extend(document.note());
    Ok(Origin { host, notes, tool_version: None })
}

fn plain(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let host = host_of(text.next_line()?.unwrap_or_default());
    let mut intervals = Intervals::new(host.cpus, sink);
    let mut report: Option<Report> = None;
    let mut reader = Lines::default();
    let mut is_closed = false;
    while let Some((number, is_cut, line)) = text.next_numbered()? {
        // iostat ends each report with an empty line.
        is_closed = line.is_empty() && !is_cut;
        if line.trim().is_empty() {
            reader.headings = None;
        } else if is_cut {
            // Its last number may lack digits.
        } else if line.starts_with(TITLE) {
            // Another iostat appended to the same file.
            report.take().map_or(Ok(()), |whole| intervals.add(&whole))?;
            intervals.begin();
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && stamp::parse(line).is_some() {
            let next = Report { line: number, time: line.to_owned(), ..Report::default() };
            if let Some(whole) = report.replace(next) {
                intervals.add(&whole)?;
            }
        } else {
            let into = report.as_mut();
            let damage = |what| Failure::Damage { line: number, what };
            let into = into.ok_or_else(|| damage(NO_TIME.to_owned()))?;
            reader.read(line, into).map_err(damage)?;
        }
    }
    let mut notes = Vec::new();
    if let Some(report) = report {
        if is_closed && !text.is_cut() && !report.disks.is_empty() {
            intervals.add(&report)?;
        } else {
            let note = "the file is truncated: the incomplete report of line";
            notes.push(format!("{note} {} was skipped", report.line));
        }
    }
    notes.extend(intervals.notes());
    Ok(Origin { host, notes, tool_version: None })
}

#[derive(Default)]
struct Lines {
    /// Headings of the following lines, and whether these start with a disk's name.
    headings: Option<(Arc<Headings>, bool)>,
}

impl Lines {
    fn read(&mut self, line: &str, report: &mut Report) -> Result<(), String> {
        let line = line.trim_ascii();
        let (first, rest) =
            line.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((line, ""));
        if matches!(first, "avg-cpu:" | "Device" | "Device:") {
            let names = rest.split_ascii_whitespace();
            let names = names.map(|word| word.trim_start_matches('%').to_owned()).collect();
            self.headings = Some((Arc::new(Headings::new(names)), first.starts_with("Device")));
            return Ok(());
        }
        let Some((headings, is_disk)) = &self.headings else {
            return Err(format!("`{}` is not a line of iostat", line.trim()));
        };
        let numbers = numbers(if *is_disk { rest } else { line })
            .map_err(|value| format!("`{value}` in `{}` is not a number", line.trim()))?;
        let (has, wants) = (numbers.len(), headings.names.len());
        if has != wants {
            return Err(format!("`{}` has {has} numbers for {wants} headings", line.trim()));
        }
        let row = Held::Row(Arc::clone(headings), numbers);
        if *is_disk {
            report.disks.insert(first.to_owned(), row);
        } else {
            report.processors = row;
        }
        Ok(())
    }
}

/// Parses the numbers of a line; the error is the first word that is not a number.
fn numbers(line: &str) -> Result<Vec<f64>, &str> {
    let mut numbers = Vec::with_capacity(NUMBERS);
    for word in line.split_ascii_whitespace() {
        // Some locales use a decimal comma.
        let other = || word.parse().or_else(|_| word.replace(',', ".").parse()).ok();
        numbers.push(decimal(word.as_bytes()).or_else(other).ok_or(word)?);
    }
    Ok(numbers)
}

/// Approximate count of numbers in a line of `iostat -x`.
const NUMBERS: usize = 24;
/// With up to this many digits, the digits and the power of ten are exact, so their quotient is the
/// double nearest to the written number.
const EXACT: usize = 15;
const TENS: [f64; EXACT + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Parses a number of digits with an optional decimal point: the fast path, as a line has two
/// dozen.
fn decimal(word: &[u8]) -> Option<f64> {
    let (mut whole, mut digits, mut point) = (0_u64, 0, None);
    for byte in word {
        match byte {
            b'0'..=b'9' if digits < EXACT => {
                whole = whole * 10 + u64::from(byte - b'0');
                digits += 1;
            }
            b'.' if point.is_none() => point = Some(digits),
            _ => return None,
        }
    }
    let behind = digits - point.unwrap_or(digits);
    (digits > 0).then(|| whole as f64 / TENS[behind])
}

/// Parses `Linux 6.18.44 (name) <tab> 2026-11-22 <tab> _x86_64_ <tab> (2 CPU)`.
fn host_of(line: &str) -> Host {
    let between = |open: char, close: char, part: &str| {
        let rest = part.split_once(open)?.1;
        Some(rest.split_once(close)?.0.to_owned())
    };
    let mut words = line.split_whitespace();
    let cpus = line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(' '));
    let cpus = cpus.and_then(|(count, _)| count.parse().ok()).unwrap_or_default();
    Host {
        kernel: words.nth(1).unwrap_or_default().to_owned(),
        hostname: between('(', ')', line).unwrap_or_default(),
        architecture: words
            .find_map(|word| word.strip_prefix('_')?.strip_suffix('_'))
            .unwrap_or_default()
            .to_owned(),
        cpus,
        cpus_allowed_milli: u32::saturating_mul(cpus, 1000),
        ..Host::default()
    }
}

struct Intervals<'a, 's> {
    cpus: u32,
    disks: Disks,
    ledger: Ledger<'a, 's>,
    line: Timeline,
    last_ns: Option<u64>,
    /// Whether the next report covers all the time since boot.
    is_first: bool,
    backwards: usize,
    without_zone: bool,
}

impl<'a, 's> Intervals<'a, 's> {
    fn new(cpus: u32, sink: &'a mut Sink<'s>) -> Self {
        Self {
            cpus,
            disks: Disks::default(),
            ledger: Ledger::new(sink),
            line: Timeline::default(),
            last_ns: None,
            is_first: true,
            backwards: 0,
            without_zone: false,
        }
    }

    fn add(&mut self, report: &Report) -> Result<(), Failure> {
        let Some((at_ns, zoned)) = stamp::parse(&report.time) else {
            let time = &report.time;
            let what = format!(
                "`{time}` is not a known format of time; run iostat with S_TIME_FORMAT=ISO"
            );
            return Err(Failure::Damage { line: report.line, what });
        };
        self.without_zone |= !zoned;
        if self.last_ns.is_some_and(|last_ns| at_ns <= last_ns) {
            self.backwards += 1;
            return Ok(());
        }
        let last_ns = self.last_ns.replace(at_ns).filter(|_| !self.is_first);
        let Some(last_ns) = last_ns else {
            self.is_first = false;
            self.line.restart(at_ns);
            return Ok(());
        };
        let counts: Vec<f64> = report.disks.values().flat_map(Held::counts).collect();
        let span = self.line.next(at_ns, at_ns - last_ns, &counts);
        let mut rows = vec![processors(&report.processors.figures(), f64::from(self.cpus))];
        self.disks.list(report.disks.keys().map(String::as_str));
        for (name, figures) in &report.disks {
            rows.push(of_disk(name, self.disks.row(name), figures));
        }
        self.ledger.add(span, &rows)
    }

    fn begin(&mut self) {
        self.is_first = true;
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.without_zone {
            notes.push(stamp::NO_ZONE.to_owned());
        }
        if self.backwards > 0 {
            let count = self.backwards;
            notes.push(format!("its clock went back; reports skipped: {count}"));
        }
        notes
    }
}

/// Returns the row of the host. iostat counts guests with `user` and interrupts with `system`.
fn processors(figures: &Figures<'_>, count: f64) -> IntervalRow {
    let mut row = IntervalRow::new(&host::SCHEMA, "");
    for (column, key) in [
        ("cpu_user_ns", "user"),
        ("cpu_nice_ns", "nice"),
        ("cpu_system_ns", "system"),
        ("cpu_iowait_ns", "iowait"),
        ("cpu_idle_ns", "idle"),
        ("cpu_steal_ns", "steal"),
    ] {
        row.set(column, figures.share(&[key], count));
    }
    row
}

fn of_disk(name: &str, mut row: IntervalRow, figures: &Held) -> IntervalRow {
    // For other devices the kernel does not count flushes, and iostat prints zeros.
    let flushes = matches!(block::kind_by_name(name), Some(DeviceKind::Disk | DeviceKind::Loop));
    for (index, of) in OF_DISK.iter().enumerate() {
        if flushes || !of.column.starts_with("flush_") {
            row.set(of.column, figures.of_disk(index));
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use blockstone_base::rng::Rng;

    use super::*;

    #[test]
    fn numbers_are_those_next_to_what_is_written() {
        let mut random = Rng::new(1, 0);
        for _ in 0..10_000 {
            let digits = random.below(17) as u32;
            let whole = random.below(10_u64.pow(digits));
            let fraction = random.below(1000);
            for text in [format!("{whole}.{fraction}"), format!("{whole}"), format!("{whole}.")] {
                let expected: f64 = text.parse().unwrap();
                assert_eq!(numbers(&text), Ok(vec![expected]), "{text}");
            }
        }
        assert_eq!(numbers("  1.50  0,25 .5\t1e3 -2 "), Ok(vec![1.5, 0.25, 0.5, 1000.0, -2.0]));
        assert_eq!(numbers(" "), Ok(vec![]));
        for word in [".", "1.2.3", "x", "0x7", "1_0"] {
            assert_eq!(numbers(&format!("1.00 {word} 2")), Err(word));
        }
    }
}
