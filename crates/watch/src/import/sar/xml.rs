//! The document of `sadf -x`, interval by interval.

use blockstone_base::identity::Host;
use serde_json::{Map, Value};

use super::super::text::Text;
use super::super::{Failure, Origin, Sink};
use super::table::{object, push};
use super::{Series, Time};

const BEGIN: &str = "<timestamp ";
const END: &str = "</timestamp>";
const LIST_END: &str = "</statistics>";
/// Upper bounds of the text before the intervals, and of one interval.
const HEAD_BYTES: usize = 64 << 10;
const INTERVAL_BYTES: usize = 64 << 20;
/// No element of an interval is nested deeper.
const DEPTH: usize = 8;

pub fn read(text: &mut Text, sink: &mut Sink<'_>) -> Result<Origin, Failure> {
    let mut document = Document { text, read: String::new(), line: 1 };
    let head = document.until(BEGIN, HEAD_BYTES)?;
    let damage = |line: usize, what: &str| Failure::Damage { line, what: what.to_owned() };
    let Some(head) = head else {
        return Err(damage(document.line, "the file ends before its first interval"));
    };
    let host = host(&head);
    let mut series = Series::new(host.cpus, sink);
    let mut notes = Vec::new();
    let mut is_whole = false;
    loop {
        let line = document.line;
        let Some(interval) = document.until(END, INTERVAL_BYTES)? else {
            is_whole |= document.read.contains(LIST_END);
            break;
        };
        // Other tags stand between two intervals.
        let begin = interval.find(BEGIN).map_or(0, |at| at + BEGIN.len());
        let figures = figures(&interval[begin..])
            .ok_or_else(|| damage(line, "an interval that is not well-formed"))?;
        let time = Time::of(&figures).ok_or_else(|| {
            damage(line, "an interval without a `timestamp` (date, time and interval)")
        })?;
        series.add(&time, &figures)?;
    }
    if !is_whole {
        let line = document.line;
        notes.push(format!(
            "the file is truncated after line {line}: complete intervals before it were imported"
        ));
    }
    notes.extend(series.notes(&element(&head, "timezone")));
    Ok(Origin { host, notes, tool_version: None })
}

struct Document<'a> {
    text: &'a mut Text,
    /// The text that was read and is not consumed yet, and the number of its first line.
    read: String,
    line: usize,
}

impl Document<'_> {
    /// Consumes the text up to the end of a tag; `None` if it does not come.
    fn until(&mut self, tag: &str, at_most: usize) -> Result<Option<String>, Failure> {
        let mut scanned = 0;
        loop {
            if let Some(at) = self.read[scanned..].find(tag) {
                let end = scanned + at + tag.len();
                let rest = self.read.split_off(end);
                let found = std::mem::replace(&mut self.read, rest);
                self.line += found.matches('\n').count();
                return Ok(Some(found));
            }
            // The tag may be in two lines.
            scanned = self.read.len().saturating_sub(tag.len());
            scanned = (0..=scanned).rev().find(|at| self.read.is_char_boundary(*at)).unwrap_or(0);
            if self.read.len() > at_most {
                let what = "an interval of more than 64 MiB".to_owned();
                return Err(Failure::Damage { line: self.line, what });
            }
            let Some(line) = self.text.next_line()? else { return Ok(None) };
            self.read.push_str(line);
            self.read.push('\n');
        }
    }
}

fn host(head: &str) -> Host {
    let cpus = element(head, "number-of-cpus").parse().unwrap_or(0);
    let name = head.split_once("nodename=\"").and_then(|(_, rest)| rest.split_once('"'));
    Host {
        hostname: name.map_or_else(String::new, |(name, _)| unescaped(name)),
        kernel: element(head, "release"),
        architecture: element(head, "machine"),
        cpus,
        cpus_allowed_milli: u32::saturating_mul(cpus, 1000),
        ..Host::default()
    }
}

/// Returns the text of the first element with this name.
fn element(text: &str, name: &str) -> String {
    let rest = text.split_once(&format!("<{name}>")).map_or("", |(_, rest)| rest);
    rest.split_once('<').map_or_else(String::new, |(text, _)| unescaped(text.trim()))
}

fn unescaped(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    plain.replace("&apos;", "'").replace("&amp;", "&")
}

/// An element that is open.
struct Element {
    name: String,
    figures: Map<String, Value>,
    text: String,
}

