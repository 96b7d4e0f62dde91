//! A report as one self-contained page: style, script and data are inside it, and its
//! content-security policy denies it the network, so it can be mailed, archived and opened years
//! later. Without its script it shows everything, but does not react.

mod cards;
mod chart;
mod numbers;
mod picture;
mod ruler;
mod shapes;
mod table;

use std::fmt::Write as _;

use blockstone_base::table::{Heading, Merge};
use blockstone_base::verdict::{Outcome, Verdict, Weight};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value as Safe};
use minijinja::{AutoEscape, Environment, HtmlEscape, UndefinedBehavior};
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::ReportError;
use crate::chart::Chart;
use crate::render::terminal::{self, Style};
use crate::render::undecided::{by_reason, undecided};
use crate::report::{Began, Block, Detail, Report, Section, Tone};
use crate::timeline::Sliced;
use cards::{Card, Group};
use chart::{Drawing, Time};
use table::Grid;

const TEMPLATE: &str = include_str!("../../templates/page.html.j2");
const STYLE: &str = include_str!("../../templates/page.css");
const SCRIPT: &str = include_str!("../../templates/page.js");

/// Width of the text at the end of the page, in columns.
const TEXT_WIDTH: usize = 100;

#[derive(Serialize)]
struct Page<'a> {
    verb: String,
    subject: &'a str,
    text: &'a str,
    tone: &'static str,
    identity: &'a [String],
    warnings: &'a [String],
    headline: Vec<Card>,
    groups: Vec<Group>,
    /// Number of figures.
    figures: usize,
    /// Failed rules that concern most figures, each with the number of those figures.
    warned: Vec<(&'a str, usize)>,
    verdicts: Vec<Judged<'a>>,
    /// Number of verdicts that passed, for the line of verdicts.
    passed: usize,
    /// Number of verdicts that could not be decided, and their rules by reason.
    undecided: usize,
    undecided_by_reason: String,
    sections: Vec<Chapter>,
    notes: &'a [String],
    /// Description of the tables that follow the window chosen on a chart.
    follows: Option<String>,
    recording: &'a str,
    tool_version: &'a str,
    plain: String,
}

#[derive(Serialize)]
struct Judged<'a> {
    id: String,
    /// `fail`, `warn`, `inconclusive` or `pass`: the badge's class.
    class: &'static str,
    badge: &'static str,
    /// Titles of the figures that it concerns.
    figures: Vec<&'a str>,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

#[derive(Serialize)]
struct Chapter {
    id: String,
    heading: String,
    about: String,
    /// Whether it stands above the figures.
    is_top: bool,
    parts: Vec<Element>,
}

/// Parts of a chapter, one below the other; charts stand side by side as far as there is room.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Element {
    Charts(Vec<Drawing>),
    Table(Box<Grid>),
    Bars(Vec<picture::BarShape>),
    Cells(picture::CellShapes),
    Text(String),
}

/// Renders a report as one page of HTML.
pub fn page(report: &Report) -> Result<String, ReportError> {
    let sections = chapters(report);
    let data = data(report, &sections);
    let follows = follows(report, &sections);
    let style = Style { color: false, width: TEXT_WIDTH };
    let page = Page {
        // The name of a document: `flash-cliff`.
        verb: report.verb.replace('-', " "),
        subject: &report.headline.subject,
        text: &report.headline.text,
        tone: match report.headline.tone {
            Tone::Plain => "plain",
            Tone::Warning => "warn",
            Tone::Bad => "fail",
        },
        identity: &report.identity,
        warnings: &report.warnings,
        headline: cards::headline(report),
        groups: cards::groups(report),
        figures: cards::names(report).count(),
        warned: cards::warned(report),
        verdicts: judged(report),
        undecided: undecided(&report.verdicts).len(),
        undecided_by_reason: by_reason(&undecided(&report.verdicts)),
        passed: report.verdicts.iter().filter(|v| v.outcome == Outcome::Pass).count(),
        sections,
        notes: &report.notes,
        follows,
        recording: &report.recording,
        tool_version: report.tool_version(),
        plain: terminal::text(report, true, &style),
    };
    fill(&page, &data)
}

fn chapters(report: &Report) -> Vec<Chapter> {
    let edges = report.timeline.as_ref().map_or(&[][..], |timeline| &timeline.edges_ns);
    let charts = report.sections.iter().flat_map(|section| &section.blocks);
    let charts = charts.filter_map(|block| match block {
        Block::Chart(chart) => Some(chart),
        _ => None,
    });
    let time =
        Time { span: chart::span(charts, edges), began_ns: report.began.map(Began::local_ns) };
    let mut places = Places { charts: 0, tables: 0, time };
    let shown = report.sections.iter().filter(|section| section.detail.is_on_page());
    shown.map(|section| chapter(section, report, &mut places)).collect()
}

/// Describes which tables a chosen window changes, and its other effects on them; `None` without
/// slices.
fn follows(report: &Report, sections: &[Chapter]) -> Option<String> {
    let timeline = report.timeline.as_ref().filter(|timeline| !timeline.tables.is_empty())?;
    let titles = |timed: bool| {
        let parts = sections.iter().flat_map(|section| &section.parts);
        let found = parts.filter_map(|part| match part {
            Element::Table(grid) if grid.timed == timed => Some(grid.title.as_str()),
            _ => None,
        });
        found.collect::<Vec<&str>>().join(", ")
    };
    let mut sentences = vec![format!(
        "A window chosen on a chart over time changes these tables: {}. Their rates are then plain \
         means, without an interval.",
        titles(true)
    )];
    let has_gaps = |sliced: &Sliced| sliced.rows.iter().any(Option::is_none);
    if timeline.tables.iter().any(has_gaps) {
        sentences.push("Those of measured windows leave out warm-up.".to_owned());
    }
    let is_quantile = |column: &Heading| matches!(column.merge, Merge::Quantile(_));
    if report.tables().any(|table| table.columns.iter().any(is_quantile)) {
        let exact = "Quantiles over more than one slice of latencies are exact to a sixteenth.";
        sentences.push(exact.to_owned());
    }
    let whole = titles(false);
    if !whole.is_empty() {
        sentences.push(format!("These are always of the whole recording: {whole}."));
    }
    Some(sentences.join(" "))
}

