//! The text of a statement, which may contain lines that look like records.
//!
//! The header gives the length of the text. If the file was converted or edited, that length is
//! wrong: the lines after the first end mark are then records, and the lengths in this file are no
//! longer trusted.

use super::record::Header;

/// Longer texts end at the first end mark.
const LONGEST: usize = 1 << 20;
const END: &[u8] = b"END OF STMT";

#[derive(Debug)]
pub struct Text {
    pub header: Header,
    /// Whether the statement could not be parsed: its text then has no end mark.
    pub failed: bool,
    crlf: bool,
    measured: bool,
    /// Bytes of lines so far.
    got: usize,
    /// Text so far; while lengths are trusted, also what may be records after it.
    buffer: Vec<u8>,
    /// Where the text ends and the rest starts, if the length is wrong.
    candidate: Option<(usize, usize)>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    More,
    /// The text is complete, and the line was part of it.
    Done,
    /// The text ended before this line.
    Before,
    /// The length was wrong. The lines after the text must be read again, then this line.
    Wrong,
}

impl Text {
    /// Lengths are `believed` until one turns out to be wrong.
    pub fn new(header: Header, failed: bool, crlf: bool, believed: bool) -> Self {
        let measured = believed && header.text_bytes <= LONGEST;
        Self { header, failed, crlf, measured, got: 0, buffer: Vec::new(), candidate: None }
    }

    /// Reuses the memory of an earlier text.
    pub fn with_buffer(mut self, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        self.buffer = buffer;
        self
    }

    /// Takes a line; `raw` includes its line ending except for the newline.
    pub fn line(&mut self, line: &[u8], raw: &[u8]) -> Step {
        let whole = if self.crlf { line } else { raw };
        if !self.measured {
            return self.unmeasured(line, whole);
        }
        let need = self.header.text_bytes;
        // The newline after the text is not part of it.
        let exact = self.got == need + 1;
        if self.failed {
            if self.got > need && !exact {
                return Step::Wrong;
            }
            if exact {
                return Step::Before;
            }
            if self.candidate.is_none() && looks_like_record(line) {
                self.candidate = Some((self.buffer.len(), self.buffer.len()));
            }
        } else if is_end(line) {
            if exact || (self.got >= need && self.candidate.is_none()) {
                return Step::Done;
            }
            if self.candidate.is_none() {
                let start = self.buffer.len();
                self.candidate = Some((start, start + whole.len() + 1));
            }
        } else if self.got > need {
            if self.candidate.is_some() {
                return Step::Wrong;
            }
            // The text is longer than the header says: the end mark is still to come.
            self.measured = false;
            return self.unmeasured(line, whole);
        }
        self.push(whole);
        Step::More
    }

    fn unmeasured(&mut self, line: &[u8], whole: &[u8]) -> Step {
        if self.failed && (line.is_empty() || looks_like_record(line)) {
            return Step::Before;
        }
        if !self.failed && is_end(line) {
            return Step::Done;
        }
        if self.buffer.len() < LONGEST {
            self.push(whole);
        }
        Step::More
    }

    fn push(&mut self, whole: &[u8]) {
        self.got += whole.len() + 1;
        self.buffer.extend_from_slice(whole);
        self.buffer.push(b'\n');
    }

    /// Returns the text, and the bytes to read again after [`Step::Wrong`] or at the end of the
    /// file.
    pub fn into_parts(mut self, wrong: bool) -> (Header, Vec<u8>, Vec<u8>) {
        let mut rest = Vec::new();
        if let (Some((end, start)), true) = (self.candidate, wrong) {
            rest = self.buffer.split_off(start.min(self.buffer.len()));
            self.buffer.truncate(end);
        }
        (self.header, self.buffer, rest)
    }

    /// Returns whether the file could end here without losing anything.
    pub fn ended(&self) -> bool {
        self.candidate.is_some() || self.failed
    }
}

/// Returns whether a line is the end mark; copies from a terminal are filled with blanks.
fn is_end(line: &[u8]) -> bool {
    line.starts_with(END) && line.trim_ascii_end() == END
}

fn looks_like_record(line: &[u8]) -> bool {
    const STARTS: [&[u8]; 12] = [
        b"WAIT #",
        b"CLOSE #",
        b"PARSE #",
        b"EXEC #",
        b"FETCH #",
        b"BINDS #",
        b"STAT #",
        b"ERROR #",
        b"XCTEND ",
        b"PARSING IN CURSOR #",
        b"PARSE ERROR #",
        b"=====================",
    ];
    STARTS.iter().any(|start| line.starts_with(start)) || line.starts_with(b"*** ")
}
