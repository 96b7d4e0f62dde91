//! Words of a claim, and the quantities they form: `2 GB/s`, `512MB`, `180 s`, `200k IOPS`, `85 %`,
//! `5-10 gig`.

mod split;

use std::rc::Rc;

use super::span::Span;
use super::units::{self, Unit};
pub use super::vocabulary::is_one;

/// A number with its unit, in bytes, bits and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    pub unit: Unit,
    pub span: Span,
}

/// A reading position in the words of a claim.
#[derive(Clone, Debug, Default)]
pub struct Words<'a> {
    all: Rc<[&'a str]>,
    at: usize,
    /// Position of a word that was read before its turn.
    skipped: Option<usize>,
    /// Position at which the last quantity began.
    quantity_at: usize,
}

pub const TIMES: &[&str] = &["x", "×"];
/// Words between a number and `IOPS` at most.
const DISTANCE_MAX: usize = 6;
const AT_LEAST: &[&str] = &[">", "≥", ">=", "exceeding", "exceeds"];
const AT_MOST: &[&str] = &["<", "≤", "<=", "under", "below"];
/// Words between a number and `IOPS`: `1M random read IOPS`.
const KINDS: &[&str] = &[
    "random",
    "rand",
    "sequential",
    "seq",
    "read",
    "write",
    "read/write",
    "mixed",
    "raw",
    "sustained",
    "peak",
    "total",
    "aggregate",
    "single-sector",
];
const SCALES: [(&[&str], f64); 3] =
    [(&["thousand"], 1e3), (&["million", "mil", "mio"], 1e6), (&["billion"], 1e9)];
const SMALL_NUMBERS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
];

impl<'a> Words<'a> {
    /// Splits into words without punctuation; `2x2Gb` becomes `2 x 2Gb`, `902MiB/10001msec`
    /// `902MiB / 10001msec`, but `18x:` is a ratio, whatever follows.
    pub fn of(text: &'a str) -> Self {
        Self { all: split::words(text).into(), ..Self::default() }
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.all.get(self.here()).copied()
    }

