//! A private server: made for a run, reached through a socket in its own directory, gone with it.

use std::process::Command;

use blockstone_sys::child::Signal;
use mysql::OptsBuilder;

use super::{Address, SCRATCH, usual};
use crate::spec::TargetSpec;
use crate::sql::error::SqlError;
use crate::sql::scratch::{self, Home, Server};

/// Where distributions put the programs.
const PROGRAMS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/mysql/bin"];
/// Who it runs as where this program is the superuser.
const USERS: [&str; 2] = ["mysql", "nobody"];
/// Connections beside those of the sessions.
const MORE_CONNECTIONS: u32 = 20;
/// What lets us see what sessions wait for; of waits, files and locks are watched.
const WAITS_SAMPLED: [&str; 2] =
    ["--performance-schema=ON", "--performance-schema-consumer-events-waits-current=ON"];
/// The socket within its home.
const SOCKET: &str = "server.sock";

/// A server that runs.
#[derive(Debug)]
pub struct Scratch {
    /// How to reach it.
    pub address: Address,
    home: Home,
    server: Server,
}

impl Scratch {
    /// Makes and starts it in the first place of `spec`.
    pub fn make(spec: &TargetSpec) -> Result<Self, SqlError> {
        let programs = spec.programs.as_deref();
        let [install, daemon] =
            ["mariadb-install-db", "mariadbd"].map(|name| scratch::find(name, programs, &PROGRAMS));
        let (install, daemon) = (install?, daemon?);
        let place = spec.places.first().map(|place| place.path.clone()).unwrap_or_default();
        let home = Home::make(&place, &USERS)?;
        let data = home.path().join("data");
        let page = format!("--innodb-page-size={}", spec.block.get());
        let made = || {
            let mut command = Command::new(install);
            command.args(["--no-defaults", "--auth-root-authentication-method=normal"]);
            command.args(["--skip-test-db", "--skip-name-resolve", page.as_str()]);
            command.arg(format!("--datadir={}", data.display()));
            home.run(&mut command, "make a MariaDB server")?;
            let mut command = Command::new(daemon);
            command.args(["--no-defaults", "--skip-networking", page.as_str()]);
            // Relative to the data directory: an address of a socket must be short.
            command.arg(format!("--socket=../{SOCKET}"));
            command.arg(format!("--datadir={}", data.display()));
            command.arg(format!("--innodb-buffer-pool-size={}", spec.cache.get()));
            command.arg(format!("--max-connections={}", spec.sessions + MORE_CONNECTIONS));
            command.args(WAITS_SAMPLED);
            for (name, value) in &spec.settings {
                command.arg(format!("--{name}={value}"));
            }
            home.start(command, "a private MariaDB server")
        };
        let started = made().and_then(|mut server| {
            let address = address(&home);
            server.wait_for(|| Ok(address.connect().ok()))?;
            Ok((server, address))
        });
        match started {
            Ok((server, address)) => Ok(Self { address, home, server }),
            Err(error) => {
                // Whoever opens a target that fails finds its place as it was.
                let _ = std::fs::remove_dir_all(home.path());
                Err(error)
            }
        }
    }

    /// `error` with what the log says.
    pub fn explained(&self, error: SqlError) -> SqlError {
        self.server.explained(error)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }
}

impl Drop for Scratch {
    /// Nothing in it is needed any more, so that it need not write what it holds.
    fn drop(&mut self) {
        self.server.stop(Signal::KILL);
        let _ = std::fs::remove_dir_all(self.home.path());
    }
}

fn address(home: &Home) -> Address {
    let opts =
        OptsBuilder::new().user(Some("root")).socket(Some(format!("{}/{SOCKET}", home.short())));
    let name = format!("mariadb:{SCRATCH}");
    Address { name, opts: usual(opts).into(), local: true }
}
