//! Merges the counts of several scans: the result is that of an array that holds the files of all.

use std::collections::HashMap;

use crate::sets::{EMPTY, FileId, SetId, Sets};
use crate::table::Occurrence;

use super::Counter;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one counted {this}, the other {that}")]
pub struct MergeError {
    pub this: String,
    pub that: String,
}

impl Counter {
    /// Adds the counts of another scan of other files, which are numbered after those of this one.
    /// Unless both counted the same grids, masks and compressors, and kept details of blocks of one
    /// size, nothing is added.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if let Some(error) = self.differs(other) {
            return Err(error);
        }
        let files = self.files.len() as FileId;
        self.page_rows.add(&other.page_rows);
        // Maps sets of the other scan to sets of this one.
        let mut translated = HashMap::from([(EMPTY, EMPTY)]);
        for index in 0..self.grids.len() {
            let (mine, theirs) = (&mut self.grids[index], &other.grids[index]);
            mine.blocks += theirs.blocks;
            mine.zero_blocks += theirs.zero_blocks;
            mine.table.shrink_share(theirs.table.share_log2());
            mine.sample.limit_share(theirs.sample.share_log2().max(theirs.table.share_log2()));
            for entry in theirs.table.entries() {
                let theirs_set = entry.set();
                let mut joined = |set| append(&mut self.sets, &other.sets, set, theirs_set, files);
                match mine.table.add(entry.behind(files)) {
                    Occurrence::Outside => continue,
                    Occurrence::New(entry) => {
                        entry.set_set(
                            *translated.entry(theirs_set).or_insert_with(|| joined(EMPTY)),
                        );
                    }
                    Occurrence::Again(entry) => entry.set_set(joined(entry.set())),
                }
                if let Some(&sizes) = theirs.sample.get(entry.print) {
                    mine.sample.put(entry.print, sizes);
                }
            }
            mine.sample.limit_share(mine.table.share_log2());
            mine.block_sizes.merge(&theirs.block_sizes);
        }
        for (mine, theirs) in self.masked.grids_mut().zip(other.masked.grids()) {
            mine.blocks += theirs.blocks;
            mine.zero_blocks += theirs.zero_blocks;
            mine.table.shrink_share(theirs.table.share_log2());
            for entry in theirs.table.entries() {
                mine.table.add(*entry);
            }
        }
        self.chunks.merge(&other.chunks, files);
        self.detail.merge(&other.detail);
        self.files.extend(other.files.iter().cloned());
        Ok(())
    }

    fn differs(&self, other: &Self) -> Option<MergeError> {
        let describe = |counter: &Self| {
            let codecs: Vec<String> = counter.plan.codecs.iter().map(ToString::to_string).collect();
            let chunks = counter.plan.chunks;
            let mut names = counter.table_names();
            names.truncate(counter.grids.len());
            let masks = counter.plan.masks.len();
            let details = counter.grids[counter.plan.primary()].grid.block_bytes;
            format!(
                "{}, details of {details}; {masks} masks, compressors {}, chunks: {chunks}",
                names.join(", "),
                codecs.join(", ")
            )
        };
        let (this, that) = (describe(self), describe(other));
        (this != that).then_some(MergeError { this, that })
    }
}

/// Returns `set` extended by all files of the other's set `more`.
fn append(mine: &mut Sets, theirs: &Sets, set: SetId, more: SetId, files: FileId) -> SetId {
    let mut last_first: Vec<FileId> = theirs.files(more).collect();
    last_first.reverse();
    last_first.iter().fold(set, |set, &file| mine.with(set, file + files))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{count, files, plan};
    use super::*;

    /// Returns everything that findings are based on, in comparable form.
    fn known(counter: &Counter) -> Vec<(usize, u128, u32, Vec<FileId>)> {
        let grids = counter.grids().iter().enumerate();
        let mut all: Vec<_> = grids
            .flat_map(|(index, count)| {
                count.table.entries().map(move |entry| {
                    let files = counter.sets.files(entry.set()).collect();
                    (index, entry.print, entry.count, files)
                })
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn two_scans_merged_are_one_scan_of_all() {
        for seed in 40..46 {
            let (first, second) = (files(seed), files(seed + 100));
            let all: Vec<Vec<u8>> = first.iter().chain(&second).cloned().collect();
            let mut merged = count(plan().with_masks(), &first);
            merged.merge(&count(plan().with_masks(), &second)).unwrap();
            let whole = count(plan().with_masks(), &all);
            assert!(known(&merged) == known(&whole), "seed {seed}");
            assert_eq!(merged.files(), whole.files());
            let ratio = |counter: &Counter| counter.chunks.ratio().unwrap_or_default();
            assert!((ratio(&merged) - ratio(&whole)).abs() < 1e-9);
            for (a, b) in merged.masked.grids().zip(whole.masked.grids()) {
                assert_eq!((a.blocks, a.table.len()), (b.blocks, b.table.len()));
            }
        }
    }

    #[test]
    fn a_counter_kept_as_document_and_rows_goes_on_where_it_was() {
        let all = files(60);
        let whole = count(plan().with_masks(), &all);
        let started = count(plan().with_masks(), &all[..2]);
        let document = serde_json::to_string(&started).unwrap();
        let mut again: Counter = serde_json::from_str(&document).unwrap();
        again.awake().unwrap();
        for (parent, file) in started.set_rows() {
            again.put_set(parent, file).unwrap();
        }
        for row in started.rows() {
            again.put(row).unwrap();
        }
        super::super::tests::feed(&mut again, &all[2..]);
        assert!(known(&again) == known(&whole));
        assert_eq!(again.detail.strips, whole.detail.strips);
        assert_eq!(again.detail.runs(), whole.detail.runs());
        assert_eq!(again.detail.drawn(), whole.detail.drawn());
        for (again, whole) in again.grids().iter().zip(whole.grids()) {
            assert!(again.block_sizes.rows().eq(whole.block_sizes.rows()));
        }
        let bad = super::super::Row { table: 999, ..started.rows().next().unwrap() };
        assert!(again.put(bad).is_err());
    }

    #[test]
    fn chunks_of_a_share_repeat_as_often_as_all_of_them() {
        let mut bytes = vec![0; 24 << 20];
        blockstone_base::rng::fill(8, &mut bytes);
        let mut small = plan();
        small.memory_bytes = 512 << 10;
        let scan = || count(small.clone(), std::slice::from_ref(&bytes));
        let mut merged = scan();
        assert!(merged.chunks.table.share_log2() > 0);
        for times in 2..6 {
            merged.merge(&scan()).unwrap();
            let ratio = merged.chunks.ratio().unwrap();
            assert!((ratio - f64::from(times)).abs() < 1e-9, "{ratio}");
        }
    }

    #[test]
    fn scans_of_different_grids_are_not_merged() {
        let sizes = [blockstone_base::Bytes(8192)];
        let other = crate::plan::Plan::new(&sizes, &[0], sizes[0]).unwrap();
        let error = count(plan(), &[]).merge(&count(other, &[])).unwrap_err();
        assert!(error.to_string().contains("blocks of 4096 from 512"), "{error}");
    }
}
