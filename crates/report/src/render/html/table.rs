//! A table as the template and the script need it.

use std::borrow::Cow;

use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Row, Shape, Spread, Table, Text, Value, divisors,
};
use blockstone_base::units::thousands;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::numbers::{figure, letter};
use crate::format;
use crate::timeline::{Sliced, Timeline, sorted_by};

/// Returns the significant digits of numbers for the script. A level in bytes may be a power of
/// two, which fewer digits would round to just below it; numbers of events must add up.
const fn digits(measure: Measure, merge: Merge) -> usize {
    match (measure, merge) {
        (Measure::Bytes, _) | (Measure::Count, Merge::Sum) => 12,
        _ => 6,
    }
}

#[derive(Serialize)]
pub struct Grid {
    id: String,
    pub title: String,
    pub about: String,
    record: bool,
    columns: Vec<Column>,
    rows: Vec<Line>,
    notes: Vec<String>,
    /// Whether a window chosen on a time axis changes it.
    pub timed: bool,
    /// Index in the data of the script.
    index: usize,
    #[serde(skip)]
    pub data: Json,
}

#[derive(Serialize)]
struct Column {
    heading: String,
    doc: String,
    text: bool,
}

#[derive(Serialize)]
struct Line {
    cells: Vec<Cell>,
    condemned_by: Vec<String>,
    /// Keys of the columns that the rules condemn. If empty, they condemn the whole row.
    condemned_columns: Vec<Text>,
}

#[derive(Serialize)]
struct Cell {
    text: String,
    /// `t` for words, `m` for a missing value, `t m` for one in a column of words.
    class: &'static str,
    /// Reason why it is missing, or its interval.
    title: String,
    /// `±2 %`.
    beside: String,
    condemned: bool,
}

/// Builds a table; `index` is its index in the data of the script.
pub fn grid(table: &Table, index: usize, timeline: Option<&Timeline>) -> Grid {
    let first = table.page_rows.and_then(|rows| first_rows(table, rows));
    let table = first.as_ref().unwrap_or(table);
    let sliced = timeline.and_then(|timeline| timeline.of(table));
    // The slices have the columns of the table, so that none may go.
    let table = &*if sliced.is_some() { Cow::Borrowed(table) } else { table.without_blank_prose() };
    let mut data = data(table, sliced);
    if let (Some(sliced), Some(timeline)) = (sliced, timeline)
        && sliced.edges_ns != timeline.edges_ns
    {
        data["e"] = json!(sliced.edges_ns);
    }
    let column = |column: &Heading| Column {
        heading: column.heading.to_string(),
        doc: column.doc.to_string(),
        text: is_text(column.measure),
    };
    Grid {
        id: format!("table-{}", table.name),
        title: table.title.to_string(),
        about: table.about.to_string(),
        record: table.shape == Shape::Record && table.rows.len() == 1,
        columns: table.columns.iter().map(column).collect(),
        rows: table.rows.iter().map(|row| line(table, row)).collect(),
        notes: table.notes.clone(),
        timed: sliced.is_some(),
        index,
        data,
    }
}

/// Returns the table cut to this number of rows; `None` if it has no more.
fn first_rows(table: &Table, rows: usize) -> Option<Table> {
    let more = table.rows.len().checked_sub(rows).filter(|more| *more > 0)?;
    let mut first = Table { rows: Vec::new(), ..table.clone() };
    first.rows.extend_from_slice(&table.rows[..rows]);
    first.notes.push(format!("{more} more rows: --csv={}", table.name));
    Some(first)
}

fn line(table: &Table, row: &Row) -> Line {
    Line {
        cells: (0..row.cells.len()).map(|column| cell(table, row, column)).collect(),
        condemned_by: row.condemned_by.clone(),
        condemned_columns: row.condemned_columns.clone(),
    }
}

/// Returns whether a column has words, which stand at its left.
const fn is_text(measure: Measure) -> bool {
    matches!(measure, Measure::Text | Measure::Flag)
}

/// Texts longer than this, in bytes, get a wider column.
const LONG: usize = 40;

