//! Time model of the dies. A die performs its operations one after the other, in the order in which
//! they were requested; only a read may overtake others, where suspension allows it.

use std::collections::VecDeque;

use crate::ftl::{Operations, Placed};
use crate::tournament::Tournament;

/// Duration of each operation, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time to read a page.
    pub read_ns: u64,
    /// Program of a page, by page type, the fast one first. The pages of a block alternate.
    pub program_ns: Vec<u64>,
    /// Time to erase a block.
    pub erase_ns: u64,
    /// Transfer of a page over the channel that dies share; zero means channels are not modelled.
    pub transfer_ns: u64,
    /// Operations that a read interrupts.
    pub suspend: Suspend,
    /// Cost of one interruption.
    pub suspend_ns: u64,
    /// Planes of a die that work in step: each page takes its full time, but the die is free for
    /// the next one after 1 ÷ `planes` of it.
    pub planes: u32,
}

/// Operations that a read interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suspend {
    /// None: a read waits for everything requested of the die before it.
    #[default]
    None,
    Erase,
    /// Erases and programs.
    Both,
}

impl Times {
    /// Mean program time over the page types, in nanoseconds.
    pub fn program_ns_mean(&self) -> f64 {
        self.program_ns.iter().sum::<u64>() as f64 / self.program_ns.len().max(1) as f64
    }

