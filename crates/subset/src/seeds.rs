//! Seeds that are not chosen row by row: by their parent, or a limited number per parent.

use std::collections::{BinaryHeap, HashMap};

use crate::catalogue::Catalogue;
use crate::graph::components;
use crate::hash::value;
use crate::memory::Limit;
use crate::numbers::Locators;
use crate::settings::{Chosen, Settings};
use crate::shape::{Referenced, Shape, ValueMap, ValueSet};
use crate::source::{Row, Source};

/// Bytes of a value in a set, and of a child with its parent.
const SET_BYTES: usize = 20;
const CHILD_BYTES: usize = 64;

/// The seeds of tables that were scanned to choose them.
#[derive(Debug, Default)]
pub struct Seeds(HashMap<usize, Locators>);

impl Seeds {
    pub fn of(&self, table: usize) -> Option<&Locators> {
        self.0.get(&table)
    }
}

/// Returns the key by which a table follows its parent: the one to the largest table outside its
/// own component that is not taken as a whole.
pub fn driver(catalogue: &Catalogue, settings: &Settings, table: usize) -> Option<usize> {
    let components = components(catalogue);
    let own = components.iter().find(|component| component.contains(&table))?;
    let keys = catalogue.keys.iter().enumerate();
    keys.filter(|(_, key)| {
        key.table == table
            && !own.contains(&key.references)
            && settings.chosen(key.references) != Chosen::All
    })
    .max_by_key(|(at, key)| {
        (catalogue.tables[key.references].estimated_rows, std::cmp::Reverse(*at))
    })
    .map(|(at, _)| at)
}

pub fn choose<S: Source>(
    source: &mut S,
    catalogue: &Catalogue,
    all: &[Referenced],
    settings: &Settings,
) -> Result<Seeds, S::Error> {
    let mut seeds = Seeds::default();
    if settings.cap.is_none() && !settings.stratified {
        return Ok(seeds);
    }
    let count = catalogue.tables.len();
    let follows = |table| settings.stratified.then(|| driver(catalogue, settings, table)).flatten();
    let drivers: Vec<Option<usize>> = (0..count).map(follows).collect();
    let mut parents: HashMap<usize, ValueSet> = HashMap::new();
    for table in components(catalogue).into_iter().rev().flatten() {
        let shape = Shape::new(catalogue, all, table, settings, source.draws());
        let leads = shape.referenced.iter().filter(|(names, _)| {
            let follows = |key: usize| {
                let key = &catalogue.keys[key];
                all.get(*names) == Some(&(key.references, key.referenced.clone()))
            };
            drivers.iter().flatten().any(|&key| follows(key))
        });
        let leads: Vec<(usize, usize)> = leads.copied().collect();
        let capped = settings.cap.is_some() && !shape.foreign.is_empty();
        if settings.chosen(table) == Chosen::All
            || !capped && leads.is_empty() && drivers[table].is_none()
        {
            continue;
        }
        let by = drivers[table]
            .and_then(|driver| shape.foreign.iter().find(|it| it.key == driver))
            .map(|it| (it.position, it.referenced));
        let kept = |set: &ValueSet| (set.capacity() * SET_BYTES) as u64;
        let kept = parents.values().map(kept).sum::<u64>()
            + seeds.0.values().map(Locators::bytes).sum::<u64>();
        let mut choice = Choice::new(&shape, settings, kept);
        let empty = ValueSet::default();
        let follow = by.map(|(at, names)| (at, parents.get(&names).unwrap_or(&empty)));
        source.scan(&shape.scan, &mut |row| choice.row(row, follow, &leads))?;
        choice.limit.check(&catalogue.tables[table].name)?;
        let (rows, keys) = choice.finish(leads.len());
        for ((names, _), keys) in leads.iter().zip(keys) {
            parents.entry(*names).or_default().extend(keys);
        }
        seeds.0.insert(table, rows);
    }
    Ok(seeds)
}

/// A row that may become a seed.
struct Candidate {
    locator: u64,
    drawn: u64,
    /// Its values of the keys by which other tables follow it.
    keys: Vec<Option<u128>>,
    parents: Vec<u128>,
}

/// Chooses the seeds of one table.
struct Choice<'a> {
    shape: &'a Shape,
    settings: &'a Settings,
    candidates: Vec<Candidate>,
    /// For each foreign key and parent, the lowest draws of its children, the largest on top.
    children: Vec<ValueMap<BinaryHeap<(u64, u64)>>>,
    /// Memory that other tables take, in bytes.
    kept: u64,
    limit: Limit,
}

impl<'a> Choice<'a> {
    fn new(shape: &'a Shape, settings: &'a Settings, kept: u64) -> Self {
        let children = shape.foreign.iter().map(|_| ValueMap::default()).collect();
        let limit = Limit::new(settings.memory);
        Self { shape, settings, candidates: Vec::new(), children, kept, limit }
    }

    /// Returns the memory in use, including that of other tables.
    fn bytes(&self) -> u64 {
        let each = self.candidates.last().map_or(0, |candidate| {
            size_of::<Candidate>()
                + size_of_val(&*candidate.keys)
                + candidate.parents.len() * (size_of::<u128>() + CHILD_BYTES)
        });
        self.kept + (self.candidates.len() * each) as u64
    }

    fn row(&mut self, row: Row<'_>, follow: Option<(usize, &ValueSet)>, leads: &[(usize, usize)]) {
        let key = |position: usize| row.keys.get(position).copied().flatten();
        let drawn = self.shape.drawn(row);
        let followed = follow.and_then(|(at, seeds)| Some(seeds.contains(&value(key(at)?))));
        let is_seed = match (self.settings.chosen(self.shape.scan.table), followed) {
            (Chosen::Matching, _) => row.matches,
            (_, Some(followed)) => followed,
            (_, None) => self.shape.lot.wins(drawn),
        };
        if !is_seed || self.limit.is_exceeded() {
            return;
        }
        if self.limit.is_due() {
            self.limit.take(self.bytes());
        }
        let mut parents = Vec::new();
        if let Some(cap) = self.settings.cap {
            for (foreign, children) in self.shape.foreign.iter().zip(&mut self.children) {
                let Some(parent) = key(foreign.position).map(value) else {
                    parents.push(0);
                    continue;
                };
                parents.push(parent);
                let heap = children.entry(parent).or_default();
                heap.push((drawn, row.locator));
                if heap.len() > cap as usize {
                    heap.pop();
                }
            }
        }
        let keys = leads.iter().map(|&(_, position)| key(position).map(value)).collect();
        self.candidates.push(Candidate { locator: row.locator, drawn, keys, parents });
    }

    /// Returns the seeds, and their values of each key by which other tables follow them.
    fn finish(self, leads: usize) -> (Locators, Vec<Vec<u128>>) {
        let (mut rows, mut keys) = (Locators::default(), vec![Vec::new(); leads]);
        for candidate in self.candidates {
            let own = (candidate.drawn, candidate.locator);
            let mut places = candidate.parents.iter().zip(&self.children);
            // Among the lowest draws of its parent.
            let fits = places.all(|(parent, children)| {
                children.get(parent).and_then(BinaryHeap::peek).is_none_or(|last| own <= *last)
            });
            if !fits {
                continue;
            }
            rows.insert(candidate.locator);
            for (keys, key) in keys.iter_mut().zip(candidate.keys) {
                keys.extend(key);
            }
        }
        (rows, keys)
    }
}
