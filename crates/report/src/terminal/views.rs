//! Tables of an interval as text: all that has something to say, as wide as the terminal is.

use blockstone_base::column::Unmeasured;
use blockstone_record::manifest::Manifest;
use blockstone_view::{Interval, Measure, Shape, Table, Value, View, registry};

use crate::render::terminal::Style;
use crate::render::terminal::columns::{Columns, visible_width, wrap};
use crate::{chapters, format};

/// The tables of an interval, of these views or, without names, of all that have rows; with a
/// focus, of those that follow it.
pub fn render(interval: &Interval<'_>, views: &[String], style: &Style) -> String {
    let wanted = |view: &View| {
        let named = views.is_empty() || views.iter().any(|name| name == view.name);
        named && (interval.focus().is_none() || view.is_sampled())
    };
    let views_of = registry::ALL.iter().copied();
    let tables = tables(interval, views_of.filter(|view| wanted(view)), !views.is_empty(), style);
    format!("{}{tables}", imported(interval, style))
}

/// Whose figures these are, if they are not Blockstone's own.
fn imported(interval: &Interval<'_>, style: &Style) -> String {
    let imported = interval.history().imported();
    let lines = imported.map(|imported| wrap(&imported.line(), style.width, 0, 2).join("\n"));
    lines.map_or(String::new(), |lines| format!("{lines}\n\n"))
}

/// What was watched as a report: what it is of, and the tables of all views that have rows, of a
/// database in the order of an AWR report.
pub fn report(manifest: &Manifest, interval: &Interval<'_>, style: &Style) -> String {
    let facts = chapters::facts(manifest, interval);
    let facts = facts.iter().map(|(name, value)| {
        let value = value.replace(' ', "\u{a0}");
        format!("{}\u{a0}{value}", style.dim(&name.replace(' ', "\u{a0}")))
    });
    let head = wrap_pairs(&facts.collect::<Vec<_>>().join("  "), style.width).join("\n");
    let views = chapters::order(interval).into_iter();
    let tables = tables(interval, views, false, style);
    format!("{}{head}\n\n{tables}", imported(interval, style))
}

/// Tables below each other, those without rows too where that is wanted.
fn tables(
    interval: &Interval<'_>,
    views: impl Iterator<Item = &'static View>,
    with_empty: bool,
    style: &Style,
) -> String {
    let mut lines = Vec::new();
    for view in views {
        let Some(table) = view.table(interval) else { continue };
        if table.rows.is_empty() && !with_empty {
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

/// A text is cut to this where there is no room for all columns.
const TEXT_WIDTH: usize = 56;

/// Names and values side by side.
fn record(table: &Table, style: &Style) -> Vec<String> {
    let Some(row) = table.rows.first() else { return Vec::new() };
    let pairs = table.columns.iter().zip(&row.cells).map(|(column, value)| {
        let name = style.dim(&column.heading);
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
    let mut shown: Vec<usize> = (0..table.columns.len()).collect();
    let mut lines = draw(table, &shown, usize::MAX, style);
    let too_wide = |lines: &[String]| lines.iter().any(|line| visible_width(line) > style.width);
    if too_wide(&lines) {
        shown.retain(|&index| index == 0 || has_something(table, index));
        lines = draw(table, &shown, usize::MAX, style);
    }
    // A statement leaves room for its figures.
    let text_width = TEXT_WIDTH.min(style.width / 2);
    while too_wide(&lines) {
        lines = draw(table, &shown, text_width, style);
        if too_wide(&lines) && shown.len() > 1 {
            shown.pop();
        } else {
            break;
        }
    }
    let hidden = (0..table.columns.len())
        .filter(|index| !shown.contains(index) && has_something(table, *index));
    let hidden: Vec<&str> = hidden.map(|index| &*table.columns[index].heading).collect();
    if !hidden.is_empty() {
        let text = format!("no room for: {}", hidden.join(", "));
        lines.extend(wrap(&text, style.width, 2, 4).iter().map(|line| style.dim(line)));
    }
    lines
}

fn draw(table: &Table, shown: &[usize], text_width: usize, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    let is_number = |index: usize| table.columns[index].measure != Measure::Text;
    let heading = |&index: &usize| (style.dim(&table.columns[index].heading), is_number(index));
    columns.mixed(shown.iter().map(heading).collect());
    for row in &table.rows {
        let cell = |&index: &usize| {
            let text = format::value(&row[index], table.columns[index].measure);
            (format::short(&text, text_width), is_number(index))
        };
        columns.mixed(shown.iter().map(cell).collect());
    }
    columns.lines()
}

/// Whether a column says anything else than zero and nothing.
fn has_something(table: &Table, index: usize) -> bool {
    table.rows.iter().any(|row| match &row[index] {
        Value::Text(text) => !text.is_empty(),
        value => value.number().is_some_and(|number| number != 0.0),
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
            Unmeasured::NotInVersion(text) if why.is_not_imported() => format!("n/v, {text}"),
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
