//! Keys: the list in the help, and their effects.

use blockstone_view::{History, WHO};
pub use ratatui::crossterm::event::KeyCode as Key;

use crate::state::{Picture, Request, State};

/// Rows per page.
const PAGE: usize = 10;

pub const HELP: [(&str, &str); 20] = [
    ("1 2 3 4 5", "the overview, and the panes of each heading"),
    ("Tab, ← →", "the next pane, the one before"),
    ("↑ ↓ k j", "select a row; PgUp PgDn by ten rows, g G first, last"),
    ("Enter", "drill down into wait, session, statement; Esc goes back"),
    ("d", "show all columns of the row, and back"),
    ("h", "histogram of the latencies of the row's I/Os or waits"),
    ("m o", "heat map of these latencies over time; next operation"),
    ("t", "chart of the row's column over time; s takes the next"),
    ("b", "go to the session that blocks this one"),
    ("s F6, S", "sort by the next column, by the previous one"),
    ("/ F4 text Enter", "show only rows that contain the text; Esc clears it"),
    ("< >", "scroll columns"),
    ("+ -", "make figures cover more or fewer ticks"),
    ("w", "who writes to and reads from the disks: processes and files"),
    ("K D", "keep the last 5 minutes; watch the databases of this host"),
    ("space", "pause, and follow again"),
    ("[ ] { }", "one tick back, one forward; ten ticks back, ten forward"),
    ("Home End", "to the first tick, to the latest"),
    ("? F1", "this help"),
    ("q F10", "quit"),
];

pub fn press(state: &mut State, key: Key, history: &History, rows: usize) {
    if state.typing {
        type_filter(state, key);
        return;
    }
    if state.help {
        state.help = false;
        state.leave = key == Key::Char('q');
        return;
    }
    let last = rows.saturating_sub(1);
    match key {
        Key::Char('q') | Key::F(10) => state.leave = true,
        Key::Char('?') | Key::F(1) => state.help = true,
        Key::Char('1') => state.go_to_overview(),
        Key::Char(digit @ '2'..='9') => state.go_to_group(digit as usize - '2' as usize, history),
        Key::Tab | Key::Right => state.go_on(history, false),
        Key::BackTab | Key::Left => state.go_on(history, true),
        Key::Char('w') => {
            state.go_to_view(&WHO);
            state.request = Some(Request::CountEverybody);
        }
        Key::Char('K') => state.request = Some(Request::Keep),
        Key::Char('D') => state.request = Some(Request::Connect),
        key if state.overview && is_of_rows(key) => {}
        Key::Up | Key::Char('k') => choose(state, state.row.saturating_sub(1), history),
        Key::Down | Key::Char('j') => choose(state, (state.row + 1).min(last), history),
        Key::PageUp => choose(state, state.row.saturating_sub(PAGE), history),
        Key::PageDown => choose(state, (state.row + PAGE).min(last), history),
        Key::Char('g') => choose(state, 0, history),
        Key::Char('G') => choose(state, last, history),
        Key::Enter => state.detail = !state.enter(history),
        Key::Char('d') => state.detail = !state.detail,
        Key::Char('b') => state.go_to_blocker(history),
        Key::Char('h') => state.show_picture(Picture::Histogram, history),
        Key::Char('m') => state.show_picture(Picture::HeatMap, history),
        Key::Char('t') => state.show_picture(Picture::Chart, history),
        Key::Char('o') => state.operation += 1,
        Key::Esc | Key::Backspace => back(state),
        Key::Char('s') | Key::F(6) => state.sort_by_next(history, false),
        Key::Char('S') => state.sort_by_next(history, true),
        Key::Char('/') | Key::F(4) => {
            state.filter.clear();
            (state.typing, state.row) = (true, 0);
        }
        Key::Char('>') => {
            state.scrolled = (state.scrolled + 1).min(state.view().width(history) - 1);
        }
        Key::Char('<') => state.scrolled = state.scrolled.saturating_sub(1),
        Key::Char('+' | '=') => state.widen(true),
        Key::Char('-') => state.widen(false),
        Key::Char(' ' | 'p') => state.pause(history),
        Key::Char('[') => state.step(history, -1),
        Key::Char(']') => state.step(history, 1),
        Key::Char('{') => state.step(history, -10),
        Key::Char('}') => state.step(history, 10),
        Key::Home => state.step(history, i64::from(i32::MIN)),
        Key::End => state.at_ns = None,
        _ => {}
    }
}

/// Whether the key acts on the rows of a pane.
fn is_of_rows(key: Key) -> bool {
    match key {
        Key::Char(key) => "dbhmtosS/<>".contains(key),
        key => matches!(key, Key::Enter | Key::Esc | Key::Backspace | Key::F(4 | 6)),
    }
}

/// Selects a row. An open picture then shows this row.
fn choose(state: &mut State, row: usize, history: &History) {
    state.row = row;
    if state.picture.is_some() {
        state.pin(history);
    }
}

/// Closes whatever was opened last.
fn back(state: &mut State) {
    if state.picture.is_some() {
        state.picture = None;
    } else if state.detail {
        state.detail = false;
    } else if state.filter.is_empty() {
        state.leave_place();
    } else {
        state.filter.clear();
    }
}

fn type_filter(state: &mut State, key: Key) {
    match key {
        Key::Char(letter) => state.filter.push(letter),
        Key::Backspace => {
            state.filter.pop();
        }
        Key::Esc => {
            state.filter.clear();
            state.typing = false;
        }
        Key::Enter => state.typing = false,
        _ => {}
    }
}
