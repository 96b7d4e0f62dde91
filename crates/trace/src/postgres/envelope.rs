//! Lines of a log → messages, for each format in which PostgreSQL and the services around it write
//! them.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::header::{Fragment, Header, contained, unescaped};
use super::message::{Message, append};
use super::prefix::{self, Processes};
use super::record::Records;
use crate::instant;

/// Processes that may have an open message at the same time, in syslog.
const OPEN_MAX: usize = 64;

/// A message that may continue on the next line.
struct Open {
    /// Number of the message, if it is split for syslog.
    number: String,
    /// `None` for messages of other severities.
    message: Option<Message>,
}

/// Source and time of a line, as far as they are known before its prefix is read.
#[derive(Clone, Copy, Default)]
struct Origin<'a> {
    /// Lines of different sources may alternate.
    source: &'a str,
    at_s: Option<f64>,
    /// Whether lines of other programs may be among them, which do not continue a message.
    mixed: bool,
}

/// Assembles messages from lines.
#[derive(Default)]
pub struct Envelopes {
    open: HashMap<String, Open>,
    /// Source of the line before.
    latest: String,
    /// Whether lines have headers of syslog or journald.
    headed: bool,
    processes: Processes,
    records: Records,
    done: Vec<Message>,
    skipped: u64,
}

impl Envelopes {
    pub fn skipped(&self) -> u64 {
        self.skipped + self.records.skipped
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        if self.records.takes(line) {
            self.done.extend(self.records.line(line));
            return;
        }
        let line = contained(line);
        if line.starts_with('{')
            && let Ok(Value::Object(keys)) = serde_json::from_str(line)
            && self.json(&keys)
        {
            return;
        }
        match Header::of(line) {
            Some(header) => {
                self.headed = true;
                let at_s = instant::latest(header.before);
                let origin = Origin { source: header.pid, at_s, mixed: false };
                self.payload(&unescaped(header.rest), origin);
            }
            None if line.starts_with(['\t', ' ']) => {
                let latest = std::mem::take(&mut self.latest);
                self.go_on(&latest, line);
                self.latest = latest;
            }
            None => self.text(line, Origin { mixed: self.headed, ..Origin::default() }),
        }
    }

    /// Returns the messages that are complete.
    pub fn done(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.done)
    }

    /// Completes the messages that are open at the end of a file.
    pub fn end(&mut self) {
        self.records.end();
        let open = std::mem::take(&mut self.open).into_values();
        self.done.extend(open.filter_map(|open| open.message));
        (self.headed, self.processes) = (false, Processes::default());
        self.latest.clear();
    }

    /// Takes what a header or an envelope of JSON contains: a piece of a message, or lines.
    fn payload(&mut self, text: &str, origin: Origin) {
        if let Some(fragment) = Fragment::of(text) {
            self.fragment(&fragment, origin);
            return;
        }
        let mut lines = text.split('\n');
        let first = lines.next().unwrap_or_default();
        self.text(first, origin);
        lines.for_each(|line| self.go_on(origin.source, line));
    }

    /// Takes a line without what is around it.
    fn text(&mut self, line: &str, origin: Origin) {
        if let Some(rest) = line.strip_prefix('\t') {
            return self.go_on(origin.source, rest);
        }
        if prefix::start(line).is_some() {
            return self.begin(line, "", origin);
        }
        if !origin.mixed {
            self.go_on(origin.source, line);
        }
    }

    fn begin(&mut self, line: &str, number: &str, origin: Origin) {
        let source = origin.source;
        let before = self.open.remove(source);
        self.done.extend(before.and_then(|open| open.message));
        let message = prefix::start(line).filter(|start| start.is_log).map(|start| {
            let process = if source.is_empty() || source == JSON {
                self.processes.of(start.prefix)
            } else {
                // In the journal it may be that of the process which collects the log.
                prefix::marked(start.prefix).unwrap_or_else(|| format!("pid {source}"))
            };
            let at_s = prefix::time(start.prefix).or(origin.at_s);
            Message { process, at_s, text: start.text.to_owned() }
        });
        if self.open.len() >= OPEN_MAX {
            let open = std::mem::take(&mut self.open).into_values();
            self.done.extend(open.filter_map(|open| open.message));
        }
        self.open.insert(source.to_owned(), Open { number: number.to_owned(), message });
        source.clone_into(&mut self.latest);
    }

    fn go_on(&mut self, source: &str, line: &str) {
        if let Some(Open { message: Some(message), .. }) = self.open.get_mut(source) {
            append(&mut message.text, "\n", line.strip_prefix('\t').unwrap_or(line));
        }
    }

    /// A message is split into `[n-1]`, `[n-2]` …; those of different processes alternate. A piece
    /// that begins with a tab was a separate line.
    fn fragment(&mut self, fragment: &Fragment, origin: Origin) {
        if fragment.index == 1 {
            self.begin(fragment.text, fragment.number, origin);
            return;
        }
        if let Some(Open { number, message: Some(message) }) = self.open.get_mut(origin.source)
            && number == fragment.number
        {
            let is_line = fragment.text.starts_with('\t');
            let text = fragment.text.trim_start_matches('\t');
            append(&mut message.text, if is_line { "\n" } else { "" }, text);
        }
    }

    /// Takes an object of jsonlog, or an envelope; returns false if it is neither.
    fn json(&mut self, keys: &Map<String, Value>) -> bool {
        const NESTED: [&str; 3] = ["record", "jsonPayload", "properties"];
        const TEXTS: [&str; 6] = ["textPayload", "MESSAGE", "log", "message", "msg", "@message"];
        let nested = NESTED.iter().find_map(|key| keys.get(*key).and_then(Value::as_object));
        let of = |name: &str| nested.and_then(|it| it.get(name)).or_else(|| keys.get(name));
        let text = |name: &str| of(name).and_then(Value::as_str);
        if let (Some(severity), Some(message)) = (text("error_severity"), text("message")) {
            if severity == "LOG" {
                let pid = of("pid").or_else(|| of("process_id"));
                self.done.push(Message {
                    process: pid.map_or_else(String::new, |pid| {
                        pid.as_str().map_or_else(|| format!("pid {pid}"), |it| format!("pid {it}"))
                    }),
                    at_s: text("timestamp").or_else(|| text("log_time")).and_then(instant::iso),
                    text: message.to_owned(),
                });
            }
            return true;
        }
        let Some(message) = TEXTS.iter().find_map(|name| of(name).and_then(message)) else {
            return false;
        };
        let journal = text("__REALTIME_TIMESTAMP").and_then(|it| it.parse::<f64>().ok());
        let times = ["timestamp", "time", "ts"].iter();
        let at_s = journal
            .map(|us| us / 1e6)
            .or_else(|| times.filter_map(|it| text(it)).find_map(instant::iso));
        let pid = text("SYSLOG_PID").or_else(|| text("_PID")).filter(|_| journal.is_some());
        let origin = Origin { source: pid.unwrap_or(JSON), at_s, mixed: true };
        self.payload(message.trim_end_matches(['\n', '\r']), origin);
        true
    }
}

/// Source of lines in JSON that have no process.
const JSON: &str = "{}";

/// Returns the text of a message. The journal writes one that is not UTF-8 as a list of bytes.
fn message(value: &Value) -> Option<String> {
    if let Value::String(text) = value {
        return Some(text.clone());
    }
    let byte = |it: &Value| it.as_u64().and_then(|it| u8::try_from(it).ok());
    let bytes = value.as_array()?.iter().map(byte).collect::<Option<Vec<u8>>>()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
