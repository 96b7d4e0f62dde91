//! A tree that finds the earliest of many instants after each change, without a branch that depends
//! on them: every node holds the lesser of its two children.

/// Bits for the index below the instant.
const INDEX_BITS: u32 = 16;
/// Instants are compared in units of 2^8 ns, so that two years fit next to the index.
const UNIT_BITS: u32 = 8;
const INSTANT_MAX: u64 = (1 << (64 - INDEX_BITS)) - 2;

/// Instants by index, at most 65,536 of them.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Node n is the lesser of 2n and 2n + 1; the second half holds the instants themselves.
    nodes: Vec<u64>,
    leaves: usize,
}

impl Tournament {
    /// Creates `count` instants, all zero. At least one and at most 65,536.
    pub fn new(count: u32) -> Self {
        assert!((1..=1 << INDEX_BITS).contains(&count), "{count} instants do not fit");
        let leaves = (count as usize).next_power_of_two();
        let mut all = Self { nodes: vec![u64::MAX; 2 * leaves], leaves };
        (0..count).for_each(|index| all.set(index, 0));
        all
    }

    /// Returns the index of the earliest instant; if several are equal, the lowest index.
    #[inline]
    pub fn first(&self) -> u32 {
        (self.nodes[1] & ((1 << INDEX_BITS) - 1)) as u32
    }

    /// Returns the earliest instant, rounded down to a quarter of a microsecond.
    #[inline]
    pub fn first_ns(&self) -> u64 {
        self.nodes[1] >> INDEX_BITS << UNIT_BITS
    }

    #[inline]
    pub fn set(&mut self, index: u32, ns: u64) {
        let mut node = self.leaves + index as usize;
        let mut least = (ns >> UNIT_BITS).min(INSTANT_MAX) << INDEX_BITS | u64::from(index);
        self.nodes[node] = least;
        while node > 1 {
            least = least.min(self.nodes[node ^ 1]);
            node >>= 1;
            self.nodes[node] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockstone_base::rng::Rng;

    #[test]
    fn the_earliest_is_found_among_any_number() {
        for count in [1_u32, 2, 3, 7, 64, 100] {
            let mut tournament = Tournament::new(count);
            let mut instants = vec![0_u64; count as usize];
            let mut rng = Rng::new(1, 0);
            for _ in 0..1000 {
                let first = tournament.first();
                assert!(instants[first as usize] - tournament.first_ns() < 1 << UNIT_BITS);
                let least = instants.iter().map(|ns| ns >> UNIT_BITS).min().unwrap();
                assert_eq!(instants[first as usize] >> UNIT_BITS, least);
                instants[first as usize] += rng.below(1 << 20);
                tournament.set(first, instants[first as usize]);
            }
        }
    }

    #[test]
    fn instants_beyond_the_tree_are_last_and_no_ghost_wins() {
        let mut tournament = Tournament::new(3);
        (0..3).for_each(|index| tournament.set(index, u64::MAX));
        assert!(tournament.first() < 3);
    }
}