/// Returns the figures of an interval as `sadf -j` arranges them; `text` begins inside its first
/// tag. `None` if it is not well-formed.
fn figures(text: &str) -> Option<Map<String, Value>> {
    let (time, mut rest) = text.split_once('>')?;
    let mut all = Map::new();
    all.insert("timestamp".to_owned(), Value::Object(attributes(time)?));
    let mut open: Vec<Element> = Vec::new();
    while let Some(begin) = rest.find('<') {
        if let Some(element) = open.last_mut() {
            element.text.push_str(rest[..begin].trim());
        }
        let (tag, after) = match rest[begin + 1..].strip_prefix("!--") {
            Some(comment) => ("", comment.split_once("-->")?.1),
            None => rest[begin + 1..].split_once('>')?,
        };
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            if name == "timestamp" {
                return open.is_empty().then_some(all);
            }
            let element = open.pop().filter(|element| element.name == name.trim_end())?;
            close(element, &mut open, &mut all);
        } else if !tag.is_empty() {
            let (tag, is_empty) = match tag.strip_suffix('/') {
                Some(tag) => (tag, true),
                None => (tag, false),
            };
            let (name, rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            let (name, figures) = (name.to_owned(), attributes(rest)?);
            let element = Element { name, figures, text: String::new() };
            if is_empty {
                close(element, &mut open, &mut all);
            } else if open.len() < DEPTH {
                open.push(element);
            } else {
                return None;
            }
        }
    }
    None
}

/// Puts an element where `sadf -j` has it: items of a list, an object, or one figure.
fn close(element: Element, open: &mut [Element], all: &mut Map<String, Value>) {
    let Element { name, mut figures, text } = element;
    let key = match name.as_str() {
        "cpu" => Some(("number", "cpu")),
        "disk-device" => Some(("dev", "disk-device")),
        _ => None,
    };
    if let Some((theirs, ours)) = key
        && let Some(value) = figures.remove(theirs)
    {
        let value = match value {
            Value::Number(number) => Value::from(number.to_string().trim_end_matches(".0")),
            value => value,
        };
        figures.insert(ours.to_owned(), value);
    }
    match open.last_mut() {
        Some(parent) if matches!(name.as_str(), "cpu" | "disk-device" | "net-dev" | "net-edev") => {
            push(&mut parent.figures, &name, figures);
        }
        Some(parent) if figures.is_empty() => {
            parent.figures.insert(name, value(&text));
        }
        Some(parent) => object(&mut parent.figures, &name).extend(figures),
        None => {
            let items = match name.as_str() {
                "cpu-load" | "cpu-load-all" => figures.remove("cpu"),
                "disk" => figures.remove("disk-device"),
                _ => None,
            };
            match items {
                Some(items) => drop(all.insert(name, items)),
                None => object(all, &name).extend(figures),
            }
        }
    }
}

/// Reads `name="value"` pairs.
fn attributes(text: &str) -> Option<Map<String, Value>> {
    let mut attributes = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"")?;
        let (text, after) = after.split_once('"')?;
        attributes.insert(name.trim().to_owned(), value(text));
        rest = after.trim_start();
    }
    Some(attributes)
}

/// Returns a number if the text is one.
fn value(text: &str) -> Value {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'e' | b'+'));
    let number =
        || text.parse::<u64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from));
    match is_number.then(number) {
        Some(Ok(number)) => number,
        _ => Value::from(unescaped(text)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_interval_has_the_figures_of_the_json_document() {
        let text = "date=\"2026-11-20\" time=\"10:00:01\" utc=\"1\" interval=\"60\">
            <cpu-load><cpu number=\"all\" user=\"5.00\"/>
            <cpu number=\"0\" user=\"5.00\"/></cpu-load>
            <io per=\"second\"><tps>3.00</tps><io-reads rtps=\"2.00\" bread=\"16.00\"/></io>
            <!-- a <comment> -->
            <memory unit=\"kB\"><memfree>100</memfree></memory>
            <disk per=\"second\">
            <disk-device dev=\"sda\" tps=\"3.00\" util-percent=\"1.00\"/></disk>
            <network per=\"second\"><net-dev iface=\"a&amp;b\" rxpck=\"1.00\"/></network>
            </timestamp>";
        let expected = json!({
            "timestamp": {"date": "2026-11-20", "time": "10:00:01", "utc": 1, "interval": 60},
            "cpu-load": [{"cpu": "all", "user": 5.0}, {"cpu": "0", "user": 5.0}],
            "io": {"per": "second", "tps": 3.0, "io-reads": {"rtps": 2.0, "bread": 16.0}},
            "memory": {"unit": "kB", "memfree": 100},
            "disk": [{"disk-device": "sda", "tps": 3.0, "util-percent": 1.0}],
            "network": {"per": "second", "net-dev": [{"iface": "a&b", "rxpck": 1.0}]},
        });
        assert_eq!(figures(text).map(Value::Object), Some(expected));
        assert!(Time::of(&figures(text).unwrap()).is_some());
        for odd in
            ["", "x>", "a=\"1\"><b></timestamp>", "a=\"1\"><b></c></timestamp>", "a=1></timestamp>"]
        {
            assert_eq!(figures(odd), None, "{odd}");
        }
    }
}
