//! Common parts of `sadf -j` and `iostat -o JSON`: a description of the host, and a list of
//! intervals that may be truncated anywhere.

use std::collections::HashMap;

use blockstone_base::identity::Host;
use blockstone_probe::block;
use serde_json::{Map, Value};

use super::Failure;
use super::ledger::{Amount, IntervalRow};
use super::text::Text;

const LIST: &str = "\"statistics\"";
/// Upper bound of the text before the intervals.
const HEAD_BYTES: usize = 64 << 10;
/// Upper bound of one interval.
const INTERVAL_BYTES: usize = 64 << 20;
/// Bytes of the unit that sysstat calls kB.
pub const KIB: f64 = 1024.0;
const SECOND_NS: f64 = 1e9;

/// A document that is read interval by interval.
pub struct Document<'a> {
    text: &'a mut Text,
    /// The text read so far; the part from byte `at` on is not consumed yet.
    read: String,
    at: usize,
    /// The line number at `at`.
    line: usize,
    cut: bool,
}

/// An interval: the line number of its start, and its contents.
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
    pub fn open(text: &'a mut Text) -> Result<(Head, Self), Failure> {
        let mut document = Self { text, read: String::new(), at: 0, line: 1, cut: false };
        let list = loop {
            let rest = document.rest();
            let list = rest.find(LIST).and_then(|at| Some((at, at + rest[at..].find('[')? + 1)));
            if let Some(list) = list {
                break list;
            }
            if rest.len() > HEAD_BYTES || !document.more()? {
                let what = "the file ends before its first interval".to_owned();
                return Err(Failure::Damage { line: document.text.number().max(1), what });
            }
        };
        let (end, at) = list;
        let begin = document.rest()[..end].rfind('{').unwrap_or_default();
        let head = document.rest()[begin..end].trim_end().trim_end_matches(',');
        let head = serde_json::from_str(&format!("{head}}}")).map_err(|error| Failure::Damage {
            line: newlines(&document.rest()[..begin]) + error.line(),
            what: plain(&error),
        })?;
        document.go(at);
        Ok((Head(head), document))
    }

    /// Returns the next interval, with the line number of its start; `None` at the end, or if the
    /// rest of the file is truncated.
    pub fn next(&mut self) -> Result<Option<Interval>, Failure> {
        loop {
            let gap = |c: char| !c.is_whitespace() && c != ',';
            let begin = self.rest().find(gap).unwrap_or(self.rest().len());
            self.go(begin);
            if !self.rest().is_empty() {
                break;
            }
            if !self.more()? {
                self.cut = true;
                return Ok(None);
            }
        }
        if self.rest().starts_with(']') {
            return Ok(None);
        }
        let (mut braces, mut scanned) = (Braces::default(), 0);
        let end = loop {
            if let Some(end) = braces.end(&self.rest().as_bytes()[scanned..]) {
                break scanned + end;
            }
            scanned = self.rest().len();
            if scanned > INTERVAL_BYTES || !self.more()? {
                break scanned;
            }
        };
        let mut values = serde_json::Deserializer::from_str(&self.rest()[..end]).into_iter();
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

    /// Returns a note if the end of the file is missing.
    pub fn note(&self) -> Option<String> {
        let line = self.line;
        self.cut.then(|| {
            format!(
                "the file is truncated in line {line}: complete intervals before it were imported"
            )
        })
    }

    /// Reads one more line; returns whether there was one.
    fn more(&mut self) -> Result<bool, Failure> {
        let Some((_, is_cut, line)) = self.text.next_numbered()? else { return Ok(false) };
        self.read.push_str(line);
        self.read.extend((!is_cut).then_some('\n'));
        Ok(true)
    }

    fn go(&mut self, bytes: usize) {
        self.line += newlines(&self.rest()[..bytes]);
        self.at += bytes;
        if self.at > self.read.len() / 2 {
            self.read.drain(..self.at);
            self.at = 0;
        }
    }

    fn rest(&self) -> &str {
        &self.read[self.at..]
    }
}

