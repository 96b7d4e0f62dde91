//! Where the password of a server comes from when its address has none: a file that the command
//! line names, and files of the user's that list servers.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use blockstone_base::units::Bytes;
use blockstone_sys::secret::{self, Owner};

use super::error::SqlError;
use super::host::without_password;

const PASSWORD_MAX: Bytes = Bytes(4096);
const LIST_MAX: Bytes = Bytes(1 << 20);

/// For all servers of this process: it is in no address, so that it is printed with none.
static GIVEN: OnceLock<String> = OnceLock::new();

/// Whether `address` is that of a server, which may ask for a password.
pub fn is_asked_at(address: &str) -> bool {
    address.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//"))
}

/// Takes the password for the server at `address` from the first line of a file.
pub fn read_for(address: &str, path: &Path) -> Result<(), SqlError> {
    let refused = |why: String, hint| SqlError::Password { path: path.to_owned(), why, hint };
    if without_password(address) != address {
        let why = "the address has a password as well".to_owned();
        return Err(refused(why, "leave one of them out"));
    }
    let bytes = secret::read(path, PASSWORD_MAX, Owner::Trusted)
        .map_err(|error| refused(error.to_string(), "chmod 600 it; its owner is you or root"))?;
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| refused("it is no text".to_owned(), "write it in UTF-8"))?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        return Err(refused("its first line is empty".to_owned(), "write the password there"));
    }
    // A second call is of the same command line.
    let _ = GIVEN.set(line.to_owned());
    Ok(())
}

/// That of the command line, else that of the environment.
pub fn given(variable: &str) -> Option<String> {
    GIVEN.get().cloned().or_else(|| env::var(variable).ok())
}

/// The first entry for a server in the list of PostgreSQL's clients, by the rules of libpq; an
/// error says why there is a list that was not read.
pub fn of_postgres(server: &Server<'_>) -> Result<Option<String>, String> {
    let named = env::var_os("PGPASSFILE").map(PathBuf::from);
    let usual = || Some(Path::new(&env::var_os("HOME")?).join(".pgpass"));
    let Some(path) = named.or_else(usual).filter(|path| path.exists()) else { return Ok(None) };
    let list = secret::read(&path, LIST_MAX, Owner::Anybody)
        .map_err(|error| format!("{} was not read: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&list).lines().find_map(|line| server.password_in(line)))
}

/// A server as a list of passwords names it.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    pub host: &'a str,
    pub port: u16,
    pub database: &'a str,
    pub user: &'a str,
}

impl Server<'_> {
    /// The password of a line `host:port:database:user:password` if that is for this server.
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

/// Where the first colon is that no backslash stands before.
fn end_of_field(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b':' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Without the backslashes that only protect what follows.
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
