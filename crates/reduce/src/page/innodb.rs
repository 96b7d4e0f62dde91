//! Pages of `InnoDB`, 4K to 64K, as written by `MySQL` from 5.7 and `MariaDB` from 10.2.
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
//! The rows of a clustered index have `DB_TRX_ID` and `DB_ROLL_PTR`, 13 bytes after the primary
//! key, whose length a page does not give. They are found if every row of a leaf has a plausible
//! pair at exactly one common distance, which is so for keys of fixed length up to 32 bytes.
//!
//! Not masked, although they make tables with the same rows differ: these 13 bytes after keys of
//! variable length, on leaves of few rows, in `ROW_FORMAT=REDUNDANT`, and in rows that a split left
//! behind in free space; and the row numbers in tables without a key, which no two tables have in
//! common. Pages of `ROW_FORMAT=COMPRESSED`, which have no trailer, are not recognised.

use super::{Field, Fields, Format, PageUse, Rows};

pub static FORMAT: Format = Format {
    name: "InnoDB",
    fields: [
        "LSN",
        "checksum",
        "page number, space, index id",
        "PAGE_MAX_TRX_ID, DB_TRX_ID, DB_ROLL_PTR",
        "",
    ],
    recognise,
    look,
};

const HEADER_BYTES: usize = 38;
const TRAILER_BYTES: usize = 8;
const PAGE_BYTES_MIN: usize = 4096;
const TYPE_ALLOCATED: u16 = 0;
const TYPE_BITMAP: u16 = 5;
const TYPE_SPACE: u16 = 8;
/// Highest of the types that are numbered from zero.
const TYPE_LOW_MAX: u16 = 40;
/// Lowest of the high types: compressed and encrypted pages, index pages.
const TYPE_HIGH_MIN: u16 = 17850;
const TYPE_INDEX: u16 = 17855;
/// R-trees, and what `MySQL` calls SDI, are built like indexes.
const TYPES_INDEX: [u16; 3] = [TYPE_INDEX, 17854, 17853];
/// Pages that `MariaDB` compressed, and compressed and encrypted.
const TYPES_MARIADB: [u16; 3] = [18, 34354, 37401];
/// First and last record of the chain of rows, which hold no data.
const INFIMUM: usize = 99;
const SUPREMUM: usize = 112;
/// Fewer rows could match by chance.
const ROWS_MIN: usize = 4;
const KEY_BYTES_MAX: usize = 32;
/// `DB_TRX_ID`, then `DB_ROLL_PTR`.
const PAIR_BYTES: usize = 13;
/// Precedes the first byte of a row; the bits of its first byte include the deletion mark.
const ROW_HEADER_BYTES: usize = 5;
const DELETED: u8 = 0x20;
/// Offset of the first record in an undo page, after its headers.
const UNDO_START: u64 = 56;
/// Pages of an extent at the smallest page size.
const PAGES_EXTENT_MAX: u32 = 256;
/// Flag of `MariaDB`'s `full_crc32`, with which the page size is stored elsewhere.
const FLAG_FULL_CRC32: u32 = 1 << 4;
/// Position of the compressed page size in other files.
const FLAGS_COMPRESSED: u32 = 0xf << 1;

fn recognise(head: &[u8]) -> Option<usize> {
    if head.len() < PAGE_BYTES_MIN || u16_at(head, 24) != TYPE_SPACE || u32_at(head, 4) != 0 {
        return None;
    }
    let size = page_bytes(u32_at(head, 54))?;
    let space = u32_at(head, 34);
    let (pages, initialised) = (u32_at(head, 46), u32_at(head, 50));
    // Initialised space is whole extents, the last of which may extend past the end of the file.
    let is_inside = initialised <= pages.saturating_add(PAGES_EXTENT_MAX);
    let is_space = space == u32_at(head, 38) && pages > 0 && is_inside;
    if !is_space || head.get(..size).is_none_or(|page| !is_page(page)) {
        return None;
    }
    // Page 1 is always the same, which distinguishes a data file from copies of its first page.
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
        // The segments of a root contain its space id; all other pages have zeros there.
        fields.push(Field::Address, 74, 8);
        fields.push(Field::Address, 84, 8);
        fields.rows = count_rows(page);
        rows(page, fields);
    } else if kind == TYPE_SPACE {
        fields.push(Field::Address, 38, 4);
    }
    if kind == TYPE_ALLOCATED && super::is_zeros(&body[..body.len() - TRAILER_BYTES]) {
        PageUse::NeverUsed
    } else {
        PageUse::Used
    }
}

