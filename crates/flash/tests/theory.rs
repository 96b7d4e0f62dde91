//! The engines checked against the formulas, with the reserve subtracted from the spare.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests fail and tell")]

use blockstone_base::rng::Rng;
use blockstone_flash::Policy;
use blockstone_flash::ftl::{Config, Counts, Exact, Ftl, Mapping, Pool, Write};
use blockstone_flash::theory::{self, Class};

const BLOCKS: u32 = 8192;

fn config(alpha: f64, pages_per_block: u32, policy: Policy) -> Config {
    let logical = f64::from(BLOCKS * pages_per_block) / alpha;
    Config { policy, ..Config::plain(logical as u32, pages_per_block, 1, BLOCKS) }
}

/// Fills the device in order, overwrites it `warm` times with pages from `next`, and returns the
/// write amplification of the `counted` overwrites after that.
fn amplification<M: Mapping>(
    ftl: &mut Ftl<M>,
    [warm, counted]: [f64; 2],
    mut next: impl FnMut() -> Write,
    stream_of: impl Fn(u32) -> u32,
) -> f64 {
    let logical = ftl.config().logical_pages;
    let fill: Vec<Write> =
        (0..logical).map(|page| Write { page, stream: stream_of(page) }).collect();
    ftl.write_many(&fill).unwrap();
    let mut overwrite = |ftl: &mut Ftl<M>, fills: f64| {
        for _ in 0..(f64::from(logical) * fills) as u32 / 1000 {
            let writes: Vec<Write> = (0..1000).map(|_| next()).collect();
            ftl.write_many(&writes).unwrap();
        }
    };
    overwrite(ftl, warm);
    let before = *ftl.totals();
    overwrite(ftl, counted);
    ftl.check().unwrap();
    ftl.totals().since(&before).amplification().unwrap()
}

fn uniform<M: Mapping>(mut ftl: Ftl<M>, fills: [f64; 2]) -> f64 {
    let pages = u64::from(ftl.config().logical_pages);
    let mut rng = Rng::new(11, 0);
    let next = move || Write { page: rng.below(pages) as u32, stream: 0 };
    amplification(&mut ftl, fills, next, |_| 0)
}

fn counts(config: Config) -> Ftl<Counts> {
    let classes = [config.logical_pages];
    Ftl::counts(config, &classes).unwrap()
}

fn exact(config: Config) -> Ftl<Exact> {
    Ftl::exact(config, &|_| {}).unwrap()
}

#[track_caller]
fn agrees(what: &str, simulated: f64, expected: f64, tolerance: f64) {
    let error = simulated / expected - 1.0;
    println!("{what}: {simulated:.4} simulated, {expected:.4} by formula, {:+.2} %", error * 100.0);
    assert!(error.abs() <= tolerance, "{what}: {simulated} for {expected}");
}

const ALPHAS: [f64; 5] = [1.07, 1.125, 1.2, 1.28, 1.44];

#[track_caller]
fn table(policy: Policy, pages_per_block: u32) {
    for alpha in ALPHAS {
        let config = config(alpha, pages_per_block, policy);
        let expected =
            theory::write_amplification(policy, config.effective_alpha(), pages_per_block).unwrap();
        // Policies that draw few blocks forget their initial state slowly, and vary more.
        let draws_few = matches!(policy, Policy::Random | Policy::Choices(2));
        let counted = if draws_few { 16.0 } else { 4.0 };
        let simulated = uniform(counts(config), [4.0, counted]);
        agrees(&format!("{policy} α {alpha} b {pages_per_block}"), simulated, expected, 0.005);
    }
}

#[test]
fn greedy_agrees_at_every_block_size() {
    for b in [64, 128, 256] {
        table(Policy::Greedy, b);
    }
}

#[test]
fn fifo_agrees_at_every_block_size() {
    for b in [64, 128, 256] {
        table(Policy::Fifo, b);
    }
}

#[test]
fn choices_agree() {
    for d in [2, 5, 10, 30] {
        table(Policy::Choices(d), 128);
    }
    for b in [64, 256] {
        table(Policy::Choices(10), b);
    }
}

#[test]
fn random_agrees() {
    for b in [64, 128, 256] {
        table(Policy::Random, b);
    }
}

#[test]
fn the_greedy_column_that_others_simulated_is_met() {
    for (alpha, simulated_elsewhere) in
        [(1.07, 7.405), (1.125, 4.532), (1.2, 3.121), (1.28, 2.442), (1.44, 1.827)]
    {
        let here = uniform(exact(config(alpha, 128, Policy::Greedy)), [3.0, 3.0]);
        agrees(&format!("exact greedy α {alpha}"), here, simulated_elsewhere, 0.005);
    }
}

#[test]
fn both_engines_give_the_same_amplification() {
    for policy in [Policy::Greedy, Policy::Fifo, Policy::Choices(10)] {
        let one = uniform(exact(config(1.2, 128, policy)), [3.0, 8.0]);
        let other = uniform(counts(config(1.2, 128, policy)), [3.0, 8.0]);
        agrees(&format!("exact and counts, {policy}"), one, other, 0.001);
    }
}

