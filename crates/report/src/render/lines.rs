//! Tables of consecutive intervals as lines of a log: one line per tick, which begins with the
//! time.
//!
//! Tables stand side by side, each with its first row or its first rows. A line can be split at
//! blanks: no cell contains one, and a number keeps its unit (`12.5MB/s`). A missing value is `-`.
//! Headings begin with `#`, as gnuplot and most readers of columns expect of comments.

use std::borrow::Cow;

use blockstone_base::table::{Measure, Row, Table, Value};

use super::terminal::Style;
use super::terminal::columns::visible_width;
use crate::format;

/// Ticks after which the headings are repeated.
const REPEAT: usize = 20;
/// Maximum width of a text, in columns.
const TEXT: usize = 24;
const TIME: &str = "#time";
const MISSING: &str = "-";

/// Writes the tables of one tick after another; columns keep their places.
#[derive(Debug)]
pub struct Lines {
    rows: usize,
    style: Style,
    /// Width of the time, and of each column of each table.
    widths: (usize, Vec<Vec<usize>>),
    /// `None` before the first line.
    ticks_below_heading: Option<usize>,
}

impl Lines {
    /// Creates a writer that shows at most `rows` rows of each table, one below the other.
    pub fn new(rows: usize, style: Style) -> Self {
        let widths = (TIME.len(), Vec::new());
        Self { rows: rows.max(1), style, widths, ticks_below_heading: None }
    }

    /// Returns the lines of a tick, below headings if they are due. There is at least one, so that
    /// a tick in which nothing was seen shows as well.
    pub fn tick(&mut self, instant: &str, tables: &[Table]) -> Vec<String> {
        let count = tables.iter().map(|table| table.rows.len()).max().unwrap_or(0);
        let cells: Vec<Vec<Vec<String>>> = (0..count.clamp(1, self.rows))
            .map(|index| tables.iter().map(|table| self.cells(table, index)).collect())
            .collect();
        let moved = self.widen(instant, tables, &cells);
        let due = self.ticks_below_heading.is_none_or(|ticks| ticks >= REPEAT);
        let mut lines = Vec::new();
        if due || moved {
            lines.extend(self.headings(tables));
            self.ticks_below_heading = Some(0);
        }
        self.ticks_below_heading = self.ticks_below_heading.map(|ticks| ticks + 1);
        lines.extend(cells.iter().map(|row| self.line(instant, tables, row)));
        lines
    }

    fn cells(&self, table: &Table, index: usize) -> Vec<String> {
        let Some(row) = table.rows.get(index) else {
            return vec![MISSING.to_owned(); table.columns.len()];
        };
        (0..row.cells.len()).map(|column| self.cell(table, row, column)).collect()
    }

    fn cell(&self, table: &Table, row: &Row, column: usize) -> String {
        let text = match &row[column] {
            Value::Missing(_) => return MISSING.to_owned(),
            Value::Text(text) => return word(&format::short(text.trim(), TEXT)).into_owned(),
            number => format::value(number, row.measure(&table.columns[column])),
        };
        let text = text.replace([' ', ','], "");
        if table.condemns(row, column) { self.style.struck(&text) } else { text }
    }

    /// Makes room for these cells; returns whether columns have moved.
    fn widen(&mut self, instant: &str, tables: &[Table], rows: &[Vec<Vec<String>>]) -> bool {
        let before = self.widths.clone();
        let (time, widths) = &mut self.widths;
        *time = (*time).max(instant.len());
        widths.resize(tables.len(), Vec::new());
        for (index, (table, widths)) in tables.iter().zip(widths).enumerate() {
            widths.resize(table.columns.len(), 0);
            for (column, (heading, width)) in table.columns.iter().zip(widths).enumerate() {
                let cells = rows.iter().map(|row| visible_width(&row[index][column]));
                let least = usual(heading.measure).max(visible_width(&heading.heading));
                *width = cells.fold((*width).max(least), usize::max);
            }
        }
        before != self.widths
    }

    /// Returns the names of the tables above their columns, then those of the columns.
    fn headings(&self, tables: &[Table]) -> [String; 2] {
        let (time, widths) = &self.widths;
        let mut names = vec![format!("{:time$}", "#")];
        for (table, widths) in tables.iter().zip(widths) {
            let width = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
            let name = format::short(&table.name, width);
            let dashes = "-".repeat(width.saturating_sub(visible_width(&name) + 1));
            let name = format!("{name} {dashes}");
            names.push(format!("{:width$}", name.trim_end()));
        }
        let row: Vec<Vec<String>> = tables
            .iter()
            .map(|table| table.columns.iter().map(|it| word(&it.heading).into_owned()).collect())
            .collect();
        [names.join("  "), self.line(TIME, tables, &row)]
            .map(|line| self.style.dim(line.trim_end()))
    }

