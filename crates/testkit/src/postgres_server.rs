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

/// The version of the distribution, whose `psql` is used with all servers.
const DISTRIBUTED: u32 = 15;
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// Another program may take a free port before the server binds it.
const PORTS_TRIED: u32 = 5;

/// A server on its own loopback port; dropping it stops it and removes its files.
#[derive(Debug)]
pub struct PostgresServer {
    port: u16,
    server: Child,
    programs: PathBuf,
    settings: Vec<String>,
    place: Namespace,
    dir: ScratchDir,
}

/// Location of the processes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Namespace {
    Host,
    /// In their own PID namespace, as in a container: their pids mean nothing on the host.
    Apart,
}

impl PostgresServer {
    /// Creates a server of a version and waits until it answers; `settings` have the form
    /// `name=value`.
    pub fn start(major: u32, settings: &[&str]) -> Result<Self, TestkitError> {
        Self::make(major, settings, Namespace::Host)
    }

    /// Like [`Self::start`], but the host cannot match the server's processes: the server is
    /// visible only through SQL, like a remote one.
    pub fn start_apart(major: u32, settings: &[&str]) -> Result<Self, TestkitError> {
        Self::make(major, settings, Namespace::Apart)
    }

    fn make(major: u32, settings: &[&str], place: Namespace) -> Result<Self, TestkitError> {
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

    /// Returns the address for the superuser.
    pub fn address(&self) -> String {
        format!("postgres://admin@127.0.0.1:{}/postgres", self.port)
    }

    /// Returns the same address by the server's socket, without the network.
    pub fn socket_address(&self) -> String {
        let dir = self.dir.path().to_string_lossy().replace('/', "%2F");
        format!("postgres://admin@{dir}:{}/postgres", self.port)
    }

    /// Returns the directory of the server, for files to remove together with it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a session that executes these statements in order.
    pub fn session(&self, statements: &[&str]) -> Result<Child, TestkitError> {
        let mut psql = self.psql(statements);
        psql.spawn().map_err(TestkitError::file("start", &distributed().join("psql")))
    }

    /// Executes these statements in their own session.
    pub fn run(&self, statements: &[&str]) -> Result<(), TestkitError> {
        finish(&mut self.psql(statements))
    }

    /// Returns the result of one statement, without column names: a line per row.
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

    /// Returns the file that holds a table's rows as of the last checkpoint.
    pub fn file_of(&self, table: &str) -> Result<PathBuf, TestkitError> {
        let path = self.ask(&format!("SELECT pg_relation_filepath('{table}')"))?;
        Ok(self.dir.path().join("data").join(path))
    }

    /// Kills the server, as the kernel does when memory runs out.
    pub fn kill(&mut self) {
        // Fails only if the server has already exited.
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

    /// Waits until the server answers. Returns false if it exits or if another server answers at
    /// its port.
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

    /// Returns a client that exits at the first error.
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

/// Returns a loopback port on which nothing listens.
pub(crate) fn free_port(beside: &Path) -> Result<u16, TestkitError> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let port = listener.and_then(|listener| listener.local_addr()).map(|at| at.port());
    port.map_err(TestkitError::file("find a port beside", beside))
}

fn distributed() -> PathBuf {
    PathBuf::from("/usr/lib/postgresql/15/bin")
}

/// Returns a command for a PostgreSQL program. It does not run as root, which the programs refuse,
/// and it ends with the test.
fn program(path: &Path, dir: &Path) -> Command {
    program_at(Namespace::Host, path, dir)
}

fn program_at(place: Namespace, path: &Path, dir: &Path) -> Command {
    let mut command = match place {
        Namespace::Host => Command::new("setpriv"),
        Namespace::Apart => {
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
    place: Namespace,
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

/// Runs a command that must succeed.
fn finish(command: &mut Command) -> Result<(), TestkitError> {
    let output = command.stderr(Stdio::piped()).output();
    let output = output.map_err(TestkitError::file("start", Path::new("setpriv")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TestkitError::Tool { command: format!("{command:?}"), message })
}
