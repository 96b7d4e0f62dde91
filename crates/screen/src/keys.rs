//! Keys: the list in the help, and what they do.

use blockstone_view::{History, registry};
pub use ratatui::crossterm::event::KeyCode as Key;

use crate::state::{Picture, State};

pub const HELP: [(&str, &str); 18] = [
    ("1…9, Tab, ← →", "select a pane"),
    ("↑ ↓", "select a row"),
    ("Enter", "drill down into wait, session, statement; Esc goes back"),
    ("d", "show all columns of the row, and back"),
    ("h", "histogram of the latencies of the row's I/Os or waits"),
    ("m o", "heat map of these latencies over time; next operation"),
    ("t", "chart of the row's column over time; s takes the next"),
    ("b", "go to the session that blocks this one"),
    ("s S", "sort by the next column, by the previous one"),
    ("/ text Enter", "show only rows that contain the text; Esc clears it"),
    ("< >", "scroll columns"),
    ("+ -", "make figures cover more or fewer ticks"),
    ("space", "pause, and follow again"),
    ("[ ]", "one tick back, one forward"),
    ("{ }", "ten ticks back, ten forward"),
    ("Home End", "to the first tick, to the latest"),
    ("?", "this help"),
    ("q", "quit"),
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
    match key {
        Key::Char('q') => state.leave = true,
        Key::Char('?') => state.help = true,
        Key::Char(digit @ '1'..='9') => state.go_to(digit as usize - '1' as usize),
        Key::Tab | Key::Right => state.go_to((state.view + 1) % registry::ALL.len()),
        Key::BackTab | Key::Left => {
            state.go_to((state.view + registry::ALL.len() - 1) % registry::ALL.len());
        }
        Key::Up => choose(state, state.row.saturating_sub(1), history),
        Key::Down => choose(state, (state.row + 1).min(rows.saturating_sub(1)), history),
        Key::Enter => state.detail = !state.enter(history),
        Key::Char('d') => state.detail = !state.detail,
        Key::Char('b') => state.go_to_blocker(history),
        Key::Char('h') => state.show_picture(Picture::Histogram, history),
        Key::Char('m') => state.show_picture(Picture::HeatMap, history),
        Key::Char('t') => state.show_picture(Picture::Chart, history),
        Key::Char('o') => state.operation += 1,
        Key::Esc | Key::Backspace => back(state),
        Key::Char('s') => state.sort_by_next(false),
        Key::Char('S') => state.sort_by_next(true),
        Key::Char('/') => {
            state.filter.clear();
            (state.typing, state.row) = (true, 0);
        }
        Key::Char('>') => {
            state.scrolled = (state.scrolled + 1).min(state.view().columns.len() - 1);
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

/// Selects a row; a picture shows it from now on.
fn choose(state: &mut State, row: usize, history: &History) {
    state.row = row;
    if state.picture.is_some() {
        state.pin(history);
    }
}

/// Closes what was opened last.
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
