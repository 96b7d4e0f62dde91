//! What can go wrong with an instance.

use blockstone_base::Bytes;
use blockstone_sys::buffer::ArenaError;

use crate::block::Fault;
use crate::group::GroupError;

/// An instance operation that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The disk group could not do it.
    #[error(transparent)]
    Group(#[from] GroupError),
    #[error(transparent)]
    Memory(#[from] ArenaError),
    /// A thread could not be started.
    #[error("start thread {name}: {source}\nhint: raise ulimit -u, or use fewer sessions")]
    Thread { name: String, source: std::io::Error },
    /// A parameter has a value it cannot have.
    #[error("set up instance: {what}\nhint: {hint}")]
    Parameter { what: String, hint: &'static str },
    /// The cache cannot serve the sessions.
    #[error(
        "open session {session}: a cache of {frames} blocks serves {served} sessions\n\
         hint: use a larger --cache, or fewer sessions"
    )]
    CacheTooSmall {
        /// The first session that does not fit, from 0.
        session: u32,
        /// Blocks of the cache.
        frames: usize,
        /// Sessions it serves.
        served: usize,
    },
    /// No copy of the control file is whole.
    #[error(
        "open instance: every copy of its control file is damaged\n\
         hint: recovery cannot start without it; create the instance again"
    )]
    ControlDamaged,
    /// The control file was written by another version.
    #[error(
        "open instance: its control file has version {found}, this program supports {known}\n\
         hint: use the version that created the instance, or create it again"
    )]
    ControlVersion { found: u32, known: u32 },
    /// The schema has no data.
    #[error("use schema {schema}: it is not loaded\nhint: load it first")]
    NotLoaded {
        /// The schema, from 0.
        schema: u32,
    },
    /// Rows that do not exist.
    #[error(
        "visit {rows} rows from key {first_key} of schema {schema}: the schema has {len} rows\n\
         hint: use a smaller work unit or a larger scale"
    )]
    OutOfRange {
        /// The schema, from 0.
        schema: u32,
        /// The first key asked for, from 0.
        first_key: u64,
        rows: u64,
        /// Rows there are.
        len: u64,
    },
    /// A block of which no copy is whole.
    #[error(
        "read block {number} of the data file: {fault}\n\
         hint: its data are lost; a torn write without protection can cause this"
    )]
    Corrupt {
        number: u64,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A whole block that holds another row than it should.
    #[error(
        "visit key {key} of schema {schema}: block {number} holds key {found}\n\
         hint: this is a bug in the instance; please report it"
    )]
    WrongRow {
        /// The schema, from 0.
        schema: u32,
        key: u64,
        /// The block it should be in.
        number: u64,
        found: u64,
    },
    /// Redo that is intact but cannot be decoded.
    #[error(
        "recover instance: the redo at position {at} is intact but holds no record\n\
         hint: this is a bug in the instance; please report it"
    )]
    Redo { at: crate::redo::Lsn },
    /// The redo and the blocks do not fit into the memory of recovery.
    #[error("{what}: a read of {bytes} does not fit\nhint: use at most {most}")]
    Length { what: &'static str, bytes: Bytes, most: Bytes },
    /// A background process could not go on.
    #[error("use instance: it has failed ({why})\nhint: open it again; recovery loses no commit")]
    Failed {
        /// The process and its error.
        why: String,
    },
    /// The instance was shut down.
    #[error("use instance: it is shut down\nhint: open it again")]
    Stopped,
}

impl InstanceError {
    /// An invalid parameter.
    pub(crate) fn parameter(what: String, hint: &'static str) -> Self {
        Self::Parameter { what, hint }
    }
}
