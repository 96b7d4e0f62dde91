//! Answers by arithmetic: when the cliff comes, what is left behind it, how long a device lives.

use crate::device::Device;
use crate::theory;
use crate::workload::{Part, Pattern, Workload};

/// The write cliff of a device under uniform random writes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Cliff {
    /// Raw ÷ visible − 1.
    pub over_provisioning: f64,
    /// The part of the raw capacity that is spare.
    pub spare_factor: f64,
    /// The part of the usable capacity that is spare after reserves.
    pub effective_spare: f64,
    /// Bytes that can be overwritten before anything must be moved.
    pub spare_bytes: u64,
    /// The same in visible capacities.
    pub cliff_drive_fills: f64,
    /// Seconds until then at the given rate.
    pub seconds_to_cliff: f64,
    /// Write amplification behind the cliff.
    pub wa: f64,
    /// Writes of a page a second that the device takes before the cliff.
    pub iops_fresh: f64,
    /// And behind it.
    pub iops_steady: f64,
    /// Writes of a page a second that are asked for.
    pub iops_wanted: f64,
    /// The least over-provisioning at which the wanted rate holds behind the cliff; none when no
    /// spare suffices.
    pub over_provisioning_needed: Option<f64>,
    /// Visible bytes to use of this device for that.
    pub visible_bytes_needed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EstimateError {
    #[error("estimate: {what} is {value}\nhint: {hint}")]
    Quantity { what: &'static str, value: f64, hint: &'static str },
    #[error("estimate: there is no formula for policy {policy}\nhint: simulate it with flash sim")]
    NoFormula { policy: String },
    #[error(transparent)]
    Device(#[from] crate::device::DeviceError),
}

fn positive(what: &'static str, value: f64) -> Result<(), EstimateError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(EstimateError::Quantity { what, value, hint: "it must be a number above zero" })
}

/// Usable ÷ visible pages of the whole device.
fn effective_alpha(device: &Device) -> f64 {
    let block = f64::from(device.page_bytes) * f64::from(device.pages_per_erase());
    let a_die = device.raw_bytes as f64 / block / f64::from(device.dies());
    let held = f64::from(device.reserve_blocks);
    let good = 1.0 - device.wear.bad_blocks - device.fast_blocks;
    (device.raw_bytes as f64 / device.visible_bytes as f64) * (good - held / a_die)
}

/// When the cliff comes at `write_bytes_per_s` of random overwrites, from a device that is full,
/// and what the device does before and behind it.
///
/// # Errors
/// When device or rate are invalid, or the policy has no formula.
pub fn cliff(device: &Device, write_bytes_per_s: f64) -> Result<Cliff, EstimateError> {
    positive("the write rate", write_bytes_per_s)?;
    device.layout(&uniform(), device.scale_for(1 << 20), 1)?;
    let alpha = effective_alpha(device);
    let (b, costs) = (device.pages_per_erase(), device.times.costs());
    let no_formula = || EstimateError::NoFormula { policy: device.policy.to_string() };
    let wa = theory::write_amplification(device.policy, alpha, b).ok_or_else(no_formula)?;
    let rate_at = |wa: f64| theory::sustained_iops(device.dies(), costs, b, wa);
    let iops_wanted = write_bytes_per_s / f64::from(device.page_bytes);
    let spare_bytes = ((alpha - 1.0) * device.visible_bytes as f64) as u64;
    // What share of the raw capacity is never usable stays so when less of it is visible.
    let usable = alpha * device.visible_bytes as f64 / device.raw_bytes as f64;
    let alpha_needed = alpha_for_rate(device, iops_wanted);
    Ok(Cliff {
        over_provisioning: device.over_provisioning(),
        spare_factor: device.spare_factor(),
        effective_spare: 1.0 - 1.0 / alpha,
        spare_bytes,
        cliff_drive_fills: alpha - 1.0,
        seconds_to_cliff: spare_bytes as f64 / write_bytes_per_s,
        wa,
        iops_fresh: f64::from(device.dies()) * 1e9 / costs.program_ns,
        iops_steady: rate_at(wa),
        iops_wanted,
        over_provisioning_needed: alpha_needed.map(|alpha| alpha / usable - 1.0),
        visible_bytes_needed: alpha_needed
            .map(|alpha| (device.raw_bytes as f64 * usable / alpha) as u64),
    })
}

fn uniform() -> Workload {
    let pattern = Pattern::Uniform;
    let part = Part { name: "uniform".to_owned(), pages: 1.0, writes: 1.0, reads: 1.0, pattern };
    Workload { parts: vec![part], reads: 0.0, pages_per_request: 1 }
}

/// The least α that sustains a rate; none when even no amplification would not.
fn alpha_for_rate(device: &Device, iops: f64) -> Option<f64> {
    let (b, costs) = (device.pages_per_erase(), device.times.costs());
    let fall = f64::from(device.dies()) * 1e9 / costs.program_ns / iops;
    let wa = theory::amplification_of_fall(fall, costs, b);
    theory::alpha_for(device.policy, b, wa)
}

/// How long a device lives.
#[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Life {
    /// Years of 365.25 days until the mean block has done its P/E cycles.
    pub years: f64,
    /// What the host can write until then, in bytes.
    pub host_bytes: f64,
    /// Visible capacities that may be written every day for five years.
    pub drive_writes_per_day: f64,
    /// Programs ÷ host pages.
    pub wa: f64,
    /// Erases of the mean block a day.
    pub erases_per_day: f64,
}

