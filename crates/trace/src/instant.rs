//! Timestamps in logs, as seconds without leap seconds. No time zone is applied: only differences
//! matter.

/// Parses `2026-11-26 02:23:12.345 UTC` or `2026-11-26T02:23:12.345678Z` at the start of the text.
pub fn iso(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let separates = |at: usize, of: &[u8]| bytes.get(at).is_some_and(|byte| of.contains(byte));
    if !(separates(4, b"-") && separates(7, b"-") && separates(10, b"T ")) {
        return None;
    }
    let date = [number(text.get(..4)?)?, number(text.get(5..7)?)?, number(text.get(8..10)?)?];
    Some(days(date)? * 86_400.0 + clock(text.get(11..)?)?)
}

/// Finds the latest timestamp in the text that [`iso`] accepts.
pub fn latest(text: &str) -> Option<f64> {
    let all = text.match_indices('-').filter_map(|(at, _)| iso(text.get(at.checked_sub(4)?..)?));
    all.reduce(f64::max)
}

/// Parses `071015 21:43:52` or `131128  1:05:31`, as written by MySQL before 5.7 and by MariaDB.
pub fn short(text: &str) -> Option<f64> {
    let (date, time) = text.split_once(' ')?;
    if date.len() != 6 {
        return None;
    }
    let date =
        [2000.0 + number(date.get(..2)?)?, number(date.get(2..4)?)?, number(date.get(4..6)?)?];
    Some(days(date)? * 86_400.0 + clock(time.trim_start())?)
}

/// Parses `21:43:52.5`, up to the first character that is not part of it.
fn clock(text: &str) -> Option<f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.');
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let mut parts = text[..end].splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let [hours, minutes, seconds] = [parts.next()??, parts.next()??, parts.next()??];
    let valid = hours < 24.0 && minutes < 60.0 && seconds < 61.0;
    valid.then_some((hours * 60.0 + minutes) * 60.0 + seconds)
}

fn number(text: &str) -> Option<f64> {
    text.parse::<u16>().ok().map(f64::from)
}

/// Days since 1970 in the Gregorian calendar.
fn days([year, month, day]: [f64; 3]) -> Option<f64> {
    if !((1.0..=12.0).contains(&month) && (1.0..=31.0).contains(&day)) {
        return None;
    }
    // If years begin in March, the leap day comes at the end.
    let (year, month) = if month < 3.0 { (year - 1.0, month + 9.0) } else { (year, month - 3.0) };
    let leaps = (year / 4.0).floor() - (year / 100.0).floor() + (year / 400.0).floor();
    Some(year * 365.0 + leaps + ((153.0 * month + 2.0) / 5.0).floor() + day - 719_469.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_the_same_instant() {
        assert_eq!(iso("1970-01-01 00:00:01 UTC"), Some(1.0));
        assert_eq!(iso("2000-03-01T00:00:00.5Z"), Some(951_868_800.5));
        assert_eq!(short("131128  1:05:31"), iso("2013-11-28 01:05:31"));
        for bad in ["", "2013", "2013-99-01 00:00:00", "131128", "131128 1:2", "é31128 1:05:31"] {
            assert_eq!((iso(bad), short(bad)), (None, None), "{bad}");
        }
    }
}
