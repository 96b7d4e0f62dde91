//! The records of a worker. Counters are published without locks, one writer each, on cache lines
//! of their own. Histograms belong to the worker for one second and are then handed over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use blockstone_base::LatencyHistogram;
use blockstone_base::load::{Op, Pacing, SERIES};
use parking_lot::{Mutex, MutexGuard};

use crate::engine::Medium;
use crate::load::Load;

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
    pub last_completed_ns,
}
}

const COLUMNS: usize = SERIES.columns.len();

blockstone_base::counters! {
/// The part of a load that went to one of several files: the columns of
/// [`blockstone_base::load::SHARES`], where each is described.
pub struct Share {
    pub completed_ops,
    pub completed_bytes,
    pub failed_ops,
    pub latency_ns_sum,
}
}

impl Totals {
    /// Adds the totals of `other`; the lag and the last completion are the maximum of both.
    pub fn add(&mut self, other: Self) {
        let lag_ns_max = self.lag_ns_max.max(other.lag_ns_max);
        let last_completed_ns = self.last_completed_ns.max(other.last_completed_ns);
        *self += other;
        (self.lag_ns_max, self.last_completed_ns) = (lag_ns_max, last_completed_ns);
    }
}

/// Duration of a page of histograms: this part of a second.
const PAGE_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The latencies of one second or of one page of it, merged over all workers.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedHistogram {
    /// Completion time of the operations, in whole seconds since the load's origin.
    pub second: u32,
    /// Which 50 ms of that second, from 0; `None` for all of it.
    pub page: Option<u8>,
    pub op: Op,
    /// Whether they completed while the window was open.
    pub windowed: bool,
    /// Latency from the intended start, in nanoseconds.
    pub latency: LatencyHistogram,
    /// Latency from the submission; only in an open loop, where the two differ.
    pub service: Option<LatencyHistogram>,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub stop: AtomicBool,
    /// [`BEFORE`], [`OPEN`], or the time at which the window was closed.
    pub window: AtomicU64,
    pub stations: Vec<Station>,
    pub append_cursor: Arc<AtomicU64>,
    op: Op,
    origin_ns: u64,
    /// Whether completions in the window are kept by page.
    paged: bool,
    parts: Mutex<BTreeMap<Period, Pair>>,
    unfinished: Mutex<LatencyHistogram>,
    first_error: Mutex<Option<String>>,
    first_mismatch: Mutex<Option<String>>,
}

/// No window has been opened yet.
pub(crate) const BEFORE: u64 = 0;
pub(crate) const OPEN: u64 = u64::MAX;

/// One worker's place in the ledger, two cache lines apart from the next because processors fetch
/// pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Station {
    counters: [AtomicU64; COLUMNS],
    /// Counters of each of several files; empty for one.
    shares: Vec<[AtomicU64; Share::COUNT]>,
    /// Operations that were due when the worker ended and had not been submitted.
    pub overdue: AtomicU64,
    /// Set if the worker ended before its work was done without having been asked to.
    pub failed: AtomicBool,
    page: Mutex<Page>,
}

#[derive(Debug)]
pub(crate) struct Page {
    end_ns: u64,
    part: Period,
    pair: Pair,
}

/// The period in which operations completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Period {
    second: u32,
    windowed: bool,
    page: Option<u8>,
}

#[derive(Debug)]
struct Pair {
    latency: LatencyHistogram,
    service: Option<LatencyHistogram>,
}

impl Ledger {
    pub fn new(load: &Load) -> Self {
        let open_loop = matches!(load.spec.pacing, Pacing::Open { .. });
        let files = match &load.medium {
            Medium::Files(files) => files.files().len(),
            _ => 0,
        };
        let station = || Station {
            counters: Default::default(),
            shares: (0..files).map(|_| Default::default()).collect(),
            overdue: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            page: Mutex::new(Page {
                end_ns: 0,
                part: Period::default(),
                pair: Pair::new(open_loop),
            }),
        };
        Self {
            stop: AtomicBool::new(false),
            window: AtomicU64::new(BEFORE),
            stations: (0..load.spec.workers).map(|_| station()).collect(),
            append_cursor: Arc::default(),
            op: load.spec.op,
            origin_ns: load.origin_ns,
            paged: load.paged,
            parts: Mutex::default(),
            unfinished: Mutex::default(),
            first_error: Mutex::default(),
            first_mismatch: Mutex::default(),
        }
    }

