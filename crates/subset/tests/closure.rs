//! The closure on sources in memory: no orphans, no unneeded rows, and a higher percentage only
//! adds rows.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use std::collections::BTreeSet;

use blockstone_subset::{
    Catalogue, Chosen, Column, ForeignKey, MemoryError, Plan, Row, Rows, Scan, Settings, Source,
    Table, When, close, sample,
};
use proptest::prelude::*;

/// Rows of numbers; `None` is NULL.
#[derive(Clone, Debug, Default)]
struct Memory {
    catalogue: Catalogue,
    rows: Vec<Vec<Vec<Option<i64>>>>,
    /// Whether scans pass rows in reverse order.
    backwards: bool,
    /// Whether the source draws; rows that do not win are then omitted if that is allowed.
    draws: bool,
}

impl Memory {
    fn hand_over(&self, scan: &Scan, at: usize, each: &mut dyn FnMut(Row<'_>)) {
        let row = &self.rows[scan.table][at];
        let value = |key: &blockstone_subset::ScanKey| -> Option<Vec<u8>> {
            let all: Vec<usize> = (0..row.len()).collect();
            let columns = if key.columns.is_empty() { &all } else { &key.columns };
            let values = columns.iter().map(|&column| row[column]);
            let values: Option<Vec<i64>> = if key.columns.is_empty() {
                Some(values.map(|value| value.unwrap_or(i64::MIN)).collect())
            } else {
                values.collect()
            };
            let is_meant =
                |when: &When| row[when.column].is_some_and(|it| it.to_string() == when.is);
            let has = key.when.as_ref().is_none_or(is_meant);
            Some(values.filter(|_| has)?.iter().flat_map(|value| value.to_be_bytes()).collect())
        };
        let keys: Vec<Option<Vec<u8>>> = scan.keys.iter().map(value).collect();
        let keys: Vec<Option<&[u8]>> = keys.iter().map(Option::as_deref).collect();
        let matches = scan.filtered && row[0] == Some(1);
        let own = row[0].unwrap_or_default().to_be_bytes();
        let drawn = scan.lot.map(|lot| lot.draw(&own));
        let is_seed = match (scan.lot, drawn) {
            (Some(lot), Some(drawn)) => lot.wins(drawn),
            _ => matches || !scan.filtered,
        };
        if is_seed || !scan.seeds_only {
            each(Row { locator: at as u64, keys: &keys, drawn, matches });
        }
    }
}

impl Source for Memory {
    type Error = MemoryError;

    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn draws(&self) -> bool {
        self.draws
    }

