//! What was watched as one page: every view of the interval, the telling ones also over time.

use std::collections::BTreeMap;

use blockstone_base::units::format_ns;
use blockstone_record::Recording;
use blockstone_record::manifest::Imported;
use blockstone_view::{
    Interval, Latencies, Measure, OCTAVES, Shape, Table as Viewed, Timed, Value, View,
    octave_bounds,
};
use plotly::common::{ColorBar, ColorScale, Fill, HoverInfo, Line, Mode};
use plotly::layout::{Axis, HoverMode, Layout, RangeMode};
use plotly::{HeatMap, Scatter, Trace};
use serde::Serialize;

use super::charts::{self, BLUE, Chart, GREEN, GREY, ORANGE, PURPLE, RED};
use super::table::Table;
use super::{fill, identity};
use crate::terminal::reasons_of;
use crate::{ReportError, chapters, format};

/// The page as its template takes it.
#[derive(Serialize)]
pub struct Page {
    /// The verb that it is of.
    pub verb: &'static str,
    /// What it is about: its headline.
    pub host: String,
    /// What stands below that.
    pub identity: Vec<String>,
    /// Whose measurements these are, where they are not Blockstone's own.
    pub imported: Option<String>,
    /// Names and values at its beginning.
    pub facts: Vec<(&'static str, String)>,
    /// Its chapters.
    pub sections: Vec<Section>,
    /// Which version found it.
    pub tool_version: String,
    /// Where its numbers are from.
    pub recording: String,
}

/// A view's chapter.
#[derive(Serialize)]
pub struct Section {
    /// The view's name.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What it shows.
    pub intro: &'static str,
    /// What is drawn of it.
    pub charts: Vec<Chart>,
    /// What is told of it.
    pub tables: Vec<Table>,
    /// Why cells are empty.
    pub reasons: Vec<String>,
}

/// What is drawn over time: the view, and the columns of which each is a chart; of a view with one
/// row all of them are the layers of one.
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
/// Figures that add up to something: drawn as layers.
const LAYERS: [&str; 6] = [
    "average_active_sessions",
    "cpu_user_share",
    "cpu_share",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "run_queue_share",
];
/// The view beside which maps of latencies stand.
const MAPPED: &str = "io-by-role";
/// Instants of a chart at most.
const POINTS: usize = 300;
/// Rows of a chart at most: those with the greatest mean.
const ROWS: usize = 10;
const COLORS: [&str; 6] = [BLUE, ORANGE, GREEN, PURPLE, RED, GREY];

/// Values of one row at the ends of the slices that have it.
type Track = Vec<(f64, f64)>;

/// Renders an interval of a recording as one page of HTML.
///
/// # Errors
/// When the template cannot be filled in, which its tests exclude.
pub fn page(recording: &Recording, interval: &Interval<'_>) -> Result<String, ReportError> {
    let manifest = &recording.manifest;
    let slices = interval.slices(POINTS);
    let views = chapters::order(interval).into_iter();
    let tables: Vec<(&View, Viewed)> =
        views.filter_map(|view| Some((view, view.table(interval)?))).collect();
    let sections =
        tables.iter().filter(|(_, table)| !table.rows.is_empty()).map(|(view, table)| Section {
            id: view.name,
            title: view.title,
            intro: view.doc,
            charts: charts(view, &slices).into_iter().chain(maps(view, &slices)).collect(),
            tables: vec![drawn(table)],
            reasons: reasons_of(interval, view.probe),
        });
    let page = Page {
        verb: "watch",
        host: manifest.host.hostname.clone(),
        imported: manifest.imported.as_ref().map(Imported::line),
        identity: identity::in_brief(manifest),
        facts: chapters::facts(manifest, interval),
        sections: sections.collect(),
        tool_version: manifest.tool_version.clone(),
        recording: recording.dir.display().to_string(),
    };
    fill("watch.html", &page)
}

/// A view's table; of one row, its figures below each other.
fn drawn(table: &Viewed) -> Table {
    let cell =
        |row: &[Value], index: usize| format::value(&row[index], table.columns[index].measure);
    if table.shape == Shape::Record {
        let mut drawn = Table::of_numbers(table.title.clone(), &["", ""]);
        for row in &table.rows {
            for (index, column) in table.columns.iter().enumerate() {
                drawn.row(column.heading.clone(), vec![cell(row, index)]);
            }
        }
        return drawn;
    }
    let headings: Vec<_> = table.columns.iter().map(|c| c.heading.clone()).collect();
    let mut drawn = Table::of_numbers(table.title.clone(), &headings);
    for row in &table.rows {
        let cells = (1..row.len()).map(|index| cell(row, index)).collect();
        drawn.row(cell(row, 0), cells);
    }
    drawn
}

fn charts(view: &'static View, slices: &[Interval<'_>]) -> Vec<Chart> {
    let Some((_, keys)) = CHARTS.iter().find(|(name, _)| *name == view.name) else {
        return Vec::new();
    };
    let tables: Vec<(f64, Viewed)> = slices
        .iter()
        .filter_map(|slice| Some((slice.to_ns as f64 / 1e9, view.table(slice)?)))
        .collect();
    let column = |key: &&str| view.column(key);
    if view.shape == Shape::Record {
        let tracks = keys.iter().filter_map(column).map(|index| {
            let value =
                |(at, table): &(f64, Viewed)| Some((*at, number(table.rows.first()?, index)?));
            (view.columns[index].heading.to_string(), tables.iter().filter_map(value).collect())
        });
        let first = keys.first().and_then(|key| view.column(key)).unwrap_or_default();
        let title = format!("{} over time", view.title);
        return chart(view, first, &title, tracks.collect()).into_iter().collect();
    }
    let of_column = |index: usize| {
        let mut rows: BTreeMap<String, Track> = BTreeMap::new();
        for (at, table) in &tables {
            for row in &table.rows {
                if let Some(value) = number(row, index) {
                    rows.entry(view.name_of(row)).or_default().push((*at, value));
                }
            }
        }
        let mut rows: Vec<(String, Track)> = rows.into_iter().collect();
        let sum = |track: &Track| track.iter().map(|(_, value)| value).sum::<f64>();
        rows.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)));
        rows.truncate(ROWS);
        rows.retain(|(_, track)| sum(track) > 0.0);
        let title = format!("{}: {}", view.title, view.columns[index].heading);
        chart(view, index, &title, rows)
    };
    keys.iter().filter_map(column).filter_map(of_column).collect()
}

