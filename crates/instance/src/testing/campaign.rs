//! Runs many seeds in parallel, and searches for planted bugs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use blockstone_sys::thread::scoped;

use super::explore::{Effort, Failure, Tally, explore};
use super::oracle::Violation;
use super::setting::Setting;
use crate::planted::{Planted, plant};
use crate::spec::TornProtection;

/// Circumstances in which a planted bug was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Number of the seed, counted from the first one.
    pub seed: u64,
    pub setting: Setting,
    pub violation: Violation,
}

/// Explores `seeds` of `setting` on several threads.
///
/// # Panics
/// If one of the threads panics, or too few threads can be started.
pub fn campaign(
    setting: Setting,
    seeds: std::ops::Range<u64>,
    effort: Effort,
    threads: usize,
) -> (Tally, Vec<Failure>) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let (mut tally, mut failures) = (Tally::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return (tally, failures);
            }
            match explore(setting, seed, effort) {
                Ok(one) => tally.add(&one),
                Err(failure) => failures.push(failure),
            }
        }
    };
    thread::scope(|scope| {
        let start = |_| scoped(scope, "campaign", work).expect("a thread starts");
        let threads: Vec<_> = (0..threads).map(start).collect();
        let mut sum = (Tally::default(), Vec::new());
        for thread in threads {
            let (tally, failures) = thread.join().expect("a worker does not panic");
            sum.0.add(&tally);
            sum.1.extend(failures);
        }
        sum
    })
}

/// Plants a bug in this process and looks for it with up to `seeds` seeds.
///
/// # Panics
/// If the system cannot start a thread.
pub fn hunt(bug: Planted, seeds: u64, effort: Effort, threads: usize) -> Option<Found> {
    plant(Some(bug));
    let settings = bug.settings();
    let (next, found) = (AtomicU64::new(0), parking_lot::Mutex::new(None::<Found>));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= seeds || found.lock().is_some() {
                return;
            }
            let setting = settings[at as usize % settings.len()];
            if let Err(Failure { seed, violation, .. }) = explore(setting, at, effort) {
                let mut found = found.lock();
                if found.as_ref().is_none_or(|earlier| seed < earlier.seed) {
                    *found = Some(Found { seed, setting, violation });
                }
            }
        }
    };
    thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scoped(scope, "campaign", work).expect("a thread starts");
        });
    });
    plant(None);
    found.into_inner()
}

impl Planted {
    /// Returns the settings in which the bug can show.
    pub fn settings(self) -> Vec<Setting> {
        let all = Setting::ALL.iter().copied();
        let only = |wanted: &dyn Fn(&Setting) -> bool| all.clone().filter(wanted).collect();
        match self {
            Self::ImagesOmitted => only(&|s| s.protection == TornProtection::FullPage),
            Self::CopiesNotSynced
            | Self::PlacesNotSynced
            | Self::TornNotRestored
            | Self::WholeNotRewritten
            | Self::RestoredThroughArea
            | Self::StaleCopiesAccepted => only(&|s| s.protection == TornProtection::DoubleWrite),
            Self::RecoveryNotSynced => only(&|s| s.protection == TornProtection::None),
            Self::ChangedBlocksOnly
            | Self::MissUntold
            | Self::StaleForgotten
            | Self::ResyncUnverified => only(&|s| s.copies > 1),
            Self::DamageIsEnd | Self::FlushRetried => only(&|s| s.copies == 1),
            _ => all.collect(),
        }
    }
}
