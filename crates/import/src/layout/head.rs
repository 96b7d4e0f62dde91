//! The database, host and time of a report.

use std::borrow::Cow;

use crate::report::{Container, Database, Instance, Interval};
use crate::table::{Table, cell};
use crate::{ImportError, Source, text, time};

use super::facts::{Facts, GIB, MIB};
use super::sections::{HOST, IDENTITY, MEMORY, OS, ReportSection, SNAPSHOTS};

/// Finds the identity by the names of columns: HTML has it in one or two tables, text in the tables
/// before the first section.
pub fn identity(facts: &Facts<'_>, source: &Source<'_>) -> (Database, Interval) {
    let mut database = Database::default();
    let mut interval = Interval::default();
    database.container = facts.tables.iter().find_map(container);
    let tables = facts.tables.iter().filter(|table| IDENTITY.is(table) || table.name.is_empty());
    for table in tables {
        let Some(row) = table.rows.first() else { continue };
        let text =
            |names: &[&str]| Some(cell(row, table.column(names))).filter(|it| !it.is_empty());
        if table.column(&["DB Id"]).is_some() {
            let name = text(&["DB Name", "Database"]).unwrap_or_default();
            name.clone_into(&mut database.name);
            database.id = text(&["DB Id"]).and_then(|id| id.parse().ok());
            database.release = text(&["Release"]).map(str::to_owned);
            let cluster = text(&["RAC", "Cluster", "OPS"]);
            database.cluster = cluster.map(|it| it.eq_ignore_ascii_case("YES"));
        }
        if table.column(&["Instance"]).is_some() {
            let name = text(&["Instance"]).unwrap_or_default();
            name.clone_into(&mut interval.instance.name);
            interval.instance.number = text(&["Inst Num"]).and_then(|it| it.parse().ok());
            interval.started_s = text(&["Startup Time"]).and_then(time::snapshot);
        }
        if let Some(name) =
            text(&["Host", "Host Name"]).filter(|_| table.column(&["DB Id"]).is_some())
        {
            interval.instance.host = source.host(name);
        }
        if HOST.is(table) || is_host(table) {
            host(table, facts, source, &mut interval);
        }
    }
    for table in facts.of(&HOST) {
        host(table, facts, source, &mut interval);
    }
    if database.name.is_empty() {
        // Statspack may leave it blank; the page headings have it.
        let named = text::lines(source.text).find_map(|line| line.split_once("DB/Inst: "));
        let name = named.and_then(|(_, rest)| rest.split('/').next()).unwrap_or_default();
        name.trim().clone_into(&mut database.name);
    }
    let of_host = |row| facts.value(&OS, row, &["Value", "Total"]);
    if of_host("PHYSICAL_MEMORY_BYTES").is_none()
        && let Some(mib) = level(facts, source, "Host Mem (MB):")
    {
        interval.totals.set("host_memory_bytes", mib * MIB);
    }
    for (label, column) in
        [("SGA use (MB):", "shared_memory_bytes"), ("PGA use (MB):", "private_memory_bytes")]
    {
        interval.totals.set(column, level(facts, source, label).map(|mib| mib * MIB));
    }
    (database, interval)
}

/// Returns the pluggable database of a table that names a single one.
fn container(table: &Table<'_>) -> Option<Container> {
    let [row] = &table.rows[..] else { return None };
    let (id, name) = (table.column(&["Container DB Id"])?, table.column(&["Container Name"])?);
    let name = cell(row, Some(name)).to_owned();
    let is_root = name.eq_ignore_ascii_case("CDB$ROOT");
    (!is_root).then(|| Container { name, id: cell(row, Some(id)).parse().ok() })
}

fn is_host(table: &Table<'_>) -> bool {
    table.name.is_empty() && table.has(&["CPUs", "Sockets"])
}

fn host(table: &Table<'_>, facts: &Facts<'_>, source: &Source<'_>, interval: &mut Interval) {
    let Some(row) = table.rows.first() else { return };
    let name = cell(row, table.column(&["Host Name", "Name"]));
    let Instance { host, .. } = &mut interval.instance;
    if !name.is_empty() {
        *host = source.host(name);
    }
    let number = |names: &[&str]| facts.numbers.count(cell(row, table.column(names)));
    let totals = &mut interval.totals;
    totals.set("processors", number(&["CPUs"]));
    totals.set("cores", number(&["Cores"]));
    totals.set("sockets", number(&["Sockets"]));
    let memory = number(&["Memory (GB)", "Memory(GB)", "Memory (G)"]);
    totals.set("host_memory_bytes", memory.map(|gib| gib * GIB));
}

