//! Words of a claim, and the quantities they form: `2 GB/s`, `512MB`, `180 s`, `200k IOPS`, `85 %`.

/// A number with its unit, in bytes, bits and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    Count(f64),
    Bytes(f64),
    Bits(f64),
    BytesPerS(f64),
    BitsPerS(f64),
    Iops(f64),
    Seconds(f64),
    Percent(f64),
    /// A ratio in one word that a sign ends: `18x:`.
    Times(f64),
}

/// A reading position in the words of a claim.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    all: Vec<&'a str>,
    at: usize,
    /// Position at which the last quantity began.
    quantity_at: usize,
}

const TIMES: [char; 2] = ['x', '×'];
/// Units after a number of requests per second.
const REQUESTS: &[&str] = &["iops", "io/s", "ios/s", "reads/s", "writes/s", "requests/s"];
/// Seconds in an average month and year of the Gregorian calendar.
const MONTH_S: f64 = 2_629_746.0;
const YEAR_S: f64 = 12.0 * MONTH_S;

impl<'a> Words<'a> {
    /// Splits into words without surrounding punctuation; `2x2Gb` becomes `2 x 2Gb`, but `18x:`
    /// is a ratio, whatever follows.
    pub fn of(text: &'a str) -> Self {
        let words = text.split_whitespace().flat_map(|word| {
            let bare = word.trim_matches([',', ';', ':', '(', ')', '"', '\'']);
            let ends = word.ends_with([',', ';', ':', ')']) && bare.ends_with(TIMES);
            let bare = bare.trim_end_matches('.');
            if ends { vec![bare] } else { split_times(bare) }
        });
        Self { all: words.filter(|word| !word.is_empty()).collect(), at: 0, quantity_at: 0 }
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.all.get(self.at).copied()
    }

    pub fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Returns the word before the next one.
    pub fn last(&self) -> &'a str {
        self.before(self.at)
    }

    /// Returns the word before the last quantity.
    pub fn before_quantity(&self) -> &'a str {
        self.before(self.quantity_at)
    }

    fn before(&self, at: usize) -> &'a str {
        at.checked_sub(1).map_or("", |before| self.all[before])
    }

    /// Whether the next word is one of these, ignoring case.
    pub fn is_next(&self, any: &[&str]) -> bool {
        self.peek().is_some_and(|word| is_one(word, any))
    }

    pub fn take_if(&mut self, any: &[&str]) -> bool {
        let found = self.is_next(any);
        self.at += usize::from(found);
        found
    }

    /// Returns what `read` makes of the next words; consumes nothing if that is `None`.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.at;
        let value = read(self);
        if value.is_none() {
            self.at = before;
        }
        value
    }

    /// Reads a number of equal things: `2 x`.
    pub fn times(&mut self) -> Option<u32> {
        self.attempt(|words| {
            let count = words.next()?.parse().ok().filter(|&count| count > 0)?;
            words.take_if(&["x", "×"]).then_some(count)
        })
    }

    /// Reads a number with its unit, which may be the next word: `2 GB/s`, `40 TB a week`.
    pub fn quantity(&mut self) -> Option<Quantity> {
        self.attempt(|words| {
            words.quantity_at = words.at;
            let word = words.next()?;
            let (number, suffix) = number(word)?;
            if let Some(scale) = thousands(suffix)
                && words.take_if(REQUESTS)
            {
                return Some(Quantity::Iops(number * scale));
            }
            if matches!(suffix, "x" | "×")
                && word.trim_end_matches(TIMES).ends_with(|c: char| c.is_ascii_digit())
            {
                return Some(Quantity::Times(number));
            }
            if !suffix.is_empty() {
                return Some(words.by_time(in_unit(number, suffix)?));
            }
            let unit = words.attempt(|words| in_unit(number, words.next()?));
            Some(unit.map_or(Quantity::Count(number), |quantity| words.by_time(quantity)))
        })
    }

    /// Reads a span of time given by name only: `a week`, `per day`.
    pub fn named_time(&mut self) -> Option<f64> {
        self.attempt(|words| {
            words.take_if(&["a", "an", "per", "each", "every", "one"]).then_some(())?;
            seconds(words.next()?)
        })
    }

    /// Returns the digits after the point of the number with which the last quantity began.
    pub fn decimals(&self) -> usize {
        let word = self.all.get(self.quantity_at).copied().unwrap_or_default();
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        digits.split_once('.').map_or(0, |(_, decimals)| decimals.len())
    }

    /// Whether the words after a number are such as `concurrent readers` or `in flight`.
    pub fn are_waiting(&mut self, who: &[&str]) -> bool {
        let found = self.attempt(|words| {
            if words.take_if(&["in"]) {
                return words.take_if(&["flight"]).then_some(());
            }
            words.take_if(&["concurrent", "parallel"]);
            words.take_if(who).then_some(())
        });
        found.is_some()
    }

    /// Reads `depth 4` or `QD 4`: requests in flight.
    pub fn depth(&mut self) -> Option<f64> {
        self.attempt(|words| {
            words.take_if(&["depth", "qd"]).then_some(())?;
            words.take_if(&["of"]);
            match words.quantity()? {
                Quantity::Count(depth) => Some(depth),
                _ => None,
            }
        })
    }

    /// Turns bytes or bits `per second` or `a second` into a rate.
    fn by_time(&mut self, quantity: Quantity) -> Quantity {
        let rate = match quantity {
            Quantity::Bytes(bytes) => Quantity::BytesPerS(bytes),
            Quantity::Bits(bits) => Quantity::BitsPerS(bits),
            _ => return quantity,
        };
        let second =
            |words: &mut Self| words.named_time().filter(|seconds| (0.5..1.5).contains(seconds));
        self.attempt(second).map_or(quantity, |_| rate)
    }
}

