//! Bytes in pieces of any size → lines, for formats that are read line by line.

use crate::format::LogReader;
use crate::model::Trace;

/// Longer lines are cut: a dump of a value must not exhaust memory.
pub const LINE_BYTES: usize = 1 << 20;

/// Upper bound of any count, time or size in a log; sums of such numbers stay finite.
const NUMBER_MAX: f64 = 1e15;

/// Returns whether a number can be a count, a time or a size.
pub fn is_sane(value: f64) -> bool {
    (0.0..=NUMBER_MAX).contains(&value)
}

/// A consumer of lines.
pub trait Lines {
    /// Takes the next line, without its line ending.
    fn line(&mut self, line: &[u8]);
    /// Ends the current file; another one may follow.
    fn end_of_file(&mut self);
    /// Returns whether anything was found.
    fn found(&self) -> bool;
    /// Returns what the file is and a hint, if there is a reason why nothing was found.
    fn reason(&self) -> Option<(&'static str, &'static str)> {
        None
    }
    fn finish(self) -> Trace;
}

/// Adapter from a reader of lines to a reader of bytes.
pub struct Lined<L> {
    lines: L,
    /// Start of a line whose end has not arrived yet.
    open: Vec<u8>,
    count: u64,
    /// Files whose last line has no line ending.
    cut_files: u64,
}

impl<L> Lined<L> {
    pub fn new(lines: L) -> Self {
        Self { lines, open: Vec::new(), count: 0, cut_files: 0 }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = LINE_BYTES.saturating_sub(self.open.len());
        self.open.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl<L: Lines> Lined<L> {
    fn close(&mut self) {
        self.lines.line(without_end(&self.open));
        self.open.clear();
        self.count += 1;
    }
}

impl<L: Lines> LogReader for Lined<L> {
    fn feed(&mut self, mut bytes: &[u8]) {
        if !self.open.is_empty() {
            let Some(end) = memchr::memchr(b'\n', bytes) else { return self.keep(bytes) };
            self.keep(&bytes[..end]);
            self.close();
            bytes = &bytes[end + 1..];
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            self.lines.line(without_end(&bytes[start..end]));
            self.count += 1;
            start = end + 1;
        }
        self.keep(&bytes[start..]);
    }

    fn end_of_file(&mut self) {
        if !self.open.is_empty() {
            // Some programs end a file without a line break; what ends a statement is whole.
            self.cut_files += u64::from(!self.open.trim_ascii_end().ends_with(b";"));
            self.close();
        }
        self.lines.end_of_file();
    }

    fn found(&self) -> bool {
        self.lines.found()
    }

    fn reason(&self) -> Option<(&'static str, &'static str)> {
        self.lines.reason()
    }

    fn finish(self: Box<Self>) -> Trace {
        let trace = self.lines.finish();
        Trace { lines: self.count, cut_files: self.cut_files.max(trace.cut_files), ..trace }
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = &line[..line.len().min(LINE_BYTES)];
    line.strip_suffix(b"\r").unwrap_or(line)
}
