//! Requests of programs that scrape metrics, or are taken for such.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use blockstone_watch::{Access, Listen, Listener, Paths};

/// Time after which a listener that has not answered is taken not to answer at all.
const PATIENCE: Duration = Duration::from_secs(5);

const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

pub fn requests() -> Vec<Vec<u8>> {
    let post = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\
                Expect: 100-continue\r\n\r\nhello";
    let chunked = "POST /?a=b HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nhello\r\n0\r\n\r\n";
    let two = format!(
        "GET / HTTP/1.0\r\nHost: localhost:9750\r\nConnection: keep-alive\r\n\r\n{METRICS}"
    );
    [METRICS, post, chunked, &two].map(|text| text.as_bytes().to_vec()).into()
}

/// Sends a request; the listener must answer it, or at least the next one. Returns whether this one
/// was understood, whether or not it is served.
pub fn scrape(input: &[u8]) -> bool {
    static LISTENER: OnceLock<Listener> = OnceLock::new();
    let listener = LISTENER.get_or_init(|| {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let (host, access) = ("host".to_owned(), Access::default());
        let listen = Listen { address, host, access, paths: Paths::Hidden };
        Listener::start(listen).expect("a port is free")
    });
    let address = listener.address();
    // It may close the connection before it has read everything.
    let answer = ask(address, input).unwrap_or_default();
    let next = ask(address, METRICS.as_bytes()).expect("the next request is answered");
    assert!(next.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&next));
    let is_status = |status: &[u8]| answer.starts_with(status);
    is_status(b"HTTP/1.1 200 ") || is_status(b"HTTP/1.0 200 ") || is_status(b"HTTP/1.1 405 ")
}

fn ask(address: SocketAddr, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}
