//! `blockstone offload run`: engines that filter at the storage, or avoid reading it, measured.

pub mod args;
pub mod avoided;
mod cells;
mod counted;
mod predict;
pub mod report;

use anyhow::{Result, bail};

use crate::exit::Exit;
use crate::verb::Context;
use args::{Engine, RunArgs};

pub fn run(args: &RunArgs, context: &Context) -> Result<Exit> {
    refuse_ineffective(args)?;
    match args.engine {
        Engine::Postgres => cells::run(args, context),
        Engine::Parquet => avoided::run(args, context),
        Engine::ClickHouse => bail!(
            "run ClickHouse shards: this version cannot start them\n\
             hint: --engine postgres measures the same with PostgreSQL; what ClickHouse itself \
             counted (ProfileEvents in system.query_log) can be read as a table of counters by \
             `offload account`"
        ),
    }
}

/// An option of one engine means nothing to another.
fn refuse_ineffective(args: &RunArgs) -> Result<()> {
    let postgres = [
        ("--cells", !args.cells.is_empty()),
        ("--cache", args.cache.is_some()),
        ("--repeat", args.repeat.is_some()),
        ("--pg-bin", args.pg_bin.is_some()),
    ];
    let duckdb = [("--duckdb", args.duckdb.is_some())];
    let (of_others, engine): (Vec<(&str, bool)>, &str) = match args.engine {
        Engine::Postgres => (duckdb.into(), "postgres"),
        Engine::Parquet => (postgres.into(), "parquet"),
        Engine::ClickHouse => (postgres.into_iter().chain(duckdb).collect(), "clickhouse"),
    };
    match of_others.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => {
            bail!("offload run: {option} means nothing to --engine {engine}\nhint: omit it")
        }
        None => Ok(()),
    }
}
