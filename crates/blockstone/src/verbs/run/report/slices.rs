//! The tables of a run's findings for each slice of time, for a window that is selected on the
//! page.

use blockstone_base::table::{Missing, Row, Table, Value};
use blockstone_judge::RunFindings;
use blockstone_judge::run::{latency_parts, parts};
use blockstone_record::Recording;
use blockstone_report::{Sliced, Timeline};
use blockstone_view::History;

use super::tables;
use crate::layers::{ROWS, SLICES, key};

/// Tables that are computed from counters alone.
const COUNTED: [fn(&RunFindings) -> Table; 8] = [
    tables::profile,
    tables::database_time,
    tables::classes,
    tables::background,
    tables::roles,
    tables::disks,
    tables::ledger,
    tables::littles_law,
];
const SECOND_NS: u64 = 1_000_000_000;

/// Adds these tables to the timeline, for its slices that are inside a window.
pub fn add(
    timeline: &mut Timeline,
    recording: &Recording,
    history: &History,
    findings: &RunFindings,
) {
    let manifest = &recording.manifest;
    let found = parts(manifest, history, &timeline.edges_ns);
    for table in COUNTED {
        let each: Vec<_> = found.iter().map(|part| Some(table(part.as_ref()?))).collect();
        timeline.tables.extend(sliced(&table(findings), &timeline.edges_ns, &each, true));
    }
    let edges_ns = seconds(&timeline.edges_ns, &found);
    let found = latency_parts(manifest, history, &edges_ns);
    let each: Vec<_> = found.iter().map(|part| Some(tables::latencies(part.as_ref()?))).collect();
    timeline.tables.extend(sliced(&tables::latencies(findings), &edges_ns, &each, false));
}

/// Returns the rows of the whole table for each slice. If the slices are `complete`, a row that is
/// missing in a slice is unknown there; otherwise it did not happen.
fn sliced(
    whole: &Table,
    edges_ns: &[u64],
    each: &[Option<Table>],
    complete: bool,
) -> Option<Sliced> {
    let columns = &whole.columns;
    let rows = |slice: &Table| -> Vec<Row> {
        let of = |wanted: &Row| {
            let found = slice.rows.iter().find(|row| key(columns, row) == key(columns, wanted));
            found.cloned().or_else(|| complete.then(|| unknown(wanted)))
        };
        whole.rows.iter().take(ROWS).filter_map(of).collect()
    };
    let rows: Vec<Option<Vec<Row>>> = each.iter().map(|slice| slice.as_ref().map(rows)).collect();
    let follows = !whole.rows.is_empty() && rows.iter().any(Option::is_some);
    follows.then(|| Sliced { table: whole.name.clone(), edges_ns: edges_ns.to_vec(), rows })
}

/// Returns the row with its names only.
fn unknown(row: &Row) -> Row {
    let cell = |cell: &Value| match cell {
        Value::Text(name) => Value::from(name),
        _ => Value::Missing(Missing::Unknown),
    };
    Row { cells: row.iter().map(cell).collect(), measure: row.measure, ..Row::default() }
}

/// Returns the edges of the windows and of the whole seconds in them, which is the resolution of
/// recorded latencies. If there are more seconds than a page has slices, each slice has several
/// seconds.
fn seconds(edges_ns: &[u64], found: &[Option<RunFindings>]) -> Vec<u64> {
    let mut edges: Vec<u64> = edges_ns.first().copied().into_iter().collect();
    let all_ns = edges_ns.last().map_or(0, |last| last - edges_ns[0]);
    let step_ns = all_ns.div_ceil(SECOND_NS).div_ceil(SLICES as u64).max(1) * SECOND_NS;
    let window = |at: usize| found.get(at).map(|part| part.as_ref().map(|part| &part.label));
    for (at, pair) in edges_ns.windows(2).enumerate() {
        if found[at].is_some() {
            let cuts = pair[0] / step_ns + 1..=pair[1] / step_ns;
            edges.extend(cuts.map(|cut| cut * step_ns));
        }
        if window(at) != window(at + 1) {
            edges.push(pair[1]);
        }
    }
    edges.dedup();
    edges
}
