//! What a worker writes down. Counters are published without locks, one writer each, on cache
//! lines of their own. Histograms are a worker's own for one second and then handed over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use blockstone_base::LatencyHistogram;
use blockstone_base::load::{Op, SERIES};
use parking_lot::{Mutex, MutexGuard};

blockstone_base::counters! {
/// Counters of a load since its start, summed over its workers: the columns of
/// [`blockstone_base::load::SERIES`], where each is described.
pub struct Totals {
    pub completed_ops,
    pub completed_bytes,
    pub failed_ops,
    pub latency_ns_sum,
    pub service_ns_sum,
    pub lag_ns_sum,
    pub lag_ns_max,
    pub stamps_verified,
    pub checksums_verified,
    pub mismatches,
    pub late_ns_sum,
    pub spin_ns_sum,
}
}

const COLUMNS: usize = SERIES.columns.len();

impl Totals {
    /// Adds what others counted; the longest lag stays the longest.
    pub fn add(&mut self, other: Self) {
        let lag_ns_max = self.lag_ns_max.max(other.lag_ns_max);
        *self += other;
        self.lag_ns_max = lag_ns_max;
    }
}

/// The latencies of one second, merged over all workers.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondHistogram {
    /// Whole seconds since the load's origin at which the operations completed.
    pub second: u32,
    pub op: Op,
    /// Whether they completed while the window was open.
    pub windowed: bool,
    /// From the intended start, in nanoseconds.
    pub latency: LatencyHistogram,
    /// From the submission; only in an open loop, where the two differ.
    pub service: Option<LatencyHistogram>,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub stop: AtomicBool,
    /// [`BEFORE`], [`OPEN`], or the instant at which the window was closed.
    pub window: AtomicU64,
    pub stations: Vec<Station>,
    pub append_cursor: Arc<AtomicU64>,
    op: Op,
    origin_ns: u64,
    seconds: Mutex<BTreeMap<(u32, bool), Pair>>,
    unfinished: Mutex<LatencyHistogram>,
    first_error: Mutex<Option<String>>,
    first_mismatch: Mutex<Option<String>>,
}

/// No window was opened yet.
pub(crate) const BEFORE: u64 = 0;
/// The window is open.
pub(crate) const OPEN: u64 = u64::MAX;

/// One worker's place in the ledger. Two cache lines apart from the next: processors fetch pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Station {
    counters: [AtomicU64; COLUMNS],
    /// Operations that were due when the worker ended and had not been submitted.
    pub overdue: AtomicU64,
    /// Set when the worker ended before its work was done and was not asked to.
    pub failed: AtomicBool,
    page: Mutex<Page>,
}

#[derive(Debug)]
pub(crate) struct Page {
    end_ns: u64,
    second: u32,
    windowed: bool,
    pair: Pair,
}

#[derive(Debug)]
struct Pair {
    latency: LatencyHistogram,
    service: Option<LatencyHistogram>,
}

impl Ledger {
    pub fn new(op: Op, workers: u32, origin_ns: u64, open_loop: bool) -> Self {
        let station = || Station {
            counters: Default::default(),
            overdue: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            page: Mutex::new(Page {
                end_ns: 0,
                second: 0,
                windowed: false,
                pair: Pair::new(open_loop),
            }),
        };
        Self {
            stop: AtomicBool::new(false),
            window: AtomicU64::new(BEFORE),
            stations: (0..workers).map(|_| station()).collect(),
            append_cursor: Arc::default(),
            op,
            origin_ns,
            seconds: Mutex::default(),
            unfinished: Mutex::default(),
            first_error: Mutex::default(),
            first_mismatch: Mutex::default(),
        }
    }

