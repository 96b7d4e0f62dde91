//! The simulated disk under the worker loop and alone: the same seed gives the same run, and each
//! fault shows up where it must.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use blockstone_base::LatencyHistogram;
use blockstone_base::dist::Distribution;
use blockstone_base::load::{Access, LoadSpec, Op, Pacing, SyncMethod};
use blockstone_engine::sim::{Faults, Sim};
use blockstone_engine::stamp::{Expected, check, seal};
use blockstone_engine::{
    Check, Completion, Content, Engine, Length, Load, Medium, Outcome, Request, RequestOp, Setup,
    SimDisk, SimSpec, Wait, start,
};

const BLOCK: u64 = 8192;
const SPAN: u64 = 1 << 20;
const LIMIT: Duration = Duration::from_secs(20);

fn spec(workers: u32, depth_per_worker: u32, pacing: Pacing) -> LoadSpec {
    LoadSpec {
        engine: "sim".into(),
        op: Op::Read,
        read_pct: None,
        access: Access::Random,
        block_bytes: BLOCK,
        workers,
        depth_per_worker,
        span_bytes: SPAN,
        offset_bytes: 0,
        sync: None,
        flush_alone: false,
        direct: true,
        pacing,
        seed: 5,
    }
}

fn run(spec: LoadSpec, disk: SimSpec, operations: u64) -> Outcome {
    let medium = Medium::Simulated(SimDisk::new(disk));
    let load = Load { length: Length::Operations(operations), ..Load::new(spec, medium) };
    start(load).expect("the simulated disk takes every load").wait(LIMIT)
}

fn lognormal(seed: u64) -> SimSpec {
    let service = Distribution::LogNormal { median_ns: 80_000.0, sigma: 0.8 };
    SimSpec { service, parallelism: 3, ..SimSpec::new(SPAN, seed) }
}

#[test]
fn one_seed_gives_one_run_however_the_threads_are_scheduled() {
    let first = run(spec(6, 2, Pacing::Closed), lognormal(1), 300);
    for _ in 0..5 {
        let again = run(spec(6, 2, Pacing::Closed), lognormal(1), 300);
        assert_eq!(again.totals, first.totals);
        assert_eq!(again.histograms, first.histograms);
    }
    let other = run(spec(6, 2, Pacing::Closed), lognormal(2), 300);
    assert_ne!(other.totals, first.totals);
}

#[test]
fn more_in_flight_than_the_disk_serves_waits_in_line() {
    let disk = || SimSpec { parallelism: 4, ..SimSpec::new(SPAN, 1) };
    let mean = |outcome: &Outcome| outcome.totals.latency_ns_sum / outcome.totals.completed_ops;
    assert_eq!(mean(&run(spec(1, 4, Pacing::Closed), disk(), 400)), 100_000);
    // Sixteen in flight on four servers: Little's law.
    let deep = run(spec(4, 4, Pacing::Closed), disk(), 4000);
    assert!((395_000..=400_000).contains(&mean(&deep)), "{} ns", mean(&deep));
}

#[test]
fn a_flush_timed_alone_leaves_out_the_write_before_it() {
    let mean_ns = |flush_alone| {
        let sync = Some(SyncMethod::Fdatasync);
        let spec = LoadSpec { op: Op::Commit, sync, flush_alone, ..spec(1, 1, Pacing::Closed) };
        let totals = run(spec, SimSpec::new(SPAN, 1), 50).totals;
        assert_eq!(totals.latency_ns_sum, totals.service_ns_sum);
        totals.latency_ns_sum / totals.completed_ops
    };
    assert_eq!((mean_ns(false), mean_ns(true)), (600_000, 500_000));
}

