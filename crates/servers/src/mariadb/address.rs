//! The address of a server: user, host, and a form without the password for display.

use std::error::Error;
use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blockstone_sys::peer::Peer;
use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{ClientIdentity, Conn, DriverError as Refused, Opts, OptsBuilder, SslOpts};

use super::answer;
use crate::sql::SCHEMA;
use crate::sql::error::{DriverError, During, SqlError};
use crate::sql::host::{NAME_HINT, ServerAddress, resolve, without_password};
use crate::sql::parameters::{self, Taken};
use crate::sql::password;
use crate::sql::tls::{self, Mode, Tls};
use crate::sql::trust::Trust;

/// The table that marks the schema as created by a run.
pub const MARK: &str = "made_by_a_run";
/// Time limits for a connection and for silence on the network.
const PATIENCE: Duration = Duration::from_secs(10);
const SILENCE_MS: u32 = 30_000;
/// The longest message in bytes, unless the address sets `max_allowed_packet`. The driver would
/// otherwise trust the server's value.
const MESSAGE_MOST: usize = 64 << 20;
/// Parameters of an address that the driver does not know, with the names used by the clients of
/// MySQL and MariaDB.
const PARAMETERS: [&str; 5] =
    ["ssl-mode", "ssl-verify-server-cert", "ssl-ca", "ssl-cert", "ssl-key"];

#[derive(Clone, Debug)]
pub struct Address {
    pub name: String,
    /// The database that the address names.
    pub database: Option<String>,
    opts: Opts,
    pub local: bool,
    peers: Vec<Peer>,
    /// Whether to connect without TLS if the server does not offer it.
    plain_will_do: bool,
    /// For a server that was found and not named: who must be at the other end.
    trust: Option<Trust>,
}

/// Returns the TLS options of the address.
fn wanted_tls(taken: &Taken, is_local: bool) -> Result<Tls, String> {
    let given = |name: &str| parameters::value(taken, name);
    let verifies = match given("ssl-verify-server-cert") {
        None => None,
        Some("" | "1" | "true") => Some(true),
        Some("0" | "false") => Some(false),
        Some(other) => return Err(format!("ssl-verify-server-cert is {other}: write 1 or 0")),
    };
    let asked = given("ssl-mode").map(str::to_ascii_uppercase);
    let mut mode = match asked.as_deref() {
        None => None,
        Some("DISABLED") => Some(Mode::Disable),
        Some("PREFERRED") => Some(Mode::Prefer),
        Some("REQUIRED") => Some(Mode::Require),
        // The driver trusts the public authorities in addition to those of ssl-ca, and they issue
        // certificates to anybody for a name of their own.
        Some("VERIFY_CA") => {
            return Err("ssl-mode=VERIFY_CA is not supported; VERIFY_IDENTITY is".to_owned());
        }
        Some("VERIFY_IDENTITY") => Some(Mode::VerifyFull),
        Some(other) => {
            let known = "DISABLED, PREFERRED, REQUIRED and VERIFY_IDENTITY";
            return Err(format!("ssl-mode is {other}; there are {known}"));
        }
    };
    // ssl-ca, or verifying the certificate, implies VERIFY_IDENTITY.
    if mode.is_none() && verifies.unwrap_or(given("ssl-ca").is_some()) {
        mode = Some(Mode::VerifyFull);
    }
    let is_verified = mode == Some(Mode::VerifyFull);
    if verifies.is_some_and(|verifies| verifies != is_verified) {
        return Err("ssl-mode and ssl-verify-server-cert contradict each other".to_owned());
    }
    if given("ssl-ca").is_some() && !is_verified {
        return Err("ssl-ca has no effect where the certificate is not verified".to_owned());
    }
    let file = |name| given(name).map(PathBuf::from);
    let identity = file("ssl-cert").zip(file("ssl-key"));
    if identity.is_none() && (given("ssl-cert").is_some() || given("ssl-key").is_some()) {
        return Err("ssl-cert and ssl-key need each other".to_owned());
    }
    Ok(Tls { mode: Mode::settled(mode, is_local), roots: file("ssl-ca"), identity })
}

/// Converts the TLS options for the driver.
fn driver_tls(wanted: &Tls) -> Result<Option<SslOpts>, String> {
    // Checks the files early; the driver reads them again at each connection.
    if wanted.client()?.is_none() {
        return Ok(None);
    }
    let verifies = wanted.mode >= Mode::VerifyCa;
    let roots = wanted.roots.clone().or_else(tls::system_roots).filter(|_| verifies);
    let identity = wanted.identity.clone();
    let identity = identity.map(|(certificate, key)| ClientIdentity::new(certificate, key));
    let tls = SslOpts::default().with_root_cert_path(roots).with_client_identity(identity);
    Ok(Some(tls.with_danger_accept_invalid_certs(!verifies)))
}

