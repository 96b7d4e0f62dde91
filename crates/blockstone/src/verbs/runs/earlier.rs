//! The keys of the document of `runs` in version 1. They will be removed with the next release.

use blockstone_record::RunEntry;
use serde_json::{Map, Value as Json, json};

use super::{explained, state_word};

pub fn keys(runs: &[RunEntry]) -> Map<String, Json> {
    let entry = |run: &RunEntry| {
        json!({
            "id": run.id,
            "verb": run.verb,
            "started_at": run.started_at.map(|at| at.to_string()),
            "target": run.target_path,
            "path": run.path.display().to_string(),
            "state": explained(&run.state).unwrap_or_else(|| state_word(&run.state).to_owned()),
            "summary": run.summary,
        })
    };
    Map::from_iter([("runs".to_owned(), runs.iter().map(entry).collect())])
}
