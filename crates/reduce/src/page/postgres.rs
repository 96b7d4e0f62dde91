//! Pages of PostgreSQL: tables, indexes and maps of layout version 4, which is every release since
//! 8.3, on little-endian machines.
//!
//! ```text
//! page   0 pd_lsn  8 pd_checksum  10 pd_flags  12 pd_lower  14 pd_upper  16 pd_special
//!       18 size and layout version  20 pd_prune_xid  24 line pointers …
//! tuple  0 t_xmin  4 t_xmax  8 t_cid  12 t_ctid  18 t_infomask2  20 t_infomask  22 t_hoff
//! ```
//! A page without a special area belongs to a table: the tuples named by its line pointers are
//! separated too. For an index only the page header is, because its entries carry no transactions.
//!
//! Not masked, although they make tables with the same rows differ: the numbers of large values
//! that are stored outside the table (TOAST), and stale tuples in space that was freed.

use super::{Field, Fields, Format, PageUse, Rows};

pub static FORMAT: Format = Format {
    name: "PostgreSQL",
    fields: [
        "pd_lsn",
        "pd_checksum",
        "t_ctid",
        "t_xmin, t_xmax, t_cid, pd_prune_xid",
        "pd_flags, t_infomask",
    ],
    recognise,
    look,
};

const HEADER_BYTES: usize = 24;
const LAYOUT_VERSION: u16 = 4;
const FLAGS_MAX: u16 = 7;
const POINTER_BYTES: usize = 4;
/// State of a line pointer whose tuple is present, rather than moved, dead or free.
const POINTER_NORMAL: u32 = 1;
/// State of a line pointer whose tuple was removed.
const POINTER_DEAD: u32 = 3;
const TUPLE_HEADER_BYTES: usize = 23;
/// Bits of `t_infomask` about `t_xmax`: it was rolled back or never set; it only locked the row.
const XMAX_INVALID: u16 = 0x0800;
const XMAX_LOCK_ONLY: u16 = 0x0080;
const ALIGNMENT: usize = 8;

/// Positions given in a page header, checked for consistency.
struct Layout {
    lower: usize,
    upper: usize,
    special: usize,
}

fn recognise(head: &[u8]) -> Option<usize> {
    (10..=15).rev().map(|power| 1 << power).find(|&size| {
        let mut found = false;
        let all = head.chunks_exact(size).all(|page| {
            let is_page = layout(page).is_some();
            found |= is_page;
            is_page || super::is_zeros(page)
        });
        all && found
    })
}

fn look(page: &[u8], fields: &mut Fields) -> PageUse {
    let Some(layout) = layout(page) else { return PageUse::Unknown };
    let is_heap = layout.special == page.len();
    if is_heap && !tuples(page, &layout, fields) {
        fields.clear();
        return PageUse::Unknown;
    }
    fields.push(Field::Lsn, 0, 8);
    fields.push(Field::Checksum, 8, 2);
    fields.push(Field::Flags, 10, 2);
    fields.push(Field::Transaction, 20, 4);
    // Free space maps have no line pointers either, but they have content. A page that was emptied
    // keeps a line pointer or stale tuples.
    let is_empty = layout.lower == HEADER_BYTES && layout.upper == layout.special;
    if is_empty && super::is_zeros(&page[HEADER_BYTES..]) {
        PageUse::NeverUsed
    } else {
        PageUse::Used
    }
}

/// Returns the layout of a page whose header is plausible.
fn layout(page: &[u8]) -> Option<Layout> {
    let size_and_version = page.len() as u16 | LAYOUT_VERSION;
    if !super::is_size(page.len(), 1024..=32768)
        || u16_at(page, 18) != size_and_version
        || u16_at(page, 10) > FLAGS_MAX
    {
        return None;
    }
    let [lower, upper, special] = [12, 14, 16].map(|at| usize::from(u16_at(page, at)));
    let is_ordered = HEADER_BYTES <= lower && lower <= upper && upper <= special;
    let is_inside = special <= page.len() && special.is_multiple_of(ALIGNMENT);
    (is_ordered && is_inside).then_some(Layout { lower, upper, special })
}