fn cell(table: &Table, row: &Row, column: usize) -> Cell {
    let (value, measure) = (&row[column], row.measure(&table.columns[column]));
    let text = format::value(value, measure);
    let (class, title, beside) = match value {
        Value::Number(_) => ("", String::new(), String::new()),
        Value::Text(words) if words.len() > LONG => ("t long", String::new(), String::new()),
        Value::Text(_) | Value::Flag(_) => ("t", String::new(), String::new()),
        Value::Missing(missing) => {
            let class = if is_text(measure) { "t m" } else { "m" };
            (class, why(*missing).to_owned(), String::new())
        }
        Value::Estimate(estimate) => {
            let ends = [estimate.low, estimate.high].map(|end| format::value(&end.into(), measure));
            let samples = thousands(estimate.samples as i64);
            let confidence = table.confidence;
            let title = format!("{confidence} %: {} – {}; {samples} samples", ends[0], ends[1]);
            let beside = format::beside(estimate, measure);
            let title = if beside.is_empty() { String::new() } else { title };
            let is_plain = table.columns[column].is_plain;
            ("", title, if is_plain { String::new() } else { beside })
        }
    };
    Cell { text, class, title, beside, condemned: table.condemns(row, column) }
}

const fn why(missing: Missing) -> &'static str {
    match missing {
        Missing::Off => "switched off",
        Missing::NotInVersion => "not in this version",
        Missing::NotInLog => "not in this log",
        Missing::NotPermitted => "not permitted",
        Missing::Unknown => "unknown",
        Missing::NoEvidence => "no evidence: not readable, or contradicted by other counters",
        Missing::Nothing => "nothing happened that it could describe",
    }
}

/// Returns columns, numbers to sort and copy, and the rows of each slice of time.
fn data(table: &Table, sliced: Option<&Sliced>) -> Json {
    let place = |key: &str| table.column(key);
    let merge = |merge: Merge| match merge {
        Merge::Key => json!("k"),
        Merge::Mean => json!("m"),
        Merge::Last => json!("l"),
        Merge::Sum => json!("s"),
        Merge::Greatest => json!("g"),
        Merge::Never => json!("n"),
        Merge::WeightedBy(key) => place(key).map_or(json!("n"), |column| json!(column)),
        Merge::Quotient { part, by } => json!([place(part), place(by)]),
        Merge::Quantile(share) => json!([f64::from(share) / 1e4]),
        Merge::ShareOf { .. } => json!("h"),
        Merge::Per { .. } => json!("p"),
    };
    let columns = table.columns.iter();
    let columns = columns.map(|c| json!([c.key, letter(c.measure), merge(c.merge)]));
    let rows = table.rows.iter().map(|row| numbers(table, row));
    let mut data = json!({
        "n": table.name,
        "c": columns.collect::<Json>(),
        "r": rows.collect::<Json>(),
    });
    if table.columns.iter().any(|column| column.measure == Measure::OfRow) {
        data["m"] = table.rows.iter().map(measure).collect();
    }
    if let Some(sliced) = sliced {
        data["s"] = sorted_by(table).map_or(Json::Null, Json::from);
        timed(table, &sliced.rows, &mut data);
    }
    data
}

fn measure(row: &Row) -> Json {
    json!(letter(row.measure.unwrap_or(Measure::Count)))
}

/// Returns a row for sorting and copying; the page has its texts.
fn numbers(table: &Table, row: &Row) -> Json {
    let number = |(column, value): (&Heading, &Value)| {
        let figure = |number| figure(number, digits(row.measure(column), column.merge));
        match value {
            Value::Number(number) => figure(*number),
            Value::Estimate(e) => {
                json!([figure(e.value), figure(e.low), figure(e.high), e.samples])
            }
            Value::Text(_) | Value::Flag(_) | Value::Missing(_) => Json::Null,
        }
    };
    table.columns.iter().zip(&row.cells).map(number).collect()
}

