//! How processes of one check on several hosts meet: rank 0 listens, the others connect, and each
//! pair exchanges messages over TCP. What arrives is hostile until it is parsed: frames and waits
//! are bounded, and a message is a value of a closed type.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const PROTOCOL: &str = "blockstone.meet/1";
/// Longer messages end a connection.
const FRAME_MAX: u32 = 4 << 20;
/// A connection that does not say in this time who it is, is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(2);
const HELLO_MAX: u32 = 1024;
/// A message that started to arrive is complete in this time.
const FRAME_WITHIN: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(50);
pub const RANKS_MAX: u32 = 64;

#[derive(Debug, thiserror::Error)]
pub enum MeetError {
    #[error("listen on {address}: {source}\nhint: name an address of this host and a free port")]
    Listen { address: String, source: io::Error },
    #[error(
        "connect to {address}: {source}\n\
         hint: rank 0 listens there once it was started; check the address and the firewall"
    )]
    Connect { address: String, source: io::Error },
    #[error(
        "wait for {missing} more ranks at {address}: none came\n\
         hint: start the other ranks with the same --witness and --ranks"
    )]
    Missing { address: String, missing: u32 },
    #[error("{doing} {peer}: {source}\nhint: look at the other rank; the network may be down")]
    Io { doing: &'static str, peer: String, source: io::Error },
    #[error(
        "read a message from {peer}: {why}\n\
         hint: both sides have to be the same version of blockstone"
    )]
    Malformed { peer: String, why: String },
    #[error("wait for the other ranks: a signal asked for the end\nhint: start all ranks again")]
    Interrupted,
}

/// Who connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    protocol: String,
    /// The check, as on the command line.
    pub check: String,
    pub rank: u32,
    pub ranks: u32,
}

impl Hello {
    pub fn new(check: &str, rank: u32, ranks: u32) -> Self {
        Self { protocol: PROTOCOL.to_owned(), check: check.to_owned(), rank, ranks }
    }
}

/// A connection to another rank.
#[derive(Debug)]
pub struct Link {
    stream: TcpStream,
    peer: String,
}

impl Link {
    fn new(stream: TcpStream) -> Self {
        // Without it, short messages wait for each other.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(FRAME_WITHIN));
        let peer = stream.peer_addr().map_or_else(|_| "a rank".to_owned(), |it| it.to_string());
        Self { stream, peer }
    }

    pub fn send<T: Serialize>(&mut self, message: &T) -> Result<(), MeetError> {
        let failed = |source| MeetError::Io { doing: "send to", peer: self.peer.clone(), source };
        let body = serde_json::to_vec(message).map_err(|error| failed(error.into()))?;
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend(body);
        self.stream.write_all(&frame).map_err(failed)
    }

    /// The next message; none if nothing arrives in this time.
    pub fn receive<T: DeserializeOwned>(&mut self, wait: Duration) -> Result<Option<T>, MeetError> {
        self.receive_up_to(wait, FRAME_MAX)
    }

    fn receive_up_to<T: DeserializeOwned>(
        &mut self,
        wait: Duration,
        max: u32,
    ) -> Result<Option<T>, MeetError> {
        let mut length = [0; 4];
        let arrived = self.fill(&mut length[..1], Instant::now() + wait);
        match arrived {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        }
        let until = Instant::now() + FRAME_WITHIN;
        self.fill(&mut length[1..], until).map_err(|error| self.failed(error))?;
        let length = u32::from_le_bytes(length);
        if length > max {
            return Err(self.malformed(format!("it has {length} bytes, more than {max}")));
        }
        let mut body = Vec::new();
        // Memory follows what arrives, not what was announced.
        while body.len() < length as usize {
            let from = body.len();
            body.resize((from + 65_536).min(length as usize), 0);
            self.fill(&mut body[from..], until).map_err(|error| self.failed(error))?;
        }
        serde_json::from_slice(&body).map(Some).map_err(|error| self.malformed(error.to_string()))
    }

