//! Latencies by operation and by event, and whether they agree with the rates.

use blockstone_base::database::{STATEMENTS, TABLE_STEPS, TRANSACTIONS};
use blockstone_base::histogram::{Buckets, LatencyHistogram};
use blockstone_record::LatencyClock;

use super::window::RunWindow;
use super::{LittlesLaw, Percentiles};

/// Returns the percentiles of operations from their intended start, then of events, those of the
/// sessions first.
pub fn percentiles(window: &RunWindow) -> Vec<Percentiles> {
    let of_part = if window.is_part() { window.histograms_of_part() } else { Vec::new() };
    let all: Vec<(&str, LatencyClock, &LatencyHistogram)> = if window.is_part() {
        of_part.iter().map(|(name, clock, all)| (*name, *clock, all)).collect()
    } else {
        window.histograms().collect()
    };
    let mut out = Vec::new();
    for name in STATEMENTS.into_iter().chain(TRANSACTIONS).chain(TABLE_STEPS) {
        let of = |clock| all.iter().find(|found| (found.0, found.1) == (name, clock));
        let unfinished = of(LatencyClock::Unfinished).map(|found| found.2);
        let found = of(LatencyClock::Intended);
        let seconds = window.seconds_of(name, LatencyClock::Intended);
        out.extend(
            found.and_then(|(.., all)| row(window, (name, ""), (all, &seconds), unfinished)),
        );
    }
    let events = all.iter().filter_map(|(name, clock, histogram)| {
        let (role, event) = name.split_once('/')?;
        row(window, (event, role), (histogram, &window.seconds_of(name, *clock)), None)
    });
    let mut events: Vec<Percentiles> = events.collect();
    events.sort_by_key(|row| (row.role != super::time::SESSION, std::cmp::Reverse(row.count)));
    out.extend(events);
    out
}

fn row(
    window: &RunWindow,
    (name, role): (&str, &str),
    (histogram, seconds): (&LatencyHistogram, &[&Buckets]),
    unfinished: Option<&LatencyHistogram>,
) -> Option<Percentiles> {
    let none = LatencyHistogram::new();
    let lasted = unfinished.unwrap_or(&none);
    let mut with_unfinished = histogram.clone();
    with_unfinished.merge(lasted);
    // A session has one operation in flight.
    let unfinished_of = (lasted, window.sessions());
    let quantile = |q| histogram.quantile_with(unfinished_of, q, seconds, window.duration_ns());
    let median = quantile(0.5);
    (histogram.count() > 0).then(|| Percentiles {
        name: name.to_owned(),
        role: role.to_owned(),
        count: histogram.count(),
        ns_mean: histogram.mean_ns(),
        ns_p50: median,
        ns_p90: quantile(0.9).not_below(&median),
        ns_p99: quantile(0.99).not_below(&median),
        ns_p999: quantile(0.999).not_below(&median),
        ns_p9999: quantile(0.9999).not_below(&median),
        ns_max: histogram.max_ns().max(lasted.max_ns()),
        unfinished: unfinished.map(LatencyHistogram::count),
        spread: with_unfinished.buckets().collect(),
    })
}

/// Checks Little's law on operations in a closed loop, and on physical reads if the sessions only
/// read: in that case sessions ÷ reads a second is the latency of a read, apart from the processor
/// time.
pub fn littles_law(window: &RunWindow) -> Vec<LittlesLaw> {
    let sessions = window.sessions();
    // The reads of a scan overlap, and its operations are too long for the number in a window to be
    // exact, as are those that make tables.
    let has_rate = window.parameters().rate_per_s.is_some();
    if sessions == 0 || has_rate || window.scans() || window.writes_tables() {
        return Vec::new();
    }
    let grown = |column| window.grown_of_all("operation", column).ok();
    let read = || {
        let event = |column| window.grown("event", "session/db file sequential read", column).ok();
        Some((event("waits")?, event("time_ns")?))
    };
    let law = |what, (count, time_ns): (u64, u64), think_ns: u64| {
        // A part in which none completed took its time all the same.
        if count == 0 && !window.is_part() {
            return None;
        }
        let n = count as f64;
        let expected_ns = (sessions as f64 * window.duration_ns() as f64 - think_ns as f64) / n;
        let measured_ns = time_ns as f64 / n;
        (expected_ns > 0.0).then(|| LittlesLaw {
            what,
            sessions,
            per_s: n / window.seconds(),
            expected_ns,
            measured_ns,
            ratio: measured_ns / expected_ns,
        })
    };
    let think_ns = grown("think_ns_sum").unwrap_or(0);
    let operations = grown("completed_ops").zip(grown("service_ns_sum"));
    let mut laws: Vec<LittlesLaw> =
        operations.and_then(|sums| law("operations", sums, think_ns)).into_iter().collect();
    if grown("commits") == Some(0) {
        laws.extend(read().and_then(|sums| law("physical reads", sums, think_ns)));
    }
    laws
}
