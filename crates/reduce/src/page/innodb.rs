//! Pages of `InnoDB`, 4K to 64K, as `MySQL` from 5.7 and `MariaDB` from 10.2 write them.
//!
//! ```text
//! page   0 checksum  4 page number  8 previous  12 next  16 LSN  24 type  26 flush LSN
//!       34 space  38 body …
//!       −8 checksum, low half of the LSN; or, with MariaDB's full_crc32, the other way round
//! page 0 38 space  46 pages of the file  50 initialised up to  54 flags
//! index 56 PAGE_MAX_TRX_ID  66 index id  74 and 84 segments: space, page, offset
//! ```
//! All numbers are big-endian.
//!
//! What stays, though it tells tables of the same rows apart: `DB_TRX_ID` and `DB_ROLL_PTR`, 13
//! bytes in each row of a clustered index. They lie behind the primary key, whose length a page
//! does not tell, and a guess could mask columns. `MariaDB` resets them when it purges, so that
//! there they differ only in rows of late. Nor are pages of `ROW_FORMAT=COMPRESSED` recognised,
//! which have no trailer.

use super::{Field, Fields, Format, PageUse};

/// Pages of `InnoDB`.
pub static FORMAT: Format = Format {
    name: "InnoDB",
    fields: ["LSN", "checksum", "page number, space, index id", "PAGE_MAX_TRX_ID", ""],
    recognise,
    look,
};

const HEADER_BYTES: usize = 38;
const TRAILER_BYTES: usize = 8;
const PAGE_BYTES_MIN: usize = 4096;
const TYPE_ALLOCATED: u16 = 0;
const TYPE_BITMAP: u16 = 5;
const TYPE_SPACE: u16 = 8;
/// The highest of the types that are numbered from zero on.
const TYPE_LOW_MAX: u16 = 40;
/// From here on: compressed and encrypted pages, index pages.
const TYPE_HIGH_MIN: u16 = 17850;
const TYPE_INDEX: u16 = 17855;
/// R-trees, and what `MySQL` calls SDI, are built as indexes are.
const TYPES_INDEX: [u16; 3] = [TYPE_INDEX, 17854, 17853];
/// Pages that `MariaDB` compressed, and compressed and encrypted.
const TYPES_MARIADB: [u16; 3] = [18, 34354, 37401];
/// Pages of an extent when they are the smallest.
const PAGES_EXTENT_MAX: u32 = 256;
/// The flag of `MariaDB`'s `full_crc32`, which has the page size in another place.
const FLAG_FULL_CRC32: u32 = 1 << 4;
/// Where other files have the size of compressed pages.
const FLAGS_COMPRESSED: u32 = 0xf << 1;

fn recognise(head: &[u8]) -> Option<usize> {
    if head.len() < PAGE_BYTES_MIN || u16_at(head, 24) != TYPE_SPACE || u32_at(head, 4) != 0 {
        return None;
    }
    let size = page_bytes(u32_at(head, 54))?;
    let space = u32_at(head, 34);
    let (pages, initialised) = (u32_at(head, 46), u32_at(head, 50));
    // What is initialised is whole extents, the last of which may reach over the end of the file.
    let is_inside = initialised <= pages.saturating_add(PAGES_EXTENT_MAX);
    let is_space = space == u32_at(head, 38) && pages > 0 && is_inside;
    if !is_space || head.get(..size).is_none_or(|page| !is_page(page)) {
        return None;
    }
    // Page 1 is always the same, which tells a data file from copies of its first page.
    let is_second = |page: &[u8]| {
        is_page(page) && u32_at(page, 4) == 1 && u32_at(page, 34) == space && is_bitmap(page)
    };
    let second = head.get(size..2 * size);
    second.is_none_or(|page| super::is_zeros(page) || is_second(page)).then_some(size)
}

fn look(page: &[u8], fields: &mut Fields) -> PageUse {
    if !is_page(page) {
        return PageUse::Unknown;
    }
    let (trailer, body) = (page.len() - TRAILER_BYTES, &page[HEADER_BYTES..]);
    let kind = u16_at(page, 24);
    fields.push(Field::Checksum, 0, 4);
    fields.push(Field::Address, 4, 12);
    fields.push(Field::Lsn, 16, 8);
    fields.push(Field::Lsn, 26, 8);
    fields.push(Field::Address, 34, 4);
    let low = page[20..24] == page[trailer + 4..];
    let (checksum, lsn) = if low { (trailer, trailer + 4) } else { (trailer + 4, trailer) };
    fields.push(Field::Checksum, checksum, 4);
    fields.push(Field::Lsn, lsn, 4);
    if TYPES_INDEX.contains(&kind) {
        fields.push(Field::Transaction, 56, 8);
        fields.push(Field::Address, 66, 8);
        // The segments of a root name its space; all other pages have zeros there.
        fields.push(Field::Address, 74, 8);
        fields.push(Field::Address, 84, 8);
    } else if kind == TYPE_SPACE {
        fields.push(Field::Address, 38, 4);
    }
    if kind == TYPE_ALLOCATED && super::is_zeros(&body[..body.len() - TRAILER_BYTES]) {
        PageUse::NeverUsed
    } else {
        PageUse::Used
    }
}