fn rows(page: &[u8], fields: &mut Fields) {
    let is_compact = page[42] & 0x80 != 0;
    // Leaves of other indexes store the latest transaction in their header instead of in rows.
    let is_clustered = page[56..64] == [0; 8] && page[64..66] == [0; 2];
    if !is_compact || !is_clustered {
        return;
    }
    let Some(mut origins) = origins(page, ROWS_MIN) else { return };
    let is_plausible = |key: usize| origins.iter().all(|&at| is_pair(page, at + key));
    // If a part of the key could be a transaction too, neither is accepted.
    let keys: Vec<usize> = (1..=KEY_BYTES_MAX).filter(|&key| is_plausible(key)).collect();
    let &[key] = keys.as_slice() else { return };
    origins.sort_unstable();
    // Rows of a valid page do not overlap.
    if origins.windows(2).all(|pair| pair[1] - pair[0] >= PAIR_BYTES) {
        for at in origins {
            fields.push(Field::Transaction, at + key, PAIR_BYTES);
        }
    }
}

/// Counts the rows of a leaf of any index; none in a format without the bits for it.
fn count_rows(page: &[u8]) -> Rows {
    let (is_compact, is_leaf) = (page[42] & 0x80 != 0, page[64..66] == [0; 2]);
    let Some(origins) = origins(page, 1).filter(|_| is_compact && is_leaf) else {
        return Rows::default();
    };
    let is_deleted = |&&at: &&usize| page[at - ROW_HEADER_BYTES] & DELETED != 0;
    let deleted = origins.iter().filter(is_deleted).count();
    Rows::of_page((origins.len() - deleted) as u64, deleted as u64)
}

/// Follows the chain of rows of a leaf to their start positions; `None` if it is broken or too
/// short.
fn origins(page: &[u8], fewest: usize) -> Option<Vec<usize>> {
    let count = usize::from(u16_at(page, 54));
    if !(fewest..page.len() / ROW_HEADER_BYTES).contains(&count) {
        return None;
    }
    let mut origins = Vec::with_capacity(count);
    let mut at = INFIMUM;
    for _ in 0..count {
        // Before its first byte, each row has the distance to the next.
        at = (at + usize::from(u16_at(page, at - 2))) & 0xffff;
        if at <= SUPREMUM || at >= page.len() {
            return None;
        }
        origins.push(at);
    }
    let last = (at + usize::from(u16_at(page, at - 2))) & 0xffff;
    (last == SUPREMUM).then_some(origins)
}

/// Returns whether a transaction id and an undo pointer may be at `at`.
fn is_pair(page: &[u8], at: usize) -> bool {
    let Some(pair) = page.get(at..at + PAIR_BYTES) else { return false };
    if at + PAIR_BYTES > page.len() - TRAILER_BYTES {
        return false;
    }
    let number = |bytes: &[u8]| bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
    let (id, undo_page, undo_at) = (number(&pair[..6]), number(&pair[7..11]), number(&pair[11..]));
    // `MariaDB` resets both in rows that every transaction sees.
    let is_reset = id == 0 && pair[6..] == [0x80, 0, 0, 0, 0, 0, 0];
    // Every transaction advances the LSN by more than one.
    let is_past = (1..number(&page[16..24]).min(1 << 40)).contains(&id);
    // The byte in between shows how the row was created, and which rollback segment has its undo;
    // it is zero only for updates in the first segment, and in much that is not such a pair.
    let is_undo = pair[6] != 0
        && (1..1 << 24).contains(&undo_page)
        && (UNDO_START..page.len() as u64).contains(&undo_at);
    is_reset || is_past && is_undo
}

/// Page size in bytes of a file with these flags; `None` if pages are compressed.
fn page_bytes(flags: u32) -> Option<usize> {
    let shift = if flags & FLAG_FULL_CRC32 != 0 {
        flags & 0xf
    } else if flags & FLAGS_COMPRESSED == 0 {
        // Files with 16K pages have no value here: it used to be the only size.
        match flags >> 6 & 0xf {
            0 => 5,
            shift => shift,
        }
    } else {
        return None;
    };
    (3..=7).contains(&shift).then(|| 512 << shift)
}

