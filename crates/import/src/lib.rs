//! Reads load data kept by databases and other tools: AWR and Statspack reports, AWR-Miner, CSV.
//!
//! A [`Report`] is one file as it was read: its database, its time, and totals by instance. A
//! [`Series`] combines the reports of one database: sorted, each interval once, gaps marked.
//! Nothing here does I/O; host names and the text of statements are kept only if the caller asks
//! for them.
//!
//! To support another layout: add one file in `layout/` and one line in [`layout::ALL`].
//!
//! ```
//! use blockstone_import::{Names, read, series};
//!
//! let csv = "begin,end,database,reads_per_s,writes_per_s\n\
//!            2026-11-02 10:00,2026-11-02 11:00,orders,800,200\n";
//! let report = read("loads.csv", csv, Names::Kept)?;
//! let all = series(&[report]);
//! assert_eq!(all[0].intervals[0].totals.get("read_ios"), Some(800.0 * 3600.0));
//! # Ok::<(), blockstone_import::ImportError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod html;
mod layout;
mod markdown;
mod number;
mod report;
mod series;
mod spool;
mod table;
mod text;
mod time;

/// Beginning of a note on a report that lacks tables.
pub const CUT: &str = "its end is missing, and with it";

pub use layout::{HEAD_BYTES, Layout, recognises};
pub use report::{
    Advice, Container, Database, Instance, Interval, Kind, Report, Section, Statement, Totals,
};
pub use series::{Series, Skipped, series};
pub use time::seconds_iso;

/// How names are kept.
#[derive(Clone, Copy, Debug)]
pub enum Names<'a> {
    Kept,
    /// Hosts are replaced by a short hash with this salt, so that they remain distinguishable.
    Hidden {
        salt: &'a [u8],
    },
}

/// Why a file could not be read.
#[derive(Clone, Debug, thiserror::Error, PartialEq, blockstone_base::hint::Hint)]
pub enum ImportError {
    /// A file of a known kind that is not read.
    #[error("{kind} {why}")]
    #[hint("{hint}")]
    Refused { kind: &'static str, why: &'static str, hint: &'static str },
    #[error("its format is unknown")]
    Unknown,
    #[error("line {line}: {what}")]
    Damaged { line: usize, what: String },
}

/// Reads one file. The hint is its name, for layouts whose files give the database only in their
/// name.
pub fn read(name_hint: &str, text: &str, names: Names<'_>) -> Result<Report, ImportError> {
    let head = layout::Head::of(text);
    let Some(layout) = head.layout() else {
        return Err(head.refused().unwrap_or(ImportError::Unknown));
    };
    let text = spool::plain(text);
    (layout.read)(&Source { name_hint, head: &head, text: &text, names })
}

/// Input of a layout.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub name_hint: &'a str,
    pub head: &'a layout::Head,
    pub text: &'a str,
    pub names: Names<'a>,
}

impl Source<'_> {
    /// Returns the form in which a host's name is kept.
    pub fn host(&self, name: &str) -> String {
        let name = name.trim();
        match self.names {
            Names::Kept => name.to_owned(),
            Names::Hidden { .. } if name.is_empty() => String::new(),
            Names::Hidden { salt } => short_hash(salt, name),
        }
    }
}

fn short_hash(salt: &[u8], name: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new().chain_update(salt).chain_update([0]).chain_update(name).finalize();
    let [a, b, c, d, ..] = digest.0;
    format!("host-{:08x}", u32::from_be_bytes([a, b, c, d]))
}
