//! Analytic answers: when the cliff comes, what performance remains after it, how long a device
//! lives.

use blockstone_base::hint::Hint;

use crate::cliff;
use crate::device::Device;
use crate::theory;
use crate::workload::{Pattern, Workload, WorkloadPart};

/// Whether there is a [cliff](crate::cliff).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fall {
    /// Background collection keeps up with the writes.
    Never,
    /// Background collection keeps up by the formula, which assumes that all dies are alike, but
    /// not with as many free blocks as it should: how long single dies have none is not known.
    Unsure,
    /// There is so much spare that writes hardly wait for collection.
    Slight,
    /// Writes wait for collection once the spare is used up.
    At,
    /// The device cannot sustain the rate even before the cliff.
    TooSlow,
}

/// The write cliff of a device under uniform random writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cliff {
    pub outcome: Fall,
    /// Raw ÷ visible − 1.
    pub over_provisioning: f64,
    /// Fraction of the raw capacity that is spare.
    pub spare_factor: f64,
    /// Fraction of the usable capacity that is spare after reserves.
    pub effective_spare: f64,
    /// Bytes that can be overwritten before anything has to be moved.
    pub spare_bytes: u64,
    /// Data written until the cliff, in visible capacities; `None` if it never comes.
    pub cliff_drive_fills: Option<f64>,
    /// Seconds until the cliff at the given rate, or at the device's maximum rate if that is lower.
    pub seconds_to_cliff: Option<f64>,
    /// Write amplification after the cliff; if there is none, in the long run.
    pub wa: f64,
    /// Page writes per second that the device sustains before the cliff.
    pub iops_fresh: f64,
    /// Page writes per second that the device sustains after the cliff.
    pub iops_steady: f64,
    /// Page writes per second requested.
    pub iops_wanted: f64,
    /// Smallest over-provisioning at which the requested rate holds after the cliff; `None` if no
    /// amount of spare suffices.
    pub over_provisioning_needed: Option<f64>,
    /// Visible bytes of this device to use in order to reach that over-provisioning.
    pub visible_bytes_needed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error, Hint)]
