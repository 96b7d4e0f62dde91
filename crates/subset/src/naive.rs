//! The sampling of tools that treat each table on its own, and the references that this breaks.

use crate::expected::References;
use crate::hash::value;
use crate::settings::Settings;
use crate::shape::{Shape, ValueMap, ValueSet, referenced};
use crate::source::Source;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// One entry per table of the catalogue.
    pub tables: Vec<NaiveTable>,
    /// One entry per key of the catalogue.
    pub keys: Vec<NaiveKey>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NaiveTable {
    pub source_rows: u64,
    pub rows: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NaiveKey {
    /// Rows of the sample that reference another row.
    pub references: u64,
    /// References to a row that is not in the sample.
    pub orphans: u64,
    /// The expected share of orphans: the share that is not sampled.
    pub expected_share: f64,
    /// Standard error of the share of orphans: rows with the same parent are orphaned together.
    /// `None` without references.
    pub standard_error: Option<f64>,
}

/// Samples each table on its own.
pub fn sample<S: Source>(source: &mut S, settings: &Settings) -> Result<Sampled, S::Error> {
    let catalogue = source.catalogue().clone();
    let all = referenced(&catalogue);
    let plain = Settings { chosen: Vec::new(), ..settings.clone() };
    let mut held: Vec<ValueSet> = all.iter().map(|_| ValueSet::default()).collect();
    let mut named: Vec<ValueMap<u64>> =
        catalogue.keys.iter().map(|_| ValueMap::default()).collect();
    let mut tables = Vec::new();
    for at in 0..catalogue.tables.len() {
        let shape = Shape::new(&catalogue, &all, at, &plain, source.draws());
        let mut counted = NaiveTable { source_rows: source.count(at)?, rows: 0 };
        source.scan(&shape.seeds_only(), &mut |row| {
            let key = |position: usize| row.keys.get(position).copied().flatten();
            if !shape.lot.wins(shape.drawn(row)) {
                return;
            }
            counted.rows += 1;
            for &(names, position) in &shape.referenced {
                held[names].extend(key(position).map(value));
            }
            for foreign in &shape.foreign {
                if let Some(parent) = key(foreign.position) {
                    *named[foreign.key].entry(value(parent)).or_default() += 1;
                }
            }
        })?;
        tables.push(counted);
    }
    let share = (plain.percent / 100.0).clamp(0.0, 1.0);
    let keys = catalogue.keys.iter().zip(&named).map(|(key, named)| {
        let like = (key.references, key.referenced.clone());
        let held = all.iter().position(|known| *known == like).and_then(|names| held.get(names));
        count(named, held, share)
    });
    Ok(Sampled { keys: keys.collect(), tables })
}

fn count(named: &ValueMap<u64>, held: Option<&ValueSet>, share: f64) -> NaiveKey {
    let is_held = |value: &u128| held.is_some_and(|held| held.contains(value));
    let references = References::counted(named.values().copied());
    let orphans = named.iter().filter(|(value, _)| !is_held(value)).map(|(_, rows)| rows).sum();
    let standard_error = references.standard_error(share);
    NaiveKey { references: references.rows, orphans, expected_share: 1.0 - share, standard_error }
}
