//! A limit that a figure must keep to, such as `commit.p99<2ms`.

use std::fmt;

use blockstone_base::hint::Hint;
use blockstone_base::table::{Measure, Value};
use blockstone_base::units::{Bytes, Nanos};

use crate::expected::{Found, Outcome};
use crate::format;

/// A limit on a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The figure, as it was written: `commit.p99`.
    pub name: String,
    comparison: Comparison,
    /// The limit, as it was written: `2ms`.
    limit: String,
    /// The one who states the limit, and where; empty for a limit of the user.
    pub(crate) origin: String,
}

/// Use for which storage is measured, and the limits that it sets.
#[derive(Clone, Debug, PartialEq)]
pub struct Purpose {
    /// For people: `PostgreSQL`.
    pub title: String,
    /// Remark on the limits.
    pub note: String,
    pub limits: Vec<Expectation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
    NotEqual,
}

/// Signs of comparisons; those of two characters first.
const SIGNS: [(&str, Comparison); 7] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("!=", Comparison::NotEqual),
    ("==", Comparison::Equal),
    ("<", Comparison::Below),
    (">", Comparison::Above),
    ("=", Comparison::Equal),
];

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Hint)]
pub enum ExpectError {
    #[error("expect `{text}`: it compares nothing")]
    #[hint(
        "write a name, a comparison and a limit: commit.p99<2ms; numbers have no comma: \
         iops>=20000"
    )]
    NotALimit { text: String },
    #[error("expect `{expectation}`: {what} has no figure `{name}`")]
    #[hint("{hint}")]
    Unknown { expectation: String, what: String, name: String, hint: String },
    #[error("expect `{expectation}`: {why}")]
    #[hint("{hint}")]
    Limit { expectation: String, why: String, hint: &'static str },
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name, self.written())
    }
}

/// Reads limits that commas or ends of lines separate.
pub fn parse(text: &str) -> Result<Vec<Expectation>, ExpectError> {
    let parts = text.split([',', '\n', ';']).map(str::trim).filter(|part| !part.is_empty());
    parts.map(one).collect()
}

fn one(text: &str) -> Result<Expectation, ExpectError> {
    let fail = || ExpectError::NotALimit { text: text.to_owned() };
    let at = text.find(['<', '>', '=', '!']).ok_or_else(fail)?;
    let (name, rest) = text.split_at(at);
    let found = SIGNS.iter().find_map(|(sign, how)| Some((rest.strip_prefix(sign)?, *how)));
    let (limit, comparison) = found.ok_or_else(fail)?;
    let (name, limit) = (name.trim(), limit.trim());
    if name.is_empty() || limit.is_empty() || limit.contains(['<', '>', '=', '!']) {
        return Err(fail());
    }
    let [name, limit] = [name, limit].map(str::to_owned);
    Ok(Expectation { name, comparison, limit, origin: String::new() })
}

impl Expectation {
    /// Returns it with the name of who states the limit.
    #[must_use]
    pub fn stated_by(self, origin: String) -> Self {
        Self { origin, ..self }
    }

