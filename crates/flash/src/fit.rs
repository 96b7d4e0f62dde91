//! Infers the properties of a drive from a measured curve of its write rate over time.

use blockstone_base::hint::Hint;
use blockstone_base::rng::Rng;
use blockstone_base::stats::settled;

use crate::device::Device;
use crate::ftl::{Config, Ftl, Write};
use crate::theory;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    pub from_s: f64,
    pub duration_s: f64,
    pub bytes: f64,
}

/// Properties of a drive inferred from a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Bytes per second before the fall.
    pub fresh_bytes_per_s: f64,
    /// Bytes per second at the end of the curve.
    pub last_bytes_per_s: f64,
    /// Total data written, in visible capacities.
    pub drive_fills: f64,
    /// Whether the rate fell by more than 15 %.
    pub fell: bool,
    /// Data written when the rate fell, in visible capacities.
    pub cliff_drive_fills: Option<f64>,
    /// Over-provisioning, from the position of the fall, for a drive that was full before.
    pub over_provisioning_of_cliff: Option<f64>,
    /// Write amplification, from the depth of the fall.
    pub wa: Option<f64>,
    /// Effective spare, from the write amplification, by the formula of the device's policy.
    pub effective_spare: Option<f64>,
    /// Whether the end of the curve passes SNIA's steady-state test.
    pub is_settled: bool,
    /// Start of the uninterrupted steady state, in visible capacities written.
    pub settled_from_drive_fills: Option<f64>,
    /// Data still to be written until steady state, in visible capacities; zero once reached.
    pub drive_fills_missing: f64,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum FitError {
    #[error("fit: {samples} samples of writes are too few")]
    #[hint("log at least {least}, one a second, as with fio --write_bw_log --log_avg_msec=1000")]
    Few { samples: usize, least: usize },
    #[error("fit: sample {index} is invalid: {bytes} bytes in {duration_s} s")]
    #[hint("{hint}")]
    Sample { index: usize, bytes: f64, duration_s: f64, hint: &'static str },
    #[error("fit: the recording has no writes")]
    #[hint("log writes; reads say nothing about spare capacity")]
    Nothing,
}

const PIECES: usize = 50;

/// Interprets a curve. `device` provides the capacity of the drive and the cost of its operations.
pub fn fit(device: &Device, samples: &[Sample]) -> Result<Fit, FitError> {
    check(samples)?;
    let visible = device.visible_bytes as f64;
    let total: f64 = samples.iter().map(|sample| sample.bytes).sum();
    if total <= 0.0 {
        return Err(FitError::Nothing);
    }
    let rates = by_volume(samples, total);
    let head = PIECES / 16;
    let fresh = blockstone_base::stats::median(&rates[..head.max(3)]);
    let last = rates[PIECES - 5..].iter().sum::<f64>() / 5.0;
    let fell = fresh / last > 1.15;
    let piece_fills = total / visible / PIECES as f64;
    let middle = f64::midpoint(fresh, last);
    let below = rates.iter().position(|&rate| rate < middle).filter(|_| fell);
    let cliff = below.map(|piece| piece as f64 * piece_fills);
    let costs = device.times.costs();
    let b = device.pages_per_erase();
    let wa = fell.then(|| theory::amplification_of_fall(fresh / last, costs, b));
    let alpha = wa.and_then(|wa| theory::alpha_for(device.policy, b, wa));
    // Before anything has been moved a drive is fast and steady, which says nothing yet.
    let is_settled = settled(&rates) && (fell || total / visible > 1.0);
    let settled_pieces = (5..=PIECES).rev().take_while(|&end| settled(&rates[..end])).count();
    let from = is_settled.then(|| PIECES.saturating_sub(4 + settled_pieces) as f64 * piece_fills);
    let drive_fills = total / visible;
    let needed = fills_to_settle(alpha.unwrap_or(1.0 + device.over_provisioning()), b);
    Ok(Fit {
        fresh_bytes_per_s: fresh,
        last_bytes_per_s: last,
        drive_fills,
        fell,
        cliff_drive_fills: cliff,
        over_provisioning_of_cliff: cliff,
        wa,
        effective_spare: alpha.map(|alpha| 1.0 - 1.0 / alpha),
        is_settled,
        settled_from_drive_fills: from,
        drive_fills_missing: if is_settled { 0.0 } else { (needed - drive_fills).max(0.1) },
    })
}

fn check(samples: &[Sample]) -> Result<(), FitError> {
    const LEAST: usize = 25;
    if samples.len() < LEAST {
        return Err(FitError::Few { samples: samples.len(), least: LEAST });
    }
    for (index, &Sample { bytes, duration_s, .. }) in samples.iter().enumerate() {
        let good = duration_s > 0.0 && duration_s.is_finite() && bytes >= 0.0 && bytes.is_finite();
        if !good {
            let hint = "bytes must be zero or more, and timestamps must increase";
            return Err(FitError::Sample { index, bytes, duration_s, hint });
        }
    }
    Ok(())
}

fn by_volume(samples: &[Sample], total: f64) -> Vec<f64> {
    let piece = total / PIECES as f64;
    let mut rates = Vec::new();
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for sample in samples {
        let (mut left, mut left_s) = (sample.bytes, sample.duration_s);
        while bytes + left >= piece && rates.len() < PIECES {
            let taken = piece - bytes;
            let taken_s = left_s * (taken / left).min(1.0);
            rates.push(piece / (seconds + taken_s).max(1e-12));
            (bytes, seconds) = (0.0, 0.0);
            left -= taken;
            left_s -= taken_s;
        }
        bytes += left;
        seconds += left_s;
    }
    // Rounding may leave the last piece a few bytes short.
    if rates.len() < PIECES {
        rates.push(if seconds > 0.0 {
            bytes / seconds
        } else {
            rates.last().copied().unwrap_or(0.0)
        });
    }
    rates.truncate(PIECES);
    rates
}

/// Visible capacities of random overwrites until write amplification stays within 5 % of its final
/// value, measured on a small simulated device.
pub fn fills_to_settle(alpha: f64, pages_per_block: u32) -> f64 {
    const STEP: f64 = 0.05;
    const STEPS: u32 = 160;
    let blocks = 2048;
    let logical = (f64::from(blocks * pages_per_block) / alpha.clamp(1.01, 20.0)) as u32;
    let config = Config::plain(logical, pages_per_block, 1, blocks);
    let Ok(mut ftl) = Ftl::counts(config, &[logical]) else { return 0.0 };
    let mut rng = Rng::new(1, 0);
    if ftl.fill(0..logical, 0).is_err() {
        return 0.0;
    }
    let count = (f64::from(logical) * STEP) as u32;
    let mut curve = Vec::new();
    for _ in 0..STEPS {
        let before = *ftl.totals();
        let page = |_| Write { page: rng.below(u64::from(logical)) as u32, stream: 0 };
        let writes: Vec<Write> = (0..count).map(page).collect();
        if ftl.write_many(&writes).is_err() {
            return 0.0;
        }
        curve.push(ftl.totals().since(&before).amplification().unwrap_or(1.0));
    }
    let tail = &curve[curve.len() / 2..];
    let end = tail.iter().sum::<f64>() / tail.len() as f64;
    let unsettled = curve.iter().rposition(|wa| (wa / end - 1.0).abs() > 0.05);
    unsettled.map_or(0.0, |index| (index + 1) as f64 * STEP)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;
    use crate::simulate::{Plan, simulate};

    /// Returns the curve of a simulated drive as a tool would log it.
    fn curve(drive_fills: f64) -> (Device, Vec<Sample>, f64) {
        let mut device = preset::ALL[0].device();
        device.pace = crate::ftl::Pace::Atomic;
        let plan = Plan::new(device.clone(), "uniform".parse().unwrap());
        let plan = Plan { drive_fills, queue_depth: 256, ..plan };
        let outcome = simulate(&plan, &|_| {}, &mut |_| true).unwrap();
        let mut from = 0;
        let samples = outcome.points.iter().map(|point| {
            let seconds = (point.t_ns - from) as f64 / 1e9;
            let sample = Sample {
                from_s: from as f64 / 1e9,
                duration_s: seconds,
                bytes: point.iops * 4096.0 * seconds,
            };
            from = point.t_ns;
            sample
        });
        (device, samples.collect(), outcome.effective_spare())
    }

    #[test]
    fn spare_and_amplification_are_found_again() {
        let (device, samples, spare) = curve(4.0);
        let fit = fit(&device, &samples).unwrap();
        assert!(fit.fell && fit.is_settled, "{fit:?}");
        assert!((fit.drive_fills - 4.0).abs() < 0.05, "{fit:?}");
        assert!((fit.effective_spare.unwrap() / spare - 1.0).abs() < 0.05, "{fit:?} for {spare}");
        let cliff = fit.over_provisioning_of_cliff.unwrap();
        assert!((cliff - 0.44).abs() < 0.15, "{fit:?}");
        assert!(fit.drive_fills_missing.abs() < 1e-12);
    }

    #[test]
    fn a_drive_that_was_not_preconditioned_is_found_out() {
        let (device, samples, _) = curve(0.3);
        let fit = fit(&device, &samples).unwrap();
        assert!(!fit.is_settled && !fit.fell, "{fit:?}");
        assert!(fit.drive_fills_missing > 0.3, "{fit:?}");
    }

    #[test]
    fn curves_without_sense_are_refused() {
        let device = preset::ALL[0].device();
        let sample = |bytes, duration_s| Sample { from_s: 0.0, duration_s, bytes };
        assert!(fit(&device, &[]).is_err());
        assert!(fit(&device, &[sample(1.0, 1.0); 5]).is_err());
        assert!(matches!(fit(&device, &vec![sample(0.0, 1.0); 50]), Err(FitError::Nothing)));
        for bad in [sample(f64::NAN, 1.0), sample(1.0, 0.0), sample(-1.0, 1.0)] {
            assert!(matches!(fit(&device, &vec![bad; 50]), Err(FitError::Sample { .. })));
        }
    }
}
