//! The address of a server: user, host and database, and a form without the password for display.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use blockstone_sys::peer::Peer;
use postgres::Config;
use postgres::config::{Host, SslMode, SslNegotiation};
use postgres::error::SqlState;

use super::client::Client;
use super::tls::{Connector, Disagreed, Otherwise};
use super::views::value;
use crate::sql::error::{DriverError, During, SCHEMA, SqlError};
use crate::sql::host::{NAME_HINT, ServerAddress, resolve, without_password};
use crate::sql::parameters::{self, Taken};
use crate::sql::password;
use crate::sql::tls::{self, Mode, Tls};
use crate::sql::trust::Trust;

/// The comment that marks a schema as created by a run.
pub const MARK: &str = "made by blockstone run; may be removed";
/// A user who may create functions in a schema of the search path could have a superuser call them
/// in place of the server's own functions of that name.
const OWN_NAMES_ONLY: &str = "SET search_path = pg_catalog, pg_temp";
/// An advisory lock that a run holds as long as it lives.
const LOCK: i64 = 0x626c_6f63_6b73_746f;

/// Parameters of an address that the driver does not know, with libpq's names.
const PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];
const PORT: u16 = 5432;
const USUAL_DIRS: [&str; 3] = ["/run/postgresql", "/var/run/postgresql", "/tmp"];
/// The driver's message if the server wants a password.
const NO_PASSWORD: &str = "password missing";
const PASSWORDS: &str = "give the password in PGPASSWORD, in ~/.pgpass or with --password-file";
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum silence on the network before a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub struct Address {
    pub name: String,
    pub config: Config,
    pub local: bool,
    pub tls: Connector,
    /// The TLS options from which `tls` was made, for other programs.
    pub secured: Tls,
    /// Whether to connect without TLS if a connection with TLS fails.
    pub plain_will_do: bool,
    /// The reason why an existing list of passwords was not read.
    pub unread: Option<String>,
    /// For a server that was found and not named: who must be at the other end.
    pub trust: Option<Trust>,
}

/// Returns the TLS options from the address, otherwise the environment, otherwise libpq's usual
/// files.
fn wanted_tls(taken: &Taken, is_local: bool) -> Result<Tls, String> {
    let asked = |name: &str| {
        let given = parameters::value(taken, name).map(str::to_owned);
        let given = given.or_else(|| std::env::var(format!("PG{}", name.to_uppercase())).ok());
        given.filter(|value| !value.is_empty())
    };
    let mode = match asked("sslmode").as_deref() {
        None => None,
        Some("disable") => Some(Mode::Disable),
        Some("allow" | "prefer") => Some(Mode::Prefer),
        Some("require") => Some(Mode::Require),
        Some("verify-ca") => Some(Mode::VerifyCa),
        Some("verify-full") => Some(Mode::VerifyFull),
        Some(other) => {
            let known = "disable, prefer, require, verify-ca and verify-full";
            return Err(format!("sslmode is {other}; there are {known}"));
        }
    };
    let mut mode = Mode::settled(mode, is_local);
    let roots = match asked("sslrootcert").as_deref() {
        // The public authorities issue certificates to anybody for a name of their own.
        Some("system") if mode != Mode::Disable => {
            mode = Mode::VerifyFull;
            None
        }
        Some("system") => None,
        Some(path) => Some(PathBuf::from(path)),
        None => in_home("root.crt"),
    };
    if mode == Mode::Require && roots.is_some() {
        mode = Mode::VerifyCa;
    }
    let file = |name: &str, usual| asked(name).map(PathBuf::from).or_else(|| in_home(usual));
    let identity = file("sslcert", "postgresql.crt").zip(file("sslkey", "postgresql.key"));
    Ok(Tls { mode, roots, identity })
}

/// Adds a password if the address has none and one is found. Returns why an existing list of
/// passwords was not read.
fn add_password(config: &mut Config) -> Option<String> {
    if config.get_password().is_some() {
        return None;
    }
    let user = config.get_user().unwrap_or_default();
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        // The directories where libpq looks for the socket by default.
        Some(Host::Unix(dir)) if USUAL_DIRS.iter().any(|usual| dir == Path::new(usual)) => {
            "localhost".to_owned()
        }
        Some(Host::Unix(dir)) => dir.to_string_lossy().into_owned(),
        None => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(PORT);
    let database = config.get_dbname().unwrap_or(user);
    let server = password::Server { host: &host, port, database, user };
    let found = match password::given("PGPASSWORD") {
        Some(password) => Ok(Some(password)),
        None => password::of_postgres(&server),
    };
    match found {
        Ok(found) => {
            if let Some(password) = found {
                config.password(password);
            }
            None
        }
        Err(why) => Some(why),
    }
}

