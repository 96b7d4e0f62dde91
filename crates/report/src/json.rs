//! The versioned documents of verbs that have no report yet. A key is never renamed or given
//! another meaning within a version.

pub use compare::{COMPARE_SCHEMA, document as compare_json};

mod compare;
pub mod flash;
pub mod reduce;
