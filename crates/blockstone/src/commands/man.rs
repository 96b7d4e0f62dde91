//! `blockstone man`: the manual pages, from the declarations of the command line.

use std::path::Path;

use anyhow::{Context, Result};

use crate::cli;
use crate::exit::Exit;
use crate::printer::Printer;

pub fn run(dir: &Path, printer: Printer) -> Result<Exit> {
    let named = || format!("write man pages to {}", dir.display());
    std::fs::create_dir_all(dir).with_context(named)?;
    clap_mangen::generate_to(cli::declarations(), dir).with_context(named)?;
    printer.note(&format!("man pages are in {}", dir.display()));
    Ok(Exit::Done)
}
