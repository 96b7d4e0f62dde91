//! Report of a watch: the tables of an interval.

use blockstone_base::database;
use blockstone_judge::judge_watch;
use blockstone_record::manifest::{Imported, Manifest};
use blockstone_report::render::json;
use blockstone_report::{Headline, Report};
use blockstone_view::{Interval, document, registry};
use serde_json::Map;

use super::overview;
use crate::layers::layers;
use crate::verb::Global;
use crate::{chapters, instants};

/// Key of the document under which its tables are stored.
pub const VIEWS: &str = "views";

/// An interval that was watched, and the host or recording that it belongs to.
pub struct Watched<'a> {
    /// `None` for a live watch.
    pub manifest: Option<&'a Manifest>,
    /// Directory of the recording; empty for a live watch.
    pub recording: String,
    pub interval: Interval<'a>,
    /// Start and end in nanoseconds since 1970; `None` if the recording does not say.
    pub instants: [Option<i128>; 2],
}

/// Returns a report of these views or, without names, of all views. Its verdicts always judge the
/// whole interval. Parts that only a page or a document has are omitted if none is made.
pub fn report(watched: &Watched<'_>, views: &[String], global: &Global) -> Report {
    let Watched { manifest, recording, interval, instants: edges } = watched;
    let (answers, facts): (Vec<_>, Vec<_>) = chapters::facts(*manifest, interval, *edges)
        .into_iter()
        .partition(|(name, _)| matches!(*name, "elapsed" | "DB time" | "transactions"));
    let line = |facts: Vec<(&str, String)>| {
        let facts = facts.into_iter().map(|(name, value)| format!("{name} {value}"));
        facts.collect::<Vec<_>>().join(" · ")
    };
    let (sections, timeline) = layers(*manifest, interval, views, global.shows_page());
    let mut notes = absent(interval, views);
    let is_text = global.json.is_none() && global.csv.is_none() && !global.verbose;
    let sections = if views.is_empty() && is_text {
        let (sections, others) = overview::beside(sections);
        notes.push(format!(
            "{others} more tables, and these in full: --all; one of them: --view NAME."
        ));
        sections
    } else {
        sections
    };
    let verdicts = judge_watch(interval);
    let document = || {
        let document = document(interval).between(edges.map(|ns| ns.and_then(instants::utc)));
        let mut keys = json::keys(document.judged(verdicts.clone()));
        // The renderer writes the views that were requested.
        keys.remove(VIEWS);
        keys
    };
    let document = if global.json.is_some() { document() } else { Map::new() };
    let imported = interval.history().imported();
    let tool_version = manifest.map(|it| it.tool_version.clone());
    let subject = manifest.map_or_else(super::hostname, |manifest| manifest.host.hostname.clone());
    Report {
        verb: "interval".into(),
        version: 1,
        headline: Headline { subject, text: line(answers), ..Headline::default() },
        identity: vec![line(facts)],
        warnings: imported.map(Imported::line).into_iter().collect(),
        sections,
        verdicts,
        notes,
        recording: recording.clone(),
        tool_version,
        document,
        tables_key: Some(VIEWS),
        began: instants::began(edges[0].map(|ns| ns - i128::from(interval.from_ns))),
        timeline,
        ..Report::default()
    }
}

/// Explains why requested views are absent.
fn absent(interval: &Interval<'_>, views: &[String]) -> Vec<String> {
    let named = registry::ALL.iter().filter(|view| views.iter().any(|name| name == view.name));
    let absent = named.filter(|view| !interval.has(view.probe));
    let why = |probe: &str| {
        let mut of_databases = database::MONITORED.iter().chain(database::OF_SESSIONS);
        if of_databases.any(|schema| schema.probe == probe) {
            "no database was watched; --db names one"
        } else {
            "nothing of it was recorded"
        }
    };
    absent.map(|view| format!("{}: {}.", view.name, why(view.probe))).collect()
}
