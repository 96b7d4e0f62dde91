//! Activity of every layer of the host during the run, as the views of `watch` show it.

use blockstone_base::table::Table;
use blockstone_record::Recording;
use blockstone_record::manifest::Group;
use blockstone_report::{Detail, Section, Timeline};
use blockstone_view::{History, View, registry};

use crate::layers;

/// Views in the order in which they are shown.
pub const VIEWS: &[&str] = &["load", "top-events", "wait-classes", "io-by-role", "disks", "host"];

/// Returns the sections and their tables over time, for the phases after the load. Their headings
/// tell them from the sections of the window.
pub fn layers(recording: &Recording, history: &History) -> (Vec<Section>, Timeline) {
    let phases = &recording.manifest.phases;
    let measured = || phases.iter().filter(|phase| phase.group != Group::Load);
    let from_ns = measured().map(|phase| phase.start_ns).min().unwrap_or(0);
    let to_ns = measured().map(|phase| phase.end_ns).max().unwrap_or(0);
    let views = VIEWS.iter().filter_map(|name| registry::find(name));
    let held = phases.iter().filter(|p| matches!(p.group, Group::Workload | Group::Scan));
    let marks_ns: Vec<u64> =
        held.flat_map(|phase| [phase.window_start_ns, phase.window_end_ns]).collect();
    let interval = history.interval(from_ns, to_ns);
    let tables = layers::tables(&interval, views);
    let timeline = layers::timeline(&interval, &marks_ns, &tables);
    let sections = tables.into_iter().filter(|(_, table)| !table.rows.is_empty());
    let section = |(view, table): (&View, Table)| {
        let id = format!("layer-{}", view.name);
        let heading = format!("{}, warm-up included", view.title);
        Section::new(id, heading).about(view.doc).detail(Detail::Page).with([table])
    };
    (sections.map(section).collect(), timeline)
}
