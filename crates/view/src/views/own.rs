//! Cost of watching: by how much measuring disturbs.

use blockstone_figures::{Interval, Missing, sum};

use crate::table::{Count, Nanoseconds, Shape, Value, View, flow, level, share, total, unmerged};

pub const VIEW: View = View {
    name: "own",
    title: "Blockstone itself",
    doc: "The overhead of watching: processor time and I/O of this process, missed ticks.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        share("cpu_share", "CPU", "Processor time, as a share of one processor."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        flow("read_bytes_per_s", "storage r", "Bytes it read from storage."),
        flow("write_bytes_per_s", "storage w", "Bytes it wrote to storage."),
        level("threads", "threads", Count, "Number of its threads."),
        unmerged("look_ns", "tick time", Nanoseconds, "Mean time to read all probes at a tick."),
        total(
            "missed_ticks",
            "missed ticks",
            Count,
            "Ticks skipped because their deadline had passed.",
        ),
    ],
    rows,
};

const PROBE: &str = "process";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let share = |column| interval.share(PROBE, "", column);
    let per_s = |column| Value::from(interval.per_s(PROBE, "", column));
    let looks = || {
        let ticks = interval.moved("watch", "", "ticks")?;
        let ns = interval.moved("watch", "", "look_ns")?;
        if ticks == 0.0 { Err(Missing::Nothing) } else { Ok(ns / ticks) }
    };
    vec![vec![
        sum(["cpu_user_ns", "cpu_system_ns"].map(share)).into(),
        share("run_queue_ns").into(),
        per_s("read_bytes"),
        per_s("write_bytes"),
        interval.level(PROBE, "", "threads").into(),
        looks().into(),
        interval.moved("watch", "", "missed_ticks").into(),
    ]]
}
