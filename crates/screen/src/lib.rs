//! The terminal view of a watched host: panes of tables to choose, sort, filter and look into,
//! places below them for a wait, a session or a statement, pictures of latencies and of figures
//! over time, and time to stop and to go through.
//!
//! Must not know: where its history comes from; a [`Source`] gives it, live or recorded. It derives
//! nothing: every figure on it is a cell of a table of `blockstone-view`.
//!
//! [`show`] runs it until its user leaves. [`State`] is what it shows and [`press`] how keys change
//! that; [`draw()`] paints it.
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
pub use state::{Frame, Picture, Pinned, Place, Span, State};
