//! One start of the program, and whether it ended as it should.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_sys::{process, usage};
use rustix::process::{Pid, Signal, kill_process};

/// Memory that the program may take for a file that is not larger than this itself.
pub const MEMORY_BYTES_MAX: u64 = 512 << 20;
/// Time limit for files of at most some 100 KiB, on a machine where others use the processors.
const LIMIT_S: u64 = 60;
/// Time after which a program that may measure for long is interrupted.
const MEASURING_S: u64 = 2;
/// Time limit for its end after that, on a machine where others use the processors.
const ENDING_S: u64 = 60;
/// Maximum number of lines of an error: the error, a hint, and some notes before them.
const ERROR_LINES_MAX: usize = 12;
const ERROR_BYTES_MAX: usize = 8 << 10;
const INTERRUPTED: i32 = 130;
/// Directory of recordings in the working directory of the program.
pub const RUNS: &str = "blockstone-runs";

/// Result of one start of the program.
#[derive(Clone, Debug)]
pub struct Ended {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub took: Duration,
    /// Its peak resident set, or that of the fuzzer if that is larger.
    pub memory_peak_bytes: u64,
    /// Whether that is more than the fuzzer itself ever had.
    pub memory_is_its_own: bool,
    how: String,
    /// Whether it did not end on its own.
    was_killed: bool,
    stdout: Vec<u8>,
    pub stderr: String,
}

/// Reason why the result is a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Source location.
    Panic(String),
    Abort(String),
    Hang,
    Odd(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(place) => write!(f, "panic at {place}"),
            Self::Abort(how) => write!(f, "abort: {how}"),
            Self::Hang => f.write_str("did not end in time, or by an interrupt"),
            Self::Odd(what) => f.write_str(what),
        }
    }
}

/// Parameters of a start of the program.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    pub binary: &'a Path,
    pub dir: &'a Path,
    /// Directory that receives its output.
    pub beside: &'a Path,
    /// Whether it may run for ever, and is interrupted after a while.
    pub measures: bool,
}

