//! Common behaviour of all real databases as targets: a row fills a page, key order differs from
//! physical order, statements are prepared, commits are timed separately, and a transaction that
//! the database rolls back to resolve a conflict is retried and counted.
//!
//! To add a database, implement [`Database`] and [`Link`] in a separate file, with its statements
//! in `sql/<target>/*.sql`.

pub mod blocked;
pub mod border;
pub mod content;
pub mod error;
pub mod host;
pub mod kernel;
pub mod load;
pub mod parameters;
pub mod password;
pub mod patience;
pub mod private;
pub mod processes;
pub mod scratch;
pub mod server;
pub mod session;
pub mod target;
pub mod tls;
pub mod trust;
pub mod waits;
pub mod watch;

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::time::Duration;

use blockstone_base::capability::Capability;
use blockstone_base::column::Reading;

use crate::spec::TargetSpec;
use crate::target::{Canceller, Description};
use border::Border;
use content::{Change, Content};
use error::{DriverError, During, SqlError};
pub use error::{SCHEMA, Trouble};

/// Returns a note that the remains of a killed run on `server` were removed.
pub fn removed_left(server: &str) -> String {
    format!("removed schema {SCHEMA} from {server}, left by a killed run")
}

pub fn table_name(schema: u32, table: Table) -> String {
    format!("{SCHEMA}.{}", table.name(schema))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Rows accessed by key.
    Rows,
    /// Rows without an index, for scans.
    Scan,
    /// Orders, which transactions insert and delete by number.
    Orders,
    /// Created from all rows of the schema while sessions work, and dropped again.
    Copy(u32),
}

impl Table {
    pub fn name(self, schema: u32) -> String {
        match self {
            Self::Rows => format!("rows_{schema}"),
            Self::Scan => format!("scan_{schema}"),
            Self::Orders => format!("orders_{schema}"),
            Self::Copy(number) => format!("copy_{schema}_{number}"),
        }
    }
}

/// Consecutive places of a table that are filled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub schema: u32,
    pub table: Table,
    pub first: u64,
    pub rows: u64,
}

/// Operations that differ between databases.
pub trait Database: Send + Sync + Debug + Sized + 'static {
    type Link: Link;

    /// Connects to the database, or creates one, and creates its empty tables.
    fn open(spec: &TargetSpec, content: Content) -> Result<Self, SqlError>;

    /// Returns the border to its server; the default is for databases in this process.
    fn border(&self) -> Border {
        Border::default()
    }

    /// Connects a session. Called on the session's thread.
    fn link(&self) -> Result<Self::Link, SqlError>;

    /// Returns the number of loaders, and the number of places per chunk.
    fn loaders(&self) -> (usize, u64);

    /// Fills `chunk`. Calls `tell` with the number of rows as they are written; it may stop the
    /// load.
    fn fill(
        &self,
        chunk: &Chunk,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SqlError>;

    /// Builds indexes and statistics after the load, takes a checkpoint, and verifies that a row
    /// fills a page.
    fn settle(&self) -> Result<(), SqlError>;

    /// Returns a watcher of the database's counters, which runs on another thread.
    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError>;

    /// Returns the current description of the database, and its plans for the statements.
    fn describe(&self) -> Result<Description, SqlError>;

    /// Returns its capabilities here by name, with reasons for those it lacks.
    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        Vec::new()
    }

    /// Adds the server's own message to `error` if its log is available: a server that exits sends
    /// nothing to the connections it closes.
    fn explained(&self, error: SqlError) -> SqlError {
        error
    }

    /// Removes everything that this run created in it, and stops what the run started.
    fn tear_down(&self) -> Result<(), SqlError>;
}

pub trait Link {
    /// Whether sessions hold back their counts until requested.
    const HOLDS_COUNTS: bool = false;

    /// Whether the database runs on the session's thread and reports no waits itself.
    const BLOCKS_HERE: bool = false;

    /// Whether a statement that creates a table commits implicitly.
    const COMMITS_TABLES: bool = false;

    /// Returns the process or thread of this session in the operating system.
    fn member(&self) -> Option<Member>;

    fn canceller(&self) -> Canceller;

    /// Reads rows by key, and returns their number.
    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble>;

    /// Begins a transaction. If it `writes`, it must not fail for having begun as a reader.
    fn begin(&mut self, writes: bool) -> Result<(), Trouble>;

    /// Updates rows in the transaction.
    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble>;

    /// Inserts an order in the transaction.
    fn insert_order(&mut self, schema: u32, number: u64, order: &[u8]) -> Result<u64, Trouble>;

    /// Reads the existing orders by number from `first` on, and returns their number.
    fn orders(&mut self, schema: u32, first: u64, count: u32) -> Result<u64, Trouble>;

    /// Deletes an order in the transaction, and returns the number of rows deleted.
    fn delete_order(&mut self, schema: u32, number: u64) -> Result<u64, Trouble>;

    /// Commits the transaction durably.
    fn commit(&mut self) -> Result<(), Trouble>;

    /// Rolls the transaction back.
    fn roll_back(&mut self) -> Result<(), SqlError>;

    /// Scans the schema's second table from the first row to the last, and returns their number.
    fn scan(&mut self, schema: u32) -> Result<u64, Trouble>;

    /// Creates a table from all rows of the schema, within the current transaction, if any.
    fn create_table(&mut self, schema: u32, table: u32) -> Result<Made, Trouble>;

    /// Returns once all bytes of a created table are on the medium.
    fn flush_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble>;

    fn drop_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble>;

