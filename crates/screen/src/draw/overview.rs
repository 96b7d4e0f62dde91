//! Draws the first screen: the host, its disks, who does their I/O, and what sessions wait for,
//! each row with a small chart.

use blockstone_base::Row;
use blockstone_report::cell;
use blockstone_view::{History, Interval, Measure, Table, Value, View, registry};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline, Widget};

use super::rows::{self, RowOptions};
use crate::state::State;

/// A table of the screen, taken from the first of its sources that was recorded.
struct OverviewTable {
    title: &'static str,
    sources: &'static [Source],
    /// Hint to show if no source was recorded.
    missing: &'static str,
}

struct Source {
    view: &'static str,
    /// Columns by importance, the most important first: as many as fit are shown.
    keys: &'static [&'static str],
    /// The columns whose sum is drawn.
    chart: &'static [&'static str],
}

const PARTS: [OverviewTable; 4] = [
    OverviewTable {
        title: "Host",
        sources: &[Source {
            view: "host",
            keys: &[
                "cpu_user_share",
                "cpu_system_share",
                "cpu_iowait_share",
                "runnable",
                "dirty_bytes",
                "psi_io_some_share",
                "writeback_bytes",
                "cached_bytes",
            ],
            chart: &["cpu_user_share", "cpu_system_share", "cpu_iowait_share"],
        }],
        missing: "not recorded",
    },
    OverviewTable {
        title: "Disks",
        sources: &[Source {
            view: "disks",
            keys: &[
                "device",
                "read_ios_per_s",
                "read_await_ns",
                "write_ios_per_s",
                "write_await_ns",
                "queue_depth",
                "read_bytes_per_s",
                "write_bytes_per_s",
                "busy_share",
            ],
            chart: &["read_bytes_per_s", "write_bytes_per_s"],
        }],
        missing: "not recorded",
    },
    OverviewTable {
        title: "I/O by role",
        sources: &[
            Source {
                view: "io-by-role",
                keys: &[
                    "role",
                    "read_ios_per_s",
                    "read_await_ns",
                    "write_ios_per_s",
                    "write_await_ns",
                    "read_bytes_per_s",
                    "write_bytes_per_s",
                ],
                chart: &["read_bytes_per_s", "write_bytes_per_s"],
            },
            Source {
                view: "processes",
                keys: &["role", "read_bytes_per_s", "write_bytes_per_s", "cpu_share", "processes"],
                chart: &["read_bytes_per_s", "write_bytes_per_s"],
            },
        ],
        missing: "neither I/O in the kernel nor processes of databases were counted",
    },
    OverviewTable {
        title: "Sessions by wait",
        sources: &[
            Source {
                view: "active-sessions",
                keys: &["wait_class", "event", "average_active_sessions", "db_time_share"],
                chart: &["average_active_sessions"],
            },
            Source {
                view: "top-events",
                keys: &["event", "average_active_sessions", "wait_ns", "waits", "db_time_share"],
                chart: &["average_active_sessions"],
            },
        ],
        missing: "no database was watched: --db postgres://user@host, mysql://user@host, run:last",
    },
];

/// Rows that every table gets before any table gets more.
const FAIR: usize = 4;
/// Minimum width of a chart in columns, and the fraction of the screen (1 ÷ this) that it takes if
/// that is more.
const CHART: (u16, u16) = (20, 4);

/// Draws the parts for which the history has data.
pub fn overview(
    state: &State,
    history: &History,
    interval: &Interval<'_>,
    area: Rect,
    buffer: &mut Buffer,
) {
    let found: Vec<_> = PARTS.iter().map(|part| (part, found(part, interval))).collect();
    let rows: Vec<usize> =
        found.iter().map(|(_, it)| it.as_ref().map_or(0, |(.., table)| table.rows.len())).collect();
    // Each part takes a rule and headings, or the reason why it is empty.
    let taken = PARTS.len() * 2;
    let rooms = shares(&rows, usize::from(area.height).saturating_sub(taken));
    let wide = CHART.0.max(area.width / CHART.1);
    let mut below = area;
    for ((part, found), room) in found.iter().zip(rooms) {
        let height = (2 + room as u16).min(below.height);
        let own = Rect { height, ..below };
        below = Rect { y: below.y + height, height: below.height - height, ..below };
        let Some((view, source, table)) = found else {
            rule(part.title, "", own, buffer);
            text(part.missing, own, buffer);
            continue;
        };
        let past = state.past(history, usize::from(wide));
        let charts = charts(&past, view, source, &table.rows[..room.min(table.rows.len())]);
        let most = charts.iter().flatten().copied().fold(0.0, f64::max);
        rule(part.title, &legend(view, source, most), own, buffer);
        let left = Rect { y: own.y + 1, height: own.height.saturating_sub(1), ..own };
        let left = Rect { width: area.width.saturating_sub(wide + 2), ..left };
        // With several databases, rows begin with the name of the instance.
        let keys: Vec<&str> = ["instance"].iter().chain(source.keys).copied().collect();
        rows::rows(&table.clone().only(&keys), RowOptions::default(), left, buffer);
        for (line, values) in charts.iter().enumerate() {
            let y = own.y + 2 + line as u16;
            if y < own.bottom() {
                let place = Rect { x: area.right() - wide, y, width: wide, height: 1 };
                chart(values, most, place, buffer);
            }
        }
    }
}

