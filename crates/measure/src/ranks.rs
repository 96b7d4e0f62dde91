//! One of several ranks: processes, on one host or on many, that apply one load at the same time.
//! They agree on a time before they start, and do not talk to each other while they run.

use std::time::Duration;

use blockstone_record::manifest::Rank;
use jiff::Timestamp;

use crate::{Observer, Session};

/// Longest sleep before a signal is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// Place of this process among the ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankSettings {
    /// Number of this rank, from 0 on.
    pub rank: u32,
    /// Number of all ranks.
    pub ranks: u32,
    /// Source of the two numbers: `options`, or the name of a launcher.
    pub launcher: &'static str,
    /// Seed from which each rank draws its own.
    pub seed: u64,
    /// Time at which the load of all ranks begins.
    pub start_at: Option<Timestamp>,
}

impl RankSettings {
    /// Returns the seed of this rank: with one seed for all, the ranks would write the same data,
    /// and an array that removes duplicates would store them once.
    pub fn own_seed(&self) -> u64 {
        self.seed ^ u64::from(self.rank).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the entry of the manifest; `plan` is the hash of what all ranks agree on.
    pub fn entry(&self, plan: String) -> Rank {
        Rank {
            rank: self.rank,
            ranks: self.ranks,
            launcher: self.launcher.to_owned(),
            plan,
            start_at: self.start_at.map(|at| at.to_string()),
            clock_bound_ns: None,
        }
    }

    /// Waits until the agreed time, or until a signal, and records how exact the clock is then.
    pub fn meet(&self, session: &mut Session, observer: &mut dyn Observer) {
        self.wait(observer);
        if let Some(rank) = &mut session.recorder().manifest().rank {
            rank.clock_bound_ns = blockstone_sys::clock::utc_bound_ns();
        }
    }

    fn wait(&self, observer: &mut dyn Observer) {
        let Some(at) = self.start_at else { return };
        let left = || Duration::try_from(at.duration_since(Timestamp::now())).ok();
        let Some(early) = left().filter(|left| !left.is_zero()) else {
            let late = Timestamp::now().duration_since(at).as_secs_f64();
            observer.note(&format!("rank {} is {late:.1} s late for {at}", self.rank));
            return;
        };
        let (rank, ranks) = (self.rank, self.ranks);
        observer.phase(&format!("rank {rank} of {ranks} waits {:.1} s", early.as_secs_f64()));
        while let Some(left) = left().filter(|left| !left.is_zero()) {
            if observer.interrupted().is_some() {
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Notes(Vec<String>);

    impl Observer for Notes {
        fn note(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
    }

    fn rank(rank: u32, start_at: Option<Timestamp>) -> RankSettings {
        RankSettings { rank, ranks: 3, launcher: "options", seed: 7, start_at }
    }

    #[test]
    fn seeds_of_ranks_differ_and_are_drawn_from_one() {
        let seeds: Vec<u64> = (0..3).map(|number| rank(number, None).own_seed()).collect();
        assert_eq!(seeds[0], 7);
        assert!(seeds[1] != seeds[0] && seeds[2] != seeds[1] && seeds[2] != seeds[0]);
    }

    #[test]
    fn a_rank_waits_for_the_agreed_time_and_says_if_it_is_late() {
        let mut notes = Notes(Vec::new());
        let soon = Timestamp::now() + Duration::from_millis(120);
        rank(1, Some(soon)).wait(&mut notes);
        assert!(Timestamp::now() >= soon && notes.0.is_empty(), "{:?}", notes.0);
        rank(1, Some(soon - Duration::from_secs(2))).wait(&mut notes);
        assert!(notes.0[0].starts_with("rank 1 is 2."), "{:?}", notes.0);
    }
}
