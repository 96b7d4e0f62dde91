//! Interrupts by processor: all interrupts of a disk or a network card may go to a single one.

use std::collections::HashMap;

use blockstone_base::column::Origin;
use blockstone_sys::proc::CPUS_MAX;

use crate::source::{Source, unread};
use crate::{Cell, Context, Probe, Row, Schema, Unmeasured};

/// The schema: one row per processor.
pub const SCHEMA: Schema = Schema {
    probe: "interrupts",
    doc: "Each processor: interrupts and softirqs that it handled.",
    columns: &[
        INTERRUPTS
            .count("interrupts", "Interrupts: of devices, of timers, and of other processors."),
        INTERRUPTS.count("device_interrupts", "Those of devices, which have a number."),
        SOFTIRQS.count("softirqs", "Softirqs of all kinds."),
        SOFTIRQS.count("network_softirqs", "Softirqs NET_RX and NET_TX: packets."),
        SOFTIRQS.count("block_softirqs", "Softirqs BLOCK and IRQ_POLL: I/O that completes."),
    ],
};

const INTERRUPTS: Origin = Origin("/proc/interrupts");
const SOFTIRQS: Origin = Origin("/proc/softirqs");
/// Names in `/proc/softirqs`.
const NETWORK: [&[u8]; 2] = [b"NET_RX", b"NET_TX"];
const BLOCK: [&[u8]; 2] = [b"BLOCK", b"IRQ_POLL"];
/// Maximum number of table lines to read: more interrupts than any machine has.
const LINES_MAX: usize = 4096;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let table =
        |path, absent| Table { source: Source::of(context, path, absent), before: HashMap::new() };
    Box::new(Interrupts {
        hard: table("/proc/interrupts", "procfs is not mounted"),
        soft: table("/proc/softirqs", "procfs is not mounted"),
        counted: Vec::new(),
    })
}

#[derive(Debug)]
struct Interrupts {
    hard: Table,
    soft: Table,
    /// Indexed by processor number.
    counted: Vec<Counted>,
}

/// Counts of a processor; `None` if no table has them.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// All interrupts, and those of devices.
    interrupts: Option<[u64; 2]>,
    /// All softirqs, those of the network, and those of the block layer.
    softirqs: Option<[u64; 3]>,
}

impl Probe for Interrupts {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let Self { hard, soft, counted } = self;
        hard.look(|name, cpu, grown| {
            let [all, devices] = at(counted, cpu).interrupts.get_or_insert_default();
            *all = all.saturating_add(grown);
            if name.iter().all(u8::is_ascii_digit) {
                *devices = devices.saturating_add(grown);
            }
        });
        soft.look(|name, cpu, grown| {
            let [all, network, block] = at(counted, cpu).softirqs.get_or_insert_default();
            *all = all.saturating_add(grown);
            if NETWORK.contains(&name) {
                *network = network.saturating_add(grown);
            } else if BLOCK.contains(&name) {
                *block = block.saturating_add(grown);
            }
        });
        for (cpu, counted) in counted.iter().enumerate() {
            let Counted { interrupts, softirqs } = *counted;
            if interrupts.is_none() && softirqs.is_none() {
                continue;
            }
            let interrupts = interrupts.map_or([None; 2], |all| all.map(Some));
            let softirqs = softirqs.map_or([None; 3], |all| all.map(Some));
            let cells = interrupts.into_iter().chain(softirqs).map(Cell::from).collect();
            rows.push(Row { object: format!("cpu{cpu}"), cells });
        }
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        unread(&SCHEMA, &[&self.hard.source, &self.soft.source])
    }
}

fn at(counted: &mut Vec<Counted>, cpu: usize) -> &mut Counted {
    if counted.len() <= cpu {
        counted.resize(cpu + 1, Counted::default());
    }
    &mut counted[cpu]
}

/// A table with a line for each kind of event and a column for each online processor.
#[derive(Debug)]
struct Table {
    source: Source,
    /// Last counts of each line, by its name and then by processor.
    before: HashMap<Vec<u8>, Vec<u32>>,
}

impl Table {
    /// Calls `add` with the name of each line, the processor, and the growth since the last look;
    /// at the first look, the whole count.
    fn look(&mut self, mut add: impl FnMut(&[u8], usize, u64)) {
        let Self { source, before } = self;
        let Some(text) = source.read() else { return };
        let mut lines = text.split(|&byte| byte == b'\n');
        let cpus = processors(lines.next().unwrap_or_default());
        for line in lines.take(LINES_MAX) {
            let Some((name, counts)) = counts(line, cpus.len()) else { continue };
            let known = before.entry(name.to_vec()).or_default();
            for (&cpu, &count) in cpus.iter().zip(&counts) {
                if known.len() <= cpu {
                    known.resize(cpu + 1, 0);
                }
                add(name, cpu, u64::from(grown(known[cpu], count)));
                known[cpu] = count;
            }
        }
    }
}

