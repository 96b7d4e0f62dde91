//! The simulation in time, checked against arithmetic.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests fail and tell")]

use blockstone_base::hint::Hint as _;
use blockstone_flash::Policy;
use blockstone_flash::device::{Device, Placement};
use blockstone_flash::dies::{Suspend, Times};
use blockstone_flash::estimate::Fall;
use blockstone_flash::ftl::{Pace, Wear};
use blockstone_flash::simulate::{self, Engine, Outcome, Phase, Plan, Point, Rate, Start};

fn device() -> Device {
    Device {
        raw_bytes: 16 * 512 * 64 * 4096 * 144 / 100,
        visible_bytes: 16 * 512 * 64 * 4096,
        page_bytes: 4096,
        pages_per_block: 64,
        channels: 4,
        dies_per_channel: 4,
        times: Times {
            read_ns: 50_000,
            program_ns: vec![300_000, 2_500_000],
            erase_ns: 3_000_000,
            transfer_ns: 0,
            suspend: Suspend::None,
            suspend_ns: 20_000,
            planes: 1,
        },
        policy: Policy::Greedy,
        reserve_blocks: 1,
        pace: Pace::Atomic,
        background: 0.0,
        idle_ns: 1_000_000,
        separate_moves: false,
        placement: Placement::Mixed,
        fast_blocks: 0.0,
        wear: Wear::default(),
    }
}

fn plan(workload: &str) -> Plan {
    Plan { scale: 1, queue_depth: 32, ..Plan::new(device(), workload.parse().unwrap()) }
}

fn run(plan: &Plan) -> Outcome {
    simulate::simulate(plan, &|_| {}, &mut |_| true).unwrap()
}

fn one_die(queue_depth: u32) -> Plan {
    let device = Device {
        channels: 1,
        dies_per_channel: 1,
        raw_bytes: 4096 * 64 * 4096 * 144 / 100,
        visible_bytes: 4096 * 64 * 4096,
        ..device()
    };
    Plan { device, queue_depth, ..plan("uniform") }
}

#[test]
fn the_sustained_rate_is_exact_with_one_request_under_way() {
    for plan in [Plan { queue_depth: 1, ..plan("uniform") }, one_die(1)] {
        let outcome = run(&plan);
        let (seen, formula) = (outcome.steady.iops, outcome.iops_analytic.unwrap());
        println!("QD 1, {} dies: {seen:.2} writes/s, formula {formula:.2}", plan.device.dies());
        assert!((seen / formula - 1.0).abs() < 2e-3, "{seen} for {formula}");
    }
}

#[test]
fn the_sustained_rate_is_nearly_reached_with_many_requests_under_way() {
    for pace in [Pace::Atomic, Pace::Spread] {
        let device = Device { pace, ..device() };
        let outcome = run(&Plan { device, queue_depth: 256, ..plan("uniform") });
        let (seen, formula) = (outcome.steady.iops, outcome.iops_analytic.unwrap());
        println!("{pace:?} QD 256: {seen:.0} writes/s of {formula:.0}, {:.4}", seen / formula);
        assert!(seen / formula >= 0.97 && seen / formula < 1.01, "{seen} for {formula}");
    }
}

#[test]
fn the_device_falls_off_the_cliff_where_arithmetic_puts_it() {
    let outcome = run(&Plan { queue_depth: 64, ..plan("uniform") });
    let (cliff, arithmetic) =
        (outcome.cliff_drive_fills.unwrap(), outcome.cliff_drive_fills_analytic);
    println!(
        "cliff {cliff:.4} of {arithmetic:.4}; fresh {:?}, steady {}, WA {:?} {:?}",
        outcome.iops_fresh, outcome.steady.iops, outcome.steady.wa, outcome.wa_analytic
    );
    assert!((cliff - arithmetic).abs() < 0.02, "{cliff} for {arithmetic}");
    assert!((outcome.plan.device.over_provisioning() - 0.44).abs() < 1e-9);
    let fresh = outcome.iops_fresh.unwrap();
    assert!((fresh / (16e9 / 1.4e6) - 1.0).abs() < 0.03, "fresh: one program a write, {fresh}");
    assert!(outcome.wa_error().unwrap().abs() < 0.005, "{:?}", outcome.wa_error());
    assert!(outcome.steady.is_settled);
}

