//! Sizes of blocks under compressors: a fixed number of blocks, drawn from all that are not zeros
//! with equal probability.
//!
//! An array that does not deduplicate stores a content as often as it occurs. A share of contents
//! then says little: the one content that fills a twentieth of all blocks is most likely not in the
//! share, and if it is, it counts for many. When blocks are drawn, each content is drawn in
//! proportion to how often it occurs, so that frequent ones are certain to be included (W. G.
//! Cochran, Sampling Techniques, 1977, chapter 9A: with probability proportional to size).

use std::collections::{BTreeMap, HashMap};

use blockstone_base::rng;
use serde::{Deserialize, Serialize};

use crate::compress::Sizes;
use crate::digest::Fingerprint;
use crate::table::{Entry, Location};

/// A block with a pseudo-random number: the blocks with the smallest numbers are drawn. The number
/// of a block of the same files is the same in every scan, so that scans can be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    number: u64,
    print: Fingerprint,
    place: Location,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct BlockSizes {
    /// Zero in scans of earlier versions, which drew no blocks.
    blocks_max: usize,
    /// Number of times each was drawn: more than once if scans of the same files were merged.
    #[serde(skip)]
    drawn: BTreeMap<Ticket, u32>,
    /// Drawn contents: the number of their blocks, and their sizes once known.
    #[serde(skip)]
    contents: HashMap<Fingerprint, (u32, Option<Sizes>)>,
    /// Largest number among those drawn.
    #[serde(skip)]
    number_max: u64,
}

impl Ticket {
    #[inline]
    fn new(print: Fingerprint, place: Location) -> Self {
        let at = rng::mix(place.at() ^ rng::mix(place.file().into()));
        Self { number: rng::mix(at ^ print as u64), print, place }
    }
}

impl BlockSizes {
    /// Draws at most this many blocks.
    pub fn new(blocks_max: usize) -> Self {
        Self { blocks_max, ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.drawn.is_empty()
    }

    /// Returns whether the content of this block is to be compressed: the block is drawn, and no
    /// other block with the same content is.
    #[inline]
    pub(super) fn wants(&mut self, print: Fingerprint, place: Location) -> bool {
        let ticket = Ticket::new(print, place);
        if self.drawn.len() >= self.blocks_max && ticket.number >= self.number_max {
            return false;
        }
        self.draw(ticket, 1)
    }

    /// Returns true if its content is new among those drawn.
    fn draw(&mut self, ticket: Ticket, times: u32) -> bool {
        if let Some(drawn) = self.drawn.get_mut(&ticket) {
            *drawn = drawn.saturating_add(times);
            return false;
        }
        self.drawn.insert(ticket, times);
        let content = self.contents.entry(ticket.print).or_default();
        content.0 += 1;
        let is_new = content.0 == 1;
        if self.drawn.len() > self.blocks_max {
            self.drop_last();
        }
        self.number_max = self.drawn.last_key_value().map_or(0, |(last, _)| last.number);
        is_new && self.contents.contains_key(&ticket.print)
    }

    fn drop_last(&mut self) {
        let Some((Ticket { print, .. }, _)) = self.drawn.pop_last() else { return };
        if let Some(content) = self.contents.get_mut(&print) {
            content.0 -= 1;
            if content.0 == 0 {
                self.contents.remove(&print);
            }
        }
    }

    /// Returns whether this content has to be compressed and has not been.
    pub(super) fn lacks(&self, print: Fingerprint) -> bool {
        matches!(self.contents.get(&print), Some((_, None)))
    }

    pub(super) fn put(&mut self, print: Fingerprint, sizes: Sizes) {
        if let Some(content) = self.contents.get_mut(&print) {
            content.1 = Some(sizes);
        }
    }

    /// Adds one of [`Self::rows`].
    pub(super) fn put_row(&mut self, entry: &Entry, sizes: Option<Sizes>) {
        if self.blocks_max > 0 {
            self.draw(Ticket::new(entry.print, entry.first), entry.count);
            if let Some(sizes) = sizes {
                self.put(entry.print, sizes);
            }
        }
    }

    /// Returns the drawn blocks, each with the place where its scan found it, and its sizes.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Entry, Option<Sizes>)> + '_ {
        self.drawn.iter().map(|(ticket, &times)| {
            let sizes = self.contents.get(&ticket.print).and_then(|content| content.1);
            (Entry::new(ticket.print, ticket.place, times), sizes)
        })
    }

