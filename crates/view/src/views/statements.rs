//! The statements that took most time.

use blockstone_figures::{Interval, ratio};

use super::active_sessions::statement;
use crate::table::{Count, Shape, Value, View, count, mean_of, mean_size, mean_time, sorted, text};

pub const VIEW: View = View {
    name: "statements",
    title: "Statements",
    doc: "The statements that took the most time: executions, time, blocks and redo.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("statement", "statement", "The text of the statement."),
        count("average_active_sessions", "AAS", "Average number of sessions executing it."),
        count("calls_per_s", "calls/s", "Completed executions per second."),
        mean_time("calls_per_s", "call_ns", "mean", "Mean time of an execution."),
        mean_of("calls_per_s", "rows_per_call", "rows", Count, "Rows per execution."),
        mean_of(
            "calls_per_s",
            "blocks_hit_per_call",
            "hit",
            Count,
            "Blocks found in the cache, per execution.",
        ),
        mean_of(
            "calls_per_s",
            "blocks_read_per_call",
            "read",
            Count,
            "Blocks read into the cache, per execution.",
        ),
        mean_time(
            "calls_per_s",
            "read_ns_per_call",
            "reading",
            "Time spent reading, per execution.",
        ),
        mean_of(
            "calls_per_s",
            "blocks_dirtied_per_call",
            "dirtied",
            Count,
            "Blocks made dirty, per execution.",
        ),
        mean_of(
            "calls_per_s",
            "blocks_written_per_call",
            "written",
            Count,
            "Blocks it had to write itself, per execution.",
        ),
        mean_size("calls_per_s", "redo_bytes_per_call", "redo", "Redo per execution."),
        text("query_id", "id", "The query id."),
    ],
    rows,
};

const PROBE: &str = "statement";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let row = |id: &&str| {
        let moved = |column| interval.moved(PROBE, id, column);
        let each = |column| Value::from(ratio(moved(column), moved("calls")));
        vec![
            Value::from(statement(interval, id)),
            interval.share(PROBE, id, "total_ns").into(),
            interval.per_s(PROBE, id, "calls").into(),
            each("total_ns"),
            each("rows"),
            each("blocks_hit"),
            each("blocks_read"),
            each("read_ns"),
            each("blocks_dirtied"),
            each("blocks_written"),
            each("redo_bytes"),
            Value::from(*id),
        ]
    };
    let executed = |row: &Vec<Value>| row[2] != Value::Number(0.0);
    let rows = interval.objects(PROBE).iter().map(row).filter(executed).collect();
    sorted(rows, 1)
}
