//! Common properties of the targets of one database: its options, and when its commits are durable.

use crate::options::Io;
use crate::spec::TargetSpec;

/// Settings of a database, in order.
pub type Settings = Vec<(String, String)>;

/// Reason why a target cannot use the requested kind of I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoRefused {
    pub why: String,
    pub hint: &'static str,
}

impl IoRefused {
    pub fn of<T>(why: impl Into<String>, hint: &'static str) -> Result<T, Self> {
        Err(Self { why: why.into(), hint })
    }
}

#[derive(Debug)]
pub struct Family {
    /// Name of the database, which is also the prefix of its processes' roles.
    pub name: &'static str,
    /// Whether it runs in threads of this process.
    pub in_process: bool,
    /// Whether a run records samples of its sessions.
    pub samples_sessions: bool,
    /// Whether it reads through the page cache, which can be limited if the server is started here.
    pub through_page_cache: bool,
    /// The I/O to use with a limited page cache unless another is requested; `None` leaves it to
    /// the database.
    pub io_bounded: Option<Io>,
    /// Returns the settings for this kind of I/O, if it is controlled by settings and not by the
    /// spec.
    pub io: fn(Io, &TargetSpec) -> Result<Settings, IoRefused>,
    /// Command line options that apply only to this database.
    pub options: &'static [TargetOption],
    /// Settings that decide whether commits are durable, with the values that make them durable;
    /// empty if they always are.
    pub durable_settings: &'static [(&'static str, &'static [&'static str])],
}

/// A command line option for the targets of one database.
#[derive(Debug)]
pub struct TargetOption {
    /// Name without the dashes.
    pub name: &'static str,
    pub doc: &'static str,
    pub value: OptionValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A database setting as `NAME=VALUE`; may be repeated.
    Setting,
    Programs,
}
