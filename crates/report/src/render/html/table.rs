//! A table as the template and the script need it.

use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Row, Shape, Table, Value, divisors,
};
use blockstone_base::units::thousands;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::numbers::{figure, letter};
use crate::format;
use crate::timeline::{Timeline, sorted_by};

/// Significant digits of numbers for the script; a level in bytes may be a power of two, which
/// fewer would round to just below it.
const fn digits(measure: Measure) -> usize {
    if matches!(measure, Measure::Bytes) { 12 } else { 6 }
}

#[derive(Serialize)]
pub struct Grid {
    id: String,
    title: String,
    about: String,
    record: bool,
    columns: Vec<Column>,
    rows: Vec<Line>,
    notes: Vec<String>,
    /// Whether a window chosen in time changes it.
    timed: bool,
    /// Its place in the data of the script.
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
}

#[derive(Serialize)]
struct Cell {
    text: String,
    /// `t` for words, `m` for what is missing.
    class: &'static str,
    /// Why it is missing, or the interval.
    title: String,
    /// `±2 %`.
    beside: String,
}

/// Writes a table; `index` is its place in the data of the script.
pub fn grid(table: &Table, index: usize, timeline: Option<&Timeline>) -> Grid {
    let slices = timeline.and_then(|timeline| {
        timeline.tables.iter().find(|(name, _)| *name == table.name).map(|(_, slices)| slices)
    });
    let column = |column: &Heading| Column {
        heading: column.heading.to_string(),
        doc: column.doc.to_string(),
        text: column.measure == Measure::Text,
    };
    Grid {
        id: format!("table-{}", table.name),
        title: table.title.to_string(),
        about: table.about.to_string(),
        record: table.shape == Shape::Record && table.rows.len() == 1,
        columns: table.columns.iter().map(column).collect(),
        rows: table.rows.iter().map(|row| line(table, row)).collect(),
        notes: table.notes.clone(),
        timed: slices.is_some(),
        index,
        data: data(table, slices.map(Vec::as_slice)),
    }
}

fn line(table: &Table, row: &Row) -> Line {
    let cells = table.columns.iter().zip(&row.cells);
    Line {
        cells: cells.map(|(column, value)| cell(value, row.measure(column))).collect(),
        condemned_by: row.condemned_by.clone(),
    }
}

fn cell(value: &Value, measure: Measure) -> Cell {
    let text = format::value(value, measure);
    let (class, title, beside) = match value {
        Value::Number(_) => ("", String::new(), String::new()),
        Value::Text(_) => ("t", String::new(), String::new()),
        Value::Missing(missing) => ("m", why(*missing).to_owned(), String::new()),
        Value::Estimate(estimate) => {
            let ends = [estimate.low, estimate.high].map(|end| format::value(&end.into(), measure));
            let samples = thousands(estimate.samples as i64);
            let title = format!("95 %: {} – {}; {samples} samples", ends[0], ends[1]);
            let beside = format::plus_minus(estimate);
            ("", if beside.is_empty() { String::new() } else { title }, beside)
        }
    };
    Cell { text, class, title, beside }
}

const fn why(missing: Missing) -> &'static str {
    match missing {
        Missing::Off => "switched off",
        Missing::NotInVersion => "not in this version",
        Missing::NotPermitted => "not permitted",
        Missing::Unknown => "unknown",
        Missing::Nothing => "nothing happened that it could describe",
    }
}

/// Columns, numbers to sort and copy, and the rows of each slice of time.
fn data(table: &Table, slices: Option<&[Vec<Row>]>) -> Json {
    let merge = |merge: Merge| match merge {
        Merge::Key => json!("k"),
        Merge::Mean => json!("m"),
        Merge::Last => json!("l"),
        Merge::Sum => json!("s"),
        Merge::Greatest => json!("g"),
        Merge::Never => json!("n"),
        Merge::WeightedBy(key) => table.column(key).map_or(json!("n"), |column| json!(column)),
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
    if let Some(slices) = slices {
        data["s"] = sorted_by(table).map_or(Json::Null, Json::from);
        timed(table, slices, &mut data);
    }
    data
}

fn measure(row: &Row) -> Json {
    json!(letter(row.measure.unwrap_or(Measure::Count)))
}

/// A row for sorting and copying; the page has its texts.
fn numbers(table: &Table, row: &Row) -> Json {
    let number = |(column, value): (&Heading, &Value)| {
        let figure = |number| figure(number, digits(row.measure(column)));
        match value {
            Value::Number(number) => figure(*number),
            Value::Estimate(e) => {
                json!([figure(e.value), figure(e.low), figure(e.high), e.samples])
            }
            Value::Text(_) | Value::Missing(_) => Json::Null,
        }
    };
    table.columns.iter().zip(&row.cells).map(number).collect()
}

/// `d`: the names of rows, those of the table first; `v`: for each slice and each of its rows the
/// index of its name, then its other cells; `j`: of condemned rows, slice, name, rules; `q`: of
/// columns that are parts, the column they are parts of, the place of `within` among the names,
/// and what they were divided by in each slice.
fn timed(table: &Table, slices: &[Vec<Row>], data: &mut Json) {
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
    for (slice, rows) in slices.iter().enumerate() {
        let mut flat: Vec<Json> = Vec::new();
        for row in rows {
            let name = index(row);
            flat.push(json!(name));
            let cells = table.columns.iter().zip(&row.cells);
            flat.extend(
                cells
                    .filter(|(column, _)| column.merge != Merge::Key)
                    .map(|(column, value)| value_of(value, row.measure(column))),
            );
            if !row.condemned_by.is_empty() {
                condemned.push(json!([slice, name, row.condemned_by]));
            }
        }
        values.push(Json::Array(flat));
    }
    for (index, column) in table.columns.iter().enumerate() {
        if let Merge::ShareOf { part, within } | Merge::Per { part, within } = column.merge {
            let mut keys = table.columns.iter().filter(|column| column.merge == Merge::Key);
            data["q"][index.to_string()] = json!({
                "part": table.column(part),
                "within": keys.position(|column| column.key == within),
                "divisors": slices.iter().map(|rows| divisors(&table.columns, index, rows))
                    .collect::<Vec<_>>(),
            });
        }
    }
    data["d"] = Json::Array(dictionary);
    data["v"] = Json::Array(values);
    if !condemned.is_empty() {
        data["j"] = Json::Array(condemned);
    }
    if data.get("m").is_some() {
        data["o"] = Json::Array(measures);
    }
}

/// A cell of a slice: a number, the letters for why there is none, or a text in brackets.
fn value_of(value: &Value, measure: Measure) -> Json {
    match value {
        Value::Number(number) => figure(*number, digits(measure)),
        Value::Estimate(estimate) => figure(estimate.value, digits(measure)),
        Value::Text(text) => json!([text]),
        Value::Missing(Missing::Nothing) => json!(""),
        Value::Missing(missing) => json!(format::absent(*missing)),
    }
}
