//! The tables of a bulk write.

use blockstone_base::table::{Row, Rows as _, Table, Value, happened};
use blockstone_base::units::{Bytes, counted, thousands};
use blockstone_judge::run::{BulkCost, BulkStep, BulkWrite, ENOUGH_TABLES, Pace};
use blockstone_report::Section;

use super::rows::{CostRow, PaceRow, StepRow};
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

fn paces(bulk_write: &BulkWrite) -> Table {
    let BulkWrite { tables, rows_mean, bytes_mean, returned, flushed, .. } = bulk_write;
    let row = |(until, pace): (&'static str, &Pace)| PaceRow {
        until,
        mb_per_s: happened(pace.mb_per_s),
        rows_per_s: happened(pace.rows_per_s),
        ns_mean: happened(pace.ns_mean),
        tables: *tables,
        rows_mean: happened(*rows_mean),
        bytes_mean: happened(*bytes_mean),
    };
    let rows = [("as returned", returned), ("with the flush", flushed)].map(row);
    let mut table = PaceRow::table("bulk-write", "Bulk write", rows);
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

fn steps(bulk_write: &BulkWrite) -> Table {
    let row = |step: &BulkStep| {
        let [ns_p50, ns_p90, ns_p99] = [step.ns_p50, step.ns_p90, step.ns_p99].map(happened);
        let (step, count, ns_mean) = (step.name, step.count, happened(step.ns_mean));
        StepRow { step, count, ns_mean, ns_p50, ns_p90, ns_p99 }
    };
    StepRow::table("bulk-steps", "Steps of a bulk write", bulk_write.steps.iter().map(row))
}

fn costs(bulk_write: &BulkWrite) -> Table {
    let row = |cost: &BulkCost| {
        let amount = match (cost.amount, cost.missing) {
            (Some(amount), _) => Value::from(amount),
            (None, Some(missing)) => missing.into(),
            (None, None) => Value::default(),
        };
        Row::from(CostRow { what: cost.title, amount }).of(measure(cost.unit))
    };
    let rows = bulk_write.costs.iter().map(row);
    Table::new("bulk-cost", "Cost of a table", CostRow::COLUMNS).with(rows)
}
