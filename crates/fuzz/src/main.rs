//! Fuzzes the targets on stable Rust: `cargo xtask fuzz` builds and starts it.
//!
//! Each target runs in a process of its own, which a supervisor watches: an abort or a hang is a
//! finding too, and the run goes on behind it. Inputs follow from the seed and their number alone.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command talks")]

mod options;
mod run;
mod supervise;
mod worker;

use std::process::ExitCode;

use blockstone_sys::heap::Counted;
use clap::Parser;
use options::{Arguments, Role};

#[global_allocator]
static HEAP: Counted = Counted;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.role {
        Some(Role::Work(work)) => worker::work(work).map(|()| true),
        Some(Role::Once(once)) => worker::once(once),
        None => run::run(&arguments.options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::from(2)
        }
    }
}
