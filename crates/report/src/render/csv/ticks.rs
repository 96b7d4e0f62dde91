//! Tables of consecutive intervals as CSV: every line begins with the time at which its interval
//! ended.
//!
//! The wide shape has one line per tick and one column per number, `disks.sda.read_ios_per_s`; its
//! columns are those of the tables it was made with. The long shape has one line per cell, so rows
//! may come and go. Numbers are in base units; a missing value is an empty field.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use blockstone_base::table::{Heading, Merge, Row, Table, Value};

use super::{Texts, line, number_field};

const TIME: &str = "time";

/// Layout of tables as lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Wide,
    Long,
}

/// Table of a number, name of its row, and its key.
type CellName = (String, String, String);

/// Makes lines of the tables of one tick after another.
#[derive(Debug)]
pub struct Ticks {
    /// Columns of the wide shape.
    places: Option<Vec<CellName>>,
    texts: Texts,
}

impl Ticks {
    /// Creates the writer; in the wide shape, `tables` have all rows that get columns.
    pub fn new(shape: Shape, texts: Texts, tables: &[Table]) -> Self {
        let places = || cells(tables).map(|cell| cell.place()).collect();
        Self { places: (shape == Shape::Wide).then(places), texts }
    }

    pub fn heading(&self) -> String {
        match &self.places {
            None => line(&[TIME, "view", "row", "figure", "value"].map(Cow::Borrowed), self.texts),
            Some(places) => {
                let names = places.iter().map(|(table, row, key)| {
                    let parts = [table, row, key].map(String::as_str);
                    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
                });
                let names: Vec<Cow<'_, str>> =
                    std::iter::once(TIME.into()).chain(names.map(Cow::Owned)).collect();
                line(&names, self.texts)
            }
        }
    }

    /// Returns the lines of a tick that ended at `instant`.
    pub fn tick(&self, instant: &str, tables: &[Table]) -> String {
        let Some(places) = &self.places else {
            let line_of = |cell: Cell<'_>| {
                let (table, row, key) = cell.place();
                let names = [instant.to_owned(), table, row, key].map(Cow::Owned);
                line(&[&names[..], &[field(cell.value)]].concat(), self.texts)
            };
            return cells(tables).map(line_of).collect();
        };
        let found: HashMap<CellName, &Value> =
            cells(tables).map(|cell| (cell.place(), cell.value)).collect();
        let fields = places.iter().map(|place| found.get(place).map_or("".into(), |it| field(it)));
        line(&std::iter::once(instant.into()).chain(fields).collect::<Vec<_>>(), self.texts)
    }

    /// Returns a row of these tables that no column was made for, with the name of its table.
    pub fn left_out(&self, tables: &[Table]) -> Option<(String, String)> {
        let places = self.places.as_ref()?;
        let known: HashSet<(&str, &str)> =
            places.iter().map(|(table, row, _)| (&**table, &**row)).collect();
        let mut rows = cells(tables).map(|cell| (cell.table, cell.row));
        let (table, row) = rows.find(|(table, row)| !known.contains(&(&**table, &**row)))?;
        Some((table.to_owned(), row))
    }
}

/// A cell that is not part of its row's name.
struct Cell<'a> {
    table: &'a str,
    row: String,
    key: &'a str,
    value: &'a Value,
}

impl Cell<'_> {
    fn place(&self) -> CellName {
        (self.table.to_owned(), self.row.clone(), self.key.to_owned())
    }
}

fn cells(tables: &[Table]) -> impl Iterator<Item = Cell<'_>> {
    tables.iter().flat_map(|table| {
        table.rows.iter().flat_map(move |row| {
            let name = name_of(&table.columns, row);
            let cells = table.columns.iter().zip(&row.cells);
            let values = cells.filter(|(heading, _)| heading.merge != Merge::Key);
            values.map(move |(heading, value)| Cell {
                table: &table.name,
                row: name.clone(),
                key: &heading.key,
                value,
            })
        })
    })
}

/// Returns the texts that distinguish a row from others of its table.
fn name_of(columns: &[Heading], row: &Row) -> String {
    let keys = columns.iter().zip(&row.cells).filter(|(heading, _)| heading.merge == Merge::Key);
    let texts = keys.filter_map(|(_, value)| match value {
        Value::Text(text) if !text.is_empty() => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn field(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Flag(is_so) => Cow::Borrowed(if *is_so { "true" } else { "false" }),
        value => value.number().map_or(Cow::Borrowed(""), number_field),
    }
}

#[cfg(test)]
mod tests {
    use blockstone_base::table::{Missing, count, level, share, text};

    use super::*;

    fn host() -> Table {
        Table::new("host", "Host", vec![share("user", "user", "")]).with([[0.125.into()]])
    }

    fn waits(rows: &[(&str, &str, Value)]) -> Table {
        let columns = vec![
            text("class", "class", ""),
            text("event", "event", ""),
            count("aas", "AAS", ""),
            level("state", "state", blockstone_base::table::Measure::Text, ""),
        ];
        let row = |(class, event, value): &(&str, &str, Value)| {
            [Value::from(*class), (*event).into(), value.clone(), "on".into()]
        };
        Table::new("waits", "Waits", columns).with(rows.iter().map(row))
    }

    #[test]
    fn long_lines_have_one_value_each_and_a_gap_is_no_zero() {
        let missing = Value::Missing(Missing::Off);
        let rows = [("IO", "a,b", 2.0.into()), ("=1", "", missing)];
        let tables = [host(), waits(&rows)];
        let ticks = Ticks::new(Shape::Long, Texts::Guarded, &[]);
        assert_eq!(ticks.heading(), "time,view,row,figure,value\r\n");
        assert_eq!(
            ticks.tick("T", &tables),
            "T,host,,user,0.125\r\n\
             T,waits,\"IO a,b\",aas,2\r\nT,waits,\"IO a,b\",state,on\r\n\
             T,waits,\"'=1\",aas,\r\nT,waits,\"'=1\",state,on\r\n"
        );
        assert_eq!(ticks.left_out(&tables), None);
    }

    #[test]
    fn wide_lines_keep_their_columns_when_rows_move_come_and_go() {
        let first = [host(), waits(&[("IO", "x", 1.0.into()), ("IO", "y", 2.0.into())])];
        let ticks = Ticks::new(Shape::Wide, Texts::Guarded, &first);
        assert_eq!(
            ticks.heading(),
            "time,host.user,waits.IO x.aas,waits.IO x.state,waits.IO y.aas,waits.IO y.state\r\n"
        );
        assert_eq!(ticks.left_out(&first), None);
        let second = [host(), waits(&[("IO", "z", 4.0.into()), ("IO", "y", 3.0.into())])];
        assert_eq!(ticks.tick("T", &second), "T,0.125,,,3,on\r\n");
        assert_eq!(ticks.left_out(&second), Some(("waits".to_owned(), "IO z".to_owned())));
        assert_eq!(ticks.tick("", &[]), ",,,,,\r\n");
    }
}
