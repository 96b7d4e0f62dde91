//! Parsing of numbers and fields in lines.

/// Durations and counts above this indicate damage: in microseconds, 31 years.
pub const HIGHEST: i64 = 1_000_000_000_000_000;

/// Eight bytes of ASCII digits, less their code.
#[derive(Clone, Copy)]
struct Eight(u64);

impl Eight {
    #[inline]
    fn of(bytes: [u8; 8]) -> Self {
        Self(u64::from_le_bytes(bytes) ^ 0x3030_3030_3030_3030)
    }

    /// The highest bit of each byte that is not a digit.
    #[inline]
    fn others(self) -> u64 {
        const HIGHEST: u64 = 0x8080_8080_8080_8080;
        (((self.0 & !HIGHEST) + 0x7676_7676_7676_7676) | self.0) & HIGHEST
    }

    /// Value of the eight digits; zero bytes are leading zeros.
    #[inline]
    fn value(self) -> u64 {
        let pairs = (self.0.wrapping_mul(2561) >> 8) & 0x00ff_00ff_00ff_00ff;
        let fours = (pairs.wrapping_mul(6_553_601) >> 16) & 0x0000_ffff_0000_ffff;
        fours.wrapping_mul(42_949_672_960_001) >> 32
    }

    /// Value and number of the digits at its start.
    #[inline]
    fn first(self) -> (u64, usize) {
        let count = self.others().trailing_zeros() / 8;
        if count == 0 {
            return (0, 0);
        }
        (Self(self.0 << (64 - 8 * count)).value(), count as usize)
    }

    /// Value and number of the digits at its end.
    #[inline]
    fn last(self) -> (u64, usize) {
        let count = self.others().leading_zeros() / 8;
        if count == 0 {
            return (0, 0);
        }
        (Self(self.0 & (u64::MAX << (64 - 8 * count))).value(), count as usize)
    }
}

/// Powers of ten, by the number of digits.
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Reads the digits at the start, eight at once; returns their value, which wraps around, and their
/// number.
fn digits(bytes: &[u8]) -> (u64, usize) {
    let Some(first) = bytes.first_chunk() else { return more_digits(bytes, 0, 0) };
    let (value, count) = Eight::of(*first).first();
    if count < 8 {
        return (value, count);
    }
    let Some(second) = bytes[8..].first_chunk() else { return more_digits(bytes, value, 8) };
    let (low, more) = Eight::of(*second).first();
    let value = value * TENS[more] + low;
    if more < 8 { (value, 8 + more) } else { more_digits(bytes, value, 16) }
}

fn more_digits(bytes: &[u8], mut value: u64, mut count: usize) -> (u64, usize) {
    while let Some(byte @ b'0'..=b'9') = bytes.get(count) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        count += 1;
    }
    (value, count)
}

/// Longest numbers: more digits may not fit.
const DIGITS_MAX: usize = 18;

/// Reads a number without a sign; also returns the rest of the line.
#[inline]
pub fn unsigned(bytes: &[u8]) -> Option<(i64, &[u8])> {
    // Most numbers in a trace have one digit.
    if let [digit @ b'0'..=b'9', rest @ ..] = bytes
        && let [next, ..] = rest
        && !next.is_ascii_digit()
    {
        return Some((i64::from(digit - b'0'), rest));
    }
    let (value, count) = digits(bytes);
    (1..=DIGITS_MAX).contains(&count).then(|| (value as i64, &bytes[count..]))
}

/// Reads a decimal number, with leading spaces and a sign; also returns the rest of the line.
#[inline]
pub fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut rest = bytes;
    while let [b' ', tail @ ..] = rest {
        rest = tail;
    }
    match rest {
        [b'-', rest @ ..] => unsigned(rest).map(|(value, rest)| (-value, rest)),
        _ => unsigned(rest),
    }
}

/// Reads a duration or a count.
#[inline]
pub fn count(bytes: &[u8]) -> Option<(i64, &[u8])> {
    number(bytes).filter(|(value, _)| value.abs() <= HIGHEST)
}

