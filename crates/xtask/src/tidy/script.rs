//! Lints the script of the pages: a name that is declared twice in one scope, or never, is legal in
//! a script, and wrong.
//!
//! The linter is a single program without dependencies, fetched once into `target` by address and
//! checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::packages;
use crate::workspace::{root, scratch, show};

const VERSION: &str = "2.6.8";
const SHA256: &str = "e9fc491ffec6ba4024549b7c797937cd4f01855b4fe66a78220efe83b95be7f1";
/// A script with faults, and the rules that find them.
const CANARY: &str =
    "(() => {\n  function f() { return g; }\n  function f() { return 1; }\n  f();\n})();\n";
const RULES: &[&str] = &["noRedeclare", "noUndeclaredVariables"];
/// Folder of the script and of the rules (`biome.json`).
const TEMPLATES: &str = "crates/report/templates";

pub fn check() -> Result<()> {
    let linter = linter()?;
    show(&mut lint(&linter, Path::new("page.js")))?;
    // Shows on every run that the rules find what they are for.
    let canary = scratch("canary.js")?;
    fs::write(&canary, CANARY).with_context(|| format!("write {}", canary.display()))?;
    let found = lint(&linter, &canary).output().context("start the linter")?;
    let said = String::from_utf8_lossy(&found.stdout);
    let said = said + String::from_utf8_lossy(&found.stderr);
    let is_found = !found.status.success() && RULES.iter().all(|rule| said.contains(rule));
    ensure!(is_found, "the linter does not find {RULES:?} in a script with such faults: {said}");
    Ok(())
}

/// Returns a command that runs the linter, which takes its rules from the folder in which it is
/// started.
fn lint(linter: &Path, script: &Path) -> Command {
    let mut command = Command::new(linter);
    command.args(["lint", "--error-on-warnings"]).arg(script);
    command.current_dir(root().join(TEMPLATES));
    command
}

/// Returns the path of the linter, fetching it if it is not there.
fn linter() -> Result<PathBuf> {
    let home = scratch(&format!("biome-{VERSION}"))?;
    let program = home.join("package/biome");
    if !program.exists() {
        let package = "https://registry.npmjs.org/@biomejs/cli-linux-x64/-/cli-linux-x64";
        packages::fetch(&format!("{package}-{VERSION}.tgz"), SHA256, &home)?;
    }
    Ok(program)
}
