//! The keys of the documents of `compare` in version 1. They will be removed with the next release.

use blockstone_figures::compare::{Comparison, Judgement, Recorded, Row, Side, Subject};
use blockstone_report::render::json;
use serde_json::{Map, Value as Json, json};

pub fn keys(comparison: &Comparison) -> Map<String, Json> {
    let Comparison { a, b, verdict, differences, counts, rows, warnings, caveats } = comparison;
    let differences = differences.iter().map(|it| json!({ "name": it.name, "a": it.a, "b": it.b }));
    json::keys(json!({
        "a": side(a),
        "b": side(b),
        "verdict": verdict.map(Judgement::word),
        "differences": differences.collect::<Vec<Json>>(),
        "counts": {
            "faster": counts.faster,
            "slower": counts.slower,
            "higher": counts.higher,
            "lower": counts.lower,
            "not_established": counts.not_established,
            "other_load": counts.other_load,
            "condemned": counts.condemned,
            "only_in_one": counts.only_in_one,
        },
        "rows": rows.iter().map(row).collect::<Vec<Json>>(),
        "warnings": warnings,
        "caveats": caveats,
    }))
}

/// Returns the keys of the first recording of a side, and of all.
fn side(side: &Side) -> Json {
    let mut keys = recorded(&side.first);
    keys["n"] = side.n.into();
    keys["recordings"] = side.recordings.iter().map(recorded).collect();
    keys
}

fn recorded(recorded: &Recorded) -> Json {
    json!({
        "recording": recorded.recording,
        "id": recorded.id,
        "started_at": recorded.started_at,
        "host": recorded.host,
        "target": recorded.target,
        "device": recorded.device,
        "block_bytes": recorded.block_bytes,
        "span_bytes": recorded.span_bytes,
        "direct": recorded.direct,
        "trustworthy": recorded.trustworthy,
        "from_ns": recorded.from_ns,
        "to_ns": recorded.to_ns,
    })
}

fn row(row: &Row) -> Json {
    let mut keys = json::keys(match &row.key.subject {
        Subject::Measured { label, unit, lower_is_faster } => {
            json!({ "label": label, "unit": unit, "lower_is_faster": lower_is_faster })
        }
        Subject::Viewed { view, instance, row } => {
            json!({ "view": view, "instance": instance, "row": row })
        }
    });
    keys.extend(json::keys(json!({
        "figure": row.key.figure,
        "title": row.title,
        "a": row.a,
        "b": row.b,
        "n_a": row.n_a,
        "n_b": row.n_b,
        "ratio": row.ratio,
        "p_value": row.p_value,
        "q_value": row.q_value,
        "outcome": row.outcome.key(),
        "condemned_by": row.condemned_by,
        "warned_by": row.warned_by,
        "loads": row.loads,
    })));
    Json::Object(keys)
}