/// Reads an unsigned number that identifies something, such as a cursor.
#[inline]
pub fn name(bytes: &[u8]) -> Option<(u64, &[u8])> {
    if let [digit @ b'0'..=b'9', rest @ ..] = bytes
        && let [b':' | b' ', ..] = rest
    {
        return Some((u64::from(digit - b'0'), rest));
    }
    let (value, count) = digits(bytes);
    (1..=20).contains(&count).then(|| (value, &bytes[count..]))
}

/// Skips an unsigned number; returns the rest of the line.
#[inline]
pub fn skipped(bytes: &[u8]) -> Option<&[u8]> {
    let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=DIGITS_MAX).contains(&count).then(|| &bytes[count..])
}

/// Reads names of cursors. Most lines name the same cursor as the line before.
#[derive(Debug, Default)]
pub struct Names {
    /// The name and the colon after it, if they are as long as in all releases from 11.2 on.
    text: [u8; 16],
    value: u64,
}

impl Names {
    #[inline]
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Option<(u64, &'a [u8])> {
        // Before 11.2, names are small numbers.
        let Some(start) = line.first_chunk().filter(|it: &&[u8; 16]| it[1] != b':') else {
            return name(line);
        };
        if start[15] == b':' && *start == self.text {
            return Some((self.value, &line[self.text.len() - 1..]));
        }
        let (value, rest) = name(line)?;
        if rest.len() + self.text.len() - 1 == line.len() && rest.starts_with(b":") {
            (self.text, self.value) = (*start, value);
        }
        Some((value, rest))
    }
}

/// Reads numbers at the ends of lines, such as times, whose first digits change rarely.
#[derive(Debug, Default)]
pub struct Ends {
    /// Eight bytes before the last eight digits, and value and number of the digits among them.
    text: [u8; 8],
    value: u64,
    count: usize,
}

impl Ends {
    /// Reads the number after `key` at the end of a line; also returns what precedes `key`.
    #[inline]
    pub fn read<'a>(&mut self, line: &'a [u8], key: &[u8]) -> Option<(i64, &'a [u8])> {
        let Some((before, high)) = line.split_last_chunk() else { return last(line, key) };
        let (value, count) = Eight::of(*high).last();
        let Some(low) = before.last_chunk().filter(|_| count == 8) else { return last(line, key) };
        if *low != self.text {
            let (value, count) = Eight::of(*low).last();
            if count == 0 {
                return last(line, key);
            }
            (self.text, self.value, self.count) = (*low, value, count);
        }
        let value = (self.value * TENS[8] + value) as i64;
        match &before[..before.len() - self.count] {
            [.., b'0'..=b'9'] => last(line, key),
            [before @ .., b'-'] => Some((-value, before.strip_suffix(key)?)),
            before => Some((value, before.strip_suffix(key)?)),
        }
    }
}

/// Reads the number after `key` at the end of a line; also returns what precedes `key`.
#[inline]
pub fn last<'a>(line: &'a [u8], key: &[u8]) -> Option<(i64, &'a [u8])> {
    let (value, count) = last_digits(line);
    let (before, _) = line.split_at(line.len() - count);
    let (value, before) = match before {
        [before @ .., b'-'] => (-value, before),
        _ => (value, before),
    };
    (count > 0).then_some((value, before.strip_suffix(key)?))
}

