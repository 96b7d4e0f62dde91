//! Errors of an instance.

use blockstone_base::Bytes;
use blockstone_base::hint::Hint;
use blockstone_sys::buffer::ArenaError;

use crate::block::Fault;
use crate::group::GroupError;

#[derive(Debug, thiserror::Error, Hint)]
pub enum InstanceError {
    #[error(transparent)]
    #[hint(transparent)]
    Group(#[from] GroupError),
    #[error(transparent)]
    #[hint(transparent)]
    Memory(#[from] ArenaError),
    #[error("start thread {name}: {source}")]
    #[hint("raise ulimit -u, or use fewer sessions")]
    Thread { name: String, source: std::io::Error },
    #[error("set up instance: {what}")]
    #[hint("{hint}")]
    Parameter { what: String, hint: &'static str },
    #[error("open session {session}: a cache of {frames} blocks serves {served} sessions")]
    #[hint("use a larger --cache, or fewer sessions")]
    CacheTooSmall { session: u32, frames: usize, served: usize },
    #[error("open instance: every copy of its control file is damaged")]
    #[hint("recovery cannot start without it; create the instance again")]
    ControlDamaged,
    #[error("open instance: its control file has version {found}, this program supports {known}")]
    #[hint("use the version that created the instance, or create it again")]
    ControlVersion { found: u32, known: u32 },
    #[error("use schema {schema}: it is not loaded")]
    #[hint("load it first")]
    NotLoaded { schema: u32 },
    #[error("visit {rows} rows from key {first_key} of schema {schema}: the schema has {len} rows")]
    #[hint("use a smaller work unit or a larger scale")]
    OutOfRange { schema: u32, first_key: u64, rows: u64, len: u64 },
    #[error("read block {number} of the data file: {fault}")]
    #[hint("its data are lost; a torn write without protection can cause this")]
    Corrupt { number: u64, fault: Fault },
    #[error("visit key {key} of schema {schema}: block {number} holds key {found}")]
    #[hint("this is a bug in the instance; please report it")]
    WrongRow { schema: u32, key: u64, number: u64, found: u64 },
    #[error("recover instance: the redo at position {at} is intact but holds no record")]
    #[hint("this is a bug in the instance; please report it")]
    Redo { at: crate::redo::Lsn },
    #[error(
        "recover instance: the redo at position {at} is damaged, and intact redo with {commits} \
         commits follows up to {to}"
    )]
    #[hint(
        "restore an undamaged copy of the disks, or open it without the commits behind {at} with \
         --accept-loss"
    )]
    RedoDamaged { at: crate::redo::Lsn, to: crate::redo::Lsn, commits: u64 },
    #[error(
        "recover instance: the redo at position {at} cannot be read: {source}\n\
         to open it without any commits behind this position, use --accept-loss"
    )]
    #[hint(source)]
    RedoUnreadable { at: crate::redo::Lsn, source: GroupError },
    #[error(
        "recover instance: {blocks} blocks have lost a durable write; the first, block {number} \
         of the data file, has version {found} of its row and the redo continues with {needed}"
    )]
    #[hint(
        "restore an undamaged copy of the disks, or open it with these rows as they are with \
         --accept-loss"
    )]
    Stale { blocks: usize, number: u64, found: u64, needed: u64 },
    #[error("{what}: a read of {bytes} does not fit")]
    #[hint("use at most {most}")]
    Length { what: &'static str, bytes: Bytes, most: Bytes },
    #[error("use instance: it has failed ({why})")]
    #[hint("{hint}")]
    Failed { why: String, hint: String },
    #[error("use instance: it is shut down")]
    #[hint("open it again")]
    Stopped,
}

impl InstanceError {
    pub(crate) fn parameter(what: String, hint: &'static str) -> Self {
        Self::Parameter { what, hint }
    }
}
