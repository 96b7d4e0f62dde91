//! AWR reports of all instances of a cluster, as HTML and as text. The figures of single instances
//! are summed: the interval is that of the cluster.

use std::collections::BTreeMap;

use crate::number::Numbers;
use crate::report::{Container, Database, Instance, Interval, Kind, Report};
use crate::table::{Table, cell};
use crate::{ImportError, Section, Source, html, text, time};

use super::awr::{is_complete, is_of_container};
use super::facts::{Activity, Facts, MIB, SECOND};
use super::head::{higher, place};
use super::sections::{GLOBAL_STATEMENTS, begins};
use super::{Head, Layout};

pub const HTML: Layout =
    Layout { name: "AWR report of a cluster, HTML", recognises: is_html, read: read_html };
/// Its tables have headings of two rows, of which Markdown has only one.
pub const MARKDOWN: Layout = Layout {
    name: "AWR report of a cluster, Markdown",
    recognises: |head| is_text(head) && head.is_markdown(),
    read: |_| {
        Err(ImportError::Refused {
            kind: "a report of a cluster",
            why: "as Markdown lacks headings of its tables",
            hint: "give it as html or text: @?/rdbms/admin/awrgrpt.sql asks for its type",
        })
    },
};
pub const TEXT: Layout =
    Layout { name: "AWR report of a cluster, text", recognises: is_text, read: read_text };

/// Sections and the beginnings of their summaries.
const SUMMARY: (&str, &str) = ("identity", "Database Summary");
const INSTANCES: (&str, &str) = ("instances", "Database Instances Included");
const OS: (&str, &str) = ("operating system", "OS Statistics By Instance");
const TIME_MODEL: (&str, &str) = ("time model", "Time Model");
const WAITS: (&str, &str) = ("waits", "Foreground Wait Classes");
const ACTIVITY: (&str, &str) = ("instance activity", "System Statistics (Global)");
const SESSIONS: (&str, &str) = ("sessions", "System Statistics (Absolute Values)");
const FUNCTION_IO: (&str, &str) = ("I/O by function", "IOStat by Function");
const PGA: (&str, &str) = ("private memory", "PGA Aggregate Target Statistics");
const CACHES: (&str, &str) = ("cache sizes", "Cache Sizes");
const STATEMENTS: (&str, &str) = ("top statements", "SQL ordered by");

const ALL: [(&str, &str); 11] = [
    SUMMARY,
    INSTANCES,
    OS,
    TIME_MODEL,
    WAITS,
    ACTIVITY,
    SESSIONS,
    FUNCTION_IO,
    PGA,
    CACHES,
    STATEMENTS,
];

fn is_html(head: &Head) -> bool {
    head.contains("<title>awr rac report for") || is_named(head) && head.is_html()
}

fn is_text(head: &Head) -> bool {
    is_named(head) && !head.is_html()
}

fn is_named(head: &Head) -> bool {
    head.contains("workload repository report (rac")
        || head.contains("workload repository pdb report (rac")
}

fn is_wanted(name: &str) -> bool {
    ALL.iter().any(|(_, begin)| begins(name, begin))
}

fn read_html(source: &Source<'_>) -> Result<Report, ImportError> {
    super::check_single(source.text)?;
    read(source, html::tables(source.text, is_wanted), Kind::AwrGlobalHtml)
}

/// Tables are recognised by their headings: the width of their columns does not matter. Statements
/// take several lines each, and are left out.
fn read_text(source: &Source<'_>) -> Result<Report, ImportError> {
    let wanted = |name: &str| is_wanted(name) && !begins(name, STATEMENTS.1);
    let firsts = ["WORKLOAD REPOSITORY REPORT (RAC", "WORKLOAD REPOSITORY PDB REPORT (RAC"];
    let source = &Source { text: super::only(source.text, &firsts)?, ..*source };
    let mut tables = text::tables(source.text, wanted);
    for table in &mut tables {
        if table.has(&["I#", "Begin Snap Time", "End Snap Time"]) {
            table.name = INSTANCES.1.into();
            // It has no end line: the first section follows it.
            table.is_whole = text::lines(source.text).any(|line| line.contains("DB/Inst:"));
        } else if table.has(&["Id", "Name", "RAC", "Begin", "End"]) {
            table.name = SUMMARY.1.into();
        }
    }
    let report = read(source, tables, Kind::AwrGlobalText)?;
    if is_complete(source.text)
        && report.intervals.iter().all(|it| it.totals.get("elapsed_ns").is_none())
    {
        let what = "its table of statistics of the cluster has no total and rate".to_owned();
        return Err(ImportError::Damaged { line: 1, what });
    }
    Ok(report)
}

