//! Meeting and communication over TCP of the sides of a check on several hosts: ranks of
//! `check coherence`, and writers and their witness in `check durability`. They send frames of 32
//! bytes, some followed by a text; the log of a witness consists of the same frames.
//!
//! Anyone who connects may be hostile. One [`Door`] serves all connections that have not identified
//! themselves, without a thread or a buffer for each: they have two seconds, and the oldest gives
//! way if there are too many. Every wait is bounded, no length is trusted, and memory grows with
//! the data that arrives. No side is authenticated: these checks belong in a trusted network.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use blockstone_base::hint::Hint;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

const PROTOCOL: &str = "blockstone.check/2";
/// Maximum number of sides connected at the same time.
pub const SIDES_MAX: u32 = 64;
/// Maximum number of connections that have not identified themselves.
const WAITING_MAX: usize = 64;
/// Number of connections accepted before the waiting ones are examined, and how often that is done
/// before anything else.
const CROWD: usize = 32;
const CROWDS_MAX: usize = 8;
/// Connections identify themselves within this time, in a text of at most this many bytes.
const HELLO_WITHIN: Duration = Duration::from_secs(2);
const HELLO_MAX: usize = 1024;
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A message that has started to arrive, or to be sent, must be complete within this time.
const MESSAGE_WITHIN: Duration = Duration::from_secs(10);
/// A side that is silent for this long is gone.
pub const SILENCE: Duration = Duration::from_secs(30);
/// Interval between polls of the connections.
pub const AGAIN: Duration = Duration::from_millis(20);
/// Size of the read buffer in bytes.
const BUFFER: usize = 128 << 10;
pub const FRAME: usize = 32;

#[derive(Debug, thiserror::Error, Hint)]
pub enum LinkError {
    #[error("listen on {address}: {source}")]
    #[hint("name an address of this host and a free port")]
    Listen { address: String, source: io::Error },
    #[error("connect to {address}: {source}")]
    #[hint(
        "start the other side first (rank 0, or check durability --serve), and check the address \
         and the firewall"
    )]
    Connect { address: String, source: io::Error },
    #[error("wait for {missing} more ranks at {address}: none came")]
    #[hint("start the other ranks with the same --witness and --ranks")]
    Missing { address: String, missing: u32 },
    #[error("talk to {peer}: {source}")]
    #[hint("{}", hint(source))]
    Talk { peer: String, source: io::Error },
    #[error("wait for the other side: a signal asked for the end")]
    #[hint("start both again")]
    Interrupted,
}

fn hint(source: &io::Error) -> &'static str {
    if is_final(source) {
        "both sides have to be the same version of blockstone, and to agree on the check"
    } else {
        "look at the other side; the network may be down"
    }
}

/// Returns whether a retry would get the same answer.
fn is_final(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::PermissionDenied)
}

pub fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

blockstone_base::named! {
    /// The numbers are stored in logs: new kinds are added at the end.
    Kind {
        /// A run begins; its description follows. `a`: the run.
        Begin = "begin",
        /// A write was acknowledged. `stream`, `a`: its sequence, `b`: its hash.
        Point = "point",
        /// Nothing: the writer is still there.
        Idle = "idle",
        /// Asks what is known of the run `a`, or of the last if it is 0.
        Ask = "ask",
        /// The run `a` was verified. `b`: whether the cut was conclusive, and whether it lost
        /// anything.
        Outcome = "outcome",
        /// From the witness: `a` points of this connection are durable in its log.
        Durable = "durable",
        /// From the witness: a testimony follows. `a`: the run.
        Testimony = "testimony",
        /// The reason of a refusal follows.
        Refused = "refused",
        /// In a log: the following points belong to the run `a`.
        Of = "of",
        /// The sender's identity follows.
        Hello = "hello",
        /// From a rank: a question or an answer follows.
        Message = "message",
    }
}

impl Kind {
    /// Returns the maximum length of the text that follows; `None` if `b` is not its length.
    pub const fn text_max(self) -> Option<u64> {
        match self {
            Self::Hello | Self::Refused => Some(HELLO_MAX as u64),
            Self::Begin => Some(16 << 10),
            Self::Testimony => Some(1 << 20),
            Self::Message => Some(4 << 20),
            Self::Point | Self::Idle | Self::Ask | Self::Outcome | Self::Durable | Self::Of => None,
        }
    }
}

