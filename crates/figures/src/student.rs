//! Student's t with any degrees of freedom.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Degrees of freedom behind the interval of a single recording or window, which does not keep
/// them: it has at most 20 batches, fewer where they correlate.
pub const FREEDOM_OF_ONE: f64 = 9.0;
/// How often an interval holds the true value.
pub const CONFIDENCE: f64 = 0.95;

/// How often t is at least `deviate` on either side when there is no difference.
pub fn p_value(deviate: f64, freedom: f64) -> f64 {
    student(freedom).map_or(1.0, |student| 2.0 * student.sf(deviate))
}

/// The point that t exceeds on neither side, this often.
pub fn two_sided(confidence: f64, freedom: f64) -> f64 {
    student(freedom)
        .map_or(f64::INFINITY, |student| student.inverse_cdf(f64::midpoint(1.0, confidence)))
}

fn student(freedom: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, freedom).ok()
}
