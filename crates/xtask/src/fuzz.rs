//! Fuzzing: builds the fuzzer as for a release, but with arithmetic checks, and starts it. In CI it
//! is built as for tests and runs for a short time.

use std::process::{Command, ExitCode};

use anyhow::Result;
use blockstone_testkit::build_as_tested;

use crate::workspace::{cargo, root, show};

/// Seconds for all targets in CI, however many there are.
const CI_SECONDS: &str = "180";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Options of the fuzzer: targets, --inputs N, --seconds S, --seed N, --list; see its --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    show(
        cargo(["run", "--quiet", "--profile", "fuzz", "--package", "blockstone-fuzz", "--"])
            .args(&options.arguments),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Runs every target for a short time; fails if one has a finding.
pub fn check() -> Result<()> {
    let save = root().join("target/fuzz");
    let mut fuzzer = Command::new(build_as_tested("blockstone-fuzz")?);
    show(fuzzer.args(["--total-seconds", CI_SECONDS, "--cpu-ms", "5000", "--save"]).arg(save))
}
