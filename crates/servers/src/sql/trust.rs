//! Trust in a server that was found on this machine and not named by the user.

use blockstone_sys::peer::{self, Peer};
use blockstone_sys::{child, thread};

use super::error::SqlError;

/// The user who must be at the other end of a connection, and the one as whom it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// User of the server's process. Root and this user are trusted too.
    pub uid: u32,
    /// User as whom root connects.
    pub as_user: Option<u32>,
}

impl Trust {
    /// Does `work`, which connects.
    pub fn dial<T>(
        trust: Option<&Self>,
        server: &str,
        work: impl FnOnce() -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let Some(uid) = trust.and_then(|trust| trust.as_user) else { return work() };
        thread::as_user(uid, work).unwrap_or_else(|error| {
            let (why, hint) = (format!("act as user {uid}: {error}"), "see its address".to_owned());
            Err(SqlError::Connect { server: server.to_owned(), why, hint })
        })
    }

    /// Fails if another user listens at the other end of a connection to one of these peers.
    pub fn check(trust: Option<&Self>, server: &str, peers: &[Peer]) -> Result<(), SqlError> {
        let Some(trust) = trust else { return Ok(()) };
        let trusted = [0, child::own_uid(), trust.uid];
        let mut listeners = peers.iter().flat_map(peer::listeners);
        match listeners.find(|uid| !trusted.contains(uid)) {
            None => Ok(()),
            Some(uid) => Err(SqlError::Connect {
                server: server.to_owned(),
                why: format!("user {uid} listens there, who is not the user of the server"),
                hint: "name the server with --db if that is right".to_owned(),
            }),
        }
    }
}
