//! Watches a host: reads every layer on one clock, keeps a history for display, and records it on
//! request.
//!
//! It does not know the command line or how tables are drawn. [`Watch`] reads a host; the same
//! history comes from a recording by [`blockstone_view::History::read`].
//!
//! ```no_run
//! use blockstone_base::units::Nanos;
//! use blockstone_probe::Roles;
//! use blockstone_watch::{Kernel, Settings, Watch};
//!
//! let mut watch = Watch::start(&Settings {
//!     argv: Vec::new(),
//!     interval: Nanos::millis(1_000),
//!     keep: Nanos::millis(600_000),
//!     roles: Roles::default(),
//!     record: None,
//!     databases: Vec::new(),
//!     samples: Nanos::millis(100),
//!     kernel: Kernel::Requests,
//!     profile_per_second: None,
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
mod listen;
mod recorder;
mod settings;
mod watch;

pub use database::{Answer, Database};
pub use exposition::Paths;
pub use import::{Databases, Import, ImportError, is_load};
pub use listen::{Access, Listen, Listener, Token, host_name};
pub use recorder::KEEP_MIN;
pub use settings::{Destination, Kernel, Settings};
pub use watch::Watch;

/// Failure to start or to continue a watch.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Record(#[from] blockstone_record::RecordError),
    #[error(transparent)]
    Database(#[from] blockstone_servers::SqlError),
    #[error("start a thread: {0}\nhint: ulimit -u and the cgroup's pids.max limit them")]
    Thread(std::io::Error),
    #[error(
        "listen on {address}: {why}\n\
         hint: the port may be in use or need root (below 1024), or the address is not local"
    )]
    Listen { address: std::net::SocketAddr, why: String },
    #[error(
        "serve metrics at {address}: {why}\n\
         hint: nobody can scrape this watch any more; start it again"
    )]
    Serve { address: std::net::SocketAddr, why: String },
    #[error(
        "use the token in {}: {why}\n\
         hint: (umask 077; openssl rand -hex 32 > FILE) makes one", path.display()
    )]
    Token { path: std::path::PathBuf, why: String },
}
