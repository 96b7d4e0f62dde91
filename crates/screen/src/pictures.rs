//! Contents of pictures: the pinned row or place, and its figures over time.

use blockstone_view::{History, Interval, Timed, Value};

use crate::places;
use crate::state::{Picture, Pinned, Span, State};

impl State {
    /// Returns the slices of a picture over time: one per tick as far as they fit, or all ticks
    /// with several per slice.
    pub fn slices<'a>(&self, history: &'a History, room: usize) -> Vec<Interval<'a>> {
        match (self.span, self.interval(history)) {
            (Span::All, Some(interval)) => interval.slices(room),
            _ => self.past(history, room),
        }
    }

    /// Shows a picture of the selected row, or the tables again.
    pub fn show_picture(&mut self, picture: Picture, history: &History) {
        if self.picture == Some(picture) {
            self.picture = None;
        } else {
            if self.picture.is_none() {
                self.pin(history);
            }
            self.picture = Some(picture);
        }
        self.operation = 0;
    }

    pub fn pin(&mut self, history: &History) {
        let chosen = self.chosen(history);
        let of_place = self.focus().and_then(Timed::of_focus);
        let timed = of_place.or_else(|| chosen.as_ref().and_then(|(v, row)| v.timed(row)));
        let name = chosen.map(|(view, row)| view.name_of(&row)).unwrap_or_default();
        self.pinned = Some(Pinned { name, timed });
    }

    /// Returns the average active sessions of the place in each of the last `count` intervals.
    pub fn activity(&self, history: &History, count: usize) -> Vec<f64> {
        let Some(focus) = self.focus() else { return Vec::new() };
        let past = self.past(history, count);
        past.iter().map(|interval| places::active(&interval.only(focus))).collect()
    }

    /// Returns a column of the row named `name` in each of the last `count` intervals.
    pub fn trend(&self, history: &History, name: &str, column: usize, count: usize) -> Vec<f64> {
        let value = |interval: &Interval<'_>| {
            let table = self.view().table(interval)?;
            let row = table.rows.iter().find(|row| table.name_of(row) == name)?;
            match row.get(column) {
                Some(Value::Number(number)) => Some(*number),
                _ => None,
            }
        };
        let past = self.past(history, count);
        past.iter().map(|interval| value(interval).unwrap_or(0.0)).collect()
    }
}
