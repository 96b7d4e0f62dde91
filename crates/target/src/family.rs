//! What the targets of one database have in common: its options, and when its commits are durable.

use crate::spec::{Io, TargetSpec};

/// Settings of a database, in their order.
pub type Settings = Vec<(String, String)>;

/// Why a target cannot read and write as it was asked to.
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
    /// Its name, which also stands before the roles of its processes.
    pub name: &'static str,
    /// Whether it works in the threads of this process.
    pub in_process: bool,
    /// Whether a run records samples of its sessions.
    pub samples_sessions: bool,
    /// Whether it reads through the page cache, which may be bounded where it is started here.
    pub through_page_cache: bool,
    /// How it reads and writes where its page cache is bounded and nothing else is asked for; none
    /// is as it does by itself.
    pub io_bounded: Option<Io>,
    /// Settings that make it read and write so, where there are such and the spec does not say it.
    pub io: fn(Io, &TargetSpec) -> Result<Settings, IoRefused>,
    /// Options of the command line that apply to it alone.
    pub options: &'static [TargetOption],
    /// Its settings that decide whether commits are durable, with the values that make them so;
    /// none where they always are.
    pub durable_settings: &'static [(&'static str, &'static [&'static str])],
}

/// An option of the command line that applies to the targets of one family.
#[derive(Debug)]
pub struct TargetOption {
    /// Its name, without the dashes.
    pub name: &'static str,
    pub doc: &'static str,
    pub value: OptionValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A setting of the database, as `NAME=VALUE`; it may be given several times.
    Setting,
    Programs,
}
