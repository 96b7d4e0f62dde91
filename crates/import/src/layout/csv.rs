//! A user's own table: `docs/import.md` describes its columns.

use std::collections::BTreeMap;

use blockstone_base::column::{Kind as ColumnKind, Unit};
use blockstone_base::csv::{self, Dialect};
use blockstone_base::database::LOAD;
use blockstone_base::units::counted;

use crate::report::{Database, Instance, Interval, Kind, Report};
use crate::{ImportError, Source, time};

use super::facts::SECOND;
use super::{Head, Layout};

pub const CSV: Layout = Layout { name: "CSV of loads", recognises: is_it, read };

fn is_it(head: &Head) -> bool {
    let head = head.text.as_str();
    let is_data = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    let head = head.lines().find(is_data).unwrap_or_default();
    let Ok(mut records) = csv::records(head, Dialect::Loose) else { return false };
    records.next().is_some_and(|(_, names)| {
        let has = |name: &str| names.iter().any(|known| known == name);
        (has("time") || has("end")) && names.iter().any(|name| meaning(name).is_some())
    })
}

/// Counter filled by a numeric column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Meaning {
    column: &'static str,
    /// Factor by which its numbers are multiplied.
    unit: f64,
    is_rate: bool,
}

/// Finds a column of [`LOAD`] by its name; a counter may also be a rate, `read_ios_per_s`, and a
/// time may be in seconds, `cpu_s`. `reads_per_s` and `writes_per_s` are requests.
fn meaning(name: &str) -> Option<Meaning> {
    let name = match name {
        "reads_per_s" => "read_ios_per_s",
        "writes_per_s" => "write_ios_per_s",
        other => other,
    };
    let known = |name: &str| LOAD.columns.iter().find(|column| column.name == name);
    if let Some(column) = known(name) {
        return Some(Meaning { column: column.name, unit: 1.0, is_rate: false });
    }
    if let Some(column) = name.strip_suffix("_per_s").and_then(known) {
        let is_counter = column.kind == ColumnKind::Counter && column.unit != Unit::Nanoseconds;
        return is_counter.then_some(Meaning { column: column.name, unit: 1.0, is_rate: true });
    }
    let column = known(&format!("{}_ns", name.strip_suffix("_s")?))?;
    Some(Meaning { column: column.name, unit: SECOND, is_rate: false })
}

struct Reader {
    names: Vec<String>,
    intervals: Vec<Interval>,
    database: Option<String>,
    /// End of the last interval of each instance.
    ends: BTreeMap<u32, i64>,
    without_begin: usize,
}

fn read(source: &Source<'_>) -> Result<Report, ImportError> {
    let mut reader = Reader {
        names: Vec::new(),
        intervals: Vec::new(),
        database: None,
        ends: BTreeMap::new(),
        without_begin: 0,
    };
    let damaged = |line, what| ImportError::Damaged { line, what };
    // A file that is being written may end anywhere.
    let whole = source.text.rfind('\n').map_or(source.text, |end| &source.text[..=end]);
    let records = csv::records(whole, Dialect::Loose);
    for (line, record) in records.map_err(|(line, why)| damaged(line, why.to_owned()))? {
        let fields: Vec<String> = record.iter().map(str::to_owned).collect();
        if reader.names.is_empty() {
            reader.names = fields;
            reader.check()?;
        } else if whole.ends_with('\n') {
            reader.row(&fields).map_err(|what| damaged(line, what))?;
        }
    }
    let mut notes = Vec::new();
    if !source.text.ends_with('\n') {
        notes.push("its last line has no end: it is not read".to_owned());
    }
    if reader.without_begin > 0 {
        let rows = counted(reader.without_begin as u64, "row");
        notes.push(format!("no earlier row says when it begins: {rows} left out"));
    }
    let name = reader.database.unwrap_or_else(|| source.name_hint.to_owned());
    let database = Database { name, ..Database::default() };
    let intervals = reader.intervals;
    Ok(Report { kind: Kind::Csv, database, intervals, sections: Vec::new(), notes })
}

impl Reader {
    fn check(&self) -> Result<(), ImportError> {
        let is_known = |name: &&String| {
            ["time", "begin", "end", "database", "instance"].contains(&name.as_str())
                || meaning(name).is_some()
        };
        match self.names.iter().find(|name| !is_known(name)) {
            Some(name) => {
                let what = format!("no column is called {name:?}");
                Err(ImportError::Damaged { line: 1, what })
            }
            None => Ok(()),
        }
    }

    fn row(&mut self, fields: &[String]) -> Result<(), String> {
        if fields.len() != self.names.len() {
            return Err(format!("{} fields for {} columns", fields.len(), self.names.len()));
        }
        let names = &self.names;
        let text = |name: &str| {
            let index = names.iter().position(|known| known == name)?;
            Some(fields[index].as_str()).filter(|field| !field.is_empty())
        };
        let at = |name: &str| match text(name) {
            None => Ok(None),
            Some(field) => time::iso(field).map(Some).ok_or(format!("{field:?} is not a time")),
        };
        let number = match text("instance") {
            None => 1,
            Some(field) => {
                field.parse().map_err(|_| format!("instance {field:?} is not a number"))?
            }
        };
        let end_s = at("end")?.or(at("time")?).ok_or("it has no time")?;
        let begin_s = at("begin")?.or(self.ends.get(&number).copied());
        self.ends.insert(number, end_s);
        if let Some(name) = text("database") {
            let known = self.database.get_or_insert_with(|| name.to_owned());
            if known != name {
                return Err(format!("it is of the database {name:?}, rows before it of {known:?}"));
            }
        }
        let Some(begin_s) = begin_s else {
            self.without_begin += 1;
            return Ok(());
        };
        if begin_s >= end_s {
            return Err("it ends before it begins".to_owned());
        }
        let seconds = (end_s - begin_s) as f64;
        let instance = Instance { number: Some(number), ..Instance::default() };
        let mut interval = Interval { instance, begin_s, end_s, ..Interval::default() };
        interval.totals.set("elapsed_ns", seconds * SECOND);
        for (name, field) in self.names.iter().zip(fields) {
            let Some(meaning) = meaning(name) else { continue };
            if field.is_empty() {
                continue;
            }
            let value: Option<f64> =
                field.parse().ok().filter(|it: &f64| it.is_finite() && *it >= 0.0);
            let value = value.ok_or(format!("{name} {field:?} is not a number"))?;
            let times = if meaning.is_rate { seconds } else { 1.0 };
            interval.totals.set(meaning.column, value * meaning.unit * times);
        }
        self.intervals.push(interval);
        Ok(())
    }
}
