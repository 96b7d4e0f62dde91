//! The versioned document of a comparison.

use blockstone_judge::compare::{Change, Comparison};
use serde_json::{Value, json};

/// The version of [`document`].
pub const COMPARE_SCHEMA: &str = "blockstone.compare/1";

/// The document of a comparison: every row with both numbers, the ratio and what may be said.
pub fn document(comparison: &Comparison) -> Value {
    let count = |change| comparison.rows.iter().filter(|row| row.outcome == change).count();
    json!({
        "schema": COMPARE_SCHEMA,
        "a": comparison.a,
        "b": comparison.b,
        "counts": {
            "faster": count(Change::Faster),
            "slower": count(Change::Slower),
            "not_established": count(Change::NotEstablished),
            "condemned": count(Change::Condemned),
            "only_in_one": count(Change::OnlyInOne),
        },
        "rows": comparison.rows,
        "warnings": comparison.warnings,
        "caveats": comparison.caveats,
    })
}
