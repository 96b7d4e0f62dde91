//! Flash units under a sustained write load: the write cliff, and years of life.

use blockstone_flash::estimate::{self, Fall};
use blockstone_flash::preset::Preset;
use serde::Serialize;

use super::{Demand, HardwareError, Plan, Unit};

/// Effects of the writes on each of `units`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlashUse {
    /// Write rate of one unit, copies included.
    pub mbps: f64,
    /// Page writes per second before the cliff and behind it, for the class of device: an order of
    /// magnitude, not a data sheet's figure.
    pub fresh_iops: f64,
    pub steady_iops: f64,
    /// The writes can continue at this rate behind the cliff.
    pub sustained: bool,
    /// `None` if the cliff is never reached.
    pub hours_to_cliff: Option<f64>,
    pub write_amplification: f64,
    /// Time until the cells are worn out, by the class of the device.
    pub years: f64,
    /// Time until the endurance of the data sheet is used up.
    pub years_by_data_sheet: Option<f64>,
}

/// Returns the wear of a flash unit; `None` if the unit is not flash, or no writes are known.
pub fn of(
    demand: &Demand,
    unit: &Unit,
    plan: &Plan,
    units: u64,
) -> Result<Option<FlashUse>, HardwareError> {
    const YEAR_S: f64 = 365.25 * 86_400.0;
    let preset = unit.flash.as_deref().and_then(Preset::named);
    let (Some(preset), Some(written)) = (preset, demand.write_bytes_per_s) else {
        return Ok(None);
    };
    super::amount("bytes written a second", written)?;
    let rate = written * plan.redundancy.penalty() / units.max(1) as f64;
    if rate == 0.0 {
        return Ok(None);
    }
    let mut device = preset.device();
    if let Some(gb) = unit.gb {
        super::positive("GB of a unit", gb)?;
        // Keeps the class and its share of spare; the size is that of the unit.
        let scale = gb * 1e9 / device.visible_bytes as f64;
        device.raw_bytes = (device.raw_bytes as f64 * scale) as u64;
        device.visible_bytes = (device.visible_bytes as f64 * scale) as u64;
    }
    let cliff = estimate::cliff(&device, rate)?;
    let life = estimate::life(&device, rate, cliff.wa, preset.endurance)?;
    Ok(Some(FlashUse {
        mbps: rate / 1e6,
        fresh_iops: cliff.iops_fresh,
        steady_iops: cliff.iops_steady,
        sustained: cliff.outcome != Fall::TooSlow && cliff.iops_wanted <= cliff.iops_steady,
        hours_to_cliff: cliff.seconds_to_cliff.map(|seconds| seconds / 3600.0),
        write_amplification: cliff.wa,
        years: life.years,
        years_by_data_sheet: unit.endurance_tb.map(|tb| tb * 1e12 / rate / YEAR_S),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Unit {
        let flash = Some("tlc".to_owned());
        Unit { gb: Some(960.0), flash, endurance_tb: Some(1752.0), ..Unit::default() }
    }

    fn used(mbps: f64, units: u64) -> FlashUse {
        let demand = Demand { write_bytes_per_s: Some(mbps * 1e6), ..Demand::default() };
        of(&demand, &unit(), &Plan::default(), units).unwrap().unwrap()
    }

    #[test]
    fn life_is_as_long_as_writes_are_few() {
        let one = used(20.0, 1);
        assert!((one.years_by_data_sheet.unwrap() - 1752e12 / 20e6 / 31_557_600.0).abs() < 1e-9);
        let two = used(20.0, 2);
        assert!((two.years / one.years - 2.0).abs() < 1e-6);
        assert!(two.hours_to_cliff > one.hours_to_cliff);
        assert!(one.sustained && one.write_amplification > 1.0);
        assert!(!used(2000.0, 1).sustained);
    }

    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        let disk = Unit { flash: None, ..unit() };
        let demand = Demand { write_bytes_per_s: Some(1e6), ..Demand::default() };
        assert_eq!(of(&demand, &disk, &Plan::default(), 1), Ok(None));
        assert_eq!(of(&Demand::default(), &unit(), &Plan::default(), 1), Ok(None));
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            let demand = Demand { write_bytes_per_s: Some(bad), ..Demand::default() };
            assert!(of(&demand, &unit(), &Plan::default(), 0).is_err());
            let wrong = Unit { gb: Some(bad), ..unit() };
            let demand = Demand { write_bytes_per_s: Some(1e6), ..Demand::default() };
            assert!(of(&demand, &wrong, &Plan::default(), 1).is_err());
        }
    }
}
