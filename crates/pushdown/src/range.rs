//! A small HTTP server of a few files, on the loopback interface, that counts what it sends: whole
//! files and ranges of bytes (RFC 9110, 14), nothing else.
//!
//! It is for a reader that may be wrong, not one that is trusted: names are compared with a list,
//! not joined to a path; heads, connections and the time that one may be silent have limits.

pub mod request;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockstone_sys::tcp;

use request::{HEAD_MAX, Request, Wanted, read_head};

const CONNECTIONS_MAX: usize = 64;
/// A reader may say nothing for so long between requests.
const SILENCE: Duration = Duration::from_secs(30);
/// In which a head must come, from its first byte on, and in which each chunk must be taken.
const PACE: Duration = Duration::from_secs(10);
/// In which the reader must close its end after the last answer.
const CLOSING: Duration = Duration::from_secs(1);
/// After a connection could not be accepted: descriptors may be short.
const REST: Duration = Duration::from_millis(10);
/// Ranges of a file that are kept apart.
const RANGES_MAX: usize = 1 << 16;
const CHUNK: usize = 64 << 10;
/// How long the last connections may take to close.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was sent, cumulative since the server began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub requests: u64,
    pub connections: u64,
    /// Heads of answers.
    pub head_bytes: u64,
    /// Parts of files.
    pub body_bytes: u64,
    /// Payload that the kernel says the sockets sent, each byte once; of connections that ended.
    pub socket_sent_bytes: u64,
    pub socket_received_bytes: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Of each file, in the order of the list: ranges that were sent, from the first to behind the
    /// last byte. Many are merged where they touch.
    pub ranges: Vec<Vec<(u64, u64)>>,
}

/// Serves until it is dropped.
#[derive(Debug)]
pub struct RangeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    files: Vec<Served>,
    sent: Mutex<Sent>,
    /// Connections with the reader's end.
    open: Mutex<Vec<(SocketAddr, TcpStream)>>,
    over: AtomicBool,
}

#[derive(Debug)]
struct Served {
    name: String,
    file: File,
    len: u64,
}

