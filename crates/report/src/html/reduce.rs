//! The page of a scan for duplicates: what an array would store, where copies lie, who shares them,
//! and what stands in the way.

mod charts;
mod maps;
mod tables;

use blockstone_base::units::{Bytes, format_ns, three_digits};
use blockstone_reduce::estimate::Interval;
use blockstone_reduce::findings::Findings;
use blockstone_reduce::scanned::Scanned;
use serde::Serialize;

use super::charts::{Chart, share_rows};
use super::table::Table;
use super::{Judged, fill, judged};
use crate::{ReportError, reduce};

#[derive(Serialize)]
struct Page {
    title: String,
    identity: Vec<String>,
    shortfall: Option<String>,
    names_files: bool,
    cards: Vec<Card>,
    /// Sentences.
    usage: Vec<String>,
    verdicts: Vec<Judged>,
    has_passes: bool,
    chapters: Vec<Chapter>,
    model: String,
    about: String,
    tool_version: &'static str,
}

#[derive(Serialize)]
struct Card {
    title: &'static str,
    value: String,
    /// How sure it is.
    certainty: String,
    note: String,
}

/// Charts, then the tables behind them.
#[derive(Serialize)]
struct Chapter {
    id: &'static str,
    title: &'static str,
    intro: String,
    charts: Vec<Chart>,
    tables: Vec<Table>,
}

/// Renders a scan as one page of HTML.
///
/// # Errors
/// When the template cannot be filled in, which its tests exclude.
pub fn page(findings: &Findings, scanned: &Scanned) -> Result<String, ReportError> {
    let verdicts = judged(&findings.verdicts);
    let mut identity = vec![
        format!("{} read", Bytes(scanned.read_bytes)),
        format!("in {}", format_ns(scanned.elapsed_s * 1e9)),
        format!("{} of CPU", format_ns(scanned.cpu_s * 1e9)),
        format!("{} of memory", Bytes(scanned.memory_bytes)),
    ];
    identity.push(if scanned.direct { "past the page cache" } else { "buffered" }.to_owned());
    let page = Page {
        title: reduce::subject(scanned),
        identity,
        shortfall: reduce::shortfall(scanned),
        names_files: !(scanned.files.is_empty() && scanned.skipped.is_empty()),
        cards: cards(findings),
        usage: reduce::usage(findings).iter().map(|text| sentence(text)).collect(),
        has_passes: verdicts.iter().any(|verdict| verdict.class == "pass"),
        verdicts,
        chapters: chapters(findings, scanned),
        model: reduce::model(findings),
        about: findings.model.about.clone(),
        tool_version: env!("CARGO_PKG_VERSION"),
    };
    fill("reduce.html", &page)
}

fn cards(findings: &Findings) -> Vec<Card> {
    let grid = findings.primary();
    let (bytes, stored) = reduce::in_and_stored(findings);
    let certainty =
        |ratio: Option<Interval>| ratio.map(|ratio| reduce::certainty(&ratio)).unwrap_or_default();
    let card = |title, ratio: Option<Interval>, note: &str| Card {
        title,
        value: reduce::value(ratio),
        certainty: certainty(ratio),
        note: note.to_owned(),
    };
    let product = if findings.model.deduplicates {
        "the product of both: what an array would report"
    } else {
        "compression alone: this model does not deduplicate"
    };
    let compressed = three_digits(grid.contents_compressed as f64);
    let part = stored.map(|stored| {
        let part = stored as f64 / (bytes as f64).max(1.0) * 100.0;
        format!("{} % of what was scanned", three_digits(part))
    });
    vec![
        card("Deduplication", grid.dedup_ratio, "blocks ÷ different contents"),
        card(
            "Compression",
            grid.compression_ratio,
            &format!("of contents; {compressed} of them compressed"),
        ),
        card("Reduction", grid.reduction_ratio, product),
        Card {
            title: "Stored",
            value: stored.map_or_else(|| "–".to_owned(), |stored| Bytes(stored).to_string()),
            certainty: format!("of {}", Bytes(bytes)),
            note: part.unwrap_or_default(),
        },
    ]
}

fn chapters(findings: &Findings, scanned: &Scanned) -> Vec<Chapter> {
    let mut chapters = vec![
        Chapter {
            id: "grids",
            title: "Block size and offset",
            intro: "The same bytes cut into blocks of several sizes, the first of each file \
                    beginning at several offsets. An array sees one of these grids."
                .to_owned(),
            charts: [charts::dedup(findings), charts::kinds(findings)]
                .into_iter()
                .flatten()
                .collect(),
            tables: vec![tables::grids(findings)],
        },
        Chapter {
            id: "compression",
            title: "Compression",
            intro:
                "Contents of the model's blocks, each compressed on its own and stored in whole \
                    steps."
                    .to_owned(),
            charts: charts::compression(findings),
            tables: vec![tables::compression(findings)],
        },
        Chapter {
            id: "fields",
            title: "What page headers cost",
            intro: fields_intro(findings),
            charts: charts::fields(findings),
            tables: vec![tables::fields(findings)],
        },
        Chapter {
            id: "places",
            title: "Where copies lie",
            intro: "Every file from its beginning to its end. Of the copies of one content, the \
                    first that was read is the unique one."
                .to_owned(),
            charts: maps::strips(findings, scanned),
            tables: vec![tables::runs(findings, scanned), tables::shifts(findings, scanned)],
        },
        Chapter {
            id: "sharing",
            title: "Who shares what, and how often",
            intro: String::new(),
            charts: [maps::matrix(findings, scanned), charts::occurrences(findings)]
                .into_iter()
                .flatten()
                .collect(),
            tables: vec![tables::occurrences(findings)],
        },
        Chapter {
            id: "files",
            title: "What was scanned",
            intro: String::new(),
            charts: Vec::new(),
            tables: vec![tables::files(scanned), tables::skipped(scanned)],
        },
    ];
    for chapter in &mut chapters {
        share_rows(&mut chapter.charts);
        chapter.tables.retain(|table| !table.rows.is_empty());
    }
    chapters.retain(|chapter| !(chapter.charts.is_empty() && chapter.tables.is_empty()));
    chapters
}

/// What the charts show, and the sentence of the ladder.
fn fields_intro(findings: &Findings) -> String {
    let about = "Fields that differ although rows do not, set to zero one class after the other.";
    if findings.field_costs.is_empty() {
        return about.to_owned();
    }
    format!("{about} {}", sentence(&reduce::ladder(findings)))
}

/// A part of a sentence as one.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", characters.as_str())
}
