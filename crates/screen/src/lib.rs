//! The terminal view of a watched host: panes of tables to sort, filter and drill down into, places
//! for a wait, a session or a statement, charts of latencies and of figures over time, and time
//! that can be paused and stepped through.
//!
//! It does not know where its history comes from: a [`Source`] provides it, live or recorded. It
//! derives nothing: every figure is a cell of a table of `blockstone-view`.
//!
//! [`show`] runs it until the user quits. [`State`] is what it shows, [`press`] applies keys to it,
//! and [`draw()`] draws it.
//!
//! ```
//! use blockstone_screen::{Frame, Key, State, draw, press};
//! use blockstone_view::History;
//! use ratatui::{buffer::Buffer, layout::Rect};
//!
//! let (history, mut state) = (History::default(), State::at_view(Some("disks")));
//! press(&mut state, Key::Char('?'), &history, 0);
//! let area = Rect { x: 0, y: 0, width: 80, height: 24 };
//! let rows = draw(&state, &history, &Frame::default(), area, &mut Buffer::empty(area));
//! assert!(state.help && rows == 0);
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod columns;
mod draw;
mod keys;
mod pictures;
mod places;
mod show;
mod state;

pub use draw::draw;
pub use keys::{Key, press};
pub use show::{Left, ScreenError, Source, show};
pub use state::{Frame, Picture, Pinned, Position, Request, Span, State};
