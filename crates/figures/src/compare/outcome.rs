//! One figure of two sets: the estimate of each side, their ratio, and whether a difference is
//! established.

use blockstone_base::stats::{self, Estimate};
use serde::{Serialize, Serializer};

use crate::student::{self, CONFIDENCE, FREEDOM_OF_ONE};

/// The direction in which a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// A rate: more is faster.
    More,
    /// A latency: less is faster.
    Less,
    /// A level, which is only higher or lower. It may be zero.
    Neither,
}

/// Outcome of comparing a figure of `b` with that of `a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// `b` is better: chance explains the difference in at most 5 % of such cases, also among all
    /// rows.
    Faster,
    /// `b` is worse, with the same certainty.
    Slower,
    /// `b` is higher, with the same certainty: a level, or a figure whose difference may have a
    /// cause outside the storage.
    Higher,
    /// `b` is lower, with the same certainty: a level, or a figure whose difference may have a
    /// cause outside the storage.
    Lower,
    /// The numbers do not show a difference.
    NotEstablished,
    /// The number depends on a load that each measurement chose itself, and they chose different
    /// ones.
    OtherLoad,
    /// The number of one side does not describe what it claims to.
    Condemned,
    /// Only one side has the figure.
    OnlyInOne,
}

/// A figure of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    pub a: Option<Estimate>,
    pub b: Option<Estimate>,
    /// b ÷ a.
    pub ratio: Option<Estimate>,
    /// Probability that chance alone shows a difference at least as large.
    pub p_value: Option<f64>,
    pub outcome: Outcome,
}

/// The figure of one side with its standard error and the degrees of freedom of that error.
#[derive(Clone, Copy)]
struct Mean {
    estimate: Estimate,
    error: f64,
    freedom: f64,
}

/// Compares a figure of two sets of recordings, each with one estimate for every recording that has
/// the figure. For a set of one, that estimate is used; for several, their mean with the Student
/// interval between the recordings, never narrower than the intervals within them imply. The
/// difference is tested with Welch's t.
pub fn compare(a: &[Estimate], b: &[Estimate], better: Better) -> Compared {
    let (a, b) = (Mean::of(a), Mean::of(b));
    let both = a.zip(b);
    let positive = |(a, b): &(Mean, Mean)| a.estimate.value > 0.0 && b.estimate.value > 0.0;
    let ratio = both
        .filter(|both| better != Better::Neither || positive(both))
        .and_then(|(a, b)| ratio(&a, &b));
    // Rates and times are tested by their ratio; a level may be zero.
    let p_value = both.map(|(a, b)| match ratio {
        Some(_) if positive(&(a, b)) => p_of_ratio(&a, &b),
        _ => p_value(&a, &b),
    });
    let outcome = match (both, p_value) {
        (Some((a, b)), Some(p)) if p <= 0.05 && ratio.is_none_or(|ratio| excludes_one(&ratio)) => {
            Outcome::of(b.estimate.value > a.estimate.value, better)
        }
        (Some(_), _) => Outcome::NotEstablished,
        (None, _) => Outcome::OnlyInOne,
    };
    let estimate = |mean: Option<Mean>| mean.map(|mean| mean.estimate);
    Compared { a: estimate(a), b: estimate(b), ratio, p_value, outcome }
}

impl Mean {
    fn of(recordings: &[Estimate]) -> Option<Self> {
        // The lower end of a rate's interval is cut off at zero.
        let half = |estimate: &Estimate| {
            (estimate.high - estimate.value).max(estimate.value - estimate.low)
        };
        let count = recordings.len() as f64;
        let within = stats::of_their_mean(recordings.iter().map(half)) / t_95(FREEDOM_OF_ONE);
        let within = |estimate| Self { estimate, error: within, freedom: FREEDOM_OF_ONE };
        if let [one] = recordings {
            return Some(within(*one));
        }
        let values: Vec<f64> = recordings.iter().map(|estimate| estimate.value).collect();
        let (estimate, freedom) = (stats::pool(recordings)?, count - 1.0);
        let error = half(&stats::mean(&values)?) / t_95(freedom);
        let (within, between) = (within(estimate), Self { estimate, error, freedom });
        Some(if within.error > between.error { within } else { between })
    }
}

/// Returns Welch and Satterthwaite's degrees of freedom of a sum of two errors.
fn freedom(a: (f64, f64), b: (f64, f64)) -> f64 {
    let part = |(error, freedom): (f64, f64)| error.powi(4) / freedom;
    let freedom = a.0.hypot(b.0).powi(4) / (part(a) + part(b));
    if freedom.is_finite() { freedom.max(1.0) } else { a.1.min(b.1) }
}

