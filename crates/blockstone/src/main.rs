//! `blockstone` measures storage the way a database uses it and says which numbers to believe.
//!
//! This crate reads the command line, prints, and decides the exit code; each verb is one file in
//! `commands/`. It knows no I/O engine and no file format.

mod bar;
mod cli;
mod commands;
mod exit;
mod interrupt;
mod printer;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(exit) => return exit.into(),
    };
    let printer = printer::Printer::new(&cli.global);
    match commands::dispatch(cli, printer) {
        Ok(exit) => exit.into(),
        Err(error) => {
            printer.error(&error);
            exit::Exit::CouldNotRun.into()
        }
    }
}
