//! The load profile: the work of a database, per second and per transaction.

use blockstone_base::column::Unit;
use blockstone_figures::{Interval, Known, Missing, RECENT_S, ratio, sum};

use crate::table::{Count, Merge, Shape, Text, Value, View, column, count, level, text, unmerged};

pub const VIEW: View = View {
    name: "load",
    title: "Load profile",
    doc: "Activity of the database per second and per transaction: calls, reads, writes, redo.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("statistic", "statistic", "The statistic, with its unit if it is not a count."),
        count("per_s", "per second", "Amount per second; for a time, average active sessions."),
        column(
            "per_transaction",
            "per transaction",
            Count,
            Merge::Per { part: "per_s", within: "" },
            "Amount per commit or rollback.",
        ),
    ],
    rows,
};

pub const RECENT: View = View {
    name: "load-now",
    title: "Load profile, last 15 s and 60 s",
    doc: "The load profile per second over the last 15 and the last 60 seconds before the end of \
          the interval, side by side. A column is unknown (`?`) until that much time has been \
          watched, and where ticks are too far apart to cut it out.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("statistic", "statistic", "The statistic, with its unit if it is not a count."),
        unmerged("per_s_over_15s", "15 s", Count, "Amount per second over the last 15 s."),
        unmerged("per_s_over_60s", "60 s", Count, "Amount per second over the last 60 s."),
        level("time", "time", Text, "When these seconds ended, by the clock of the host."),
    ],
    rows: recent,
};

const PROBE: &str = "instance";
/// A span may differ from its nominal length by one part in this many.
const SPAN_SLACK: u64 = 5;

/// The statistics of the profile: the probe, the column, and the name used by DBAs.
const STATISTICS: [(&str, &str, &str); 34] = [
    (PROBE, "db_time_ns", "DB time (s)"),
    ("database", "idle_in_transaction_ns", "idle in transaction (s)"),
    (PROBE, "logical_reads", "logical reads (blocks)"),
    (PROBE, "block_changes", "block changes"),
    (PROBE, "physical_reads", "physical reads (blocks)"),
    ("database", "read_ns", "read time (s)"),
    (PROBE, "physical_writes", "physical writes (blocks)"),
    ("database", "write_ns", "write time (s)"),
    (PROBE, "redo_bytes", "redo (bytes)"),
    ("database", "redo_records", "redo records"),
    ("sql", "full_page_images", "full-page images"),
    (PROBE, "redo_writes", "redo writes"),
    ("database", "redo_flushes", "redo flushes"),
    ("sql", "flushes", "flushes"),
    ("database", "statements", "statements"),
    (PROBE, "commits", "commits"),
    ("database", "rollbacks", "rollbacks"),
    ("database", "logons", "logons"),
    ("database", "rows_read", "rows read"),
    ("database", "rows_fetched", "rows fetched"),
    ("database", "rows_sent", "rows sent"),
    ("database", "rows_inserted", "rows inserted"),
    ("database", "rows_updated", "rows updated"),
    ("database", "rows_deleted", "rows deleted"),
    ("database", "temp_files", "temporary files"),
    ("database", "temp_bytes", "temporary (bytes)"),
    ("database", "row_lock_waits", "row lock waits"),
    ("database", "row_lock_ns", "row lock time (s)"),
    ("database", "deadlocks", "deadlocks"),
    (PROBE, "single_block_reads", "single-block reads"),
    (PROBE, "multiblock_reads", "multiblock reads"),
    (PROBE, "direct_reads", "direct path reads"),
    (PROBE, "log_switches", "log switches"),
    ("sql", "maintenance_runs", "maintenance runs"),
];

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    if interval.objects(PROBE).is_empty() {
        return Vec::new();
    }
    let transactions = transactions(interval);
    let row = |(probe, column, name): &(&str, &str, &str)| {
        let columns = interval.columns(probe);
        let time = columns.iter().any(|c| c.name == *column && c.unit == Unit::Nanoseconds);
        let scale = if time { 1e-9 } else { 1.0 };
        let moved = interval.moved(probe, "", column).map(|moved| moved * scale);
        // A statistic that this database never counts or never reported has no row.
        let is_silent = moved == Err(Missing::Unknown) && interval.objects(probe).is_empty();
        let never = is_silent || moved == Err(Missing::NotInVersion);
        (!never).then(|| {
            vec![
                Value::from(*name),
                moved.map(|moved| moved / interval.seconds()).into(),
                ratio(moved, transactions).into(),
            ]
        })
    };
    let mut rows: Vec<Vec<Value>> = STATISTICS.iter().filter_map(row).collect();
    let charged = [("DB CPU (s)", true), ("background CPU (s)", false)];
    let charged = charged.into_iter().filter_map(|(name, of_sessions)| {
        let busy = processors(interval, of_sessions)?;
        let per_transaction = ratio(Ok(busy * interval.seconds()), transactions);
        Some(vec![Value::from(name), Value::Number(busy), per_transaction.into()])
    });
    // Below the DB time, which it is part of.
    rows.splice(1.min(rows.len())..1.min(rows.len()), charged.collect::<Vec<_>>());
    rows
}