    fn line(&self, instant: &str, tables: &[Table], row: &[Vec<String>]) -> String {
        let (time, widths) = &self.widths;
        let mut line = format!("{instant:time$}");
        for ((table, cells), widths) in tables.iter().zip(row).zip(widths) {
            for ((heading, cell), width) in table.columns.iter().zip(cells).zip(widths) {
                let blanks = " ".repeat(width.saturating_sub(visible_width(cell)));
                let is_text = heading.measure == Measure::Text;
                let (left, right) = if is_text { ("", &*blanks) } else { (&*blanks, "") };
                line.extend(["  ", left, cell, right]);
            }
        }
        line.trim_end().to_owned()
    }
}

/// Returns a text without blanks; an empty one becomes [`MISSING`].
fn word(text: &str) -> Cow<'_, str> {
    match text {
        "" => Cow::Borrowed(MISSING),
        text if text.contains(char::is_whitespace) => {
            Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join("_"))
        }
        text => Cow::Borrowed(text),
    }
}

/// Returns the width that most numbers of a measure fit into, so that columns seldom move.
const fn usual(measure: Measure) -> usize {
    match measure {
        Measure::Text | Measure::Share => 4,
        Measure::Bytes | Measure::BytesPerS => 8,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::table::{Missing, count, flow, share, text};

    use super::*;

    const PLAIN: Style = Style { color: false, width: 80 };

    fn host() -> Table {
        Table::new("host", "Host", vec![share("cpu_user_share", "user", "")]).with([[0.125.into()]])
    }

    fn disks() -> Table {
        let columns =
            vec![text("device", "device", ""), count("r", "r await", ""), flow("w", "write", "")];
        let rows = [
            Row::from(["all disks".into(), 12_345.0.into(), 1.2e7.into()]),
            Row::from(["sda".into(), Value::Missing(Missing::Unknown), 0.0.into()]),
            Row::from(["".into(), 5.0.into(), 0.0.into()]).condemned_by(&["hole".to_owned()]),
        ];
        Table::new("disks", "Disks", columns).with(rows)
    }

    #[test]
    fn tables_stand_side_by_side_and_a_gap_is_no_zero() {
        let mut lines = Lines::new(3, PLAIN);
        let lines = lines.tick("2026-11-24T03:15:20Z", &[host(), disks()]);
        assert_eq!(
            lines,
            [
                "#                     host  disks ----------------------",
                "#time                 user  device     r_await     write",
                "2026-11-24T03:15:20Z   12%  all_disks    12345    12MB/s",
                "2026-11-24T03:15:20Z     -  sda              -         0",
                "2026-11-24T03:15:20Z     -  -            ~~5~~     ~~0~~",
            ]
        );
    }

    #[test]
    fn headings_come_again_and_when_columns_move() {
        let is_heading = |line: &String| line.starts_with('#');
        let mut lines = Lines::new(1, PLAIN);
        let counts: Vec<usize> = (0..41)
            .map(|_| lines.tick("2026-11-24T03:15:20Z", &[host()]))
            .map(|lines| lines.iter().filter(|line| is_heading(line)).count())
            .collect();
        let with: Vec<usize> = (0..41).filter(|tick| counts[*tick] == 2).collect();
        assert_eq!(with, [0, 20, 40]);
        let mut wide = disks();
        wide.rows[0].cells[0] = "a_long_name".into();
        let mut lines = Lines::new(1, PLAIN);
        for (table, expected) in [(disks(), 3), (disks(), 1), (wide.clone(), 3), (disks(), 1)] {
            assert_eq!(lines.tick("2026-11-24T03:15:20Z", &[table]).len(), expected);
        }
    }

    #[test]
    fn a_tick_in_which_nothing_was_seen_has_its_line() {
        let empty = Table { rows: Vec::new(), ..disks() };
        let lines = Lines::new(5, PLAIN).tick("2026-11-24T03:15:20Z", &[empty]);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[2].split_whitespace().skip(1).collect::<Vec<_>>(), ["-"; 3]);
    }
}
