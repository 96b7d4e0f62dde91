//! The map of a group: where each copy of each file is stored, and which disks are offline. Every
//! online disk carries the whole map, in two slots that are written in turn, so that a power loss
//! during the write of one leaves the other.

use std::ops::Range;

use super::codec::{Decoder, Encoder, Refusal};
use super::error::GroupError;
use super::header::{Header, VERSION, read_aligned, write_aligned};
use super::{FINE_STRIPE, FINE_WIDTH};
use crate::disk::{ALIGN_BYTES, Disk};

const MAGIC: [u8; 8] = *b"BLKSTMAP";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitAddress {
    pub disk: u16,
    pub unit: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileMap {
    pub name: String,
    pub size_bytes: u64,
    pub block_bytes: u64,
    pub fine: bool,
    pub copies: usize,
    pub unit_bytes: u64,
    /// The copies of unit 0, those of unit 1, and so on; the primary first.
    pub places: Vec<UnitAddress>,
}

/// A part of a file that is contiguous on each of its disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub unit: u64,
    pub unit_offset: u64,
    /// First byte of the piece, counted from the beginning of the request.
    pub at: usize,
    pub len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiskMap {
    pub name: String,
    pub failure_group: String,
    pub units: u32,
    pub offline: Option<Offline>,
    /// Units that it missed, one bit each; valid only for an exact [`Offline`].
    pub stale: Vec<u64>,
}

/// The point since which a disk is no longer written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offline {
    /// Sequence of the first map that records it. The disk itself has only older ones.
    pub since: u64,
    /// Whether the stale units are known exactly; between two records of them they are not.
    pub exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    pub group_id: u64,
    /// Number of maps written so far; the map with the highest number is valid.
    pub sequence: u64,
    pub disks: Vec<DiskMap>,
    pub files: Vec<FileMap>,
}

impl FileMap {
    pub fn units(size_bytes: u64, unit_bytes: u64, fine: bool) -> u64 {
        let units = size_bytes.div_ceil(unit_bytes);
        if fine { units.next_multiple_of(FINE_WIDTH) } else { units }
    }

    #[inline]
    pub fn copies_of(&self, unit: u64) -> &[UnitAddress] {
        let first = unit as usize * self.copies;
        &self.places[first..first + self.copies]
    }

    /// Returns the numbers of the blocks in a part of a unit, counted within that unit.
    #[inline]
    pub fn blocks(&self, unit_offset: u64, len: u64) -> Range<u64> {
        unit_offset / self.block_bytes..(unit_offset + len) / self.block_bytes
    }

    /// Returns the offset in the file of a byte of a unit; for the last unit it may be beyond the
    /// end.
    pub fn offset_of(&self, unit: u64, unit_offset: u64) -> u64 {
        if !self.fine {
            return unit * self.unit_bytes + unit_offset;
        }
        let stripe = FINE_STRIPE.get();
        let (band, column) = (unit / FINE_WIDTH, unit % FINE_WIDTH);
        let number = unit_offset / stripe * FINE_WIDTH + column;
        band * FINE_WIDTH * self.unit_bytes + number * stripe + unit_offset % stripe
    }

    /// Returns the piece that begins at `offset` and is at most `len` long.
    #[inline]
    fn piece(&self, offset: u64, at: usize, len: usize) -> Piece {
        let (unit, unit_offset, room) = if self.fine {
            let stripe = FINE_STRIPE.get();
            let band = FINE_WIDTH * self.unit_bytes;
            let (number, within) = (offset % band / stripe, offset % stripe);
            let unit = offset / band * FINE_WIDTH + number % FINE_WIDTH;
            (unit, number / FINE_WIDTH * stripe + within, stripe - within)
        } else {
            let within = offset % self.unit_bytes;
            (offset / self.unit_bytes, within, self.unit_bytes - within)
        };
        Piece { unit, unit_offset, at, len: len.min(room as usize) }
    }

    #[inline]
    pub fn pieces(&self, offset: u64, len: usize) -> impl Iterator<Item = Piece> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            (at < len).then(|| {
                let piece = self.piece(offset + at as u64, at, len - at);
                at += piece.len;
                piece
            })
        })
    }
}

fn undamaged(bytes: &[u8]) -> Result<Map, Refusal> {
    let mut from = Decoder::open(bytes, MAGIC, VERSION)?;
    Map::decode(&mut from).ok_or(Refusal::Damaged)
}

