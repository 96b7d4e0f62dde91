//! A private cluster: made for a run, reached through a socket in its own directory, gone with it.

use std::process::Command;

use blockstone_sys::child::Signal;
use postgres::Config;

use super::address::Address;
use super::{SCRATCH, connect};
use crate::spec::TargetSpec;
use crate::sql::error::SqlError;
use crate::sql::scratch::{self, Home, Server};

/// Where distributions put the programs of each version.
const PROGRAMS: [&str; 4] =
    ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/bin"];
/// Who it runs as where this program is the superuser.
const USERS: [&str; 2] = ["postgres", "nobody"];
/// The cluster's superuser and database.
const NAME: &str = "blockstone";
/// Connections beside those of the sessions: owner, watcher, loaders, some to spare.
const MORE_CONNECTIONS: u32 = 20;

/// A cluster that runs.
#[derive(Debug)]
pub struct Cluster {
    /// How to reach it.
    pub address: Address,
    home: Home,
    server: Server,
}

impl Cluster {
    /// Makes and starts it in the first place of `spec`.
    pub fn make(spec: &TargetSpec) -> Result<Self, SqlError> {
        let programs = spec.programs.as_deref();
        let [initdb, postgres] =
            ["initdb", "postgres"].map(|name| scratch::find(name, programs, &PROGRAMS));
        let (initdb, postgres) = (initdb?, postgres?);
        let place = spec.places.first().map(|place| place.path.clone()).unwrap_or_default();
        let home = Home::make(&place, &USERS)?;
        let data = home.path().join("data");
        let made = || {
            let mut command = Command::new(initdb);
            command.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
            command.arg(format!("--username={NAME}")).arg("--pgdata").arg(&data);
            home.run(&mut command, "make a cluster")?;
            let mut command = Command::new(postgres);
            command.arg("-D").arg(&data).args(["-c", "listen_addresses="]);
            // Relative to the data directory: an address of a socket must be short.
            command.args(["-c", "unix_socket_directories=.."]);
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
        };
        let started = made().and_then(|mut server| {
            let address = address(&home);
            server.wait_for(|| Ok(connect(&address).ok()))?;
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
}

impl Cluster {
    /// `error` with what the log says.
    pub fn explained(&self, error: SqlError) -> SqlError {
        self.server.explained(error)
    }
}

impl Drop for Cluster {
    /// Nothing in it is needed any more, so that it need not write what it holds.
    fn drop(&mut self) {
        self.server.stop(Signal::QUIT);
        let _ = std::fs::remove_dir_all(self.home.path());
    }
}

fn address(home: &Home) -> Address {
    let mut config = Config::new();
    config.host_path(home.short()).user(NAME).dbname("postgres").application_name("blockstone");
    Address { name: format!("postgres:{SCRATCH}"), config, local: true }
}
