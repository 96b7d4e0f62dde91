//! Reasons why a database cannot be used as a target.

use std::path::PathBuf;

use blockstone_base::hint::Hint;
use blockstone_sys::page_cache::PageCacheError;

/// The schema for everything that a run creates on a server.
pub const SCHEMA: &str = "blockstone";

#[derive(Debug, thiserror::Error, Hint)]
pub enum SqlError {
    #[error(transparent)]
    #[hint(transparent)]
    PageCache(#[from] PageCacheError),
    #[error("use target `{address}`: {why}")]
    #[hint("{hint}")]
    Address {
        /// The address as given, without its password.
        address: String,
        why: String,
        hint: &'static str,
    },
    #[error("read the password in {}: {why}", path.display())]
    #[hint("{hint}")]
    Password { path: PathBuf, why: String, hint: &'static str },
    #[error("connect to {server}: {why}")]
    #[hint("{hint}")]
    Connect { server: String, why: String, hint: String },
    #[error("use {server}: it accepted the connection and did not answer within {seconds} s")]
    #[hint("check that what listens there is the database, and whether it is overloaded")]
    Silent { server: String, seconds: u64 },
    #[error("use {server}: {why}")]
    #[hint("{hint}")]
    Unsuitable { server: String, why: String, hint: String },
    #[error("{what}: {why}")]
    #[hint("{hint}")]
    Statement { what: String, why: String, hint: String },
    #[error("load {table}: {rows} rows lie in {pages} pages, not one per page")]
    #[hint("please report it, with the version of the database")]
    Layout { table: String, rows: u64, pages: u64 },
    #[error("{what}: {why}")]
    #[hint("{hint}")]
    Program { what: String, why: String, hint: String },
    #[error("{what} {}: {source}", path.display())]
    #[hint("{hint}")]
    File { what: &'static str, path: PathBuf, source: std::io::Error, hint: &'static str },
    #[error(
        "read the keys of {}: the keys of the sample take more than {} of memory",
        .0.table, blockstone_base::units::Bytes(.0.limit)
    )]
    #[hint("allow more with --memory, or take less with --percent")]
    Memory(#[from] blockstone_subset::MemoryError),
    #[error("load: interrupted")]
    #[hint("what was loaded is incomplete and is not used")]
    Interrupted,
}

/// Why a statement failed.
#[derive(Debug)]
pub enum Trouble {
    /// The database rolled the transaction back to resolve a conflict; it may be retried.
    Again,
    /// The statement was cancelled.
    Cancelled(SqlError),
    Failed(SqlError),
}

impl From<SqlError> for Trouble {
    fn from(error: SqlError) -> Self {
        Self::Failed(error)
    }
}

const SAID_CHARS: usize = 500;

/// An error of a database's driver.
pub trait DriverError {
    /// The full message of the database or the system, with its code.
    fn words(&self) -> String;

    /// The message, truncated to a readable length.
    fn said(&self) -> String {
        let words = self.words();
        match words.char_indices().nth(SAID_CHARS) {
            Some((end, _)) => format!("{}…", &words[..end]),
            None => words,
        }
    }

    /// A hint for a statement that failed with this error.
    fn hint(&self) -> &'static str;

    /// Whether the database rolled the transaction back to resolve a conflict.
    fn is_conflict(&self) -> bool;

    /// Whether the statement ended as one does that is cancelled: by the server's answer, or with
    /// its connection.
    fn is_cancelled(&self) -> bool;
}

/// Adds the purpose of a driver call to its error.
pub trait During<T> {
    fn during(self, what: &str) -> Result<T, SqlError>;

    /// Like `during`, for a call in a transaction that may be retried.
    fn attempting(self, what: &str) -> Result<T, Trouble>;
}

impl<T, E: DriverError> During<T> for Result<T, E> {
    fn during(self, what: &str) -> Result<T, SqlError> {
        self.map_err(|error| SqlError::statement(what, &error))
    }

    fn attempting(self, what: &str) -> Result<T, Trouble> {
        self.map_err(|error| {
            if error.is_conflict() {
                return Trouble::Again;
            }
            let failed = SqlError::statement(what, &error);
            if error.is_cancelled() { Trouble::Cancelled(failed) } else { Trouble::Failed(failed) }
        })
    }
}

/// A hint for a full disk.
pub const FREE_SPACE: &str = "free some space, or ask for less with --scale or --schemas";

impl SqlError {
    pub fn unsuitable(
        server: impl Into<String>,
        why: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::Unsuitable { server: server.into(), why: why.into(), hint: hint.into() }
    }

    pub fn statement(what: &str, error: &impl DriverError) -> Self {
        Self::Statement { what: what.to_owned(), why: error.said(), hint: error.hint().to_owned() }
    }

    /// A schema of our name exists on `server` that this program did not create.
    pub fn not_ours(server: &str) -> Self {
        Self::unsuitable(
            server,
            format!("it has a schema {SCHEMA} that no run made"),
            format!("rename or drop {SCHEMA} if nobody needs it, or name another database"),
        )
    }

    /// The system cannot start another thread.
    pub fn no_thread(error: &std::io::Error) -> Self {
        Self::Program {
            what: "start a thread".to_owned(),
            why: error.to_string(),
            hint: "raise ulimit -u or the limit of processes of the control group".to_owned(),
        }
    }

    /// The schema that the run created on `server` remains there, because of `error`.
    pub fn remains(server: &str, error: &Self) -> Self {
        let said = error.to_string();
        let why = said.lines().next().unwrap_or_default();
        Self::unsuitable(
            server,
            format!("the schema {SCHEMA} could not be removed: {why}"),
            format!(
                "once it is back, the next run or `blockstone teardown {server} --destroy \
                 {server}` removes it"
            ),
        )
    }
}
