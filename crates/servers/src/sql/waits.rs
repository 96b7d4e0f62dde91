//! Sampled waits: a wait seen at a look is assumed to have lasted since the previous look.

use std::collections::BTreeMap;
use std::time::Instant;

use blockstone_base::column::{Cell, Reading};
use blockstone_base::database::EVENT;

use super::processes::SESSION;

#[derive(Debug)]
pub struct SampledWaits {
    waited_ns: BTreeMap<String, u64>,
    outside_ns: u64,
    last_look: Option<Instant>,
}

impl SampledWaits {
    /// Starts without waits. Those that sessions `usually` have are reported from the start with
    /// zeros: they may still occur before the next look.
    pub fn new(usually: &[&str]) -> Self {
        let waited_ns = usually.iter().map(|event| (name(SESSION, event), 0)).collect();
        Self { waited_ns, outside_ns: 0, last_look: None }
    }

    /// Returns the time that sessions worked without waiting.
    pub fn outside_ns(&self) -> u64 {
        self.outside_ns
    }

    /// Adds the time since the last look to the current waits: role, event and number of waiters.
    /// Sessions that work without waiting have no event.
    pub fn add(
        &mut self,
        waiting: impl IntoIterator<Item = (String, String, u64)>,
    ) -> Vec<Reading> {
        let now = Instant::now();
        let passed_ns = self.last_look.map_or(0, |last| (now - last).as_nanos() as u64);
        self.last_look = Some(now);
        for (role, event, count) in waiting {
            let sum = if event.is_empty() {
                &mut self.outside_ns
            } else {
                self.waited_ns.entry(name(&role, &event)).or_default()
            };
            *sum += passed_ns * count;
        }
        let reading = |(object, ns): (&String, &u64)| Reading {
            probe: EVENT.probe,
            object: object.clone(),
            cells: vec![Cell::Unmeasured, Cell::from(*ns)],
        };
        self.waited_ns.iter().map(reading).collect()
    }
}

fn name(role: &str, event: &str) -> String {
    format!("{role}/{event}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn waited_ns(readings: &[Reading], object: &str) -> u64 {
        let found = readings.iter().find(|reading| reading.object == object).unwrap();
        match found.cells[1] {
            Cell::Value(ns) => ns as u64,
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_waited_for_at_a_look_has_lasted_since_the_last() {
        let mut waits = SampledWaits::new(&["reading"]);
        let two = || [("session".to_owned(), "reading".to_owned(), 2)];
        assert_eq!(waited_ns(&waits.add(two()), "session/reading"), 0, "nothing has passed yet");
        std::thread::sleep(Duration::from_millis(20));
        let once = waited_ns(&waits.add(two()), "session/reading");
        assert!(once >= 40_000_000, "{once} ns by two sessions");
        assert_eq!(waited_ns(&waits.add([]), "session/reading"), once, "nothing waits any more");
        assert_eq!(waits.outside_ns(), 0);
        std::thread::sleep(Duration::from_millis(5));
        let at_work = || [("session".to_owned(), String::new(), 3)];
        assert_eq!(waited_ns(&waits.add(at_work()), "session/reading"), once);
        assert!(waits.outside_ns() >= 15_000_000, "three sessions worked");
    }
}
