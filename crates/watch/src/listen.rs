//! The HTTP endpoint for Prometheus.
//!
//! Clients may be hostile. One thread serves all connections, so a connection costs no more than
//! its descriptor and a few buffers. Each may send one request. Its duration, the size of the
//! request, and the number of concurrent connections are limited: when there are too many, the
//! oldest is reset in favour of the newest, because a scraper sends its request as soon as it is
//! connected. Descriptors that the probes need are never used.

mod access;
mod places;

use std::convert::Infallible;
use std::future::{self, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use blockstone_view::History;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::task::{self, AbortHandle};
use tokio::time;

use crate::WatchError;
use crate::exposition::{self, Paths, Snapshot};
use access::Refusal;
pub use access::{Access, Token, host_name};
use places::{Places, Slot};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=UTF-8";
/// Longest request line including its headers.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Longest lifetime of a connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections, if there are descriptors for four times as many.
const CONNECTIONS_MAX: usize = 64;
/// Bytes of an unread answer that the kernel buffers.
const SEND_BUFFER_BYTES: u32 = 256 << 10;
const RECEIVE_BUFFER_BYTES: u32 = 32 << 10;
/// Connections that the kernel completes before they are accepted.
const BACKLOG: u32 = 4096;
/// How long to wait for descriptors or memory before accepting more connections.
const PAUSE: Duration = Duration::from_millis(20);

/// Address of the endpoint, and access to it.
#[derive(Debug)]
pub struct Listen {
    pub address: SocketAddr,
    /// The label `host` of all metrics.
    pub host: String,
    pub access: Access,
    pub paths: Paths,
}

/// A thread that answers scrapes with the last tick. It ends when this is dropped.
pub struct Listener {
    address: SocketAddr,
    host: String,
    paths: Paths,
    published: Arc<Mutex<Arc<Published>>>,
    accepting: AbortHandle,
    thread: Option<JoinHandle<String>>,
}

impl Listener {
    /// Starts listening.
    pub fn start(listen: Listen) -> Result<Self, WatchError> {
        let Listen { address, host, access, paths } = listen;
        let failed = |error: io::Error| WatchError::Listen { address, why: error.to_string() };
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let listener = bind(&runtime, address).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let published = Arc::<Mutex<Arc<Published>>>::default();
        let service = Arc::new(Service { access, published: Arc::clone(&published) });
        let accepting = runtime.spawn(accept(listener, service, connections_max()));
        let handle = accepting.abort_handle();
        let thread = thread::Builder::new().name("listen".to_owned());
        let serve = move || match runtime.block_on(accepting) {
            Ok(error) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let thread = thread.spawn(serve).map_err(WatchError::Thread)?;
        Ok(Self { address: bound, host, paths, published, accepting: handle, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers with the last tick of `history` from now on, without the `sampled` probes. Returns
    /// an error if the thread that answers has ended.
    pub fn publish(&mut self, history: &History, sampled: &[&str]) -> Result<(), WatchError> {
        if let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) {
            let why = thread.join().unwrap_or_else(|_| "its thread panicked".to_owned());
            return Err(WatchError::Serve { address: self.address, why });
        }
        let snapshot = Arc::new(Snapshot::last(history, &self.host, sampled, self.paths));
        let published = Arc::new(Published { snapshot, text: OnceLock::new() });
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = published;
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A tick; its text is encoded at the first request.
#[derive(Debug, Default)]
struct Published {
    snapshot: Arc<Snapshot>,
    text: OnceLock<Result<Bytes, std::fmt::Error>>,
}

impl Published {
    fn text(&self) -> &Result<Bytes, std::fmt::Error> {
        self.text.get_or_init(|| exposition::text(Arc::clone(&self.snapshot)).map(Bytes::from))
    }
}

/// Binds the listening socket. Its buffer sizes are inherited by the connections.
fn bind(runtime: &Runtime, address: SocketAddr) -> io::Result<TcpListener> {
    let _context = runtime.enter();
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Returns at most a quarter of the descriptors: the rest is for probes, recording and database.
fn connections_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 4).map_or(CONNECTIONS_MAX, |share| share.clamp(2, CONNECTIONS_MAX))
}

/// Accepts connections until the listening socket fails.
async fn accept(listener: TcpListener, service: Arc<Service>, most: usize) -> io::Error {
    let mut places = Places::new(most);
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                places.make_room().await;
                let asked = Slot::default();
                let serve = serve(stream, Arc::clone(&service), asked.clone());
                let task = tokio::spawn(async { drop(time::timeout(PATIENCE, serve).await) });
                places.take(task.abort_handle(), asked);
                // Lets connections that were reset close, and requests be read, before the next is
                // accepted.
                task::yield_now().await;
            }
            Err(error) if is_passing(&error) => {
                places.free_one();
                time::sleep(PAUSE).await;
            }
            Err(error) => return error,
        }
    }
}

/// Whether an error says nothing about the listening socket: a connection was lost before it could
/// be accepted, or the machine is temporarily out of a resource.
fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    !matches!(errno, Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) | None)
}

