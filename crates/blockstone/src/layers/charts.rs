//! Charts of views over time, and latency maps of requests to devices.

use std::collections::BTreeMap;

use blockstone_base::table::{Measure, Table};
use blockstone_base::units::{format_ns, thousands};
use blockstone_report::chart::{Axis, Chart, Color, Form, HeatCell};
use blockstone_view::{Interval, Latencies, OCTAVES, Shape, Timed, View, octave_bounds};

/// Views that are drawn over time, with their columns. Each column gets a chart of its own; in a
/// view with a single row, all columns are layers of one chart.
const CHARTS: &[(&str, &[&str])] = &[
    (
        "host",
        &[
            "cpu_user_share",
            "cpu_system_share",
            "cpu_irq_share",
            "cpu_iowait_share",
            "cpu_steal_share",
        ],
    ),
    ("disks", &["read_ios_per_s", "write_ios_per_s", "read_await_ns", "write_await_ns"]),
    ("active-sessions", &["average_active_sessions"]),
    ("events", &["average_active_sessions"]),
    ("database-io", &["read_bytes_per_s", "write_bytes_per_s"]),
    ("io-by-role", &["read_bytes_per_s", "write_bytes_per_s"]),
    ("processes", &["cpu_share", "run_queue_share"]),
    ("network", &["received_bytes_per_s", "sent_bytes_per_s"]),
];
/// Figures that add up to a total: drawn stacked.
const STACKED: [&str; 6] = [
    "average_active_sessions",
    "cpu_user_share",
    "cpu_share",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "run_queue_share",
];
/// View that is shown together with latency maps.
const MAPPED: &str = "io-by-role";
/// Maximum number of rows in a chart: those with the greatest mean.
const ROWS: usize = 10;
/// The lower end of the first octave on a logarithmic axis, which has no zero.
const SHORTEST_NS: f64 = 512.0;

/// Values of a row at the end of each slice; `None` if the slice does not have the row.
type Track = Vec<(f64, Option<f64>)>;

pub fn of(view: &'static View, slices: &[Interval<'_>]) -> Vec<Chart> {
    let keys = CHARTS.iter().find(|(name, _)| *name == view.name).map_or(&[][..], |(_, keys)| keys);
    if keys.is_empty() {
        return Vec::new();
    }
    let tables: Vec<(f64, Option<Table>)> =
        slices.iter().map(|slice| (slice.to_ns as f64, view.table(slice))).collect();
    let columns: Vec<usize> = keys.iter().filter_map(|key| view.column(key)).collect();
    let mut charts: Vec<Chart> = if view.shape == Shape::Record {
        let track =
            |index: &usize| (view.columns[*index].heading.to_string(), only(&tables, *index));
        let first = columns.first().copied().unwrap_or_default();
        vec![chart(view, first, view.title, columns.iter().map(track).collect())]
    } else {
        let of_column = |index: &usize| {
            let title = format!("{}: {}", view.title, view.columns[*index].heading);
            chart(view, *index, &title, by_row(view, &tables, *index))
        };
        columns.iter().map(of_column).collect()
    };
    if view.name == MAPPED {
        charts.extend(maps(slices));
    }
    charts
}

/// Returns a column of the only row of a view over time.
fn only(tables: &[(f64, Option<Table>)], index: usize) -> Track {
    let value = |table: &Option<Table>| table.as_ref()?.rows.first()?[index].number();
    tables.iter().map(|(at, table)| (*at, value(table))).collect()
}

/// Returns a column of each row over time, the greatest first.
fn by_row(view: &View, tables: &[(f64, Option<Table>)], index: usize) -> Vec<(String, Track)> {
    let nothing = || tables.iter().map(|(at, _)| (*at, None)).collect();
    let mut rows: BTreeMap<String, Track> = BTreeMap::new();
    for (place, (_, table)) in tables.iter().enumerate() {
        for row in table.iter().flat_map(|table| &table.rows) {
            // If there are several instances, a column for the instance precedes the view's own
            // columns.
            let before = row.len().saturating_sub(view.columns.len());
            if let Some(value) = row[before + index].number() {
                rows.entry(view.name_of(row)).or_insert_with(nothing)[place].1 = Some(value);
            }
        }
    }
    let sum = |track: &Track| track.iter().filter_map(|(_, value)| *value).sum::<f64>();
    let mut rows: Vec<(String, Track)> = rows.into_iter().collect();
    rows.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)));
    rows.truncate(ROWS);
    rows.retain(|(_, track)| sum(track) > 0.0);
    rows
}

