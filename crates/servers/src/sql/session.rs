//! A session of a real database: statements, timed commits, and retried transactions.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use blockstone_base::histogram::SharedHistogram;
use parking_lot::Mutex;

use super::blocked::{Blocked, Stopwatch, TransactionStep};
use super::border::Border;
use super::content::Content;
use super::error::SqlError;
use super::{Link, Member, Trouble};
use crate::target::{
    Canceller, Executed, Operation, ScanHow, Statement, TableStep, TargetError, TargetSession,
};

/// Maximum number of attempts for a transaction.
const ATTEMPTS_MAX: u32 = 1000;

/// The columns of [`Counts`], which are not read from the server.
pub const COUNTED_BY_SESSIONS: [&str; 4] = ["commits", "db_time_ns", "retries", "commit_ns"];

/// Counters of the sessions themselves: the client's side of the run.
#[derive(Debug, Default)]
pub struct Counts {
    pub db_time_ns: AtomicU64,
    pub commits: AtomicU64,
    pub commit_ns: AtomicU64,
    pub retries: AtomicU64,
    pub commit_latency: SharedHistogram,
    pub blocked: Blocked,
    /// Incremented to ask every session for the counts that it holds back.
    pub asked: AtomicU64,
    /// Number of sessions that have published theirs since.
    pub handed_over: AtomicU32,
    pub connected: AtomicU32,
    members: Mutex<BTreeSet<Member>>,
}

impl Counts {
    pub fn members(&self) -> Vec<Member> {
        self.members.lock().iter().copied().collect()
    }
}

pub struct SqlSession<L: Link> {
    link: L,
    index: u32,
    content: Arc<Content>,
    counts: Arc<Counts>,
    updates: u64,
    asked: u64,
    /// `None` if the server reports the waits of sessions.
    watch: Option<Stopwatch>,
    stop: Option<Arc<AtomicBool>>,
    border: Border,
}

impl<L: Link> SqlSession<L> {
    pub fn new(
        link: L,
        index: u32,
        content: Arc<Content>,
        counts: Arc<Counts>,
        border: Border,
    ) -> Self {
        counts.connected.fetch_add(1, Ordering::Relaxed);
        if let Some(member) = link.member() {
            counts.members.lock().insert(member);
        }
        let asked = counts.asked.load(Ordering::Relaxed);
        let watch = L::BLOCKS_HERE.then(Stopwatch::start);
        Self { link, index, content, counts, updates: 0, asked, watch, stop: None, border }
    }

    /// Repeats a transaction until the database does not roll it back.
    fn run(
        &mut self,
        what: &dyn Debug,
        attempt: impl Fn(&mut Self) -> Result<Executed, Trouble>,
    ) -> Result<Executed, SqlError> {
        for _ in 0..ATTEMPTS_MAX {
            match attempt(self) {
                Ok(executed) => return Ok(executed),
                // The connection is closed next, which rolls back. A server that is busy may close
                // it first.
                Err(Trouble::Cancelled(_)) if self.is_to_end() => return Ok(Executed::default()),
                Err(Trouble::Cancelled(error) | Trouble::Failed(error)) => return Err(error),
                Err(Trouble::Again) => self.border.cross(|| self.link.roll_back())?,
            }
            self.counts.retries.fetch_add(1, Ordering::Relaxed);
            if self.is_to_end() {
                return Ok(Executed::default());
            }
        }
        Err(SqlError::Statement {
            what: format!("send {what:?}"),
            why: format!("the database rolled it back {ATTEMPTS_MAX} times in a row"),
            hint: "use fewer updating sessions, or more schemas".to_owned(),
        })
    }

