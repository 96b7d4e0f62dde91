//! The scanned files, and the problems with them. The reader of the files fills this in; reports
//! show it next to the findings.

use serde::{Deserialize, Serialize};

use crate::estimate::{self, Interval};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum FileState {
    /// The file was read from beginning to end, and its end did not move.
    Complete,
    /// The scan ended before the file did.
    Pending,
    /// It grew during the scan; data past its original end was not read.
    Grew {
        /// Number of bytes added.
        #[serde(rename = "changed_bytes")]
        bytes: u64,
    },
    /// It shrank during the scan; the missing data is not counted.
    Shrank {
        /// Number of bytes lost.
        #[serde(rename = "changed_bytes")]
        bytes: u64,
    },
    /// Its size stayed the same, but it was written to during the scan.
    Written,
    /// It could not be read to its end.
    Unreadable { why: String },
}

impl FileState {
    /// Returns whether the figures lack a part of the file.
    pub fn is_partial(&self) -> bool {
        !matches!(self, Self::Complete | Self::Written)
    }
}

/// A file that was scanned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScannedFile {
    pub path: String,
    /// Bytes counted.
    pub bytes: u64,
    /// Bytes of them in holes, which were not read.
    pub hole_bytes: u64,
    /// Format of its pages, if it has any.
    pub format: Option<String>,
    #[serde(flatten)]
    pub state: FileState,
}

/// A file or other path that was not scanned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    pub path: String,
    pub why: String,
    /// Whether it has content that is missing from the figures.
    pub matters: bool,
}

/// Free space of a file system, and what it still holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FreeSpace {
    pub mount_point: String,
    /// Type of the file system.
    pub kind: String,
    pub device: String,
    pub block_bytes: u64,
    pub free_blocks: u64,
    /// Number of pieces of free space.
    pub extents: u64,
    /// Number of free blocks that were read.
    pub read_blocks: u64,
    /// Number of them that were not all zeros.
    pub read_blocks_holding: u64,
    /// Whether the file system discards blocks as soon as they are freed.
    pub mounted_with_discard: bool,
    /// The devices from the top down.
    pub discards: Vec<Discards>,
    /// File of a loop device: its size, and the space that it takes, in bytes.
    pub backing_bytes: Option<(u64, u64)>,
}

/// Discards as a device describes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discards {
    pub device: String,
    /// Zero if the device takes none.
    pub max_bytes: u64,
    pub granularity_bytes: u64,
}

impl FreeSpace {
    pub fn free_bytes(&self) -> u64 {
        self.free_blocks.saturating_mul(self.block_bytes)
    }

    /// Share of the free blocks that are not all zeros; `None` if no block is free.
    pub fn holding_share(&self) -> Option<Interval> {
        let population = self.free_blocks.max(self.read_blocks) as f64;
        estimate::share(self.read_blocks_holding, self.read_blocks, population)
    }

    /// Whether every device takes discards.
    pub fn takes_discards(&self) -> bool {
        !self.discards.is_empty() && self.discards.iter().all(|device| device.max_bytes > 0)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scanned {
    /// Files, in the order in which they were read.
    pub files: Vec<ScannedFile>,
    /// Paths that were not scanned.
    pub skipped: Vec<Skipped>,
    /// Free space of their file systems, if that was asked for.
    #[serde(default)]
    pub free: Vec<FreeSpace>,
    /// Bytes read from storage, excluding holes.
    pub read_bytes: u64,
    /// Seconds from the first read to the last count.
    pub elapsed_s: f64,
    pub cpu_s: f64,
    /// Peak memory of the process, in bytes.
    pub memory_bytes: u64,
    /// Whether reads bypassed the page cache.
    pub direct: bool,
    /// Reason why the scan ended early, if it did.
    pub ended_by: Option<String>,
}

impl Scanned {
    /// Returns whether the figures cover every file from beginning to end.
    pub fn is_whole(&self) -> bool {
        self.ended_by.is_none()
            && !self.skipped.iter().any(|skipped| skipped.matters)
            && !self.files.iter().any(|file| file.state.is_partial())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grew_keeps_both_its_sizes_as_a_document() {
        let state = FileState::Grew { bytes: 7 };
        let file = ScannedFile {
            path: "/data/a".to_owned(),
            bytes: 4096,
            hole_bytes: 0,
            format: None,
            state,
        };
        let text = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<ScannedFile>(&text).unwrap(), file);
    }
}