/// Maximum number of lines of the summary before the sections.
const LINES_OF_HEAD: usize = 400;

/// Returns the row with this label: of a table of HTML, or of one before the first section.
fn row<'s, 'a>(
    facts: &'s Facts<'a>,
    section: &'s ReportSection,
    label: &str,
) -> Option<(&'s Table<'a>, &'s [Cow<'a, str>])> {
    let mut tables = facts.of(section).chain(facts.tables.iter().filter(|it| it.name.is_empty()));
    tables.find_map(|table| {
        let row = table.rows.iter().find(|row| cell(row, Some(0)) == label)?;
        Some((table, &row[..]))
    })
}

/// Returns what follows a label in the lines before the first section.
fn line<'t>(source: &Source<'t>, label: &str) -> Option<&'t str> {
    let mut lines = text::lines(source.text).take(LINES_OF_HEAD);
    lines.find_map(|line| line.trim_start().strip_prefix(label))
}

/// Returns the higher of the values behind a label, which are those at begin and end.
fn level(facts: &Facts<'_>, source: &Source<'_>, label: &str) -> Option<f64> {
    let numbers = facts.numbers;
    if let Some((_, row)) = row(facts, &MEMORY, label) {
        let mut shown = row.iter().skip(1).map(|cell| cell.trim()).filter(|it| !it.is_empty());
        let (first, last) = (shown.next()?, shown.next_back());
        let end = last.unwrap_or(first);
        return higher(numbers.count(first), numbers.count(end));
    }
    let words: Vec<&str> = line(source, label)?.split_whitespace().collect();
    let end = numbers.count(words.last()?)?;
    let begin = if let [begin, _] = words[..] { numbers.count(begin) } else { None };
    higher(begin, Some(end))
}

/// Returns the higher level of begin and end, or that of the end if only it is known.
pub fn higher(begin: Option<f64>, end: Option<f64>) -> Option<f64> {
    let end = end?;
    Some(begin.map_or(end, |begin| begin.max(end)))
}

/// The snapshots at both ends of an interval.
pub struct Snapshots {
    begin: Snapshot,
    end: Snapshot,
    /// The distance that the report says, in seconds, rounded to hundredths of minutes.
    elapsed: Option<f64>,
}

#[derive(Default)]
struct Snapshot {
    number: Option<u64>,
    /// Unknown if its date cannot be read.
    at_s: Option<i64>,
    sessions: Option<f64>,
}

impl Snapshots {
    pub fn of(facts: &Facts<'_>, source: &Source<'_>) -> Result<Self, ImportError> {
        let begin = snapshot(facts, source, "Begin Snap:");
        let end = snapshot(facts, source, "End Snap:");
        let (Some(begin), Some(end)) = (begin, end) else {
            return Err(damaged("there is no begin and end of the interval in it"));
        };
        if begin.at_s.zip(end.at_s).is_some_and(|(begin, end)| end <= begin) {
            return Err(damaged("the interval ends before it begins"));
        }
        Ok(Self { begin, end, elapsed: elapsed(facts, source) })
    }

    /// Returns the exact length; without it, the length by the clock if the report is complete.
    pub fn length(
        &self,
        seconds: Option<f64>,
        is_complete: bool,
        notes: &mut Vec<String>,
    ) -> Option<f64> {
        const DIFFERS: f64 = 0.02;
        let by_clock = self.begin.at_s.zip(self.end.at_s).map(|(begin, end)| (end - begin) as f64);
        match (seconds, by_clock) {
            (Some(seconds), by_clock) => {
                let differs =
                    |by_clock: f64| (seconds - by_clock).abs() > (DIFFERS * by_clock).max(60.0);
                if let Some(by_clock) = by_clock.filter(|it| differs(*it)) {
                    notes.push(format!(
                        "its rates are of {seconds:.0} s, its snapshots {by_clock:.0} s apart"
                    ));
                }
                Some(seconds)
            }
            (None, _) if !is_complete => None,
            (None, Some(by_clock)) => {
                notes.push("its length is that of the snapshots' times".to_owned());
                Some(by_clock)
            }
            (None, None) => {
                let elapsed = self.elapsed?;
                notes.push("its length is the elapsed time that it says, rounded".to_owned());
                Some(elapsed)
            }
        }
    }

