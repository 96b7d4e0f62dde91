//! Lines of a log → messages, for each format in which PostgreSQL writes them.

use std::collections::HashMap;

use serde_json::Value;

use crate::instant;

/// Longer messages are cut, and a plan that is cut is not parsed.
const MESSAGE_BYTES: usize = 512 << 10;
/// Processes that may have an open message at the same time, in syslog.
const OPEN_MAX: usize = 64;
/// Field indices in csvlog.
const CSV_PID: usize = 3;
const CSV_MESSAGE: usize = 13;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    pub process: String,
    pub at_s: Option<f64>,
    pub text: String,
}

/// Text that follows the prefix of a line; the prefix is configurable.
const SEVERITIES: [&str; 13] = [
    "LOG:  ",
    "ERROR:  ",
    "STATEMENT:  ",
    "DETAIL:  ",
    "HINT:  ",
    "CONTEXT:  ",
    "WARNING:  ",
    "NOTICE:  ",
    "INFO:  ",
    "FATAL:  ",
    "PANIC:  ",
    "QUERY:  ",
    "LOCATION:  ",
];
const PREFIX_MAX: usize = 400;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Stderr,
    Csv,
    Json,
    Syslog,
}

/// Assembles messages from lines.
#[derive(Default)]
pub struct Envelopes {
    way: Option<Way>,
    /// The message that may continue on the next line.
    open: Option<Message>,
    /// Messages of syslog, by process and message number.
    parts: HashMap<String, (String, Message)>,
    /// An incomplete record of csvlog.
    record: String,
    skipped: u64,
}

impl Envelopes {
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Takes the next line; returns the message that it completes.
    pub fn line(&mut self, line: &str) -> Option<Message> {
        let way = *self.way.get_or_insert_with(|| way(line));
        match way {
            Way::Stderr => self.stderr(line),
            Way::Csv => self.csv(line),
            Way::Json => self.json(line),
            Way::Syslog => self.syslog(line),
        }
    }

    /// Returns the messages still open at the end of a file.
    pub fn end(&mut self) -> Vec<Message> {
        self.way = None;
        if !self.record.is_empty() {
            self.record.clear();
            self.skipped += 1;
        }
        let parts = std::mem::take(&mut self.parts).into_values().map(|(_, message)| message);
        parts.chain(self.open.take()).collect()
    }

    fn stderr(&mut self, line: &str) -> Option<Message> {
        if let Some(rest) = line.strip_prefix('\t') {
            self.go_on(rest);
            return None;
        }
        let Some((prefix, is_log, text)) = severity(line) else {
            self.go_on(line);
            return None;
        };
        let before = self.open.take();
        if is_log {
            self.open = Some(Message {
                process: process(prefix),
                at_s: instant::find(prefix),
                text: text.to_owned(),
            });
        }
        before
    }

    fn go_on(&mut self, line: &str) {
        if let Some(message) = &mut self.open {
            append(&mut message.text, "\n", line);
        }
    }

    /// A syslog message is split into parts `[n-1]`, `[n-2]` …; those of different processes
    /// alternate. A part that begins with a tab was a separate line.
    fn syslog(&mut self, line: &str) -> Option<Message> {
        let Some((host, part)) = split_syslog(line) else {
            self.skipped += 1;
            return None;
        };
        let Fragment { pid, number, index, text } = part;
        let text = text.replace("#011", "\t");
        if index > 1 {
            if let Some((open, message)) = self.parts.get_mut(pid)
                && open == number
            {
                let is_line = text.starts_with('\t');
                append(
                    &mut message.text,
                    if is_line { "\n" } else { "" },
                    text.trim_start_matches('\t'),
                );
            }
            return None;
        }
        let before = self.parts.remove(pid).map(|(_, message)| message);
        if let Some((prefix, true, text)) = severity(&text) {
            if self.parts.len() >= OPEN_MAX {
                self.parts.clear();
                self.skipped += 1;
            }
            let message = Message {
                process: format!("pid {pid}"),
                at_s: instant::find(prefix).or_else(|| instant::find(host)),
                text: text.to_owned(),
            };
            self.parts.insert(pid.to_owned(), (number.to_owned(), message));
        }
        before
    }