/// How long requests to devices took, one map for each operation, beside the view that is about
/// them.
fn maps(view: &View, slices: &[Interval<'_>]) -> Vec<Chart> {
    if view.name != MAPPED {
        return Vec::new();
    }
    let states = vec![("layer", "block".to_owned())];
    let all = Timed::Counted { states, of_sessions: false };
    let seen: Vec<(f64, Vec<Latencies>)> =
        slices.iter().map(|slice| (slice.to_ns as f64 / 1e9, all.latencies(slice))).collect();
    ["read", "write", "flush"].iter().filter_map(|operation| map(operation, &seen)).collect()
}

fn map(operation: &str, seen: &[(f64, Vec<Latencies>)]) -> Option<Chart> {
    let of = |all: &Vec<Latencies>| {
        let one = all.iter().find(|one| one.operation == operation);
        one.map_or([0.0; OCTAVES], Latencies::octaves)
    };
    let octaves: Vec<[f64; OCTAVES]> = seen.iter().map(|(_, all)| of(all)).collect();
    let occupied = |octave: &usize| octaves.iter().any(|one| one[*octave] > 0.0);
    let (first, last) = ((0..OCTAVES).find(occupied)?, (0..OCTAVES).rev().find(occupied)?);
    let row = |octave: usize| -> Vec<Option<f64>> {
        // An empty cell stays empty.
        octaves.iter().map(|one| Some(one[octave]).filter(|n| *n > 0.0).map(f64::log10)).collect()
    };
    let bound = |octave| match octave_bounds(octave) {
        (_, Some(end)) => format!("<{}", format_ns(end as f64)),
        (start, None) => format!("≥{}", format_ns(start as f64)),
    };
    let instants: Vec<f64> = seen.iter().map(|(at, _)| *at).collect();
    let bounds: Vec<String> = (first..=last).map(bound).collect();
    let trace = HeatMap::new(instants, bounds, (first..=last).map(row).collect::<Vec<_>>())
        .color_scale(ColorScale::Vector(charts::heat_scale()))
        .hover_info(HoverInfo::Skip)
        .color_bar(
            ColorBar::new()
                .title("number")
                .thickness(10)
                .tick_vals((0..6).map(f64::from).collect())
                .tick_text(vec!["1", "10", "100", "1,000", "10,000", "100,000"]),
        );
    let layout = Layout::new().x_axis(Axis::new().title("seconds since the recording began"));
    let title = format!("Latency of every {operation}");
    let caption = "Requests to devices, by when they ended and how long they took; darker is more.";
    Some(Chart::new(&title, caption.to_owned(), vec![trace], layout).wide(300))
}

fn number(row: &[Value], index: usize) -> Option<f64> {
    match row.get(index) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    }
}

