//! Names of figures in expectations: the keys of the document, or shorter ones.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use blockstone_base::table::{Heading, Measure, Row, Table, Value};

use super::{ExpectError, Expectation};
use crate::expected::Found;
use crate::render::json::schema::Document;
use crate::report::Report;

/// A figure, and what is known of it before it is measured.
#[derive(Clone, Debug)]
pub struct Term {
    /// Shortest name.
    pub name: String,
    /// Key in the document.
    pub key: String,
    pub measure: Measure,
    pub about: String,
}

/// A figure of a report that a name stands for.
pub(super) struct OfReport {
    pub figure: Found,
    /// Name of the row; empty for a single figure.
    pub row: String,
    pub condemned_by: Vec<String>,
}

/// Names for figures whose usual name says more than the shortest one.
const ALIASES: [(&str, &str); 2] = [("iops", "read_iops"), ("mbps", "read_mbps")];

/// Parts of keys that a name may leave out: units, and what goes without saying.
const LEFT_OUT: [&str; 8] = ["ns", "bytes", "latency", "per", "s", "share", "ratio", "max"];

/// Returns the shorter name of a key: `commit_latency_ns_p99` is `commit.p99`, `max_iops` is
/// `iops`.
fn short(key: &str) -> String {
    let parts: Vec<&str> = key.split('_').filter(|part| !LEFT_OUT.contains(part)).collect();
    if parts.is_empty() { key.to_owned() } else { parts.join(".") }
}

fn is_named(key: &str, name: &str) -> bool {
    let aliased = ALIASES.iter().any(|(alias, of)| *alias == name && *of == key);
    key == name || short(key) == name || aliased
}

/// Returns the measure of a figure, which its key ends in or contains.
fn measure_of(key: &str) -> Measure {
    let parts: Vec<&str> = key.split('_').collect();
    let has = |part: &str| parts.contains(&part);
    match parts.last() {
        _ if has("ns") => Measure::Nanoseconds,
        Some(&"mbps") => Measure::BytesPerS,
        Some(&("ratio" | "share")) => Measure::Share,
        _ => Measure::Count,
    }
}

/// Splits `table.column` and `table[row].column`.
fn of_table(name: &str) -> Option<(&str, Option<&str>, &str)> {
    let (table, row, column) = if let Some((table, rest)) = name.split_once('[') {
        let (row, column) = rest.rsplit_once(']')?;
        (table, Some(row), column.strip_prefix('.')?)
    } else {
        let (table, column) = name.split_once('.')?;
        (table, None, column)
    };
    (!table.is_empty() && !column.is_empty()).then_some((table, row, column))
}

fn term(heading: &Heading) -> Term {
    let (key, about) = (heading.key.to_string(), heading.doc.to_string());
    Term { name: short(&heading.key), key, measure: heading.measure, about }
}

/// Returns the single figures of a document.
fn terms(document: &Document) -> Vec<Term> {
    let figures = document.figures().iter().map(|(key, about)| Term {
        name: short(key),
        key: (*key).to_owned(),
        measure: measure_of(key),
        about: (*about).to_owned(),
    });
    figures.chain(document.scalars().iter().map(term)).collect()
}

/// Checks that a name stands for a figure of one of the documents, and that its limit has the unit
/// of the figure. `what` is the verb.
pub fn resolve(
    expectation: &Expectation,
    what: &str,
    documents: &[&Document],
) -> Result<(), ExpectError> {
    let name = expectation.name.as_str();
    let all: Vec<Term> = documents.iter().flat_map(|document| terms(document)).collect();
    if let Some(term) = all.iter().find(|term| is_named(&term.key, name)) {
        return expectation.check(term.measure);
    }
    let unknown = |hint: String| ExpectError::Unknown {
        expectation: expectation.to_string(),
        what: what.to_owned(),
        name: name.to_owned(),
        hint,
    };
    if let Some((table, _, column)) = of_table(name)
        && let Some(document) = documents.iter().find(|it| it.declares_table(table))
    {
        let columns = document.columns_of(table);
        let found = columns.iter().find(|heading| is_named(&heading.key, column));
        return match found {
            Some(heading) => expectation.check(heading.measure),
            // Columns that are not declared follow from what is measured.
            None if columns.is_empty() => Ok(()),
            None => {
                let names: Vec<String> = columns.iter().map(|it| short(&it.key)).collect();
                Err(unknown(format!("columns of {table} are {}", names.join(", "))))
            }
        };
    }
    let parts = |name: &str| name.split(['.', '_']).map(str::to_owned).collect::<Vec<String>>();
    let wanted = parts(name);
    let alike = all.iter().filter(|term| parts(&term.name).iter().any(|it| wanted.contains(it)));
    let alike: BTreeSet<&str> = alike.map(|term| term.name.as_str()).collect();
    let alike: Vec<&str> = alike.into_iter().collect();
    Err(unknown(match alike.as_slice() {
        [] => "--expect help lists the names".to_owned(),
        alike => format!("{} are known; --expect help lists all", alike.join(", ")),
    }))
}

