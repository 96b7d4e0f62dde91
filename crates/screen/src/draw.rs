//! Draws the state.

mod overview;
mod picture;
mod place;
mod rows;
mod trend;

use blockstone_base::units::{Nanos, counted};
use blockstone_report::cell;
use blockstone_view::registry::{self, GROUPS, Group};
use blockstone_view::{History, Interval, Measure, Shape, Table, Value, View};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use crate::keys::HELP;
use crate::state::{Frame, Picture, Span, State, is_known};
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
    let with_trend =
        area.height >= LEAST.1 + TREND + 6 && state.picture.is_none() && !state.overview;
    let trend = if with_trend { TREND + 1 } else { 0 };
    let in_pane = state.path.is_empty() && state.picture.is_none();
    let panes = panes(state, history);
    let above = if in_pane { 1 + tab_lines(&panes, area.width) } else { 1 };
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
        groups(state, history, tabs, buffer);
        let below = Rect { y: tabs.y + 1, height: tabs.height - 1, ..tabs };
        tab_bar(state, history, &panes, below, buffer);
    } else {
        place::breadcrumb(state, interval.as_ref(), tabs, buffer);
    }
    footer(state, frame, foot, buffer);
    let tables = interval.as_ref().map(|interval| state.tables(interval)).unwrap_or_default();
    match &interval {
        None => Paragraph::new("waiting for the second tick …").dim().render(main, buffer),
        Some(interval) if state.overview => {
            overview::overview(state, history, interval, main, buffer);
        }
        Some(interval) if !tables.is_empty() => match state.picture {
            Some(Picture::Chart) => trend::chart(state, history, &tables, main, buffer),
            Some(picture) => picture::picture(state, picture, history, main, buffer),
            None => pane(state, interval, &tables, main, buffer),
        },
        Some(_) => {
            let what = if frame.live { "nothing was read of" } else { "this recording has no" };
            let hint = match (frame.live, state.group().map(|group| GROUPS[group].title)) {
                (true, Some("database")) => "; --db watches a database",
                (true, Some("processor time")) => "; --profile samples processors",
                _ => "",
            };
            let why = format!("{what} `{}`{hint}", state.view().probe);
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
        let clock =
            history.time(interval.to_ns).and_then(|time| Some(time.get(11..19)?.to_owned()));
        let clock = clock.map(|time| format!(" {time},")).unwrap_or_default();
        pieces.push(Piece::raw(format!("{clock} at {at}, over {span} ")));
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

/// Draws the overview's heading and those of the groups, with their digits.
fn groups(state: &State, history: &History, area: Rect, buffer: &mut Buffer) {
    let known = |group: &Group| group.views.iter().any(|view| is_known(view, history));
    let groups = GROUPS.iter().map(|group| (group.title, known(group)));
    let here = state.group().map_or(0, |group| group + 1);
    let mut at = area.x;
    for (index, (title, known)) in [("overview", true)].into_iter().chain(groups).enumerate() {
        let room = usize::from(area.right().saturating_sub(at));
        let label = format!(" {} {title} ", index + 1);
        at = buffer.set_stringn(at, area.y, label, room, tab_style(index == here, known)).0;
    }
}

/// Returns the panes below the current heading; if the history has data for some of them, only
/// those.
fn panes(state: &State, history: &History) -> Vec<&'static View> {
    let Some(group) = state.group() else { return Vec::new() };
    let views = GROUPS[group].views;
    let shown = |view: &&&View| is_known(view, history) || view.name == state.view().name;
    if views.iter().any(|view| is_known(view, history)) {
        views.iter().filter(shown).copied().collect()
    } else {
        views.to_vec()
    }
}

/// Draws the panes on as many lines as needed.
fn tab_bar(state: &State, history: &History, panes: &[&View], area: Rect, buffer: &mut Buffer) {
    let mut line = area.y;
    let mut at = area.x;
    for view in panes {
        let label = tab(view);
        let width = label.chars().count() as u16;
        if at + width > area.right() && at > area.x {
            (line, at) = (line + 1, area.x);
        }
        if line >= area.bottom() {
            break;
        }
        let style = tab_style(view.name == state.view().name, is_known(view, history));
        buffer.set_stringn(at, line, &label, usize::from(area.right() - at), style);
        at += width;
    }
}

fn tab_style(is_here: bool, is_known: bool) -> Style {
    let style = Style::new();
    match (is_here, is_known) {
        (true, _) => style.add_modifier(Modifier::REVERSED),
        (false, true) => style,
        (false, false) => style.add_modifier(Modifier::DIM),
    }
}

fn tab(view: &View) -> String {
    format!(" {} ", view.name)
}

fn tab_lines(panes: &[&View], width: u16) -> u16 {
    let (mut lines, mut at) = (u16::from(!panes.is_empty()), 0);
    for view in panes {
        let label = tab(view).chars().count() as u16;
        if at + label > width && at > 0 {
            (lines, at) = (lines + 1, 0);
        }
        at += label;
    }
    lines
}

fn footer(state: &State, frame: &Frame, area: Rect, buffer: &mut Buffer) {
    let span = match state.span {
        Span::Ticks(count) => counted(count as u64, "tick"),
        Span::All => "all ticks".to_owned(),
    };
    let line = if state.typing {
        Line::from(format!("/{}▏  Enter applies it, Esc clears it", state.filter)).yellow()
    } else if let Some(note) = &frame.note {
        Line::from(note.clone()).yellow()
    } else if state.overview {
        let text =
            format!("? help  q quit  2 … 5 Tab panes  w who writes  + - ticks  [ ] time  {span}");
        Line::from(text).dim()
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
    let legend = "? unknown  – nothing  n/v not in version  n/p not permitted  n/e no evidence";
    lines.push(Line::from(""));
    lines.push(Line::from(legend).dim());
    let block = Block::bordered().title(" keys ");
    Paragraph::new(lines).block(block).render(place, buffer);
}
