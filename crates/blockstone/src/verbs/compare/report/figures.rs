//! The report of a comparison of figures.

use blockstone_base::Estimate;
use blockstone_base::table::Merge;
use blockstone_base::table::{
    Heading, Measure, Missing, Row as Cells, Table, Value, column, text, unmerged,
};
use blockstone_judge::compare::{Change, Comparison, Row, Side};
use blockstone_report::{Headline, Report, Section, Tone, format};
use serde_json::{Map, Value as Json, json};

/// Points on one screen: those that differ most. The page, JSON and CSV have all.
const POINTS: usize = 12;
const OUTCOMES: [Change; 5] =
    [Change::Faster, Change::Slower, Change::NotEstablished, Change::Condemned, Change::OnlyInOne];

const COLUMNS: &[Heading] = &[
    text("figure", "", "The figure, or the point and its figure."),
    unmerged("a", "A", Measure::OfRow, "Value of the first recording."),
    unmerged("b", "B", Measure::OfRow, "Value of the second recording."),
    unmerged("ratio", "B ÷ A", Measure::Ratio, "The second ÷ the first."),
    column(
        "outcome",
        "result",
        Measure::Text,
        Merge::Never,
        "Whether B is faster or slower, if that is established.",
    ),
    column("unit", "unit", Measure::Text, Merge::Never, "Unit of A and B."),
];

pub fn report(comparison: &Comparison, tool_version: &str) -> Report {
    let Comparison { a, b, rows, warnings, caveats } = comparison;
    let (figures, mut points): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.figure.is_empty());
    points.sort_by(|a, b| change(b).total_cmp(&change(a)));
    let differing = points.iter().take_while(|row| change(row) > 0.0).count().min(POINTS);
    let mut of_points = table("points", "Points that differ most", &points).on_screen(differing);
    of_points.notes.extend(counted(&points[differing..]));
    let sections = vec![
        Section::new("figures", "Figures").with([table("figures", "Figures", &figures)]),
        Section::new("points", "Points that differ most").with([of_points]),
    ];
    Report {
        verb: "compare".into(),
        version: 1,
        headline: headline(rows),
        identity: vec![side("A", a), side("B", b)],
        warnings: untrustworthy(comparison).into_iter().chain(warnings.iter().cloned()).collect(),
        sections: sections.into_iter().filter(|section| !section.blocks.is_empty()).collect(),
        notes: caveats.clone(),
        tool_version: tool_version.to_owned(),
        document: document(comparison),
        ..Report::default()
    }
}

fn count(rows: &[Row], change: Change) -> usize {
    rows.iter().filter(|row| row.outcome == change).count()
}

fn headline(rows: &[Row]) -> Headline {
    let counts = OUTCOMES.into_iter().map(|change| (change, count(rows, change)));
    let parts = counts.filter(|(_, count)| *count > 0);
    let parts = parts.map(|(change, count)| format!("{count} {}", change.words()));
    let tone = if count(rows, Change::Condemned) > 0 { Tone::Warning } else { Tone::Plain };
    let text = parts.collect::<Vec<_>>().join(" · ");
    Headline { subject: "B against A".to_owned(), text, tone, ..Headline::default() }
}

fn side(name: &str, side: &Side) -> String {
    let device = side.device.as_ref().map(|device| format!(" on {device}")).unwrap_or_default();
    let started_at = format::instant(&side.started_at);
    format!("{name} {}{device} · {} · {started_at} · {}", side.target, side.host, side.id)
}

fn untrustworthy(comparison: &Comparison) -> Vec<String> {
    let sides = [("A", &comparison.a), ("B", &comparison.b)].into_iter();
    let sides = sides.filter(|(_, side)| !side.trustworthy);
    sides.map(|(name, side)| format!("{name} is not trustworthy: {}", side.id)).collect()
}

/// How far an established difference is from none, the same for ½ as for 2; zero without one.
fn change(row: &Row) -> f64 {
    let established = matches!(row.outcome, Change::Faster | Change::Slower);
    row.ratio.filter(|_| established).map_or(0.0, |ratio| ratio.value.ln().abs())
}

fn table(name: &'static str, title: &'static str, rows: &[&Row]) -> Table {
    let mut table = Table::new(name, title, COLUMNS);
    for row in rows {
        table.push(cells(row));
    }
    table
}

fn cells(row: &Row) -> Cells {
    let value = |estimate: Option<Estimate>| match estimate {
        Some(estimate) => Value::Number(estimate.value),
        None => Value::Missing(Missing::Unknown),
    };
    let measure = if row.unit == "ns" { Measure::Nanoseconds } else { Measure::Count };
    // Its sides are condemned: their ratio says nothing.
    let ratio = row.ratio.filter(|_| row.outcome != Change::Condemned);
    let ratio = ratio.map_or(Value::Missing(Missing::Nothing), Value::Estimate);
    let unit = if row.unit == "ns" { "" } else { &row.unit };
    let cells: Cells = [
        Value::from(format::compared(row)),
        value(row.a),
        value(row.b),
        ratio,
        row.outcome.words().into(),
        unit.into(),
    ]
    .into();
    cells.of(measure).condemned_by(&row.condemned_by)
}

