//! Write amplification over spare, policy and block size: simulated next to the formula.

use crate::Policy;
use crate::ftl::{BATCH, Config, Ftl, Full, Mapping, Totals, Wear, Write};
use crate::simulate::SimulationError;
use crate::theory;
use crate::workload::{Action, Workload};

/// A point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub over_provisioning: f64,
    pub policy: Policy,
    pub pages_per_block: u32,
    /// Erases that a block may lag behind before its data is moved; `None` without wear levelling.
    pub levelling: Option<u32>,
    /// Free blocks that only collection may use.
    pub reserve_blocks: u32,
    /// Fraction of the blocks that is bad from the beginning.
    pub bad_blocks: f64,
}

/// Results at one point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swept {
    pub setting: Setting,
    /// `exact` or `counts`.
    pub engine: &'static str,
    pub effective_spare: f64,
    pub wa: f64,
    /// Write amplification by formula, if there is one.
    pub wa_analytic: Option<f64>,
    pub wa_error: Option<f64>,
    /// Erases over the whole run: of the block with the fewest, the mean over the blocks, and of
    /// the block with the most.
    pub erases_least: u32,
    pub erases_mean: f64,
    pub erases_most: u32,
    /// Pages moved by wear levelling ÷ all programs, while write amplification was counted.
    pub levelled_share: f64,
}

/// Work of a translation layer at one point.
struct Ran {
    counted: Totals,
    erases_least: u32,
    erases_mean: f64,
    erases_most: u32,
    engine: &'static str,
}

/// Size of the simulated device, and length of the simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub blocks: u32,
    /// Visible capacities that are overwritten before write amplification is counted.
    pub warm_drive_fills: f64,
    /// Visible capacities that are overwritten while it is counted.
    pub counted_drive_fills: f64,
}

impl Extent {
    /// Enough blocks that more would change nothing, run until write amplification is steady.
    pub const AMPLIFICATION: Self =
        Self { blocks: 8192, warm_drive_fills: 5.0, counted_drive_fills: 5.0 };
    /// Runs until blocks have been erased often enough that wear levelling is steady too.
    pub const WEAR: Self = Self { blocks: 2048, warm_drive_fills: 40.0, counted_drive_fills: 60.0 };
}

/// Simulates one point on one die, without time.
pub fn point(
    setting: Setting,
    workload: &Workload,
    seed: u64,
    extent: Extent,
) -> Result<Swept, SimulationError> {
    let over_provisioning = setting.over_provisioning;
    if !(over_provisioning > 0.0 && over_provisioning.is_finite()) {
        let hint = "without spare capacity nothing can be overwritten";
        let (what, value) = ("over-provisioning", over_provisioning);
        return Err(SimulationError::Quantity { what, value, hint });
    }
    let raw = f64::from(extent.blocks) * f64::from(setting.pages_per_block);
    let logical = (raw / (1.0 + over_provisioning)) as u32;
    let plain = Config::plain(logical, setting.pages_per_block, 1, extent.blocks);
    let wear = Wear {
        levelling_spread: setting.levelling,
        bad_blocks: setting.bad_blocks,
        ..Wear::default()
    };
    let (policy, reserve_blocks) = (setting.policy, setting.reserve_blocks);
    let config = Config { policy, reserve_blocks, wear, seed, ..plain };
    config.check()?;
    let alpha = config.effective_alpha();
    let is_uniform = workload.is_exchangeable() && workload.parts.len() == 1;
    let ran = if workload.is_exchangeable() {
        let classes: Vec<u32> = workload.regions(logical).iter().map(|&(_, n)| n).collect();
        let mut ftl = Ftl::counts(config, &classes)?;
        run(&mut ftl, workload, seed, extent)?
    } else {
        let mut ftl = Ftl::exact(config, &|_| {})?;
        run(&mut ftl, workload, seed, extent)?
    };
    let wa = ran.counted.amplification().unwrap_or(1.0);
    let formula = theory::write_amplification(setting.policy, alpha, setting.pages_per_block);
    let wa_analytic = formula.filter(|_| is_uniform);
    Ok(Swept {
        setting,
        engine: ran.engine,
        effective_spare: 1.0 - 1.0 / alpha,
        wa,
        wa_analytic,
        wa_error: wa_analytic.map(|analytic| wa / analytic - 1.0),
        erases_least: ran.erases_least,
        erases_mean: ran.erases_mean,
        erases_most: ran.erases_most,
        levelled_share: ran.counted.levelled_pages as f64 / ran.counted.programs().max(1) as f64,
    })
}

