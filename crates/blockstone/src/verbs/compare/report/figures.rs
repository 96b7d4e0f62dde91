//! The report of a comparison of figures.

use blockstone_base::Estimate;
use blockstone_base::table::{
    Heading, Measure, Missing, Row as Cells, Table, Value, column, text, unmerged,
};
use blockstone_base::table::Merge;
use blockstone_judge::compare::{Change, Comparison, Row, Side};
use blockstone_report::{Headline, Report, Section, Tone, format};
use serde_json::{Map, Value as Json, json};

/// Points on one screen: those that differ most. The page, JSON and CSV have all.
const POINTS: usize = 12;
const OUTCOMES: [Change; 5] = [
    Change::Faster,
    Change::Slower,
    Change::NotEstablished,
    Change::Condemned,
    Change::OnlyInOne,
];

const COLUMNS: &[Heading] = &[
    text("figure", "", "The figure, or the point and its figure."),
    unmerged("a", "A", Measure::OfRow, "Of the first recording."),
    unmerged("b", "B", Measure::OfRow, "Of the second."),
    unmerged("ratio", "B ÷ A", Measure::Ratio, "The second divided by the first, with its 95 % interval."),
    column("outcome", "B is", Measure::Text, Merge::Never, "What may be said of the second."),
    column("unit", "in", Measure::Text, Merge::Never, "Unit of both."),
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