fn chart(view: &View, index: usize, title: &str, rows: Vec<(String, Track)>) -> Chart {
    let column = &view.columns[index];
    let stacked = STACKED.contains(&&*column.key);
    let unit = if column.measure == Measure::Count { column.heading.clone() } else { "".into() };
    let axis = Axis::new(unit, column.measure);
    let name = format!("{}-{}", view.name, column.key.replace('_', "-"));
    let mut chart =
        Chart::new(name, title.to_owned(), Axis::time(), axis).about(column.doc.clone()).wide(260);
    for ((name, track), color) in rows.into_iter().zip(0..) {
        if track.iter().all(|(_, value)| value.is_none()) {
            continue;
        }
        // A missing row adds nothing to a stack.
        let form = if stacked {
            Form::area(track.into_iter().map(|(at, value)| (at, Some(value.unwrap_or(0.0)))))
        } else {
            Form::line(track)
        };
        chart = chart.layer(name, Color::Series(color), form);
    }
    chart
}

/// Maps of the latency of requests to devices, one for each operation.
fn maps(slices: &[Interval<'_>]) -> Vec<Chart> {
    let states = vec![("layer", "block".to_owned())];
    let all = Timed::Counted { states, of_sessions: false };
    let seen: Vec<(f64, f64, Vec<Latencies>)> = slices
        .iter()
        .map(|slice| (slice.from_ns as f64, slice.to_ns as f64, all.latencies(slice)))
        .collect();
    ["read", "write", "flush"].map(|operation| map(operation, &seen)).into()
}

fn map(operation: &str, seen: &[(f64, f64, Vec<Latencies>)]) -> Chart {
    let octaves = |all: &[Latencies]| {
        let one = all.iter().find(|one| one.operation == operation);
        one.map_or([0.0; OCTAVES], Latencies::octaves)
    };
    let counted: Vec<(f64, f64, [f64; OCTAVES])> =
        seen.iter().map(|(from, to, all)| (*from, *to, octaves(all))).collect();
    let greatest = counted.iter().flat_map(|(.., all)| all).copied().fold(0.0, f64::max);
    let mut cells = Vec::new();
    for (from, to, octaves) in &counted {
        for (octave, count) in octaves.iter().enumerate().filter(|(_, count)| **count > 0.0) {
            let (low, high) = octave_bounds(octave);
            let low_ns = if low == 0 { SHORTEST_NS } else { low as f64 };
            let bound = match high {
                Some(end) => format!("<{}", format_ns(end as f64)),
                None => format!("≥{}", format_ns(low as f64)),
            };
            cells.push(HeatCell {
                x: (*from, *to),
                y: (low_ns, high.map_or(low_ns * 2.0, |end| end as f64)),
                heat: (1.0 + count.log10().max(0.0)) / (1.0 + greatest.log10().max(0.0)),
                text: format!("{} {operation}s {bound}", thousands(*count as i64)),
            });
        }
    }
    let title = format!("Latency of every {operation}");
    let y = Axis::new("", Measure::Nanoseconds).log();
    Chart::new(format!("latency-of-{operation}s"), title, Axis::time(), y)
        .about("Requests to devices by when they ended and how long they took; darker is more.")
        .wide(260)
        .layer(operation, Color::Series(0), Form::Heat(cells))
}

#[cfg(test)]
mod tests {
    use blockstone_view::Bucket;

    use super::*;

    #[test]
    fn a_map_has_a_cell_for_each_octave_in_which_requests_ended_and_none_elsewhere() {
        let latencies = |from_ns, count| {
            let buckets = vec![Bucket { from_ns, to_ns: Some(from_ns * 2), count }];
            vec![Latencies { operation: "read".to_owned(), buckets, ..Latencies::default() }]
        };
        let seen = [(0.0, 1e9, latencies(1_024, 1_000.0)), (1e9, 2e9, latencies(4_096, 1.0))];
        let chart = map("read", &seen);
        let Form::Heat(cells) = &chart.layers[0].form else { panic!("{chart:?}") };
        let bounds: Vec<_> = cells.iter().map(|cell| (cell.x, cell.y, cell.heat)).collect();
        assert_eq!(
            bounds,
            [((0.0, 1e9), (1_024.0, 2_048.0), 1.0), ((1e9, 2e9), (4_096.0, 8_192.0), 0.25)]
        );
        assert_eq!(cells[0].text, "1,000 reads <2.05 µs");
        assert!(map("flush", &seen).layers.is_empty(), "there was none");
    }
}
