//! Cells, from options to a report.

use anyhow::{Result, bail};
use blockstone_base::units::Bytes;
use blockstone_pushdown::cells::{self, CellsError, Product, Settings};
use blockstone_target::SqlError;

use super::args::{Engine, RunArgs};
use super::report;
use crate::exit::Exit;
use crate::finish::finish;
use crate::progress::Progress;
use crate::recordings;
use crate::verb::Context;

const CELLS: [u32; 3] = [1, 2, 4];
const REPEAT: u32 = 3;
const CACHE: Bytes = Bytes::mib(4);

pub fn run(args: &RunArgs, context: &Context) -> Result<Exit> {
    let settings = settings(args)?;
    let mut bar = Progress::start(context.printer)?;
    let measured = cells::measure(&settings, &mut |done, text| bar.step(done, text));
    bar.finish();
    let signal = bar.signal();
    match measured {
        Ok(measured) if measured.runs.is_empty() && signal.is_some() => Ok(interrupted(context)),
        Ok(measured) => {
            let style = context.printer.style();
            finish(&report::report(&settings, &measured, signal, &style), context)
        }
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
    let cells = if args.cells.is_empty() { CELLS.to_vec() } else { args.cells.clone() };
    if !cells.windows(2).all(|pair| pair[0] < pair[1]) {
        bail!("offload run: --cells must ascend\nhint: --cells 1,2,4");
    }
    let cards = args.cards.cards()?;
    if cards.rows() < u64::from(*cells.last().unwrap_or(&1)) * 1000 {
        bail!(
            "offload run: a table of {} leaves cells without rows\nhint: a larger --scale",
            args.cards.scale
        );
    }
    let product = match args.engine {
        Engine::ClickHouse => Product::ClickHouse,
        Engine::Postgres | Engine::Parquet => Product::Postgres,
    };
    Ok(Settings {
        product,
        dir: args.dir.clone(),
        cards,
        cells,
        programs: args.pg_bin.clone().or_else(|| args.clickhouse.clone()),
        server_settings: Vec::new(),
        cache: args.cache.unwrap_or(CACHE),
        repeat: args.repeat.unwrap_or(REPEAT),
        id: recordings::draw_seed(),
    })
}