impl Map {
    /// Whether every unit of every file has its copies, on disks of the group.
    fn is_sound(&self, header: &Header) -> bool {
        let place = |place: &UnitAddress| {
            self.disks.get(usize::from(place.disk)).is_some_and(|disk| place.unit < disk.units)
        };
        let file = |file: &FileMap| {
            let unit_bytes = header.unit_bytes;
            let units = FileMap::units(file.size_bytes, unit_bytes, file.fine);
            file.unit_bytes == unit_bytes
                && file.copies == usize::from(header.copies)
                && (1..=unit_bytes).contains(&file.block_bytes)
                && file.size_bytes.is_multiple_of(file.block_bytes)
                && units.checked_mul(file.copies as u64) == Some(file.places.len() as u64)
                && file.places.iter().all(place)
        };
        let disk = |disk: &DiskMap| disk.stale.len() == disk.units.div_ceil(64) as usize;
        self.disks.iter().all(disk) && self.files.iter().all(file)
    }

    pub fn read(disk: &dyn Disk, header: &Header) -> Option<Self> {
        let mut best: Option<Self> = None;
        for slot in [0, 1] {
            // A slot that cannot be read is treated like a damaged one: the other may suffice.
            let Ok(bytes) = read_aligned(disk, header.slot_offset(slot), header.slot_bytes) else {
                continue;
            };
            match undamaged(&bytes) {
                Ok(map) if map.group_id != header.group_id || !map.is_sound(header) => {}
                Ok(map) => {
                    if best.as_ref().is_none_or(|best| best.sequence < map.sequence) {
                        best = Some(map);
                    }
                }
                // The header, which was read, has the version of the maps: a map with another
                // version is damaged.
                Err(Refusal::Foreign | Refusal::Damaged | Refusal::Version(_)) => {}
            }
        }
        best
    }

    /// Writes an encoded map durably into the slot of its sequence.
    pub fn write(
        disk: &dyn Disk,
        header: &Header,
        sequence: u64,
        image: &[u8],
    ) -> Result<(), GroupError> {
        assert!(image.len() as u64 <= header.slot_bytes, "a slot holds every map of its group");
        write_aligned(disk, header.slot_offset(sequence % 2), image)
    }

    /// Returns the size in bytes of a map with this many copies of units, on disks of this many
    /// units.
    pub fn slot_bytes(disks: &[(String, String, u32)], files: &[FileMap]) -> u64 {
        let empty = |(name, failure_group, units): &(String, String, u32)| DiskMap {
            name: name.clone(),
            failure_group: failure_group.clone(),
            units: *units,
            offline: None,
            stale: vec![0; units.div_ceil(64) as usize],
        };
        let disks = disks.iter().map(empty).collect();
        Self { group_id: 0, sequence: 0, disks, files: files.to_vec() }.encode().len() as u64
    }

    /// Returns the map as it is stored in a slot. Its length does not change during the life of a
    /// group.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.group_id);
        out.u64(self.sequence);
        out.u32(self.disks.len() as u32);
        for disk in &self.disks {
            out.text(&disk.name);
            out.text(&disk.failure_group);
            out.u32(disk.units);
            let offline = disk.offline.unwrap_or(Offline { since: 0, exact: false });
            out.u8(u8::from(disk.offline.is_some()));
            out.u64(offline.since);
            out.u8(u8::from(offline.exact));
            out.words(&disk.stale);
        }
        out.u32(self.files.len() as u32);
        for file in &self.files {
            out.text(&file.name);
            out.u64(file.size_bytes);
            out.u64(file.block_bytes);
            out.u8(u8::from(file.fine));
            out.u8(file.copies as u8);
            out.u64(file.unit_bytes);
            out.u32(file.places.len() as u32);
            file.places.iter().for_each(|place| {
                out.u64(u64::from(place.disk) << 32 | u64::from(place.unit));
            });
        }
        out.frame(MAGIC, VERSION, ALIGN_BYTES)
    }

    fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let (group_id, sequence) = (from.u64()?, from.u64()?);
        let disks = from.u32()?;
        let disks = (0..disks).map(|_| decode_disk(from)).collect::<Option<_>>()?;
        let files = from.u32()?;
        let files = (0..files).map(|_| decode_file(from)).collect::<Option<_>>()?;
        Some(Self { group_id, sequence, disks, files })
    }
}

fn decode_disk(from: &mut Decoder<'_>) -> Option<DiskMap> {
    let (name, failure_group, units) = (from.text()?, from.text()?, from.u32()?);
    let is_offline = from.u8()? == 1;
    let offline = Offline { since: from.u64()?, exact: from.u8()? == 1 };
    let offline = is_offline.then_some(offline);
    Some(DiskMap { name, failure_group, units, offline, stale: from.words()? })
}