impl RangeServer {
    /// Serves these files by these names, on a free port. Names need no escape in a URL.
    pub fn start(files: &[(&str, &Path)]) -> io::Result<Self> {
        let open = |(name, path): &(&str, &Path)| {
            let file = File::open(path)?;
            let len = file.metadata()?.len();
            Ok(Served { name: (*name).to_owned(), file, len })
        };
        let files = files.iter().map(open).collect::<io::Result<Vec<Served>>>()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let sent = Sent { ranges: vec![Vec::new(); files.len()], ..Sent::default() };
        let shared = Arc::new(Shared {
            files,
            sent: Mutex::new(sent),
            open: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("range".to_owned())
            .spawn(move || accepting.accept(&listener))?;
        Ok(Self { address, shared, accepting: Some(accepting) })
    }

    /// Where a file of the list is.
    pub fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What was sent until now, once all connections are closed or a while has passed.
    pub fn sent(&self) -> Sent {
        let until = Instant::now() + PATIENCE;
        while !locked(&self.shared.open).is_empty() && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        locked(&self.shared.sent).clone()
    }
}

impl Drop for RangeServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for (_, stream) in locked(&self.shared.open).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Counters stay usable where a thread that had them ended.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let Ok(stream) = stream else {
                thread::sleep(REST);
                continue;
            };
            let (Ok(ours), Ok(theirs)) = (stream.local_addr(), stream.peer_addr()) else {
                continue;
            };
            let Ok(kept) = stream.try_clone() else { continue };
            let mut open = locked(&self.open);
            if open.len() >= CONNECTIONS_MAX {
                locked(&self.sent).refused += 1;
                continue;
            }
            open.push((theirs, kept));
            drop(open);
            locked(&self.sent).connections += 1;
            let shared = Arc::clone(self);
            let serving = thread::Builder::new().name("range".to_owned()).spawn(move || {
                // A reader that is gone needs no answer.
                let _ = shared.serve(&stream);
                shared.close(&stream, (ours, theirs));
            });
            if serving.is_err() {
                locked(&self.open).retain(|(end, _)| *end != theirs);
            }
        }
    }

    /// Notes what the kernel counted, once the reader has closed its end.
    fn close(&self, mut stream: &TcpStream, ends: (SocketAddr, SocketAddr)) {
        let _ = stream.shutdown(Shutdown::Write);
        let until = Instant::now() + CLOSING;
        let mut left = HEAD_MAX;
        let mut rest = [0; 4096];
        while left > 0 && wait(stream, until).is_ok() {
            match (&mut stream).read(&mut rest) {
                Ok(read) if read > 0 => left = left.saturating_sub(read),
                _ => break,
            }
        }
        if let Ok(socket) = tcp::of_stream(stream, ends) {
            let mut sent = locked(&self.sent);
            sent.socket_sent_bytes += socket.sent_bytes - socket.resent_bytes;
            sent.socket_received_bytes += socket.received_bytes;
        }
        locked(&self.open).retain(|(end, _)| *end != ends.1);
    }

    fn serve(&self, mut stream: &TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PACE))?;
        stream.set_nodelay(true)?;
        let mut buffered = Vec::new();
        loop {
            let mut until = Instant::now() + SILENCE;
            let mut is_begun = !buffered.is_empty();
            let read = |more: &mut [u8]| {
                if std::mem::take(&mut is_begun) {
                    until = Instant::now() + PACE;
                }
                wait(stream, until)?;
                let read = (&mut &*stream).read(more)?;
                // From the first byte on.
                is_begun = read > 0 && until.saturating_duration_since(Instant::now()) > PACE;
                Ok(read)
            };
            let Some(head) = read_head(read, &mut buffered)? else { return Ok(()) };
            locked(&self.sent).requests += 1;
            let request = head.and_then(|head| Request::parse(&head));
            let (goes_on, answer, body) = match &request {
                Ok(request) => {
                    let (answer, body) = self.answer(request);
                    (request.keeps_alive, answer, body)
                }
                Err(status) => (false, refusal(status, ""), None),
            };
            if !answer.starts_with("HTTP/1.1 2") {
                locked(&self.sent).refused += 1;
            }
            let closing = if goes_on { "" } else { "Connection: close\r\n" };
            let head = format!("{answer}{closing}\r\n");
            stream.write_all(head.as_bytes())?;
            locked(&self.sent).head_bytes += head.len() as u64;
            if let Some((at, start, end)) = body {
                note(&mut locked(&self.sent).ranges[at], (start, end));
                self.send(stream, &self.files[at], (start, end))?;
            }
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// The head of the answer, and what of which file follows it.
    fn answer(&self, request: &Request) -> (String, Option<(usize, u64, u64)>) {
        let found = self.files.iter().position(|it| request.target == format!("/{}", it.name));
        let Some(at) = found else { return (refusal("404 Not Found", ""), None) };
        let (file, tag) = (&self.files[at], format!("\"{at}-{}\"", self.files[at].len));
        let common = format!("Accept-Ranges: bytes\r\nETag: {tag}\r\n");
        let (status, start, end) = match request.wanted(file.len, &tag) {
            Wanted::Whole => ("200 OK", 0, file.len),
            Wanted::Range(start, end) => ("206 Partial Content", start, end),
            Wanted::Nothing => {
                let range = format!("Content-Range: bytes */{}\r\n", file.len);
                return (refusal("416 Range Not Satisfiable", &range), None);
            }
        };
        let range = if status.starts_with("206") {
            format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, file.len)
        } else {
            String::new()
        };
        let head = format!(
            "HTTP/1.1 {status}\r\n{common}{range}Content-Type: application/octet-stream\r\n\
             Content-Length: {}\r\n",
            end - start
        );
        (head, (!request.is_head).then_some((at, start, end)))
    }

    fn send(
        &self,
        mut stream: &TcpStream,
        file: &Served,
        (mut at, end): (u64, u64),
    ) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        while at < end {
            let len = chunk.len().min((end - at) as usize);
            file.file.read_exact_at(&mut chunk[..len], at)?;
            let until = Instant::now() + PACE;
            let mut rest = &chunk[..len];
            while !rest.is_empty() {
                if Instant::now() > until {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                rest = &rest[stream.write(rest)?..];
            }
            locked(&self.sent).body_bytes += len as u64;
            at += len as u64;
        }
        Ok(())
    }
}

/// An answer without a body.
fn refusal(status: &str, more: &str) -> String {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    format!("HTTP/1.1 {status}\r\n{allow}{more}Content-Length: 0\r\n")
}

/// Lets the next read wait until then, no longer.
fn wait(stream: &TcpStream, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))
}

/// Adds a range; where there are many, those that touch become one, and in the end all of them.
fn note(ranges: &mut Vec<(u64, u64)>, range: (u64, u64)) {
    ranges.push(range);
    if ranges.len() <= RANGES_MAX {
        return;
    }
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges.drain(..) {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    if merged.len() > RANGES_MAX / 2 {
        let end = merged.last().map_or(0, |it| it.1);
        merged = vec![(merged[0].0, end)];
    }
    *ranges = merged;
}

#[cfg(test)]
mod tests;
