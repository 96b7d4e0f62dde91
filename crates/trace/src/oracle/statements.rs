//! The statements that took the most time; the others are merged.

use std::collections::HashMap;

use crate::format::Limits;

use super::record::{Call, CallKind};
use super::session::{Trips, Used};
use super::tally::Tallies;

/// Number of the statement into which those beyond the bound are merged.
pub const OTHERS: u32 = 0;
/// Pairs of statement and event per statement that may be kept.
const EVENTS_EACH: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    Others,
    SqlId([u8; 13]),
    /// Hash of the normalised text.
    Hash(u64),
    /// For a statement whose text is not in the trace.
    Cursor {
        session: u32,
        cursor: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub struct CallTotals {
    pub calls: u64,
    pub rows: i64,
    pub misses: i64,
    pub used: Used,
}

#[derive(Clone, Debug)]
pub struct Held {
    pub key: Key,
    pub text: Vec<u8>,
    pub depth: Option<usize>,
    pub parts: [CallTotals; CallKind::ALL.len()],
    pub waits: Tallies,
    /// Waits between its calls.
    pub between_us: u64,
    pub trips: Trips,
}

impl Held {
    fn new(key: Key, text: Vec<u8>) -> Self {
        Self {
            key,
            text,
            depth: None,
            parts: Default::default(),
            waits: Tallies::default(),
            between_us: 0,
            trips: Trips::default(),
        }
    }

    pub fn wait_between(&mut self, us: u64) {
        self.between_us = self.between_us.saturating_add(us);
    }

    /// Response time in microseconds.
    pub fn us(&self) -> i64 {
        self.used().elapsed.saturating_add_unsigned(self.between_us)
    }

    pub fn used(&self) -> Used {
        let mut sum = Used::default();
        self.parts.iter().for_each(|part| sum.add(&part.used));
        sum
    }

    #[inline]
    pub fn add(&mut self, kind: CallKind, call: &Call, own: &Used) {
        let part = &mut self.parts[kind as usize];
        part.calls += 1;
        part.rows = part.rows.saturating_add(call.rows);
        part.misses = part.misses.saturating_add(call.misses);
        part.used.add(own);
        if let Some(depth) = call.depth {
            self.depth = Some(self.depth.map_or(depth, |before| before.min(depth)));
        }
    }

    fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.parts.iter_mut().zip(&other.parts) {
            ours.calls += theirs.calls;
            ours.rows = ours.rows.saturating_add(theirs.rows);
            ours.misses = ours.misses.saturating_add(theirs.misses);
            ours.used.add(&theirs.used);
        }
        self.waits.merge(&other.waits);
        self.between_us = self.between_us.saturating_add(other.between_us);
        self.trips.merge(&other.trips);
    }
}

#[derive(Debug)]
pub struct Statements {
    pub list: Vec<Held>,
    ids: HashMap<Key, u32>,
    pub merged: u64,
    /// Number of pairs of statement and event.
    pub pairs: usize,
    limit: usize,
    text_bytes: usize,
}

impl Statements {
    pub fn new(limits: &Limits) -> Self {
        Self {
            list: vec![Held::new(Key::Others, Vec::new())],
            ids: HashMap::new(),
            merged: 0,
            pairs: 0,
            limit: limits.statements.max(4),
            text_bytes: limits.text_bytes,
        }
    }

    pub fn is_full(&self) -> bool {
        self.list.len() > self.limit || self.pairs > self.limit * EVENTS_EACH
    }

    pub fn define(&mut self, key: Key, text: &[u8]) -> u32 {
        if let Some(&id) = self.ids.get(&key) {
            return id;
        }
        let id = self.list.len() as u32;
        let kept = text.len().min(self.text_bytes);
        self.list.push(Held::new(key.clone(), text[..kept].to_vec()));
        self.ids.insert(key, id);
        id
    }

    #[inline]
    pub fn of(&mut self, id: u32) -> &mut Held {
        &mut self.list[id as usize]
    }

    /// Merges the half that took the least time; returns the new number of each statement.
    pub fn shrink(&mut self) -> Vec<u32> {
        let mut by_time: Vec<usize> = (1..self.list.len()).collect();
        by_time.sort_by_key(|&at| std::cmp::Reverse(self.list[at].us()));
        let mut kept = vec![false; self.list.len()];
        by_time.iter().take(self.limit / 2).for_each(|&at| kept[at] = true);
        let mut numbers = vec![OTHERS; self.list.len()];
        let mut others = self.list[0].clone();
        let mut list = Vec::with_capacity(self.limit);
        for (at, held) in self.list.drain(..).enumerate().skip(1) {
            if kept[at] {
                numbers[at] = list.len() as u32 + 1;
                list.push(held);
            } else {
                others.merge(&held);
                self.merged += 1;
                self.ids.remove(&held.key);
            }
        }
        list.insert(0, others);
        self.list = list;
        self.ids.values_mut().for_each(|id| *id = numbers[*id as usize]);
        self.pairs = self.list.iter().map(|it| it.waits.list.len()).sum();
        numbers
    }
}
