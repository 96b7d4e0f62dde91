//! A private PostgreSQL server for a test, and client sessions on it.

use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::TestkitError;
use crate::file::ScratchDir;
use crate::postgres::postgres_programs;
use crate::tool::tool;

/// The version of the distribution, whose `psql` serves for all.
const DISTRIBUTED: u32 = 15;
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// A port that was free may have been given to another program before the server asks for it.
const PORTS_TRIED: u32 = 5;

/// A server on a loopback port of its own; dropping it stops it and removes its files.
#[derive(Debug)]
pub struct PostgresServer {
    port: u16,
    server: Child,
    programs: PathBuf,
    settings: Vec<String>,
    place: Place,
    dir: ScratchDir,
}

/// Where the processes of a server are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Host,
    /// In a PID namespace of their own, as in a container: their pids mean nothing on the host.
    Apart,
}

impl PostgresServer {
    /// Makes one of a version and waits until it answers; `settings` have the form `name=value`.
    pub fn start(major: u32, settings: &[&str]) -> Result<Self, TestkitError> {
        Self::make(major, settings, Place::Host)
    }

    /// As [`Self::start`], of whose processes the host sees nothing that it could match: all that
    /// is left of it is its SQL, as of a server far away.
    pub fn start_apart(major: u32, settings: &[&str]) -> Result<Self, TestkitError> {
        Self::make(major, settings, Place::Apart)
    }

    fn make(major: u32, settings: &[&str], place: Place) -> Result<Self, TestkitError> {
        let programs = if major == DISTRIBUTED { distributed() } else { postgres_programs(major) };
        let dir = ScratchDir::on_disk()?;
        tool("chown", &[OsStr::new("postgres:"), dir.path().as_os_str()])?;
        let mut make = program(&programs.join("initdb"), dir.path());
        make.args(["--no-sync", "--auth=trust", "--username=admin", "--locale=C"]);
        finish(make.arg("--pgdata").arg(dir.path().join("data")))?;
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        let port = free_port(dir.path())?;
        let server = serve(&programs, dir.path(), port, &settings, place)?;
        let mut started = Self { port, server, programs, settings, place, dir };
        for _ in 1..PORTS_TRIED {
            if started.answers()? {
                return Ok(started);
            }
            started.kill();
            started.port = free_port(started.dir())?;
            started.server = started.serve()?;
        }
        started.must_answer()?;
        Ok(started)
    }

    /// The address of its superuser.
    pub fn address(&self) -> String {
        format!("postgres://admin@127.0.0.1:{}/postgres", self.port)
    }

    /// The same by its socket, without the network.
    pub fn socket_address(&self) -> String {
        let dir = self.dir.path().to_string_lossy().replace('/', "%2F");
        format!("postgres://admin@{dir}:{}/postgres", self.port)
    }

    /// A place for files that are removed with it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A session that has these statements done, one after the other.
    pub fn session(&self, statements: &[&str]) -> Result<Child, TestkitError> {
        let mut psql = self.psql(statements);
        psql.spawn().map_err(TestkitError::file("start", &distributed().join("psql")))
    }

    /// Has these statements done in a session of their own.
    pub fn run(&self, statements: &[&str]) -> Result<(), TestkitError> {
        finish(&mut self.psql(statements))
    }

    /// What one statement answers, without column names: a row a line.
    pub fn ask(&self, statement: &str) -> Result<String, TestkitError> {
        let mut psql = self.psql(&[statement]);
        psql.args(["--quiet", "--no-align", "--tuples-only"]).stdout(Stdio::piped());
        let output = psql.stderr(Stdio::piped()).output();
        let output = output.map_err(TestkitError::file("start", &distributed().join("psql")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(TestkitError::Tool { command: format!("{psql:?}"), message })
    }

    /// The file that holds a table's rows, as they are since the last checkpoint.
    pub fn file_of(&self, table: &str) -> Result<PathBuf, TestkitError> {
        let path = self.ask(&format!("SELECT pg_relation_filepath('{table}')"))?;
        Ok(self.dir.path().join("data").join(path))
    }

    /// Kills it, as the kernel does when memory runs out.
    pub fn kill(&mut self) {
        // Who is gone already need not be killed.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    pub fn start_again(&mut self) -> Result<(), TestkitError> {
        let lock = self.dir.path().join("data/postmaster.pid");
        let _ = fs::remove_file(lock);
        self.server = self.serve()?;
        self.must_answer()
    }

    fn serve(&self) -> Result<Child, TestkitError> {
        serve(&self.programs, self.dir(), self.port, &self.settings, self.place)
    }

    fn must_answer(&mut self) -> Result<(), TestkitError> {
        if self.answers()? {
            return Ok(());
        }
        let message = format!("it ended at once, or another server has port {}", self.port);
        Err(TestkitError::Tool { command: "postgres".to_owned(), message })
    }

    /// Waits until it answers. Not if it has ended, or if another server answers at its port.
    fn answers(&mut self) -> Result<bool, TestkitError> {
        let ours = fs::canonicalize(self.dir().join("data")).ok();
        let until = Instant::now() + ANSWERS_WITHIN;
        loop {
            let answer = self.ask("SHOW data_directory");
            if matches!(self.server.try_wait(), Ok(Some(_))) {
                return Ok(false);
            }
            match answer {
                Ok(directory) => return Ok(fs::canonicalize(directory).ok() == ours),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => sleep(Duration::from_millis(50)),
            }
        }
    }

    /// A client of it that ends at the first error.
    pub fn client(&self) -> Command {
        let mut psql = program(&distributed().join("psql"), self.dir.path());
        psql.args(["--no-psqlrc", "--set=ON_ERROR_STOP=1"]).arg(self.address());
        psql
    }

    fn psql(&self, statements: &[&str]) -> Command {
        let mut psql = self.client();
        for statement in statements {
            psql.args(["--command", statement]);
        }
        psql
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port of the loopback that nothing listens on.
pub(crate) fn free_port(beside: &Path) -> Result<u16, TestkitError> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let port = listener.and_then(|listener| listener.local_addr()).map(|at| at.port());
    port.map_err(TestkitError::file("find a port beside", beside))
}

fn distributed() -> PathBuf {
    PathBuf::from("/usr/lib/postgresql/15/bin")
}

/// A program of PostgreSQL, which none of them runs as root; it ends with the test.
fn program(path: &Path, dir: &Path) -> Command {
    program_at(Place::Host, path, dir)
}

fn program_at(place: Place, path: &Path, dir: &Path) -> Command {
    let mut command = match place {
        Place::Host => Command::new("setpriv"),
        Place::Apart => {
            let mut command = Command::new("unshare");
            command.args(["--pid", "--fork", "--kill-child", "setpriv"]);
            command
        }
    };
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=KILL"]);
    command.arg("--").arg(path).current_dir(dir).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn serve(
    programs: &Path,
    dir: &Path,
    port: u16,
    settings: &[String],
    place: Place,
) -> Result<Child, TestkitError> {
    let path = programs.join("postgres");
    let mut command = program_at(place, &path, dir);
    command.arg("-D").arg(dir.join("data")).arg("-p").arg(port.to_string());
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=.."]);
    for setting in settings {
        command.args(["-c", setting]);
    }
    command.spawn().map_err(TestkitError::file("start", &path))
}

/// Runs to the end what must succeed.
fn finish(command: &mut Command) -> Result<(), TestkitError> {
    let output = command.stderr(Stdio::piped()).output();
    let output = output.map_err(TestkitError::file("start", Path::new("setpriv")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TestkitError::Tool { command: format!("{command:?}"), message })
}
