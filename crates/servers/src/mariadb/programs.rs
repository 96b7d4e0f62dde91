//! A private server: its programs, and its creation.

use std::path::{Path, PathBuf};

use blockstone_sys::child::Signal;
use mysql::OptsBuilder;

use super::Address;
use crate::family::{Family, IoRefused, OptionValue, Settings, TargetOption};
use crate::options::Io;
use crate::spec::TargetSpec;
use crate::sql::error::SqlError;
use crate::sql::private::Recipe;
use crate::sql::scratch::{self, Home, Server};
use crate::sql::server::{self, SCRATCH};

pub const FAMILY: Family = Family {
    name: "mariadb",
    in_process: false,
    samples_sessions: false,
    through_page_cache: true,
    io_bounded: None,
    io,
    options: &[
        TargetOption {
            name: "mariadb-conf",
            doc: "Start the private MariaDB server with this setting",
            value: OptionValue::Setting,
        },
        TargetOption {
            name: "mariadb-bin",
            doc: "Directory of the MariaDB programs [default: the usual places]",
            value: OptionValue::Programs,
        },
    ],
    durable_settings: &[("innodb_flush_log_at_trx_commit", &["1"])],
};

fn io(io: Io, spec: &TargetSpec) -> Result<Settings, IoRefused> {
    let method = match io {
        Io::Direct => "O_DIRECT",
        Io::Buffered => "fsync",
    };
    server::io(spec, ("innodb_flush_method", method))
}

const PROGRAMS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin"];
/// Connections in addition to those of the sessions.
const MORE_CONNECTIONS: u32 = 20;
/// Settings for sampling the waits of sessions; of the waits, those for files and locks are
/// enabled.
const WAITS_SAMPLED: [&str; 2] =
    ["--performance-schema=ON", "--performance-schema-consumer-events-waits-current=ON"];
const SOCKET: &str = "server.sock";
const PASSWORD: &str = "password.sql";

pub struct Programs {
    install: PathBuf,
    daemon: PathBuf,
}

impl Recipe for Programs {
    type Address = Address;
    const USERS: &'static [&'static str] = &["mysql", "nobody"];
    const END: Signal = Signal::KILL;

    fn find(spec: &TargetSpec) -> Result<Self, SqlError> {
        let programs = spec.programs.as_deref();
        let find = |name| scratch::find(name, programs, &PROGRAMS);
        Ok(Self { install: find("mariadb-install-db")?, daemon: find("mariadbd")? })
    }

    fn program(&self) -> &Path {
        &self.daemon
    }

    fn start(&self, spec: &TargetSpec, home: &Home) -> Result<Server, SqlError> {
        // Relative to the working directory, which is held open: a path could be redirected.
        let data = "--datadir=./data".to_owned();
        let page = format!("--innodb-page-size={}", spec.options.block_bytes.get());
        let plain = [
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ];
        let mut arguments = plain.map(str::to_owned).to_vec();
        arguments.extend([page.clone(), data.clone()]);
        home.run(&self.install, &arguments, "make a MariaDB server")?;
        // The server reads it before it accepts the first connection.
        let password = format!("ALTER USER root@localhost IDENTIFIED BY '{}';\n", home.password());
        home.secret(PASSWORD, &password)?;
        let mut arguments = ["--no-defaults", "--skip-networking"].map(str::to_owned).to_vec();
        arguments.extend([
            page,
            data,
            // Relative to the data directory, because socket addresses must be short.
            format!("--socket=../{SOCKET}"),
            format!("--init-file=../{PASSWORD}"),
            format!("--innodb-buffer-pool-size={}", spec.options.cache_bytes.get()),
            format!("--max-connections={}", spec.sessions + MORE_CONNECTIONS),
        ]);
        arguments.extend(WAITS_SAMPLED.map(str::to_owned));
        arguments.extend(spec.settings.iter().map(|(name, value)| format!("--{name}={value}")));
        home.start(&self.daemon, &arguments, "a private MariaDB server")
    }

    fn address(&self, home: &Home) -> Address {
        let socket = format!("{}/{SOCKET}", home.short());
        let opts = OptsBuilder::new().user(Some("root")).pass(Some(home.password()));
        Address::private(format!("mariadb:{SCRATCH}"), socket, opts)
    }
}