#[test]
fn both_engines_agree_on_amplification_and_quantiles() {
    let of = |engine, seed| {
        let plan = Plan { engine, drive_fills: 12.0, seed, ..plan("uniform") };
        let outcome = run(&plan);
        println!("{} seed {seed}: WA {:?}", outcome.engine, outcome.steady.wa);
        let quantiles = [0.5, 0.9, 0.99, 0.999].map(|q| outcome.steady.writes.quantile_ns(q));
        println!("{quantiles:?}");
        assert_eq!(outcome.engine == "counts", engine == Engine::Counts);
        (outcome.steady.wa.unwrap(), quantiles)
    };
    let exact = [1, 2, 3].map(|seed| of(Engine::Exact, seed));
    let counts = [1, 2, 3].map(|seed| of(Engine::Counts, seed));
    let mean = |runs: [(f64, [u64; 4]); 3]| runs.iter().map(|run| run.0).sum::<f64>() / 3.0;
    assert!((mean(exact) / mean(counts) - 1.0).abs() < 1e-3);
    for index in 0..4 {
        let median = |runs: [(f64, [u64; 4]); 3]| {
            let mut values = runs.map(|run| run.1[index] as f64);
            values.sort_by(f64::total_cmp);
            values[1]
        };
        let ratio = median(exact) / median(counts);
        assert!((ratio - 1.0).abs() < 0.03, "quantile {index}: ratio {ratio}");
    }
}

#[test]
fn spread_collection_shortens_the_tail_of_reads() {
    let mixed = |pace, suspend| {
        let mut plan = plan("uniform");
        plan.workload.reads = 0.7;
        plan.device.pace = pace;
        plan.device.times.suspend = suspend;
        let outcome = run(&plan);
        outcome.steady.reads.quantile_ns(0.99)
    };
    let atomic = mixed(Pace::Atomic, Suspend::None);
    let spread = mixed(Pace::Spread, Suspend::None);
    let suspended = mixed(Pace::Spread, Suspend::Both);
    println!("read p99: atomic {atomic}, spread {spread}, with suspension {suspended}");
    assert!(atomic > 5 * spread && spread > 2 * suspended, "{atomic} {spread} {suspended}");
}

#[test]
fn idle_windows_with_background_collection_take_the_tail_away() {
    let bursts = |background| {
        let mut plan = plan("uniform");
        plan.device.background = background;
        plan.drive_fills = 2.0;
        // Half a second of writes at a rate that uses up what an idle die has collected.
        plan.phases = vec![
            Phase { duration_ns: 500_000_000, pace: Rate::Open(4000.0) },
            Phase { duration_ns: 1_500_000_000, pace: Rate::Open(0.0) },
        ];
        run(&plan)
    };
    let (active, background) = (bursts(0.0), bursts(0.10));
    let p999 = |outcome: &Outcome| outcome.steady.writes.quantile_ns(0.999);
    println!("write p99.9: active {}, background {}", p999(&active), p999(&background));
    assert!(p999(&active) > 3 * p999(&background));
    assert!(background.steady.wa.unwrap() >= active.steady.wa.unwrap(), "it is not free");
}

