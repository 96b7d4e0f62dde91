//! Units as people write them: `MB/s`, `Gbits/sec`, `kIOPS`, `msec`.

use super::span::Span;
use super::vocabulary::is_one;

/// Unit of a number: bytes, bits and seconds without a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    Bytes,
    Bits,
    BytesPerS,
    BitsPerS,
    Iops,
    Seconds,
    Percent,
    /// A ratio in one word that a sign ends: `18x:`.
    Times,
}

/// Units after a number of requests per second.
pub const REQUESTS_A_SECOND: &[&str] = &[
    "iops",
    "iop/s",
    "io/s",
    "ios/s",
    "i/o/s",
    "io/sec",
    "ops/s",
    "ops/sec",
    "op/s",
    "reads/s",
    "writes/s",
    "reads/sec",
    "writes/sec",
    "requests/s",
    "requests/sec",
    "req/s",
    "r/s",
    "w/s",
];
/// Seconds in an average month and year of the Gregorian calendar.
const MONTH_S: f64 = 2_629_746.0;
const YEAR_S: f64 = 12.0 * MONTH_S;
/// Things by which a rate is divided: `IOPS/disk`, `MB/s/port`.
const DIVISORS: &[&str] = &[
    "disk", "drive", "spindle", "hdd", "ssd", "port", "link", "hba", "path", "node", "host",
    "server", "core", "vm", "client",
];
const LONGEST_DIVISOR: usize = 8;
const LARGEST_SMALL_SIZE: f64 = 4.0 * 1024.0 * 1024.0;

/// Returns a number, with commas between thousands, and the text that follows it.
pub fn number(word: &str) -> Option<(Span, &str)> {
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    let (digits, rest) = word.split_at(end.unwrap_or(word.len()));
    let mut groups = digits.split('.').next().unwrap_or_default().split(',');
    groups.next();
    if groups.any(|group| group.len() != 3) {
        return None;
    }
    let value: f64 = digits.replace(',', "").parse().ok()?;
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let half = 0.5 / 10_f64.powi(i32::try_from(decimals).ok()?);
    (value.is_finite() && value > 0.0).then(|| (Span::rounded(value, half), rest))
}

/// Returns the factor of the letter after a number of things: `750k`.
pub fn thousands(suffix: &str) -> Option<f64> {
    match suffix {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "M" => Some(1e6),
        _ => None,
    }
}

/// Whether a word is the size of a request: `4K`, `128KiB`.
pub fn is_small_size(word: &str) -> bool {
    let size = number(word).and_then(|(number, unit)| Some((number, of(unit)?)));
    size.is_some_and(|(number, (unit, scale))| {
        unit == Unit::Bytes
            && number.high * scale <= LARGEST_SMALL_SIZE
            && number.high.log2().fract() == 0.0
    })
}

/// Whether a rate is divided by this: `day` in `40TB/day`, but not `s`.
pub fn is_divisor(word: &str) -> bool {
    let end = word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len());
    let word = &word[..end];
    if word.len() > LONGEST_DIVISOR {
        return false;
    }
    let is_time = seconds(word).is_some_and(|seconds| seconds > 1.5) && word.len() > 1;
    is_time || word == "h" || word == "d" || is_one(word, DIVISORS)
}

/// Returns a time as clocks show it: `0:36`, `1:02:03`, `2h42m`, `1m23.5s`.
pub fn clock_time(word: &str) -> Option<f64> {
    if word.contains(':') {
        let mut total = 0.0;
        let parts: Vec<&str> = word.split(':').collect();
        if !(2..=3).contains(&parts.len()) || parts[1..].iter().any(|part| part.len() < 2) {
            return None;
        }
        for (index, part) in parts.iter().enumerate() {
            let value: f64 = part.parse().ok().filter(|&value| value >= 0.0)?;
            if index > 0 && value >= 60.0 {
                return None;
            }
            total = total * 60.0 + value;
        }
        return (total > 0.0).then_some(total);
    }
    let (mut rest, mut total, mut parts) = (word, 0.0, 0);
    let mut units = [("h", 3_600.0), ("m", 60.0), ("s", 1.0)].into_iter();
    while !rest.is_empty() {
        let (value, tail) = number(rest)?;
        let (unit, scale) = units.find(|(unit, _)| tail.starts_with(unit))?;
        total += value.low * scale;
        parts += 1;
        rest = &tail[unit.len()..];
    }
    (parts > 1).then_some(total)
}

