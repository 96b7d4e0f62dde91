//! Where data is stored on the disks, for code that inspects disks from outside.

use super::map::FileMap;
use super::{DiskGroup, FINE_STRIPE, FINE_WIDTH};

/// Locations of the files of a group. They do not change during the life of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Atlas {
    unit_bytes: u64,
    files: Vec<FileMap>,
}

/// A byte of a file, found through one of its copies on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found<'a> {
    pub file: &'a str,
    pub offset: u64,
    pub block: u64,
}

impl DiskGroup {
    pub(crate) fn atlas(&self) -> Atlas {
        Atlas { unit_bytes: self.0.identity.unit_bytes, files: self.0.files.clone() }
    }
}

impl Atlas {
    /// Returns what byte `offset` of a disk belongs to; `None` for headers, maps and free space.
    pub fn find(&self, disk: usize, offset: u64) -> Option<Found<'_>> {
        let (unit, within) = ((offset / self.unit_bytes) as u32, offset % self.unit_bytes);
        self.files.iter().find_map(|file| {
            let is_there = |place: &super::map::UnitAddress| {
                usize::from(place.disk) == disk && place.unit == unit
            };
            let index = file.places.iter().position(is_there)? / file.copies;
            let offset = byte_of(file, index as u64, within);
            Some(Found { file: &file.name, offset, block: offset / file.block_bytes })
        })
    }

    /// Returns the locations of the copies of byte `offset` of a file: disks and offsets on them.
    pub fn copies(&self, file: &str, offset: u64) -> Vec<(usize, u64)> {
        let file = self.files.iter().find(|found| found.name == file);
        let file = file.expect("the group has this file");
        let piece = file.pieces(offset, 1).next().expect("a byte is in one piece");
        let copies = file.copies_of(piece.unit).iter();
        let unit = |unit: u32| u64::from(unit) * self.unit_bytes;
        copies.map(|at| (usize::from(at.disk), unit(at.unit) + piece.unit_offset)).collect()
    }
}

/// Returns the offset in a file of byte `within` of its allocation unit `unit`.
fn byte_of(file: &FileMap, unit: u64, within: u64) -> u64 {
    if !file.fine {
        return unit * file.unit_bytes + within;
    }
    let stripe = FINE_STRIPE.get();
    let (band, lane) = (unit / FINE_WIDTH, unit % FINE_WIDTH);
    let number = within / stripe * FINE_WIDTH + lane;
    band * FINE_WIDTH * file.unit_bytes + number * stripe + within % stripe
}

#[cfg(test)]
mod tests {
    use super::super::map::UnitAddress;
    use super::*;

    #[test]
    fn every_byte_is_found_where_its_copies_are() {
        let places = |first: u32| {
            (0..16).map(move |at| UnitAddress { disk: (at % 2) as u16, unit: first + at / 2 })
        };
        let file = |name: &str, fine, first| FileMap {
            name: name.into(),
            size_bytes: 8 << 20,
            block_bytes: 4096,
            fine,
            copies: 2,
            unit_bytes: 1 << 20,
            places: places(first).collect(),
        };
        let files = vec![file("data", false, 1), file("redo", true, 9)];
        let atlas = Atlas { unit_bytes: 1 << 20, files };
        for name in ["data", "redo"] {
            for offset in (0..8 << 20).step_by(4096 * 3) {
                let copies = atlas.copies(name, offset);
                assert_eq!(copies.len(), 2);
                for (disk, at) in copies {
                    let found = atlas.find(disk, at).unwrap();
                    assert_eq!((found.file, found.offset), (name, offset));
                    assert_eq!(found.block, offset / 4096);
                }
            }
        }
        assert_eq!(atlas.find(0, 4096), None);
    }
}
