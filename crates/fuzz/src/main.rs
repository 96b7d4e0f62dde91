//! Fuzzes the targets on stable Rust: `cargo xtask fuzz` builds and starts it.
//!
//! Each target runs in a process of its own, which a supervisor watches: an abort or a hang is a
//! finding too, and the run continues after it. Inputs depend only on the seed and their number.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command talks")]

mod attack;
mod options;
mod run;
mod supervise;
mod worker;

use std::process::ExitCode;

use anyhow::{Context, Result};
use blockstone_fuzz::program::{self, Outcome, Wanted};
use blockstone_sys::heap::Counted;
use clap::Parser;
use options::{Arguments, Program, Role};

#[global_allocator]
static HEAP: Counted = Counted;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.role {
        Some(Role::Work(work)) => worker::work(work).map(|()| true),
        Some(Role::Once(once)) => worker::once(once),
        Some(Role::Files(asked)) => started(asked, program::files::run),
        Some(Role::Options(asked)) => started(asked, program::options::run),
        Some(Role::Attacks(asked)) => attack::run(asked),
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

/// Starts the program as asked and prints the outcomes; returns whether nothing was found.
fn started(asked: &Program, run: fn(&[String], &Wanted) -> Vec<Outcome>) -> Result<bool> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if let Some(save) = &asked.save {
        std::fs::create_dir_all(save).with_context(|| format!("create {}", save.display()))?;
    }
    let wanted = Wanted {
        binary: asked.binary.canonicalize().context("find the program")?,
        inputs: asked.inputs,
        seed: asked.seed,
        jobs: asked.jobs.unwrap_or(processors),
        save: asked.save.clone(),
    };
    let outcomes = run(&asked.names, &wanted);
    if asked.json {
        println!("{}", serde_json::to_string_pretty(&outcomes).context("make the document")?);
    } else {
        println!("{}", Outcome::HEADING);
        for outcome in &outcomes {
            println!("{outcome}");
        }
    }
    Ok(outcomes.iter().all(Outcome::is_clean))
}
