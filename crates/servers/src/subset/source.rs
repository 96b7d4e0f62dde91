//! Common interface of all sources and destinations of subsets.

use std::io;
use std::path::Path;

use blockstone_subset::{CatalogueError, Plan, Source, Transform};
use blockstone_sys::held::HeldDir;

use super::manifest::{DATA, DataFile, KeyEntry, LargeObjects, Sequence, file_error};
use crate::sql::error::SqlError;

/// Reports progress: a description, the rows processed so far, and their total if known. Returns
/// false to stop the work.
pub type Tell<'a> = dyn FnMut(&str, u64, Option<u64>) -> bool + 'a;

/// Creates the data directory in `dir`.
pub fn make_data(dir: &HeldDir) -> Result<HeldDir, SqlError> {
    let made = dir.make_dir(Path::new(DATA)).and_then(|()| dir.within(Path::new(DATA)));
    made.map_err(|error| file_error(&dir.path().join(DATA), error))
}

/// Returns the error of a connection for which no thread could be started.
pub fn no_thread(error: &io::Error) -> SqlError {
    SqlError::Program {
        what: "start a thread for a connection".to_owned(),
        why: error.to_string(),
        hint: "raise the limit of processes, or read with --readers 1".to_owned(),
    }
}

/// Maximum number of names in a note.
const NAMED: usize = 20;

/// Returns a note with the number of names and the first of them; `None` if there are none.
pub fn named(what: &str, names: &[String]) -> Option<String> {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("{what} ({}): {shown}{more}.", names.len()))
}

/// Files written by an export.
#[derive(Debug)]
pub struct Exported {
    pub files: Vec<DataFile>,
    pub large_objects: Option<LargeObjects>,
    pub readers: usize,
}

/// Estimated cost of writing the rows of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Size of all files.
    pub bytes: u64,
    pub seconds: f64,
}

/// A source database of subsets, as seen by one snapshot.
pub trait SubsetSource: Source<Error = SqlError> {
    /// Returns the address without its password.
    fn name(&self) -> &str;

    /// Returns the product with its version, such as `PostgreSQL 17.6`.
    fn product(&self) -> String;

    /// Returns schema and name of a table, and whether it has partitions.
    fn names(&self, table: usize) -> (&str, &str, bool);

    /// Adds keys known only to the user.
    fn add_keys(&mut self, text: &str, what: &str) -> Result<(), CatalogueError>;

    /// Sets a condition to be evaluated for the rows of `table`.
    fn set_condition(&mut self, table: usize, condition: &str);

    /// Sets columns of `table` that are written as NULL.
    fn set_null(&mut self, table: usize, columns: &[usize]);

    /// Fails if rows of a table cannot be told apart, or keys cannot be compared, without code made
    /// by users of the server. Call before anything is read from the tables.
    fn prove(&self) -> Result<(), SqlError>;

    /// Returns notes about this source for the reader of a report.
    fn notes(&self) -> Vec<String>;

    /// Checks that the schema can be dumped, and may begin to do so.
    fn start_dump(&mut self) -> Result<(), SqlError>;

    /// Writes the schema to `dir`.
    fn dump_schema(&mut self, dir: &HeldDir) -> Result<(), SqlError>;

    /// Returns the current values of the sequences.
    fn sequences(&mut self) -> Result<Vec<Sequence>, SqlError>;

    /// Reads a few rows of each table, and estimates the cost of writing all of `plan`; `None` if
    /// that is not possible.
    fn expect(&mut self, plan: &Plan, readers: usize) -> Result<Option<Expected>, SqlError>;

    /// Writes the rows of `plan` to the data directory in `dir`.
    fn export(
        &mut self,
        plan: &Plan,
        dir: &HeldDir,
        readers: usize,
        transform: Option<&dyn Transform>,
    ) -> Result<Exported, SqlError>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// Address without the password, and product with version.
    pub destination: String,
    pub product: String,
    pub keys: Vec<KeyProof>,
    /// Rows by table of the manifest, counted after the load.
    pub rows: Vec<u64>,
    /// Seconds of each step.
    pub steps: Vec<(Step, f64)>,
    /// Notes about the load for the reader of a report.
    pub notes: Vec<String>,
}

/// Result of counting the orphans of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyProof {
    pub orphans: u64,
}

impl KeyProof {
    /// Creates the proof of a key. Orphans of a key that the source had verified are an error.
    pub fn new(key: &KeyEntry, orphans: u64) -> Result<Self, SqlError> {
        if orphans == 0 || !key.valid {
            return Ok(Self { orphans });
        }
        Err(SqlError::Statement {
            what: format!("prove {}", key.name),
            why: format!("{orphans} rows reference rows that are not there"),
            hint: "nothing was loaded; please report it, with the schema".to_owned(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Tables,
    Rows,
    Keys,
    Proof,
    Commit,
}

impl Step {
    pub fn words(self) -> &'static str {
        match self {
            Self::Tables => "tables without keys",
            Self::Rows => "rows",
            Self::Keys => "indexes, keys and triggers",
            Self::Proof => "orphans and rows counted",
            Self::Commit => "commit",
        }
    }
}
