//! Prices. None of these figures is printed without the date of its price.

use serde::Serialize;

use super::{Answer, Unit};

/// Price of the units of an answer, by the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    pub usd: Option<f64>,
    pub usd_per_month: Option<f64>,
    /// Price of one unit per GB.
    pub usd_per_gb: Option<f64>,
    pub usd_per_iops: Option<f64>,
    /// Price of a GB after 1, 2 and 4 years, if the time in which it halves is stated.
    pub later: [Option<f64>; 3],
    /// Date of the price; empty if it was stated without one.
    pub as_of: String,
}

/// Returns the price; `None` if the catalogue has none.
pub fn price(answer: &Answer, unit: &Unit) -> Option<Price> {
    if unit.usd.is_none() && unit.usd_per_month.is_none() {
        return None;
    }
    let units = answer.units as f64;
    let of_mix = answer.ceilings.iter().find(|it| it.name == "IOPS").map(|it| it.unit_capacity);
    let iops = unit.iops.or(of_mix).or(unit.read_iops);
    let usd_per_gb = unit.usd.and_then(|usd| per(usd, unit.gb?));
    let later = |years: f64| Some(usd_per_gb? * 0.5_f64.powf(years / unit.halves_years?));
    Some(Price {
        usd: unit.usd.map(|usd| usd * units),
        usd_per_month: unit.usd_per_month.map(|usd| usd * units),
        usd_per_gb,
        usd_per_iops: unit.usd.and_then(|usd| per(usd, iops?)),
        later: [1.0, 2.0, 4.0].map(later),
        as_of: unit.dated.clone(),
    })
}

/// Returns $/GB or $/IOPS; `None` if the amount is zero.
pub fn per(usd: f64, amount: f64) -> Option<f64> {
    let ratio = usd / amount;
    (amount > 0.0 && ratio.is_finite()).then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::{Demand, Plan, answer};

    #[test]
    fn a_price_has_its_day_and_no_price_none() {
        let unit = Unit {
            iops: Some(180.0),
            gb: Some(600.0),
            usd: Some(360.0),
            halves_years: Some(1.0),
            dated: "2026-01".to_owned(),
            ..Unit::default()
        };
        let demand =
            Demand { reads_per_s: Some(1800.0), writes_per_s: Some(0.0), ..Demand::default() };
        let answer = answer(&demand, &unit, &Plan::default()).unwrap();
        let priced = price(&answer, &unit).unwrap();
        assert_eq!((priced.usd, priced.usd_per_gb), (Some(3600.0), Some(0.6)));
        assert_eq!((priced.usd_per_iops, priced.as_of.as_str()), (Some(2.0), "2026-01"));
        assert_eq!(priced.later[2], Some(0.6 / 16.0));
        assert_eq!(price(&answer, &Unit { usd: None, ..unit }), None);
        assert_eq!(per(1.0, 0.0), None);
        assert_eq!(per(1.0, f64::NAN), None);
    }
}