fn run<M: Mapping>(
    ftl: &mut Ftl<M>,
    workload: &Workload,
    seed: u64,
    extent: Extent,
) -> Result<Ran, SimulationError> {
    let logical = ftl.config().logical_pages;
    let writes_only = Workload { reads: 0.0, ..workload.clone() };
    let mut requests = writes_only.requests(logical, seed)?;
    let mut overwrite = |ftl: &mut Ftl<M>, fills: f64| -> Result<(), Full> {
        let goal = ftl.totals().host_pages + (f64::from(logical) * fills) as u64;
        let mut batch = Vec::with_capacity(BATCH);
        while ftl.totals().host_pages < goal {
            batch.clear();
            while batch.len() < BATCH {
                let request = requests.draw();
                let pages = request.page..request.page + request.pages;
                match request.action {
                    Action::Write => batch.extend(pages.map(|page| Write { page, stream: 0 })),
                    // Pages drawn before a trim are written before it.
                    Action::Trim => {
                        ftl.write_many(&batch)?;
                        batch.clear();
                        pages.for_each(|page| ftl.trim(page));
                    }
                    Action::Read => {}
                }
            }
            ftl.write_many(&batch)?;
        }
        Ok(())
    };
    ftl.fill(0..logical, 0)?;
    overwrite(ftl, extent.warm_drive_fills)?;
    let before = *ftl.totals();
    overwrite(ftl, extent.counted_drive_fills)?;
    let erases = || ftl.erase_counts();
    let sum: u64 = erases().map(u64::from).sum();
    let mean = sum as f64 / erases().count().max(1) as f64;
    Ok(Ran {
        counted: ftl.totals().since(&before),
        erases_least: erases().min().unwrap_or(0),
        erases_mean: mean,
        erases_most: erases().max().unwrap_or(0),
        engine: ftl.name(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(over_provisioning: f64) -> Setting {
        Setting {
            over_provisioning,
            policy: Policy::Greedy,
            pages_per_block: 64,
            levelling: None,
            reserve_blocks: 1,
            bad_blocks: 0.0,
        }
    }

    fn brief(setting: Setting, workload: &str) -> Result<Swept, SimulationError> {
        point(setting, &workload.parse().unwrap(), 1, Extent::AMPLIFICATION)
    }

    #[test]
    fn the_more_aggressive_wear_levelling_is_the_more_wear_it_causes() {
        let workload = "hot-cold=5/99".parse().unwrap();
        let extent = Extent { blocks: 512, ..Extent::WEAR };
        let of = |levelling| {
            let setting = Setting { levelling, ..plain(0.44) };
            point(setting, &workload, 1, extent).unwrap()
        };
        let none = of(None);
        assert!(none.levelled_share <= 0.0, "{none:?}");
        let swept = [Some(20), Some(5)].map(of);
        assert!(none.erases_most > 2 * swept[0].erases_most, "{none:?}");
        for pair in swept.windows(2) {
            let spread = |point: &Swept| point.erases_most - point.erases_least;
            assert!(spread(&pair[1]) < spread(&pair[0]), "{pair:#?}");
            assert!(pair[1].wa > pair[0].wa, "{pair:#?}");
            assert!(pair[1].levelled_share > pair[0].levelled_share, "{pair:#?}");
            assert!(pair[1].erases_mean > pair[0].erases_mean, "{pair:#?}");
        }
    }

    #[test]
    fn levelling_moves_the_same_share_of_a_large_device() {
        let workload = "hot-cold=5/99".parse().unwrap();
        let of = |blocks| {
            let setting = Setting { levelling: Some(10), ..plain(0.44) };
            point(setting, &workload, 1, Extent { blocks, ..Extent::WEAR }).unwrap()
        };
        let (small, large) = (of(256), of(1024));
        assert!((small.levelled_share / large.levelled_share - 1.0).abs() < 0.2, "{small:?}");
        assert!((small.wa / large.wa - 1.0).abs() < 0.05, "{small:?} {large:?}");
    }

    #[test]
    fn reserve_and_bad_blocks_take_spare() {
        let of = |setting| brief(setting, "uniform").unwrap();
        let first = of(plain(0.28));
        for worse in [
            Setting { reserve_blocks: 400, ..plain(0.28) },
            Setting { bad_blocks: 0.05, ..plain(0.28) },
        ] {
            let worse = of(worse);
            assert!(worse.wa > first.wa && worse.effective_spare < first.effective_spare);
            assert!(worse.wa_error.unwrap().abs() < 0.01, "{worse:?}");
        }
    }

    #[test]
    fn a_point_stands_beside_its_formula() {
        let setting = plain(0.28);
        let result = brief(setting, "uniform").unwrap();
        assert_eq!(result.engine, "counts");
        assert!(result.wa_error.unwrap().abs() < 0.005, "{result:?}");
        let result = brief(setting, "zipf").unwrap();
        assert_eq!((result.engine, result.wa_analytic), ("exact", None));
        assert!(result.wa > 1.0);
    }

    #[test]
    fn no_spare_is_refused() {
        for over_provisioning in [0.0, -0.1, f64::NAN, 1e-9] {
            assert!(brief(plain(over_provisioning), "uniform").is_err());
        }
    }
}
