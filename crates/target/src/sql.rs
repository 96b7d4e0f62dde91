//! What all real databases have in common as targets: a row fills a page, key order is not physical
//! order, statements are prepared, commits are timed on their own, a transaction that the database
//! rolls back to resolve a conflict is retried and counted.
//!
//! A database is added by implementing [`Database`] and [`Link`] in a file of its own, with its
//! statements in `sql/<target>/*.sql`.

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

/// A note that what a killed run left on `server` is gone.
pub fn removed_left(server: &str) -> String {
    format!("removed schema {SCHEMA} from {server}, left by a killed run")
}

pub fn table_name(schema: u32, table: Table) -> String {
    format!("{SCHEMA}.{}", table.name(schema))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Its rows are visited by key.
    Rows,
    /// It has no index and is scanned.
    Scan,
    /// Transactions add to it and remove from it, by number.
    Orders,
    /// Made of all rows of the schema while sessions work, and dropped again.
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

/// Places of a table that are filled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub schema: u32,
    pub table: Table,
    pub first: u64,
    pub rows: u64,
}

/// What differs between databases.
pub trait Database: Send + Sync + Debug + Sized + 'static {
    type Link: Link;

    /// Connects to the database, or makes one, and makes its empty tables.
    fn open(spec: &TargetSpec, content: Content) -> Result<Self, SqlError>;

    /// Where its server is; the default for what is in this process.
    fn border(&self) -> Border {
        Border::default()
    }

    /// Connects a session. Called on its thread.
    fn link(&self) -> Result<Self::Link, SqlError>;

    /// How tables are filled: by how many at a time, and how many places each takes on at once.
    fn loaders(&self) -> (usize, u64);

    /// Fills `chunk`; `tell` gets the number of rows as they are written, and may end it.
    fn fill(
        &self,
        chunk: &Chunk,
        tell: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<(), SqlError>;

    /// After the load: index, statistics, checkpoint; verifies that a row fills a page.
    fn settle(&self) -> Result<(), SqlError>;

    /// Something that looks at the database's counters, on a thread of its own.
    fn watcher(&self) -> Result<Box<dyn Watcher>, SqlError>;

    /// What the database is and how it executes the statements, as of now.
    fn describe(&self) -> Result<Description, SqlError>;

    /// What it can do here, by name, and what not and why.
    fn capabilities(&self) -> Vec<(&'static str, Capability)> {
        Vec::new()
    }

    /// `error` with what the server itself said, where its log is at hand: a server that ends says
    /// nothing to those whose connection it closes.
    fn explained(&self, error: SqlError) -> SqlError {
        error
    }

    /// Removes all that this run put into it, and stops what it started.
    fn tear_down(&self) -> Result<(), SqlError>;
}

pub trait Link {
    /// Whether sessions hold counts back until they are asked for them.
    const HOLDS_COUNTS: bool = false;

    /// Whether the database works on the thread of the session, and reports no waits itself.
    const BLOCKS_HERE: bool = false;

    /// Whether a statement that makes a table commits by itself.
    const COMMITS_TABLES: bool = false;

    /// What the operating system knows this session as.
    fn member(&self) -> Option<Member>;

    fn canceller(&self) -> Canceller;

    /// Visits rows by key, and says how many.
    fn select(&mut self, schema: u32, first_key: u64, rows: u32) -> Result<u64, Trouble>;

    /// Begins a transaction; one that `writes` is not to fail for having begun as a reader.
    fn begin(&mut self, writes: bool) -> Result<(), Trouble>;

    /// Changes rows in the transaction.
    fn update(
        &mut self,
        schema: u32,
        first_key: u64,
        rows: u32,
        change: &Change,
    ) -> Result<u64, Trouble>;

    /// Adds an order in the transaction.
    fn insert_order(&mut self, schema: u32, number: u64, order: &[u8]) -> Result<u64, Trouble>;

    /// Visits the orders that are there, by number from `first` on, and says how many.
    fn orders(&mut self, schema: u32, first: u64, count: u32) -> Result<u64, Trouble>;

    /// Removes an order in the transaction, and says how many rows that took.
    fn delete_order(&mut self, schema: u32, number: u64) -> Result<u64, Trouble>;

