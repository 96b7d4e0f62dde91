//! The keys of the document of an interval in version 1. They will be removed with the next
//! release.

use blockstone_base::verdict::Verdict;
use serde_json::{Map, Value as Json, json};

use super::rows::Summary;

/// Returns the keys of version 1. `objects` are those besides single figures and tables; none of
/// them if no document is made.
pub fn keys(
    summary: &Summary,
    objects: Map<String, Json>,
    verdicts: &[Verdict],
) -> Map<String, Json> {
    let mut keys = objects;
    keys.extend([
        ("from_ns".to_owned(), json!(summary.from_ns)),
        ("to_ns".to_owned(), json!(summary.to_ns)),
        ("verdicts".to_owned(), json!(verdicts)),
    ]);
    let clocks = [("from", &summary.from), ("to", &summary.to)].into_iter();
    keys.extend(clocks.filter_map(|(key, at)| Some((key.to_owned(), json!(at.as_ref()?)))));
    keys.retain(|_, value| !value.is_null());
    keys
}
