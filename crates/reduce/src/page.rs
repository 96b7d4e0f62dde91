//! Database pages: which bytes of a page differ although its rows do not, and whether the page was
//! ever used.
//!
//! To add a format, add a source file here and a line in [`registry::ALL`]. A format recognises a
//! file by its beginning, and locates the fields of each [`Field`] class in each page.

pub mod blockstone;
pub mod innodb;
pub mod oracle;
pub mod postgres;
pub mod registry;
pub mod stamped;

use std::ops::{Range, RangeInclusive};

use blockstone_base::named;
use serde::{Deserialize, Serialize};

named! {
    /// Purpose of a field of a page header or a row header, in the order in which fields are
    /// masked. All formats have the same classes, so that one ladder of masks serves them all.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "kebab-case")]
    Field {
        /// Time of the last change of the page: LSN, SCN.
        Lsn = "lsn",
        Checksum = "checksum",
        /// Place of the page: its number, its file, its neighbours.
        Address = "address",
        /// Transactions that touched it: xmin, xmax, cid, interested transactions.
        Transaction = "transaction",
        /// Hint bits and flags that reads set: infomask, page flags.
        Flags = "flags",
    }
}

impl Field {
    /// Index in [`Field::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageUse {
    /// Not a page of this format; zeros never are.
    Unknown,
    /// Formatted, but nothing was ever stored in it.
    NeverUsed,
    /// It holds, or held, something.
    Used,
}

/// Counts of rows in pages, as far as the pages show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Rows that are not marked deleted.
    pub live_rows: u64,
    /// Rows that a DELETE or an UPDATE marked as deleted but that have not been removed yet.
    pub deleted_rows: u64,
    /// Pages with rows.
    pub row_pages: u64,
    /// Pages with rows in which all rows are marked deleted.
    pub deleted_pages: u64,
}

impl Rows {
    /// Counts the rows of one page.
    pub fn of_page(live_rows: u64, deleted_rows: u64) -> Self {
        let row_pages = u64::from(live_rows + deleted_rows > 0);
        let deleted_pages = if live_rows == 0 { row_pages } else { 0 };
        Self { live_rows, deleted_rows, row_pages, deleted_pages }
    }

    pub fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.live_rows, other.live_rows);
        add(&mut self.deleted_rows, other.deleted_rows);
        add(&mut self.row_pages, other.row_pages);
        add(&mut self.deleted_pages, other.deleted_pages);
    }
}

/// Positions of fields in one page, in bytes from its beginning; ranges do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    ranges: Vec<(Field, Range<usize>)>,
    /// Rows of the page; zero if its format does not show them.
    pub rows: Rows,
}

impl Fields {
    #[inline]
    pub fn push(&mut self, field: Field, start: usize, len: usize) {
        self.ranges.push((field, start..start + len));
    }

    pub fn ranges(&self) -> &[(Field, Range<usize>)] {
        &self.ranges
    }

    pub fn clear(&mut self) {
        self.ranges.clear();
        self.rows = Rows::default();
    }
}

#[derive(Debug)]
pub struct Format {
    /// Name in reports: `PostgreSQL`.
    pub name: &'static str,
    /// Names of its fields of each class, in the order of [`Field::ALL`]; empty if it has none.
    pub fields: [&'static str; 5],
    /// Returns the page size in bytes, if a file with this start (64 KiB or the whole file) has
    /// this format.
    pub recognise: fn(&[u8]) -> Option<usize>,
    /// Returns the use of a page, and collects the positions of its fields. A malformed page is
    /// [`PageUse::Unknown`] and has no fields; no content of a page can make this fail.
    pub look: fn(&[u8], &mut Fields) -> PageUse,
}

#[derive(Clone, Copy, Debug)]
pub struct Recognised {
    pub format: &'static Format,
    pub page_bytes: usize,
}

pub fn named(name: &str) -> Option<&'static Format> {
    registry::ALL.iter().find(|format| format.name == name).copied()
}

pub fn recognise(head: &[u8]) -> Option<Recognised> {
    registry::ALL.iter().find_map(|format| {
        (format.recognise)(head).map(|page_bytes| Recognised { format, page_bytes })
    })
}

fn is_zeros(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// Returns whether this is a valid page size: a power of two in `range`.
fn is_size(size: usize, range: RangeInclusive<usize>) -> bool {
    range.contains(&size) && size.is_power_of_two()
}

#[inline]
fn bytes_at<const N: usize>(page: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&page[at..at + N]);
    bytes
}

fn u64_at(page: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes_at(page, at))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the page with all its fields set to zero.
    pub(crate) fn masked(format: &Format, page: &[u8]) -> Vec<u8> {
        let (mut fields, mut masked) = (Fields::default(), page.to_vec());
        (format.look)(page, &mut fields);
        for (_, range) in fields.ranges() {
            masked[range.clone()].fill(0);
        }
        masked
    }

    /// Checks what must hold for arbitrary bytes in `page`.
    pub(crate) fn check_any(format: &Format, page: &[u8]) {
        let mut fields = Fields::default();
        let found = (format.look)(page, &mut fields);
        let mut taken = vec![false; page.len()];
        for place in fields.ranges().iter().flat_map(|(_, range)| range.clone()) {
            assert!(!taken[place], "{}: byte {place} is in two fields", format.name);
            taken[place] = true;
        }
        let has_none = fields.ranges().is_empty();
        assert_eq!(found == PageUse::Unknown, has_none, "{}: {found:?}", format.name);
        (format.recognise)(page);
    }

    #[test]
    fn nothing_is_recognised_in_what_is_no_database() {
        let mut random = vec![0; 65536];
        blockstone_base::rng::fill(3, &mut random);
        let text: Vec<u8> = b"1,2,a row of text\n".repeat(4000);
        let mut log = vec![0; 65536];
        for (index, page) in (0_u64..).zip(log.chunks_mut(8192)) {
            page[..4].copy_from_slice(&[0x10, 0xd1, 2, 0]);
            page[8..16].copy_from_slice(&(index * 8192).to_le_bytes());
            page[24..4000].fill(7);
        }
        let mut sparse = vec![0; 65536];
        sparse[40000] = 1;
        for head in [&random, &text, &log, &sparse, &vec![0; 65536], &vec![255; 65536]] {
            for len in [0, 1, 37, 512, 4096, 8192, 40000, head.len()] {
                assert!(recognise(&head[..len.min(head.len())]).is_none());
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_any_format_fail(
            start in prop::sample::select(vec![
                &b""[..], b"bstnblk1", b"blkstone\x01\0\0\0", b"\x06\xa2\0\0", b"\0\xa2\0\0",
            ]),
            bytes in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..300),
            len in prop::sample::select(vec![
                0, 1, 37, 511, 512, 1024, 2048, 4096, 5000, 8192, 16384, 32768, 65536,
            ]),
        ) {
            let mut page = [start, &bytes].concat();
            page.resize(len, 0);
            for format in registry::ALL {
                check_any(format, &page);
            }
        }
    }
}