/// Adds to `data`: `d`, the names of rows, those of the table first; `v`, for each slice that the
/// table covers and each of its rows, the index of its name, then its other cells; `j`, for
/// condemned rows, slice, name and rules; `q`, for columns that are parts, the column they are
/// parts of, the places of `within` among the names, and the divisors in each slice; `h`, for each
/// slice, the spread of rows that have one.
fn timed(table: &Table, slices: &[Option<Vec<Row>>], data: &mut Json) {
    let names = |row: &Row| -> Json {
        let cells = table.columns.iter().zip(&row.cells);
        let names = cells.filter(|(column, _)| column.merge == Merge::Key);
        names.map(|(column, value)| json!(format::value(value, row.measure(column)))).collect()
    };
    let mut dictionary: Vec<Json> = Vec::new();
    let mut measures: Vec<Json> = Vec::new();
    let mut index = |row: &Row| {
        let name = names(row);
        dictionary.iter().position(|known| *known == name).unwrap_or_else(|| {
            dictionary.push(name);
            measures.push(measure(row));
            dictionary.len() - 1
        })
    };
    for row in &table.rows {
        index(row);
    }
    let mut condemned: Vec<Json> = Vec::new();
    let mut values: Vec<Json> = Vec::new();
    let mut spreads: Vec<Json> = Vec::new();
    for (slice, rows) in slices.iter().enumerate() {
        let mut flat: Vec<Json> = Vec::new();
        let mut spread = json!({});
        for row in rows.iter().flatten() {
            let name = index(row);
            flat.push(json!(name));
            let cells = table.columns.iter().zip(&row.cells);
            flat.extend(
                cells.filter(|(column, _)| column.merge != Merge::Key).map(|(column, value)| {
                    value_of(value, digits(row.measure(column), column.merge))
                }),
            );
            if row.spread.count() > 0 {
                spread[name.to_string()] = counts(&row.spread);
            }
            if !row.condemned_by.is_empty() {
                condemned.push(json!([slice, name, row.condemned_by]));
            }
        }
        values.push(rows.as_ref().map_or(Json::Null, |_| Json::Array(flat)));
        spreads.push(spread);
    }
    for (index, column) in table.columns.iter().enumerate() {
        if let Merge::ShareOf { part, within } | Merge::Per { part, within } = column.merge {
            let keys = || table.columns.iter().filter(|column| column.merge == Merge::Key);
            let place = |name| keys().position(|column| column.key == name);
            data["q"][index.to_string()] = json!({
                "part": table.column(part),
                "within": within.split_whitespace().map(place).collect::<Vec<_>>(),
                "divisors": slices.iter().map(|rows| {
                    divisors(&table.columns, index, rows.as_deref().unwrap_or_default())
                }).collect::<Vec<_>>(),
            });
        }
    }
    data["d"] = Json::Array(dictionary);
    data["v"] = Json::Array(values);
    if table.columns.iter().any(|column| matches!(column.merge, Merge::Quantile(_))) {
        data["h"] = Json::Array(spreads);
    }
    if !condemned.is_empty() {
        data["j"] = Json::Array(condemned);
    }
    if data.get("m").is_some() {
        data["o"] = Json::Array(measures);
    }
}

/// Returns the greatest number, then the counts of buckets from the first on; a negative number
/// stands for that many empty buckets.
fn counts(spread: &Spread) -> Json {
    let mut counts: Vec<i64> = vec![spread.greatest() as i64];
    let mut next = 0;
    for (bucket, count) in spread.buckets() {
        if bucket > next {
            counts.push(i64::from(next) - i64::from(bucket));
        }
        counts.push(count as i64);
        next = bucket + 1;
    }
    json!(counts)
}

/// Returns a cell of a slice: a number, the letters for why there is none, or a text in brackets.
fn value_of(value: &Value, digits: usize) -> Json {
    match value {
        Value::Number(number) => figure(*number, digits),
        Value::Estimate(estimate) => figure(estimate.value, digits),
        Value::Text(text) => json!([text]),
        Value::Flag(is_so) => json!([format::yes_or_no(*is_so)]),
        Value::Missing(Missing::Nothing) => json!(""),
        Value::Missing(missing) => json!(format::absent(*missing)),
    }
}