    fn is_to_end(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn attempt(&mut self, operation: &Operation) -> Result<Executed, Trouble> {
        match *operation {
            Operation::Select { schema, first_key, rows } => {
                let rows = self.part(TransactionStep::Statement, |link| {
                    link.select(schema, first_key, rows)
                })?;
                Ok(Executed { rows, commits: 0, ..Executed::default() })
            }
            Operation::Update { schema, first_key, rows } => {
                self.part(TransactionStep::Begin, |link| link.begin(true))?;
                let rows = self.update(schema, first_key, rows)?;
                self.commit()?;
                Ok(Executed { rows, commits: 1, ..Executed::default() })
            }
            Operation::Scan { schema } => {
                let rows = self.part(TransactionStep::Statement, |link| link.scan(schema))?;
                Ok(Executed { rows, commits: 0, ..Executed::default() })
            }
        }
    }

    fn attempt_all(&mut self, statements: &[Statement]) -> Result<Executed, Trouble> {
        let writes = statements.iter().any(Statement::writes);
        self.part(TransactionStep::Begin, |link| link.begin(writes))?;
        let mut rows = 0;
        for statement in statements {
            rows += match *statement {
                Statement::Select { schema, first_key, rows } => self
                    .part(TransactionStep::Statement, |link| {
                        link.select(schema, first_key, rows)
                    })?,
                Statement::Update { schema, key } => self.update(schema, key, 1)?,
                Statement::Insert { schema, number } => {
                    let order = self.content.order(schema, number);
                    self.part(TransactionStep::Statement, |link| {
                        link.insert_order(schema, number, &order)
                    })?
                }
                Statement::Orders { schema, first, count } => {
                    self.part(TransactionStep::Statement, |link| link.orders(schema, first, count))?
                }
                Statement::Delete { schema, number } => {
                    self.part(TransactionStep::Statement, |link| link.delete_order(schema, number))?
                }
            };
        }
        if writes {
            self.commit()?;
        } else {
            self.part(TransactionStep::Statement, L::commit)?;
        }
        Ok(Executed { rows, commits: writes.into(), ..Executed::default() })
    }

    fn attempt_step(&mut self, step: &TableStep) -> Result<Executed, Trouble> {
        match *step {
            TableStep::Create { schema, table } => {
                if !L::COMMITS_TABLES {
                    self.part(TransactionStep::Begin, |link| link.begin(true))?;
                }
                let made =
                    self.part(TransactionStep::Copy, |link| link.create_table(schema, table))?;
                if !L::COMMITS_TABLES {
                    self.commit()?;
                }
                Ok(Executed { rows: made.rows, commits: 1, bytes: made.bytes })
            }
            TableStep::Flush { schema, table } => {
                self.part(TransactionStep::Flush, |link| link.flush_table(schema, table))?;
                Ok(Executed::default())
            }
            TableStep::Drop { schema, table } => {
                self.part(TransactionStep::Copy, |link| link.drop_table(schema, table))?;
                Ok(Executed::default())
            }
        }
    }

    fn update(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble> {
        self.updates += 1;
        let change = self.content.change(self.index, self.updates);
        self.part(TransactionStep::Statement, |link| link.update(schema, first_key, rows, &change))
    }

    /// Calls the database, and records the time blocked if that is measured here.
    fn part<T>(
        &mut self,
        part: TransactionStep,
        call: impl FnOnce(&mut L) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        match &mut self.watch {
            Some(watch) => watch.timed(&self.counts.blocked, part, || call(&mut self.link)),
            None => self.border.cross(|| call(&mut self.link)),
        }
    }

    /// Commits a transaction that wrote, and records its latency.
    fn commit(&mut self) -> Result<(), Trouble> {
        let started = Instant::now();
        self.part(TransactionStep::Commit, L::commit)?;
        let ns = started.elapsed().as_nanos() as u64;
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts.commit_ns.fetch_add(ns, Ordering::Relaxed);
        self.counts.commit_latency.record(ns);
        Ok(())
    }

    /// Runs a call of the session and counts its time as database time.
    fn call(
        &mut self,
        what: &dyn Debug,
        attempt: impl Fn(&mut Self) -> Result<Executed, Trouble>,
    ) -> Result<Executed, TargetError> {
        let started = Instant::now();
        let executed = self.run(what, attempt)?;
        let ns = started.elapsed().as_nanos() as u64;
        self.counts.db_time_ns.fetch_add(ns, Ordering::Relaxed);
        if L::HOLDS_COUNTS && !self.is_to_end() {
            let asked = self.counts.asked.load(Ordering::Relaxed);
            if asked != self.asked {
                self.asked = asked;
                self.border.cross(|| self.link.hand_over_counts())?;
                self.counts.handed_over.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(executed)
    }
}

impl<L: Link> TargetSession for SqlSession<L> {
    fn execute(&mut self, operation: &Operation) -> Result<Executed, TargetError> {
        self.call(operation, |session| session.attempt(operation))
    }

    fn transact(&mut self, statements: &[Statement]) -> Result<Executed, TargetError> {
        self.call(&statements, |session| session.attempt_all(statements))
    }

    fn write_table(&mut self, step: &TableStep) -> Result<Executed, TargetError> {
        self.call(step, |session| session.attempt_step(step))
    }

    fn arrange_scans(&mut self, how: ScanHow) -> Result<(), TargetError> {
        match how {
            ScanHow::Statement { multiblock } => {
                Ok(self.border.cross(|| self.link.arrange_scans(multiblock))?)
            }
            ScanHow::Direct(_) => Err(TargetError::NoScan { how }),
        }
    }

    fn set_stop_flag(&mut self, stop: &Arc<AtomicBool>) {
        self.stop = Some(Arc::clone(stop));
    }

    fn canceller(&self) -> Option<Canceller> {
        Some(self.link.canceller())
    }
}

impl<L: Link> Drop for SqlSession<L> {
    fn drop(&mut self) {
        self.counts.connected.fetch_sub(1, Ordering::Relaxed);
        if let Some(member) = self.link.member() {
            self.counts.members.lock().remove(&member);
        }
    }
}