/// Returns whether the type is known and the halves of the LSN at both ends match.
fn is_page(page: &[u8]) -> bool {
    let is_size = super::is_size(page.len(), PAGE_BYTES_MIN..=65536);
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

/// Returns whether it is the second page of a file, which undo files of `MySQL` use for something
/// else.
fn is_bitmap(page: &[u8]) -> bool {
    matches!(u16_at(page, 24), TYPE_BITMAP | 2..=TYPE_LOW_MAX)
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(super::bytes_at(page, at))
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(super::bytes_at(page, at))
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

    /// Creates a leaf of `rows` rows with keys of four bytes, as written by transaction `id`.
    fn leaf(rows: u16, id: u8) -> Vec<u8> {
        let pair = [0, 0, 0, 0, 1, id, 0x81, 0, 0, 1, 17, 1, id];
        leaf_of(rows, |row| (0x8000_0000_u32 + u32::from(row)).to_be_bytes().to_vec(), pair)
    }

    fn leaf_of(rows: u16, key: fn(u16) -> Vec<u8>, pair: [u8; 13]) -> Vec<u8> {
        let mut page = page(16384, 7, TYPE_INDEX, 100_000, true);
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(42, &[0x80, 9]);
        put(54, &rows.to_be_bytes());
        put(56, &[0; 16]);
        put(120, &[0; 80]);
        let (step, first) = (40, 140);
        put(INFIMUM - 2, &(first - INFIMUM as u16).to_be_bytes());
        for row in 0..rows {
            let at = usize::from(first + row * step);
            let end = (SUPREMUM as u16).wrapping_sub(at as u16);
            let next = if row + 1 == rows { end } else { step };
            put(at - 2, &next.to_be_bytes());
            put(at, &[&key(row)[..], &pair, b"the row itself"].concat());
        }
        page
    }

    #[test]
    fn rows_marked_deleted_are_told_from_live_ones() {
        let rows = |page: &[u8]| {
            let mut fields = Fields::default();
            look(page, &mut fields);
            fields.rows
        };
        let mut page = leaf(3, 5);
        assert_eq!(rows(&page), Rows::of_page(3, 0), "fewer than fields are looked for in");
        for row in 0..3 {
            page[140 + row * 40 - ROW_HEADER_BYTES] |= DELETED;
            assert_eq!(rows(&page), Rows::of_page(2 - row as u64, row as u64 + 1));
        }
        assert_eq!(rows(&page).deleted_pages, 1, "it has data, and no live row");
        page[65] = 1;
        assert_eq!(rows(&page), Rows::default(), "only leaves have rows");
    }

    #[test]
    fn keys_that_look_like_transactions_are_left_alone() {
        let long = |row: u16| (u64::from(row) + 1).to_be_bytes().to_vec();
        for id in [0x0003_1234_u32, 0x0001_2305, 0x0112_3400, 0x0100_0038, 0xff00, 0x1000_0000] {
            let mut pair = [0, 0, 0, 0, 0, 0, 0x8a, 0, 0, 1, 57, 1, 16];
            pair[2..6].copy_from_slice(&id.to_be_bytes());
            let mut page = leaf_of(50, long, pair);
            page[16..24].copy_from_slice(&(1_u64 << 40).to_be_bytes());
            let kept = masked(&FORMAT, &page);
            for row in 0..50 {
                let at = 140 + row * 40;
                assert_eq!(kept[at..at + 8], page[at..at + 8], "{id:#x}, row {row}");
                assert_eq!(kept[at + 21..at + 35], *b"the row itself", "{id:#x}, row {row}");
            }
        }
        let varying = |row: u16| vec![b'k'; 3 + usize::from(row % 5)];
        let page = leaf_of(50, varying, [0, 0, 0, 0, 1, 9, 0x81, 0, 0, 1, 17, 1, 80]);
        assert_eq!(masked(&FORMAT, &page)[130..3000], page[130..3000]);
    }

    #[test]
    fn rows_of_a_clustered_leaf_lose_their_transactions_and_nothing_else() {
        let (a, b) = (leaf(50, 33), leaf(50, 99));
        assert_eq!(masked(&FORMAT, &a), masked(&FORMAT, &b));
        let mut other = b.clone();
        other[140 + 17] = b'T';
        assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &other));
        other.copy_from_slice(&b);
        other[140 + 3] = 200;
        assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &other), "the key");
        other.copy_from_slice(&b);
        other[140 + 4] = 1;
        assert_ne!(masked(&FORMAT, &a), masked(&FORMAT, &other), "a row without such a pair");
        assert_ne!(masked(&FORMAT, &leaf(3, 33)), masked(&FORMAT, &leaf(3, 99)), "too few");
    }

    proptest! {
        #[test]
        fn no_chain_of_rows_makes_it_fail(damage: Vec<(prop::sample::Index, u8)>, step: u16) {
            let mut page = leaf(50, 33);
            page[140 - 2..140].copy_from_slice(&step.to_be_bytes());
            for (at, byte) in damage {
                page[at.index(400)] = byte;
            }
            check_any(&FORMAT, &page);
        }

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