pub enum EstimateError {
    #[error("estimate: {what} is {value}")]
    #[hint("{hint}")]
    Quantity { what: &'static str, value: f64, hint: &'static str },
    #[error("estimate: there is no formula for policy {policy}")]
    #[hint("simulate it with flash sim")]
    NoFormula { policy: String },
    #[error(transparent)]
    #[hint(transparent)]
    Device(#[from] crate::device::DeviceError),
}

fn positive(what: &'static str, value: f64) -> Result<(), EstimateError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(EstimateError::Quantity { what, value, hint: "it must be a number above zero" })
}

/// Usable ÷ visible pages of the whole device while this share of its blocks is kept free.
fn effective_alpha(device: &Device, free: f64) -> f64 {
    let good = 1.0 - device.wear.bad_blocks - device.fast_blocks;
    (device.raw_bytes as f64 / device.visible_bytes as f64) * (good - free)
}

/// Share of the blocks that foreground collection keeps free.
fn reserved(device: &Device) -> f64 {
    let block = f64::from(device.page_bytes) * f64::from(device.pages_per_erase());
    let a_die = device.raw_bytes as f64 / block / f64::from(device.dies());
    f64::from(device.reserve_blocks) / a_die
}

/// Estimates when the cliff comes for a full device at `write_bytes_per_s` of random overwrites,
/// and what the device sustains before and after it.
pub fn cliff(device: &Device, write_bytes_per_s: f64) -> Result<Cliff, EstimateError> {
    positive("the write rate", write_bytes_per_s)?;
    let on_demand = Device { background: 0.0, ..device.clone() };
    on_demand.layout(&uniform(), device.scale_for(1 << 20), 1)?;
    let alpha = effective_alpha(device, reserved(device));
    let effective_spare = 1.0 - 1.0 / alpha;
    if device.background >= effective_spare {
        let (wanted, spare) = (device.background * 100.0, effective_spare * 100.0);
        return Err(crate::device::DeviceError::Background { wanted, spare }.into());
    }
    let (b, costs) = (device.pages_per_erase(), device.times.costs());
    let no_formula = || EstimateError::NoFormula { policy: device.policy.to_string() };
    let wa_at = |free| {
        let alpha = effective_alpha(device, free);
        theory::write_amplification(device.policy, alpha, b).ok_or_else(no_formula)
    };
    let wa = wa_at(reserved(device))?;
    let in_background = wa_at(device.background.max(reserved(device)))?;
    let taken = |iops: f64| iops.min(channel_iops(device));
    let iops_fresh = taken(f64::from(device.dies()) * 1e9 / costs.program_ns);
    let iops_wanted = write_bytes_per_s / f64::from(device.page_bytes);
    let drain = Drain::of(device, iops_wanted);
    let cliff_drive_fills = if let Some(drain) = &drain {
        drain.drive_fills(&wa_at)?
    } else {
        let spare = alpha - 1.0;
        let wait_ns = collection_ns(&costs, b, wa.max(first_pass(spare)));
        (wait_ns > cliff::slight_ns(&costs)).then_some(spare)
    };
    let outcome = match cliff_drive_fills {
        _ if iops_wanted > iops_fresh => Fall::TooSlow,
        Some(_) => Fall::At,
        None => match &drain {
            None => Fall::Slight,
            Some(drain) if drain.keeps_share(in_background) => Fall::Never,
            Some(_) => Fall::Unsure,
        },
    };
    let fills_per_s =
        iops_wanted.min(iops_fresh) * f64::from(device.page_bytes) / device.visible_bytes as f64;
    // The share of the raw capacity that is never usable stays the same when less is visible.
    let usable = alpha * device.visible_bytes as f64 / device.raw_bytes as f64;
    let alpha_needed = alpha_for_rate(device, iops_wanted);
    Ok(Cliff {
        outcome,
        over_provisioning: device.over_provisioning(),
        spare_factor: device.spare_factor(),
        effective_spare,
        spare_bytes: ((alpha - 1.0) * device.visible_bytes as f64) as u64,
        cliff_drive_fills,
        seconds_to_cliff: cliff_drive_fills.map(|fills| fills / fills_per_s),
        wa: if outcome == Fall::Never { in_background } else { wa },
        iops_fresh,
        iops_steady: taken(theory::sustained_iops(device.dies(), costs, b, wa)),
        iops_wanted,
        over_provisioning_needed: alpha_needed.map(|alpha| alpha / usable - 1.0),
        visible_bytes_needed: alpha_needed
            .map(|alpha| (device.raw_bytes as f64 * usable / alpha) as u64),
    })
}

/// Time of a die that collection takes for each page of the host.
fn collection_ns(costs: &theory::Costs, pages_per_block: u32, wa: f64) -> f64 {
    let moves_ns = (wa - 1.0) * (costs.program_ns + costs.read_ns);
    moves_ns + wa * costs.erase_ns / f64::from(pages_per_block)
}

/// Write amplification of a first pass over blocks filled in order, after this many drive fills of
/// random overwrites: the part e^(−x) of their pages is valid.
fn first_pass(drive_fills: f64) -> f64 {
    1.0 / -(-drive_fills).exp_m1()
}

/// Pages per second that the channels can transfer.
fn channel_iops(device: &Device) -> f64 {
    f64::from(device.channels) * 1e9 / device.times.transfer_ns as f64
}

/// How a device with background collection uses up its free blocks.
///
/// A write takes a page. In the time until the next write on the same die, less the program time
/// and the idle time a die needs before it collects, background collection gains pages; each costs
/// (A − 1) moves and A ÷ b erases. It starts when less than its share of the blocks is free. A is
/// that of the steady state with the same number of free blocks, but no less than that of a first
/// pass. Writes wait for what is not gained once only the reserve is free.
struct Drain<'a> {
    device: &'a Device,
    /// Die time per host page, and the part of it in which collection can work.
    a_page_ns: f64,
    idle_ns: f64,
}

