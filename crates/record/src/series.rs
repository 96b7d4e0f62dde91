//! A probe's rows in memory, arranged for the questions asked when judging: how did this counter
//! change, for this object, in this phase, between these two instants?

use std::ops::Range;

use blockstone_base::column::{Cell, Kind};

use crate::manifest::ColumnInfo;
use crate::table::{Data, Numbers, OBJECT, PHASE, T_NS, Table, Texts, column_type};

/// All rows of one probe, stored by column, in the order phase, object, time: a look-up is two
/// binary searches, a track is a slice.
#[derive(Clone, Debug)]
pub struct Series {
    columns: Vec<ColumnInfo>,
    cells: Vec<Data>,
    instants: Vec<u64>,
    objects: Texts,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    phase: i32,
    object: u32,
    rows: Range<usize>,
}

#[derive(Clone, Copy, Debug)]
pub struct SeriesRow<'a> {
    /// Time since the recording began, in nanoseconds.
    pub t_ns: u64,
    /// Index into the manifest's phases, −1 between them.
    pub phase: i32,
    /// Object that the row describes; empty if there is only one.
    pub object: &'a str,
    series: &'a Series,
    row: usize,
}

impl SeriesRow<'_> {
    /// Returns the cell of a column, by its index in [`Series::columns`].
    pub fn cell(&self, column: usize) -> Cell {
        match &self.series.cells[column] {
            Data::Number(numbers) => numbers.get(self.row).map_or(Cell::Unmeasured, Cell::Value),
            Data::Text(texts) => {
                texts.get(self.row).map_or(Cell::Unmeasured, |text| Cell::Text(text.to_owned()))
            }
            _ => Cell::Unmeasured,
        }
    }
}

impl Series {
    /// Creates the series of a probe without rows.
    pub(crate) fn empty(columns: Vec<ColumnInfo>) -> Self {
        let cells = columns.iter().map(|column| Data::new(column_type(column.kind))).collect();
        let (instants, groups) = (Vec::new(), Vec::new());
        Self { columns, cells, instants, objects: Texts::default(), groups }
    }

    /// Creates a series from a table; returns the reason if the table is not one of a series.
    pub(crate) fn new(columns: Vec<ColumnInfo>, mut table: Table) -> Result<Self, String> {
        table.sort();
        let cells = columns.iter().map(|column| {
            let wanted = column_type(column.kind);
            let found = table.fields.iter().position(|f| f.name == column.name && f.kind == wanted);
            found
                .map(|index| table.columns[index].clone())
                .ok_or_else(|| format!("it has no column `{}` of its kind", column.name))
        });
        let cells = cells.collect::<Result<_, _>>()?;
        let key = |name| table.column(name).ok_or_else(|| format!("it has no column `{name}`"));
        let (Data::Index(phases), Data::Text(objects), Data::Number(Numbers { values, .. })) =
            (key(PHASE)?, key(OBJECT)?, key(T_NS)?)
        else {
            return Err("its key columns have other types".to_owned());
        };
        let instants = values.iter().map(|&t| u64::try_from(t).unwrap_or(0)).collect();
        let groups = groups(phases, objects.codes());
        Ok(Self { columns, cells, instants, objects: objects.clone(), groups })
    }

    /// Returns the columns, in the order in which the probe declares them.
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    pub fn len(&self) -> usize {
        self.instants.len()
    }

    pub fn is_empty(&self) -> bool {
        self.instants.is_empty()
    }

    pub fn objects(&self, phase: i32) -> Vec<&str> {
        let groups = self.groups.iter().filter(|group| group.phase == phase);
        let mut names: Vec<&str> = groups.map(|group| self.name(group)).collect();
        names.sort_unstable();
        names
    }

    /// Returns the number recorded at exactly `t_ns`, where every probe has a row at a window's
    /// edges. `None` without such a row, and if the cell was not measured.
    pub fn value_at(&self, phase: i32, object: &str, t_ns: u64, column: &str) -> Option<i64> {
        let rows = self.rows_between(phase, object, t_ns, t_ns);
        // A tick can fall on an edge; the edge's row is the later one.
        let row = rows.last()?;
        self.numbers(column)?.get(row)
    }

    /// Returns the change of a counter between the rows at exactly `from_ns` and `to_ns`. `None` if
    /// one of them was not measured, if the column is not a counter, and if it went back (it
    /// wrapped or was reset: then nothing is known).
    pub fn delta(
        &self,
        phase: i32,
        object: &str,
        from_ns: u64,
        to_ns: u64,
        column: &str,
    ) -> Option<u64> {
        let info = self.columns.iter().find(|info| info.name == column)?;
        if info.kind != Kind::Counter {
            return None;
        }
        let from = self.value_at(phase, object, from_ns, column)?;
        let to = self.value_at(phase, object, to_ns, column)?;
        u64::try_from(to.checked_sub(from)?).ok()
    }

    /// Returns the measured numbers from `from_ns` to `to_ns`, both inclusive, as `(t_ns, value)`
    /// in ascending order. Negative numbers, which no counter has, are left out.
    pub fn track(
        &self,
        phase: i32,
        object: &str,
        from_ns: u64,
        to_ns: u64,
        column: &str,
    ) -> Vec<(u64, u64)> {
        let Some(numbers) = self.numbers(column) else { return Vec::new() };
        self.rows_between(phase, object, from_ns, to_ns)
            .filter_map(|row| Some((self.instants[row], u64::try_from(numbers.get(row)?).ok()?)))
            .collect()
    }

    /// Returns all rows, by phase, then object (in order of first appearance), then time.
    pub fn rows(&self) -> impl Iterator<Item = SeriesRow<'_>> {
        self.groups.iter().flat_map(move |group| {
            group.rows.clone().map(move |row| SeriesRow {
                t_ns: self.instants[row],
                phase: group.phase,
                object: self.name(group),
                series: self,
                row,
            })
        })
    }

    fn rows_between(&self, phase: i32, object: &str, from_ns: u64, to_ns: u64) -> Range<usize> {
        let group = self.objects.code(object).and_then(|code| {
            let found = self.groups.binary_search_by_key(&(phase, code), |g| (g.phase, g.object));
            found.ok().map(|index| &self.groups[index])
        });
        let Some(group) = group else { return 0..0 };
        let instants = &self.instants[group.rows.clone()];
        let first = instants.partition_point(|&t| t < from_ns);
        let end = instants.partition_point(|&t| t <= to_ns).max(first);
        group.rows.start + first..group.rows.start + end
    }

    fn numbers(&self, column: &str) -> Option<&Numbers> {
        let index = self.columns.iter().position(|info| info.name == column)?;
        match &self.cells[index] {
            Data::Number(numbers) => Some(numbers),
            _ => None,
        }
    }

    fn name(&self, group: &Group) -> &str {
        &self.objects.words()[group.object as usize]
    }
}

/// Returns the runs of equal (phase, object); the rows must be sorted by both.
fn groups(phases: &[i32], objects: &[u32]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (row, (&phase, &object)) in phases.iter().zip(objects).enumerate() {
        match groups.last_mut() {
            Some(group) if (group.phase, group.object) == (phase, object) => {
                group.rows.end = row + 1;
            }
            _ => groups.push(Group { phase, object, rows: row..row + 1 }),
        }
    }
    groups
}
