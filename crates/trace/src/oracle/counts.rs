//! Counts of lines, and of CPU times that fit a clock tick.

#[derive(Debug, Default)]
pub struct Counts {
    pub lines: u64,
    pub records: u64,
    pub skipped_lines: u64,
    pub cut_lines: u64,
    pub negative_waits: u64,
    pub errors: u64,
    pub commits: u64,
    pub rollbacks: u64,
    pub limited: u64,
    /// Lines that name another file of the same trace.
    pub continued: u64,
}

/// Detects whether CPU times are multiples of a clock tick.
#[derive(Debug, Default)]
pub struct Ticks {
    seen: u64,
    not_of_1_ms: u64,
    not_of_10_ms: u64,
}

impl Ticks {
    /// Ticks are up to 0.02 % short of a millisecond, so larger values are inconclusive.
    const LARGEST: i64 = 500_000;
    /// Fewer values could be multiples by chance.
    const FEWEST: u64 = 3;

    #[inline]
    pub fn note(&mut self, cpu: i64) {
        if cpu <= 0 || cpu > Self::LARGEST {
            return;
        }
        let off = |tick: i64| {
            let rest = (cpu + tick / 2).rem_euclid(tick) - tick / 2;
            u64::from(rest.abs() > 2 + cpu / 5000)
        };
        self.seen += 1;
        self.not_of_1_ms += off(1_000);
        self.not_of_10_ms += off(10_000);
    }

    /// Clock tick in microseconds.
    pub fn us(&self, unit: i64) -> Option<f64> {
        if unit > 1 {
            return Some(unit as f64);
        }
        let fits = |others: u64| self.seen >= Self::FEWEST && others <= self.seen / 100;
        if fits(self.not_of_10_ms) {
            return Some(10_000.0);
        }
        fits(self.not_of_1_ms).then_some(1_000.0)
    }
}
