//! Watches a host: reads every layer on one clock, keeps a history for display, and records it on
//! request.
//!
//! It does not know the command line or how tables are drawn. [`Watch`] reads a host; the same
//! history comes from a recording by [`blockstone_view::History::read`].
//!
//! ```no_run
//! use blockstone_base::units::Nanos;
//! use blockstone_watch::{Settings, Watch, WatchOptions};
//!
//! let mut watch = Watch::start(&Settings {
//!     options: WatchOptions::default(),
//!     argv: Vec::new(),
//!     history: Nanos::millis(600_000),
//!     record: None,
//!     databases: Vec::new(),
//!     who: false,
//!     active_set: None,
//! })?;
//! watch.wait_and_look()?;
//! watch.wait_and_look()?;
//! assert!(watch.history().latest().is_some());
//! # Ok::<(), blockstone_watch::WatchError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod clocks;
mod database;
mod exposition;
mod import;
mod kept;
mod listen;
mod options;
mod recorder;
mod settings;
mod watch;

pub use database::{Answer, Database};
pub use exposition::Paths;
pub use import::{Databases, Import, ImportError, NO_TIMES, is_load};
pub use kept::{KEPT, Kept};
pub use listen::{Access, Listen, Listener, Token, host_name};
pub use options::WatchOptions;
pub use settings::{Destination, Settings};
pub use watch::Watch;

/// Failure to start or to continue a watch.
#[derive(Debug, thiserror::Error, blockstone_base::hint::Hint)]
pub enum WatchError {
    #[error(transparent)]
    #[hint(transparent)]
    Record(#[from] blockstone_record::RecordError),
    #[error(transparent)]
    #[hint(transparent)]
    Database(#[from] blockstone_servers::SqlError),
    #[error("watch another database: the databases of this watch are fixed")]
    #[hint("name all of them with --db, or --db auto")]
    Fixed,
    #[error("start a thread: {0}")]
    #[hint("ulimit -u and the cgroup's pids.max limit them")]
    Thread(std::io::Error),
    #[error("listen on {address}: {why}")]
    #[hint("the port may be in use or need root (below 1024), or the address is not local")]
    Listen { address: std::net::SocketAddr, why: String },
    #[error("serve metrics at {address}: {why}")]
    #[hint("nobody can scrape this watch any more; start it again")]
    Serve { address: std::net::SocketAddr, why: String },
    #[error("use the token in {}: {why}", path.display())]
    #[hint("(umask 077; openssl rand -hex 32 > FILE) makes one")]
    Token { path: std::path::PathBuf, why: String },
}
