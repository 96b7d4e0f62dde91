//! The overview that a terminal shows unless views are named.

use blockstone_base::table::Table;
use blockstone_report::{Block, Detail, Section};
use blockstone_view::{View, registry};

/// The part of a view that the overview shows.
struct Excerpt {
    view: &'static str,
    /// All columns if empty.
    columns: &'static [&'static str],
    rows: usize,
}

/// Columns of the view of the host.
pub const HOST: &[&str] = &["cpu_user_share", "cpu_system_share", "cpu_iowait_share", "runnable"];
/// Columns of the view of disks.
pub const DISKS: &[&str] = &[
    "device",
    "read_ios_per_s",
    "read_bytes_per_s",
    "read_await_ns",
    "write_ios_per_s",
    "write_bytes_per_s",
    "write_await_ns",
    "queue_depth",
];

/// Parts of the overview of a database, chosen so that the whole report fits in 40 lines of 80
/// columns.
const OF_DATABASE: &[Excerpt] = &[
    Excerpt { view: "load", columns: &[], rows: 6 },
    Excerpt {
        view: "top-events",
        columns: &["event", "waits", "wait_time_ns", "wait_ns", "db_time_share"],
        rows: 4,
    },
    Excerpt {
        view: "statements",
        columns: &["statement", "average_active_sessions", "calls_per_s", "call_ns"],
        rows: 3,
    },
    Excerpt { view: "host", columns: HOST, rows: 1 },
    Excerpt { view: "disks", columns: DISKS, rows: 3 },
];
/// The same for a host without a database.
const OF_HOST: &[Excerpt] = &[
    Excerpt { view: "host", columns: HOST, rows: 1 },
    Excerpt { view: "disks", columns: DISKS, rows: 8 },
    Excerpt { view: "all-disks", columns: &[], rows: 1 },
    Excerpt {
        view: "processes",
        columns: &["role", "cpu_share", "run_queue_share", "read_bytes_per_s", "write_bytes_per_s"],
        rows: 8,
    },
];

/// Puts the overview before `sections`, which then appear only on the page or with `--all`. Also
/// returns the number of tables that are not in the overview.
pub fn beside(sections: Vec<Section>) -> (Vec<Section>, usize) {
    let of = |id: &str| sections.iter().find(|section| section.id == id);
    let parts = if of(OF_DATABASE[0].view).is_some() { OF_DATABASE } else { OF_HOST };
    let overview = parts.iter().filter_map(|part| Some(part.of(of(part.view)?)));
    let overview: Vec<Section> = overview.collect();
    let shown = |section: &Section| section.detail == Detail::Screen;
    let others = sections.iter().filter(|section| shown(section)).count() - overview.len();
    let in_full = sections.into_iter().map(|section| match section.detail {
        Detail::Screen => section.detail(Detail::Page),
        _ => section,
    });
    (overview.into_iter().chain(in_full).collect(), others)
}

impl Excerpt {
    fn of(&self, section: &Section) -> Section {
        let id = format!("overview-{}", section.id);
        let tables = section.blocks.iter().filter_map(|block| match block {
            Block::Table(table) => Some(self.cut(table)),
            Block::Chart(_) | Block::Bars(_) | Block::Cells(_) | Block::Text(_) => None,
        });
        Section::new(id, section.heading.clone()).detail(Detail::Terminal).with(tables)
    }

    fn cut(&self, table: &Table) -> Table {
        let mut cut = table.clone();
        cut.rows.truncate(self.rows);
        // Most other notes explain cells that are not shown here.
        let legend = registry::find(self.view).and_then(View::legend);
        cut.notes = legend.into_iter().map(str::to_owned).collect();
        if self.columns.is_empty() { cut } else { cut.only(self.columns) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_and_columns_exist() {
        for part in OF_DATABASE.iter().chain(OF_HOST) {
            let view = registry::find(part.view).unwrap();
            for key in part.columns {
                assert!(view.column(key).is_some(), "{}: {key}", part.view);
            }
        }
    }
}