impl<'a> Drain<'a> {
    /// Drive fills per step, and the maximum.
    const STEP: f64 = 1e-3;
    const MOST: f64 = 1000.0;
    /// Number of free shares at which write amplification is computed; it is interpolated between
    /// them.
    const KNOTS: usize = 64;

    /// Returns `None` without background collection.
    fn of(device: &'a Device, iops: f64) -> Option<Self> {
        let a_page_ns = f64::from(device.dies()) * 1e9 / iops;
        let costs = device.times.costs();
        let idle_ns = a_page_ns - costs.program_ns - device.idle_ns as f64;
        // A move is never interrupted: the next write arrives, on average, halfway through one.
        let more_ns = f64::midpoint(costs.program_ns, costs.read_ns);
        let idle_ns = if idle_ns > 0.0 { idle_ns + more_ns } else { 0.0 };
        let background = device.background > reserved(device);
        background.then_some(Self { device, a_page_ns, idle_ns })
    }

    /// Whether dies have the time to keep as many blocks free as they should.
    fn keeps_share(&self, wa: f64) -> bool {
        let (costs, b) = (self.device.times.costs(), self.device.pages_per_erase());
        costs.program_ns + collection_ns(&costs, b, wa) <= self.a_page_ns
    }

    /// Pages gained per host page at a given write amplification.
    fn gained(&self, wa: f64) -> f64 {
        self.idle_ns / collection_ns(&self.device.times.costs(), self.device.pages_per_erase(), wa)
    }

    /// Drive fills until only the reserve is free and writes wait; `None` if that never happens.
    fn drive_fills<E>(&self, wa_at: &dyn Fn(f64) -> Result<f64, E>) -> Result<Option<f64>, E> {
        let (wanted, least) = (self.device.background, reserved(self.device));
        let knot = |index: usize| least + (wanted - least) * index as f64 / Self::KNOTS as f64;
        let knots =
            (0..=Self::KNOTS).map(|index| wa_at(knot(index))).collect::<Result<Vec<_>, _>>()?;
        let settled = |free: f64| {
            let at = (free - least) / (wanted - least) * Self::KNOTS as f64;
            let index = (at as usize).min(Self::KNOTS - 1);
            knots[index] + (knots[index + 1] - knots[index]) * (at - index as f64)
        };
        let (costs, b) = (self.device.times.costs(), self.device.pages_per_erase());
        let visible = self.device.visible_bytes as f64 / self.device.raw_bytes as f64;
        let mut free = 1.0 - self.device.wear.bad_blocks - self.device.fast_blocks - visible;
        let mut fills = 0.0;
        while fills < Self::MOST {
            fills += Self::STEP;
            free -= Self::STEP * visible;
            if free < wanted {
                let wa = settled(free.max(least)).max(first_pass(fills));
                let gained = self.gained(wa);
                free = (free + gained * Self::STEP * visible).min(wanted);
                if free <= least {
                    let wait_ns = (1.0 - gained) * collection_ns(&costs, b, wa);
                    if wait_ns > cliff::slight_ns(&costs) {
                        return Ok(Some(fills));
                    }
                    free = least;
                }
            }
        }
        Ok(None)
    }
}

fn uniform() -> Workload {
    let pattern = Pattern::Uniform;
    let part =
        WorkloadPart { name: "uniform".to_owned(), pages: 1.0, writes: 1.0, reads: 1.0, pattern };
    Workload { parts: vec![part], reads: 0.0, pages_per_request: 1 }
}

/// Smallest α that sustains a rate; `None` if the rate is out of reach even without amplification.
fn alpha_for_rate(device: &Device, iops: f64) -> Option<f64> {
    let (b, costs) = (device.pages_per_erase(), device.times.costs());
    let fall = f64::from(device.dies()) * 1e9 / costs.program_ns / iops;
    let wa = theory::amplification_of_fall(fall, costs, b);
    theory::alpha_for(device.policy, b, wa)
}

