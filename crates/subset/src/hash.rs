//! The two hashes: one chooses rows, the other represents the value of a key.

use twox_hash::XxHash3_128;

/// Hashes the value of a key. The probability that two values among a billion collide is 10⁻²¹.
pub fn value(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// A lottery that chooses rows of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lot {
    pub seed: u64,
    /// Rows that draw a lower number are chosen; `None`: all are.
    pub below: Option<u64>,
}

impl Lot {
    /// Creates the lot of a table. Each table has its own, so that rows with the same number are
    /// independent.
    pub fn new(percent: f64, seed: u64, table: &str) -> Self {
        const ALL: f64 = 18_446_744_073_709_551_616.0;
        let below = (percent < 100.0).then_some((percent.max(0.0) / 100.0 * ALL) as u64);
        Self { seed: XxHash3_128::oneshot_with_seed(seed, table.as_bytes()) as u64, below }
    }

    /// Returns the number that a row draws, if its source does not draw.
    pub fn draw(self, identity: &[u8]) -> u64 {
        XxHash3_128::oneshot_with_seed(self.seed, identity) as u64
    }

    pub fn wins(self, drawn: u64) -> bool {
        self.below.is_none_or(|below| drawn < below)
    }
}