    /// The sum over all workers, without stopping any of them: each counter is exact, the set of
    /// them may straddle the completions of one moment.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for station in &self.stations {
            let values = station.counters.each_ref().map(|counter| counter.load(Ordering::Relaxed));
            totals.add(values.into());
        }
        totals
    }

    pub fn note_error(&self, message: impl FnOnce() -> String) {
        self.first_error.lock().get_or_insert_with(message);
    }

    pub fn note_mismatch(&self, message: impl FnOnce() -> String) {
        self.first_mismatch.lock().get_or_insert_with(message);
    }

    pub fn first_error(&self) -> Option<String> {
        self.first_error.lock().clone()
    }

    pub fn first_mismatch(&self) -> Option<String> {
        self.first_mismatch.lock().clone()
    }

    /// Makes `page` the one for an operation that completed at `completed_ns`; hands the filled
    /// one over when a second or the window ended. Returns whether it did: that takes some 20 µs
    /// which must not be counted as latency.
    #[inline]
    pub fn turn(&self, page: &mut Page, completed_ns: u64, windowed: bool) -> bool {
        if completed_ns < page.end_ns && windowed == page.windowed {
            return false;
        }
        self.hand_over(page);
        let second = completed_ns.saturating_sub(self.origin_ns) / 1_000_000_000;
        page.second = u32::try_from(second).unwrap_or(u32::MAX);
        page.end_ns = self.origin_ns + (second + 1) * 1_000_000_000;
        page.windowed = windowed;
        true
    }

    fn hand_over(&self, page: &mut Page) {
        if page.pair.latency.count() == 0 {
            return;
        }
        let mut seconds = self.seconds.lock();
        let open_loop = page.pair.service.is_some();
        let key = (page.second, page.windowed);
        let merged = seconds.entry(key).or_insert_with(|| Pair::new(open_loop));
        merged.take(&mut page.pair);
    }

    /// Adds operations that were due and not completed when the window closed.
    pub fn add_unfinished(&self, lasted: &LatencyHistogram) {
        self.unfinished.lock().merge(lasted);
    }

    pub fn unfinished(&self) -> LatencyHistogram {
        self.unfinished.lock().clone()
    }

    /// All histograms, those that a stuck worker holds included.
    pub fn histograms(&self) -> Vec<SecondHistogram> {
        for station in &self.stations {
            self.hand_over(&mut station.page());
        }
        let seconds = std::mem::take(&mut *self.seconds.lock());
        let histogram = |((second, windowed), pair): (_, Pair)| SecondHistogram {
            second,
            op: self.op,
            windowed,
            latency: pair.latency,
            service: pair.service,
        };
        seconds.into_iter().map(histogram).collect()
    }
}

impl Station {
    /// Publishes a worker's own totals. Plain stores: there is no other writer.
    #[inline]
    pub fn publish(&self, totals: &Totals) {
        for (counter, value) in self.counters.iter().zip(totals.values()) {
            counter.store(value, Ordering::Relaxed);
        }
    }

    /// The worker's histograms. Its own lock, taken by others only once the load is being stopped.
    #[inline]
    pub fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock()
    }
}

impl Page {
    #[inline]
    pub fn record(&mut self, latency_ns: u64, service_ns: u64) {
        self.pair.latency.record(latency_ns);
        if let Some(service) = &mut self.pair.service {
            service.record(service_ns);
        }
    }
}

impl Pair {
    fn new(open_loop: bool) -> Self {
        Self { latency: LatencyHistogram::new(), service: open_loop.then(LatencyHistogram::new) }
    }

    fn take(&mut self, from: &mut Self) {
        self.latency.merge(&from.latency);
        from.latency.clear();
        if let (Some(mine), Some(theirs)) = (&mut self.service, &mut from.service) {
            mine.merge(theirs);
            theirs.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_the_columns_of_the_series_in_their_order() {
        let values: [u64; COLUMNS] = std::array::from_fn(|index| index as u64 + 1);
        let mut totals = Totals::default();
        totals.add(values.into());
        assert_eq!(totals.values(), values);
        let names: Vec<&str> = SERIES.columns.iter().map(|column| column.name).collect();
        let debug = format!("{totals:?}");
        let at: Vec<usize> = names.iter().map(|name| debug.find(name).unwrap()).collect();
        assert!(at.is_sorted(), "{debug}");
    }

    #[test]
    fn seconds_and_windows_are_kept_apart_and_nothing_is_lost() {
        let ledger = Ledger::new(Op::Read, 1, 1_000, false);
        let record = |completed_ns, windowed| {
            let mut page = ledger.stations[0].page();
            ledger.turn(&mut page, completed_ns, windowed);
            page.record(10, 10);
        };
        record(1_000, false);
        record(1_000_000_999, false);
        record(1_000_001_000, false);
        record(1_000_001_001, true);
        let seen: Vec<(u32, bool, u64)> =
            ledger.histograms().iter().map(|h| (h.second, h.windowed, h.latency.count())).collect();
        assert_eq!(seen, [(0, false, 2), (1, false, 1), (1, true, 1)]);
    }
}
