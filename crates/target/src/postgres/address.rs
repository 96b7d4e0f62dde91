//! The address of a server: who, where, which database, and how to say it without the password.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use blockstone_sys::peer::Peer;
use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

use super::views::value;
use crate::sql::error::{DriverError, During, SCHEMA, SqlError};
use crate::sql::host::{NAME_HINT, ServerAddress, resolve, without_password};

/// The comment by which a schema is known as a run's.
pub const MARK: &str = "made by blockstone run; may be removed";
/// Whoever may create a function in a schema that is searched could have it called by a superuser
/// who means the server's own of that name.
const OWN_NAMES_ONLY: &str = "SET search_path = pg_catalog, pg_temp";
/// Held by a run for as long as it lives.
const LOCK: i64 = 0x626c_6f63_6b73_746f;

const PORT: u16 = 5432;
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the network may be silent before a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Address {
    pub name: String,
    pub config: Config,
    pub local: bool,
}

/// What the driver says, without its own words around.
pub fn cause(error: &postgres::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Whether the connection was made and then ended, or brought what is not the protocol.
fn is_no_answer(error: &postgres::Error) -> bool {
    const ENDED: [ErrorKind; 6] = [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
        ErrorKind::InvalidData,
        ErrorKind::InvalidInput,
    ];
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    error.as_db_error().is_none() && cause.is_none_or(|cause| ENDED.contains(&cause.kind()))
}

impl ServerAddress for Address {
    type Connection = Client;

    fn parse(rest: &str) -> Result<Self, SqlError> {
        let text = format!("postgres:{rest}");
        let refuse = |why: String| SqlError::Address {
            address: without_password(&text),
            why,
            hint: "postgres://user@host/database, postgres://user@%2Frun%2Fpostgresql/database, or \
                   postgres:scratch",
        };
        if !rest.starts_with("//") {
            return Err(refuse("it is no URL: `//` must follow `postgres:`".to_owned()));
        }
        let mut config: Config = text.parse().map_err(|error| refuse(cause(&error)))?;
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
        Ok(Self { name: without_password(&text), config, local })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_local(&self) -> bool {
        self.local
    }

    fn peers(&self) -> Vec<Peer> {
        let port = |at: usize| {
            let ports = self.config.get_ports();
            ports.get(at).or(ports.first()).copied().unwrap_or(PORT)
        };
        let hosts = self.config.get_hosts().iter().enumerate();
        let local = hosts.filter(|(_, host)| matches!(host, Host::Unix(_)));
        let local = local.map(|(at, _)| Peer::Local(format!(".s.PGSQL.{}", port(at)).into()));
        let addresses = self.config.get_hostaddrs().iter().enumerate();
        let net = addresses.map(|(at, address)| Peer::Net((*address, port(at)).into()));
        local.chain(net).collect()
    }

    fn dial(&self) -> Result<Client, SqlError> {
        const OTHERWISE: &str = "check that the server is running and listens there; see \
                                 listen_addresses and port";
        let hints = [
            (SqlState::INVALID_PASSWORD, "give the password in the address or in PGPASSWORD"),
            (
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                "see pg_hba.conf of the server: it must allow this user from here without TLS",
            ),
            (
                SqlState::TOO_MANY_CONNECTIONS,
                "raise max_connections of the server, or ask for fewer sessions",
            ),
            (
                SqlState::INVALID_CATALOG_NAME,
                "name a database that exists: postgres://user@host/database",
            ),
            (
                SqlState::CANNOT_CONNECT_NOW,
                "the server starts, stops or recovers; wait until it is ready",
            ),
        ];
        let connected = self.config.connect(NoTls).and_then(|mut client| {
            client.batch_execute(OWN_NAMES_ONLY)?;
            Ok(client)
        });
        connected.map_err(|error| {
            let known = hints.into_iter().find(|(code, _)| error.code() == Some(code));
            let (why, hint) = match known {
                Some((_, hint)) => (error.said(), hint),
                None if is_no_answer(&error) => (
                    format!("what listens there does not answer as PostgreSQL ({})", error.said()),
                    "check host and port, and that they are those of a PostgreSQL server",
                ),
                None => (error.said(), OTHERWISE),
            };
            SqlError::Connect { server: self.name.clone(), why, hint: hint.to_owned() }
        })
    }

    fn data_directory(link: &mut Client) -> Option<PathBuf> {
        let known = link.query_one("SELECT current_setting('data_directory')", &[]).ok()?;
        known.try_get::<_, String>(0).ok().map(PathBuf::from)
    }

    fn take(&self, owner: &mut Client) -> Result<(), SqlError> {
        let taken = owner.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]);
        if value(&taken.during("take the lock of a run")?, 0)? {
            return Ok(());
        }
        let hint = "wait for its end, or name another database";
        Err(SqlError::unsuitable(&self.name, "another run uses this database", hint))
    }

    fn found_schema(owner: &mut Client) -> Result<Option<bool>, SqlError> {
        const ASK: &str = "SELECT coalesce(obj_description(oid, 'pg_namespace'), '')
            FROM pg_namespace WHERE nspname = $1";
        let found = owner.query_opt(ASK, &[&SCHEMA]).during("look for leftovers of a run")?;
        found.map(|row| Ok(value::<String>(&row, 0)? == MARK)).transpose()
    }

    fn drop_schema(owner: &mut Client) -> Result<(), SqlError> {
        const TABLES: &str = "SELECT coalesce('DROP TABLE ' || string_agg(
                format('%I.%I', schemaname, tablename), ', ') || ';', '')
            FROM pg_tables WHERE schemaname = $1";
        const WHAT: &str = "remove the schema blockstone";
        let tables: String = value(&owner.query_one(TABLES, &[&SCHEMA]).during(WHAT)?, 0)?;
        // Without CASCADE, which would also drop views that other users have on these tables.
        let drop = format!("BEGIN; {tables} DROP SCHEMA IF EXISTS {SCHEMA}; COMMIT");
        owner.batch_execute(&drop).during(WHAT)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn addresses_are_understood_or_refused_with_a_hint() {
        let address = Address::parse("//me@127.0.0.1:5433/bench").unwrap();
        assert!(address.local);
        assert_eq!(address.config.get_dbname(), Some("bench"));
        assert!(Address::parse("//me@localhost/bench").unwrap().local);
        for wrong in ["//me@h:port/d", "//me@127.0.0.1/d?sslmode=require"] {
            let error = Address::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{error}");
        }
        for no_url in ["foo", "", "/etc/passwd", "host=/run user=me"] {
            let error = Address::parse(no_url).unwrap_err().to_string();
            assert!(error.contains("`//` must follow") && !error.contains("EOF"), "{error}");
        }
        let error = Address::parse("//me@no-such-host.invalid/d").unwrap_err().to_string();
        assert!(error.contains("no-such-host.invalid cannot be resolved"), "{error}");
    }

    /// The error of connecting to what answers `answer` and closes.
    fn refused_by(answer: &'static [u8]) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 64];
            let _ = stream.read(&mut asked);
            stream.write_all(answer).unwrap();
        });
        let address = Address::parse(&format!("//me@127.0.0.1:{port}/d")).unwrap();
        let error = address.connect().map(drop).unwrap_err().to_string();
        server.join().unwrap();
        error
    }

    #[test]
    fn what_is_no_postgresql_is_named_with_a_hint() {
        for answer in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH\r\n"] {
            let error = refused_by(answer);
            assert!(error.contains("does not answer as PostgreSQL"), "{error}");
            assert!(
                error.contains("127.0.0.1:") && error.contains("\nhint: check host"),
                "{error}"
            );
        }
        let closed = Address::parse("//me@127.0.0.1:1/d").unwrap().connect().map(drop);
        let error = closed.unwrap_err().to_string();
        assert!(error.contains("refused") && error.contains("is running"), "{error}");
    }
}
