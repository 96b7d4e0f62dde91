//! A counter's contents as rows, for saving and restoring it.

use crate::compress::Sizes;
use crate::digest::Zeros;
use crate::page::Field;
use crate::sets::{FileId, SetId, Sets};
use crate::table::{Entry, Table};

use super::Counter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index of the table in [`Counter::table_names`].
    pub table: usize,
    pub entry: Entry,
    /// Sizes under the compressors, if it was compressed.
    pub sizes: Option<Sizes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The counter's parts do not fit its plan, or each other.
    #[error("its counter is not one that a scan of its plan leaves")]
    Counter,
    #[error("a file set names file {file}, but there are {files}")]
    File { file: FileId, files: usize },
    #[error("a content names table {table}, but there are {tables}")]
    Table { table: usize, tables: usize },
    #[error("a content names file set {set}, but there are {sets}")]
    Set { set: u32, sets: usize },
    #[error("file set {number} does not follow from those before it")]
    Order { number: usize },
    /// A content with a count of zero, or outside the share that is kept.
    #[error("a content of table {table} cannot have been counted")]
    Impossible { table: usize },
}

impl Counter {
    /// Names of the tables in order: each counts a grid, a grid under a mask, chunks, drawn blocks,
    /// or blocks of a grid that were drawn to be compressed.
    pub fn table_names(&self) -> Vec<String> {
        let grids = self.grids.iter().map(|count| {
            let grid = count.grid;
            format!("blocks of {} from {}", grid.block_bytes, grid.offset_bytes)
        });
        let masked = self.masked.grids().map(|masked| {
            let names: Vec<&str> = masked.mask.fields().map(Field::name).collect();
            format!("blocks of {} from 0 without {}", masked.grid.block_bytes, names.join("+"))
        });
        let others = ["chunks", "drawn blocks"].map(str::to_owned);
        let grids: Vec<String> = grids.collect();
        let drawn: Vec<String> = grids.iter().map(|name| format!("drawn {name}")).collect();
        grids.into_iter().chain(masked).chain(others).chain(drawn).collect()
    }

    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let tables = self.grids.iter().map(|count| &count.table);
        let tables = tables.chain(self.masked.grids().map(|masked| &masked.table));
        let tables = tables.chain([&self.chunks.table, &self.detail.drawn]);
        let first_drawn = self.first_drawn();
        let drawn = self.grids.iter().zip(first_drawn..).flat_map(|(count, table)| {
            let rows = count.block_sizes.rows();
            rows.map(move |(entry, sizes)| Row { table, entry, sizes })
        });
        let contents = tables.enumerate().flat_map(move |(table, contents)| {
            let sample = self.grids.get(table).map(|count| &count.sample);
            contents.entries().map(move |&entry| {
                let sizes = sample.and_then(|sample| sample.get(entry.print).copied());
                Row { table, entry, sizes }
            })
        });
        contents.chain(drawn)
    }

    /// Index of the first table of blocks that were drawn to be compressed.
    fn first_drawn(&self) -> usize {
        self.grids.len() + self.masked.grids().count() + 2
    }

    /// Prepares a deserialized counter to be filled.
    ///
    /// # Errors
    /// If no scan can have produced such a counter.
    pub fn awake(&mut self) -> Result<(), RowError> {
        if !self.is_sound() {
            return Err(RowError::Counter);
        }
        let level_max = self.plan.levels().last().copied().unwrap_or_default();
        self.zeros = Zeros::up_to(level_max);
        for lane in &mut self.lanes {
            lane.blocks_now = vec![Vec::new(); level_max + 1];
        }
        Ok(())
    }

    /// Adds the next set of files, in the order of [`Sets::rows`].
    pub fn put_set(&mut self, parent: u32, file: FileId) -> Result<(), RowError> {
        let files = self.files.len();
        if file as usize >= files {
            return Err(RowError::File { file, files });
        }
        let number = self.sets.count();
        match self.sets.push_row(parent, file) {
            Some(set) if set == SetId(number as u32) => Ok(()),
            _ => Err(RowError::Order { number }),
        }
    }

    /// Adds one content of [`Counter::rows`].
    pub fn put(&mut self, row: Row) -> Result<(), RowError> {
        let Row { table, entry, sizes } = row;
        let sets = self.sets.count();
        let first_drawn = self.first_drawn();
        let drawn = table.checked_sub(first_drawn);
        let grid = drawn.unwrap_or(table);
        let fits = |most: u32| sizes.is_none_or(|sizes| sizes.iter().all(|&size| size <= most));
        if entry.first.file() as usize >= self.files.len()
            || entry.count == 0
            || self.grids.get(grid).is_some_and(|count| !fits(count.grid.block_bytes))
        {
            return Err(RowError::Impossible { table });
        }
        if drawn.is_some()
            && let Some(count) = self.grids.get_mut(grid)
        {
            count.block_sizes.put_row(&entry, sizes);
            return Ok(());
        }
        if let Some(count) = self.grids.get_mut(table) {
            let set = entry.set();
            if set.0 as usize >= sets {
                return Err(RowError::Set { set: set.0, sets });
            }
            if let Some(sizes) = sizes {
                count.sample.put(entry.print, sizes);
            }
        }
        let Some(contents) = self.table_mut(table) else {
            let tables = self.table_names().len();
            return Err(RowError::Table { table, tables });
        };
        if !contents.keeps(entry.print) {
            return Err(RowError::Impossible { table });
        }
        contents.add(entry);
        // Contents with identical leading bits would shrink the share to nothing.
        if contents.is_sound() { Ok(()) } else { Err(RowError::Impossible { table }) }
    }

    pub fn set_rows(&self) -> impl Iterator<Item = (u32, FileId)> + '_ {
        Sets::rows(&self.sets)
    }

    fn table_mut(&mut self, table: usize) -> Option<&mut Table> {
        let tables = self.grids.iter_mut().map(|count| &mut count.table);
        let tables = tables.chain(self.masked.grids_mut().map(|masked| &mut masked.table));
        tables.chain([&mut self.chunks.table, &mut self.detail.drawn]).nth(table)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::super::tests::{count, files, plan};
    use super::*;
    use crate::table::Location;

    fn document() -> Json {
        serde_json::to_value(count(plan().with_masks(), &files(3))).unwrap()
    }

    /// Result of waking a document in which one value is replaced.
    fn woken(path: &str, value: Json) -> Result<(), RowError> {
        let mut document = document();
        *document.pointer_mut(path).unwrap() = value;
        serde_json::from_value::<Counter>(document).unwrap().awake()
    }

    #[test]
    fn a_counter_whose_parts_do_not_fit_its_plan_is_refused() {
        assert_eq!(woken("/zero_segments", 0.into()), Ok(()));
        for (path, value) in [
            ("/plan/primary", 99.into()),
            ("/plan/grids", Json::Array(Vec::new())),
            ("/plan/grids/0/block_bytes", 0.into()),
            ("/plan/grids/0/block_bytes", u32::MAX.into()),
            ("/plan/masks", Json::Array(Vec::new())),
            ("/grids", Json::Array(Vec::new())),
            ("/grids/0/zero_blocks", u64::MAX.into()),
            ("/grids/0/table/share_log2", 64.into()),
            ("/grids/0/table/slots_max", 0.into()),
            ("/grids/0/sample/share_log2", u32::MAX.into()),
            ("/lanes", Json::Array(Vec::new())),
            ("/lanes/0/units/left", 1000.into()),
            ("/lanes/0/tower/halves", Json::Array(Vec::new())),
            ("/lanes/0/grids", Json::Array(Vec::new())),
            ("/masked/levels", Json::Array(vec![60.into()])),
            ("/masked/lanes/0/grids", Json::Array(Vec::new())),
            ("/detail/strips/0/blocks", 0.into()),
            ("/detail/strips/0/bins", Json::Array(Vec::new())),
            ("/detail/block_bytes", 0.into()),
            ("/files", Json::Array(Vec::new())),
            ("/files/0/bytes", u64::MAX.into()),
        ] {
            assert_eq!(woken(path, value), Err(RowError::Counter), "{path}");
        }
    }

    #[test]
    fn rows_that_no_scan_leaves_are_refused() {
        let mut small = plan();
        small.memory_bytes = 1 << 20;
        let mut counter = count(small, &files(3));
        assert!(matches!(counter.put_set(0, 1000), Err(RowError::File { file: 1000, .. })));
        let row = |print, file| {
            let entry = Entry::new(print, Location::new(file, 0), 1);
            Row { table: 0, entry, sizes: None }
        };
        assert_eq!(counter.put(row(5, 1000)), Err(RowError::Impossible { table: 0 }));
        let large = Row { sizes: Some([u32::MAX; 4]), ..row(6, 0) };
        assert_eq!(counter.put(large), Err(RowError::Impossible { table: 0 }));
        let drawn = counter.first_drawn();
        let table = drawn + counter.plan.primary();
        let large = Row { sizes: Some([8193; 4]), table, ..row(6, 0) };
        assert_eq!(counter.put(large), Err(RowError::Impossible { table }));
        let none = Row { table: drawn + counter.grids.len(), ..row(6, 0) };
        assert!(matches!(counter.put(none), Err(RowError::Table { .. })));
        // Their leading bits are all zeros, as if they belonged to the smallest share.
        let refused = (1..1 << 20).find_map(|print| counter.put(row(print, 0)).err());
        assert_eq!(refused, Some(RowError::Impossible { table: 0 }));
    }
}
