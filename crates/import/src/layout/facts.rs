//! Facts from the tables of a report, regardless of its layout.

use std::collections::{BTreeMap, BTreeSet};

use crate::Section;
use crate::number::{Numbers, significant};
use crate::report::Interval;
use crate::table::{Table, cell};

use super::sections::{
    ACTIVITY, BACKGROUND_WAITS, EVENTS, KEY_ACTIVITY, OS, ReportSection, TIME_MODEL, WAITS,
};

/// Nanoseconds in a second, and in the hundredth of a second used by processor statistics.
pub const SECOND: f64 = 1e9;
const CENTISECOND: f64 = 1e7;
pub const MIB: f64 = 1_048_576.0;
pub const GIB: f64 = 1_073_741_824.0;

/// Statistics by name, with the columns that they fill.
const COUNTERS: &[(&str, &str)] = &[
    ("physical read total IO requests", "read_ios"),
    ("physical read total bytes", "read_bytes"),
    ("physical write total IO requests", "write_ios"),
    ("physical write total bytes", "write_bytes"),
    ("redo size", "redo_bytes"),
    ("redo writes", "redo_writes"),
    ("physical write IO requests", "data_write_ios"),
    ("user commits", "commits"),
    ("session logical reads", "logical_reads"),
    ("physical reads", "physical_reads"),
];

/// Statistics that are kept by name begin with one of these.
const KEPT: [&str; 5] = [
    "cell ",
    "physical ",
    "chained rows ",
    "table fetch continued row",
    "bytes sent via SQL*Net to client",
];

/// Columns with the time waited, in seconds.
const WAITED: &[&str] = &["Total Wait Time (s)", "Time (s)"];

/// How the events of waits for storage begin.
const STORAGE_EVENTS: [&str; 3] = ["db file ", "direct path ", "cell "];
/// No storage takes less time for a request.
const SHORTEST_S: f64 = 1e-6;

/// This many digits give the length of an interval to about one part in a thousand.
const DIGITS_MIN: usize = 4;

pub struct Facts<'a> {
    pub tables: Vec<Table<'a>>,
    pub numbers: Numbers,
}

impl<'a> Facts<'a> {
    /// Returns the tables of a section that are complete.
    pub fn of<'s>(&'s self, section: &'s ReportSection) -> impl Iterator<Item = &'s Table<'a>> {
        self.tables.iter().filter(|table| table.is_whole && section.is(table))
    }

    pub fn sections(&self, sections: &[&'static ReportSection]) -> Vec<Section> {
        let section = |section: &&'static ReportSection| Section {
            name: section.name,
            found: self.of(section).any(|table| !table.rows.is_empty()),
        };
        sections.iter().map(section).collect()
    }

    /// Returns the value in the row named by its first cell.
    pub fn value(&self, section: &ReportSection, row: &str, columns: &[&str]) -> Option<f64> {
        self.of(section).find_map(|table| {
            let found = table.rows.iter().find(|cells| cell(cells, Some(0)) == row)?;
            columns
                .iter()
                .find_map(|name| self.numbers.count(cell(found, Some(table.column(&[name])?))))
        })
    }

    /// Returns the statistics of all tables that have them. Key statistics alone are only a part.
    pub fn activity(&self) -> Option<Activity> {
        let tables = self.of(&ACTIVITY).filter(|table| table.has(&["Total", "per Second"]));
        let tables: Vec<&Table<'_>> = tables.collect();
        let is_part = tables.iter().all(|table| KEY_ACTIVITY.is(table));
        (!is_part).then(|| Activity::of(&tables, self.numbers))
    }

    /// Sets the times of the database and of the host's processors, and the number of processors.
    pub fn processors(&self, interval: &mut Interval) {
        let totals = &mut interval.totals;
        let time = |row: &str| Some(self.value(&TIME_MODEL, row, &["Time (s)"])? * SECOND);
        totals.set("db_time_ns", time("DB time"));
        totals.set("cpu_ns", time("DB CPU"));
        totals.set("background_cpu_ns", time("background cpu time"));
        let of_host = |row: &str| self.value(&OS, row, &["Value", "Total"]);
        totals.set("host_busy_ns", of_host("BUSY_TIME").map(|time| time * CENTISECOND));
        totals.set("host_idle_ns", of_host("IDLE_TIME").map(|time| time * CENTISECOND));
        totals.set("processors", of_host("NUM_CPUS"));
        totals.set("cores", of_host("NUM_CPU_CORES"));
        totals.set("sockets", of_host("NUM_CPU_SOCKETS"));
        totals.set("host_memory_bytes", of_host("PHYSICAL_MEMORY_BYTES"));
        totals.set("waits_ns", self.waits_s().map(|waits| waits * SECOND));
        totals.set("untimed_waits", self.untimed_waits());
    }

    /// Returns the number of waits for storage whose time is too short for any storage: they cannot
    /// have been timed.
    fn untimed_waits(&self) -> Option<f64> {
        let table = self.of(&EVENTS).find(|table| table.has(&["Event", "Waits"]))?;
        let (event, waits, time) =
            (table.column(&["Event"]), table.column(&["Waits"]), table.column(WAITED)?);
        let of_storage =
            |row: &&Vec<_>| STORAGE_EVENTS.iter().any(|begin| cell(row, event).starts_with(begin));
        let untimed = |row: &Vec<_>| {
            let waits = self.numbers.count(cell(row, waits))?;
            // Seconds may be rounded to whole ones.
            let longest_s = self.numbers.count(cell(row, Some(time)))? + 0.5;
            Some(if longest_s < waits * SHORTEST_S { waits } else { 0.0 })
        };
        table.rows.iter().filter(of_storage).map(untimed).sum()
    }

    fn waits_s(&self) -> Option<f64> {
        self.foreground_waits_s().or_else(|| {
            let background = self.of(&BACKGROUND_WAITS).find_map(|table| self.not_idle_s(table))?;
            // Up to 10.2 there are only the waits of all sessions.
            let table = self.waits(&["Wait Class"]).or_else(|| self.waits(&["Event"]))?;
            Some((self.not_idle_s(table)? - background).max(0.0))
        })
    }

    /// Returns the first table of waits with this column.
    fn waits(&self, column: &[&str]) -> Option<&Table<'a>> {
        self.of(&WAITS).find(|table| table.column(column).is_some())
    }

    /// Sums the seconds of a table ordered by time, with idle events after all others: they begin
    /// where the time is greater than in the row before.
    fn not_idle_s(&self, table: &Table<'_>) -> Option<f64> {
        let time = table.column(WAITED)?;
        let (mut sum, mut before) = (0.0, f64::INFINITY);
        for row in table.rows.iter().filter(|row| cell(row, Some(0)) != "Idle") {
            let seconds = self.numbers.count(cell(row, Some(time)))?;
            if seconds > before {
                break;
            }
            (sum, before) = (sum + seconds, seconds);
        }
        Some(sum)
    }

    /// Sums the seconds waited by foreground sessions: over all wait classes, or over all events
    /// that are not idle, which have a share of call time.
    fn foreground_waits_s(&self) -> Option<f64> {
        const FOREGROUND: &str = "foreground";
        let is_foreground =
            |table: &&Table<'_>| table.name.to_ascii_lowercase().contains(FOREGROUND);
        let classes = self.waits(&["Wait Class"]).filter(is_foreground);
        let is_classes = classes.is_some();
        let table = classes.or_else(|| self.waits(&["Event"]).filter(is_foreground))?;
        let time = table.column(WAITED)?;
        let share = table.head.len().checked_sub(1)?;
        let counted = table.rows.iter().filter(|row| {
            let is_wait = cell(row, Some(0)) != "DB CPU";
            is_wait && (is_classes || !cell(row, Some(share)).is_empty())
        });
        counted.map(|row| self.numbers.count(cell(row, Some(time)))).sum()
    }
}

