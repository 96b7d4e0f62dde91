//! Permutes the values of each kind among those of the same form: a value keeps its type and its
//! length, and different values stay different.

use std::fmt::Write;

use super::kind::Kind;
use super::permute::Keyed;

/// Days from 0001-01-01 to 1900-01-01 and to 2100-01-01 in the Gregorian calendar.
const FIRST_DAY: u64 = 693_595;
const LAST_DAY: u64 = 766_644;
/// Days from 0001-01-01 to 9999-12-31.
const DAYS: u64 = 3_652_059;
const SECONDS_A_DAY: u64 = 86_400;
/// Number of nonzero microsecond parts of a second.
const FRACTIONS: u64 = 999_999;
/// Characters in the same block of 64 have the same length in UTF-8, and mostly the same script.
const BLOCK: u32 = 64;

/// Returns the hash of `value`; `None` if it is not of this kind.
pub fn hash(keyed: &Keyed, kind: Kind, value: &str) -> Option<String> {
    match kind {
        Kind::Integer { min, max } => integer(keyed, min, max, value),
        Kind::Numeric => numeric(keyed, value),
        Kind::Text { .. } => text(keyed, value),
        Kind::Uuid => uuid(keyed, value),
        Kind::Date => date(keyed, value),
        Kind::Timestamp => timestamp(keyed, value),
        Kind::Other => None,
    }
}

/// Hashes an integer. Zero and the sign are kept, as both often have a special meaning.
fn integer(keyed: &Keyed, min: i64, max: i64, value: &str) -> Option<String> {
    let number: i64 = value.parse().ok()?;
    let size = number.unsigned_abs();
    let limit = if number < 0 { min.unsigned_abs() } else { max.unsigned_abs() };
    let most = if number < 0 { 1 << 63 } else { i64::MAX.unsigned_abs() };
    let permuted = match size {
        0 => 0,
        inside if inside <= limit => keyed.permute(inside - 1, limit)? + 1,
        // The other end of the key is narrower and has no such value: these are permuted
        // separately.
        beyond => keyed.permute(beyond - limit - 1, most - limit)? + limit + 1,
    };
    Some(format!("{}{permuted}", if number < 0 { "-" } else { "" }))
}

/// Hashes a decimal number. The result does not depend on how it is written: `1.50` hashes like
/// `1.5`.
fn numeric(keyed: &Keyed, value: &str) -> Option<String> {
    let unsigned = value.strip_prefix('-').unwrap_or(value);
    if matches!(unsigned, "NaN" | "Infinity") {
        return Some(value.to_owned());
    }
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let kept = fraction.trim_end_matches('0');
    let whole = if whole == "0" { "" } else { whole };
    let count = whole.len() + kept.len();
    let mut digits = Vec::with_capacity(count);
    let mut radices = Vec::with_capacity(count);
    for (number, byte) in whole.bytes().chain(kept.bytes()).enumerate() {
        // Neither the first digit before the point nor the last one after it is zero.
        let is_first = number == 0 && !whole.is_empty();
        let is_last = number + 1 == count && !kept.is_empty();
        let least = u32::from(is_first || is_last);
        digits.push(u32::from(byte - b'0').checked_sub(least)?);
        radices.push(10 - least);
    }
    let shape = [whole.len() as u64, kept.len() as u64].map(u64::to_le_bytes);
    keyed.permute_digits(&mut digits, &radices, shape.as_flattened())?;
    let mut out = String::with_capacity(value.len());
    out.push_str(if value.len() > unsigned.len() { "-" } else { "" });
    out.push_str(if whole.is_empty() { "0" } else { "" });
    for (number, (digit, radix)) in digits.iter().zip(&radices).enumerate() {
        out.push_str(if number == whole.len() { "." } else { "" });
        out.push(char::from_digit(digit + 10 - radix, 10)?);
    }
    let zeros = fraction.len() - kept.len();
    out.push_str(if kept.is_empty() && zeros > 0 { "." } else { "" });
    out.extend(std::iter::repeat_n('0', zeros));
    Some(out)
}

