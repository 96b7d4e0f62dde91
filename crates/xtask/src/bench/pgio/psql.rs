//! Sessions of psql, the client that pgio uses.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, ensure};
use blockstone_sys::account;
use blockstone_testkit::PostgresServer;

use crate::workspace::line;

/// Marks the end of each answer of psql.
const DONE: &str = "--done--";

/// A psql session that is sent statements line by line.
pub struct Psql {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    backend: u32,
}

impl Psql {
    /// Connects with `options` for the server.
    pub fn connect(server: &PostgresServer, options: &str) -> Result<Self> {
        let mut command = server.client();
        command.args(["--quiet", "--no-align", "--tuples-only"]).env("PGOPTIONS", options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
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

    /// Returns the output of all statements sent since the last answer.
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

    /// Returns the processor time of its backend process, and the bytes that process read from the
    /// disk.
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
    use std::process::Command;

    use blockstone_testkit::require;

    use super::*;
    use crate::workspace::output_of;

    #[test]
    fn a_session_answers_in_order_and_has_an_account() {
        require!(Root, Postgres);
        let server = PostgresServer::start(15, &["shared_buffers=2MB"]).unwrap();
        let mut psql = Psql::connect(&server, "-c effective_io_concurrency=3").unwrap();
        psql.send("SELECT 1").unwrap();
        psql.send("SHOW effective_io_concurrency").unwrap();
        assert_eq!((psql.answer().unwrap(), psql.answer().unwrap()), ("1".into(), "3".into()));
        assert!(psql.account().unwrap().0 > 0);
        let mut by_socket = Command::new("psql");
        by_socket.args([&server.socket_address(), "-tAc", "SELECT inet_client_addr() IS NULL"]);
        assert_eq!(output_of(&mut by_socket).unwrap(), "t\n");
    }
}
