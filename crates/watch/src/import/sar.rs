//! sar's files, as printed by `sadf -j`, `sadf -x`, `sadf -d` or sar: rates of each interval.
//! The binary files themselves differ between versions.
//!
//! Whatever printed them, the figures of an interval become an object with the names of `sadf -j`.

mod csv;
mod table;
mod text;
mod xml;

use std::collections::BTreeSet;

use blockstone_probe::{block, cpu, host, memory, network};
use serde_json::{Map, Value};

use super::ledger::{IntervalRow, Ledger, Timeline};
use super::sysstat::{Disks, Document, Figures, KIB, level};
use super::text::Text;
use super::{Failure, Format, Origin, Sink, stamp};

pub const FORMAT: Format = Format {
    tool: "sar",
    holds: HOLDS,
    goes_on: false,
    made_by: "sar's files as JSON (sadf -j FILE -- -A)",
    recognises: |text| text.trim_start().starts_with('{') && text.contains("\"file-date\""),
    read,
};

pub const XML: Format = Format {
    tool: "sar",
    holds: HOLDS,
    goes_on: false,
    made_by: "XML (sadf -x)",
    recognises: |text| text.trim_start().starts_with('<') && text.contains("<sysdata-version"),
    read: xml::read,
};

pub const CSV: Format = Format {
    tool: "sar",
    holds: HOLDS,
    goes_on: false,
    made_by: "CSV (sadf -d)",
    recognises: |text| text.lines().any(|line| line.contains(csv::HEADING)),
    read: csv::read,
};

pub const TEXT: Format = Format {
    tool: "sar",
    holds: HOLDS,
    goes_on: false,
    made_by: "or sar's text (sar -A)",
    recognises: text::recognises,
    read: text::read,
};

const HOLDS: &str = "rates of intervals, rounded to two decimals";
const SECOND_NS: u64 = 1_000_000_000;
const SECTOR_BYTES: f64 = 512.0;
const PPM: f64 = 1e6;

fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let (head, mut document) = Document::open(text)?;
    let mut series = Series::new(head.host().cpus, sink);
    while let Some((line, interval)) = document.next()? {
        let time = Time::of(&interval).ok_or_else(|| {
            let what = "an interval without a `timestamp` (date, time and interval)".to_owned();
            Failure::Damage { line, what }
        })?;
        series.add(&time, &interval)?;
    }
    let mut notes: Vec<String> = document.note().into_iter().collect();
    notes.extend(series.notes(&head.text("timezone")));
    Ok(Origin { host: head.host(), notes, tool_version: None })
}

/// When an interval ended and how long it was.
struct Time {
    at_ns: u64,
    length_ns: u64,
    zone: Zone,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    Utc,
    /// The name of another zone; empty if it is not known.
    Local(String),
}

impl Time {
    /// Reads the time of an interval of `sadf -j`: `utc` up to sysstat 12.7.1, `tz` since.
    fn of(interval: &Map<String, Value>) -> Option<Self> {
        let time = interval.get("timestamp")?;
        let text = |key: &str| time.get(key).and_then(Value::as_str);
        let seconds = match time.get("interval")? {
            Value::String(text) => text.parse().ok()?,
            value => value.as_u64()?,
        };
        let utc = match time.get("utc") {
            Some(Value::String(text)) => text == "1",
            Some(value) => value.as_u64() == Some(1),
            None => false,
        };
        let zone = match text("tz") {
            Some(tz) if !matches!(tz, "UTC" | "GMT") => Zone::Local(tz.to_owned()),
            Some(_) => Zone::Utc,
            None if utc => Zone::Utc,
            None => Zone::Local(String::new()),
        };
        let (at_ns, _) = stamp::parse(&format!("{} {}", text("date")?, text("time")?))?;
        Self::new(at_ns, seconds, zone)
    }

    fn new(at_ns: u64, seconds: u64, zone: Zone) -> Option<Self> {
        let length_ns = seconds.checked_mul(SECOND_NS).filter(|length| *length > 0)?;
        Some(Self { at_ns, length_ns, zone })
    }
}

