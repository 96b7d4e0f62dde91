//! Oracle's extended SQL trace, event 10046, of all releases from 8 on.
//!
//! A call of depth 0 includes the usage of its recursive calls, so each call counts with the rest
//! after subtracting those (`session.rs`). Waits are written once, by the cursor that waited.

mod bytes;
mod counts;
mod events;
mod plans;
mod profile;
mod record;
mod session;
mod state;
mod statements;
mod tally;
mod text;

use memchr::memmem;

use crate::format::{Format, Limits, LogReader};
use crate::model::{Kind, Trace};

use record::{CallKind, Header};
use state::State;
use text::{Step, Text};

/// Longer lines are cut: the fields that a record needs come before.
const LONGEST_LINE: usize = 64 << 10;

pub const FORMAT: Format = Format {
    kind: Kind::OracleSql,
    name: "an Oracle SQL trace",
    recognises,
    reader: |options| Box::new(Oracle::new(options.limits)),
    if_nothing: "trace with waits: dbms_monitor.session_trace_enable(waits => true)",
};

/// Returns whether a file with this start is a SQL trace.
fn recognises(head: &[u8]) -> bool {
    const RECORDS: [&str; 9] = [
        "PARSING IN CURSOR #",
        "PARSE ERROR #",
        "WAIT #",
        "EXEC #",
        "FETCH #",
        "CLOSE #",
        "ERROR #",
        "BINDS #",
        "XCTEND rlbk=",
    ];
    let starts_line = |at: usize| at == 0 || head[at - 1] == b'\n';
    let records = RECORDS.iter();
    let mut found = records.flat_map(|it| memmem::find_iter(head, it.as_bytes()));
    let traced = found.any(starts_line);
    let dumped = [
        "QUERY BLOCK SIGNATURE",
        "DEADLOCK DETECTED",
        "ENQUEUE DUMP REQUEST",
        "_lmd0_",
        "ORA-00600",
        "ORA-07445",
        "Dump continued from file",
    ];
    let only_headed = || {
        memmem::find(head, b"*** SESSION ID:(").is_some()
            && !dumped.iter().any(|it| memmem::find(head, it.as_bytes()).is_some())
    };
    traced || only_headed()
}

/// The construct to which the next lines belong.
#[derive(Debug)]
enum Mode {
    Records,
    Text(Text),
    /// Inside the string of a bind that has this many bytes left.
    Bind(i64),
}

struct Oracle {
    /// Start of a line whose end has not arrived yet.
    carry: Vec<u8>,
    cut_line: bool,
    mode: Mode,
    /// Whether the text lengths in this file can be trusted.
    believed: bool,
    /// Line with the length of the next bind value.
    bind: Vec<u8>,
    /// Buffer reused for texts.
    spare: Vec<u8>,
    state: State,
}

impl Oracle {
    fn new(limits: Limits) -> Self {
        let (carry, mode) = (Vec::new(), Mode::Records);
        let state = State::new(limits);
        Self {
            carry,
            cut_line: false,
            mode,
            believed: true,
            bind: Vec::new(),
            spare: Vec::new(),
            state,
        }
    }

    fn carry(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.carry.len());
        self.cut_line |= bytes.len() > room;
        self.carry.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    #[inline]
    fn line(&mut self, raw: &[u8]) {
        let line = raw.strip_suffix(b"\r").unwrap_or(raw);
        self.state.counts.lines += 1;
        match &mut self.mode {
            Mode::Records => self.record(line, raw.len() != line.len()),
            Mode::Text(_) => self.text(line, raw),
            Mode::Bind(left) => {
                *left -= raw.len() as i64 + 1;
                if line.ends_with(b"\"") || line.ends_with(b"\"...") {
                    self.mode = Mode::Records;
                } else if *left < 0 {
                    self.mode = Mode::Records;
                    self.record(line, raw.len() != line.len());
                }
            }
        }
    }

    fn text(&mut self, line: &[u8], raw: &[u8]) {
        let Mode::Text(text) = &mut self.mode else { return };
        let step = text.line(line, raw);
        if step == Step::More {
            return;
        }
        self.end_text(step == Step::Wrong);
        if matches!(step, Step::Wrong | Step::Before) {
            self.state.counts.lines -= 1;
            self.line(raw);
        }
    }

    /// Ends the text. Lines that were mistaken for part of it are parsed again.
    fn end_text(&mut self, wrong: bool) {
        let Mode::Text(text) = std::mem::replace(&mut self.mode, Mode::Records) else { return };
        let failed = text.failed;
        let (header, text, rest) = text.into_parts(wrong);
        self.believed &= !wrong;
        if !failed {
            self.state.define(&header, &text);
        }
        self.spare = text;
        for line in rest.split_inclusive(|&byte| byte == b'\n') {
            self.state.counts.lines -= 1;
            self.line(line.strip_suffix(b"\n").unwrap_or(line));
        }
    }

