//! Contents and location of rows, derived from the seed, so that each loader can compute its part.

use blockstone_base::rng;
use blockstone_base::units::Bytes;
use blockstone_instance::{Permutation, RedoStress};

use super::{Chunk, Table};
use crate::spec::TargetSpec;
use crate::target::Demand;

/// Columns of a row in addition to its key.
pub const COLUMNS: usize = 19;
pub const COLUMN_BYTES: usize = 128;
pub const ROW_BYTES: usize = COLUMNS * COLUMN_BYTES;
/// Bytes of an order in addition to its number: about ten lines of 64 bytes.
pub const ORDER_BYTES: usize = 5 * COLUMN_BYTES;
/// Columns changed by a light update.
const LITE_COLUMNS: usize = 2;

/// The tables of a schema that are filled before sessions start.
pub const LOADED_TABLES: [Table; 2] = [Table::Rows, Table::Scan];

#[derive(Clone, Debug)]
pub struct Content {
    seed: u64,
    rows: u64,
    scan_rows: u64,
    order_rows: u64,
    copies: u32,
    schemas: u32,
    random_bytes: usize,
    changed: usize,
}

/// A row as it is loaded.
pub struct ContentRow {
    pub place: u64,
    pub key: u64,
    /// All columns, then the ballast.
    pub bytes: Vec<u8>,
}

impl Content {
    pub fn new(spec: &TargetSpec) -> Self {
        Self {
            seed: spec.seed,
            rows: spec.rows,
            scan_rows: spec.scan_rows,
            order_rows: spec.order_rows,
            copies: spec.copies,
            schemas: spec.schemas,
            random_bytes: (COLUMN_BYTES as f64 * spec.obfuscate.clamp(0.0, 1.0)).round() as usize,
            changed: match spec.redo_stress {
                RedoStress::Lite => LITE_COLUMNS,
                RedoStress::Heavy => COLUMNS,
            },
        }
    }

    pub fn schemas(&self) -> u32 {
        self.schemas
    }

    pub fn rows(&self, table: Table) -> u64 {
        match table {
            Table::Rows => self.rows,
            Table::Scan => self.scan_rows,
            Table::Orders | Table::Copy(_) => 0,
        }
    }

    /// Rows of all tables that exist at a time as copies of the rows.
    pub fn copied_rows(&self) -> u64 {
        u64::from(self.schemas).saturating_mul(self.rows).saturating_mul(self.copies.into())
    }

    pub fn has_orders(&self) -> bool {
        self.order_rows > 0
    }

    pub fn all_rows(&self) -> u64 {
        u64::from(self.schemas) * (self.rows + self.scan_rows)
    }

    /// Returns a demand of `row_bytes` per row plus `aside` in the first place of `spec`, and
    /// nothing in the others.
    pub fn demand(&self, spec: &TargetSpec, row_bytes: u64, aside: u64) -> Demand {
        let mut places = vec![Bytes(0); spec.places.len()];
        if let Some(first) = places.first_mut() {
            let orders = u64::from(self.schemas).saturating_mul(self.order_rows);
            let rows = self.all_rows().saturating_add(orders).saturating_add(self.copied_rows());
            *first = Bytes(rows.saturating_mul(row_bytes).saturating_add(aside));
        }
        Demand { places }
    }

    pub fn changed(&self) -> usize {
        self.changed
    }

    /// Returns all places in chunks of at most `most`.
    pub fn chunks(&self, most: u64) -> Vec<Chunk> {
        let tables =
            (0..self.schemas).flat_map(|schema| LOADED_TABLES.map(|table| (schema, table)));
        tables
            .flat_map(|(schema, table)| {
                let rows = self.rows(table);
                (0..rows).step_by(most.max(1) as usize).map(move |first| Chunk {
                    schema,
                    table,
                    first,
                    rows: most.min(rows - first),
                })
            })
            .collect()
    }

    /// Returns the rows of `chunk`, each with `ballast` bytes more.
    pub fn rows_of<'a>(
        &'a self,
        chunk: &Chunk,
        ballast: usize,
    ) -> impl Iterator<Item = ContentRow> + 'a {
        let Chunk { schema, table, first, rows } = *chunk;
        let order = Permutation::new(self.rows(table), rng::mix(self.seed ^ u64::from(schema)));
        (first..first + rows).map(move |place| {
            let mut bytes = vec![0; ROW_BYTES + ballast];
            let name = u64::from(schema) << 1 | u64::from(table == Table::Scan);
            self.write(rng::mix(self.seed ^ rng::mix(name)) ^ rng::mix(place), &mut bytes);
            ContentRow { place, key: order.origin(place), bytes }
        })
    }

    /// Returns the data written by update number `count` of a session.
    pub fn change(&self, session: u32, count: u64) -> Change {
        let mut bytes = vec![0; self.changed * COLUMN_BYTES];
        self.write(rng::mix(self.seed ^ rng::mix(count << 20 | u64::from(session))), &mut bytes);
        Change { bytes }
    }

    /// Returns the contents of order `number` of a schema.
    pub fn order(&self, schema: u32, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; ORDER_BYTES];
        self.write(rng::mix(self.seed ^ rng::mix(number << 20 | u64::from(schema))), &mut bytes);
        bytes
    }

    /// Fills the requested part of each column with incompressible bytes and the rest with `X`.
    fn write(&self, key: u64, bytes: &mut [u8]) {
        rng::fill(key, bytes);
        for column in bytes.chunks_mut(COLUMN_BYTES) {
            let random = self.random_bytes.min(column.len());
            column[random..].fill(b'X');
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    bytes: Vec<u8>,
}

impl Change {
    pub fn columns(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(COLUMN_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn content(obfuscate: f64) -> Content {
        let spec =
            TargetSpec { schemas: 2, rows: 100, scan_rows: 7, obfuscate, ..Default::default() };
        Content::new(&spec)
    }

    #[test]
    fn chunks_hold_every_key_of_every_table_once() {
        let content = content(1.0);
        let mut keys = HashSet::new();
        for chunk in content.chunks(33) {
            for ContentRow { place, key, .. } in content.rows_of(&chunk, 0) {
                assert!(key < content.rows(chunk.table) && place >= chunk.first);
                assert!(keys.insert((chunk.schema, chunk.table == Table::Scan, key)));
            }
        }
        assert_eq!(keys.len() as u64, content.all_rows());
    }

    #[test]
    fn rows_differ_and_the_asked_part_of_them_is_random() {
        let chunk = Chunk { schema: 0, table: Table::Rows, first: 0, rows: 2 };
        let content = content(0.25);
        let rows: Vec<_> = content.rows_of(&chunk, 64).map(|row| row.bytes).collect();
        assert_ne!(rows[0][..32], rows[1][..32]);
        assert_eq!(rows[0].len(), ROW_BYTES + 64);
        assert!(rows[0][32..128].iter().all(|&byte| byte == b'X'));
        assert_ne!(content.change(0, 1), content.change(1, 1));
        assert_eq!(content.change(0, 1).columns().count(), 2);
    }
}
