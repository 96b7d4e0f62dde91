//! A counter's contents as rows, to keep them and to fill a counter again.

use crate::compress::Sizes;
use crate::digest::Zeros;
use crate::page::Field;
use crate::sets::{FileId, SetId, Sets};
use crate::table::{Entry, Table};

use super::Counter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The table, as an index into [`Counter::table_names`].
    pub table: usize,
    pub entry: Entry,
    /// How large it is behind the compressors, if it was compressed.
    pub sizes: Option<Sizes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    #[error("a content names table {table}, but there are {tables}")]
    Table { table: usize, tables: usize },
    #[error("a content names file set {set}, but there are {sets}")]
    Set { set: u32, sets: usize },
    #[error("file set {number} does not follow from those before it")]
    Order { number: usize },
    /// A content that occurs never, or outside the share that is kept.
    #[error("a content of table {table} cannot have been counted")]
    Impossible { table: usize },
}

impl Counter {
    /// What the tables count, in their order: a grid, a grid under a mask, chunks, or drawn blocks.
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
        grids.chain(masked).chain(others).collect()
    }

    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let tables = self.grids.iter().map(|count| &count.table);
        let tables = tables.chain(self.masked.grids().map(|masked| &masked.table));
        let tables = tables.chain([&self.chunks.table, &self.detail.drawn]);
        tables.enumerate().flat_map(move |(table, contents)| {
            let sample = self.grids.get(table).map(|count| &count.sample);
            contents.entries().map(move |&entry| {
                let sizes = sample.and_then(|sample| sample.get(entry.print).copied());
                Row { table, entry, sizes }
            })
        })
    }

    /// Makes a counter that came from a document ready to be filled.
    pub fn awake(&mut self) {
        let level_max = self.plan.levels().last().copied().unwrap_or_default();
        self.zeros = Zeros::up_to(level_max);
        for lane in &mut self.lanes {
            lane.blocks_now = vec![Vec::new(); level_max + 1];
        }
    }

    /// The next set of files, in the order of [`Sets::rows`].
    ///
    /// # Errors
    /// When it does not follow from those before it.
    pub fn put_set(&mut self, parent: u32, file: FileId) -> Result<(), RowError> {
        let number = self.sets.count();
        match self.sets.push_row(parent, file) {
            Some(set) if set == SetId(number as u32) => Ok(()),
            _ => Err(RowError::Order { number }),
        }
    }

    /// One content of [`Counter::rows`].
    ///
    /// # Errors
    /// When it cannot be of this counter.
    pub fn put(&mut self, row: Row) -> Result<(), RowError> {
        let Row { table, entry, sizes } = row;
        let sets = self.sets.count();
        if table < self.grids.len() {
            let set = entry.set();
            if set.0 as usize >= sets {
                return Err(RowError::Set { set: set.0, sets });
            }
            if let Some(sizes) = sizes {
                self.grids[table].sample.put(entry.print, sizes);
            }
        }
        let Some(contents) = self.table_mut(table) else {
            let tables = self.table_names().len();
            return Err(RowError::Table { table, tables });
        };
        if entry.count == 0 || !contents.keeps(entry.print) {
            return Err(RowError::Impossible { table });
        }
        contents.add(entry);
        Ok(())
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