/// Intervals on their way into a recording.
struct Series<'a, 's> {
    cpus: u32,
    disks: Disks,
    line: Timeline,
    ledger: Ledger<'a, 's>,
    last_ns: u64,
    backwards: usize,
    zones: BTreeSet<Zone>,
}

impl<'a, 's> Series<'a, 's> {
    fn new(cpus: u32, sink: &'a mut Sink<'s>) -> Self {
        Self {
            cpus,
            disks: Disks::default(),
            line: Timeline::default(),
            ledger: Ledger::new(sink),
            last_ns: 0,
            backwards: 0,
            zones: BTreeSet::new(),
        }
    }

    fn add(&mut self, time: &Time, interval: &Map<String, Value>) -> Result<(), Failure> {
        if time.at_ns <= self.last_ns {
            self.backwards += 1;
            return Ok(());
        }
        self.last_ns = time.at_ns;
        if !self.zones.contains(&time.zone) {
            self.zones.insert(time.zone.clone());
        }
        let rows = rows(interval, self.cpus, &mut self.disks);
        let span = self.line.next(time.at_ns, time.length_ns, &counts(interval));
        self.ledger.add(span, &rows)
    }

    /// Returns notes; `zone` is the zone of the host, if the file names it.
    fn notes(&self, zone: &str) -> Vec<String> {
        let mut notes = Vec::new();
        let local = self.zones.iter().filter_map(|it| match it {
            Zone::Local(name) if name.is_empty() => Some(zone),
            Zone::Local(name) => Some(name.as_str()),
            Zone::Utc => None,
        });
        let local: Vec<&str> = local.collect();
        if !local.is_empty() {
            let note = "its times are local and were taken as UTC; without -t sadf prints UTC";
            let names = local.iter().filter(|name| !name.is_empty());
            let names: Vec<&str> = names.copied().collect();
            notes.push(if names.is_empty() {
                note.to_owned()
            } else {
                format!("{note} ({})", names.join(", "))
            });
        }
        if self.backwards > 0 {
            notes.push(format!("its clock went back; intervals skipped: {}", self.backwards));
        }
        if self.cpus == 0 {
            notes.push("its number of processors is unknown, and so is their use".to_owned());
        }
        notes.extend(self.disks.note());
        notes.extend(self.ledger.note());
        notes
    }
}

fn rows(interval: &Map<String, Value>, cpus: u32, disks: &mut Disks) -> Vec<IntervalRow> {
    let part = |key: &str| interval.get(key).and_then(Value::as_object).map(Figures);
    let mut rows = vec![whole_host(interval, cpus)];
    for figures in processors(interval) {
        let name = figures.text("cpu").unwrap_or_default();
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
            let mut one = IntervalRow::new(&cpu::SCHEMA, &format!("cpu{name}"));
            processor(&mut one, figures, 1.0);
            rows.push(one);
        }
    }
    rows.extend(of_memory(part("memory"), part("paging"), part("swap-pages")));
    let all: Vec<_> = list(interval.get("disk")).collect();
    let names = all.iter().map(|figures| figures.text("disk-device").unwrap_or_default());
    disks.list(names.clone());
    for (figures, name) in all.iter().zip(names) {
        let mut one = disks.row(name);
        one.set("read_bytes", figures.rate(&[("rkB", KIB), ("rd_sec", SECTOR_BYTES)]));
        one.set("write_bytes", figures.rate(&[("wkB", KIB), ("wr_sec", SECTOR_BYTES)]));
        one.set("discard_bytes", figures.rate(&[("dkB", KIB), ("dc_sec", SECTOR_BYTES)]));
        let queue = [("aqu-sz", SECOND_NS as f64), ("avgqu-sz", SECOND_NS as f64)];
        one.set("queue_ns", figures.rate(&queue));
        one.set("busy_ns", figures.share(&["util-percent"], 1.0));
        rows.push(one);
    }
    rows.extend(part("io").map(|figures| of_all_disks(figures)));
    rows.extend(of_network(interval.get("network")));
    rows
}