    /// Prepares the session for scans with reads of at most `multiblock` blocks, which is set only
    /// if the target's [`Scans`](crate::Scans) have a setting for it.
    fn arrange_scans(&mut self, _multiblock: Option<u32>) -> Result<(), SqlError> {
        Ok(())
    }

    /// Publishes the counts that the session held back.
    fn hand_over_counts(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
}

/// A table created from all rows of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    pub rows: u64,
    pub bytes: u64,
}

/// A process or thread of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub pid: u32,
    /// The thread, if sessions are threads.
    pub thread: Option<u32>,
}

pub trait Watcher: Send {
    /// Returns its current counters. `sessions` are those of this run.
    fn look(&mut self, sessions: &[Member], exact: bool) -> Result<CounterValues, SqlError>;

    /// Takes the samples that are due between looks, and returns the time until the next one;
    /// `None` if nothing is sampled.
    fn between(&mut self, _sessions: &[Member]) -> Option<Duration> {
        None
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterValues {
    /// Values of the series `instance` and `sql` by column; missing columns were not measured.
    pub statistics: Vec<(&'static str, u64)>,
    pub readings: Vec<Reading>,
}

/// Prefix of the comment on a database that holds a subset.
pub const SAMPLE: &str = "Blockstone subset: ";

/// Returns a note if the comment on a database says that it holds a subset of another: its figures
/// are those of a sample.
pub fn sample(comment: Option<&str>) -> Option<String> {
    let words = comment?.strip_prefix(SAMPLE)?;
    Some(format!("the database is a sample: {words}"))
}

/// Returns `text` with each `{name}` replaced by its value.
pub fn with(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.trim().to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// Fills in the statement `template`, which creates table `number` from the rows of a schema, with
/// names formatted by `name`.
pub fn copy_text(
    template: &str,
    (schema, number): (u32, u32),
    name: impl Fn(u32, Table) -> String,
) -> String {
    let (copy, rows) = (name(schema, Table::Copy(number)), name(schema, Table::Rows));
    with(template, &[("copy", &copy), ("table", &rows)])
}

/// Returns the declarations of all columns of a row except the key.
pub fn columns(kind: &str) -> String {
    let one = |index: usize| format!("c{} {kind} NOT NULL", index + 1);
    (0..content::COLUMNS).map(one).collect::<Vec<_>>().join(", ")
}

/// The statements of sessions: of each kind, one per schema.
#[derive(Clone, Debug)]
pub struct Texts {
    /// Reads rows by key.
    pub select: Vec<String>,
    pub update: Vec<String>,
    pub scan: Vec<String>,
    pub insert_order: Vec<String>,
    pub orders: Vec<String>,
    pub delete_order: Vec<String>,
}

/// Statements with the names of tables and changed columns in braces.
#[derive(Clone, Copy, Debug)]
pub struct Templates {
    pub select: &'static str,
    pub update: &'static str,
    pub scan: &'static str,
    pub insert_order: &'static str,
    pub orders: &'static str,
    pub delete_order: &'static str,
}

impl Texts {
    /// Fills table names into the statements of `templates`, and for the changed columns what
    /// `placeholder` returns for a position counted from 0.
    pub fn new(
        templates: &Templates,
        schemas: u32,
        changed: usize,
        name: impl Fn(u32, Table) -> String,
        placeholder: impl Fn(usize) -> String,
    ) -> Self {
        let one = |index: usize| format!("c{} = {}", index + 1, placeholder(index));
        let assignments = (0..changed).map(one).collect::<Vec<_>>().join(", ");
        let of_each = |text: &str, table| {
            let of = |schema| {
                with(text, &[("table", &name(schema, table)), ("assignments", &assignments)])
            };
            (0..schemas).map(of).collect()
        };
        Self {
            select: of_each(templates.select, Table::Rows),
            update: of_each(templates.update, Table::Rows),
            scan: of_each(templates.scan, Table::Scan),
            insert_order: of_each(templates.insert_order, Table::Orders),
            orders: of_each(templates.orders, Table::Orders),
            delete_order: of_each(templates.delete_order, Table::Orders),
        }
    }

    pub fn of(&self, kind: Kind) -> &[String] {
        match kind {
            Kind::Select => &self.select,
            Kind::Update => &self.update,
            Kind::Scan => &self.scan,
            Kind::InsertOrder => &self.insert_order,
            Kind::Orders => &self.orders,
            Kind::DeleteOrder => &self.delete_order,
        }
    }

    /// Returns the statements of operations on the first schema, with their kind.
    pub fn first(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("select", &self.select), ("update", &self.update), ("scan", &self.scan)];
        all.into_iter().filter_map(|(kind, texts)| Some((kind, texts.first()?.as_str())))
    }
}

/// The statements of a session, each prepared when first executed.
pub struct Prepared<S> {
    texts: Texts,
    sent: [Vec<Option<S>>; 6],
}

/// Kind of a statement, in the order of [`Texts`].
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Select,
    Update,
    Scan,
    InsertOrder,
    Orders,
    DeleteOrder,
}

impl<S: Clone> Prepared<S> {
    pub fn new(texts: Texts) -> Self {
        let none = || vec![None; texts.select.len()];
        Self { sent: std::array::from_fn(|_| none()), texts }
    }

    pub fn get<E: DriverError>(
        &mut self,
        kind: Kind,
        schema: u32,
        prepare: impl FnOnce(&str) -> Result<S, E>,
    ) -> Result<S, Trouble> {
        let text = &self.texts.of(kind)[schema as usize];
        let sent = &mut self.sent[kind as usize][schema as usize];
        if let Some(statement) = sent {
            return Ok(statement.clone());
        }
        Ok(sent.insert(prepare(text).attempting("prepare")?).clone())
    }
}
