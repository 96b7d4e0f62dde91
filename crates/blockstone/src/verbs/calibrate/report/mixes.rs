//! Random reads and writes together, compared with what follows from the rates of each alone.

use blockstone_base::row;
use blockstone_base::stats::Estimate;
use blockstone_base::table::{Heading, Table, Value, count, text, time};
use blockstone_judge::findings::Findings;
use blockstone_judge::mixes::{self, Mix};
use schemars::JsonSchema;
use serde::Serialize;

/// A mix of random reads and writes.
#[derive(Serialize, JsonSchema)]
pub struct MixDocument {
    /// Label of the point that measured the mix.
    label: String,
    /// Number of reads in 100 operations.
    read_pct: u32,
    /// Number of operations in flight, the same as in the reads alone and the writes alone.
    in_flight: u32,
    /// Operations per second.
    iops: f64,
    /// 95 % interval of `iops`.
    iops_interval: Interval,
    /// Reads per second when only reads are measured.
    read_iops: f64,
    read_iops_interval: Interval,
    /// Writes per second when only writes are measured.
    write_iops: f64,
    write_iops_interval: Interval,
    /// 1 ÷ (r/R + w/W): the rate that follows if a device either reads or writes.
    formula_iops: f64,
    formula_iops_interval: Interval,
    /// The lesser of R/r and W/w: the rate that follows if reads and writes have limits of their
    /// own.
    separate_iops: f64,
    separate_iops_interval: Interval,
    /// Median latency of all operations, in nanoseconds.
    latency_ns_p50: f64,
    /// 99th percentile of their latency, in nanoseconds.
    latency_ns_p99: f64,
    /// Rules that condemn the mix or the points that it is compared with; empty if there are none.
    condemned_by: Vec<String>,
}

/// Low and high end; null without a bound.
type Interval = [Option<f64>; 2];

pub fn documents(findings: &Findings) -> Vec<MixDocument> {
    mixes::of(&findings.points).iter().map(document).collect()
}

fn document(mix: &Mix) -> MixDocument {
    let ends = |estimate: Estimate| {
        [estimate.low, estimate.high].map(|end| Some(end).filter(|end| end.is_finite()))
    };
    let Mix { point, reads, writes, .. } = mix;
    let (formula, separate) = (mix.formula_iops(), mix.separate_iops());
    MixDocument {
        label: point.label.clone(),
        read_pct: mix.read_pct,
        in_flight: point.load.in_flight(),
        iops: point.iops.value,
        iops_interval: ends(point.iops),
        read_iops: reads.iops.value,
        read_iops_interval: ends(reads.iops),
        write_iops: writes.iops.value,
        write_iops_interval: ends(writes.iops),
        formula_iops: formula.value,
        formula_iops_interval: ends(formula),
        separate_iops: separate.value,
        separate_iops_interval: ends(separate),
        latency_ns_p50: point.latency.ns_p50.value,
        latency_ns_p99: point.latency.ns_p99.value,
        condemned_by: mix.condemned_by(),
    }
}

const MIXES: &[Heading] = &[
    text("mix", "reads:writes", "How many of 100 operations are reads, and writes."),
    count("iops", "IOPS", "Operations a second."),
    time("latency_ns_p50", "p50", "Median latency of all operations."),
    time("latency_ns_p99", "p99", "99 % take no longer."),
    count("formula_iops", "1/(r/R+w/W)", "If the device either reads or writes."),
    count("separate_iops", "min(R/r, W/w)", "If reads and writes have limits of their own."),
];

/// Table of the mixes, preceded by reads alone and writes alone.
pub fn table(findings: &Findings) -> Table {
    let mixes = mixes::of(&findings.points);
    let Some(Mix { point, reads, writes, .. }) = mixes.first() else {
        return Table::new("mixes", "", MIXES);
    };
    let title = format!("Random reads and writes together, {} in flight", point.load.in_flight());
    let about = "R and W are the rates of reads and writes alone, in windows between those of the \
                 mixes. A disk does one thing at a time and follows the formula; a throttle or a \
                 cloud volume may count reads and writes apart.";
    let alone = [("100:0", reads), ("0:100", writes)].map(|(mix, point)| {
        let [p50, p99] =
            [point.latency.ns_p50, point.latency.ns_p99].map(Estimate::without_interval);
        row![mix, point.iops, p50, p99, Value::default(), Value::default()]
            .condemned_by(&point.condemned_by)
    });
    let rows = mixes.iter().map(|mix| {
        let latency = &mix.point.latency;
        let [p50, p99] = [latency.ns_p50, latency.ns_p99].map(Estimate::without_interval);
        let name = format!("{}:{}", mix.read_pct, 100 - mix.read_pct);
        let (formula, separate) = (mix.formula_iops(), mix.separate_iops());
        row![name, mix.point.iops, p50, p99, formula, separate].condemned_by(&mix.condemned_by())
    });
    Table::new("mixes", title, MIXES).about(about).with(alone).with(rows)
}
