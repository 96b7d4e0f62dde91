//! iostat's reports as JSON or text: rates over the interval since the previous report. The first
//! report, which covers all the time since boot, only marks the start of the next interval.

mod facts;
mod text;

use std::collections::HashMap;

use blockstone_base::identity::DeviceKind;
use blockstone_probe::{block, host};
use serde_json::{Map, Value};

use super::ledger::{Amount, IntervalRow, Ledger, Timeline};
use super::sysstat::{Disks, Document, KIB};
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
    recognises: text::recognises,
    read: text::read,
};

const HOLDS: &str = "rates of intervals, rounded to two decimals";
const NO_TIME: &str = "a report without a time among others with one";
const SECTOR_BYTES: f64 = 512.0;
const MIB: f64 = KIB * 1024.0;
const GIB: f64 = MIB * 1024.0;
const SECOND_NS: f64 = 1e9;
const MS_NS: f64 = 1e6;
const PERCENT_NS: f64 = SECOND_NS / 100.0;

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
        &[
            ("rkB/s", KIB),
            ("rMB/s", MIB),
            ("rGB/s", GIB),
            ("rsec/s", SECTOR_BYTES),
            ("kB_read/s", KIB),
            ("MB_read/s", MIB),
            ("GB_read/s", GIB),
            ("Blk_read/s", SECTOR_BYTES),
        ],
    ),
    mean("read_ns", "read_ios", &[("r_await", MS_NS)]),
    rate("write_ios", &[("w/s", 1.0)]),
    rate("write_merges", &[("wrqm/s", 1.0)]),
    rate(
        "write_bytes",
        &[
            ("wkB/s", KIB),
            ("wMB/s", MIB),
            ("wGB/s", GIB),
            ("wsec/s", SECTOR_BYTES),
            ("kB_wrtn/s", KIB),
            ("MB_wrtn/s", MIB),
            ("GB_wrtn/s", GIB),
            ("Blk_wrtn/s", SECTOR_BYTES),
        ],
    ),
    mean("write_ns", "write_ios", &[("w_await", MS_NS)]),
    rate("busy_ns", &[("util", PERCENT_NS)]),
    rate("queue_ns", &[("aqu-sz", SECOND_NS), ("avgqu-sz", SECOND_NS)]),
    rate("discard_ios", &[("d/s", 1.0)]),
    rate(
        "discard_bytes",
        &[
            ("dkB/s", KIB),
            ("dMB/s", MIB),
            ("dGB/s", GIB),
            ("dsec/s", SECTOR_BYTES),
            ("kB_dscd/s", KIB),
            ("MB_dscd/s", MIB),
            ("GB_dscd/s", GIB),
            ("Blk_dscd/s", SECTOR_BYTES),
        ],
    ),
    rate("flush_ios", &[("f/s", 1.0)]),
    mean("flush_ns", "flush_ios", &[("f_await", MS_NS)]),
];

/// Indices of bytes.
const OF_BYTES: [usize; 3] = [2, 6, 11];
/// All transfers together, of no column of ours.
const TRANSFERS: (&str, usize) = ("tps", COLUMNS);
/// Indices of rates whose product with the interval is a whole count.
const COUNTS: [usize; 5] = [0, 4, 10, 12, TRANSFERS.1];

/// Figures of a disk by index of [`OF_DISK`], in our units, and the transfers.
#[derive(Clone, Copy, Debug)]
struct Figures([Figure; COLUMNS + 1]);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    /// Not printed.
    Absent,
    /// [`f64::NAN`] if it is not a number.
    Printed(f64),
}

impl Default for Figures {
    fn default() -> Self {
        Self([Figure::Absent; COLUMNS + 1])
    }
}

impl Figures {
    fn set(&mut self, index: usize, number: f64) {
        self.0[index] = Figure::Printed(number);
    }

    fn counts(&self) -> impl Iterator<Item = f64> {
        let known = |index: usize| match self.0[index] {
            Figure::Printed(number) if number >= 0.0 => Some(number),
            _ => None,
        };
        COUNTS.into_iter().filter_map(known)
    }

    /// Takes over what another line of the same report printed of the same disk.
    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            if *mine == Figure::Absent {
                *mine = theirs;
            }
        }
    }

    /// Returns the same figures of a disk without a request.
    fn idle(&self) -> Self {
        Self(self.0.map(|figure| match figure {
            Figure::Absent => Figure::Absent,
            Figure::Printed(_) => Figure::Printed(0.0),
        }))
    }
}

/// Shares of processor time, in percent, in the order of [`OF_PROCESSORS`].
type Shares = [Option<f64>; OF_PROCESSORS.len()];

/// Columns of the host and iostat's names for them. iostat counts guests with `user` and interrupts
/// with `system`.
const OF_PROCESSORS: [(&str, &[&str]); 6] = [
    ("cpu_user_ns", &["user"]),
    ("cpu_nice_ns", &["nice"]),
    ("cpu_system_ns", &["system", "sys"]),
    ("cpu_iowait_ns", &["iowait"]),
    ("cpu_idle_ns", &["idle"]),
    ("cpu_steal_ns", &["steal"]),
];