/// A rate that uses half of the dies' time, with and without background collection.
#[test]
fn background_collection_that_keeps_up_hides_collection_at_both_paces() {
    for pace in [Pace::Atomic, Pace::Spread] {
        let of = |background| {
            let device = Device { pace, background, ..device() };
            let plan = Plan { device, drive_fills: 3.0, ..plan("uniform") };
            let phases = vec![Phase { duration_ns: u64::MAX, pace: Rate::Open(3000.0) }];
            run(&Plan { phases, ..plan })
        };
        let (background, active) = (of(0.1), of(0.0));
        let mean = |outcome: &Outcome| outcome.steady.writes.mean_ns();
        let p99 = |outcome: &Outcome| outcome.steady.writes.quantile_ns(0.99);
        println!(
            "{pace:?}: background mean {:.0} p99 {}, active mean {:.0} p99 {}, cliffs {:?} {:?}",
            mean(&background),
            p99(&background),
            mean(&active),
            p99(&active),
            background.cliff_drive_fills,
            active.cliff_drive_fills
        );
        assert_eq!(background.cliff_drive_fills, None, "{pace:?}: no write waits");
        let cliff = active.cliff_drive_fills.unwrap();
        assert!((cliff - active.cliff_drive_fills_analytic).abs() < 0.05, "{pace:?}: {cliff}");
        assert!(mean(&active) > 1.2 * mean(&background), "{pace:?}: active waits");
        assert!(p99(&active) > p99(&background), "{pace:?}: background is more even");
        let wa = |outcome: &Outcome| outcome.steady.wa.unwrap();
        assert!(wa(&background) > wa(&active), "{pace:?}: what is kept free is not spare");
    }
}

#[test]
fn the_estimate_says_as_the_simulation_whether_and_when_the_cliff_comes() {
    for (rate, keeps_up) in [(1500.0, true), (3000.0, true), (5500.0, false), (8000.0, false)] {
        let device = Device { background: 0.15, ..device() };
        let phases = vec![Phase { duration_ns: u64::MAX, pace: Rate::Open(rate) }];
        let seen = run(&Plan { device: device.clone(), phases, ..plan("uniform") });
        let said = blockstone_flash::estimate::cliff(&device, rate * 4096.0).unwrap();
        let (seen, said) = (seen.cliff_drive_fills, said.cliff_drive_fills);
        println!("{rate} writes/s: cliff after {seen:?} drive fills simulated, {said:?} estimated");
        assert_eq!((seen.is_none(), said.is_none()), (keeps_up, keeps_up), "{rate}");
        if let (Some(seen), Some(said)) = (seen, said) {
            assert!((said / seen - 1.0).abs() < 0.15, "{rate}: {said} for {seen}");
        }
    }
}

/// At such a rate, dies have hardly time to keep their share of blocks free: now and then one has
/// none when a write comes.
#[test]
fn a_write_that_waits_once_in_a_while_is_no_cliff() {
    for pace in [Pace::Atomic, Pace::Spread] {
        let device = Device { background: 0.1, pace, ..device() };
        let phases = vec![Phase { duration_ns: u64::MAX, pace: Rate::Open(4300.0) }];
        let plan = Plan { device: device.clone(), phases, drive_fills: 2.0, ..plan("uniform") };
        let seen = run(&plan);
        let mean = |point: &Point| point.write.map_or(0.0, |write| write.latency_ns_mean);
        let (first, last) = (mean(&seen.points[0]), mean(seen.points.last().unwrap()));
        println!("{pace:?}: cliff {:?}, mean {first:.0} then {last:.0}", seen.cliff_drive_fills);
        assert_eq!(seen.cliff_drive_fills, None, "{pace:?}");
        assert!((last / first - 1.0).abs() < 0.1, "{pace:?}: {first} then {last}");
        let said = blockstone_flash::estimate::cliff(&device, 4300.0 * 4096.0).unwrap();
        assert_eq!(said.outcome, Fall::Never);
    }
}