/// Returns the growth of a count. The kernel keeps these counts in 32 bits, and starts over from
/// zero when a device is set up again.
fn grown(before: u32, now: u32) -> u32 {
    let grown = now.wrapping_sub(before);
    if grown > u32::MAX / 2 { now } else { grown }
}

/// Parses the processors of the columns: `CPU0 CPU2`.
fn processors(header: &[u8]) -> Vec<usize> {
    let number = |word: &[u8]| -> Option<usize> {
        let number = std::str::from_utf8(word.strip_prefix(b"CPU")?).ok()?.parse().ok()?;
        (number < CPUS_MAX).then_some(number)
    };
    words(header).map_while(number).collect()
}

/// Returns the name of a line and its counts; `None` for a line such as `ERR` that does not count
/// by processor.
fn counts(line: &[u8], processors: usize) -> Option<(&[u8], Vec<u32>)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = line[..colon].trim_ascii();
    // Truncation is fine, whatever the kernel's width: only the growth matters.
    let count = |word: &[u8]| -> Option<u32> {
        let number: u64 = std::str::from_utf8(word).ok()?.parse().ok()?;
        Some(number as u32)
    };
    let counts: Vec<u32> = words(&line[colon + 1..]).take(processors).map_while(count).collect();
    (counts.len() == processors && !name.is_empty()).then_some((name, counts))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use blockstone_testkit::ScratchDir;

    use super::*;

    /// Returns the cells of each processor after each of these looks.
    fn looks(texts: &[(&str, &str)]) -> Vec<Vec<(String, Vec<Option<i64>>)>> {
        let root = ScratchDir::on_disk().unwrap();
        fs::create_dir(root.path().join("proc")).unwrap();
        let write = |(interrupts, softirqs): &(&str, &str)| {
            fs::write(root.path().join("proc/interrupts"), interrupts).unwrap();
            fs::write(root.path().join("proc/softirqs"), softirqs).unwrap();
        };
        write(&texts[0]);
        let mut probe = open(&Context::of_host(root.path()));
        let mut look = |text| {
            write(text);
            let mut rows = Vec::new();
            probe.sample(&mut rows);
            let cell = |cell: &Cell| match cell {
                Cell::Value(value) => Some(*value),
                _ => None,
            };
            let row = |row: Row| (row.object, row.cells.iter().map(cell).collect());
            rows.into_iter().map(row).collect()
        };
        texts.iter().map(&mut look).collect()
    }

    const SOFTIRQS: &str = "                    CPU0       CPU2\n\
        \x20         HI:          1          0\n      NET_RX:         10         20\n\
        \x20      BLOCK:          3          4\n";

    #[test]
    fn interrupts_are_counted_by_the_number_of_their_processor() {
        let interrupts = "           CPU0       CPU2\n\
            \x20 1:        100          7   IO-APIC   1-edge      i8042\n\
            \x2024:          5         50  PCI-MSI 512000-edge   nvme0q1\n\
            LOC:       1000       2000   Local timer interrupts\nERR:          9\n";
        let found = &looks(&[(interrupts, SOFTIRQS)])[0];
        let row = |name: &str, values: [i64; 5]| (name.to_owned(), values.map(Some).to_vec());
        let expected = [row("cpu0", [1_105, 105, 14, 10, 3]), row("cpu2", [2_057, 57, 24, 20, 4])];
        assert_eq!(found[..], expected);
    }

    #[test]
    fn a_count_that_wraps_or_begins_again_never_falls() {
        let interrupts = |device: u32, timer: u32| {
            format!(" CPU0\n 24: {device} PCI-MSI nvme0q1\nLOC: {timer} timer\n")
        };
        let texts = [interrupts(500, u32::MAX - 9), interrupts(2, 10)];
        let found = looks(&[(&texts[0], SOFTIRQS), (&texts[1], SOFTIRQS)]);
        let first = i64::from(u32::MAX) - 9 + 500;
        assert_eq!(found[0][0].1[..2], [Some(first), Some(500)]);
        assert_eq!(found[1][0].1[..2], [Some(first + 2 + 20), Some(502)]);
    }

    #[test]
    fn a_table_that_is_none_is_skipped_and_one_that_is_missing_is_told() {
        for text in ["", "CPU99999999 CPU0\n1: 2 3\n", "CPU0\n\u{0}\n: 5\nx y\n1: -5\n"] {
            let found = &looks(&[(text, SOFTIRQS)])[0];
            assert!(found.iter().all(|(_, cells)| cells[0].is_none()), "{text}: {found:?}");
        }
        let root = ScratchDir::on_disk().unwrap();
        let mut probe = open(&Context::of_host(root.path()));
        let mut rows = Vec::new();
        probe.sample(&mut rows);
        assert!(rows.is_empty() && probe.unmeasured().len() == SCHEMA.columns.len());
    }
}
