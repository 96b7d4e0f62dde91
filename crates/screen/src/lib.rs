//! The terminal view of a watched host: panes of tables to choose, sort, filter and look into, and
//! time to stop and to go through.
//!
//! Must not know: where its history comes from; a [`Source`] gives it, live or recorded. It derives
//! nothing: every figure on it is a cell of a table of `blockstone-view`.
//!
//! [`show`] runs it until its user leaves. [`State`] is what it shows and how keys change that,
//! [`draw`](draw::draw) paints a state.

mod columns;
mod draw;
mod keys;
mod show;
mod state;

pub use draw::draw;
pub use keys::{Key, press};
pub use show::{Left, ScreenError, Source, show};
pub use state::{Frame, Span, State};
