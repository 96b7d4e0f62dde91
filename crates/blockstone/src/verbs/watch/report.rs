//! Report of a watch: the tables of an interval.

use blockstone_base::database;
use blockstone_base::table::Rows as _;
use blockstone_judge::judge_watch;
use blockstone_record::manifest::{Imported, Manifest};
use blockstone_report::render::json;
use blockstone_report::{Block, Headline, Report, Section};
use blockstone_view::{Interval, WHO, registry, who_answer};
use serde_json::Map;

use super::rows::Summary;
use super::{earlier, overview};
use crate::layers::layers;
use crate::verb::Global;
use crate::{chapters, instants, recorded};

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
        // `report` shows a recording too, and has no views.
        let view = if recording.is_empty() { "--view" } else { "watch --replay DIR --view" };
        notes.push(format!(
            "{others} more tables, and these in full: --all; one of them: {view} NAME."
        ));
        sections
    } else {
        sections
    };
    let verdicts = judge_watch(interval);
    let objects = || json::keys(blockstone_view::objects(interval));
    let mut document = if global.json.is_some() { objects() } else { Map::new() };
    let summary = Summary::of(interval, edges.map(|ns| ns.and_then(instants::utc)));
    let first = earlier::keys(&summary, document.clone(), &verdicts);
    // Every column of a probe has its key, whether it has a value or not.
    document.get_mut("probes").into_iter().for_each(json::explain_nulls);
    let imported = interval.history().imported();
    let dir = Some(recording).filter(|dir| !dir.is_empty());
    let labels = dir.and_then(|dir| recorded::labels(dir.as_ref()));
    let tool_version = manifest.map(|it| it.tool_version.clone());
    let answers = who(views, &sections, interval).into_iter().chain([line(answers)]);
    let subject = manifest.map_or_else(super::hostname, |manifest| manifest.host.hostname.clone());
    Report {
        verb: "interval".into(),
        version: 2,
        headline: Headline {
            subject,
            text: answers.collect::<Vec<_>>().join(" · "),
            ..Headline::default()
        },
        identity: [line(facts)].into_iter().chain(labels).collect(),
        warnings: imported.map(Imported::line).into_iter().collect(),
        sections,
        verdicts,
        notes,
        recording: recording.clone(),
        tool_version,
        scalars: Some(Summary::table("interval", "", [summary])),
        document,
        first,
        tables_key: Some(VIEWS),
        began: instants::began(edges[0].map(|ns| ns - i128::from(interval.from_ns))),
        timeline,
        ..Report::default()
    }
}

/// Returns the answer of the view of processes and files in a sentence, if it was requested.
fn who(views: &[String], sections: &[Section], interval: &Interval<'_>) -> Option<String> {
    let wanted = views.iter().any(|name| name == WHO.name);
    let section = sections.iter().find(|section| section.id == WHO.name).filter(|_| wanted)?;
    section.blocks.iter().find_map(|block| match block {
        Block::Table(table) => Some(who_answer(table, interval)),
        _ => None,
    })
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
