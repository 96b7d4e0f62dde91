//! Sums of samples, in a bounded number of rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub role: Arc<str>,
    pub is_kernel: bool,
    pub module: Arc<str>,
    /// Empty for code outside the kernel.
    pub symbol: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Number of samples since it has had this row.
    pub samples: u64,
    /// The look that was due when it was first found: a key that is found again after it was
    /// dropped counts afresh, as a different object.
    pub since_look: u64,
    /// Number of looks since it was last found.
    silent: u32,
}

#[derive(Debug, Default)]
pub struct Tally {
    found: HashMap<Key, Count>,
    /// Roles that have their own rows.
    roles: HashSet<Arc<str>>,
    looks: u64,
    /// Samples that found the processor working.
    pub busy: u64,
    /// Samples that found the processor waiting for work.
    pub idle: u64,
    /// Records lost for lack of room.
    pub lost: u64,
    /// Time during which processors were sampled, summed over all of them, in nanoseconds.
    pub watched_ns: u64,
    /// Processor time spent on summing, in nanoseconds.
    pub summing_ns: u64,
}

/// Name for everything that has no row of its own.
pub const OTHER: &str = "other";

/// Number of rows up to which each function has its own, and up to which each module has.
const ROWS_MAX: [usize; 2] = [1000, 1300];
const ROLES_MAX: usize = 200;
/// Number of looks without a sample after which a key loses its row.
const SILENT_MAX: u32 = 5;

impl Tally {
    /// Counts a sample: in its own row as long as there is room, otherwise together with others of
    /// its module, of its role, or of all roles.
    pub fn add(&mut self, mut key: Key) {
        self.busy += 1;
        if !self.found.contains_key(&key) {
            self.make_room(&mut key);
        }
        let new = Count { samples: 0, since_look: self.looks, silent: 0 };
        let count = self.found.entry(key).or_insert(new);
        count.samples += 1;
        count.silent = 0;
    }

    /// Visits every sum, and drops those that have not been found for a while: each of them has
    /// been visited at least once since then.
    pub fn look(&mut self, mut visit: impl FnMut(&Key, &Count)) {
        self.looks += 1;
        self.found.retain(|key, count| {
            visit(key, count);
            count.silent += 1;
            count.silent <= SILENT_MAX
        });
        self.roles = self.found.keys().map(|key| Arc::clone(&key.role)).collect();
    }

    fn make_room(&mut self, key: &mut Key) {
        let other: Arc<str> = OTHER.into();
        if !self.roles.contains(&key.role) {
            if self.roles.len() < ROLES_MAX {
                self.roles.insert(Arc::clone(&key.role));
            } else {
                key.role = Arc::clone(&other);
            }
        }
        let [functions_max, modules_max] = ROWS_MAX;
        if self.found.len() >= functions_max && key.is_kernel && !self.found.contains_key(key) {
            key.symbol = Arc::clone(&other);
        }
        if self.found.len() >= modules_max && !self.found.contains_key(key) {
            key.module = other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(role: usize, is_kernel: bool, module: usize, symbol: usize) -> Key {
        let symbol = if is_kernel { format!("s{symbol}") } else { String::new() };
        Key {
            role: format!("r{role}").into(),
            is_kernel,
            module: format!("m{module}").into(),
            symbol: symbol.into(),
        }
    }

    fn rows(tally: &mut Tally) -> Vec<(Key, Count)> {
        let mut rows = Vec::new();
        tally.look(|key, count| rows.push((key.clone(), *count)));
        rows
    }

    fn of(rows: &[(Key, Count)], role: &str, module: &str, symbol: &str) -> Option<u64> {
        let is = |key: &Key| (&*key.role, &*key.module, &*key.symbol) == (role, module, symbol);
        rows.iter().find(|(key, _)| is(key)).map(|(_, count)| count.samples)
    }

    #[test]
    fn nothing_is_lost_and_rows_are_bounded_whatever_comes() {
        let mut tally = Tally::default();
        for index in 0..200_000_usize {
            let is_kernel = !index.is_multiple_of(3);
            tally.add(key(index * 7 % 5000, is_kernel, index * 11 % 300, index * 13 % 4000));
        }
        let rows = rows(&mut tally);
        assert_eq!(rows.iter().map(|(_, count)| count.samples).sum::<u64>(), 200_000);
        assert_eq!(tally.busy, 200_000);
        assert!(rows.len() <= ROWS_MAX[1] + 2 * (ROLES_MAX + 1), "{}", rows.len());
        let roles: HashSet<&Arc<str>> = rows.iter().map(|(key, _)| &key.role).collect();
        assert!(roles.len() <= ROLES_MAX + 1, "{}", roles.len());
    }

    #[test]
    fn a_role_and_a_module_stay_right_when_functions_have_no_room_any_more() {
        let mut tally = Tally::default();
        (0..ROWS_MAX[0]).for_each(|symbol| tally.add(key(1, true, 1, symbol)));
        (0..50).for_each(|symbol| tally.add(key(2, true, 2, symbol)));
        (0..7).for_each(|_| tally.add(key(2, false, 3, 0)));
        tally.add(key(1, true, 1, 5));
        (0..500).for_each(|module| tally.add(key(3, false, module, 0)));
        let rows = rows(&mut tally);
        assert_eq!(of(&rows, "r2", "m2", OTHER), Some(50));
        assert_eq!(of(&rows, "r1", "m1", "s5"), Some(2));
        assert_eq!(of(&rows, "r2", "m3", ""), Some(7));
        let ours = rows.iter().filter(|(key, _)| *key.role == *"r3");
        assert_eq!(ours.map(|(_, count)| count.samples).sum::<u64>(), 500);
        assert!(of(&rows, "r3", OTHER, "").is_some_and(|samples| samples > 100));
    }

    #[test]
    fn what_is_silent_is_let_go_and_begins_anew() {
        let mut tally = Tally::default();
        let given = |tally: &mut Tally| {
            let mut given = Vec::new();
            tally.look(|_, count| given.push((count.since_look, count.samples)));
            given
        };
        tally.add(key(1, true, 1, 1));
        assert_eq!(given(&mut tally), [(0, 1)]);
        tally.add(key(1, true, 1, 1));
        for _ in 0..=SILENT_MAX {
            assert_eq!(given(&mut tally), [(0, 2)]);
        }
        assert_eq!(given(&mut tally), []);
        tally.add(key(1, true, 1, 1));
        let look = u64::from(SILENT_MAX) + 3;
        assert_eq!(given(&mut tally), [(look, 1)]);
    }
}