fn recent(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let time = interval.history().time(interval.to_ns);
    let spans = RECENT_S.map(|seconds| before_the_end(interval, seconds).map(|it| rows(&it)));
    let latest = rows(interval);
    let all = spans.iter().flatten().chain([&latest]).max_by_key(|rows| rows.len());
    let names: Vec<Value> = all.into_iter().flatten().map(|row| row[0].clone()).collect();
    let row = |name: Value| {
        let [short, long] = spans.each_ref().map(|rows| {
            let row = rows.as_ref().and_then(|rows| rows.iter().find(|row| row[0] == name));
            row.map_or(Value::Missing(Missing::Unknown), |row| row[1].clone())
        });
        vec![name, short, long, Value::from(time.as_deref())]
    };
    names.into_iter().map(row).collect()
}

/// Returns the last `seconds` of the interval or of what was watched before its end; `None` if the
/// history is shorter or no tick is near.
fn before_the_end<'a>(interval: &Interval<'a>, seconds: u64) -> Option<Interval<'a>> {
    let span_ns = seconds * 1_000_000_000;
    let wanted_ns = interval.to_ns.saturating_sub(span_ns);
    let from_ns = interval.history().tick_near(wanted_ns)?;
    let is_near = interval.to_ns.saturating_sub(from_ns).abs_diff(span_ns) <= span_ns / SPAN_SLACK;
    let mut span = *interval;
    span.from_ns = from_ns;
    is_near.then_some(span)
}

/// Returns the number of processors kept busy by sessions, or by all other processes. Divides by
/// the time between readings, because a server with many processes is not read at every tick.
fn processors(interval: &Interval<'_>, of_sessions: bool) -> Option<f64> {
    let objects = interval.objects("event").into_iter();
    let is_meant = |object: &&str| match object.strip_suffix("/CPU") {
        Some(role) => (role == "session") == of_sessions,
        None => false,
    };
    let known = objects.filter(is_meant).map(|object| interval.moved("event", object, "time_ns"));
    let ns = known.filter_map(Result::ok).reduce(|one, other| one + other)?;
    Some(ns / interval.read_ns("server").unwrap_or(interval.ns()))
}

/// Returns commits plus rollbacks, if the database counts rollbacks.
pub(super) fn transactions(interval: &Interval<'_>) -> Known {
    let commits = interval.moved(PROBE, "", "commits");
    let rollbacks = interval.moved("database", "", "rollbacks").or(Ok(0.0));
    sum([commits, rollbacks])
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_base::database::INSTANCE;
    use blockstone_figures::History;
    use blockstone_record::manifest::ProbeInfo;
    use blockstone_record::testing;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A tick every `every` seconds: ten commits per second, a hundred in the last 15 s.
    fn history(seconds: u64, every: usize) -> History {
        let mut history = History::new(vec![ProbeInfo::of(&INSTANCE), testing::probe("host", &[])]);
        let mut commits = 0;
        for second in 0..=seconds {
            if second.is_multiple_of(every as u64) {
                let cell = |name: &str| Cell::Value(if name == "commits" { commits } else { 0 });
                let cells = INSTANCE.columns.iter().map(|column| cell(column.name)).collect();
                history.push("instance", second * SECOND_NS, "", cells);
                history.push("host", second * SECOND_NS, "", Vec::new());
            }
            commits += if second + 15 >= seconds { 100 } else { 10 };
        }
        history
    }

    fn commits(history: &History) -> [Value; 2] {
        let rows = recent(&history.latest().unwrap());
        let row = rows.iter().find(|row| row[0] == Value::from("commits")).unwrap();
        [row[1].clone(), row[2].clone()]
    }

    #[test]
    fn processor_time_is_of_the_ticks_at_which_processes_were_read() {
        let time = |name| testing::probe(name, &[(Kind::Counter, "time_ns")]);
        let mut history = History::new(vec![time("event"), time("server"), time("instance")]);
        for second in 0..=10 {
            let cells = vec![Cell::Value(second * SECOND_NS as i64 / 2)];
            let t_ns = second as u64 * SECOND_NS;
            history.push("instance", t_ns, "", cells.clone());
            if second % 4 == 1 {
                history.push("event", t_ns, "session/CPU", cells.clone());
                history.push("server", t_ns, "session", cells);
            }
        }
        let busy = |from_s: u64, to_s: u64| {
            processors(&history.interval(from_s * SECOND_NS, to_s * SECOND_NS), true)
        };
        assert_eq!(busy(0, 10), Some(0.5));
        assert_eq!(busy(5, 9), Some(0.5));
        assert_eq!(busy(2, 8), None, "read once");
    }

    #[test]
    fn the_last_seconds_stand_beside_the_last_minute_and_too_little_time_is_unknown() {
        let unknown = || Value::Missing(Missing::Unknown);
        assert_eq!(
            commits(&history(90, 1)),
            [100.0, (15.0 * 100.0 + 45.0 * 10.0) / 60.0].map(Value::Number)
        );
        assert_eq!(commits(&history(20, 1)), [Value::Number(100.0), unknown()]);
        assert_eq!(commits(&history(10, 1)), [unknown(), unknown()]);
        let far_apart = commits(&history(120, 60));
        assert!(far_apart[0] == unknown() && far_apart[1] != unknown(), "{far_apart:?}");
    }
}