/// Hashes a text. A letter stays a letter and a digit a digit; ASCII punctuation and spaces are
/// kept, so that an e-mail address still has its at sign. Case is kept but does not affect the
/// result, so that values that differ in a case-insensitive collation still differ.
fn text(keyed: &Keyed, value: &str) -> Option<String> {
    // Only one end of a key may be char(n), which is padded.
    let kept = value.trim_end_matches(' ');
    let mut digits = Vec::with_capacity(kept.len());
    let mut radices = Vec::with_capacity(kept.len());
    let mut shape = Vec::with_capacity(kept.len());
    for character in kept.chars() {
        let (base, radix) = class(character);
        shape.extend(if base == u32::from('A') { u32::from('a') } else { base }.to_le_bytes());
        if radix > 1 {
            digits.push(u32::from(character) - base);
            radices.push(radix);
        }
    }
    keyed.permute_digits(&mut digits, &radices, &shape)?;
    let mut digits = digits.into_iter();
    let permuted = kept.chars().map(|character| match class(character) {
        (_, 1) => character,
        (base, _) => {
            digits.next().and_then(|digit| char::from_u32(base + digit)).unwrap_or(character)
        }
    });
    Some(permuted.chain(value[kept.len()..].chars()).collect())
}

/// Returns the first character that may replace this one, and the number of such characters.
fn class(character: char) -> (u32, u32) {
    match character {
        'a'..='z' => (u32::from('a'), 26),
        'A'..='Z' => (u32::from('A'), 26),
        '0'..='9' => (u32::from('0'), 10),
        ascii if ascii.is_ascii() => (u32::from(ascii), 1),
        other => (u32::from(other) / BLOCK * BLOCK, BLOCK),
    }
}

/// Hashes a UUID. Its version and variant are kept.
fn uuid(keyed: &Keyed, value: &str) -> Option<String> {
    let hex: Vec<u32> =
        value.chars().filter(|at| *at != '-').map(|at| at.to_digit(16)).collect::<Option<_>>()?;
    if hex.len() != 32 {
        return None;
    }
    let is_kept = |place: &usize| matches!(place, 12 | 16);
    let mut digits: Vec<u32> =
        (0..32).filter(|place| !is_kept(place)).map(|place| hex[place]).collect();
    let kept = [hex[12] as u8, hex[16] as u8];
    keyed.permute_digits(&mut digits, &[16; 30], &kept)?;
    digits.insert(12, hex[12]);
    digits.insert(16, hex[16]);
    let mut out = String::with_capacity(36);
    for (place, digit) in digits.into_iter().enumerate() {
        out.push_str(if matches!(place, 8 | 12 | 16 | 20) { "-" } else { "" });
        out.push(char::from_digit(digit, 16)?);
    }
    Some(out)
}

/// Hashes a date. A day in the years 1900 to 2099 stays in these years.
fn date(keyed: &Keyed, value: &str) -> Option<String> {
    let Some(day) = day_of(value) else {
        // Infinity, years of five digits, and years before Christ are kept.
        return value.bytes().any(|byte| byte.is_ascii_alphanumeric()).then(|| value.to_owned());
    };
    let inside = LAST_DAY - FIRST_DAY;
    let permuted = if (FIRST_DAY..LAST_DAY).contains(&day) {
        keyed.permute(day - FIRST_DAY, inside)? + FIRST_DAY
    } else {
        let rank = if day < FIRST_DAY { day } else { day - inside };
        let rank = keyed.permute(rank, DAYS - inside)?;
        if rank < FIRST_DAY { rank } else { rank + inside }
    };
    Some(calendar(permuted))
}

