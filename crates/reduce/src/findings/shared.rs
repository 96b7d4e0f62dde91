//! Contents shared between files, and the number of occurrences of contents.

use std::collections::HashMap;

use crate::counter::{Counter, GridCount};
use crate::sets::{FileId, SetId};

/// File × file matrix of contents held by both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Files in the matrix; if there are many, those with the most shared contents.
    pub files: Vec<FileId>,
    /// Number of contents of the row's file that the column's file holds too, estimated from a
    /// share if need be; on the diagonal, all contents of the file.
    pub contents: Vec<Vec<f64>>,
}

/// Contents that occur `from` to `to` times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occurrences {
    /// Minimum number of occurrences.
    pub from: u32,
    /// Maximum number of occurrences.
    pub to: u32,
    pub contents: f64,
    /// Number of blocks with these contents.
    pub blocks: f64,
}

/// Maximum number of files in a matrix: more cannot be distinguished in a picture.
const MATRIX_FILES_MAX: usize = 64;

pub(super) fn matrix(counter: &Counter, count: &GridCount) -> Matrix {
    let sets = &counter.sets;
    let mut weights: HashMap<SetId, u64> = HashMap::new();
    for entry in count.table.entries() {
        *weights.entry(entry.set()).or_default() += 1;
    }
    let mut shared: HashMap<FileId, u64> = HashMap::new();
    for (&set, &weight) in &weights {
        let others = u64::from(sets.len(set).saturating_sub(1));
        for file in sets.files(set) {
            *shared.entry(file).or_default() += weight * others;
        }
    }
    let mut files: Vec<FileId> = shared.keys().copied().collect();
    files.sort_unstable_by_key(|file| (std::cmp::Reverse(shared[file]), *file));
    files.truncate(MATRIX_FILES_MAX);
    files.sort_unstable();
    let mut contents = vec![vec![0.0; files.len()]; files.len()];
    let scale = count.table.scale();
    for (&set, &weight) in &weights {
        let held: Vec<usize> =
            sets.files(set).filter_map(|file| files.binary_search(&file).ok()).collect();
        for &row in &held {
            for &column in &held {
                contents[row][column] += weight as f64 * scale;
            }
        }
    }
    Matrix { files, contents }
}

pub(super) fn occurrences(count: &GridCount) -> Vec<Occurrences> {
    let scale = count.table.scale();
    let mut bins = [(0_u64, 0_u64); 33];
    for entry in count.table.entries() {
        // 1, 2, 3–4, 5–8, …
        let bin = &mut bins[(entry.count - 1).checked_ilog2().map_or(0, |log| log as usize + 1)];
        bin.0 += 1;
        bin.1 += u64::from(entry.count);
    }
    let filled = bins.iter().enumerate().filter(|(_, bin)| bin.0 > 0);
    filled
        .map(|(index, &(contents, blocks))| Occurrences {
            from: if index == 0 { 1 } else { (1 << (index - 1)) + 1 },
            to: ((1_u64 << index) as u32).max(1),
            contents: contents as f64 * scale,
            blocks: blocks as f64 * scale,
        })
        .collect()
}