/// The rows that a screen does not show, as one sentence.
fn counted(rows: &[&Row]) -> Option<String> {
    let count = |change| rows.iter().filter(|row| row.outcome == change).count();
    let parts = OUTCOMES.into_iter().map(|change| (change, count(change)));
    let parts = parts.filter(|(_, count)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(change, count)| format!("{count} {}", change.words())).collect();
    (!parts.is_empty()).then(|| format!("Other numbers of single points: {}.", parts.join(", ")))
}

fn document(comparison: &Comparison) -> Map<String, Json> {
    let Comparison { a, b, rows, warnings, caveats } = comparison;
    let document = json!({
        "a": a,
        "b": b,
        "counts": {
            "faster": count(rows, Change::Faster),
            "slower": count(rows, Change::Slower),
            "not_established": count(rows, Change::NotEstablished),
            "condemned": count(rows, Change::Condemned),
            "only_in_one": count(rows, Change::OnlyInOne),
        },
        "rows": rows,
        "warnings": warnings,
        "caveats": caveats,
    });
    let Json::Object(document) = document else { unreachable!("it is an object") };
    document
}

#[cfg(test)]
mod tests {
    use blockstone_report::render::terminal::Style;
    use blockstone_report::render::{csv, html, json, terminal};

    use super::*;

    fn estimate(value: f64) -> Estimate {
        let (low, high) = (value * 0.9, value * 1.1);
        Estimate { value, low, high, samples: 9, duration_ns: 1 }
    }

    fn row(label: &str, figure: &str, ratio: f64, outcome: Change) -> Row {
        let both = outcome != Change::OnlyInOne;
        Row {
            label: label.to_owned(),
            figure: figure.to_owned(),
            unit: if label.contains("latency") { "ns" } else { "IOPS" }.to_owned(),
            lower_is_faster: label.contains("latency"),
            a: Some(estimate(2_000.0)),
            b: both.then(|| estimate(2_000.0 * ratio)),
            ratio: both.then(|| estimate(ratio)),
            outcome,
            condemned_by: match outcome {
                Change::Condemned => vec!["memory-test".to_owned()],
                _ => Vec::new(),
            },
        }
    }

    fn comparison() -> Comparison {
        let side = |id: &str, trustworthy| Side {
            id: id.to_owned(),
            started_at: "2026-01-02T03:04:05.5Z".to_owned(),
            host: "db1".to_owned(),
            target: "/data".to_owned(),
            device: Some("vda".to_owned()),
            block_bytes: Some(8_192),
            span_bytes: None,
            direct: Some(true),
            trustworthy,
        };
        Comparison {
            a: side("one", true),
            b: side("other", false),
            rows: vec![
                row("read_iops", "", 1.0, Change::NotEstablished),
                row("commit_latency_ns_p50", "", 2.0, Change::Slower),
                row("cached_iops", "", 3.0, Change::Condemned),
                row("read/1", "iops", 1.01, Change::NotEstablished),
                row("read/2", "iops", 1.5, Change::Faster),
                row("read/3", "iops", 0.25, Change::Slower),
                row("read/4", "iops", 1.0, Change::OnlyInOne),
            ],
            warnings: vec!["the block size differs".to_owned()],
            caveats: vec!["not interleaved".to_owned()],
        }
    }

    #[test]
    fn the_document_keeps_to_its_schema_and_counts_every_row() {
        let document = json::document(&report(&comparison(), "1.2.3"));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/compare-1.json");
        let schema: Json = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&document).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let counts = document["counts"].as_object().unwrap().values();
        assert_eq!(counts.map(|n| n.as_u64().unwrap()).sum::<u64>(), 7);
        assert_eq!(document["rows"].as_array().unwrap().len(), 7);
    }

    #[test]
    fn a_screen_shows_the_points_that_differ_most_first_and_counts_the_rest() {
        let style = Style { color: false, width: 100 };
        let text = terminal::text(&report(&comparison(), "1.2.3"), false, &style);
        for words in [
            "2 slower",
            "B is not trustworthy: other",
            "the block size differs",
            "not interleaved",
            "condemned: memory-test",
            "A /data on vda · db1 · 2026-01-02T03:04:05Z · one",
            "Other numbers of single points: 1 difference not established, 1 measured on one side",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        let [largest, other] = ["read/3", "read/2"].map(|label| text.find(label).unwrap());
        assert!(largest < other && !text.contains("read/1"), "{text}");
    }

    #[test]
    fn the_page_and_csv_have_every_point() {
        let report = report(&comparison(), "1.2.3");
        let page = html::page(&report).unwrap().replace("&#x2f;", "/");
        assert!(page.contains("read/1") && page.contains("slower"));
        let points = report.tables().find(|table| table.name == "points").unwrap();
        assert_eq!(csv::table(points).lines().count(), 5);
    }
}