#[test]
fn fast_blocks_fall_where_a_write_first_waits_for_folding() {
    let mut plan = plan("uniform");
    plan.device.pace = Pace::Spread;
    plan.device.fast_blocks = 0.1;
    plan.device.background = 0.05;
    // A fifth of the rate the device sustains: folding keeps up.
    plan.phases = vec![Phase { duration_ns: u64::MAX, pace: Rate::Open(500.0) }];
    plan.drive_fills = 0.3;
    let outcome = run(&plan);
    assert!(outcome.totals.folded_pages > 0, "{:?}", outcome.totals);
    assert_eq!(outcome.cliff_drive_fills, None);
    plan.device.background = 0.0;
    let cliff = run(&plan).cliff_drive_fills.unwrap();
    assert!(cliff < 0.1, "the fast blocks are full: {cliff}");
}

#[test]
fn more_background_than_spare_is_refused() {
    let with = |background| {
        let device = Device { background, ..device() };
        simulate::simulate(
            &Plan { device, drive_fills: 0.1, ..plan("uniform") },
            &|_| {},
            &mut |_| true,
        )
    };
    let refused = with(0.35).unwrap_err().told();
    assert!(refused.contains("35 %") && refused.contains("--background"), "{refused}");
    with(0.2).unwrap();
}

#[test]
fn fast_blocks_take_bursts_and_are_folded() {
    let mut plan = plan("uniform");
    plan.device.fast_blocks = 0.1;
    plan.phases = vec![
        Phase { duration_ns: 200_000_000, pace: Rate::Open(2000.0) },
        Phase { duration_ns: 800_000_000, pace: Rate::Open(0.0) },
    ];
    plan.drive_fills = 0.5;
    plan.device.background = 0.05;
    let outcome = run(&plan);
    assert!(outcome.totals.folded_pages > 0, "{:?}", outcome.totals);
    let p50 = outcome.steady.writes.quantile_ns(0.5);
    assert!((297_000..320_000).contains(&p50), "a fast page takes 300 µs, {p50}");
}

#[test]
fn sequential_overwrites_move_nothing_and_never_fall() {
    let outcome = run(&Plan { drive_fills: 3.0, ..plan("sequential") });
    assert_eq!(outcome.steady.wa, Some(1.0));
    assert_eq!(outcome.wa_analytic, Some(1.0));
    assert_eq!(outcome.cliff_drive_fills, None, "a block is erased before every 64th write");
}

#[test]
fn a_database_runs_in_every_placement() {
    for placement in [Placement::Mixed, Placement::Frontiers, Placement::Pools] {
        let device = Device { placement, separate_moves: true, ..device() };
        let plan = Plan { device, drive_fills: 2.0, ..plan("oltp") };
        let outcome = run(&plan);
        println!("{placement:?}: WA {:?}", outcome.steady.wa);
        assert_eq!(outcome.ended_by, None, "{placement:?}");
        assert!(outcome.steady.wa.unwrap() >= 1.0);
    }
    let lsm = run(&Plan { drive_fills: 2.0, ..plan("lsm") });
    assert!(lsm.totals.trimmed_pages > 0 && lsm.steady.wa.unwrap() < 1.3, "{:?}", lsm.steady.wa);
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let plan = Plan { drive_fills: 1.0, ..plan("oltp") };
    let (one, two) = (run(&plan), run(&plan));
    assert_eq!(one, two);
    let other = run(&Plan { seed: 2, ..plan });
    assert_ne!(one.digest, other.digest);
}

#[test]
fn a_part_of_the_device_stands_for_the_whole() {
    let whole = run(&plan("uniform"));
    let part = run(&Plan { scale: 2, ..plan("uniform") });
    let (a, b) = (whole.steady.iops, part.steady.iops);
    println!(
        "IOPS {a:.0} and {b:.0}; {} and {} s",
        whole.elapsed_ns / 1_000_000_000,
        part.elapsed_ns / 1_000_000_000
    );
    assert!((a / b - 1.0).abs() < 0.02);
    assert!((whole.elapsed_ns as f64 / part.elapsed_ns as f64 - 1.0).abs() < 0.02);
}