/// The hot pages are the first ones; with `apart` they have their own stream.
fn skewed(f: f64, r: f64, logical: u32, apart: bool) -> impl FnMut() -> Write {
    let hot = (f64::from(logical) * f) as u32;
    let mut rng = Rng::new(12, 0);
    move || {
        let page = if rng.unit() < r {
            rng.below(u64::from(hot)) as u32
        } else {
            hot + rng.below(u64::from(logical - hot)) as u32
        };
        Write { page, stream: u32::from(apart && page >= hot) }
    }
}

#[test]
fn hot_and_cold_mixed_agree() {
    for (f, r, greedy_elsewhere) in [(0.2, 0.8, 3.47), (0.1, 0.9, 4.04), (0.05, 0.95, 4.69)] {
        let fifo = config(1.2, 128, Policy::Fifo);
        let logical = fifo.logical_pages;
        let classes = [Class { pages: f, writes: r }, Class { pages: 1.0 - f, writes: 1.0 - r }];
        let expected = theory::mixed_fifo(&classes, fifo.effective_alpha());
        let run = |config| {
            let next = skewed(f, r, logical, false);
            amplification(&mut exact(config), [6.0, 4.0], next, |_| 0)
        };
        agrees(&format!("mixed FIFO {f}"), run(fifo), expected, 0.005);
        let greedy = run(config(1.2, 128, Policy::Greedy));
        agrees(&format!("mixed greedy {f}"), greedy, greedy_elsewhere, 0.01);
    }
}

/// A pool for the hot pages and one for the others, with a nearly optimal division of the spare.
fn pools_apart(f: f64, r: f64, alpha: f64) -> (Config, Class, f64) {
    let base = config(alpha, 128, Policy::Greedy);
    let hot = Class { pages: f, writes: r };
    // The nearly optimal share.
    let own = (f * r).sqrt();
    let share = own / (own + ((1.0 - f) * (1.0 - r)).sqrt());
    let hot_alpha = 1.0 + share * (alpha - 1.0) / f;
    let hot_blocks = (f64::from(base.logical_pages) * f * hot_alpha / 128.0) as u32;
    let pool = |blocks| Pool { blocks, pages_used: 128, fold_into: None };
    let pools = vec![pool(hot_blocks), pool(BLOCKS - hot_blocks)];
    (Config { pools, streams: vec![0, 1], ..base }, hot, share)
}

#[test]
fn separated_pools_agree() {
    for (f, r) in [(0.2, 0.8), (0.1, 0.9), (0.05, 0.95)] {
        let (config, hot, _) = pools_apart(f, r, 1.2);
        let (logical, reserve) = (f64::from(config.logical_pages), 1.0);
        let effective = |pool: usize, share: f64| {
            (f64::from(config.pools[pool].blocks) - reserve) * 128.0 / (logical * share)
        };
        let expected = hot.writes * theory::greedy(effective(0, f), 128)
            + (1.0 - hot.writes) * theory::greedy(effective(1, 1.0 - f), 128);
        let hot_pages = (logical * f) as u32;
        let next = skewed(f, r, config.logical_pages, true);
        let stream_of = |page| u32::from(page >= hot_pages);
        let simulated = amplification(&mut exact(config), [5.0, 5.0], next, stream_of);
        agrees(&format!("separated {f}"), simulated, expected, 0.005);
    }
}

#[test]
fn frontiers_of_their_own_without_spare_of_their_own_give_uniform_amplification() {
    for (f, r) in [(0.2, 0.8), (0.1, 0.9), (0.05, 0.95)] {
        let config = Config { streams: vec![0, 0], ..config(1.2, 128, Policy::Greedy) };
        let uniform = theory::greedy(config.effective_alpha(), 128);
        let hot_pages = (f64::from(config.logical_pages) * f) as u32;
        let next = skewed(f, r, config.logical_pages, true);
        let stream_of = |page| u32::from(page >= hot_pages);
        let simulated = amplification(&mut exact(config), [5.0, 5.0], next, stream_of);
        agrees(&format!("two frontiers, global greedy {f}"), simulated, uniform, 0.02);
    }
}

#[test]
fn overwriting_in_order_moves_nothing() {
    let mut ftl = exact(config(1.07, 128, Policy::Greedy));
    let logical = ftl.config().logical_pages;
    let mut page = 0;
    let next = move || {
        page = (page + 1) % logical;
        Write { page, stream: 0 }
    };
    let simulated = amplification(&mut ftl, [1.0, 2.0], next, |_| 0);
    assert!((simulated - 1.0).abs() < 1e-12, "{simulated}");
}

#[test]
fn the_cliff_comes_when_the_spare_is_written() {
    let config = config(1.44, 128, Policy::Greedy);
    let (usable, logical) = (config.usable_pages(), u64::from(config.logical_pages));
    let mut ftl = exact(config);
    let fill: Vec<Write> = (0..logical as u32).map(|page| Write { page, stream: 0 }).collect();
    ftl.write_many(&fill).unwrap();
    let mut rng = Rng::new(13, 0);
    let mut further = 0_u64;
    while ftl.totals().collected_pages == 0 {
        ftl.write_many(&[Write { page: rng.below(logical) as u32, stream: 0 }]).unwrap();
        further += 1;
    }
    let spare = usable - logical;
    assert!(further.abs_diff(spare) <= 256, "cliff after {further} of {spare} spare pages");
}
