//! House style that no compiler checks. Each check looks at the tree as text and reports
//! `file:line: what` with a hint; none of them changes anything.

mod dependencies;
pub mod documents;
mod hints;
mod imports;
pub mod script;
mod sources;
pub mod tree;

use std::fmt;
use std::process::ExitCode;

use anyhow::{Result, bail};

use self::tree::Tree;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    what: String,
    hint: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what, hint } = self;
        write!(f, "{path}:{line}: {what}\n    hint: {hint}")
    }
}

type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    dependencies::direction,
    dependencies::owners,
    dependencies::explained,
    sources::unsafe_code,
    sources::dangerous_calls,
    sources::module_files,
    sources::file_length,
    sources::line_width,
    sources::comments,
    sources::crate_opening,
    sources::silent_skips,
    sources::turns,
    sources::registries,
    documents::present,
    documents::links,
    documents::named,
    documents::tests,
    hints::listed,
    hints::apart,
    imports::circles,
];

pub fn run() -> Result<ExitCode> {
    check()?;
    script::check()?;
    println!("tidy: {} checks, no problems found", CHECKS.len());
    Ok(ExitCode::SUCCESS)
}

/// Runs all checks; prints the findings and fails if there are any.
pub fn check() -> Result<()> {
    let tree = tree::load()?;
    let findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found 1 problem"),
        count => bail!("tidy found {count} problems"),
    }
}