fn decode_file(from: &mut Decoder<'_>) -> Option<FileMap> {
    Some(FileMap {
        name: from.text()?,
        size_bytes: from.u64()?,
        block_bytes: from.u64()?,
        fine: from.u8()? == 1,
        copies: usize::from(from.u8()?),
        unit_bytes: from.u64()?,
        places: from
            .words()?
            .into_iter()
            .map(|word| UnitAddress { disk: (word >> 32) as u16, unit: word as u32 })
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn file(fine: bool, units: u64, unit_bytes: u64) -> FileMap {
        FileMap {
            name: "redo".into(),
            size_bytes: units * unit_bytes,
            block_bytes: 512,
            fine,
            copies: 2,
            unit_bytes,
            places: (0..2 * units as u32)
                .map(|number| UnitAddress { disk: (number % 5) as u16, unit: number })
                .collect(),
        }
    }

    #[test]
    fn a_map_survives_its_encoding_and_keeps_its_length() {
        let disk = |number: u64, offline| DiskMap {
            name: format!("/disk/{number}"),
            failure_group: "left".into(),
            units: 100,
            offline,
            stale: vec![number, 0],
        };
        let offline = Some(Offline { since: 7, exact: true });
        let mut map = Map {
            group_id: 9,
            sequence: 3,
            disks: vec![disk(0, None), disk(1, offline)],
            files: vec![file(true, 8, 1 << 20), file(false, 3, 4 << 20)],
        };
        let image = map.encode();
        assert_eq!(undamaged(&image).unwrap(), map);
        map.disks[0].offline = offline;
        map.sequence = u64::MAX;
        assert_eq!(map.encode().len(), image.len());
    }

    #[test]
    fn a_map_whose_places_are_not_there_is_none_of_this_group() {
        let header = Header {
            group_id: 9,
            disk: 0,
            unit_bytes: 1 << 20,
            units: 100,
            slot_bytes: 4096,
            failure_group: String::new(),
            copies: 2,
        };
        let disk = |number: u64| DiskMap {
            name: number.to_string(),
            failure_group: String::new(),
            units: 100,
            offline: None,
            stale: vec![0; 2],
        };
        let disks = (0..5).map(disk).collect();
        let map = Map { group_id: 9, sequence: 3, disks, files: vec![file(true, 8, 1 << 20)] };
        assert!(map.is_sound(&header));
        let spoil: [fn(&mut Map); 9] = [
            |map| map.files[0].places.truncate(15),
            |map| map.files[0].places[3].disk = 5,
            |map| map.files[0].places[3].unit = 100,
            |map| map.files[0].size_bytes = u64::MAX,
            |map| map.files[0].block_bytes = 0,
            |map| map.files[0].unit_bytes = 0,
            |map| map.files[0].copies = 0,
            |map| map.disks[0].stale.clear(),
            |map| map.disks.truncate(4),
        ];
        for (number, spoil) in spoil.iter().enumerate() {
            let mut forged = map.clone();
            spoil(&mut forged);
            assert!(!forged.is_sound(&header), "{number}");
        }
    }

    #[test]
    fn a_fine_file_occupies_eight_units_with_one_megabyte() {
        let file = file(true, 16, 1 << 20);
        let units: BTreeSet<u64> = file.pieces(0, 1 << 20).map(|piece| piece.unit).collect();
        assert_eq!(units, (0..8).collect());
        assert!(file.pieces(0, 1 << 20).all(|piece| piece.len == 128 << 10));
    }

    proptest! {
        /// Every byte of a file has one place, and no two bytes share one.
        #[test]
        fn pieces_cover_a_file_exactly_once(fine: bool, big: bool, cuts in 1_u64..40) {
            let unit_bytes = if big { 4 << 20 } else { 1 << 20 };
            let file = file(fine, 16, unit_bytes);
            let step = (file.size_bytes / cuts).next_multiple_of(4096);
            let mut seen = BTreeSet::new();
            let mut offset = 0;
            while offset < file.size_bytes {
                let len = step.min(file.size_bytes - offset) as usize;
                let mut at = 0;
                for piece in file.pieces(offset, len) {
                    prop_assert_eq!(piece.at, at);
                    prop_assert!(piece.unit_offset + piece.len as u64 <= unit_bytes);
                    let back = file.offset_of(piece.unit, piece.unit_offset);
                    prop_assert_eq!(back, offset + at as u64);
                    at += piece.len;
                    for page in 0..piece.len as u64 / 4096 {
                        prop_assert!(seen.insert((piece.unit, piece.unit_offset + page * 4096)));
                    }
                }
                prop_assert_eq!(at, len);
                offset += len as u64;
            }
            prop_assert_eq!(seen.len() as u64, file.size_bytes / 4096);
        }
    }
}