#[test]
fn an_empty_device_falls_later() {
    let outcome = run(&Plan { start: Start::Empty, ..plan("uniform") });
    let cliff = outcome.cliff_drive_fills.unwrap();
    assert!((cliff - outcome.cliff_drive_fills_analytic).abs() < 0.02, "{cliff}");
    assert!(cliff > 1.4);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let good = plan("uniform");
    let bad: Vec<(&str, Plan)> = vec![
        (
            "rate",
            Plan { phases: vec![Phase { duration_ns: 9, pace: Rate::Open(-1.0) }], ..good.clone() },
        ),
        (
            "rate",
            Plan {
                phases: vec![Phase { duration_ns: 9, pace: Rate::Open(f64::NAN) }],
                ..good.clone()
            },
        ),
        (
            "rate",
            Plan { phases: vec![Phase { duration_ns: 9, pace: Rate::Open(0.0) }], ..good.clone() },
        ),
        (
            "duration",
            Plan { phases: vec![Phase { duration_ns: 0, pace: Rate::Closed }], ..good.clone() },
        ),
        ("fills", Plan { drive_fills: 0.0, ..good.clone() }),
        ("fills", Plan { drive_fills: f64::NAN, ..good.clone() }),
        ("depth", Plan { queue_depth: 0, ..good.clone() }),
        ("MiB", Plan { memory_limit_bytes: 1000, ..good.clone() }),
        ("exchangeable", Plan { engine: Engine::Counts, ..plan("oltp") }),
        (
            "raw",
            Plan {
                device: Device { visible_bytes: good.device.raw_bytes, ..device() },
                ..good.clone()
            },
        ),
        ("spare", Plan { device: Device { reserve_blocks: 300, ..device() }, ..good.clone() }),
        ("page size", Plan { device: Device { page_bytes: 0, ..device() }, ..good.clone() }),
        ("scale", Plan { scale: 0, ..good.clone() }),
        ("scale", Plan { scale: 100_000, ..good }),
    ];
    for (word, plan) in bad {
        let refused = simulate::simulate(&plan, &|_| {}, &mut |_| true).unwrap_err().told();
        assert!(refused.contains("\nhint: "), "{refused}");
        assert!(word == "scale" || refused.contains(word), "{word}: {refused}");
    }
}

#[test]
fn a_throttle_admits_no_more_than_its_rate_and_loses_no_write() {
    let mut device = blockstone_flash::preset::ALL[0].device();
    (device.raw_bytes, device.visible_bytes) = (6 << 30, 4 << 30);
    let workload = "uniform".parse().unwrap();
    let plan = Plan { drive_fills: 2.0, throttle: Some(8000.0), ..Plan::new(device, workload) };
    let throttled = simulate::simulate(&plan, &|_| {}, &mut |_| true).unwrap();
    let freely =
        simulate::simulate(&Plan { throttle: None, ..plan.clone() }, &|_| {}, &mut |_| true)
            .unwrap();
    assert!((throttled.steady.iops / 8000.0 - 1.0).abs() < 0.01, "{}", throttled.steady.iops);
    assert!(freely.steady.iops > 2.0 * throttled.steady.iops && freely.throttled_writes == 0);
    let (fresh, unlimited) = (throttled.iops_fresh.unwrap(), freely.iops_fresh.unwrap());
    assert!((fresh / unlimited - 1.0).abs() < 0.05, "before collection nothing waits: {fresh}");
    assert!(throttled.throttled_writes > 0 && throttled.waiting_writes <= 128);
    let open = Phase { duration_ns: u64::MAX, pace: Rate::Open(4000.0) };
    let slow =
        simulate::simulate(&Plan { phases: vec![open], ..plan }, &|_| {}, &mut |_| true).unwrap();
    assert_eq!(slow.waiting_writes, 0, "a rate below the throttle is admitted");
    let p999 = |outcome: &Outcome| outcome.steady.writes.quantile_ns(0.999);
    assert!(p999(&slow) < p999(&freely), "{} and {}", p999(&slow), p999(&freely));
}
