//! What runs on a storage that filters rows are like, as rules judge them.

/// One run. What is not counted is `None`, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffloadRun {
    pub name: String,
    pub seconds: Option<f64>,
    pub hosts: Option<u32>,
    /// What the plan asked of the storage.
    pub read_bytes: u64,
    /// What the storage was allowed to filter.
    pub eligible_bytes: Option<u64>,
    pub returned_bytes: Option<u64>,
    /// Eligible, but sent unfiltered because the storage was short of processor time.
    pub balanced_bytes: Option<u64>,
    pub wire_bytes: Option<u64>,
    /// The same as counted by an interface that nothing else crosses.
    pub interface_bytes: Option<u64>,
    /// What the link of one host carries.
    pub link_bytes_per_s: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct OffloadFindings {
    pub runs: Vec<OffloadRun>,
}
