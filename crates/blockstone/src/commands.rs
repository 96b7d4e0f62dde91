//! The verbs, and what several of them share.

mod calibrate;
mod compare;
mod completions;
mod conclude;
mod find_run;
mod flash;
mod interval;
mod judged;
mod man;
mod matrix;
mod part;
mod reduce;
mod report;
mod run;
mod runs;
mod teardown;
mod watch;

use crate::cli::{Cli, Command};
use crate::exit::Exit;
use crate::printer::Printer;

/// Runs the verb that was asked for.
pub fn dispatch(cli: Cli, printer: Printer) -> anyhow::Result<Exit> {
    match cli.command {
        Command::Calibrate(args) => calibrate::run(&args, &cli.global, printer),
        Command::Run(args) => run::run(&args, &cli.global, printer),
        Command::Teardown { target } => teardown::run(&target, printer),
        Command::Flash(args) => flash::run(&args, &cli.global, printer),
        Command::Reduce(args) => reduce::run(&args, printer),
        Command::Watch(args) => watch::run(&args, &cli.global, printer),
        Command::Report(args) => report::run(&args, &cli.global, printer),
        Command::Compare(args) => compare::run(&args, &cli.global, printer),
        Command::Runs => runs::run(&cli.global, printer),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { dir } => man::run(&dir, printer),
    }
}
