//! Times as printed in reports: by the server's clock, in seconds since 1970 as if it were UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// A line for each month with its abbreviations, without a full stop at their end, in the languages
/// in which a database prints dates.
const MONTHS: &str = include_str!("months.txt");

/// Years of the Thai calendar are ahead by this many.
const BUDDHIST: i16 = 543;

/// Parses `23-Apr-14 18:30:05`, with or without seconds.
pub fn snapshot(text: &str) -> Option<i64> {
    let (at_s, rest) = leading(text)?;
    at_s.filter(|_| rest.trim().is_empty())
}

/// Finds a date and the time of day behind it at the beginning of a text. The date may consist of
/// several words, and is `None` if it cannot be read; the text behind both is returned too.
pub fn leading(text: &str) -> Option<(Option<i64>, &str)> {
    let (start, end) = time_of_day(text)?;
    let at_s = || {
        let (year, month, day) = date(text[..start].trim())?;
        seconds(year, month, day, &text[start..end])
    };
    Some((at_s(), &text[end..]))
}

/// Returns where the first `18:30` or `18:30:05` is.
fn time_of_day(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut colons = bytes.iter().enumerate().filter(|(_, byte)| **byte == b':');
    colons.find_map(|(colon, _)| {
        let before = colon.checked_sub(1).filter(|at| is_digit(*at))?;
        let start = before.checked_sub(1).filter(|at| is_digit(*at)).unwrap_or(before);
        let is_word =
            start == 0 || bytes[start - 1].is_ascii_whitespace() || bytes[start - 1] > 127;
        let pair = |at: usize| is_digit(at) && is_digit(at + 1);
        let minutes = colon + 3;
        let has_seconds = bytes.get(minutes) == Some(&b':') && pair(minutes + 1);
        let end = if has_seconds { minutes + 3 } else { minutes };
        (is_word && pair(colon + 1) && !is_digit(end)).then_some((start, end))
    })
}

/// Parses a date with its day first, or with a year of four digits first.
fn date(text: &str) -> Option<(i16, i8, i8)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (first, rest) = text.split_at(digits(text));
    let last = rest.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (middle, last) = rest.split_at(rest.len() - last);
    let is_around = |c: char| c.is_whitespace() || matches!(c, '-' | '.' | '/');
    let month = month(middle.trim_matches(is_around))?;
    if first.len() == 4 {
        return Some((first.parse().ok()?, month, last.parse().ok()?));
    }
    // Thailand's own calendar is in use where its language is, unless that gives a future year.
    let is_thai = middle.contains(|c: char| ('\u{e00}'..='\u{e7f}').contains(&c));
    let year = match (full_year(last)?, is_thai) {
        (year @ 2046.., true) if last.len() == 2 => year + 500 - BUDDHIST,
        (year @ 2500.., _) => year - BUDDHIST,
        (year, _) => year,
    };
    Some((year, month, first.parse().ok()?))
}

/// Returns the month of a number, or of a name if it is that of only one.
fn month(text: &str) -> Option<i8> {
    let name = text.to_lowercase();
    // Languages of East Asia number their months: `2月`, `2월`, `thg 2`.
    let is_counter =
        |c: char| matches!(c, '月' | '월') || c.is_whitespace() || "tháng.".contains(c);
    let number = name.trim_matches(is_counter);
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.parse().ok();
    }
    let mut found = None;
    for (index, names) in MONTHS.lines().enumerate() {
        if names.split(", ").any(|known| is_same(&name, known)) {
            if found.is_some() {
                return None;
            }
            found = Some(index as i8 + 1);
        }
    }
    found
}

/// Compares names; a letter that was lost matches any.
fn is_same(text: &str, known: &str) -> bool {
    const LOST: [char; 3] = ['\u{fffd}', '?', '¿'];
    let mut letters = known.chars();
    let is_all =
        text.chars().all(|one| letters.next().is_some_and(|c| c == one || LOST.contains(&one)));
    is_all && letters.next().is_none() && !text.chars().all(|one| LOST.contains(&one))
}

/// Parses `12/02/24 00:59`, with the year first.
pub fn year_first(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(char::is_whitespace)?;
    let mut parts = date.split('/');
    let year = full_year(parts.next()?)?;
    let month = parts.next()?.parse().ok()?;
    let day = parts.next()?.parse().ok()?;
    if parts.next().is_some() {
        return None;
    }
    seconds(year, month, day, time.trim())
}

