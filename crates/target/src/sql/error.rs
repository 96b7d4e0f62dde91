//! Why a database could not be used as a target.

use std::path::PathBuf;

use super::SCHEMA;

/// An error of a database, with what it is about and what helps.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// The address is invalid.
    #[error("use target `{address}`: {why}\nhint: {hint}")]
    Address {
        /// As it was given, without its password.
        address: String,
        /// What is wrong with it.
        why: String,
        /// An address that would work.
        hint: &'static str,
    },
    #[error("connect to {server}: {why}\nhint: {hint}")]
    Connect {
        /// The server, as the user named it.
        server: String,
        /// Its answer, or the system's.
        why: String,
        hint: String,
    },
    /// The server is there but cannot be used.
    #[error("use {server}: {why}\nhint: {hint}")]
    Unsuitable {
        server: String,
        /// What is in the way.
        why: String,
        hint: String,
    },
    #[error("{what}: {why}\nhint: {hint}")]
    Statement {
        /// What it was to do.
        what: String,
        /// The database's answer, with its code.
        why: String,
        hint: String,
    },
    /// The rows do not lie as they must.
    #[error(
        "load {table}: {rows} rows lie in {pages} pages, not one per page\n\
         hint: please report it, with the version of the database"
    )]
    Layout {
        table: String,
        /// Rows loaded.
        rows: u64,
        /// Pages that hold them.
        pages: u64,
    },
    /// A program that makes or runs a server is not there, or ended.
    #[error("{what}: {why}\nhint: {hint}")]
    Program {
        /// The program, and what it was to do.
        what: String,
        why: String,
        hint: String,
    },
    /// A file or directory could not be made, read or removed.
    #[error("{what} {}: {source}\nhint: {hint}", path.display())]
    File {
        /// What was to be done.
        what: &'static str,
        path: PathBuf,
        source: std::io::Error,
        hint: &'static str,
    },
    /// A load was ended before its end.
    #[error("load: interrupted\nhint: what was loaded is incomplete and is not used")]
    Interrupted,
}

impl SqlError {
    /// There is a schema of our name on `server` that this program did not make.
    pub fn not_ours(server: &str) -> Self {
        Self::Unsuitable {
            server: server.to_owned(),
            why: format!("it has a schema {SCHEMA} that this run did not make"),
            hint: format!("`blockstone teardown {server}` removes it with all that is in it"),
        }
    }

    /// What the run made on `server` is still there, because of `error`.
    pub fn remains(server: &str, error: &Self) -> Self {
        let said = error.to_string();
        let why = said.lines().next().unwrap_or_default();
        Self::Unsuitable {
            server: server.to_owned(),
            why: format!("the schema {SCHEMA} could not be removed: {why}"),
            hint: format!(
                "once it is back, `blockstone teardown {server}` or the next run removes it"
            ),
        }
    }
}
