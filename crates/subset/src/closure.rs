//! The closure: seeds, and all rows that they reference.

use std::collections::BTreeMap;

use crate::catalogue::Catalogue;
use crate::graph::components;
use crate::hash::Lot;
use crate::memory::{Limit, MemoryError};
use crate::numbers::Locators;
use crate::pending::Pending;
use crate::plan::{KeyPlan, Plan, Rows, TablePlan};
use crate::seeds::{self, Seeds};
use crate::settings::{Chosen, Settings};
use crate::shape::{Referenced, Shape, referenced};
use crate::source::{Row, Source};
use crate::wanted::WantedValues;

/// Whole numbers that may be fetched by key even from a small table.
const FRONTIER: u64 = 50_000;
/// Fetching a row by key takes as long as reading this many rows sequentially.
const ROWS_OF_FETCH: u64 = 8;
/// Rows of a smaller share are read faster by locator than by the lot.
const PERCENT_OF_WINNING: f64 = 5.0;
/// A smaller table is read in one statement.
const ROWS_OF_SMALL: u64 = 10_000;
/// Values per fetch.
const BATCH: usize = 25_000;

/// Returns the rows that make the sample of `source`.
pub fn close<S: Source>(source: &mut S, settings: &Settings) -> Result<Plan, S::Error> {
    let mut catalogue = source.catalogue().clone();
    let count = catalogue.keys.len();
    let followed: Vec<usize> = (0..count).filter(|key| !settings.nulled.contains(key)).collect();
    catalogue.keys = followed.iter().map(|&key| catalogue.keys[key].clone()).collect();
    let all = referenced(&catalogue);
    let seeds = seeds::choose(source, &catalogue, &all, settings)?;
    let mut closure = Closure::new(&catalogue, &all, settings, seeds);
    for component in components(&catalogue) {
        closure.component(source, &component)?;
    }
    Ok(closure.plan().of_keys(&followed, count))
}

/// Values of one referenced key.
#[derive(Default)]
struct Wanted {
    values: WantedValues,
    /// Values whose row may have been passed already, while their table's component is read.
    pending: Pending,
    numbers_max: u64,
    /// Rows that take as long to read sequentially as one takes to fetch.
    rows_of_fetch: u64,
    /// Whether several rows may have one value: the key is declared only by the user.
    repeats: bool,
}

impl Wanted {
    fn new(catalogue: &Catalogue, (table, columns): &Referenced) -> Self {
        let table = &catalogue.tables[*table];
        let is_same =
            |key: &Vec<usize>| !key.is_empty() && key.iter().all(|column| columns.contains(column));
        let is_unique = is_same(&table.identity) || table.unique.iter().any(is_same);
        let parts = table.parts.max(1) as u64;
        let rows_of_fetch = ROWS_OF_FETCH * parts;
        let numbers_max = table.estimated_rows.unwrap_or(0) / rows_of_fetch;
        let numbers_max = numbers_max.max(FRONTIER / parts);
        Self { repeats: !is_unique, numbers_max, rows_of_fetch, ..Self::default() }
    }

    /// Whether fetching the wanted rows by key is faster than scanning a table of this size.
    fn is_fetched(&self, rows: Option<u64>) -> bool {
        let fetched = self.pending.len().saturating_mul(self.rows_of_fetch);
        let is_known = !self.pending.has_overflowed() && !self.repeats;
        self.values.is_empty() || is_known && rows.is_some_and(|rows| fetched < rows)
    }

    fn want(&mut self, bytes: &[u8], by: usize) {
        if self.values.want(bytes, by as u32) {
            self.pending.push(bytes, self.numbers_max);
        }
    }
}

#[derive(Default)]
struct Taken {
    source_rows: u64,
    rows: Locators,
    /// If set, the rows are those that win this lot, and are not in `rows`.
    winning: Option<Lot>,
    seeds: u64,
    /// Rows added because of references, by key of the catalogue.
    needed: BTreeMap<u32, u64>,
}

struct Closure<'a> {
    catalogue: &'a Catalogue,
    all: &'a [Referenced],
    settings: &'a Settings,
    seeds: Seeds,
    wanted: Vec<Wanted>,
    taken: Vec<Taken>,
    references: Vec<u64>,
    limit: Limit,
}

impl<'a> Closure<'a> {
    fn new(
        catalogue: &'a Catalogue,
        all: &'a [Referenced],
        settings: &'a Settings,
        seeds: Seeds,
    ) -> Self {
        Self {
            catalogue,
            all,
            settings,
            seeds,
            wanted: all.iter().map(|key| Wanted::new(catalogue, key)).collect(),
            taken: catalogue.tables.iter().map(|_| Taken::default()).collect(),
            references: vec![0; catalogue.keys.len()],
            limit: Limit::new(settings.memory),
        }
    }

    /// Reads each table once, and then the rows wanted by rows that were read later.
    fn component<S: Source>(&mut self, source: &mut S, tables: &[usize]) -> Result<(), S::Error> {
        let draws = source.draws();
        let shape = |table| Shape::new(self.catalogue, self.all, table, self.settings, draws);
        let shapes: Vec<Shape> = tables.iter().map(|&table| shape(table)).collect();
        for shape in &shapes {
            if self.is_read_for_seeds(shape, draws) {
                self.scan_seeds(source, shape)?;
            } else {
                self.scan(source, shape)?;
            }
        }
        while let Some(shape) = shapes.iter().find(|shape| self.is_pending(shape)) {
            let overflowed =
                shape.referenced.iter().any(|&(at, _)| self.wanted[at].pending.has_overflowed());
            if overflowed {
                self.scan(source, shape)?;
            } else {
                self.fetch(source, shape)?;
            }
        }
        Ok(())
    }

