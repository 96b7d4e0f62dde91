//! The traits of targets, and the data exchanged between a workload and its target.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Debug};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use blockstone_base::column::Reading;
use blockstone_base::database::{STATEMENTS, TABLE_STEPS};
use blockstone_base::hint::Hint;
use blockstone_base::load::Op;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_base::{Capability, LatencyHistogram};
use blockstone_instance::InstanceError;
use blockstone_instance::group::GroupError;

use crate::sql::error::SqlError;
use crate::unmeasured::Missing;

/// A statement of a session. Schemas and keys are counted from 0; each row is one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads `rows` rows by key, from `first_key` on.
    Select { schema: u32, first_key: u64, rows: u32 },
    /// Updates `rows` rows by key, from `first_key` on, and commits.
    Update { schema: u32, first_key: u64, rows: u32 },
    /// Reads the schema's second table, which has no index, from the first row to the last.
    Scan { schema: u32 },
}

impl Operation {
    /// Names of the kinds, in the order of [`Operation::kind`].
    pub const KINDS: [&'static str; 3] = STATEMENTS;

    /// Returns its kind, as an index into [`Operation::KINDS`].
    pub const fn kind(&self) -> usize {
        match self {
            Self::Select { .. } => 0,
            Self::Update { .. } => 1,
            Self::Scan { .. } => 2,
        }
    }
}

/// A statement of a transaction. In addition to its rows, a schema has orders, which come and go:
/// each has a number, counted from 0 and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Reads `rows` rows by key, from `first_key` on.
    Select { schema: u32, first_key: u64, rows: u32 },
    /// Updates one row.
    Update { schema: u32, key: u64 },
    /// Inserts an order.
    Insert { schema: u32, number: u64 },
    /// Reads the existing orders among `count` numbers from `first` on.
    Orders { schema: u32, first: u64, count: u32 },
    /// Deletes an order.
    Delete { schema: u32, number: u64 },
}

impl Statement {
    pub const fn writes(&self) -> bool {
        match self {
            Self::Select { .. } | Self::Orders { .. } => false,
            Self::Update { .. } | Self::Insert { .. } | Self::Delete { .. } => true,
        }
    }
}

/// A step of a bulk write. The tables that it creates are numbered, below
/// [`TargetSpec::copies`](crate::TargetSpec::copies) in each schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableStep {
    /// Creates a table from all rows of the schema by a query, and commits.
    Create {
        schema: u32,
        table: u32,
    },
    /// Writes all of that table to the medium.
    Flush {
        schema: u32,
        table: u32,
    },
    Drop {
        schema: u32,
        table: u32,
    },
}

impl TableStep {
    /// Names of the steps, in the order of [`TableStep::kind`].
    pub const KINDS: [&'static str; 3] = TABLE_STEPS;

    /// Returns its kind, as an index into [`TableStep::KINDS`].
    pub const fn kind(&self) -> usize {
        match self {
            Self::Create { .. } => 0,
            Self::Flush { .. } => 1,
            Self::Drop { .. } => 2,
        }
    }
}

/// How a session scans tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanHow {
    /// Bypassing the buffer cache.
    Direct(DirectScan),
    /// By a statement of the database, with reads of at most `multiblock` blocks if it has a
    /// setting for that; `None` leaves the reads as they are.
    Statement { multiblock: Option<u32> },
}

/// How a target can scan whole tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scans {
    /// Not at all, because it has no rows.
    Never,
    /// Bypassing its cache, with a configurable size and number of reads.
    Direct,
    /// By a statement: the database decides about its reads, except possibly for their maximum
    /// size.
    Statement(ReadSize),
}

/// The maximum read size of a scanning statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadSize {
    /// Can be set up to this many blocks, if the server was started with the setting `allowed_by`
    /// at this value or higher.
    Most { blocks: u32, allowed_by: Option<&'static str> },
    /// Cannot be set, for this reason.
    Fixed(String),
}

/// A scan that bypasses the buffer cache, with `slots` reads of `multiblock` blocks in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectScan {
    pub multiblock: u32,
    pub slots: u32,
    /// Processor time for evaluating a row.
    pub row_cost: Nanos,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Rows accessed or written, as counted during execution, not copied from the request.
    pub rows: u64,
    pub commits: u64,
    /// Bytes of a created table.
    pub bytes: u64,
}

/// Progress of a load, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loading {
    pub done: u64,
    pub total: u64,
}

/// Receives progress, and may stop the work.
pub type Progress<'a> = dyn FnMut(Loading) -> ControlFlow<()> + 'a;