    /// Adds the blocks of another scan. The result has as many as the scan that drew fewer: blocks
    /// that it discarded may have smaller numbers than blocks that the other kept.
    pub(super) fn merge(&mut self, other: &Self) {
        self.blocks_max = self.blocks_max.min(other.blocks_max);
        while self.drawn.len() > self.blocks_max {
            self.drop_last();
        }
        other.rows().for_each(|(entry, sizes)| self.put_row(&entry, sizes));
    }

    /// Contents that were drawn and compressed, with their number of draws and their sizes.
    pub fn sizes(&self) -> impl Iterator<Item = (Fingerprint, u32, Sizes)> + '_ {
        self.rows().filter_map(|(entry, sizes)| Some((entry.print, entry.count, sizes?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;

    fn print(content: u64) -> Fingerprint {
        digest::of(&content.to_le_bytes())
    }

    /// Draws from the blocks of a file with these contents.
    fn drawn(blocks_max: usize, contents: &[u64]) -> BlockSizes {
        let mut sizes = BlockSizes::new(blocks_max);
        for (&content, at) in contents.iter().zip(0..) {
            if sizes.wants(print(content), Location::new(0, at)) {
                sizes.put(print(content), [content as u32; 4]);
            }
        }
        sizes
    }

    fn rows(sizes: &BlockSizes) -> Vec<(Entry, Option<Sizes>)> {
        sizes.rows().collect()
    }

    #[test]
    fn frequent_contents_are_drawn_in_proportion_and_compressed_once() {
        let contents: Vec<u64> = (0..20_000).map(|at| if at % 20 == 0 { 7 } else { at }).collect();
        let sizes = drawn(1000, &contents);
        assert_eq!(sizes.drawn.len(), 1000);
        let frequent = sizes.sizes().filter(|it| it.0 == print(7)).count();
        // 50 are expected, with a standard deviation of 7.
        assert!((20..80).contains(&frequent), "{frequent}");
        assert!(sizes.sizes().all(|(_, count, _)| count == 1));
        assert_eq!(sizes.sizes().count(), 1000, "all are compressed");
        assert_eq!(sizes.contents.len(), 1000 - frequent + 1);
        let none = drawn(0, &contents);
        assert!(none.is_empty() && none.contents.is_empty());
    }

    #[test]
    fn what_is_drawn_of_two_scans_is_what_one_scan_of_all_draws_as_often() {
        let first: Vec<u64> = (0..5000).map(|at| at % 900).collect();
        let second: Vec<u64> = (0..3000).map(|at| at % 1100 + 500).collect();
        let (a, b) = (drawn(400, &first), drawn(400, &second));
        let mut both = a.clone();
        both.merge(&b);
        assert_eq!(both.drawn.len(), 400);
        let mut all: Vec<Ticket> = a.drawn.keys().chain(b.drawn.keys()).copied().collect();
        all.sort_unstable();
        assert!(both.drawn.keys().eq(&all[..400]));
        let mut other = b;
        other.merge(&a);
        assert_eq!(rows(&other), rows(&both));
        let mut twice = a.clone();
        twice.merge(&a);
        assert!(twice.drawn.keys().eq(a.drawn.keys()) && twice.drawn.values().all(|&n| n == 2));
        let few = drawn(100, &second);
        let mut fewer = a.clone();
        fewer.merge(&few);
        let mut all: Vec<Ticket> = a.drawn.keys().chain(few.drawn.keys()).copied().collect();
        all.sort_unstable();
        assert!(fewer.drawn.keys().eq(&all[..100]));
        let mut old = a.clone();
        old.merge(&BlockSizes::default());
        assert!(old.is_empty());
        old.merge(&a);
        assert!(old.is_empty(), "what an earlier version scanned stays unknown");
    }

    #[test]
    fn rows_that_are_put_back_go_on_where_they_were() {
        let contents: Vec<u64> = (0..8000).map(|at| at * at % 3001).collect();
        let whole = drawn(300, &contents);
        let part = drawn(300, &contents[..4000]);
        let mut again = BlockSizes::new(300);
        part.rows().for_each(|(entry, sizes)| again.put_row(&entry, sizes));
        for (&content, at) in contents.iter().zip(0..).skip(4000) {
            if again.wants(print(content), Location::new(0, at)) {
                again.put(print(content), [content as u32; 4]);
            }
        }
        assert_eq!(rows(&again), rows(&whole));
    }
}
