//! A private PostgreSQL server, and sessions of psql on it.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use blockstone_base::Bytes;
use blockstone_sys::account;
use blockstone_sys::child::{self, Signal};
use blockstone_testkit::ScratchDir;

use crate::workspace::{line, output_of};

/// Where Debian has the programs of each version.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// Superuser of the private server.
const NAME: &str = "blockstone";
/// How long the server may take until it answers, and how often it is asked.
const START: Duration = Duration::from_secs(30);
const ASK: Duration = Duration::from_millis(20);
/// Ends each answer of psql.
const DONE: &str = "--done--";

/// A private server, as `--target postgres:scratch` starts it. It ends with this value.
pub struct Server {
    process: Child,
    programs: PathBuf,
    home: PathBuf,
    dir: ScratchDir,
}

impl Server {
    /// Makes it and waits for it; `shared_buffers` are its cache.
    pub fn start(shared_buffers: Bytes) -> Result<Self> {
        let programs = newest(Path::new(PROGRAMS))?;
        let dir = ScratchDir::on_disk()?;
        let home = dir.path().join("server");
        fs::create_dir(&home).with_context(|| format!("create {}", home.display()))?;
        // A server refuses to run as the superuser.
        let users = &["postgres", "nobody"];
        let user = child::is_superuser().then(|| child::user(Path::new("/"), users)).flatten();
        if let Some(user) = &user {
            chown(&home, Some(user.uid), Some(user.gid))
                .and_then(|()| fs::set_permissions(&home, Permissions::from_mode(0o700)))
                .with_context(|| format!("give {} to {}", home.display(), user.name))?;
        }
        let command = |program: &str| {
            let mut command = Command::new(programs.join(program));
            child::confine(&mut command, user.as_ref(), Signal::KILL);
            command.env_clear().env("LC_ALL", "C").current_dir(&home).stdin(Stdio::null());
            command
        };
        let mut initdb = command("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        initdb.arg(format!("--username={NAME}")).args(["--pgdata", "data"]);
        output_of(&mut initdb)?;
        let mut postgres = command("postgres");
        postgres.args(["-D", "data", "-c", "listen_addresses=", "-c"]);
        postgres.args(["unix_socket_directories=..", "-c"]);
        postgres.arg(format!("shared_buffers={}kB", shared_buffers.get() / 1024));
        let log = home.join("server.log");
        let file = File::create(&log).with_context(|| format!("create {}", log.display()))?;
        postgres.stdout(file.try_clone().context("share the log")?).stderr(file);
        let process = postgres.spawn().with_context(|| format!("start {}", line(&postgres)))?;
        let mut server = Self { process, programs, home, dir };
        server.wait_until_it_answers(&log)?;
        Ok(server)
    }

    fn wait_until_it_answers(&mut self, log: &Path) -> Result<()> {
        let until = Instant::now() + START;
        loop {
            let mut ask = self.psql("");
            let asked = ask.args(["-c", "SELECT 1"]).stdout(Stdio::null()).stderr(Stdio::null());
            if asked.status().context("start psql")?.success() {
                return Ok(());
            }
            let ended = self.process.try_wait().context("look at the server")?.is_some();
            if ended || Instant::now() > until {
                let output = fs::read_to_string(log).unwrap_or_default();
                bail!("the private server does not answer; its log says: {}", output.trim());
            }
            sleep(ASK);
        }
    }

    /// The client that pgio uses, with `options` for the server.
    fn psql(&self, options: &str) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", "postgres"]);
        command.args(["-U", NAME, "-h"]).arg(&self.home);
        command.env_clear().env("LC_ALL", "C").env("PGOPTIONS", options).stdin(Stdio::null());
        command
    }

    /// A place for files that end with it.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn address(&self) -> String {
        let socket = self.home.to_string_lossy().replace('/', "%2F");
        format!("postgres://{NAME}@{socket}/postgres")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = child::signal(self.process.id(), Signal::QUIT);
        let _ = self.process.wait();
    }
}

/// The programs of the highest version below `root`, as our program chooses them.
fn newest(root: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let version = |name: String| Some((name.parse::<u32>().ok()?, root.join(name).join("bin")));
    let versions = entries.filter_map(|entry| version(entry.file_name().into_string().ok()?));
    let usable = versions.filter(|(_, bin)| bin.join("postgres").is_file());
    let (version, bin) = usable.max().with_context(|| {
        format!("find a server below {}\nhint: apt-get install postgresql-15", root.display())
    })?;
    ensure!(bin.join("psql").is_file(), "PostgreSQL {version} has no psql\nhint: install it");
    Ok(bin)
}

/// A session of psql that gets statements line by line.
pub struct Psql {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    backend: u32,
}

impl Psql {
    pub fn connect(server: &Server, options: &str) -> Result<Self> {
        let mut command = server.psql(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("start {}", line(&command)))?;
        let input = process.stdin.take().context("its input was piped")?;
        let output = BufReader::new(process.stdout.take().context("its output was piped")?);
        let mut psql = Self { process, input, output, backend: 0 };
        psql.backend = psql.ask("SELECT pg_backend_pid()")?.parse().context("read its number")?;
        Ok(psql)
    }

    /// Sends statements without waiting for their answer.
    pub fn send(&mut self, statements: &str) -> Result<()> {
        writeln!(self.input, "{statements};\n\\echo {DONE}").context("write to psql")
    }

    /// The output of all statements sent since the last answer.
    pub fn answer(&mut self) -> Result<String> {
        let mut output = String::new();
        loop {
            let start = output.len();
            let length = self.output.read_line(&mut output).context("read from psql")?;
            ensure!(length > 0, "psql ended; it says why above");
            if output[start..].trim_end() == DONE {
                return Ok(output[..start].trim_end().to_owned());
            }
        }
    }

    pub fn ask(&mut self, statements: &str) -> Result<String> {
        self.send(statements)?;
        self.answer()
    }

    /// Processor time of the process that serves it, and bytes that the disk gave to that.
    pub fn account(&self) -> Result<(u64, u64)> {
        let account = account::account(Path::new("/"), self.backend, None);
        let account = account.context("find the process of a session")?;
        let cpu_ns = account.cpu_ns.context("read schedstat of a session")?;
        Ok((cpu_ns, account.io.map_or(0, |io| io.read_bytes)))
    }
}

impl Drop for Psql {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_with_all_programs_is_taken() {
        let dir = ScratchDir::on_disk().unwrap();
        for version in ["9", "15", "contrib"] {
            let bin = dir.path().join(version).join("bin");
            fs::create_dir_all(&bin).unwrap();
            fs::write(bin.join("postgres"), "").unwrap();
        }
        let error = newest(dir.path()).unwrap_err().to_string();
        assert!(error.contains("PostgreSQL 15 has no psql"), "{error}");
        fs::write(dir.path().join("15/bin/psql"), "").unwrap();
        assert_eq!(newest(dir.path()).unwrap(), dir.path().join("15/bin"));
        assert!(newest(&dir.path().join("15")).unwrap_err().to_string().contains("\nhint: "));
    }
}
