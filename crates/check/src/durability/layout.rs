//! Which writer writes which block where: it follows from the numbers of writer and write alone,
//! so that a verification needs nothing but these.

use crate::durability::findings::{Method, Pattern, Stream};

/// Blocks of a writer take turns in these sizes.
const SIZES: [u64; 4] = [4096, 16_384, 4096, 65_536];
const ROUND: u64 = SIZES.len() as u64;
const ROUND_BYTES: u64 = SIZES[0] + SIZES[1] + SIZES[2] + SIZES[3];
pub const BLOCK_MAX: usize = 65_536;

/// Blocks in the circle of an overwriting writer.
pub const SLOTS: u64 = 128;
/// What they take.
const SLOTS_BYTES: u64 = SLOTS / ROUND * ROUND_BYTES;
/// Blocks after which an appending writer begins another file, and files that a creating one keeps.
pub const KEPT: u64 = 256;
/// Writes of one writer that the witness has not confirmed yet.
pub const WINDOW: u64 = 32;
/// The newest acknowledged blocks of a writer that are looked for after a cut. All of them are
/// there: what is older may have been removed or replaced by blocks within the window.
pub const HORIZON: u64 = 128;

/// Parts of a device: its header lies in the first, and each writer has one of its own.
pub const PART_BYTES: u64 = 4 << 20;
const _: () = assert!(SLOTS_BYTES <= PART_BYTES, "a circle fits its part");
/// The number of writer in the header's stamp.
pub const HEADER_STREAM: u16 = u16::MAX;

/// The directory in which everything lies, below the path.
pub const DIRECTORY: &str = "blockstone-durability";
/// In it, a stamped sector that names the run.
pub const HEADER: &str = "run";

/// All writers of these methods and patterns that make sense together.
pub fn streams(methods: &[Method], patterns: &[Pattern]) -> Vec<Stream> {
    let each = |&pattern: &Pattern| methods.iter().map(move |&method| Stream { method, pattern });
    patterns.iter().flat_map(each).collect()
}

pub fn block_bytes(sequence: u64) -> u64 {
    SIZES[(sequence % ROUND) as usize]
}

/// Bytes of the blocks before this one in a circle or file of blocks.
fn offset(index: u64) -> u64 {
    let within: u64 = SIZES[..(index % ROUND) as usize].iter().sum();
    index / ROUND * ROUND_BYTES + within
}

/// Where the block with this sequence lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its file, below the directory; empty on a device.
    pub file: String,
    pub offset_bytes: u64,
    pub bytes: u64,
}

pub fn place(number: u16, pattern: Pattern, sequence: u64) -> Place {
    let bytes = block_bytes(sequence);
    let (file, offset_bytes) = match pattern {
        Pattern::Overwrite => (format!("{number:02}"), offset(sequence % SLOTS)),
        Pattern::Append => (appended(number, sequence), offset(sequence % KEPT)),
        Pattern::Create => (format!("{number:02}/{sequence:012}"), 0),
        Pattern::Rename => (format!("{number:02}/current"), 0),
    };
    Place { file, offset_bytes, bytes }
}

fn appended(number: u16, sequence: u64) -> String {
    format!("{number:02}/{:09}", sequence / KEPT)
}

/// The file that nobody asks for any more when the write with this sequence begins.
pub fn outdated(number: u16, pattern: Pattern, sequence: u64) -> Option<String> {
    match pattern {
        Pattern::Append if sequence.is_multiple_of(KEPT) => {
            Some(appended(number, sequence.checked_sub(2 * KEPT)?))
        }
        Pattern::Create => Some(place(number, pattern, sequence.checked_sub(KEPT)?).file),
        _ => None,
    }
}

/// The first of the acknowledged blocks up to `last` that nothing has replaced.
pub fn first_checked(pattern: Pattern, last: u64) -> u64 {
    match pattern {
        Pattern::Rename => last.max(1),
        _ => last.saturating_sub(HORIZON - 1).max(1),
    }
}

/// Where the part of a writer begins on a device.
pub fn part_offset(number: u16) -> u64 {
    (u64::from(number) + 1) * PART_BYTES
}

/// What a device must hold at least.
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
