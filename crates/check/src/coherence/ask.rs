//! Requests of rank 0 to a rank, and its replies. Where a path could be meant, they contain only
//! numbers: a rank reaches nothing but its own path, and there only files of this check.

use crate::coherence::findings::{CoherenceFindings, ReadMode, WriteMode};
use serde::{Deserialize, Serialize};

use super::stamp::Content;

/// Number of blocks in the file, and their distance, so that read-ahead never returns another
/// reader's block.
pub const BLOCKS: u32 = 256;
pub const STRIDE_BYTES: u64 = 65_536;
pub const FILE_BYTES: u64 = BLOCKS as u64 * STRIDE_BYTES;
/// Number of names other than that of the file.
pub const NAMES: u32 = 100_000;
/// Maximum number of operations of a rank in a free run.
pub const FREE_RUN_MAX: u32 = 20_000;
/// Size of an appended record in bytes.
pub const RECORD_BYTES: usize = 64;
pub const RECORDS_MAX: u32 = 1_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// Asks for the time, and whether the rank can write.
    Time,
    /// Uses the file of the check with this ID.
    Start {
        id: u64,
    },
    Create,
    /// Opens the file again, for writing too or only for reading.
    Open {
        to_write: bool,
    },
    Write {
        mode: WriteMode,
        block: u32,
        version: u64,
    },
    WriteSector {
        mode: WriteMode,
        block: u32,
        sector: u32,
        version: u64,
    },
    Read {
        mode: ReadMode,
        block: u32,
    },
    ReadSector {
        mode: ReadMode,
        block: u32,
        sector: u32,
    },
    /// Drops the cached pages of a block.
    Drop {
        block: u32,
    },
    FreeRun(FreeRun),
    /// Cuts off the last block of the file, and restores the length of the file.
    Cut,
    /// Takes or releases the lock of the file.
    Lock {
        lock: bool,
        wait_ms: u32,
    },
    /// Reads a number and writes the next one, each time under the lock.
    Count {
        rounds: u32,
        block: u32,
    },
    Name {
        name: u32,
        act: Act,
    },
    /// Everything is done. The ranks are sent the findings.
    End(Option<Box<CoherenceFindings>>),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FreeRun {
    pub rank: u32,
    /// `None` only reads.
    pub write: Option<WriteMode>,
    pub read: ReadMode,
    pub first_block: u32,
    pub blocks: u32,
    pub operations: u32,
    pub milliseconds: u32,
    /// First version; each operation has its own.
    pub first_version: u64,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Creates the file; an error if it exists.
    Create,
    Remove,
    RenameTo(u32),
    /// Cuts or extends the file to this size.
    Resize(u64),
    Chmod(u32),
    /// Appends records with this tag.
    Append {
        tag: u8,
        records: u32,
    },
    /// Counts the records in the file.
    CountRecords,
    Look,
    /// Looks at the file by opening it.
    Open,
    /// Opens the file and holds it open, until it is released.
    Hold,
    /// Counts the records in the file that is held open, without pages that are cached.
    CountHeld,
    Release,
    /// Closes the file that this rank made and holds locked.
    Close,
    /// Asks whether the directory lists the name.
    List,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply {
    pub start_ns: u64,
    pub end_ns: u64,
    pub answer: Answer,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Answer {
    Done,
    CanWrite(bool),
    Content(Content),
    History(Vec<Step>),
    Locked(bool),
    Look(Option<Look>),
    Listed(bool),
    Records(Records),
    /// Error of the kernel.
    Failed(i32),
    /// The request is not one that a rank performs.
    Refused,
}

/// Counts of the records in a file to which two ranks append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    pub first: u32,
    pub second: u32,
    /// Those with the tag of neither.
    pub damaged: u32,
}

/// An operation of a free run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Step {
    pub is_write: bool,
    pub block: u32,
    /// Version that was read; none if it was not a version.
    pub version: Option<u64>,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// The file that a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    pub inode: u64,
    pub bytes: u64,
    pub mode: u32,
}
