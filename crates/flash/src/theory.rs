//! Formulas for write amplification, the reference for every simulation. α is raw ÷ visible
//! capacity (1 + over-provisioning), b the pages per block.
//!
//! Sources: Desnoyers, "Analytic models of SSD write performance", ACM TOS 10(2), 2014 (FIFO,
//! greedy); Xiang and Kurkoski, "An improved analytical expression for write amplification in NAND
//! flash", ICNC 2012 (FIFO); Van Houdt, "A mean field model for a class of garbage collection
//! algorithms in flash-based solid state drives", SIGMETRICS 2013 (d choices, random) and
//! "Performance of garbage collection algorithms for flash-based solid state drives with hot/cold
//! data", 2013.

use crate::policy::Policy;

/// A class of pages that are written equally often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// Share of the logical pages, 0 to 1.
    pub pages: f64,
    /// Share of the writes, 0 to 1.
    pub writes: f64,
}

/// Write amplification under uniform random writes; `None` without a formula or without spare
/// (`alpha` ≤ 1).
pub fn write_amplification(policy: Policy, alpha: f64, pages_per_block: u32) -> Option<f64> {
    if !(alpha > 1.0 && alpha.is_finite()) || pages_per_block == 0 {
        return None;
    }
    match policy {
        Policy::Fifo => Some(fifo(alpha)),
        Policy::Random => Some(random(alpha)),
        Policy::Greedy => Some(greedy(alpha, pages_per_block)),
        Policy::Choices(d) => Some(choices(alpha, pages_per_block, d)),
        Policy::CostBenefit => None,
    }
}

/// FIFO and LRU: `A = 1 / (1 − e^(−α/A))`.
pub fn fifo(alpha: f64) -> f64 {
    mixed_fifo(&[Class { pages: 1.0, writes: 1.0 }], alpha)
}

/// A block chosen at random: `A = 1 / (1 − ρ)`.
pub fn random(alpha: f64) -> f64 {
    alpha / (alpha - 1.0)
}

/// Greedy, the exact mean field: find integer j and 0 ≤ q < 1 with
/// `b − j + q = bρ(H_b − H_j + q/j)`; then `A = b / (b − j + q)`.
pub fn greedy(alpha: f64, pages_per_block: u32) -> f64 {
    let b = f64::from(pages_per_block);
    let mean_valid = b / alpha;
    let mut harmonic = 0.0;
    // From j = b downwards, H_b − H_j grows by 1/(j + 1) per step.
    for j in (1..=pages_per_block).rev() {
        let whole = f64::from(j);
        let q = (b - whole - mean_valid * harmonic) / (mean_valid / whole - 1.0);
        if (0.0..1.0).contains(&q) && b - whole + q > 0.0 {
            return b / (b - whole + q);
        }
        harmonic += 1.0 / whole;
    }
    // On average, less than one page of a block is valid.
    1.0
}

/// The emptiest of `d` blocks chosen at random is collected:
/// `((b − v)/(bρ))·i·(G_i − G_(i+1)) = 1 − G_i^d` with `G_(b+1) = 0`, v such that `ΣG_i = bρ`, and
/// `A = b / (b − v)`.
pub fn choices(alpha: f64, pages_per_block: u32, d: u32) -> f64 {
    let b = f64::from(pages_per_block);
    let mean_valid = b / alpha;
    let occupied = |v: f64| -> f64 {
        let factor = (b - v) / mean_valid;
        let mut next = 0.0;
        let mut sum = 0.0;
        for i in (1..=pages_per_block).rev() {
            let slope = factor * f64::from(i);
            let above = next;
            // Left minus right grows with G, so bisection finds the root.
            next = bisect(above, 1.0, |g| slope * (g - above) - 1.0 + g.powi(d as i32));
            sum += next;
        }
        sum
    };
    let v = bisect(0.0, b * (1.0 - 1e-12), |v| occupied(v) - mean_valid);
    b / (b - v)
}

/// Classes of unequal heat mixed in the same blocks, FIFO:
/// `A = Σ r_i / (1 − exp(−(r_i/f_i)·α/A))`.
pub fn mixed_fifo(classes: &[Class], alpha: f64) -> f64 {
    bisect(1.0, 1e9, |a| {
        let written = classes.iter().filter(|class| class.writes > 0.0);
        let copies = |c: &Class| c.writes / -(-(c.writes / c.pages) * alpha / a).exp_m1();
        a - written.map(copies).sum::<f64>()
    })
}

/// The α at which `policy` has the wanted write amplification; `None` if the policy has no formula
/// or the write amplification is not above one.
pub fn alpha_for(policy: Policy, pages_per_block: u32, wanted: f64) -> Option<f64> {
    if !(wanted > 1.0 && wanted.is_finite()) {
        return None;
    }
    write_amplification(policy, 2.0, pages_per_block)?;
    let at = |alpha: f64| write_amplification(policy, alpha, pages_per_block).unwrap_or(1.0);
    Some(bisect(1.0 + 1e-6, 1e3, |alpha| wanted - at(alpha)))
}

/// Costs of operations for the dies, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Program of a page, mean over the page types.
    pub program_ns: f64,
    /// Read of a page within a die.
    pub read_ns: f64,
    pub erase_ns: f64,
}

