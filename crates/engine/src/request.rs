//! Messages between a worker and its engine: requests and their completions.

/// Operation to perform on a slot.
pub use blockstone_sys::ring::Transfer as RequestOp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub op: RequestOp,
    /// Offset in bytes from the start of the medium; for a sync, any byte of the file to sync.
    pub offset_bytes: u64,
    /// Length in bytes; ignored for syncs.
    pub len_bytes: u32,
    pub slot: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Slot of the request, free again.
    pub slot: usize,
    /// Bytes moved (zero for a sync), or the errno.
    pub result: Result<u32, i32>,
    /// When the engine saw it complete: one clock read for all completions of a reap.
    pub completed_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    One,
    /// Until at least one completion is available or the engine's clock reaches this time, even if
    /// nothing is in flight.
    Until(u64),
}
