//! AWR-Miner: one text file with averages and maxima for each snapshot and instance.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::number::Numbers;
use crate::report::{Database, Instance, Interval, Kind, Report};
use crate::table::{Table, cell};
use crate::{ImportError, Section, Source, text, time};

use super::facts::{GIB, MIB, SECOND};
use super::{Head, Layout};

pub const MINER: Layout = Layout { name: "AWR-Miner", recognises: is_it, read };

const BEGIN: &str = "~~BEGIN-";
const END: &str = "~~END-";
const OS: &str = "OS-INFORMATION";
const MEMORY: &str = "MEMORY";
const SIZES: &str = "SIZE-ON-DISK";
const METRICS: &str = "MAIN-METRICS";
const SECTIONS: [&str; 4] = [OS, MEMORY, SIZES, METRICS];

/// Its maxima are those of the metrics that the database keeps for each minute.
const AVERAGING_NS: f64 = 60e9;
const MINUTE: f64 = 60.0;

/// Averages per second: the column of the file, the counter, and its unit.
const AVERAGES: [(&str, &str, f64); 8] = [
    ("read_iops", "read_ios", 1.0),
    ("write_iops", "write_ios", 1.0),
    ("read_mb_s", "read_bytes", MIB),
    ("write_mb_s", "write_bytes", MIB),
    ("redo_mb_s", "redo_bytes", MIB),
    ("commits_s", "commits", 1.0),
    ("l_reads_s", "logical_reads", 1.0),
    ("aas", "db_time_ns", SECOND),
];

const MAXIMA: [(&str, &str, f64); 4] = [
    ("read_iops_max", "most_read_ios", 1.0),
    ("write_iops_max", "most_write_ios", 1.0),
    ("read_mb_s_max", "most_read_bytes", MIB),
    ("write_mb_s_max", "most_write_bytes", MIB),
];

fn is_it(head: &Head) -> bool {
    head.contains("~~begin-os-information~~") || head.contains("~~begin-main-metrics~~")
}

fn read(source: &Source<'_>) -> Result<Report, ImportError> {
    let sections: Vec<(&str, Option<&str>)> =
        SECTIONS.iter().map(|name| (*name, section(source.text, name))).collect();
    let of = |name: &str| {
        let text = sections.iter().find(|(known, _)| *known == name).and_then(|(_, text)| *text);
        text.and_then(|text| text::tables(text, |_| false).into_iter().next())
    };
    let Some(metrics) = of(METRICS) else {
        let what = "its averages are missing (MAIN-METRICS), or not complete".to_owned();
        return Err(ImportError::Damaged { line: 1, what });
    };
    let numbers = Numbers::of(section(source.text, METRICS).unwrap_or_default())?;
    let miner = Miner { numbers, source, os: facts(of(OS)), memory: of(MEMORY), sizes: of(SIZES) };
    let mut intervals: Vec<Interval> =
        metrics.rows.iter().filter_map(|row| miner.interval(&metrics, row)).collect();
    intervals.sort_by_key(|interval| (interval.instance.number, interval.begin_s));
    let mut notes = Vec::new();
    if intervals.len() < metrics.rows.len() {
        let rows = metrics.rows.len() - intervals.len();
        notes.push(format!("{rows} rows have no readable snapshot, instance, time and length"));
    }
    let found =
        |(name, text): &(&'static str, Option<&str>)| Section { name, found: text.is_some() };
    let sections = sections.iter().map(found).collect();
    Ok(Report { kind: Kind::AwrMiner, database: miner.database(), intervals, sections, notes })
}

/// Returns the text between the marks of a section, if both are present.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("{BEGIN}{name}~~"))?;
    let end = rest.find(&format!("{END}{name}~~"))?;
    Some(rest[..end].trim_start_matches(['\r', '\n']))
}

fn facts(table: Option<Table<'_>>) -> BTreeMap<String, String> {
    let rows = table.map(|table| table.rows).unwrap_or_default();
    let pair =
        |row: &Vec<Cow<'_, str>>| (cell(row, Some(0)).to_owned(), cell(row, Some(1)).to_owned());
    rows.iter().map(pair).collect()
}

struct Miner<'a> {
    numbers: Numbers,
    source: &'a Source<'a>,
    os: BTreeMap<String, String>,
    memory: Option<Table<'a>>,
    sizes: Option<Table<'a>>,
}

