//! Directories that a run creates for a database, and servers that run in them: as an unprivileged
//! user, and removed with the run, however it ends.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::units::Bytes;
use blockstone_sys::child::{self, Child, Program, Signal, User};
use blockstone_sys::scratch::{Log, ScratchDir};
use blockstone_sys::{input, path};

use super::error::SqlError;
use super::patience;

/// Maximum time until a server responds.
const START: Duration = Duration::from_mins(1);
const STOP: Duration = Duration::from_secs(10);
/// Limits on the time and output of a program that creates what a server needs.
const MAKING: Duration = Duration::from_mins(5);
const SAID_MOST: Bytes = Bytes::mib(1);
const LOG: &str = "server.log";
const URANDOM: &str = "/dev/urandom";
const LOG_LINES: usize = 3;

/// Creates and locks the directory `place` for `program`. A process that finds the lock free may
/// remove the directory, because the run that created it is gone.
pub fn directory(place: &Path, program: Option<&Path>) -> Result<ScratchDir, SqlError> {
    ScratchDir::create(place, program).map_err(|source| SqlError::File {
        what: "create the directory",
        path: place.to_owned(),
        source,
        hint: "name a directory that exists and is writable",
    })
}

#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    directory: ScratchDir,
    user: Option<User>,
    /// Password of the server's administrator.
    password: String,
}

impl Home {
    /// Makes `place` the home of the server `program`. If this process is the superuser, the server
    /// runs as the first of `users` that exists, because servers refuse to run as superuser.
    pub fn make(place: &Path, program: &Path, users: &[&str]) -> Result<Self, SqlError> {
        let parent = place.parent().unwrap_or(Path::new("/"));
        let parent = path::whole(parent).unwrap_or_else(|_| parent.to_owned());
        let path = parent.join(place.file_name().unwrap_or_default());
        let user = if child::is_superuser() { child::user(Path::new("/"), users) } else { None };
        if let Some(user) = &user {
            check_way(&parent, user)?;
        }
        let password = password().map_err(|source| SqlError::File {
            what: "read random numbers from",
            path: URANDOM.into(),
            source,
            hint: "check that the device is there",
        })?;
        let mut directory = directory(&path, Some(program))?;
        if let Some(user) = &user {
            directory.give_to(user).map_err(|source| {
                let _ = directory.remove();
                let hint = "the file system must support owners";
                SqlError::File { what: "give away", path: path.clone(), source, hint }
            })?;
        }
        Ok(Self { path, directory, user, password })
    }

    pub fn password(&self) -> &str {
        &self.password
    }

    /// Creates a file in it that only the server may read.
    pub fn secret(&self, name: &str, text: &str) -> Result<(), SqlError> {
        let made = self.directory.secret(name, text, self.user.as_ref());
        made.map_err(|source| SqlError::File {
            what: "create",
            path: self.path.join(name),
            source,
            hint: "check the free space of the file system",
        })
    }

    /// Returns a path to it for this process that is short enough for a socket address.
    pub fn short(&self) -> String {
        self.directory.short()
    }

    /// Removes it with everything that a server left in it. Whatever remains is removed later with
    /// the files of the run.
    pub fn remove(&self) {
        let _ = self.directory.clear_away();
    }

    /// Prepares a program that works in this directory as the user of the server.
    fn program(&self, path: &Path) -> io::Result<Program> {
        let mut program = Program::at(path)?;
        program.user(self.user.as_ref()).end(Signal::KILL);
        // MariaDB removes what it takes for its own leftovers there, including files of another
        // live server.
        program.env("TMPDIR", &self.path).dir(&self.directory)?;
        Ok(program)
    }

    /// Runs the program at `path` until it exits.
    pub fn run(&self, path: &Path, arguments: &[String], what: &str) -> Result<(), SqlError> {
        let run = || {
            let mut program = self.program(path)?;
            program.args(arguments);
            program.output(MAKING, SAID_MOST, &mut || true)
        };
        let output = run().map_err(|error| not_started(path, &error))?;
        if output.status().success() {
            return Ok(());
        }
        let said = [output.stderr, output.stdout].concat();
        Err(SqlError::Program {
            what: what.to_owned(),
            why: telling_lines(&String::from_utf8_lossy(&said)),
            hint: format!("try {} by hand", path.display()),
        })
    }