    fn json(&mut self, line: &str) -> Option<Message> {
        let Ok(Value::Object(keys)) = serde_json::from_str(line) else {
            self.skipped += 1;
            return None;
        };
        let text = |key: &str| keys.get(key).and_then(Value::as_str);
        (text("error_severity") == Some("LOG")).then(|| Message {
            process: keys.get("pid").map_or_else(String::new, |pid| format!("pid {pid}")),
            at_s: text("timestamp").and_then(instant::iso),
            text: text("message").unwrap_or_default().to_owned(),
        })
    }

    fn csv(&mut self, line: &str) -> Option<Message> {
        if self.record.is_empty() {
            line.clone_into(&mut self.record);
        } else {
            append(&mut self.record, "\n", line);
        }
        // A record ends where all quotes are closed; a record that is cut would never end.
        let quotes = memchr::memchr_iter(b'"', self.record.as_bytes()).count();
        let is_cut = self.record.len() >= MESSAGE_BYTES;
        if !quotes.is_multiple_of(2) && !is_cut {
            return None;
        }
        let record = std::mem::take(&mut self.record);
        let fields = fields(&record);
        if is_cut || fields.len() <= CSV_MESSAGE {
            self.skipped += 1;
            return None;
        }
        Some(Message {
            process: format!("pid {}", fields[CSV_PID]),
            at_s: instant::iso(&fields[0]),
            text: fields[CSV_MESSAGE].clone(),
        })
    }
}

fn append(text: &mut String, between: &str, more: &str) {
    if text.len() + more.len() < MESSAGE_BYTES {
        text.push_str(between);
        text.push_str(more);
    }
}

fn way(line: &str) -> Way {
    if line.starts_with('{') && line.contains("\"error_severity\"") {
        Way::Json
    } else if split_syslog(line).is_some() {
        Way::Syslog
    } else if fields(line).len() > CSV_MESSAGE && instant::iso(line).is_some() {
        Way::Csv
    } else {
        Way::Stderr
    }
}

/// Returns the prefix of a line, whether it is a message of severity LOG, and its text.
fn severity(line: &str) -> Option<(&str, bool, &str)> {
    let end = (0..=line.len().min(PREFIX_MAX)).rev().find(|at| line.is_char_boundary(*at))?;
    let found = SEVERITIES.iter().filter_map(|word| Some((line[..end].find(word)?, *word)));
    let (at, word) = found.min()?;
    Some((&line[..at], word == "LOG:  ", &line[at + word.len()..]))
}

/// Returns the process in a prefix: the first number in brackets.
fn process(prefix: &str) -> String {
    let inner = prefix.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    let number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    inner.map(str::trim).find(number).map_or_else(String::new, |pid| format!("pid {pid}"))
}

struct Fragment<'a> {
    pid: &'a str,
    number: &'a str,
    index: u32,
    text: &'a str,
}

/// Splits `Nov 26 02:23:22 host postgres[1234]: [5-1] text`.
fn split_syslog(line: &str) -> Option<(&str, Fragment<'_>)> {
    let (host, rest) = line.split_once("]: [")?;
    let (number, rest) = rest.split_once('-')?;
    let (index, text) = rest.split_once(']')?;
    let (host, pid) = host.rsplit_once('[')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let valid = is_number(pid) && is_number(number);
    let index = index.parse().ok().filter(|_| valid)?;
    let text = text.strip_prefix(' ').unwrap_or(text);
    Some((host, Fragment { pid, number, index, text }))
}

/// Splits a csvlog record into its fields.
fn fields(record: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = record.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields.last_mut().into_iter().for_each(|field| field.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => {
                if fields.len() > CSV_MESSAGE {
                    break;
                }
                fields.push(String::new());
            }
            char => fields.last_mut().into_iter().for_each(|field| field.push(char)),
        }
    }
    fields
}
