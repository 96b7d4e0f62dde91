//! Main memory: what fills it, what moves in and out, how long tasks stalled for lack of it.

use blockstone_base::column::{Column, Origin, Unit};
use blockstone_sys::proc::numbers_after;

use crate::source::{NO_PSI, Source, stalled_ns};
use crate::{Cell, Context, Probe, Row, Schema, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "memory",
    doc: "Main memory: what fills it, paging and swapping, pressure stalls.",
    columns: &[
        level("memory_bytes", "/proc/meminfo MemTotal", "Memory of the machine."),
        level("free_bytes", "/proc/meminfo MemFree", "Unused memory."),
        level(
            "available_bytes",
            "/proc/meminfo MemAvailable",
            "Memory that a program could get without swapping, as the kernel estimates it.",
        ),
        level("buffers_bytes", "/proc/meminfo Buffers", "Page cache of block devices."),
        level("file_cache_bytes", "/proc/meminfo Cached", "Page cache of files, tmpfs included."),
        level("shared_bytes", "/proc/meminfo Shmem", "Shared memory and tmpfs."),
        level("anonymous_bytes", "/proc/meminfo AnonPages", "Anonymous memory of processes."),
        level("slab_bytes", "/proc/meminfo Slab", "The kernel's own objects."),
        level("page_tables_bytes", "/proc/meminfo PageTables", "Page tables."),
        level("swap_total_bytes", "/proc/meminfo SwapTotal", "Swap space."),
        level("swap_free_bytes", "/proc/meminfo SwapFree", "Unused swap space."),
        level("huge_pages_bytes", "/proc/meminfo Hugetlb", "Memory set aside as huge pages."),
        Origin("/proc/vmstat pgpgin").bytes("paged_in_bytes", "Bytes read from block devices."),
        Origin("/proc/vmstat pgpgout").bytes("paged_out_bytes", "Bytes written to block devices."),
        Origin("/proc/vmstat pswpin").count("swapped_in_pages", "Pages read from swap."),
        Origin("/proc/vmstat pswpout").count("swapped_out_pages", "Pages written to swap."),
        Origin("/proc/vmstat pgfault").count("page_faults", "Page faults of all kinds."),
        Origin("/proc/vmstat pgmajfault")
            .count("major_page_faults", "Page faults that waited for I/O."),
        Origin("/proc/vmstat allocstall_normal")
            .count("direct_reclaims", "Allocations that stalled to reclaim memory."),
        Origin("/proc/vmstat nr_dirtied").count("dirtied_pages", "Pages made dirty."),
        Origin("/proc/vmstat nr_written").count("written_pages", "Dirty pages written."),
        Origin("/proc/pressure/memory some")
            .time("psi_memory_some_ns", "At least one task waited for memory."),
        Origin("/proc/pressure/memory full")
            .time("psi_memory_full_ns", "All tasks that were not idle waited for memory."),
    ],
};

const fn level(name: &'static str, source: &'static str, doc: &'static str) -> Column {
    Origin(source).level(name, Unit::Bytes, doc)
}

pub fn open(context: &Context) -> Box<dyn Probe> {
    let source = |path, absent| Source::of(context, path, absent);
    Box::new(Memory {
        meminfo: source("/proc/meminfo", "procfs is not mounted"),
        vmstat: source("/proc/vmstat", "procfs is not mounted"),
        pressure: source("/proc/pressure/memory", NO_PSI),
        lacking: Vec::new(),
    })
}

#[derive(Debug)]
struct Memory {
    meminfo: Source,
    vmstat: Source,
    pressure: Source,
    /// Columns that this kernel's files do not have.
    lacking: Vec<&'static Column>,
}

impl Memory {
    fn value(&self, column: &Column) -> Option<u64> {
        let (file, key) = column.source.split_once(' ')?;
        match file {
            "/proc/meminfo" => {
                let kib = numbers_after(self.meminfo.content()?, &format!("{key}:"))?.next()?;
                Some(kib.saturating_mul(1024))
            }
            "/proc/vmstat" => {
                let value = numbers_after(self.vmstat.content()?, key)?.next()?;
                // pgpgin and pgpgout are in KiB, the rest in pages or events.
                let unit = if column.unit == Unit::Bytes { 1024 } else { 1 };
                Some(value.saturating_mul(unit))
            }
            _ => stalled_ns(self.pressure.content(), key),
        }
    }
}

impl Probe for Memory {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn sample(&mut self, rows: &mut Vec<Row>) {
        for source in [&mut self.meminfo, &mut self.vmstat, &mut self.pressure] {
            source.read();
        }
        let values: Vec<_> = SCHEMA.columns.iter().map(|column| self.value(column)).collect();
        let columns = SCHEMA.columns.iter().zip(&values);
        self.lacking = columns.filter(|(_, value)| value.is_none()).map(|(c, _)| c).collect();
        let cells = values.into_iter().map(Cell::from).collect();
        rows.push(Row { object: String::new(), cells });
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let sources = [&self.meminfo, &self.vmstat, &self.pressure];
        let why = |column: &&'static Column| {
            let source = sources.iter().find(|source| column.source.starts_with(source.path()));
            let read = source.and_then(|source| source.unmeasured().cloned());
            let absent =
                || Unmeasured::NotInVersion(format!("this kernel has no {}", column.source));
            (column.name, read.unwrap_or_else(absent))
        };
        self.lacking.iter().map(why).collect()
    }
}
