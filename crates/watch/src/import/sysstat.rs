//! What `sadf -j` and `iostat -o JSON` have in common: a description of the host, and a list of
//! intervals that may end anywhere.

use blockstone_base::identity::Host;
use blockstone_probe::block;
use serde_json::{Map, Value};

use super::Failure;
use super::ledger::{Amount, IntervalRow};
use super::text::Text;

const LIST: &str = "\"statistics\"";
/// Bytes of what sysstat calls kB.
pub const KIB: f64 = 1024.0;
const MS_NS: f64 = 1e6;
const SECOND_NS: f64 = 1e9;

/// A document that is read interval by interval.
pub struct Document<'a> {
    text: &'a Text,
    at: usize,
    line: usize,
    cut: bool,
}

/// The line where an interval begins, and its contents.
pub type Interval = (usize, Map<String, Value>);

#[derive(Clone, Debug, Default)]
pub struct Head(Map<String, Value>);

impl Head {
    pub fn text(&self, key: &str) -> String {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub fn host(&self) -> Host {
        let cpus = self.0.get("number-of-cpus").and_then(Value::as_u64).unwrap_or_default();
        let cpus = u32::try_from(cpus).unwrap_or_default();
        Host {
            hostname: self.text("nodename"),
            kernel: self.text("release"),
            architecture: self.text("machine"),
            cpus,
            cpus_allowed_milli: cpus.saturating_mul(1000),
            ..Host::default()
        }
    }
}

impl<'a> Document<'a> {
    pub fn open(text: &'a Text) -> Result<(Head, Self), Failure> {
        let all = text.as_str();
        let list = all.find(LIST).and_then(|at| Some((at, at + all[at..].find('[')? + 1)));
        let Some((end, at)) = list else {
            let what = "the file ends before its first interval".to_owned();
            return Err(Failure::Damage { line: text.last_line(), what });
        };
        let begin = all[..end].rfind('{').unwrap_or_default();
        let head = format!("{}}}", all[begin..end].trim_end().trim_end_matches(','));
        let head = serde_json::from_str(&head).map_err(|error| Failure::Damage {
            line: newlines(&all[..begin]) + error.line(),
            what: plain(&error),
        })?;
        Ok((Head(head), Self { text, at, line: newlines(&all[..at]) + 1, cut: false }))
    }

    /// The next interval, with the line where it begins; none at the end or where the file is
    /// truncated.
    pub fn next(&mut self) -> Result<Option<Interval>, Failure> {
        let all = self.text.as_str();
        let rest = &all[self.at..];
        let begin = rest.find(|c: char| !c.is_whitespace() && c != ',').unwrap_or(rest.len());
        self.go(begin);
        let rest = &all[self.at..];
        if rest.starts_with(']') {
            return Ok(None);
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        match values.next() {
            None => self.cut = true,
            Some(Err(error)) if error.is_eof() => self.cut = true,
            Some(Err(error)) => {
                let line = self.line + error.line() - 1;
                return Err(Failure::Damage { line, what: plain(&error) });
            }
            Some(Ok(value)) => {
                let line = self.line;
                self.go(values.byte_offset());
                return Ok(Some((line, value)));
            }
        }
        Ok(None)
    }

    /// A note if the end of the file is missing.
    pub fn note(&self) -> Option<String> {
        let line = self.line;
        self.cut.then(|| {
            format!(
                "the file is truncated in line {line}: complete intervals before it were imported"
            )
        })
    }

    fn go(&mut self, bytes: usize) {
        self.line += newlines(&self.text.as_str()[self.at..self.at + bytes]);
        self.at += bytes;
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// An error of the JSON parser without its position.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned()
}

/// The figures of an object, by the names that the tool gives them.
pub struct Figures<'a>(pub &'a Map<String, Value>);

impl Figures<'_> {
    pub fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64().filter(|number| *number >= 0.0)
    }

    /// The first of several names that is there, times its size in our unit, as a rate.
    pub fn rate(&self, names: &[(&str, f64)]) -> Option<Amount> {
        let found = names.iter().find_map(|(key, size)| Some(self.number(key)? * size))?;
        Some(Amount::PerSecond(found))
    }

    /// A level in KiB.
    pub fn kib(&self, key: &str) -> Option<Amount> {
        Some(Amount::Level((self.number(key)? * KIB) as u64))
    }

    /// The mean time of each step of `of`, in milliseconds.
    pub fn mean(&self, of: &'static str, key: &str) -> Option<Amount> {
        Some(Amount::Each(of, self.number(key)? * MS_NS))
    }

    /// Percentages of the time of `of` things, summed, as time per second. Missing ones are part of
    /// others.
    pub fn share(&self, names: &[&str], of: f64) -> Option<Amount> {
        let found: Vec<f64> = names.iter().filter_map(|key| self.number(key)).collect();
        let sum: f64 = found.iter().sum();
        (!found.is_empty()).then(|| Amount::PerSecond(sum / 100.0 * of * SECOND_NS))
    }
}

/// A disk with what follows from its name, among the names of all disks.
pub fn disk(name: &str, all: &[String]) -> IntervalRow {
    let mut row = IntervalRow::new(&block::SCHEMA, name);
    let kind = block::kind_by_name(name);
    row.set("device_kind", kind.map(|kind| Amount::Text(kind.name().to_owned())));
    row.set("beneath", block::paths_by_name(name, all.to_vec()).map(Amount::Text));
    row
}
