//! Servers: their addresses, the names of their hosts, and how to display them without a password.

use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use blockstone_base::units::Bytes;
use blockstone_sys::input;
use blockstone_sys::peer::Peer;

use super::border::Border;
use super::error::SqlError;
use super::patience;

/// Maximum size of /etc/hosts.
const HOSTS_MOST: Bytes = Bytes::mib(16);

/// The address of a server, and what a run does there before and after its work.
pub trait ServerAddress: Clone + Send + Sync + 'static {
    type Connection: Send;

    /// Parses the part after the scheme and a colon.
    fn parse(rest: &str) -> Result<Self, SqlError>;

    /// The name for messages, without the password.
    fn name(&self) -> &str;

    /// The peers of its connections.
    fn peers(&self) -> Vec<Peer>;

    /// Whether the server can only be on this machine.
    fn is_local(&self) -> bool;

    /// Connects and authenticates, without a time limit.
    fn dial(&self) -> Result<Self::Connection, SqlError>;

    fn connect(&self) -> Result<Self::Connection, SqlError> {
        self.within_limit(|| self.dial())
    }

    fn border(&self) -> Border {
        Border::of(self.name(), self.peers())
    }

    /// Does work to which a server replies immediately, and closes its connections if it does not.
    fn within_limit<T>(&self, work: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
        patience::within(patience::ANSWER, self.name(), &self.peers(), || self.border().cross(work))
    }

    /// Returns the server's data directory; `None` if this user may not see it.
    fn data_directory(link: &mut Self::Connection) -> Option<PathBuf>;

    /// Takes the lock that only one run can hold.
    fn take(&self, owner: &mut Self::Connection) -> Result<(), SqlError>;

    /// Returns `None` if the schema does not exist, otherwise whether a run created it.
    fn found_schema(owner: &mut Self::Connection) -> Result<Option<bool>, SqlError>;

    fn drop_schema(owner: &mut Self::Connection) -> Result<(), SqlError>;
}

/// Resolves a host name. /etc/hosts is read here, because the C library of a static program may
/// lack a name service; the library is used for names not in it.
pub fn resolve(name: &str) -> Result<IpAddr, String> {
    if let Ok(address) = name.parse() {
        return Ok(address);
    }
    let hosts = input::read(Path::new("/etc/hosts"), HOSTS_MOST).unwrap_or_default();
    if let Some(address) = listed(&String::from_utf8_lossy(&hosts), name) {
        return Ok(address);
    }
    let found = (name, 0).to_socket_addrs();
    let found = found.map_err(|error| format!("the name {name} cannot be resolved: {error}"))?;
    let mut found = found.map(|address| address.ip());
    found.next().ok_or_else(|| format!("the name {name} has no address"))
}

/// A hint for a name that cannot be resolved.
pub const NAME_HINT: &str =
    "check the name; a numeric address or the path of a socket needs no name service";

/// Looks up `name` in a hosts file; of several addresses, IPv4 is preferred.
fn listed(hosts: &str, name: &str) -> Option<IpAddr> {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default());
    let of = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
    });
    let all: Vec<IpAddr> = of.collect();
    all.iter().find(|address| address.is_ipv4()).or(all.first()).copied()
}

/// Returns `text`, an address or a part of a command line, without its passwords.
pub fn without_password(text: &str) -> String {
    let text = without_parameter(text);
    let Some(at) = text.rfind('@') else { return text };
    let before = &text[..at];
    let start = before.find("//").map(|slashes| slashes + 2);
    let start = start.or_else(|| before.find(':').map(|colon| colon + 1)).unwrap_or(0);
    match before[start..].find(':') {
        Some(colon) => format!("{}{}", &text[..start + colon], &text[at..]),
        None => text,
    }
}

/// Replaces the value of each parameter whose name ends in `password` by an asterisk. As libpq
/// reads them, blanks may be around the sign, and a value in quotes may contain blanks.
fn without_parameter(text: &str) -> String {
    const NAMES: [&str; 3] = ["password", "passwd", "pwd"];
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(end) =
        NAMES.iter().filter_map(|name| Some(lower[from..].find(name)? + name.len())).min()
    {
        let after = &text[from + end..];
        let Some(value) = after.trim_start().strip_prefix('=') else {
            shown.push_str(&text[from..from + end]);
            from += end;
            continue;
        };
        let value = value.trim_start_matches(' ');
        let at = text.len() - value.len();
        shown.push_str(&text[from..at]);
        shown.push('*');
        from = at + length_of_value(value);
    }
    shown.push_str(&text[from..]);
    shown
}

/// Returns the length of the value of a parameter, with its quotes.
fn length_of_value(text: &str) -> usize {
    let Some(quoted) = text.strip_prefix('\'') else {
        return text.find(['&', ' ']).unwrap_or(text.len());
    };
    let mut is_escaped = false;
    let end = quoted.find(|c| {
        let ends = c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |at| at + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("postgres://a:s@cret@h/d"), "postgres://a@h/d");
        assert_eq!(without_password("postgres://a@h/d"), "postgres://a@h/d");
        assert_eq!(without_password("postgres:scratch"), "postgres:scratch");
        for (text, shown) in [
            ("postgresql://u:pw@h", "postgresql://u@h"),
            ("oracle:u:pw@h", "oracle:u@h"),
            ("--db=mysql://u:p:w@h/", "--db=mysql://u@h/"),
            ("postgres://h/d?password=p%20w&user=u", "postgres://h/d?password=*&user=u"),
            ("postgres://u@h/d?user=x&sslPassword=pw", "postgres://u@h/d?user=x&sslPassword=*"),
            ("host=h password=pw dbname=d", "host=h password=* dbname=d"),
            (r"host=h password='p \' w' dbname=d", "host=h password=* dbname=d"),
            ("host=h password = pw dbname=d", "host=h password = * dbname=d"),
            ("Server=h;Uid=u;Pwd=pw", "Server=h;Uid=u;Pwd=*"),
            ("/data/a:b", "/data/a:b"),
            ("/data/a@b", "/data/a@b"),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }

    #[test]
    fn hosts_are_found_in_their_file() {
        let hosts = "::1 localhost\n127.0.0.1\tlocalhost # mine\n# 10.0.0.1 db\n10.0.0.2 db1 DB\n";
        assert_eq!(listed(hosts, "localhost"), "127.0.0.1".parse().ok());
        assert_eq!(listed(hosts, "db"), "10.0.0.2".parse().ok());
        assert_eq!(listed(hosts, "mine"), None);
    }
}
