//! The options of `offload run`.

use std::path::PathBuf;

use blockstone_base::units::Bytes;
use blockstone_pushdown::cells::CELLS_MAX;
use clap::{Args, ValueHint};

use crate::choice::{Choice, one_of};
use crate::purpose::Purpose;
use crate::verbs::offload::generate::CardsArgs;

/// Arguments of `offload run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone offload run /data                        PostgreSQL: 1, 2 and 4 cells
  blockstone offload run --cells 1,2 --scale 1G --html cells.html /data
  blockstone offload run --json /data > runs.json
  blockstone offload model --fit runs.json --cells 4
  blockstone offload run --engine clickhouse /data    ClickHouse: 1, 2 and 4 shards
  blockstone offload run --engine parquet /data       Parquet over HTTP, read by DuckDB")]
pub struct RunArgs {
    /// The directory for the files of the engines, which are removed in the end
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Scratch)]
    pub dir: PathBuf,
    /// What is measured
    #[arg(long, value_parser = one_of(ENGINES), default_value = "postgres")]
    pub engine: Engine,
    #[command(flatten)]
    pub cards: CardsArgs,
    /// Numbers of cells that the table is spread over, one after the other [default: 1,2,4]
    #[arg(long, value_name = "N,N", value_delimiter = ',', help_heading = "Cells")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(CELLS_MAX)))]
    pub cells: Vec<u32>,
    /// Shared buffers of each server of PostgreSQL; tables that fit are not read. Of ClickHouse,
    /// the cache of marks [default: 4M]
    #[arg(long, value_name = "SIZE", help_heading = "Cells")]
    pub cache: Option<Bytes>,
    /// How often each query is asked; the fastest is kept, which others disturbed least [default:
    /// 3]
    #[arg(long, value_name = "N", help_heading = "Cells")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=99))]
    pub repeat: Option<u32>,
    /// Directory of the PostgreSQL programs [default: the highest version in the usual places]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = "Cells")]
    #[arg(add = Purpose::Program)]
    pub pg_bin: Option<PathBuf>,
    /// The server of ClickHouse, or the directory that it is in [default: clickhouse-server or
    /// clickhouse, in the usual places]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::AnyPath, help_heading = "Cells")]
    #[arg(add = Purpose::Program)]
    pub clickhouse: Option<PathBuf>,
    /// DuckDB: its command line, or a Python that has its module and httpfs [default: duckdb or
    /// python3, whichever can]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    #[arg(help_heading = "Parquet over HTTP")]
    #[arg(add = Purpose::Program)]
    pub duckdb: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Parquet,
    ClickHouse,
}

impl Engine {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Parquet => "parquet",
            Self::ClickHouse => "clickhouse",
        }
    }
}

const ENGINES: [Choice<Engine>; 3] = [
    ("postgres", "PostgreSQL servers that hold parts, joined by postgres_fdw", Engine::Postgres),
    (
        "parquet",
        "Parquet files over HTTP: what a reader avoids by their statistics",
        Engine::Parquet,
    ),
    (
        "clickhouse",
        "ClickHouse servers that hold shards, joined by Distributed",
        Engine::ClickHouse,
    ),
];
