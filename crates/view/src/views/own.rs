//! What watching costs: measuring disturbs, and this is by how much.

use blockstone_figures::{Interval, Missing, sum};

use crate::table::{Count, Nanoseconds, Shape, Value, View, flow, level, share, total, unmerged};

pub const VIEW: View = View {
    name: "own",
    title: "Blockstone itself",
    doc: "What watching costs: this process's processor time and writes, and late ticks.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        share("cpu_share", "CPU", "Time on a processor, of one processor's time."),
        share("run_queue_share", "run queue", "Time ready to run but waiting for a processor."),
        flow("read_bytes_per_s", "storage r", "Bytes that storage had to deliver to it."),
        flow("write_bytes_per_s", "storage w", "Bytes that it sent to storage."),
        level("threads", "threads", Count, "Its threads."),
        unmerged("look_ns", "look", Nanoseconds, "Mean time that all probes took at a tick."),
        total("missed_ticks", "missed", Count, "Ticks left out because their time had passed."),
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
