//! Monitoring of a database with other users: its counters at each tick, and samples of its
//! sessions in between.
//!
//! A [`Monitor`] is opened from an address through the [`registry`]. It creates nothing in the
//! server and needs no schema there. Values that its user may not see, or that the server does not
//! count, are unmeasured with a reason. Its own session is excluded from all it reports, as far as
//! the server tells sessions apart: accesses of its queries to the catalogue are not subtracted.
//!
//! To add a database: one file, one line in `monitor/registry.rs`, its queries in
//! `sql/monitor/<database>/*.sql`; the suite in `tests/monitor` then runs on it.
//!
//! ```no_run
//! let mut monitor = blockstone_servers::monitor::open("postgres://me@localhost/bench")?;
//! let mut readings = Vec::new();
//! monitor.counters(&mut readings)?;
//! monitor.sessions(&mut readings)?;
//! assert!(readings.iter().any(|reading| reading.probe == "sessions"));
//! # Ok::<(), blockstone_servers::SqlError>(())
//! ```

mod accounts;
mod behind;
pub mod local;
mod mariadb;
mod own;
mod pace;
mod postgres;
pub(crate) mod recent;
pub mod registry;
mod reported;
mod run;
mod steady;
mod text;
mod values;

use blockstone_base::column::{Reading, Schema};
use blockstone_sys::peer::Peer;

use crate::sql::Member;
use crate::sql::error::SqlError;
use crate::sql::host::without_password;
use crate::unmeasured::Missing;

pub const APPLICATION: &str = "blockstone watch";

pub trait Monitor: Send {
    /// The series that it reports, as declared in [`blockstone_base::database`].
    fn series(&self) -> &'static [&'static Schema];

    /// Appends the server's cumulative counters: rows of all series but `session` and `sessions`.
    /// Meant for once per second; results of expensive queries may be from an earlier call, or
    /// missing until they are due again. If the server does not respond, only
    /// [`Monitor::reconnect`] may be called.
    fn counters(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError>;

    /// Appends the current activity of each working session, the number of sessions, and the text
    /// of new statements. Takes one query, and is meant for up to ten times per second. If the
    /// server does not respond, only [`Monitor::reconnect`] may be called.
    fn sessions(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError>;

    /// Columns of its series that were not measured by the last call: probe, column, reason.
    fn unmeasured(&self) -> Missing;

    fn describe(&self) -> Server;

    /// The server's processes or threads with their roles; empty if it is not on this machine.
    fn processes(&mut self) -> Vec<(Member, String)>;

    /// Reconnects after the connection was lost. Counters continue from their last values.
    fn reconnect(&mut self) -> Result<(), SqlError>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The server's address, without the password.
    pub address: String,
    /// The product, such as `PostgreSQL`.
    pub product: String,
    /// Prefix of the roles of its processes.
    pub family: &'static str,
    /// Identifies the server: `postgres@5432`, or `postgres@10.0.0.7:5432` on another host.
    pub instance: String,
    pub version: String,
    pub settings: Vec<(String, String)>,
    pub is_local: bool,
    pub pid: Option<u32>,
}

/// Returns a server's name, by the address it is reached at; on this host, the same as its
/// processes have.
fn instance(family: &str, peers: &[Peer], is_local: bool) -> String {
    let net = peers.iter().find_map(|peer| match peer {
        Peer::Net(address) => Some(address),
        Peer::Local(_) => None,
    });
    let socket = peers.iter().find_map(|peer| match peer {
        Peer::Local(name) => Some(name.to_string_lossy()),
        Peer::Net(_) => None,
    });
    match (net, socket) {
        (Some(address), _) if is_local => format!("{family}@{}", address.port()),
        (Some(address), _) => format!("{family}@{address}"),
        (None, Some(name)) => {
            let port = name.rsplit('.').next().filter(|port| port.parse::<u16>().is_ok());
            format!("{family}@{}", port.unwrap_or(&name))
        }
        (None, None) => family.to_owned(),
    }
}

/// A monitor, or why the server cannot be monitored.
pub type Opened = Result<Box<dyn Monitor>, SqlError>;

/// Connects to the server at `address`, whose scheme names the database.
pub fn open(address: &str) -> Opened {
    let (scheme, rest) = address.split_once(':').unwrap_or((address, ""));
    if scheme == local::SCHEME {
        return local::connect(rest);
    }
    match registry::find(scheme) {
        Some(entry) => (entry.open)(rest),
        None => Err(SqlError::Address {
            address: without_password(address),
            why: format!("no monitor for {scheme:?}"),
            hint: "postgres://user@host/database, mysql://user@host or run:last",
        }),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::hint::Hint as _;

    use super::*;

    #[test]
    fn servers_are_told_apart_by_where_they_are_reached() {
        let net = Peer::Net("127.0.0.1:5433".parse().unwrap());
        let far = Peer::Net("[fe80::1]:5432".parse().unwrap());
        let socket = Peer::Local(".s.PGSQL.5434".into());
        assert_eq!(instance("postgres", std::slice::from_ref(&net), true), "postgres@5433");
        assert_eq!(instance("postgres", &[net], false), "postgres@127.0.0.1:5433");
        assert_eq!(instance("postgres", &[far], false), "postgres@[fe80::1]:5432");
        assert_eq!(instance("postgres", &[socket], true), "postgres@5434");
        let other = Peer::Local("mysqld.sock".into());
        assert_eq!(instance("mariadb", &[other], true), "mariadb@mysqld.sock");
    }

    #[test]
    fn an_address_that_nobody_knows_is_refused() {
        let error = open("oracle://scott:tiger@host/db").err().unwrap().told();
        assert!(error.contains("oracle") && error.contains("\nhint: "), "{error}");
        assert!(!error.contains("tiger"), "{error}");
    }
}
