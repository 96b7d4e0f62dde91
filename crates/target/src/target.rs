//! The traits, and what passes between a workload and its target.

use std::error::Error;
use std::fmt::{self, Debug};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use blockstone_base::column::Reading;
use blockstone_base::database::{STATEMENTS, TABLE_STEPS};
use blockstone_base::load::Op;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_base::{Capability, LatencyHistogram};
use blockstone_instance::InstanceError;
use blockstone_instance::group::GroupError;

use crate::sql::error::SqlError;
use crate::unmeasured::Missing;

/// A statement of a session. Schemas and keys count from 0; each row is one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Visits `rows` rows, by key from `first_key` on.
    Select { schema: u32, first_key: u64, rows: u32 },
    /// Changes `rows` rows, by key from `first_key` on, and commits.
    Update { schema: u32, first_key: u64, rows: u32 },
    /// Reads the schema's second table, which has no index, from its first row to its last.
    Scan { schema: u32 },
}

impl Operation {
    /// The names of the kinds, in the order of [`Operation::kind`].
    pub const KINDS: [&'static str; 3] = STATEMENTS;

    /// Its kind, as an index into [`Operation::KINDS`].
    pub const fn kind(&self) -> usize {
        match self {
            Self::Select { .. } => 0,
            Self::Update { .. } => 1,
            Self::Scan { .. } => 2,
        }
    }
}

/// A statement of a transaction. Beside its rows a schema has orders, which come and go: each has a
/// number from 0 on, which is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// Visits `rows` rows, by key from `first_key` on.
    Select { schema: u32, first_key: u64, rows: u32 },
    /// Changes one row.
    Update { schema: u32, key: u64 },
    /// Adds an order.
    Insert { schema: u32, number: u64 },
    /// Visits those orders that are there, of `count` numbers from `first` on.
    Orders { schema: u32, first: u64, count: u32 },
    /// Removes an order.
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

/// A step of a bulk write. The tables that it makes have numbers, below
/// [`TargetSpec::copies`](crate::TargetSpec::copies) in each schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableStep {
    /// Makes a table of all rows of the schema, by a query, and commits.
    Create {
        schema: u32,
        table: u32,
    },
    /// Has all of that table written to the medium.
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
    /// The names of the steps, in the order of [`TableStep::kind`].
    pub const KINDS: [&'static str; 3] = TABLE_STEPS;

    /// Its kind, as an index into [`TableStep::KINDS`].
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
    /// Past the buffer cache.
    Direct(DirectScan),
    /// By a statement of the database, in reads of at most `multiblock` blocks, where it has a
    /// setting for them; none leaves the reads as they are.
    Statement { multiblock: Option<u32> },
}

/// How a target can scan tables, each as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scans {
    /// Not at all: it has no rows.
    Never,
    /// Past its cache: size and number of reads are chosen.
    Direct,
    /// By a statement: it decides about its reads, but perhaps for their largest size.
    Statement(ReadSize),
}

/// The largest read of a statement that scans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadSize {
    /// Up to this many blocks can be asked for, if the server was started with the setting
    /// `allowed_by` at no less.
    Most { blocks: u32, allowed_by: Option<&'static str> },
    /// Nothing can be asked for: why.
    Fixed(String),
}

/// A scan past the buffer cache, with `slots` reads of `multiblock` blocks outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectScan {
    pub multiblock: u32,
    pub slots: u32,
    /// Processor time that evaluating a row takes.
    pub row_cost: Nanos,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Rows visited or written: counted where that was done, not copied from the request.
    pub rows: u64,
    pub commits: u64,
    /// Bytes of a table that was made.
    pub bytes: u64,
}

/// How far a load is, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loading {
    pub done: u64,
    pub total: u64,
}

/// Receives progress, and may end the work.
pub type Progress<'a> = dyn FnMut(Loading) -> ControlFlow<()> + 'a;

