//! The report of a comparison of the activity of every layer, in parts of time.

use blockstone_base::Estimate;
use blockstone_base::table::{Row as Cells, Rows as _, Table, Value, happened};
use blockstone_figures::compare::{Comparison, Outcome, Row, Source, Subject};
use blockstone_report::render::json::schema::Tables;
use blockstone_report::{Detail, Report, Section};
use blockstone_view::{Heading, Interval, View, registry};

use super::rows::{LayerLine, LayerRow, LayersSummary};

/// Table of the document.
pub const TABLES: Tables = &[("rows", LayerRow::COLUMNS)];

/// Tables for people.
pub const FOR_PEOPLE: &[&str] = &["differences", "undecided-*"];

/// Figures on a screen: those that differ most.
const SHOWN: usize = 40;
/// Views whose events are parts of the database time.
const OF_EVENTS: [&str; 2] = ["top-events", "active-sessions"];

/// Activity of every layer in the recordings of a set.
pub struct Layers {
    pub sources: Vec<Source>,
    /// Database time per second, in active sessions: the mean of the recordings that have it.
    pub db_time: Option<f64>,
}

pub fn report(a: &Layers, b: &Layers) -> Report {
    let changed = a.db_time.zip(b.db_time).map(|(a, b)| b - a);
    let comparison = Comparison::of(&a.sources, &b.sources);
    let (mut differing, same): (Vec<&Row>, Vec<&Row>) =
        comparison.rows.iter().partition(|row| row.outcome.is_established());
    differing.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let rows = differing.iter().filter_map(|row| cells(row, changed));
    let table = Table::new("differences", "Higher or lower", LayerLine::COLUMNS)
        .on_screen(SHOWN)
        .with(rows);
    let table = without_empty(table);
    let mut sections = vec![Section::new("differences", "Higher or lower").with([table])];
    sections.extend(registry::ALL.iter().map(|view| undecided(view, &same, changed)));
    let row = |row: &Row| LayerRow::of(row, column(row)?.measure);
    let rows = Table::new("rows", "", LayerRow::COLUMNS);
    let rows = rows.with(comparison.rows.iter().filter_map(row));
    let summary = LayersSummary::of(&comparison, changed);
    Report {
        scalars: Some(LayersSummary::table("difference", "", [summary])),
        ..super::report("difference", &comparison, sections, rows)
    }
}

/// Returns a section for the page with the figures of a view without an established difference.
fn undecided(view: &View, rows: &[&Row], changed: Option<f64>) -> Section {
    let name = format!("undecided-{}", view.name);
    let of_view = rows.iter().filter(|row| self::view(row).is_some_and(|of| of.name == view.name));
    let of_view: Vec<&&Row> = of_view.collect();
    let is_compared = of_view.iter().any(|row| row.outcome != Outcome::OnlyInOne);
    let why = if is_compared { Outcome::NotEstablished } else { Outcome::OnlyInOne };
    let title = format!("{}: {}", view.title, why.words());
    let of_view = of_view.into_iter().filter_map(|row| cells(row, changed));
    let table =
        Table::new(name.clone(), title.clone(), LayerLine::COLUMNS).about(view.doc).with(of_view);
    Section::new(name, title).detail(Detail::Page).with([without_empty(table)])
}

/// Removes the columns that only some comparisons have, if they are empty in all rows.
fn without_empty(mut table: Table) -> Table {
    for key in ["instance", "contribution"] {
        let Some(at) = table.column(key) else { continue };
        if table.rows.iter().all(|row| matches!(row[at], Value::Missing(_))) {
            table.columns.to_mut().remove(at);
            table.rows.iter_mut().for_each(|row| drop(row.cells.remove(at)));
        }
    }
    table
}

/// Returns the view that has the figure.
fn view(row: &Row) -> Option<&'static View> {
    match &row.key.subject {
        Subject::Viewed { view, .. } => registry::find(view),
        Subject::Measured { .. } => None,
    }
}

/// Returns the column of the view that has the figure.
fn column(row: &Row) -> Option<&'static Heading> {
    let view = view(row)?;
    Some(&view.columns[view.column(&row.key.figure)?])
}