/// Finds the end of an object: the point where as many braces were closed as opened, outside
/// strings.
#[derive(Debug, Default)]
struct Braces {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Braces {
    /// Returns the position after the object, if it ends in these bytes, or after a byte that does
    /// not begin one.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let is_end = |byte: &u8| {
            let escaped = std::mem::take(&mut self.is_escaped);
            match byte {
                b'"' if !escaped => self.in_string = !self.in_string,
                b'\\' if self.in_string => self.is_escaped = !escaped,
                b'{' if !self.in_string => self.depth += 1,
                b'}' if !self.in_string => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.depth == 0 && !self.in_string
        };
        bytes.iter().position(is_end).map(|at| at + 1)
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// Returns an error of the JSON parser without its position.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned()
}

/// Figures of an object, by the tool's names.
#[derive(Clone, Copy, Debug)]
pub enum Figures<'a> {
    Json(&'a Map<String, Value>),
    /// Numbers below headings.
    Row(&'a [String], &'a [f64]),
}

impl<'a> Figures<'a> {
    pub fn number(&self, key: &str) -> Option<f64> {
        let number = match self {
            Self::Json(object) => object.get(key)?.as_f64()?,
            Self::Row(headings, numbers) => {
                *numbers.get(headings.iter().position(|heading| heading == key)?)?
            }
        };
        (number >= 0.0).then_some(number)
    }

    /// Returns the nested figures with this name.
    pub fn part(&self, key: &str) -> Option<Self> {
        match self {
            Self::Json(object) => object.get(key)?.as_object().map(Self::Json),
            Self::Row(..) => None,
        }
    }

    pub fn text(&self, key: &str) -> Option<&'a str> {
        match self {
            Self::Json(object) => object.get(key)?.as_str(),
            Self::Row(..) => None,
        }
    }

    /// Returns the first of several names that is present, times its factor to our unit, as a rate.
    pub fn rate(&self, names: &[(&str, f64)]) -> Option<Amount> {
        let found = names.iter().find_map(|(key, size)| Some(self.number(key)? * size))?;
        Some(Amount::PerSecond(found))
    }

    /// Returns a level that the tool prints in KiB, in bytes.
    pub fn kib(&self, key: &str) -> Option<Amount> {
        Some(Amount::Level((self.number(key)? * KIB) as u64))
    }

    /// Returns the sum of percentages of the time of `of` things, as time per second. Missing ones
    /// are included in others.
    pub fn share(&self, names: &[&str], of: f64) -> Option<Amount> {
        let found: Vec<f64> = names.iter().filter_map(|key| self.number(key)).collect();
        let sum: f64 = found.iter().sum();
        (!found.is_empty()).then(|| Amount::PerSecond(sum / 100.0 * of * SECOND_NS))
    }
}

/// Properties derived from the names of disks, cached while the names stay the same.
#[derive(Debug, Default)]
pub struct Disks {
    names: Vec<String>,
    states: HashMap<String, [Option<String>; 2]>,
}

impl Disks {
    /// Sets the names of all disks.
    pub fn list<'n>(&mut self, names: impl Iterator<Item = &'n str> + Clone) {
        if names.clone().eq(self.names.iter().map(String::as_str)) {
            return;
        }
        self.names = names.map(str::to_owned).collect();
        let states = |name: &String| {
            let kind = block::kind_by_name(name).map(|kind| kind.name().to_owned());
            (name.clone(), [kind, block::paths_by_name(name, self.names.clone())])
        };
        self.states = self.names.iter().map(states).collect();
    }

    /// Returns a row of a disk with the properties derived from its name.
    pub fn row(&self, name: &str) -> IntervalRow {
        let mut row = IntervalRow::new(&block::SCHEMA, name);
        if let Some([kind, beneath]) = self.states.get(name) {
            row.set("device_kind", kind.clone().map(Amount::Text));
            row.set("beneath", beneath.clone().map(Amount::Text));
        }
        row
    }
}