#[test]
fn the_nth_request_fails_for_every_n_and_nothing_else_does() {
    for nth in 1..=20 {
        let faults = Faults { eio_at: Some(nth), ..Faults::default() };
        let outcome =
            run(spec(1, 1, Pacing::Closed), SimSpec { faults, ..SimSpec::new(SPAN, 1) }, 20);
        assert_eq!((outcome.totals.completed_ops, outcome.totals.failed_ops), (19, 1), "{nth}");
        let error = outcome.first_error.unwrap();
        assert!(error.contains("Input/output error"), "{error}");
        assert_eq!(outcome.failed_workers, 0, "one failure does not end a worker");
    }
}

#[test]
fn short_transfers_are_failures_with_their_length() {
    let faults = Faults { short_at: Some(3), ..Faults::default() };
    let outcome = run(spec(1, 1, Pacing::Closed), SimSpec { faults, ..SimSpec::new(SPAN, 1) }, 5);
    assert_eq!(outcome.totals.failed_ops, 1);
    assert!(outcome.first_error.unwrap().contains("only 4096 bytes were transferred"));
    let faults = Faults { short_probability: 0.25, ..Faults::default() };
    let disk = SimSpec { faults, ..SimSpec::new(SPAN, 1) };
    let failed = run(spec(1, 1, Pacing::Closed), disk, 1000).totals.failed_ops;
    assert!((200..300).contains(&failed), "{failed} of 1000 at one in four");
}

#[test]
fn a_stuck_request_is_reported_and_what_was_done_before_is_kept() {
    let faults = Faults { stuck_at: Some(50), ..Faults::default() };
    let disk = SimSpec { faults, ..SimSpec::new(SPAN, 1) };
    let load = Load::new(spec(2, 1, Pacing::Closed), Medium::Simulated(SimDisk::new(disk)));
    let running = start(load).unwrap();
    while running.totals().completed_ops < 500 {
        std::thread::yield_now();
    }
    let outcome = running.stop(Duration::from_millis(200));
    assert_eq!(outcome.stuck_workers, 1, "the other worker went on and stopped");
    let counted: u64 = outcome.histograms.iter().map(|h| h.latency.count()).sum();
    assert_eq!(counted, outcome.totals.completed_ops, "the stuck worker's last second included");
}

#[test]
fn an_open_loop_charges_a_stall_to_every_operation_that_was_due_in_it() {
    // 1,000 operations per second; nothing is served from 2 s to 3 s.
    let faults = Faults { stall: Some((2_000_000_000, 3_000_000_000)), ..Faults::default() };
    let disk = SimSpec { faults, ..SimSpec::new(SPAN, 1) };
    let open = |poisson| Pacing::Open { rate_per_s: 1000.0, poisson };
    for (workers, depth, poisson) in [(1, 1, false), (1, 8, false), (4, 1, true)] {
        let outcome =
            run(spec(workers, depth, open(poisson)), disk.clone(), 5000 / u64::from(workers));
        assert_eq!(outcome.totals.completed_ops, 5000);
        let mut latency = outcome.histograms[0].latency.clone();
        outcome.histograms[1..].iter().for_each(|h| latency.merge(&h.latency));
        // Due evenly over a second of stall: about 900 of them waited longer than 100 ms, half of
        // them longer than 500 ms. Counted from submission, only `depth` × `workers` would.
        let slower = |limit_ns| {
            latency.buckets().filter(|(ns, _)| *ns > limit_ns).map(|(_, count)| count).sum::<u64>()
        };
        let (long, half) = (slower(100_000_000), slower(500_000_000));
        assert!((850..=1150).contains(&long), "{long} operations over 100 ms");
        assert!((430..=580).contains(&half), "{half} operations over 500 ms");
        let service: u64 = outcome
            .histograms
            .iter()
            .flat_map(|h| h.service.as_ref().unwrap().buckets().collect::<Vec<_>>())
            .filter(|(ns, _)| *ns > 100_000_000)
            .map(|(_, count)| count)
            .sum();
        assert!(service <= u64::from(workers * depth), "{service} were submitted into the stall");
        assert!(outcome.totals.lag_ns_max >= 990_000_000, "lag shows the stall");
    }
}