    /// Returns it with so many times the limit, in the same unit.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        let end = self.limit.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = self.limit.split_at(end.unwrap_or(self.limit.len()));
        let limit = number.parse().map(|number: f64| format!("{}{unit}", number * times as f64));
        Self { limit: limit.unwrap_or(self.limit), ..self }
    }

    /// Returns the comparison and the limit as they were written.
    pub(crate) fn written(&self) -> String {
        let sign = SIGNS.iter().rfind(|(_, comparison)| *comparison == self.comparison);
        format!("{}{}", sign.map_or("", |(sign, _)| sign), self.limit)
    }

    /// Returns the limit in the base unit of the measure. Fails if it has no unit, or another.
    fn limit(&self, measure: Measure) -> Result<f64, ExpectError> {
        let fail =
            |why: String, hint| ExpectError::Limit { expectation: self.to_string(), why, hint };
        let text = self.limit.as_str();
        let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite());
        match measure {
            Measure::Nanoseconds => {
                let time = text.parse::<Nanos>().map_err(|error| error.to_string());
                time.map(|ns| ns.get() as f64)
                    .map_err(|why| fail(why, "times are written as 500us, 2ms or 1.5s"))
            }
            Measure::Bytes => text
                .parse::<Bytes>()
                .map(|bytes| bytes.get() as f64)
                .map_err(|error| fail(error.to_string(), "sizes are written as 8K, 64M or 4GB")),
            Measure::BytesPerS => {
                let bytes = text.strip_suffix("/s").map(str::parse::<Bytes>);
                match bytes {
                    Some(Ok(bytes)) => Ok(bytes.get() as f64),
                    _ => Err(fail(
                        format!("`{text}` is not a rate of bytes"),
                        "rates are written as 500MB/s or 1GB/s",
                    )),
                }
            }
            Measure::Share => {
                let number = text.strip_suffix('%').and_then(|text| text.trim().parse().ok());
                number.map(|percent: f64| percent / 100.0).ok_or_else(|| {
                    fail(format!("`{text}` is not a share"), "shares are written as 80%")
                })
            }
            Measure::Ratio | Measure::ToOne => {
                let number = text.trim_end_matches(['x', '×']).trim().parse().ok();
                number.ok_or_else(|| {
                    fail(format!("`{text}` is not a ratio"), "ratios are written as 1.5")
                })
            }
            Measure::Count | Measure::OfRow => plain().ok_or_else(|| {
                fail(format!("`{text}` is not a plain number"), "numbers are written as 20000")
            }),
            Measure::Text | Measure::Flag => Err(fail(
                "it is a word, not a number".to_owned(),
                "words are compared with = and !=: verified=yes",
            )),
        }
    }

    fn is_of_words(&self) -> bool {
        matches!(self.comparison, Comparison::Equal | Comparison::NotEqual)
    }

    /// Checks that a limit on a figure of this measure can be decided.
    pub(crate) fn check(&self, measure: Measure) -> Result<(), ExpectError> {
        match measure {
            Measure::Text | Measure::Flag if self.is_of_words() => Ok(()),
            Measure::OfRow => Ok(()),
            measure => self.limit(measure).map(|_| ()),
        }
    }

    pub(crate) fn decide(&self, found: &Found) -> (Outcome, Option<String>) {
        let missing = |why: &str| (Outcome::NotEstablished, Some(why.to_owned()));
        let (low, high) = match &found.value {
            Value::Missing(missing) => {
                return (
                    Outcome::NotEstablished,
                    Some(format!("not measured: {}", missing.word())),
                );
            }
            Value::Text(word) => return (self.decide_word(word), None),
            Value::Flag(is_so) => return (self.decide_word(format::yes_or_no(*is_so)), None),
            Value::Number(number) => (*number, *number),
            Value::Estimate(estimate) => (estimate.low, estimate.high),
        };
        let Ok(limit) = self.limit(found.measure) else {
            return missing("the limit has another unit than the figure");
        };
        if low.is_nan() || high.is_nan() {
            return missing("the figure has no interval");
        }
        let (passes, fails) = match self.comparison {
            Comparison::Below => (high < limit, low >= limit),
            Comparison::AtMost => (high <= limit, low > limit),
            Comparison::Above => (low > limit, high <= limit),
            Comparison::AtLeast => (low >= limit, high < limit),
            Comparison::Equal => {
                let is_exact = matches!(found.value, Value::Number(_));
                (is_exact && low.total_cmp(&limit).is_eq(), limit < low || high < limit)
            }
            Comparison::NotEqual => (limit < low || high < limit, false),
        };
        match (passes, fails) {
            (true, _) => (Outcome::Pass, None),
            (false, true) => (Outcome::Fail, None),
            (false, false) if high.is_infinite() => {
                missing("too few samples bound the figure from above")
            }
            (false, false) => missing("the interval of the figure contains the limit"),
        }
    }

    fn decide_word(&self, word: &str) -> Outcome {
        let is_equal = word.eq_ignore_ascii_case(&self.limit);
        if is_equal == (self.comparison == Comparison::Equal) {
            Outcome::Pass
        } else {
            Outcome::Fail
        }
    }
}