    /// Starts the server at `path`, which writes its log to this directory.
    pub fn start(
        &self,
        path: &Path,
        arguments: &[String],
        what: &'static str,
    ) -> Result<Server, SqlError> {
        let failed = |source| SqlError::File {
            what: "create",
            path: self.path.join(LOG),
            source,
            hint: "check the free space of the file system",
        };
        let log = self.directory.log(LOG).map_err(failed)?;
        let (out, err) = (log.writer().map_err(failed)?, log.writer().map_err(failed)?);
        let start = || {
            let mut program = self.program(path)?;
            program.args(arguments).stdout(out).stderr(err);
            program.spawn()
        };
        let child = start().map_err(|error| not_started(path, &error))?;
        Ok(Server { pid: child.id(), child: Some(child), log, what })
    }
}

/// A server started by this run. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Server {
    pid: u32,
    /// `None` once its exit status was collected.
    child: Option<Child>,
    log: Log,
    what: &'static str,
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_ref().is_some_and(|child| matches!(child.has_ended(), Ok(false)))
    }

    /// Returns its exit status if it has exited.
    fn ended(&mut self) -> Option<ExitStatus> {
        let child = self.child.take_if(|child| matches!(child.has_ended(), Ok(true)))?;
        child.wait().ok().map(|ended| ended.status)
    }

    /// Waits until `ready` returns a value. Fails with the last lines of the log if the server
    /// exits or takes too long, and if the user asks the program to stop.
    pub fn wait_for<T>(
        &mut self,
        mut ready: impl FnMut() -> Result<Option<T>, SqlError>,
    ) -> Result<T, SqlError> {
        let until = Instant::now() + START;
        loop {
            if let Some(found) = ready()? {
                return Ok(found);
            }
            if patience::is_ending() {
                return Err(SqlError::Interrupted);
            }
            if !self.is_running() || Instant::now() > until {
                let ended = self.ended();
                let said = telling_lines(&self.log.text());
                let state = match ended {
                    Some(status) => format!("it exited ({status})"),
                    None => "it does not answer".to_owned(),
                };
                return Err(SqlError::Program {
                    what: format!("start {}", self.what),
                    why: format!("{state}; its log says: {said}"),
                    hint: "a wrong setting, too little memory or a full disk are the usual causes"
                        .to_owned(),
                });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Adds the log's reason for the server's exit, if there is one, to `error` of a statement.
    pub fn explained(&self, error: SqlError) -> SqlError {
        const FATAL: [&str; 3] = ["No space left on device", "PANIC:", "[ERROR]"];
        const FULL: &str = "free some space, or ask for less with --scale or --schemas";
        let SqlError::Statement { what, why, hint } = error else { return error };
        let log = self.log.text();
        let telling = FATAL.iter().find_map(|word| {
            log.lines().rev().find(|line| line.contains(word)).map(|line| (*word, line.trim()))
        });
        match telling {
            None => SqlError::Statement { what, why, hint },
            Some((word, line)) => SqlError::Statement {
                what,
                why: format!("{why}; the log of the server says: {line}"),
                hint: if word == FATAL[0] { FULL.to_owned() } else { hint },
            },
        }
    }

    /// Stops it with `signal`, and by force if that takes too long.
    pub fn stop(&mut self, signal: Signal) {
        let Some(child) = self.child.take() else { return };
        let until = Instant::now() + STOP;
        let _ = child.signal(signal);
        while matches!(child.has_ended(), Ok(false)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        // A server that is still running is killed when it is dropped.
    }
}

/// Finds the program `name` in `given`, or in the first directory of `usual` that has it. In a
/// pattern of `usual`, `*` is a version, and the highest is used.
pub fn find(name: &str, given: Option<&Path>, usual: &[&str]) -> Result<PathBuf, SqlError> {
    let places: Vec<PathBuf> = match given {
        // The program is started in another directory.
        Some(dir) => vec![std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())],
        None => usual.iter().flat_map(|pattern| versions(pattern)).collect(),
    };
    let found = places.iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| SqlError::Program {
        what: format!("find {name}"),
        why: match given {
            Some(dir) => format!("it is not in {}", dir.display()),
            None => "it is in none of the usual places".to_owned(),
        },
        hint: "install the server, or name the directory of its programs with --pg-bin or \
               --mariadb-bin"
            .to_owned(),
    })
}

/// Returns the directories that match `pattern`, highest version first.
fn versions(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![pattern.into()] };
    let entries = path::names(Path::new(before)).unwrap_or_default();
    let mut names: Vec<(u32, String)> = entries
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .map(|name| (name.parse().unwrap_or(0), name))
        .collect();
    names.sort_by(|a, b| b.cmp(a));
    names.into_iter().map(|(_, name)| PathBuf::from(format!("{before}{name}{after}"))).collect()
}

