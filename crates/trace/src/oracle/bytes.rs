//! Numbers and fields of lines.

/// Durations and counts above this are damage: in microseconds, 31 years.
pub const HIGHEST: i64 = 1_000_000_000_000_000;

/// Reads a decimal number, with spaces before it and a sign; the rest of the line.
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

/// A duration or a count.
#[inline]
pub fn count(bytes: &[u8]) -> Option<(i64, &[u8])> {
    number(bytes).filter(|(value, _)| value.abs() <= HIGHEST)
}

/// A number without sign that names something, such as a cursor.
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

/// The number at the end of a line after `key`, and what is before them.
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

/// What is between `open` and the next `close`.
pub fn between<'a>(line: &'a [u8], open: &[u8], close: u8) -> Option<&'a [u8]> {
    let start = memchr::memmem::find(line, open)? + open.len();
    let end = memchr::memchr(close, &line[start..])?;
    Some(&line[start..start + end])
}

/// The number after `key`, wherever it is.
pub fn after(line: &[u8], key: &[u8]) -> Option<i64> {
    let start = memchr::memmem::find(line, key)? + key.len();
    number(&line[start..]).map(|(value, _)| value)
}
