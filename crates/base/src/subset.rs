//! What a subset of a database is like, as rules judge it.

/// A foreign key of a subset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsetKey {
    pub name: String,
    /// Rows that reference a row which is not there; none where that is not known.
    pub orphans: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsetFindings {
    pub keys: Vec<SubsetKey>,
    /// Whether each table was sampled by itself, to show what that breaks.
    pub naive: bool,
}