/// Collects the fields of all tuples; returns whether they are all at valid positions.
fn tuples(page: &[u8], layout: &Layout, fields: &mut Fields) -> bool {
    // Tuples begin at multiples of eight, so three bits represent the header of each.
    let mut taken = [0_u64; 32768 / ALIGNMENT / 64];
    let (mut live, mut deleted) = (0, 0);
    for pointer in page[HEADER_BYTES..layout.lower].chunks_exact(POINTER_BYTES) {
        let pointer = u32::from_le_bytes(super::bytes_at(pointer, 0));
        let (start, len) = (pointer as usize & 0x7fff, pointer as usize >> 17);
        let state = pointer >> 15 & 3;
        if state != POINTER_NORMAL {
            deleted += u64::from(state == POINTER_DEAD);
            continue;
        }
        let is_inside = start >= layout.upper && start + len <= layout.special;
        if !is_inside || !start.is_multiple_of(ALIGNMENT) || len < TUPLE_HEADER_BYTES {
            return false;
        }
        for granule in start / ALIGNMENT..(start + TUPLE_HEADER_BYTES).div_ceil(ALIGNMENT) {
            let (word, bit) = (granule / 64, 1 << (granule % 64));
            if taken[word] & bit != 0 {
                return false;
            }
            taken[word] |= bit;
        }
        if is_deleted(&page[start..]) {
            deleted += 1;
        } else {
            live += 1;
        }
        fields.push(Field::Transaction, start, 12);
        fields.push(Field::Address, start + 12, 6);
        // The low byte of t_infomask2 has the number of columns, which is content. Its high byte
        // has flags of updates; the bits of more than 255 columns are masked with them.
        fields.push(Field::Flags, start + 19, 3);
    }
    fields.rows = Rows::of_page(live, deleted);
    true
}

