//! Tables over time: the slices of a recording, and the table of any window made from them.
//! The script of the page (`templates/page.js`) merges by the same rules.

use std::ops::Range;

use blockstone_base::table::{Heading, Merge, Missing, Row, Table, Text, Value, order};

/// Tables of consecutive slices of time, from which a page makes the table of any window.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Edges of the slices in nanoseconds since the recording began: one more than slices.
    pub edges_ns: Vec<u64>,
    /// Name of a table in the report, and its rows in each slice.
    pub tables: Vec<(Text, Vec<Vec<Row>>)>,
}

/// A slice: its length, and the row there if it has it.
type Part<'a> = (f64, Option<&'a Row>);

impl Timeline {
    /// The slices of a window: those whose middle lies in it, else the one at its middle.
    pub fn slices(&self, from_ns: u64, to_ns: u64) -> Range<usize> {
        let count = self.edges_ns.len().saturating_sub(1);
        let middle = |slice: usize| self.edges_ns[slice].midpoint(self.edges_ns[slice + 1]);
        let first = (0..count).take_while(|slice| middle(*slice) < from_ns).count();
        let end = (0..count).take_while(|slice| middle(*slice) < to_ns).count();
        if first < end || count == 0 {
            return first..end;
        }
        let at = from_ns.midpoint(to_ns);
        let after = (0..count).take_while(|slice| self.edges_ns[slice + 1] <= at).count();
        let slice = after.min(count - 1);
        slice..slice + 1
    }

    /// The rows of `table` in a window, sorted as the table is; none where it has no slices.
    pub fn window(&self, table: &Table, from_ns: u64, to_ns: u64) -> Vec<Row> {
        let Some((_, rows)) = self.tables.iter().find(|(name, _)| *name == table.name) else {
            return Vec::new();
        };
        let slices = self.slices(from_ns, to_ns);
        let slices = slices.start.min(rows.len())..slices.end.min(rows.len());
        let lengths = self.edges_ns.windows(2).map(|edges| (edges[1] - edges[0]) as f64);
        let lengths: Vec<f64> = lengths.skip(slices.start).take(slices.len()).collect();
        let rows = &rows[slices];
        let known = table.rows.iter().map(|row| name(&table.columns, row));
        let mut names: Vec<Vec<&Value>> = Vec::new();
        for name in known.chain(rows.iter().flatten().map(|row| name(&table.columns, row))) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let find = |name: &[&Value]| -> Vec<Part<'_>> {
            let row = |slice: &'_ Vec<Row>| {
                slice.iter().position(|row| self::name(&table.columns, row) == name)
            };
            let rows = rows.iter().map(|slice| row(slice).map(|at| &slice[at]));
            lengths.iter().copied().zip(rows).collect()
        };
        let parts = names.iter().map(|name| find(name));
        let present = parts.filter(|parts| parts.iter().any(|(_, row)| row.is_some()));
        let mut merged: Vec<Row> = present.map(|parts| merge(&table.columns, &parts)).collect();
        if let Some(column) = sorted_by(table) {
            merged.sort_by(|a, b| order(&a[column], &b[column]));
        }
        merged
    }
}

/// The column that a table is sorted by: the first column of numbers that descend, else the first
/// column of texts that ascend. None where neither does, or all are equal.
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

/// What names a row: its cells in columns that do not change over time.
fn name<'a>(columns: &[Heading], row: &'a Row) -> Vec<&'a Value> {
    let cells = columns.iter().zip(&row.cells);
    cells.filter(|(column, _)| column.merge == Merge::Key).map(|(_, cell)| cell).collect()
}