/// Hashes date and time of day; the offset from UTC is kept.
fn timestamp(keyed: &Keyed, value: &str) -> Option<String> {
    let Some((day, clock)) = value.split_once(' ') else { return date(keyed, value) };
    if day_of(day).is_none() {
        return date(keyed, value);
    }
    let end = clock.find(|at: char| !matches!(at, '0'..='9' | ':' | '.')).unwrap_or(clock.len());
    let (clock, offset) = clock.split_at(end);
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let mut parts = whole.split(':').map(|part| part.parse::<u64>().ok());
    let seconds = parts.next()?? * 3600 + parts.next()?? * 60 + parts.next()??;
    if parts.next().is_some() || seconds >= SECONDS_A_DAY || fraction.len() > 6 {
        return None;
    }
    let micros: u64 = format!("{fraction:0<6}").parse().ok()?;
    let (seconds, micros) = if micros == 0 {
        (keyed.permute(seconds, SECONDS_A_DAY)?, 0)
    } else {
        let all = SECONDS_A_DAY * FRACTIONS;
        let permuted = keyed.permute(seconds * FRACTIONS + micros - 1, all)?;
        (permuted / FRACTIONS, permuted % FRACTIONS + 1)
    };
    let mut out = date(keyed, day)?;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let _ = write!(out, " {hours:02}:{minutes:02}:{:02}", seconds % 60);
    if micros > 0 {
        out.push_str(format!(".{micros:06}").trim_end_matches('0'));
    }
    out.push_str(offset);
    Some(out)
}

