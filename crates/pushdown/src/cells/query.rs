//! The queries: ingest all rows, ingest the own ones, count the own ones; each with and without
//! pushdown to the cells.

use std::fmt::Write as _;

use crate::cards::{COLUMNS, OWN, SPAN_S, TABLE, sql_columns};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The average or maximum of each column over all rows.
    Full,
    /// The same over rows with an own card.
    Filtered,
    /// The number of rows with an own card.
    Count,
}

/// Each query, and whether the cells may filter. Without a filter, only the choice of columns can
/// be pushed down.
pub const ALL: [(Query, bool); 5] = [
    (Query::Full, true),
    (Query::Filtered, true),
    (Query::Filtered, false),
    (Query::Count, true),
    (Query::Count, false),
];

impl Query {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full ingest",
            Self::Filtered => "filtered ingest",
            Self::Count => "count",
        }
    }

    /// Returns the statement for a host with this number of PostgreSQL cells. Its first column is
    /// the number of rows.
    pub fn sql(self, pushdown: bool, cells: u32) -> String {
        let filter = filter(pushdown);
        match (self, pushdown) {
            (Self::Full, _) => format!("SELECT count(*), {} FROM {TABLE}", ingest()),
            (Self::Filtered, _) => {
                format!("SELECT count(*), {} FROM {TABLE} WHERE {filter}", ingest())
            }
            (Self::Count, false) => format!("SELECT count(*) FROM {TABLE} WHERE {filter}"),
            // PostgreSQL does not push down a count over partitions, so the host must query each
            // part.
            (Self::Count, true) => {
                let part = |cell| format!("SELECT count(*) AS n FROM cell_{cell} WHERE {filter}");
                let parts: Vec<String> = (1..=cells).map(part).collect();
                format!("SELECT sum(n) FROM ({}) AS parts", parts.join(" UNION ALL "))
            }
        }
    }
}

/// PostgreSQL never pushes down a comparison under a collation other than the column's own, which
/// may differ on another server. It costs the host as much as it would cost a cell.
fn filter(pushdown: bool) -> String {
    let collation = if pushdown { "" } else { " COLLATE \"C\"" };
    let like = OWN.map(|own| format!("card_no{collation} LIKE '{own}%'"));
    format!("({})", like.join(" OR "))
}

/// Returns the average of each number and the maximum of each other column.
fn ingest() -> String {
    let of = |column: &crate::cards::Column| {
        let function = if column.sql == "integer" { "avg" } else { "max" };
        format!("{function}({})", column.name)
    };
    COLUMNS.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Returns the statements that create the table on the host, with one partition per cell.
pub fn host_tables(cells: u32) -> String {
    let columns = sql_columns();
    let mut text = format!(
        "DROP TABLE IF EXISTS {TABLE}; CREATE TABLE {TABLE} ({columns}) PARTITION BY RANGE \
         (purchase_dt)"
    );
    let bound = |at: u32| match at {
        0 => "MINVALUE".to_owned(),
        at if at == cells => "MAXVALUE".to_owned(),
        at => {
            let second = u64::from(at) * SPAN_S / u64::from(cells);
            format!("'2025-01-01'::timestamp + interval '{second} s'")
        }
    };
    for cell in 1..=cells {
        let (from, to) = (bound(cell - 1), bound(cell));
        let _ = write!(
            text,
            "; CREATE FOREIGN TABLE cell_{cell} PARTITION OF {TABLE} FOR VALUES FROM ({from}) TO \
             ({to}) SERVER cell_{cell} OPTIONS (table_name '{TABLE}')"
        );
    }
    text
}

/// Returns the statement that a plan sends to the first cell; empty if it sends none.
pub fn remote(plan: &[String]) -> String {
    let sent = plan.iter().find_map(|line| line.trim().strip_prefix("Remote SQL: "));
    sent.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_taken_in_and_each_part_is_counted() {
        let full = Query::Full.sql(true, 2);
        assert!(COLUMNS.iter().all(|column| full.contains(&format!("({})", column.name))));
        assert!(!full.contains("WHERE"));
        let count = Query::Count.sql(true, 3);
        assert_eq!(count.matches("SELECT count(*)").count(), 3, "{count}");
        assert!(Query::Count.sql(false, 3).contains("COLLATE"));
        let tables = host_tables(2);
        assert_eq!(tables.matches("15768000 s").count(), 2, "{tables}");
    }
}
