//! Counters that never decrease, on top of kernel counters that sometimes do.

use std::collections::BTreeMap;

use crate::{Cell, Row};

/// A cumulative counter that continues where the kernel's wraps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rising {
    last: u64,
    total: u64,
}

impl Rising {
    /// Returns the total at a raw value, which may have wrapped at 32 bits since the last one.
    ///
    /// A drop of more than half the range is a wrap, provided the counter is read at least once per
    /// half range. A smaller drop means that the kernel set the counter back, by a little (idle
    /// time of a processor that wakes) or to zero (a device attached again): nothing is added then,
    /// rather than a guess.
    pub fn at(&mut self, raw: u64) -> u64 {
        const RANGE: u64 = 1 << 32;
        if raw >= self.last {
            self.total = self.total.saturating_add(raw - self.last);
        } else if self.last < RANGE && self.last - raw > RANGE / 2 {
            self.total = self.total.saturating_add(raw + RANGE - self.last);
        }
        self.last = raw;
        self.total
    }
}

/// Appends the rows of objects whose counters are all rising; objects that are gone are forgotten.
pub fn rows<const N: usize>(
    counters: &mut BTreeMap<String, [Rising; N]>,
    seen: BTreeMap<String, [Option<u64>; N]>,
    rows: &mut Vec<Row>,
) where
    [Rising; N]: Default,
{
    counters.retain(|object, _| seen.contains_key(object));
    for (object, raw) in seen {
        let counters = counters.entry(object.clone()).or_default();
        let pairs = counters.iter_mut().zip(raw);
        let cells = pairs.map(|(c, raw)| Cell::from(raw.map(|raw| c.at(raw)))).collect();
        rows.push(Row { object, cells });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrap_at_32_bits_is_continued() {
        let mut counter = Rising::default();
        assert_eq!(counter.at(u64::from(u32::MAX) - 9), u64::from(u32::MAX) - 9);
        assert_eq!(counter.at(10), (1 << 32) + 10);
        assert_eq!(counter.at(u64::from(u32::MAX)), (1 << 33) - 1);
        assert_eq!(counter.at(0), 1 << 33);
    }

    #[test]
    fn a_counter_set_back_adds_nothing_and_rises_from_there() {
        let mut counter = Rising::default();
        assert_eq!(counter.at(5000), 5000);
        assert_eq!(counter.at(4990), 5000);
        assert_eq!(counter.at(5000), 5010);
        assert_eq!(counter.at(0), 5010);
        assert_eq!(counter.at(7), 5017);
    }

    #[test]
    fn a_64_bit_counter_is_never_taken_for_a_32_bit_one() {
        let mut counter = Rising::default();
        assert_eq!(counter.at(1 << 40), 1 << 40);
        assert_eq!(counter.at(3), 1 << 40);
    }
}
