//! What passes between a worker and its engine: requests, and their completions.

/// What to do with a slot.
pub use blockstone_sys::ring::Transfer as RequestOp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub op: RequestOp,
    /// Where, in bytes from the start of the medium; of a sync, a byte of the file that is meant.
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