#[test]
fn overload_is_survived_and_what_was_never_submitted_is_counted() {
    // The disk serves 10,000 operations per second; a million are due.
    let disk = SimSpec { parallelism: 1, ..SimSpec::new(SPAN, 1) };
    let pacing = Pacing::Open { rate_per_s: 1e6, poisson: false };
    let load = Load::new(spec(1, 4, pacing), Medium::Simulated(SimDisk::new(disk)));
    let running = start(load).unwrap();
    while running.totals().completed_ops < 5000 {
        std::thread::yield_now();
    }
    let outcome = running.stop(LIMIT);
    let (done, overdue) = (outcome.totals.completed_ops, outcome.overdue_ops);
    let ratio = (done + overdue) as f64 / done as f64;
    assert!((99.0..101.0).contains(&ratio), "{done} done and {overdue} overdue");
}

fn engine(disk: &SimDisk, worker: u32) -> Sim {
    let medium = Medium::Simulated(disk.clone());
    Sim::open(Setup { medium, worker, slots: 8, slot_bytes: BLOCK as usize })
        .expect("the simulated disk takes every engine")
}

fn perform(sim: &mut Sim, op: RequestOp, slot: usize, offset_bytes: u64) -> Completion {
    sim.submit(Request { op, offset_bytes, len_bytes: BLOCK as u32, slot })
        .expect("the simulated engine does not break");
    let mut out = Vec::new();
    sim.reap(Wait::One, &mut out).expect("the simulated engine does not break");
    out[0]
}

#[test]
fn engines_of_one_thread_share_disk_and_time() {
    let disk = SimDisk::new(SimSpec::new(SPAN, 1));
    let (mut writer, mut reader) = (engine(&disk, 0), engine(&disk, 1));
    writer.buffer(0).fill(3);
    assert_eq!(perform(&mut writer, RequestOp::Write, 0, 0).completed_ns, 100_000);
    assert_eq!(perform(&mut reader, RequestOp::Read, 0, 0).completed_ns, 200_000);
    assert!(reader.buffer(0).iter().all(|byte| *byte == 3));
    let mut out = Vec::new();
    reader.reap(Wait::Until(900_000), &mut out).unwrap();
    assert_eq!((reader.now_ns(), out.len()), (900_000, 0));
}

#[test]
fn a_power_loss_takes_what_was_not_synced_and_nothing_else() {
    let mut torn = 0;
    for seed in 0..200 {
        let disk = SimDisk::new(SimSpec::new(SPAN, seed));
        let mut sim = engine(&disk, 0);
        let mut write = |op, block: u64, sequence| {
            seal(&mut sim.buffer(0)[..], 1, block * BLOCK, sequence);
            assert_eq!(perform(&mut sim, op, 0, block * BLOCK).result, Ok(BLOCK as u32));
        };
        write(RequestOp::Write, 0, 1);
        write(RequestOp::WriteDsync, 1, 1);
        write(RequestOp::Write, 2, 1);
        assert_eq!(perform(&mut sim, RequestOp::Fdatasync, 0, 0).result, Ok(0));
        let mut write = |op, block: u64, sequence| {
            seal(&mut sim.buffer(0)[..], 1, block * BLOCK, sequence);
            perform(&mut sim, op, 0, block * BLOCK)
        };
        write(RequestOp::Write, 2, 2);
        // In flight when power is lost: its flush must not take effect afterwards.
        sim.submit(Request { op: RequestOp::Fdatasync, offset_bytes: 0, len_bytes: 0, slot: 1 })
            .unwrap();
        let report = disk.power_loss();
        assert_eq!(report.survived_writes + report.torn_writes + report.lost_writes, 1);
        let mut data = vec![0; BLOCK as usize];
        let mut verdict = |block: u64, sequence| {
            disk.read(block * BLOCK, &mut data);
            check(&data, &Expected { file_id: 1, offset_bytes: block * BLOCK, sequence }, true)
        };
        assert_eq!((verdict(0, 1..=1), verdict(1, 1..=1)), (Ok(1), Ok(1)), "durable stays");
        let last = verdict(2, 1..=2);
        let told = (report.survived_writes, report.torn_writes, report.lost_writes);
        match told {
            (1, ..) => assert_eq!(last, Ok(2)),
            (_, _, 1) => assert_eq!(last, Ok(1)),
            _ => {
                torn += 1;
                assert!(last.is_err(), "a torn block is never taken for whole: {last:?}");
            }
        }
    }
    assert!((40..100).contains(&torn), "{torn} of 200 torn at one in three");
}

