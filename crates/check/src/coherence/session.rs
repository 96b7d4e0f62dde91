//! A check in progress: the ranks, the findings so far, and when it has to end.

use std::thread;
use std::time::{Duration, Instant};

use crate::coherence::findings::{Cell, Class, ReadMode, WitnessOperation, WriteMode};
use blockstone_measure::Observer;
use blockstone_sys::clock::now_ns;

use super::ask::{Act, Answer, Ask, BLOCKS};
use super::history::{Contradiction, Operation};
use super::ranks::Rank;
use super::stamp::Content;
use crate::CheckError;
use crate::evidence::name_of;

/// Time for which the same descriptor is read before the file is opened again.
const HELD_PATIENCE: Duration = Duration::from_millis(50);
/// Data that becomes fresh later than this does so because time passed.
const SOON_NS: u64 = 1_000_000_000;

pub struct Session<'a> {
    pub ranks: Vec<Rank>,
    pub observer: &'a mut dyn Observer,
    pub rounds: u32,
    pub patience: Duration,
    pub free_run_ms: u32,
    pub until: Instant,
    pub unfinished: bool,
    /// Ranks that have the file open.
    pub opened: Vec<usize>,
    pub began_ns: u64,
    pub cells: Vec<Cell>,
    pub notes: Vec<String>,
    pub next_version: u64,
    pub next_block: u32,
    pub next_name: u32,
}

/// An answer, or the error of the kernel.
pub type Tried<T> = Result<Result<T, i32>, CheckError>;

