//! A private cluster: its programs, and how it is made.

use std::path::{Path, PathBuf};
use std::process::Command;

use blockstone_sys::child::Signal;
use postgres::Config;
use postgres::config::SslMode;

use super::address::Address;
use super::tls::Connector;
use crate::family::{IoRefused, Settings};
use crate::spec::{Io, TargetSpec};
use crate::sql::error::SqlError;
use crate::sql::private::Recipe;
use crate::sql::scratch::{self, Home, Server};
use crate::sql::server::{self, SCRATCH};
use crate::sql::tls::{Mode, Tls};

/// Where distributions put the programs of each version.
const PROGRAMS: [&str; 4] =
    ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/bin"];
/// The cluster's superuser and database.
const NAME: &str = "blockstone";
/// Connections beside those of the sessions: owner, watcher, loaders, some to spare.
const MORE_CONNECTIONS: u32 = 20;

pub struct Cluster {
    initdb: PathBuf,
    postgres: PathBuf,
    /// Where a setting names one: it is part of the socket's name too.
    port: Option<u16>,
}

/// The version from which on a cluster can pass by the page cache.
const DIRECT_SINCE: u32 = 16;

impl Cluster {
    /// The major version of its programs; none where they do not say.
    pub fn version(spec: &TargetSpec) -> Result<Option<u32>, SqlError> {
        Ok(major(&Self::find(spec)?.postgres))
    }

    pub fn io(io: Io, spec: &TargetSpec) -> Result<Settings, IoRefused> {
        const HINT: &str = "PostgreSQL 16 and later have debug_io_direct; --pg-bin names the \
                            directory of their programs";
        let settings = server::io(spec, ("debug_io_direct", "data,wal"))?;
        if io == Io::Buffered {
            // As it does by itself.
            return Ok(Settings::new());
        }
        match Self::find(spec).ok().and_then(|found| major(&found.postgres)) {
            Some(major) if major >= DIRECT_SINCE => Ok(settings),
            Some(major) => {
                let why = format!("PostgreSQL {major} reads and writes through the page cache");
                IoRefused::of(why, HINT)
            }
            None => IoRefused::of("the version of its programs is not known", HINT),
        }
    }
}

/// The version that a program says it has.
fn major(program: &Path) -> Option<u32> {
    let said = Command::new(program).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    said.split_whitespace().find_map(|word| word.split(['.', 'b', 'r', 'd']).next()?.parse().ok())
}

impl Recipe for Cluster {
    type Address = Address;
    const USERS: &'static [&'static str] = &["postgres", "nobody"];
    const END: Signal = Signal::QUIT;

    fn find(spec: &TargetSpec) -> Result<Self, SqlError> {
        let programs = spec.programs.as_deref();
        let find = |name| scratch::find(name, programs, &PROGRAMS);
        let port = spec.settings.iter().rfind(|(name, _)| name == "port");
        let port = port.and_then(|(_, value)| value.parse().ok());
        Ok(Self { initdb: find("initdb")?, postgres: find("postgres")?, port })
    }

    fn program(&self) -> &Path {
        &self.postgres
    }

    fn start(&self, spec: &TargetSpec, home: &Home) -> Result<Server, SqlError> {
        let data = home.path().join("data");
        let mut command = Command::new(&self.initdb);
        command.args(["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
        command.arg(format!("--username={NAME}")).arg("--pgdata").arg(&data);
        command.arg("--pwfile").arg(home.secret("password", home.password())?);
        home.run(&mut command, "make a cluster")?;
        let mut command = Command::new(&self.postgres);
        command.arg("-D").arg(&data).args(["-c", "listen_addresses="]);
        // Relative to the data directory: an address of a socket must be short.
        command.args(["-c", "unix_socket_directories=..", "-c", "unix_socket_permissions=0700"]);
        let connections = spec.sessions + MORE_CONNECTIONS;
        for (name, value) in [
            ("shared_buffers", format!("{}kB", (spec.cache.get() / 1024).max(128))),
            ("max_connections", connections.to_string()),
        ] {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        for (name, value) in &spec.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        home.start(command, "a private cluster")
    }

    fn address(&self, home: &Home) -> Address {
        let mut config = Config::new();
        config.host_path(home.short()).user(NAME).password(home.password());
        config.dbname("postgres").application_name("blockstone");
        config.ssl_mode(SslMode::Disable);
        if let Some(port) = self.port {
            config.port(port);
        }
        let name = format!("postgres:{SCRATCH}");
        let tls = Connector(None);
        let secured = Tls { mode: Mode::Disable, roots: None, identity: None };
        Address { name, config, local: true, tls, secured, plain_will_do: false, unread: None }
    }
}
