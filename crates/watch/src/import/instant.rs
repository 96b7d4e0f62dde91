//! Times of day with a date, as date(1) and monitors print them.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;

/// Later times are rejected: the year 2200, so that intervals can be added without overflow.
pub const LATEST_NS: u64 = 7_258_118_400_000_000_000;
pub const NO_ZONE: &str = "its times were taken as UTC";
pub const NO_TIMES: &str = "its reports have no times: each interval was taken as 1 s, so rates \
                            hold, and its first day as 1970-01-01";

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// No printed time is longer.
const TEXT_BYTES: usize = 128;

/// A time in nanoseconds since 1970, and whether it had a zone. Without one it is taken as UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    pub at_ns: u64,
    pub zoned: bool,
}

/// Parses the words of a time, such as `Fri Nov 20 10:00:00 UTC 2026`, `11/20/2026 10:00:00 AM`,
/// `20-NOV-2026 10:00:00` or `2026-11-20 10:00:00`. Numbers between slashes are month, day, year.
/// `year` is that of a text without one.
pub fn parse(text: &str, year: Option<i16>) -> Option<Instant> {
    if text.len() > TEXT_BYTES {
        return None;
    }
    let mut found = Words { year, ..Words::default() };
    text.split_whitespace().for_each(|word| found.take(word.trim_matches(['<', '>', ','])));
    found.instant()
}

/// Parses the line that `OSWatcher` and `ExaWatcher` write before each report: `zzz ***` or
/// `zzz <`, and a time.
pub fn zzz(line: &str) -> Option<Instant> {
    let text = line.strip_prefix("zzz")?.trim_start();
    let text = text.trim_start_matches('*');
    // `Count:60` and `Sample interval: 1 secs` may follow.
    let ends = [text.find('>'), text.find("Sample interval")];
    let end = ends.into_iter().flatten().min().unwrap_or(text.len());
    parse(&text[..end], None)
}

/// Returns the nanoseconds since 1970 of a time that is taken as UTC.
pub fn ns(at: DateTime) -> Option<u64> {
    let at = at.to_zoned(TimeZone::UTC).ok()?.timestamp();
    of(at)
}

pub fn of(at: Timestamp) -> Option<u64> {
    u64::try_from(at.as_nanosecond()).ok().filter(|ns| *ns <= LATEST_NS)
}

/// Seconds since 1970, with a fraction.
pub fn epoch(seconds: f64) -> Option<u64> {
    let ns = (seconds * 1e9).round();
    (ns > 0.0 && ns <= LATEST_NS as f64).then_some(ns as u64)
}

#[derive(Default)]
struct Words {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    time: Option<Time>,
    half: Option<i8>,
    zoned: bool,
}

impl Words {
    fn take(&mut self, word: &str) {
        if word.matches(':').count() == 2 {
            self.time = time(word);
        } else if word.eq_ignore_ascii_case("AM") || word.eq_ignore_ascii_case("PM") {
            self.half = Some(if word.eq_ignore_ascii_case("PM") { 12 } else { 0 });
        } else if matches!(word, "UTC" | "GMT" | "Z") {
            self.zoned = true;
        } else if word.contains(['/', '-', '.']) {
            self.date(word);
        } else if let Some(month) = month(word) {
            self.month = Some(month);
        } else if let Ok(number) = word.parse::<i16>() {
            match i8::try_from(number) {
                Ok(day @ 1..=31) if word.len() <= 2 => self.day = Some(day),
                _ if word.len() == 4 => self.year = Some(number),
                _ => {}
            }
        }
    }

    /// Takes a date in one word.
    fn date(&mut self, word: &str) {
        let parts: Vec<&str> = word.split(['/', '-', '.']).collect();
        let number = |part: &str| part.parse::<i16>().ok();
        let small = |part: &str| part.parse::<i8>().ok();
        let named = |part: &str| month(part).or_else(|| small(part));
        match parts[..] {
            [year, month, day] if year.len() == 4 => {
                (self.year, self.month, self.day) = (number(year), named(month), small(day));
            }
            [day, name, year] if month(name).is_some() => {
                (self.year, self.month, self.day) = (number(year), month(name), small(day));
            }
            [month, day, year] if word.contains('/') && year.len() == 4 => {
                (self.year, self.month, self.day) = (number(year), small(month), small(day));
            }
            // Day and month without a year, as dstat and dool print them.
            [day, number] if month(day).is_none() => {
                (self.month, self.day) = (small(number), small(day));
            }
            [name, day] => (self.month, self.day) = (month(name), small(day)),
            _ => {}
        }
    }

    fn instant(self) -> Option<Instant> {
        let date = Date::new(self.year?, self.month?, self.day?).ok()?;
        let time = self.time?;
        let hour = match self.half {
            Some(_) if !(1..=12).contains(&time.hour()) => return None,
            Some(half) => time.hour() % 12 + half,
            None => time.hour(),
        };
        let time = Time::new(hour, time.minute(), time.second(), time.subsec_nanosecond()).ok()?;
        Some(Instant { at_ns: ns(DateTime::from_parts(date, time))?, zoned: self.zoned })
    }
}

/// Parses `10:00:00`, with a fraction or not.
fn time(word: &str) -> Option<Time> {
    let mut parts = word.split(':');
    let mut part = || parts.next();
    let (hour, minute) = (part()?.parse().ok()?, part()?.parse().ok()?);
    let (second, fraction) = part().map(|it| it.split_once('.').unwrap_or((it, "")))?;
    let nanosecond = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    Time::new(hour, minute, second.parse().ok()?, nanosecond).ok()
}

/// Returns the number of a month by its English name.
pub fn month(name: &str) -> Option<i8> {
    let name = name.get(..3)?.to_ascii_lowercase();
    MONTHS.iter().position(|month| *month == name).map(|at| at as i8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_795_168_801_000_000_000;

    #[test]
    fn times_of_monitors_are_read() {
        for (text, zoned) in [
            ("Fri Nov 20 10:00:01 UTC 2026", true),
            ("Fri Nov 20 10:00:01 AM CET 2026", false),
            ("11/20/2026 10:00:01", false),
            ("20-NOV-2026 10:00:01", false),
            ("2026-11-20 10:00:01", false),
            ("2026-11-20 10:00:01.000", false),
            ("20 Nov 2026 10:00:01 CEST", false),
        ] {
            assert_eq!(parse(text, None), Some(Instant { at_ns: AT, zoned }), "{text}");
        }
        for text in ["20-11 10:00:01", "Nov-20 10:00:01"] {
            assert_eq!(parse(text, Some(2026)).unwrap().at_ns, AT, "{text}");
            assert_eq!(parse(text, None), None);
        }
        let odd = ["", "10:00:01", "99/99/2026 10:00:01", "20-NOV-2026 25:00:01", "ab-cd 1:2:3"];
        for text in odd {
            assert_eq!(parse(text, Some(2026)), None, "{text}");
        }
    }

    #[test]
    fn lines_before_reports_of_watchers_are_read() {
        for line in [
            "zzz ***Fri Nov 20 10:00:01 UTC 2026",
            "zzz ***Fri Nov 20 10:00:01 UTC 2026 Sample interval: 1 secconds",
            "zzz <11/20/2026 10:00:01> Count:60",
        ] {
            assert_eq!(zzz(line).map(|it| it.at_ns), Some(AT), "{line}");
        }
        assert_eq!(zzz("zzz ***"), None);
    }
}
