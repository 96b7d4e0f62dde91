//! The tables of a bulk write.

use blockstone_base::Estimate;
use blockstone_base::row;
use blockstone_base::table::{
    Heading, Measure, Merge, Table, Value, column, count, happened, text, time,
};
use blockstone_base::units::{Bytes, counted, thousands};
use blockstone_judge::run::{BulkCost, BulkStep, BulkWrite, ENOUGH_TABLES, Pace};
use blockstone_report::Section;

use super::tables::measure;

/// Returns sections with the speed at which tables were made, and with the costs of their bytes.
pub fn sections(bulk_write: &BulkWrite) -> [Section; 3] {
    [
        Section::new("bulk-write", "Bulk write").with([paces(bulk_write)]).about(
            "A session makes a table of all rows of its schema, has it flushed and drops it, again \
             and again. As returned: until the commit of the statement is acknowledged. With the \
             flush: until all bytes of the table are on the medium.",
        ),
        Section::new("bulk-steps", "Steps of a bulk write")
            .with([steps(bulk_write)])
            .about("Each step is timed from its start until it has returned."),
        Section::new("bulk-cost", "Cost of a table").with([costs(bulk_write)]).about(
            "Counted from the end of one flush to the end of another, so that whole tables are \
             counted.",
        ),
    ]
}

const PACES: &[Heading] = &[
    text("until", "", "Until when it is counted."),
    count("mb_per_s", "MB/s", "Decimal megabytes of tables a second, of one session."),
    count("rows_per_s", "rows/s", "Rows a second, of one session."),
    time("ns_mean", "a table", "Mean time of a table."),
];

fn paces(bulk_write: &BulkWrite) -> Table {
    let BulkWrite { tables, rows_mean, bytes_mean, returned, flushed, .. } = bulk_write;
    let row = |(until, pace): (&'static str, &Pace)| {
        row![until, happened(pace.mb_per_s), happened(pace.rows_per_s), happened(pace.ns_mean)]
    };
    let rows = [("as returned", returned), ("with the flush", flushed)].map(row);
    let mut table = Table::new("bulk-write", "Bulk write", PACES).with(rows);
    let of = |mean: &Option<f64>| mean.unwrap_or(0.0).round();
    table.notes.push(format!(
        "{} in the window, each of {} rows and {}",
        counted(*tables, "table"),
        thousands(of(rows_mean) as i64),
        Bytes(of(bytes_mean) as u64)
    ));
    if *tables < ENOUGH_TABLES {
        table.notes.push(format!(
            "fewer than {ENOUGH_TABLES} say too little for a mean: use a longer --for or a \
             smaller --scale"
        ));
    }
    table
}

const STEPS: &[Heading] = &[
    text("step", "step", "The step."),
    count("count", "count", "Completed in the window."),
    time("ns_mean", "mean", "Mean time."),
    time("ns_p50", "p50", "Half take no longer."),
    time("ns_p90", "p90", "90 % take no longer."),
    time("ns_p99", "p99", "99 % take no longer."),
];

fn steps(bulk_write: &BulkWrite) -> Table {
    let row = |step: &BulkStep| {
        let [p50, p90, p99] = [step.ns_p50, step.ns_p90, step.ns_p99]
            .map(|known| happened(known.map(Estimate::without_interval)));
        row![step.name, step.count, happened(step.ns_mean), p50, p90, p99]
    };
    let rows = bulk_write.steps.iter().map(row);
    Table::new("bulk-steps", "Steps of a bulk write", STEPS).with(rows)
}

const COSTS: &[Heading] = &[
    text("what", "", "What is counted."),
    column("amount", "of a table", Measure::OfRow, Merge::Never, "For each byte of it."),
];

fn costs(bulk_write: &BulkWrite) -> Table {
    let row = |cost: &BulkCost| {
        let amount = match (cost.amount, cost.missing) {
            (Some(amount), _) => Value::from(amount),
            (None, Some(missing)) => missing.into(),
            (None, None) => Value::default(),
        };
        row![cost.title, amount].of(measure(cost.unit))
    };
    Table::new("bulk-cost", "Cost of a table", COSTS).with(bulk_write.costs.iter().map(row))
}
