//! Quantities with their unit: bytes and nanoseconds, how they are read from a command line and
//! how they are printed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A number of bytes. Like a duration, it is parsed with a mandatory unit, because tools disagree
/// about bare numbers: blocks (`SCALE` in slob.conf), bytes or MiB. A single letter is a binary
/// suffix, as databases and fio read it (`8K` is 8,192 bytes), and so are `KiB` to `TiB`; `KB` to
/// `TB` are decimal, as in data sheets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A duration in nanoseconds. Parsed with a mandatory unit: `20ms`, `1.5s`, `250us`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is not a number followed by a known suffix.
    #[error(
        "`{text}` is not a size; write a number with a unit B, K, M, G or T, as 8K; KB to TB are \
         decimal"
    )]
    Bytes { text: String },
    #[error("`{text}` has no unit; bytes are `{text}B`, K to T are powers of 1,024, as 8K")]
    BytesUnit { text: String },
    #[error("`{text}` has no unit; seconds are `{text}s`; others are ns, us, ms, m, h, d")]
    NanosUnit { text: String },
    /// The text is not a number followed by a time unit.
    #[error(
        "`{text}` is not a duration; write a number with a unit ns, us, ms, s, m, h or d, as 20ms"
    )]
    Nanos { text: String },
}

impl Bytes {
    pub const fn get(self) -> u64 {
        self.0
    }

    pub const fn kib(n: u64) -> Self {
        Self(n << 10)
    }

    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    pub const fn gib(n: u64) -> Self {
        Self(n << 30)
    }
}

impl Nanos {
    pub const fn get(self) -> u64 {
        self.0
    }

    pub const fn millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError::Bytes { text: text.to_owned() };
        let (number, suffix) = split_number(text).ok_or_else(fail)?;
        let unit = match suffix.to_ascii_lowercase().as_str() {
            "" if number != 0.0 => {
                return Err(ParseError::BytesUnit { text: text.trim().to_owned() });
            }
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000_u64,
            _ => return Err(fail()),
        };
        let scaled = number * unit as f64;
        if scaled.fract() != 0.0 || scaled > 2_f64.powi(63) {
            return Err(fail());
        }
        Ok(Self(scaled as u64))
    }
}

impl FromStr for Nanos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let fail = || ParseError::Nanos { text: text.to_owned() };
        let (number, suffix) = split_number(text).ok_or_else(fail)?;
        let scale = match suffix {
            "" if number != 0.0 => {
                return Err(ParseError::NanosUnit { text: text.trim().to_owned() });
            }
            "" | "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            _ => return Err(fail()),
        };
        let scaled = number * scale;
        if scaled > 2_f64.powi(63) { Err(fail()) } else { Ok(Self(scaled.round() as u64)) }
    }
}

fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    Some((number.parse().ok()?, suffix.trim()))
}

/// Binary suffix, lossless: `8 KiB`, `1.5 GiB`, `437 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SUFFIXES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut value = self.0 as f64;
        let mut index = 0;
        while value >= 1024.0 && index + 1 < SUFFIXES.len() {
            value /= 1024.0;
            index += 1;
        }
        f.pad(&format!("{} {}", three_digits(value), SUFFIXES[index]))
    }
}

/// Three significant digits: `33 µs`, `2.29 ms`, `1.02 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format_ns(self.0 as f64))
    }
}

