//! Values by column, from which rows are made.

use std::collections::HashMap;

use blockstone_base::column::{Cell, Reading, Schema};

/// What is known now, by name of a column.
pub type Values = HashMap<&'static str, u64>;

/// What PostgreSQL counts of a session, since version 18, and MariaDB does not.
pub const PER_SESSION: [&str; 10] = [
    "read_ios",
    "read_bytes",
    "read_ns",
    "write_ios",
    "write_bytes",
    "write_ns",
    "hits",
    "redo_records",
    "redo_bytes",
    "full_page_images",
];

/// The row of `schema` on the server as a whole.
pub fn whole(schema: &'static Schema, values: &Values) -> Reading {
    row(schema, String::new(), |name| Cell::from(values.get(name).copied()))
}

/// What only the miniature instance counts of a session.
pub const OF_INSTANCES: [&str; 4] = ["logical_reads", "block_changes", "commits", "db_time_ns"];

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
