//! A load of updates by several sessions, and a record of what was acknowledged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use blockstone_base::rng::Rng;
use blockstone_instance::block::{COLUMNS, Fill};
use blockstone_instance::{Instance, InstanceError, Lsn, RedoStress, Session};

use crate::world::{ROWS, spec};

/// Number of sessions of the load; each has its own rows of both schemas.
pub const SESSIONS: u32 = 4;

/// Number of updates of every row of every schema.
pub struct Memory {
    issued: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
}

/// Result of a check of all rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows whose block is damaged, which was reported and not served.
    pub damaged: u64,
}

/// Runs `work` on several sessions, each on its own thread.
pub fn on_sessions(instance: &Instance, count: u32, work: impl Fn(&mut Session, u32) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for number in 0..count {
            scope.spawn(move || work(&mut instance.session(number).unwrap(), number));
        }
    });
}

fn row(schema: u32, key: u64) -> usize {
    (u64::from(schema) * ROWS + key) as usize
}

impl Memory {
    pub fn new() -> Self {
        let zeros = || (0..2 * ROWS).map(|_| AtomicU64::new(0)).collect();
        Self { issued: zeros(), acknowledged: zeros() }
    }

    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Updates and commits with all sessions until each has done `rounds`, or fails.
    pub fn load(&self, instance: &Instance, seed: u64, rounds: u64) -> Result<(), InstanceError> {
        thread::scope(|scope| {
            let runs: Vec<_> = (0..SESSIONS)
                .map(|number| scope.spawn(move || self.session(instance, number, seed, rounds)))
                .collect();
            let results = runs.into_iter().map(|run| run.join().unwrap());
            results.fold(Ok(()), Result::and)
        })
    }

    fn session(
        &self,
        instance: &Instance,
        number: u32,
        seed: u64,
        rounds: u64,
    ) -> Result<(), InstanceError> {
        let mut session = instance.session(number)?;
        let mut rng = Rng::new(seed, u64::from(number));
        let share = ROWS / u64::from(SESSIONS);
        for round in 0..rounds {
            let (schema, rows) = (rng.below(2) as u32, 1 + rng.below(6));
            let first = u64::from(number) * share + rng.below(share - rows);
            session.select(schema, rng.below(ROWS - 8), 8)?;
            let keys = first..first + rows;
            keys.clone().for_each(|key| {
                self.issued[row(schema, key)].fetch_add(1, Ordering::Relaxed);
            });
            let stress = if round % 3 == 0 { RedoStress::Heavy } else { RedoStress::Lite };
            session.update(schema, first, rows, stress)?;
            session.commit()?;
            keys.for_each(|key| {
                let at = row(schema, key);
                let count = self.issued[at].load(Ordering::Relaxed);
                self.acknowledged[at].store(count, Ordering::Relaxed);
            });
        }
        Ok(())
    }

    /// Forgets updates that were issued and lost: the current state becomes the acknowledged one.
    pub fn adopt(&mut self, instance: &Instance) {
        let mut session = instance.session(0).unwrap();
        for (schema, key) in (0..2).flat_map(|schema| (0..ROWS).map(move |key| (schema, key))) {
            let version = session.row(schema, key).unwrap().version();
            *self.issued[row(schema, key)].get_mut() = version;
            *self.acknowledged[row(schema, key)].get_mut() = version;
        }
    }

    /// Visits every row of an instance that has continued since its recovery; returns the number of
    /// damaged rows.
    pub fn check_now(&self, instance: &Instance) -> u64 {
        self.visit_all(instance, true, Lsn(u64::MAX)).damaged
    }

    /// Like [`Memory::check_now`], right after recovery: no block may be ahead of the redo.
    pub fn check(&self, instance: &Instance, may_be_damaged: bool) -> Found {
        self.visit_all(instance, may_be_damaged, instance.recovery().to)
    }

    /// Visits every row: each must be whole, with every acknowledged update and none that was not
    /// requested. A damaged block may be refused if `may_be_damaged`.
    fn visit_all(&self, instance: &Instance, may_be_damaged: bool, end: Lsn) -> Found {
        let made = spec();
        let fill = Fill::new(made.seed, made.random_percent);
        assert!(instance.snapshot().dirty_blocks <= instance.cache_blocks() as u64);
        let mut session = instance.session(0).unwrap();
        let mut found = Found::default();
        for (schema, key) in (0..2).flat_map(|schema| (0..ROWS).map(move |key| (schema, key))) {
            let seen = match session.row(schema, key) {
                Ok(seen) => seen,
                Err(InstanceError::Corrupt { .. }) if may_be_damaged => {
                    found.damaged += 1;
                    continue;
                }
                Err(error) => panic!("row {key} of schema {schema}: {error}"),
            };
            let at = row(schema, key);
            let (least, most) = (&self.acknowledged[at], &self.issued[at]);
            let (least, most) = (least.load(Ordering::Relaxed), most.load(Ordering::Relaxed));
            let version = seen.version();
            assert!(
                (least..=most).contains(&version),
                "row {key} of schema {schema} has version {version}, not {least} to {most}"
            );
            for index in 0..COLUMNS {
                let column = seen.column(index);
                assert!(fill.is_whole(seen.block_number(), index, column), "column {index}");
                let written = u64::from_le_bytes(column[..8].try_into().unwrap());
                let always = index == 0 || index == COLUMNS - 1;
                assert!(written == version || !always && written < version);
            }
            assert!(seen.scn() <= end, "a block is ahead of the redo");
        }
        found
    }
}