/// Returns the row of all disks together: sar does not separate reads from writes for single disks.
fn of_all_disks(figures: Figures<'_>) -> IntervalRow {
    let mut row = IntervalRow::new(&block::TOGETHER, "");
    for (group, [requests, bytes], [rate, sectors]) in [
        ("io-reads", ["read_ios", "read_bytes"], ["rtps", "bread"]),
        ("io-writes", ["write_ios", "write_bytes"], ["wtps", "bwrtn"]),
    ] {
        let figures = figures.part(group);
        row.set(requests, figures.as_ref().and_then(|it| it.rate(&[(rate, 1.0)])));
        row.set(bytes, figures.and_then(|it| it.rate(&[(sectors, SECTOR_BYTES)])));
    }
    row
}

fn list(value: Option<&Value>) -> impl Iterator<Item = Figures<'_>> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_object).map(Figures)
}

fn processors(interval: &Map<String, Value>) -> impl Iterator<Item = Figures<'_>> {
    list(interval.get("cpu-load").or_else(|| interval.get("cpu-load-all")))
}

fn whole_host(interval: &Map<String, Value>, cpus: u32) -> IntervalRow {
    let part = |key: &str| interval.get(key).and_then(Value::as_object).map(Figures);
    let mut row = IntervalRow::new(&host::SCHEMA, "");
    let is_all = |figures: &Figures<'_>| figures.text("cpu") == Some("all");
    if let Some(figures) = processors(interval).find(is_all) {
        processor(&mut row, figures, f64::from(cpus));
    }
    if let Some(figures) = part("process-and-context-switch") {
        row.set("switches", figures.rate(&[("cswch", 1.0)]));
        row.set("forks", figures.rate(&[("proc", 1.0)]));
    }
    if let Some(figures) = part("queue") {
        let level = |key, times: f64| level((figures.number(key)? * times).round());
        row.set("runnable", level("runq-sz", 1.0));
        row.set("blocked", level("blocked", 1.0));
        row.set("load_one_minute_ppm", level("ldavg-1", PPM));
        row.set("load_five_minutes_ppm", level("ldavg-5", PPM));
        row.set("load_fifteen_minutes_ppm", level("ldavg-15", PPM));
    }
    if let Some(figures) = part("memory") {
        row.set("dirty_bytes", figures.kib("dirty"));
        let cache = figures.number("cached").zip(figures.number("buffers"));
        row.set(
            "cached_bytes",
            cache.and_then(|(cached, buffers)| level((cached + buffers) * KIB)),
        );
    }
    let pressure = part("psi");
    for (column, group, key) in [
        ("psi_cpu_some_ns", "psi-cpu", "some_avg"),
        ("psi_io_some_ns", "psi-io", "some_avg"),
        ("psi_io_full_ns", "psi-io", "full_avg"),
    ] {
        let group = pressure.as_ref().and_then(|psi| psi.part(group));
        row.set(column, group.and_then(|group| group.share(&[key], 1.0)));
    }
    row
}

/// Sets the processor time of `count` processors. `-u` alone counts guests with `user` and
/// interrupts with `system`.
fn processor(row: &mut IntervalRow, figures: Figures<'_>, count: f64) {
    row.set("cpu_user_ns", figures.share(&["user", "usr", "guest"], count));
    row.set("cpu_nice_ns", figures.share(&["nice", "gnice"], count));
    row.set("cpu_system_ns", figures.share(&["system", "sys"], count));
    row.set("cpu_irq_ns", figures.share(&["irq"], count));
    row.set("cpu_softirq_ns", figures.share(&["soft"], count));
    row.set("cpu_iowait_ns", figures.share(&["iowait"], count));
    row.set("cpu_idle_ns", figures.share(&["idle"], count));
    row.set("cpu_steal_ns", figures.share(&["steal"], count));
}

