//! Tests of drawing, and of the effects of keys.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod panes;
mod pictures;
mod places;

use blockstone_screen::{Frame, Key, State, draw, press};
use blockstone_view::History;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const SECOND_NS: u64 = 1_000_000_000;

fn frame() -> Frame {
    Frame { title: "db1".to_owned(), live: true, note: None }
}

/// Returns the screen as lines, and the number of rows of its tables.
fn painted(state: &State, history: &History, width: u16, height: u16) -> (String, usize) {
    let area = Rect { x: 0, y: 0, width, height };
    let mut buffer = Buffer::empty(area);
    let rows = draw(state, history, &frame(), area, &mut buffer);
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    ((0..height).map(|y| line(y) + "\n").collect(), rows)
}

fn keys(state: &mut State, history: &History, keys: &[Key]) {
    for key in keys {
        let rows = painted(state, history, 100, 30).1;
        press(state, *key, history, rows);
    }
}