#[test]
fn requests_from_before_a_power_loss_fail_and_have_no_effect() {
    let disk = SimDisk::new(SimSpec::new(SPAN, 1));
    disk.set_faults(Faults { lost_probability: 1.0, ..Faults::default() });
    let mut sim = engine(&disk, 0);
    sim.buffer(0).fill(1);
    let request =
        |slot| Request { op: RequestOp::WriteDsync, offset_bytes: 0, len_bytes: 512, slot };
    sim.submit(request(0)).unwrap();
    let mut out = Vec::new();
    sim.reap(Wait::Until(1), &mut out).unwrap();
    assert!(out.is_empty(), "accepted and under way");
    assert_eq!(disk.power_loss().lost_writes, 1);
    sim.reap(Wait::One, &mut out).unwrap();
    assert_eq!(out[0].result, Err(5));
    let mut sector = [9; 512];
    disk.read(0, &mut sector);
    assert_eq!(sector, [0; 512]);
}

#[test]
fn the_disk_is_usable_without_engines() {
    let disk = SimDisk::new(SimSpec::new(SPAN, 1));
    let clone = disk.clone();
    disk.write(512, &[4; 1024]);
    disk.sync();
    assert_eq!(clone.power_loss(), blockstone_engine::sim::PowerLoss::default());
    let mut data = [0; 1024];
    clone.read(512, &mut data);
    assert_eq!(data, [4; 1024]);
    assert_eq!(Arc::new(clone).size_bytes(), SPAN);
}

/// Records which stripe each worker writes to; one worker's sequences are equal modulo the workers.
#[derive(Debug)]
struct Stripes(Mutex<[[u32; 4]; WRITERS]>);

const WRITERS: usize = 4;

impl Content for Stripes {
    fn prepare(&self, offset_bytes: u64, sequence: u64, _: &mut [u8]) {
        let (worker, stripe) = ((sequence - 1) as usize % WRITERS, offset_bytes / BLOCK % 4);
        self.0.lock().expect("no worker panicked")[worker][stripe as usize] += 1;
    }

    fn verify(&self, _: u64, _: &[u8], _: bool) -> Check {
        Check::default()
    }
}

#[test]
fn random_writers_visit_all_stripes_of_a_volume_alike() {
    const EACH: u64 = 4_000;
    let size_bytes = 65_536 * BLOCK;
    let spec = LoadSpec { op: Op::Write, span_bytes: size_bytes, ..spec(4, 1, Pacing::Closed) };
    let stripes = Arc::new(Stripes(Mutex::default()));
    let disk = SimDisk::new(SimSpec { parallelism: 4, ..SimSpec::new(size_bytes, 1) });
    let load = Load {
        length: Length::Operations(EACH),
        content: Arc::clone(&stripes) as Arc<dyn Content>,
        ..Load::new(spec, Medium::Simulated(disk))
    };
    let outcome = start(load).unwrap().wait(LIMIT);
    assert_eq!(outcome.totals.completed_ops, 4 * EACH);
    let visits = stripes.0.lock().unwrap();
    let expected = EACH as f64 / 4.0;
    let squares = visits.iter().flatten().map(|&n| (f64::from(n) - expected).powi(2));
    let chi_square = squares.sum::<f64>() / expected;
    // 12 degrees of freedom: beyond 38 once in 10,000 seeds.
    assert!(chi_square < 38.0, "chi-square {chi_square:.0}: {visits:?}");
}

