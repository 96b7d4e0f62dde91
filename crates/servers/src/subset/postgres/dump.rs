//! The schema as written by `pg_dump`: one part for before the rows are loaded, and one for after.

use std::ffi::OsStr;
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_base::units::Bytes;
use blockstone_sys::child::Program;
use blockstone_sys::held::HeldDir;
use blockstone_sys::path::names;
use blockstone_sys::thread::spawn;
use postgres::config::{ChannelBinding, Host};

use super::{LOOK, PostgresSource, script};
use crate::postgres::address::Address;
use crate::sql::error::SqlError;
use crate::sql::tls::{Mode, system_roots};
use crate::subset::manifest::{AFTER, BEFORE, SCHEMA_MAX, write_file};
use crate::subset::source::no_thread;

const NAME: &str = "pg_dump";
/// Directories, and the prefixes of subdirectories that hold the programs of one version.
const HOMES: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", ""),
    ("/usr", "pgsql-"),
    ("/usr/local", "pgsql"),
    ("/opt", "pgsql-"),
    ("/opt/postgresql", ""),
];
/// Maximum length of a program's standard error in a message.
const SAID_BYTES: usize = 500;
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
const ANSWER_MAX: Bytes = Bytes::kib(64);
const DUMPS_WITHIN: Duration = Duration::from_hours(1);
/// Certificate revocation lists, which only libpq uses.
const REVOKED: [&str; 2] = ["PGSSLCRL", "PGSSLCRLDIR"];

fn failed(why: String, version: u32) -> SqlError {
    SqlError::Program {
        what: "read the schema with pg_dump".to_owned(),
        why,
        hint: format!("install the client programs of PostgreSQL {version} or later"),
    }
}

/// Returns the major version that a program reports: `pg_dump (PostgreSQL) 17.6 (Debian …)`.
fn version_of(path: &Path) -> Option<u32> {
    let mut program = Program::at(path).ok()?;
    program.arg("--version");
    let output = program.output(ANSWERS_WITHIN, ANSWER_MAX, &mut || true).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number =
        text.split_whitespace().find(|word| word.starts_with(|it: char| it.is_ascii_digit()))?;
    number.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

/// Returns the oldest installed `pg_dump` that supports servers of this version.
fn program(version: u32) -> Result<PathBuf, SqlError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for (dir, prefix) in HOMES {
        let homes = names(Path::new(dir)).unwrap_or_default();
        let homes = homes.into_iter().filter(|name| name.to_string_lossy().starts_with(prefix));
        found.extend(homes.map(|home| Path::new(dir).join(home).join("bin").join(NAME)));
    }
    found.retain(|program| program.is_file());
    // The system's own `pg_dump` may be a wrapper that selects one of these.
    found.extend(Program::find(NAME).map(|program| PathBuf::from(program.name())));
    let known = found.into_iter().filter_map(|program| Some((version_of(&program)?, program)));
    let mut known: Vec<(u32, PathBuf)> = known.collect();
    known.sort_by_key(|(version, _)| *version);
    let newest = known.last().map(|(newest, _)| *newest);
    match (known.into_iter().find(|(its, _)| *its >= version), newest) {
        (Some((_, program)), _) => Ok(program),
        (None, Some(newest)) => Err(failed(
            format!("its newest version here is {newest}, older than the server"),
            version,
        )),
        (None, None) => Err(failed("it was not found".to_owned(), version)),
    }
}

/// Sets the address and the TLS options in environment variables, which no other user sees, to
/// match this program's own connections.
fn environment(program: &mut Program, address: &Address) {
    let config = &address.config;
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => program.env("PGHOST", host),
        Some(Host::Unix(dir)) => program.env("PGHOST", dir),
        None => program.env("PGHOST", "localhost"),
    };
    if let Some(known) = config.get_hostaddrs().first() {
        program.env("PGHOSTADDR", known.to_string());
    }
    program.env("PGPORT", config.get_ports().first().copied().unwrap_or(5432).to_string());
    let user = config.get_user().unwrap_or_default();
    program.env("PGUSER", user).env("PGDATABASE", config.get_dbname().unwrap_or(user));
    program.env("PGPASSFILE", "/dev/null").env("PGGSSENCMODE", "disable");
    if let Some(password) = config.get_password() {
        program.env("PGPASSWORD", String::from_utf8_lossy(password).into_owned());
    }
    if config.get_channel_binding() == ChannelBinding::Require {
        program.env("PGCHANNELBINDING", "require");
    }
    let tls = &address.secured;
    program.env("PGSSLMODE", tls.mode.name());
    if tls.mode >= Mode::VerifyCa
        && let Some(roots) = tls.roots.clone().or_else(system_roots)
    {
        program.env("PGSSLROOTCERT", roots);
    }
    if let Some((certificate, key)) = &tls.identity {
        program.env("PGSSLCERT", certificate).env("PGSSLKEY", key);
    }
    for name in REVOKED {
        if let Some(given) = std::env::var_os(name) {
            program.env(name, given);
        }
    }
}

/// The sections of a schema, and the files that they are written to.
const SECTIONS: [(&str, &str); 2] = [("pre-data", BEFORE), ("post-data", AFTER)];