/// Answers one request.
async fn serve(stream: TcpStream, service: Arc<Service>, place: Slot) {
    // If it is closed early, it leaves nothing behind in the kernel.
    let (Ok(()), Ok(local)) = (stream.set_zero_linger(), stream.local_addr()) else { return };
    let answer = service_fn(move |request: Request<Incoming>| {
        future::ready(Ok::<_, Infallible>(service.answer(&request, local, &place)))
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).half_close(true).max_buf_size(HEAD_BYTES_MAX);
    http.max_header_size(HEAD_BYTES_MAX).header_read_timeout(None);
    let mut connection = http.serve_connection(TokioIo::new(stream), answer);
    // Malformed requests are answered with an error status.
    let _ = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let mut stream = connection.into_parts().io.into_inner();
    if stream.shutdown().await.is_err() {
        return;
    }
    // Closing it with unread input, or before the answer has arrived, would reset the connection.
    let (mut rest, mut part) = (HEAD_BYTES_MAX, [0; 1024]);
    while let Ok(len @ 1..) = stream.read(&mut part).await {
        rest = rest.saturating_sub(len);
        if rest == 0 {
            return;
        }
    }
}

struct Service {
    access: Access,
    published: Arc<Mutex<Arc<Published>>>,
}

impl Service {
    fn answer(
        &self,
        request: &Request<Incoming>,
        local: SocketAddr,
        place: &Slot,
    ) -> Response<Full<Bytes>> {
        match self.access.check(request.uri(), request.headers(), local.ip()) {
            Err(Refusal::Host(why)) => {
                return response(StatusCode::MISDIRECTED_REQUEST, PLAIN, why.into());
            }
            Err(Refusal::Token) => {
                let why = "the token is missing or wrong\n";
                let answer = response(StatusCode::UNAUTHORIZED, PLAIN, why.into());
                return with(answer, WWW_AUTHENTICATE, "Bearer");
            }
            Ok(()) => place.ask(),
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let why = "only GET and HEAD are served\n";
            let answer = response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, why.into());
            return with(answer, ALLOW, "GET, HEAD");
        }
        match request.uri().path() {
            "/metrics" => self.metrics(),
            "/" => {
                let text = "blockstone watch: metrics are at /metrics\n";
                response(StatusCode::OK, PLAIN, text.into())
            }
            _ => {
                let text = "not found: metrics are at /metrics\n";
                response(StatusCode::NOT_FOUND, PLAIN, text.into())
            }
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let published = Arc::clone(&self.published.lock().unwrap_or_else(PoisonError::into_inner));
        match published.text() {
            Ok(text) => response(StatusCode::OK, OPEN_METRICS, text.clone()),
            Err(error) => {
                let text = format!("encode the metrics: {error}\n");
                response(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, text.into())
            }
        }
    }
}

fn response(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    with(response, CONTENT_TYPE, kind)
}

fn with(
    mut response: Response<Full<Bytes>>,
    name: HeaderName,
    value: &'static str,
) -> Response<Full<Bytes>> {
    response.headers_mut().insert(name, hyper::header::HeaderValue::from_static(value));
    response
}

#[cfg(test)]
mod tests;
