//! Values by column, from which rows are built.

use std::collections::HashMap;

use blockstone_base::column::{Cell, Reading, Schema};

/// Known values by column name.
pub type Values = HashMap<&'static str, u64>;

/// Counters of a session in PostgreSQL 18 and later, which MariaDB lacks.
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

/// Returns the row of `schema` for the whole server.
pub fn whole(schema: &'static Schema, values: &Values) -> Reading {
    row(schema, String::new(), |name| Cell::from(values.get(name).copied()))
}

/// Counters of a session that only the miniature instance has.
pub const OF_INSTANCES: [&str; 4] = ["logical_reads", "block_changes", "commits", "db_time_ns"];

pub fn row(
    schema: &'static Schema,
    object: String,
    cell: impl Fn(&'static str) -> Cell,
) -> Reading {
    let cells = schema.columns.iter().map(|column| cell(column.name)).collect();
    Reading { probe: schema.probe, object, cells }
}

/// Converts a level, which may be slightly negative because of clock differences.
pub fn level(value: Option<i64>) -> Cell {
    value.map_or(Cell::Unmeasured, |value| Cell::Value(value.max(0)))
}