/// Checks that `user` may pass through `dir` and all directories above it.
fn check_way(dir: &Path, user: &User) -> Result<(), SqlError> {
    for step in dir.ancestors() {
        let Ok(found) = path::look(step) else { continue };
        let bit = match found {
            ref found if found.uid() == user.uid => 0o100,
            ref found if found.gid() == user.gid => 0o010,
            _ => 0o001,
        };
        if found.mode() & bit == 0 {
            return Err(SqlError::Unsuitable {
                server: format!("a server in {}", dir.display()),
                why: format!(
                    "it does not run as the superuser, and {} may not enter {}",
                    user.name,
                    step.display()
                ),
                hint: format!("name another directory, or chmod o+x {}", step.display()),
            });
        }
    }
    Ok(())
}

/// Returns 128 random bits in hexadecimal digits.
fn password() -> io::Result<String> {
    let mut bits = [0; 16];
    input::open(Path::new(URANDOM))?.read_exact(&mut bits)?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bits)))
}

fn not_started(program: &Path, error: &io::Error) -> SqlError {
    SqlError::Program {
        what: format!("start {}", program.display()),
        why: error.to_string(),
        hint: "check that it is executable, also for the user postgres, mysql or nobody".to_owned(),
    }
}

/// Returns the lines of `text` that mention an error, or the last lines if none does.
fn telling_lines(text: &str) -> String {
    const WORDS: [&str; 4] = ["ERROR", "FATAL", "PANIC", "error:"];
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let errors = lines.iter().filter(|line| WORDS.iter().any(|word| line.contains(word)));
    let telling: Vec<&str> = errors.take(LOG_LINES).copied().collect();
    if telling.is_empty() {
        return lines[lines.len().saturating_sub(LOG_LINES)..].join(" | ");
    }
    telling.join(" | ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn the_highest_version_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        for version in ["9", "13", "15"] {
            let bin = dir.path().join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join("initdb"), "").unwrap();
        }
        let pattern = format!("{}/*/bin", dir.path().display());
        let found = find("initdb", None, &["/nowhere/*/bin", &pattern]).unwrap();
        assert_eq!(found, dir.path().join("15/bin/initdb"));
        let error = find("initdb", Some(dir.path()), &[]).unwrap_err().told();
        assert!(error.contains("it is not in") && error.contains("\nhint: "), "{error}");
    }

    #[test]
    fn what_speaks_of_an_error_is_told_before_what_was_said_last() {
        let output = "Installing ...\nERROR: 6  Error on delete\n\nTry the manual\nor the list\n";
        assert_eq!(telling_lines(output), "ERROR: 6  Error on delete");
        assert_eq!(telling_lines("a\nb\nc\nd\n"), "b | c | d");
    }

    #[test]
    fn servers_do_not_meet_in_a_directory_for_all() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::make(&dir.path().join("home"), Path::new("/bin/sh"), &[]).unwrap();
        let arguments = ["-c", "echo \"ERROR $TMPDIR\"; exit 1"].map(str::to_owned);
        let error = home.run(Path::new("/bin/sh"), &arguments, "look").unwrap_err().to_string();
        assert!(error.contains(&format!("ERROR {}", home.path.display())), "{error}");
    }

    #[test]
    fn a_server_that_ends_says_why_and_one_that_runs_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::make(&dir.path().join("home"), Path::new("/bin/sh"), &[]).unwrap();
        let arguments = ["-c", "echo first; echo no shared memory; exit 1"].map(str::to_owned);
        let mut server = home.start(Path::new("/bin/sh"), &arguments, "the server").unwrap();
        let error = server.wait_for(|| Ok(None::<()>)).unwrap_err().to_string();
        assert!(error.contains("first | no shared memory"), "{error}");
        let thirty = ["30".to_owned()];
        let mut server = home.start(Path::new("/bin/sleep"), &thirty, "sleep").unwrap();
        server.wait_for(|| Ok(Some(()))).unwrap();
        let pid = server.pid();
        server.stop(Signal::INT);
        assert!(blockstone_sys::account::process(Path::new("/"), pid).is_none());
    }
}
