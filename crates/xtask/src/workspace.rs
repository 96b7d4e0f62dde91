//! Location of the workspace, and ways to start its tools.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use blockstone_sys::process;
use blockstone_sys::usage::CpuUsage;

/// Returns the folder that holds the workspace's Cargo.toml.
pub fn root() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates.and_then(Path::parent).expect("this crate lies in crates/ of the workspace")
}

/// Returns a path for what jobs leave behind: next to cargo's own products, so never committed.
pub fn scratch(name: &str) -> Result<PathBuf> {
    let dir = root().join("target/xtask");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    Ok(dir.join(name))
}

pub fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command whose output the user wants to see.
pub fn show(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start {}", line(command)))?;
    if !status.success() {
        bail!("`{}` failed with {status}; its output is above", line(command));
    }
    Ok(())
}

/// Runs a command and returns its standard output.
pub fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("start {}", line(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed with {}: {}", line(command), output.status, said.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("read output of {}", line(command)))
}

/// Runs a command to its end in silence, and returns the resources it consumed.
pub fn usage_of(command: &mut Command) -> Result<CpuUsage> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().with_context(|| format!("start {}", line(command)))?;
    let ended = process::wait(child).context("wait for it")?;
    if !ended.status.success() {
        bail!("`{}` failed with {}", line(command), ended.status);
    }
    Ok(ended.cpu)
}

/// Returns the command as one would type it.
pub fn line(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name.to_string_lossy().into_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