/// Returns whether to continue.
pub fn unless(ends: bool) -> ControlFlow<()> {
    if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Latencies measured by the target itself since the last call.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// Name of the wait event.
    pub name: String,
    pub op: Op,
    pub histogram: LatencyHistogram,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes written to each place, in order.
    pub places: Vec<Bytes>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Product and version; empty for targets in this program.
    pub server: String,
    /// The plans for the statements of the run: the statement's kind and its plan.
    pub plans: Vec<(&'static str, String)>,
    /// Its settings that affect the results of a run.
    pub settings: Vec<(String, String)>,
    /// Columns of its series that were not measured: probe, column, reason.
    pub unmeasured: Missing,
    pub notes: Vec<String>,
    /// Files of the accessed rows, if they are on this machine.
    pub files: Vec<PathBuf>,
    /// Locations of all its files, if they are on this machine: directories, and files next to
    /// which others have the same name with a suffix.
    pub places: Vec<PathBuf>,
}

/// A database from the viewpoint of a workload.
pub trait Target: Send + Sync + Debug {
    /// Fills the schemas. `progress` receives the progress and may stop the load, which then fails
    /// with [`TargetError::Interrupted`].
    fn load(&self, progress: &mut Progress<'_>) -> Result<(), TargetError>;

    /// Connects session `index`. Called on the thread that will use it.
    fn session(&self, index: u32) -> Result<Box<dyn TargetSession>, TargetError>;

    /// Appends its counters since it was opened, as rows of the series of
    /// [`blockstone_base::database`] other than `operation`. Cheap enough for ten times per second
    /// while sessions run: expensive values may be from an earlier call, unless `exact` requests
    /// all of them now.
    fn sample(&self, exact: bool, readings: &mut Vec<Reading>);

    /// Appends the counters of single sessions as they are now: rows that [`Self::sample`] leaves
    /// out of most calls, because many sessions have too many. None if it counts no sessions.
    fn count_sessions(&self, _readings: &mut Vec<Reading>) {}

    fn take_latencies(&self) -> Vec<Latencies> {
        Vec::new()
    }

    /// Returns its capabilities here by name, with reasons for those it lacks.
    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        Vec::new()
    }

    /// Returns its current description and plans. Called after the load and again after the window.
    fn describe(&self) -> Result<Description, TargetError> {
        Ok(Description::default())
    }

    /// Returns events since the last call that the user should know about, such as a disk that left
    /// or came back. Called at every tick.
    fn take_news(&self) -> Vec<String> {
        Vec::new()
    }

    /// Shuts it down cleanly: commits are durable, and nothing keeps running. All sessions have
    /// ended before.
    fn shutdown(&self) -> Result<(), TargetError>;
}

/// A session, used by one thread.
pub trait TargetSession {
    /// Executes one operation and returns when it is complete, for an update when it is durable.
    /// After an error the session is not used again.
    fn execute(&mut self, operation: &Operation) -> Result<Executed, TargetError>;

    /// Executes the statements as one transaction and returns when it is complete. If it writes, it
    /// returns when it is durable, and counts as a commit. Only for a target whose spec has orders.
    /// If a target stores orders in unstructured blocks, each block accessed for orders counts as a
    /// row.
    fn transact(&mut self, statements: &[Statement]) -> Result<Executed, TargetError>;

    /// Executes one step of a bulk write and returns when it is complete: a table is created when
    /// its commit is acknowledged, as in any transaction, and flushed when its bytes are on the
    /// medium. Dropping one does not count as a commit. Only for a target whose spec has copies.
    fn write_table(&mut self, step: &TableStep) -> Result<Executed, TargetError>;

    /// Sets how the session scans from now on, like `alter session`. Only called for targets that
    /// support it, see [`Entry`](crate::registry::Entry).
    fn arrange_scans(&mut self, how: ScanHow) -> Result<(), TargetError> {
        Err(TargetError::NoScan { how })
    }

    /// Sets a flag that allows long operations to end early, with the rows accessed until then. A
    /// statement cancelled after it is set is not an error.
    fn set_stop_flag(&mut self, stop: &Arc<AtomicBool>) {
        let _ = stop;
    }

    /// Returns a canceller for the session's statements; `None` if they end by the stop flag alone.
    fn canceller(&self) -> Option<Canceller> {
        None
    }
}

/// Cancels the statement that a session executes, from another thread. Has no effect if there is
/// none.
pub struct Canceller(Box<dyn Fn() + Send>);

impl Canceller {
    pub fn new(cancel: impl Fn() + Send + 'static) -> Self {
        Self(Box::new(cancel))
    }

    /// Returns when the database has received the request, or cannot receive it.
    pub fn cancel(&self) {
        (self.0)();
    }
}

impl Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Canceller").finish()
    }
}

#[derive(Debug, thiserror::Error, Hint)]
pub enum TargetError {
    #[error("unknown target `{name}`")]
    #[hint("known targets are {known}")]
    Unknown { name: String, known: String },
    #[error("arrange scans as {how:?}: this target does not support that")]
    #[hint("use --target instance, or scan through the cache with --scan-pct")]
    NoScan { how: ScanHow },
    #[error("load: interrupted")]
    #[hint("what was loaded is incomplete and is not used")]
    Interrupted,
    #[error(transparent)]
    #[hint(transparent)]
    Own(OwnError),
}

/// An error of one target, with its hint.
#[derive(Debug)]
pub struct OwnError {
    error: Box<dyn Error + Send + Sync>,
    hint: Option<String>,
}

impl fmt::Display for OwnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl Error for OwnError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl Hint for OwnError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        self.hint.as_deref().map(Cow::Borrowed)
    }
}

impl TargetError {
    pub fn own(error: impl Hint + Send + Sync + 'static) -> Self {
        let hint = error.hint().map(Cow::into_owned);
        Self::Own(OwnError { error: Box::new(error), hint })
    }
}

impl From<SqlError> for TargetError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Interrupted => Self::Interrupted,
            error => Self::own(error),
        }
    }
}

impl From<InstanceError> for TargetError {
    fn from(error: InstanceError) -> Self {
        Self::own(error)
    }
}

impl From<GroupError> for TargetError {
    fn from(error: GroupError) -> Self {
        match error {
            GroupError::Aborted => Self::Interrupted,
            error => Self::own(error),
        }
    }
}
