//! Parsing of numbers and fields in lines.

/// Durations and counts above this indicate damage: in microseconds, 31 years.
pub const HIGHEST: i64 = 1_000_000_000_000_000;

/// Reads a decimal number, with leading spaces and a sign; also returns the rest of the line.
#[inline]
pub fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut rest = bytes;
    while let [b' ', tail @ ..] = rest {
        rest = tail;
    }
    let negative = matches!(rest, [b'-', ..]);
    if negative {
        rest = &rest[1..];
    }
    let mut value: u64 = 0;
    let mut digits = 0;
    while let [byte @ b'0'..=b'9', tail @ ..] = rest {
        value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        digits += 1;
        rest = tail;
    }
    if digits == 0 || digits > 18 {
        return None;
    }
    let value = value as i64;
    Some((if negative { -value } else { value }, rest))
}

/// Reads a duration or a count.
#[inline]
pub fn count(bytes: &[u8]) -> Option<(i64, &[u8])> {
    number(bytes).filter(|(value, _)| value.abs() <= HIGHEST)
}

/// Reads an unsigned number that identifies something, such as a cursor.
#[inline]
pub fn name(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut rest = bytes;
    let mut digits = 0;
    while let [byte @ b'0'..=b'9', tail @ ..] = rest {
        value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        digits += 1;
        rest = tail;
    }
    (digits > 0 && digits <= 20).then_some((value, rest))
}

/// Reads the number after `key` at the end of a line; also returns what precedes `key`.
#[inline]
pub fn last<'a>(line: &'a [u8], key: &[u8]) -> Option<(i64, &'a [u8])> {
    let mut start = line.len();
    while start > 0 && line[start - 1].is_ascii_digit() {
        start -= 1;
    }
    let digits = start;
    if start > 0 && line[start - 1] == b'-' {
        start -= 1;
    }
    let before = line[..start].strip_suffix(key)?;
    let (value, rest) = number(&line[start..])?;
    (digits < line.len() && rest.is_empty()).then_some((value, before))
}

/// Returns the bytes between `open` and the next `close`.
pub fn between<'a>(line: &'a [u8], open: &[u8], close: u8) -> Option<&'a [u8]> {
    let start = memchr::memmem::find(line, open)? + open.len();
    let end = memchr::memchr(close, &line[start..])?;
    Some(&line[start..start + end])
}

/// Reads the number after the first `key`.
pub fn after(line: &[u8], key: &[u8]) -> Option<i64> {
    let start = memchr::memmem::find(line, key)? + key.len();
    number(&line[start..]).map(|(value, _)| value)
}