    fn is_pending(&self, shape: &Shape) -> bool {
        shape.referenced.iter().any(|&(at, _)| !self.wanted[at].pending.is_empty())
    }

    /// Whether only seeds are read, because the wanted rows, if any, are fetched by key.
    fn is_read_for_seeds(&self, shape: &Shape, draws: bool) -> bool {
        let table = shape.scan.table;
        let rows = self.catalogue.tables[table].estimated_rows;
        let is_large = rows.is_none_or(|rows| rows >= ROWS_OF_SMALL);
        draws
            && is_large
            && self.seeds.of(table).is_none()
            && self.settings.chosen(table) != Chosen::All
            && shape.referenced.iter().all(|&(at, _)| self.wanted[at].is_fetched(rows))
    }

    fn scan_seeds<S: Source>(&mut self, source: &mut S, shape: &Shape) -> Result<(), S::Error> {
        let table = shape.scan.table;
        if shape.referenced.is_empty() && self.settings.percent >= PERCENT_OF_WINNING {
            self.taken[table].winning = shape.scan.lot;
        }
        source.scan(&shape.seeds_only(), &mut |row| self.row(shape, row))?;
        self.check(shape)?;
        self.taken[table].source_rows = source.count(table)?;
        Ok(())
    }

    fn scan<S: Source>(&mut self, source: &mut S, shape: &Shape) -> Result<(), S::Error> {
        for &(at, _) in &shape.referenced {
            self.wanted[at].pending.clear();
        }
        let mut rows = 0;
        source.scan(&shape.scan, &mut |row| {
            rows += 1;
            self.row(shape, row);
        })?;
        self.check(shape)?;
        self.taken[shape.scan.table].source_rows = rows;
        Ok(())
    }

    fn fetch<S: Source>(&mut self, source: &mut S, shape: &Shape) -> Result<(), S::Error> {
        for &(at, position) in &shape.referenced {
            let pending = std::mem::take(&mut self.wanted[at].pending);
            let repeats = self.wanted[at].repeats;
            let mut values = pending.into_values();
            loop {
                let wanted = &self.wanted[at].values;
                let open = values.by_ref().filter(|it| repeats || !wanted.is_found(it));
                let batch: Vec<_> = open.take(BATCH).collect();
                if batch.is_empty() {
                    break;
                }
                source.fetch(&shape.scan, position, &batch, &mut |row| self.row(shape, row))?;
                self.check(shape)?;
            }
        }
        Ok(())
    }

    fn check(&self, shape: &Shape) -> Result<(), MemoryError> {
        self.limit.check(&self.catalogue.tables[shape.scan.table].name)
    }

    /// Returns the memory taken by keys and locators.
    fn bytes(&self) -> u64 {
        let wanted: u64 = self.wanted.iter().map(|it| it.values.bytes()).sum();
        wanted + self.taken.iter().map(|it| it.rows.bytes()).sum::<u64>()
    }

    fn row(&mut self, shape: &Shape, row: Row<'_>) {
        if self.limit.is_exceeded() {
            return;
        }
        let table = shape.scan.table;
        let mut by: Option<u32> = None;
        for &(at, position) in &shape.referenced {
            let wanted = &mut self.wanted[at].values;
            let key = row.keys.get(position).copied().flatten();
            let Some(key) = key.filter(|_| !wanted.is_empty()) else { continue };
            if let Some(wanted_by) = wanted.find(key) {
                by = Some(by.map_or(wanted_by, |known| known.min(wanted_by)));
            }
        }
        let is_seed = self.is_seed(shape, row);
        if !is_seed && by.is_none() {
            return;
        }
        if self.taken[table].winning.is_none() && !self.taken[table].rows.insert(row.locator) {
            return;
        }
        if self.limit.is_due() {
            self.limit.take(self.bytes());
        }
        match by {
            _ if is_seed => self.taken[table].seeds += 1,
            Some(by) => *self.taken[table].needed.entry(by).or_default() += 1,
            None => {}
        }
        for foreign in &shape.foreign {
            if let Some(bytes) = row.keys.get(foreign.position).copied().flatten() {
                self.references[foreign.key] += 1;
                self.wanted[foreign.referenced].want(bytes, foreign.key);
            }
        }
    }

    fn is_seed(&self, shape: &Shape, row: Row<'_>) -> bool {
        if let Some(chosen) = self.seeds.of(shape.scan.table) {
            return chosen.contains(row.locator);
        }
        match self.settings.chosen(shape.scan.table) {
            Chosen::All => true,
            Chosen::Matching => row.matches,
            Chosen::Share => shape.lot.wins(shape.drawn(row)),
        }
    }

    fn plan(self) -> Plan {
        let missing: Vec<u64> = self.wanted.iter().map(|it| it.values.missing()).collect();
        let key = |(at, key): (usize, &crate::ForeignKey)| {
            let like = (key.references, key.referenced.clone());
            let missing = self.all.binary_search(&like).map_or(0, |names| missing[names]);
            KeyPlan { references: self.references[at], missing }
        };
        Plan {
            keys: self.catalogue.keys.iter().enumerate().map(key).collect(),
            tables: self.taken.into_iter().map(table).collect(),
        }
    }
}

fn table(taken: Taken) -> TablePlan {
    let needed = taken.needed.into_iter().map(|(key, rows)| (key as usize, rows));
    let mut needed: Vec<(usize, u64)> = needed.collect();
    needed.sort_by_key(|&(key, rows)| (std::cmp::Reverse(rows), key));
    let rows = if let Some(lot) = taken.winning {
        Rows::Winning(taken.seeds, lot)
    } else if taken.rows.len() == taken.source_rows {
        Rows::All
    } else {
        Rows::At(taken.rows)
    };
    TablePlan { source_rows: taken.source_rows, seeds: taken.seeds, needed, rows }
}