    /// Ends the transaction durably.
    fn commit(&mut self) -> Result<(), Trouble>;

    /// Undoes what the transaction changed.
    fn roll_back(&mut self) -> Result<(), SqlError>;

    /// Reads the schema's second table from its first row to its last, and says how many.
    fn scan(&mut self, schema: u32) -> Result<u64, Trouble>;

    /// Makes a table of all rows of the schema, in the transaction where there is one.
    fn create_table(&mut self, schema: u32, table: u32) -> Result<Made, Trouble>;

    /// Returns when all bytes of such a table are on the medium.
    fn flush_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble>;

    fn drop_table(&mut self, schema: u32, table: u32) -> Result<(), Trouble>;

    /// Prepares the session for scans in reads of at most `multiblock` blocks. A target is asked
    /// for a size only where its [`Scans`](crate::Scans) say that it has a setting for that.
    fn arrange_scans(&mut self, _multiblock: Option<u32>) -> Result<(), SqlError> {
        Ok(())
    }

    /// Hands over the counts that the session held back.
    fn hand_over_counts(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
}

/// A table that was made of all rows of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    pub rows: u64,
    pub bytes: u64,
}

/// A process of the server, or a thread of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub pid: u32,
    /// The thread, where a session is one.
    pub thread: Option<u32>,
}

pub trait Watcher: Send {
    /// Its counters now. `sessions` are those of this run.
    fn look(&mut self, sessions: &[Member], exact: bool) -> Result<Seen, SqlError>;

    /// Samples what is sampled more often than there are looks, and says when the next sample is
    /// due; none where nothing is.
    fn between(&mut self, _sessions: &[Member]) -> Option<Duration> {
        None
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Values of the series `instance` and `sql`, by column; what is missing was not measured.
    pub statistics: Vec<(&'static str, u64)>,
    pub readings: Vec<Reading>,
}

/// How the comment on a database begins that a subset was loaded into.
pub const SAMPLE: &str = "Blockstone subset: ";

/// A note where the comment on a database says that it holds a subset of another: figures of it
/// are those of a sample.
pub fn sample(comment: Option<&str>) -> Option<String> {
    let words = comment?.strip_prefix(SAMPLE)?;
    Some(format!("the database is a sample: {words}"))
}

/// `text` with `{name}` replaced by its value.
pub fn with(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.trim().to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// The statement `template` that makes table `number` of the rows of a schema, with names as `name`
/// writes them.
pub fn copy_text(
    template: &str,
    (schema, number): (u32, u32),
    name: impl Fn(u32, Table) -> String,
) -> String {
    let (copy, rows) = (name(schema, Table::Copy(number)), name(schema, Table::Rows));
    with(template, &[("copy", &copy), ("table", &rows)])
}

/// The declarations of all columns of a row but the key.
pub fn columns(kind: &str) -> String {
    let one = |index: usize| format!("c{} {kind} NOT NULL", index + 1);
    (0..content::COLUMNS).map(one).collect::<Vec<_>>().join(", ")
}

/// The statements of sessions, one of each kind a schema.
#[derive(Clone, Debug)]
pub struct Texts {
    /// Visits rows by key.
    pub select: Vec<String>,
    pub update: Vec<String>,
    pub scan: Vec<String>,
    pub insert_order: Vec<String>,
    pub orders: Vec<String>,
    pub delete_order: Vec<String>,
}

/// What is sent, with the names of tables and changed columns in braces.
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
    /// The statements of `templates` with the names of tables filled in, and the changed columns
    /// with what `placeholder` writes for the one at a position from 0.
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

    /// Those of operations on the first schema, with their kind.
    pub fn first(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("select", &self.select), ("update", &self.update), ("scan", &self.scan)];
        all.into_iter().filter_map(|(kind, texts)| Some((kind, texts.first()?.as_str())))
    }
}

/// The statements of a session, each prepared when it is first sent.
pub struct Prepared<S> {
    texts: Texts,
    sent: [Vec<Option<S>>; 6],
}

/// Of a statement, in the order of [`Texts`].
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
