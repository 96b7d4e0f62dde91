//! `blockstone offload run`: measures servers that filter rows for a host.

pub mod args;
mod counted;
mod predict;
pub mod report;
pub mod rows;

use anyhow::{Result, bail};
use blockstone_pushdown::cells::{self, CellsError, Settings};
use blockstone_servers::SqlError;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::finish::finish;
use crate::progress::Progress;
use crate::recordings;
use crate::verb::Context;
use args::RunArgs;

pub fn run(args: &RunArgs, context: &Context) -> Result<Exit> {
    let settings = settings(args)?;
    let mut bar = Progress::start(context.printer)?;
    let measured = cells::measure(&settings, &mut |done, text| bar.step(done, text));
    bar.finish();
    let signal = bar.signal();
    match measured {
        Ok(measured) if measured.runs.is_empty() && signal.is_some() => Ok(interrupted(context)),
        Ok(measured) => finish(&report::report(&settings, &measured, signal), context),
        Err(CellsError::Sql(SqlError::Interrupted)) => Ok(interrupted(context)),
        Err(_) if signal.is_some() => Ok(interrupted(context)),
        Err(error) => Err(error.into()),
    }
}

fn interrupted(context: &Context) -> Exit {
    context.printer.note("interrupted: nothing was measured, and the servers are removed");
    Exit::Interrupted
}

fn settings(args: &RunArgs) -> Result<Settings> {
    if !args.cells.windows(2).all(|pair| pair[0] < pair[1]) {
        bail!(Failure::new("offload run: --cells must ascend", "--cells 1,2,4"));
    }
    let cards = args.cards.cards()?;
    if cards.rows() < u64::from(*args.cells.last().unwrap_or(&1)) * 1000 {
        bail!(Failure::new(
            format!("offload run: a table of {} leaves cells without rows", args.cards.scale),
            "a larger --scale"
        ));
    }
    Ok(Settings {
        dir: args.dir.clone(),
        cards,
        cells: args.cells.clone(),
        programs: args.pg_bin.clone(),
        server_settings: Vec::new(),
        cache: args.cache,
        repeat: args.repeat,
        id: recordings::draw_seed(),
    })
}