/// Parses an ISO 8601 time into seconds since 1970, with the fraction; without an offset it is
/// taken as UTC.
pub fn seconds_iso(text: &str) -> Option<f64> {
    const NANOSECONDS: f64 = 1e9;
    iso(text)?;
    let text = text.trim();
    let at = text.parse::<Timestamp>().ok().or_else(|| {
        let at: DateTime = text.parse().ok()?;
        Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })?;
    Some(at.as_second() as f64 + f64::from(at.subsec_nanosecond()) / NANOSECONDS)
}

/// Parses an ISO 8601 time, with or without an offset from UTC.
pub fn iso(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return plausible(at.as_second());
    }
    let at: DateTime = text.parse().ok()?;
    plausible(at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

fn full_year(text: &str) -> Option<i16> {
    let year: i16 = text.parse().ok()?;
    match text.len() {
        2 if year >= 70 => Some(1900 + year),
        2 => Some(2000 + year),
        4 => Some(year),
        _ => None,
    }
}

fn seconds(year: i16, month: i8, day: i8, time: &str) -> Option<i64> {
    let mut parts = time.split(':');
    let hour = parts.next()?.parse().ok()?;
    let minute = parts.next()?.parse().ok()?;
    let second = parts.next().map_or(Some(0), |text| text.parse().ok())?;
    if parts.next().is_some() {
        return None;
    }
    let at = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    plausible(at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

/// Accepts times from 1970 to 2200, with which arithmetic cannot overflow.
fn plausible(seconds: i64) -> Option<i64> {
    (0..7_258_118_400).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_reports_are_read() {
        let at = 1_398_277_805;
        assert_eq!(snapshot("23-Apr-14 18:30:05"), Some(at));
        assert_eq!(snapshot(" 23-AVR-14  18:30:05 "), Some(at));
        assert_eq!(snapshot("23-Apr-14 18:30"), Some(at - 5));
        assert_eq!(year_first("14/04/23 18:30"), Some(at - 5));
        assert_eq!(iso("2014-04-23T18:30:05"), Some(at));
        assert_eq!(iso("2014-04-23 20:30:05+02:00"), Some(at));
        assert_eq!(snapshot("01-Jan-99 00:00:00"), Some(915_148_800));
        for text in ["", "23-Apr", "23-Foo-14 18:30", "23-Apr-14 25:00", "31-Feb-14 00:00"] {
            assert_eq!(snapshot(text), None, "{text}");
        }
        assert_eq!(iso("9999-12-31T00:00:00Z"), None);
    }

    #[test]
    fn months_are_read_in_the_languages_of_a_database() {
        let at = |month: i8| seconds(2025, month, 3, "10:00:00");
        for (text, month) in [
            ("03-FÉVR. -25 10:00:00", 2),
            ("03-f\u{fffd}vr.-25 10:00:00", 2),
            ("03-ao?t -25 10:00:00", 8),
            ("03-Янв-25 10:00:00", 1),
            ("03-2月 -25 10:00:00", 2),
            ("03-12月-25 10:00:00", 12),
            ("03-2월 -25 10:00:00", 2),
            ("03-ก.พ. -68 10:00:00", 2),
            ("03-ก.พ.-2568 10:00:00", 2),
            ("03-KASIM-25 10:00:00", 0),
            ("03-kas-25 10:00:00", 11),
            ("03-Δεκ-25 10:00:00", 12),
            ("03.02.2025 10:00:00", 2),
            ("2025-02-03 10:00:00", 2),
            ("03 Feb 25 10:00:00", 2),
            // July in Polish, and June in Croatian.
            ("03-LIP-25 10:00:00", 0),
            ("03-???-25 10:00:00", 0),
        ] {
            let expected = if month == 0 { None } else { at(month) };
            assert_eq!(snapshot(text), expected, "{text}");
        }
        let (at_s, rest) = leading(" 03-2月 -25 10:00:00        80       2.0").unwrap();
        assert_eq!((at_s, rest), (at(2), "        80       2.0"));
        assert_eq!(leading("03-???-25 10:00:00  80"), Some((None, "  80")));
        assert_eq!(leading("  80   2.0"), None);
    }
}
