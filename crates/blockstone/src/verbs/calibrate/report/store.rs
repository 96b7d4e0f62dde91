//! The loads of the store that the storage was measured for, each alone.

use blockstone_base::table::{Row, Rows as _, Table};
use blockstone_judge::findings::{Findings, Point};
use blockstone_record::manifest::Group;
use blockstone_report::block_size;

use super::rows::StoreRow;
use super::select;

pub fn table(findings: &Findings) -> Table {
    let points = select::group(findings, Group::Store);
    let rows = points.map(|point| Row::from(row(point)).condemned_by(&point.condemned_by));
    Table::new("store", "Loads of the store, each alone", StoreRow::COLUMNS).with(rows)
}

fn row(point: &Point) -> StoreRow {
    let load = &point.load;
    let size = block_size(load.block_bytes);
    StoreRow {
        load: point.label.strip_prefix("store/").unwrap_or(&point.label).to_owned(),
        operation: match load.sync {
            Some(sync) => format!("{size} + {}", sync.name()),
            None => format!("{} {size}", load.op.name()),
        },
        in_flight: load.in_flight(),
        iops: point.iops,
        bytes_per_s: point.mb_per_s.scaled(1e6),
        latency_ns_mean: point.latency.ns_mean,
        latency_ns_p50: point.latency.ns_p50,
        latency_ns_p99: point.latency.ns_p99,
        latency_ns_p999: point.latency.ns_p999,
    }
}
