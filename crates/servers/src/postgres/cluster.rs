//! A private cluster: its programs, and its creation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use blockstone_base::units::Bytes;
use blockstone_sys::child::{Program, Signal};
use postgres::Config;
use postgres::config::SslMode;

use super::address::Address;
use super::tls::Connector;
use crate::family::{IoRefused, Settings};
use crate::options::Io;
use crate::spec::TargetSpec;
use crate::sql::error::SqlError;
use crate::sql::private::Recipe;
use crate::sql::scratch::{self, Home, Server};
use crate::sql::server::{self, SCRATCH};
use crate::sql::tls::{Mode, Tls};

/// Directories in which distributions put the programs of each version.
const PROGRAMS: [&str; 4] =
    ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/bin"];
/// Name of the cluster's superuser and database.
const NAME: &str = "blockstone";
/// Names relative to the programs' working directory, which is held open: a path could be
/// redirected.
const DATA: &str = "data";
const PASSWORD: &str = "password";
/// Connections in addition to those of the sessions: owner, watcher, loaders, and some spare ones.
const MORE_CONNECTIONS: u32 = 20;

pub struct Cluster {
    initdb: PathBuf,
    postgres: PathBuf,
    /// The port if a setting names one: it is part of the socket's name too.
    port: Option<u16>,
}

/// The first version of a cluster that can bypass the page cache.
const DIRECT_SINCE: u32 = 16;

impl Cluster {
    /// Returns the major version of the programs; `None` if they do not report it.
    pub fn version(spec: &TargetSpec) -> Result<Option<u32>, SqlError> {
        Ok(major(&Self::find(spec)?.postgres))
    }

    pub fn io(io: Io, spec: &TargetSpec) -> Result<Settings, IoRefused> {
        const HINT: &str = "PostgreSQL 16 and later have debug_io_direct; --pg-bin names the \
                            directory of their programs";
        let settings = server::io(spec, ("debug_io_direct", "data,wal"))?;
        if io == Io::Buffered {
            // The default.
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

/// Returns the version that a program reports.
fn major(program: &Path) -> Option<u32> {
    const SOON: Duration = Duration::from_secs(10);
    let mut asked = Program::at(program).ok()?;
    asked.arg("--version");
    let said = asked.output(SOON, Bytes::kib(64), &mut || true).ok()?;
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
        home.secret(PASSWORD, home.password())?;
        let plain = ["--no-sync", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"];
        let mut arguments = plain.map(str::to_owned).to_vec();
        arguments.push(format!("--username={NAME}"));
        arguments.extend([format!("--pgdata={DATA}"), format!("--pwfile={PASSWORD}")]);
        home.run(&self.initdb, &arguments, "make a cluster")?;
        let mut arguments = vec!["-D".to_owned(), DATA.to_owned()];
        let mut set = |name: &str, value: &str| {
            arguments.extend(["-c".to_owned(), format!("{name}={value}")]);
        };
        set("listen_addresses", "");
        // Relative to the data directory, because socket addresses must be short.
        set("unix_socket_directories", "..");
        set("unix_socket_permissions", "0700");
        set("shared_buffers", &format!("{}kB", (spec.options.cache_bytes.get() / 1024).max(128)));
        set("max_connections", &(spec.sessions + MORE_CONNECTIONS).to_string());
        for (name, value) in &spec.settings {
            set(name, value);
        }
        home.start(&self.postgres, &arguments, "a private cluster")
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
        let tls = Connector::plain();
        let secured = Tls { mode: Mode::Disable, roots: None, identity: None };
        Address {
            name,
            config,
            local: true,
            tls,
            secured,
            plain_will_do: false,
            unread: None,
            trust: None,
        }
    }
}
