//! Keys that take most rows of a source into a sample, and the rows that a sample saves if they are
//! NULL.

use crate::catalogue::Catalogue;
use crate::plan::Plan;

/// A sample with this share of all rows, most of which are there because of keys, is told about.
const MOST: f64 = 0.5;

/// A key that adds rows to a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adding {
    /// Position in the catalogue.
    pub key: usize,
    /// Rows that are in the sample because of it.
    pub rows: u64,
    pub saved: Saved,
}

/// Rows that are not in the sample if a key is NULL in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// By a plan without the key.
    Exactly(u64),
    /// All rows that are in the sample because of keys, of the table that the key references and of
    /// all that can be reached from it: others may need some of them.
    AtMost(u64),
    Unknown,
    /// The key cannot be NULL, for this reason.
    Not(String),
}

/// Whether the sample has most rows of the source, and most of them because of keys.
pub fn takes_most(plan: &Plan) -> bool {
    let source: u64 = plan.tables.iter().map(|table| table.source_rows).sum();
    let seeds: u64 = plan.tables.iter().map(|table| table.seeds).sum();
    let rows = plan.rows() as f64;
    source > 0 && rows >= source as f64 * MOST && seeds as f64 <= rows * MOST
}

/// Returns the keys that add rows, those that would save most first and those that cannot be NULL
/// last. The keys `nulled` are NULL already.
pub fn adding(catalogue: &Catalogue, plan: &Plan, nulled: &[usize]) -> Vec<Adding> {
    let needed = |table: usize| plan.tables[table].needed.iter().map(|(_, rows)| rows).sum();
    let needed: Vec<u64> = (0..plan.tables.len()).map(needed).collect();
    let mut parents = vec![Vec::new(); plan.tables.len()];
    let followed = catalogue.keys.iter().enumerate().filter(|(at, _)| !nulled.contains(at));
    for (_, key) in followed {
        parents[key.table].push(key.references);
    }
    let added = plan.tables.iter().flat_map(|table| &table.needed);
    let mut all: Vec<Adding> = added
        .map(|&(key, rows)| {
            let mut others = nulled.to_vec();
            others.push(key);
            let saved = match catalogue.null_columns(key, &others) {
                Ok(_) => {
                    let reached = reached(catalogue.keys[key].references, &parents);
                    let tables = reached.iter().zip(&needed).filter(|(is_reached, _)| **is_reached);
                    Saved::AtMost(tables.map(|(_, rows)| rows).sum())
                }
                Err(why) => Saved::Not(why),
            };
            Adding { key, rows, saved }
        })
        .collect();
    sort(&mut all);
    all
}

/// Sorts keys by the rows that they would save, then by those that they add.
pub fn sort(all: &mut [Adding]) {
    let saved = |adding: &Adding| match adding.saved {
        Saved::Exactly(rows) | Saved::AtMost(rows) => (true, rows),
        Saved::Unknown => (true, 0),
        Saved::Not(_) => (false, 0),
    };
    all.sort_by_key(|adding| std::cmp::Reverse((saved(adding), adding.rows)));
}

/// Returns which tables can be reached from `first` along keys, itself included.
fn reached(first: usize, parents: &[Vec<usize>]) -> Vec<bool> {
    let mut reached = vec![false; parents.len()];
    let mut open = vec![first];
    while let Some(table) = open.pop() {
        if !std::mem::replace(&mut reached[table], true) {
            open.extend(&parents[table]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Column, ForeignKey, Table};
    use crate::plan::{Rows, TablePlan};

    #[test]
    fn keys_are_told_with_what_they_would_save() {
        let column = |nullable| Column { name: "a".into(), nullable, ..Column::default() };
        let table = |nullable| Table { columns: vec![column(nullable)], ..Table::default() };
        let key = |table, references| ForeignKey {
            table,
            columns: vec![0],
            references,
            ..ForeignKey::default()
        };
        // 0 → 1 → 2, and 0 → 2, which is NOT NULL; all but the seeds of 0 come by keys.
        let catalogue = Catalogue {
            tables: vec![table(true), table(true), table(true), table(false)],
            keys: vec![key(0, 1), key(1, 2), key(3, 2)],
        };
        let planned = |seeds, needed: &[(usize, u64)], source_rows| TablePlan {
            source_rows,
            seeds,
            needed: needed.into(),
            rows: Rows::All,
        };
        let plan = Plan {
            tables: vec![
                planned(10, &[], 10),
                planned(1, &[(0, 99)], 100),
                planned(0, &[(1, 70), (2, 30)], 100),
                planned(5, &[], 5),
            ],
            ..Plan::default()
        };
        assert!(takes_most(&plan));
        let told = adding(&catalogue, &plan, &[]);
        assert_eq!(told[0], Adding { key: 0, rows: 99, saved: Saved::AtMost(199) });
        assert_eq!(told[1], Adding { key: 1, rows: 70, saved: Saved::AtMost(100) });
        assert_eq!((told[2].key, &told[2].saved), (2, &Saved::Not("a is NOT NULL".into())));
        let seeds = TablePlan { seeds: 100, needed: Vec::new(), ..plan.tables[2].clone() };
        let chosen = Plan { tables: vec![plan.tables[0].clone(), seeds], ..Plan::default() };
        assert!(!takes_most(&chosen) && !takes_most(&Plan::default()));
    }
}
