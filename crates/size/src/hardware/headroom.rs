//! Usable share of a unit for a wanted latency.
//!
//! A measurement of `calibrate` takes precedence. The formula of a queue ([`super::queue`]) is used
//! only if there is no measurement.

use super::HardwareError;
use super::queue::Queue;

/// A measured load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    pub iops: f64,
    pub p99_s: f64,
}

/// The load that a measured curve allows for a wanted latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Headroom {
    /// The largest measured load at which, and below which, p99 stays within the target.
    pub iops: f64,
    pub p99_s: f64,
    /// The largest measured load.
    pub most_iops: f64,
    /// No measured load exceeded the target: the device may do more.
    pub open: bool,
}

impl Headroom {
    /// Returns the share of the largest measured load.
    pub fn utilisation(&self) -> f64 {
        self.iops / self.most_iops
    }
}

/// Returns the largest measured load whose p99, and that of all smaller loads, is at most the
/// target. Nothing is interpolated: between two points, latency may have any shape. `None` if even
/// the smallest load is too slow.
pub fn from_curve(curve: &[CurvePoint], p99_s: f64) -> Result<Option<Headroom>, HardwareError> {
    super::positive("the wanted p99", p99_s)?;
    for point in curve {
        super::positive("a measured load", point.iops)?;
        super::amount("a measured p99", point.p99_s)?;
    }
    let mut curve = curve.to_vec();
    curve.sort_by(|a, b| a.iops.total_cmp(&b.iops).then(b.p99_s.total_cmp(&a.p99_s)));
    let Some(most) = curve.last() else { return Ok(None) };
    let within = curve.iter().take_while(|point| point.p99_s <= p99_s);
    let within: Vec<&CurvePoint> = within.collect();
    Ok(within.last().map(|best| Headroom {
        iops: best.iops,
        p99_s: best.p99_s,
        most_iops: most.iops,
        open: within.len() == curve.len(),
    }))
}

/// The p99 at a load that was not measured, bounded by its measured neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    pub iops: f64,
    /// Lowest p99 of the neighbouring measured loads. `None` below the smallest one.
    pub low_s: Option<f64>,
    pub high_s: f64,
    pub below_iops: Option<f64>,
    pub above_iops: f64,
}

/// Returns the p99 at a load; `None` beyond the largest measured one. Between two points, latency
/// may have any shape, so the answer is the range of both measurements, never a value within it.
pub fn predicted(curve: &[CurvePoint], iops: f64) -> Option<Predicted> {
    let loads = || curve.iter().map(|point| point.iops);
    let above_iops = loads().filter(|load| *load >= iops).reduce(f64::min)?;
    let below_iops = loads().filter(|load| *load <= iops).reduce(f64::max);
    let next = |point: &&CurvePoint| {
        Some(point.iops) == below_iops || Some(point.iops) == Some(above_iops)
    };
    let p99s = || curve.iter().filter(next).map(|point| point.p99_s);
    Some(Predicted {
        iops,
        low_s: below_iops.and_then(|_| p99s().reduce(f64::min)),
        high_s: p99s().reduce(f64::max)?,
        below_iops,
        above_iops,
    })
}

/// A number of disks under a load, by the formula of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queued {
    pub units: u64,
    pub utilisation: f64,
    /// Mean of (wait + service) ÷ service.
    pub mean_response: f64,
    /// p99 of the wait ÷ service.
    pub p99_wait: f64,
}

/// Evaluates `iops` on `units` of `unit_iops`; `None` if they do not carry it.
///
/// All units serve one queue, which is the best case: a request for a busy disk waits for that
/// disk, although others are idle.
pub fn queued(iops: f64, unit_iops: f64, units: u64) -> Option<Queued> {
    let queue = Queue::of_load(units, iops / unit_iops)?;
    Some(Queued {
        units,
        utilisation: iops / unit_iops / units as f64,
        mean_response: queue.mean_response(),
        p99_wait: queue.wait_quantile(0.99)?,
    })
}

/// Returns the mean latency with `in_flight` requests outstanding (Little's law). 1 ÷ IOPS is the
/// latency of a device only if it has one request at a time.
pub fn latency_s(in_flight: f64, iops: f64) -> Option<f64> {
    let latency = in_flight / iops;
    (in_flight >= 0.0 && iops > 0.0 && latency.is_finite()).then_some(latency)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(points: &[(f64, f64)]) -> Vec<CurvePoint> {
        points.iter().map(|&(iops, p99_s)| CurvePoint { iops, p99_s }).collect()
    }

    #[test]
    fn the_largest_measured_load_within_the_target() {
        let curve = points(&[(3000.0, 0.004), (1000.0, 0.001), (4000.0, 0.040), (2000.0, 0.002)]);
        let at = |target| from_curve(&curve, target).unwrap();
        let found = at(0.005).unwrap();
        assert_eq!((found.iops, found.utilisation()), (3000.0, 0.75));
        assert!(!at(0.005).unwrap().open);
        assert!(at(0.040).unwrap().open);
        assert_eq!(at(0.0005), None);
        assert!(from_curve(&curve, f64::NAN).is_err());
        assert_eq!(from_curve(&[], 1.0), Ok(None));
    }

    #[test]
    fn a_load_beyond_one_that_is_too_slow_does_not_count() {
        let curve = points(&[(1000.0, 0.001), (2000.0, 0.009), (3000.0, 0.002)]);
        let found = from_curve(&curve, 0.005).unwrap();
        assert_eq!(found.map(|found| found.iops), Some(1000.0));
        let twice = points(&[(1000.0, 0.001), (1000.0, 0.009)]);
        assert_eq!(from_curve(&twice, 0.005).unwrap(), None, "the same load, once too slow");
    }

    #[test]
    fn the_p99_of_a_load_lies_between_those_of_its_measured_neighbours() {
        let curve = points(&[(3000.0, 0.004), (1000.0, 0.001), (4000.0, 0.040), (2000.0, 0.002)]);
        let at = |iops| predicted(&curve, iops).map(|it| (it.low_s, it.high_s));
        assert_eq!(at(2500.0), Some((Some(0.002), 0.004)));
        assert_eq!(at(3000.0), Some((Some(0.004), 0.004)), "as it was measured");
        assert_eq!(at(500.0), Some((None, 0.001)));
        assert_eq!((at(4000.1), at(f64::NAN)), (None, None));
        let falling = points(&[(1000.0, 0.009), (2000.0, 0.002)]);
        assert_eq!(predicted(&falling, 1500.0).map(|it| it.low_s), Some(Some(0.002)));
    }

    #[test]
    fn eighty_four_disks_carry_the_load_but_not_the_latency() {
        let at = |units| queued(15_000.0, 180.0, units).unwrap();
        assert!(queued(15_000.0, 180.0, 83).is_none());
        assert_eq!(format!("{:.2} {:.1}", at(84).mean_response, at(84).p99_wait), "2.37 6.8");
        assert!(at(93).mean_response < 1.1 && at(93).utilisation < 0.9);
    }
}
