//! The statements that took the most time.

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
    // On a server with many statements, they are not read at every tick.
    let read_ns = interval.read_ns(PROBE).unwrap_or(interval.ns());
    let row = |id: &&str| {
        let moved = |column| interval.moved(PROBE, id, column);
        let each = |column| Value::from(ratio(moved(column), moved("calls")));
        vec![
            Value::from(statement(interval, id)),
            moved("total_ns").map(|ns| ns / read_ns).into(),
            moved("calls").map(|calls| calls / read_ns * 1e9).into(),
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

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    #[test]
    fn rates_are_of_the_time_between_the_first_and_the_last_reading() {
        let columns = [(Kind::Counter, "calls"), (Kind::Counter, "total_ns")];
        let mut history = History::new(vec![testing::probe(PROBE, &columns)]);
        for second in [1, 5] {
            let cells = vec![Cell::Value(100 * second), Cell::Value(second * 500_000_000)];
            history.push(PROBE, second as u64 * 1_000_000_000, "7", cells);
        }
        let found = rows(&history.interval(0, 10_000_000_000));
        assert_eq!(found[0][1..3], [Value::Number(0.5), Value::Number(100.0)]);
    }
}
