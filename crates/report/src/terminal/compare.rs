//! Two recordings side by side on one screen.

use blockstone_base::Estimate;
use blockstone_judge::compare::{Change, Comparison, Row, Side};

use crate::format::{self, optional};
use crate::render::terminal::Style;
use crate::render::terminal::columns::{Columns, wrap};

/// Points shown at most: those that differ most. All are in the JSON document and on the page.
const POINTS: usize = 12;

/// Renders a comparison: all figures, then the points that differ most; the others are counted.
pub fn render(comparison: &Comparison, style: &Style) -> String {
    let mut lines = vec![side("A", &comparison.a, style), side("B", &comparison.b, style)];
    for warning in &comparison.warnings {
        let text = format!("! {warning}");
        lines.extend(wrap(&text, style.width, 0, 2).iter().map(|line| style.warning(line)));
    }
    let (figures, mut points): (Vec<&Row>, Vec<&Row>) =
        comparison.rows.iter().partition(|row| row.figure.is_empty());
    points.sort_by(|a, b| change(b).total_cmp(&change(a)));
    let differing = points.iter().take_while(|row| change(row) > 0.0).count().min(POINTS);
    let rest = points.split_off(differing);
    for (heading, rows) in [("", figures), ("points that differ most", points)] {
        if !rows.is_empty() {
            lines.push(String::new());
            lines.extend(table(heading, &rows, style));
        }
    }
    if let Some(sentence) = counted(&rest) {
        lines.extend(wrap(&sentence, style.width, 0, 2).iter().map(|line| style.dim(line)));
    }
    lines.push(String::new());
    for caveat in &comparison.caveats {
        lines.extend(wrap(caveat, style.width, 0, 2).iter().map(|line| style.dim(line)));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// How far an established difference is from none, the same for ½ as for 2; zero without one.
fn change(row: &Row) -> f64 {
    let established = matches!(row.outcome, Change::Faster | Change::Slower);
    row.ratio.filter(|_| established).map_or(0.0, |ratio| ratio.value.ln().abs())
}

fn side(name: &str, side: &Side, style: &Style) -> String {
    let trust = if side.trustworthy { String::new() } else { style.bad(" · not trustworthy") };
    let device = side.device.as_ref().map(|d| format!(" on {d}")).unwrap_or_default();
    format!(
        "{} {}{device} · {} · {} · {}{trust}",
        style.bold(name),
        side.target,
        side.host,
        format::instant(&side.started_at),
        side.id
    )
}

fn table(heading: &str, rows: &[&Row], style: &Style) -> Vec<String> {
    let mut columns = Columns::new(2);
    columns.left([heading, "A", "B", "B ÷ A", "B is"].map(|h| style.dim(h)).to_vec());
    for row in rows {
        columns.left(cells(row, style));
    }
    columns.lines()
}

fn cells(row: &Row, style: &Style) -> Vec<String> {
    let condemned = row.outcome == Change::Condemned;
    let value = |estimate: Option<Estimate>| {
        optional(estimate, |e| {
            let text = format::number(e.value, &row.unit);
            if condemned { style.struck(&text) } else { text }
        })
    };
    let ratio = row.ratio.filter(|_| !condemned).map(|r| {
        format!("{:.3} {}", r.value, style.dim(&format!("({:.3} – {:.3})", r.low, r.high)))
    });
    let words = format::outcome(row);
    let words = match row.outcome {
        Change::Faster => style.good(&words),
        Change::Slower => style.warning(&words),
        Change::Condemned => style.bad(&words),
        _ => words,
    };
    vec![format::compared(row), value(row.a), value(row.b), ratio.unwrap_or_default(), words]
}

/// The rows that are not shown, as one sentence.
fn counted(rows: &[&Row]) -> Option<String> {
    const ALL: [Change; 5] = [
        Change::Faster,
        Change::Slower,
        Change::NotEstablished,
        Change::Condemned,
        Change::OnlyInOne,
    ];
    let parts: Vec<String> = ALL
        .into_iter()
        .map(|change| (change, rows.iter().filter(|row| row.outcome == change).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(change, count)| format!("{count} {}", change.words()))
        .collect();
    (!parts.is_empty()).then(|| format!("Other numbers of single points: {}.", parts.join(", ")))
}
