//! Random reads and writes together, compared with what follows from the rates of each alone.

use blockstone_base::table::{Row, Rows as _, Table, Value};
use blockstone_judge::findings::{Findings, Point};
use blockstone_judge::mixes::{self, Mix};

use super::rows::MixRow;

/// Table of the mixes, preceded by reads alone and writes alone.
pub fn table(findings: &Findings) -> Table {
    let mixes = mixes::of(&findings.points);
    let Some(Mix { point, reads, writes, .. }) = mixes.first() else {
        return MixRow::table("mixes", "", []);
    };
    let title = format!("Random reads and writes together, {} in flight", point.load.in_flight());
    let about = "R and W are the rates of reads and writes alone, in windows between those of the \
                 mixes. A disk does one thing at a time and follows the formula; a throttle or a \
                 cloud volume may count reads and writes apart.";
    let alone = [(100, reads), (0, writes)];
    let alone =
        alone.map(|(pct, point)| Row::from(row(pct, point)).condemned_by(&point.condemned_by));
    let rows = mixes.iter().map(|mix| {
        let row = MixRow {
            formula_iops: mix.formula_iops().into(),
            separate_iops: mix.separate_iops().into(),
            ..row(mix.read_pct, mix.point)
        };
        Row::from(row).condemned_by(&mix.condemned_by())
    });
    Table::new("mixes", title, MixRow::COLUMNS).about(about).with(alone).with(rows)
}

/// Returns the row of a mix, or of reads or writes alone, from whose rates nothing follows.
fn row(read_pct: u32, point: &Point) -> MixRow {
    MixRow {
        mix: format!("{read_pct}:{}", 100 - read_pct),
        iops: point.iops,
        latency_ns_p50: point.latency.ns_p50,
        latency_ns_p99: point.latency.ns_p99,
        formula_iops: Value::default(),
        separate_iops: Value::default(),
    }
}