/// Years from the write rate of the host, write amplification and P/E cycles.
///
/// # Errors
/// When one of them is not above zero.
pub fn life(
    device: &Device,
    write_bytes_per_s: f64,
    wa: f64,
    endurance: u32,
) -> Result<Life, EstimateError> {
    const DAY: f64 = 86_400.0;
    positive("the write rate", write_bytes_per_s)?;
    positive("the raw capacity", device.raw_bytes as f64)?;
    positive("the visible capacity", device.visible_bytes as f64)?;
    positive("the number of P/E cycles", f64::from(endurance))?;
    if !(wa >= 1.0 && wa.is_finite()) {
        let hint = "each host page is programmed at least once";
        return Err(EstimateError::Quantity { what: "write amplification", value: wa, hint });
    }
    let host_bytes = device.raw_bytes as f64 * f64::from(endurance) / wa;
    Ok(Life {
        years: host_bytes / write_bytes_per_s / DAY / 365.25,
        host_bytes,
        drive_writes_per_day: host_bytes / (5.0 * 365.25) / device.visible_bytes as f64,
        wa,
        erases_per_day: write_bytes_per_s * wa * DAY / device.raw_bytes as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn hours_to_the_cliff_are_spare_over_rate() {
        let device = preset::ALL[0].device();
        let answer = cliff(&device, 50e6).unwrap();
        assert!((answer.seconds_to_cliff * 50e6 / (176.0 * 2_f64.powi(30)) - 1.0).abs() < 0.01);
        assert!((answer.wa / 1.83 - 1.0).abs() < 0.01, "{}", answer.wa);
        assert!((answer.iops_fresh - 64e9 / 1.4e6).abs() < 1.0);
        assert!(answer.iops_steady < answer.iops_fresh / 1.8);
    }

    #[test]
    fn the_spare_that_is_said_to_be_needed_suffices() {
        let device = preset::ALL[0].device();
        let wanted = 120e6;
        let answer = cliff(&device, wanted).unwrap();
        assert!(answer.iops_steady < answer.iops_wanted, "it does not hold as it is");
        let visible_bytes = answer.visible_bytes_needed.unwrap();
        let smaller = Device { visible_bytes, ..device };
        let again = cliff(&smaller, wanted).unwrap();
        assert!((again.iops_steady / again.iops_wanted - 1.0).abs() < 0.01, "{again:?}");
        assert!(
            (smaller.over_provisioning() / answer.over_provisioning_needed.unwrap() - 1.0).abs()
                < 0.01
        );
        assert_eq!(cliff(&smaller, 1e12).unwrap().over_provisioning_needed, None);
    }

    #[test]
    fn years_follow_from_cycles() {
        let device = preset::ALL[0].device();
        let answer = life(&device, 100e6, 2.0, 10_000).unwrap();
        let seconds = 576.0 * 2_f64.powi(30) * 10_000.0 / 200e6;
        assert!((answer.years / (seconds / 31_557_600.0) - 1.0).abs() < 1e-9);
        for (rate, wa, cycles) in [(0.0, 2.0, 1), (f64::NAN, 2.0, 1), (1.0, 0.5, 1), (1.0, 2.0, 0)]
        {
            assert!(life(&device, rate, wa, cycles).is_err());
        }
        assert!(cliff(&device, 0.0).is_err());
        let device = Device { policy: crate::Policy::CostBenefit, ..device };
        assert!(matches!(cliff(&device, 1.0), Err(EstimateError::NoFormula { .. })));
    }
}
