//! Draws tables: rows below headings, or one row with all its columns.

use blockstone_report::{cell, short_path};
use blockstone_view::{Heading, Interval, Table, Value, reasons, registry};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget};

use crate::columns::{ColumnLayout, GAP, fitting};

#[derive(Clone, Copy, Default)]
pub struct RowOptions {
    /// The selected row, if it is in this table.
    pub chosen: Option<usize>,
    pub sorted: Option<usize>,
    pub scrolled: usize,
}

/// Draws rows below their headings, scrolled so that the selected one is visible.
pub fn rows(table: &Table, options: RowOptions, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let columns = fitting(table, usize::from(area.width), options.scrolled);
    let headings = columns.iter().map(|column| {
        let heading = &table.columns[column.index].heading;
        let ordering = options.sorted == Some(column.index);
        (column, if ordering { format!("{heading}▾") } else { heading.to_string() })
    });
    line(headings, Style::new().add_modifier(Modifier::BOLD), area, area.y, buffer);
    let room = usize::from(area.height.saturating_sub(1));
    let first = options.chosen.unwrap_or(0).saturating_sub(room.saturating_sub(1));
    for (index, row) in table.rows.iter().enumerate().skip(first).take(room) {
        let style = if options.chosen == Some(index) {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
        };
        let cells = columns.iter().map(|column| {
            let heading = &table.columns[column.index];
            (column, shown(&row[column.index], heading, column.width))
        });
        line(cells, style, area, area.y + 1 + (index - first) as u16, buffer);
    }
    if table.rows.is_empty() && area.height > 1 {
        let below = Rect { y: area.y + 1, height: 1, ..area };
        Paragraph::new("no rows").dim().render(below, buffer);
    }
}

/// Formats a cell; of a path that is too long, the end.
fn shown(value: &Value, heading: &Heading, width: usize) -> String {
    let text = cell(value, heading.measure);
    if heading.is_path { short_path(&text, width) } else { text }
}

fn line<'a>(
    cells: impl Iterator<Item = (&'a ColumnLayout, String)>,
    style: Style,
    area: Rect,
    y: u16,
    buffer: &mut Buffer,
) {
    let mut text = String::new();
    for (index, (column, cell)) in cells.enumerate() {
        if index > 0 {
            text.push_str(&" ".repeat(GAP));
        }
        let cell: String = cell.chars().take(column.width).collect();
        let blanks = " ".repeat(column.width.saturating_sub(Line::raw(cell.as_str()).width()));
        if column.number {
            text.extend([blanks, cell]);
        } else {
            text.extend([cell, blanks]);
        }
    }
    buffer.set_stringn(area.x, y, &text, usize::from(area.width), style);
}

/// Draws names and values below each other, in as many columns as fit.
pub fn record(
    interval: &Interval<'_>,
    table: &Table,
    row: &[Value],
    area: Rect,
    buffer: &mut Buffer,
) {
    const WIDTH: usize = 38;
    let pairs = table.columns.iter().zip(row);
    let pair = |(column, value)| -> (&str, String) {
        let column: &Heading = column;
        (&*column.heading, shown(value, column, WIDTH - 18))
    };
    let pairs: Vec<(&str, String)> = pairs.map(pair).collect();
    let across = (usize::from(area.width) / WIDTH).max(1);
    let down = pairs.len().div_ceil(across);
    for (index, (name, value)) in pairs.iter().enumerate() {
        let (x, y) = ((index / down) * WIDTH, index % down);
        if y >= usize::from(area.height) {
            continue;
        }
        let (x, y) = (area.x + x as u16, area.y + y as u16);
        buffer.set_stringn(x, y, name, 16, Style::new().add_modifier(Modifier::DIM));
        let room = usize::from(area.right().saturating_sub(x + 17)).min(WIDTH - 18);
        buffer.set_stringn(x + 17, y, value, room, Style::new());
    }
    let below = usize::from(area.y) + down + 1;
    let probe = registry::find(&table.name).map_or("", |view| view.probe);
    for (index, text) in reasons(interval, probe).iter().enumerate() {
        let y = (below + index) as u16;
        if y < area.bottom() {
            let style = Style::new().add_modifier(Modifier::DIM);
            buffer.set_stringn(area.x, y, text, usize::from(area.width), style);
        }
    }
}