    pub fn costs(&self) -> crate::theory::Costs {
        crate::theory::Costs {
            program_ns: self.program_ns_mean() / f64::from(self.planes),
            read_ns: self.read_ns as f64 / f64::from(self.planes),
            erase_ns: self.erase_ns as f64,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Program,
    Erase,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    end_ns: u64,
    kind: Kind,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    /// Work ahead, oldest first; kept only if reads may interrupt.
    ahead: VecDeque<Segment>,
    /// End of the last read that interrupted.
    reads_end_ns: u64,
}

#[derive(Debug)]
pub struct Dies {
    times: Times,
    planes: u64,
    /// By slot: program time.
    program_ns: Vec<u64>,
    /// By slot: total program time of all slots before it.
    programs_before_ns: Vec<u64>,
    fast_ns: u64,
    free_ns: Vec<u64>,
    queues: Vec<Queue>,
    channel_free_ns: Vec<u64>,
    first_free: Tournament,
    /// Time at which operations are requested.
    now_ns: u64,
}

impl Dies {
    /// Creates dies whose blocks have this number of pages, spread evenly over the channels.
    pub fn new(times: &Times, dies: u32, channels: u32, pages_per_block: u32) -> Self {
        let types = times.program_ns.len().max(1);
        let planes = times.planes.max(1);
        let kind = |slot: u32| (slot / planes) as usize % types;
        let program = |slot: u32| times.program_ns.get(kind(slot)).copied().unwrap_or(0);
        let program_ns: Vec<u64> = (0..pages_per_block).map(program).collect();
        let mut programs_before_ns = vec![0];
        for ns in &program_ns {
            programs_before_ns.push(programs_before_ns[programs_before_ns.len() - 1] + ns);
        }
        Self {
            planes: u64::from(planes),
            fast_ns: program(0),
            program_ns,
            programs_before_ns,
            free_ns: vec![0; dies as usize],
            queues: vec![Queue::default(); dies as usize],
            channel_free_ns: vec![0; channels.max(1) as usize],
            first_free: Tournament::new(dies),
            now_ns: 0,
            times: times.clone(),
        }
    }

    /// Returns the die that is free first, to a quarter of a microsecond; among idle ones, the one
    /// that has been idle longest.
    #[inline]
    pub fn first_free(&self) -> u32 {
        self.first_free.first()
    }

    pub fn free_ns(&self, die: u32) -> u64 {
        self.free_ns[die as usize]
    }

    /// Sets the time at which the following operations are requested.
    #[inline]
    pub fn at(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// Programs a page for the host; returns the time of completion.
    #[inline]
    pub fn program(&mut self, die: u32, placed: Placed) -> u64 {
        let program_ns =
            if placed.fast { self.fast_ns } else { self.program_ns[placed.slot as usize] };
        if self.times.transfer_ns > 0 {
            let channel = die as usize % self.channel_free_ns.len();
            let sent = self.channel_free_ns[channel].max(self.now_ns) + self.times.transfer_ns;
            self.channel_free_ns[channel] = sent;
            self.free_ns[die as usize] = self.free_ns[die as usize].max(sent);
        }
        self.work(die, program_ns, Kind::Program)
    }

    /// Reads a page for the host; returns the time at which it has arrived.
    #[inline]
    pub fn read(&mut self, die: u32) -> u64 {
        let read = match self.times.suspend {
            Suspend::None => self.work(die, self.times.read_ns, Kind::Read),
            Suspend::Erase | Suspend::Both => self.interrupt(die),
        };
        if self.times.transfer_ns == 0 {
            return read;
        }
        let channel = die as usize % self.channel_free_ns.len();
        let arrived = self.channel_free_ns[channel].max(read) + self.times.transfer_ns;
        self.channel_free_ns[channel] = arrived;
        arrived
    }

    #[inline]
    fn work(&mut self, die: u32, ns: u64, kind: Kind) -> u64 {
        let free = &mut self.free_ns[die as usize];
        let start_ns = (*free).max(self.now_ns);
        *free = start_ns + if kind == Kind::Erase { ns } else { ns / self.planes };
        let end_ns = *free;
        if self.times.suspend != Suspend::None {
            self.remember(die, Segment { end_ns, kind });
        }
        self.first_free.set(die, end_ns);
        start_ns + ns
    }

    fn remember(&mut self, die: u32, segment: Segment) {
        let now_ns = self.now_ns;
        let ahead = &mut self.queues[die as usize].ahead;
        while ahead.front().is_some_and(|first| first.end_ns <= now_ns) {
            ahead.pop_front();
        }
        match ahead.back_mut() {
            Some(last) if last.kind == segment.kind => last.end_ns = segment.end_ns,
            _ => ahead.push_back(segment),
        }
    }

    /// Puts a read ahead of everything it may interrupt. The delayed work ends later; writes that
    /// were already acknowledged are not taken back.
    fn interrupt(&mut self, die: u32) -> u64 {
        let state = &mut self.queues[die as usize];
        let mut start = self.now_ns.max(state.reads_end_ns);
        let mut cost = 0;
        while let Some(first) = state.ahead.front() {
            let gives_way = match first.kind {
                Kind::Erase => true,
                Kind::Program => self.times.suspend == Suspend::Both,
                Kind::Read => false,
            };
            if first.end_ns <= start {
                state.ahead.pop_front();
            } else if gives_way {
                cost = self.times.suspend_ns;
                break;
            } else {
                start = first.end_ns;
            }
        }
        let end = start + cost + self.times.read_ns;
        state.reads_end_ns = end;
        if state.ahead.is_empty() {
            self.free_ns[die as usize] = end;
        } else {
            state.ahead.iter_mut().for_each(|segment| segment.end_ns += cost + self.times.read_ns);
            self.free_ns[die as usize] += cost + self.times.read_ns;
        }
        self.first_free.set(die, self.free_ns[die as usize]);
        end
    }
}

impl Operations for Dies {
    fn moved(&mut self, die: u32, slot: u32, count: u32, fast: bool) {
        let programs = if fast {
            u64::from(count) * self.fast_ns
        } else {
            let (from, to) = (slot as usize, (slot + count) as usize);
            self.programs_before_ns[to] - self.programs_before_ns[from]
        };
        self.work(die, u64::from(count) * self.times.read_ns + programs, Kind::Program);
    }

    fn erased(&mut self, die: u32) {
        self.work(die, self.times.erase_ns, Kind::Erase);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(suspend: Suspend) -> Times {
        Times {
            read_ns: 50_000,
            program_ns: vec![300_000, 2_500_000],
            erase_ns: 3_000_000,
            transfer_ns: 0,
            suspend,
            suspend_ns: 10_000,
            planes: 1,
        }
    }

    const FAST: Placed = Placed { slot: 0, fast: false };
    const SLOW: Placed = Placed { slot: 1, fast: false };

    #[test]
    fn a_read_behind_an_erase_takes_sixty_times_as_long() {
        let mut dies = Dies::new(&times(Suspend::None), 2, 1, 128);
        assert_eq!(dies.read(0), 50_000);
        dies.at(1_000_000);
        dies.erased(0);
        assert_eq!(dies.read(0) - 1_000_000, 3_050_000, "behind the erase");
        assert_eq!(dies.read(1) - 1_000_000, 50_000, "the other die is free");
        assert!((times(Suspend::None).program_ns_mean() - 1.4e6).abs() < 1e-9);
        assert_eq!(3_000_000 / 50_000, 60);
    }

    #[test]
    fn suspension_lets_reads_through_and_loses_no_work() {
        let mut dies = Dies::new(&times(Suspend::Erase), 1, 1, 128);
        dies.erased(0);
        dies.at(1_000_000);
        assert_eq!(dies.read(0), 1_060_000, "the erase gives way");
        assert_eq!(dies.read(0), 1_120_000, "the next read after it");
        assert_eq!(dies.free_ns(0), 3_120_000, "the erase ends later by what the reads took");
        let mut dies = Dies::new(&times(Suspend::Erase), 1, 1, 128);
        dies.program(0, SLOW);
        assert_eq!(dies.read(0), 2_550_000, "a program does not give way");
        let mut dies = Dies::new(&times(Suspend::Both), 1, 1, 128);
        dies.program(0, SLOW);
        assert_eq!(dies.read(0), 60_000);
        assert_eq!(dies.free_ns(0), 2_560_000);
    }

    #[test]
    fn dies_of_a_channel_share_it() {
        let shared = Times { transfer_ns: 100_000, ..times(Suspend::None) };
        let mut dies = Dies::new(&shared, 4, 2, 128);
        assert_eq!(dies.program(0, FAST), 400_000);
        assert_eq!(dies.program(2, FAST), 500_000, "the channel was busy");
        assert_eq!(dies.program(1, FAST), 400_000, "the other channel was not");
    }

    #[test]
    fn planes_share_the_time_of_a_die() {
        let two = Times { planes: 2, program_ns: vec![300_000], ..times(Suspend::None) };
        let mut dies = Dies::new(&two, 1, 1, 128);
        assert_eq!(dies.program(0, FAST), 300_000);
        assert_eq!(dies.program(0, FAST), 450_000);
    }

    #[test]
    fn moves_cost_reads_and_programs_of_their_slots() {
        let mut dies = Dies::new(&times(Suspend::None), 1, 1, 128);
        dies.moved(0, 1, 3, false);
        assert_eq!(dies.free_ns(0), 3 * 50_000 + 2_500_000 + 300_000 + 2_500_000);
    }
}
