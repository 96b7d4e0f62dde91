//! What a copy of files left behind, as rules judge it.

/// Bytes that were moved, and what the page cache held of the sources and targets. None where the
/// kernel does not tell, or keeps the files in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFindings {
    pub data_bytes: u64,
    pub page_cache_bytes_before: Option<u64>,
    pub page_cache_bytes_after: Option<u64>,
}
