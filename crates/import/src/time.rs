//! Times as printed in reports: by the server's clock, in seconds since 1970 as if it were UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Abbreviations of months, in English and in other languages where they differ.
const MONTHS: [&[&str]; 12] = [
    &["jan", "ene", "gen", "janv"],
    &["feb", "fev", "fév", "févr"],
    &["mar", "mär", "mrz", "mars"],
    &["apr", "avr", "abr", "avril"],
    &["may", "mai", "mag", "maio"],
    &["jun", "giu", "juin"],
    &["jul", "lug", "juil"],
    &["aug", "ago", "aoû", "août"],
    &["sep", "set", "sept"],
    &["oct", "okt", "ott", "out"],
    &["nov"],
    &["dec", "dez", "dic", "déc"],
];

/// Parses `23-Apr-14 18:30:05`, with or without seconds.
pub fn snapshot(text: &str) -> Option<i64> {
    let (date, time) = text.trim().split_once(char::is_whitespace)?;
    let mut parts = date.split(['-', '.', '/']);
    let day = parts.next()?.parse().ok()?;
    let month = parts.next()?.trim_end_matches('.').to_lowercase();
    let named = || MONTHS.iter().position(|names| names.contains(&month.as_str()));
    let month = month.parse().ok().or_else(|| named().map(|index| index as i8 + 1))?;
    let year = parts.next()?;
    if parts.next().is_some() {
        return None;
    }
    seconds(full_year(year)?, month, day, time.trim())
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
}
