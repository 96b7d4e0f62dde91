//! The columns read from a table, and the purpose of each value of a row.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use crate::catalogue::Catalogue;
use crate::hash::Lot;
use crate::settings::{Chosen, Settings};
use crate::source::{Row, Scan, ScanKey};

/// A key that others reference: a table and columns.
pub type Referenced = (usize, Vec<usize>);

/// Returns all referenced keys, each once and sorted.
pub fn referenced(catalogue: &Catalogue) -> Vec<Referenced> {
    let mut all: Vec<Referenced> =
        catalogue.keys.iter().map(|key| (key.references, key.referenced.clone())).collect();
    all.sort();
    all.dedup();
    all
}

/// The scan of a table, with positions in its keys.
#[derive(Clone, Debug)]
pub struct Shape {
    pub scan: Scan,
    pub lot: Lot,
    /// Position of the value by which a row draws; `None` if the source draws.
    identity: Option<usize>,
    /// Foreign keys of the table.
    pub foreign: Vec<ScannedKey>,
    /// Referenced keys of the table: index and position.
    pub referenced: Vec<(usize, usize)>,
}

/// A foreign key, as rows of a scan have it.
#[derive(Clone, Copy, Debug)]
pub struct ScannedKey {
    /// Index in the catalogue.
    pub key: usize,
    /// Position in the keys of the scan.
    pub position: usize,
    /// Index of the referenced key.
    pub referenced: usize,
}

impl Shape {
    pub fn new(
        catalogue: &Catalogue,
        all: &[Referenced],
        table: usize,
        settings: &Settings,
        draws: bool,
    ) -> Self {
        let own = catalogue.tables[table].identity.clone();
        let own =
            (!draws).then(|| ScanKey { like: (table, own.clone()), columns: own, when: None });
        let identity = own.is_some().then_some(0);
        let mut keys: Vec<ScanKey> = own.into_iter().collect();
        let mut position = |key: ScanKey| {
            keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                keys.push(key);
                keys.len() - 1
            })
        };
        let mut referenced = Vec::new();
        for (at, (_, columns)) in all.iter().enumerate().filter(|(_, it)| it.0 == table) {
            let key =
                ScanKey { columns: columns.clone(), like: (table, columns.clone()), when: None };
            referenced.push((at, position(key)));
        }
        let mut foreign = Vec::new();
        for (at, key) in catalogue.keys.iter().enumerate().filter(|(_, key)| key.table == table) {
            let like = (key.references, key.referenced.clone());
            let Ok(referenced) = all.binary_search(&like) else { continue };
            let key = ScanKey { columns: key.columns.clone(), like, when: key.when.clone() };
            foreign.push(ScannedKey { key: at, position: position(key), referenced });
        }
        let lot = Lot::new(settings.percent, settings.seed, &catalogue.tables[table].name);
        let chosen = settings.chosen(table);
        let scan = Scan {
            table,
            keys,
            filtered: chosen == Chosen::Matching,
            lot: (draws && chosen == Chosen::Share).then_some(lot),
            seeds_only: false,
        };
        Self { scan, lot, identity, foreign, referenced }
    }

    /// Returns the scan without rows that are not seeds.
    pub fn seeds_only(&self) -> Scan {
        Scan { seeds_only: true, ..self.scan.clone() }
    }

    /// Returns the number that the row drew.
    pub fn drawn(&self, row: Row<'_>) -> u64 {
        let identity = || self.identity.and_then(|at| row.keys.get(at).copied().flatten());
        row.drawn.unwrap_or_else(|| self.lot.draw(identity().unwrap_or_default()))
    }
}

/// Hasher that uses the bits of a hash unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

pub type ValueMap<T> = HashMap<u128, T, BuildHasherDefault<AsIs>>;
pub type ValueSet = HashSet<u128, BuildHasherDefault<AsIs>>;
