//! The cost of each class of header fields: the ratio with it masked, and with all others masked.

use crate::counter::{Counter, MaskedGrid};
use crate::estimate::{self, Interval};
use crate::grid::Grid;
use crate::mask::Mask;
use crate::page::{Field, registry};

use super::FileNote;

/// The ratio of one grid under one mask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaskedRatio {
    pub grid: Grid,
    pub mask: Mask,
    /// Blocks ÷ contents.
    pub dedup_ratio: Interval,
}

/// Cost of one class of fields.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCost {
    pub field: Field,
    /// Names of the fields in the formats that occur.
    pub called: String,
    /// Ratio with this class and all before it masked.
    pub dedup_ratio_without: Interval,
    /// Ratio with all other classes masked: what this class alone would still prevent.
    pub dedup_ratio_only: Interval,
}

pub(super) fn ratios(counter: &Counter) -> Vec<MaskedRatio> {
    let ratio = |masked: &MaskedGrid| {
        let contents = estimate::contents(masked.table.len(), masked.table.share_log2());
        let zeros = f64::from(u8::from(masked.zero_blocks > 0));
        (masked.blocks > 0).then(|| MaskedRatio {
            grid: masked.grid,
            mask: masked.mask,
            dedup_ratio: Interval::exact(masked.blocks as f64).over(contents.plus(zeros)),
        })
    };
    counter.masked.grids().filter_map(ratio).collect()
}

/// Computes the cost of each class that some format has, at one block size.
pub(super) fn costs(counter: &Counter, files: &[FileNote], block_bytes: u32) -> Vec<FieldCost> {
    let here: Vec<MaskedRatio> =
        ratios(counter).into_iter().filter(|r| r.grid.block_bytes == block_bytes).collect();
    let under = |mask: Mask| here.iter().find(|r| r.mask == mask).map(|r| r.dedup_ratio);
    let cost = |field: Field| {
        let called = called(field, files);
        (!called.is_empty()).then_some(())?;
        Some(FieldCost {
            field,
            called,
            dedup_ratio_without: under(Mask::first(field.index() + 1))?,
            dedup_ratio_only: under(Mask::all_but(field))?,
        })
    };
    Field::ALL.iter().copied().filter_map(cost).collect()
}

/// Returns the names that the formats of these files have for a class.
fn called(field: Field, files: &[FileNote]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for format in registry::ALL {
        let occurs = files.iter().any(|file| file.format == Some(format.name));
        let name = format.fields[field.index()];
        if occurs && !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("; ")
}
