//! A network namespace private to a thread, with only a loopback interface, which therefore counts
//! exactly what the thread and its children sent.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

const LOOPBACK: &str = "lo";
const COUNTERS: &str = "/proc/thread-self/net/dev";

/// Bytes and packets of an interface, cumulative since it was created. On a loopback interface each
/// packet is sent and received once; its bytes are those of IP, without a link header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub received_bytes: u64,
    pub received_packets: u64,
}

/// Moves the calling thread into a new network namespace, with its loopback interface up; threads
/// and processes that it starts from now on are in it too. The namespace disappears with the last
/// of them. Fails without `CAP_SYS_ADMIN`.
pub fn enter() -> io::Result<()> {
    // SAFETY: the call takes a number and only changes this thread's namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(LOOPBACK.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: the pointer is readable for the call, and names an interface and its flags.
    let set = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the counters of the loopback interface in the calling thread's namespace.
pub fn loopback() -> io::Result<Traffic> {
    let text = std::fs::read_to_string(COUNTERS)?;
    parse(&text, LOOPBACK).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn parse(text: &str, interface: &str) -> Option<Traffic> {
    let line = text.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        (name.trim() == interface).then_some(counters)
    })?;
    let mut counters = line.split_whitespace().map(str::parse);
    let mut next = || counters.next()?.ok();
    Some(Traffic { received_bytes: next()?, received_packets: next()? })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use blockstone_testkit::require;

    use super::*;

    #[test]
    fn counters_of_an_interface_are_read() {
        let text =
            "Inter-|   Receive\n face |bytes    packets\n  eth0: 1 2 3\n    lo:   77    5  0\n";
        let wanted = Traffic { received_bytes: 77, received_packets: 5 };
        assert_eq!(parse(text, "lo"), Some(wanted));
        assert_eq!(parse(text, "eth1"), None);
        assert_eq!(parse("lo: many 1", "lo"), None);
    }

    #[test]
    fn what_sockets_of_a_namespace_send_is_what_its_interface_counts() {
        require!(Root);
        std::thread::spawn(|| {
            enter().unwrap();
            assert_eq!(loopback().unwrap(), Traffic::default());
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let mut client = TcpStream::connect(address).unwrap();
            let (mut served, _) = listener.accept().unwrap();
            let sender = std::thread::spawn(move || {
                served.write_all(&vec![7; 5_000_000]).unwrap();
                served
            });
            let mut bytes = vec![0; 5_000_000];
            client.read_exact(&mut bytes).unwrap();
            let served = sender.join().unwrap();
            let counted = crate::tcp::quiet(|| Ok(loopback()?.received_bytes)).unwrap();
            let sockets = crate::tcp::sockets().unwrap();
            let one = sockets.iter().find(|one| one.remote == address).unwrap();
            assert_eq!(one.received_bytes, 5_000_000);
            assert_eq!(one.sent_bytes, 0);
            // The handshake has larger headers, and not all segment counters include it.
            let headers = |it: &crate::tcp::Socket| it.sent_segments * it.header_bytes;
            let wire: u64 = sockets.iter().map(|it| it.sent_bytes + u64::from(headers(it))).sum();
            let error = wire as f64 / counted as f64 - 1.0;
            assert!(error.abs() < 0.0005, "{one:?} {counted} {error}");
            drop((client, served));
        })
        .join()
        .unwrap();
    }
}
