//! Tables over time: the slices of a recording, and the table of any window made from them.
//! The script of the page (`templates/page.js`) merges by the same rules.

use std::ops::Range;

use blockstone_base::table::{Merge, Row, Table, Text, merge, order};

/// Tables of consecutive slices of time, from which a page makes the table of any window.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Edges of the slices in nanoseconds since the recording began: one more than there are
    /// slices. A chosen window begins and ends at an edge.
    pub edges_ns: Vec<u64>,
    pub tables: Vec<Sliced>,
}

/// A table for each slice of time.
#[derive(Clone, Debug)]
pub struct Sliced {
    /// Name of the table in the report.
    pub table: Text,
    /// Edges of its own slices, from the first edge of the timeline to its last.
    pub edges_ns: Vec<u64>,
    /// Its rows in each slice; `None` in one that it does not cover.
    pub rows: Vec<Option<Vec<Row>>>,
}

/// Returns the slices of a window: those whose middle is in it, else the one at its middle.
pub fn slices(edges_ns: &[u64], from_ns: u64, to_ns: u64) -> Range<usize> {
    let count = edges_ns.len().saturating_sub(1);
    let middle = |slice: usize| edges_ns[slice].midpoint(edges_ns[slice + 1]);
    let first = (0..count).take_while(|slice| middle(*slice) < from_ns).count();
    let end = (0..count).take_while(|slice| middle(*slice) < to_ns).count();
    if first < end || count == 0 {
        return first..end;
    }
    let at = from_ns.midpoint(to_ns);
    let after = (0..count).take_while(|slice| edges_ns[slice + 1] <= at).count();
    let slice = after.min(count - 1);
    slice..slice + 1
}

impl Timeline {
    pub fn of(&self, table: &Table) -> Option<&Sliced> {
        self.tables.iter().find(|sliced| sliced.table == table.name)
    }

    /// Returns the rows of `table` for a window, in the order of the table; none if it has no
    /// slices.
    pub fn window(&self, table: &Table, from_ns: u64, to_ns: u64) -> Vec<Row> {
        let Some(Sliced { edges_ns, rows, .. }) = self.of(table) else { return Vec::new() };
        let seconds = |slice: usize| (edges_ns[slice + 1] - edges_ns[slice]) as f64 / 1e9;
        let slices: Vec<(f64, &[Row])> = slices(edges_ns, from_ns, to_ns)
            .filter_map(|slice| Some((seconds(slice), rows.get(slice)?.as_deref()?)))
            .collect();
        let mut merged = merge(&table.columns, &slices);
        // Rows that are equal to the sort stay in the order of the table.
        let names: Vec<String> = table.rows.iter().map(|row| table.name_of(row)).collect();
        let place = |row: &Row| names.iter().position(|name| *name == table.name_of(row));
        merged.sort_by_key(|row| place(row).unwrap_or(usize::MAX));
        if let Some(column) = sorted_by(table) {
            merged.sort_by(|a, b| order(&a[column], &b[column]));
        }
        merged
    }
}

/// Returns the column that a table is sorted by: the first column of numbers that descend, else the
/// first column of texts that ascend. `None` if neither does, or all are equal.
pub(crate) fn sorted_by(table: &Table) -> Option<usize> {
    let sorted = |column: &usize| {
        let pairs =
            || table.rows.windows(2).map(|pair| order(&pair[0][*column], &pair[1][*column]));
        pairs().all(std::cmp::Ordering::is_le) && pairs().any(std::cmp::Ordering::is_lt)
    };
    let names = |column: &usize| table.columns[*column].merge == Merge::Key;
    let columns = 0..table.columns.len();
    let numbers = columns.clone().filter(|column| !names(column)).find(sorted);
    numbers.or_else(|| columns.filter(names).find(sorted))
}

#[cfg(test)]
mod tests {
    use blockstone_base::table::{Heading, Measure, Missing, Value, column, count, text};

    use super::*;