impl Miner<'_> {
    fn database(&self) -> Database {
        // awr-hist-DBID-NAME-FIRST-LAST.out
        let mut of_name = self.source.name_hint.split('-').skip(2);
        let id = of_name.next().and_then(|id| id.parse().ok());
        let named = of_name.next().unwrap_or_default();
        let text = |name: &str| self.os.get(name).filter(|it| !it.is_empty()).cloned();
        let instances = text("INSTANCES").and_then(|it| it.parse::<u32>().ok());
        Database {
            name: text("DB_NAME").unwrap_or_else(|| named.to_owned()),
            id: text("DBID").and_then(|it| it.parse().ok()).or(id),
            release: text("VERSION"),
            cluster: instances.map(|count| count > 1),
            container: None,
        }
    }

    fn interval(&self, table: &Table<'_>, row: &[Cow<'_, str>]) -> Option<Interval> {
        let text = |name: &str| cell(row, table.column(&[name]));
        let number = |name: &str| self.numbers.count(text(name));
        let snap: u64 = text("snap").parse().ok()?;
        let instance: u32 = text("inst").parse().ok()?;
        let minutes = number("dur_m").filter(|minutes| *minutes > 0.0)?;
        let end_s = time::year_first(text("end"))?;
        let seconds = minutes * MINUTE;
        let mut interval = Interval {
            instance: Instance { number: Some(instance), ..Instance::default() },
            snapshots: Some((snap.saturating_sub(1), snap)),
            begin_s: end_s.saturating_sub(seconds as i64),
            end_s,
            ..Interval::default()
        };
        let totals = &mut interval.totals;
        totals.set("elapsed_ns", seconds * SECOND);
        for (name, column, unit) in AVERAGES {
            totals.set(column, number(name).map(|rate| rate * unit * seconds));
        }
        for (name, column, unit) in MAXIMA {
            totals.set(column, number(name).map(|rate| rate * unit * AVERAGING_NS / SECOND));
        }
        totals.set("most_averaging_ns", AVERAGING_NS);
        let of_host = |name: &str| self.os.get(name).and_then(|it| self.numbers.count(it));
        let processors = of_host("NUM_CPUS");
        totals.set("processors", processors);
        totals.set("cores", of_host("NUM_CPU_CORES"));
        totals.set("sockets", of_host("NUM_CPU_SOCKETS"));
        // It is printed in whole GB: 0 means less than one.
        let memory = of_host("PHYSICAL_MEMORY_GB").filter(|gib| *gib > 0.0);
        totals.set("host_memory_bytes", memory.map(|gib| gib * GIB));
        if let (Some(processors), Some(busy)) = (processors, number("os_cpu")) {
            let of_all = processors * seconds * SECOND;
            totals.set("host_busy_ns", of_all * busy / 100.0);
            totals.set("host_idle_ns", of_all * (1.0 - busy / 100.0));
        }
        totals.set("shared_memory_bytes", self.memory(snap, instance, "SGA"));
        totals.set("private_memory_bytes", self.memory(snap, instance, "PGA"));
        totals.set("size_bytes", self.size(snap));
        totals.set("sessions", number("logons_total"));
        Some(interval)
    }

    fn memory(&self, snap: u64, instance: u32, column: &str) -> Option<f64> {
        let table = self.memory.as_ref()?;
        let (of_snap, of_instance) =
            (table.column(&["SNAP_ID"]), table.column(&["INSTANCE_NUMBER"]));
        let is_it = |row: &&Vec<Cow<'_, str>>| {
            cell(row, of_snap).parse() == Ok(snap) && cell(row, of_instance).parse() == Ok(instance)
        };
        let row = table.rows.iter().find(is_it)?;
        Some(self.numbers.count(cell(row, Some(table.column(&[column])?)))? * GIB)
    }

    /// Sizes are recorded once a day: returns the last one at or before the snapshot.
    fn size(&self, snap: u64) -> Option<f64> {
        let table = self.sizes.as_ref()?;
        let row = |row: &Vec<Cow<'_, str>>| {
            let at: u64 = cell(row, Some(0)).parse().ok()?;
            Some((at, self.numbers.count(cell(row, Some(1)))?))
        };
        let sizes = table.rows.iter().filter_map(row).filter(|(at, _)| *at <= snap);
        sizes.max_by_key(|(at, _)| *at).map(|(_, gib)| gib * GIB)
    }
}
