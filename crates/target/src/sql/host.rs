//! Names of hosts, and addresses without their passwords.

use std::net::{IpAddr, ToSocketAddrs};

/// The address of a host. /etc/hosts is read here, since the C library of a static program may have
/// no name service; what is not in it, the library is asked for.
pub fn resolve(name: &str) -> Result<IpAddr, String> {
    if let Ok(address) = name.parse() {
        return Ok(address);
    }
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    if let Some(address) = listed(&hosts, name) {
        return Ok(address);
    }
    let found = (name, 0).to_socket_addrs();
    let found = found.map_err(|error| format!("the name {name} cannot be resolved: {error}"))?;
    let mut found = found.map(|address| address.ip());
    found.next().ok_or_else(|| format!("the name {name} has no address"))
}

/// What helps where a name has no address.
pub const NAME_HINT: &str =
    "check the name; a numeric address or the path of a socket needs no name service";

/// What a file of hosts says about `name`; of several addresses one of the older kind.
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

/// `text` with what stands between `user:` and `@` left out.
pub fn without_password(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("//") else { return text.to_owned() };
    match rest.rsplit_once('@') {
        Some((who, place)) => {
            let user = who.split(':').next().unwrap_or_default();
            format!("{scheme}//{user}@{place}")
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(without_password("postgres://a:s@cret@h/d"), "postgres://a@h/d");
        assert_eq!(without_password("postgres://a@h/d"), "postgres://a@h/d");
        assert_eq!(without_password("postgres:scratch"), "postgres:scratch");
    }

    #[test]
    fn hosts_are_found_in_their_file() {
        let hosts = "::1 localhost\n127.0.0.1\tlocalhost # mine\n# 10.0.0.1 db\n10.0.0.2 db1 DB\n";
        assert_eq!(listed(hosts, "localhost"), "127.0.0.1".parse().ok());
        assert_eq!(listed(hosts, "db"), "10.0.0.2".parse().ok());
        assert_eq!(listed(hosts, "mine"), None);
    }
}
