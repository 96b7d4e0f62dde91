//! Why a database could not be used as a target.

use std::path::PathBuf;

use super::SCHEMA;

#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    #[error("use target `{address}`: {why}\nhint: {hint}")]
    Address {
        /// As it was given, without its password.
        address: String,
        why: String,
        hint: &'static str,
    },
    #[error("connect to {server}: {why}\nhint: {hint}")]
    Connect { server: String, why: String, hint: String },
    #[error("use {server}: {why}\nhint: {hint}")]
    Unsuitable { server: String, why: String, hint: String },
    #[error("{what}: {why}\nhint: {hint}")]
    Statement { what: String, why: String, hint: String },
    #[error(
        "load {table}: {rows} rows lie in {pages} pages, not one per page\n\
         hint: please report it, with the version of the database"
    )]
    Layout { table: String, rows: u64, pages: u64 },
    #[error("{what}: {why}\nhint: {hint}")]
    Program { what: String, why: String, hint: String },
    #[error("{what} {}: {source}\nhint: {hint}", path.display())]
    File { what: &'static str, path: PathBuf, source: std::io::Error, hint: &'static str },
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
