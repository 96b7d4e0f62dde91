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
        Engine::Postgres | Engine::ClickHouse => cells::run(args, context),
        Engine::Parquet => avoided::run(args, context),
    }
}

/// An option of one engine means nothing to another.
fn refuse_ineffective(args: &RunArgs) -> Result<()> {
    use Engine::{ClickHouse, Parquet, Postgres};
    let cells = [Postgres, ClickHouse].as_slice();
    let options: [(&str, bool, &[Engine]); 6] = [
        ("--cells", !args.cells.is_empty(), cells),
        ("--repeat", args.repeat.is_some(), cells),
        ("--cache", args.cache.is_some(), cells),
        ("--pg-bin", args.pg_bin.is_some(), &[Postgres]),
        ("--clickhouse", args.clickhouse.is_some(), &[ClickHouse]),
        ("--duckdb", args.duckdb.is_some(), &[Parquet]),
    ];
    let mut of_others =
        options.iter().filter(|(_, given, of)| *given && !of.contains(&args.engine));
    let engine = args.engine.name();
    match of_others.next() {
        Some((option, ..)) => {
            bail!("offload run: {option} means nothing to --engine {engine}\nhint: omit it")
        }
        None => Ok(()),
    }
}