/// Returns how often two equal means differ by at least as much as these.
fn p_value(a: &Mean, b: &Mean) -> f64 {
    let difference = (b.estimate.value - a.estimate.value).abs();
    let error = a.error.hypot(b.error);
    if difference == 0.0 || !error.is_finite() {
        return 1.0;
    }
    if error == 0.0 {
        return 0.0;
    }
    let freedom = freedom((a.error, a.freedom), (b.error, b.freedom));
    student::p_value(difference / error, freedom)
}

/// Returns the standard error of the logarithm of b ÷ a, and its degrees of freedom. The errors of
/// both are taken as independent and add as relative errors in quadrature.
fn relative(a: &Mean, b: &Mean) -> (f64, f64) {
    let relative = |mean: &Mean| mean.error / mean.estimate.value.abs();
    let (of_a, of_b) = (relative(a), relative(b));
    (of_a.hypot(of_b), freedom((of_a, a.freedom), (of_b, b.freedom)))
}

/// Returns how often two equal means have a ratio at least as far from one as these.
fn p_of_ratio(a: &Mean, b: &Mean) -> f64 {
    let (error, freedom) = relative(a, b);
    let difference = (b.estimate.value / a.estimate.value).ln().abs();
    match error {
        _ if difference == 0.0 || !error.is_finite() => 1.0,
        0.0 => 0.0,
        error => student::p_value(difference / error, freedom),
    }
}

/// Returns b ÷ a, with an interval that is as wide for ½ as for 2.
fn ratio(a: &Mean, b: &Mean) -> Option<Estimate> {
    let ratio = stats::ratio(&a.estimate, &b.estimate)?;
    let (error, freedom) = relative(a, b);
    let half = error * t_95(freedom);
    let (low, high) = (ratio.value * (-half).exp(), ratio.value * half.exp());
    if high.is_finite() {
        return Some(Estimate { low, high, ..ratio });
    }
    // One side may have any value, and so may the ratio.
    Some(Estimate::around(ratio.value, ratio.value, ratio.samples, ratio.duration_ns))
}

fn excludes_one(ratio: &Estimate) -> bool {
    ratio.low > 1.0 || ratio.high < 1.0
}

fn t_95(freedom: f64) -> f64 {
    student::two_sided(CONFIDENCE, freedom)
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.key())
    }
}

impl Outcome {
    /// All outcomes, in the order in which they are counted.
    pub const ALL: [Self; 8] = [
        Self::Faster,
        Self::Slower,
        Self::Higher,
        Self::Lower,
        Self::NotEstablished,
        Self::OtherLoad,
        Self::Condemned,
        Self::OnlyInOne,
    ];

    pub const fn is_established(self) -> bool {
        matches!(self, Self::Faster | Self::Slower | Self::Higher | Self::Lower)
    }

    fn of(higher: bool, better: Better) -> Self {
        match (better, higher) {
            (Better::More, true) | (Better::Less, false) => Self::Faster,
            (Better::More, false) | (Better::Less, true) => Self::Slower,
            (Better::Neither, true) => Self::Higher,
            (Better::Neither, false) => Self::Lower,
        }
    }

    /// Returns its word in documents.
    pub const fn key(self) -> &'static str {
        match self {
            Self::NotEstablished => "not-established",
            Self::OtherLoad => "other-load",
            Self::OnlyInOne => "only-in-one",
            Self::Condemned => "condemned",
            _ => self.words(),
        }
    }

    /// Returns the text for a column of a table.
    pub const fn short(self) -> &'static str {
        match self {
            Self::NotEstablished => "not established",
            Self::OtherLoad => "other load",
            Self::Condemned => "condemned",
            Self::OnlyInOne => "on one side",
            _ => self.words(),
        }
    }

    /// Returns the end of a sentence about `b`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NotEstablished => "difference not established",
            Self::OtherLoad => "not comparable: other load",
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
        assert!((mean.high - 10.0 - 3.0 / 2_f64.sqrt()).abs() < 1e-9, "not narrower: {mean:?}");
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
        // ± 63 with one degree of freedom: the interval of a holds all of b's, however far their
        // ratio is from one.
        let a = [5.0, 15.0].map(|value| estimate(value, 0.1));
        let b = [0.19, 0.21].map(|value| estimate(value, 0.001));
        for (a, b) in [(a, b), (b, a)] {
            let compared = compare(&a, &b, Better::More);
            assert_eq!(compared.outcome, Outcome::NotEstablished, "{compared:?}");
        }
    }

    #[test]
    fn a_side_that_may_be_anything_leaves_a_ratio_and_nothing_else() {
        let open = Estimate { high: f64::INFINITY, ..estimate(10.0, 1.0) };
        let compared = compare(&[open], &[estimate(20.0, 0.1)], Better::Less);
        assert_eq!(compared.outcome, Outcome::NotEstablished);
        assert_eq!(compared.ratio.map(|ratio| (ratio.value, ratio.low)), Some((2.0, 0.0)));
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