/// Runs of `pg_dump`, one for each section, while keys are read.
pub struct Dumping {
    threads: Vec<JoinHandle<Result<String, SqlError>>>,
    ended: Arc<AtomicBool>,
}

impl Drop for Dumping {
    /// Ends the programs, and waits for that.
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // An earlier error, or a panic in the other thread, is told already.
            let _ = thread.join();
        }
    }
}

impl PostgresSource<'_> {
    /// Starts dumping the schema, if that is possible.
    pub fn start_dump(&mut self) -> Result<(), SqlError> {
        let path = program(self.version)?;
        let mut dumping = Dumping { threads: Vec::new(), ended: Arc::default() };
        for (section, _) in SECTIONS {
            let dump = Dump {
                path: path.clone(),
                section,
                version: self.version,
                snapshot: self.snapshot.clone(),
                address: self.address.clone(),
                ended: Arc::clone(&dumping.ended),
            };
            let thread = spawn("pg_dump", move || dump.text());
            dumping.threads.push(thread.map_err(|error| no_thread(&error))?);
        }
        self.dumping = Some(dumping);
        Ok(())
    }

    /// Writes the schema to `dir`, in two files.
    pub fn dump_schema(&mut self, dir: &HeldDir) -> Result<(), SqlError> {
        if self.dumping.is_none() {
            self.start_dump()?;
        }
        let Some(mut dumping) = self.dumping.take() else { return Ok(()) };
        for (thread, (_, file)) in std::mem::take(&mut dumping.threads).into_iter().zip(SECTIONS) {
            while !thread.is_finished() {
                thread::sleep(LOOK);
                self.told("schema", 0)?;
            }
            let text = thread.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            let text = script::for_psql(&text);
            let text = text.map_err(|error| failed(error.to_string(), self.version))?;
            write_file(dir, file, &text)?;
        }
        Ok(())
    }
}

/// A run of `pg_dump`.
struct Dump {
    path: PathBuf,
    section: &'static str,
    version: u32,
    snapshot: Option<String>,
    address: Address,
    ended: Arc<AtomicBool>,
}

impl Dump {
    fn text(&self) -> Result<String, SqlError> {
        let version = self.version;
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::Interrupted => SqlError::Interrupted,
            _ => failed(error.to_string(), version),
        };
        let mut program = Program::at(&self.path).map_err(refused)?;
        program.args(["--schema-only", "--no-owner", "--no-privileges", "--no-tablespaces"]);
        program.args(["--no-publications", "--no-subscriptions", "--encoding=UTF8"]);
        program.arg(format!("--section={}", self.section)).arg("--no-password");
        if let Some(snapshot) = &self.snapshot {
            program.arg(OsStr::new(&format!("--snapshot={snapshot}")));
        }
        environment(&mut program, &self.address);
        let mut go_on = || !self.ended.load(Ordering::Relaxed);
        let output = program.output(DUMPS_WITHIN, Bytes(SCHEMA_MAX), &mut go_on);
        let output = output.map_err(refused)?;
        if !output.status().success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said: String =
                said.lines().last().unwrap_or_default().chars().take(SAID_BYTES).collect();
            return Err(failed(said, version));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::host::ServerAddress;

    fn variables(address: &str) -> String {
        let mut program = Program::at(Path::new("/usr/bin/env")).unwrap();
        environment(&mut program, &Address::parse(address).unwrap());
        let output = program.output(ANSWERS_WITHIN, ANSWER_MAX, &mut || true).unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn settings_of_tls_are_those_of_the_address() {
        // No certificate is read before connecting over the network.
        let roots = system_roots().unwrap();
        let roots = roots.display();
        for (parameters, all) in [
            (
                format!("sslmode=verify-full&sslrootcert={roots}&channel_binding=require"),
                vec![
                    "PGSSLMODE=verify-full".to_owned(),
                    format!("PGSSLROOTCERT={roots}"),
                    "PGCHANNELBINDING=require".to_owned(),
                ],
            ),
            (
                "sslmode=verify-full&sslrootcert=system".to_owned(),
                vec!["PGSSLMODE=verify-full".to_owned(), format!("PGSSLROOTCERT={roots}")],
            ),
            (
                format!("sslmode=require&sslrootcert={roots}"),
                vec!["PGSSLMODE=verify-ca".to_owned(), format!("PGSSLROOTCERT={roots}")],
            ),
            ("sslmode=disable".to_owned(), vec!["PGSSLMODE=disable".to_owned()]),
            (String::new(), vec!["PGSSLMODE=prefer".to_owned()]),
        ] {
            let found = variables(&format!("//u:p@localhost:1/d?{parameters}"));
            let common = ["PGHOST=localhost", "PGPORT=1", "PGUSER=u", "PGPASSWORD=p"];
            for wanted in common.into_iter().chain(all.iter().map(String::as_str)) {
                assert!(found.lines().any(|line| line == wanted), "{wanted}: {found}");
            }
            assert!(found.contains("PGHOSTADDR="), "{found}");
        }
        assert!(variables("//u@%2Frun/d").contains("PGSSLMODE=disable"));
    }
}
