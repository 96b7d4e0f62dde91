//! One figure of two sets: the estimate of each side, their ratio, and whether a difference is
//! established.

use blockstone_base::stats::{self, Estimate};
use schemars::JsonSchema;
use serde::Serialize;

/// Which direction of a figure is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A rate: more is faster.
    More,
    /// A latency: less is faster.
    Less,
    /// A level, which is only higher or lower. It may be zero.
    Neither,
}

/// What may be said of a figure of `b` against that of `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// `b` is better, and the 95 % interval of the ratio excludes 1.
    Faster,
    /// `b` is worse, and the 95 % interval of the ratio excludes 1.
    Slower,
    /// `b` is higher: the 95 % interval of the difference excludes zero.
    Higher,
    /// `b` is lower: the 95 % interval of the difference excludes zero.
    Lower,
    /// The numbers do not show a difference.
    NotEstablished,
    /// One side's number does not describe what it claims to.
    Condemned,
    /// Only one side has it.
    OnlyInOne,
}

/// A figure of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    pub a: Option<Estimate>,
    pub b: Option<Estimate>,
    /// b ÷ a.
    pub ratio: Option<Estimate>,
    pub outcome: Outcome,
}

/// Compares a figure of two sets of recordings, each with one estimate for every recording that has
/// the figure. A set of one is that estimate. Of several it is their mean with the Student interval
/// between the recordings, never narrower than the intervals within them.
pub fn compare(a: &[Estimate], b: &[Estimate], better: Better) -> Compared {
    let pair = a.len() == 1 && b.len() == 1;
    let (a, b) = (of_set(a), of_set(b));
    let both = a.zip(b);
    let positive = |(a, b): &(Estimate, Estimate)| a.value > 0.0 && b.value > 0.0;
    let ratio = both
        .filter(|both| better != Better::Neither || positive(both))
        .and_then(|(a, b)| stats::ratio(&a, &b));
    let outcome = match both {
        None => Outcome::OnlyInOne,
        Some((a, b)) if better == Better::Neither => by_difference(&a, &b, ratio.as_ref()),
        // Intervals between few recordings are wide: the ratio's is cut off at zero.
        Some((a, b)) if !pair && !differ(&a, &b) => Outcome::NotEstablished,
        Some(_) => Outcome::of_ratio(ratio.as_ref(), better == Better::Less),
    };
    Compared { a, b, ratio, outcome }
}

fn of_set(recordings: &[Estimate]) -> Option<Estimate> {
    match recordings {
        [one] => Some(*one),
        several => stats::pool(several),
    }
}

/// Where there is a ratio it has to say the same as the difference, or a reader would see an
/// interval that holds 1.
fn by_difference(a: &Estimate, b: &Estimate, ratio: Option<&Estimate>) -> Outcome {
    let excludes_one = ratio.is_none_or(|ratio| ratio.low > 1.0 || ratio.high < 1.0);
    match differ(a, b) && excludes_one {
        true if b.value > a.value => Outcome::Higher,
        true => Outcome::Lower,
        false => Outcome::NotEstablished,
    }
}

/// Whether the difference of two independent means excludes zero: their half widths add in
/// quadrature. The upper ones count, because the lower end of a rate is cut off at zero.
fn differ(a: &Estimate, b: &Estimate) -> bool {
    let half = (a.high - a.value).hypot(b.high - b.value);
    (b.value - a.value).abs() > half
}

impl Compared {
    /// The same figures, which these rules condemn: there is nothing to conclude from both.
    #[must_use]
    pub fn condemned_by(self, rules: &[String]) -> Self {
        let stands = rules.is_empty() || self.outcome == Outcome::OnlyInOne;
        Self { outcome: if stands { self.outcome } else { Outcome::Condemned }, ..self }
    }
}