    #[inline]
    fn record(&mut self, line: &[u8], crlf: bool) {
        match line {
            [b' ', ..] => {
                self.end_plan();
                if let Some(left) = open_bind(line, &mut self.bind) {
                    self.mode = Mode::Bind(left);
                }
            }
            // Lines that TraceAdjust wrote, and copies from a terminal, filled with blanks.
            [.., b'\'' | b' ' | b'\t'] => self.changed_record(line, crlf),
            _ => self.plain_record(line, crlf),
        }
    }

    #[cold]
    fn changed_record(&mut self, line: &[u8], crlf: bool) {
        match bytes::unadjusted(line) {
            Some(plain) => self.plain_record(&plain, crlf),
            None => self.plain_record(line.trim_ascii_end(), crlf),
        }
    }

    #[inline]
    fn end_plan(&mut self) {
        if !self.state.stats.is_empty() {
            self.state.end_plan();
        }
    }

    fn plain_record(&mut self, line: &[u8], crlf: bool) {
        if let [b'S', b'T', b'A', b'T', b' ', b'#', rest @ ..] = line {
            self.state.counts.skipped_lines += u64::from(!self.state.stat(rest));
            return;
        }
        self.end_plan();
        let state = &mut self.state;
        let understood = match line {
            [b'W', b'A', b'I', b'T', b' ', b'#', rest @ ..] => state.wait(rest),
            [b'F', b'E', b'T', b'C', b'H', b' ', b'#', rest @ ..] => {
                state.call(CallKind::Fetch, rest)
            }
            [b'E', b'X', b'E', b'C', b' ', b'#', rest @ ..] => state.call(CallKind::Execute, rest),
            [b'P', b'A', b'R', b'S', b'E', b' ', b'#', rest @ ..] => {
                state.call(CallKind::Parse, rest)
            }
            [b'C', b'L', b'O', b'S', b'E', b' ', b'#', rest @ ..] => {
                state.call(CallKind::Close, rest)
            }
            [] | [b'=', b'=', ..] | [b'B', b'I', b'N', b'D', b'S', b' ', b'#', ..] => true,
            [b'P', b'A', b'R', b'S', ..] => match header(line) {
                Some((header, failed)) => {
                    state.counts.records += 1;
                    state.counts.errors += u64::from(failed);
                    let text = Text::new(header, failed, crlf, self.believed);
                    self.mode = Mode::Text(text.with_buffer(std::mem::take(&mut self.spare)));
                    true
                }
                None => false,
            },
            [b'*', b'*', b'*', b' ', rest @ ..] => {
                state.starred(rest);
                true
            }
            _ => state.rare(line),
        };
        self.state.counts.skipped_lines += u64::from(!understood);
    }
}

/// Parses `PARSING IN CURSOR #…` or `PARSE ERROR #…`.
fn header(line: &[u8]) -> Option<(Header, bool)> {
    if let Some(rest) = line.strip_prefix(b"PARSING IN CURSOR #") {
        return Some((Header::parse(rest)?, false));
    }
    Some((Header::parse(line.strip_prefix(b"PARSE ERROR #")?)?, true))
}

/// Number of bytes of a bind's string on the following lines, if it does not end on this one.
#[inline]
fn open_bind(line: &[u8], bind: &mut Vec<u8>) -> Option<i64> {
    const LONGEST_VALUE: i64 = 1 << 16;
    /// `avl=` is near the start of its line.
    const ENOUGH: usize = 80;
    match line {
        [b' ', b' ', b'v', ..] => {
            let value = line.strip_prefix(b"  value=\"")?;
            let closed = value.ends_with(b"\"") || value.ends_with(b"\"...");
            let length = bytes::after(bind, b" avl=").unwrap_or(0).clamp(0, LONGEST_VALUE);
            (!closed).then_some(length - value.len() as i64 - 1)
        }
        [b' ', b' ', b'k' | b'b', ..] => {
            bind.clear();
            bind.extend_from_slice(&line[..line.len().min(ENOUGH)]);
            None
        }
        _ => None,
    }
}

impl LogReader for Oracle {
    fn feed(&mut self, mut bytes: &[u8]) {
        if !self.carry.is_empty() || self.cut_line {
            let Some(end) = memchr::memchr(b'\n', bytes) else { return self.carry(bytes) };
            self.carry(&bytes[..end]);
            let line = std::mem::take(&mut self.carry);
            self.cut_line = false;
            self.line(&line);
            self.carry = line;
            self.carry.clear();
            bytes = &bytes[end + 1..];
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            let line = &bytes[start..end];
            self.line(&line[..line.len().min(LONGEST_LINE)]);
            start = end + 1;
        }
        self.carry(&bytes[start..]);
    }

    fn end_of_file(&mut self) {
        if !self.carry.is_empty() {
            // It may be cut anywhere, even inside a number.
            self.state.counts.cut_lines += 1;
            self.carry.clear();
        }
        self.cut_line = false;
        while let Mode::Text(text) = &self.mode {
            if !text.ended() {
                break;
            }
            self.end_text(true);
        }
        self.mode = Mode::Records;
        self.believed = true;
        self.state.end_of_file();
    }

    fn found(&self) -> bool {
        self.state.counts.records > 0
    }

    fn finish(mut self: Box<Self>) -> Trace {
        self.end_of_file();
        profile::trace(&self.state)
    }
}