impl Address {
    /// Creates the address of a private server.
    pub fn private(name: String, socket: String, opts: OptsBuilder) -> Self {
        let peers = local_peer(&socket).into_iter().collect();
        let opts = usual(opts.socket(Some(socket))).into();
        let (database, trust) = (None, None);
        Self { name, database, opts, local: true, peers, plain_will_do: false, trust }
    }

    /// Parses the address of a server that was found on this machine. No password is looked for.
    pub fn trusted(rest: &str, trust: Trust) -> Result<Self, SqlError> {
        Ok(Self { trust: Some(trust), ..Self::parsed(rest, |given| given)? })
    }

    /// Sets the name that the client reports to the server.
    pub fn named(self, application: &str) -> Self {
        let attributes = [("program_name".to_owned(), application.to_owned())];
        let opts = OptsBuilder::from_opts(self.opts.clone());
        let opts = opts.connect_attrs(Some(attributes.into_iter().collect()));
        Self { opts: opts.into(), ..self }
    }

    /// Connects, without sending anything but what begins a session.
    fn dial_as_user(&self) -> Result<Conn, SqlError> {
        let is_missing = |error: &mysql::Error| {
            matches!(error, mysql::Error::DriverError(Refused::TlsNotSupported))
        };
        let mut connected = Conn::new(self.opts.clone());
        if self.plain_will_do && connected.as_ref().is_err_and(is_missing) {
            connected =
                Conn::new(OptsBuilder::from_opts(self.opts.clone()).ssl_opts(None::<SslOpts>));
        }
        connected.map_err(|error| {
            let mut why = error.said();
            let hint = match &error {
                missing if is_missing(missing) => {
                    "it does not offer TLS".clone_into(&mut why);
                    tls::missing_hint("ssl-mode=DISABLED")
                }
                failed if is_about_tls(failed) => {
                    why = format!("TLS failed: {why}");
                    tls::refused_hint("ssl-ca")
                }
                other => hint(other).to_owned(),
            };
            SqlError::Connect { server: self.name.clone(), why, hint }
        })
    }

    /// Parses the part after the scheme. `secret` returns the password, from that of the address.
    fn parsed(
        rest: &str,
        secret: impl FnOnce(Option<String>) -> Option<String>,
    ) -> Result<Self, SqlError> {
        let name = format!("mysql:{}", without_password(rest));
        let refuse = |why: String| SqlError::Address {
            address: name.clone(),
            why,
            hint: "mysql://user@host, mysql://user@localhost?socket=/run/mysqld/mysqld.sock, or \
                   mariadb:scratch",
        };
        let (known, taken) = parameters::take(rest, &PARAMETERS);
        let given =
            Opts::from_url(&format!("mysql:{known}")).map_err(|error| refuse(error.to_string()))?;
        let password = secret(given.get_pass().map(str::to_owned));
        let mut opts = OptsBuilder::from_opts(given.clone()).pass(password);
        let database = given.get_db_name().map(str::to_owned).filter(|name| !name.is_empty());
        if let Some(socket) = given.get_socket() {
            wanted_tls(&taken, true).map_err(refuse)?;
            let peers = local_peer(socket).into_iter().collect();
            return Ok(Self {
                opts: usual(opts).into(),
                name,
                database,
                local: true,
                peers,
                plain_will_do: false,
                trust: None,
            });
        }
        let failed = |why: String, hint: &str| SqlError::Connect {
            server: name.clone(),
            why,
            hint: hint.to_owned(),
        };
        let host = given.get_ip_or_hostname().into_owned();
        let host = host.trim_matches(['[', ']']);
        let address = resolve(host).map_err(|why| failed(why, NAME_HINT))?;
        let local = address.is_loopback();
        let wanted = wanted_tls(&taken, local).map_err(refuse)?;
        let port = given.get_tcp_port();
        let mut peers = vec![Peer::Net((address, port).into())];
        if wanted.mode == Mode::VerifyFull {
            // The driver verifies the name that it connects to, and resolves it itself.
            let found = (host, port).to_socket_addrs().into_iter().flatten();
            peers.extend(found.map(Peer::Net));
        } else {
            opts = opts.ip_or_hostname(Some(address.to_string()));
        }
        let files = "see ssl-ca, ssl-cert and ssl-key in the address";
        let tls = driver_tls(&wanted).map_err(|why| failed(why, files))?;
        let plain_will_do = wanted.mode == Mode::Prefer;
        let opts = usual(opts).ssl_opts(tls).into();
        Ok(Self { name, database, opts, local, peers, plain_will_do, trust: None })
    }
}

impl ServerAddress for Address {
    type Connection = Conn;

