//! Records of csvlog, which may take several lines.

use super::message::{MESSAGE_BYTES, Message, append};
use crate::instant;

/// Field indices, the same in all releases.
const PID: usize = 3;
const SEVERITY: usize = 11;
const MESSAGE: usize = 13;

/// Assembles records from lines.
#[derive(Default)]
pub struct Records {
    record: String,
    /// Whether a quoted field is open.
    quoted: bool,
    pub skipped: u64,
}

impl Records {
    /// Returns whether a line belongs to csvlog.
    pub fn takes(&self, line: &str) -> bool {
        !self.record.is_empty() || begins(line)
    }

    /// Takes a line; returns the message if it completes one of severity LOG.
    pub fn line(&mut self, line: &str) -> Option<Message> {
        if self.record.is_empty() {
            line.clone_into(&mut self.record);
            self.quoted = false;
        } else if begins(line) {
            // The record before was cut: it would never end.
            self.skipped += 1;
            line.clone_into(&mut self.record);
            self.quoted = false;
        } else {
            append(&mut self.record, "\n", line);
        }
        let quotes = memchr::memchr_iter(b'"', line.as_bytes()).count();
        self.quoted ^= !quotes.is_multiple_of(2);
        let is_cut = self.record.len() + line.len() >= MESSAGE_BYTES;
        if self.quoted && !is_cut {
            return None;
        }
        let record = std::mem::take(&mut self.record);
        let fields = fields(&record);
        if is_cut || fields.len() <= MESSAGE {
            self.skipped += 1;
            return None;
        }
        let [pid, severity, message] = [PID, SEVERITY, MESSAGE].map(|at| fields[at].as_str());
        (severity == "LOG").then(|| Message {
            process: format!("pid {pid}"),
            at_s: instant::iso(&fields[0]),
            text: message.to_owned(),
        })
    }

    pub fn end(&mut self) {
        if !self.record.is_empty() {
            self.record.clear();
            self.skipped += 1;
        }
    }
}

/// Returns whether a line begins a record.
fn begins(line: &str) -> bool {
    // PostgreSQL does not quote the time; exports by other programs do.
    let first = line.split(',').next().unwrap_or(line).trim_matches('"');
    let is_time = first.len() < 48 && !first.contains(['=', '[']);
    is_time && instant::iso(first).is_some() && fields(line).len() > MESSAGE
}

/// Splits a record into its fields, up to the message.
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
                if fields.len() > MESSAGE {
                    break;
                }
                fields.push(String::new());
            }
            char => fields.last_mut().into_iter().for_each(|field| field.push(char)),
        }
    }
    fields
}
