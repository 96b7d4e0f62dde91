//! The host: how the processors' time was used, how many tasks run, wait or are created, how much
//! memory waits to be written back, and how long tasks stalled for lack of a processor or of I/O.

use blockstone_base::column::{Origin, Unit};
use blockstone_sys::proc::numbers_after;

use crate::cpu::{FIELDS, TICK_NS};
use crate::rising::Rising;
use crate::source::{NO_PSI, Source, stalled_ns, unread};
use crate::{Cell, Context, Probe, Row, Schema, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "host",
    doc: "The whole machine: processor time by use, run queue, load average, interrupts, dirty \
          memory, pressure stalls.",
    columns: &[
        CPU.time("cpu_user_ns", "Processors in user mode, guests of this machine included."),
        CPU.time("cpu_nice_ns", "Processors in user mode at a lowered priority."),
        CPU.time("cpu_system_ns", "Processors in the kernel."),
        CPU.time("cpu_irq_ns", "Processors in hardware interrupts."),
        CPU.time("cpu_softirq_ns", "Processors in software interrupts, where I/O completes."),
        CPU.time("cpu_iowait_ns", "Processors idle while a task they ran waits for I/O."),
        CPU.time("cpu_idle_ns", "Processors idle."),
        CPU.time("cpu_steal_ns", "Processors ready to run while the hypervisor ran another guest."),
        Origin("/proc/stat ctxt").count("switches", "Context switches of all processors."),
        Origin("/proc/stat procs_running").level(
            "runnable",
            Unit::Count,
            "Tasks running or ready to run, the reader of this number included.",
        ),
        Origin("/proc/stat procs_blocked").level(
            "blocked",
            Unit::Count,
            "Tasks that wait for I/O to complete.",
        ),
        Origin("/proc/stat intr").count("interrupts", "Interrupts of all processors."),
        Origin("/proc/stat processes").count("forks", "Processes and threads created."),
        LOAD.level("load_one_minute_ppm", Unit::Ppm, LOAD_DOC),
        LOAD.level("load_five_minutes_ppm", Unit::Ppm, "The same, over five minutes."),
        LOAD.level("load_fifteen_minutes_ppm", Unit::Ppm, "The same, over fifteen minutes."),
        Origin("/proc/meminfo Dirty").level(
            "dirty_bytes",
            Unit::Bytes,
            "Memory waiting to be written to storage.",
        ),
        Origin("/proc/meminfo Writeback").level(
            "writeback_bytes",
            Unit::Bytes,
            "Memory being written to storage.",
        ),
        Origin("/proc/meminfo Cached + Buffers").level(
            "cached_bytes",
            Unit::Bytes,
            "Page cache of files and of block devices, tmpfs and shared memory included.",
        ),
        Origin("/proc/pressure/cpu some")
            .time("psi_cpu_some_ns", "At least one task waited for a processor."),
        Origin("/proc/pressure/io some")
            .time("psi_io_some_ns", "At least one task waited for I/O."),
        Origin("/proc/pressure/io full")
            .time("psi_io_full_ns", "All tasks that were not idle waited for I/O."),
    ],
};

const CPU: Origin = Origin("/proc/stat cpu (resolution 10 ms; sampled at the kernel's tick)");
const LOAD: Origin = Origin("/proc/loadavg (resolution 0.01)");
const LOAD_DOC: &str = "Tasks that run, are ready to run or sleep uninterruptibly, mostly for I/O: \
                        the exponentially damped mean of one minute, in millionths of a task.";
/// Keys of single numbers in `/proc/stat`, apart from the processor times, in the order of their
/// columns.
const SINGLE: [&str; 5] = ["ctxt", "procs_running", "procs_blocked", "intr", "processes"];
const LOADS: usize = 3;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let source = |path, absent| Source::of(context, path, absent);
    Box::new(Host {
        stat: source("/proc/stat", "procfs is not mounted"),
        loadavg: source("/proc/loadavg", "procfs is not mounted"),
        meminfo: source("/proc/meminfo", "procfs is not mounted"),
        psi_cpu: source("/proc/pressure/cpu", NO_PSI),
        psi_io: source("/proc/pressure/io", NO_PSI),
        cpu: [Rising::default(); FIELDS.len()],
    })
}

#[derive(Debug)]
struct Host {
    stat: Source,
    loadavg: Source,
    meminfo: Source,
    psi_cpu: Source,
    psi_io: Source,
    /// Idle and iowait time may fall back a little when a sleeping processor's share is corrected.
    cpu: [Rising; FIELDS.len()],
}

impl Probe for Host {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        let mut cells = Vec::with_capacity(SCHEMA.columns.len());
        self.sample_stat(&mut cells);
        cells.extend(loads_ppm(self.loadavg.read()).map(Cell::from));
        let meminfo = self.meminfo.read();
        let kib = |key| numbers_after(meminfo?, key)?.next();
        let bytes = |key| Some(kib(key)?.saturating_mul(1024));
        cells.push(bytes("Dirty:").into());
        cells.push(bytes("Writeback:").into());
        cells
            .push(bytes("Cached:").zip(bytes("Buffers:")).map(|(a, b)| a.saturating_add(b)).into());
        cells.push(stalled_ns(self.psi_cpu.read(), "some").into());
        let io = self.psi_io.read();
        cells.push(stalled_ns(io, "some").into());
        cells.push(stalled_ns(io, "full").into());
        rows.push(Row { object: String::new(), cells });
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        unread(&SCHEMA, &[&self.stat, &self.loadavg, &self.meminfo, &self.psi_cpu, &self.psi_io])
    }
}

impl Host {
    fn sample_stat(&mut self, cells: &mut Vec<Cell>) {
        let Some(text) = self.stat.read() else {
            cells.resize(FIELDS.len() + SINGLE.len(), Cell::Unmeasured);
            return;
        };
        let mut ticks = [None; FIELDS.len()];
        for (tick, value) in ticks.iter_mut().zip(numbers_after(text, "cpu").into_iter().flatten())
        {
            *tick = Some(value);
        }
        for (counter, field) in self.cpu.iter_mut().zip(FIELDS) {
            cells.push(ticks[field].map(|raw| counter.at(raw).saturating_mul(TICK_NS)).into());
        }
        let single = |key| numbers_after(text, key).and_then(|mut values| values.next());
        cells.extend(SINGLE.map(|key| Cell::from(single(key))));
    }
}

/// Parses the three numbers at the start of `3.90 2.46 1.26 4/312 99`, in millionths.
fn loads_ppm(text: Option<&[u8]>) -> [Option<u64>; LOADS] {
    let text = String::from_utf8_lossy(text.unwrap_or_default());
    let mut words = text.split_ascii_whitespace();
    [(); LOADS].map(|()| {
        let load: f64 = words.next()?.parse().ok()?;
        (load >= 0.0).then(|| (load * 1e6).round() as u64)
    })
}
