//! The kernel's counts by thread, summed by role: threads come and go, their sums stay.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use blockstone_sys::bpf::io::{BUCKETS, IoTotals};

/// Sums of I/Os, all cumulative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    pub ios: u64,
    /// I/Os started and not completed; the only gauge among these.
    pub in_flight: u64,
    pub bytes: u64,
    pub asked_bytes: u64,
    pub submitted: u64,
    /// Time before the device, in nanoseconds.
    pub queue_ns: u64,
    pub device_ns: u64,
    pub elapsed_ns: u64,
    /// I/Os by elapsed time.
    pub buckets: [u64; BUCKETS],
}

impl Sums {
    pub const ZERO: Self = Self {
        ios: 0,
        in_flight: 0,
        bytes: 0,
        asked_bytes: 0,
        submitted: 0,
        queue_ns: 0,
        device_ns: 0,
        elapsed_ns: 0,
        buckets: [0; BUCKETS],
    };

    fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.in_flight += other.in_flight;
        self.bytes += other.bytes;
        self.asked_bytes += other.asked_bytes;
        self.submitted += other.submitted;
        self.queue_ns += other.queue_ns;
        self.device_ns += other.device_ns;
        self.elapsed_ns += other.elapsed_ns;
        for (sum, more) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += more;
        }
    }
}

impl From<&IoTotals> for Sums {
    fn from(totals: &IoTotals) -> Self {
        Self {
            ios: totals.ios(),
            in_flight: totals.in_flight(),
            bytes: totals.bytes,
            asked_bytes: totals.asked_bytes,
            submitted: totals.submitted,
            queue_ns: totals.queue_ns,
            device_ns: totals.device_ns,
            elapsed_ns: totals.elapsed_ns(),
            buckets: totals.buckets,
        }
    }
}

/// A thread, by process and thread id.
pub type Thread = (u32, u32);

/// Sums by object `O` of counts that arrive by key `K`; each key belongs to one thread.
#[derive(Debug)]
pub struct Ledger<K, O> {
    entries: HashMap<K, usize>,
    /// Settled sums, and the sums of the current reading.
    objects: Vec<(Sums, Sums)>,
    /// Sorted by object, which is the order of the rows.
    index: BTreeMap<O, usize>,
    threads: HashMap<Thread, Vec<K>>,
    /// All threads, least recently checked first.
    order: VecDeque<Thread>,
}

impl<K: Copy + Eq + Hash, O: Ord> Ledger<K, O> {
    pub fn new() -> Self {
        Self {
            entries: HashMap::new(),
            objects: Vec::new(),
            index: BTreeMap::new(),
            threads: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Begins a reading: until keys are added, only settled sums count.
    pub fn begin(&mut self) {
        for (settled, now) in &mut self.objects {
            *now = *settled;
        }
    }

    /// Adds the current sums of a key; returns false if the key must be introduced first.
    pub fn add(&mut self, key: &K, sums: &Sums) -> bool {
        let Some(&object) = self.entries.get(key) else { return false };
        self.objects[object].1.add(sums);
        true
    }

    /// Assigns a new key to its object and its thread.
    pub fn introduce(&mut self, key: K, thread: Thread, object: O) {
        let next = self.objects.len();
        let object = *self.index.entry(object).or_insert(next);
        if object == next {
            self.objects.push((Sums::ZERO, Sums::ZERO));
        }
        self.entries.insert(key, object);
        let order = &mut self.order;
        let keys = self.threads.entry(thread).or_insert_with(|| {
            order.push_back(thread);
            Vec::new()
        });
        keys.push(key);
    }

    /// Removes a key with its last sums, which stay with its object. The current reading has
    /// already counted the key.
    pub fn settle(&mut self, key: &K, thread: Thread, last: &Sums) {
        let Some(object) = self.entries.remove(key) else { return };
        self.objects[object].0.add(last);
        if let Some(keys) = self.threads.get_mut(&thread) {
            keys.retain(|known| known != key);
        }
    }

    /// Returns the least recently checked thread, with its keys.
    pub fn next_thread(&mut self) -> Option<(Thread, Vec<K>)> {
        let thread = self.order.pop_front()?;
        let keys = self.threads.get(&thread).cloned().unwrap_or_default();
        if keys.is_empty() {
            self.threads.remove(&thread);
        } else {
            self.order.push_back(thread);
        }
        Some((thread, keys))
    }

    /// Returns the number of threads with sums that are not settled.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Every object with its sums as of this reading, in order.
    pub fn rows(&self) -> impl Iterator<Item = (&O, &Sums)> {
        self.index.iter().map(|(object, &index)| (object, &self.objects[index].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(ios: u64) -> Sums {
        let mut buckets = [0; BUCKETS];
        buckets[7] = ios;
        Sums { ios, bytes: ios * 8192, buckets, ..Sums::ZERO }
    }

    fn read(ledger: &mut Ledger<u8, &'static str>, now: &[(u8, u64)]) -> Vec<(&'static str, u64)> {
        ledger.begin();
        for (key, ios) in now {
            assert!(ledger.add(key, &sums(*ios)));
        }
        let rows = ledger.rows().map(|(object, sums)| {
            assert_eq!(sums.buckets.iter().sum::<u64>(), sums.ios);
            assert_eq!(sums.bytes, sums.ios * 8192);
            (*object, sums.ios)
        });
        rows.collect()
    }

    #[test]
    fn an_ended_thread_keeps_counting_for_its_role() {
        let mut ledger = Ledger::new();
        ledger.begin();
        assert!(!ledger.add(&1, &sums(5)), "it is unknown");
        ledger.introduce(1, (10, 10), "writer");
        ledger.introduce(2, (10, 11), "writer");
        ledger.introduce(3, (10, 12), "reader");
        assert_eq!(read(&mut ledger, &[(1, 5), (2, 7), (3, 1)]), [("reader", 1), ("writer", 12)]);
        ledger.settle(&1, (10, 10), &sums(6));
        assert_eq!(read(&mut ledger, &[(2, 7), (3, 2)]), [("reader", 2), ("writer", 13)]);
        // Its key is reused by another thread, which counts from zero.
        ledger.introduce(1, (10, 10), "reader");
        assert_eq!(read(&mut ledger, &[(1, 1), (2, 7)]), [("reader", 1), ("writer", 13)]);
    }

    #[test]
    fn threads_take_turns_and_leave_when_nothing_is_left_of_them() {
        let mut ledger = Ledger::new();
        for key in 0..4_u8 {
            ledger.introduce(key, (1, u32::from(key / 2)), "any");
        }
        let mut turn = || ledger.next_thread().unwrap();
        assert_eq!([turn().0, turn().0, turn().0], [(1, 0), (1, 1), (1, 0)]);
        let (thread, keys) = turn();
        for key in keys {
            ledger.settle(&key, thread, &sums(1));
        }
        assert_eq!(ledger.next_thread().unwrap().0, (1, 0));
        assert_eq!(ledger.next_thread(), Some(((1, 1), vec![])));
        assert_eq!(ledger.threads(), 1);
        assert_eq!(read(&mut ledger, &[]), [("any", 2)]);
    }
}
