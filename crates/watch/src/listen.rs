//! Answering Prometheus.
//!
//! A connection is good for one request, of which the first line alone matters. Whoever connects
//! may be hostile: what is read, how long that takes, and how many connections there are at once
//! is limited, and no length that a request claims is believed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blockstone_view::History;

use crate::WatchError;
use crate::exposition::{self, Snapshot};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=UTF-8";
/// The longest request line with its headers.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long a connection may take from its beginning to its end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections at once; what comes on top is closed.
const CONNECTIONS_MAX: usize = 64;

type Latest = Mutex<Arc<Snapshot>>;

/// A thread that answers scrapes with the last tick. It ends when this is dropped.
pub struct Listener {
    address: SocketAddr,
    snapshot: Arc<Latest>,
    host: String,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts to listen.
    pub fn start(address: SocketAddr, host: &str) -> Result<Self, WatchError> {
        let failed = |error: io::Error| WatchError::Listen { address, why: error.to_string() };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let (snapshot, ends) = (Arc::<Latest>::default(), Arc::<AtomicBool>::default());
        let (known, end) = (Arc::clone(&snapshot), Arc::clone(&ends));
        let thread = thread::Builder::new().name("listen".to_owned());
        let thread = thread.spawn(move || accept(&listener, &known, &end)).map_err(failed)?;
        Ok(Self { address: bound, snapshot, host: host.to_owned(), ends, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with the last tick of `history` from now on, without the `sampled` probes.
    pub fn publish(&self, history: &History, sampled: &[&str]) {
        let snapshot = Arc::new(Snapshot::last(history, &self.host, sampled));
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // The thread waits for a connection.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, known: &Latest, ends: &AtomicBool) {
    let open = Arc::new(());
    for stream in listener.incoming() {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else {
            // Without file descriptors left, the next call would fail at once.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if Arc::strong_count(&open) > CONNECTIONS_MAX {
            continue;
        }
        let snapshot = Arc::clone(&known.lock().unwrap_or_else(PoisonError::into_inner));
        let one = Arc::clone(&open);
        let thread = thread::Builder::new().name("scrape".to_owned());
        // Without a thread it is closed, too.
        let _ = thread.spawn(move || {
            // The scraper may have disconnected.
            let _ = serve(Timed { stream, until: Instant::now() + PATIENCE }, snapshot);
            drop(one);
        });
    }
}

/// A connection until its time is up.
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

impl Read for Timed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(out)
    }
}

impl Write for Timed {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn serve(mut stream: Timed, snapshot: Arc<Snapshot>) -> io::Result<()> {
    let head = head(&mut stream)?;
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, kind, body) = answer(target, snapshot);
    let length = body.len();
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    if method != "HEAD" {
        response.push_str(&body);
    }
    stream.write_all(response.as_bytes())?;
    stream.stream.shutdown(Shutdown::Write)?;
    // Closed with something left to read, it would be reset, and the answer lost on its way.
    io::copy(&mut stream.take(HEAD_BYTES_MAX as u64), &mut io::sink()).map(drop)
}

/// The first line of a request whose headers have ended.
fn head(stream: &mut Timed) -> io::Result<String> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    loop {
        let len = stream.read(&mut part)?;
        head.extend(&part[..len]);
        let ends = |end: &[u8]| head.windows(end.len()).any(|found| found == end);
        if ends(b"\r\n\r\n") || ends(b"\n\n") {
            let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
            return Ok(String::from_utf8_lossy(line).trim_end().to_owned());
        }
        if len == 0 || head.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn answer(target: &str, snapshot: Arc<Snapshot>) -> (&'static str, &'static str, String) {
    match target.split('?').next() {
        Some("/metrics") => match exposition::text(snapshot) {
            Ok(text) => ("200 OK", OPEN_METRICS, text),
            Err(error) => {
                let body = format!("encode the metrics: {error}\n");
                ("500 Internal Server Error", PLAIN, body)
            }
        },
        Some("/") => ("200 OK", PLAIN, "blockstone watch: metrics are at /metrics\n".to_owned()),
        _ => ("404 Not Found", PLAIN, "not found: metrics are at /metrics\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> Listener {
        Listener::start(SocketAddr::from(([127, 0, 0, 1], 0)), "host").unwrap()
    }

    fn ask(listener: &Listener, request: &str) -> String {
        let mut stream = TcpStream::connect(listener.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn metrics_are_where_they_are_said_to_be() {
        let listener = started();
        let answer = ask(&listener, "GET /metrics?a=b HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"),
            "{answer}"
        );
        assert!(ask(&listener, "GET / HTTP/1.0\n\n").contains("metrics are at /metrics"));
        let nowhere = ask(&listener, "GET /favicon.ico HTTP/1.1\r\n\r\n");
        assert!(nowhere.starts_with("HTTP/1.1 404 "), "{nowhere}");
        let head = ask(&listener, "HEAD / HTTP/1.1\r\n\r\n");
        assert!(head.contains("Content-Length: 42\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    }

    /// A server that made room for the body that a request announces ended the whole program.
    #[test]
    fn a_length_that_a_request_claims_is_not_believed() {
        let listener = started();
        for length in ["400000000000", "9223372036854775807", "18446744073709551616", "-1"] {
            let request = format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\nhello");
            let mut stream = TcpStream::connect(listener.address()).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        }
    }

    #[test]
    fn those_who_say_nothing_or_too_much_delay_nobody() {
        let listener = started();
        let silent: Vec<TcpStream> =
            (0..8).map(|_| TcpStream::connect(listener.address()).unwrap()).collect();
        let mut endless = TcpStream::connect(listener.address()).unwrap();
        let _ = endless.write_all(&vec![b'a'; 4 * HEAD_BYTES_MAX]);
        assert!(ask(&listener, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(matches!(endless.read(&mut [0; 1]), Ok(0) | Err(_)), "it was closed unanswered");
        drop(silent);
    }
}
