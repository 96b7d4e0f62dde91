//! DuckDB as the reader of files over HTTP: its command line, or a Python that has its module. Both
//! need the extension httpfs, which is loaded and never fetched.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_sys::child::{self, Signal};
use blockstone_sys::process;

/// The usual programs, tried in this order.
const USUAL: [&str; 2] = ["duckdb", "python3"];
const SCRIPT: &str = include_str!("duckdb/ask.py");
const LOOK: Duration = Duration::from_millis(10);
const SAID_MAX: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum DuckdbError {
    #[error(
        "find DuckDB with httpfs: {why}\n\
         hint: pip install duckdb duckdb-extension-httpfs in a virtual environment, and name its \
         python with --duckdb"
    )]
    Missing { why: String },
    #[error(
        "start {}: {source}\nhint: --duckdb names DuckDB, or a Python with its module",
        program.display()
    )]
    Start { program: PathBuf, source: std::io::Error },
    #[error("query with DuckDB: {said}\nhint: try {} by hand", program.display())]
    Failed { program: PathBuf, said: String },
    #[error("query with DuckDB: interrupted\nhint: nothing is left of it")]
    Interrupted,
}

/// A program that answers.
#[derive(Clone, Debug)]
pub struct Duckdb {
    program: PathBuf,
    version: String,
}

/// What a statement answered, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Values of the first row.
    pub values: Vec<String>,
    /// Of the whole process, with its start.
    pub seconds: f64,
    pub cpu_ns: u64,
}

impl Duckdb {
    /// The program that was named, or the first of the usual ones that has httpfs.
    pub fn find(named: Option<&Path>) -> Result<Self, DuckdbError> {
        let tried: Vec<PathBuf> = match named {
            Some(program) => vec![program.to_owned()],
            None => USUAL.iter().map(PathBuf::from).collect(),
        };
        let mut whys = Vec::new();
        for program in tried {
            let mut found = Self { program, version: String::new() };
            match found.ask("SELECT version()", &mut || true) {
                Ok(answer) => {
                    found.version = answer.values.first().cloned().unwrap_or_default();
                    return Ok(found);
                }
                Err(error) => {
                    let said = error.to_string();
                    let first = said.lines().next().unwrap_or_default();
                    whys.push(first.to_owned());
                }
            }
        }
        Err(DuckdbError::Missing { why: whys.join("; ") })
    }

    /// As it says itself: `v1.5.5`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn is_python(&self) -> bool {
        let name = self.program.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("python") || name.starts_with("pypy"))
    }

    /// Has a statement done in a process of its own, which ends with this one.
    pub fn ask(&self, text: &str, go_on: &mut dyn FnMut() -> bool) -> Result<Answer, DuckdbError> {
        let mut command = Command::new(&self.program);
        if self.is_python() {
            command.args(["-c", SCRIPT, text]);
        } else {
            let statements =
                format!("SET autoinstall_known_extensions = false; LOAD httpfs; {text}");
            command.args(["-csv", "-noheader", "-c", &statements]);
        }
        child::confine(&mut command, None, Signal::KILL);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let began = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|source| DuckdbError::Start { program: self.program.clone(), source })?;
        while !process::has_ended(&child).unwrap_or(true) {
            if !go_on() {
                let _ = child.kill();
                let _ = child.wait();
                return Err(DuckdbError::Interrupted);
            }
            thread::sleep(LOOK);
        }
        let seconds = began.elapsed().as_secs_f64();
        let (out, said) = (text_of(child.stdout.take()), text_of(child.stderr.take()));
        self.answer(child, &out, &said, seconds)
    }

    fn answer(
        &self,
        child: Child,
        out: &str,
        said: &str,
        seconds: f64,
    ) -> Result<Answer, DuckdbError> {
        let failed = |said: String| DuckdbError::Failed { program: self.program.clone(), said };
        let ended = process::wait(child).map_err(|error| failed(error.to_string()))?;
        let line = out.lines().find(|line| !line.trim().is_empty());
        match line {
            Some(line) if ended.status.success() => Ok(Answer {
                values: line.split(',').map(|value| value.trim_matches('"').to_owned()).collect(),
                seconds,
                cpu_ns: ended.cpu.cpu_ns(),
            }),
            _ => {
                let last = said.lines().rev().find(|line| !line.trim().is_empty());
                let ended = format!("it ended ({})", ended.status);
                Err(failed(last.map_or(ended, |line| line.trim().to_owned())))
            }
        }
    }
}

/// What a program wrote, as much of it as is looked at.
fn text_of(pipe: Option<impl std::io::Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let _ = pipe.take(SAID_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_or_answers_nothing_is_named() {
        let missing = Duckdb::find(Some(Path::new("/nowhere/duckdb"))).unwrap_err().to_string();
        assert!(missing.contains("/nowhere/duckdb") && missing.contains("\nhint: "), "{missing}");
        let silent = Duckdb::find(Some(Path::new("/bin/true"))).unwrap_err().to_string();
        assert!(silent.contains("it ended"), "{silent}");
    }
}