/// Expected lifetime of a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// Years of 365.25 days until the average block has used up its P/E cycles.
    pub years: f64,
    /// Bytes that the host can write until then.
    pub host_bytes: f64,
    /// Visible capacities that can be written every day for five years.
    pub drive_writes_per_day: f64,
    /// Programs ÷ host pages.
    pub wa: f64,
    /// Erases per day of the average block.
    pub erases_per_day: f64,
}

/// Computes the lifetime from the host's write rate, write amplification and P/E cycles.
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
        let bytes = answer.seconds_to_cliff.unwrap() * 50e6;
        assert!((bytes / (176.0 * 2_f64.powi(30)) - 1.0).abs() < 0.01);
        assert_eq!(answer.outcome, Fall::At);
        assert!((answer.wa / 1.83 - 1.0).abs() < 0.01, "{}", answer.wa);
        assert!((answer.iops_fresh - 64e9 / 1.4e6).abs() < 1.0);
        assert!(answer.iops_steady < answer.iops_fresh / 1.8);
    }

    #[test]
    fn there_is_no_cliff_where_writes_hardly_wait_and_none_is_promised_where_dies_lack_time() {
        let device = preset::ALL[0].device();
        let spare = |visible: u64| Device { visible_bytes: visible << 30, ..device.clone() };
        let of = |device: &Device, iops: f64| cliff(device, iops * 4096.0).unwrap();
        assert_eq!(of(&spare(400), 12_000.0).outcome, Fall::At);
        let slight = of(&spare(150), 12_000.0);
        assert_eq!((slight.outcome, slight.cliff_drive_fills), (Fall::Slight, None));
        assert!(slight.wa < 1.05);
        let background = Device { background: 0.1, ..device };
        let outcomes = [12_000.0, 18_000.0, 20_000.0, 22_000.0, 50_000.0]
            .map(|iops| of(&background, iops).outcome);
        let (never, at) = (Fall::Never, Fall::At);
        assert_eq!(outcomes, [never, never, Fall::Unsure, at, Fall::TooSlow]);
    }

    #[test]
    fn background_collection_that_keeps_up_averts_the_cliff() {
        let device = Device { background: 0.3, ..preset::ALL[0].device() };
        let at = |device: &Device, rate: f64| cliff(device, rate).unwrap();
        let slow = at(&device, 1e6);
        assert_eq!((slow.outcome, slow.seconds_to_cliff), (Fall::Never, None));
        assert!(slow.wa > 40.0, "nearly all spare is kept free: {}", slow.wa);
        let fast = at(&device, 100e6);
        assert_eq!(fast.outcome, Fall::At);
        let on_demand = at(&Device { background: 0.0, ..device.clone() }, 100e6);
        assert!(fast.seconds_to_cliff > on_demand.seconds_to_cliff, "it comes later");
        let impatient = Device { idle_ns: 1_000_000_000, ..device.clone() };
        assert_eq!(at(&impatient, 1e6).outcome, Fall::At, "dies are never idle for so long");
        assert!(cliff(&Device { background: 0.31, ..device }, 1e6).is_err(), "no spare is left");
    }

    #[test]
    fn a_rate_that_the_fresh_device_does_not_take_is_too_slow() {
        let device = preset::ALL[0].device();
        let answer = cliff(&device, 200e6).unwrap();
        assert_eq!(answer.outcome, Fall::TooSlow);
        let least = answer.spare_bytes as f64 / (answer.iops_fresh * 4096.0);
        let seconds = answer.seconds_to_cliff.unwrap();
        assert!((seconds / least - 1.0).abs() < 1e-6, "not before it can be written: {seconds}");
        let mut slow = device.clone();
        slow.times.transfer_ns = 1_000_000;
        let answer = cliff(&slow, 50e6).unwrap();
        assert_eq!((answer.outcome, answer.iops_fresh), (Fall::TooSlow, 8000.0), "channels");
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
