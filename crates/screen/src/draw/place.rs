//! Draws a place below a pane: the path to it, facts about it, and its tables.

use blockstone_report::{cell, short};
use blockstone_view::{Focus, Interval, Measure, Table, Timed, Value, registry};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget, Wrap};

use super::rows::{self, RowOptions};
use crate::places;
use crate::state::{Picture, State};

/// Maximum width of a name in the path, except the last.
const NAME_WIDTH: usize = 24;

/// Draws the path to the place, such as `active-sessions › IO WALSync › session 4711`. If the path
/// is too long, its beginning is omitted.
pub fn breadcrumb(state: &State, interval: Option<&Interval<'_>>, area: Rect, buffer: &mut Buffer) {
    let mut names = vec![state.view().name.to_owned()];
    if let Some(interval) = interval {
        names.extend(state.path.iter().map(|place| places::name(&place.focus, interval)));
    }
    match state.picture {
        Some(Picture::Chart) => names.push("over time".to_owned()),
        Some(_) => {
            let timed = state.pinned.as_ref().and_then(|pinned| pinned.timed.as_ref());
            names.push(timed.map_or("latencies".to_owned(), Timed::name));
        }
        None => {}
    }
    let last = names.len() - 1;
    for name in &mut names[..last] {
        *name = short(name, NAME_WIDTH);
    }
    let room = usize::from(area.width);
    let joined = |names: &[String]| names.join(" › ");
    let mut from = 0;
    while from < last && Line::raw(joined(&names[from..])).width() + 4 > room {
        from += 1;
    }
    let path = joined(&names[from..]);
    let path = if from > 0 { format!("… › {path}") } else { path };
    Line::from(short(&path, room)).bold().cyan().render(area, buffer);
}

/// Draws facts about the place, and its tables below each other.
pub fn place(
    state: &State,
    focus: &Focus,
    interval: &Interval<'_>,
    tables: &[Table],
    area: Rect,
    buffer: &mut Buffer,
) {
    let facts = facts(focus, interval);
    let lines = Paragraph::new(facts.join("\n")).wrap(Wrap { trim: true });
    let width = usize::from(area.width).max(1);
    let needed: usize = facts.iter().map(|fact| Line::raw(fact).width().div_ceil(width)).sum();
    // Even a long statement leaves most of the space to the tables.
    let height = (needed as u16).min(area.height / 3).max(1);
    lines.render(Rect { height: height.min(area.height), ..area }, buffer);
    let mut below = Rect { y: area.y + height, height: area.height - height, ..area };
    let mut before = 0;
    let count = tables.iter().map(|table| table.rows.len()).sum::<usize>();
    let chosen = state.row.min(count.saturating_sub(1));
    for (index, table) in tables.iter().enumerate() {
        let rest: u16 = tables[index + 1..].iter().map(wanted).sum();
        let fair = below.height / (tables.len() - index) as u16;
        let height = wanted(table).min(fair.max(below.height.saturating_sub(rest)));
        let own = Rect { height, ..below };
        let within = chosen.checked_sub(before).filter(|row| *row < table.rows.len());
        let options = RowOptions { chosen: within, scrolled: state.scrolled, sorted: None };
        section(table, options, own, buffer);
        before += table.rows.len();
        below = Rect { y: below.y + height, height: below.height - height, ..below };
    }
}

/// Returns the number of lines of a table: title, headings, rows, and a blank one.
fn wanted(table: &Table) -> u16 {
    (table.rows.len().max(1) as u16).saturating_add(3)
}

fn section(table: &Table, options: RowOptions, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let style = Style::new().add_modifier(Modifier::DIM | Modifier::UNDERLINED);
    buffer.set_stringn(area.x, area.y, &*table.title, usize::from(area.width), style);
    let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
    rows::rows(table, options, below, buffer);
}

fn facts(focus: &Focus, interval: &Interval<'_>) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(id) = focus.value("query_id") {
        facts.push(places::statement(id, &interval.only(focus)));
    }
    let narrowed = interval.only(focus);
    if let Some(session) = focus.value("session")
        && let Some(who) = who(session, &narrowed)
    {
        facts.push(who);
    }
    let sessions = places::active(&narrowed);
    facts.push(if sessions > 0.0 {
        let all = places::active(interval);
        let number = cell(&Value::Number(sessions), Measure::Count);
        // Background processes are not part of DB time.
        if all >= sessions {
            let share = cell(&Value::Number(sessions / all), Measure::Share);
            format!("{number} average active sessions, {share} of DB time")
        } else {
            format!("{number} average active sessions")
        }
    } else {
        let first = interval.history().ticks().next().unwrap_or(0);
        let at = |ns: u64| blockstone_base::Nanos(ns.saturating_sub(first));
        match narrowed.last_sampled_ns() {
            Some(ns) if ns > interval.from_ns => "not active in these ticks".to_owned(),
            Some(ns) => {
                format!("not active in these ticks, last active at {}: press [ to go back", at(ns))
            }
            None => "not active so far: press ] to go forward".to_owned(),
        }
    });
    facts
}

fn who(session: &str, interval: &Interval<'_>) -> Option<String> {
    let table = registry::find("sessions")?.table(interval)?;
    let column = table.column("session")?;
    let row = table.rows.iter().find(|row| row[column] == Value::from(session))?;
    let text_of = |key: &str| {
        let index = table.column(key)?;
        let text = cell(&row[index], table.columns[index].measure);
        Some(text).filter(|text| !text.is_empty() && text != "–")
    };
    let worded = |before: &str, key: &str| text_of(key).map(|text| format!("{before}{text}"));
    let parts = [
        text_of("role").filter(|role| role != "session"),
        text_of("user"),
        worded("on ", "database"),
        worded("by ", "application"),
        text_of("state"),
        worded("", "wait_class"),
        text_of("event"),
        worded("for ", "statement_age_ns"),
        worded("transaction for ", "transaction_age_ns"),
        worded("blocked by ", "blockers"),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}
