//! `cargo xtask`: the jobs of those who work on Blockstone, one word each.
//!
//! It knows the layout of the workspace and the tools of the trade (cargo, git, fio); what a
//! measurement is, it leaves to the crates. Each job is one module; [`Job`] lists them.
//!
//! ```text
//! cargo xtask ci          # all that must hold before a change lands
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command talks")]

mod bench;
mod ci;
mod device;
mod dist;
mod format;
mod generate;
mod goals;
mod interrupt;
mod lab;
mod packages;
mod source;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    job: Job,
}

#[derive(Debug, Subcommand)]
enum Job {
    /// Everything that must hold before a change lands: format, lint, tidy, tests, generated files
    Ci,
    /// Run all tests, and say what ran, what was skipped and why
    Test(test::Options),
    /// Format all Rust files
    Fmt(format::Options),
    /// Check the house style that no compiler checks
    Tidy,
    /// Write the files that derive from the code
    Generate(generate::Options),
    /// Package the release binary with its documents: a tarball, a Debian package, checksums
    Dist,
    /// Make a disk of known limits, and run a command under them
    #[command(subcommand)]
    Device(device::Action),
    /// See what things cost, beside what else does the same
    Bench(bench::Options),
    /// Show on devices of known limits that what has to be found is found
    Lab(lab::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().job {
        Job::Ci => Ok(ci::run()),
        Job::Test(options) => test::run(&options),
        Job::Fmt(options) => format::run(&options),
        Job::Tidy => tidy::run(),
        Job::Generate(options) => generate::run(&options),
        Job::Dist => dist::run(),
        Job::Device(action) => device::run(action),
        Job::Bench(options) => bench::run(&options),
        Job::Lab(options) => lab::run(options),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
