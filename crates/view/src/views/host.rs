//! The host at a glance: processors, queues, data waiting to be written, pressure.

use blockstone_figures::{CPU_USES, Interval, Known, Missing, ratio, sum};

use super::dirty;
use crate::table::{Bytes, Count, Shape, Share, Value, View, count, derived, level, share};

pub const VIEW: View = View {
    name: "host",
    title: "Host",
    doc: "The whole host: processors, run queue, load average, dirty memory, pressure.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        share("cpu_user_share", "user", "Processor time in user mode, of all processors."),
        share("cpu_system_share", "system", "Processor time in the kernel."),
        share("cpu_irq_share", "interrupts", "Processor time in interrupts; I/O completes there."),
        share("cpu_iowait_share", "iowait", "Processors idle while a task waits for I/O."),
        share("cpu_idle_share", "idle", "Processors idle."),
        share("cpu_steal_share", "steal", "Time in which the hypervisor ran other guests."),
        level("runnable", "runnable", Count, "Tasks running or ready to run."),
        level("blocked", "blocked", Count, "Tasks that wait for I/O to complete."),
        level(
            "load_one_minute",
            "load 1 min",
            Count,
            "Load average: tasks that run, are ready to run or sleep uninterruptibly, mostly for \
             I/O; damped mean of one minute.",
        ),
        level("load_five_minutes", "load 5 min", Count, "The same, over five minutes."),
        level("load_fifteen_minutes", "load 15 min", Count, "The same, over fifteen minutes."),
        count("switches_per_s", "switches/s", "Context switches per second."),
        count("interrupts_per_s", "interrupts/s", "Interrupts of all processors per second."),
        count("forks_per_s", "forks/s", "Processes and threads created per second."),
        level("dirty_bytes", "dirty", Bytes, "Memory waiting to be written to storage."),
        level(
            "dirty_limit_share",
            "of limit",
            Share,
            "Dirty memory and writeback, as a share of the limit that writers are kept below; \
             see `dirty-memory`.",
        ),
        level("writeback_bytes", "writeback", Bytes, "Memory being written to storage."),
        level(
            "cached_bytes",
            "page cache",
            Bytes,
            "Page cache, including tmpfs and shared memory.",
        ),
        share(
            "psi_cpu_some_share",
            "CPU some",
            "Time in which at least one task waited for a processor (PSI).",
        ),
        share(
            "psi_io_some_share",
            "I/O some",
            "Time in which at least one task waited for I/O (PSI).",
        ),
        share("psi_io_full_share", "I/O full", "Time in which all tasks waited for I/O (PSI)."),
    ],
    rows,
};

const PROBE: &str = "host";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let uses = uses(interval, PROBE, "");
    let others = &VIEW.columns[uses.len()..];
    let others = others.iter().map(|heading| match &*heading.key {
        key if key.starts_with("load_") => load(interval, key).into(),
        "dirty_limit_share" => dirty::share_of_limit(interval).into(),
        _ => derived(interval, PROBE, &[""], heading),
    });
    vec![uses.into_iter().chain(others).collect()]
}

fn load(interval: &Interval<'_>, key: &str) -> Known {
    Ok(interval.level(PROBE, "", &format!("{key}_ppm"))? / 1e6)
}

/// Returns user, system, interrupts, iowait, idle and steal as shares of the processors' time.
pub(super) fn uses(interval: &Interval<'_>, probe: &str, object: &str) -> [Value; 6] {
    // A time that a kernel or a tool does not report separately is part of another.
    let reported = |column: &&str| {
        let moved = interval.moved(probe, object, column);
        (moved != Err(Missing::NotInVersion)).then_some(moved)
    };
    let all: Known = sum(CPU_USES.iter().filter_map(reported));
    let of = |columns: &[&str]| {
        let parts: Vec<Known> = columns.iter().filter_map(reported).collect();
        let part = if parts.is_empty() { Err(Missing::NotInVersion) } else { sum(parts) };
        ratio(part, all).into()
    };
    [
        of(&["cpu_user_ns", "cpu_nice_ns"]),
        of(&["cpu_system_ns"]),
        of(&["cpu_irq_ns", "cpu_softirq_ns"]),
        of(&["cpu_iowait_ns"]),
        of(&["cpu_idle_ns"]),
        of(&["cpu_steal_ns"]),
    ]
}
#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing;

    use super::*;

    #[test]
    fn a_time_that_is_not_reported_apart_is_part_of_another() {
        // As of nmon, which counts niced processes as users.
        let counters = "cpu_user_ns cpu_system_ns cpu_iowait_ns cpu_idle_ns cpu_steal_ns";
        let mut history = History::new(vec![testing::probe(PROBE, &[(Kind::Counter, counters)])]);
        for by in [0_u64, 1] {
            let cells = [22, 41, 25, 912, 0].map(|ns| Cell::from(by * ns)).into();
            history.push(PROBE, by * 1000, "", cells);
        }
        let uses = uses(&history.interval(0, 1000), PROBE, "");
        assert_eq!(uses[0], Value::Number(0.022));
        assert_eq!(uses[2], Value::Missing(Missing::NotInVersion));
        assert_eq!(uses[4], Value::Number(0.912));
    }
}
