//! Painting a state.

use blockstone_base::units::Nanos;
use blockstone_report::cell;
use blockstone_view::{History, Interval, Measure, Shape, Table, Value, registry};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Block, Clear, Paragraph, Sparkline, Widget};

use crate::columns::{Drawn, GAP, fitting};
use crate::keys::HELP;
use crate::state::{Frame, Span, State};

/// The smallest screen on which anything can be read.
const LEAST: (u16, u16) = (40, 8);
/// Lines of the trend below the table.
const TREND: u16 = 4;

/// Paints `state` of `history` into `area`. Returns how many rows the table has.
pub fn draw(
    state: &State,
    history: &History,
    frame: &Frame,
    area: Rect,
    buffer: &mut Buffer,
) -> usize {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text =
            format!("{}×{} is too small; {}×{} will do", area.width, area.height, LEAST.0, LEAST.1);
        Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }).render(area, buffer);
        return 0;
    }
    let with_trend = area.height >= LEAST.1 + TREND + 6;
    let trend = if with_trend { TREND + 1 } else { 0 };
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(tab_lines(area.width)),
        Constraint::Min(3),
        Constraint::Length(trend),
        Constraint::Length(1),
    ]);
    let [head, tabs, main, below, foot] = parts.areas(area);
    let interval = state.interval(history);
    header(state, history, interval.as_ref(), frame, head, buffer);
    tab_bar(state, history, tabs, buffer);
    footer(state, frame, foot, buffer);
    let table = interval.as_ref().and_then(|interval| state.table(interval));
    let rows = match (&interval, table) {
        (None, _) => {
            Paragraph::new("waiting for the second look …").dim().render(main, buffer);
            0
        }
        (Some(_), None) => {
            let why = format!("this recording has no `{}`", state.view().probe);
            Paragraph::new(why).dim().render(main, buffer);
            0
        }
        (Some(interval), Some(table)) => {
            pane(state, interval, &table, main, buffer);
            if with_trend {
                trend_of(state, history, &table, below, buffer);
            }
            table.rows.len()
        }
    };
    if state.help {
        help(area, buffer);
    }
    rows
}

/// Whose history it is, which part of it, and what watching costs.
fn header(
    state: &State,
    history: &History,
    interval: Option<&Interval<'_>>,
    frame: &Frame,
    area: Rect,
    buffer: &mut Buffer,
) {
    let mode = match (state.at_ns, frame.live) {
        (Some(_), true) => Piece::from("STOPPED").yellow(),
        (None, true) => Piece::from("live").green(),
        (_, false) => Piece::from("replay").cyan(),
    };
    let mut pieces = vec![Piece::from("blockstone ").bold(), mode];
    if let Some(interval) = interval {
        let first = history.ticks().next().unwrap_or(0);
        let at = Nanos(interval.to_ns.saturating_sub(first));
        let span = Nanos(interval.to_ns - interval.from_ns);
        pieces.push(Piece::raw(format!(" at {at}, over {span} ")));
        let own = registry::find("own").and_then(|view| view.table(interval));
        let cost = own.as_ref().and_then(|table| table.rows.first());
        if let Some(row) = cost {
            let cpu = cell(&row[0], Measure::Share);
            let text = match &row[6] {
                missed @ Value::Number(_) => {
                    format!(" own CPU {cpu}, {} missed ", cell(missed, Measure::Count))
                }
                _ => format!(" own CPU {cpu} "),
            };
            pieces.push(Piece::from(text).dim());
        }
    }
    pieces.push(Piece::raw(format!(" {}", frame.title)));
    Line::from(pieces).render(area, buffer);
}

/// Panes with their digits, on as many lines as they take.
fn tab_bar(state: &State, history: &History, area: Rect, buffer: &mut Buffer) {
    let mut line = area.y;
    let mut at = area.x;
    for (index, view) in registry::ALL.iter().enumerate() {
        let label = tab(index, view.name);
        let width = label.chars().count() as u16;
        if at + width > area.right() && at > area.x {
            (line, at) = (line + 1, area.x);
        }
        if line >= area.bottom() {
            break;
        }
        let known = history.probes().any(|info| info.probe == view.probe);
        let style = match (index == state.view, known) {
            (true, _) => Style::new().add_modifier(Modifier::REVERSED),
            (false, true) => Style::new(),
            (false, false) => Style::new().add_modifier(Modifier::DIM),
        };
        buffer.set_stringn(at, line, &label, usize::from(area.right() - at), style);
        at += width + 1;
    }
}

fn tab(index: usize, name: &str) -> String {
    if index < 9 { format!(" {} {name} ", index + 1) } else { format!(" {name} ") }
}

fn tab_lines(width: u16) -> u16 {
    let (mut lines, mut at) = (1, 0);
    for (index, view) in registry::ALL.iter().enumerate() {
        let label = tab(index, view.name).chars().count() as u16;
        if at + label > width && at > 0 {
            (lines, at) = (lines + 1, 0);
        }
        at += label + 1;
    }
    lines
}

