//! Admits writes at a limited rate while a die has to collect, so that they do not queue behind
//! collections.

use std::collections::VecDeque;

use super::plan::Plan;
use crate::ftl::Config;
use crate::workload::Request;

/// A write that has not been admitted to the device yet.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub request: Request,
    pub arrived_ns: u64,
    /// Its slot among the requests in flight in a closed loop.
    pub slot: Option<u32>,
}

#[derive(Debug)]
pub struct Throttle {
    gap_ns: f64,
    /// Time at which the next write is admitted while collection is active.
    next_ns: f64,
    /// By die: whether it has to collect.
    collects: Vec<bool>,
    /// Number of dies that have to.
    collecting: u32,
    /// In the order of arrival.
    waiting: VecDeque<Waiting>,
    /// Writes that waited.
    pub throttled: u64,
}

impl Throttle {
    pub fn of(plan: &Plan, config: &Config) -> Option<Self> {
        Some(Self {
            gap_ns: 1e9 / plan.throttle?,
            next_ns: 0.0,
            collects: vec![false; config.dies as usize],
            collecting: 0,
            waiting: VecDeque::new(),
            throttled: 0,
        })
    }

    /// Number of free blocks for which a die collects: those that foreground collection keeps, one
    /// to open next and one to empty.
    pub fn free_wanted(config: &Config) -> u32 {
        config.free_blocks() + 2
    }

    pub fn set_collects(&mut self, die: u32, collects: bool) {
        let before = std::mem::replace(&mut self.collects[die as usize], collects);
        self.collecting = self.collecting + u32::from(collects) - u32::from(before);
    }

    /// Returns whether a write that arrives now is admitted immediately.
    pub fn admits(&self, arrived_ns: u64) -> bool {
        self.waiting.is_empty() && (self.collecting == 0 || self.next_ns <= arrived_ns as f64)
    }

    pub fn admitted(&mut self, at_ns: u64) {
        if self.collecting > 0 {
            self.next_ns = self.next_ns.max(at_ns as f64) + self.gap_ns;
        }
    }

    pub fn wait(&mut self, waiting: Waiting) {
        self.throttled += 1;
        self.waiting.push_back(waiting);
    }

    /// Time at which the first waiting write is admitted; `now_ns` at the earliest.
    pub fn next_admission_ns(&self, now_ns: u64) -> Option<u64> {
        let first = self.waiting.front()?;
        let earliest = first.arrived_ns.max(now_ns);
        Some(if self.collecting > 0 { earliest.max(self.next_ns as u64) } else { earliest })
    }

    pub fn take(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }
}
