//! Main memory: its uses, and paging.

use blockstone_figures::Interval;

use crate::table::{Bytes, Heading, Shape, Value, View, count, derived, flow, level, share};

pub const VIEW: View = View {
    name: "memory",
    title: "Memory",
    doc: "Main memory: usage, paging, swapping, pressure.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        level("memory_bytes", "total", Bytes, "Memory of the machine."),
        level("free_bytes", "free", Bytes, "Unused memory."),
        level(
            "available_bytes",
            "available",
            Bytes,
            "Memory available to programs without swapping.",
        ),
        level("anonymous_bytes", "processes", Bytes, "Anonymous memory of processes."),
        level("file_cache_bytes", "file cache", Bytes, "Page cache of files, including tmpfs."),
        level("buffers_bytes", "buffers", Bytes, "Page cache of block devices."),
        level("shared_bytes", "shared", Bytes, "Shared memory and tmpfs."),
        level("huge_pages_bytes", "huge pages", Bytes, "Memory reserved as huge pages."),
        level("slab_bytes", "kernel", Bytes, "Memory of kernel objects (slab)."),
        level("page_tables_bytes", "page tables", Bytes, "Memory of page tables."),
        level("swap_used_bytes", "swap used", Bytes, "Swap space in use."),
        flow("paged_in_bytes_per_s", "paged in", "Bytes read from block devices per second."),
        flow("paged_out_bytes_per_s", "paged out", "Bytes written to block devices per second."),
        count("swapped_in_pages_per_s", "swap in/s", "Pages read from swap per second."),
        count("swapped_out_pages_per_s", "swap out/s", "Pages written to swap per second."),
        count(
            "refaulted_file_pages_per_s",
            "re-read/s",
            "Pages of files read again per second that the page cache had evicted while in use.",
        ),
        count("major_page_faults_per_s", "major faults/s", "Page faults that waited for I/O."),
        count("direct_reclaims_per_s", "reclaims/s", "Allocations that had to free memory first."),
        count("dirtied_pages_per_s", "dirtied/s", "Pages made dirty per second."),
        count("written_pages_per_s", "written/s", "Dirty pages written per second."),
        share(
            "psi_memory_some_share",
            "stall some",
            "Time in which at least one task waited for memory (PSI).",
        ),
        share(
            "psi_memory_full_share",
            "stall full",
            "Time in which all tasks waited for memory (PSI).",
        ),
    ],
    rows,
};

const PROBE: &str = "memory";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let level = |column| interval.level(PROBE, "", column);
    let cell = |heading: &Heading| match &*heading.key {
        "swap_used_bytes" => {
            level("swap_total_bytes").and_then(|total| Ok(total - level("swap_free_bytes")?)).into()
        }
        _ => derived(interval, PROBE, &[""], heading),
    };
    vec![VIEW.columns.iter().map(cell).collect()]
}