impl Session<'_> {
    /// Returns whether nothing more should be tried.
    pub fn is_over(&mut self) -> bool {
        let late = Instant::now() > self.until;
        self.unfinished |= late;
        late || self.observer.interrupted().is_some()
    }

    /// Returns the first of `count` versions that are unique.
    pub fn versions(&mut self, count: u32) -> u64 {
        let first = self.next_version;
        self.next_version += u64::from(count);
        first
    }

    /// Returns the first of `count` blocks that were not used before, as long as there are enough.
    pub fn blocks(&mut self, count: u32) -> u32 {
        if self.next_block + count > BLOCKS {
            self.next_block = 0;
        }
        let first = self.next_block;
        self.next_block += count;
        first
    }

    pub fn name(&mut self) -> u32 {
        self.next_name += 1;
        self.next_name - 1
    }

    pub fn ask(&mut self, rank: usize, ask: Ask) -> Tried<Answer> {
        Ok(as_tried(self.ranks[rank].ask(ask)?))
    }

    /// Returns the inode number of a name as a rank sees it.
    pub fn inode(&mut self, rank: usize, name: u32) -> Result<Option<u64>, CheckError> {
        let answer = self.ask(rank, Ask::Name { name, act: Act::Look })?;
        Ok(match answer {
            Ok(Answer::Look(Some(found))) => Some(found.inode),
            _ => None,
        })
    }

    /// Asks several ranks at the same time.
    pub fn ask_all(
        &mut self,
        asks: Vec<(usize, Ask)>,
    ) -> Result<Vec<Result<Answer, i32>>, CheckError> {
        let ranks: Vec<usize> = asks.iter().map(|(rank, _)| *rank).collect();
        for (rank, ask) in asks {
            self.ranks[rank].send(ask)?;
        }
        ranks.into_iter().map(|rank| Ok(as_tried(self.ranks[rank].receive()?.answer))).collect()
    }

    /// Has a rank open the file again, for writing too or only for reading. Returns an outcome if
    /// it cannot.
    pub fn open(&mut self, rank: usize, to_write: bool) -> Result<Result<(), Outcome>, CheckError> {
        let opened = self.ask(rank, Ask::Open { to_write })?;
        Ok(opened.map(drop).map_err(|errno| Outcome::failed("open", rank, errno)))
    }

    /// Has ranks open the file again, for writing too.
    pub fn open_all(&mut self, ranks: &[usize]) -> Result<Result<(), Outcome>, CheckError> {
        for &rank in ranks {
            if let Err(outcome) = self.open(rank, true)? {
                return Ok(Err(outcome));
            }
        }
        Ok(Ok(()))
    }

    /// Has one rank open the file again for writing, and another only for reading.
    pub fn open_pair(
        &mut self,
        writer: usize,
        reader: usize,
    ) -> Result<Result<(), Outcome>, CheckError> {
        match self.open(writer, true)? {
            Ok(()) => self.open(reader, false),
            Err(outcome) => Ok(Err(outcome)),
        }
    }

    /// Writes a version, timed by rank 0.
    pub fn write(
        &mut self,
        rank: usize,
        mode: WriteMode,
        block: u32,
        version: u64,
    ) -> Tried<Operation> {
        let start_ns = now_ns();
        let answer = self.ask(rank, Ask::Write { mode, block, version })?;
        let operation = Operation {
            rank: rank as u32,
            register: block,
            is_write: true,
            value: version,
            start_ns,
            end_ns: now_ns(),
        };
        Ok(answer.map(|_| operation))
    }

    /// Reads a block. If the block is whole, its version is that of the operation.
    pub fn read(&mut self, rank: usize, mode: ReadMode, block: u32) -> Tried<(Content, Operation)> {
        let start_ns = now_ns();
        let answer = self.ask(rank, Ask::Read { mode, block })?;
        let end_ns = now_ns();
        Ok(answer.and_then(|answer| {
            let Answer::Content(content) = answer else { return Err(REFUSED) };
            let value = if let Content::Whole(version) = content { version } else { 0 };
            let (rank, register) = (rank as u32, block);
            Ok((content, Operation { rank, register, is_write: false, value, start_ns, end_ns }))
        }))
    }

    /// Asks repeatedly until the answer is `wanted`. Returns how long that took from `since_ns` on;
    /// none if the patience ended first, and zero if the first answer was wanted.
    pub fn wait_for(
        &mut self,
        since_ns: u64,
        patience: Duration,
        wanted: &mut dyn FnMut(&mut Self) -> Tried<bool>,
    ) -> Tried<Waited> {
        let until = Instant::now() + patience;
        let mut pause = Duration::from_micros(200);
        let mut asked = 0_u64;
        loop {
            match wanted(self)? {
                Ok(true) => {
                    let lag_ns = now_ns().saturating_sub(since_ns);
                    return Ok(Ok(Waited { lag_ns: Some(lag_ns), late: asked }));
                }
                Ok(false) => asked += 1,
                Err(errno) => return Ok(Err(errno)),
            }
            if Instant::now() > until || self.observer.interrupted().is_some() {
                return Ok(Ok(Waited { lag_ns: None, late: asked }));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Waits until reads in this mode show what the writer did. If a descriptor stays open, the
    /// wait is short before the file is opened again.
    pub fn wait_to_see(
        &mut self,
        read: ReadMode,
        since_ns: u64,
        shows: &mut dyn FnMut(&mut Self, ReadMode) -> Tried<bool>,
    ) -> Tried<(Class, Waited)> {
        let patience = self.patience;
        let first = if read.stays_open() { HELD_PATIENCE.min(patience) } else { patience };
        let waited = match self.wait_for(since_ns, first, &mut |session| shows(session, read))? {
            Ok(waited) if read.stays_open() && waited.lag_ns.is_none() => waited,
            waited => return Ok(waited.map(|waited| (waited.class(), waited))),
        };
        match shows(self, ReadMode::Reopened)? {
            Ok(true) => return Ok(Ok((Class::Reopen, waited))),
            Ok(false) => {}
            Err(errno) => return Ok(Err(errno)),
        }
        let more = self.wait_for(since_ns, patience, &mut |session| shows(session, read))?;
        Ok(more.map(|more| {
            let waited = Waited { late: waited.late + more.late, ..more };
            (waited.class(), waited)
        }))
    }

    /// Returns the weakest outcome of pairs of a writing and a reading rank: the first rank with
    /// each other, both ways. `None` if no rank can write.
    pub fn both_ways(
        &mut self,
        among: &[usize],
        mut run: impl FnMut(&mut Self, (usize, usize)) -> Result<Outcome, CheckError>,
    ) -> Result<Option<Outcome>, CheckError> {
        let Some((&first, others)) = among.split_first() else { return Ok(None) };
        let mut weakest: Option<Outcome> = None;
        for pair in others.iter().flat_map(|&other| [(first, other), (other, first)]) {
            if !self.ranks[pair.0].can_write {
                continue;
            }
            let found = run(self, pair)?;
            let both = match weakest {
                Some(known) => known.and(found),
                None => found,
            };
            // The other way would only wait just as long.
            if both.class == Class::Never {
                return Ok(Some(both));
            }
            weakest = Some(both);
        }
        Ok(weakest)
    }

    pub fn push(&mut self, case: String, outcome: Outcome) {
        let mut lags = outcome.lags;
        lags.sort_unstable();
        let quantile = |share: f64| {
            let at = ((lags.len() as f64 * share).ceil() as usize).clamp(1, lags.len().max(1));
            lags.get(at - 1).copied().filter(|_| lags.len() > 1)
        };
        let witness = outcome.contradiction.filter(|_| outcome.class != Class::Linearizable);
        self.cells.push(Cell {
            case,
            class: outcome.class,
            evidence: outcome.evidence,
            operations: outcome.operations,
            stale: outcome.stale,
            error: outcome.errno.map(name_of),
            lag_ns_p50: quantile(0.5),
            lag_ns_p99: quantile(0.99),
            lag_ns_max: quantile(1.0),
            witness: witness.map(|it| [self.shown(&it.first), self.shown(&it.second)]),
        });
    }

    fn shown(&self, operation: &Operation) -> WitnessOperation {
        let since = |ns: u64| ns.saturating_sub(self.began_ns);
        WitnessOperation {
            rank: operation.rank,
            operation: if operation.is_write { "write" } else { "read" }.to_owned(),
            subject: format!("block {}", operation.register),
            version: operation.value,
            start_ns: since(operation.start_ns),
            end_ns: (operation.end_ns != super::history::NEVER).then(|| since(operation.end_ns)),
        }
    }
}

/// Error of a request that a rank does not perform: to rank 0, an unsupported operation.
pub const REFUSED: i32 = rustix::io::Errno::OPNOTSUPP.raw_os_error();

fn as_tried(answer: Answer) -> Result<Answer, i32> {
    match answer {
        Answer::Failed(errno) => Err(errno),
        Answer::Refused => Err(REFUSED),
        answer => Ok(answer),
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Waited {
    pub lag_ns: Option<u64>,
    /// Number of answers before the wanted one.
    pub late: u64,
}

impl Waited {
    pub fn class(&self) -> Class {
        match self.lag_ns {
            Some(_) if self.late == 0 => Class::Linearizable,
            Some(ns) if ns < SOON_NS => Class::Sequential,
            Some(_) => Class::Timer,
            None => Class::Never,
        }
    }
}

/// Result of one case.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub class: Class,
    pub evidence: String,
    pub operations: u64,
    pub stale: u64,
    pub lags: Vec<u64>,
    pub contradiction: Option<Contradiction>,
    pub errno: Option<i32>,
}

impl Outcome {
    pub fn new(class: Class, evidence: impl Into<String>) -> Self {
        let (evidence, lags) = (evidence.into(), Vec::new());
        Self { class, evidence, operations: 0, stale: 0, lags, contradiction: None, errno: None }
    }

    /// Returns the outcome of a case that could not be tried because this rank got an error.
    pub fn failed(doing: &str, rank: usize, errno: i32) -> Self {
        let evidence = format!("{doing} at rank {rank}: {}", name_of(errno));
        Self { errno: Some(errno), ..Self::new(Class::Unknown, evidence) }
    }

    /// Returns the weaker of both, with the operations of both.
    pub fn and(self, other: Self) -> Self {
        // A case that could not be tried says less than one that was.
        let weight = |it: &Self| if it.class == Class::Unknown { None } else { Some(it.class) };
        let is_weaker = weight(&other) > weight(&self);
        let (mut kept, left) = if is_weaker { (other, self) } else { (self, other) };
        kept.operations += left.operations;
        kept.stale += left.stale;
        kept.lags.extend(left.lags);
        kept
    }
}
