//! Counters that never decrease, whatever the server does: it may reset them, lose them in a crash,
//! or drop a database with all its counters.

use std::collections::HashMap;

use blockstone_base::column::{Cell, Kind, Reading, Schema};

/// Above this number of rows, only those of the last look are remembered.
const ROWS_MAX: usize = 20_000;

/// The last reported values of each row, to continue from.
#[derive(Debug, Default)]
pub struct Steady {
    rows: HashMap<(&'static str, String), Row>,
    round: u64,
}

#[derive(Debug, Default)]
struct Row {
    counters: Vec<Option<Rising>>,
    seen: u64,
}

/// A counter that adds nothing when the server's value falls.
#[derive(Clone, Copy, Debug)]
pub struct Rising {
    last: i64,
    total: i64,
}

impl Rising {
    pub fn new(first: i64) -> Self {
        Self { last: first, total: first }
    }

    /// Returns the total at the server's value `raw`.
    pub fn at(&mut self, raw: i64) -> i64 {
        self.total = self.total.saturating_add(raw.saturating_sub(self.last).max(0));
        self.last = raw;
        self.total
    }
}

impl Steady {
    /// Makes the counters of `readings`, which are rows of `series`, continue from their last
    /// values.
    pub fn hold(&mut self, series: &[&'static Schema], readings: &mut [Reading]) {
        self.round += 1;
        for reading in readings {
            let Some(schema) = series.iter().find(|schema| schema.probe == reading.probe) else {
                continue;
            };
            let row = self.rows.entry((reading.probe, reading.object.clone())).or_default();
            row.seen = self.round;
            row.counters.resize(schema.columns.len(), None);
            let cells = schema.columns.iter().zip(&mut reading.cells);
            for ((column, cell), counter) in cells.zip(&mut row.counters) {
                if let (Kind::Counter, Cell::Value(value)) = (column.kind, cell) {
                    let rising = counter.get_or_insert_with(|| Rising::new(*value));
                    *value = rising.at(*value);
                }
            }
        }
        if self.rows.len() > ROWS_MAX {
            let round = self.round;
            self.rows.retain(|_, row| row.seen == round);
        }
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::database::SQL;

    use super::*;

    fn reading(value: i64) -> Reading {
        let cells = vec![Cell::Unmeasured, Cell::Unmeasured, Cell::Value(value)];
        Reading { probe: SQL.probe, object: String::new(), cells }
    }

    #[test]
    fn a_counter_that_is_set_back_goes_on_from_where_it_was() {
        let mut steady = Steady::default();
        let reported = [100, 107, 3, 10, 9, 12].map(|raw| {
            let mut readings = [reading(raw)];
            steady.hold(&[&SQL], &mut readings);
            readings[0].cells[2].clone()
        });
        assert_eq!(reported, [100, 107, 107, 114, 114, 117].map(Cell::Value));
    }
}
