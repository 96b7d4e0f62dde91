//! Numbers as printed in reports.

use crate::ImportError;

/// Which of `.` and `,` separates decimals; the other one separates groups of three digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    decimal: u8,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { decimal: b'.' }
    }
}

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
        let (whole, fraction) = match text.split_once(decimal) {
            Some((whole, fraction)) => (whole, fraction),
            None => (text, ""),
        };
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let group = if self.decimal == b'.' { ',' } else { '.' };
        let mut groups = whole.split(group);
        let first = groups.next()?;
        let is_grouped = whole.contains(group);
        let fits = is_number(first)
            && is_number(fraction)
            && (!is_grouped || (1..=3).contains(&first.len()))
            && groups.all(|group| group.len() == 3 && is_number(group));
        let is_empty = first.is_empty() && fraction.is_empty();
        (fits && !is_empty).then(|| format!("0{}.{fraction}0", whole.replace(group, "")))
    }
}

/// Number of printed digits, without leading zeros.
pub fn significant(text: &str) -> usize {
    let mantissa = text.trim().split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    digits.skip_while(|byte| *byte == b'0').count()
}

fn is_border(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'>' | b'<' | b'-' | b'+')
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
        let evidence = if self.both == [0, 0] { self.one } else { self.both };
        match evidence {
            [0, 0] => Ok(Numbers::default()),
            [dots, commas] if dots >= commas * FOR_ONE => Ok(Numbers { decimal: b'.' }),
            [dots, commas] if commas >= dots * FOR_ONE => Ok(Numbers { decimal: b',' }),
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

    const DOT: Numbers = Numbers { decimal: b'.' };
    const COMMA: Numbers = Numbers { decimal: b',' };

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
        assert_eq!(Numbers::of("7,1 0,0 substr(x,1,30)").unwrap(), COMMA);
        assert_eq!(Numbers::of("no numbers").unwrap(), DOT);
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
        fn no_text_makes_a_number_that_is_none(text in "[0-9.,eE+#-]{0,20}") {
            if let Some(value) = DOT.parse(&text) {
                prop_assert!(value.is_finite());
            }
            let _ = Numbers::of(&text);
        }
    }
}
