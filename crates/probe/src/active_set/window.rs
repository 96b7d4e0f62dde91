//! Changes of units from one look to the next.

use std::collections::HashMap;

use blockstone_sys::bpf::Device;
use blockstone_sys::bpf::active::{Owner, Unit, UnitKey};

/// State of all units at the last look.
#[derive(Debug, Default)]
pub struct LastLook {
    units: HashMap<UnitKey, Before>,
    looks: u64,
    /// Sampling level of the last window: one in 2^level units was sampled.
    level: u32,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    reads: u32,
    writes: u32,
    /// Number of the look that saw the last access.
    accessed: u64,
}

/// Accesses during one window.
#[derive(Debug, Default)]
pub struct Window {
    /// One in 2^level units is sampled.
    pub level: u32,
    /// The same for units that were sampled in the previous window as well.
    pub compared_level: u32,
    pub owners: HashMap<Owner, ActiveUnits>,
    pub devices: HashMap<Device, ActiveUnits>,
    /// Units that are still kept but no longer sampled.
    pub unsampled: Vec<UnitKey>,
}

/// Units of one device or file that were accessed in a window.
#[derive(Clone, Debug, Default)]
pub struct ActiveUnits {
    pub written: u64,
    /// Units that were also sampled in the previous window.
    pub compared: u64,
    /// Compared units that were accessed in the previous window as well.
    pub again: u64,
    /// Number of accesses of each unit.
    counts: Vec<u64>,
}

impl LastLook {
    pub fn len(&self) -> u64 {
        self.units.len() as u64
    }

    /// Compares units with the last look. Those whose hash ends in fewer than `level` zeros were
    /// not sampled throughout.
    pub fn end_window(&mut self, units: &[(UnitKey, Unit)], level: u32) -> Window {
        self.looks += 1;
        let compared_level = level.max(self.level);
        let mut window = Window { level, compared_level, ..Window::default() };
        for (key, unit) in units {
            if !key.is_sampled(level) {
                self.units.remove(key);
                window.unsampled.push(*key);
                continue;
            }
            let before = self.units.get(key).copied();
            let now = Before { reads: unit.reads, writes: unit.writes, accessed: self.looks };
            let reads = unit.reads.wrapping_sub(before.map_or(0, |before| before.reads));
            let writes = unit.writes.wrapping_sub(before.map_or(0, |before| before.writes));
            let count = u64::from(reads) + u64::from(writes);
            if count == 0 {
                continue;
            }
            let was_accessed = before.is_some_and(|before| before.accessed + 1 == self.looks);
            self.units.insert(*key, now);
            let owner = window.owners.entry(unit.owner()).or_default();
            for part in [owner, window.devices.entry(key.device()).or_default()] {
                part.written += u64::from(writes > 0);
                if self.looks > 2 && key.is_sampled(compared_level) {
                    part.compared += 1;
                    part.again += u64::from(was_accessed);
                }
                part.counts.push(count);
            }
        }
        self.level = level;
        window
    }

    /// Forgets units that were not accessed in the last `windows` windows, and returns them.
    pub fn forget_idle(&mut self, windows: u64) -> Vec<UnitKey> {
        let oldest = self.looks.saturating_sub(windows);
        let idle = self.units.extract_if(|_, before| before.accessed <= oldest);
        idle.map(|(key, _)| key).collect()
    }
}

impl ActiveUnits {
    pub fn touched(&self) -> u64 {
        self.counts.len() as u64
    }

    pub fn accesses(&self) -> u64 {
        self.counts.iter().sum()
    }

    pub fn join(&mut self, other: Self) {
        self.written += other.written;
        self.compared += other.compared;
        self.again += other.again;
        self.counts.extend(other.counts);
    }

    /// Returns the smallest number of units that received each of these percentages of the
    /// accesses.
    pub fn hottest<const N: usize>(&self, percentages: [u64; N]) -> [u64; N] {
        let mut counts = self.counts.clone();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = counts.iter().sum();
        percentages.map(|percentage| {
            let mut sum = 0;
            let short = counts.iter().take_while(|count| {
                let is_short = sum * 100 < all * percentage;
                sum += **count;
                is_short
            });
            short.count() as u64
        })
    }
}
