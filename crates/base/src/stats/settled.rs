//! Test whether a device that is written in rounds has reached its steady state.

/// Rounds over which a device must be steady.
pub const SETTLED_ROUNDS: usize = 5;

/// Applies the steady-state test of SNIA's Solid State Storage Performance Test Specification
/// (version 2.0.2, section 2.1.24) to the last five rounds: (a) their range is at most 20 % of
/// their mean, (b) the range of the line fitted through them is at most 10 %.
pub fn settled(rounds: &[f64]) -> bool {
    let Some(rounds) = rounds.len().checked_sub(SETTLED_ROUNDS).map(|from| &rounds[from..]) else {
        return false;
    };
    let mean = rounds.iter().sum::<f64>() / 5.0;
    let range = rounds.iter().fold(f64::MIN, |a, &b| a.max(b))
        - rounds.iter().fold(f64::MAX, |a, &b| a.min(b));
    // Least squares over the rounds −2 … 2, the sum of whose squares is 10.
    let slope = rounds.iter().zip(-2_i32..).map(|(y, x)| f64::from(x) * y).sum::<f64>() / 10.0;
    mean > 0.0 && range <= 0.2 * mean && (4.0 * slope).abs() <= 0.1 * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_rounds_are_settled_within_their_bounds() {
        assert!(settled(&[9.0, 100.0, 101.0, 99.0, 100.0, 100.0]), "only the last five count");
        assert!(!settled(&[100.0; 4]), "five are needed");
        assert!(!settled(&[100.0, 100.0, 85.0, 100.0, 110.0]), "the range is above 20 %");
        assert!(!settled(&[100.0, 103.0, 106.0, 109.0, 112.0]), "a trend above 10 %");
        assert!(!settled(&[0.0; 5]) && !settled(&[f64::NAN; 5]));
    }
}