/// Returns value and number of the digits at the end of a line; none if there are too many.
#[inline]
fn last_digits(line: &[u8]) -> (i64, usize) {
    if let Some((before, high)) = line.split_last_chunk() {
        let (value, count) = Eight::of(*high).last();
        if count < 8 {
            return (value as i64, count);
        }
        if let Some(low) = before.last_chunk() {
            let (low, more) = Eight::of(*low).last();
            if more < 8 {
                return ((low * TENS[8] + value) as i64, 8 + more);
            }
        }
    }
    let count = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match unsigned(&line[line.len() - count..]) {
        Some((value, [])) => (value, count),
        _ => (0, 0),
    }
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

/// Undoes what `TraceAdjust` did to a line: `tim=1.000123,delta=5,dslt=7,local='…'` was
/// `tim=1000123`. Returns `None` for other lines.
pub fn unadjusted(line: &[u8]) -> Option<Vec<u8>> {
    const FRACTION_DIGITS: usize = 6;
    const LOCAL: &[u8] = b",local='";
    let mut commas = memchr::memchr_iter(b',', line);
    let (head, added) = line.split_at(commas.find(|at| line[*at..].starts_with(b",delta="))?);
    let (seconds, fraction) = head.split_at(memchr::memrchr(b'.', head)?);
    let fraction = &fraction[1..];
    let start = seconds.iter().rposition(|byte| !byte.is_ascii_digit())?;
    let local = memchr::memmem::find(added, LOCAL)? + LOCAL.len();
    let end = local + memchr::memchr(b'\'', &added[local..])? + 1;
    let valid = seconds[..=start].ends_with(b"tim=")
        && fraction.len() == FRACTION_DIGITS
        && fraction.iter().all(u8::is_ascii_digit);
    valid.then(|| [seconds, fraction, &added[end..]].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_are_read_as_one_by_one(
            before in "[ -~\u{80}-\u{ff}]{0,20}",
            number in "[0-9]{0,25}",
            after in "[^0-9][ -~]{0,20}",
        ) {
            let text = number.clone() + &after;
            prop_assert_eq!(digits(text.as_bytes()), more_digits(text.as_bytes(), 0, 0));
            let whole: Option<i64> = number.parse().ok().filter(|_| number.len() <= DIGITS_MAX);
            prop_assert_eq!(unsigned(text.as_bytes()).map(|it| it.0), whole);
            let before = before.trim_end_matches(|it: char| it.is_ascii_digit() || it == '-');
            let line = format!("{before} k={number}");
            let found = last(line.as_bytes(), b" k=");
            prop_assert_eq!(found, whole.map(|it| (it, before.as_bytes())));
            let mut ends = Ends::default();
            prop_assert_eq!(ends.read(line.as_bytes(), b" k="), found);
            prop_assert_eq!(ends.read(line.as_bytes(), b" k="), found);
            let mut names = Names::default();
            for text in [format!("{number}: x"), format!("{number}:"), text] {
                prop_assert_eq!(names.read(text.as_bytes()), name(text.as_bytes()));
                prop_assert_eq!(names.read(text.as_bytes()), name(text.as_bytes()));
            }
            let line = format!("{before} k=-{number}");
            prop_assert_eq!(ends.read(line.as_bytes(), b" k="), last(line.as_bytes(), b" k="));
            prop_assert_eq!(last(line.as_bytes(), b" k=").map(|it| it.0), whole.map(|it| -it));
        }
    }

    #[test]
    fn lines_of_traceadjust_are_as_they_were() {
        let plain =
            |line: &str| unadjusted(line.as_bytes()).map(|it| String::from_utf8(it).unwrap());
        let line =
            "X #1:e=2,tim=1030574.627220,delta=-1,dslt=7,local='2017 Mar 13 09:23:21.768371'";
        assert_eq!(plain(line).as_deref(), Some("X #1:e=2,tim=1030574627220"));
        let line = format!("{line} hv=1 ad='a'");
        assert_eq!(plain(&line).as_deref(), Some("X #1:e=2,tim=1030574627220 hv=1 ad='a'"));
        assert_eq!(plain("tim=.000007,delta=0,dslt=0,local=''").as_deref(), Some("tim=000007"));
        for other in [
            "X #1:e=2,tim=1030574627220",
            "tim=1.00,delta=5,dslt=7,local='x'",
            "tim=1.000000,delta=5,dslt=7,local='x",
            "e=1.000000,delta=5,dslt=7,local='x'",
            ".000000,delta=5,local='x'",
        ] {
            assert_eq!(plain(other), None, "{other}");
        }
    }
}