fn of_memory(
    levels: Option<Figures<'_>>,
    paging: Option<Figures<'_>>,
    swapping: Option<Figures<'_>>,
) -> Option<IntervalRow> {
    let mut row = IntervalRow::new(&memory::SCHEMA, "");
    let some = levels.is_some() || paging.is_some() || swapping.is_some();
    if let Some(figures) = levels {
        for (column, key) in [
            ("free_bytes", "memfree"),
            ("available_bytes", "avail"),
            ("buffers_bytes", "buffers"),
            ("file_cache_bytes", "cached"),
            ("anonymous_bytes", "anonpg"),
            ("slab_bytes", "slab"),
            ("page_tables_bytes", "pgtbl"),
            ("swap_free_bytes", "swpfree"),
        ] {
            row.set(column, figures.kib(key));
        }
        let swap = figures.number("swpfree").zip(figures.number("swpused"));
        row.set("swap_total_bytes", swap.and_then(|(free, used)| level((free + used) * KIB)));
    }
    if let Some(figures) = paging {
        row.set("paged_in_bytes", figures.rate(&[("pgpgin", KIB)]));
        row.set("paged_out_bytes", figures.rate(&[("pgpgout", KIB)]));
        row.set("page_faults", figures.rate(&[("fault", 1.0)]));
        row.set("major_page_faults", figures.rate(&[("majflt", 1.0)]));
    }
    if let Some(figures) = swapping {
        row.set("swapped_in_pages", figures.rate(&[("pswpin", 1.0)]));
        row.set("swapped_out_pages", figures.rate(&[("pswpout", 1.0)]));
    }
    some.then_some(row)
}

fn of_network(network: Option<&Value>) -> Vec<IntervalRow> {
    let Some(network) = network else { return Vec::new() };
    let name = |figures: &Figures<'_>| figures.text("iface").unwrap_or_default().to_owned();
    let mut rows = Vec::new();
    for figures in list(network.get("net-dev")) {
        let object = name(&figures);
        let mut one = IntervalRow::new(&network::SCHEMA, &object);
        one.set("received_bytes", figures.rate(&[("rxkB", KIB), ("rxbyt", 1.0)]));
        one.set("received_packets", figures.rate(&[("rxpck", 1.0)]));
        one.set("sent_bytes", figures.rate(&[("txkB", KIB), ("txbyt", 1.0)]));
        one.set("sent_packets", figures.rate(&[("txpck", 1.0)]));
        if let Some(errors) = list(network.get("net-edev")).find(|other| name(other) == object) {
            one.set("receive_errors", errors.rate(&[("rxerr", 1.0)]));
            one.set("receive_drops", errors.rate(&[("rxdrop", 1.0)]));
            one.set("send_errors", errors.rate(&[("txerr", 1.0)]));
            one.set("send_drops", errors.rate(&[("txdrop", 1.0)]));
        }
        rows.push(one);
    }
    let part = |key: &str| network.get(key).and_then(Value::as_object).map(Figures);
    let (segments, errors) = (part("net-tcp"), part("net-etcp"));
    if segments.is_some() || errors.is_some() {
        let mut tcp = IntervalRow::new(&network::SCHEMA, "tcp");
        let of = |figures: &Option<Figures<'_>>, key| figures.as_ref()?.rate(&[(key, 1.0)]);
        tcp.set("received_packets", of(&segments, "iseg"));
        tcp.set("sent_packets", of(&segments, "oseg"));
        tcp.set("receive_errors", of(&errors, "isegerr"));
        tcp.set("retransmits", of(&errors, "retrans"));
        rows.push(tcp);
    }
    rows
}

/// Returns rates of counted events, which the true length of the interval turns into whole numbers.
fn counts(interval: &Map<String, Value>) -> Vec<f64> {
    let part = |key: &str| interval.get(key).and_then(Value::as_object).map(Figures);
    let switches = part("process-and-context-switch");
    let mut counts: Vec<f64> = switches.and_then(|f| f.number("cswch")).into_iter().collect();
    counts.extend(part("paging").and_then(|figures| figures.number("fault")));
    counts.extend(list(interval.get("disk")).filter_map(|figures| figures.number("tps")));
    let network = interval.get("network").and_then(|network| network.get("net-dev"));
    counts.extend(list(network).filter_map(|figures| figures.number("rxpck")));
    counts
}
