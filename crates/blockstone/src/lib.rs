//! `blockstone` measures storage the way a database uses it and shows which results to trust.
//!
//! This crate reads the command line, prints, and decides the exit code. Each verb is one file in
//! `verbs/`, with its options and its report in a folder of the same name; [`finish`] is how all of
//! them end. The crate must know neither I/O nor file formats.
//!
//! ```no_run
//! let exit: std::process::ExitCode = blockstone_cli::main();
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod chapters;
mod choice;
mod cli;
mod config;
mod documents;
mod earlier;
mod exit;
mod expect;
mod failure;
mod finish;
mod help;
mod input;
mod instants;
mod interrupt;
mod interval;
mod layers;
mod password;
mod printer;
mod progress;
mod purpose;
mod range;
mod ranks;
mod recorded;
mod recordings;
mod rules_page;
mod store;
#[cfg(test)]
mod testing;
mod verb;
mod verbs;

pub use cli::declarations;
pub use purpose::Purpose;
pub use rules_page::rules_page;
pub use store::stores_page;

/// Functions that turn recordings and their findings into reports, and the documents of reports.
pub mod reports {
    pub use crate::verbs::calibrate::report::report as calibration;
    pub use crate::verbs::run::awr::lines as awr_info;
    pub use crate::verbs::run::report::report as run;
    pub use crate::verbs::schema::documents;
}

use std::process::ExitCode;

use blockstone_sys::{heap, process};
use exit::Exit;

/// Runs the program.
pub fn main() -> ExitCode {
    heap::end_threads_without_stack();
    let asked = match cli::parse() {
        Ok(asked) => asked,
        Err(exit) => return exit.into(),
    };
    interrupt::survive_size_limit();
    // Reports name statements, files and accounts, so they are private. The output of a verb
    // without reports, such as a man page, may be read by all.
    if asked.verb.reports && !asked.context.global.share {
        process::keep_private();
    }
    let run = || (asked.verb.run)(&asked.options, &asked.context);
    let ended = blockstone_servers::without_panics(run).map_err(Into::into).flatten();
    let exit = ended.unwrap_or_else(|error| {
        asked.context.printer.error(&error);
        Exit::CouldNotRun
    });
    // An error that follows from the user's request to end is not a failure.
    let is_asked = exit == Exit::CouldNotRun && interrupt::signal().is_some();
    if is_asked { Exit::Interrupted.into() } else { exit.into() }
}