/// With a text, `stream` is its hash and `b` its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub stream: u32,
    pub a: u64,
    pub b: u64,
}

impl Frame {
    pub fn new(kind: Kind, a: u64, b: u64) -> Self {
        Self { kind, stream: 0, a, b }
    }

    pub fn bytes(&self) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        let code = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        bytes[0] = code as u8 + 1;
        bytes[4..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.a.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.b.to_le_bytes());
        let sum = xxh3_64(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Parses a frame; `None` if it is not one.
    pub fn parse(bytes: &[u8; FRAME]) -> Option<Self> {
        let number = |at: usize| {
            let mut whole = [0; 8];
            whole.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(whole)
        };
        if number(24) != xxh3_64(&bytes[..24]) || bytes[1..4] != [0; 3] {
            return None;
        }
        let kind = *Kind::ALL.get(usize::from(bytes[0]).checked_sub(1)?)?;
        let stream = (number(0) >> 32) as u32;
        Some(Self { kind, stream, a: number(8), b: number(16) })
    }
}

/// A frame and the text that followed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub frame: Frame,
    pub text: String,
}

pub fn with_text(kind: Kind, a: u64, text: &str) -> Vec<u8> {
    let frame = Frame { kind, stream: xxh3_64(text.as_bytes()) as u32, a, b: text.len() as u64 };
    [&frame.bytes()[..], text.as_bytes()].concat()
}

/// Reads the next frame with its text; `None` at an orderly end.
pub fn read(from: &mut impl Read) -> io::Result<Option<Message>> {
    let mut bytes = [0; FRAME];
    match from.read_exact(&mut bytes[..1]) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        first => first?,
    }
    from.read_exact(&mut bytes[1..])?;
    let frame = Frame::parse(&bytes).ok_or_else(|| invalid("what came is not of blockstone"))?;
    let mut text = Vec::new();
    if let Some(most) = frame.kind.text_max() {
        if frame.b > most {
            return Err(invalid(format!("a text has {} bytes, more than {most}", frame.b)));
        }
        from.take(frame.b).read_to_end(&mut text)?;
        if (text.len() as u64) < frame.b {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if xxh3_64(&text) as u32 != frame.stream {
            return Err(invalid("a text is damaged"));
        }
    }
    let text = String::from_utf8(text).map_err(|_| invalid("a text is not UTF-8"))?;
    Ok(Some(Message { frame, text }))
}

/// Identity of a side: its first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    protocol: String,
    /// Name of the check, as on the command line.
    check: String,
    /// Rank 0 listens.
    rank: u32,
    ranks: u32,
}

impl Hello {
    pub fn new(check: &str, rank: u32, ranks: u32) -> Self {
        Self { protocol: PROTOCOL.to_owned(), check: check.to_owned(), rank, ranks }
    }

    pub fn bytes(&self) -> Vec<u8> {
        with_text(Kind::Hello, 0, &serde_json::to_string(self).unwrap_or_default())
    }

    fn parse(message: &Message) -> io::Result<Self> {
        let parsed = serde_json::from_str(&message.text).ok();
        parsed.filter(|_| message.frame.kind == Kind::Hello).ok_or_else(|| invalid("no greeting"))
    }

    /// Returns why these two cannot talk to each other.
    fn objection(&self, other: &Self) -> Option<String> {
        let Self { protocol, check, ranks, .. } = self;
        if (protocol, check) != (&other.protocol, &other.check) {
            return Some(format!("this is check {check}, {protocol}"));
        }
        (*ranks != other.ranks).then(|| format!("this check has {ranks} ranks"))
    }
}

/// A connection whose reads and writes have a deadline.
#[derive(Debug)]
struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

