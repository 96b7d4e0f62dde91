//! Tables of an interval as text: all that has something to say, as wide as the terminal is.

use blockstone_base::column::Unmeasured;
use blockstone_view::{Interval, Measure, Shape, Table, Value, View, registry};

use super::columns::{Columns, visible_width, wrap};
use super::paint::Style;
use crate::format;

/// The tables of an interval, of these views or, without names, of all that have rows; with a
/// focus, of those that follow it.
pub fn render(interval: &Interval<'_>, views: &[String], style: &Style) -> String {
    let wanted = |view: &&&'static View| {
        let named = views.is_empty() || views.iter().any(|name| name == view.name);
        named && (interval.focus().is_none() || view.is_sampled())
    };
    let mut lines = Vec::new();
    for view in registry::ALL.iter().filter(wanted) {
        let Some(table) = view.table(interval) else { continue };
        if table.rows.is_empty() && views.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(style.bold(view.title));
        lines.extend(match view.shape {
            Shape::Record => record(&table, style),
            Shape::Table => columns(&table, style),
        });
        lines.extend(reasons(interval, view.probe, style));
    }
    lines.join("\n") + "\n"
}

/// Names and values side by side.
fn record(table: &Table, style: &Style) -> Vec<String> {
    let Some(row) = table.rows.first() else { return Vec::new() };
    let pairs = table.view.columns.iter().zip(row).map(|(column, value)| {
        let name = style.dim(column.heading);
        // Blanks that do not break keep a pair on one line.
        format!("{name}\u{a0}{}", format::value(value, column.measure).replace(' ', "\u{a0}"))
    });
    let text = pairs.collect::<Vec<_>>().join("  ");
    wrap_pairs(&text, style.width)
}

fn wrap_pairs(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for pair in text.split("  ") {
        match lines.last_mut() {
            Some(line) if visible_width(line) + 3 + visible_width(pair) <= width => {
                line.push_str("   ");
                line.push_str(pair);
            }
            _ => lines.push(format!("  {pair}")),
        }
    }
    lines.into_iter().map(|line| line.replace('\u{a0}', " ")).collect()
}

/// Rows below their headings. Where there is no room for all columns, those go first in which
/// nothing happened, then those at the right end; what was left out is said.
fn columns(table: &Table, style: &Style) -> Vec<String> {
    let mut shown: Vec<usize> = (0..table.view.columns.len()).collect();
    let mut lines = draw(table, &shown, style);
    let too_wide = |lines: &[String]| lines.iter().any(|line| visible_width(line) > style.width);
    if too_wide(&lines) {
        shown.retain(|&index| index == 0 || has_something(table, index));
        lines = draw(table, &shown, style);
    }
    while too_wide(&lines) && shown.len() > 1 {
        shown.pop();
        lines = draw(table, &shown, style);
    }
    let hidden = (0..table.view.columns.len())
        .filter(|index| !shown.contains(index) && has_something(table, *index));
    let hidden: Vec<&str> = hidden.map(|index| table.view.columns[index].heading).collect();
    if !hidden.is_empty() {
        let text = format!("no room for: {}", hidden.join(", "));
        lines.extend(wrap(&text, style.width, 2, 4).iter().map(|line| style.dim(line)));
    }
    lines
}

fn draw(table: &Table, shown: &[usize], style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    let is_number = |index: usize| table.view.columns[index].measure != Measure::Text;
    let heading = |&index: &usize| (style.dim(table.view.columns[index].heading), is_number(index));
    columns.mixed(shown.iter().map(heading).collect());
    for row in &table.rows {
        let cell = |&index: &usize| {
            (format::value(&row[index], table.view.columns[index].measure), is_number(index))
        };
        columns.mixed(shown.iter().map(cell).collect());
    }
    columns.lines()
}

/// Whether a column says anything else than zero and nothing.
fn has_something(table: &Table, index: usize) -> bool {
    table.rows.iter().any(|row| match &row[index] {
        Value::Number(number) => *number != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::Missing(_) => false,
    })
}

fn reasons(interval: &Interval<'_>, probe: &str, style: &Style) -> Vec<String> {
    let said = reasons_of(interval, probe);
    said.iter().flat_map(|text| wrap(text, style.width, 2, 4)).map(|l| style.dim(&l)).collect()
}

/// Why cells of a probe are empty, each reason once.
pub fn reasons_of(interval: &Interval<'_>, probe: &str) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for why in interval.reasons(probe) {
        let text = match why {
            Unmeasured::Off(why) => format!("off: {why}"),
            Unmeasured::NotInVersion(why) => format!("n/v, not in this version: {why}"),
            Unmeasured::NotPermitted(why) => format!("n/p, not permitted: {why}"),
        };
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}
