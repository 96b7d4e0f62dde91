//! The samples and timed operations behind a row of a view.

use blockstone_figures::{Condition, Focus, Timed};

use crate::table::{Value, View};
use crate::views::{slices, top_events};

impl View {
    /// Returns the focus on the session samples behind a row: those of its statement, session or
    /// wait. `None` if the row is about something that session samples do not name.
    pub fn focus(&self, row: &[Value]) -> Option<Focus> {
        let (instance, own) = self.parts(row);
        let condition = |column| {
            let value = self.text(own, column)?.to_owned();
            Some(Condition { column, value })
        };
        let of = instance.map(|it| Condition { column: "instance", value: it.to_owned() });
        let among = |conditions: Vec<Condition>| of.iter().cloned().chain(conditions).collect();
        let one = |column| condition(column).map(|it| among(vec![it]));
        let wait = || {
            condition("wait_class")?;
            let said = ["role", "wait_class", "event"].into_iter().filter_map(condition);
            Some(among(said.collect()))
        };
        one("query_id").or_else(|| one("session")).or_else(wait)
    }

    /// Returns how to read the cells, if the headings do not say so.
    pub fn legend(&self) -> Option<&'static str> {
        match self.name {
            name if name == slices::VIEW.name => Some(slices::LEGEND),
            name if name == top_events::VIEW.name => Some(top_events::LEGEND),
            _ => None,
        }
    }

    /// Returns the individually timed operations behind a row; `None` if there are none.
    pub fn timed(&self, row: &[Value]) -> Option<Timed> {
        let (instance, row) = self.parts(row);
        let counted = |layer: &str, column, key: &str| {
            let value = self.text(row, key)?.to_owned();
            let states = vec![("layer", layer.to_owned()), (column, value)];
            Some(Timed::Counted { states, of_sessions: false })
        };
        match self.name {
            "io-by-role" => counted("block", "role", "role"),
            "io-by-file-type" => counted("block", "file_type", "file_type"),
            "files" => counted("block", "file", "file"),
            "system-calls" => counted("system call", "role", "role"),
            "disks" if self.text(row, "device") == Some("all") => {
                let states = vec![("layer", "block".to_owned())];
                Some(Timed::Counted { states, of_sessions: false })
            }
            "events" => Some(Timed::Event(self.text(row, "event")?.to_owned())),
            _ => {
                let wait = Timed::of_wait(self.text(row, "wait_class")?, self.text(row, "event")?)?;
                Some(instance.map_or(wait.clone(), |instance| wait.of_sessions_of(instance)))
            }
        }
    }

    fn text<'a>(&self, row: &'a [Value], key: &str) -> Option<&'a str> {
        match row.get(self.column(key)?) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;

    #[test]
    fn rows_are_about_waits_sessions_and_statements_or_about_nothing_sampled() {
        let about = |name: &str| {
            let view = registry::find(name).unwrap();
            let row: Vec<Value> = view.columns.iter().map(|c| Value::from(&*c.key)).collect();
            let focus = view.focus(&row)?;
            Some(focus.conditions().iter().map(|c| c.column).collect::<Vec<_>>())
        };
        assert_eq!(about("active-sessions"), Some(vec!["wait_class", "event"]));
        assert_eq!(about("wait-classes"), Some(vec!["role", "wait_class"]));
        assert_eq!(about("sessions"), Some(vec!["session"]));
        assert_eq!(about("sampled-sessions"), Some(vec!["session"]));
        assert_eq!(about("statements"), Some(vec!["query_id"]));
        assert_eq!(about("sampled-statements"), Some(vec!["query_id"]));
        assert_eq!(about("events"), None);
        assert_eq!(about("disks"), None);
    }
}
