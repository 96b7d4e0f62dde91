//! Levels of a long series: for every 8th, 64th, 512th … tick, the rows that determine any interval
//! between two such ticks.
//!
//! Counters are cumulative and levels are read at an edge, so for an interval only the rows at its
//! edges matter, together with anything that makes a figure unknown in between: a counter that went
//! back, a cell that was not measured, an object that appeared or disappeared. Those rows are kept,
//! so that a figure from a level equals the figure from all rows, to the digit.

use crate::manifest::ColumnInfo;
use crate::table::{Data, OBJECT, PHASE, T_NS, Table};

use blockstone_base::column::Kind;

/// The probe whose instants define the ticks: it samples at every tick and always reports.
pub const TICKS: &str = "host";
/// Ratio of ticks between one level and the next coarser one.
const FACTOR: usize = 8;
/// A series has levels until the coarsest has no more ticks than this.
const FEW: usize = 1024;

/// A level: every `FACTOR^n`th tick, and all rows at 0.
pub type Level = u32;

/// Returns how many recorded ticks one tick of this level spans.
pub fn ticks_of(level: Level) -> usize {
    FACTOR.saturating_pow(level)
}

/// Returns the ticks of each level for a recording with `ticks`, the finest first.
pub(crate) fn edges(ticks: &[u64]) -> Vec<Vec<u64>> {
    let every = |level: Level| ticks.iter().copied().step_by(ticks_of(level)).collect();
    let levels = (1..).take_while(|&level| ticks.len() / ticks_of(level - 1) > FEW);
    levels.map(every).collect()
}

/// Returns the rows of a sorted table that determine every interval between two of `edges`,
/// ascending. For two tables with consecutive rows, the decisive rows of both together do so as
/// well.
pub(crate) fn decisive(table: &Table, columns: &[ColumnInfo], edges: &[u64]) -> Vec<u32> {
    let keys = (table.column(PHASE), table.column(OBJECT), table.column(T_NS));
    let (Some(Data::Index(phases)), Some(Data::Text(objects)), Some(Data::Number(instants))) = keys
    else {
        return Vec::new();
    };
    let (objects, instants) = (objects.codes(), &instants.values);
    let breaks = breaks(table, columns);
    let same = |a: usize, b: usize| (phases[a], objects[a]) == (phases[b], objects[b]);
    // Number of edges before a row; a row at an edge belongs to the interval that ends there.
    let mut before = 0;
    let cells: Vec<usize> = (instants.iter().enumerate())
        .map(|(row, &t_ns)| {
            if row == 0 || !same(row - 1, row) {
                before = edges.partition_point(|&edge| (edge as i64) < t_ns);
            }
            while edges.get(before).is_some_and(|&edge| (edge as i64) < t_ns) {
                before += 1;
            }
            before
        })
        .collect();
    let follows_edge = |row: usize| {
        let edge = cells[row].checked_sub(1).map(|before| edges[before] as i64);
        edge == Some(instants[row - 1])
    };
    let is_first = |row: usize| {
        row == 0
            || !same(row - 1, row)
            || cells[row - 1] != cells[row] && !follows_edge(row)
            || breaks[row]
    };
    let is_last = |row: usize| {
        row + 1 == table.len()
            || !same(row, row + 1)
            || cells[row] != cells[row + 1]
            || breaks[row + 1]
    };
    (0..table.len()).filter(|&row| is_first(row) || is_last(row)).map(|row| row as u32).collect()
}

/// For each row, whether something about a column changed since the previous row that makes the
/// figures of an interval with both rows unknown.
fn breaks(table: &Table, columns: &[ColumnInfo]) -> Vec<bool> {
    let mut breaks = vec![false; table.len()];
    for column in columns {
        let Some(Data::Number(numbers)) = table.column(&column.name) else { continue };
        let is_counter = column.kind == Kind::Counter;
        let pairs = numbers.values.windows(2).zip(numbers.valid.windows(2));
        for (broken, (values, valid)) in breaks[1.min(table.len())..].iter_mut().zip(pairs) {
            *broken |= is_counter && values[1] < values[0] || valid[1] != valid[0];
        }
    }
    breaks
}
