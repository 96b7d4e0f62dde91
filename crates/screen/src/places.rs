//! The user's position in a history: a pane, or a wait, session or statement below it.

use blockstone_view::{Focus, History, Interval, Table, Value, View, registry};

use crate::state::{Position, State};

const WAITS: &str = "active-sessions";
const SESSIONS: &str = "sampled-sessions";
const STATEMENTS: &str = "sampled-statements";

impl State {
    /// Returns the tables of the place, filtered and sorted, without those of probes that the
    /// history lacks. `interval` must be that of [`Self::interval`].
    pub fn tables(&self, interval: &Interval<'_>) -> Vec<Table> {
        if self.overview {
            return Vec::new();
        }
        let Some(focus) = self.focus() else { return self.table(interval).into_iter().collect() };
        let interval = interval.only(focus);
        let views = parts(focus).into_iter().filter_map(registry::find);
        let tables = views.filter_map(|view| view.table(&interval));
        tables.map(|table| self.filtered(table)).collect()
    }

    /// Drills down into the selected row. Returns false if session samples cannot be narrowed to
    /// it.
    pub fn enter(&mut self, history: &History) -> bool {
        let chosen = self.chosen(history);
        let Some(focus) = chosen.and_then(|(view, row)| view.focus(&row)) else {
            return false;
        };
        self.go_down(focus);
        true
    }

    /// Goes to the session that blocks the one in the selected row.
    pub fn go_to_blocker(&mut self, history: &History) {
        let Some((view, row)) = self.chosen(history) else { return };
        let before = row.len().saturating_sub(view.columns.len());
        let cell = view.column("blockers").and_then(|index| row.get(before + index));
        if let Some(Value::Text(blockers)) = cell
            && let Some(first) = blockers.split(',').map(str::trim).find(|name| !name.is_empty())
            && let Ok(condition) = format!("session={first}").parse()
        {
            // The blocker is a session of the same database.
            let here = view.focus(&row);
            let conditions = here.iter().flat_map(Focus::conditions).cloned();
            let of = conditions.filter(|condition| condition.column == "instance");
            self.go_down(of.chain([condition]).collect());
        }
    }

    /// Goes one level up. Returns false in a pane.
    pub fn leave_place(&mut self) -> bool {
        let Some(place) = self.path.pop() else { return false };
        (self.row, self.filter) = (place.from_row, place.from_filter);
        true
    }

    /// Returns the selected row and the view of its table.
    pub fn chosen(&self, history: &History) -> Option<(&'static View, Vec<Value>)> {
        let interval = self.interval(history)?;
        let tables = self.tables(&interval);
        let rows = tables.into_iter().filter_map(|table| {
            let view = registry::find(&table.name)?;
            Some(table.rows.into_iter().map(move |row| (view, row.cells)))
        });
        let mut rows: Vec<_> = rows.flatten().collect();
        let row = self.row.min(rows.len().checked_sub(1)?);
        Some(rows.swap_remove(row))
    }

    fn go_down(&mut self, focus: Focus) {
        let from_filter = std::mem::take(&mut self.filter);
        self.path.push(Position { focus, from_row: self.row, from_filter });
        (self.row, self.scrolled, self.detail, self.picture) = (0, 0, false, None);
    }
}

/// Returns the views of a place: for a wait, by session and by statement, and so on.
fn parts(focus: &Focus) -> [&'static str; 2] {
    if focus.value("query_id").is_some() {
        [WAITS, SESSIONS]
    } else if focus.value("session").is_some() {
        [WAITS, STATEMENTS]
    } else {
        [SESSIONS, STATEMENTS]
    }
}

/// Returns the name of a place: `IO WALSync`, `session 4711`, or the text of a statement.
pub fn name(focus: &Focus, interval: &Interval<'_>) -> String {
    if let Some(id) = focus.value("query_id") {
        return statement(id, &interval.only(focus));
    }
    if let Some(session) = focus.value("session") {
        let of = focus.value("instance").map_or(String::new(), |instance| format!("{instance} "));
        return format!("{of}session {session}");
    }
    let words = focus.conditions().iter().map(|condition| condition.value.as_str());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

pub fn statement(id: &str, interval: &Interval<'_>) -> String {
    match interval.said("statement_text", id, "text") {
        Some(text) => text.to_owned(),
        None if id.is_empty() => "no statement".to_owned(),
        None => format!("statement {id}"),
    }
}

/// Returns the average active sessions in the interval.
pub fn active(interval: &Interval<'_>) -> f64 {
    let table = registry::find(WAITS).and_then(|view| view.table(interval));
    let Some(table) = table else { return 0.0 };
    let Some(column) = table.column("average_active_sessions") else { return 0.0 };
    table.rows.iter().filter_map(|row| row[column].number()).sum()
}
