//! Text of verbs that have no report yet.

mod compare;
mod difference;
pub mod flash;
pub mod reduce;
mod views;

pub use crate::render::terminal::Style;
pub use compare::render as compare_terminal;
pub use difference::render as difference_terminal;
pub(crate) use views::reasons_of;
pub use views::render as views_terminal;
pub use views::report as watch_terminal;

/// Sections with an empty line between them; what is empty takes none.
fn screen(mut sections: Vec<Vec<String>>) -> String {
    sections.retain(|lines| !lines.is_empty());
    let mut screen = sections.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n");
    screen.push('\n');
    screen
}
