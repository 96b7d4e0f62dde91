//! Selects the columns of a table that fit on the screen.

use blockstone_report::cell;
use blockstone_view::{Measure, Table, Value};
use ratatui::text::Line;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnLayout {
    pub index: usize,
    pub width: usize,
    /// Whether it holds numbers, which are right-aligned.
    pub number: bool,
}

pub const GAP: usize = 2;
/// A text column is at most this wide, unless space remains after all other columns.
const TEXT_WIDTH: usize = 32;
/// The same in a table of paths, whose other columns must fit beside them.
const PATH_WIDTH: usize = 22;

/// Returns the columns that fit into `width`: always the first, then those after the first
/// `scrolled`. If not all fit, columns without a value other than zero are omitted.
pub fn fitting(table: &Table, width: usize, scrolled: usize) -> Vec<ColumnLayout> {
    let all: Vec<ColumnLayout> =
        (0..table.columns.len()).map(|index| measured(table, index)).collect();
    let total: usize = all.iter().map(|column| column.width + GAP).sum();
    let crowded = total > width + GAP;
    let mut shown: Vec<ColumnLayout> = Vec::new();
    let mut used = 0;
    for column in all {
        let first = shown.is_empty();
        let left_out = crowded && (!has_values(table, column.index) || column.index <= scrolled);
        if left_out && !first {
            continue;
        }
        let needed = column.width + if first { 0 } else { GAP };
        if used + needed > width && !first {
            break;
        }
        used += needed;
        shown.push(ColumnLayout { width: column.width.min(width), ..column });
    }
    for column in &mut shown {
        let cut = widest(table, column.index).saturating_sub(column.width);
        let more = cut.min(width.saturating_sub(used));
        (column.width, used) = (column.width + more, used + more);
    }
    shown
}

fn measured(table: &Table, index: usize) -> ColumnLayout {
    let heading = &table.columns[index];
    let number = heading.measure != Measure::Text;
    // One more for the sort mark.
    let least = Line::raw(&*heading.heading).width() + 1;
    let widest = widest(table, index).max(least);
    // Numbers change in length with every tick: a minimum keeps columns in place.
    let has_paths = table.columns.iter().any(|column| column.is_path);
    let text_width = if has_paths { PATH_WIDTH } else { TEXT_WIDTH };
    let width = if number { widest.max(8) } else { widest.min(text_width) };
    ColumnLayout { index, width, number }
}

fn widest(table: &Table, index: usize) -> usize {
    let measure = table.columns[index].measure;
    let cells = table.rows.iter().map(|row| Line::raw(cell(&row[index], measure)).width());
    cells.max().unwrap_or(0)
}

fn has_values(table: &Table, index: usize) -> bool {
    table.rows.iter().any(|row| match &row[index] {
        Value::Text(text) => !text.is_empty(),
        Value::Flag(_) => true,
        value => value.number().is_some_and(|number| number != 0.0),
    })
}
