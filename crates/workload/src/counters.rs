//! Counters of the sessions. Each session has its own counters, on its own cache lines, and is
//! their only writer; reading them does not disturb the session. Latencies go into one histogram
//! per kind of operation, which the reader empties: memory does not grow with sessions or time.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::thread;

use blockstone_base::LatencyHistogram;
use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{OPERATION, STATEMENTS, TABLE_STEPS, TRANSACTIONS};
use blockstone_base::histogram::SharedHistogram;
use blockstone_base::load::Op;
use blockstone_servers::Executed;

/// Names of all kinds of operations: single statements, then transactions, then the steps of a bulk
/// write.
pub const KINDS: [&str; STATEMENTS.len() + TRANSACTIONS.len() + TABLE_STEPS.len()] = {
    let [select, update, scan] = STATEMENTS;
    let [new_order, payment, order_status, delivery, stock_level] = TRANSACTIONS;
    let [create, flush, drop] = TABLE_STEPS;
    [
        select,
        update,
        scan,
        new_order,
        payment,
        order_status,
        delivery,
        stock_level,
        create,
        flush,
        drop,
    ]
};
const KINDS_LEN: usize = KINDS.len();
const COLUMNS: usize = OPERATION.columns.len();
const OPS: [Op; KINDS_LEN] = [
    Op::Read,
    Op::Commit,
    Op::Read,
    Op::Commit,
    Op::Commit,
    Op::Read,
    Op::Commit,
    Op::Read,
    Op::Commit,
    Op::Write,
    Op::Write,
];

/// Returns latencies of operations that have not ended, for each of `kinds`.
pub(crate) fn unfinished(
    lasted: impl Iterator<Item = (usize, u64)>,
    kinds: Range<usize>,
) -> impl Iterator<Item = (&'static str, Op, LatencyHistogram)> {
    let mut all: [LatencyHistogram; KINDS_LEN] = Default::default();
    lasted.for_each(|(kind, lasted_ns)| all[kind].record(lasted_ns));
    let named = KINDS.into_iter().zip(OPS).zip(all);
    named.skip(kinds.start).take(kinds.len()).map(|((name, op), lasted)| (name, op, lasted))
}

blockstone_base::counters! {
/// Counters of one kind of operation, summed over all sessions since they started: the columns of
/// [`OPERATION`], which describes each of them.
pub struct KindTotals {
    pub completed_ops,
    pub failed_ops,
    pub rows,
    pub commits,
    pub latency_ns_sum,
    pub service_ns_sum,
    pub lag_ns_sum,
    pub think_ns_sum,
    pub late_ns_sum,
    pub spin_ns_sum,
    pub bytes,
}
}

/// Counters of all kinds, in the order of [`KINDS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals(pub [KindTotals; KINDS_LEN]);

#[derive(Clone, Debug, PartialEq)]
pub struct SessionLatencies {
    pub name: &'static str,
    /// Direction: an update ends with a commit.
    pub op: Op,
    /// Latency from the intended start.
    pub latency: LatencyHistogram,
    /// Latency from the actual send; only in an open loop, where the two differ.
    pub service: Option<LatencyHistogram>,
}

impl Totals {
    pub fn rows(&self) -> u64 {
        self.0.iter().map(|kind| kind.rows).sum()
    }

    pub fn completed_ops(&self) -> u64 {
        self.0.iter().map(|kind| kind.completed_ops).sum()
    }

    pub fn commits(&self) -> u64 {
        self.0.iter().map(|kind| kind.commits).sum()
    }

    /// Appends one row for each of `kinds`, for the series [`OPERATION`].
    pub fn readings(&self, kinds: Range<usize>, readings: &mut Vec<Reading>) {
        for (name, kind) in KINDS[kinds.clone()].iter().zip(&self.0[kinds]) {
            readings.push(Reading {
                probe: OPERATION.probe,
                object: (*name).to_owned(),
                cells: kind.values().map(Cell::from).into(),
            });
        }
    }
}

#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_field_names, reason = "the unit stands last in a name")]
pub(crate) struct Timed {
    pub intended_ns: u64,
    /// When the session could have sent it, had it been due: the previous operation had ended.
    pub ready_ns: u64,
    pub sent_ns: u64,
    pub done_ns: u64,
}

