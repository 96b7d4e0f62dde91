//! `cargo xtask`: the jobs of Blockstone's developers, one subcommand each.
//!
//! It knows the layout of the workspace and the tools (cargo, git, fio), but not what a measurement
//! is. Each job is one module; [`Job`] lists them. `cargo xtask ci` is everything that CI runs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command talks")]

mod bench;
mod ci;
mod device;
mod dist;
mod format;
mod fuzz;
mod generate;
mod goals;
mod interrupt;
mod lab;
mod packages;
mod supply;
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
    /// Run everything that CI runs: format, lint, tidy, tests, generated files
    Ci,
    /// Run all tests, and say what ran, what was skipped and why
    Test(test::Options),
    /// Format all Rust files
    Fmt(format::Options),
    /// Check the rules of style that the compiler does not, and the script of the pages
    Tidy,
    /// Check licences, sources and doubled versions of all dependencies
    Supply,
    /// Update the files that are generated from the code
    Generate(generate::Options),
    /// Feed every parser of untrusted input with a million inputs
    Fuzz(fuzz::Options),
    /// Package the release binary with its documents: a tarball, a Debian package, checksums
    Dist(dist::Options),
    /// Make a disk with known limits, and run a command under them
    #[command(subcommand)]
    Device(device::Action),
    /// Compare costs with other tools
    Bench(bench::Options),
    /// Show expected results on devices with known limits
    Lab(lab::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().job {
        Job::Ci => Ok(ci::run()),
        Job::Test(options) => test::run(&options),
        Job::Fmt(options) => format::run(&options),
        Job::Tidy => tidy::run(),
        Job::Supply => supply::run(),
        Job::Generate(options) => generate::run(&options),
        Job::Fuzz(options) => fuzz::run(&options),
        Job::Dist(options) => dist::run(&options),
        Job::Device(action) => device::run(action),
        Job::Bench(options) => bench::run(&options),
        Job::Lab(options) => lab::run(options),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