fn found(
    part: &OverviewTable,
    interval: &Interval<'_>,
) -> Option<(&'static View, &'static Source, Table)> {
    let sources = part.sources.iter();
    let known = sources.filter_map(|source| {
        let view = registry::find(source.view).filter(|view| interval.has(view.probe))?;
        Some((view, source, view.table(interval)?))
    });
    let mut known: Vec<_> = known.collect();
    let busy = known.iter().position(|(.., table)| !table.rows.is_empty()).unwrap_or(0);
    (busy < known.len()).then(|| known.swap_remove(busy))
}

/// Distributes the space among the tables: all get [`FAIR`] rows before one gets more.
fn shares(rows: &[usize], room: usize) -> Vec<usize> {
    let mut shares = vec![0; rows.len()];
    let mut left = room;
    for most in [1, FAIR, usize::MAX] {
        for (share, rows) in shares.iter_mut().zip(rows) {
            let more = (*rows).min(most).saturating_sub(*share).min(left);
            (*share, left) = (*share + more, left - more);
        }
    }
    shares
}

/// Returns, for each row, the sum of its chart's columns in each interval.
fn charts(past: &[Interval<'_>], view: &View, source: &Source, rows: &[Row]) -> Vec<Vec<f64>> {
    let tables: Vec<Option<Table>> = past.iter().map(|interval| view.table(interval)).collect();
    let value = |table: &Table, name: &str| {
        let row = table.rows.iter().find(|row| view.name_of(row) == name)?;
        let columns = source.chart.iter().filter_map(|key| table.column(key));
        Some(columns.filter_map(|column| row[column].number()).sum())
    };
    let values = |row: &Row| {
        let name = view.name_of(row);
        let values = tables.iter().map(|table| value(table.as_ref()?, &name));
        values.map(Option::unwrap_or_default).collect()
    };
    rows.iter().map(values).collect()
}

/// Names the columns drawn and the value of a full bar.
fn legend(view: &View, source: &Source, most: f64) -> String {
    let columns: Vec<_> = source.chart.iter().filter_map(|key| view.column(key)).collect();
    let names: Vec<_> = columns.iter().map(|at| &*view.columns[*at].heading).collect();
    let measure = columns.first().map_or(Measure::Count, |at| view.columns[*at].measure);
    format!("{}, up to {}", names.join(" + "), cell(&Value::Number(most), measure))
}

fn rule(title: &str, legend: &str, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let line = Rect { height: 1, ..area };
    let dim = Style::new().add_modifier(Modifier::DIM);
    let width = usize::from(area.width);
    buffer.set_stringn(area.x, area.y, "─".repeat(width), width, dim);
    Line::from(format!("{title} ")).bold().cyan().render(line, buffer);
    if !legend.is_empty() {
        Line::from(format!(" {legend}")).dim().right_aligned().render(line, buffer);
    }
}

fn text(text: &str, area: Rect, buffer: &mut Buffer) {
    if area.height > 1 {
        Paragraph::new(text).dim().render(Rect { y: area.y + 1, height: 1, ..area }, buffer);
    }
}

fn chart(values: &[f64], most: f64, area: Rect, buffer: &mut Buffer) {
    let scaled = |value: &f64| if most > 0.0 { (value / most * 1e4).ceil() as u64 } else { 0 };
    let scaled: Vec<u64> = values.iter().map(scaled).collect();
    // The latest is at the right edge.
    let width = (scaled.len() as u16).min(area.width);
    let right = Rect { x: area.right() - width, width, ..area };
    Sparkline::default().data(&scaled).max(10_000).cyan().render(right, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_name_views_and_columns_that_exist() {
        for source in PARTS.iter().flat_map(|part| part.sources) {
            let view = registry::find(source.view).unwrap();
            for key in source.keys.iter().chain(source.chart) {
                assert!(view.column(key).is_some(), "{}: {key}", view.name);
            }
        }
    }

    #[test]
    fn no_table_has_more_than_its_share_while_others_lack_space() {
        assert_eq!(shares(&[1, 9, 9, 9], 13), [1, 4, 4, 4]);
        assert_eq!(shares(&[1, 9, 0, 2], 13), [1, 9, 0, 2]);
        assert_eq!(shares(&[1, 9, 9, 9], 3), [1, 1, 1, 0]);
        assert_eq!(shares(&[1, 30, 30, 30], 40), [1, 30, 5, 4]);
    }
}