/// One report.
#[derive(Debug, Default)]
struct Report {
    shares: Shares,
    disks: Vec<(Device, Figures)>,
    /// The place of each device among `disks`, from 1; 0 if it is not there.
    places: Vec<usize>,
}

/// Index of a device of a file.
type Device = usize;

impl Report {
    fn add(&mut self, device: Device, figures: Figures) {
        if self.places.len() <= device {
            self.places.resize(device + 1, 0);
        }
        match self.places[device] {
            0 => {
                self.disks.push((device, figures));
                self.places[device] = self.disks.len();
            }
            place => self.disks[place - 1].1.merge(&figures),
        }
    }

    fn has(&self, device: Device) -> bool {
        self.places.get(device).is_some_and(|place| *place > 0)
    }

    fn clear(&mut self) {
        self.shares = Shares::default();
        for (device, _) in self.disks.drain(..) {
            self.places[device] = 0;
        }
    }
}

/// The devices of a file, in the order in which they appeared.
#[derive(Debug, Default)]
struct Devices {
    names: Vec<String>,
    known: HashMap<String, Device>,
    /// The figures of each one in its last report.
    last: Vec<Figures>,
}

impl Devices {
    /// Returns the index of a device; `guess` is tried first.
    fn index(&mut self, name: &str, guess: usize) -> Device {
        if self.names.get(guess).is_some_and(|known| known == name) {
            return guess;
        }
        if let Some(&index) = self.known.get(name) {
            return index;
        }
        let index = self.names.len();
        self.known.insert(name.to_owned(), index);
        self.names.push(name.to_owned());
        self.last.push(Figures::default());
        index
    }
}

fn json(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let evidence = survey(text)?;
    let (head, mut document) = Document::open(text)?;
    let host = head.host();
    let mut intervals = Intervals::new(host.cpus, sink);
    let mut times = Times { evidence, without_zone: false, timed: 0, nominal: 0 };
    while let Some((line, interval)) = document.next()? {
        let time = interval.get("timestamp").and_then(Value::as_str);
        let damage = |what: String| Failure::Damage { line, what };
        let at_ns = match time {
            Some(time) => times.read(time).ok_or_else(|| damage(unknown_time(time)))?,
            None => times.nominal().ok_or_else(|| damage(NO_TIME.to_owned()))?,
        };
        let mut report = Report::default();
        let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
        if let Some(processors) = interval.get("avg-cpu").map(object) {
            report.shares = OF_PROCESSORS.map(|(_, keys)| number(&processors, keys));
        }
        for disk in interval.get("disk").and_then(Value::as_array).into_iter().flatten() {
            let disk = object(disk);
            let name = disk.get("disk_device").and_then(Value::as_str).unwrap_or_default();
            let device = intervals.devices.index(name, report.disks.len());
            report.add(device, figures(&disk));
        }
        intervals.add(&report, at_ns, || false)?;
    }
    let mut notes = times.notes();
    notes.extend(intervals.notes());
    notes.extend(document.note());
    Ok(Origin { host, notes, tool_version: None })
}

/// Reads the order of the numbers of the dates of a document, as far as that takes.
fn survey(text: &Text) -> Result<stamp::Evidence, Failure> {
    let mut evidence = stamp::Evidence::default();
    let mut again = text.again().map_err(Failure::File)?;
    while let Ok(Some(line)) = again.next_line() {
        for part in line.split("\"timestamp\"").skip(1) {
            let value = part.split('"').nth(1).unwrap_or_default();
            if let Some(printed) = stamp::Printed::read(value) {
                evidence.see(&printed);
            }
        }
        if evidence.decided().is_some() {
            break;
        }
    }
    Ok(evidence)
}

fn number(object: &Map<String, Value>, keys: &[&str]) -> Option<f64> {
    keys.iter().find_map(|key| Some(object.get(*key)?.as_f64().unwrap_or(f64::NAN)))
}

fn figures(disk: &Map<String, Value>) -> Figures {
    let mut figures = Figures::default();
    for (index, of) in OF_DISK.iter().enumerate() {
        let found = of.keys.iter().find_map(|(key, size)| Some(number(disk, &[key])? * size));
        if let Some(found) = found {
            figures.set(index, found);
        }
    }
    if let Some(transfers) = number(disk, &[TRANSFERS.0]) {
        figures.set(TRANSFERS.1, transfers);
    }
    figures
}

fn unknown_time(time: &str) -> String {
    format!("`{time}` is not a known format of time; run iostat with S_TIME_FORMAT=ISO")
}

/// Times of a document, whose dates say which order they have.
struct Times {
    evidence: stamp::Evidence,
    without_zone: bool,
    /// Number of reports with and without a time.
    timed: u64,
    nominal: u64,
}