/// Goes on, unless the work is to end.
pub fn unless(ends: bool) -> ControlFlow<()> {
    if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Latencies that a target measured itself since it was last asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Latencies {
    /// What of: the name of a wait event.
    pub name: String,
    pub op: Op,
    pub histogram: LatencyHistogram,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Bytes that it writes to each place, in their order.
    pub places: Vec<Bytes>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Product and version; empty for what is part of this program.
    pub server: String,
    /// How it executes the statements of the run: the statement's kind and its plan.
    pub plans: Vec<(&'static str, String)>,
    /// Settings of it that decide what a run shows.
    pub settings: Vec<(String, String)>,
    /// Columns of its series that were not measured: probe, column, reason.
    pub unmeasured: Missing,
    pub notes: Vec<String>,
    /// Where the rows that are visited lie, as far as that is on this machine.
    pub files: Vec<PathBuf>,
    /// Where all its files lie, as far as that is on this machine: directories, and files beside
    /// which others lie under a longer name.
    pub places: Vec<PathBuf>,
}

/// A database, as far as a workload sees it.
pub trait Target: Send + Sync + Debug {
    /// Fills the schemas. `progress` receives how far it is, and may end it. Then the error is
    /// [`TargetError::Interrupted`].
    fn load(&self, progress: &mut Progress<'_>) -> Result<(), TargetError>;

    /// Connects session `index`. Called on the thread that will use it.
    fn session(&self, index: u32) -> Result<Box<dyn TargetSession>, TargetError>;

    /// Appends what it counted since it was opened, as rows of the series of
    /// [`blockstone_base::database`] other than `operation`. Cheap enough for ten times a second
    /// while sessions run: what takes long may be as of an earlier call, unless `exact` asks for
    /// all of it now.
    fn sample(&self, exact: bool, readings: &mut Vec<Reading>);

    fn take_latencies(&self) -> Vec<Latencies> {
        Vec::new()
    }

    /// What it can do here, by name, and what not and why.
    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        Vec::new()
    }

    /// What it is and how it executes statements, as of now: asked after the load and again after
    /// the window.
    fn describe(&self) -> Result<Description, TargetError> {
        Ok(Description::default())
    }

    /// What happened to it since this was last called that the user should know: a disk that left,
    /// or one that is back. Asked at every tick.
    fn take_news(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends it in good order: what was committed is durable, nothing runs any more. All sessions
    /// have ended before.
    fn shutdown(&self) -> Result<(), TargetError>;
}

/// A session: belongs to one thread.
pub trait TargetSession {
    /// Executes one operation and returns when it is done; an update when it is durable. After an
    /// error the session is not used again.
    fn execute(&mut self, operation: &Operation) -> Result<Executed, TargetError>;

    /// Executes the statements as one transaction and returns when it is done; one that writes when
    /// it is durable, and counts as a commit. Of a target whose spec has orders. Where a target
    /// keeps orders in blocks of no structure, each block visited for orders counts as a row.
    fn transact(&mut self, statements: &[Statement]) -> Result<Executed, TargetError>;

    /// Executes one step of a bulk write and returns when it is done: a table is made when its
    /// commit is acknowledged, as of any transaction, and it is flushed when its bytes are on the
    /// medium. Dropping one counts as no commit. Of a target whose spec has copies.
    fn write_table(&mut self, step: &TableStep) -> Result<Executed, TargetError>;

    /// From now on the session scans so, as `alter session` arranges. Asked of targets that say
    /// they can, see [`Entry`](crate::registry::Entry).
    fn arrange_scans(&mut self, how: ScanHow) -> Result<(), TargetError> {
        Err(TargetError::NoScan { how })
    }

    /// Once `stop` is set, what takes long may end early, with the rows visited until then. A
    /// statement that is cancelled then is no error.
    fn set_stop_flag(&mut self, stop: &Arc<AtomicBool>) {
        let _ = stop;
    }

    /// Cancels what the session executes; none where that ends by the stop flag alone.
    fn canceller(&self) -> Option<Canceller> {
        None
    }
}

/// Cancels the statement that a session executes, from another thread; without effect where there
/// is none.
pub struct Canceller(Box<dyn Fn() + Send>);

impl Canceller {
    pub fn new(cancel: impl Fn() + Send + 'static) -> Self {
        Self(Box::new(cancel))
    }

    /// Returns when the database has received the request, or cannot.
    pub fn cancel(&self) {
        (self.0)();
    }
}

impl Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Canceller").finish()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("unknown target `{name}`\nhint: known targets are {known}")]
    Unknown { name: String, known: String },
    #[error(
        "arrange scans as {how:?}: this target does not support that\n\
         hint: use --target instance, or scan through the cache with --scan-pct"
    )]
    NoScan { how: ScanHow },
    #[error("load: interrupted\nhint: what was loaded is incomplete and is not used")]
    Interrupted,
    #[error(transparent)]
    Own(Box<dyn Error + Send + Sync>),
}

impl TargetError {
    pub fn own(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Own(Box::new(error))
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
