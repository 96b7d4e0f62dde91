//! Distribution of the numbers behind a row, coarse enough for a page to hold one for each slice of
//! time: quantiles of slices cannot be merged, bucket counts can.

use std::collections::BTreeMap;

use crate::histogram::least_samples;

/// Buckets per octave: none is wider than a sixteenth of its lower end.
const PER_OCTAVE: u64 = 16;
const BITS: u32 = PER_OCTAVE.ilog2();

/// Count of numbers in each bucket. Numbers below 32 have a bucket each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    counts: BTreeMap<u16, u64>,
    greatest: u64,
}

impl Spread {
    pub fn add(&mut self, number: u64, count: u64) {
        *self.counts.entry(bucket(number)).or_default() += count;
        self.greatest = self.greatest.max(number);
    }

    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
        self.greatest = self.greatest.max(other.greatest);
    }

    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    pub fn greatest(&self) -> u64 {
        self.greatest
    }

    /// Returns occupied buckets with their counts, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.counts.iter().map(|(bucket, count)| (*bucket, *count))
    }

    /// Returns the number below which this share of them lies, as if the numbers in a bucket were
    /// spread evenly over it. `None` if there are too few to bound it ([`least_samples`]).
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count() < least_samples(share).max(1) {
            return None;
        }
        let rank = (self.count() as f64 * share).ceil().max(1.0);
        let mut below = 0.0;
        for (bucket, count) in self.buckets() {
            let count = count as f64;
            if below + count >= rank {
                let (low, high) = (lower(bucket), lower(bucket + 1));
                let number = high - (high - low) * (below + count - rank) / count;
                return Some(number.min(self.greatest as f64));
            }
            below += count;
        }
        None
    }
}

impl FromIterator<(u64, u64)> for Spread {
    fn from_iter<T: IntoIterator<Item = (u64, u64)>>(counted: T) -> Self {
        let mut spread = Self::default();
        for (number, count) in counted {
            spread.add(number, count);
        }
        spread
    }
}

fn bucket(number: u64) -> u16 {
    let shift = number.checked_ilog2().unwrap_or(0).saturating_sub(BITS);
    // At most 60 octaves of 16 buckets.
    (u64::from(shift) * PER_OCTAVE + (number >> shift)) as u16
}

fn lower(bucket: u16) -> f64 {
    let bucket = u64::from(bucket);
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    (bucket - octave * PER_OCTAVE) as f64 * (octave as f64).exp2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_lies_in_its_bucket_which_is_narrow(number in 0_u64..1 << 50) {
            let (low, high) = (lower(bucket(number)), lower(bucket(number) + 1));
            prop_assert!(low <= number as f64 && (number as f64) < high);
            prop_assert!(high - low <= (low / PER_OCTAVE as f64).max(1.0));
        }

        #[test]
        fn a_quantile_is_off_by_a_bucket_at_most_however_it_was_merged(
            numbers in proptest::collection::vec(1_u64..1 << 40, 1..300),
            at in 0_usize..300,
            share in 0.01_f64..0.999,
        ) {
            let (one, other) = numbers.split_at(at.min(numbers.len()));
            let spread = |part: &[u64]| part.iter().map(|number| (*number, 1)).collect::<Spread>();
            let mut merged = spread(one);
            merged.merge(&spread(other));
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            let rank = (numbers.len() as f64 * share).ceil().max(1.0) as usize;
            let exact = sorted[rank - 1] as f64;
            match merged.quantile(share) {
                Some(found) => {
                    let off = (found - exact).abs();
                    prop_assert!(off <= (exact / 16.0).max(1.0), "{found} {exact}");
                }
                None => prop_assert!((numbers.len() as u64) < least_samples(share)),
            }
        }
    }

    #[test]
    fn what_so_few_cannot_bound_is_none() {
        let of = |count| [(1_000, count)].into_iter().collect::<Spread>();
        for (share, least) in [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3_688)] {
            assert!(of(least).quantile(share).is_some(), "{share}");
            assert_eq!(of(least - 1).quantile(share), None);
        }
        assert_eq!(Spread::default().quantile(0.5), None);
    }
}