    fn fill(&mut self, mut out: &mut [u8], until: Instant) -> io::Result<()> {
        while !out.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(out) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => out = &mut out[bytes..],
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> MeetError {
        MeetError::Io { doing: "hear from", peer: self.peer.clone(), source }
    }

    fn malformed(&self, why: String) -> MeetError {
        MeetError::Malformed { peer: self.peer.clone(), why }
    }
}

/// Waits at `address` for all other ranks: their connections, by rank from 1 on. Whoever is not one
/// of them is sent away.
pub fn gather(
    address: &str,
    hello: &Hello,
    patience: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<Link>, MeetError> {
    let failed = |source| MeetError::Listen { address: address.to_owned(), source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let until = Instant::now() + patience;
    let count = hello.ranks.clamp(1, RANKS_MAX) as usize - 1;
    let mut links: Vec<Option<Link>> = (0..count).map(|_| None).collect();
    while links.iter().any(Option::is_none) {
        if interrupted() {
            return Err(MeetError::Interrupted);
        }
        if Instant::now() > until {
            let missing = links.iter().filter(|link| link.is_none()).count() as u32;
            return Err(MeetError::Missing { address: address.to_owned(), missing });
        }
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(AGAIN);
            continue;
        };
        let _ = stream.set_nonblocking(false);
        let mut link = Link::new(stream);
        let Ok(Some(theirs)) = link.receive_up_to::<Hello>(HELLO_WITHIN, HELLO_MAX) else {
            continue;
        };
        let is_one = theirs == Hello { rank: theirs.rank, ..hello.clone() };
        let place = (theirs.rank as usize).checked_sub(1).and_then(|at| links.get_mut(at));
        if let Some(place) = place.filter(|place| is_one && place.is_none())
            && link.send(hello).is_ok()
        {
            *place = Some(link);
        }
    }
    Ok(links.into_iter().flatten().collect())
}

/// Connects to rank 0, as soon as it listens.
pub fn join(
    address: &str,
    hello: &Hello,
    patience: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Link, MeetError> {
    let failed = |source| MeetError::Connect { address: address.to_owned(), source };
    let until = Instant::now() + patience;
    loop {
        if interrupted() {
            return Err(MeetError::Interrupted);
        }
        let found = address.to_socket_addrs().map_err(failed)?;
        let mut last = io::ErrorKind::NotFound.into();
        for socket in found {
            match TcpStream::connect_timeout(&socket, HELLO_WITHIN) {
                Ok(stream) => {
                    let mut link = Link::new(stream);
                    link.send(hello)?;
                    let answer: Option<Hello> = link.receive_up_to(HELLO_WITHIN * 2, HELLO_MAX)?;
                    if answer.is_some_and(|it| it == Hello { rank: 0, ..hello.clone() }) {
                        return Ok(link);
                    }
                    return Err(link.malformed("it expects other ranks than this".to_owned()));
                }
                Err(error) => last = error,
            }
        }
        if Instant::now() > until {
            return Err(failed(last));
        }
        thread::sleep(AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn free_address() -> String {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
    }

    #[test]
    fn ranks_meet_and_strangers_are_sent_away() {
        let address = free_address();
        let gathering = {
            let address = address.clone();
            thread::spawn(move || gather(&address, &Hello::new("x", 0, 3), PATIENCE, &|| false))
        };
        let stranger = loop {
            if let Ok(stream) = TcpStream::connect(&address) {
                break stream;
            }
        };
        (&stranger).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let joined = |rank| join(&address, &Hello::new("x", rank, 3), PATIENCE, &|| false);
        let other = join(&address, &Hello::new("y", 1, 3), PATIENCE, &|| false);
        assert!(other.is_err(), "of another check");
        let mut second = joined(2).unwrap();
        assert!(joined(7).is_err() && joined(0).is_err());
        let mut first = joined(1).unwrap();
        let mut links = gathering.join().unwrap().unwrap();
        links[1].send(&"two").unwrap();
        links[0].send(&"one").unwrap();
        assert_eq!(second.receive::<String>(PATIENCE).unwrap().unwrap(), "two");
        assert_eq!(first.receive::<String>(PATIENCE).unwrap().unwrap(), "one");
        assert!(first.receive::<String>(Duration::from_millis(10)).unwrap().is_none());
        let huge = u32::MAX.to_le_bytes();
        second.stream.write_all(&huge).unwrap();
        assert!(matches!(links[1].receive::<String>(PATIENCE), Err(MeetError::Malformed { .. })));
        first.stream.write_all(&[4, 0, 0, 0, b'{', b'}', b'}', b'}']).unwrap();
        assert!(matches!(links[0].receive::<String>(PATIENCE), Err(MeetError::Malformed { .. })));
    }

    #[test]
    fn who_does_not_come_is_not_waited_for_longer() {
        let (address, short) = (free_address(), Duration::from_millis(100));
        let hello = Hello::new("x", 0, 2);
        let missing = gather(&address, &hello, short, &|| false);
        assert!(matches!(missing, Err(MeetError::Missing { missing: 1, .. })));
        assert!(matches!(
            gather(&address, &hello, PATIENCE, &|| true),
            Err(MeetError::Interrupted)
        ));
        let nobody = join(&address, &Hello::new("x", 1, 2), short, &|| false);
        assert!(matches!(nobody, Err(MeetError::Connect { .. })));
    }
}