/// A row over several slices; over one it stays as it is.
fn merge(columns: &[Heading], parts: &[Part<'_>]) -> Row {
    let rows: Vec<&Row> = parts.iter().filter_map(|(_, row)| *row).collect();
    if let ([_], [row]) = (parts, &rows[..]) {
        return (*row).clone();
    }
    let mut merged = Row {
        cells: (0..columns.len()).map(|column| cell(columns, column, parts)).collect(),
        measure: rows.iter().find_map(|row| row.measure),
        condemned_by: Vec::new(),
    };
    for rule in rows.iter().flat_map(|row| &row.condemned_by) {
        if !merged.condemned_by.contains(rule) {
            merged.condemned_by.push(rule.clone());
        }
    }
    merged
}

fn cell(columns: &[Heading], column: usize, parts: &[Part<'_>]) -> Value {
    let cells = || parts.iter().filter_map(|(_, row)| row.map(|row| &row[column]));
    let numbers = || cells().filter_map(Value::number);
    // Words are not merged, whatever their column says.
    if let Some(text) = cells().rfind(|cell| matches!(cell, Value::Text(_))) {
        return text.clone();
    }
    let weights: Vec<Option<f64>> = match columns[column].merge {
        Merge::Sum if numbers().next().is_some() => return Value::Number(numbers().sum()),
        Merge::Last => {
            return numbers().next_back().map_or_else(|| missing(cells()), Value::Number);
        }
        Merge::Greatest => {
            let greatest = numbers().reduce(f64::max);
            return greatest.map_or_else(|| missing(cells()), Value::Number);
        }
        Merge::Key | Merge::Sum => return missing(cells()),
        Merge::Never => return Value::Missing(Missing::Unknown),
        Merge::Mean => parts.iter().map(|(length, _)| Some(*length)).collect(),
        Merge::WeightedBy(key) => {
            let Some(weight) = columns.iter().position(|column| column.key == key) else {
                return Value::Missing(Missing::Unknown);
            };
            let weight = |(length, row): &Part<'_>| Some(row.as_ref()?[weight].number()? * length);
            parts.iter().map(weight).collect()
        }
    };
    let (mut sum, mut whole) = (0.0, 0.0);
    for ((_, row), weight) in parts.iter().zip(weights) {
        // A row that a slice does not have is zero there; a cell without a number says nothing.
        let number = row.map_or(Some(0.0), |row| row[column].number());
        if let (Some(number), Some(weight)) = (number, weight) {
            sum += number * weight;
            whole += weight;
        }
    }
    if whole > 0.0 && numbers().next().is_some() {
        return Value::Number(sum / whole);
    }
    missing(cells())
}

/// Why no slice has a number: the first reason but that nothing happened.
fn missing<'a>(cells: impl Iterator<Item = &'a Value>) -> Value {
    let reasons = cells.filter_map(|cell| match cell {
        Value::Missing(reason) if *reason != Missing::Nothing => Some(*reason),
        _ => None,
    });
    Value::Missing(
        reasons.fold(None, |first, reason| first.or(Some(reason))).unwrap_or(Missing::Nothing),
    )
}

#[cfg(test)]
mod tests {
    use blockstone_base::table::{Measure, column, count, text};

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

    /// Two disks over three slices of 1, 1 and 2 s; `b` is missing in the first.
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
        (table, Timeline { edges_ns, tables: vec![("disks".into(), slices)] })
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
        assert_eq!(timeline.slices(1_900_000_000, 1_950_000_000), 1..2);
        assert_eq!(timeline.slices(9_000_000_000, 9_000_000_001), 2..3);
        assert_eq!(timeline.slices(400_000_000, 1_600_000_000), 0..2);
        let rows = timeline.window(&table, 0, 1_000_000_000);
        assert_eq!(rows, [row("a", [100.0, 10.0, 1.0, 7.0, 3.0, 50.0])]);
    }

    #[test]
    fn missing_cells_are_skipped_and_all_missing_stays_missing() {
        let (table, mut timeline) = world();
        let slices = &mut timeline.tables[0].1;
        slices[0][0].cells[1] = Value::Missing(Missing::Off);
        for slice in slices.iter_mut() {
            slice[0].cells[5] = Value::Missing(Missing::NotPermitted);
        }
        slices[1][0].condemned_by = vec!["hole".to_owned()];
        let rows = timeline.window(&table, 0, 4_000_000_000);
        assert_eq!(rows[1][1], Value::Number(100.0), "300 over 1 s and 0 over 2 s");
        assert_eq!(rows[1][2], Value::Number(30.0), "no weight, no share");
        assert_eq!(rows[1][5], Value::Missing(Missing::NotPermitted));
        assert_eq!(rows[1].condemned_by, ["hole"]);
        assert!(timeline.window(&Table::new("x", "", COLUMNS), 0, 1).is_empty());
    }
}
