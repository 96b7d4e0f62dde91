//! Two watched intervals side by side: the figures that differ, those that differ most first.

use blockstone_view::{Difference, Outcome, Value};

use crate::format;
use crate::render::terminal::Style;
use crate::render::terminal::columns::{Columns, wrap};

/// Figures shown at most. All are in the JSON document.
const SHOWN: usize = 40;
/// A name of a row is cut to this. All of it is in the JSON document.
const NAME_WIDTH: usize = 40;

/// Renders what differs, and counts what does not.
pub fn render(names: [&str; 2], found: &[Difference], style: &Style) -> String {
    let is = |outcome: Outcome| move |found: &&Difference| found.outcome == outcome;
    let mut differing: Vec<&Difference> =
        found.iter().filter(|f| matches!(f.outcome, Outcome::Higher | Outcome::Lower)).collect();
    differing.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let [a, b] = names;
    let mut lines = vec![format!("{} {a}", style.bold("A")), format!("{} {b}", style.bold("B"))];
    lines.push(String::new());
    if !differing.is_empty() {
        let mut columns = Columns::new(2);
        let headings = ["view", "what", "figure", "A", "B", "B ÷ A", ""];
        let number = |index: usize| (3..6).contains(&index);
        let headings = headings.iter().enumerate();
        columns.mixed(headings.map(|(index, text)| (style.dim(text), number(index))).collect());
        for found in differing.iter().take(SHOWN) {
            let cells = row(found).into_iter().enumerate();
            columns.mixed(cells.map(|(index, text)| (text, number(index))).collect());
        }
        lines.extend(columns.lines());
    }
    let more = differing.len().saturating_sub(SHOWN);
    let none = found.iter().filter(is(Outcome::NotEstablished)).count();
    let one = found.iter().filter(is(Outcome::OnlyInOne)).count();
    let rest = if more > 0 { format!("{more} more figures differ; ") } else { String::new() };
    let text = format!(
        "{rest}difference not established: {none} figures; in one recording only: {one}. A and B \
         were watched one after the other, so whatever else changed counts as well; each row \
         stands at 95 %, so of twenty without a difference one shows one by chance."
    );
    lines.extend(wrap(&text, style.width, 0, 2).iter().map(|line| style.dim(line)));
    lines.join("\n") + "\n"
}

fn row(found: &Difference) -> Vec<String> {
    let text = |estimate: Option<blockstone_base::Estimate>| {
        format::optional(estimate, |e| format::value(&Value::Number(e.value), found.column.measure))
    };
    let ratio = format::optional(found.ratio, |ratio| {
        let spread = format::plus_minus(&ratio);
        format!("{} {spread}", format::number(ratio.value, "")).trim_end().to_owned()
    });
    let outcome = if found.outcome == Outcome::Higher { "higher" } else { "lower" };
    vec![
        found.view.name.to_owned(),
        format::short(&found.row, NAME_WIDTH),
        found.column.heading.to_string(),
        text(found.a),
        text(found.b),
        ratio,
        outcome.to_owned(),
    ]
}

/// How far a figure changed, the same for half as for twice; what came from nothing most.
fn weight(found: &Difference) -> f64 {
    found.ratio.map_or(f64::INFINITY, |ratio| ratio.value.ln().abs())
}
