//! Each processor by itself: one that is busy alone is a bottleneck that a mean hides.

use blockstone_figures::Interval;

use super::host::uses;
use crate::table::{Shape, Value, View, share, text};

pub const VIEW: View = View {
    name: "processors",
    title: "Processors",
    doc: "Each processor: where its time went.",
    probe: "cpu",
    shape: Shape::Table,
    columns: &[
        text("cpu", "cpu", "The processor."),
        share("cpu_user_share", "user", "In user mode, of its time."),
        share("cpu_system_share", "system", "In the kernel."),
        share("cpu_irq_share", "interrupts", "In interrupts, where I/O completes."),
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
