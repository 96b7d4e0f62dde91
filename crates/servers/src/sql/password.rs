//! The source of a server's password if its address has none: a file named on the command line, and
//! the user's own lists of servers.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use blockstone_base::units::Bytes;
use blockstone_sys::secret::{self, Owner};

use super::error::SqlError;
use super::host::without_password;

const PASSWORD_MAX: Bytes = Bytes(4096);
const LIST_MAX: Bytes = Bytes(1 << 20);

/// For all servers of this process. It is part of no address, so it is never printed with one.
static GIVEN: OnceLock<String> = OnceLock::new();

/// Whether `address` is that of a server, which may require a password.
pub fn is_asked_at(address: &str) -> bool {
    address.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//"))
}

/// Reads the password for the server at `address` from the first line of a file.
pub fn read_for(address: &str, path: &Path) -> Result<(), SqlError> {
    let refused = |why: String, hint| SqlError::Password { path: path.to_owned(), why, hint };
    if without_password(address) != address {
        let why = "the address has a password as well".to_owned();
        return Err(refused(why, "leave one of them out"));
    }
    let bytes = secret::read(path, PASSWORD_MAX, Owner::Trusted)
        .map_err(|error| refused(error.to_string(), "chmod 600 it; its owner is you or root"))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| refused("it is not text".to_owned(), "write it in UTF-8"))?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        return Err(refused("its first line is empty".to_owned(), "write the password there"));
    }
    // A second call comes from the same command line.
    let _ = GIVEN.set(line.to_owned());
    Ok(())
}

/// Returns the password from the command line, otherwise the one from the environment.
pub fn given(variable: &str) -> Option<String> {
    GIVEN.get().cloned().or_else(|| env::var(variable).ok())
}

/// Returns the first entry for a server in the password file of PostgreSQL's clients, by libpq's
/// rules. An error tells why an existing file was not read.
pub fn of_postgres(server: &Server<'_>) -> Result<Option<String>, String> {
    let named = env::var_os("PGPASSFILE").map(PathBuf::from);
    let usual = || Some(Path::new(&env::var_os("HOME")?).join(".pgpass"));
    let Some(path) = named.or_else(usual).filter(|path| path.exists()) else { return Ok(None) };
    let list = secret::read(&path, LIST_MAX, Owner::Anybody)
        .map_err(|error| format!("{} was not read: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&list).lines().find_map(|line| server.password_in(line)))
}

/// A server in the terms of a password file.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

impl Server<'_> {
    /// Returns the password in a line `host:port:database:user:password` if the line matches this
    /// server.
    fn password_in(&self, line: &str) -> Option<String> {
        if line.starts_with('#') {
            return None;
        }
        let port = self.port.to_string();
        let mut rest = line;
        for wanted in [self.host, port.as_str(), self.database, self.user] {
            let end = end_of_field(rest)?;
            let field = &rest[..end];
            if field != "*" && plain(field) != wanted {
                return None;
            }
            rest = &rest[end + 1..];
        }
        let password = plain(&rest[..end_of_field(rest).unwrap_or(rest.len())]);
        (!password.is_empty()).then_some(password)
    }
}

/// Returns the position of the first colon that is not escaped by a backslash.
fn end_of_field(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b':' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Removes the backslashes that escape the next character.
fn plain(field: &str) -> String {
    let mut chars = field.chars();
    let mut text = String::with_capacity(field.len());
    while let Some(c) = chars.next() {
        text.push(if c == '\\' { chars.next().unwrap_or(c) } else { c });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_passwords_is_read_as_libpq_does() {
        let server = Server { host: "db:1", port: 5432, database: "bench", user: "me" };
        for (line, password) in [
            (r"db\:1:5432:bench:me:secret", Some("secret")),
            ("*:*:*:*:any", Some("any")),
            (r"*:*:*:me:a\:b\\c", Some(r"a:b\c")),
            ("*:*:*:me:first:second", Some("first")),
            ("db:1:5432:bench:me:secret", None),
            ("*:5433:*:*:other", None),
            ("*:*:bench*:*:other", None),
            (r"\*:*:*:*:literal", None),
            ("#*:*:*:*:comment", None),
            ("*:*:*:*:", None),
            ("*:*:*", None),
            ("", None),
        ] {
            assert_eq!(server.password_in(line).as_deref(), password, "{line}");
        }
    }
}