    pub fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at = self.here() + 1;
        Some(word)
    }

    /// Returns the position of the next word.
    fn here(&self) -> usize {
        self.at + usize::from(self.skipped == Some(self.at))
    }

    /// Returns the word that many before the last one.
    pub fn last_but(&self, count: usize) -> &'a str {
        self.before(self.at.saturating_sub(count))
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
        let before = at.checked_sub(1 + usize::from(at > 0 && self.skipped == Some(at - 1)));
        before.and_then(|before| self.all.get(before)).copied().unwrap_or_default()
    }

    /// Whether the next word is one of these, ignoring case.
    pub fn is_next(&self, any: &[&str]) -> bool {
        self.peek().is_some_and(|word| is_one(word, any))
    }

    pub fn take_if(&mut self, any: &[&str]) -> bool {
        let found = self.is_next(any);
        if found {
            self.next();
        }
        found
    }

    /// Whether `and` stands before the last quantity, also before `up to`.
    pub fn are_listed(&self) -> bool {
        let before = self.all[..self.quantity_at.min(self.all.len())].iter().rev();
        let mut before = before.filter(|word| !is_one(word, &["up", "to", "a", "of", "about"]));
        before.next().is_some_and(|word| is_one(word, &["and", "&", "plus", "or"]))
    }

    /// Returns what `read` makes of the next words; consumes nothing if that is `None`.
    pub fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = (self.at, self.skipped);
        let value = read(self);
        if value.is_none() {
            (self.at, self.skipped) = before;
        }
        value
    }

    /// Takes all these words, one after the other.
    pub fn take_all(&mut self, all: &[&str]) -> bool {
        self.attempt(|words| all.iter().all(|one| words.take_if(&[one])).then_some(())).is_some()
    }

    /// Reads a number of equal things: `2 x`, `dual`, `two`.
    pub fn times(&mut self) -> Option<u32> {
        self.attempt(|words| {
            let count = words.next()?.parse().ok().filter(|&count| count > 0)?;
            words.take_if(TIMES).then_some(count)
        })
    }

    /// Reads a number that is written as a word: `two`, `dual`.
    pub fn small_number(&mut self) -> Option<u32> {
        self.attempt(|words| {
            let word = words.next()?;
            if is_one(word, &["dual", "dual-port"]) {
                return Some(2);
            }
            if is_one(word, &["quad", "quad-port"]) {
                return Some(4);
            }
            let at = SMALL_NUMBERS.iter().position(|name| name.eq_ignore_ascii_case(word))?;
            Some(at as u32 + 1)
        })
    }

    /// Reads a number or a range with its unit, which may be the next word: `2 GB/s`, `5-10 gig`,
    /// `> 1 GB/s`, `40 TB a week`.
    pub fn quantity(&mut self) -> Option<Quantity> {
        self.attempt(|words| {
            words.quantity_at = words.at;
            let at_least = words.take_if(AT_LEAST) || words.take_all(&["more", "than"]);
            let at_least = at_least || words.take_all(&["at", "least"]);
            let at_most = !at_least
                && (words.take_if(AT_MOST)
                    || words.take_all(&["less", "than"])
                    || words.take_all(&["at", "most"]));
            if words.take_if(&["sub-millisecond", "submillisecond", "sub-ms"]) {
                return Some(Quantity { unit: Unit::Seconds, span: Span::of(1e-3).or_less() });
            }
            let mut found = words.range().or_else(|| words.single())?;
            if at_least || (found.unit != Unit::Count && words.take_if(&["+"])) {
                found.span = found.span.or_more();
            }
            if at_most {
                found.span = found.span.or_less();
            }
            Some(found)
        })
    }

    /// Reads `5 - 10 gig`, `400 to 800 MB/s`, `1462MiB/s - 1462MiB/s`.
    fn range(&mut self) -> Option<Quantity> {
        self.attempt(|words| {
            let (low, rest) = units::number(words.next()?)?;
            let is_range = words.take_if(&["-"]) || (rest.is_empty() && words.take_if(&["to"]));
            is_range.then_some(())?;
            let (second, _) = words.peek().and_then(units::number)?;
            let high = words.single()?;
            let scale = match units::of(rest) {
                _ if rest.is_empty() => high.span.low / second.low,
                _ if high.unit == Unit::Iops => units::thousands(rest)?,
                Some((unit, scale)) if unit == high.unit => scale,
                _ => return None,
            };
            let span = low.times(scale).to(high.span)?;
            Some(Quantity { unit: high.unit, span })
        })
    }

    /// Reads two rates, of reads and of writes: `7,450/6,900 MB/s`, `1M/800K IOPS`.
    pub fn pair(&mut self) -> Option<(Quantity, Quantity)> {
        self.attempt(|words| {
            words.quantity_at = words.at;
            let (first, suffix) = units::number(words.next()?)?;
            words.take_if(&["/"]).then_some(())?;
            let (second, _) = words.peek().and_then(units::number)?;
            let found = words.single()?;
            let scale = match (suffix, found.unit) {
                ("", Unit::BytesPerS | Unit::Iops) => found.span.low / second.low,
                (suffix, Unit::Iops) => units::thousands(suffix)?,
                _ => return None,
            };
            Some((Quantity { unit: found.unit, span: first.times(scale) }, found))
        })
    }

    fn single(&mut self) -> Option<Quantity> {
        self.attempt(|words| {
            let word = words.next()?;
            if let Some(seconds) = units::clock_time(word) {
                return Some(Quantity { unit: Unit::Seconds, span: Span::of(seconds) });
            }
            // `one million`, `a million`.
            let is_one_of = is_one(word, &["a", "one"])
                && words.peek().is_some_and(|next| SCALES.iter().any(|it| is_one(next, it.0)));
            let (number, suffix) =
                if is_one_of { (Span::of(1.0), "") } else { units::number(word)? };
            let make = |unit, scale: f64| Some(Quantity { unit, span: number.times(scale) });
            let mut more = words.take_if(&["+"]);
            // `262144+0 records`: the second number is of those that were not full.
            if more && suffix.is_empty() && words.peek().is_some_and(|it| it.parse::<u64>().is_ok())
            {
                words.next();
                more = false;
            }
            let spelled = SCALES.iter().find(|(names, _)| words.take_if(names)).map(|it| it.1);
            let scale = units::thousands(suffix).map(|scale| scale * spelled.unwrap_or(1.0));
            if let Some(scale) = scale
                && (words.take_if(units::REQUESTS_A_SECOND) || words.take_distant_iops(suffix))
            {
                return make(Unit::Iops, scale).map(|it| it.or_more_if(more));
            }
            if let Some(spelled) = spelled {
                return make(Unit::Count, spelled).map(|it| it.or_more_if(more));
            }
            if is_one(suffix, TIMES) {
                return make(Unit::Times, 1.0);
            }
            let found = if suffix.is_empty() {
                words.attempt(|words| units::of(words.next()?))
            } else {
                Some(units::of(suffix)?)
            };
            let Some((unit, scale)) = found else {
                if more {
                    return None;
                }
                return make(Unit::Count, 1.0);
            };
            let found = words.by_time(make(unit, scale)?.or_more_if(more));
            Some(words.longer(found))
        })
    }

    /// Takes `IOPS` after words for the kind of requests, which stay: `1M 4K random read IOPS`. `4K
    /// random read IOPS` is a size.
    fn take_distant_iops(&mut self, suffix: &str) -> bool {
        let is_k = is_one(suffix, &["k"]);
        let own = self.before(self.at).trim_end_matches(['k', 'K']);
        let may_be_size = is_k && own.parse().is_ok_and(|count: u32| count.is_power_of_two());
        let word = |at: usize| self.all.get(at).copied().unwrap_or_default();
        let (mut at, mut kinds) = (self.here(), 0);
        let last = at + DISTANCE_MAX;
        while at < last {
            let is_kind = is_one(word(at), KINDS);
            let size_of_two = || units::is_small_size(&format!("{}{}", word(at), word(at + 1)));
            let taken = match is_kind {
                true => 1,
                false if is_k => 0,
                false if units::is_small_size(word(at)) => 1,
                false => 2 * usize::from(size_of_two()),
            };
            if taken == 0 {
                break;
            }
            kinds += usize::from(is_kind);
            at += taken;
        }
        let found = is_one(word(at), units::REQUESTS_A_SECOND) && kinds > 0 && !may_be_size;
        if found {
            self.skipped = Some(at);
        }
        found
    }

    /// Adds the rest of a time in two units: `2 min 30 s`.
    fn longer(&mut self, found: Quantity) -> Quantity {
        if found.unit != Unit::Seconds || found.span.low < 60.0 {
            return found;
        }
        let rest = self.attempt(|words| {
            let (number, suffix) = units::number(words.next()?)?;
            let suffix = if suffix.is_empty() { words.next()? } else { suffix };
            let (unit, scale) = units::of(suffix)?;
            let smaller = unit == Unit::Seconds && [1.0, 60.0].contains(&scale);
            (smaller && number.high < 60.0).then(|| number.times(scale))
        });
        rest.map_or(found, |rest| Quantity { span: found.span.plus(rest), ..found })
    }

    /// Reads a span of time given by name only: `a week`, `per day`.
    pub fn named_time(&mut self) -> Option<f64> {
        self.attempt(|words| {
            words.take_if(&["a", "an", "per", "each", "every", "one"]).then_some(())?;
            units::seconds(words.next()?)
        })
    }

    /// Whether the words after a number are such as `concurrent readers` or `in flight`.
    pub fn are_waiting(&mut self, who: &[&str]) -> bool {
        let found = self.attempt(|words| {
            if words.take_if(&["in"]) {
                return words.take_if(&["flight"]).then_some(());
            }
            if words.take_if(&["outstanding"]) {
                words.take_if(&["io", "i/o", "ios", "i/os", "requests"]);
                return Some(());
            }
            words.take_if(&["concurrent", "parallel", "simultaneous"]);
            words.take_if(who).then_some(())
        });
        found.is_some()
    }

    /// Turns bytes or bits `per second` or `a second` into a rate.
    fn by_time(&mut self, quantity: Quantity) -> Quantity {
        let unit = match quantity.unit {
            Unit::Bytes => Unit::BytesPerS,
            Unit::Bits => Unit::BitsPerS,
            _ => return quantity,
        };
        if self.a_second() { Quantity { unit, ..quantity } } else { quantity }
    }

    /// Takes `per second` or `a second`.
    pub fn a_second(&mut self) -> bool {
        let second =
            |words: &mut Self| words.named_time().filter(|seconds| (0.5..1.5).contains(seconds));
        self.attempt(second).is_some()
    }
}