/// Returns whether a transaction deleted or replaced the tuple and is not known to be rolled back.
fn is_deleted(tuple: &[u8]) -> bool {
    let (xmax, infomask) = (u32::from_le_bytes(super::bytes_at(tuple, 4)), u16_at(tuple, 20));
    xmax != 0 && infomask & (XMAX_INVALID | XMAX_LOCK_ONLY) == 0
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(super::bytes_at(page, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::{check_any, masked};
    use proptest::prelude::*;

    /// Creates a page of the table with `rows`, as written by transaction `xid`.
    pub fn page(size: usize, rows: &[&[u8]], xid: u32, hints: u16) -> Vec<u8> {
        let mut page = vec![0; size];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        let mut upper = size;
        for (index, row) in rows.iter().enumerate() {
            let len = 24 + row.len();
            upper = (upper - len) & !7;
            let pointer = upper as u32 | POINTER_NORMAL << 15 | (len as u32) << 17;
            put(HEADER_BYTES + index * POINTER_BYTES, &pointer.to_le_bytes());
            put(upper, &xid.to_le_bytes());
            put(upper + 16, &(index as u16 + 1).to_le_bytes());
            put(upper + 18, &3_u16.to_le_bytes());
            put(upper + 20, &(2 | hints).to_le_bytes());
            put(upper + 22, &[24]);
            put(upper + 24, row);
        }
        let lower = (HEADER_BYTES + rows.len() * POINTER_BYTES) as u16;
        put(0, &(u64::from(xid) << 20).to_le_bytes());
        put(8, &(xid as u16).to_le_bytes());
        for (at, value) in [(12, lower), (14, upper as u16), (16, size as u16)] {
            put(at, &value.to_le_bytes());
        }
        put(18, &(size as u16 | LAYOUT_VERSION).to_le_bytes());
        page
    }

    const ROWS: [&[u8]; 3] = [b"one", b"two and more", b"three"];

    #[test]
    fn the_same_rows_of_other_transactions_are_the_same_page_when_masked() {
        for size in [1024, 8192, 32768] {
            let (a, b) = (page(size, &ROWS, 700, 0), page(size, &ROWS, 800, 0x0900));
            assert_eq!(masked(&FORMAT, &a), masked(&FORMAT, &b));
            assert_ne!(a, b);
            let other = page(size, &[b"one", b"two", b"three"], 700, 0);
            assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &other));
        }
    }

    #[test]
    fn the_number_of_columns_and_the_row_stay() {
        let a = page(8192, &ROWS, 700, 0);
        let mut columns = a.clone();
        let tuple = 8192 - 32;
        columns[tuple + 18] = 4;
        assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &columns));
        columns[tuple + 18] = 3;
        columns[tuple + 19] = 0x80;
        assert_eq!(masked(&FORMAT, &a), masked(&FORMAT, &columns));
    }

    #[test]
    fn rows_marked_deleted_are_told_from_live_ones() {
        let rows = |page: &[u8]| {
            let mut fields = Fields::default();
            assert_eq!(look(page, &mut fields), PageUse::Used);
            fields.rows
        };
        let mut page = page(8192, &[b"one", b"two", b"three"], 7, 0);
        assert_eq!(rows(&page), Rows::of_page(3, 0));
        let starts: Vec<usize> = (0..3)
            .map(|row| usize::from(u16_at(&page, HEADER_BYTES + row * POINTER_BYTES)) & 0x7fff)
            .collect();
        for (index, &start) in starts.iter().enumerate() {
            page[start + 4] = 9;
            assert_eq!(rows(&page), Rows::of_page(2 - index as u64, index as u64 + 1));
        }
        assert_eq!(rows(&page).deleted_pages, 1, "it has data, and no live row");
        page[starts[0] + 21] |= (XMAX_INVALID >> 8) as u8;
        page[starts[1] + 20] |= XMAX_LOCK_ONLY as u8;
        assert_eq!(rows(&page), Rows::of_page(2, 1), "rolled back, and locked");
    }

    #[test]
    fn only_a_page_that_nothing_was_stored_in_was_never_used() {
        let mut fields = Fields::default();
        let mut empty = page(8192, &[], 0, 0);
        assert_eq!(look(&empty, &mut fields), PageUse::NeverUsed);
        empty[5000] = 1;
        assert_eq!(look(&empty, &mut fields), PageUse::Used, "a map, or a stale tuple");
        assert_eq!(look(&page(8192, &ROWS, 7, 0), &mut fields), PageUse::Used);
        assert_eq!(look(&[0; 8192], &mut fields), PageUse::Unknown);
    }

    #[test]
    fn overlapping_and_outlying_tuples_make_no_sense() {
        let sound = page(8192, &ROWS, 700, 0);
        let tuple = |at: u32, len: u32| (at | POINTER_NORMAL << 15 | len << 17).to_le_bytes();
        for pointer in [tuple(8192 - 32 - 16, 40), tuple(8184, 30), tuple(64, 30), tuple(8163, 25)]
        {
            let mut broken = sound.clone();
            broken[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&pointer);
            let mut fields = Fields::default();
            assert_eq!(look(&broken, &mut fields), PageUse::Unknown);
            assert!(fields.ranges().is_empty());
        }
    }

    #[test]
    fn a_file_is_recognised_by_all_its_pages_wherever_they_begin() {
        for power in 10..=15 {
            let size = 1 << power;
            let mut file = vec![0; 65536];
            file[65536 - size..].copy_from_slice(&page(size, &ROWS, 700, 0));
            assert_eq!(recognise(&file), Some(size));
            file[65536 - 2 * size + 30] = 1;
            assert_eq!(recognise(&file), None, "one page makes no sense");
        }
    }

    proptest! {
        #[test]
        fn no_page_makes_it_fail(
            power in 10_u32..=15,
            rows in 0_usize..40,
            damage: Vec<(prop::sample::Index, u8)>,
        ) {
            let row: &[u8] = b"abc";
            let rows = vec![row; rows.min((1 << power) / 40)];
            let mut page = page(1 << power, &rows, 7, 0);
            for (at, byte) in damage {
                let at = at.index(page.len().min(200));
                page[at] = byte;
            }
            check_any(&FORMAT, &page);
        }

        #[test]
        fn no_line_pointers_make_it_fail(
            pointers in prop::collection::vec((1000_u32..1024, 0_u32..80, 0_u32..4), 0..8),
        ) {
            let mut page = page(8192, &[ROWS[0]; 8], 7, 0);
            page[14..16].copy_from_slice(&64_u16.to_le_bytes());
            page[HEADER_BYTES..HEADER_BYTES + 32].fill(0);
            let places = page[HEADER_BYTES..].chunks_exact_mut(POINTER_BYTES);
            for ((granule, len, kind), place) in pointers.iter().zip(places) {
                place.copy_from_slice(&((granule * 8) | (kind << 15) | (len << 17)).to_le_bytes());
            }
            check_any(&FORMAT, &page);
        }
    }
}