    /// Returns the sum over all workers, without stopping any of them: each counter is exact, but
    /// together they may straddle the completions of one moment.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for station in &self.stations {
            let values = station.counters.each_ref().map(|counter| counter.load(Ordering::Relaxed));
            totals.add(values.into());
        }
        totals
    }

    /// Returns a time of the monotonic clock as one since the recording began.
    #[inline]
    pub fn since_origin_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.origin_ns)
    }

    /// Returns the part of each of several files; empty for one.
    pub fn shares(&self) -> Vec<Share> {
        let files = self.stations.first().map_or(0, |station| station.shares.len());
        let mut shares = vec![Share::default(); files];
        for station in &self.stations {
            for (sum, share) in shares.iter_mut().zip(&station.shares) {
                *sum += share.each_ref().map(|counter| counter.load(Ordering::Relaxed)).into();
            }
        }
        shares
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

    /// Makes `page` the one for an operation that completed at `completed_ns`; hands over the
    /// filled one if a second, a page or the window has ended. Returns whether it did: that takes
    /// some 20 µs, which must not be counted as latency.
    #[inline]
    pub fn turn(&self, page: &mut Page, completed_ns: u64, windowed: bool) -> bool {
        if completed_ns < page.end_ns && windowed == page.part.windowed {
            return false;
        }
        self.hand_over(page);
        let since_ns = self.since_origin_ns(completed_ns);
        let second = u32::try_from(since_ns / SECOND_NS).unwrap_or(u32::MAX);
        let paged = self.paged && windowed;
        let length_ns = if paged { PAGE_NS } else { SECOND_NS };
        let of_second = paged.then_some((since_ns % SECOND_NS / PAGE_NS) as u8);
        page.part = Period { second, windowed, page: of_second };
        page.end_ns = self.origin_ns + (since_ns / length_ns + 1) * length_ns;
        true
    }

    fn hand_over(&self, page: &mut Page) {
        if page.pair.latency.count() == 0 {
            return;
        }
        let mut parts = self.parts.lock();
        let open_loop = page.pair.service.is_some();
        let merged = parts.entry(page.part).or_insert_with(|| Pair::new(open_loop));
        merged.take(&mut page.pair);
    }

    /// Adds operations that were due and not completed when the window closed.
    pub fn add_unfinished(&self, lasted: &LatencyHistogram) {
        self.unfinished.lock().merge(lasted);
    }

    pub fn unfinished(&self) -> LatencyHistogram {
        self.unfinished.lock().clone()
    }

    /// Returns all histograms, including those that a stuck worker holds.
    pub fn histograms(&self) -> Vec<TimedHistogram> {
        for station in &self.stations {
            self.hand_over(&mut station.page());
        }
        let parts = std::mem::take(&mut *self.parts.lock());
        let histogram = |(part, pair): (Period, Pair)| TimedHistogram {
            second: part.second,
            page: part.page,
            op: self.op,
            windowed: part.windowed,
            latency: pair.latency,
            service: pair.service,
        };
        parts.into_iter().map(histogram).collect()
    }
}

impl Station {
    /// Publishes a worker's own totals. Plain stores suffice, as there is no other writer.
    #[inline]
    pub fn publish(&self, totals: &Totals) {
        for (counter, value) in self.counters.iter().zip(totals.values()) {
            counter.store(value, Ordering::Relaxed);
        }
    }

    /// Adds to the counters of one of several files. Plain stores, as in [`Station::publish`].
    #[inline]
    pub fn add(&self, file: usize, part: &Share) {
        for (counter, value) in self.shares[file].iter().zip(part.values()) {
            counter.store(counter.load(Ordering::Relaxed) + value, Ordering::Relaxed);
        }
    }

    /// Returns the worker's histograms. The lock is the worker's own; others take it only once the
    /// load is being stopped.
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
    use blockstone_base::load::{Access, LoadSpec};

    use super::*;
    use crate::engine::Medium;

    fn one_reader() -> Load {
        let spec = LoadSpec {
            engine: "null".into(),
            op: Op::Read,
            read_pct: None,
            access: Access::Random,
            block_bytes: 512,
            workers: 1,
            depth_per_worker: 1,
            span_bytes: 512,
            offset_bytes: 0,
            sync: None,
            flush_alone: false,
            direct: true,
            pacing: Pacing::Closed,
            seed: 1,
        };
        Load::new(spec, Medium::Nothing)
    }

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
    fn seconds_pages_and_windows_are_kept_apart_and_nothing_is_lost() {
        let parts = |paged| {
            let load = Load { origin_ns: 1_000, paged, ..one_reader() };
            let ledger = Ledger::new(&load);
            let record = |completed_ns, windowed| {
                let mut page = ledger.stations[0].page();
                ledger.turn(&mut page, completed_ns, windowed);
                page.record(10, 10);
            };
            record(1_000, false);
            record(1_000_000_999, false);
            record(1_000_001_000, false);
            for late_ns in [1, 49_999_999, 50_000_000, 999_999_999] {
                record(1_000_001_000 + late_ns, true);
            }
            let seen = ledger.histograms();
            let part = |h: &TimedHistogram| (h.second, h.windowed, h.page, h.latency.count());
            seen.iter().map(part).collect::<Vec<_>>()
        };
        let before = [(0, false, None, 2), (1, false, None, 1)];
        assert_eq!(parts(false), [before[0], before[1], (1, true, None, 4)]);
        let pages = [0, 1, 19].map(|page| (1, true, Some(page), if page == 0 { 2 } else { 1 }));
        assert_eq!(parts(true), [&before[..], &pages].concat());
    }
}
