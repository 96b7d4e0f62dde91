//! Each processor: time by use.

use blockstone_base::column::Origin;
use blockstone_sys::proc::numbers;

use crate::rising::Rising;
use crate::source::{Source, all_unmeasured};
use crate::{Cell, Context, Probe, Row, Schema, Unmeasured};

/// The schema: one row per processor.
pub const SCHEMA: Schema = Schema {
    probe: "cpu",
    doc: "Each processor: time by use.",
    columns: &[
        STAT.time("cpu_user_ns", "In user mode, guests of this machine included."),
        STAT.time("cpu_nice_ns", "In user mode at a lowered priority."),
        STAT.time("cpu_system_ns", "In the kernel."),
        STAT.time("cpu_irq_ns", "In hardware interrupts."),
        STAT.time("cpu_softirq_ns", "In software interrupts, where I/O completes."),
        STAT.time("cpu_iowait_ns", "Idle while a task that ran here waits for I/O."),
        STAT.time("cpu_idle_ns", "Idle."),
        STAT.time("cpu_steal_ns", "Ready to run while the hypervisor ran another guest."),
    ],
};

const STAT: Origin = Origin("/proc/stat cpuN (resolution 10 ms; sampled at the kernel's tick)");
/// `/proc/stat` counts in `USER_HZ` ticks, which is 100 on x86-64 and aarch64 whatever HZ is.
pub const TICK_NS: u64 = 10_000_000;
/// Index of each column in a `cpu` line of `/proc/stat`: user nice system idle iowait irq softirq
/// steal.
pub const FIELDS: [usize; 8] = [0, 1, 2, 5, 6, 4, 3, 7];

/// No machine has more processors; a higher number would only take memory.
const CPUS_MAX: usize = blockstone_sys::proc::CPUS_MAX;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let stat = Source::of(context, "/proc/stat", "procfs is not mounted");
    Box::new(Cpu { stat, counters: Vec::new() })
}

#[derive(Debug)]
struct Cpu {
    stat: Source,
    /// Indexed by processor number; idle time may fall back a little.
    counters: Vec<[Rising; FIELDS.len()]>,
}

impl Probe for Cpu {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let Some(text) = self.stat.read() else { return };
        for line in text.split(|&b| b == b'\n') {
            let Some(rest) = line.strip_prefix(b"cpu") else { continue };
            if !rest.first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let mut values = numbers(rest);
            let index = values.next().map(|index| index as usize);
            let Some(index) = index.filter(|&index| index < CPUS_MAX) else { continue };
            let ticks: Vec<u64> = values.collect();
            if self.counters.len() <= index {
                self.counters.resize(index + 1, Default::default());
            }
            let pairs = self.counters[index].iter_mut().zip(FIELDS);
            let cell = |(counter, field): (&mut Rising, usize)| {
                Cell::from(ticks.get(field).map(|&raw| counter.at(raw).saturating_mul(TICK_NS)))
            };
            rows.push(Row { object: format!("cpu{index}"), cells: pairs.map(cell).collect() });
        }
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        self.stat.unmeasured().map_or(Vec::new(), |why| all_unmeasured(&SCHEMA, why))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Pages, registry};

    /// Returns the rows of every probe on these files at the second of two looks.
    fn rows_of(files: &[(&str, &str)]) -> Vec<Row> {
        let pages = Pages::default();
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        pages.turn(texts.collect::<BTreeMap<_, _>>());
        let context = Context::of_pages(pages);
        let mut rows = Vec::new();
        for entry in registry::of(&context) {
            let mut probe = (entry.open)(&context);
            probe.sample(&mut rows);
            probe.sample(&mut rows);
        }
        rows
    }

    #[test]
    fn a_number_that_no_processor_has_is_skipped() {
        let rows = rows_of(&[("/proc/stat", "cpu0 1 2 3 4\ncpu18446744073709551615 1 2 3 4\n")]);
        let processors = rows.iter().filter(|row| row.object.starts_with("cpu"));
        assert_eq!(processors.map(|row| row.object.as_str()).collect::<Vec<_>>(), ["cpu0", "cpu0"]);
    }

    #[test]
    fn numbers_beyond_our_units_stay_as_large_as_can_be() {
        let most = u64::MAX.to_string();
        let rows = rows_of(&[
            ("/proc/stat", &format!("cpu {most} 2\ncpu0 {most} 2\n")),
            (
                "/proc/meminfo",
                &format!("Cached: {most} kB\nBuffers: {most} kB\nMemTotal: {most} kB\n"),
            ),
            ("/proc/vmstat", &format!("pgpgin {most}\n")),
            ("/proc/pressure/io", &format!("some total={most}\nfull total={most}\n")),
            ("/sys/class/block/vda/stat", &[most.as_str(); 17].join(" ")),
        ]);
        let largest = |row: &&Row| row.cells.contains(&Cell::Value(i64::MAX));
        assert!(rows.iter().filter(largest).count() >= 8, "{rows:?}");
    }
}
