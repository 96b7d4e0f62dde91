//! `blockstone subset oracle`: files for Data Pump.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blockstone_base::units::{Bytes, percentage};
use blockstone_subset::oracle::{Catalogue, FILE_MAX, Wanted, catalogue_query, files};
use clap::{Args, ValueHint};

use super::unfinished::hold_parent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;
use crate::purpose::Purpose;
use crate::verb::Context;

/// Which keys, and which rows.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone subset oracle --query SHOP > keys.sql   for SQL*Plus
  blockstone subset oracle keys.csv export           what it printed
  blockstone subset oracle --rows rows.csv keys.csv export")]
pub struct OracleArgs {
    /// Output of the query: the keys, as CSV
    #[arg(value_name = "KEYS.csv", value_hint = ValueHint::FilePath, requires = "dir")]
    #[arg(add = Purpose::Input)]
    pub catalogue: Option<PathBuf>,
    /// The directory to write lists.sql, export.par and drop.sql into, new
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    pub dir: Option<PathBuf>,
    /// Print the query for the keys of this owner's tables, for SQL*Plus
    #[arg(long, value_name = "OWNER")]
    #[arg(conflicts_with_all = ["catalogue", "dir", "percent", "seed", "rows", "lister"])]
    pub query: Vec<String>,
    /// Share of the rows of each table that are exported, before those that they reference
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percentage)]
    pub percent: f64,
    /// The same number chooses the same rows
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u32,
    /// In place of a share, the rows that this file names: OWNER,TABLE and the values of the key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["percent", "seed"])]
    #[arg(add = Purpose::Input)]
    pub rows: Option<PathBuf>,
    /// The user who runs the scripts, in whose schema the lists are
    #[arg(long, value_name = "USER", default_value = "SYSTEM")]
    pub lister: String,
}

pub fn run(args: &OracleArgs, context: &Context) -> Result<Exit> {
    if let Some(option) = context.global.asks_for_report() {
        bail!(Failure::new(
            format!("subset oracle with {option}: it prints no report"),
            format!("omit {option}")
        ));
    }
    if !args.query.is_empty() {
        let owners: Vec<&str> = args.query.iter().map(String::as_str).collect();
        context.printer.answer(&catalogue_query(&owners))?;
        return Ok(Exit::Done);
    }
    let (Some(path), Some(dir)) = (&args.catalogue, &args.dir) else {
        bail!(Failure::new(
            "subset oracle: no keys are named",
            "print the query for them with --query OWNER"
        ));
    };
    let catalogue = Catalogue::read(&text(path)?, &path.display().to_string())?;
    let wanted = match &args.rows {
        Some(path) => Wanted::Keys(catalogue.read_keys(&text(path)?, &path.display().to_string())?),
        None => Wanted::Percent { percent: args.percent, seed: args.seed },
    };
    let files = files(&catalogue, &wanted, &args.lister)?;
    let all = [("lists.sql", files.lists), ("export.par", files.export), ("drop.sql", files.drop)];
    write(dir, &all).map_err(|error| {
        let hint = "name a new directory, where this user may write";
        anyhow!(Failure::new(format!("write the directory {}: {error}", dir.display()), hint))
    })?;
    context.printer.note("lists.sql, export.par and drop.sql are not tested with Oracle");
    Ok(Exit::Done)
}

/// Writes the files into a new directory.
fn write(dir: &Path, files: &[(&str, String)]) -> io::Result<()> {
    let (above, name) = hold_parent(dir)?;
    if above.look(&name)?.is_some() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    above.make_dir(&name)?;
    let made = above.within(&name)?;
    for (name, text) in files {
        made.create_new(Path::new(name))?.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn text(path: &Path) -> Result<String> {
    input::text(path, Bytes(FILE_MAX as u64)).map_err(|error| {
        let hint = "name a file that the query of --query wrote, in UTF-8";
        anyhow!(input::failure(&format!("read {}", path.display()), &error, hint))
    })
}
