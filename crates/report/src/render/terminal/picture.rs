//! Bars and cells as characters.

use super::Style;
use super::columns::{Columns, visible_width, wrap};
use crate::chart::Color;
use crate::format;
use crate::picture::{Bars, Cell, Cells};

/// Width of a bar of full length.
const BAR: usize = 30;
/// Fewest cells of a row, however narrow the terminal is.
const CELLS_LEAST: usize = 8;

pub fn bars(bars: &Bars, style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    for bar in &bars.bars {
        let length = (bars.length(bar) * BAR as f64).round() as usize;
        let length = if bar.value > 0.0 { length.max(1) } else { 0 };
        let drawn = format!("{:<BAR$}", "█".repeat(length));
        columns.mixed(vec![
            (bar.label.clone(), false),
            (colored(bar.color, &drawn, style), false),
            (format::quantity(bar.value, &bars.unit), true),
            (bar.note.clone(), true),
        ]);
    }
    columns.lines()
}

/// Draws the legend, the rows and the number of those that are not shown. Of a row that is wider
/// than the terminal, neighbours are merged.
pub fn cells(cells: &Cells, has_legend: bool, all: bool, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    if has_legend {
        let kinds = cells.kinds.iter().map(|kind| format!("{} {}", kind.mark, kind.name));
        let legend = format!("{}: {}", cells.title, kinds.collect::<Vec<_>>().join(", "));
        lines.extend(wrap(&legend, style.width, 2, 4).iter().map(|line| style.dim(line)));
    }
    let shown = if all { cells.rows.len() } else { cells.rows.len().min(cells.on_screen) };
    let rows = &cells.rows[..shown];
    let text = |cell: &Cell| match cells.kind(cell) {
        Some(kind) if cell.text.is_empty() => kind.mark.to_string(),
        _ => cell.text.clone(),
    };
    let widest = |texts: &mut dyn Iterator<Item = String>| {
        texts.map(|text| visible_width(&text)).max().unwrap_or(0).max(1)
    };
    let width = widest(&mut rows.iter().flat_map(|row| &row.cells).map(text));
    let gap = if cells.is_grid { " " } else { "" };
    let labels = widest(&mut rows.iter().map(|row| row.label.clone()));
    let room = style.width.saturating_sub(labels + 4) / (width + gap.len());
    let mut columns = Columns::new(2);
    for row in rows {
        let drawn = merged(&row.cells, room.max(CELLS_LEAST));
        let runs = drawn.chunk_by(|a, b| a.kind == b.kind).map(|run| {
            let texts: Vec<String> =
                run.iter().map(|cell| format!("{:>width$}", text(cell))).collect();
            let color = cells.kind(run[0]).map_or(Color::Grey, |kind| kind.color);
            colored(color, &texts.join(gap), style)
        });
        let runs: Vec<String> = runs.collect();
        columns.left(vec![row.label.clone(), runs.join(gap)]);
    }
    lines.extend(columns.lines());
    match cells.left_out + cells.rows.len() - shown {
        0 => {}
        more => lines.push(style.dim(&format!("  … and {more} more"))),
    }
    lines
}

/// Returns at most `count` cells: of neighbours, one of the most frequent kind.
fn merged(cells: &[Cell], count: usize) -> Vec<&Cell> {
    let count = count.min(cells.len());
    let part =
        |index: usize| &cells[index * cells.len() / count..(index + 1) * cells.len() / count];
    let most = |part: &'_ [Cell], of: &Cell| part.iter().filter(|it| it.kind == of.kind).count();
    let parts = (0..count).map(part);
    parts.filter_map(|part| part.iter().max_by_key(|cell| most(part, cell))).collect()
}

fn colored(color: Color, text: &str, style: &Style) -> String {
    match color {
        Color::Grey => style.dim(text),
        Color::Bad => style.bad(text),
        Color::Series(1) => style.warning(text),
        Color::Series(2) => style.good(text),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Bar, CellKind, CellRow};

    const PLAIN: Style = Style { color: false, width: 80 };

    #[test]
    fn bars_begin_at_zero_and_a_small_one_is_seen() {
        let bar = |label: &str, value| Bar {
            label: label.to_owned(),
            value,
            note: String::new(),
            color: Color::Grey,
        };
        let bars = Bars::new("bytes", vec![bar("all", 3e6), bar("  part", 1.0), bar("none", 0.0)]);
        let lines = super::bars(&bars, &PLAIN);
        let lengths: Vec<usize> = lines.iter().map(|it| it.matches('█').count()).collect();
        assert_eq!(lengths, [BAR, 1, 0]);
        assert!(lines[1].starts_with("    part  █ ") && lines[1].ends_with(" 1 B"), "{lines:?}");
    }

    #[test]
    fn strips_are_merged_to_the_width_and_grids_have_gaps() {
        let kinds =
            vec![CellKind::new("old", "x", Color::Bad), CellKind::new("new", "█", Color::Grey)];
        let cell =
            |kind: usize| Cell { kind: Some(kind).filter(|it| *it < 2), text: String::new() };
        let mut cells = Cells {
            title: "pages".into(),
            kinds,
            rows: [[0, 0, 1].repeat(30), vec![2, 1]]
                .map(|row| CellRow {
                    label: "a".into(),
                    cells: row.into_iter().map(cell).collect(),
                })
                .into(),
            is_grid: false,
            on_screen: 1,
            left_out: 4,
        };
        let style = Style { width: 35, ..PLAIN };
        let lines = super::cells(&cells, true, false, &style);
        assert_eq!(lines[0], "  pages: x old, █ new");
        assert_eq!(lines[1], format!("  a  {}", "x".repeat(30)));
        assert_eq!(lines[2], "  … and 5 more");
        cells.is_grid = true;
        let lines = super::cells(&cells, false, true, &style);
        assert_eq!(lines[1..], ["  a    █", "  … and 4 more"]);
        let colored = super::cells(&cells, false, true, &Style { color: true, ..style });
        assert!(colored[0].contains("\x1b[1;31mx x"), "{colored:?}");
    }
}