fn or_timed_out(error: io::Error) -> io::Error {
    let is_late = error.kind() == io::ErrorKind::WouldBlock;
    if is_late { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for Timed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(out).map_err(or_timed_out)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes).map_err(or_timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection to another side.
#[derive(Debug)]
pub struct Link {
    from: BufReader<Timed>,
    peer: String,
}

impl Link {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        // Otherwise short messages would wait for each other.
        stream.set_nodelay(true)?;
        let peer = stream.peer_addr()?.to_string();
        let timed = Timed { stream, until: Instant::now() };
        Ok(Self { from: BufReader::with_capacity(BUFFER, timed), peer })
    }

    /// Returns the same connection for another thread. One of them only sends.
    pub fn try_clone(&self) -> io::Result<Self> {
        Self::new(self.from.get_ref().stream.try_clone()?)
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let to = self.from.get_mut();
        to.until = Instant::now() + MESSAGE_WITHIN;
        to.write_all(bytes)
    }

    /// Receives the next message; `None` if nothing arrives in this time. A refusal is an error.
    pub fn receive(&mut self, wait: Duration) -> io::Result<Option<Message>> {
        self.from.get_mut().until = Instant::now() + wait;
        loop {
            match self.from.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.from.get_mut().until = Instant::now() + MESSAGE_WITHIN;
        let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection");
        let message = read(&mut self.from)?.ok_or_else(gone)?;
        if message.frame.kind == Kind::Refused {
            // Its text goes to a terminal.
            let why: String = message.text.chars().filter(|c| !c.is_control()).take(200).collect();
            let why = format!("it refuses: {why}");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(Some(message))
    }

    /// Returns the next frame, if it has no text, is of this kind, and has arrived completely.
    pub fn ready(&mut self, kind: Kind) -> Option<Frame> {
        let frame = Frame::parse(self.from.buffer().first_chunk::<FRAME>()?)?;
        if frame.kind != kind {
            return None;
        }
        self.from.consume(FRAME);
        Some(frame)
    }

    pub fn tell<T: Serialize>(&mut self, message: &T) -> Result<(), LinkError> {
        let text = serde_json::to_string(message).map_err(io::Error::from);
        text.and_then(|text| self.send(&with_text(Kind::Message, 0, &text)))
            .map_err(|error| self.failed(error))
    }

    /// Receives a message from the other side; `None` if nothing arrives in this time.
    pub fn hear<T: DeserializeOwned>(&mut self, wait: Duration) -> Result<Option<T>, LinkError> {
        let parse = |message: Message| match message.frame.kind {
            Kind::Message => {
                serde_json::from_str(&message.text).map_err(|it| invalid(it.to_string()))
            }
            other => Err(invalid(format!("{} is not what a rank says", other.name()))),
        };
        let heard = self.receive(wait).and_then(|message| message.map(parse).transpose());
        heard.map_err(|error| self.failed(error))
    }

    /// Sends the reason why the conversation ends.
    pub fn refuse(&mut self, why: &str) {
        let why: String = why.chars().take(200).collect();
        let _ = self.send(&with_text(Kind::Refused, 0, &why));
    }

    pub fn close(&self) {
        // The other side may have closed it already.
        let _ = self.from.get_ref().stream.shutdown(Shutdown::Both);
    }

    fn is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.from.get_ref().stream, PollFlags::RDHUP)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|changed| changed > 0)
    }

    pub fn failed(&self, source: io::Error) -> LinkError {
        LinkError::Talk { peer: self.peer.clone(), source }
    }
}

/// Listener for the other sides.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    address: String,
    hello: Hello,
    /// Connections that have not identified themselves, with their start times.
    waiting: VecDeque<(Instant, TcpStream)>,
}

