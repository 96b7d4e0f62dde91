//! What was scanned: the files, and what was wrong with them. The reader of the files fills this
//! in; reports show it beside the findings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum FileState {
    /// Read from its beginning to its end, which stayed where it was.
    Complete,
    /// The scan ended before it did.
    Pending,
    /// It became longer meanwhile; what came behind the end was not read.
    Grew {
        /// By so much.
        #[serde(rename = "changed_bytes")]
        bytes: u64,
    },
    /// It became shorter meanwhile; what was missing is not counted.
    Shrank {
        /// By so much.
        #[serde(rename = "changed_bytes")]
        bytes: u64,
    },
    /// Its size stayed, but it was written to meanwhile.
    Written,
    /// It could not be read to its end.
    Unreadable { why: String },
}

impl FileState {
    /// Whether the figures lack a part of the file.
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
    /// The format of its pages, if it has any.
    pub format: Option<String>,
    #[serde(flatten)]
    pub state: FileState,
}

/// Something met on the way that was not scanned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    pub path: String,
    pub why: String,
    /// Whether it has content that the figures now lack.
    pub matters: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scanned {
    /// Files, in the order in which they were read.
    pub files: Vec<ScannedFile>,
    /// What was not scanned.
    pub skipped: Vec<Skipped>,
    /// Bytes that were read from storage, holes left out.
    pub read_bytes: u64,
    /// Seconds from the first read to the last count.
    pub elapsed_s: f64,
    pub cpu_s: f64,
    /// Most memory that the process had, in bytes.
    pub memory_bytes: u64,
    /// Whether reads went past the page cache.
    pub direct: bool,
    /// Why the scan ended before its end, if it did.
    pub ended_by: Option<String>,
}

impl Scanned {
    /// Whether every file is in the figures from its beginning to its end.
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
