//! Sources and destinations of subsets.

pub mod engine;
mod key_values;
pub mod manifest;
pub mod mariadb;
pub mod postgres;
pub mod source;

use blockstone_sys::held::HeldDir;

use crate::sql::error::SqlError;
use engine::Engine;
use manifest::Manifest;
use source::{Loaded, Tell};

/// Loads the subset in `dir` into the database at `address`.
pub fn load(
    dir: &HeldDir,
    manifest: &Manifest,
    address: &str,
    tell: &mut Tell<'_>,
) -> Result<Loaded, SqlError> {
    let engine = Engine::of(address)?;
    if engine != manifest.engine {
        return Err(SqlError::Statement {
            what: format!("load {}", dir.path().display()),
            why: format!("its rows are those of {}", manifest.product),
            hint: format!("name a database of {}", manifest.engine.name()),
        });
    }
    match engine {
        Engine::Postgres => postgres::load(dir, manifest, address, tell),
        Engine::Mariadb => mariadb::load(dir, manifest, address, tell),
    }
}

/// Writes a script that loads the same with the server's own client, run in the directory.
pub fn write_script(dir: &HeldDir, manifest: &Manifest) -> Result<(), SqlError> {
    match manifest.engine {
        Engine::Postgres => postgres::write_script(dir, manifest),
        Engine::Mariadb => mariadb::write_script(dir, manifest),
    }
}