/// Host writes per second that `dies` sustain:
/// `D / (A·t_prog + (A−1)·t_read + t_erase·A/b)`.
pub fn sustained_iops(dies: u32, costs: Costs, pages_per_block: u32, amplification: f64) -> f64 {
    let busy_ns = amplification * costs.program_ns
        + (amplification - 1.0) * costs.read_ns
        + costs.erase_ns * amplification / f64::from(pages_per_block);
    f64::from(dies) * 1e9 / busy_ns
}

/// Write amplification from how far a device fell below `D / t_prog`: [`sustained_iops`] inverted.
pub fn amplification_of_fall(fresh_over_steady: f64, costs: Costs, pages_per_block: u32) -> f64 {
    let erase = costs.erase_ns / f64::from(pages_per_block);
    let busy = fresh_over_steady * costs.program_ns;
    ((busy + costs.read_ns) / (costs.program_ns + costs.read_ns + erase)).max(1.0)
}

/// Returns the root of an increasing function, to the last bits.
fn bisect(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if f(middle) < 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hot and a cold class, each with its own blocks: `hot_spare` (0 to 1) is the share of the
    /// spare that the hot class gets, and `of_one` the write amplification of a single class at its
    /// α.
    fn separated(hot: Class, alpha: f64, hot_spare: f64, of_one: impl Fn(f64) -> f64) -> f64 {
        let hot_alpha = 1.0 + hot_spare * (alpha - 1.0) / hot.pages;
        let cold_alpha = 1.0 + (1.0 - hot_spare) * (alpha - 1.0) / (1.0 - hot.pages);
        hot.writes * of_one(hot_alpha) + (1.0 - hot.writes) * of_one(cold_alpha)
    }

    /// The nearly optimal share of the spare for the hot class:
    /// `√(fr) / (√(fr) + √((1−f)(1−r)))`.
    fn best_hot_spare(hot: Class) -> f64 {
        let own = (hot.pages * hot.writes).sqrt();
        own / (own + ((1.0 - hot.pages) * (1.0 - hot.writes)).sqrt())
    }

    /// One row per over-provisioning. The columns are FIFO, random, greedy with b = 64, 128 and
    /// 256, and d of 2, 5, 10 and 30 (with b = 128).
    const TABLE: [(f64, [f64; 9]); 5] = [
        (1.07, [7.817, 15.286, 7.010, 7.392, 7.597, 10.475, 8.168, 7.650, 7.439]),
        (1.125, [4.680, 9.000, 4.389, 4.528, 4.603, 6.267, 4.957, 4.666, 4.551]),
        (1.20, [3.188, 6.000, 3.053, 3.119, 3.153, 4.236, 3.391, 3.205, 3.133]),
        (1.28, [2.481, 4.571, 2.403, 2.441, 2.461, 3.264, 2.641, 2.504, 2.451]),
        (1.44, [1.847, 3.273, 1.806, 1.826, 1.836, 2.382, 1.960, 1.867, 1.832]),
    ];

    #[test]
    fn formulas_give_the_published_figures() {
        for (alpha, expected) in TABLE {
            let mut got = vec![fifo(alpha), random(alpha)];
            got.extend([64, 128, 256].map(|b| greedy(alpha, b)));
            got.extend([2, 5, 10, 30].map(|d| choices(alpha, 128, d)));
            for (got, expected) in got.iter().zip(expected) {
                assert!((got / expected - 1.0).abs() < 4e-4, "α {alpha}: {got} for {expected}");
            }
        }
    }

    #[test]
    fn skew_raises_mixed_and_lowers_separated_amplification() {
        for (f, r, mixed, apart) in
            [(0.2, 0.8, 3.54, 2.26), (0.1, 0.9, 4.08, 1.62), (0.05, 0.95, 4.72, 1.26)]
        {
            let hot = Class { pages: f, writes: r };
            let cold = Class { pages: 1.0 - f, writes: 1.0 - r };
            let got = mixed_fifo(&[hot, cold], 1.2);
            assert!((got / mixed - 1.0).abs() < 2e-3, "{got} for {mixed}");
            let got = separated(hot, 1.2, best_hot_spare(hot), |alpha| greedy(alpha, 128));
            assert!((got / apart - 1.0).abs() < 1.5e-2, "{got} for {apart}");
        }
    }

    #[test]
    fn inverses_return_where_they_came_from() {
        for policy in [Policy::Greedy, Policy::Fifo, Policy::Random, Policy::Choices(5)] {
            let a = write_amplification(policy, 1.2, 128).unwrap();
            assert!((alpha_for(policy, 128, a).unwrap() - 1.2).abs() < 1e-6, "{policy:?}");
        }
        let costs = Costs { program_ns: 1.4e6, read_ns: 5e4, erase_ns: 3e6 };
        let fall = sustained_iops(8, costs, 128, 1.0).recip() * 8e9 / 1.4e6;
        assert!(fall > 1.0);
        let steady = sustained_iops(8, costs, 128, 3.0);
        let back = amplification_of_fall(8e9 / 1.4e6 / steady, costs, 128);
        assert!((back - 3.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        assert_eq!(write_amplification(Policy::Greedy, 1.0, 128), None);
        assert_eq!(write_amplification(Policy::Greedy, f64::NAN, 128), None);
        assert_eq!(write_amplification(Policy::CostBenefit, 1.2, 128), None);
        assert_eq!(alpha_for(Policy::Greedy, 128, 1.0), None);
        assert!((greedy(200.0, 64) - 1.0).abs() < 1e-2);
    }
}
