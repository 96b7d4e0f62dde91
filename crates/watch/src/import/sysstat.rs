//! Common parts of `sadf -j` and `iostat -o JSON`: a description of the host, and a list of
//! intervals that may be truncated anywhere.

use std::collections::HashMap;

use blockstone_base::identity::{DeviceKind, Host};
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
pub struct Figures<'a>(pub &'a Map<String, Value>);

impl<'a> Figures<'a> {
    /// Returns a number; [`f64::NAN`] if there is something else.
    pub fn number(self, key: &str) -> Option<f64> {
        Some(self.0.get(key)?.as_f64().unwrap_or(f64::NAN))
    }

    /// Returns the nested figures with this name.
    pub fn part(self, key: &str) -> Option<Self> {
        self.0.get(key)?.as_object().map(Self)
    }

    pub fn text(self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str()
    }

    /// Returns the first of several names that is present, times its factor to our unit, as a rate.
    pub fn rate(self, names: &[(&str, f64)]) -> Option<Amount> {
        let found = names.iter().find_map(|(key, size)| Some(self.number(key)? * size))?;
        Some(Amount::PerSecond(found))
    }

    /// Returns a level that the tool prints in KiB, in bytes.
    pub fn kib(self, key: &str) -> Option<Amount> {
        level(self.number(key)? * KIB)
    }

    /// Returns the sum of percentages of the time of `of` things, as time per second. Missing ones
    /// are included in others. Unknown if the number of things is.
    pub fn share(self, names: &[&str], of: f64) -> Option<Amount> {
        if of <= 0.0 {
            return None;
        }
        let found: Vec<f64> = names.iter().filter_map(|key| self.number(key)).collect();
        let sum: f64 = found.iter().sum();
        (!found.is_empty()).then(|| Amount::PerSecond(sum / 100.0 * of * SECOND_NS))
    }
}

/// Returns a level, unless it cannot be one.
pub fn level(value: f64) -> Option<Amount> {
    (0.0..LEVEL_MAX).contains(&value).then_some(Amount::Level(value as u64))
}

/// Larger levels are counters that went below zero.
const LEVEL_MAX: f64 = 9e18;

/// Properties derived from the names of disks, cached while the names stay the same.
///
/// A name alone does not say what lies beneath a device. A partition whose disk is in the file is a
/// part of it; `dm-0`, `md0` and names that people chose lie on other devices, which are counted if
/// the file has any disk. If it has none, these are counted: they are what it was asked for.
#[derive(Debug, Default)]
pub struct Disks {
    names: Vec<String>,
    states: HashMap<String, [Option<String>; 2]>,
    /// Devices that were counted because there is no disk among them.
    instead: Vec<String>,
}

/// The devices that a note names.
const NAMED: usize = 8;

impl Disks {
    /// Sets the names of all disks.
    pub fn list<'n>(&mut self, names: impl Iterator<Item = &'n str> + Clone) {
        if names.clone().eq(self.names.iter().map(String::as_str)) {
            return;
        }
        self.names = names.map(str::to_owned).collect();
        let mut kinds: Vec<Option<DeviceKind>> =
            self.names.iter().map(|name| kind(name, &self.names)).collect();
        let is_instead = |kind: &Option<DeviceKind>| {
            matches!(kind, None | Some(DeviceKind::DeviceMapper | DeviceKind::Raid))
        };
        self.instead.clear();
        if !kinds.contains(&Some(DeviceKind::Disk)) {
            let only_loops = !kinds.iter().any(is_instead);
            for (name, kind) in self.names.iter().zip(&mut kinds) {
                if is_instead(kind) || (only_loops && *kind == Some(DeviceKind::Loop)) {
                    *kind = Some(DeviceKind::Disk);
                    self.instead.push(name.clone());
                }
            }
        }
        let states = |(name, kind): (&String, Option<DeviceKind>)| {
            let kind = kind.map(|kind| kind.name().to_owned());
            (name.clone(), [kind, block::paths_by_name(name, self.names.clone())])
        };
        self.states = self.names.iter().zip(kinds).map(states).collect();
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

    /// Returns a note on devices of which it is not known whether one lies on another.
    pub fn note(&self) -> Option<String> {
        let count = self.instead.len();
        let names = self.instead[..count.min(NAMED)].join(", ");
        let more = if count > NAMED { ", …" } else { "" };
        (count > 1).then(|| {
            format!(
                "no disk is among its devices, so all were counted, {names}{more}: a request to \
                 one that lies on another counts twice"
            )
        })
    }
}

