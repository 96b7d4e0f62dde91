//! The versioned document for scripts. `docs/schema/calibrate-1.json`, `run-1.json` and
//! `compare-1.json` describe it; a key is never renamed or given another meaning within a version.

use blockstone_judge::findings::Findings;
use blockstone_judge::summary::NAMES;
use blockstone_record::Recording;
use blockstone_record::manifest::Figure;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use run::{RUN_SCHEMA, document as run_json};

mod run;

/// The version of [`document`].
pub const CALIBRATE_SCHEMA: &str = "blockstone.calibrate/1";

/// The document of a calibration. A condemned figure is null under `summary` and stands, with the
/// rules that condemn it, under `condemned`.
pub fn document(recording: &Recording, findings: &Findings) -> Value {
    let manifest = &recording.manifest;
    json!({
        "schema": CALIBRATE_SCHEMA,
        "tool_version": manifest.tool_version,
        "trustworthy": findings.trustworthy(),
        "recording": about(recording),
        "summary": summary(&NAMES, &findings.summary),
        "condemned": condemned(&findings.summary),
        "verdicts": findings.verdicts,
        "figures": figures(&findings.summary),
        "points": plain(&findings.points),
        "drift_ratio": findings.drift_ratio,
        "host": manifest.host,
        "target": manifest.target,
        "file": manifest.file,
        "settings": manifest.settings,
        "capabilities": manifest.capabilities,
    })
}

fn about(recording: &Recording) -> Value {
    let manifest = &recording.manifest;
    json!({
        "path": recording.dir.display().to_string(),
        "id": manifest.id,
        "started_at": manifest.started_at,
        "ended_at": manifest.ended_at,
        "end": manifest.end,
    })
}

/// Every figure there is, with or without a number: a script that reads one of them gets a number
/// or null, never a missing key.
fn summary(names: &[&str], summary: &[(String, Figure)]) -> Value {
    let mut out = Map::new();
    for name in names {
        insert(&mut out, name, None);
    }
    for (name, figure) in summary {
        insert(&mut out, name, Some(figure).filter(|f| f.condemned_by.is_empty()));
    }
    Value::Object(out)
}

/// `name` and `name_interval`, both null when there is nothing to believe.
fn insert(out: &mut Map<String, Value>, name: &str, figure: Option<&Figure>) {
    let estimate = figure.map(|f| f.estimate);
    out.insert(name.to_owned(), json!(estimate.map(|e| e.value)));
    out.insert(format!("{name}_interval"), json!(estimate.map(|e| [e.low, e.high])));
}

fn condemned(summary: &[(String, Figure)]) -> Value {
    summary
        .iter()
        .filter(|(_, figure)| !figure.condemned_by.is_empty())
        .map(|(name, figure)| {
            let entry = json!({ "value": figure.estimate.value, "by": figure.condemned_by });
            (name.clone(), entry)
        })
        .collect::<Map<_, _>>()
        .into()
}

fn figures(summary: &[(String, Figure)]) -> Value {
    summary.iter().map(|(name, figure)| (name.clone(), plain(figure))).collect::<Map<_, _>>().into()
}

/// # Panics
/// Never: the findings are structs, strings and numbers; a number that is not finite becomes null.
fn plain<T: Serialize + ?Sized>(part: &T) -> Value {
    serde_json::to_value(part).expect("findings have string keys and plain values only")
}
