//! A private MariaDB server for a test, and client sessions on it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::TestkitError;
use crate::file::ScratchDir;
use crate::postgres_server::free_port;

const ANSWERS_WITHIN: Duration = Duration::from_mins(1);
/// Another program may take a free port before the server binds it.
const PORTS_TRIED: u32 = 5;

/// A server on its own loopback port and socket; dropping it stops it and removes its files.
#[derive(Debug)]
pub struct MariadbServer {
    port: u16,
    server: Child,
    dir: ScratchDir,
}

impl MariadbServer {
    /// Creates a server in a directory on disk and waits until it answers; `settings` have the form
    /// `name=value`.
    pub fn start(settings: &[&str]) -> Result<Self, TestkitError> {
        let dir = ScratchDir::on_disk()?;
        let mut make = Command::new("mariadb-install-db");
        make.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
        make.args(["--skip-name-resolve", "--user=root"]);
        make.arg(format!("--datadir={}", dir.path().join("data").display()));
        // A starting server removes all its temporary tables from its temporary directory; in /tmp
        // that would include those of a concurrent test.
        make.env("TMPDIR", dir.path());
        finish(&mut make)?;
        let mut last = String::new();
        for _ in 0..PORTS_TRIED {
            let port = free_port(dir.path())?;
            let mut server = serve(dir.path(), port, settings)?;
            match answers(&mut server, dir.path()) {
                Ok(()) => return Ok(Self { port, server, dir }),
                Err(error) => last = error,
            }
            end(&mut server);
        }
        Err(TestkitError::Tool { command: "mariadbd".to_owned(), message: last })
    }

    /// Returns the address of a database for the superuser, who has no password.
    pub fn address(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns the same address by the server's socket.
    pub fn socket_address(&self, database: &str) -> String {
        format!("mysql://root@localhost/{database}?socket={}", socket(self.dir.path()))
    }

    /// Returns a client of a database that exits at the first error.
    pub fn client(&self, database: &str) -> Command {
        client(self.dir.path(), database)
    }

    /// Returns the result of statements without column names: a line per row, fields separated by
    /// tabs.
    pub fn ask(&self, database: &str, statements: &str) -> Result<String, TestkitError> {
        answer(client(self.dir.path(), database).args(["--execute", statements]))
    }
}

impl Drop for MariadbServer {
    fn drop(&mut self) {
        end(&mut self.server);
    }
}

fn end(server: &mut Child) {
    // Fails only if the server has already exited.
    let _ = server.kill();
    let _ = server.wait();
}

fn socket(dir: &Path) -> String {
    dir.join("socket").display().to_string()
}

fn client(dir: &Path, database: &str) -> Command {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--batch", "--skip-column-names", "--user=root"]);
    client.args(["--default-character-set=utf8mb4", "--local-infile=1"]);
    client.arg(format!("--socket={}", socket(dir))).arg(database);
    client
}

fn serve(dir: &Path, port: u16, settings: &[&str]) -> Result<Child, TestkitError> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig=KILL", "--", "mariadbd", "--no-defaults", "--user=root"]);
    command.arg(format!("--datadir={}", dir.join("data").display())).env("TMPDIR", dir);
    command.arg(format!("--socket={}", socket(dir))).arg(format!("--port={port}"));
    command.args(["--bind-address=127.0.0.1", "--skip-name-resolve"]);
    command.args(["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M"]);
    command.args(settings.iter().map(|setting| format!("--{setting}")));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(TestkitError::file("start", Path::new("mariadbd")))
}

/// Waits until the server answers; fails if it exits.
fn answers(server: &mut Child, dir: &Path) -> Result<(), String> {
    let until = Instant::now() + ANSWERS_WITHIN;
    loop {
        if matches!(server.try_wait(), Ok(Some(_))) {
            return Err("it ended at once".to_owned());
        }
        match answer(client(dir, "mysql").args(["--execute", "SELECT 1"])) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > until => return Err(error.to_string()),
            Err(_) => sleep(Duration::from_millis(50)),
        }
    }
}

/// Returns the output of a client command; fails if the command does.
fn answer(command: &mut Command) -> Result<String, TestkitError> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(TestkitError::file("start", Path::new("mariadb")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(TestkitError::Tool { command: format!("{command:?}"), message })
}

fn finish(command: &mut Command) -> Result<(), TestkitError> {
    answer(command).map(drop)
}
