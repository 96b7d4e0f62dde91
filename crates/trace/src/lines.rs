//! Bytes in any piece → lines, for formats that are read line by line.

use crate::format::LogReader;
use crate::model::Trace;

/// Longer lines are cut: a dump of a value must not take the memory.
pub const LINE_BYTES: usize = 1 << 20;

/// No count, time or size of a log is larger; sums of such numbers stay finite.
const NUMBER_MAX: f64 = 1e15;

/// Whether a number can be a count, a time or a size.
pub fn is_sane(value: f64) -> bool {
    (0.0..=NUMBER_MAX).contains(&value)
}

/// What takes lines.
pub trait Lines {
    /// The next line, without its end.
    fn line(&mut self, line: &[u8]);
    /// The file ends here; another one may follow.
    fn end_of_file(&mut self);
    /// Whether anything was found.
    fn found(&self) -> bool;
    fn finish(self) -> Trace;
}

/// A reader of lines as a reader of bytes.
pub struct Lined<L> {
    lines: L,
    /// A line whose end is not there yet.
    open: Vec<u8>,
    count: u64,
    /// Files whose last line has no end.
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
            self.close();
            self.cut_files += 1;
        }
        self.lines.end_of_file();
    }

    fn found(&self) -> bool {
        self.lines.found()
    }

    fn finish(self: Box<Self>) -> Trace {
        Trace { lines: self.count, cut_files: self.cut_files, ..self.lines.finish() }
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = &line[..line.len().min(LINE_BYTES)];
    line.strip_suffix(b"\r").unwrap_or(line)
}
