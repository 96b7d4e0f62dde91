//! Distributions of waiting and service times.

use crate::rng::Rng;

/// A distribution of durations in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    Constant {
        ns: f64,
    },
    /// Exponential: the gaps of a Poisson process.
    Exponential {
        mean_ns: f64,
    },
    /// Log-normal: the usual shape of storage latency.
    LogNormal {
        median_ns: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
    },
}

impl Distribution {
    /// Returns one draw, in nanoseconds, never negative.
    pub fn sample_ns(&self, rng: &mut Rng) -> f64 {
        match *self {
            Self::Constant { ns } => ns,
            Self::Exponential { mean_ns } => -mean_ns * (1.0 - rng.unit()).ln(),
            Self::LogNormal { median_ns, sigma } => median_ns * (sigma * normal(rng)).exp(),
        }
    }

    pub fn mean_ns(&self) -> f64 {
        match *self {
            Self::Constant { ns } => ns,
            Self::Exponential { mean_ns } => mean_ns,
            Self::LogNormal { median_ns, sigma } => median_ns * (sigma * sigma / 2.0).exp(),
        }
    }
}

/// Returns a standard normal number (Box and Muller 1958).
pub fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.unit()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_means_approach_the_stated_means() {
        let mut rng = Rng::new(3, 0);
        for distribution in [
            Distribution::Constant { ns: 5.0 },
            Distribution::Exponential { mean_ns: 1000.0 },
            Distribution::LogNormal { median_ns: 100.0, sigma: 0.5 },
        ] {
            let n = 200_000;
            let sum: f64 = (0..n).map(|_| distribution.sample_ns(&mut rng)).sum();
            let ratio = sum / f64::from(n) / distribution.mean_ns();
            assert!((ratio - 1.0).abs() < 0.02, "{distribution:?}: {ratio}");
        }
    }
}
