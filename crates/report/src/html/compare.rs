//! Two recordings side by side as one compact page, without charts.

use blockstone_judge::compare::{Change, Comparison, Row as Compared, Side};
use serde::Serialize;

use super::fill;
use crate::ReportError;
use crate::format::{self, optional};

#[derive(Serialize)]
struct Page<'a> {
    a: &'a Side,
    b: &'a Side,
    untrustworthy: Vec<&'static str>,
    warnings: &'a [String],
    caveats: &'a [String],
    counts: Vec<Count>,
    tables: Vec<Part>,
}

#[derive(Serialize)]
struct Count {
    words: &'static str,
    count: usize,
}

#[derive(Serialize)]
struct Part {
    caption: &'static str,
    folded: bool,
    rows: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    a: String,
    b: String,
    ratio: String,
    interval: String,
    class: &'static str,
    words: String,
}

/// Renders a comparison as one page of HTML.
///
/// # Errors
/// When the template cannot be filled in, which its tests exclude.
pub fn page(comparison: &Comparison) -> Result<String, ReportError> {
    let untrustworthy = [("A", &comparison.a), ("B", &comparison.b)]
        .into_iter()
        .filter(|(_, side)| !side.trustworthy)
        .map(|(name, _)| name)
        .collect();
    let (figures, points): (Vec<&Compared>, Vec<&Compared>) =
        comparison.rows.iter().partition(|row| row.figure.is_empty());
    let tables = [("Figures", false, figures), ("Points", true, points)]
        .into_iter()
        .filter(|(.., rows)| !rows.is_empty())
        .map(|(caption, folded, rows)| Part {
            caption,
            folded,
            rows: rows.into_iter().map(line).collect(),
        })
        .collect();
    let page = Page {
        a: &comparison.a,
        b: &comparison.b,
        untrustworthy,
        warnings: &comparison.warnings,
        caveats: &comparison.caveats,
        counts: counts(&comparison.rows),
        tables,
    };
    fill("compare.html", &page)
}

fn counts(rows: &[Compared]) -> Vec<Count> {
    [Change::Faster, Change::Slower, Change::NotEstablished, Change::Condemned, Change::OnlyInOne]
        .into_iter()
        .map(|change| Count {
            words: change.words(),
            count: rows.iter().filter(|row| row.outcome == change).count(),
        })
        .filter(|count| count.count > 0)
        .collect()
}

fn line(row: &Compared) -> Line {
    let class = match row.outcome {
        Change::Faster => "pass",
        Change::Slower => "warn",
        Change::Condemned => "fail",
        _ => "inconclusive",
    };
    let value =
        |e| optional(e, |e: blockstone_base::Estimate| format::quantity(e.value, &row.unit));
    Line {
        name: format::compared(row),
        a: value(row.a),
        b: value(row.b),
        ratio: row.ratio.map(|r| format!("{:.3}", r.value)).unwrap_or_default(),
        interval: row.ratio.map(|r| format!("{:.3} – {:.3}", r.low, r.high)).unwrap_or_default(),
        class,
        words: format::outcome(row),
    }
}
