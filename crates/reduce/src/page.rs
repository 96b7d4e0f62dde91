//! Pages of databases: which bytes of a page differ although its rows do not, and whether the page
//! was ever used.
//!
//! A format is a file here and a line in [`registry::ALL`]. It recognises a file by its beginning,
//! and says of each page where fields of each [`Field`] class lie.

pub mod registry;

use std::ops::Range;

/// What a field of a page header or a row header is for. All formats have the same classes, so that
/// one ladder of masks serves them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// When the page was changed: LSN, SCN.
    Lsn,
    /// The checksum of the page.
    Checksum,
    /// Where the page belongs: its number, its file, its neighbours.
    Address,
    /// Which transactions touched it: xmin, xmax, cid, interested transactions.
    Transaction,
    /// Hint bits and flags that are set when somebody reads: infomask, page flags.
    Flags,
}

/// All classes, in the order in which they are masked.
pub const FIELDS: [Field; 5] =
    [Field::Lsn, Field::Checksum, Field::Address, Field::Transaction, Field::Flags];

impl Field {
    /// Its name in reports and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lsn => "lsn",
            Self::Checksum => "checksum",
            Self::Address => "address",
            Self::Transaction => "transaction",
            Self::Flags => "flags",
        }
    }

    /// Its place in [`FIELDS`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What a page is to its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageUse {
    /// Not a page of this format; zeros are never one.
    Unknown,
    /// Formatted, but nothing was ever stored in it.
    NeverUsed,
    /// It holds, or held, something.
    Used,
}

/// Where fields lie in one page, as its format found them. Ranges are in bytes from the beginning
/// of the page and do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    ranges: Vec<(Field, Range<usize>)>,
}

impl Fields {
    /// A field of `len` bytes at `start`.
    #[inline]
    pub fn push(&mut self, field: Field, start: usize, len: usize) {
        self.ranges.push((field, start..start + len));
    }

    /// All of them.
    pub fn ranges(&self) -> &[(Field, Range<usize>)] {
        &self.ranges
    }

    /// Forgets them: the next page.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }
}

/// A format of database pages.
#[derive(Debug)]
pub struct Format {
    /// Its name in reports: `PostgreSQL`.
    pub name: &'static str,
    /// What its fields of each class are called there, in the order of [`FIELDS`]; empty where it
    /// has none.
    pub fields: [&'static str; 5],
    /// Bytes of a page, if the file with this beginning (at least 64 KiB of it, or all) is of this
    /// format.
    pub recognise: fn(&[u8]) -> Option<usize>,
    /// What a page is, and where its fields lie. A page that makes no sense is
    /// [`PageUse::Unknown`] and has none; nothing in a page can make this fail.
    pub look: fn(&[u8], &mut Fields) -> PageUse,
}

/// The format of a file, and the bytes of its pages.
#[derive(Clone, Copy, Debug)]
pub struct Recognised {
    /// The format.
    pub format: &'static Format,
    /// Bytes of a page.
    pub page_bytes: usize,
}

/// Recognises a file by its beginning.
pub fn recognise(head: &[u8]) -> Option<Recognised> {
    registry::ALL.iter().find_map(|format| {
        (format.recognise)(head).map(|page_bytes| Recognised { format, page_bytes })
    })
}
