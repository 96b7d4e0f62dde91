//! What every layer of the host did during the run, as the views of `watch` show it: tables of the
//! whole, and of slices of its time, from which a page makes those of any window.

use blockstone_base::table::{Row, Table, Text};
use blockstone_record::Recording;
use blockstone_record::manifest::Group;
use blockstone_report::{Detail, Section, Timeline};
use blockstone_view::{History, Interval, View, registry};

/// Views in the order in which they are shown.
const VIEWS: [&str; 6] = ["load", "top-events", "wait-classes", "io-by-role", "disks", "host"];
/// Slices of the time.
const SLICES: usize = 60;

/// The chapters and their tables over time, of the phases after the load.
pub fn layers(recording: &Recording, history: &History) -> (Vec<Section>, Timeline) {
    let phases = &recording.manifest.phases;
    let measured = || phases.iter().filter(|phase| phase.group != Group::Load);
    let from_ns = measured().map(|phase| phase.start_ns).min().unwrap_or(0);
    let to_ns = measured().map(|phase| phase.end_ns).max().unwrap_or(0);
    let slices = history.interval(from_ns, to_ns).slices(SLICES);
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
        return (Vec::new(), Timeline::default());
    };
    let whole = history.interval(first.from_ns, last.to_ns);
    let views = VIEWS.iter().filter_map(|name| registry::find(name));
    let shown: Vec<(&View, Table)> = views
        .filter_map(|view| Some((view, view.table(&whole)?)))
        .filter(|(_, table)| !table.rows.is_empty())
        .collect();
    let rows = |view: &View, slice: &Interval<'_>| -> Vec<Row> {
        view.table(slice).map(|table| table.rows).unwrap_or_default()
    };
    let over_time = shown.iter().map(|(view, _)| {
        let each = slices.iter().map(|slice| rows(view, slice)).collect();
        (Text::Borrowed(view.name), each)
    });
    let edges = std::iter::once(first.from_ns).chain(slices.iter().map(|slice| slice.to_ns));
    let timeline = Timeline { edges_ns: edges.collect(), tables: over_time.collect() };
    let section = |(view, table): (&View, Table)| {
        let id = format!("layer-{}", view.name);
        Section::new(id, view.title).about(view.doc).detail(Detail::Page).with([table])
    };
    (shown.into_iter().map(section).collect(), timeline)
}
