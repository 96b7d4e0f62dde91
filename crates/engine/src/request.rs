//! What passes between a worker and its engine: requests, and their completions.

/// What to do with a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOp {
    Read,
    Write,
    /// Write from the slot, complete when durable.
    WriteDsync,
    /// Make all completed writes durable, and the metadata needed to read them.
    Fdatasync,
    /// Make all completed writes and all metadata durable.
    Fsync,
}

impl RequestOp {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::WriteDsync => "durable write",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
        }
    }

    /// Whether the request moves no data of its own.
    pub const fn is_sync(self) -> bool {
        matches!(self, Self::Fdatasync | Self::Fsync)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub op: RequestOp,
    /// Where, in bytes from the start of the medium; ignored by syncs.
    pub offset_bytes: u64,
    /// How much, in bytes; ignored by syncs.
    pub len_bytes: u32,
    pub slot: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Its slot, free again.
    pub slot: usize,
    /// Bytes moved (zero for a sync), or the errno.
    pub result: Result<u32, i32>,
    /// When the engine saw it complete: one clock read for all completions of a reap.
    pub completed_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    One,
    /// Until at least one completion is there or the engine's clock shows this instant, also when
    /// nothing is in flight.
    Until(u64),
}
