//! One self-contained page: style, script and data are inside it, and its content-security policy
//! forbids it the network, so it can be mailed, archived and opened years later.

mod cards;
mod charts;
mod grid;
mod identity;
mod run;
mod table;
mod tables;
mod timeline;

use blockstone_base::verdict::{Outcome, Verdict, Weight};
use blockstone_judge::findings::Findings;
use blockstone_record::Recording;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::{ReportError, select};
use cards::{Card, Family};
use charts::Chart;
use table::Table;

pub use grid::page as grid_page;
pub use run::page as run_page;

const STYLE: &str = include_str!("../templates/report.css");
const SCRIPT: &str = include_str!("../templates/report.js");
const LAYOUT: &str = include_str!("../templates/layout.html.j2");
const REPORT: &str = include_str!("../templates/report.html.j2");

#[derive(Serialize)]
struct Page {
    verb: &'static str,
    path: String,
    identity: Vec<String>,
    unfinished: Option<String>,
    trustworthy: bool,
    condemned_by: Vec<String>,
    headline: Vec<Card>,
    families: Vec<Family>,
    verdicts: Vec<Judged>,
    sections: Vec<Section>,
    tool_version: String,
    recording: String,
}

/// A verdict as the page shows it.
#[derive(Serialize)]
struct Judged {
    /// `fail`, `warn`, `inconclusive` or `pass`: the badge's class.
    class: &'static str,
    /// The badge's text.
    badge: &'static str,
    #[serde(flatten)]
    verdict: Verdict,
}

/// A chapter of the page: charts, then the tables behind them.
#[derive(Serialize)]
struct Section {
    id: &'static str,
    title: &'static str,
    intro: &'static str,
    charts: Vec<Chart>,
    tables: Vec<Table>,
}

/// Renders a calibration as one page of HTML.
///
/// # Errors
/// When the recorded series cannot be read.
pub fn page(recording: &Recording, findings: &Findings) -> Result<String, ReportError> {
    let manifest = &recording.manifest;
    let page = Page {
        verb: "calibrate",
        path: manifest.target.path.clone(),
        identity: identity::in_brief(manifest),
        unfinished: select::unfinished(manifest),
        trustworthy: findings.trustworthy(),
        condemned_by: select::headline_condemned_by(findings).into_iter().map(Into::into).collect(),
        headline: cards::headline(findings),
        families: cards::families(findings),
        verdicts: judged(&findings.verdicts),
        sections: sections(recording, findings)?,
        tool_version: manifest.tool_version.clone(),
        recording: recording.dir.display().to_string(),
    };
    fill("report.html", &page)
}

fn sections(recording: &Recording, findings: &Findings) -> Result<Vec<Section>, ReportError> {
    let manifest = &recording.manifest;
    let mut sections = vec![
        Section {
            id: "reads",
            title: "Reads",
            intro: "Blocking readers wait for each read, as database foregrounds do; asynchronous \
                    depth keeps many reads in flight from one thread.",
            charts: charts::reads(manifest, findings),
            tables: [tables::concurrency(findings), tables::open_loop(findings)].into(),
        },
        Section {
            id: "writes",
            title: "Writes and commits",
            intro: "A commit is a write and its flush, timed as one.",
            charts: charts::writes(manifest, findings),
            tables: [tables::commits(manifest, findings), tables::committers(manifest, findings)]
                .into(),
        },
        Section {
            id: "caches",
            title: "Caches and mixed load",
            intro: "Re-reading ever larger parts of the file shows whether a cache answers and how \
                    large it is.",
            charts: charts::caches(manifest, findings),
            tables: vec![tables::matrix(findings)],
        },
        Section {
            id: "time",
            title: "The run in time",
            intro: "Raw counters of every tick, from the first phase to the last.",
            charts: timeline::chart(recording)?.into_iter().collect(),
            tables: Vec::new(),
        },
        Section {
            id: "evidence",
            title: "Evidence",
            intro: "The same window as three layers saw it: what the load generator completed, \
                    what the kernel charged to this process, what the device moved.",
            charts: Vec::new(),
            tables: vec![tables::evidence(findings)],
        },
        Section {
            id: "numbers",
            title: "All numbers",
            intro: "",
            charts: Vec::new(),
            tables: vec![
                tables::rates(findings),
                tables::latencies(findings),
                tables::costs(findings),
            ],
        },
        Section {
            id: "identity",
            title: "What was measured, and with what",
            intro: "",
            charts: Vec::new(),
            tables: identity::tables(manifest),
        },
    ];
    tidy(&mut sections);
    Ok(sections)
}

/// Leaves out what is empty and gives the charts their places.
fn tidy(sections: &mut Vec<Section>) {
    for section in sections.iter_mut() {
        charts::share_rows(&mut section.charts);
        section.tables.retain(|table| !table.rows.is_empty());
    }
    sections.retain(|s| !(s.charts.is_empty() && s.tables.is_empty()));
}

/// Failures first, the condemning ones before the warnings; then what was not decided.
fn judged(verdicts: &[Verdict]) -> Vec<Judged> {
    let mut judged: Vec<Judged> = verdicts
        .iter()
        .map(|verdict| {
            let (class, badge) = match (verdict.outcome, verdict.weight) {
                (Outcome::Fail, Weight::Condemns) => ("fail", "condemns"),
                (Outcome::Fail, Weight::Warns) => ("warn", "warns"),
                (Outcome::Inconclusive, _) => ("inconclusive", "undecided"),
                (Outcome::Pass, _) => ("pass", "pass"),
            };
            Judged { class, badge, verdict: verdict.clone() }
        })
        .collect();
    let order = ["fail", "warn", "inconclusive", "pass"];
    judged.sort_by_key(|j| order.iter().position(|class| *class == j.class));
    judged
}

/// Fills in one of the templates; everything but the page's own style, script and chart data is
/// escaped.
fn fill(template: &'static str, page: &impl Serialize) -> Result<String, ReportError> {
    let fail = |source| ReportError::Template { template, source };
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    templates.set_syntax(syntax.map_err(fail)?);
    for (name, source) in [
        ("layout.html", LAYOUT),
        ("report.html", REPORT),
    ] {
        templates.add_template(name, source).map_err(fail)?;
    }
    let rendered = templates.get_template(template).map_err(fail)?.render(minijinja::context! {
        page => Value::from(Serde(page)),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        library => Value::from_safe_string(charts::library()),
    });
    rendered.map_err(fail)
}