/// Formats a duration in nanoseconds with three significant digits and a suitable unit.
pub fn format_ns(value_ns: f64) -> String {
    let (scale, unit) = match value_ns.abs() {
        v if v < 999.5 => (1.0, "ns"),
        v if v < 999.5e3 => (1e3, "µs"),
        v if v < 999.5e6 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", three_digits(value_ns / scale))
}

/// Formats a long duration as people say it: `3 h`, `1 h 2 min 0.5 s`; below a minute like
/// [`format_ns`].
pub fn format_span(ns: u64) -> String {
    const TENTH_NS: u64 = 100_000_000;
    let tenths = ns.saturating_add(TENTH_NS / 2) / TENTH_NS;
    if tenths < 600 {
        return format_ns(ns as f64);
    }
    let (minutes, seconds) = (tenths / 600, (tenths % 600) as f64 / 10.0);
    let parts = [
        (minutes / 60 > 0).then(|| format!("{} h", thousands((minutes / 60) as i64))),
        (!minutes.is_multiple_of(60)).then(|| format!("{} min", minutes % 60)),
        (seconds > 0.0).then(|| format!("{} s", three_digits(seconds))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Formats three significant digits without an exponent; whole numbers from 100 up get separators.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 100.0 || value.fract() == 0.0 {
        return thousands(value.round() as i64);
    }
    let text = if magnitude >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats bytes in decimal megabytes, as rates are: `4.2 MB`.
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", three_digits((bytes as f64 / 1e4).round() / 1e2))
}

/// Formats a share in percent: 0.123 as `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", three_digits((share * 1e4).round() / 1e2))
}

/// Formats a whole number with a comma between thousands: `20,000`.
pub fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::from(if value < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a count with its noun: `1 file`, `2,000 files`, `2 entries`.
pub fn counted(count: u64, noun: &str) -> String {
    let number = thousands(i64::try_from(count).unwrap_or(i64::MAX));
    let plural = match noun.as_bytes() {
        _ if count == 1 => noun.to_owned(),
        [.., before, b'y'] if !b"aeiou".contains(before) => {
            format!("{}ies", &noun[..noun.len() - 1])
        }
        [.., b's' | b'x'] | [.., b'c' | b's', b'h'] => format!("{noun}es"),
        _ => format!("{noun}s"),
    };
    format!("{number} {plural}")
}

/// Parses a number above zero, for a command-line option.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err("it must be a number greater than zero".to_owned()),
    }
}

/// Parses a percentage from 0 to 100, `50%` or `50`, for a command-line option.
pub fn percentage(text: &str) -> Result<f64, String> {
    let percentage = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    let percentage = percentage.filter(|percentage| (0.0..=100.0).contains(percentage));
    percentage.ok_or_else(|| "it must be a percentage from 0 to 100, such as 50%".to_owned())
}

/// Parses a percentage from 0 to 100 as a share.
pub fn share(text: &str) -> Result<f64, String> {
    percentage(text).map(|percentage| percentage / 100.0)
}

/// Parses a percentage greater than 0 as a ratio: some may exceed 100.
pub fn ratio_above_zero(text: &str) -> Result<f64, String> {
    let percentage = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    let percentage = percentage.filter(|&percentage| percentage > 0.0 && percentage <= 10_000.0);
    let why = || "it must be a percentage greater than 0, such as 0.28%".to_owned();
    percentage.map(|percentage| percentage / 100.0).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_with_and_without_their_sign() {
        assert_eq!(
            (percentage("7%"), percentage(" 7 % "), share("50")),
            (Ok(7.0), Ok(7.0), Ok(0.5))
        );
        assert_eq!((share("0"), ratio_above_zero("440%")), (Ok(0.0), Ok(4.4)));
        for wrong in ["101", "-1", "NaN", "", "%", "x"] {
            assert!(percentage(wrong).is_err() && share(wrong).is_err(), "{wrong}");
        }
        for wrong in ["0", "10001", "inf", "x"] {
            assert!(ratio_above_zero(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn long_durations_are_said_as_they_are_asked_for() {
        for (asked, said) in [
            ("3h", "3 h"),
            ("90m", "1 h 30 min"),
            ("90s", "1 min 30 s"),
            ("3600500ms", "1 h 0.5 s"),
            ("59999ms", "1 min"),
            ("9500ms", "9.5 s"),
            ("2m", "2 min"),
            ("20ms", "20 ms"),
            ("0s", "0 ns"),
        ] {
            assert_eq!(format_span(asked.parse::<Nanos>().unwrap().get()), said, "{asked}");
        }
        assert!(format_span(u64::MAX).ends_with(" s"));
    }

    #[test]
    fn sizes_are_read_as_databases_write_them() {
        for (text, bytes) in [
            ("512B", 512),
            ("0", 0),
            ("8K", 8192),
            ("8k", 8192),
            ("1.5M", 1_572_864),
            ("4 GiB", 4 << 30),
        ] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes(bytes)), "{text}");
        }
        for (text, bytes) in [
            ("8KB", 8000),
            ("200MB", 200_000_000),
            ("576 GB", 576_000_000_000),
            ("1.5tb", 15 * 10_u64.pow(11)),
        ] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes(bytes)), "{text} is decimal");
        }
        for text in ["", "K", "-1", "8Q", "1.0001", "8K8", "1e3"] {
            assert!(text.parse::<Bytes>().is_err(), "{text} must be refused");
        }
    }

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!("20ms".parse(), Ok(Nanos(20_000_000)));
        assert_eq!("1.5s".parse(), Ok(Nanos(1_500_000_000)));
        assert_eq!("0".parse(), Ok(Nanos(0)));
    }

    #[test]
    fn a_number_without_a_unit_is_told_what_it_lacks() {
        let size = " 8192".parse::<Bytes>().unwrap_err().to_string();
        assert!(size.contains("`8192` has no unit") && size.contains("`8192B`"), "{size}");
        let time = "20".parse::<Nanos>().unwrap_err().to_string();
        assert!(time.contains("`20` has no unit") && time.contains("`20s`"), "{time}");
    }

    #[test]
    fn one_thing_is_said_as_one() {
        assert_eq!(counted(1, "interval"), "1 interval");
        assert_eq!(counted(0, "phase"), "0 phases");
        assert_eq!(counted(1_234, "combination"), "1,234 combinations");
        assert_eq!(counted(2, "query") + &counted(2, "delay"), "2 queries2 delays");
        assert_eq!(counted(2, "process") + &counted(2, "match"), "2 processes2 matches");
    }

    #[test]
    fn quantities_print_with_three_digits_and_a_unit() {
        assert_eq!(Bytes(8192).to_string(), "8 KiB");
        assert_eq!(Nanos(2_288_329).to_string(), "2.29 ms");
        assert_eq!(Nanos(33_000).to_string(), "33 µs");
        assert_eq!(Nanos(999_900_000).to_string(), "1 s");
        assert_eq!(thousands(-1_234_567), "-1,234,567");
    }
}