pub fn is_one(word: &str, any: &[&str]) -> bool {
    any.iter().any(|it| it.eq_ignore_ascii_case(word))
}

/// Splits `2x2Gb` into its parts; leaves every other word as it is.
fn split_times(word: &str) -> Vec<&str> {
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let (count, rest) = word.split_at(digits);
    let sign = rest.chars().next().filter(|c| TIMES.contains(c));
    let Some(sign) = sign.filter(|_| !count.is_empty()) else { return vec![word] };
    let (sign, rest) = rest.split_at(sign.len_utf8());
    let goes_on = rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit());
    if goes_on {
        [count, sign, rest].into_iter().filter(|p| !p.is_empty()).collect()
    } else {
        vec![word]
    }
}

/// Returns a number, with commas between thousands, and the text that follows it.
pub fn number(word: &str) -> Option<(f64, &str)> {
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','));
    let (digits, rest) = word.split_at(end.unwrap_or(word.len()));
    let value: f64 = digits.replace(',', "").parse().ok()?;
    (value.is_finite() && value > 0.0).then_some((value, rest))
}

fn thousands(suffix: &str) -> Option<f64> {
    match suffix {
        "" => Some(1.0),
        "k" | "K" => Some(1e3),
        "M" => Some(1e6),
        _ => None,
    }
}