/// Returns a file in the user's directory for PostgreSQL clients, if it exists.
fn in_home(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("HOME")?).join(".postgresql").join(name);
    path.is_file().then_some(path)
}

/// Returns the driver's error without the text that the driver adds.
pub fn cause(error: &postgres::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns why TLS could not be negotiated, if that was the error.
fn disagreed(error: &postgres::Error) -> Option<&Disagreed> {
    error.source()?.downcast_ref()
}

/// Whether TLS was not offered, or its negotiation failed.
fn is_about_tls(error: &postgres::Error) -> bool {
    matches!(disagreed(error), Some(Disagreed::NotOffered | Disagreed::Failed(_)))
}

/// Whether the connection was closed after it was made, or received data outside the protocol.
fn is_no_answer(error: &postgres::Error) -> bool {
    const ENDED: [ErrorKind; 7] = [
        ErrorKind::UnexpectedEof,
        ErrorKind::ConnectionReset,
        ErrorKind::ConnectionAborted,
        ErrorKind::BrokenPipe,
        ErrorKind::InvalidData,
        ErrorKind::InvalidInput,
        // Returned by the driver when the stream ends within a message.
        ErrorKind::Other,
    ];
    let cause = match disagreed(error) {
        Some(Disagreed::NoAnswer(cause)) => Some(cause),
        _ => error.source().and_then(|cause| cause.downcast_ref::<io::Error>()),
    };
    error.as_db_error().is_none() && cause.is_none_or(|cause| ENDED.contains(&cause.kind()))
}

impl Address {
    /// Parses the address of a server that was found on this machine. No password is looked for.
    pub fn trusted(rest: &str, trust: Trust) -> Result<Self, SqlError> {
        Ok(Self { trust: Some(trust), ..Self::parsed(rest, |_| None)? })
    }

    fn password_hint(&self) -> String {
        self.unread.as_ref().map_or(PASSWORDS.to_owned(), |why| format!("{PASSWORDS}; {why}"))
    }

    /// Connects, without sending anything but what begins a session.
    fn dial_as_user(&self) -> Result<Client, SqlError> {
        const OTHERWISE: &str = "check that the server is running and listens there; see \
                                 listen_addresses and port";
        let hints = [
            (SqlState::INVALID_PASSWORD, PASSWORDS),
            (
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                "see pg_hba.conf of the server: it must allow this user from here",
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
        let connect = |connector: &Connector| {
            let closing = Arc::default();
            let connector = Connector { closing: Arc::clone(&closing), ..connector.clone() };
            self.config.connect(connector).map(|driver| Client::new(driver, closing))
        };
        let mut connected = connect(&self.tls);
        if self.plain_will_do && connected.as_ref().is_err_and(is_about_tls) {
            connected = connect(&Connector::plain());
        }
        connected.map_err(|error| {
            let known = hints.into_iter().find(|(code, _)| error.code() == Some(code));
            let (why, hint) = match known {
                Some((_, PASSWORDS)) => (error.said(), self.password_hint()),
                Some((_, hint)) => (error.said(), hint.to_owned()),
                None if error.said() == NO_PASSWORD => {
                    ("the server asks for a password".to_owned(), self.password_hint())
                }
                None if matches!(disagreed(&error), Some(Disagreed::NotOffered)) => {
                    ("it does not offer TLS".to_owned(), tls::missing_hint("sslmode=disable"))
                }
                None if is_about_tls(&error) => {
                    let why = format!("TLS failed: {}", error.said());
                    (why, tls::refused_hint("sslrootcert"))
                }
                None if is_no_answer(&error) => (
                    format!("what listens there does not answer as PostgreSQL ({})", error.said()),
                    "check host and port, and that they are those of a PostgreSQL server"
                        .to_owned(),
                ),
                None => (error.said(), OTHERWISE.to_owned()),
            };
            SqlError::Connect { server: self.name.clone(), why, hint }
        })
    }

    /// Parses the part after the scheme. `secret` adds a password, and returns why it could not.
    fn parsed(
        rest: &str,
        secret: impl FnOnce(&mut Config) -> Option<String>,
    ) -> Result<Self, SqlError> {
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
        let (known, taken) = parameters::take(&text, &PARAMETERS);
        let mut config: Config = known.parse().map_err(|error| refuse(cause(&error)))?;
        if config.get_user().is_none() {
            let from =
                ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
            config.user(&from.ok_or_else(|| refuse("it names no user".to_owned()))?);
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host_path("/run/postgresql");
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
            let addresses = config.get_hostaddrs().to_vec();
            local = addresses.iter().all(IpAddr::is_loopback);
            if config.get_hosts().is_empty() {
                for address in addresses {
                    config.host(&address.to_string());
                }
            }
        }
        let unread = secret(&mut config);
        let wanted = wanted_tls(&taken, local).map_err(refuse)?;
        let over_network = !config.get_hostaddrs().is_empty();
        let client = if over_network { wanted.client() } else { Ok(None) };
        let client = client.map_err(|why| SqlError::Connect {
            server: without_password(&text),
            why,
            hint:
                "see sslrootcert, sslcert and sslkey in the address, or PGSSLROOTCERT, PGSSLCERT \
                   and PGSSLKEY in the environment"
                    .to_owned(),
        })?;
        let plain_will_do = over_network && wanted.mode == Mode::Prefer;
        let otherwise = if plain_will_do { Otherwise::DoWithout } else { Otherwise::Refuse };
        let tls = Connector { client, otherwise, closing: Arc::default() };
        // Over the network, the connector sees every byte, with or without TLS.
        if over_network {
            config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        } else {
            config.ssl_mode(SslMode::Disable);
        }
        config.connect_timeout(PATIENCE).tcp_user_timeout(SILENCE).application_name("blockstone");
        let mode = if over_network { wanted.mode } else { Mode::Disable };
        let (name, secured) = (without_password(&text), Tls { mode, ..wanted });
        Ok(Self { name, config, local, tls, secured, plain_will_do, unread, trust: None })
    }
}

impl ServerAddress for Address {
    type Connection = Client;

    fn parse(rest: &str) -> Result<Self, SqlError> {
        Self::parsed(rest, add_password)
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
        let mut client = Trust::dial(self.trust.as_ref(), &self.name, || self.dial_as_user())?;
        Trust::check(self.trust.as_ref(), &self.name, &self.peers())?;
        let set = client.batch_execute(OWN_NAMES_ONLY);
        set.during("set up the session")?;
        Ok(client)
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
        // Without CASCADE, which would also drop other users' views on these tables.
        let drop = format!("BEGIN; {tables} DROP SCHEMA IF EXISTS {SCHEMA}; COMMIT");
        owner.batch_execute(&drop).during(WHAT)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn addresses_are_understood_or_refused_with_a_hint() {
        let address = Address::parse("//me@127.0.0.1:5433/bench").unwrap();
        assert!(address.local);
        assert_eq!(address.config.get_dbname(), Some("bench"));
        assert!(Address::parse("//me@localhost/bench").unwrap().local);
        for wrong in ["//me@h:port/d", "//me@127.0.0.1/d?sslmode=verify-some"] {
            let error = Address::parse(wrong).unwrap_err().told();
            assert!(error.contains("\nhint: "), "{error}");
        }
        for no_url in ["foo", "", "/etc/passwd", "host=/run user=me"] {
            let error = Address::parse(no_url).unwrap_err().told();
            assert!(error.contains("`//` must follow") && !error.contains("EOF"), "{error}");
        }
        let error = Address::parse("//me@no-such-host.invalid/d").unwrap_err().told();
        assert!(error.contains("no-such-host.invalid cannot be resolved"), "{error}");
    }

    /// Returns the error of connecting to a server that sends `answer` and closes.
    fn refused_by(answer: &'static [u8]) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The client asks again without TLS.
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.read(&mut [0; 64]);
                let _ = stream.write_all(answer);
            }
        });
        let address = Address::parse(&format!("//me@127.0.0.1:{port}/d")).unwrap();
        address.connect().map(drop).unwrap_err().told()
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
        let error = closed.unwrap_err().told();
        assert!(error.contains("refused") && error.contains("is running"), "{error}");
    }
}
