//! Numbers as printed in reports.

use crate::ImportError;

/// Which of `.` and `,` separates decimals. The other one separates groups of three digits, unless
/// the report has blanks or apostrophes between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    decimal: u8,
    /// Whether groups may be separated by one of [`BLANKS`]: not if numbers of the report show
    /// groups separated by `.` or `,`.
    has_blanks: bool,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { decimal: b'.', has_blanks: true }
    }
}

/// Blanks and apostrophes that separate groups in some territories. The last one stands for a byte
/// of another character set, in which no-break spaces are lost.
const BLANKS: [char; 7] = [' ', '\u{a0}', '\u{202f}', '\u{2009}', '\'', '\u{2019}', '\u{fffd}'];

/// One form is accepted if there are this many numbers of it for each one of the other.
const FOR_ONE: usize = 20;

impl Numbers {
    /// Decides from all numbers of a report: those with both separators, otherwise those with a
    /// single one that is followed by one or two digits.
    pub fn of(text: &str) -> Result<Self, ImportError> {
        let mut seen = SeparatorCounts::default();
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(found) = bytes[at..].iter().position(u8::is_ascii_digit) {
            let start = at + found;
            let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b',');
            let end = bytes[start..].iter().position(|byte| !is_part(byte));
            let end = end.map_or(bytes.len(), |length| start + length);
            let before = start.checked_sub(1).map_or(b' ', |index| bytes[index]);
            let after = bytes.get(end).copied().unwrap_or(b' ');
            if is_border(before) && (is_border(after) || after.is_ascii_alphabetic()) {
                seen.add(&bytes[start..end]);
            }
            at = end;
        }
        seen.decide()
    }

    /// Parses the number in a cell; `None` if it was too wide for its column (`####`), is empty or
    /// is not entirely a number.
    pub fn parse(self, text: &str) -> Option<f64> {
        let text = text.trim();
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (mantissa, exponent) = match digits.find(['e', 'E']) {
            Some(at) => (&digits[..at], Some(&digits[at + 1..])),
            None => (digits, None),
        };
        let plain = self.plain(mantissa)?;
        let exponent = match exponent {
            None => 0,
            Some(text) => text.parse::<i32>().ok().filter(|power| power.abs() <= 60)?,
        };
        let value: f64 = format!("{plain}e{exponent}").parse().ok()?;
        Some(if text.starts_with('-') { -value } else { value })
    }

    /// Parses a number that is not negative.
    pub fn count(self, text: &str) -> Option<f64> {
        self.parse(text).filter(|value| *value >= 0.0)
    }

    /// Parses a number that may end in K, M, G, T or P, each of them times `base`; without a suffix
    /// it is in units of `plain`.
    pub fn scaled(self, text: &str, base: f64, plain: f64) -> Option<f64> {
        let text = text.trim();
        let power = match text.bytes().last()? {
            b'K' | b'k' => 1,
            b'M' | b'm' => 2,
            b'G' | b'g' => 3,
            b'T' | b't' => 4,
            b'P' | b'p' => 5,
            _ => return Some(self.count(text)? * plain),
        };
        Some(self.count(&text[..text.len() - 1])? * base.powi(power))
    }

    /// Returns the digits without group separators and with a decimal point.
    fn plain(self, text: &str) -> Option<String> {
        let decimal = char::from(self.decimal);
        let (whole, fraction) = text.split_once(decimal).unwrap_or((text, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(fraction) || whole.is_empty() && fraction.is_empty() {
            return None;
        }
        if is_number(whole) {
            return Some(format!("0{whole}.{fraction}0"));
        }
        let group = whole.chars().find(|c| !c.is_ascii_digit()).filter(|c| self.separates(*c))?;
        let mut groups = whole.split(group);
        let is_first = groups.next().is_some_and(|it| (1..=3).contains(&it.len()) && is_number(it));
        let fits = is_first && groups.all(|it| it.len() == 3 && is_number(it));
        fits.then(|| format!("0{}.{fraction}0", whole.replace(group, "")))
    }

    fn separates(self, c: char) -> bool {
        let other = if self.decimal == b'.' { ',' } else { '.' };
        c == other || self.has_blanks && BLANKS.contains(&c)
    }
}

/// Number of printed digits, without leading zeros.
pub fn significant(text: &str) -> usize {
    let mantissa = text.trim().split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    digits.skip_while(|byte| *byte == b'0').count()
}

/// A byte that is not ASCII may be a blank, and no number contains a letter.
fn is_border(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || !byte.is_ascii()
        || matches!(byte, b'>' | b'<' | b'-' | b'+' | b'|')
}

#[derive(Debug, Default)]
struct SeparatorCounts {
    /// Numbers with both separators: `1,234.5` and `1.234,5`.
    both: [usize; 2],
    /// Numbers with one separator: `1.5` and `1,5`.
    one: [usize; 2],
}

impl SeparatorCounts {
    fn add(&mut self, token: &[u8]) {
        let is_separator = |byte: &u8| !byte.is_ascii_digit();
        let Some(last) = token.iter().rposition(is_separator) else { return };
        let kind = usize::from(token[last] == b',');
        let decimals = token.len() - last - 1;
        if decimals == 0 {
            return;
        }
        let before = &token[..last];
        if !before.iter().any(is_separator) {
            self.one[kind] += usize::from(decimals <= 2);
            return;
        }
        let group = if kind == 0 { b',' } else { b'.' };
        let mut groups = before.split(|byte| *byte == group);
        let is_first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
        let digits = |group: &[u8]| group.len() == 3 && group.iter().all(u8::is_ascii_digit);
        self.both[kind] += usize::from(is_first && groups.all(digits) && before.contains(&group));
    }

    fn decide(&self) -> Result<Numbers, ImportError> {
        let has_blanks = self.both == [0, 0];
        let evidence = if has_blanks { self.one } else { self.both };
        match evidence {
            [0, 0] => Ok(Numbers::default()),
            [dots, commas] if dots >= commas * FOR_ONE => Ok(Numbers { decimal: b'.', has_blanks }),
            [dots, commas] if commas >= dots * FOR_ONE => Ok(Numbers { decimal: b',', has_blanks }),
            [dots, commas] => Err(ImportError::Damaged {
                line: 1,
                what: format!(
                    "{dots} numbers have a decimal point and {commas} a decimal comma: it cannot \
                     be said which is meant"
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DOT: Numbers = Numbers { decimal: b'.', has_blanks: false };
    const COMMA: Numbers = Numbers { decimal: b',', has_blanks: false };
    const DOT_OR_BLANK: Numbers = Numbers { has_blanks: true, ..DOT };
    const COMMA_OR_BLANK: Numbers = Numbers { has_blanks: true, ..COMMA };

    #[test]
    fn numbers_are_read_as_they_are_printed() {
        for (text, value) in [
            ("1,234.5", Some(1234.5)),
            (" .013140 ", Some(0.01314)),
            ("1.3941455E+09", Some(1_394_145_500.0)),
            ("-0.0", Some(0.0)),
            ("12", Some(12.0)),
            ("######", None),
            ("N/A", None),
            ("", None),
            (".", None),
            ("1,23", None),
            ("1.2.3", None),
            ("12,34,567", None),
            ("1e999", None),
            ("nan", None),
        ] {
            assert_eq!(DOT.parse(text), value, "{text}");
        }
        for blank in BLANKS {
            let text = format!("12{blank}345{blank}678,5");
            assert_eq!(COMMA_OR_BLANK.parse(&text), Some(12_345_678.5), "{text}");
            assert_eq!(COMMA.parse(&text), None, "{text}");
            for other in ["1{}23", "1{}2345", "1{}{}234", "1{}234.567", "12 34", "{}234,5"] {
                let text = other.replace("{}", &blank.to_string());
                let found = COMMA_OR_BLANK.parse(&text);
                let is_trimmed = text.starts_with(char::is_whitespace);
                assert!(found.is_none() || is_trimmed, "{text} {found:?}");
            }
        }
        assert_eq!(DOT_OR_BLANK.parse("14'747'648'000.25"), Some(14_747_648_000.25));
        assert_eq!(COMMA.parse("1.234,5"), Some(1234.5));
        assert_eq!(COMMA.parse("1,234.5"), None);
        assert_eq!(DOT.scaled("2.6G", 1024.0, 1.0), Some(2.6 * 1024.0_f64.powi(3)));
        assert_eq!(DOT.scaled("521.5K", 1000.0, 1.0), Some(521_500.0));
        assert_eq!(DOT.scaled("4.53108", 1024.0, 1024.0 * 1024.0), Some(4.53108 * 1_048_576.0));
    }

    #[test]
    fn separators_are_decided_by_the_whole_report() {
        assert_eq!(Numbers::of("<td>1,234.5</td> 11.2.0.3.0 23.04.14").unwrap(), DOT);
        assert_eq!(Numbers::of("1.234.567,8 1,5 12").unwrap(), COMMA);
        assert_eq!(Numbers::of("7,1 0,0 substr(x,1,30)").unwrap(), COMMA_OR_BLANK);
        assert_eq!(Numbers::of("<td>1\u{a0}234,5</td> 7,1").unwrap(), COMMA_OR_BLANK);
        assert_eq!(Numbers::of("1'234'567 1'234.5 7.1").unwrap(), DOT_OR_BLANK);
        assert_eq!(Numbers::of("no numbers").unwrap(), DOT_OR_BLANK);
        assert_eq!(Numbers::of("DB CPU|1.234.567,8|0,123").unwrap(), COMMA);
        assert!(Numbers::of("1,234.5 and 1.234,5").is_err());
    }

    proptest! {
        #[test]
        fn a_number_is_read_with_either_separator(
            value in 0_u64..9_000_000_000_000, cents in 0_u64..100,
        ) {
            let digits = value.to_string();
            let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev()
                .map(|group| str::from_utf8(group).unwrap()).collect();
            let expected = Some(format!("{value}.{cents:02}").parse::<f64>().unwrap());
            prop_assert_eq!(DOT.parse(&format!("{}.{cents:02}", groups.join(","))), expected);
            prop_assert_eq!(COMMA.parse(&format!("{},{cents:02}", groups.join("."))), expected);
            prop_assert_eq!(DOT.parse(&format!("{value}.{cents:02}")), expected);
        }

        #[test]
        fn no_text_makes_a_number_that_is_none(text in "[0-9.,eE+# '\u{a0}-]{0,20}") {
            for numbers in [DOT, COMMA_OR_BLANK] {
                if let Some(value) = numbers.parse(&text) {
                    prop_assert!(value.is_finite());
                }
            }
            let _ = Numbers::of(&text);
        }
    }
}
