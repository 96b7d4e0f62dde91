//! Times as tools print them.

use jiff::civil::DateTime;
use jiff::{Timestamp, tz::TimeZone};

const ZONED: &str = "%Y-%m-%dT%H:%M:%S%z";
/// Formats without a zone: year first, or as printed in an American locale and the C locale.
const PLAIN: [&str; 5] = [
    "%Y-%m-%d %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%y %H:%M:%S",
    "%m/%d/%y %I:%M:%S %p",
];

pub const NO_ZONE: &str =
    "its times were taken as UTC and its dates as month first: use S_TIME_FORMAT=ISO to avoid this";

/// Later times are rejected: the year 2200, so that intervals can be added without overflow.
pub const LATEST_NS: u64 = 7_258_118_400_000_000_000;

/// Parses a printed time into nanoseconds since 1970, and whether it had a zone. Without one it is
/// taken as UTC. `None` if it is not a time.
pub fn parse(text: &str) -> Option<(u64, bool)> {
    let text = text.trim();
    let ns = |at: Timestamp| u64::try_from(at.as_nanosecond()).ok().filter(|&ns| ns <= LATEST_NS);
    if let Ok(at) = Timestamp::strptime(ZONED, text) {
        return Some((ns(at)?, true));
    }
    // The format with a two-digit year would read 2026 as 20.
    let short_year = text.split(['/', ' ']).nth(2).is_some_and(|year| year.len() == 2);
    let fits = |format: &&&str| format.contains("%y") == (short_year && text.contains('/'));
    let plain = PLAIN.iter().filter(fits).find_map(|f| DateTime::strptime(f, text).ok())?;
    Some((ns(plain.to_zoned(TimeZone::UTC).ok()?.timestamp())?, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_usual_locale_are_read() {
        let at = 1_795_342_311_000_000_000;
        assert_eq!(parse("2026-11-22T10:11:51+0000"), Some((at, true)));
        assert_eq!(parse("2026-11-22T12:11:51+0200"), Some((at, true)));
        for text in [
            "2026-11-22 10:11:51",
            "11/22/26 10:11:51",
            "11/22/2026 10:11:51",
            "11/22/2026 10:11:51 AM",
            " 11/22/26 10:11:51 AM ",
        ] {
            assert_eq!(parse(text), Some((at, false)), "{text}");
        }
        let evening = parse("11/22/2026 10:11:51 PM").unwrap().0;
        assert_eq!(evening, at + 12 * 3_600_000_000_000);
        let beyond = "2555-01-01T00:00:00+0000";
        for text in
            [beyond, "", "22.11.2026 10:11:51", "22/11/2026 10:11:51", "avg-cpu:", "12:00:00"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
