//! What rank 0 asks of a rank, and its replies. Numbers only where a path could be meant: a rank
//! reaches nothing but its own path, and there only files of this check.

use crate::coherence::findings::{CoherenceFindings, ReadMode, WriteMode};
use serde::{Deserialize, Serialize};

use super::stamp::Content;

/// Blocks of the file, and how far they are apart: no reader is given another's by read-ahead.
pub const BLOCKS: u32 = 256;
pub const STRIDE_BYTES: u64 = 65_536;
pub const FILE_BYTES: u64 = BLOCKS as u64 * STRIDE_BYTES;
/// Names other than that of the file.
pub const NAMES: u32 = 100_000;
/// Operations of a rank in a free run.
pub const FREE_RUN_MAX: u32 = 20_000;
/// Bytes of a record that is appended.
pub const RECORD_BYTES: usize = 64;
pub const RECORDS_MAX: u32 = 1_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Ask {
    /// The time, and whether it can write.
    Time,
    /// Use the file of the check with this id.
    Start {
        id: u64,
    },
    Create,
    /// Open it again, to write too or only to read.
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
    /// Drop what is cached of a block.
    Drop {
        block: u32,
    },
    FreeRun(FreeRun),
    /// Cut off the last block of the file, and make the file as long as it was.
    Cut,
    /// Take or release the lock of the file.
    Lock {
        lock: bool,
        wait_ms: u32,
    },
    /// Under the lock, each time: read a number and write the next one.
    Count {
        rounds: u32,
        block: u32,
    },
    Name {
        name: u32,
        act: Act,
    },
    /// All is done. The ranks learn what was found.
    End(Option<Box<CoherenceFindings>>),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct FreeRun {
    pub rank: u32,
    /// None reads only.
    pub write: Option<WriteMode>,
    pub read: ReadMode,
    pub first_block: u32,
    pub blocks: u32,
    pub operations: u32,
    pub milliseconds: u32,
    /// Its first version; one for each operation is its own.
    pub first_version: u64,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Create it; an error if it exists.
    Create,
    Remove,
    RenameTo(u32),
    /// Cut or extend it to this size.
    Resize(u64),
    Chmod(u32),
    /// Append records with this tag.
    Append {
        tag: u8,
        records: u32,
    },
    /// Which records are in it.
    CountRecords,
    Look,
    /// Whether the directory lists it.
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
    /// Records of each of two tags, and those that are neither.
    Records(u32, u32, u32),
    /// The error of the kernel.
    Failed(i32),
    /// It is nothing that a rank does.
    Refused,
}

/// An operation of a free run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Step {
    pub is_write: bool,
    pub block: u32,
    /// What was read; none where it was no version.
    pub version: Option<u64>,
    pub start_ns: u64,
    pub end_ns: u64,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    pub bytes: u64,
    pub mode: u32,
}