#[test]
fn what_a_window_s_end_cuts_off_counts_as_at_least_so_long() {
    // The disk serves 10,000 operations per second; 100,000 are due.
    let disk = SimSpec { parallelism: 1, ..SimSpec::new(SPAN, 1) };
    let pacing = Pacing::Open { rate_per_s: 1e5, poisson: false };
    let load = Load::new(spec(1, 4, pacing), Medium::Simulated(SimDisk::new(disk)));
    let running = start(load).unwrap();
    running.open_window();
    while running.totals().completed_ops < 5000 {
        std::thread::yield_now();
    }
    running.close_window();
    let outcome = running.stop(LIMIT);
    let windowed = outcome.histograms.iter().filter(|h| h.windowed);
    let mut completed = LatencyHistogram::new();
    windowed.for_each(|h| completed.merge(&h.latency));
    let unfinished = &outcome.unfinished;
    let ratio = unfinished.count() as f64 / completed.count() as f64;
    assert!((8.0..15.0).contains(&ratio), "{} completed", completed.count());
    // The overdue operations were due every 10 µs until the end.
    let longest_ns = unfinished.max_ns() as f64;
    assert!((unfinished.count() as f64 * 1e4 / longest_ns - 1.0).abs() < 0.02, "{longest_ns} ns");
    let median = completed.quantile_with((unfinished, 4), 0.5, &[], 1);
    assert!(median.is_lower_bound(), "{median:?}");
    assert!((median.value / longest_ns - 0.5).abs() < 0.05, "{median:?} of {longest_ns} ns");
}

#[test]
fn a_closed_loop_has_as_many_unfinished_operations_as_were_in_flight() {
    let load = Load::new(spec(2, 8, Pacing::Closed), Medium::Simulated(SimDisk::new(lognormal(1))));
    let running = start(load).unwrap();
    running.open_window();
    while running.totals().completed_ops < 500 {
        std::thread::yield_now();
    }
    running.close_window();
    let outcome = running.stop(LIMIT);
    let unfinished = &outcome.unfinished;
    assert!((2..=16).contains(&unfinished.count()), "{}", unfinished.count());
    let windowed = outcome.histograms.iter().filter(|h| h.windowed).map(|h| h.latency.count());
    assert!(windowed.sum::<u64>() + unfinished.count() <= outcome.totals.completed_ops);
}

/// A device that serves one request at a time takes as long for a mix as for its reads and its
/// writes separately: 1 ÷ (r/R + w/W).
#[test]
fn a_mix_takes_the_time_of_its_reads_and_of_its_writes() {
    let disk = || SimSpec {
        write_service: Some(Distribution::LogNormal { median_ns: 250_000.0, sigma: 0.3 }),
        parallelism: 2,
        ..lognormal(3)
    };
    let rate = |op, read_pct| {
        let spec = LoadSpec { op, read_pct, ..spec(4, 4, Pacing::Closed) };
        let outcome = run(spec, disk(), 5_000);
        assert_eq!(outcome.totals.completed_ops, 20_000);
        // Sixteen are in flight at all times: Little's law.
        16.0 * 20_000.0 / outcome.totals.latency_ns_sum as f64 * 1e9
    };
    let (reads, writes) = (rate(Op::Read, None), rate(Op::Write, None));
    assert!(reads > 1.5 * writes, "{reads} {writes}");
    for pct in [20, 50, 70] {
        let share = f64::from(pct) / 100.0;
        let formula = 1.0 / (share / reads + (1.0 - share) / writes);
        let mixed = rate(Op::Mixed, Some(pct));
        assert!((mixed / formula - 1.0).abs() < 0.03, "{pct} %: {mixed} of {formula}");
    }
}