fn read(source: &Source<'_>, tables: Vec<Table<'_>>, kind: Kind) -> Result<Report, ImportError> {
    let global = Global { facts: Facts { tables, numbers: Numbers::of(source.text)? } };
    let (database, mut interval, instances, times) = global.identity(source)?;
    let activity = global.activity();
    let mut notes = Vec::new();
    let seconds = activity.as_ref().and_then(|activity| activity.seconds);
    place(&mut interval, times, seconds, &mut notes).ok_or_else(|| ImportError::Damaged {
        line: 1,
        what: "the time of a snapshot is not readable".to_owned(),
    })?;
    if let Some(activity) = &activity {
        activity.fill(&mut interval);
        interval.totals.set("elapsed_ns", activity.seconds.map(|seconds| seconds * SECOND));
    }
    global.processors(&mut interval, &instances);
    if let Some(seconds) = seconds {
        global.functions(&mut interval, seconds);
    }
    interval.statements = global.facts.statements(&GLOBAL_STATEMENTS, source);
    let sections = global.sections();
    let missing: Vec<&str> = sections.iter().filter(|it| !it.found).map(|it| it.name).collect();
    if !is_complete(source.text) {
        notes.push(match &missing[..] {
            [] => "its end is missing".to_owned(),
            missing => format!("{}: {}", crate::CUT, missing.join(", ")),
        });
    }
    Ok(Report { kind, database, intervals: vec![interval], sections, notes })
}

struct Global<'a> {
    facts: Facts<'a>,
}

/// Instance numbers with their hosts.
type Instances = BTreeMap<u32, String>;
/// Begin and end of the interval.
type Times = (Option<i64>, Option<i64>);

