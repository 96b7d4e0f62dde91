//! Redo: the record of every change, made durable before the blocks that it changed.
//!
//! Positions are counted in bytes of records since the instance was created ([`Lsn`]); a block
//! carries the position after its last change as SCN. Records are gathered in a buffer
//! ([`buffer`]); the log writer writes the gathered records as one *chunk* of redo blocks and never
//! writes a redo block twice: the last one is padded. A torn chunk was never acknowledged, and
//! recovery ends before it.
//!
//! ```text
//! redo block: byte 0  magic and instance      24  number in its chunk (u32), blocks of it (u32)
//!                  8  address: sequence of    32  bytes of records in this block
//!                     the log × its size      40  XXH3-64 of all else
//!                     + offset in it          48  records
//!                 16  position of the first byte of records in its chunk
//!
//! record:     byte 0  length (u32), kind      commit: session, number
//!                  8  block number            image:  the block as it was before the change
//!                                             change: version, columns, new values, old values
//! ```

pub mod buffer;

use std::fmt;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::block::{self, COLUMN_BYTES, COLUMNS, get, put};
use crate::planted::{Planted, planted};

/// Bytes of a redo block: the unit of log writes, and the unit that the strictest device writes
/// atomically.
pub const REDO_BLOCK_BYTES: usize = 4096;
pub const REDO_HEADER_BYTES: usize = 48;
pub const REDO_PAYLOAD_BYTES: usize = REDO_BLOCK_BYTES - REDO_HEADER_BYTES;

const MAGIC: u64 = u64::from_le_bytes(*b"bstnredo");
const RECORD_HEADER_BYTES: usize = 16;
const CHANGE_HEADER_BYTES: usize = RECORD_HEADER_BYTES + 16;
const KIND_CHANGE: u8 = 1;
const KIND_IMAGE: u8 = 2;
const KIND_COMMIT: u8 = 3;

/// A position in the redo: bytes of records since the instance was created. Positions of one
/// incarnation are contiguous; each opening leaves a gap, so that no position is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:08X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    Change(Change<'a>),
    /// Content of a block before its first change since it was last written.
    Image {
        block: u64,
        data: &'a [u8],
    },
    /// End of a session's transaction; `number` counts its commits, including this one.
    Commit {
        session: u64,
        number: u64,
    },
}

/// New values of a row's columns with the old ones, like the redo and undo vectors of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    pub block: u64,
    pub version: u64,
    /// Bit *i* is set if column *i* changes.
    columns: u64,
    new: &'a [u8],
    old: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a redo record")]
pub struct Malformed;

/// Address of a redo block, and its index among the `blocks` of its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoHeader {
    pub address: u64,
    pub first: Lsn,
    pub index: u32,
    pub blocks: u32,
    pub payload_bytes: usize,
}

impl RedoHeader {
    /// Completes `redo_block`, which already holds the records.
    pub fn seal(&self, instance: u64, redo_block: &mut [u8]) {
        put(redo_block, 0, MAGIC ^ instance);
        put(redo_block, 8, self.address);
        put(redo_block, 16, self.first.0);
        put(redo_block, 24, u64::from(self.index) | u64::from(self.blocks) << 32);
        put(redo_block, 32, self.payload_bytes as u64);
        let sum = checksum(redo_block);
        put(redo_block, 40, sum);
    }

    /// Reads the header of `redo_block`, if that is whole and of this instance.
    pub fn read(instance: u64, redo_block: &[u8]) -> Option<Self> {
        let whole = get(redo_block, 0) == MAGIC ^ instance
            && get(redo_block, 40) == checksum(redo_block)
            && get(redo_block, 32) <= REDO_PAYLOAD_BYTES as u64;
        whole.then(|| Self {
            address: get(redo_block, 8),
            first: Lsn(get(redo_block, 16)),
            index: get(redo_block, 24) as u32,
            blocks: (get(redo_block, 24) >> 32) as u32,
            payload_bytes: get(redo_block, 32) as usize,
        })
    }
}

