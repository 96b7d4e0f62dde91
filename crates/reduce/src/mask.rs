//! The same pages with fields masked: how would they deduplicate without these?
//!
//! The bytes of all fields are set to zero and the rest is hashed once, then the bytes of each
//! class of fields are hashed separately. Which classes are masked is decided afterwards, by which
//! of these digests go into a fingerprint: nine questions for the price of two.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::digest::{self, Fingerprint, UNIT_BYTES};
use crate::page::{Field, Fields, PageUse, Recognised, Rows};

/// Set of masked field classes, one bit each, in the order of [`Field::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mask(pub u8);

impl Mask {
    /// Masks all classes.
    pub const ALL: Self = Self((1 << Field::ALL.len()) - 1);

    /// Masks the first `count` classes.
    pub const fn first(count: usize) -> Self {
        Self((1 << count) - 1)
    }

    pub const fn all_but(field: Field) -> Self {
        Self(Self::ALL.0 & !(1 << field.index()))
    }

    /// Returns whether it masks a class.
    #[inline]
    pub const fn masks(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Returns the classes it masks.
    pub fn fields(self) -> impl Iterator<Item = Field> {
        Field::ALL.iter().copied().filter(move |field| self.masks(field.index()))
    }
}

/// Every mask that is counted: first a ladder with one more class at each step, then all but one
/// class.
pub fn masks() -> Vec<Mask> {
    let ladder = (1..=Field::ALL.len()).map(Mask::first);
    // All classes but the last are a step of the ladder already.
    ladder.chain(Field::ALL[..Field::ALL.len() - 1].iter().copied().map(Mask::all_but)).collect()
}

/// A unit without its fields, and the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    body: Fingerprint,
    fields: [Fingerprint; Field::ALL.len()],
}

impl Parts {
    /// Returns the fingerprint of the unit with the fields of `mask` set to zero.
    #[inline]
    pub fn masked(&self, mask: Mask) -> Fingerprint {
        let mut bytes = [0; (1 + Field::ALL.len()) * 16];
        bytes[..16].copy_from_slice(&self.body.to_be_bytes());
        for (index, field) in self.fields.iter().enumerate() {
            if !mask.masks(index) {
                bytes[(index + 1) * 16..(index + 2) * 16].copy_from_slice(&field.to_be_bytes());
            }
        }
        digest::of(&bytes)
    }
}

/// A unit of a file whose format is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskedUnit {
    /// `None` if the unit contains no field: it is the same under every mask.
    pub parts: Option<Parts>,
    /// Whether its database ever used it, as far as the page shows.
    pub used: bool,
}

/// Separates the fields of pages; holds the memory needed for that.
#[derive(Debug, Default)]
pub struct Masker {
    fields: Fields,
    page: Vec<u8>,
    rows: Rows,
    bytes: [Vec<u8>; Field::ALL.len()],
}

/// Bytes of a field in several pages.
struct FieldRange {
    field: usize,
    range: Range<usize>,
}

impl Masker {
    /// Appends the units of `data`, which begins with a page.
    pub fn units(&mut self, data: &[u8], recognised: Recognised, out: &mut Vec<MaskedUnit>) {
        // Pages smaller than a unit share one.
        let step = recognised.page_bytes.max(UNIT_BYTES);
        for stretch in data.chunks(step) {
            self.stretch(stretch, recognised, out);
        }
    }

    /// Returns the rows of all pages since the last call.
    pub fn take_rows(&mut self) -> Rows {
        std::mem::take(&mut self.rows)
    }

    fn stretch(&mut self, data: &[u8], recognised: Recognised, out: &mut Vec<MaskedUnit>) {
        self.page.clear();
        self.page.extend_from_slice(data);
        let mut ranges: Vec<FieldRange> = Vec::new();
        let mut used = vec![false; data.len().div_ceil(UNIT_BYTES)];
        for (index, page) in data.chunks(recognised.page_bytes).enumerate() {
            let start = index * recognised.page_bytes;
            self.fields.clear();
            let is_used = match (recognised.format.look)(page, &mut self.fields) {
                PageUse::Unknown => page.iter().any(|&byte| byte != 0),
                PageUse::NeverUsed => false,
                PageUse::Used => true,
            };
            self.rows.add(&self.fields.rows);
            let units = start / UNIT_BYTES..=(start + page.len() - 1) / UNIT_BYTES;
            units.for_each(|unit| used[unit] |= is_used);
            for (field, range) in self.fields.ranges() {
                let range = start + range.start..start + range.end;
                ranges.push(FieldRange { field: field.index(), range });
            }
        }
        for (unit, &used) in used.iter().enumerate() {
            let parts = self.parts(unit * UNIT_BYTES, &ranges);
            out.push(MaskedUnit { parts, used });
        }
    }

