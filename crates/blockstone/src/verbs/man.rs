//! `blockstone man`: the manual pages, from the declarations of the command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, FromArgMatches, ValueHint};

use crate::cli;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::purpose::Purpose;
use crate::verb::Verb;

#[derive(Args, Debug)]
struct Man {
    /// The directory to write to; it is created if missing
    #[arg(value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    dir: PathBuf,
}

pub const VERB: Verb = Verb {
    name: "man",
    about: "Write the man pages",
    options: Man::augment_args,
    run: |options, context| run(&Man::from_arg_matches(options)?.dir, context.printer),
    ..Verb::PLAIN
};

fn run(dir: &Path, printer: Printer) -> Result<Exit> {
    let named = || {
        let hint = "hint: name a directory in which you may write";
        format!("write man pages to {}\n{hint}", dir.display())
    };
    std::fs::create_dir_all(dir).with_context(named)?;
    clap_mangen::generate_to(cli::declarations(), dir).with_context(named)?;
    printer.note(&format!("man pages are in {}", dir.display()));
    Ok(Exit::Done)
}
