//! Cost of sampling the processors: the processor time of a fixed piece of work with and without
//! it, in turns, and that of the thread that adds up the samples. `cargo bench -p blockstone-probe
//! --bench profile`, as root, on an idle machine.

#![allow(clippy::print_stdout, reason = "the figures are what it is run for")]

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_probe::Row;
use blockstone_probe::profile::{self, ProfileSpec};
use blockstone_sys::account;

const ROUNDS: usize = 41;
/// No sampling, the rate normally used, and a rate at which the cost of samples stands out.
const RATES: [Option<u32>; 3] = [None, Some(ProfileSpec::PER_SECOND), Some(5000)];
const STEPS: u64 = 60_000_000;
const REST: Duration = Duration::from_secs(10);

fn main() {
    let mut costs = RATES.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (rate, costs) in RATES.iter().zip(&mut costs) {
            let probe = rate.map(|per_second| {
                profile::open(ProfileSpec { per_second, ..ProfileSpec::everybody() })
            });
            costs.push(work_ns());
            drop(probe);
        }
    }
    let medians = costs.map(|mut costs| {
        costs.sort_by(f64::total_cmp);
        costs[costs.len() / 2]
    });
    for (rate, median) in RATES.iter().zip(medians) {
        let more = 100.0 * (median / medians[0] - 1.0);
        let each = rate.map_or(0.0, |rate| (median / medians[0] - 1.0) * 1e9 / f64::from(rate));
        println!("{rate:?} a second: {median:.0} ns ({more:+.2} %), {each:.0} ns a sample");
    }
    let mut probe = profile::open(ProfileSpec::everybody());
    let (started, before_ns) = (Instant::now(), process_ns());
    let mut rows: Vec<Row> = Vec::new();
    while started.elapsed() < REST {
        thread::sleep(Duration::from_secs(1));
        rows.clear();
        probe.sample(&mut rows);
    }
    let share = (process_ns() - before_ns) / started.elapsed().as_nanos() as f64;
    println!("adding up and looking: {:.2} % of a processor, {} rows", 100.0 * share, rows.len());
}

/// Returns the processor time of this thread for a fixed piece of work.
fn work_ns() -> f64 {
    let thread = account::current_thread();
    let before_ns = thread_ns(thread);
    let mut state = std::hint::black_box(1_u64);
    for _ in 0..STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    std::hint::black_box(state);
    thread_ns(thread) - before_ns
}

fn thread_ns(thread: u32) -> f64 {
    let account = account::account(Path::new("/"), std::process::id(), Some(thread));
    account.and_then(|account| account.cpu_ns).unwrap_or(0) as f64
}

fn process_ns() -> f64 {
    account::thread_ids(Path::new("/"), std::process::id()).into_iter().map(thread_ns).sum()
}
