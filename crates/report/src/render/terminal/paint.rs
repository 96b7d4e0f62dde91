//! Colours and emphasis, or none.

/// How the terminal is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI escapes may be used.
    pub color: bool,
    /// Columns available.
    pub width: usize,
}

impl Style {
    pub fn bold(&self, text: &str) -> String {
        self.wrapped(text, "1", "22")
    }

    pub fn dim(&self, text: &str) -> String {
        self.wrapped(text, "2", "22")
    }

    pub fn good(&self, text: &str) -> String {
        self.wrapped(text, "32", "39")
    }

    pub fn warning(&self, text: &str) -> String {
        self.wrapped(text, "33", "39")
    }

    pub fn bad(&self, text: &str) -> String {
        self.wrapped(text, "1;31", "22;39")
    }

    /// A condemned number, struck through; without colours as Markdown writes it, so that it
    /// survives a log file.
    pub fn struck(&self, text: &str) -> String {
        if self.color { self.wrapped(text, "9", "29") } else { format!("~~{text}~~") }
    }

    fn wrapped(&self, text: &str, on: &str, off: &str) -> String {
        if self.color && !text.is_empty() {
            format!("\x1b[{on}m{text}\x1b[{off}m")
        } else {
            text.to_owned()
        }
    }
}