impl Quantity {
    fn or_more_if(self, more: bool) -> Self {
        if more { Self { span: self.span.or_more(), ..self } } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_the_units_of_engineers() {
        use Unit::*;
        let cases = [
            ("2 GB/s", BytesPerS, 2e9),
            ("1,850MB/s", BytesPerS, 1.85e9),
            ("450 mb/s", BytesPerS, 450e6),
            ("1.5 GB per second", BytesPerS, 1.5e9),
            ("3935.41 MB/sec", BytesPerS, 3.93541e9),
            ("36GBps", BytesPerS, 36e9),
            ("480 MBPS", BytesPerS, 480e6),
            ("90.2MiB/s", BytesPerS, 90.2 * 1_048_576.0),
            ("10 Gbps", BitsPerS, 10e9),
            ("10 gbps", BitsPerS, 10e9),
            ("800Mb/s", BitsPerS, 800e6),
            ("9.41 Gbits/sec", BitsPerS, 9.41e9),
            ("9.4 gigabits per second", BitsPerS, 9.4e9),
            ("20 Gb", Bits, 20e9),
            ("8 Gbit", Bits, 8e9),
            ("512MB", Bytes, 512e6),
            ("512 Mbytes", Bytes, 512e6),
            ("10 gig", Bytes, 10e9),
            ("2 terabytes", Bytes, 2e12),
            ("512 MiB", Bytes, 536_870_912.0),
            ("8K", Bytes, 8_192.0),
            ("1073741824 bytes", Bytes, 1_073_741_824.0),
            ("200k IOPS", Iops, 200e3),
            ("1.2 million IOPS", Iops, 1.2e6),
            ("750KIOPS", Iops, 750e3),
            ("1M random read IOPS", Iops, 1e6),
            ("2,800 reads/s", Iops, 2_800.0),
            ("3 min", Seconds, 180.0),
            ("2 min 30 s", Seconds, 150.0),
            ("2h42m", Seconds, 9_720.0),
            ("1m23.5s", Seconds, 83.5),
            ("0:36", Seconds, 36.0),
            ("1:02:03", Seconds, 3_723.0),
            ("60001msec", Seconds, 60.001),
            ("0.6s", Seconds, 0.6),
            ("7 µs", Seconds, 7e-6),
            ("6 readers", Count, 6.0),
            ("85 %", Percent, 85.0),
            ("99.7%", Percent, 99.7),
            ("18X:", Times, 18.0),
        ];
        for (text, unit, value) in cases {
            let found = Words::of(text).quantity().unwrap_or_else(|| panic!("{text}"));
            let near = (found.span.low / value - 1.0).abs() < 1e-9;
            assert!(found.unit == unit && near, "{text}: {found:?}");
        }
        for text in ["MB", "0 MB", "1e9", "3 .. 4", "", "5furlongs", "1,2,x", "1,2"] {
            let seen = Words::of(text).quantity();
            assert!(seen.is_none_or(|it| it.unit == Count), "{text}: {seen:?}");
        }
    }

    #[test]
    fn ranges_and_bounds_keep_both_ends() {
        for (text, low, high) in [
            ("5-10 gig", 5e9, 10e9),
            ("400–800 MB/s", 400e6, 800e6),
            ("400 to 800 MB/s", 400e6, 800e6),
            ("1462MiB/s-1533MiB/s", 1_462.0 * 1_048_576.0, 1_533.0 * 1_048_576.0),
            ("100k-200k IOPS", 100e3, 200e3),
            ("> 1 GB/s", 1e9, f64::INFINITY),
            ("20+ MB/s", 20e6, f64::INFINITY),
            ("less than 1 ms", 0.0, 1e-3),
            ("<2ms", 0.0, 2e-3),
        ] {
            let found = Words::of(text).quantity().unwrap_or_else(|| panic!("{text}"));
            let ends = (found.span.low, found.span.high);
            let near = |a: f64, b: f64| a.total_cmp(&b).is_eq() || (a / b - 1.0).abs() < 1e-9;
            assert!(near(ends.0, low) && near(ends.1, high), "{text}: {found:?}");
        }
        assert_eq!(Words::of("10-5 gig").quantity().map(|it| it.unit), Some(Unit::Count));
    }
}