/// Returns a unit and what one of it is in bytes, bits, requests or seconds.
pub fn of(word: &str) -> Option<(Unit, f64)> {
    let lower = word.to_ascii_lowercase();
    for (prefix, scale) in [("", 1.0), ("k", 1e3), ("m", 1e6)] {
        if lower.strip_prefix(prefix).is_some_and(|rest| is_one(rest, REQUESTS_A_SECOND)) {
            return Some((Unit::Iops, scale));
        }
    }
    if is_one(word, &["%", "percent"]) {
        return Some((Unit::Percent, 1.0));
    }
    if let Some(seconds) = seconds(word) {
        return Some((Unit::Seconds, seconds));
    }
    let (stem, per_second) = ["/second", "/sec", "/s", "/S", "ps", "PS"]
        .iter()
        .find_map(|end| Some((word.strip_suffix(end)?, true)))
        .unwrap_or((word, false));
    // A lowercase b before `ps` means bits. Elsewhere `mb` and `gb` are written for bytes.
    let bits_by_end = word.ends_with("bps");
    let bytes_of = |prefix: &str| Some((prefix_of(prefix)?, false));
    let (scale, is_bits) = match stem {
        "gig" | "gigs" | "Gig" | "Gigs" => (1e9, false),
        "meg" | "megs" | "Meg" | "Megs" => (1e6, false),
        stem if strip_word(stem, &["bytes", "byte"]).is_some() => {
            bytes_of(strip_word(stem, &["bytes", "byte"])?)?
        }
        stem if strip_word(stem, &["bits", "bit"]).is_some() => {
            (prefix_of(strip_word(stem, &["bits", "bit"])?)?, true)
        }
        stem if stem.ends_with('B') => bytes_of(&stem[..stem.len() - 1])?,
        stem if stem.ends_with('b') => {
            let prefix = &stem[..stem.len() - 1];
            let small = !prefix.is_empty() && prefix.chars().all(|c| c.is_ascii_lowercase());
            (prefix_of(prefix)?, bits_by_end || !small)
        }
        // A single letter is a binary unit, as databases read it.
        stem if !per_second => (binary(stem)?, false),
        "" => return None,
        stem => bytes_of(stem)?,
    };
    let unit = match (is_bits, per_second) {
        (true, true) => Unit::BitsPerS,
        (true, false) => Unit::Bits,
        (false, true) => Unit::BytesPerS,
        (false, false) => Unit::Bytes,
    };
    Some((unit, scale))
}

fn strip_word<'a>(stem: &'a str, ends: &[&str]) -> Option<&'a str> {
    let lower = stem.to_ascii_lowercase();
    let end = ends.iter().find(|end| lower.ends_with(**end))?;
    stem.get(..stem.len() - end.len())
}

/// Returns the factor of a prefix: `G`, `giga`, `Mi`.
fn prefix_of(prefix: &str) -> Option<f64> {
    const NAMES: [&str; 5] = ["kilo", "mega", "giga", "tera", "peta"];
    if let Some(at) = NAMES.iter().position(|name| name.eq_ignore_ascii_case(prefix)) {
        return Some(1000_f64.powi(at as i32 + 1));
    }
    Some(match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" | "m" => 1e6,
        "G" | "g" => 1e9,
        "T" | "t" => 1e12,
        "P" | "p" => 1e15,
        _ => return binary(prefix.strip_suffix('i')?),
    })
}

fn binary(letter: &str) -> Option<f64> {
    let power = ["k", "m", "g", "t", "p"].iter().position(|it| it.eq_ignore_ascii_case(letter))?;
    Some(1024_f64.powi(power as i32 + 1))
}

pub fn seconds(word: &str) -> Option<f64> {
    const DAY_S: f64 = 86_400.0;
    Some(match word.to_ascii_lowercase().as_str() {
        "ns" | "nsec" | "nanosecond" | "nanoseconds" => 1e-9,
        "us" | "µs" | "μs" | "usec" | "usecs" | "microsecond" | "microseconds" => 1e-6,
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => DAY_S,
        "week" | "weeks" => 7.0 * DAY_S,
        "month" | "months" => MONTH_S,
        "year" | "years" => YEAR_S,
        _ => return None,
    })
}