/// Statistics counted by an instance.
#[derive(Debug, Default)]
pub struct Activity {
    totals: BTreeMap<String, f64>,
    /// Number of characters of a name, if longer ones are cut.
    name_width: Option<usize>,
    /// Exact length of the interval.
    pub seconds: Option<f64>,
    /// Total and rate that give this length, by the number of their digits.
    best: (usize, f64),
}

impl Activity {
    pub fn of(tables: &[&Table<'_>], numbers: Numbers) -> Self {
        let mut activity = Self::default();
        // Names that are identical after being cut, and those with two totals.
        let mut unclear = BTreeSet::new();
        for table in tables {
            activity.name_width = activity.name_width.or(table.name_width);
            activity.add(table, numbers, &mut unclear);
        }
        activity.totals.retain(|name, _| !unclear.contains(name));
        activity
    }

    fn add(&mut self, table: &Table<'_>, numbers: Numbers, unclear: &mut BTreeSet<String>) {
        let (total, per_s) = (table.column(&["Total"]), table.column(&["per Second"]));
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut name_before = None;
        for row in &table.rows {
            let (name, printed) = (cell(row, Some(0)), cell(row, total));
            let is_wrapped =
                printed.is_empty() && row.iter().skip(1).all(|cell| cell.trim().is_empty());
            if is_wrapped {
                name_before = Some(name);
                continue;
            }
            let before = name_before.take();
            let name = if name.is_empty() { before.unwrap_or_default() } else { name };
            if !seen.insert(name) {
                unclear.insert(name.to_owned());
            }
            let Some(value) = numbers.count(printed).filter(|_| !name.is_empty()) else { continue };
            if self
                .totals
                .insert(name.to_owned(), value)
                .is_some_and(|known| (known - value).abs() > 0.0)
            {
                unclear.insert(name.to_owned());
            }
            let rate = cell(row, per_s);
            let digits = significant(printed).min(significant(rate));
            if let Some(per_s) = numbers.count(rate).filter(|rate| *rate > 0.0)
                && (digits, per_s) > self.best
                && digits >= DIGITS_MIN
            {
                self.best = (digits, per_s);
                self.seconds = Some(value / per_s);
            }
        }
    }

    /// Whether no number of it could be read.
    pub fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<f64> {
        let cut = self.name_width.filter(|width| name.len() > *width);
        let printed = cut.and_then(|width| name.get(..width)).unwrap_or(name);
        self.totals.get(printed.trim_end()).copied()
    }

    /// Fills the interval with the counters.
    pub fn fill(&self, interval: &mut Interval) {
        for (name, column) in COUNTERS {
            interval.totals.set(column, self.get(name));
        }
        let kept =
            self.totals.iter().filter(|(name, _)| KEPT.iter().any(|begin| name.starts_with(begin)));
        interval.statistics = kept.map(|(name, value)| (name.clone(), *value)).collect();
    }
}
