//! Parameters with which an instance is created and opened.

use std::time::Duration;

use blockstone_base::{Bytes, named, rng};
use serde::Serialize;

use crate::block::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::error::InstanceError;
use crate::layout::Permutation;
use crate::redo::REDO_BLOCK_BYTES;

/// Maximum number of writers: each has its part of the double-write area.
pub const WRITERS_MAX: u32 = 16;

const BLOCKS_PER_SESSION: usize = 8;
const CACHE_BLOCKS_MIN: u64 = 64;
const REDO_BYTES_MIN: u64 = 256 << 10;
const LOG_BUFFER_MIN: u64 = 128 << 10;

/// Parameters fixed when an instance is created; kept in its control file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InstanceSpec {
    /// Size of a block: 4, 8, 16 or 32 KiB.
    pub block: Bytes,
    /// Number of schemas, each with its own tables.
    pub schemas: u32,
    /// Rows per schema; one row is one block.
    pub rows: u64,
    /// Blocks of a schema's second table, which is scanned; may be zero.
    pub scan_blocks: u64,
    /// Number of redo logs, written in turn; at least two.
    pub redo_logs: u32,
    /// Size of each redo log.
    pub redo: Bytes,
    /// Seed of the physical order of rows and of their content.
    pub seed: u64,
    /// Incompressible share of a column, 0 to 100 %.
    pub random_percent: u8,
}

named! {
    /// How a torn block write is repaired. The order is that of the numbers in the control file.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    TornProtection {
        /// Not repaired, as in Oracle: a torn block is detected by its checksum and is lost.
        None = "none",
        /// Before the first change since a block was last written, the whole block goes into the
        /// redo, as in `PostgreSQL` after each checkpoint.
        FullPage = "full-page",
        /// Blocks are written to a double-write area first, as in `InnoDB`.
        DoubleWrite = "double-write",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSpec {
    pub cache: Bytes,
    pub writers: u32,
    /// Size of the log buffer: one half gathers records while the other is written.
    pub log_buffer: Bytes,
    pub protection: TornProtection,
    /// Delay before the first attempt to bring back a disk that left the group; it grows with each
    /// attempt.
    pub return_after: Duration,
    /// Open the instance even if damage to its disks has lost commits, which [`Recovery`] then
    /// names.
    ///
    /// [`Recovery`]: crate::Recovery
    pub accept_loss: bool,
}

impl InstanceSpec {
    pub fn blocks(&self) -> u64 {
        u64::from(self.schemas) * self.schema_blocks()
    }

    pub(crate) fn schema_blocks(&self) -> u64 {
        self.rows + self.scan_blocks
    }

    /// Returns the physical order of the rows of a schema, by key.
    pub(crate) fn order(&self, schema: u64) -> Permutation {
        Permutation::new(self.rows, rng::mix(self.seed ^ rng::mix(schema)))
    }

    pub(crate) fn check(&self) -> Result<(), InstanceError> {
        let refuse = |what: String, hint| Err(InstanceError::parameter(what, hint));
        let block = self.block.get();
        if !block.is_power_of_two() || !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block) {
            return refuse(
                format!("unsupported block size {}", self.block),
                "use 4K, 8K, 16K or 32K",
            );
        }
        if self.schemas == 0 || self.rows == 0 {
            let what = format!("{} schemas of {} rows", self.schemas, self.rows);
            return refuse(what, "use at least one schema and one row");
        }
        let redo = self.redo.get();
        if self.redo_logs < 2
            || redo < REDO_BYTES_MIN
            || !redo.is_multiple_of(REDO_BLOCK_BYTES as u64)
        {
            let what = format!("{} redo logs of {}", self.redo_logs, self.redo);
            return refuse(what, "use at least two, of at least 256K and whole 4K blocks");
        }
        if self.random_percent > 100 {
            let what = format!("{} % of a column incompressible", self.random_percent);
            return refuse(what, "use 0 to 100");
        }
        Ok(())
    }
}

impl TornProtection {
    pub(crate) fn from_number(number: u64) -> Self {
        Self::ALL.get(number as usize).copied().unwrap_or(Self::None)
    }
}

impl OpenSpec {
    /// Whether an instance created as `made` can be opened this way, for `sessions` at a time.
    /// Fails if a parameter has an invalid value, or the cache is too small.
    pub fn check(&self, made: &InstanceSpec, sessions: u32) -> Result<(), InstanceError> {
        let refuse = |what: String, hint| Err(InstanceError::parameter(what, hint));
        if self.cache.get() < CACHE_BLOCKS_MIN * made.block.get() {
            let what =
                format!("a cache of {} is too small for blocks of {}", self.cache, made.block);
            return refuse(what, "use a --cache of at least 64 blocks");
        }
        if !(1..=WRITERS_MAX).contains(&self.writers) {
            return refuse(format!("{} database writers", self.writers), "use 1 to 16");
        }
        if self.log_buffer.get() < LOG_BUFFER_MIN {
            return refuse(format!("a log buffer of {}", self.log_buffer), "use at least 128K");
        }
        check_sessions((self.cache.get() / made.block.get()) as usize, sessions)
    }
}

impl Default for OpenSpec {
    /// 128 MiB of cache, one writer, a log buffer of 4 MiB, full pages in the redo.
    fn default() -> Self {
        Self {
            cache: Bytes::mib(128),
            writers: 1,
            log_buffer: Bytes::mib(4),
            protection: TornProtection::FullPage,
            return_after: Duration::from_secs(5),
            accept_loss: false,
        }
    }
}

pub(crate) fn check_sessions(frames: usize, sessions: u32) -> Result<(), InstanceError> {
    let served = frames / BLOCKS_PER_SESSION;
    if sessions as usize > served {
        return Err(InstanceError::CacheTooSmall { session: sessions - 1, frames, served });
    }
    Ok(())
}
