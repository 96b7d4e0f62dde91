//! Answering Prometheus.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use blockstone_view::History;
use tiny_http::{Header, Request, Response, Server};

use crate::WatchError;
use crate::exposition::{self, Snapshot};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A thread that answers scrapes with the last tick. It ends when this is dropped.
pub struct Listener {
    server: Arc<Server>,
    snapshot: Arc<Mutex<Arc<Snapshot>>>,
    host: String,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(address: SocketAddr, host: &str) -> Result<Self, WatchError> {
        let failed = |why: String| WatchError::Listen { address, why };
        let server = Server::http(address).map_err(|error| failed(error.to_string()))?;
        let (server, snapshot) = (Arc::new(server), Arc::<Mutex<Arc<Snapshot>>>::default());
        let (answering, known) = (Arc::clone(&server), Arc::clone(&snapshot));
        let thread = thread::Builder::new()
            .name("listen".to_owned())
            .spawn(move || {
                for request in answering.incoming_requests() {
                    let snapshot =
                        Arc::clone(&known.lock().unwrap_or_else(PoisonError::into_inner));
                    // The scraper may have disconnected.
                    let _ = answer(request, snapshot);
                }
            })
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { server, snapshot, host: host.to_owned(), thread: Some(thread) })
    }

    pub fn address(&self) -> Option<SocketAddr> {
        self.server.server_addr().to_ip()
    }

    /// Answers with the last tick of `history` from now on, without the `sampled` probes.
    pub fn publish(&self, history: &History, sampled: &[&str]) {
        let snapshot = Arc::new(Snapshot::last(history, &self.host, sampled));
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
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

fn answer(request: Request, snapshot: Arc<Snapshot>) -> std::io::Result<()> {
    let (code, kind, body) = match request.url().split('?').next() {
        Some("/metrics") => match exposition::text(snapshot) {
            Ok(text) => (200, OPEN_METRICS, text),
            Err(error) => (500, "text/plain", format!("encode the metrics: {error}\n")),
        },
        Some("/") => (200, "text/plain", "blockstone watch: metrics are at /metrics\n".into()),
        _ => (404, "text/plain", "not found: metrics are at /metrics\n".to_owned()),
    };
    let response = Response::from_string(body).with_status_code(code);
    let header = Header::from_bytes("Content-Type", kind);
    request.respond(match header {
        Ok(header) => response.with_header(header),
        Err(()) => response,
    })
}
