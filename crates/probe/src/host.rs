//! The host: where the processors' time went, what waits in memory to be written, and how long
//! tasks stalled for lack of a processor or of I/O.

use blockstone_base::column::{Column, Kind, Unit};
use blockstone_sys::proc::{numbers, numbers_after};

use crate::rising::Rising;
use crate::source::Source;
use crate::{Cell, Context, Probe, Row, Schema, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "host",
    doc: "The whole machine: processor time by use, run queue, dirty memory, pressure stalls.",
    columns: &[
        cpu("cpu_user_ns", "Processors in user mode, guests of this machine included."),
        cpu("cpu_nice_ns", "Processors in user mode at a lowered priority."),
        cpu("cpu_system_ns", "Processors in the kernel."),
        cpu("cpu_irq_ns", "Processors in hardware interrupts."),
        cpu("cpu_softirq_ns", "Processors in software interrupts, where I/O completes."),
        cpu("cpu_iowait_ns", "Processors idle while a task they ran waits for I/O."),
        cpu("cpu_idle_ns", "Processors idle."),
        cpu("cpu_steal_ns", "Processors ready to run while the hypervisor ran another guest."),
        Column {
            name: "switches",
            unit: Unit::Count,
            kind: Kind::Counter,
            source: "/proc/stat ctxt",
            doc: "Context switches of all processors.",
        },
        Column {
            name: "runnable",
            unit: Unit::Count,
            kind: Kind::Gauge,
            source: "/proc/stat procs_running",
            doc: "Tasks running or ready to run, the reader of this number included.",
        },
        memory("dirty_bytes", "/proc/meminfo Dirty", "Memory waiting to be written to storage."),
        memory("writeback_bytes", "/proc/meminfo Writeback", "Memory being written to storage."),
        memory(
            "cached_bytes",
            "/proc/meminfo Cached + Buffers",
            "Page cache of files and of block devices, tmpfs and shared memory included.",
        ),
        pressure(
            "psi_cpu_some_ns",
            "/proc/pressure/cpu some",
            "At least one task waited for a processor.",
        ),
        pressure("psi_io_some_ns", "/proc/pressure/io some", "At least one task waited for I/O."),
        pressure(
            "psi_io_full_ns",
            "/proc/pressure/io full",
            "All tasks that were not idle waited for I/O.",
        ),
    ],
};

/// `/proc/stat` counts in `USER_HZ` ticks, which is 100 on x86-64 and aarch64 whatever HZ is.
const TICK_NS: u64 = 10_000_000;

const CPU_COLUMNS: usize = 8;
/// Where the `cpu` line of `/proc/stat` has each processor column: user nice system idle iowait
/// irq softirq steal.
const CPU_FIELDS: [usize; CPU_COLUMNS] = [0, 1, 2, 5, 6, 4, 3, 7];

const fn cpu(name: &'static str, doc: &'static str) -> Column {
    Column {
        name,
        unit: Unit::Nanoseconds,
        kind: Kind::Counter,
        source: "/proc/stat cpu (resolution 10 ms; sampled at the kernel's tick)",
        doc,
    }
}

const fn memory(name: &'static str, source: &'static str, doc: &'static str) -> Column {
    Column { name, unit: Unit::Bytes, kind: Kind::Gauge, source, doc }
}

const fn pressure(name: &'static str, source: &'static str, doc: &'static str) -> Column {
    Column { name, unit: Unit::Nanoseconds, kind: Kind::Counter, source, doc }
}

pub fn open(context: &Context) -> Box<dyn Probe> {
    const NO_PSI: &str = "the kernel is built without CONFIG_PSI, or was booted without psi=1";
    let source = |path, absent| Source::of(context, path, absent);
    Box::new(Host {
        stat: source("/proc/stat", "procfs is not mounted"),
        meminfo: source("/proc/meminfo", "procfs is not mounted"),
        psi_cpu: source("/proc/pressure/cpu", NO_PSI),
        psi_io: source("/proc/pressure/io", NO_PSI),
        cpu: [Rising::default(); CPU_COLUMNS],
    })
}

#[derive(Debug)]
struct Host {
    stat: Source,
    meminfo: Source,
    psi_cpu: Source,
    psi_io: Source,
    /// Idle and iowait time may fall back a little when a sleeping processor's share is corrected.
    cpu: [Rising; CPU_COLUMNS],
}

impl Probe for Host {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let mut cells = Vec::with_capacity(SCHEMA.columns.len());
        self.sample_stat(&mut cells);
        let meminfo = self.meminfo.read();
        let bytes = |key| meminfo.and_then(|text| Some(numbers_after(text, key)?.next()? * 1024));
        cells.push(bytes("Dirty:").into());
        cells.push(bytes("Writeback:").into());
        cells.push(bytes("Cached:").zip(bytes("Buffers:")).map(|(a, b)| a + b).into());
        cells.push(stalled_ns(self.psi_cpu.read(), "some").into());
        let io = self.psi_io.read();
        cells.push(stalled_ns(io, "some").into());
        cells.push(stalled_ns(io, "full").into());
        rows.push(Row { object: String::new(), cells });
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let sources = [&self.stat, &self.meminfo, &self.psi_cpu, &self.psi_io];
        let missing = |column: &Column| {
            let source = sources.iter().find(|source| column.source.starts_with(source.path()))?;
            Some((column.name, source.unmeasured()?.clone()))
        };
        SCHEMA.columns.iter().filter_map(missing).collect()
    }
}

impl Host {
    fn sample_stat(&mut self, cells: &mut Vec<Cell>) {
        let Some(text) = self.stat.read() else {
            cells.resize(CPU_COLUMNS + 2, Cell::Unmeasured);
            return;
        };
        let mut ticks = [None; CPU_COLUMNS];
        for (tick, value) in ticks.iter_mut().zip(numbers_after(text, "cpu").into_iter().flatten())
        {
            *tick = Some(value);
        }
        for (counter, field) in self.cpu.iter_mut().zip(CPU_FIELDS) {
            cells.push(ticks[field].map(|raw| counter.at(raw) * TICK_NS).into());
        }
        let single = |key| numbers_after(text, key).and_then(|mut values| values.next());
        cells.push(single("ctxt").into());
        cells.push(single("procs_running").into());
    }
}

/// The total of a line `some avg10=0.00 avg60=0.00 avg300=0.00 total=14093239`, which is in µs.
fn stalled_ns(pressure: Option<&[u8]>, kind: &str) -> Option<u64> {
    let line = pressure?.split(|&b| b == b'\n').find(|line| line.starts_with(kind.as_bytes()))?;
    Some(numbers(line).last()? * 1000)
}
