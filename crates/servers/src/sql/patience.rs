//! Time limits for servers that accept a connection and then stay silent. Drivers wait forever;
//! here the connection is closed, so that they get an error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_sys::peer::{self, Peer};
use blockstone_sys::thread::scoped;
use parking_lot::Mutex;

use super::error::SqlError;

/// Time limit for a server to accept a connection and to identify itself.
pub const ANSWER: Duration = Duration::from_secs(8);
/// Time limit for removing what a run created, after the user asked the program to stop.
const REMOVAL: Duration = Duration::from_mins(1);
/// Interval for closing connections that did not exist yet when the others were closed.
const AGAIN: Duration = Duration::from_millis(100);

static KNOWN: Mutex<Vec<Peer>> = Mutex::new(Vec::new());
static REMOVING: Mutex<Option<Instant>> = Mutex::new(None);
/// Whether the user asked the program to stop while it waited for a server.
static HUNG_UP: AtomicBool = AtomicBool::new(false);

/// Runs `work` on the server `name`, and closes its connections if that takes longer than `limit`.
pub fn within<T>(
    limit: Duration,
    name: &str,
    peers: &[Peer],
    work: impl FnOnce() -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    for peer in peers {
        let mut known = KNOWN.lock();
        if !known.contains(peer) {
            known.push(peer.clone());
        }
    }
    let late = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let watch = || {
            let mut wait = limit;
            let ended = ended;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                late.store(true, Ordering::Relaxed);
                for peer in peers {
                    peer::hang_up(peer);
                }
                wait = AGAIN;
            }
        };
        scoped(scope, "patience", watch).map_err(|error| SqlError::no_thread(&error))?;
        let done = work();
        drop(end);
        done
    });
    match done {
        // A closed connection may have returned part of an answer.
        _ if is_ending() => Err(SqlError::unsuitable(
            name,
            "it was waited for when this program was asked to end",
            "start it again if that was not meant",
        )),
        _ if late.load(Ordering::Relaxed) => {
            Err(SqlError::Silent { server: name.to_owned(), seconds: limit.as_secs() })
        }
        done => done,
    }
}

/// Marks the time in which a run removes what it created: a request to stop does not immediately
/// cut that short.
pub fn removing<T>(work: impl FnOnce() -> T) -> T {
    *REMOVING.lock() = Some(Instant::now());
    let done = work();
    *REMOVING.lock() = None;
    done
}

/// Whether the program was asked to stop, so that no server responds any longer.
pub fn is_ending() -> bool {
    HUNG_UP.load(Ordering::Relaxed) && REMOVING.lock().is_none()
}

/// Closes all connections to servers, so that all who wait for one get an error, unless a run is
/// removing what it created there.
pub fn hang_up() {
    if REMOVING.lock().is_some_and(|since| since.elapsed() < REMOVAL) {
        return;
    }
    HUNG_UP.store(true, Ordering::Relaxed);
    for peer in KNOWN.lock().iter() {
        peer::hang_up(peer);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_silent_server_is_named_and_a_quick_error_stays() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peers = [Peer::Net(address)];
        let ask = || {
            let mut stream = TcpStream::connect(address).unwrap();
            match stream.read(&mut [0]) {
                Ok(0) => Err(SqlError::unsuitable("it", "closed", "none")),
                _ => Ok(()),
            }
        };
        let started = Instant::now();
        let error = within(Duration::from_millis(200), "it", &peers, ask).unwrap_err();
        assert!(matches!(error, SqlError::Silent { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(5));
        let quick = || Err::<(), _>(SqlError::Interrupted);
        let error = within(ANSWER, "it", &peers, quick).unwrap_err();
        assert!(matches!(error, SqlError::Interrupted), "{error}");
    }
}
