//! Draws the state.

mod picture;
mod place;
mod rows;
mod trend;

use blockstone_base::units::Nanos;
use blockstone_report::cell;
use blockstone_view::{History, Interval, Measure, Shape, Table, Value, registry};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use crate::keys::HELP;
use crate::state::{Frame, Picture, Span, State};
use rows::RowOptions;

const LEAST: (u16, u16) = (40, 8);
const TREND: u16 = 4;

/// Draws `state` of `history` into `area`. Returns the number of rows of its tables.
pub fn draw(
    state: &State,
    history: &History,
    frame: &Frame,
    area: Rect,
    buffer: &mut Buffer,
) -> usize {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!(
            "{}×{} is too small; {}×{} is enough",
            area.width, area.height, LEAST.0, LEAST.1
        );
        Paragraph::new(text).wrap(ratatui::widgets::Wrap { trim: true }).render(area, buffer);
        return 0;
    }
    let with_trend = area.height >= LEAST.1 + TREND + 6 && state.picture.is_none();
    let trend = if with_trend { TREND + 1 } else { 0 };
    let in_pane = state.path.is_empty() && state.picture.is_none();
    let above = if in_pane { tab_lines(area.width) } else { 1 };
    let parts = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(above),
        Constraint::Min(3),
        Constraint::Length(trend),
        Constraint::Length(1),
    ]);
    let [head, tabs, main, below, foot] = parts.areas(area);
    let interval = state.interval(history);
    header(state, history, interval.as_ref(), frame, head, buffer);
    if in_pane {
        tab_bar(state, history, tabs, buffer);
    } else {
        place::breadcrumb(state, interval.as_ref(), tabs, buffer);
    }
    footer(state, frame, foot, buffer);
    let tables = interval.as_ref().map(|interval| state.tables(interval)).unwrap_or_default();
    match &interval {
        None => Paragraph::new("waiting for the second tick …").dim().render(main, buffer),
        Some(interval) if !tables.is_empty() => match state.picture {
            Some(Picture::Chart) => trend::chart(state, history, &tables, main, buffer),
            Some(picture) => picture::picture(state, picture, history, main, buffer),
            None => pane(state, interval, &tables, main, buffer),
        },
        Some(_) => {
            let why = format!("this recording has no `{}`", state.view().probe);
            Paragraph::new(why).dim().render(main, buffer);
        }
    }
    if with_trend {
        trend::trend(state, history, &tables, below, buffer);
    }
    if state.help {
        help(area, buffer);
    }
    tables.iter().map(|table| table.rows.len()).sum()
}

/// Draws the title, the interval shown, and what watching costs.
fn header(
    state: &State,
    history: &History,
    interval: Option<&Interval<'_>>,
    frame: &Frame,
    area: Rect,
    buffer: &mut Buffer,
) {
    let mode = match (state.at_ns, frame.live) {
        (Some(_), true) => Piece::from("PAUSED").yellow(),
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

/// Draws the panes with their digits, on as many lines as needed.
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
        Line::from(format!("/{}▏  Enter applies it, Esc clears it", state.filter)).yellow()
    } else if let Some(note) = &frame.note {
        Line::from(note.clone()).yellow()
    } else if state.picture.is_some() {
        let text = format!(
            "? help  Esc tables  ↑ ↓ row  h histogram  m heat map  t chart  o s next  {span}"
        );
        Line::from(text).dim()
    } else if state.filter.is_empty() && !state.path.is_empty() {
        let text = format!("? help  Esc back  Enter drill down  b blocker  d all columns  {span}");
        Line::from(text).dim()
    } else if state.filter.is_empty() {
        let text = format!(
            "? help  q quit  Enter drill down  h m t charts  s sort  / filter  [ ] time  {span}"
        );
        Line::from(text).dim()
    } else {
        Line::from(format!("rows with `{}`; Esc clears the filter", state.filter)).yellow()
    };
    line.render(area, buffer);
}

/// Draws the tables, or the selected row with all its columns.
fn pane(state: &State, interval: &Interval<'_>, tables: &[Table], area: Rect, buffer: &mut Buffer) {
    let Some(table) = tables.first() else { return };
    let all = || tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    let chosen = state.row.min(all().count().saturating_sub(1));
    if table.shape == Shape::Record || state.detail {
        return match all().nth(chosen) {
            Some((table, row)) => rows::record(interval, table, row, area, buffer),
            None => Paragraph::new("no rows").dim().render(area, buffer),
        };
    }
    if let Some(focus) = state.focus() {
        return place::place(state, focus, interval, tables, area, buffer);
    }
    let sorted = state.sort.get(&state.view).copied();
    let options = RowOptions { chosen: Some(chosen), sorted, scrolled: state.scrolled };
    rows::rows(table, options, area, buffer);
}

fn help(area: Rect, buffer: &mut Buffer) {
    let width = 80.min(area.width);
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
    let legend = "? unknown   – no activity   n/v not in this version   n/p not permitted   \
                  n/e no evidence";
    lines.push(Line::from(""));
    lines.push(Line::from(legend).dim());
    let block = Block::bordered().title(" keys ");
    Paragraph::new(lines).block(block).render(place, buffer);
}