/// Number of charts and tables so far, and the time that charts share.
struct Places {
    charts: usize,
    tables: usize,
    time: Time,
}

impl Places {
    fn drawing(&mut self, chart: &Chart) -> Drawing {
        self.charts += 1;
        chart::draw(chart, self.charts - 1, self.time)
    }
}

fn chapter(section: &Section, report: &Report, places: &mut Places) -> Chapter {
    let mut parts: Vec<Element> = Vec::new();
    for (index, block) in section.blocks.iter().enumerate() {
        match (block, parts.last_mut()) {
            (Block::Chart(chart), Some(Element::Charts(row))) => row.push(places.drawing(chart)),
            (Block::Chart(chart), _) => parts.push(Element::Charts(vec![places.drawing(chart)])),
            (Block::Table(table), _) => {
                let mut grid = table::grid(table, places.tables, report.timeline.as_ref());
                if grid.about == section.about {
                    grid.about.clear();
                }
                parts.push(Element::Table(Box::new(grid)));
                places.tables += 1;
            }
            (Block::Bars(bars), _) => parts.push(Element::Bars(picture::bars(bars))),
            (Block::Cells(cells), _) => {
                let has_legend = !section.blocks[..index].iter().any(|it| it.explains(cells));
                parts.push(Element::Cells(picture::cells(cells, has_legend)));
            }
            (Block::Text(text), _) => parts.push(Element::Text(text.clone())),
        }
    }
    for part in &mut parts {
        if let Element::Charts(charts) = part {
            chart::fill_rows(charts);
        }
    }
    Chapter {
        id: section.id.to_string(),
        heading: section.heading.to_string(),
        about: section.about.to_string(),
        is_top: section.detail == Detail::Top,
        parts,
    }
}

/// Returns the data for the script.
fn data(report: &Report, sections: &[Chapter]) -> Json {
    let parts = || sections.iter().flat_map(|section| &section.parts);
    let charts: Vec<&Json> = parts()
        .flat_map(|part| match part {
            Element::Charts(charts) => charts.iter().map(|chart| &chart.data).collect(),
            _ => Vec::new(),
        })
        .collect();
    let tables: Vec<&Json> = parts()
        .filter_map(|part| match part {
            Element::Table(grid) => Some(&grid.data),
            _ => None,
        })
        .collect();
    let edges = report.timeline.as_ref().map(|timeline| &timeline.edges_ns);
    // Local time in milliseconds since 1970, and the name of the time zone.
    let began = report.began.map(|began| (began.local_ns() / 1e6, began.zone()));
    json!({ "began": began, "edges": edges, "charts": charts, "tables": tables })
}

/// Returns the verdicts with failures first, condemning ones before warnings; then undecided ones.
fn judged(report: &Report) -> Vec<Judged<'_>> {
    let judge = |(index, verdict): (usize, &'_ Verdict)| {
        let (class, badge) = match (verdict.outcome, verdict.weight) {
            (Outcome::Fail, Weight::Condemns) => ("fail", "condemns"),
            (Outcome::Fail, Weight::Warns) => ("warn", "warns"),
            (Outcome::Inconclusive, _) => ("inconclusive", "inconclusive"),
            (Outcome::Pass, _) => ("pass", "pass"),
        };
        (format!("verdict-{}", index + 1), class, badge)
    };
    let mut judged: Vec<Judged<'_>> = report
        .verdicts
        .iter()
        .enumerate()
        .map(|(index, verdict)| {
            let (id, class, badge) = judge((index, verdict));
            let figures = verdict.concerns.iter().map(|name| report.title(name)).collect();
            Judged { id, class, badge, figures, verdict }
        })
        .collect();
    let order = ["fail", "warn", "inconclusive", "pass"];
    judged.sort_by_key(|j| order.iter().position(|class| *class == j.class));
    judged
}

/// Escapes a text; what stands between two backticks is code.
fn code(text: &str) -> Safe {
    let mut html = String::new();
    let mut rest = text;
    while let Some((words, open)) = rest.split_once('`')
        && let Some((code, after)) = open.split_once('`')
    {
        let _ = write!(html, "{}<code>{}</code>", HtmlEscape(words), HtmlEscape(code));
        rest = after;
    }
    let _ = write!(html, "{}", HtmlEscape(rest));
    Safe::from_safe_string(html)
}

/// Fills in the template; everything but the page's own style, script and data is escaped.
fn fill(page: &Page<'_>, data: &Json) -> Result<String, ReportError> {
    const NAME: &str = "page.html";
    let fail = |source| ReportError::Template { template: NAME, source };
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    templates.set_syntax(syntax.map_err(fail)?);
    templates.add_filter("code", code);
    templates.add_template(NAME, TEMPLATE).map_err(fail)?;
    // A `<` could end the script element that holds the data.
    let data = data.to_string().replace('<', "\\u003c");
    let rendered = templates.get_template(NAME).map_err(fail)?.render(minijinja::context! {
        page => Safe::from(Serde(page)),
        style => Safe::from_safe_string(STYLE.to_owned()),
        script => Safe::from_safe_string(SCRIPT.to_owned()),
        data => Safe::from_safe_string(data),
    });
    rendered.map_err(fail)
}
