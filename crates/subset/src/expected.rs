//! Expected orphans in a sample that takes a share of each table on its own, as SAMPLE of Oracle's
//! Data Pump does: rows whose parents were not taken.

/// Rows of a sample that reference a parent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct References {
    pub rows: u64,
    /// The sum of the squares of the number of rows per parent.
    pub squares: f64,
}

impl References {
    /// Returns references to parents that all have the same number of rows.
    pub fn equal(rows: u64, parents: u64) -> Self {
        Self { rows, squares: (rows as f64).powi(2) / parents.max(1) as f64 }
    }

    /// Returns references from the number of rows of each parent.
    pub fn counted(counts: impl Iterator<Item = u64>) -> Self {
        let add = |sum: Self, rows: u64| Self {
            rows: sum.rows.saturating_add(rows),
            squares: sum.squares + (rows as f64).powi(2),
        };
        counts.fold(Self::default(), add)
    }

    /// Returns the expected number of orphans if a share of parents is taken.
    pub fn orphans(&self, share: f64) -> f64 {
        (1.0 - share) * self.rows as f64
    }

    /// Returns the standard error of the share of orphans. The rows of one parent are orphaned
    /// together, so it falls with the number of parents, and is larger if few parents have most of
    /// the rows.
    pub fn standard_error(&self, share: f64) -> Option<f64> {
        let is_known = self.rows > 0 && (0.0..=1.0).contains(&share);
        is_known.then(|| (share * (1.0 - share) * self.squares).sqrt() / self.rows as f64)
    }
}

/// Returns the share of rows that keep all of their parents, with `keys` parent tables sampled
/// independently.
pub fn intact_share(share: f64, keys: u32) -> f64 {
    share.powi(keys.min(1_000) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_reproduced() {
        // Ten per cent: 101,427 children and 979 parents, of about 9,790.
        let references = References::equal(101_427, 979 * 10);
        assert_eq!(references.orphans(0.1).round() as u64, 91_284);
        let points = 100.0 * references.standard_error(0.1).unwrap();
        assert_eq!(format!("{points:.2}"), "0.30");
    }

    #[test]
    fn a_simulated_sample_scatters_as_is_said() {
        let share = 0.1;
        let rows: Vec<u64> =
            (0..2_000).map(|parent| if parent % 10 == 0 { 91 } else { 1 }).collect();
        let references = References::counted(rows.iter().copied());
        let expected = references.standard_error(share).unwrap();
        let mut state = 1_u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as f64 / u64::MAX as f64
        };
        let squares = (0..400).map(|_| {
            let orphans: u64 = rows.iter().filter(|_| draw() >= share).sum();
            ((orphans as f64 / references.rows as f64 - 0.9) / expected).powi(2)
        });
        let variance = squares.sum::<f64>() / 400.0;
        assert!((0.8..1.25).contains(&variance), "{variance}");
        // Few parents have most of the rows.
        assert!(
            expected
                > 2.0 * References::equal(references.rows, 2_000).standard_error(share).unwrap()
        );
    }

    #[test]
    fn nothing_is_said_of_no_rows() {
        assert_eq!(References::default().standard_error(0.1), None);
        assert_eq!(References::equal(5, 1).standard_error(1.5), None);
        assert!((intact_share(0.1, 2) - 0.01).abs() < 1e-12);
    }
}
