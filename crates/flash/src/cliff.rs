//! The write cliff: one definition for simulations and formulas.
//!
//! Writes of a full device wait for collection, or outside a device that throttles them. The cliff
//! is where they begin to wait for more than [`SLIGHT`] of the time that a page takes a die to
//! program, on average over as many pages as fill a block of every die. A single wait does not
//! count: where collection in the background keeps up, a write now and then still finds its die
//! without a free page, and neither rate nor latency changes.

use crate::theory::Costs;

/// Longest mean wait for garbage collection that does not count as a cliff, as a fraction of the
/// program time.
pub const SLIGHT: f64 = 0.1;

/// Returns the same limit in nanoseconds.
pub fn slight_ns(costs: &Costs) -> f64 {
    SLIGHT * costs.program_ns
}

/// Finds the cliff in the waits of single pages.
#[derive(Debug)]
pub struct Detector {
    /// Pages of a window, and the sum of waits up to which the window is before the cliff.
    pages: u64,
    slight_ns: f64,
    /// Pages of the present window so far, their waits, and the first page that waited.
    seen: u64,
    waited_ns: f64,
    first: Option<u64>,
    found: Option<u64>,
}

impl Detector {
    /// Creates a detector for a device with this number of dies and of pages in a block.
    pub fn new(costs: &Costs, dies: u32, pages_per_block: u32) -> Self {
        let pages = u64::from(dies) * u64::from(pages_per_block);
        Self {
            pages,
            slight_ns: slight_ns(costs) * pages as f64,
            seen: 0,
            waited_ns: 0.0,
            first: None,
            found: None,
        }
    }

    /// Returns the number of the page with which the cliff begins.
    pub fn found(&self) -> Option<u64> {
        self.found
    }

    /// Notes how long a page waited; `page` counts all written so far.
    #[inline]
    pub fn note(&mut self, page: u64, waited_ns: u64) {
        if self.found.is_some() {
            return;
        }
        if waited_ns > 0 {
            self.first.get_or_insert(page);
            self.waited_ns += waited_ns as f64;
        }
        self.seen += 1;
        if self.seen == self.pages {
            self.close();
        }
    }

    fn close(&mut self) {
        if self.waited_ns > self.slight_ns {
            self.found = self.first;
        }
        (self.seen, self.waited_ns, self.first) = (0, 0.0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two dies with blocks of ten pages: windows of 20 pages, 2,000 ns each without a cliff.
    fn of(waits: impl Iterator<Item = u64>) -> Option<u64> {
        let costs = Costs { program_ns: 1000.0, read_ns: 50.0, erase_ns: 3000.0 };
        let mut detector = Detector::new(&costs, 2, 10);
        waits.zip(1..).for_each(|(wait, page)| detector.note(page, wait));
        detector.found()
    }

    #[test]
    fn one_wait_in_a_window_is_no_cliff_and_many_are() {
        assert_eq!(of((0..1000).map(|page| if page % 20 == 5 { 1500 } else { 0 })), None);
        assert_eq!(of((0..1000).map(|_| 90)), None, "all wait, none of them for long");
        assert_eq!(of((0..1000).map(|_| 110)), Some(1));
        assert_eq!(of((0..100).map(|page| if page >= 47 { 500 } else { 0 })), Some(48));
        assert_eq!(of((0..100).map(|page| if page == 47 { 9000 } else { 0 })), Some(48));
    }

    #[test]
    fn the_cliff_is_the_first_one() {
        let waits = (0..200).map(|page| if (40..80).contains(&page) { 800 } else { 0 });
        assert_eq!(of(waits.chain((0..100).map(|_| 9999))), Some(41));
    }
}
