//! Short descriptions of a simulated device.

use blockstone_base::units::{Bytes, format_ns, thousands, three_digits};
use blockstone_flash::device::Device;
use blockstone_flash::dies::Suspend;
use blockstone_flash::ftl::Pace;
use blockstone_flash::simulate::{Outcome, Rate};

/// Describes the workload and how it arrives.
pub fn load(outcome: &Outcome) -> String {
    let plan = &outcome.plan;
    let parts: Vec<&str> = plan.workload.parts.iter().map(|part| part.name.as_str()).collect();
    let reads = match plan.workload.reads {
        0.0 => String::new(),
        reads => format!(", {} % reads", three_digits(reads * 100.0)),
    };
    let pace = match (plan.phases.len(), plan.phases[0].pace) {
        (1, Rate::Closed) => format!("{} in flight", plan.queue_depth),
        (1, Rate::Open(rate)) => format!("{} per second", three_digits(rate)),
        (count, _) => format!("{count} phases"),
    };
    format!("{}{reads}, {pace}", parts.join("+"))
}

pub fn device(device: &Device) -> String {
    let times = &device.times;
    format!(
        "{} of {} visible, {} dies on {} channels, {} pages of {} per block; read {}, program {} \
         mean, erase {}",
        Bytes(device.visible_bytes),
        Bytes(device.raw_bytes),
        device.dies(),
        device.channels,
        device.pages_per_erase(),
        Bytes(device.page_bytes.into()),
        format_ns(times.read_ns as f64),
        format_ns(times.program_ns_mean()),
        format_ns(times.erase_ns as f64),
    )
}

/// Describes what a host writes to a device, for a formula.
pub fn given(device: &Device, bytes_per_s: f64) -> Vec<String> {
    let rate = three_digits(bytes_per_s / 1e6);
    vec![self::device(device), format!("the host writes {rate} MB/s")]
}

pub fn collection(outcome: &Outcome) -> String {
    format!("collection {}", collection_alone(outcome))
}

/// Compares the wait of a read whose die is erasing with the read itself; `None` where no read
/// waits for an erase.
pub fn behind_an_erase(outcome: &Outcome) -> Option<String> {
    let times = &outcome.plan.device.times;
    let waits = times.suspend == Suspend::None && outcome.totals.erased_blocks > 0;
    let reads = outcome.steady.reads.count() > 0 && times.read_ns > 0;
    (waits && reads).then(|| {
        let (read, erase) = (times.read_ns as f64, times.erase_ns as f64);
        format!(
            "A read takes {}. If its die has just started to erase a block, it first waits {}, \
             {} × as long.",
            format_ns(read),
            format_ns(erase),
            three_digits(erase / read)
        )
    })
}

/// Describes the same as a value of its own.
pub fn collection_alone(outcome: &Outcome) -> String {
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
    let throttled = match outcome.plan.throttle {
        Some(rate) => format!(", {} writes per second admitted meanwhile", three_digits(rate)),
        None => String::new(),
    };
    format!("{}, {pace}{background}{throttled}", device.policy)
}

/// Warns if throttling was pointless.
pub fn throttling(outcome: &Outcome) -> Option<String> {
    let rate = three_digits(outcome.plan.throttle?);
    match (outcome.throttled_writes, outcome.waiting_writes) {
        (0, _) => Some(format!(
            "no write was throttled: no die had to collect, or fewer than {rate} writes arrived \
             per second"
        )),
        (_, waiting) if waiting > u64::from(outcome.plan.queue_depth) => Some(format!(
            "{} writes still waited at the end: more than {rate} arrived per second",
            thousands(waiting as i64)
        )),
        _ => None,
    }
}

pub fn simulated(outcome: &Outcome) -> String {
    let blocks = thousands(outcome.config.blocks() as i64);
    match outcome.plan.scale {
        ..=1 => format!("all {blocks} blocks simulated, {}", outcome.engine),
        scale => format!("1/{scale} of the device simulated: {blocks} blocks, {}", outcome.engine),
    }
}

/// Describes how much was written and how long that took; empty if nothing was written.
pub fn extent(outcome: &Outcome) -> String {
    let Some(last) = outcome.points.last() else { return String::new() };
    let fills = three_digits(last.drive_fills);
    format!("from left to right: {fills} drive fills, {}", duration(last.t_ns as f64 / 1e9))
}

/// Formats a duration in the unit that suits it, up to hours and days.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = in_unit(seconds);
    format!("{} {unit}", three_digits(value))
}

pub fn in_unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        ..120.0 => (seconds, "s"),
        ..7200.0 => (seconds / 60.0, "min"),
        ..172_800.0 => (seconds / 3600.0, "h"),
        _ => (seconds / 86_400.0, "days"),
    }
}
