//! Monitoring a database that others use: its counters at each tick, samples of its sessions in
//! between.
//!
//! A [`Monitor`] is opened from an address through the [`registry`]. It creates nothing in the
//! server and needs no schema there; what its user may not see, or the server does not count, is
//! unmeasured and says why. Its own session is in nothing that it tells, as far as a server tells
//! the sessions apart: what its queries visit in the catalogue is not taken off.
//!
//! To add a database: one file, one line in `monitor/registry.rs`, its queries in
//! `sql/monitor/<database>/*.sql`; the suite in `tests/monitor.rs` then runs on it.
//!
//! ```no_run
//! let mut monitor = blockstone_target::monitor::open("postgres://me@localhost/bench")?;
//! let mut readings = Vec::new();
//! monitor.counters(&mut readings)?;
//! monitor.sessions(&mut readings)?;
//! assert!(readings.iter().any(|reading| reading.probe == "sessions"));
//! # Ok::<(), blockstone_target::SqlError>(())
//! ```

mod accounts;
mod behind;
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
    /// The series that it tells, as [`blockstone_base::database`] declares them.
    fn series(&self) -> &'static [&'static Schema];

    /// Appends what the server counted so far: rows of all series but `session` and `sessions`.
    /// Meant for once a second; what takes long may be as of an earlier call, or left out until it
    /// is due again. When the server does not answer, only [`Monitor::reconnect`] may be called.
    fn counters(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError>;

    /// Appends what each session that works does now, how many there are, and the text of
    /// statements that were not seen before. One query, meant for up to ten times a second. When
    /// the server does not answer, only [`Monitor::reconnect`] may be called.
    fn sessions(&mut self, readings: &mut Vec<Reading>) -> Result<(), SqlError>;

    /// Columns of its series that were not measured, as of the last call: probe, column, reason.
    fn unmeasured(&self) -> Missing;

    fn describe(&self) -> Server;

    /// The server's processes, or its threads, with their roles; empty when it is not on this
    /// machine.
    fn processes(&mut self) -> Vec<(Member, String)>;

    /// Reconnects after the server went away. Counters continue where they were.
    fn reconnect(&mut self) -> Result<(), SqlError>;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Its address, without the password.
    pub address: String,
    /// The product, as in `PostgreSQL`.
    pub product: String,
    /// What stands before the roles of its processes.
    pub family: &'static str,
    /// What tells it from others: `postgres@5432`, of another host `postgres@10.0.0.7:5432`.
    pub instance: String,
    pub version: String,
    pub settings: Vec<(String, String)>,
    pub is_local: bool,
    pub pid: Option<u32>,
}

/// The name of a server among others, by where it is reached; on this host that which its processes
/// have.
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

/// Connects to the server at `address`, whose scheme says which database it is.
pub fn open(address: &str) -> Result<Box<dyn Monitor>, SqlError> {
    let (scheme, rest) = address.split_once(':').unwrap_or((address, ""));
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
        let error = open("oracle://scott:tiger@host/db").err().unwrap().to_string();
        assert!(error.contains("oracle") && error.contains("\nhint: "), "{error}");
        assert!(!error.contains("tiger"), "{error}");
    }
}