/// The counters of one session. Aligned so that two sessions share no cache line, nor the pair of
/// lines that processors fetch together.
///
/// A reader sees an operation with all its counts or not at all: rows are always whole work units.
/// The version is odd while the session writes (a sequence lock, after Lameter 2005).
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SessionCounters {
    version: AtomicU64,
    /// Number of operations started; kind and intended start of one in progress.
    started: AtomicU64,
    current_kind: AtomicU64,
    current_ns: AtomicU64,
    kinds: [[AtomicU64; COLUMNS]; KINDS_LEN],
}

impl SessionCounters {
    /// Counts the start of an operation in this session.
    #[inline]
    pub fn begins(&self, kind: usize, intended_ns: u64) {
        self.write(|| {
            add(&self.started, 1);
            self.current_kind.store(kind as u64 + 1, Ordering::Relaxed);
            self.current_ns.store(intended_ns, Ordering::Relaxed);
        });
    }

    /// Returns how many operations were started, and the kind and intended start of one in
    /// progress.
    pub fn current(&self) -> (u64, Option<(usize, u64)>) {
        self.read(|| {
            let at = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let kind = (at(&self.current_kind) as usize).checked_sub(1);
            (at(&self.started), kind.map(|kind| (kind, at(&self.current_ns))))
        })
    }

    #[inline]
    pub fn completed(&self, kind: usize, executed: Executed, timed: Timed) {
        let Timed { intended_ns, ready_ns, sent_ns, done_ns } = timed;
        self.write(|| {
            self.current_kind.store(0, Ordering::Relaxed);
            let [completed, _, rows, commits, latency, service, lag, _, late, _, bytes] =
                &self.kinds[kind];
            add(completed, 1);
            add(rows, executed.rows);
            add(commits, executed.commits);
            add(bytes, executed.bytes);
            add(latency, done_ns - intended_ns);
            add(service, done_ns - sent_ns);
            add(lag, sent_ns - intended_ns);
            add(late, sent_ns - intended_ns.max(ready_ns));
        });
    }

    pub fn failed(&self, kind: usize) {
        self.write(|| add(&self.kinds[kind][1], 1));
    }

    pub fn thought(&self, kind: usize, think_ns: u64) {
        self.write(|| add(&self.kinds[kind][7], think_ns));
    }

    pub fn spun(&self, kind: usize, spin_ns: u64) {
        self.write(|| add(&self.kinds[kind][9], spin_ns));
    }

    #[inline]
    fn write(&self, change: impl FnOnce()) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        change();
        self.version.store(version + 2, Ordering::Release);
    }

    fn read<T>(&self, look: impl Fn() -> T) -> T {
        loop {
            let before = self.version.load(Ordering::Acquire);
            let values = look();
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return values;
            }
            // The session may have been preempted during its update.
            thread::yield_now();
        }
    }

    fn add_to(&self, totals: &mut Totals) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let kinds = self.read(|| self.kinds.each_ref().map(|kind| kind.each_ref().map(load)));
        for (kind, sum) in kinds.into_iter().zip(&mut totals.0) {
            *sum += kind.into();
        }
    }
}

/// Adds without a locked instruction, as there is only one writer.
#[inline]
fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Ordering::Relaxed) + value, Ordering::Relaxed);
}

#[derive(Debug)]
pub(crate) struct Counters {
    pub sessions: Box<[SessionCounters]>,
    latency: [SharedHistogram; KINDS_LEN],
    service: Option<[SharedHistogram; KINDS_LEN]>,
}

impl Counters {
    pub fn new(sessions: u32, open_loop: bool) -> Self {
        Self {
            sessions: (0..sessions).map(|_| SessionCounters::default()).collect(),
            latency: Default::default(),
            service: open_loop.then(Default::default),
        }
    }

    #[inline]
    pub fn record(&self, kind: usize, timed: Timed) {
        self.latency[kind].record(timed.done_ns - timed.intended_ns);
        if let Some(service) = &self.service {
            service[kind].record(timed.done_ns - timed.sent_ns);
        }
    }

    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.sessions.iter().for_each(|session| session.add_to(&mut totals));
        totals
    }

    pub fn take_latencies(&self) -> Vec<SessionLatencies> {
        let kinds = KINDS.into_iter().zip(OPS).enumerate();
        let taken = kinds.map(|(kind, (name, op))| SessionLatencies {
            name,
            op,
            latency: self.latency[kind].take(),
            service: self.service.as_ref().map(|service| service[kind].take()),
        });
        taken.filter(|taken| taken.latency.count() > 0).collect()
    }
}
