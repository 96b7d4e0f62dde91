//! Invariants for arbitrary writes: the tables agree, nothing is lost, the reserve is kept, the
//! same seed gives the same bytes, and writing page by page gives the same result as in batches.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::collections::HashSet;

use blockstone_base::hint::Hint as _;
use blockstone_base::rng::Rng;
use blockstone_flash::Policy;
use blockstone_flash::ftl::{Config, Ftl, Mapping, Pace, Pool, Untimed, Wear, Write};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Case {
    config: Config,
    writes: u32,
    trim_every: u32,
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Greedy),
        Just(Policy::Fifo),
        Just(Policy::Random),
        Just(Policy::CostBenefit),
        (2_u32..8).prop_map(Policy::Choices),
    ]
}

prop_compose! {
    fn cases()(
        policy in policies(),
        pages_per_block in prop_oneof![Just(10_u32), Just(16), Just(64), Just(100)],
        dies in 1_u32..4,
        streams in 1_usize..4,
        [separate_moves, spread, folding] in any::<[bool; 3]>(),
        levelling_spread in proptest::option::of(1_u32..20),
        bad_blocks in prop_oneof![Just(0.0), Just(0.1)],
        [reserve_blocks, trim_every] in [1_u32..3, 2_u32..50],
        seed in any::<u64>(),
    ) -> Case {
        let mut pools = vec![Pool { blocks: 40, pages_used: pages_per_block, fold_into: None }];
        let mut stream_pools = vec![0; streams];
        if folding {
            let pages_used = pages_per_block / 2;
            pools.push(Pool { blocks: 8, pages_used, fold_into: Some(0) });
            stream_pools.push(1);
        }
        let mut config = Config {
            pools,
            streams: stream_pools,
            separate_moves,
            policy,
            reserve_blocks,
            pace: if spread { Pace::Spread } else { Pace::Atomic },
            wear: Wear { levelling_spread, endurance: None, bad_blocks },
            seed,
            ..Config::plain(1, pages_per_block, dies, 40)
        };
        config.logical_pages = (config.usable_pages() as f64 / 1.2) as u32;
        Case { writes: config.logical_pages * 4, config, trim_every }
    }
}

