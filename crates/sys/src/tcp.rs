//! Kernel counters of each TCP connection in this thread's network namespace, whichever process
//! owns its sockets.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::net::{recv, send, socket_with};

/// Counters of one end of a connection, cumulative since it was created. They do not wrap, except
/// segments, which wrap at 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Distinguishes connections that have the same addresses.
    pub cookie: u64,
    /// Payload bytes sent, including retransmissions.
    pub sent_bytes: u64,
    /// Payload bytes received, each counted once.
    pub received_bytes: u64,
    /// The part of [`Socket::sent_bytes`] that was retransmitted.
    pub resent_bytes: u64,
    pub sent_segments: u32,
    pub received_segments: u32,
    /// Bytes of a segment's IP and TCP headers, including the timestamp option if both ends use it.
    pub header_bytes: u32,
}

/// From the headers of Linux: `sock_diag.h`, `netlink.h` and `inet_diag.h`.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const IPPROTO_TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;
/// Sizes of `nlmsghdr` and `inet_diag_msg`.
const HEADER: usize = 16;
const MESSAGE: usize = 72;
/// All states except listening.
const STATES: u32 = 0xbff;
const ANSWER: usize = 64 << 10;
const TIME_STAMPS: u8 = 1;

/// Returns all connections of the calling thread's network namespace, both ends of those within it.
/// Fails if the kernel has no `inet_diag`, or reports fewer counters (before 4.19).
pub fn sockets() -> io::Result<Vec<Socket>> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        ask(family as u8, &mut found)?;
    }
    Ok(found)
}

fn ask(family: u8, found: &mut Vec<Socket>) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC;
    let protocol = Some(netlink::SOCK_DIAG);
    let link = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    send(&link, &request(family), SendFlags::empty())?;
    let mut answer = vec![0; ANSWER];
    loop {
        let (read, _) = recv(&link, &mut answer, RecvFlags::empty())?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if take(&answer[..read], found)? {
            return Ok(());
        }
    }
}

fn request(family: u8) -> Vec<u8> {
    const ID: [u8; 48] = [0; 48];
    let len = (HEADER + 8 + ID.len()) as u32;
    let mut bytes = Vec::with_capacity(len as usize);
    bytes.extend(len.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    bytes.extend(STATES.to_ne_bytes());
    bytes.extend(ID);
    bytes
}

/// Takes the sockets of one answer; returns whether it was the last.
fn take(mut bytes: &[u8], found: &mut Vec<Socket>) -> io::Result<bool> {
    while bytes.len() >= HEADER {
        let len = (number(bytes, 0) as usize).clamp(HEADER, bytes.len());
        let (message, kind) = (&bytes[HEADER..len], number(bytes, 4) as u16);
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = if message.len() >= 4 { number(message, 0) as i32 } else { 0 };
                return Err(io::Error::from_raw_os_error(-code));
            }
            _ => found.extend(parse(message)?),
        }
        bytes = &bytes[len.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

/// Parses one connection; `None` for one without counters, as in the last state.
fn parse(message: &[u8]) -> io::Result<Option<Socket>> {
    if message.len() < MESSAGE {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let port = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
    let address = |at: usize| -> IpAddr {
        if message[0] == libc::AF_INET as u8 {
            return Ipv4Addr::from(number(message, at).to_be()).into();
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&message[at..at + 16]);
        Ipv6Addr::from(bytes).into()
    };
    let local = SocketAddr::new(address(8), port(4));
    let remote = SocketAddr::new(address(24), port(6));
    let cookie = wide(message, 44);
    let mut attributes = &message[MESSAGE..];
    while attributes.len() >= 4 {
        let len = u16::from_ne_bytes([attributes[0], attributes[1]]) as usize;
        let len = len.clamp(4, attributes.len());
        if u16::from_ne_bytes([attributes[2], attributes[3]]) == INET_DIAG_INFO {
            return counted(&attributes[4..len], (local, remote, cookie)).map(Some);
        }
        attributes = &attributes[len.next_multiple_of(4).min(attributes.len())..];
    }
    Ok(None)
}

/// Parses the fields of `tcp_info`, by their offsets in linux/tcp.h.
fn counted(
    info: &[u8],
    (local, remote, cookie): (SocketAddr, SocketAddr, u64),
) -> io::Result<Socket> {
    const LAST: usize = 208;
    if info.len() < LAST + 8 {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let ip = if local.is_ipv4() { 20 } else { 40 };
    let options = if info[5] & TIME_STAMPS == 0 { 0 } else { 12 };
    Ok(Socket {
        local,
        remote,
        cookie,
        received_bytes: wide(info, 128),
        sent_segments: number(info, 136),
        received_segments: number(info, 140),
        sent_bytes: wide(info, 200),
        resent_bytes: wide(info, LAST),
        header_bytes: ip + 20 + options,
    })
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn wide(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(eight)
}

/// Returns the counters of one connection of this process, whose local and remote ends were `ends`:
/// a closed one no longer knows them.
pub fn of_stream(stream: &TcpStream, ends: (SocketAddr, SocketAddr)) -> io::Result<Socket> {
    let mut info = [MaybeUninit::<u8>::zeroed(); 256];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: both pointers are writable for the call, the first for the `len` bytes named.
    let got = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the bytes were initialised to zero, and any byte is valid.
    let info: Vec<u8> = info.iter().map(|byte| unsafe { byte.assume_init() }).collect();
    counted(&info[..(len as usize).min(info.len())], (ends.0, ends.1, 0))
}

/// Reads a counter until it has stopped changing for a moment: acknowledgements arrive up to 40 ms
/// late.
pub fn quiet(mut read: impl FnMut() -> io::Result<u64>) -> io::Result<u64> {
    const STILL: Duration = Duration::from_millis(120);
    const PATIENCE: Duration = Duration::from_secs(2);
    let until = Instant::now() + PATIENCE;
    let mut last = read()?;
    let mut since = Instant::now();
    while since.elapsed() < STILL && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
        let now = read()?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn both_ends_of_a_connection_count_its_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (mut served, _) = listener.accept().unwrap();
        served.write_all(&[1; 1000]).unwrap();
        client.read_exact(&mut [0; 1000]).unwrap();
        client.write_all(&[1; 10]).unwrap();
        served.read_exact(&mut [0; 10]).unwrap();
        let all = sockets().unwrap();
        let of =
            |local, remote| *all.iter().find(|s| (s.local, s.remote) == (local, remote)).unwrap();
        let ends = (client.local_addr().unwrap(), address);
        let (one, other) = (of(ends.0, ends.1), of(ends.1, ends.0));
        assert_eq!((one.received_bytes, one.sent_bytes), (1000, 10));
        assert_eq!((other.received_bytes, other.sent_bytes), (10, 1000));
        assert_ne!(one.cookie, other.cookie);
        let own = of_stream(&served, (ends.1, ends.0)).unwrap();
        assert_eq!((own.received_bytes, own.sent_bytes, own.resent_bytes), (10, 1000, 0));
    }

    #[test]
    fn a_truncated_answer_is_an_error_or_nothing() {
        assert!(parse(&[0; MESSAGE - 1]).is_err());
        assert_eq!(parse(&[0; MESSAGE]).unwrap(), None);
        let mut found = Vec::new();
        for len in 0..64 {
            let _ = take(&[0xff; 64][..len], &mut found);
        }
        assert!(found.is_empty());
    }
}
