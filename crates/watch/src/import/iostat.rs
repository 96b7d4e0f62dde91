//! iostat's reports as JSON or text: rates of the interval since the report before. The first,
//! which covers all the time since boot, only marks where the next interval begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockstone_base::identity::{DeviceKind, Host};
use blockstone_probe::{block, host};
use serde_json::{Map, Value};

use super::ledger::{IntervalRow, Ledger, Timeline};
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
/// How iostat's first line begins.
const TITLE: &str = "Linux ";
const NO_TIME: &str = "a report without a time: run iostat with -t";
const SECTOR_BYTES: f64 = 512.0;
const MIB: f64 = KIB * 1024.0;
const SECOND_NS: f64 = 1e9;

/// One report: shares of processor time, and figures of disks, by the names iostat gives them.
#[derive(Debug, Default)]
struct Report {
    line: usize,
    time: String,
    processors: Held,
    disks: BTreeMap<String, Held>,
}

/// Figures as they were read.
#[derive(Debug)]
enum Held {
    Json(Map<String, Value>),
    Row(Arc<[String]>, Vec<f64>),
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
            Self::Row(headings, numbers) => Figures::Row(headings, numbers),
        }
    }
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
    /// What the numbers of the next lines are, and whether a disk's name stands before them.
    headings: Option<(Arc<[String]>, bool)>,
}

impl Lines {
    fn read(&mut self, line: &str, report: &mut Report) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if matches!(first, "avg-cpu:" | "Device" | "Device:") {
            let names = words.map(|word| word.trim_start_matches('%').to_owned());
            self.headings = Some((names.collect(), first.starts_with("Device")));
            return Ok(());
        }
        let Some((headings, is_disk)) = &self.headings else {
            return Err(format!("`{}` is not a line of iostat", line.trim()));
        };
        let number = |value: &str| {
            // Some locales write a comma.
            let parsed = value.parse().or_else(|_| value.replace(',', ".").parse());
            parsed.map_err(|_| format!("`{value}` in `{}` is not a number", line.trim()))
        };
        let mut numbers: Vec<f64> = Vec::with_capacity(headings.len());
        for value in line.split_ascii_whitespace().skip(usize::from(*is_disk)) {
            numbers.push(number(value)?);
        }
        let (has, wants) = (numbers.len(), headings.len());
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

/// `Linux 6.18.44 (name) <tab> 2026-11-22 <tab> _x86_64_ <tab> (2 CPU)`.
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
        let disks = report.disks.values().map(Held::figures);
        let counts: Vec<f64> = disks
            .flat_map(|disk| ["r/s", "w/s", "d/s", "f/s", "tps"].map(|key| disk.number(key)))
            .flatten()
            .collect();
        let span = self.line.next(at_ns, at_ns - last_ns, &counts);
        let mut rows = vec![processors(&report.processors.figures(), f64::from(self.cpus))];
        self.disks.list(report.disks.keys().map(String::as_str));
        for (name, figures) in &report.disks {
            rows.push(of_disk(name, self.disks.row(name), &figures.figures()));
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

/// iostat counts guests with `user` and interrupts with `system`.
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

fn of_disk(name: &str, mut row: IntervalRow, figures: &Figures<'_>) -> IntervalRow {
    let one = |key: &str| figures.rate(&[(key, 1.0)]);
    row.set("read_ios", one("r/s"));
    row.set("read_merges", one("rrqm/s"));
    let sizes = [("rkB/s", KIB), ("rMB/s", MIB), ("rsec/s", SECTOR_BYTES), ("kB_read/s", KIB)];
    row.set("read_bytes", figures.rate(&sizes));
    row.set("read_ns", figures.mean("read_ios", "r_await"));
    row.set("write_ios", one("w/s"));
    row.set("write_merges", one("wrqm/s"));
    let sizes = [("wkB/s", KIB), ("wMB/s", MIB), ("wsec/s", SECTOR_BYTES), ("kB_wrtn/s", KIB)];
    row.set("write_bytes", figures.rate(&sizes));
    row.set("write_ns", figures.mean("write_ios", "w_await"));
    row.set("discard_ios", one("d/s"));
    let sizes = [("dkB/s", KIB), ("dMB/s", MIB), ("dsec/s", SECTOR_BYTES), ("kB_dscd/s", KIB)];
    row.set("discard_bytes", figures.rate(&sizes));
    // For other devices the kernel counts no flushes, and iostat prints zeros.
    if matches!(block::kind_by_name(name), Some(DeviceKind::Disk | DeviceKind::Loop)) {
        row.set("flush_ios", one("f/s"));
        row.set("flush_ns", figures.mean("flush_ios", "f_await"));
    }
    row.set("queue_ns", figures.rate(&[("aqu-sz", SECOND_NS), ("avgqu-sz", SECOND_NS)]));
    row.set("busy_ns", figures.share(&["util"], 1.0));
    row
}
