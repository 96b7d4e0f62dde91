//! Values by column, from which rows are made, and reasons for those that are not there.

use std::collections::HashMap;

use blockstone_base::column::{Cell, Kind, Reading, Schema, Unmeasured};

/// What is known now, by name of a column.
pub type Values = HashMap<&'static str, u64>;

/// Columns that were not measured: probe, column, reason.
pub type Missing = Vec<(&'static str, &'static str, Unmeasured)>;

/// The row of `schema` on the server as a whole.
pub fn whole(schema: &'static Schema, values: &Values) -> Reading {
    row(schema, String::new(), |name| Cell::from(values.get(name).copied()))
}

/// A row of `schema` on `object`, whose cells `cell` gives by column.
pub fn row(
    schema: &'static Schema,
    object: String,
    cell: impl Fn(&'static str) -> Cell,
) -> Reading {
    let cells = schema.columns.iter().map(|column| cell(column.name)).collect();
    Reading { probe: schema.probe, object, cells }
}

/// A level that may be negative where clocks differ a little.
pub fn level(value: Option<i64>) -> Cell {
    value.map_or(Cell::Unmeasured, |value| Cell::Value(value.max(0)))
}

/// All columns of `schema`, for one reason.
pub fn all(schema: &'static Schema, why: &Unmeasured) -> Missing {
    schema.columns.iter().map(|column| (schema.probe, column.name, why.clone())).collect()
}

/// The numbers of `schema`, for one reason.
pub fn numbers(schema: &'static Schema, why: &Unmeasured) -> Missing {
    let counted = schema.columns.iter().filter(|column| column.kind != Kind::State);
    counted.map(|column| (schema.probe, column.name, why.clone())).collect()
}

/// Columns of `schema` by name, for one reason.
pub fn some(schema: &'static Schema, names: &[&str], why: &Unmeasured) -> Missing {
    let wanted = schema.columns.iter().filter(|column| names.contains(&column.name));
    wanted.map(|column| (schema.probe, column.name, why.clone())).collect()
}
