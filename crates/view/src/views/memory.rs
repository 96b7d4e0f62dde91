//! Main memory: what fills it, what moves.

use blockstone_figures::Interval;

use crate::table::{Shape, Value, View, bytes, count, flow, share};

/// The view.
pub const VIEW: View = View {
    name: "memory",
    title: "Memory",
    doc: "Main memory: what fills it, paging, swapping, pressure.",
    probe: PROBE,
    shape: Shape::Record,
    columns: &[
        bytes("memory_bytes", "total", "Memory of the machine."),
        bytes("free_bytes", "free", "Memory in no use at all."),
        bytes("available_bytes", "available", "Memory that a program could get without swapping."),
        bytes("anonymous_bytes", "processes", "Memory of processes without a file."),
        bytes("file_cache_bytes", "file cache", "Page cache of files, tmpfs included."),
        bytes("buffers_bytes", "buffers", "Page cache of block devices."),
        bytes("shared_bytes", "shared", "Shared memory and tmpfs."),
        bytes("huge_pages_bytes", "huge pages", "Memory set aside as huge pages."),
        bytes("slab_bytes", "kernel", "The kernel's own objects."),
        bytes("page_tables_bytes", "page tables", "Tables of virtual memory."),
        bytes("swap_used_bytes", "swap used", "Swap space in use."),
        flow("paged_in_bytes_per_s", "paged in", "Bytes read from block devices a second."),
        flow("paged_out_bytes_per_s", "paged out", "Bytes written to block devices a second."),
        count("swapped_in_pages_per_s", "swap in/s", "Pages read from swap a second."),
        count("swapped_out_pages_per_s", "swap out/s", "Pages written to swap a second."),
        count("major_page_faults_per_s", "major faults/s", "Page faults that waited for I/O."),
        count("direct_reclaims_per_s", "reclaims/s", "Allocations that had to free memory first."),
        count("dirtied_pages_per_s", "dirtied/s", "Pages made dirty a second."),
        count("written_pages_per_s", "written/s", "Dirty pages written a second."),
        share("psi_memory_some_share", "stall some", "Time in which a task waited for memory."),
        share("psi_memory_full_share", "stall full", "Time in which all tasks did."),
    ],
    rows,
};

const PROBE: &str = "memory";

fn rows(interval: &Interval<'_>) -> Vec<Vec<Value>> {
    let level = |column: &str| interval.level(PROBE, "", column);
    let row = VIEW.columns.iter().map(|column| {
        let key = &*column.key;
        let known = if key == "swap_used_bytes" {
            level("swap_total_bytes").and_then(|total| Ok(total - level("swap_free_bytes")?))
        } else if let Some(counter) = key.strip_suffix("_per_s") {
            interval.per_s(PROBE, "", counter)
        } else if let Some(time) = key.strip_suffix("_share") {
            interval.share(PROBE, "", &format!("{time}_ns"))
        } else {
            level(key)
        };
        Value::from(known)
    });
    vec![row.collect()]
}
