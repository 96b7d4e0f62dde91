//! Student's t for any degrees of freedom.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Degrees of freedom assumed for the interval of a single recording or window, which does not
/// record them: it has at most 20 batches, fewer if they correlate.
pub const FREEDOM_OF_ONE: f64 = 9.0;
/// Share of cases in which an interval holds the true value.
pub const CONFIDENCE: f64 = 0.95;

/// Returns how often t is at least `deviate` on either side if there is no difference.
pub fn p_value(deviate: f64, freedom: f64) -> f64 {
    student(freedom).map_or(1.0, |student| 2.0 * student.sf(deviate))
}

/// Returns the point that t does not exceed on either side with this probability.
pub fn two_sided(confidence: f64, freedom: f64) -> f64 {
    student(freedom)
        .map_or(f64::INFINITY, |student| student.inverse_cdf(f64::midpoint(1.0, confidence)))
}

fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}