impl Start<'_> {
    /// Runs the program; it inherits nothing from the environment.
    pub fn run(&self, arguments: &[&str]) -> io::Result<Ended> {
        let (out, err) = (self.beside.join("stdout"), self.beside.join("stderr"));
        let mut command = Command::new("timeout");
        if self.measures {
            // In the foreground: otherwise it signals the child and its group, and a second
            // interrupt ends the program immediately.
            let limit = format!("--kill-after={LIMIT_S}");
            command.args(["--foreground", "--preserve-status", "--signal=INT"]);
            command.args([&limit, &MEASURING_S.to_string()]);
        } else {
            command.args(["--signal=KILL", &LIMIT_S.to_string()]);
        }
        let started = Instant::now();
        let child = self.prepared(command.arg(self.binary).args(arguments))?.spawn()?;
        let ended = process::wait(child)?;
        let took = started.elapsed();
        // `timeout` passes on a signal that ended its child, as a code or by ending itself.
        let is_own = |code: &i32| *code < 128 || *code == INTERRUPTED && self.measures;
        Ok(Ended {
            code: ended.status.code().filter(is_own),
            took,
            memory_peak_bytes: ended.memory_peak_bytes,
            memory_is_its_own: ended.memory_peak_bytes > usage::peak_memory_bytes(),
            how: ended.status.to_string(),
            was_killed: took >= Duration::from_secs(LIMIT_S),
            stdout: fs::read(&out)?,
            stderr: String::from_utf8_lossy(&fs::read(&err)?).into_owned(),
        })
    }

    /// Like [`Self::run`], but without another process in between; `begun` is called with the
    /// process ID as soon as the program runs. Memory use is not measured.
    pub fn attacked(&self, arguments: &[OsString], begun: impl FnOnce(u32)) -> io::Result<Ended> {
        let started = Instant::now();
        let mut child = self.prepared(Command::new(self.binary).args(arguments))?.spawn()?;
        begun(child.id());
        let (status, was_killed) = self.end_of(&mut child, started)?;
        Ok(Ended {
            code: status.code(),
            took: started.elapsed(),
            memory_peak_bytes: 0,
            memory_is_its_own: false,
            how: status.to_string(),
            was_killed,
            stdout: fs::read(self.beside.join("stdout"))?,
            stderr: String::from_utf8_lossy(&fs::read(self.beside.join("stderr"))?).into_owned(),
        })
    }

    fn prepared<'c>(&self, command: &'c mut Command) -> io::Result<&'c mut Command> {
        Ok(command
            .current_dir(self.dir)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.dir)
            .env("BLOCKSTONE_RUNS_DIR", RUNS)
            .env("BLOCKSTONE_PROGRESS", "none")
            .stdin(Stdio::null())
            .stdout(File::create(self.beside.join("stdout"))?)
            .stderr(File::create(self.beside.join("stderr"))?))
    }

    /// Waits for the child, interrupts it when it has measured for long enough, and finally kills
    /// it. Returns how it ended, and whether it was killed.
    fn end_of(&self, child: &mut Child, started: Instant) -> io::Result<(ExitStatus, bool)> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let mut interrupt_after = self.measures.then_some(Duration::from_secs(MEASURING_S));
        let mut was_killed = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok((status, was_killed));
            }
            let took = started.elapsed();
            if interrupt_after.is_some_and(|limit| took > limit) {
                interrupt_after = None;
                pid.map_or(Ok(()), |pid| kill_process(pid, Signal::INT))?;
            }
            if took > Duration::from_secs(MEASURING_S + ENDING_S) {
                was_killed = true;
                child.kill()?;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Ended {
    /// Returns the first thing about the result that must not be.
    pub fn fault(&self) -> Option<Fault> {
        if let Some((_, at)) = self.stderr.split_once("panicked at ") {
            let place = at.lines().next().unwrap_or_default().trim_end_matches(':');
            return Some(Fault::Panic(place.to_owned()));
        }
        match self.code {
            None if self.was_killed => return Some(Fault::Hang),
            None => return Some(Fault::Abort(self.how.clone())),
            Some(0 | 3 | INTERRUPTED) => {}
            Some(2 | 4) => {
                if let Some(what) = self.unclear() {
                    return Some(Fault::Odd(what));
                }
            }
            Some(other) => return Some(Fault::Odd(format!("exit code {other}"))),
        }
        let streams = [("stdout", &self.stdout[..]), ("stderr", self.stderr.as_bytes())];
        let raw = streams.iter().find(|(name, bytes)| is_raw(bytes) && !self.is_table(name));
        raw.map(|(name, _)| Fault::Odd(format!("{name} holds what a terminal obeys")))
    }

    /// Returns whether the stream is a CSV table, which another program gets unchanged: its lines
    /// end in CR LF.
    fn is_table(&self, stream: &str) -> bool {
        stream == "stdout" && self.stdout.ends_with(b"\r\n")
    }

    /// Returns what is wrong with the error that the program printed.
    fn unclear(&self) -> Option<String> {
        let is = |word: &str| self.stderr.lines().filter(|line| line.starts_with(word)).count();
        let (errors, hints) = (is("error: "), is("hint: "));
        if errors != 1 || hints == 0 {
            return Some(format!("{errors} errors and {hints} hints"));
        }
        let lines = self.stderr.lines().count();
        if lines > ERROR_LINES_MAX || self.stderr.len() > ERROR_BYTES_MAX {
            return Some(format!("{lines} lines of error"));
        }
        None
    }
}

/// Returns whether a terminal would obey some of the bytes, or show them in another direction.
fn is_raw(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.chars().any(|c| {
        let is_control = c.is_control() && !matches!(c, '\n' | '\t');
        is_control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: Option<i32>, stdout: &str, stderr: &str) -> Ended {
        Ended {
            code,
            took: Duration::from_millis(1),
            memory_peak_bytes: 1 << 20,
            memory_is_its_own: true,
            how: "signal: 6".to_owned(),
            was_killed: false,
            stdout: stdout.into(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn every_bad_end_is_seen() {
        let error = "error: read it: no\nhint: another\n";
        assert_eq!(ended(Some(2), "", error).fault(), None);
        assert_eq!(ended(Some(0), "fine\n", "").fault(), None);
        assert_eq!(ended(Some(0), "a,b\r\n\u{1b},2\r\n", "").fault(), None);
        let panic = "thread 'main' panicked at crates/x.rs:7:5:\nno\n";
        let place = Fault::Panic("crates/x.rs:7:5".to_owned());
        assert_eq!(ended(Some(101), "", panic).fault(), Some(place.clone()));
        // A panic of a thread whose result was never looked at.
        assert_eq!(ended(Some(0), "", panic).fault(), Some(place));
        let abort = Fault::Abort("signal: 6".to_owned());
        assert_eq!(ended(None, "", "").fault(), Some(abort));
        for odd in [
            ended(Some(2), "", ""),
            ended(Some(2), "", "error: no\n"),
            ended(Some(2), "", &format!("{error}{error}")),
            ended(Some(1), "", ""),
            ended(Some(0), "\u{1b}[2J", ""),
            ended(Some(0), "a\r", ""),
            ended(Some(0), "", "\u{202e}"),
        ] {
            assert!(matches!(odd.fault(), Some(Fault::Odd(_))), "{odd:?}");
        }
    }
}