    /// Sets the time of the interval, its snapshots and the sessions.
    pub fn fill(
        &self,
        interval: &mut Interval,
        seconds: Option<f64>,
        notes: &mut Vec<String>,
    ) -> Result<(), ImportError> {
        let Self { begin, end, .. } = self;
        interval.snapshots = begin.number.zip(end.number);
        interval.totals.set("sessions", higher(begin.sessions, end.sessions));
        let times = (begin.at_s, end.at_s);
        place(interval, times, seconds, notes).ok_or_else(|| {
            damaged("the dates of its snapshots cannot be read, and nothing else says its length")
        })
    }
}

/// Sets the time of an interval. One of which no date can be read begins in 1970. Returns `None` if
/// nothing says how long it is.
pub fn place(
    interval: &mut Interval,
    (begin_s, end_s): (Option<i64>, Option<i64>),
    seconds: Option<f64>,
    notes: &mut Vec<String>,
) -> Option<()> {
    const LONGEST_S: f64 = 1e9;
    let length = || {
        let seconds = seconds.filter(|it| (0.0..LONGEST_S).contains(it))?;
        Some((seconds.round() as i64).max(1))
    };
    (interval.begin_s, interval.end_s) = match (begin_s, end_s) {
        (Some(begin_s), Some(end_s)) => (begin_s, end_s),
        (Some(begin_s), None) => (begin_s, begin_s + length()?),
        (None, Some(end_s)) => (end_s - length()?, end_s),
        (None, None) => {
            notes.push(
                "the dates of its snapshots cannot be read: when it was is unknown".to_owned(),
            );
            interval.is_undated = true;
            (0, length()?)
        }
    };
    Some(())
}

fn damaged(what: &str) -> ImportError {
    ImportError::Damaged { line: 1, what: what.to_owned() }
}

fn snapshot(facts: &Facts<'_>, source: &Source<'_>, label: &str) -> Option<Snapshot> {
    let numbers = facts.numbers;
    let column = |name| {
        let (table, row) = row(facts, &SNAPSHOTS, label)?;
        Some(cell(row, table.column(&[name]))).filter(|it| !it.is_empty())
    };
    let sessions = || column("Sessions").and_then(|it| numbers.count(it));
    let mut rows = facts.of(&SNAPSHOTS).flat_map(|table| &table.rows);
    if let Some(row) = rows.find(|row| cell(row, Some(0)) == label) {
        return Some(Snapshot {
            number: cell(row, Some(1)).parse().ok(),
            at_s: time::snapshot(cell(row, Some(2))),
            sessions: numbers.count(cell(row, Some(3))),
        });
    }
    let values = line(source, label)?.trim_start();
    let (number, rest) = values.split_once(char::is_whitespace).unwrap_or((values, ""));
    let mut snapshot = Snapshot { number: number.parse().ok(), ..Snapshot::default() };
    match time::leading(rest) {
        Some((at_s, rest)) => {
            snapshot.at_s = at_s;
            // A blank may separate groups of digits: columns are further apart.
            let first = rest.trim_start().split("  ").next().unwrap_or_default();
            snapshot.sessions = numbers.count(first);
        }
        None => snapshot.sessions = sessions(),
    }
    Some(snapshot)
}

/// Returns the seconds between the snapshots, of which the report says the minutes.
fn elapsed(facts: &Facts<'_>, source: &Source<'_>) -> Option<f64> {
    const LABEL: &str = "Elapsed:";
    const MINUTE: f64 = 60.0;
    let mut rows = facts.of(&SNAPSHOTS).flat_map(|table| &table.rows);
    let shown = match rows.find(|row| cell(row, Some(0)) == LABEL) {
        Some(row) => row.iter().skip(1).map(|cell| cell.trim()).find(|cell| !cell.is_empty())?,
        None => line(source, LABEL)?,
    };
    let (minutes, _) = shown.split_once("(min")?;
    Some(facts.numbers.count(minutes)? * MINUTE)
}
