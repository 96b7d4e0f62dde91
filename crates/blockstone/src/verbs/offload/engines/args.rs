//! The options of `offload run`.

use std::path::PathBuf;

use blockstone_base::units::Bytes;
use blockstone_pushdown::cells::CELLS_MAX;
use clap::{Args, ValueHint};

use crate::purpose::Purpose;
use crate::verbs::offload::generate::CardsArgs;

/// Arguments of `offload run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone offload run /data   1, 2 and 4 cells
  blockstone offload run --cells 1,2 --scale 1G --html cells.html /data
  blockstone offload run --json /data > runs.json
  blockstone offload model --fit runs.json --cells 4")]
pub struct RunArgs {
    /// The directory for the files of the servers, which are removed at the end
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Scratch)]
    pub dir: PathBuf,
    #[command(flatten)]
    pub cards: CardsArgs,
    /// Numbers of cells that the table is spread over, one after the other
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [1, 2, 4])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(CELLS_MAX)))]
    pub cells: Vec<u32>,
    /// Shared buffers of each server; tables that fit are not read
    #[arg(long, value_name = "SIZE", default_value = "4M")]
    pub cache: Bytes,
    /// How often each query is asked; the fastest is kept, which others disturbed least
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=99))]
    pub repeat: u32,
    /// Directory of the PostgreSQL programs [default: the highest version in the usual places]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Program)]
    pub pg_bin: Option<PathBuf>,
}
