//! What is said of a simulated device in a few words, the same in every rendering.

use blockstone_base::units::{Bytes, format_ns, three_digits};
use blockstone_flash::simulate::Outcome;

/// The workload and how it arrives, in a few words.
pub fn load(outcome: &Outcome) -> String {
    use blockstone_flash::simulate::Rate;
    let plan = &outcome.plan;
    let parts: Vec<&str> = plan.workload.parts.iter().map(|part| part.name.as_str()).collect();
    let reads = match plan.workload.reads {
        0.0 => String::new(),
        reads => format!(", {} % reads", three_digits(reads * 100.0)),
    };
    let pace = match (plan.phases.len(), plan.phases[0].pace) {
        (1, Rate::Closed) => format!("{} in flight", plan.queue_depth),
        (1, Rate::Open(rate)) => format!("{} a second", three_digits(rate)),
        (count, _) => format!("{count} phases in turn"),
    };
    format!("{}{reads}, {pace}", parts.join("+"))
}

/// The device in a few words.
pub fn device(outcome: &Outcome) -> String {
    let device = &outcome.plan.device;
    let times = &device.times;
    format!(
        "{} of {} visible, {} dies on {} channels, {} pages of {} a block; read {}, program {} \
         mean, erase {}",
        Bytes(device.visible_bytes),
        Bytes(device.raw_bytes),
        device.dies(),
        device.channels,
        outcome.config.pages_per_block,
        Bytes(device.page_bytes.into()),
        format_ns(times.read_ns as f64),
        format_ns(times.program_ns_mean()),
        format_ns(times.erase_ns as f64),
    )
}

/// How garbage is collected, in a few words.
pub fn collection(outcome: &Outcome) -> String {
    use blockstone_flash::ftl::Pace;
    let device = &outcome.plan.device;
    let pace = match device.pace {
        Pace::Atomic => "whole blocks at once",
        Pace::Spread => "spread over writes",
    };
    let background = if device.background > 0.0 {
        format!(", in the background until {} % are free", three_digits(device.background * 100.0))
    } else {
        String::new()
    };
    format!("{}, {pace}{background}", device.policy)
}
