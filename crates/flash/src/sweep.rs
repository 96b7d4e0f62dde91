//! Write amplification over spare, policy and block size: simulated beside the formula.

use crate::Policy;
use crate::ftl::{BATCH, Config, Ftl, Full, Mapping, Write};
use crate::simulate::SimulationError;
use crate::theory;
use crate::workload::{Action, Workload};

/// A point of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Setting {
    pub over_provisioning: f64,
    pub policy: Policy,
    pub pages_per_block: u32,
}

/// What came out there.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct Swept {
    #[serde(flatten)]
    pub setting: Setting,
    /// `exact` or `counts`.
    #[schemars(extend("enum" = ["exact", "counts"]))]
    pub engine: &'static str,
    pub effective_spare: f64,
    pub wa: f64,
    /// By formula, where there is one.
    pub wa_analytic: Option<f64>,
    pub wa_error: Option<f64>,
}

/// Blocks that are simulated: enough that more of them change nothing.
const BLOCKS: u32 = 8192;
/// Visible capacities written before and while it is counted.
const WARM: f64 = 5.0;
const COUNTED: f64 = 5.0;

/// Simulates one point on one die of 8,192 blocks, without time.
pub fn point(setting: Setting, workload: &Workload, seed: u64) -> Result<Swept, SimulationError> {
    let over_provisioning = setting.over_provisioning;
    if !(over_provisioning > 0.0 && over_provisioning.is_finite()) {
        let hint = "without spare capacity nothing can be overwritten";
        let (what, value) = ("over-provisioning", over_provisioning);
        return Err(SimulationError::Quantity { what, value, hint });
    }
    let raw = f64::from(BLOCKS) * f64::from(setting.pages_per_block);
    let logical = (raw / (1.0 + over_provisioning)) as u32;
    let plain = Config::plain(logical, setting.pages_per_block, 1, BLOCKS);
    let config = Config { policy: setting.policy, seed, ..plain };
    config.check()?;
    let alpha = config.effective_alpha();
    let is_uniform = workload.is_exchangeable() && workload.parts.len() == 1;
    let (wa, engine) = if workload.is_exchangeable() {
        let classes: Vec<u32> = workload.regions(logical).iter().map(|&(_, n)| n).collect();
        let mut ftl = Ftl::counts(config, &classes)?;
        (amplification(&mut ftl, workload, seed)?, ftl.name())
    } else {
        let mut ftl = Ftl::exact(config, &|_| {})?;
        (amplification(&mut ftl, workload, seed)?, ftl.name())
    };
    let formula = theory::write_amplification(setting.policy, alpha, setting.pages_per_block);
    let wa_analytic = formula.filter(|_| is_uniform);
    Ok(Swept {
        setting,
        engine,
        effective_spare: 1.0 - 1.0 / alpha,
        wa,
        wa_analytic,
        wa_error: wa_analytic.map(|analytic| wa / analytic - 1.0),
    })
}

fn amplification<M: Mapping>(
    ftl: &mut Ftl<M>,
    workload: &Workload,
    seed: u64,
) -> Result<f64, SimulationError> {
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
                    // What was drawn before a trim is written before it.
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
    let mut run = || {
        ftl.fill(0..logical, 0)?;
        overwrite(ftl, WARM)?;
        let before = *ftl.totals();
        overwrite(ftl, COUNTED)?;
        Ok(ftl.totals().since(&before).amplification().unwrap_or(1.0))
    };
    run().map_err(SimulationError::Full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_stands_beside_its_formula() {
        let setting =
            Setting { over_provisioning: 0.28, policy: Policy::Greedy, pages_per_block: 64 };
        let result = point(setting, &"uniform".parse().unwrap(), 1).unwrap();
        assert_eq!(result.engine, "counts");
        assert!(result.wa_error.unwrap().abs() < 0.005, "{result:?}");
        let result = point(setting, &"zipf".parse().unwrap(), 1).unwrap();
        assert_eq!((result.engine, result.wa_analytic), ("exact", None));
        assert!(result.wa > 1.0);
    }

    #[test]
    fn no_spare_is_refused() {
        for over_provisioning in [0.0, -0.1, f64::NAN, 1e-9] {
            let setting =
                Setting { over_provisioning, policy: Policy::Greedy, pages_per_block: 64 };
            assert!(point(setting, &"uniform".parse().unwrap(), 1).is_err());
        }
    }
}