/// Returns the days from 0001-01-01 to an ISO 8601 date.
fn day_of(value: &str) -> Option<u64> {
    let mut parts = value.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || [year.len(), month.len(), day.len()] != [4, 2, 2] {
        return None;
    }
    let (year, month, day): (u64, u64, u64) =
        (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
    if year == 0 || !(1..=12).contains(&month) || day == 0 || day > days_of(year, month) {
        return None;
    }
    let months: u64 = (1..month).map(|month| days_of(year, month)).sum();
    Some(days_before(year) + months + day - 1)
}

fn calendar(day: u64) -> String {
    let mut year = day / 366 + 1;
    while days_before(year + 1) <= day {
        year += 1;
    }
    let (mut rest, mut month) = (day - days_before(year), 1);
    while rest >= days_of(year, month) {
        rest -= days_of(year, month);
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", rest + 1)
}

const fn days_before(year: u64) -> u64 {
    let years = year - 1;
    years * 365 + years / 4 - years / 100 + years / 400
}

const fn days_of(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    fn keyed() -> &'static Keyed {
        static KEYED: LazyLock<Keyed> = LazyLock::new(|| Keyed::new(b"a key", "test"));
        &KEYED
    }

    fn hashed(kind: &str, value: &str) -> String {
        hash(keyed(), Kind::of(kind), value).unwrap()
    }

    fn distinct(kind: &str, values: impl IntoIterator<Item = String>) {
        let values: BTreeSet<String> = values.into_iter().collect();
        let masked: BTreeSet<String> = values.iter().map(|value| hashed(kind, value)).collect();
        assert_eq!(masked.len(), values.len(), "{kind}");
    }

    #[test]
    fn what_is_distinct_stays_distinct() {
        distinct("smallint", (i16::MIN..=i16::MAX).step_by(7).map(|value| value.to_string()));
        distinct("date", (700_000..703_000).map(calendar));
        distinct("date", (0..DAYS).step_by(3001).map(calendar));
        distinct("numeric", (1..2000).map(|value| format!("{}", f64::from(value) / 8.0)));
        distinct("text", (0..1296).map(|n| format!("{:?}", [n / 36, n % 36])));
    }

    #[test]
    fn length_and_form_are_kept() {
        let masked = hashed("text", "Zoë.O'Neill@mail.example 1970");
        assert_eq!(masked.chars().count(), "Zoë.O'Neill@mail.example 1970".chars().count());
        assert_eq!(masked.len(), "Zoë.O'Neill@mail.example 1970".len());
        assert!(masked.chars().next().unwrap().is_ascii_uppercase(), "{masked}");
        assert_eq!(masked.chars().nth(11), Some('@'), "{masked}");
        assert!(hashed("varchar(9)", "0176 555").chars().filter(char::is_ascii_digit).count() == 7);
        // Padding is not part of the value.
        assert_eq!(hashed("character(5)", "ab   "), hashed("text", "ab") + "   ");
        let id = hashed("uuid", "6ba7b810-9dad-41d1-80b4-00c04fd430c8");
        assert_eq!((id.len(), &id[14..15], &id[19..20]), (36, "4", "8"));
        assert_eq!(id, hashed("uuid", "6BA7B8109DAD41D180B400C04FD430C8"));
    }

    #[test]
    fn case_is_kept_and_does_not_count() {
        let (lower, mixed) = (hashed("text", "oneill"), hashed("text", "ONeill"));
        assert_eq!(mixed.to_lowercase(), lower);
        assert_ne!(lower, "oneill");
    }

    #[test]
    fn numbers_keep_sign_and_scale() {
        assert_eq!(hashed("integer", "0"), "0");
        assert!(hashed("integer", "-17").starts_with('-'));
        assert_eq!(hashed("numeric(9,2)", "0.00"), "0.00");
        let price = hashed("numeric(9,2)", "12.50");
        assert_eq!((price.len(), &price[4..]), (5, "0"), "{price}");
        assert_eq!(hashed("numeric", "12.5"), price[..4]);
        assert!(!hashed("numeric", "70").starts_with('0'));
        assert_eq!(hash(keyed(), Kind::Numeric, "1e5"), None);
        assert_eq!(hash(keyed(), Kind::of("integer"), "x"), None);
    }

    #[test]
    fn the_calendar_is_gregorian() {
        assert_eq!(day_of("1900-01-01"), Some(FIRST_DAY));
        assert_eq!(day_of("2100-01-01"), Some(LAST_DAY));
        assert_eq!(day_of("9999-12-31"), Some(DAYS - 1));
        for day in (0..DAYS).step_by(97) {
            assert_eq!(day_of(&calendar(day)), Some(day));
        }
        assert_eq!(day_of("2023-02-29"), None);
        assert_eq!(hashed("date", "infinity"), "infinity");
    }

    #[test]
    fn timestamps_keep_offset_and_precision() {
        let masked = hashed("timestamptz", "2024-02-29 12:30:00+00");
        assert!(masked.ends_with("+00") && masked.len() == 22, "{masked}");
        assert_eq!(masked[..10], hashed("date", "2024-02-29"));
        assert!(hashed("timestamp", "2024-02-29 12:30:00.25").contains('.'));
        assert_eq!(hash(keyed(), Kind::Timestamp, "2024-02-29 25:30:00"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn both_ends_of_a_key_of_two_integer_types_agree(value: i32) {
            let kind = Kind::of("bigint").joined(Kind::of("integer")).unwrap();
            let masked = hash(keyed(), kind, &value.to_string()).unwrap();
            prop_assert!(masked.parse::<i32>().is_ok(), "{}", masked);
        }

        #[test]
        fn wide_integers_stay_apart(one: i64, two: i64) {
            let kind = Kind::of("bigint").joined(Kind::of("integer")).unwrap();
            let mask = |value: i64| hash(keyed(), kind, &value.to_string()).unwrap();
            prop_assert!(mask(one).parse::<i64>().is_ok());
            prop_assert_eq!(mask(one) == mask(two), one == two);
        }

        #[test]
        fn any_text_is_taken(value: String) {
            for kind in ["integer", "numeric", "text", "uuid", "date", "timestamp"] {
                let masked = hash(keyed(), Kind::of(kind), &value);
                let is_kept = masked.is_none_or(|masked| masked.len() == value.len());
                prop_assert!(is_kept || kind != "text");
            }
        }
    }
}