    fn scan(&mut self, scan: &Scan, each: &mut dyn FnMut(Row<'_>)) -> Result<(), MemoryError> {
        let count = self.rows[scan.table].len();
        for at in 0..count {
            self.hand_over(scan, if self.backwards { count - 1 - at } else { at }, each);
        }
        Ok(())
    }

    fn fetch(
        &mut self,
        scan: &Scan,
        by: usize,
        values: &[Box<[u8]>],
        each: &mut dyn FnMut(Row<'_>),
    ) -> Result<(), MemoryError> {
        let wanted: BTreeSet<&[u8]> = values.iter().map(AsRef::as_ref).collect();
        for at in 0..self.rows[scan.table].len() {
            let mut is_wanted = false;
            self.hand_over(scan, at, &mut |row| {
                is_wanted = row.keys[by].is_some_and(|key| wanted.contains(key));
            });
            if is_wanted {
                self.hand_over(scan, at, each);
            }
        }
        Ok(())
    }
}

/// Tables with the columns id, a, b; keys from single columns to id, and from (a, b) to (a, b).
fn catalogue(tables: usize, keys: &[(usize, usize, bool)]) -> Catalogue {
    let column = |name: &str| Column { name: name.to_owned(), ..Column::default() };
    let table = |at: usize| Table {
        name: format!("public.t{at}"),
        columns: ["id", "a", "b"].map(column).into(),
        identity: vec![0],
        // Large enough that referenced rows are fetched by key.
        estimated_rows: Some((1 << 40) + at as u64),
        unique: vec![vec![0]],
        ..Table::default()
    };
    let key = |&(table, references, pair): &(usize, usize, bool)| ForeignKey {
        name: format!("t{table}_t{references}"),
        table,
        columns: if pair { vec![1, 2] } else { vec![1] },
        references,
        referenced: if pair { vec![1, 2] } else { vec![0] },
        ..ForeignKey::default()
    };
    Catalogue { tables: (0..tables).map(table).collect(), keys: keys.iter().map(key).collect() }
}

fn taken(plan: &Plan, table: usize) -> BTreeSet<u64> {
    match &plan.tables[table].rows {
        Rows::All => (0..plan.tables[table].source_rows).collect(),
        // Rows are numbered by their identity.
        Rows::Winning(rows, lot) => {
            let wins = |at: &u64| lot.wins(lot.draw(&at.to_be_bytes()));
            let all: BTreeSet<u64> = (0..plan.tables[table].source_rows).filter(wins).collect();
            assert_eq!(all.len() as u64, *rows);
            all
        }
        Rows::At(rows) => rows.iter().collect(),
    }
}

/// Returns the rows, by position, that the row references with this key.
fn referenced(memory: &Memory, key: &ForeignKey, row: u64) -> Option<Vec<u64>> {
    let value = |table: usize, row: usize, columns: &[usize]| -> Option<Vec<i64>> {
        columns.iter().map(|&column| memory.rows[table][row][column]).collect()
    };
    let wanted = value(key.table, row as usize, &key.columns)?;
    let all = 0..memory.rows[key.references].len();
    let is_it = |&at: &usize| value(key.references, at, &key.referenced).as_ref() == Some(&wanted);
    let found: Vec<u64> = all.filter(is_it).map(|at| at as u64).collect();
    (!found.is_empty()).then_some(found)
}

fn check(memory: &Memory, plan: &Plan) {
    let count = memory.rows.len();
    let rows: Vec<BTreeSet<u64>> = (0..count).map(|table| taken(plan, table)).collect();
    let mut needed: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); count];
    for key in &memory.catalogue.keys {
        for &row in &rows[key.table] {
            for parent in referenced(memory, key, row).unwrap_or_default() {
                assert!(rows[key.references].contains(&parent), "an orphan of {}", key.name);
                needed[key.references].insert(parent);
            }
        }
    }
    for (table, planned) in plan.tables.iter().enumerate() {
        let sum: u64 = planned.needed.iter().map(|(_, rows)| rows).sum();
        assert_eq!(planned.seeds + sum, planned.rows(), "each row has one reason");
        let unneeded = rows[table].difference(&needed[table]).count() as u64;
        assert!(unneeded <= planned.seeds, "a row is neither chosen nor needed");
    }
}

fn any_memory() -> impl Strategy<Value = Memory> {
    let keys = prop::collection::vec((0..5_usize, 0..5_usize, any::<bool>()), 0..9);
    let value = prop::option::weighted(0.8, 0..40_i64);
    let rows = prop::collection::vec(prop::collection::vec((value.clone(), value), 0..60), 5);
    (keys, rows, any::<bool>(), any::<bool>()).prop_map(|(keys, rows, backwards, draws)| {
        let numbered = |rows: Vec<(Option<i64>, Option<i64>)>| {
            (0..).zip(rows).map(|(id, (a, b))| vec![Some(id), a, b]).collect()
        };
        let rows = rows.into_iter().map(numbered).collect();
        Memory { catalogue: catalogue(5, &keys), rows, backwards, draws }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn keys_hold_nothing_is_superfluous_and_more_only_adds(
        mut memory in any_memory(),
        percent in 1.0..60.0_f64,
        seed in any::<u64>(),
        (stratified, cap) in (any::<bool>(), prop::option::of(1..4_u32)),
    ) {
        let settings = Settings { percent, seed, stratified, cap, ..Settings::default() };
        let plan = close(&mut memory, &settings).unwrap();
        check(&memory, &plan);
        let mut other = Memory { backwards: !memory.backwards, ..memory.clone() };
        let again = close(&mut other, &settings).unwrap();
        let mut drawing = Memory { draws: !memory.draws, ..memory.clone() };
        let drawn = close(&mut drawing, &settings).unwrap();
        check(&drawing, &drawn);
        let more = Settings { percent: percent * 1.5, ..settings };
        let more = close(&mut memory, &more).unwrap();
        for table in 0..5 {
            let rows = taken(&plan, table);
            prop_assert_eq!(&rows, &taken(&again, table), "the order of rows changes nothing");
            prop_assert_eq!(&rows, &taken(&drawn, table), "who draws changes nothing");
            if cap.is_none() || !stratified {
                prop_assert!(rows.is_subset(&taken(&more, table)));
            }
        }
    }
}

/// Returns `count` rows with a number in the first column and the result of `parent` in the second.
fn rows(count: i64, parent: impl Fn(i64) -> Option<i64>) -> Vec<Vec<Option<i64>>> {
    (0..count).map(|id| vec![Some(id), parent(id), None]).collect()
}

#[test]
fn a_share_of_parents_and_children_is_taken_and_a_domain_table_comes_whole() {
    let mut memory = Memory {
        catalogue: catalogue(2, &[(1, 0, false)]),
        rows: vec![rows(50, |_| None), rows(20_000, |id| Some(id % 50))],
        ..Memory::default()
    };
    let plan = close(&mut memory, &Settings { percent: 2.0, ..Settings::default() }).unwrap();
    assert!((300..500).contains(&plan.tables[1].rows()), "{:?}", plan.tables[1].rows());
    assert_eq!(plan.tables[0].rows, Rows::All, "each country is referenced");
    assert_eq!(plan.tables[0].needed.first().unwrap().0, 0);
}

#[test]
fn chains_and_cycles_are_followed_to_their_end() {
    // Each row references the one before it, in its own table.
    let mut memory = Memory {
        catalogue: catalogue(1, &[(0, 0, false)]),
        rows: vec![rows(500, |id| (id > 0).then(|| id - 1))],
        ..Memory::default()
    };
    let chosen = vec![Chosen::Matching];
    let none = Settings { chosen: chosen.clone(), ..Settings::default() };
    assert_eq!(close(&mut memory, &none).unwrap().tables[0].rows(), 2, "row 1 and row 0");
    let whole = Settings { chosen: vec![Chosen::All], ..Settings::default() };
    assert_eq!(close(&mut memory, &whole).unwrap().tables[0].rows(), 500);
    let tables = 200;
    let keys: Vec<_> = (1..tables).map(|at| (at, at - 1, false)).collect();
    let mut chain = Memory {
        catalogue: catalogue(tables, &keys),
        rows: (0..tables).map(|_| rows(20, Some)).collect(),
        ..Memory::default()
    };
    let plan = close(&mut chain, &Settings { percent: 5.0, ..Settings::default() }).unwrap();
    let counts: Vec<u64> = plan.tables.iter().map(blockstone_subset::TablePlan::rows).collect();
    assert!(counts.windows(2).all(|pair| pair[0] >= pair[1]), "{counts:?}");
}

#[test]
fn a_key_that_is_null_adds_no_rows() {
    // 2 → 1 → 0, and 2 → 0: without the key from 2 to 1, nothing reaches 1.
    let rows = |count: i64| (0..count).map(|id| vec![Some(id), Some(id / 2), None]).collect();
    let mut memory = Memory {
        catalogue: catalogue(3, &[(2, 1, false), (1, 0, false), (2, 0, false)]),
        rows: vec![rows(400), rows(400), rows(400)],
        ..Memory::default()
    };
    let settings = Settings { percent: 20.0, ..Settings::default() };
    let all = close(&mut memory, &settings).unwrap();
    let nulled = Settings { nulled: vec![0], ..settings.clone() };
    let plan = close(&mut memory, &nulled).unwrap();
    let mut without = memory.clone();
    without.catalogue.keys.remove(0);
    let expected = close(&mut without, &settings).unwrap();
    for table in 0..3 {
        assert_eq!(taken(&plan, table), taken(&expected, table));
    }
    assert_eq!((plan.keys.len(), plan.keys[0].references), (3, 0));
    assert_eq!(plan.keys[1..], expected.keys[..]);
    let needed = |plan: &Plan| plan.tables[0].needed.iter().map(|(key, _)| *key).max();
    assert_eq!((needed(&plan), needed(&all)), (Some(2), Some(2)));
    assert_eq!(plan.tables[1].needed, []);
    assert!(plan.rows() < all.rows());
}

#[test]
fn stratified_seeds_keep_the_children_of_each_parent() {
    let mut memory = Memory {
        catalogue: catalogue(2, &[(1, 0, false)]),
        rows: vec![rows(1000, |_| None), rows(10_000, |id| Some(id / 10))],
        ..Memory::default()
    };
    let settings = Settings { percent: 5.0, stratified: true, ..Settings::default() };
    let plan = close(&mut memory, &settings).unwrap();
    assert_eq!(plan.tables[1].rows(), plan.tables[0].rows() * 10);
    let capped = Settings { cap: Some(3), ..settings };
    let plan = close(&mut memory, &capped).unwrap();
    assert_eq!(plan.tables[1].rows(), plan.tables[0].rows() * 3);
}

#[test]
fn tables_sampled_alone_lose_the_parents_that_are_not_sampled() {
    let mut memory = Memory {
        catalogue: catalogue(2, &[(1, 0, false)]),
        rows: vec![rows(10_000, |_| None), rows(100_000, |id| Some(id % 10_000))],
        ..Memory::default()
    };
    let sampled = sample(&mut memory, &Settings { percent: 10.0, ..Settings::default() }).unwrap();
    let key = sampled.keys[0];
    let share = key.orphans as f64 / key.references as f64;
    assert!((key.expected_share - 0.9).abs() < 1e-12);
    // Parents have one child each in the sample, some have two: close to √(0.1 × 0.9 ÷ 10,000).
    let error = key.standard_error.unwrap();
    assert!((0.003..0.005).contains(&error), "{error}");
    assert!((share - 0.9).abs() < 4.0 * error, "{share} ± {error}");
}

#[test]
fn columns_that_keys_connect_are_a_group() {
    let known = catalogue(4, &[(1, 0, true), (2, 1, true), (3, 0, false)]);
    let groups: [&[(usize, usize)]; 3] =
        [&[(0, 0), (3, 1)], &[(0, 1), (1, 1), (2, 1)], &[(0, 2), (1, 2), (2, 2)]];
    assert_eq!(known.connected_columns(), groups);
}

#[test]
fn keys_that_take_more_memory_than_is_allowed_end_the_work() {
    // Negative numbers are not taken for those of a sequence: each is stored as a hash.
    let parents = (0..200_000).map(|id| vec![Some(-1 - id), None, None]).collect();
    let mut memory = Memory {
        catalogue: catalogue(2, &[(1, 0, false)]),
        rows: vec![parents, rows(200_000, |id| Some(-1 - id))],
        ..Memory::default()
    };
    let settings = Settings { percent: 60.0, memory: Some(1 << 20), ..Settings::default() };
    let error = close(&mut memory, &settings).unwrap_err();
    assert_eq!((error.table.as_str(), error.limit), ("public.t1", 1 << 20));
    let stratified = Settings { stratified: true, ..settings.clone() };
    let error = close(&mut memory, &stratified).unwrap_err();
    assert_eq!(error.table, "public.t0");
    let settings = Settings { memory: Some(4 << 20), ..settings };
    let plan = close(&mut memory, &settings).unwrap();
    assert!(plan.tables[0].rows() > 150_000);
}
