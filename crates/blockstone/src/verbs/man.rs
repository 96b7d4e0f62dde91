//! `blockstone man`: the manual pages, from the declarations of the command line.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use blockstone_sys::output;
use clap::{Args, FromArgMatches, ValueHint};
use clap_mangen::Man;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::purpose::Purpose;
use crate::verb::Verb;
use crate::{cli, help};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  blockstone man /usr/local/share/man/man1")]
struct ManArgs {
    /// The directory to write to; it is created if missing
    #[arg(value_hint = ValueHint::DirPath)]
    #[arg(add = Purpose::Directory)]
    dir: PathBuf,
}

pub const VERB: Verb = Verb {
    name: "man",
    about: "Write the man pages",
    options: ManArgs::augment_args,
    run: |options, context| run(&ManArgs::from_arg_matches(options)?.dir, context.printer),
    ..Verb::PLAIN
};

fn run(dir: &Path, printer: Printer) -> Result<Exit> {
    let failed = |error| {
        let what = format!("write man pages to {}", dir.display());
        Failure::new(what, "name a directory in which you may write").because(error)
    };
    let held = output::directory(dir).map_err(failed)?;
    let mut all = cli::declarations();
    all.build();
    pages(&all, &mut |name, page| {
        held.create(Path::new(name)).and_then(|mut file| file.write_all(page))
    })
    .map_err(failed)?;
    printer.note(&format!("man pages are in {}", dir.display()));
    Ok(Exit::Done)
}

/// Returns the page of a command and those of its subcommands, each with its file name.
fn pages(
    command: &clap::Command,
    write: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        pages(below, write)?;
    }
    let page = Man::new(help::for_man(command));
    let mut text = Vec::new();
    page.render(&mut text)?;
    write(&page.get_filename(), &text)
}
