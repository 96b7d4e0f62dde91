//! Interface that every format implements.

use crate::model::{Kind, Trace};

/// Bounds on memory. Whatever exceeds them is merged and counted.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// If there are more, those that took the least time are merged.
    pub statements: usize,
    /// Bytes kept of the text of each statement.
    pub text_bytes: usize,
    pub sessions: usize,
    /// Names of wait events.
    pub events: usize,
    /// Files, objects and sizes: the limit for each of them.
    pub keys: usize,
    pub row_sources: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statements: 4096,
            text_bytes: 4096,
            sessions: 512,
            events: 1024,
            keys: 4096,
            row_sources: 16 << 10,
        }
    }
}

/// Options for reading a log.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub limits: Limits,
    /// Keep the texts of statements as they are, with their literals; otherwise literals become
    /// `?`.
    pub keep_text: bool,
    /// Executions that an entry represents if the server logged a sample and the log does not say
    /// so.
    pub weight: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: Limits::default(), keep_text: false, weight: 1.0 }
    }
}

impl From<Limits> for Options {
    fn from(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }
}

/// A kind of log, and its reader.
pub struct Format {
    pub kind: Kind,
    pub name: &'static str,
    /// Returns whether a file with this start has this format.
    pub recognises: fn(&[u8]) -> bool,
    pub reader: fn(Options) -> Box<dyn LogReader>,
    /// Hint for a file in which nothing was found.
    pub if_nothing: &'static str,
}

/// Reads one kind of log.
pub trait LogReader {
    /// Takes the next bytes of the current file.
    fn feed(&mut self, bytes: &[u8]);
    /// Ends the current file; another one may follow.
    fn end_of_file(&mut self);
    /// Returns whether anything was found.
    fn found(&self) -> bool;
    /// Returns what the file is and a hint, if there is a reason why nothing was found.
    fn reason(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    fn finish(self: Box<Self>) -> Trace;
}
