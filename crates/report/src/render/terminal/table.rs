//! A table as text: names and values of a single row, or rows below headings, as wide as the
//! terminal is.

use blockstone_base::table::{Heading, Measure, Row, Shape, Table, Value};

use super::columns::{Columns, visible_width, wrap};
use super::{Style, more};
use crate::format;

/// Text cells are cut to this where not all columns fit.
const TEXT_WIDTH: usize = 56;

/// The title, the rows, the notes. Unless `all` are wanted, at most as many rows as the table
/// gives to a screen.
pub fn lines(table: &Table, all: bool, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    if !table.title.is_empty() {
        lines.push(style.bold(&table.title));
    }
    lines.extend(match table.shape {
        Shape::Record => table.rows.iter().flat_map(|row| record(table, row, style)).collect(),
        Shape::Table => columns(table, all, style),
    });
    let notes = table.notes.iter().flat_map(|note| wrap(note, style.width, 2, 4));
    lines.extend(notes.map(|line| style.dim(&line)));
    lines
}

/// Names and values side by side.
fn record(table: &Table, row: &Row, style: &Style) -> Vec<String> {
    let pairs = table.columns.iter().zip(&row.cells).map(|(column, value)| {
        let name = style.dim(&column.heading);
        // A pair stays on one line.
        format!("{name} {}", cell(row, column, value, style)).replace(' ', "\u{a0}")
    });
    joined(pairs, style.width)
}

/// Texts side by side, three blanks apart; none is broken.
pub fn joined(parts: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if visible_width(line) + 3 + visible_width(&part) <= width => {
                line.push_str("   ");
                line.push_str(&part);
            }
            _ => lines.push(format!("  {part}")),
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// Where not all columns fit, those with nothing but zeros go first, then what condemns a row moves
/// below it, then those at the right end go; a last line names what is missing.
fn columns(table: &Table, all: bool, style: &Style) -> Vec<String> {
    let wanted = table.screen_rows.filter(|_| !all).unwrap_or(usize::MAX);
    let rows = &table.rows[..table.rows.len().min(wanted)];
    let mut shown: Vec<usize> = (0..table.columns.len()).collect();
    let mut reasons = Reasons::Beside;
    let mut lines = draw(table, rows, &shown, usize::MAX, reasons, style);
    let too_wide = |lines: &[String]| lines.iter().any(|line| visible_width(line) > style.width);
    if too_wide(&lines) {
        shown.retain(|&index| index == 0 || has_something(table, index));
        lines = draw(table, rows, &shown, usize::MAX, reasons, style);
    }
    if too_wide(&lines) {
        reasons = Reasons::Below;
    }
    // A statement leaves room for its figures.
    let text_width = TEXT_WIDTH.min(style.width / 2);
    while too_wide(&lines) {
        lines = draw(table, rows, &shown, text_width, reasons, style);
        if too_wide(&lines) && shown.len() > 1 {
            shown.pop();
        } else {
            break;
        }
    }
    let hidden = (0..table.columns.len())
        .filter(|index| !shown.contains(index) && has_something(table, *index));
    let hidden: Vec<&str> = hidden.map(|index| &*table.columns[index].heading).collect();
    let mut remarks = Vec::new();
    if !hidden.is_empty() {
        remarks.push(format!("columns not shown: {}", hidden.join(", ")));
    }
    if rows.len() < table.rows.len() {
        remarks.push(more(table.rows.len() - rows.len(), &table.name));
    }
    let remarks = remarks.iter().flat_map(|text| wrap(text, style.width, 2, 4));
    lines.extend(remarks.map(|line| style.dim(&line)));
    lines
}

/// Where a condemned row names the rules.
#[derive(Clone, Copy, PartialEq)]
enum Reasons {
    Beside,
    Below,
}

fn draw(
    table: &Table,
    rows: &[Row],
    shown: &[usize],
    text_width: usize,
    reasons: Reasons,
    style: &Style,
) -> Vec<String> {
    let reason = |row: &Row| {
        let rules = row.condemned_by.join(", ");
        (!rules.is_empty()).then(|| format!("condemned: {rules}"))
    };
    let mut columns = Columns::new(2);
    let is_number = |index: usize| table.columns[index].measure != Measure::Text;
    let heading = |&index: &usize| (style.dim(&table.columns[index].heading), is_number(index));
    columns.mixed(shown.iter().map(heading).collect());
    for row in rows {
        let cell = |&index: &usize| {
            let column = &table.columns[index];
            let text = match &row[index] {
                Value::Text(text) => format::short(text, text_width),
                value => cell(row, column, value, style),
            };
            (text, is_number(index))
        };
        let mut cells: Vec<(String, bool)> = shown.iter().map(cell).collect();
        if reasons == Reasons::Beside {
            cells.extend(reason(row).map(|reason| (reason, false)));
        }
        columns.mixed(cells);
    }
    if reasons == Reasons::Beside {
        return columns.lines();
    }
    // The first line has the headings; of rows with one reason the last is followed by it.
    let ends = |index: usize| {
        let next = rows.get(index + 1).map(|row| &row.condemned_by);
        next != Some(&rows[index].condemned_by)
    };
    let below = (0..rows.len()).map(|index| reason(&rows[index]).filter(|_| ends(index)));
    let below = std::iter::once(None).chain(below.map(|it| Some(format!("    {}", it?))));
    columns
        .lines()
        .into_iter()
        .zip(below)
        .flat_map(|(line, it)| [Some(line), it])
        .flatten()
        .collect()
}

/// A cell as text: a condemned number struck through, an estimate with its interval.
fn cell(row: &Row, column: &Heading, value: &Value, style: &Style) -> String {
    let text = format::value(value, row.measure(column));
    match value {
        Value::Number(_) | Value::Estimate(_) if !row.condemned_by.is_empty() => {
            style.struck(&text)
        }
        Value::Estimate(estimate) => {
            let interval = style.dim(&format::plus_minus(estimate));
            format!("{text} {interval}").trim_end().to_owned()
        }
        _ => text,
    }
}

/// Whether a column says anything but zero.
fn has_something(table: &Table, index: usize) -> bool {
    table.rows.iter().any(|row| match &row[index] {
        Value::Text(text) => !text.is_empty(),
        value => value.number().is_some_and(|number| number != 0.0),
    })
}