impl<'a> Change<'a> {
    /// Appends the change of `columns` of `row` (a block) to `version`, with new values from
    /// `value`.
    pub fn encode(
        row: &[u8],
        version: u64,
        columns: &[usize],
        value: impl Fn(usize, &mut [u8]),
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let values = columns.len() * COLUMN_BYTES;
        let len = CHANGE_HEADER_BYTES + 2 * values;
        out.resize(start + len, 0);
        let record = &mut out[start..];
        header(record, KIND_CHANGE, block::number(row));
        put(record, RECORD_HEADER_BYTES, version);
        let mask = columns.iter().fold(0_u64, |mask, &index| mask | 1 << index);
        put(record, RECORD_HEADER_BYTES + 8, mask);
        let (new, old) = record[CHANGE_HEADER_BYTES..].split_at_mut(values);
        let slots = new.chunks_exact_mut(COLUMN_BYTES).zip(old.chunks_exact_mut(COLUMN_BYTES));
        for (index, (new, old)) in indices(mask).zip(slots) {
            value(index, new);
            old.copy_from_slice(block::column(row, index));
        }
    }

    /// Whether `row` (a block) is in the state in which the change was made: one version before,
    /// with the old values.
    pub fn follows(&self, row: &[u8]) -> bool {
        let old = self.old.chunks_exact(COLUMN_BYTES);
        block::version(row).checked_add(1) == Some(self.version)
            && indices(self.columns).zip(old).all(|(index, old)| block::column(row, index) == old)
    }

    /// Applies the change to `row` (a block); `scn` is the position after the record.
    pub fn apply(&self, row: &mut [u8], scn: Lsn) {
        for (index, new) in indices(self.columns).zip(self.new.chunks_exact(COLUMN_BYTES)) {
            if index % (COLUMNS - 1) == 0 || !planted(Planted::MiddleDropped) {
                block::column_mut(row, index).copy_from_slice(new);
            }
        }
        block::set_version(row, self.version);
        block::set_scn(row, scn.0);
    }

    fn decode(block: u64, body: &'a [u8]) -> Result<Self, Malformed> {
        let (fixed, values) = body.split_at_checked(16).ok_or(Malformed)?;
        let (version, columns) = (get(fixed, 0), get(fixed, 8));
        let bytes = columns.count_ones() as usize * COLUMN_BYTES;
        if columns >> COLUMNS != 0 || values.len() != 2 * bytes {
            return Err(Malformed);
        }
        let (new, old) = values.split_at(bytes);
        Ok(Self { block, version, columns, new, old })
    }
}

pub fn encode_image(data: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + RECORD_HEADER_BYTES, 0);
    out.extend_from_slice(data);
    header(&mut out[start..], KIND_IMAGE, block::number(data));
}

pub fn encode_commit(session: u64, number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + RECORD_HEADER_BYTES + 8, 0);
    header(&mut out[start..], KIND_COMMIT, session);
    put(&mut out[start..], RECORD_HEADER_BYTES, number);
}

/// Applies one encoded change to `row` (a block); `scn` is the position after it.
///
/// # Panics
/// If `record` is not an encoded change.
pub fn apply_encoded(record: &[u8], row: &mut [u8], scn: Lsn) {
    let change = Change::decode(get(record, 8), &record[RECORD_HEADER_BYTES..]);
    change.expect("it was encoded just now").apply(row, scn);
}

/// Returns the records of `bytes`, each with the position after it; `first` is that of the first
/// byte.
pub fn records(
    bytes: &[u8],
    first: Lsn,
) -> impl Iterator<Item = Result<(Lsn, Record<'_>), Malformed>> {
    let mut rest = bytes;
    let mut at = first.0;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let record = decode(rest);
        match record {
            Ok((len, _)) => {
                rest = &rest[len..];
                at += len as u64;
            }
            Err(Malformed) => rest = &[],
        }
        Some(record.map(|(_, record)| (Lsn(at), record)))
    })
}

