//! Keys that the JSON documents of recordings share in version 1. They will be removed with the
//! next release.

use std::collections::BTreeMap;

use blockstone_base::identity::{Host, StorageTarget};
use blockstone_base::verdict::Verdict;
use blockstone_record::Recording;
use blockstone_record::manifest::{End, Figure, NamedCapability};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The identity of the recording, its headline, and the machine it was made on.
#[derive(Serialize)]
pub struct Common<'a> {
    /// Version of Blockstone that measured.
    tool_version: &'a str,
    /// Whether no verdict condemns a number.
    trustworthy: bool,
    recording: Identity<'a>,
    /// Every figure, and its 95 % interval; null when condemned or not measured.
    summary: Map<String, Value>,
    /// The figures that may not be used, by name.
    condemned: Map<String, Value>,
    /// One for each rule that applies.
    verdicts: &'a [Verdict],
    /// The figures that were measured, by name, with all there is to say about each.
    figures: Map<String, Value>,
    host: &'a Host,
    target: &'a StorageTarget,
    /// The settings after defaults, by the name of the option.
    settings: &'a BTreeMap<String, Value>,
    /// Capabilities of the measurement, with the reason for each that is degraded.
    capabilities: &'a [NamedCapability],
}

#[derive(Serialize)]
struct Identity<'a> {
    /// Its directory.
    path: String,
    id: &'a str,
    /// RFC 3339.
    started_at: &'a str,
    /// RFC 3339; null while it runs or after a crash.
    ended_at: Option<&'a str>,
    end: &'a End,
}

#[derive(Serialize)]
struct Condemned<'a> {
    value: Option<f64>,
    /// The rules that condemn it.
    by: &'a [String],
}

/// The keys of a recording. `names` are the figures that the verb knows.
pub fn common<'a>(
    recording: &'a Recording,
    names: &[&str],
    figures: &[(String, Figure)],
    verdicts: &'a [Verdict],
) -> Common<'a> {
    let manifest = &recording.manifest;
    Common {
        tool_version: &manifest.tool_version,
        trustworthy: !verdicts.iter().any(Verdict::condemns),
        recording: Identity {
            path: recording.dir.display().to_string(),
            id: &manifest.id,
            started_at: &manifest.started_at,
            ended_at: manifest.ended_at.as_deref(),
            end: &manifest.end,
        },
        summary: summary(names, figures),
        condemned: condemned(figures),
        verdicts,
        figures: figures.iter().map(|(name, figure)| (name.clone(), json!(figure))).collect(),
        host: &manifest.host,
        target: &manifest.target,
        settings: &manifest.settings,
        capabilities: &manifest.capabilities,
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
        let value = Some(figure.estimate.value);
        (name.clone(), json!(Condemned { value, by: &figure.condemned_by }))
    };
    condemned.map(entry).collect()
}