    const COLUMNS: &[Heading] = &[
        text("disk", "disk", ""),
        count("reads_per_s", "reads/s", ""),
        column("read_ns", "latency", Measure::Nanoseconds, Merge::WeightedBy("reads_per_s"), ""),
        column("errors", "errors", Measure::Count, Merge::Sum, ""),
        column("used", "used", Measure::Bytes, Merge::Last, ""),
        column("queue_max", "queue max", Measure::Count, Merge::Greatest, ""),
        column("p99_ns", "p99", Measure::Nanoseconds, Merge::Never, ""),
    ];

    fn row(disk: &str, numbers: [f64; 6]) -> Row {
        let mut cells = vec![Value::from(disk)];
        cells.extend(numbers.map(Value::Number));
        cells.into()
    }

    /// Returns two disks over three slices of 1, 1 and 2 s; `b` is missing in the first.
    fn world() -> (Table, Timeline) {
        let mut table = Table::new("disks", "Disks", COLUMNS);
        table.push(row("b", [9.0; 6]));
        table.push(row("a", [5.0; 6]));
        let slices = vec![
            vec![row("a", [100.0, 10.0, 1.0, 7.0, 3.0, 50.0])],
            vec![
                row("a", [300.0, 30.0, 2.0, 8.0, 9.0, 60.0]),
                row("b", [900.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
            ],
            vec![row("a", [0.0, 0.0, 4.0, 9.0, 2.0, 70.0])],
        ];
        let edges_ns = vec![0, 1_000_000_000, 2_000_000_000, 4_000_000_000];
        let rows = slices.into_iter().map(Some).collect();
        let disks = Sliced { table: "disks".into(), edges_ns: edges_ns.clone(), rows };
        (table, Timeline { edges_ns, tables: vec![disks] })
    }

    #[test]
    fn each_column_merges_by_its_rule() {
        let (table, timeline) = world();
        let rows = timeline.window(&table, 0, 4_000_000_000);
        assert_eq!(rows.len(), 2);
        let unknown = Value::Missing(Missing::Unknown);
        // Sorted as the table is: by reads, descending.
        let b = [225.0, 1.0, 0.0, 1.0, 1.0].map(Value::Number);
        assert_eq!(rows[0][1..6], b);
        let a = [100.0, 25.0, 7.0, 9.0, 9.0].map(Value::Number);
        assert_eq!((&rows[1][1..6], &rows[1][6]), (&a[..], &unknown));
    }

    #[test]
    fn one_slice_stays_as_it_is_and_a_narrow_window_takes_the_slice_around_it() {
        let (table, timeline) = world();
        let slices = |from_ns, to_ns| slices(&timeline.edges_ns, from_ns, to_ns);
        assert_eq!(slices(1_900_000_000, 1_950_000_000), 1..2);
        assert_eq!(slices(9_000_000_000, 9_000_000_001), 2..3);
        assert_eq!(slices(400_000_000, 1_600_000_000), 0..2);
        let rows = timeline.window(&table, 0, 1_000_000_000);
        assert_eq!(rows, [row("a", [100.0, 10.0, 1.0, 7.0, 3.0, 50.0])]);
    }

    #[test]
    fn what_one_slice_did_not_measure_is_missing_over_all_and_rules_stay() {
        let (table, mut timeline) = world();
        let slices = &mut timeline.tables[0].rows;
        slices[0].as_mut().unwrap()[0].cells[1] = Value::Missing(Missing::Off);
        slices[1].as_mut().unwrap()[0].condemned_by = vec!["hole".to_owned()];
        let rows = timeline.window(&table, 0, 4_000_000_000);
        assert_eq!(rows[1][1], Value::Missing(Missing::Off));
        assert_eq!(rows[1].condemned_by, ["hole"]);
        assert!(timeline.window(&Table::new("x", "", COLUMNS), 0, 1).is_empty());
    }

    #[test]
    fn slices_that_a_table_does_not_speak_of_take_no_time() {
        let (table, mut timeline) = world();
        timeline.tables[0].rows[2] = None;
        let rows = timeline.window(&table, 0, 4_000_000_000);
        assert_eq!(rows[0][1], Value::Number(450.0), "over two seconds, not four");
        assert!(timeline.window(&table, 2_500_000_000, 3_500_000_000).is_empty());
    }
}
