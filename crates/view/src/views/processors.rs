//! Each processor on its own: a single busy one is a bottleneck that a mean hides.

use blockstone_figures::Interval;

use super::host::uses;
use crate::table::{Shape, Value, View, share, text};

pub const VIEW: View = View {
    name: "processors",
    title: "Processors",
    doc: "Time of each processor, by use.",
    probe: "cpu",
    shape: Shape::Table,
    columns: &[
        text("cpu", "cpu", "The processor."),
        share("cpu_user_share", "user", "Time in user mode."),
        share("cpu_system_share", "system", "Time in the kernel."),
        share("cpu_irq_share", "interrupts", "Time in interrupts; I/O completes there."),
        share("cpu_iowait_share", "iowait", "Idle while a task that ran here waits for I/O."),
        share("cpu_idle_share", "idle", "Idle."),
        share("cpu_steal_share", "steal", "Ready to run while the hypervisor ran another guest."),
    ],
    rows,
};

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let mut names = interval.objects("cpu");
    names.sort_by_key(|name| (name.len(), *name));
    let row = |name: &str| {
        std::iter::once(Value::from(name)).chain(uses(interval, "cpu", name)).collect()
    };
    names.into_iter().map(row).collect()
}