/// Returns the figures for which a verb with these documents knows a name, each name once.
pub fn known(documents: &[&Document]) -> Vec<Term> {
    let mut names = BTreeSet::new();
    let all = documents.iter().flat_map(|document| terms(document));
    all.filter(|term| names.insert(term.name.clone())).collect()
}

/// Lists the names that a verb with these documents knows.
pub fn help(documents: &[&Document]) -> String {
    let mut text = String::from(
        "A limit is a name, a comparison (< <= > >= = !=) and a number with its unit:\n\
         --expect 'commit.p99<2ms, iops>=20000'. Names, each with an example of a number:\n",
    );
    for document in documents {
        let terms = terms(document);
        if documents.len() > 1 && !terms.is_empty() {
            let _ = writeln!(text, "\n{}", document.about);
        }
        let width = terms.iter().map(|term| term.name.len()).max().unwrap_or(0);
        for Term { name, measure, about, .. } in terms {
            let _ = writeln!(text, "  {name:width$}  {:7}  {about}", example(measure));
        }
    }
    let tables: BTreeSet<&str> = documents.iter().flat_map(|it| it.table_names()).collect();
    if !tables.is_empty() {
        let tables = tables.into_iter().collect::<Vec<_>>().join(", ");
        let _ = writeln!(
            text,
            "\nColumns of tables, for all rows or for one: TABLE.COLUMN or TABLE[ROW].COLUMN, by\n\
             the keys of --json. Tables: {tables}"
        );
    }
    text
}

const fn example(measure: Measure) -> &'static str {
    match measure {
        Measure::Nanoseconds => "2ms",
        Measure::Bytes => "64M",
        Measure::BytesPerS => "500MB/s",
        Measure::Share => "80%",
        Measure::Ratio | Measure::ToOne => "1.5",
        Measure::Text | Measure::Flag => "yes",
        Measure::Count | Measure::OfRow => "20000",
    }
}

/// Returns the figures of a report that a name stands for: one, or one of each row.
pub(super) fn find(name: &str, report: &Report) -> Vec<OfReport> {
    if let Some((key, figure)) = report.summary.iter().find(|(key, _)| is_named(key, name)) {
        let measure = measure_of(key);
        let factor = if measure == Measure::BytesPerS { 1e6 } else { 1.0 };
        let value = figure.estimate.scaled(factor).into();
        let condemned_by = figure.condemned_by.clone();
        return vec![OfReport {
            figure: Found { value, measure },
            row: String::new(),
            condemned_by,
        }];
    }
    if let Some(found) = report.scalars.as_ref().and_then(|table| single(table, name)) {
        return vec![found];
    }
    let Some((table, row, column)) = of_table(name) else { return Vec::new() };
    // A screen may show a part of a table before all of it.
    let found = report.tables().filter(|it| it.name == table).find_map(|table| {
        Some((table, table.columns.iter().position(|it| is_named(&it.key, column))?))
    });
    let Some((table, column)) = found else { return Vec::new() };
    let is_wanted = |it: &&Row| row.is_none_or(|wanted| has_name(it, wanted));
    let mut found: Vec<OfReport> =
        table.rows.iter().filter(is_wanted).map(|row| cell(table, row, column)).collect();
    // A row in which nothing happened keeps to every limit, unless it is all there is.
    let nothing = Value::default();
    if found.iter().any(|it| it.figure.value != nothing) {
        found.retain(|it| it.figure.value != nothing);
    }
    found
}

/// Returns whether a text or the first number of a row is the wanted name.
fn has_name(row: &Row, wanted: &str) -> bool {
    let first = matches!(row.first(), Some(Value::Number(number)) if number.to_string() == wanted);
    first || row.cells.iter().any(|cell| matches!(cell, Value::Text(text) if text == wanted))
}

fn single(table: &Table, name: &str) -> Option<OfReport> {
    let column = table.columns.iter().position(|heading| is_named(&heading.key, name))?;
    let found = cell(table, table.rows.first()?, column);
    Some(OfReport { row: String::new(), ..found })
}

fn cell(table: &Table, row: &Row, column: usize) -> OfReport {
    let figure = Found { value: row[column].clone(), measure: row.measure(&table.columns[column]) };
    let is_condemned = table.condemns(row, column);
    let condemned_by = if is_condemned { row.condemned_by.clone() } else { Vec::new() };
    OfReport { figure, row: table.name_of(row), condemned_by }
}