fn decode(bytes: &[u8]) -> Result<(usize, Record<'_>), Malformed> {
    if bytes.len() < RECORD_HEADER_BYTES {
        return Err(Malformed);
    }
    let (len, kind) = (get(bytes, 0) as u32 as usize, (get(bytes, 0) >> 32) as u8);
    let number = get(bytes, 8);
    let body = bytes.get(RECORD_HEADER_BYTES..len).ok_or(Malformed)?;
    let record = match kind {
        KIND_CHANGE => Record::Change(Change::decode(number, body)?),
        KIND_IMAGE if body.len() as u64 >= block::BLOCK_BYTES_MIN => {
            Record::Image { block: number, data: body }
        }
        KIND_COMMIT if body.len() == 8 => Record::Commit { session: number, number: get(body, 0) },
        _ => return Err(Malformed),
    };
    Ok((len, record))
}

fn header(record: &mut [u8], kind: u8, number: u64) {
    let len = record.len() as u64;
    put(record, 0, len | u64::from(kind) << 32);
    put(record, 8, number);
}

fn indices(mask: u64) -> impl Iterator<Item = usize> {
    (0..COLUMNS).filter(move |index| mask >> index & 1 == 1)
}

fn checksum(redo_block: &[u8]) -> u64 {
    xxh3_64_with_seed(&redo_block[REDO_HEADER_BYTES..], xxh3_64(&redo_block[..40]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Fill, Identity, Table};
    use proptest::prelude::*;

    fn row(number: u64, len: usize) -> Vec<u8> {
        let mut block = vec![0; len];
        let identity = Identity { instance: 1, number, schema: 0, table: Table::Rows, key: 5 };
        block::format(&mut block, &identity, &Fill::new(3, 100), 10);
        block
    }

    fn columns() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::btree_set(0..COLUMNS, 0..=COLUMNS)
            .prop_map(|set| set.into_iter().collect())
    }

    proptest! {
        #[test]
        fn records_come_back_in_order_and_a_change_does_what_was_said(
            number: u64, version: u64, session: u64, first in 0_u64..1 << 60, columns in columns(),
        ) {
            let before = row(number, 4096);
            let fill = Fill::new(3, 100);
            let mut bytes = Vec::new();
            encode_image(&before, &mut bytes);
            let value = |index: usize, out: &mut [u8]| fill.column(number, index, version, out);
            Change::encode(&before, version, &columns, value, &mut bytes);
            encode_commit(session, 9, &mut bytes);
            let read: Vec<_> = records(&bytes, Lsn(first)).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(read.len(), 3);
            prop_assert_eq!(read[0].1, Record::Image { block: number, data: &before });
            prop_assert_eq!(read[2].1, Record::Commit { session, number: 9 });
            prop_assert_eq!(read[2].0, Lsn(first + bytes.len() as u64));
            let Record::Change(change) = read[1].1 else { panic!("{:?}", read[1]) };
            let mut after = before.clone();
            change.apply(&mut after, read[1].0);
            prop_assert_eq!(block::version(&after), version);
            prop_assert_eq!(block::scn(&after), read[1].0.0);
            for index in 0..COLUMNS {
                let expected = if columns.contains(&index) { version } else { 0 };
                prop_assert_eq!(get(block::column(&after, index), 0), expected);
                prop_assert!(fill.is_whole(number, index, block::column(&after, index)));
            }
        }

        #[test]
        fn bytes_that_are_no_record_are_refused_and_nothing_panics(
            mut bytes in prop::collection::vec(any::<u8>(), 0..400),
            kind in 0_u8..5,
            len in 0_u32..400,
        ) {
            if bytes.len() >= 8 {
                put(&mut bytes, 0, u64::from(len) | u64::from(kind) << 32);
            }
            let total: usize = records(&bytes, Lsn(0)).count();
            prop_assert!(total <= 26);
        }

        #[test]
        fn any_flipped_bit_of_a_redo_block_shows(at: prop::sample::Index, bit in 0_u32..8) {
            let mut redo_block = vec![7; REDO_BLOCK_BYTES];
            let header = RedoHeader {
                address: 1 << 30, first: Lsn(77), index: 2, blocks: 5, payload_bytes: 100,
            };
            header.seal(1, &mut redo_block);
            prop_assert_eq!(RedoHeader::read(1, &redo_block), Some(header));
            prop_assert_eq!(RedoHeader::read(2, &redo_block), None);
            redo_block[at.index(REDO_BLOCK_BYTES)] ^= 1_u8 << bit;
            prop_assert_eq!(RedoHeader::read(1, &redo_block), None);
        }
    }
}
