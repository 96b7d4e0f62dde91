//! Which columns of a table there is room for.

use blockstone_report::cell;
use blockstone_view::{Measure, Table, Value};
use ratatui::text::Line;

/// A column as it is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Its place in the table.
    pub index: usize,
    /// Its width on the screen.
    pub width: usize,
    /// Whether it holds numbers, which stand at the right.
    pub number: bool,
}

/// Blanks between two columns.
pub const GAP: usize = 2;
/// A text takes no more than this, unless there is room for more when all others have theirs.
const TEXT_WIDTH: usize = 32;

/// The columns that fit into `width`, the first one always, of the others those after the
/// `scrolled` first; where not all fit, those in which nothing happened stay out.
pub fn fitting(table: &Table, width: usize, scrolled: usize) -> Vec<Drawn> {
    let all: Vec<Drawn> = (0..table.columns.len()).map(|index| measured(table, index)).collect();
    let total: usize = all.iter().map(|column| column.width + GAP).sum();
    let crowded = total > width + GAP;
    let mut shown: Vec<Drawn> = Vec::new();
    let mut used = 0;
    for column in all {
        let first = shown.is_empty();
        let left_out =
            crowded && (!says_something(table, column.index) || column.index <= scrolled);
        if left_out && !first {
            continue;
        }
        let needed = column.width + if first { 0 } else { GAP };
        if used + needed > width && !first {
            break;
        }
        used += needed;
        shown.push(Drawn { width: column.width.min(width), ..column });
    }
    for column in &mut shown {
        let cut = widest(table, column.index).saturating_sub(column.width);
        let more = cut.min(width.saturating_sub(used));
        (column.width, used) = (column.width + more, used + more);
    }
    shown
}

fn measured(table: &Table, index: usize) -> Drawn {
    let heading = &table.columns[index];
    let number = heading.measure != Measure::Text;
    // Room for the mark of the column that orders the rows.
    let least = Line::raw(&*heading.heading).width() + 1;
    let widest = widest(table, index).max(least);
    // Numbers change their length all the time: a little more room keeps columns where they are.
    let width = if number { widest.max(8) } else { widest.min(TEXT_WIDTH) };
    Drawn { index, width, number }
}

/// The width of the widest cell.
fn widest(table: &Table, index: usize) -> usize {
    let measure = table.columns[index].measure;
    let cells = table.rows.iter().map(|row| Line::raw(cell(&row[index], measure)).width());
    cells.max().unwrap_or(0)
}

fn says_something(table: &Table, index: usize) -> bool {
    table.rows.iter().any(|row| match &row[index] {
        Value::Text(text) => !text.is_empty(),
        value => value.number().is_some_and(|number| number != 0.0),
    })
}
