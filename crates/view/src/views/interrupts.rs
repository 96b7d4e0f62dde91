//! Interrupts of each processor: one that takes most of them is a bottleneck.

use blockstone_figures::{Interval, Known, ratio, sum};

use crate::table::{Heading, Shape, Share, Value, View, count, derived, sorted, text, unmerged};

pub const VIEW: View = View {
    name: "interrupts",
    title: "Interrupts",
    doc: "Interrupts and softirqs of each processor, those with most interrupts of devices first.",
    probe: PROBE,
    shape: Shape::Table,
    columns: &[
        text("cpu", "cpu", "The processor."),
        count("device_interrupts_per_s", "devices/s", "Interrupts of devices per second."),
        unmerged("device_share", "of all", Share, "Their share of those of all processors."),
        count("interrupts_per_s", "all/s", "Interrupts, also of timers and other processors."),
        count("block_softirqs_per_s", "block/s", "Softirqs per second in which I/O completes."),
        count("network_softirqs_per_s", "network/s", "Softirqs per second of the network."),
        count("softirqs_per_s", "softirqs/s", "Softirqs of all kinds per second."),
    ],
    rows,
};

const PROBE: &str = "interrupts";
/// The column that rows are sorted by.
const DEVICES: usize = 1;

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let mut names = interval.objects(PROBE);
    // Equal rows are in the order of their numbers.
    names.sort_by_key(|name| (name.len(), *name));
    let devices = |name: &str| interval.moved(PROBE, name, "device_interrupts");
    let all: Known = sum(names.iter().map(|name| devices(name)));
    let row = |name: &str| {
        let cell = |heading: &Heading| match &*heading.key {
            "cpu" => Value::from(name),
            "device_share" => ratio(devices(name), all).into(),
            _ => derived(interval, PROBE, &[name], heading),
        };
        VIEW.columns.iter().map(cell).collect()
    };
    sorted(names.into_iter().map(row).collect(), DEVICES)
}

#[cfg(test)]
mod tests {
    use blockstone_base::column::{Cell, Kind};
    use blockstone_figures::History;
    use blockstone_record::testing::probe;

    use super::*;

    #[test]
    fn the_processor_that_takes_most_interrupts_of_devices_is_the_first_of_128() {
        let columns = "interrupts device_interrupts softirqs network_softirqs block_softirqs";
        let mut history = History::new(vec![probe(PROBE, &[(Kind::Counter, columns)])]);
        for t_ns in [0, 10_000_000_000_i64] {
            let seconds = t_ns / 1_000_000_000;
            for cpu in 0..128 {
                let devices = if cpu == 77 { 9_000 } else { i64::from(cpu == 3) * 1_000 };
                let counts = [250 + devices, devices, 300, 0, devices];
                let cells = counts.map(|per_s| Cell::Value(per_s * seconds)).into();
                history.push(PROBE, t_ns as u64, &format!("cpu{cpu}"), cells);
            }
        }
        let rows = rows(&history.interval(0, 10_000_000_000));
        assert_eq!(rows.len(), 128);
        assert_eq!(rows[0][0], Value::from("cpu77"));
        assert_eq!(rows[0][1..4], [9_000.0, 0.9, 9_250.0].map(Value::from));
        assert_eq!(rows[1][0], Value::from("cpu3"));
        assert_eq!(rows[2][0], Value::from("cpu0"));
    }
}