impl Outcome {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 7] = [
        Self::Faster,
        Self::Slower,
        Self::Higher,
        Self::Lower,
        Self::NotEstablished,
        Self::Condemned,
        Self::OnlyInOne,
    ];

    /// What a ratio of two rates or latencies says.
    fn of_ratio(ratio: Option<&Estimate>, lower_is_faster: bool) -> Self {
        match ratio {
            Some(ratio) if ratio.low > 1.0 && lower_is_faster => Self::Slower,
            Some(ratio) if ratio.high < 1.0 && lower_is_faster => Self::Faster,
            Some(ratio) if ratio.low > 1.0 => Self::Faster,
            Some(ratio) if ratio.high < 1.0 => Self::Slower,
            _ => Self::NotEstablished,
        }
    }

    /// As a sentence about `b` ends.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NotEstablished => "difference not established",
            Self::Condemned => "not comparable: condemned",
            Self::OnlyInOne => "measured on one side only",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, half: f64) -> Estimate {
        let (low, high) = (value - half, value + half);
        Estimate { value, low, high, samples: 10, duration_ns: 1 }
    }

    #[test]
    fn a_set_of_one_is_its_estimate_and_of_several_their_mean() {
        let lopsided = Estimate { low: 9.0, high: 20.0, ..estimate(10.0, 0.0) };
        let one = compare(&[lopsided], &[], Better::More);
        assert_eq!((one.a, one.b, one.outcome), (Some(lopsided), None, Outcome::OnlyInOne));
        let three = [9.0, 10.0, 11.0].map(|value| estimate(value, 0.01));
        let mean = compare(&three, &three, Better::More).a.unwrap();
        // Student's t with two degrees of freedom: 4.303 × 1 ÷ √3.
        assert!((mean.value - 10.0).abs() < 1e-9 && (mean.high - 12.484).abs() < 0.01, "{mean:?}");
        let alike = [10.0, 10.0].map(|value| estimate(value, 3.0));
        let mean = compare(&alike, &alike, Better::More).a.unwrap();
        assert!((mean.high - 13.0).abs() < 1e-9, "not narrower than within: {mean:?}");
    }

    #[test]
    fn variation_between_recordings_leaves_open_what_one_pair_would_establish() {
        let (a, b) = ([8.0, 10.0, 12.0], [9.0, 11.0, 13.5]);
        let set = |values: [f64; 3]| values.map(|value| estimate(value, 0.1));
        let outcome = |a: &[Estimate], b: &[Estimate]| compare(a, b, Better::More).outcome;
        assert_eq!(outcome(&set(a)[1..2], &set(b)[1..2]), Outcome::Faster);
        assert_eq!(outcome(&set(a), &set(b)), Outcome::NotEstablished);
    }

    #[test]
    fn a_mean_that_may_be_anything_differs_from_nothing() {
        // ± 63 with one degree of freedom: the interval of a holds all of b's, far as their ratio
        // is from one.
        let a = [5.0, 15.0].map(|value| estimate(value, 0.1));
        let b = [0.19, 0.21].map(|value| estimate(value, 0.001));
        for (a, b) in [(a, b), (b, a)] {
            let compared = compare(&a, &b, Better::More);
            assert_eq!(compared.outcome, Outcome::NotEstablished, "{compared:?}");
        }
    }

    #[test]
    fn what_is_better_decides_the_word() {
        let of = |better| compare(&[estimate(10.0, 0.1)], &[estimate(20.0, 0.1)], better).outcome;
        assert_eq!(of(Better::More), Outcome::Faster);
        assert_eq!(of(Better::Less), Outcome::Slower);
        assert_eq!(of(Better::Neither), Outcome::Higher);
        let from_zero = compare(&[estimate(0.0, 0.0)], &[estimate(5.0, 1.0)], Better::Neither);
        assert_eq!((from_zero.outcome, from_zero.ratio), (Outcome::Higher, None));
        let to_zero = compare(&[estimate(5.0, 1.0)], &[estimate(0.0, 0.0)], Better::Neither);
        assert_eq!(to_zero.outcome, Outcome::Lower);
    }
}