    fn parse(rest: &str) -> Result<Self, SqlError> {
        Self::parsed(rest, |given| given.or_else(|| password::given("MYSQL_PWD")))
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_local(&self) -> bool {
        self.local
    }

    fn peers(&self) -> Vec<Peer> {
        self.peers.clone()
    }

    fn dial(&self) -> Result<Conn, SqlError> {
        let conn = Trust::dial(self.trust.as_ref(), &self.name, || self.dial_as_user())?;
        Trust::check(self.trust.as_ref(), &self.name, &self.peers)?;
        Ok(conn)
    }

    fn data_directory(link: &mut Conn) -> Option<PathBuf> {
        answer::first::<String>(link, "SELECT @@datadir").ok().flatten().map(PathBuf::from)
    }

    fn take(&self, owner: &mut Conn) -> Result<(), SqlError> {
        let taken = answer::first(owner, "SELECT GET_LOCK('blockstone', 0)");
        let taken: Option<u32> = taken.during("take the lock of a run")?;
        if taken == Some(1) {
            return Ok(());
        }
        Err(SqlError::unsuitable(&self.name, "another run uses it", "wait for its end"))
    }

    fn found_schema(owner: &mut Conn) -> Result<Option<bool>, SqlError> {
        const LOOK: &str = "look for leftovers of a run";
        let ask = "SELECT 1 FROM information_schema.schemata WHERE schema_name = ?";
        let found: Option<u32> = answer::executed(owner, ask, (SCHEMA,)).during(LOOK)?;
        if found.is_none() {
            return Ok(None);
        }
        let ask = "SELECT count(*), coalesce(sum(table_name = ?), 0) FROM information_schema.tables
            WHERE table_schema = ?";
        let known: Option<(u64, u64)> =
            answer::executed(owner, ask, (MARK, SCHEMA)).during(LOOK)?;
        // A run killed between its first two statements leaves an empty schema.
        Ok(known.map(|(tables, marks)| tables == 0 || marks > 0))
    }

    fn drop_schema(owner: &mut Conn) -> Result<(), SqlError> {
        let drop = format!("DROP DATABASE IF EXISTS {SCHEMA}");
        owner.query_drop(drop).during("remove the schema blockstone")
    }
}

/// Whether the error is a failed TLS handshake.
fn is_about_tls(error: &mysql::Error) -> bool {
    match error {
        mysql::Error::TlsError(_) => true,
        mysql::Error::IoError(error) => {
            error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>)
        }
        _ => false,
    }
}

/// Returns a hint for a server that was not reached or refused the user.
fn hint(error: &mysql::Error) -> &'static str {
    match error {
        mysql::Error::MySqlError(said) if said.code == 1045 => {
            "give the password in MYSQL_PWD or with --password-file"
        }
        mysql::Error::MySqlError(said) if said.code == 1040 => {
            "raise max_connections of the server, or ask for fewer sessions"
        }
        mysql::Error::MySqlError(_) => "check that this user may connect from here",
        mysql::Error::DriverError(_) => "check that the server is running and listens there",
        _ => "check that what listens there is MariaDB or MySQL, and its log",
    }
}

fn local_peer(socket: &str) -> Option<Peer> {
    Path::new(socket).file_name().map(|name| Peer::Local(name.to_owned()))
}

/// Sets the options of every connection: affected rows are the matched rows, not only the changed
/// ones.
fn usual(opts: OptsBuilder) -> OptsBuilder {
    let opts: Opts = opts.into();
    let most = opts.get_max_allowed_packet().unwrap_or(MESSAGE_MOST);
    OptsBuilder::from_opts(opts)
        .max_allowed_packet(Some(most))
        .prefer_socket(false)
        .db_name(None::<String>)
        .tcp_connect_timeout(Some(PATIENCE))
        .tcp_user_timeout_ms(Some(SILENCE_MS))
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS)
        .stmt_cache_size(0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use blockstone_base::hint::Hint as _;

    use super::*;

    /// Returns the error of connecting to a server that sends `answer` and closes.
    fn refused_by(answer: &'static [u8]) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer).unwrap();
        });
        let address = Address::parse(&format!("//me@127.0.0.1:{port}")).unwrap();
        let error = address.connect().map(drop).unwrap_err().told();
        server.join().unwrap();
        error
    }

    #[test]
    fn a_server_that_cannot_be_reached_is_named_in_plain_words() {
        let closed = Address::parse("//me@127.0.0.1:1").unwrap().connect().map(drop);
        let errors = [
            closed.unwrap_err().told(),
            refused_by(b""),
            refused_by(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ];
        for error in errors {
            assert!(error.starts_with("connect to mysql://me@127.0.0.1:"), "{error}");
            assert!(error.contains("\nhint: check that"), "{error}");
            assert!(!error.contains(['{', '}']), "{error}");
        }
    }
}