fn footer(state: &State, frame: &Frame, area: Rect, buffer: &mut Buffer) {
    let span = match state.span {
        Span::Ticks(count) => format!("{count} tick{}", if count == 1 { "" } else { "s" }),
        Span::All => "all ticks".to_owned(),
    };
    let line = if state.typing {
        Line::from(format!("/{}▏  Enter keeps it, Esc shows all", state.filter)).yellow()
    } else if let Some(note) = &frame.note {
        Line::from(note.clone()).yellow()
    } else if state.filter.is_empty() {
        let text = format!(
            "? help  q leave  Enter look into  s order  / filter  space stop  [ ] back  + - {span}"
        );
        Line::from(text).dim()
    } else {
        Line::from(format!("only rows with `{}`; Esc shows all", state.filter)).yellow()
    };
    line.render(area, buffer);
}

/// The table, or the chosen row with all its columns.
fn pane(state: &State, interval: &Interval<'_>, table: &Table, area: Rect, buffer: &mut Buffer) {
    if table.view.shape == Shape::Record || state.detail {
        let row = table.rows.get(state.row.min(table.rows.len().saturating_sub(1)));
        return match row {
            Some(row) => record(interval, table, row, area, buffer),
            None => Paragraph::new("nothing").dim().render(area, buffer),
        };
    }
    let columns = fitting(table, usize::from(area.width), state.scrolled);
    let headings = columns.iter().map(|column| {
        let heading = table.view.columns[column.index].heading;
        let ordering = state.sort[state.view] == Some(column.index);
        (column, if ordering { format!("{heading}▾") } else { heading.to_owned() })
    });
    line(headings, Style::new().add_modifier(Modifier::BOLD), area, area.y, buffer);
    let room = usize::from(area.height.saturating_sub(1));
    let chosen = state.row.min(table.rows.len().saturating_sub(1));
    let first = chosen.saturating_sub(room.saturating_sub(1));
    for (index, row) in table.rows.iter().enumerate().skip(first).take(room) {
        let style = if index == chosen {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new()
        };
        let cells = columns.iter().map(|column| {
            (column, cell(&row[column.index], table.view.columns[column.index].measure))
        });
        line(cells, style, area, area.y + 1 + (index - first) as u16, buffer);
    }
    if table.rows.is_empty() {
        let below = Rect { y: area.y + 1, height: 1, ..area };
        Paragraph::new("nothing here").dim().render(below, buffer);
    }
}

fn line<'a>(
    cells: impl Iterator<Item = (&'a Drawn, String)>,
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

/// Names and values below each other, in as many columns as there is room for.
fn record(interval: &Interval<'_>, table: &Table, row: &[Value], area: Rect, buffer: &mut Buffer) {
    const WIDTH: usize = 38;
    let pairs: Vec<(&str, String)> = table
        .view
        .columns
        .iter()
        .zip(row)
        .map(|(column, value)| (column.heading, cell(value, column.measure)))
        .collect();
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
    let reasons = interval.reasons(table.view.probe).map(|why| match why {
        blockstone_base::column::Unmeasured::Off(why) => format!("off: {why}"),
        blockstone_base::column::Unmeasured::NotInVersion(why) => format!("n/v: {why}"),
        blockstone_base::column::Unmeasured::NotPermitted(why) => format!("n/p: {why}"),
    });
    let mut reasons: Vec<String> = reasons.collect();
    reasons.dedup();
    let below = usize::from(area.y) + down + 1;
    for (index, text) in reasons.iter().enumerate() {
        let y = (below + index) as u16;
        if y < area.bottom() {
            let style = Style::new().add_modifier(Modifier::DIM);
            buffer.set_stringn(area.x, y, text, usize::from(area.width), style);
        }
    }
}

/// The chosen row over time: the column that orders the rows, or the first that holds numbers.
fn trend_of(state: &State, history: &History, table: &Table, area: Rect, buffer: &mut Buffer) {
    let Some(row) = table.rows.get(state.row.min(table.rows.len().saturating_sub(1))) else {
        return;
    };
    let is_number = |index: &usize| table.view.columns[*index].measure != Measure::Text;
    let sorted = state.sort[state.view].filter(|index| is_number(index));
    let busiest = || {
        (0..row.len())
            .filter(is_number)
            .find(|index| matches!(row[*index], Value::Number(number) if number != 0.0))
    };
    let Some(column) = sorted.or_else(busiest) else { return };
    let name = table.view.name_of(row);
    let trend = state.trend(history, &name, column, usize::from(area.width));
    let most = trend.iter().copied().fold(0.0, f64::max);
    let heading = table.view.columns[column];
    let top = cell(&Value::Number(most), heading.measure);
    let title = format!("{name} {} over time, up to {top}", heading.heading);
    let title_area = Rect { height: 1, ..area };
    Line::from(title.trim_start().to_owned()).dim().render(title_area, buffer);
    let scaled: Vec<u64> =
        trend.iter().map(|v| if most > 0.0 { (v / most * 1000.0) as u64 } else { 0 }).collect();
    let bars = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    Sparkline::default().data(&scaled).max(1000).cyan().render(bars, buffer);
}

fn help(area: Rect, buffer: &mut Buffer) {
    let width = 68.min(area.width);
    let height = (HELP.len() as u16 + 4).min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, buffer);
    let mut lines: Vec<Line<'_>> = HELP
        .iter()
        .map(|(key, what)| {
            Line::from(vec![Piece::from(format!("{key:>16}  ")).bold(), Piece::from(*what)])
        })
        .collect();
    let legend = "? unknown   – nothing happened   n/v not in version   n/p not permitted";
    lines.push(Line::from(""));
    lines.push(Line::from(legend).dim());
    let block = Block::bordered().title(" keys ");
    Paragraph::new(lines).block(block).render(place, buffer);
}
