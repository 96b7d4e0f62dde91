//! Answering Prometheus.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use blockstone_view::History;
use tiny_http::{Header, Request, Response, Server};

use crate::WatchError;
use crate::exposition::{self, Seen};

/// What a scrape is told that its answer is.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A thread that answers scrapes with what was seen last. It ends with this.
pub struct Listener {
    server: Arc<Server>,
    seen: Arc<Mutex<Arc<Seen>>>,
    host: String,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(address: SocketAddr, host: &str) -> Result<Self, WatchError> {
        let failed = |why: String| WatchError::Listen { address, why };
        let server = Server::http(address).map_err(|error| failed(error.to_string()))?;
        let (server, seen) = (Arc::new(server), Arc::<Mutex<Arc<Seen>>>::default());
        let (answering, known) = (Arc::clone(&server), Arc::clone(&seen));
        let thread = thread::Builder::new()
            .name("listen".to_owned())
            .spawn(move || {
                for request in answering.incoming_requests() {
                    let seen = Arc::clone(&known.lock().unwrap_or_else(PoisonError::into_inner));
                    // A scraper that went away has nobody to be told.
                    let _ = answer(request, seen);
                }
            })
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { server, seen, host: host.to_owned(), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.server_addr().to_ip()
    }

    /// Answers with the last tick of `history` from now on. Probes that sample single sessions are
    /// left out.
    pub fn tell(&self, history: &History, sampled: &[&str]) {
        let seen = Arc::new(Seen::last(history, &self.host, sampled));
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(request: Request, seen: Arc<Seen>) -> std::io::Result<()> {
    let (code, kind, body) = match request.url().split('?').next() {
        Some("/metrics") => match exposition::text(seen) {
            Ok(text) => (200, OPEN_METRICS, text),
            Err(error) => (500, "text/plain", format!("encode the figures: {error}\n")),
        },
        Some("/") => (200, "text/plain", "blockstone watch: the figures are at /metrics\n".into()),
        _ => (404, "text/plain", "there is only /metrics\n".to_owned()),
    };
    let response = Response::from_string(body).with_status_code(code);
    let header = Header::from_bytes("Content-Type", kind);
    request.respond(match header {
        Ok(header) => response.with_header(header),
        Err(()) => response,
    })
}