fn in_unit(number: f64, unit: &str) -> Option<Quantity> {
    if is_one(unit, REQUESTS) {
        return Some(Quantity::Iops(number));
    }
    if is_one(unit, &["%", "percent"]) {
        return Some(Quantity::Percent(number));
    }
    if let Some(seconds) = seconds(unit) {
        return Some(Quantity::Seconds(number * seconds));
    }
    let (stem, per_second) = ["/sec", "/s", "ps"]
        .iter()
        .find_map(|end| Some((unit.strip_suffix(end)?, true)))
        .unwrap_or((unit, false));
    // A lowercase b before `ps` means bits. Elsewhere `mb` and `gb` are written for bytes.
    let bits_by_end = unit.ends_with("bps");
    let (prefix, is_bits) = match stem {
        stem if stem.ends_with("byte") => (&stem[..stem.len() - 4], false),
        stem if stem.ends_with("bytes") => (&stem[..stem.len() - 5], false),
        stem if stem.ends_with("bit") => (&stem[..stem.len() - 3], true),
        stem if stem.ends_with("bits") => (&stem[..stem.len() - 4], true),
        stem if stem.ends_with('B') => (&stem[..stem.len() - 1], false),
        stem if stem.ends_with('b') => {
            let prefix = &stem[..stem.len() - 1];
            let small = !prefix.is_empty() && prefix.chars().all(|c| c.is_ascii_lowercase());
            (prefix, bits_by_end || !small)
        }
        // A single letter is a binary unit, as databases read it.
        stem if !per_second => return Some(Quantity::Bytes(number * binary(stem)?)),
        stem => (stem, false),
    };
    let value = number * scale(prefix)?;
    Some(match (is_bits, per_second) {
        (true, true) => Quantity::BitsPerS(value),
        (true, false) => Quantity::Bits(value),
        (false, true) => Quantity::BytesPerS(value),
        (false, false) => Quantity::Bytes(value),
    })
}

fn scale(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" | "m" => 1e6,
        "G" | "g" => 1e9,
        "T" | "t" => 1e12,
        "P" | "p" => 1e15,
        _ => return binary(prefix.strip_suffix('i')?),
    })
}

fn binary(letter: &str) -> Option<f64> {
    let power = ["k", "m", "g", "t", "p"].iter().position(|it| it.eq_ignore_ascii_case(letter))?;
    Some(1024_f64.powi(power as i32 + 1))
}

fn seconds(word: &str) -> Option<f64> {
    const DAY_S: f64 = 86_400.0;
    Some(match word.to_ascii_lowercase().as_str() {
        "us" | "µs" | "usec" | "usecs" | "microsecond" | "microseconds" => 1e-6,
        "ms" | "millisecond" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => DAY_S,
        "week" | "weeks" => 7.0 * DAY_S,
        "month" | "months" => MONTH_S,
        "year" | "years" => YEAR_S,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_units_of_engineers() {
        let cases = [
            ("2 GB/s", Quantity::BytesPerS(2e9)),
            ("1,850MB/s", Quantity::BytesPerS(1.85e9)),
            ("450 mb/s", Quantity::BytesPerS(450e6)),
            ("1.5 GB per second", Quantity::BytesPerS(1.5e9)),
            ("10 Gbps", Quantity::BitsPerS(10e9)),
            ("10 gbps", Quantity::BitsPerS(10e9)),
            ("800Mb/s", Quantity::BitsPerS(800e6)),
            ("20 Gb", Quantity::Bits(20e9)),
            ("8 Gbit", Quantity::Bits(8e9)),
            ("512MB", Quantity::Bytes(512e6)),
            ("512 Mbytes", Quantity::Bytes(512e6)),
            ("512 MiB", Quantity::Bytes(536_870_912.0)),
            ("8K", Quantity::Bytes(8_192.0)),
            ("200k IOPS", Quantity::Iops(200e3)),
            ("2,800 reads/s", Quantity::Iops(2_800.0)),
            ("3 min", Quantity::Seconds(180.0)),
            ("0.6s", Quantity::Seconds(0.6)),
            ("7 µs", Quantity::Seconds(7e-6)),
            ("6 readers", Quantity::Count(6.0)),
            ("85 %", Quantity::Percent(85.0)),
            ("99.7%", Quantity::Percent(99.7)),
        ];
        for (text, expected) in cases {
            assert_eq!(Words::of(text).quantity(), Some(expected), "{text}");
        }
        for text in ["MB", "0 MB", "1e9", "3 .. 4", "", "5furlongs", "1,2,x"] {
            let seen = Words::of(text).quantity();
            assert!(matches!(seen, None | Some(Quantity::Count(_))), "{text}: {seen:?}");
        }
    }
}
