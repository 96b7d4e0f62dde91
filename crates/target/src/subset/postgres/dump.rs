//! The schema, as `pg_dump` writes it: what comes before the rows, and what comes after them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postgres::Config;
use postgres::config::Host;

use super::PostgresSource;
use crate::sql::error::SqlError;
use crate::subset::manifest::{AFTER, BEFORE};

const HOMES: [&str; 3] = ["/usr/lib/postgresql", "/usr/pgsql", "/opt/postgresql"];
/// Of what a program says on its standard error.
const SAID_BYTES: usize = 500;

fn failed(why: String, version: u32) -> SqlError {
    SqlError::Program {
        what: "read the schema with pg_dump".to_owned(),
        why,
        hint: format!("install the client programs of PostgreSQL {version} or later"),
    }
}

/// Its major version, as it says itself: `pg_dump (PostgreSQL) 17.6 (Debian …)`.
fn version_of(program: &Path) -> Option<u32> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number =
        text.split_whitespace().find(|word| word.starts_with(|it: char| it.is_ascii_digit()))?;
    number.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

/// The oldest `pg_dump` that knows servers of this version.
fn program(version: u32) -> Result<PathBuf, SqlError> {
    let mut found: Vec<PathBuf> = Vec::new();
    for home in HOMES.map(Path::new) {
        let (dir, prefix) =
            if home.is_dir() { (home, "") } else { (home.parent().unwrap_or(home), "pgsql-") };
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                found.push(entry.path().join("bin/pg_dump"));
            }
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path).map(|dir| dir.join("pg_dump")));
    found.retain(|program| program.is_file());
    let known = found.into_iter().filter_map(|program| Some((version_of(&program)?, program)));
    let mut known: Vec<(u32, PathBuf)> = known.collect();
    known.sort();
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

/// Where to connect, in variables that no other user sees.
fn environment(command: &mut Command, config: &Config, secured: Option<&str>) {
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => command.env("PGHOST", host),
        Some(Host::Unix(dir)) => command.env("PGHOST", dir),
        None => command.env("PGHOST", "localhost"),
    };
    command.env("PGPORT", config.get_ports().first().copied().unwrap_or(5432).to_string());
    let user = config.get_user().unwrap_or_default();
    command.env("PGUSER", user).env("PGDATABASE", config.get_dbname().unwrap_or(user));
    if let Some(password) = config.get_password() {
        command.env("PGPASSWORD", String::from_utf8_lossy(password).into_owned());
    }
    if let Some(mode) = secured {
        command.env("PGSSLMODE", mode);
    }
}

impl PostgresSource<'_> {
    /// Whether the schema can be written.
    pub fn check_dump(&self) -> Result<(), SqlError> {
        program(self.version).map(|_| ())
    }

    /// Writes the schema into `dir`, in two files.
    pub fn dump_schema(&mut self, dir: &Path) -> Result<(), SqlError> {
        let program = program(self.version)?;
        self.told("schema", 0)?;
        for (section, file) in [("pre-data", BEFORE), ("post-data", AFTER)] {
            let mut command = Command::new(&program);
            command.args(["--schema-only", "--no-owner", "--no-privileges", "--no-tablespaces"]);
            command.args(["--no-publications", "--no-subscriptions", "--encoding=UTF8"]);
            command.arg(format!("--section={section}")).arg("--no-password");
            if let Some(snapshot) = &self.snapshot {
                command.arg(format!("--snapshot={snapshot}"));
            }
            let secured = match &self.address.tls.client {
                None => Some("disable"),
                Some(_) if self.address.plain_will_do => Some("prefer"),
                Some(_) => std::env::var_os("PGSSLMODE").is_none().then_some("require"),
            };
            environment(&mut command, &self.address.config, secured);
            let output = command.stdin(Stdio::null()).output();
            let output = output.map_err(|error| failed(error.to_string(), self.version))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let said: String =
                    said.lines().last().unwrap_or_default().chars().take(SAID_BYTES).collect();
                return Err(failed(said, self.version));
            }
            let text = plain(&String::from_utf8_lossy(&output.stdout));
            let path = dir.join(file);
            std::fs::write(&path, text).map_err(|source| SqlError::File {
                what: "write",
                path,
                source,
                hint: "name a directory with space, where this user may write",
            })?;
        }
        Ok(())
    }
}

/// Without what only psql understands, and what servers before 17 refuse.
fn plain(text: &str) -> String {
    let is_meta = |line: &str| line.starts_with("\\restrict") || line.starts_with("\\unrestrict");
    let is_new = |line: &str| line.starts_with("SET transaction_timeout");
    let lines = text.lines().filter(|line| !is_meta(line) && !is_new(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_psql_understands_is_left_out() {
        let text =
            "\\restrict x\nSET transaction_timeout = 0;\nCREATE TABLE t ();\n\\unrestrict x\n";
        assert_eq!(plain(text), "CREATE TABLE t ();\n");
    }
}
