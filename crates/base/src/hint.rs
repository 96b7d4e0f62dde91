//! Hints: an error says what is wrong, its hint what to do about it. The message of an error does
//! not contain its hint, so that both can be printed on lines of their own.
//!
//! ```
//! use blockstone_base::hint::Hint;
//!
//! #[derive(Debug, thiserror::Error, Hint)]
//! #[error("open {path}: the file does not exist")]
//! #[hint("check the path {path}")]
//! struct Missing {
//!     path: String,
//! }
//!
//! let error = Missing { path: "x".to_owned() };
//! assert_eq!(error.told(), "open x: the file does not exist\nhint: check the path x");
//! ```

use std::borrow::Cow;
use std::error::Error;

pub use blockstone_hint::Hint;

/// An error that may know what to do about it.
pub trait Hint: Error {
    /// Returns what to do about it, in one line.
    fn hint(&self) -> Option<Cow<'_, str>>;

    /// Returns the message, and the hint on a line of its own.
    fn told(&self) -> String {
        told(&self.to_string(), self.hint().as_deref())
    }

    /// Returns the message and the hint as one line.
    fn in_a_line(&self) -> String {
        let hint = self.hint().map(|hint| format!("; {hint}"));
        format!("{self}{}", hint.unwrap_or_default())
    }
}

/// A field of an error whose hint the error takes.
pub trait Of {
    fn of(&self) -> Option<Cow<'_, str>>;
}

impl<E: Hint> Of for E {
    fn of(&self) -> Option<Cow<'_, str>> {
        self.hint()
    }
}

impl Of for Option<String> {
    fn of(&self) -> Option<Cow<'_, str>> {
        self.as_deref().map(Cow::Borrowed)
    }
}

/// Returns a message, and its hint on a line of its own.
pub fn told(what: &str, hint: Option<&str>) -> String {
    hint.map_or_else(|| what.to_owned(), |hint| format!("{what}\nhint: {hint}"))
}