fn play<M: Mapping>(ftl: &mut Ftl<M>, case: &Case) -> HashSet<u32> {
    let (logical, streams) = (ftl.config().logical_pages, ftl.config().streams.len() as u64);
    let mut rng = Rng::new(case.config.seed, 9);
    let mut mapped = HashSet::new();
    for step in 0..case.writes {
        let page = rng.below(u64::from(logical)) as u32;
        if step % case.trim_every == 0 {
            ftl.trim(page);
            mapped.remove(&page);
        }
        let page = rng.below(u64::from(logical)) as u32;
        let die = rng.below(u64::from(ftl.config().dies)) as u32;
        let stream = rng.below(streams) as u32;
        ftl.write(Write { page, stream }, die, &mut Untimed).unwrap();
        ftl.keep_pace(stream, die, &mut Untimed);
        mapped.insert(page);
        if step % 1000 == 0 {
            ftl.check().unwrap();
        }
    }
    ftl.check().unwrap();
    mapped
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_agree_and_nothing_is_lost(case in cases()) {
        let mut ftl = Ftl::exact(case.config.clone(), &|_| {}).unwrap();
        let mapped = play(&mut ftl, &case);
        prop_assert_eq!(ftl.mapped_pages(), mapped.len() as u64);
        for page in 0..case.config.logical_pages {
            prop_assert_eq!(ftl.locate(page).is_some(), mapped.contains(&page), "page {}", page);
        }
        let totals = ftl.totals();
        prop_assert_eq!(totals.host_pages, u64::from(case.writes));
        prop_assert_eq!(
            totals.programs(),
            totals.host_pages + totals.collected_pages + totals.levelled_pages + totals.folded_pages
        );
        if case.config.pools.len() == 1 {
            prop_assert_eq!(totals.folded_pages, 0);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes(case in cases()) {
        let digest = || {
            let mut ftl = Ftl::exact(case.config.clone(), &|_| {}).unwrap();
            play(&mut ftl, &case);
            ftl.digest()
        };
        prop_assert_eq!(digest(), digest());
        let mut other = case.clone();
        other.config.seed ^= 1;
        let mut ftl = Ftl::exact(other.config.clone(), &|_| {}).unwrap();
        play(&mut ftl, &other);
        prop_assert_ne!(digest(), ftl.digest());
    }

    #[test]
    fn counts_keep_their_books_too(case in cases()) {
        let third = case.config.logical_pages / 3;
        let classes = [third, case.config.logical_pages - third];
        let mut ftl = Ftl::counts(case.config.clone(), &classes).unwrap();
        play(&mut ftl, &case);
    }

    #[test]
    fn one_by_one_is_the_same_as_in_batches(case in cases()) {
        let mut rng = Rng::new(case.config.seed, 9);
        let logical = u64::from(case.config.logical_pages);
        let page = |_| Write { page: rng.below(logical) as u32, stream: 0 };
        let writes: Vec<Write> = (0..case.writes).map(page).collect();
        let mut batched = Ftl::exact(case.config.clone(), &|_| {}).unwrap();
        batched.write_many(&writes).unwrap();
        let mut scalar = Ftl::exact(case.config.clone(), &|_| {}).unwrap();
        for write in &writes {
            scalar.write_many(std::slice::from_ref(write)).unwrap();
        }
        prop_assert_eq!(batched.digest(), scalar.digest());
    }
}

#[test]
fn trimmed_space_is_free_again() {
    let config = Config::plain(1000, 10, 1, 120);
    let mut ftl = Ftl::exact(config, &|_| {}).unwrap();
    let fill: Vec<Write> = (0..1000).map(|page| Write { page, stream: 0 }).collect();
    ftl.write_many(&fill).unwrap();
    (0..1000).for_each(|page| ftl.trim(page));
    assert_eq!(ftl.mapped_pages(), 0);
    assert_eq!(ftl.totals().trimmed_pages, 1000);
    (0..10).for_each(|_| ftl.write_many(&fill).unwrap());
    assert_eq!(ftl.totals().collected_pages, 0, "whole blocks were trimmed");
    ftl.trim(3);
    ftl.trim(3);
    assert_eq!(ftl.totals().trimmed_pages, 1001, "a second trim finds nothing");
}

#[test]
fn levelling_moves_cold_blocks_and_is_counted() {
    let run = |pace, levelling_spread| {
        let wear = Wear { levelling_spread, ..Wear::default() };
        let config = Config { pace, wear, ..Config::plain(5000, 50, 1, 130) };
        let mut ftl = Ftl::exact(config, &|_| {}).unwrap();
        let fill: Vec<Write> = (0..5000).map(|page| Write { page, stream: 0 }).collect();
        ftl.write_many(&fill).unwrap();
        let mut rng = Rng::new(4, 0);
        for _ in 0..400_000 {
            let page = rng.below(500) as u32;
            ftl.write_many(&[Write { page, stream: 0 }]).unwrap();
        }
        ftl.check().unwrap();
        let (least, most) = (ftl.erase_counts().min().unwrap(), ftl.erase_counts().max().unwrap());
        (most - least, ftl.totals().levelled_pages)
    };
    for pace in [Pace::Atomic, Pace::Spread] {
        let (apart, moved) = run(pace, None);
        assert!(apart > 100 && moved == 0, "{pace:?}: {apart} erases apart, {moved} moved");
        let (loose, few) = run(pace, Some(30));
        let (tight, many) = run(pace, Some(10));
        assert!(tight <= 40 && tight < loose, "{pace:?}: {tight} and {loose} erases apart");
        assert!(0 < few && few < many, "{pace:?}: evener wear costs moves, {few} and {many}");
    }
}

#[test]
fn worn_blocks_retire_until_the_device_is_read_only() {
    let wear = Wear { endurance: Some(20), ..Wear::default() };
    let config = Config { wear, reserve_blocks: 2, ..Config::plain(1000, 10, 1, 130) };
    let mut ftl = Ftl::exact(config, &|_| {}).unwrap();
    let mut rng = Rng::new(4, 0);
    let full = loop {
        let write = Write { page: rng.below(1000) as u32, stream: 0 };
        if let Err(full) = ftl.write_many(&[write]) {
            break full;
        }
    };
    assert!(ftl.totals().retired_blocks > 10, "{:?}", ftl.totals());
    assert!(full.to_string().contains("read-only"), "{full}");
    assert!(full.host_pages > 5000, "{full}");
}

#[test]
fn a_device_without_spare_is_refused() {
    for config in [
        Config::plain(1280, 10, 1, 128),
        Config::plain(1270, 10, 1, 128),
        Config { reserve_blocks: 30, ..Config::plain(1000, 10, 1, 128) },
        Config { dies: 0, ..Config::plain(1000, 10, 1, 128) },
        Config { pages_per_block: 0, ..Config::plain(1000, 10, 1, 128) },
        Config { logical_pages: 0, ..Config::plain(1, 10, 1, 128) },
        Config { reserve_blocks: 0, ..Config::plain(1000, 10, 1, 128) },
        Config { streams: vec![1], ..Config::plain(1000, 10, 1, 128) },
        Config { streams: vec![], ..Config::plain(1000, 10, 1, 128) },
        Config::plain(1 << 30, 4096, 1, 1 << 21),
        Config {
            wear: Wear { bad_blocks: f64::NAN, ..Wear::default() },
            ..Config::plain(1000, 10, 1, 128)
        },
    ] {
        let refused = Ftl::exact(config.clone(), &|_| {}).err();
        let text = refused.unwrap_or_else(|| panic!("{config:?} is accepted")).told();
        assert!(text.contains("\nhint: "), "{text}");
    }
}
