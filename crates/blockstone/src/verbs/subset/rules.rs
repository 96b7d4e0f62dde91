//! The rules for a subset of a database.

mod orphans;
#[cfg(test)]
mod tests;

use blockstone_base::rule::{Judged, RuleOf};

/// All rules, in the order in which their verdicts are listed.
pub const ALL: &[RuleOf<SubsetFindings>] = &[orphans::RULE];

/// A foreign key of a subset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsetKey {
    pub name: String,
    /// Rows that reference a row which does not exist; `None` if their number is not known.
    pub orphans: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubsetFindings {
    pub keys: Vec<SubsetKey>,
    /// Whether each table was sampled independently, to show what that breaks.
    pub naive: bool,
}

impl Judged for SubsetFindings {
    const VERB: &'static str = "subset";
}
