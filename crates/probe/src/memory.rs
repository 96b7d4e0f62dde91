//! Main memory: what fills it, what moves in and out, how much of it may be dirty, how long tasks
//! stalled for lack of it.

use blockstone_base::column::{Column, Kind, Origin, Unit};
use blockstone_sys::memory;
use blockstone_sys::proc::{numbers, numbers_after};

use crate::source::{NO_PSI, Source, stalled_ns};
use crate::{Cell, Context, Probe, Row, Schema, Scope, Unmeasured};

pub const SCHEMA: Schema = Schema {
    probe: "memory",
    doc: "Main memory: what fills it, paging, swapping, limits of dirty memory, pressure stalls.",
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
        Origin("/proc/vmstat workingset_refault_anon").count(
            "refaulted_anonymous_pages",
            "Pages of processes read from swap that were in use when they were swapped out \
             (Linux 5.9).",
        ),
        Origin("/proc/vmstat workingset_refault_file").count(
            "refaulted_file_pages",
            "Pages of files read again that were in use when the page cache evicted them \
             (Linux 5.9).",
        ),
        Origin("/proc/vmstat pgfault").count("page_faults", "Page faults of all kinds."),
        Origin("/proc/vmstat pgmajfault")
            .count("major_page_faults", "Page faults that waited for I/O."),
        Origin("/proc/vmstat allocstall_normal")
            .count("direct_reclaims", "Allocations that stalled to reclaim memory."),
        Origin("/proc/vmstat nr_dirtied").count("dirtied_pages", "Pages made dirty."),
        Origin("/proc/vmstat nr_written").count("written_pages", "Dirty pages written."),
        level(
            "dirty_background_limit_bytes",
            "/proc/vmstat nr_dirty_background_threshold",
            "Amount of dirty memory above which the kernel writes it in the background.",
        ),
        level(
            "dirty_limit_bytes",
            "/proc/vmstat nr_dirty_threshold",
            "Limit on dirty memory and writeback; writers are slowed down to stay below it.",
        ),
        Origin("/proc/sys/vm/dirty_ratio").level(
            "dirty_ratio_ppm",
            Unit::Ppm,
            "The limit as a share of available memory; 0 if bytes are set instead.",
        ),
        Origin("/proc/sys/vm/dirty_background_ratio").level(
            "dirty_background_ratio_ppm",
            Unit::Ppm,
            "The background limit as a share of available memory; 0 if bytes are set instead.",
        ),
        Origin("/proc/sys/vm/dirty_bytes").level(
            "dirty_fixed_bytes",
            Unit::Bytes,
            "The limit as bytes; 0 if a ratio is set instead.",
        ),
        Origin("/proc/sys/vm/dirty_background_bytes").level(
            "dirty_background_fixed_bytes",
            Unit::Bytes,
            "The background limit as bytes; 0 if a ratio is set instead.",
        ),
        Origin("/proc/sys/vm/dirty_expire_centisecs").level(
            "dirty_expire_ns",
            Unit::Nanoseconds,
            "Age at which dirty memory is written, however little there is.",
        ),
        Origin("/proc/sys/vm/dirty_writeback_centisecs").level(
            "dirty_writeback_ns",
            Unit::Nanoseconds,
            "Interval at which the kernel looks for dirty memory of that age; 0: never.",
        ),
        Origin("/proc/pressure/memory some")
            .time("psi_memory_some_ns", "At least one task waited for memory."),
        Origin("/proc/pressure/memory full")
            .time("psi_memory_full_ns", "All tasks that were not idle waited for memory."),
    ],
};

const fn level(name: &'static str, source: &'static str, doc: &'static str) -> Column {
    Origin(source).level(name, Unit::Bytes, doc)
}

/// Kernel settings, each with the factor that converts it to our unit.
const SETTINGS: [(&str, u64); 6] = [
    ("/proc/sys/vm/dirty_ratio", PERCENT_PPM),
    ("/proc/sys/vm/dirty_background_ratio", PERCENT_PPM),
    ("/proc/sys/vm/dirty_bytes", 1),
    ("/proc/sys/vm/dirty_background_bytes", 1),
    ("/proc/sys/vm/dirty_expire_centisecs", CENTISECOND_NS),
    ("/proc/sys/vm/dirty_writeback_centisecs", CENTISECOND_NS),
];
const PERCENT_PPM: u64 = 10_000;
const CENTISECOND_NS: u64 = 10_000_000;

pub fn open(context: &Context) -> Box<dyn Probe> {
    let source = |path, absent| Source::of(context, path, absent);
    Box::new(Memory {
        meminfo: source("/proc/meminfo", "procfs is not mounted"),
        vmstat: source("/proc/vmstat", "procfs is not mounted"),
        settings: SETTINGS.map(|(path, _)| source(path, "procfs is not mounted")),
        pressure: source("/proc/pressure/memory", NO_PSI),
        // Pages of another machine may have another size.
        page_bytes: (!matches!(context.scope, Scope::Pages(_))).then(memory::page_bytes),
        lacking: Vec::new(),
    })
}

#[derive(Debug)]
struct Memory {
    meminfo: Source,
    vmstat: Source,
    settings: [Source; SETTINGS.len()],
    pressure: Source,
    /// Size of a memory page in bytes, if known.
    page_bytes: Option<u64>,
    /// Columns that this kernel's files do not have.
    lacking: Vec<&'static Column>,
}

impl Memory {
    fn value(&self, column: &Column) -> Option<u64> {
        let (file, key) = column.source.split_once(' ').unwrap_or((column.source, ""));
        match file {
            "/proc/meminfo" => {
                let kib = numbers_after(self.meminfo.content()?, &format!("{key}:"))?.next()?;
                Some(kib.saturating_mul(1024))
            }
            "/proc/vmstat" => {
                let value = numbers_after(self.vmstat.content()?, key)?.next()?;
                // pgpgin and pgpgout are in KiB, levels in pages; the rest count pages or events.
                let unit = match (column.unit, column.kind) {
                    (Unit::Bytes, Kind::Gauge) => self.page_bytes?,
                    (Unit::Bytes, _) => 1024,
                    _ => 1,
                };
                Some(value.saturating_mul(unit))
            }
            _ if key.is_empty() => {
                let at = SETTINGS.iter().position(|(path, _)| *path == file)?;
                let value = numbers(self.settings[at].content()?).next()?;
                Some(value.saturating_mul(SETTINGS[at].1))
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
        let texts = [&mut self.meminfo, &mut self.vmstat, &mut self.pressure];
        for source in texts.into_iter().chain(&mut self.settings) {
            source.read();
        }
        let values: Vec<_> = SCHEMA.columns.iter().map(|column| self.value(column)).collect();
        let columns = SCHEMA.columns.iter().zip(&values);
        self.lacking = columns.filter(|(_, value)| value.is_none()).map(|(c, _)| c).collect();
        let cells = values.into_iter().map(Cell::from).collect();
        rows.push(Row { object: String::new(), cells });
    }

    fn unmeasured(&self) -> Vec<(&'static str, Unmeasured)> {
        let texts = [&self.meminfo, &self.vmstat, &self.pressure];
        let why = |column: &&'static Column| {
            let mut sources = texts.into_iter().chain(&self.settings);
            let source = sources.find(|source| column.source.starts_with(source.path()));
            let read = source.and_then(|source| source.unmeasured().cloned());
            let absent =
                || Unmeasured::NotInVersion(format!("this kernel has no {}", column.source));
            (column.name, read.unwrap_or_else(absent))
        };
        self.lacking.iter().map(why).collect()
    }
}
