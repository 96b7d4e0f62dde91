//! I/O by kind of process: `pg_stat_io`, or the equivalent of older versions.

use std::collections::BTreeMap;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::{IO, ROLE};
use postgres::Row;

use super::Tracked;
use super::sample::role;
use crate::monitor::values::{Values, row as reading};
use crate::postgres::views::{Forms, old_transfers, value as said};
use crate::sql::error::SqlError;

/// The view, from the first version that has it.
pub const FORMS: &Forms = &[
    (16, include_str!("../../../sql/monitor/postgres/io_16.sql")),
    (18, include_str!("../../../sql/monitor/postgres/io_18.sql")),
];

/// Returns the series `io` and its sums by role, in which extending a file counts as a write.
pub fn readings(rows: &[Row], tracked: Tracked) -> Result<Vec<Reading>, SqlError> {
    let mut readings = Vec::new();
    let mut roles: BTreeMap<String, [Option<u64>; 6]> = BTreeMap::new();
    for row in rows {
        let (backend, what, context): (String, String, String) =
            (said(row, 0)?, said(row, 1)?, said(row, 2)?);
        let is_timed = if what == "wal" { tracked.redo_times } else { tracked.io_times };
        let value = |name: &str| {
            let value = row.try_get::<_, Option<i64>>(name).ok().flatten();
            value.filter(|_| is_timed || !name.ends_with("_ns")).map(|value| value as u64)
        };
        let object = format!("{backend}/{what}/{context}");
        readings.push(reading(&IO, object, |name| Cell::from(value(name))));
        // Counts of impossible operations are zero; times that are not measured are unknown.
        let count = |name: &str| Some(value(name).unwrap_or(0));
        let time =
            |name: &str, ios: &str| value(name).or((value(ios).unwrap_or(0) == 0).then_some(0));
        let parts = [
            count("read_ios"),
            count("read_bytes"),
            time("read_ns", "read_ios"),
            sum(count("write_ios"), count("extend_ios")),
            sum(count("write_bytes"), count("extend_bytes")),
            sum(time("write_ns", "write_ios"), time("extend_ns", "extend_ios")),
        ];
        let sums = roles.entry(role(backend)).or_insert([Some(0); 6]);
        sums.iter_mut().zip(parts).for_each(|(all, part)| *all = sum(*all, part));
    }
    readings.extend(roles.into_iter().map(|(object, sums)| {
        let untimed = |index: usize| matches!(index, 2 | 5) && !tracked.io_times;
        let cells = sums.into_iter().enumerate();
        let cells = cells.map(|(index, sum)| Cell::from(sum.filter(|_| !untimed(index)))).collect();
        Reading { probe: ROLE.probe, object, cells }
    }));
    Ok(readings)
}

/// Returns the series `role` for versions without the view.
pub fn old_readings(values: &Values, block_bytes: u64) -> Vec<Reading> {
    let values: Vec<_> = values.iter().map(|(name, value)| (*name, *value)).collect();
    old_transfers(&values, block_bytes)
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}
