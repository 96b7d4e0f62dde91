//! `cargo xtask fmt`: does what `cargo fmt` does, and also formats the verbs, which a macro
//! declares where rustfmt does not look.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::workspace::{cargo, root, show};

/// Files that cargo fmt does not find on its own; rustfmt follows the modules they declare.
const DECLARED_BY_MACRO: &str = "crates/blockstone/src/verbs";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Write nothing; fail when a file is not formatted
    #[arg(long)]
    check: bool,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    format(options.check)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails if a file is not formatted.
pub fn check() -> Result<()> {
    format(true)
}

fn format(check: bool) -> Result<()> {
    let check = check.then_some("--check");
    show(cargo(["fmt", "--all", "--"]).args(check))?;
    let dir = root().join(DECLARED_BY_MACRO);
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.args(["--edition", "2024"]).args(check).current_dir(root());
    for entry in std::fs::read_dir(&dir).with_context(|| format!("read {}", dir.display()))? {
        let path = entry.with_context(|| format!("read {}", dir.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            rustfmt.arg(path);
        }
    }
    show(&mut rustfmt)
}
