//! Assignment of blocks to writers and places: derived from the numbers of writer and write alone,
//! so that a verification needs nothing but these.

use crate::durability::findings::{Method, Pattern, Stream};

/// Sizes of the blocks of a writer, in turn.
const SIZES: [u64; 4] = [4096, 16_384, 4096, 65_536];
const ROUND: u64 = SIZES.len() as u64;
const ROUND_BYTES: u64 = SIZES[0] + SIZES[1] + SIZES[2] + SIZES[3];
pub const BLOCK_MAX: usize = 65_536;

/// Number of blocks in the circle of an overwriting writer.
pub const SLOTS: u64 = 128;
/// Bytes that these blocks take.
const SLOTS_BYTES: u64 = SLOTS / ROUND * ROUND_BYTES;
/// Number of blocks after which an appending writer begins another file, and number of files that a
/// creating one keeps.
pub const KEPT: u64 = 256;
/// Maximum number of writes of one writer that the witness has not confirmed yet.
pub const WINDOW: u64 = 32;
/// Number of the newest acknowledged blocks of a writer that are looked for after a cut. All of
/// them must exist: older blocks may have been removed or replaced by blocks within the window.
pub const HORIZON: u64 = 128;

/// Size of the parts of a device: its header is in the first, and each writer has its own part.
pub const PART_BYTES: u64 = 4 << 20;
const _: () = assert!(SLOTS_BYTES <= PART_BYTES, "a circle fits its part");
/// Writer number in the header's stamp.
pub const HEADER_STREAM: u16 = u16::MAX;

/// Directory that holds everything, below the path.
pub const DIRECTORY: &str = "blockstone-durability";
/// File in that directory with a stamped sector that names the run.
pub const HEADER: &str = "run";

/// Returns all writers of these methods and patterns that make sense together.
pub fn streams(methods: &[Method], patterns: &[Pattern]) -> Vec<Stream> {
    let each = |&pattern: &Pattern| methods.iter().map(move |&method| Stream { method, pattern });
    patterns.iter().flat_map(each).collect()
}

pub fn block_bytes(sequence: u64) -> u64 {
    SIZES[(sequence % ROUND) as usize]
}

/// Returns the bytes of the blocks before this one in a circle or file of blocks.
fn offset(index: u64) -> u64 {
    let within: u64 = SIZES[..(index % ROUND) as usize].iter().sum();
    index / ROUND * ROUND_BYTES + within
}

/// Location of the block with this sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// File, relative to the directory; empty on a device.
    pub file: String,
    pub offset_bytes: u64,
    pub bytes: u64,
}

pub fn place(number: u16, pattern: Pattern, sequence: u64) -> Extent {
    let bytes = block_bytes(sequence);
    let (file, offset_bytes) = match pattern {
        Pattern::Overwrite => (format!("{number:02}"), offset(sequence % SLOTS)),
        Pattern::Append => (appended(number, sequence), offset(sequence % KEPT)),
        Pattern::Create => (format!("{number:02}/{sequence:012}"), 0),
        Pattern::Rename => (format!("{number:02}/current"), 0),
    };
    Extent { file, offset_bytes, bytes }
}

fn appended(number: u16, sequence: u64) -> String {
    format!("{number:02}/{:09}", sequence / KEPT)
}

/// Returns the file that is no longer needed when the write with this sequence begins.
pub fn outdated(number: u16, pattern: Pattern, sequence: u64) -> Option<String> {
    match pattern {
        Pattern::Append if sequence.is_multiple_of(KEPT) => {
            Some(appended(number, sequence.checked_sub(2 * KEPT)?))
        }
        Pattern::Create => Some(place(number, pattern, sequence.checked_sub(KEPT)?).file),
        _ => None,
    }
}

/// Returns the first of the acknowledged blocks up to `last` that nothing has replaced.
pub fn first_checked(pattern: Pattern, last: u64) -> u64 {
    match pattern {
        Pattern::Rename => last.max(1),
        _ => last.saturating_sub(HORIZON - 1).max(1),
    }
}

/// Returns the offset of a writer's part of a device.
pub fn part_offset(number: u16) -> u64 {
    (u64::from(number) + 1) * PART_BYTES
}

/// Returns the minimum size of a device.
pub fn device_bytes(streams: usize) -> u64 {
    (streams as u64 + 1) * PART_BYTES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn blocks_in_a_circle_do_not_overlap_and_keep_their_size() {
        assert!(
            u64::MAX - first_checked(Pattern::Append, u64::MAX) < HORIZON,
            "of a hostile witness"
        );
        assert!(SLOTS.is_multiple_of(ROUND) && KEPT.is_multiple_of(ROUND) && HORIZON <= SLOTS);
        let mut end = 0;
        for sequence in 0..SLOTS {
            let at = place(1, Pattern::Overwrite, sequence);
            assert_eq!(at.offset_bytes, end);
            assert_eq!(at, place(1, Pattern::Overwrite, sequence + 3 * SLOTS), "the next round");
            end += at.bytes;
        }
        assert_eq!(end, SLOTS_BYTES);
    }

    #[test]
    fn what_is_looked_for_was_not_removed() {
        for pattern in [Pattern::Append, Pattern::Create] {
            let mut removed = BTreeMap::new();
            for sequence in 1..=4 * KEPT {
                if let Some(file) = outdated(0, pattern, sequence) {
                    removed.entry(file).or_insert(sequence);
                }
            }
            for last in 1..=3 * KEPT {
                let first = first_checked(pattern, last);
                assert!(last + 1 - first <= HORIZON);
                let started = last + WINDOW + 1;
                for sequence in first..=last {
                    let file = place(0, pattern, sequence).file;
                    let gone = removed.get(&file).is_some_and(|&at| at <= started);
                    assert!(!gone, "{pattern:?} {sequence} of {last}: {file}");
                }
            }
        }
        assert_eq!(first_checked(Pattern::Rename, 9), 9);
        assert_eq!(first_checked(Pattern::Overwrite, 0), 1, "none");
    }
}