/// Bytes of a page of the file with these flags; none where pages are compressed.
fn page_bytes(flags: u32) -> Option<usize> {
    let shift = if flags & FLAG_FULL_CRC32 != 0 {
        flags & 0xf
    } else if flags & FLAGS_COMPRESSED == 0 {
        // Files of 16K pages say nothing: they were the only ones once.
        match flags >> 6 & 0xf {
            0 => 5,
            shift => shift,
        }
    } else {
        return None;
    };
    (3..=7).contains(&shift).then(|| 512 << shift)
}

/// Whether the type is known and the halves of the LSN at both ends belong together.
fn is_page(page: &[u8]) -> bool {
    let is_size = (PAGE_BYTES_MIN..=65536).contains(&page.len()) && page.len().is_power_of_two();
    if !is_size || super::is_zeros(&page[..HEADER_BYTES]) {
        return false;
    }
    let (kind, trailer) = (u16_at(page, 24), page.len() - TRAILER_BYTES);
    let is_kind = kind <= TYPE_LOW_MAX
        || (TYPE_HIGH_MIN..=TYPE_INDEX).contains(&kind)
        || TYPES_MARIADB.contains(&kind);
    let lsn = &page[20..24];
    is_kind && (lsn == &page[trailer..trailer + 4] || lsn == &page[trailer + 4..])
}

/// Whether it is the second page of a file. Undo files of `MySQL` have it in use for something
/// else.
fn is_bitmap(page: &[u8]) -> bool {
    matches!(u16_at(page, 24), TYPE_BITMAP | 2..=TYPE_LOW_MAX)
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([page[at], page[at + 1]])
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::{check_any, masked};
    use proptest::prelude::*;

    fn page(size: usize, number: u32, kind: u16, lsn: u32, is_full_crc32: bool) -> Vec<u8> {
        let mut page = vec![0; size];
        let mut put = |at: usize, value: u32| {
            page[at..at + 4].copy_from_slice(&value.to_be_bytes());
        };
        put(0, lsn.rotate_left(7));
        put(4, number);
        put(20, lsn);
        put(34, 12);
        let (first, second) =
            if is_full_crc32 { (lsn, lsn ^ 9) } else { (lsn.rotate_left(7), lsn) };
        put(size - 8, first);
        put(size - 4, second);
        if kind == TYPE_SPACE {
            let shift = size.trailing_zeros() - 9;
            put(38, 12);
            put(46, 64);
            put(50, 64);
            put(54, if is_full_crc32 { FLAG_FULL_CRC32 | shift } else { shift << 6 | 1 });
        }
        if kind == TYPE_INDEX {
            put(60, lsn / 3);
            put(70, lsn / 5);
            page[120..200].fill(b'r');
        }
        page[24..26].copy_from_slice(&kind.to_be_bytes());
        page
    }

    #[test]
    fn files_of_all_page_sizes_are_recognised_by_their_first_pages() {
        for (power, full) in (12..=16).flat_map(|power| [(power, false), (power, true)]) {
            let size = 1 << power;
            let mut file = page(size, 0, TYPE_SPACE, 900, full);
            assert_eq!(recognise(&file), Some(size));
            file.extend(page(size, 1, TYPE_BITMAP, 901, full));
            assert_eq!(recognise(&file), Some(size), "{size}");
            file[size + 7] = 2;
            assert_eq!(recognise(&file), None, "page 2 where page 1 belongs");
        }
    }

    #[test]
    fn pages_of_one_content_are_equal_when_masked_with_either_trailer() {
        for full in [false, true] {
            let a = page(16384, 7, TYPE_INDEX, 1000, full);
            let b = page(16384, 9, TYPE_INDEX, 2000, full);
            assert_ne!(a, b);
            assert_eq!(masked(&FORMAT, &a), masked(&FORMAT, &b));
            let mut other = b;
            other[150] = b'q';
            assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &other));
        }
    }

    #[test]
    fn an_allocated_page_without_content_was_never_used() {
        let mut fields = Fields::default();
        let mut empty = page(4096, 5, TYPE_ALLOCATED, 1000, true);
        assert_eq!(look(&empty, &mut fields), PageUse::NeverUsed);
        empty[2000] = 1;
        assert_eq!(look(&empty, &mut fields), PageUse::Used);
        fields.clear();
        empty[4090] ^= 1;
        empty[4088] ^= 1;
        assert_eq!(look(&empty, &mut fields), PageUse::Unknown, "torn");
        assert!(fields.ranges().is_empty());
    }

    proptest! {
        #[test]
        fn no_page_makes_it_fail(
            power in 12_u32..=16,
            kind in prop::sample::select(vec![0, 2, TYPE_SPACE, TYPE_INDEX]),
            full: bool,
            damage: Vec<(prop::sample::Index, u8)>,
        ) {
            let mut page = page(1 << power, 0, kind, 1000, full);
            for (at, byte) in damage {
                page[at.index(120)] = byte;
            }
            check_any(&FORMAT, &page);
        }
    }
}
