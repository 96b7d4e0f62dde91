//! Runs the tools of the operating system (losetup, mkfs, mount) and writes kernel control files.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::TestkitError;

/// Runs `program` until it exits and returns its standard output without trailing white space.
pub(crate) fn tool(program: &str, arguments: &[&OsStr]) -> Result<String, TestkitError> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let message = match output {
        Ok(output) if output.status.success() => {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
    Err(TestkitError::Tool { command: format!("{program} {}", words.join(" ")), message })
}

/// Writes `text` to a kernel control file in a single write, as such files require.
pub(crate) fn control(path: &Path, text: &str) -> Result<(), TestkitError> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(TestkitError::file("write", path))
}

/// Reads a kernel control file, without its last line break.
pub(crate) fn control_text(path: &Path) -> Result<String, TestkitError> {
    let text = fs::read_to_string(path).map_err(TestkitError::file("read", path))?;
    Ok(text.trim_end().to_owned())
}

/// Returns the path of `program`, if it is installed. Searches /usr/sbin and /sbin too.
pub(crate) fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}
