//! Others who used the same machine or device.

use blockstone_base::identity::DeviceKind;
use blockstone_base::verdict::Weight;
use blockstone_record::parameters::RunParameters;

use super::{Judgement, RunCase, RunRule, all_figures, percent};
use crate::derive;
use crate::window::{Growth, HOST, PROCESS, Window};

pub(super) const RULE: RunRule = RunRule {
    id: "noisy-neighbour",
    weight: Weight::Warns,
    doc: "Others at work during the run: foreign processor time, time stolen by the hypervisor, or \
          reads of the device that are not ours.",
    threshold: "More than 10 % of all processor time by others (user time only above loop, \
                device-mapper, RAID and zram devices, whose kernel threads work for us), more than \
                2 % stolen, or more than 5 % of the bytes that the device read not charged to this \
                process.",
    cause: "Another process, container or virtual machine shares processors or device.",
    next: "Stop it or run at a quiet time; the evidence names the kind.",
    check,
};

const FOREIGN_CPU_MAX: f64 = 0.10;
const STEAL_MAX: f64 = 0.02;
const FOREIGN_IO_MAX: f64 = 0.05;
/// Reads of a device below which its share means nothing.
const ENOUGH_BYTES: u64 = 10_000_000;

fn check(case: &RunCase) -> Judgement {
    let mut process = Growth::of(case.window, ("process", ""), &PROCESS);
    // The processes of a server are ours too. The kernel does not say which part of their time was
    // spent in it; the run's own share decides little.
    if case.manifest.parameters::<RunParameters>().is_apart() {
        process.add("cpu_user_ns", case.window.charged_to_server("cpu_ns").unwrap_or(0));
    }
    let host = Growth::of(case.window, ("host", ""), &HOST);
    let window = Window { process, host, ..Window::default() };
    let devices = &case.manifest.target.devices;
    let own = |kind| matches!(kind, DeviceKind::Disk | DeviceKind::Partition);
    let kernel_helps = devices.iter().any(|device| !own(device.kind));
    let foreign = derive::foreign(&[&window])
        .map(|seen| if kernel_helps { seen.user_ratio } else { seen.busy_ratio });
    let noise = [
        ("foreign processor time", foreign.ok(), FOREIGN_CPU_MAX),
        ("stolen", derive::steal_ratio(&[&window]).ok(), STEAL_MAX),
        ("foreign reads", foreign_reads(case), FOREIGN_IO_MAX),
    ];
    let measured: Vec<_> =
        noise.into_iter().filter_map(|(what, ratio, limit)| Some((what, ratio?, limit))).collect();
    if measured.is_empty() {
        return Judgement::inconclusive(
            "neither the machine's processors nor the device were measured",
        );
    }
    let texts: Vec<String> =
        measured.iter().map(|(what, ratio, _)| format!("{} {what}", percent(*ratio))).collect();
    if measured.iter().any(|(_, ratio, limit)| ratio > limit) {
        Judgement::fail(texts.join(", "), all_figures())
    } else {
        Judgement::pass(texts.join(", "))
    }
}

/// Share of the device's read bytes that was not charged to this process. Of writes nothing can be
/// said: file systems and mirrors write more than they are asked to.
fn foreign_reads(case: &RunCase) -> Option<f64> {
    // Of several disks the devices stand in one list, which does not say whose they are.
    let disks = case.manifest.parameters::<RunParameters>().disks;
    if disks.is_some_and(|disks| disks.len() > 1) {
        return None;
    }
    let device = case.manifest.target.devices.first()?;
    let read = case.window.grown("block", &device.name, "read_bytes").ok()?;
    let reads = case.findings.ledger.iter().find(|row| row.what == "reads")?;
    let charged = reads.process.value()?;
    (read >= ENOUGH_BYTES).then(|| read.saturating_sub(charged) as f64 / read as f64)
}