    /// Separates the fields of the unit at `start`; a field that crosses its edge is cut there.
    fn parts(&mut self, start: usize, ranges: &[FieldRange]) -> Option<Parts> {
        let end = (start + UNIT_BYTES).min(self.page.len());
        self.bytes.iter_mut().for_each(Vec::clear);
        let mut any = false;
        for FieldRange { field, range } in ranges {
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from >= to {
                continue;
            }
            any = true;
            let bytes = &mut self.bytes[*field];
            bytes.extend_from_slice(&((from - start) as u16).to_le_bytes());
            bytes.extend_from_slice(&self.page[from..to]);
            self.page[from..to].fill(0);
        }
        any.then(|| Parts {
            body: digest::of(&self.page[start..end]),
            fields: std::array::from_fn(|field| digest::of(&self.bytes[field])),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Format;

    fn look(page: &[u8], fields: &mut Fields) -> PageUse {
        if page[0] == 0 {
            return PageUse::Unknown;
        }
        fields.push(Field::Lsn, 1, 2);
        fields.push(Field::Transaction, 4094, 4);
        PageUse::Used
    }

    static TOY: Format =
        Format { name: "toy", fields: ["a", "", "", "b", ""], recognise: |_| Some(8192), look };

    fn units(page: &[u8]) -> Vec<MaskedUnit> {
        let mut out = Vec::new();
        let toy = Recognised { format: &TOY, page_bytes: 8192 };
        Masker::default().units(page, toy, &mut out);
        out
    }

    #[test]
    fn a_masked_class_no_longer_tells_pages_apart_and_an_unmasked_one_does() {
        let mut a = vec![9; 8192];
        let same = units(&a);
        a[2] = 1;
        let lsn = units(&a);
        a[4096] = 1;
        let both = units(&a);
        let print = |units: &[MaskedUnit], unit: usize, mask| {
            units[unit].parts.expect("it has fields").masked(mask)
        };
        let lsn_only = Mask::first(1);
        assert_eq!(print(&same, 0, lsn_only), print(&lsn, 0, lsn_only));
        assert_ne!(
            print(&same, 0, Mask::all_but(Field::Lsn)),
            print(&lsn, 0, Mask::all_but(Field::Lsn))
        );
        assert_eq!(print(&lsn, 0, lsn_only), print(&both, 0, lsn_only), "the field ends in unit 1");
        assert_ne!(print(&lsn, 1, lsn_only), print(&both, 1, lsn_only));
        assert_eq!(print(&lsn, 1, Mask::ALL), print(&both, 1, Mask::ALL));
        a[5000] = 7;
        assert_ne!(print(&units(&a), 1, Mask::ALL), print(&both, 1, Mask::ALL));
    }

    #[test]
    fn what_is_no_page_is_the_same_under_every_mask() {
        let found = units(&vec![0; 8192]);
        assert!(found.iter().all(|unit| unit.parts.is_none() && !unit.used));
        let mut odd = vec![0; 8192];
        odd[8000] = 1;
        let found = units(&odd);
        assert!(found.iter().all(|unit| unit.parts.is_none() && unit.used));
    }

    #[test]
    fn the_ladder_and_its_counterparts_are_nine_masks() {
        let masks = masks();
        assert_eq!(masks.len(), 9);
        assert_eq!(masks[4], Mask::ALL);
        assert!(masks[..4].windows(2).all(|pair| pair[0].0 < pair[1].0));
        let named: Vec<Field> = Mask::all_but(Field::Address).fields().collect();
        assert_eq!(named, [Field::Lsn, Field::Checksum, Field::Transaction, Field::Flags]);
    }
}
