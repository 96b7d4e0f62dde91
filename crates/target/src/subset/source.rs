//! What all sources and destinations of subsets have in common.

use std::io;
use std::path::Path;

use blockstone_subset::{CatalogueError, Plan, Source, Transform};
use blockstone_sys::held::HeldDir;

use super::manifest::{DATA, DataFile, KeyEntry, LargeObjects, Sequence};
use crate::sql::error::SqlError;

/// What is going on: words, rows of that so far, and how many there are, as far as is known.
/// False ends the work.
pub type Tell<'a> = dyn FnMut(&str, u64, Option<u64>) -> bool + 'a;

/// A file of the directory could not be written.
pub fn file_error(path: &Path, source: io::Error) -> SqlError {
    SqlError::File {
        what: "write",
        path: path.to_owned(),
        source,
        hint: "free some space, or name a directory on another file system",
    }
}

/// The new directory of data in `dir`.
pub fn make_data(dir: &HeldDir) -> Result<HeldDir, SqlError> {
    let made = dir.make_dir(Path::new(DATA)).and_then(|()| dir.within(Path::new(DATA)));
    made.map_err(|error| file_error(&dir.path().join(DATA), error))
}

/// No thread is to be had for a connection.
pub fn no_thread(error: &io::Error) -> SqlError {
    SqlError::Program {
        what: "start a thread for a connection".to_owned(),
        why: error.to_string(),
        hint: "raise the limit of processes, or read with --readers 1".to_owned(),
    }
}

/// Names in a note.
const NAMED: usize = 20;

/// A note of how many there are and their names; none where there are none.
pub fn named(what: &str, names: &[String]) -> Option<String> {
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("{what} ({}): {shown}{more}.", names.len()))
}

/// What was written.
#[derive(Debug)]
pub struct Exported {
    pub files: Vec<DataFile>,
    pub large_objects: Option<LargeObjects>,
    pub readers: usize,
}

/// What writing the rows of a plan would take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Of all files.
    pub bytes: u64,
    pub seconds: f64,
}

/// A database that subsets are taken of, as one snapshot shows it.
pub trait SubsetSource: Source<Error = SqlError> {
    /// Address without its password.
    fn name(&self) -> &str;

    /// With its version: `PostgreSQL 17.6`.
    fn product(&self) -> String;

    /// Schema and name of a table, and whether it has partitions.
    fn names(&self, table: usize) -> (&str, &str, bool);

    /// Adds keys that only the user knows.
    fn add_keys(&mut self, text: &str, what: &str) -> Result<(), CatalogueError>;

    /// Rows of `table` are asked whether they match this condition.
    fn set_condition(&mut self, table: usize, condition: &str);

    /// Fails when rows of a table cannot be told apart, or keys cannot be compared, without code
    /// that users of the server made. To be asked before anything is read of the tables.
    fn prove(&self) -> Result<(), SqlError>;

    /// What the reader of a report should know of this source.
    fn notes(&self) -> Vec<String>;

    /// Whether the schema can be written.
    fn check_dump(&mut self) -> Result<(), SqlError>;

    /// Writes the schema into `dir`.
    fn dump_schema(&mut self, dir: &HeldDir) -> Result<(), SqlError>;

    /// Where the sequences stand.
    fn sequences(&mut self) -> Result<Vec<Sequence>, SqlError>;

    /// Reads a few rows of each table, and says what all of `plan` would take to be written; none
    /// where that cannot be said.
    fn expect(&mut self, plan: &Plan, readers: usize) -> Result<Option<Expected>, SqlError>;

    /// Writes the rows of `plan` into the directory of data in `dir`.
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
    /// Address without its password, and product with its version.
    pub destination: String,
    pub product: String,
    pub keys: Vec<KeyProof>,
    /// Rows by table of the manifest, counted after the load.
    pub rows: Vec<u64>,
    /// Seconds of each step.
    pub steps: Vec<(Step, f64)>,
    /// What the reader of a report should know of the load.
    pub notes: Vec<String>,
}

/// What counting found of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyProof {
    pub orphans: u64,
}

impl KeyProof {
    /// Of a key whose orphans were counted. Those of a key that the source had proved are an error.
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
