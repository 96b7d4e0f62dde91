//! The database, host and time of a report.

use crate::report::{Database, Instance, Interval};
use crate::table::{Table, cell};
use crate::{ImportError, Source, text, time};

use super::facts::{Facts, GIB, MIB};
use super::sections::{HOST, IDENTITY, MEMORY, OS, SNAPSHOTS};

/// Finds the identity by the names of columns: HTML has it in one or two tables, text in the tables
/// before the first section.
pub fn identity(facts: &Facts<'_>, source: &Source<'_>) -> (Database, Interval) {
    let mut database = Database::default();
    let mut interval = Interval::default();
    let numbers = facts.numbers;
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
        && let Some(mib) =
            labelled(facts, source, "Host Mem (MB):").and_then(|it| numbers.count(it))
    {
        interval.totals.set("host_memory_bytes", mib * MIB);
    }
    for (label, column) in
        [("SGA use (MB):", "shared_memory_bytes"), ("PGA use (MB):", "private_memory_bytes")]
    {
        let mib = labelled(facts, source, label).and_then(|it| numbers.count(it));
        interval.totals.set(column, mib.map(|mib| mib * MIB));
    }
    (database, interval)
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

/// Returns the last of the values after a label: the one at the end of the interval.
fn labelled<'t>(facts: &'t Facts<'_>, source: &Source<'t>, label: &str) -> Option<&'t str> {
    let rows = facts.of(&MEMORY).flat_map(|table| &table.rows);
    let mut found = rows.filter(|row| cell(row, Some(0)) == label);
    if let Some(row) = found.next() {
        return row.iter().map(|cell| cell.trim()).rfind(|cell| !cell.is_empty());
    }
    let mut lines = text::lines(source.text).take(LINES_OF_HEAD);
    let (_, values) = lines.find_map(|line| line.split_once(label))?;
    values.split_whitespace().last()
}

/// Maximum number of lines of the summary before the sections.
const LINES_OF_HEAD: usize = 400;

/// Reads number, time and sessions of the snapshots at both ends.
pub fn snapshots(
    facts: &Facts<'_>,
    source: &Source<'_>,
    interval: &mut Interval,
) -> Result<(), ImportError> {
    let begin = snapshot(facts, source, "Begin Snap:");
    let end = snapshot(facts, source, "End Snap:");
    let (Some(begin), Some(end)) = (begin, end) else {
        let what = "there is no begin and end of the interval in it".to_owned();
        return Err(ImportError::Damaged { line: 1, what });
    };
    if end.at_s <= begin.at_s {
        let what = "the interval ends before it begins".to_owned();
        return Err(ImportError::Damaged { line: 1, what });
    }
    interval.snapshots = Some((begin.number, end.number));
    (interval.begin_s, interval.end_s) = (begin.at_s, end.at_s);
    interval.totals.set("sessions", end.sessions);
    Ok(())
}

struct Snapshot {
    number: u64,
    at_s: i64,
    sessions: Option<f64>,
}

fn snapshot(facts: &Facts<'_>, source: &Source<'_>, label: &str) -> Option<Snapshot> {
    let numbers = facts.numbers;
    let mut rows = facts.of(&SNAPSHOTS).flat_map(|table| &table.rows);
    if let Some(row) = rows.find(|row| cell(row, Some(0)) == label) {
        return Some(Snapshot {
            number: cell(row, Some(1)).parse().ok()?,
            at_s: time::snapshot(cell(row, Some(2)))?,
            sessions: numbers.count(cell(row, Some(3))),
        });
    }
    let mut lines = text::lines(source.text).take(LINES_OF_HEAD);
    let values = lines.find_map(|line| line.trim_start().strip_prefix(label))?;
    let mut words = values.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let (date, clock) = (words.next()?, words.next()?);
    let at_s = time::snapshot(&format!("{date} {clock}"))?;
    Some(Snapshot { number, at_s, sessions: words.next().and_then(|word| numbers.count(word)) })
}
