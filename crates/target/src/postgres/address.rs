//! The address of a server: who, where, which database, and how to say it without the password.

use std::net::IpAddr;
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};

use crate::sql::error::SqlError;
use crate::sql::host::{NAME_HINT, resolve, without_password};

const PATIENCE: Duration = Duration::from_secs(10);
/// How long the network may be silent before a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(30);

/// A server, as the user names it, and how to connect to it.
#[derive(Clone, Debug)]
pub struct Address {
    /// For messages; without the password.
    pub name: String,
    pub config: Config,
    /// Whether it can only be on this machine.
    pub local: bool,
}

pub fn parse(rest: &str) -> Result<Address, SqlError> {
    let text = format!("postgres:{rest}");
    let refuse = |why: String| SqlError::Address {
        address: without_password(&text),
        why,
        hint: "postgres://user@host/database, postgres://user@%2Frun%2Fpostgresql/database, or \
               postgres:scratch",
    };
    let mut config: Config =
        text.parse().map_err(|error: postgres::Error| match std::error::Error::source(&error) {
            Some(source) => refuse(source.to_string()),
            None => refuse(error.to_string()),
        })?;
    if config.get_user().is_none() {
        let from =
            ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        config.user(&from.ok_or_else(|| refuse("it names no user".to_owned()))?);
    }
    if let (None, Ok(password)) = (config.get_password(), std::env::var("PGPASSWORD")) {
        config.password(password);
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        config.host_path("/run/postgresql");
    }
    if config.get_ssl_mode() == SslMode::Require {
        return Err(refuse("connections with TLS are not supported".to_owned()));
    }
    let mut local = true;
    if config.get_hostaddrs().is_empty() {
        for host in config.get_hosts().to_vec() {
            if let Host::Tcp(name) = host {
                let address = resolve(&name).map_err(|why| SqlError::Connect {
                    server: without_password(&text),
                    why,
                    hint: NAME_HINT.to_owned(),
                })?;
                local &= address.is_loopback();
                config.hostaddr(address);
            }
        }
    } else {
        local = config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    }
    config.connect_timeout(PATIENCE).tcp_user_timeout(SILENCE).application_name("blockstone");
    Ok(Address { name: without_password(&text), config, local })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_or_refused_with_a_hint() {
        let address = parse("//me@127.0.0.1:5433/bench").unwrap();
        assert!(address.local);
        assert_eq!(address.config.get_dbname(), Some("bench"));
        assert!(parse("//me@localhost/bench").unwrap().local);
        for wrong in ["//me@h:port/d", "//me@127.0.0.1/d?sslmode=require"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{error}");
        }
        let error = parse("//me@no-such-host.invalid/d").unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid cannot be resolved"), "{error}");
    }
}