fn cells(row: &Row, changed: Option<f64>) -> Option<Cells> {
    let Subject::Viewed { instance, row: of, .. } = &row.key.subject else { return None };
    let column = column(row)?;
    let [a, b, ratio, outcome] = super::cells(row);
    let line = LayerLine {
        view: view(row)?.name,
        instance: happened(instance.as_deref()),
        row: of.clone(),
        figure: column.heading.to_string(),
        a,
        b,
        ratio,
        outcome,
        contribution: happened(contribution(row, changed)),
    };
    Some(Cells::from(line).of(column.measure))
}

/// Returns how far a figure changed, the same for half as for twice; infinite if it has no ratio.
fn weight(row: &Row) -> f64 {
    row.ratio.map_or(f64::INFINITY, |ratio| ratio.value.ln().abs())
}

/// Returns the share of an event in the change of the database time.
fn contribution(row: &Row, changed: Option<f64>) -> Option<f64> {
    let is_event = view(row).is_some_and(|view| OF_EVENTS.contains(&view.name));
    let is_time = is_event && row.key.figure == "average_active_sessions";
    let value = |estimate: Option<Estimate>| estimate.map_or(0.0, |estimate| estimate.value);
    let changed = changed.filter(|changed| is_time && *changed != 0.0)?;
    Some((value(row.b) - value(row.a)) / changed)
}

/// Returns the database time per second, in active sessions: as the database accounts for it,
/// otherwise as sessions were sampled.
pub fn db_time(interval: &Interval<'_>) -> Option<f64> {
    if let Ok(sessions) = interval.share("instance", "", "db_time_ns") {
        return Some(sessions);
    }
    let instances = interval.instances_with("instance").into_iter();
    let accounted: Result<Vec<f64>, _> = instances
        .map(|instance| interval.of_instance(instance).share("instance", "", "db_time_ns"))
        .collect();
    if let Ok(all @ [_, ..]) = accounted.as_deref() {
        return Some(all.iter().sum());
    }
    let table = registry::find("active-sessions")?.table(interval)?;
    let column = table.column("average_active_sessions")?;
    let rows = table.rows;
    (!rows.is_empty()).then(|| rows.iter().filter_map(|row| row[column].number()).sum())
}

#[cfg(test)]
mod tests {
    use blockstone_figures::compare::{Key, Outcome};

    use super::*;

    #[test]
    fn an_event_contributes_its_part_of_the_change_and_other_figures_none() {
        let estimate =
            |value: f64| Estimate { value, low: value, high: value, samples: 9, duration_ns: 1 };
        let of = |view: &str, figure: &str| Row {
            title: figure.to_owned(),
            key: Key {
                subject: Subject::Viewed {
                    view: view.to_owned(),
                    instance: None,
                    row: "x".to_owned(),
                },
                figure: figure.to_owned(),
            },
            a: Some(estimate(1.0)),
            b: Some(estimate(4.0)),
            n_a: 1,
            n_b: 1,
            ratio: None,
            p_value: None,
            q_value: None,
            outcome: Outcome::Higher,
            loads: Vec::new(),
            condemned_by: Vec::new(),
            warned_by: Vec::new(),
        };
        let event = of("top-events", "average_active_sessions");
        assert_eq!(contribution(&event, Some(6.0)), Some(0.5));
        assert_eq!(contribution(&event, Some(0.0)), None);
        assert_eq!(contribution(&event, None), None);
        assert_eq!(contribution(&of("disks", "read_ios_per_s"), Some(6.0)), None);
        assert_eq!(cells(&event, Some(6.0)).unwrap()[8], Value::Number(0.5));
        let table = |row: &Row, changed| {
            let rows = cells(row, changed);
            without_empty(Table::new("differences", "", LayerLine::COLUMNS).with(rows))
        };
        assert_eq!(table(&event, None).columns.len(), LayerLine::COLUMNS.len() - 2);
        let mut of_instance = event.clone();
        of_instance.key.subject = Subject::Viewed {
            view: "top-events".to_owned(),
            instance: Some("postgres@5432".to_owned()),
            row: "x".to_owned(),
        };
        let whole = table(&of_instance, Some(6.0));
        assert_eq!((whole.columns.len(), &whole.rows[0][1]), (9, &"postgres@5432".into()));
    }
}