/// Returns the kind of a device among others; `None` if its name does not tell.
fn kind(name: &str, among: &[String]) -> Option<DeviceKind> {
    let has = |whole: &str| among.iter().any(|other| other == whole);
    let part = |whole: &str| if has(whole) { DeviceKind::Partition } else { DeviceKind::Disk };
    if let Some(whole) = block::whole_by_name(name) {
        return Some(part(whole));
    }
    if let Some(numbers) = name.strip_prefix("dev") {
        return by_number(numbers, among, &part);
    }
    // Names of people: `wwn-0x5000-part1`, `mpatha1`, `mpathap1`.
    let digits = |c: char| c.is_ascii_digit();
    let stem = name.trim_end_matches(digits);
    let parts = [stem.strip_suffix("-part"), stem.strip_suffix('p'), Some(stem)];
    let of_path = |whole: &&str| whole.starts_with("mpath") || stem.ends_with("-part");
    let is_part = stem.len() < name.len()
        && parts.into_iter().flatten().filter(of_path).any(|whole| whole != name && has(whole));
    match block::kind_by_name(name) {
        None if is_part => Some(DeviceKind::Partition),
        kind => kind,
    }
}

/// Returns the kind of a device that sar names by its numbers, such as `dev8-17`. The numbers from
/// 240 on have no fixed meaning.
fn by_number(
    numbers: &str,
    among: &[String],
    part: &impl Fn(&str) -> DeviceKind,
) -> Option<DeviceKind> {
    let (major, minor) = numbers.split_once('-')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let parts = match major {
        7 => return Some(DeviceKind::Loop),
        9 => return Some(DeviceKind::Raid),
        11 | 259 => return Some(DeviceKind::Disk),
        8 | 65..=79 | 104..=111 | 128..=135 | 202 => 16,
        3 | 22 | 33 | 34 | 56 | 57 | 88..=91 => 64,
        94 => 4,
        179 => 8,
        // Disks of a virtual machine have numbers for partitions between them, and mapped devices
        // none.
        240..=254 => {
            let prefix = format!("dev{major}-");
            let minors = among.iter().filter_map(|name| name.strip_prefix(&prefix)?.parse().ok());
            let is_mapper = minors.clone().any(|minor: u32| !minor.is_multiple_of(16));
            let is_disk = minors.clone().count() > 1 && !is_mapper;
            return match (is_mapper, is_disk) {
                (true, _) => Some(DeviceKind::DeviceMapper),
                (_, true) => Some(DeviceKind::Disk),
                _ => None,
            };
        }
        _ => return None,
    };
    Some(match minor % parts {
        0 => DeviceKind::Disk,
        number => part(&format!("dev{major}-{}", minor - number)),
    })
}

/// With up to this many digits, the digits and the power of ten are exact, so their quotient is the
/// double nearest to the written number.
const EXACT: usize = 15;
const TENS: [f64; EXACT + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Parses a number with a decimal point or comma, and the bytes of its unit, if it has one.
#[inline]
pub fn number(word: &[u8]) -> Option<(f64, Option<f64>)> {
    let (mut whole, mut digits, mut point) = (0_u64, 0, None);
    for (at, byte) in word.iter().enumerate() {
        match byte {
            b'0'..=b'9' if digits < EXACT => {
                whole = whole * 10 + u64::from(byte - b'0');
                digits += 1;
            }
            b'.' | b',' if point.is_none() => point = Some(digits),
            _ => return parse_slowly(word, at),
        }
    }
    let behind = digits - point.unwrap_or(digits);
    (digits > 0).then(|| (whole as f64 / TENS[behind], None))
}

/// Parses a number with a sign, many digits, or a unit from byte `at` on.
#[cold]
fn parse_slowly(word: &[u8], at: usize) -> Option<(f64, Option<f64>)> {
    let plain = |bytes: &[u8]| -> Option<f64> {
        let text = str::from_utf8(bytes).ok()?.replace(',', ".");
        let is_number = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e'));
        is_number.then(|| text.parse().ok()).flatten()
    };
    if at + 1 == word.len() {
        let unit = match word[at] {
            b's' => Some(512.0),
            b'B' => Some(1.0),
            b'k' => Some(1024.0),
            b'M' => Some(1024_f64.powi(2)),
            b'G' => Some(1024_f64.powi(3)),
            b'T' => Some(1024_f64.powi(4)),
            b'P' => Some(1024_f64.powi(5)),
            b'%' => None,
            _ => return plain(word).map(|number| (number, None)),
        };
        return plain(&word[..at]).map(|number| (number, unit));
    }
    plain(word).map(|number| (number, None))
}

/// Prefix of the first line of sysstat's reports.
const TITLE: &str = "Linux ";

/// Whether this is the first line of a report by sysstat.
pub fn is_title(line: &str) -> bool {
    line.starts_with(TITLE) && line.contains('(') && line.contains(')')
}

/// Parses `Linux 6.18.44 (name) <tab> 2026-11-22 <tab> _x86_64_ <tab> (2 CPU)`.
pub fn host_of(line: &str) -> Host {
    let between = |open: char, close: char, part: &str| {
        let rest = part.split_once(open)?.1;
        Some(rest.split_once(close)?.0.to_owned())
    };
    let mut words = line.split_whitespace();
    let cpus = line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(' '));
    let cpus = cpus.and_then(|(count, _)| count.parse().ok()).unwrap_or_default();
    Host {
        kernel: words.nth(1).unwrap_or_default().to_owned(),
        hostname: between('(', ')', line).unwrap_or_default(),
        architecture: words
            .find_map(|word| word.strip_prefix('_')?.strip_suffix('_'))
            .unwrap_or_default()
            .to_owned(),
        cpus,
        cpus_allowed_milli: u32::saturating_mul(cpus, 1000),
        ..Host::default()
    }
}

