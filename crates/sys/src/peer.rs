//! Shuts down this process's connections to a server that does not answer: callers that wait for
//! its answer get an error.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, getpeername, shutdown};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    Net(SocketAddr),
    /// Name of its socket, without the directory: a server may know that by another path.
    Local(OsString),
}

/// Shuts down all connections of this process to `peer`, and returns how many there were.
pub fn hang_up(peer: &Peer) -> usize {
    connections(peer).filter(|socket| shutdown(socket, Shutdown::Both).is_ok()).count()
}

/// Returns the users who listen at the other ends of this process's connections to `peer`, as they
/// were when they began to listen.
pub fn listeners(peer: &Peer) -> Vec<u32> {
    let users = connections(peer).filter_map(|socket| {
        let listener = rustix::net::sockopt::socket_peercred(&socket).ok()?;
        Some(listener.uid.as_raw())
    });
    users.collect()
}

/// Returns a duplicate of each connection of this process to `peer`. Each must be closed before the
/// next is taken: it could have the number of a descriptor that is still to come.
fn connections(peer: &Peer) -> impl Iterator<Item = OwnedFd> {
    let entries = std::fs::read_dir("/proc/self/fd");
    let numbers: Vec<i32> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        .collect();
    let sockets = numbers.into_iter().filter_map(duplicate);
    sockets.filter(|socket| peer_of(socket.as_fd()).as_ref() == Some(peer))
}

/// Shuts down the connection whose descriptor is `number`, so that a reader finds end-of-file.
pub fn hang_up_socket(number: i32) {
    // If it has been closed meanwhile, there is nothing to read.
    let _ = duplicate(number).map(|socket| shutdown(&socket, Shutdown::Both));
}

/// Duplicates a descriptor of the same open file: from here on it cannot become another file.
fn duplicate(number: i32) -> Option<OwnedFd> {
    // SAFETY: the number is only passed to fcntl(2), which fails if it is no longer a descriptor.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_dupfd_cloexec(borrowed, 0).ok()
}

fn peer_of(socket: BorrowedFd) -> Option<Peer> {
    let address = getpeername(socket).ok()??;
    if address.address_family() == AddressFamily::UNIX {
        let local = SocketAddrUnix::try_from(address).ok()?;
        let path = local.path()?.to_string_lossy().into_owned();
        return Some(Peer::Local(Path::new(&path).file_name()?.to_owned()));
    }
    SocketAddr::try_from(address).ok().map(Peer::Net)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn only_connections_to_the_peer_end() {
        let [silent, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let address = silent.local_addr().unwrap();
        let mut to_silent = TcpStream::connect(address).unwrap();
        let to_other = TcpStream::connect(other.local_addr().unwrap()).unwrap();
        let waiting = std::thread::spawn(move || to_silent.read(&mut [0]).unwrap());
        while hang_up(&Peer::Net(address)) == 0 {}
        assert_eq!(waiting.join().unwrap(), 0, "the end of the stream");
        to_other.set_nonblocking(true).unwrap();
        let error = (&to_other).read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_socket_is_known_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let _silent = UnixListener::bind(dir.path().join("server.sock")).unwrap();
        let mut stream = UnixStream::connect(dir.path().join("server.sock")).unwrap();
        assert_eq!(hang_up(&Peer::Local("other.sock".into())), 0);
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(listeners(&Peer::Local("server.sock".into())), [own]);
        assert_eq!(hang_up(&Peer::Local("server.sock".into())), 1);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        let (mut one, _other) = UnixStream::pair().unwrap();
        hang_up_socket(one.as_raw_fd());
        assert_eq!(one.read(&mut [0]).unwrap(), 0);
    }
}
