//! A session: its clock, its open calls and its cursors.

use super::record::Call;
use super::tally::{FastMap, Tallies};

/// The clock of a session does not go back by more than this within one piece of a trace.
const BACKWARDS_US: i64 = 1_000_000;

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub cpu: i64,
    pub elapsed: i64,
    pub physical_reads: i64,
    pub consistent_reads: i64,
    pub current_reads: i64,
}

impl Used {
    fn of(call: &Call) -> Self {
        Self {
            cpu: call.cpu,
            elapsed: call.elapsed,
            physical_reads: call.physical_reads,
            consistent_reads: call.consistent_reads,
            current_reads: call.current_reads,
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
        self.physical_reads = self.physical_reads.saturating_add(other.physical_reads);
        self.consistent_reads = self.consistent_reads.saturating_add(other.consistent_reads);
        self.current_reads = self.current_reads.saturating_add(other.current_reads);
    }

    fn take(&mut self, other: &Self) {
        self.cpu = self.cpu.saturating_sub(other.cpu);
        self.elapsed = self.elapsed.saturating_sub(other.elapsed);
        self.physical_reads = self.physical_reads.saturating_sub(other.physical_reads);
        self.consistent_reads = self.consistent_reads.saturating_sub(other.consistent_reads);
        self.current_reads = self.current_reads.saturating_sub(other.current_reads);
    }
}

/// Calls of one depth whose caller has not ended yet.
#[derive(Clone, Copy, Debug, Default)]
struct Children {
    calls: u64,
    used: Used,
    end: i64,
}

impl Children {
    fn push(&mut self, call: &Call) {
        self.calls += 1;
        self.used.add(&Used::of(call));
        self.end = self.end.max(call.tim.unwrap_or(self.end));
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Trips {
    pub calls: u64,
    pub wait_us: u64,
    pub gap_us: u64,
}

impl Trips {
    pub fn add(&mut self, wait_us: u64, gap_us: u64) {
        self.calls += 1;
        self.wait_us = self.wait_us.saturating_add(wait_us);
        self.gap_us = self.gap_us.saturating_add(gap_us);
    }

    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.wait_us = self.wait_us.saturating_add(other.wait_us);
        self.gap_us = self.gap_us.saturating_add(other.gap_us);
    }
}

/// A wait for the client; the next call ends it.
#[derive(Clone, Copy, Debug)]
pub struct Trip {
    pub statement: Option<u32>,
    pub wait_us: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    pub statement: u32,
    /// Number of times a text was given for it.
    pub texts: u32,
}

#[derive(Debug, Default)]
pub struct Session {
    pub id: String,
    pub waits: Tallies,
    pub cursors: FastMap<u64, Cursor>,
    pub calls: u64,
    pub trips: Trips,
    pub trip: Option<Trip>,
    cpu_us: i64,
    outside_us: i64,
    /// CPU of recursive calls since a transaction ended; a call of the client may still enclose
    /// them.
    pending_us: i64,
    transaction_ended: bool,
    /// By depth; those above `deepest` are empty.
    children: Vec<Children>,
    deepest: usize,
    lobs: Children,
    client_call_end: Option<i64>,
    /// Whether there have been only waits since a call of the client ended.
    after_client_call: bool,
    pub waits_after: Vec<(u32, u64)>,
    span_us: i64,
    start: Option<i64>,
    end: i64,
}

impl Session {
    pub fn new(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    /// Advances the clock for something that lasted from `tim - elapsed` to `tim`.
    #[inline]
    pub fn at(&mut self, tim: Option<i64>, elapsed: i64) {
        let Some(tim) = tim else { return };
        let start = tim.saturating_sub(elapsed);
        match self.start {
            Some(first) if tim >= self.end.saturating_sub(BACKWARDS_US) => {
                self.start = Some(first.min(start));
                self.end = self.end.max(tim);
            }
            before => {
                if before.is_some() {
                    self.end_piece();
                }
                self.start = Some(start);
                self.end = tim;
            }
        }
    }

    fn end_piece(&mut self) {
        if let Some(start) = self.start.take() {
            self.span_us = self.span_us.saturating_add(self.end.saturating_sub(start));
        }
        self.forget_calls();
    }

    /// Ends the session: what follows belongs to another one, which is unknown so far.
    pub fn end(&mut self) {
        self.end_piece();
        self.cursors.clear();
        self.trip = None;
    }

    fn forget_calls(&mut self) {
        let pending = std::mem::take(&mut self.pending_us);
        self.outside_us = self.outside_us.saturating_add(pending);
        self.transaction_ended = false;
        self.children.clear();
        self.deepest = 0;
        self.lobs = Children::default();
        self.client_call_end = None;
        self.after_client_call = false;
    }

    /// Counts a call and returns its usage without that of the calls it made.
    #[inline]
    pub fn call(&mut self, call: &Call) -> Used {
        self.at(call.tim, call.elapsed);
        self.calls += 1;
        self.after_client_call = call.depth == Some(0);
        self.waits_after.clear();
        let mut own = Used::of(call);
        let Some(depth) = call.depth else {
            self.lobs.push(call);
            self.cpu_us = self.cpu_us.saturating_add(own.cpu);
            return own;
        };
        let start = call.tim.map_or(i64::MIN, |tim| tim.saturating_sub(call.elapsed));
        let enclosed = self.take_children(depth, start, &mut own);
        self.cpu_us = self.cpu_us.saturating_add(own.cpu);
        if depth == 0 {
            let pending = std::mem::take(&mut self.pending_us);
            if !enclosed {
                self.outside_us = self.outside_us.saturating_add(pending);
            }
            self.transaction_ended = false;
            return own;
        }
        if self.transaction_ended {
            self.pending_us = self.pending_us.saturating_add(own.cpu);
        }
        if self.children.len() <= depth {
            self.children.resize(depth + 1, Children::default());
        }
        self.children[depth].push(call);
        self.deepest = self.deepest.max(depth);
        own
    }

    /// Subtracts the calls that ended since `start` at greater depth; returns whether there were
    /// any.
    fn take_children(&mut self, depth: usize, start: i64, own: &mut Used) -> bool {
        let mut enclosed = false;
        while self.deepest > depth {
            let child = std::mem::take(&mut self.children[self.deepest]);
            self.deepest -= 1;
            if child.calls > 0 && child.end > start {
                own.take(&child.used);
                enclosed = true;
            }
        }
        if self.lobs.calls > 0 {
            let inside = self.lobs.end > start;
            if inside {
                own.take(&self.lobs.used);
            }
            if inside || depth == 0 {
                self.lobs = Children::default();
            }
        }
        enclosed
    }

    /// Notes a wait of a cursor, which may turn out to be between calls.
    #[inline]
    pub fn waited(&mut self, statement: u32, us: u64) {
        /// Waits between calls are few; with more, the waits are within a call.
        const MOST: usize = 16;
        if self.after_client_call {
            self.waits_after.push((statement, us));
            self.after_client_call = self.waits_after.len() < MOST;
        }
    }

    /// The session waits for the client, so the waits since its last call are between calls.
    pub fn between_calls(&mut self) -> impl Iterator<Item = (u32, u64)> {
        let known = if self.after_client_call { self.waits_after.len() } else { 0 };
        self.waits_after.drain(..known)
    }

    /// Handles a call sent by the client; returns the wait for it, and the time since the last call
    /// ended.
    pub fn client_call(&mut self, call: &Call) -> Option<(Trip, u64)> {
        let tim = call.tim?;
        let start = tim.saturating_sub(call.elapsed);
        let end = self.client_call_end.replace(tim);
        let trip = self.trip.take()?;
        let gap = end.map_or(0, |end| start.saturating_sub(end)).max(0) as u64;
        Some((trip, gap.max(trip.wait_us)))
    }

    pub fn transaction_end(&mut self) {
        self.transaction_ended = self.deepest == 0;
    }

    pub fn cpu_us(&self) -> i64 {
        self.cpu_us.saturating_sub(self.outside_cpu_us())
    }

    pub fn outside_cpu_us(&self) -> i64 {
        self.outside_us.saturating_add(self.pending_us)
    }

    pub fn span_us(&self) -> Option<i64> {
        match self.start {
            Some(start) => Some(self.span_us.saturating_add(self.end.saturating_sub(start))),
            None => (self.span_us > 0).then_some(self.span_us),
        }
    }
}

impl Session {
    /// Applies new statement numbers.
    pub fn renumber(&mut self, numbers: &[u32]) {
        let new = |statement: u32| numbers.get(statement as usize).copied().unwrap_or(0);
        self.cursors.values_mut().for_each(|cursor| cursor.statement = new(cursor.statement));
        if let Some(trip) = &mut self.trip {
            trip.statement = trip.statement.map(new);
        }
        self.waits_after.iter_mut().for_each(|(statement, _)| *statement = new(*statement));
    }
}
