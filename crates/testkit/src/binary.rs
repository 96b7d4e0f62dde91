//! The built `blockstone`, as a user would run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::error::TestkitError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Standard output, which holds the answer.
    pub stdout: String,
    /// Standard error, which holds everything else.
    pub stderr: String,
}

impl Ran {
    /// Parses standard output as one JSON document.
    ///
    /// # Panics
    /// If it is not a JSON document; the message contains all output of the program.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_str(&self.stdout) {
            Ok(document) => document,
            Err(error) => panic!("standard output is not a JSON document: {error}\n{self:#?}"),
        }
    }
}

/// Variables that decide where recordings are, the first of them alone.
const SET_BY_TESTS: [&str; 3] = ["BLOCKSTONE_RUNS_DIR", "XDG_STATE_HOME", "HOME"];

/// Runs `command` until it exits.
///
/// # Panics
/// If the command cannot be started.
#[track_caller]
pub fn run(command: &mut Command) -> Ran {
    // Progress depends on time, and must not appear among the messages that a test compares.
    let command = command.env("BLOCKSTONE_PROGRESS", "none").stdin(Stdio::null());
    // The user's own directory must not learn of recordings that tests make elsewhere.
    if command.get_envs().all(|(name, _)| !SET_BY_TESTS.iter().any(|known| name == *known)) {
        command.env(SET_BY_TESTS[0], std::env::temp_dir().join("blockstone-tests"));
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("cannot start {command:?}: {error}"),
    };
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns the path of the binary `blockstone`, built from the current sources. Cargo passes it to
/// the tests of its own package; everywhere else it is built first.
///
/// # Panics
/// If it does not build.
pub fn blockstone_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("CARGO_BIN_EXE_blockstone") {
        Some(path) => PathBuf::from(path),
        None => build_as_tested("blockstone").unwrap_or_else(|e| panic!("{e}")),
    })
}

/// Builds the program `name` of the workspace with the same features as the tests, so that nothing
/// is compiled twice. Cargo enables features that only dev-dependencies select only if it also
/// builds a test, and the canary is the smallest.
pub fn build_as_tested(name: &str) -> Result<PathBuf, TestkitError> {
    build(&["--workspace", "--bin", name, "--test", "canary"])
}

/// Builds the one program that `selection` names (`--bin NAME`, `--example NAME`) and returns its
/// path. Compiler errors go to standard error, as cargo shows them.
///
/// Add `--workspace` to share artifacts with the tests: the selection of packages decides the
/// features of their dependencies.
pub fn build(selection: &[&str]) -> Result<PathBuf, TestkitError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--message-format", "json-render-diagnostics"])
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
        .args(selection)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let fail = |message: String| TestkitError::Tool {
        command: format!("cargo build {}", selection.join(" ")),
        message,
    };
    let output = command.output().map_err(|error| fail(error.to_string()))?;
    if !output.status.success() {
        return Err(fail("it does not build; the compiler says why above".to_owned()));
    }
    executable(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| fail("cargo names no executable".to_owned()))
}

/// Finds the executable among cargo's messages, one JSON document per line. Tests are excluded.
fn executable(messages: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let program = message["executable"].as_str().map(PathBuf::from);
        program.filter(|_| message["profile"]["test"] != true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_code_and_both_streams() {
        let ran = run(Command::new("sh").args(["-c", "echo '{\"a\":1}'; echo b >&2; exit 3"]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), "b\n"));
        assert_eq!(ran.json()["a"], 1);
        let killed = run(Command::new("sh").args(["-c", "kill -9 $$"]));
        assert_eq!(killed.code, None);
    }

    #[test]
    fn the_executable_is_found_among_the_messages() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
            {\"reason\":\"compiler-artifact\",\"executable\":\"/b\",\"profile\":{\"test\":false}}\n\
            {\"reason\":\"compiler-artifact\",\"executable\":\"/t\",\"profile\":{\"test\":true}}\n\
            {\"reason\":\"build-finished\"}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/b")));
        assert_eq!(executable(""), None);
    }
}
