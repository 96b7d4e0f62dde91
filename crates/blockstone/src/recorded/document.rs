//! Keys that the JSON documents of recordings share. A key is never renamed or given another
//! meaning within a version; `docs/schema` describes them.

use blockstone_base::verdict::Verdict;
use blockstone_record::Recording;
use blockstone_record::manifest::Figure;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Which recording it is, what it says in short, and on which machine. `names` are the figures
/// that the verb knows.
pub fn common(
    recording: &Recording,
    names: &[&str],
    figures: &[(String, Figure)],
    verdicts: &[Verdict],
) -> Map<String, Value> {
    let manifest = &recording.manifest;
    object(json!({
        "tool_version": manifest.tool_version,
        "trustworthy": !verdicts.iter().any(Verdict::condemns),
        "recording": {
            "path": recording.dir.display().to_string(),
            "id": manifest.id,
            "started_at": manifest.started_at,
            "ended_at": manifest.ended_at,
            "end": manifest.end,
        },
        "summary": summary(names, figures),
        "condemned": condemned(figures),
        "verdicts": verdicts,
        "figures": figures.iter().map(|(name, f)| (name.clone(), plain(f))).collect::<Map<_, _>>(),
        "host": manifest.host,
        "target": manifest.target,
        "settings": manifest.settings,
        "capabilities": manifest.capabilities,
    }))
}

/// The keys of an object; of anything else none.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(keys) => keys,
        _ => Map::new(),
    }
}

/// Every figure there is, with or without a number: a script that reads one of them gets a number
/// or null, never a missing key. A condemned figure is null here and stands under `condemned`.
fn summary(names: &[&str], figures: &[(String, Figure)]) -> Map<String, Value> {
    let mut out = Map::new();
    let mut insert = |name: &str, figure: Option<&Figure>| {
        let estimate = figure.map(|figure| figure.estimate);
        out.insert(name.to_owned(), json!(estimate.map(|e| e.value)));
        out.insert(format!("{name}_interval"), json!(estimate.map(|e| [e.low, e.high])));
    };
    for name in names {
        insert(name, None);
    }
    for (name, figure) in figures {
        insert(name, Some(figure).filter(|figure| figure.condemned_by.is_empty()));
    }
    out
}

fn condemned(figures: &[(String, Figure)]) -> Map<String, Value> {
    let condemned = figures.iter().filter(|(_, figure)| !figure.condemned_by.is_empty());
    let entry = |(name, figure): &(String, Figure)| {
        let entry = json!({ "value": figure.estimate.value, "by": figure.condemned_by });
        (name.clone(), entry)
    };
    condemned.map(entry).collect()
}

/// # Panics
/// Never: findings are structs, strings and numbers; a number that is not finite becomes null.
pub fn plain<T: Serialize + ?Sized>(part: &T) -> Value {
    serde_json::to_value(part).expect("findings have string keys and plain values only")
}