impl Door {
    pub fn open(address: &str, hello: Hello) -> Result<Self, LinkError> {
        let failed = |source| LinkError::Listen { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?.to_string();
        Ok(Self { listener, address, hello, waiting: VecDeque::new() })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the next connection of the same check, and its rank; `None` if there is none now. It
    /// expects an answer: [`Hello::bytes`], or [`Link::refuse`].
    pub fn admit(&mut self) -> Option<(Link, u32)> {
        for _ in 0..CROWDS_MAX {
            let is_crowd = self.accept() == CROWD;
            let known = self.look();
            // Each was examined before it has to give way.
            let excess = self.waiting.len().saturating_sub(WAITING_MAX);
            self.waiting.drain(..excess);
            if known.is_some() || !is_crowd {
                return known;
            }
        }
        None
    }

    /// Accepts new connections; returns how many.
    fn accept(&mut self) -> usize {
        for count in 0..CROWD {
            let Ok((stream, _)) = self.listener.accept() else { return count };
            if stream.set_nonblocking(true).is_ok() {
                self.waiting.push_back((Instant::now(), stream));
            }
        }
        CROWD
    }

    /// Turns away late and unsuitable connections, up to the first suitable one, which is returned.
    fn look(&mut self) -> Option<(Link, u32)> {
        for _ in 0..self.waiting.len() {
            let (since, stream) = self.waiting.pop_front()?;
            let Some(said) = greeting(&stream).transpose() else {
                if since.elapsed() < HELLO_WITHIN {
                    self.waiting.push_back((since, stream));
                }
                continue;
            };
            let Ok(mut link) = Link::new(stream) else { continue };
            // Unread data would reset the connection before the answer arrives.
            let taken = link.receive(AGAIN);
            match said {
                Ok(theirs) => match self.hello.objection(&theirs) {
                    None if taken.is_ok() => return Some((link, theirs.rank)),
                    None => {}
                    Some(why) => link.refuse(&why),
                },
                Err(error) => link.refuse(&error.to_string()),
            }
        }
        None
    }
}

/// Returns who a connection claims to be, without consuming the data; `None` until it is complete.
fn greeting(stream: &TcpStream) -> io::Result<Option<Hello>> {
    let mut bytes = [0; FRAME + HELLO_MAX];
    let count = match stream.peek(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        count => count?,
    };
    match read(&mut &bytes[..count]) {
        Ok(Some(message)) => Hello::parse(&message).map(Some),
        Ok(None) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Connects to the listener at this address and identifies this side; retries until the patience
/// ends.
pub fn connect(
    address: &str,
    hello: &Hello,
    patience: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Link, LinkError> {
    let failed = |source| LinkError::Connect { address: address.to_owned(), source };
    let sockets: Vec<SocketAddr> = address.to_socket_addrs().map_err(failed)?.collect();
    let start = Instant::now();
    loop {
        if interrupted() {
            return Err(LinkError::Interrupted);
        }
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        let mut patience = patience;
        for socket in &sockets {
            let stream = TcpStream::connect_timeout(socket, CONNECT_WITHIN);
            match stream.and_then(Link::new) {
                Ok(mut link) => match greet(&mut link, hello) {
                    Ok(()) => return Ok(link),
                    Err(error) if is_final(&error) => return Err(link.failed(error)),
                    Err(error) => {
                        // In a crowd, a connection may have to give way before it was heard.
                        patience = patience.max(HELLO_WITHIN);
                        last = error;
                    }
                },
                Err(error) => last = error,
            }
        }
        if start.elapsed() >= patience {
            return Err(failed(last));
        }
        thread::sleep(AGAIN);
    }
}

fn greet(link: &mut Link, hello: &Hello) -> io::Result<()> {
    link.send(&hello.bytes())?;
    let theirs = Hello::parse(&link.receive(MESSAGE_WITHIN)?.ok_or(io::ErrorKind::TimedOut)?)?;
    let is_one = theirs.rank == 0 && hello.objection(&theirs).is_none();
    if is_one { Ok(()) } else { Err(invalid("it is not of this check")) }
}

/// Waits at `address` for all other ranks; returns their connections, by rank from 1 on.
pub fn gather(
    address: &str,
    hello: &Hello,
    patience: Duration,
    interrupted: &dyn Fn() -> bool,
) -> Result<Vec<Link>, LinkError> {
    let mut door = Door::open(address, hello.clone())?;
    let until = Instant::now() + patience;
    let mut links: Vec<Option<Link>> = (1..hello.ranks.min(SIDES_MAX)).map(|_| None).collect();
    let is_missing = |link: &Option<Link>| link.as_ref().is_none_or(Link::is_gone);
    while links.iter().any(is_missing) {
        if interrupted() {
            return Err(LinkError::Interrupted);
        }
        if Instant::now() > until {
            let missing = links.iter().filter(|link| is_missing(link)).count() as u32;
            return Err(LinkError::Missing { address: address.to_owned(), missing });
        }
        let Some((mut link, rank)) = door.admit() else {
            thread::sleep(AGAIN);
            continue;
        };
        match (rank as usize).checked_sub(1).and_then(|at| links.get_mut(at)) {
            None => link.refuse("there is no such rank"),
            Some(place) if !is_missing(place) => {
                link.refuse(&format!("rank {rank} is here already"));
            }
            Some(place) => *place = link.send(&hello.bytes()).is_ok().then_some(link),
        }
    }
    Ok(links.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn free_address() -> String {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
    }

    #[test]
    fn frames_and_texts_are_read_as_they_were_written() {
        for &kind in Kind::ALL {
            let frame = Frame { kind, stream: 7, a: u64::MAX, b: 1 << 40 };
            assert_eq!(Frame::parse(&frame.bytes()), Some(frame));
        }
        let bytes = with_text(Kind::Begin, 9, "äb");
        let mut from = &bytes[..];
        let message = read(&mut from).unwrap().unwrap();
        assert_eq!((message.frame.a, message.text.as_str()), (9, "äb"));
        assert_eq!(read(&mut from).unwrap(), None);
        for end in 1..bytes.len() {
            let cut = read(&mut &bytes[..end]).unwrap_err();
            assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof, "{end}");
        }
        let long = Frame::new(Kind::Hello, 0, HELLO_MAX as u64 + 1).bytes();
        assert_eq!(read(&mut &long[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&mut &bytes[..]);
        }
    }

    #[test]
    fn ranks_meet_and_others_are_sent_away() {
        let address = free_address();
        let gathering = {
            let address = address.clone();
            thread::spawn(move || gather(&address, &Hello::new("x", 0, 3), PATIENCE, &|| false))
        };
        let joined = |check: &str, rank, ranks| {
            connect(&address, &Hello::new(check, rank, ranks), PATIENCE, &|| false)
        };
        let refused = |joined: Result<Link, LinkError>| joined.unwrap_err().to_string();
        let mut second = joined("x", 2, 3).unwrap();
        assert!(refused(joined("y", 1, 3)).contains("it refuses: this is check x, blockstone."));
        assert!(refused(joined("x", 1, 2)).contains("this check has 3 ranks"));
        assert!(refused(joined("x", 7, 3)).contains("no such rank"));
        assert!(refused(joined("x", 0, 3)).contains("no such rank"));
        assert!(refused(joined("x", 2, 3)).contains("rank 2 is here already"));
        // Its place is free again once it has disconnected.
        second.tell(&"not heard").unwrap();
        drop(second);
        let (mut second, mut first) = (joined("x", 2, 3).unwrap(), joined("x", 1, 3).unwrap());
        let mut links = gathering.join().unwrap().unwrap();
        links[1].tell(&"two").unwrap();
        links[0].tell(&"one").unwrap();
        assert_eq!(second.hear::<String>(PATIENCE).unwrap().unwrap(), "two");
        assert_eq!(first.hear::<String>(PATIENCE).unwrap().unwrap(), "one");
        assert!(first.hear::<String>(Duration::from_millis(10)).unwrap().is_none());
        second.send(&[255; FRAME]).unwrap();
        first.tell(&7).unwrap();
        for link in &mut links {
            let error = link.hear::<String>(PATIENCE).unwrap_err();
            assert!(matches!(&error, LinkError::Talk { source, .. } if is_final(source)));
        }
    }

    #[test]
    fn who_does_not_come_is_not_waited_for_longer() {
        let (address, short) = (free_address(), Duration::from_millis(100));
        let hello = Hello::new("x", 0, 2);
        let missing = gather(&address, &hello, short, &|| false);
        assert!(matches!(missing, Err(LinkError::Missing { missing: 1, .. })));
        assert!(matches!(
            gather(&address, &hello, PATIENCE, &|| true),
            Err(LinkError::Interrupted)
        ));
        let nobody = connect(&address, &Hello::new("x", 1, 2), short, &|| false);
        assert!(matches!(nobody, Err(LinkError::Connect { .. })));
    }
}
