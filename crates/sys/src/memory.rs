//! Pages of memory, and tables that are looked at in no order: with huge pages, the processor finds
//! most of them without walking the page tables.

use rustix::mm::Advice;

/// The size of the pages in which this kernel counts memory.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Asks the kernel, which may ignore it, for huge pages. Best before the table is first touched.
pub fn advise_huge_pages(table: &mut [u32]) {
    let page = rustix::param::page_size();
    let (start, bytes) = (table.as_mut_ptr() as usize, size_of_val(table));
    let first = start.next_multiple_of(page);
    let end = (start + bytes) / page * page;
    if first >= end {
        return;
    }
    // SAFETY: the range lies inside `table`, whole pages of it, which is borrowed exclusively; the
    // advice changes only which pages back it, never its content.
    let _ = unsafe {
        let at = table.as_mut_ptr().cast::<u8>().add(first - start);
        rustix::mm::madvise(at.cast(), end - first, Advice::LinuxHugepage)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_any_size_keeps_its_content() {
        for len in [0, 1, 1000, 3_000_000] {
            let mut table: Vec<u32> = (0..len).collect();
            advise_huge_pages(&mut table);
            assert!(table.iter().copied().eq(0..len));
        }
    }
}
