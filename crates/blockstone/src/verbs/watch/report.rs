//! The report of what was watched: the tables of an interval.

use blockstone_record::manifest::{Imported, Manifest};
use blockstone_report::{Headline, Report};
use blockstone_view::{Interval, document};
use serde_json::Value as Json;

use crate::chapters;
use crate::layers::layers;

pub struct Watched<'a> {
    /// None while it is watched.
    pub manifest: Option<&'a Manifest>,
    /// The directory of the recording; empty while it is watched.
    pub recording: String,
    pub interval: Interval<'a>,
}

/// The report: of these views or, without names, of all.
pub fn report(watched: &Watched<'_>, views: &[String]) -> Report {
    let Watched { manifest, recording, interval } = watched;
    let (answers, facts): (Vec<_>, Vec<_>) = chapters::facts(*manifest, interval)
        .into_iter()
        .partition(|(name, _)| matches!(*name, "elapsed" | "DB time" | "transactions"));
    let line = |facts: Vec<(&str, String)>| {
        let facts = facts.into_iter().map(|(name, value)| format!("{name} {value}"));
        facts.collect::<Vec<_>>().join(" · ")
    };
    let (sections, timeline) = layers(*manifest, interval, views);
    let Json::Object(mut keys) = document(interval) else { unreachable!("it is an object") };
    // Renderers write these two.
    keys.remove("schema");
    keys.remove("views");
    let imported = interval.history().imported();
    let tool_version = manifest.map_or(env!("CARGO_PKG_VERSION"), |it| &it.tool_version);
    let subject = manifest.map_or_else(super::hostname, |manifest| manifest.host.hostname.clone());
    Report {
        verb: "interval".into(),
        version: 1,
        headline: Headline { subject, text: line(answers), ..Headline::default() },
        identity: vec![line(facts)],
        warnings: imported.map(Imported::line).into_iter().collect(),
        sections,
        recording: recording.clone(),
        tool_version: tool_version.to_owned(),
        document: keys,
        tables_key: Some("views"),
        timeline: Some(timeline),
        ..Report::default()
    }
}
