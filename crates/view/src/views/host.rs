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
    let moved = |column: &str| interval.moved(probe, object, column);
    // A time that a kernel or a tool does not report separately is part of another.
    let known =
        CPU_USES.map(moved).into_iter().filter(|known| *known != Err(Missing::NotInVersion));
    let all: Known = sum(known);
    let of = |columns: &[&str]| ratio(sum(columns.iter().map(|column| moved(column))), all).into();
    [
        of(&["cpu_user_ns", "cpu_nice_ns"]),
        of(&["cpu_system_ns"]),
        of(&["cpu_irq_ns", "cpu_softirq_ns"]),
        of(&["cpu_iowait_ns"]),
        of(&["cpu_idle_ns"]),
        of(&["cpu_steal_ns"]),
    ]
}