impl<'a> Global<'a> {
    fn tables<'s>(&'s self, section: (&'s str, &'s str)) -> impl Iterator<Item = &'s Table<'a>> {
        let is_it = move |table: &&Table<'_>| table.is_whole && begins(&table.name, section.1);
        self.facts.tables.iter().filter(is_it)
    }

    fn sections(&self) -> Vec<Section> {
        let has_rows = |section| self.tables(section).any(|table| !table.rows.is_empty());
        ALL.iter().map(|section| Section { name: section.0, found: has_rows(*section) }).collect()
    }

    fn identity(
        &self,
        source: &Source<'_>,
    ) -> Result<(Database, Interval, Instances, Times), ImportError> {
        let damaged = |what: &str| ImportError::Damaged { line: 1, what: what.to_owned() };
        let mut database = Database::default();
        let mut interval = Interval::default();
        let summary = self.tables(SUMMARY).find_map(|table| Some((table, table.rows.first()?)));
        if let Some((table, row)) = summary {
            let text = |name: &str| cell(row, table.column(&[name]));
            text("Name").clone_into(&mut database.name);
            database.id = text("Id").parse().ok();
            database.cluster = Some(text("RAC").eq_ignore_ascii_case("YES"));
            database.container = is_of_container(source.head).then(|| Container {
                name: text("Container Name").to_owned(),
                id: text("Container DB Id").parse().ok(),
            });
            let snapshots = (text("Begin").parse(), text("End").parse());
            interval.snapshots =
                if let (Ok(begin), Ok(end)) = snapshots { Some((begin, end)) } else { None };
        }
        let table = self.tables(INSTANCES).next();
        let table = table.ok_or_else(|| damaged("its table of instances is missing"))?;
        let mut instances = Instances::new();
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        let mut hosts = Vec::new();
        for row in &table.rows {
            let text = |name: &str| cell(row, table.column(&[name]));
            let Ok(number) = text("I#").parse() else { continue };
            let at = |name| time::snapshot(text(name));
            begins.push(at("Begin Snap Time"));
            ends.push(at("End Snap Time"));
            database.release.get_or_insert_with(|| text("Release").to_owned());
            let host = source.host(text("Host"));
            if !hosts.contains(&host) {
                hosts.push(host.clone());
            }
            instances.insert(number, host);
        }
        // Unknown if it is unknown for an instance.
        let all = |times: Vec<Option<i64>>| times.into_iter().collect::<Option<Vec<i64>>>();
        let begin = all(begins).and_then(|times| times.into_iter().min());
        let end = all(ends).and_then(|times| times.into_iter().max());
        let is_backwards = begin.zip(end).is_some_and(|(begin, end)| begin >= end);
        if instances.is_empty() || is_backwards {
            return Err(damaged("there is no begin and end of the interval in it"));
        }
        // For a cluster with one instance, the interval is that of the instance.
        let number = match instances.keys().collect::<Vec<_>>()[..] {
            [number] => Some(*number),
            _ => None,
        };
        interval.instance = Instance { number, name: String::new(), host: hosts.join("+") };
        Ok((database, interval, instances, (begin, end)))
    }

    fn activity(&self) -> Option<Activity> {
        let mut tables = self.tables(ACTIVITY).filter(|table| table.has(&["Total", "per Second"]));
        Some(Activity::of(&[tables.next()?], self.facts.numbers))
    }

    /// Sum of a column over instances; `None` if the value of any of them is unknown.
    fn sum(&self, section: (&str, &str), columns: &[&str], of: &[u32]) -> Option<f64> {
        let mut tables = self.tables(section);
        let (table, column) = tables.find_map(|table| Some((table, table.column(columns)?)))?;
        self.sum_at(table, column, of)
    }

    fn sum_at(&self, table: &Table<'_>, column: usize, of: &[u32]) -> Option<f64> {
        let id = table.column(&["I#"]);
        let value = |number: &u32| {
            let is_it = |row: &&Vec<_>| cell(row, id).parse() == Ok(*number);
            self.facts.numbers.count(cell(table.rows.iter().find(is_it)?, Some(column)))
        };
        of.iter().map(value).sum::<Option<f64>>().filter(|_| !of.is_empty())
    }

    fn processors(&self, interval: &mut Interval, instances: &Instances) {
        let all: Vec<u32> = instances.keys().copied().collect();
        // Instances on one host share its processors.
        let mut hosts: BTreeMap<&str, u32> = BTreeMap::new();
        for (number, host) in instances {
            hosts.entry(host).or_insert(*number);
        }
        let hosts: Vec<u32> = hosts.into_values().collect();
        let totals = &mut interval.totals;
        let mut time = |column, section, names: &[&str], of: &[u32]| {
            totals.set(column, self.sum(section, names, of).map(|seconds| seconds * SECOND));
        };
        time("db_time_ns", TIME_MODEL, &["DB time (s)"], &all);
        time("cpu_ns", TIME_MODEL, &["DB CPU (s)"], &all);
        time("background_cpu_ns", TIME_MODEL, &["bg CPU (s)"], &all);
        time("host_busy_ns", OS, &["Busy", "Busy Time (s)"], &hosts);
        time("host_idle_ns", OS, &["Idle", "Idle Time (s)"], &hosts);
        totals.set("waits_ns", self.waits(&all).map(|seconds| seconds * SECOND));
        totals.set("processors", self.sum(OS, &["#CPUs", "Num CPUs"], &hosts));
        totals.set("cores", self.sum(OS, &["#Cores", "CPU Cores"], &hosts));
        totals.set("sockets", self.sum(OS, &["#Sckts", "CPU Sckts"], &hosts));
        let memory = self.sum(OS, &["MB", "Memory (M)"], &hosts);
        totals.set("host_memory_bytes", memory.map(|mib| mib * MIB));
        // The columns of begin and end, in the order of the headings above them.
        let level = |section, index: usize| {
            let table = self.tables(section).next()?;
            let end = *table.columns("End").get(index)?;
            // Its heading may have a second line, in which the level is named.
            let begin = self.sum_at(table, end.checked_sub(1)?, &all);
            higher(begin, self.sum_at(table, end, &all))
        };
        totals.set("sessions", level(SESSIONS, 0));
        totals.set("private_memory_bytes", level(PGA, 2).map(|mib| mib * MIB));
    }

    /// Sum of the waits of all classes.
    fn waits(&self, of: &[u32]) -> Option<f64> {
        let mut tables = self.tables(WAITS).filter(|table| table.column(&["DB CPU (s)"]).is_some());
        let table = tables.next()?;
        let columns = table
            .head
            .iter()
            .enumerate()
            .filter(|(_, head)| (head.ends_with("(s)")) && !begins(head, "DB CPU"));
        let id = table.column(&["I#"]);
        let mut seconds = 0.0;
        for (column, _) in columns {
            for number in of {
                let is_it = |row: &&Vec<_>| cell(row, id).parse() == Ok(*number);
                let printed = cell(table.rows.iter().find(is_it)?, Some(column));
                // A class without waits has an empty cell.
                seconds +=
                    if printed.is_empty() { 0.0 } else { self.facts.numbers.count(printed)? };
            }
        }
        Some(seconds)
    }

    /// Sets requests and bytes by function: from 12.1 on there is one row for the cluster, before
    /// that totals of each instance, in the order read bytes, written bytes, reads, writes.
    fn functions(&self, interval: &mut Interval, seconds: f64) {
        const COLUMNS: [&str; 4] = [
            "function_read_bytes",
            "function_write_bytes",
            "function_read_ios",
            "function_write_ios",
        ];
        let Some(table) = self.tables(FUNCTION_IO).next() else { return };
        let numbers = self.facts.numbers;
        let rates: [Option<f64>; 4] = if table.column(&["Function Name"]).is_some() {
            let (id, name) = (table.column(&["I#"]), table.column(&["Function Name"]));
            let is_total = |row: &&Vec<_>| (cell(row, id), cell(row, name)) == ("*", "Total");
            let Some(row) = table.rows.iter().find(is_total) else { return };
            ["Read MB/s", "Write MB/s", "Reads/s", "Writes/s"]
                .map(|column| numbers.count(cell(row, Some(table.column(&[column])?))))
        } else {
            let totals = table.columns("Total");
            let id = table.column(&["I#"]);
            let instances: Vec<u32> =
                table.rows.iter().filter_map(|row| cell(row, id).parse().ok()).collect();
            [0, 1, 2, 3].map(|index| self.sum_at(table, *totals.get(index)?, &instances))
        };
        let units = [MIB, MIB, 1.0, 1.0];
        for ((column, rate), unit) in COLUMNS.into_iter().zip(rates).zip(units) {
            interval.totals.set(column, rate.map(|rate| rate * unit * seconds));
        }
    }
}
