//! Plans with the figures of their lines, summed over executions.

use std::hash::Hasher;

use super::record::Stat;
use super::tally::{FastMap, Folded};

/// Maximum number of lines of one plan.
pub const LONGEST_PLAN: usize = 2000;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub rows: u64,
    pub consistent_reads: Option<u64>,
    pub physical_reads: Option<u64>,
    pub time: Option<u64>,
}

impl Figures {
    fn of(stat: &Stat) -> Self {
        Self {
            rows: stat.rows,
            consistent_reads: stat.consistent_reads,
            physical_reads: stat.physical_reads,
            time: stat.time,
        }
    }

    fn with(self, other: Self, apply: fn(u64, u64) -> u64) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| Some(apply(a?, b?));
        Self {
            rows: apply(self.rows, other.rows),
            consistent_reads: both(self.consistent_reads, other.consistent_reads),
            physical_reads: both(self.physical_reads, other.physical_reads),
            time: both(self.time, other.time),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Line {
    pub id: u32,
    pub parent: u32,
    pub object: u64,
    pub operation: Vec<u8>,
    pub total: Figures,
    /// Figures from the plan's latest record.
    last: Figures,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub statement: u32,
    pub executions: u64,
    pub lines: Vec<Line>,
    /// The cursor that wrote it last.
    writer: (u64, u32),
}

#[derive(Debug)]
pub struct Plans {
    pub list: Vec<Plan>,
    ids: FastMap<(u32, u64), usize>,
    lines: usize,
    limit: usize,
    pub dropped: u64,
}

impl Plans {
    pub fn new(limit: usize) -> Self {
        Self { list: Vec::new(), ids: FastMap::default(), lines: 0, limit, dropped: 0 }
    }

    /// Adds a plan as written by a cursor. Before 11g, figures are those of all executions so far.
    pub fn add(&mut self, statement: u32, writer: (u64, u32), stats: &[Stat], cumulative: bool) {
        let key = (statement, signature(stats));
        let Some(&at) = self.ids.get(&key) else {
            if self.lines + stats.len() > self.limit {
                self.dropped += 1;
                return;
            }
            self.lines += stats.len();
            self.ids.insert(key, self.list.len());
            let lines = stats.iter().map(new_line).collect();
            self.list.push(Plan { statement, executions: 1, lines, writer });
            return;
        };
        let plan = &mut self.list[at];
        let replaces = cumulative && plan.writer == writer;
        for (line, stat) in plan.lines.iter_mut().zip(stats) {
            if replaces {
                line.total = line.total.with(line.last, u64::saturating_sub);
            }
            line.last = Figures::of(stat);
            line.total = line.total.with(line.last, u64::saturating_add);
        }
        plan.executions += u64::from(!replaces);
        plan.writer = writer;
    }

    /// Applies new statement numbers; plans of merged statements are dropped.
    pub fn renumber(&mut self, numbers: &[u32], merged: u32) {
        let before = self.list.len();
        self.list.retain_mut(|plan| {
            plan.statement = numbers[plan.statement as usize];
            plan.statement != merged
        });
        self.dropped += (before - self.list.len()) as u64;
        self.lines = self.list.iter().map(|plan| plan.lines.len()).sum();
        self.ids.clear();
        for (at, plan) in self.list.iter().enumerate() {
            let signature = signature_of(
                plan.lines.iter().map(|it| (it.id, it.parent, it.object, it.operation.as_slice())),
            );
            self.ids.insert((plan.statement, signature), at);
        }
    }
}

fn new_line(stat: &Stat) -> Line {
    Line {
        id: stat.id,
        parent: stat.parent,
        object: stat.object,
        operation: stat.operation.clone(),
        total: Figures::of(stat),
        last: Figures::of(stat),
    }
}

fn signature(stats: &[Stat]) -> u64 {
    signature_of(stats.iter().map(|it| (it.id, it.parent, it.object, it.operation.as_slice())))
}

fn signature_of<'a>(lines: impl Iterator<Item = (u32, u32, u64, &'a [u8])>) -> u64 {
    let mut hash = Folded::default();
    for (id, parent, object, operation) in lines {
        hash.write_u64(u64::from(id) << 32 | u64::from(parent));
        hash.write_u64(object);
        hash.write_u64(xxhash_rust::xxh3::xxh3_64(operation));
    }
    hash.finish()
}