/// Returns the date in such a line.
pub fn date_of(line: &str) -> &str {
    let behind = line.split_once(')').map_or("", |(_, rest)| rest.trim_start_matches(')'));
    behind.split(['_', '(']).next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use blockstone_base::rng::Rng;

    use super::*;

    fn plain(text: &str) -> Option<f64> {
        number(text.as_bytes()).map(|(number, _)| number)
    }

    #[test]
    fn numbers_are_those_next_to_what_is_written() {
        let mut random = Rng::new(1, 0);
        for _ in 0..10_000 {
            let digits = random.below(17) as u32;
            let whole = random.below(10_u64.pow(digits));
            let fraction = random.below(1000);
            for text in [format!("{whole}.{fraction}"), format!("{whole}"), format!("{whole}.")] {
                assert_eq!(plain(&text), text.parse().ok(), "{text}");
            }
        }
        for (text, expected) in [("0,25", 0.25), (".5", 0.5), ("1e3", 1000.0), ("-2", -2.0)] {
            assert_eq!(plain(text), Some(expected));
        }
        assert_eq!(number(b"222.1k"), Some((222.1, Some(1024.0))));
        assert_eq!(number(b"5.5%"), Some((5.5, None)));
        for word in [".", "1.2.3", "x", "0x7", "1_0", "nan", "-nan", "inf", "****", ""] {
            assert_eq!(plain(word), None, "{word}");
        }
    }

    fn kinds(names: &[&str]) -> Vec<String> {
        let mut disks = Disks::default();
        disks.list(names.iter().copied());
        let kind = |name: &&str| disks.states[*name][0].clone().unwrap_or_default();
        names.iter().map(kind).collect()
    }

    #[test]
    fn a_part_of_another_device_is_none_of_its_own() {
        assert_eq!(kinds(&["sda", "sda1", "dm-0"]), ["disk", "partition", "dm"]);
        assert_eq!(kinds(&["xvda1", "xvdb"]), ["disk", "disk"], "a disk that is named like a part");
        assert_eq!(kinds(&["sda", "vg-root", "emcpowera"]), ["disk", "", ""]);
        assert_eq!(kinds(&["mpatha", "mpatha1", "mpathb"]), ["disk", "partition", "disk"]);
        assert_eq!(
            kinds(&["wwn-1", "wwn-1-part2", "data", "data1"]),
            ["disk", "partition", "disk", "disk"]
        );
        assert_eq!(kinds(&["dm-0", "dm-1"]), ["disk", "disk"]);
        assert_eq!(kinds(&["loop0"]), ["disk"]);
        assert_eq!(kinds(&["loop0", "vda"]), ["loop", "disk"]);
    }

    #[test]
    fn numbers_of_sar_say_what_a_device_is() {
        assert_eq!(
            kinds(&["dev8-0", "dev8-1", "dev253-0", "dev253-1"]),
            ["disk", "partition", "dm", "dm"]
        );
        assert_eq!(kinds(&["dev252-0", "dev252-16"]), ["disk", "disk"]);
        assert_eq!(kinds(&["dev259-0", "dev259-1", "dev7-0"]), ["disk", "disk", "loop"]);
        assert_eq!(kinds(&["dev8-0", "dev252-0"]), ["disk", ""]);
    }

    #[test]
    fn a_title_names_host_and_date() {
        for (line, host, date) in [
            ("Linux 6.1 (db1) \t2026-11-22 \t_x86_64_\t(2 CPU)", "db1", "2026-11-22"),
            ("Linux 2.6.9-8 (db.example)      08/07/2007", "db.example", "08/07/2007"),
            ("Linux 5.4.0 (db1) \t2023年10月11日 \t_x86_64_\t(2 CPU)", "db1", "2023年10月11日"),
            ("Linux 2.6 ((none))    04/11/23", "(none", "04/11/23"),
        ] {
            assert!(is_title(line));
            assert_eq!((host_of(line).hostname.as_str(), date_of(line)), (host, date));
        }
        assert!(!is_title("Linux OSWbb v7.3.3"));
    }
}