fn chart(view: &View, index: usize, title: &str, rows: Vec<(String, Track)>) -> Option<Chart> {
    if rows.iter().all(|(_, track)| track.is_empty()) {
        return None;
    }
    let column = &view.columns[index];
    let layered = LAYERS.contains(&&*column.key);
    let (scale, unit) = match column.measure {
        Measure::Share => (100.0, "%"),
        Measure::Nanoseconds => (1e-3, "µs"),
        Measure::BytesPerS => (1e-6, "MB/s"),
        Measure::Bytes => (1.0, "bytes"),
        _ => (1.0, &*column.heading),
    };
    let traces = rows.into_iter().enumerate().map(|(place, (name, track))| {
        let (at, values): (Vec<f64>, Vec<f64>) =
            track.into_iter().map(|(at, value)| (at, value * scale)).unzip();
        let color = COLORS[place % COLORS.len()];
        let scatter = Scatter::new(at, values)
            .name(name)
            .mode(Mode::Lines)
            .line(Line::new().color(color).width(1.2))
            .hover_info(HoverInfo::All)
            .show_legend(true);
        let trace: Box<dyn Trace> =
            if layered { scatter.stack_group("all").fill(Fill::ToNextY) } else { scatter };
        trace
    });
    let layout = Layout::new()
        .hover_mode(HoverMode::XUnified)
        .x_axis(Axis::new().title("seconds since the recording began"))
        .y_axis(Axis::new().title(unit).range_mode(RangeMode::ToZero));
    Some(Chart::new(title, column.doc.to_string(), traces.collect(), layout).wide(300))
}

#[cfg(test)]
mod tests {
    use blockstone_view::Bucket;

    use super::*;

    #[test]
    fn a_map_has_the_logarithm_of_each_count_where_it_was_and_nothing_where_none_was() {
        let latencies = |from_ns, count| {
            let buckets = vec![Bucket { from_ns, to_ns: Some(from_ns * 2), count }];
            vec![Latencies { operation: "read".to_owned(), buckets, ..Latencies::default() }]
        };
        let seen = [(1.0, latencies(1_024, 1_000.0)), (2.0, latencies(4_096, 1.0))];
        let chart = serde_json::to_string(&map("read", &seen).unwrap()).unwrap();
        assert!(chart.contains("Latency of every read"), "{chart}");
        let z = r#"\"z\":[[3.0,null],[null,null],[null,0.0]]"#;
        assert!(chart.contains(z), "{chart}");
        assert!(chart.contains("<2.05 µs") || chart.contains("u003c2.05 µs"), "{chart}");
        assert!(map("flush", &seen).is_none(), "there was none");
    }
}