impl Times {
    fn read(&mut self, text: &str) -> Option<u64> {
        self.timed += 1;
        let epoch = || text.trim().parse().ok().and_then(stamp::of_seconds);
        let Some(printed) = stamp::Printed::read(text) else { return epoch() };
        self.without_zone |= !printed.has_zone();
        printed.has_date().then_some(())?;
        printed.at_ns(self.evidence.order().0, jiff::civil::Date::ZERO)
    }

    /// Returns the time of a report without one, unless others have one.
    fn nominal(&mut self) -> Option<u64> {
        self.nominal += 1;
        (self.timed == 0).then(|| self.nominal * stamp::NOMINAL_NS)
    }

    fn notes(&self) -> Vec<String> {
        if self.nominal > 0 {
            return vec![stamp::NO_TIMES.to_owned()];
        }
        let (order, is_assumed) = self.evidence.order();
        let zone = self.without_zone.then(|| stamp::NO_ZONE.to_owned());
        zone.into_iter().chain(is_assumed.then(|| order.note())).collect()
    }
}

struct Intervals<'a, 's> {
    cpus: u32,
    devices: Devices,
    disks: Disks,
    ledger: Ledger<'a, 's>,
    line: Timeline,
    last_ns: Option<u64>,
    /// Whether the next report covers all the time since boot.
    is_first: bool,
    backwards: usize,
    counts: Vec<f64>,
}

impl<'a, 's> Intervals<'a, 's> {
    fn new(cpus: u32, sink: &'a mut Sink<'s>) -> Self {
        Self {
            cpus,
            devices: Devices::default(),
            disks: Disks::default(),
            ledger: Ledger::new(sink),
            line: Timeline::default(),
            last_ns: None,
            is_first: true,
            backwards: 0,
            counts: Vec::new(),
        }
    }

    /// Adds a report. `omits_idle` tells whether iostat omits devices without a request, and is
    /// asked only if one is missing.
    fn add(
        &mut self,
        report: &Report,
        at_ns: u64,
        omits_idle: impl FnOnce() -> bool,
    ) -> Result<(), Failure> {
        if self.last_ns.is_some_and(|last_ns| at_ns <= last_ns) {
            self.backwards += 1;
            return Ok(());
        }
        let last_ns = self.last_ns.replace(at_ns).filter(|_| !self.is_first);
        let Some(last_ns) = last_ns else {
            self.is_first = false;
            self.line.restart(at_ns);
            self.remember(report);
            return Ok(());
        };
        self.counts.clear();
        self.counts.extend(report.disks.iter().flat_map(|(_, figures)| figures.counts()));
        let span = self.line.next(at_ns, at_ns - last_ns, &self.counts);
        self.disks.list(self.devices.names.iter().map(String::as_str));
        let mut rows = Vec::with_capacity(1 + report.disks.len());
        rows.push(processors(&report.shares, f64::from(self.cpus)));
        for (device, figures) in &report.disks {
            rows.push(of_disk(&self.devices.names[*device], &self.disks, figures));
        }
        if report.disks.len() < self.devices.names.len() && omits_idle() {
            for device in (0..self.devices.names.len()).filter(|it| !report.has(*it)) {
                let idle = self.devices.last[device].idle();
                rows.push(of_disk(&self.devices.names[device], &self.disks, &idle));
            }
        }
        self.remember(report);
        self.ledger.add(span, &rows)
    }

    fn remember(&mut self, report: &Report) {
        for (device, figures) in &report.disks {
            self.devices.last[*device] = *figures;
        }
    }

    fn begin(&mut self) {
        self.is_first = true;
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.backwards > 0 {
            let count = self.backwards;
            notes.push(format!("its clock went back; reports skipped: {count}"));
        }
        notes.extend(self.disks.note());
        notes.extend(self.ledger.note());
        notes
    }
}

/// Returns the row of the host; its processor time is unknown if the number of processors is.
fn processors(shares: &Shares, count: f64) -> IntervalRow {
    let mut row = IntervalRow::new(&host::SCHEMA, "");
    if count > 0.0 {
        for ((column, _), share) in OF_PROCESSORS.iter().zip(shares) {
            let amount = share.map(|share| Amount::PerSecond(share * PERCENT_NS * count));
            row.set(column, amount);
        }
    }
    row
}

fn of_disk(name: &str, disks: &Disks, figures: &Figures) -> IntervalRow {
    let mut row = disks.row(name);
    // For other devices the kernel does not count flushes, and iostat prints zeros.
    let flushes = matches!(block::kind_by_name(name), Some(DeviceKind::Disk | DeviceKind::Loop));
    for (of, figure) in OF_DISK.iter().zip(figures.0) {
        let Figure::Printed(number) = figure else { continue };
        if flushes || !of.column.starts_with("flush_") {
            let amount = match of.each {
                Some(each) => Amount::Each(each, number),
                None => Amount::PerSecond(number),
            };
            row.set(of.column, Some(amount));
        }
    }
    row
}
