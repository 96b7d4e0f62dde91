//! The report of a comparison of what every layer did, in two parts of time.

use blockstone_base::Estimate;
use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Row, Table, Value, column, text, unmerged,
};
use blockstone_report::{Detail, Headline, Report, Section};
use blockstone_view::{Difference, Interval, Outcome, difference_document, differences, registry};
use serde_json::Value as Json;

/// Figures on one screen: those that differ most.
const SHOWN: usize = 40;
/// Views whose events are parts of the database's time.
const OF_EVENTS: [&str; 2] = ["top-events", "active-sessions"];

const COLUMNS: &[Heading] = &[
    text("view", "view", "The table that has the figure."),
    text("row", "what", "The row of that table."),
    text("figure", "figure", "The column of that table."),
    unmerged("a", "A", Measure::OfRow, "Mean of A."),
    unmerged("b", "B", Measure::OfRow, "Mean of B."),
    unmerged("ratio", "B ÷ A", Measure::Ratio, "The second ÷ the first."),
    column(
        "outcome",
        "result",
        Measure::Text,
        Merge::Never,
        "Whether B is higher or lower, if that is established.",
    ),
    unmerged(
        "contribution",
        "of change",
        Measure::Share,
        "For events: share of the change of database time.",
    ),
];

/// Names of the two parts of time, and what was watched in them.
pub struct Sides<'a> {
    pub names: [&'a str; 2],
    pub intervals: [Interval<'a>; 2],
}

pub fn report(sides: &Sides<'_>, tool_version: &str) -> Report {
    let Sides { names: [a, b], intervals } = sides;
    let found = differences(&intervals[0], &intervals[1]);
    let changed = change_of_db_time(intervals);
    let differs = |found: &&Difference| matches!(found.outcome, Outcome::Higher | Outcome::Lower);
    let mut differing: Vec<&Difference> = found.iter().filter(differs).collect();
    differing.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let mut table = Table::new("differences", "Higher or lower", COLUMNS).on_screen(SHOWN);
    for found in &differing {
        table.push(row(found, changed));
    }
    if !differing.iter().any(|found| contribution(found, changed).is_some()) {
        let last = COLUMNS.len() - 1;
        table.columns = COLUMNS[..last].into();
        table.rows.iter_mut().for_each(|row| row.cells.truncate(last));
    }
    let mut sections = vec![Section::new("differences", "Higher or lower").with([table])];
    sections.extend(others(&found, changed));
    sections.retain(|section| !section.blocks.is_empty());
    let Json::Object(mut document) = difference_document((*a, &intervals[0]), (*b, &intervals[1]))
    else {
        unreachable!("it is an object")
    };
    document.remove("schema");
    Report {
        verb: "difference".into(),
        version: 1,
        headline: headline(&found),
        identity: vec![format!("A {a}"), format!("B {b}")],
        sections,
        notes: vec![
            "A and B were watched one after the other, so any other change in between counts as a \
             difference. Each row is at 95 % confidence: of twenty rows without a difference, one \
             shows a difference by chance."
                .to_owned(),
        ],
        tool_version: tool_version.to_owned(),
        document,
        ..Report::default()
    }
}

fn headline(found: &[Difference]) -> Headline {
    let count = |outcome| found.iter().filter(|found| found.outcome == outcome).count();
    let text = format!(
        "{} higher · {} lower · {} difference not established · {} in one recording only",
        count(Outcome::Higher),
        count(Outcome::Lower),
        count(Outcome::NotEstablished),
        count(Outcome::OnlyInOne)
    );
    Headline { subject: "B against A".to_owned(), text, ..Headline::default() }
}

/// On the page, by view: the figures without an established difference.
fn others(found: &[Difference], changed: Option<f64>) -> Vec<Section> {
    let same =
        |found: &&Difference| matches!(found.outcome, Outcome::NotEstablished | Outcome::OnlyInOne);
    let mut sections = Vec::new();
    for view in registry::ALL {
        let name = format!("undecided-{}", view.name);
        let title = format!("{}: difference not established", view.title);
        let mut table = Table::new(name.clone(), title.clone(), COLUMNS).about(view.doc);
        for found in found.iter().filter(|found| found.view.name == view.name).filter(same) {
            table.push(row(found, changed));
        }
        sections.push(Section::new(name, title).detail(Detail::Page).with([table]));
    }
    sections
}

fn row(found: &Difference, changed: Option<f64>) -> Row {
    let value = |estimate: Option<Estimate>| match estimate {
        Some(estimate) => Value::Number(estimate.value),
        None => Value::Missing(Missing::Nothing),
    };
    let cells: Row = [
        Value::from(found.view.name),
        found.row.as_str().into(),
        (&*found.column.heading).into(),
        value(found.a),
        value(found.b),
        found.ratio.map_or(Value::Missing(Missing::Nothing), Value::Estimate),
        found.outcome.words().into(),
        contribution(found, changed).map_or(Value::Missing(Missing::Nothing), Value::Number),
    ]
    .into();
    cells.of(found.column.measure)
}

/// How far a figure changed, the same for half as for twice; what came from nothing most.
fn weight(found: &Difference) -> f64 {
    found.ratio.map_or(f64::INFINITY, |ratio| ratio.value.ln().abs())
}

/// The share that an event has in the change of the database's time.
fn contribution(found: &Difference, changed: Option<f64>) -> Option<f64> {
    let is_event = OF_EVENTS.contains(&found.view.name);
    let is_time = is_event && found.column.key == "average_active_sessions";
    let value = |estimate: Option<Estimate>| estimate.map_or(0.0, |estimate| estimate.value);
    let changed = changed.filter(|changed| is_time && *changed != 0.0)?;
    Some((value(found.b) - value(found.a)) / changed)
}

/// By how much the database's time per second changed, in active sessions.
fn change_of_db_time(intervals: &[Interval<'_>; 2]) -> Option<f64> {
    let [a, b] = intervals.each_ref().map(db_time);
    Some(b? - a?)
}

/// As the database accounts for it; where it does not, as sessions were sampled.
fn db_time(interval: &Interval<'_>) -> Option<f64> {
    if let Ok(sessions) = interval.share("instance", "", "db_time_ns") {
        return Some(sessions);
    }
    let view = registry::find("active-sessions")?;
    let column = view.column("average_active_sessions")?;
    let rows = view.table(interval)?.rows;
    (!rows.is_empty()).then(|| rows.iter().filter_map(|row| row[column].number()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_contributes_its_part_of_the_change_and_other_figures_none() {
        let estimate =
            |value: f64| Estimate { value, low: value, high: value, samples: 9, duration_ns: 1 };
        let of = |view: &str, key: &str| {
            let view = registry::find(view).unwrap();
            Difference {
                view,
                row: "x".to_owned(),
                column: &view.columns[view.column(key).unwrap()],
                a: Some(estimate(1.0)),
                b: Some(estimate(4.0)),
                ratio: None,
                outcome: Outcome::Higher,
            }
        };
        let event = of("top-events", "average_active_sessions");
        assert_eq!(contribution(&event, Some(6.0)), Some(0.5));
        assert_eq!(contribution(&event, Some(0.0)), None);
        assert_eq!(contribution(&event, None), None);
        assert_eq!(contribution(&of("disks", "read_ios_per_s"), Some(6.0)), None);
        assert_eq!(row(&event, Some(6.0))[7], Value::Number(0.5));
    }
}
