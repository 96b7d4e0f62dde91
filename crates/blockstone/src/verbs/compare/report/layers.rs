//! The report of a comparison of the activity of every layer, in parts of time.

use blockstone_base::Estimate;
use blockstone_base::table::{
    Heading, Measure, Merge, Missing, Row as Cells, Table, Value, column, text, unmerged,
};
use blockstone_figures::compare::{Comparison, Outcome, Row, Source, Subject};
use blockstone_report::{Detail, Report, Section};
use blockstone_view::{Interval, View, registry};

/// Figures on a screen: those that differ most.
const SHOWN: usize = 40;
/// Views whose events are parts of the database time.
const OF_EVENTS: [&str; 2] = ["top-events", "active-sessions"];

const COLUMNS: &[Heading] = &[
    text("view", "view", "The table that has the figure."),
    text("instance", "instance", "The database, where several are watched."),
    text("row", "what", "The row of that table."),
    text("figure", "figure", "The column of that table."),
    unmerged("a", "A", Measure::OfRow, "Mean over the first part of time, or set of such.")
        .answer(),
    unmerged("b", "B", Measure::OfRow, "Mean of B.").answer(),
    unmerged("ratio", "B ÷ A", Measure::Ratio, "The second ÷ the first.").answer(),
    column(
        "outcome",
        "result",
        Measure::Text,
        Merge::Never,
        "Whether B is higher or lower, if that is established.",
    )
    .answer(),
    unmerged(
        "contribution",
        "of change",
        Measure::Share,
        "For events: share of the change of database time.",
    ),
];

/// Activity of every layer in the recordings of a set.
pub struct Layers {
    pub sources: Vec<Source>,
    /// Database time per second, in active sessions: the mean of the recordings that have it.
    pub db_time: Option<f64>,
}

pub fn report(a: &Layers, b: &Layers) -> Report {
    let comparison = Comparison::of(&a.sources, &b.sources);
    let changed = a.db_time.zip(b.db_time).map(|(a, b)| b - a);
    let (mut differing, same): (Vec<&Row>, Vec<&Row>) =
        comparison.rows.iter().partition(|row| row.outcome.is_established());
    differing.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let rows = differing.iter().filter_map(|row| cells(row, changed));
    let table = Table::new("differences", "Higher or lower", COLUMNS).on_screen(SHOWN).with(rows);
    let table = without_empty(table);
    let mut sections = vec![Section::new("differences", "Higher or lower").with([table])];
    sections.extend(registry::ALL.iter().map(|view| undecided(view, &same, changed)));
    super::report("difference", &comparison, sections)
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
    let table = Table::new(name.clone(), title.clone(), COLUMNS).about(view.doc).with(of_view);
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

fn cells(row: &Row, changed: Option<f64>) -> Option<Cells> {
    let Subject::Viewed { view: name, instance, row: of } = &row.key.subject else { return None };
    let view = registry::find(name)?;
    let column = &view.columns[view.column(&row.key.figure)?];
    let [a, b, ratio, outcome] = super::cells(row);
    let share = contribution(row, changed);
    let share = share.map_or(Value::Missing(Missing::Nothing), Value::Number);
    let instance = instance.as_deref().map_or(Value::Missing(Missing::Nothing), Value::from);
    let (name, of, heading) = (view.name.into(), of.as_str().into(), (&*column.heading).into());
    let cells: Cells = [name, instance, of, heading, a, b, ratio, outcome, share].into();
    Some(cells.of(column.measure))
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
            without_empty(Table::new("differences", "", COLUMNS).with(rows))
        };
        assert_eq!(table(&event, None).columns.len(), COLUMNS.len() - 2);
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
