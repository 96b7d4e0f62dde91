//! Cost of the same calls if they bypassed the page cache: their number times the measured time of
//! a direct call of that size, on the file system of the file.
//!
//! Nothing of the program changes, so this tells beforehand what direct I/O costs a tool that asks
//! for small pieces, and what the tool would gain from asking for large ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use blockstone_base::Capability;
use blockstone_base::hint::Hint as _;
use blockstone_base::identity::PathKind;
use blockstone_base::rng;
use blockstone_base::stats::{self, Estimate};
use blockstone_base::text::parent_dir;
use blockstone_measure::{Observer, scratch};
use blockstone_sys::buffer::Slot;
use blockstone_sys::clock::now_ns;
use blockstone_sys::file::{Access, BlockFile};
use blockstone_sys::survey;

use crate::direct::pages_added_by;
use crate::evidence::name_of;
use crate::iosize::findings::{DirectCost, Direction, Flow, IosizeFindings, Transfer};

/// Size of the large calls that small ones are compared with.
pub const LARGE_BYTES: u64 = 1 << 20;
/// Maximum number of sizes that are measured in each direction: those of the most calls. Others
/// count as the next larger one.
const SIZES: usize = 16;
/// Rounds over all sizes: their differences are the interval.
const ROUNDS: usize = 9;
/// Calls of one size in a round, and the time from which there are no more of them.
const CALLS: u64 = 32;
const BATCH: Duration = Duration::from_millis(10);
/// Time after which no round is started, if there are enough for an interval.
const LIMIT: Duration = Duration::from_secs(4);
const LEAST_ROUNDS: usize = 3;
/// Bytes of the file that is written, and most bytes that are read of a file.
const FILE_BYTES: u64 = 8 << 20;

/// Files on which the calls are tried.
#[derive(Debug)]
pub struct Place {
    /// File that is read, which is not changed.
    pub read: Option<PathBuf>,
    /// Directory in which a file without a name is written.
    pub written: Option<PathBuf>,
    /// ID that names that file until its name is removed.
    pub id: u64,
}

/// Adds the cost of those of its flows whose calls copy data, or why there is none.
pub fn predict(
    findings: &mut IosizeFindings,
    flows: &[Flow],
    place: &Place,
    observer: &mut dyn Observer,
) {
    for &direction in Direction::ALL {
        let is_it = |flow: &&Flow| flow.direction == direction && !flow.transfers.is_empty();
        let flows: Vec<&Flow> = flows.iter().filter(is_it).collect();
        let path = match direction {
            Direction::Read => &place.read,
            Direction::Write => &place.written,
        };
        let Some(path) = path.as_ref().filter(|_| !flows.is_empty()) else { continue };
        observer.phase("direct calls");
        match Side::measured(direction, path, place.id, &flows, observer) {
            Ok(side) => {
                findings.direct_costs.extend(flows.iter().filter_map(|flow| side.cost(flow)));
            }
            Err(why) => findings.direct_unmeasured.push(format!("{}s: {why}", direction.name())),
        }
    }
}

/// One direction: its file, and the times of a call by size, one of each round.
#[derive(Debug)]
struct Side {
    direction: Direction,
    file: BlockFile,
    file_bytes: u64,
    align_bytes: u64,
    times: BTreeMap<u64, Vec<f64>>,
    rounds: usize,
}

impl Side {
    fn measured(
        direction: Direction,
        path: &Path,
        id: u64,
        flows: &[&Flow],
        observer: &dyn Observer,
    ) -> Result<Self, String> {
        let mut side = Self::prepare(direction, path, id, flows)?;
        let largest = side.times.keys().last().copied().unwrap_or(LARGE_BYTES);
        let mut buffer = Slot::new(largest as usize).map_err(|error| error.in_a_line())?;
        rng::fill(id, &mut buffer);
        side.warm_up(&mut buffer)?;
        let began = Instant::now();
        while side.rounds < ROUNDS && observer.interrupted().is_none() {
            if side.rounds >= LEAST_ROUNDS && began.elapsed() > LIMIT {
                break;
            }
            side.round(&mut buffer, CALLS)?;
            side.rounds += 1;
        }
        if side.rounds < LEAST_ROUNDS {
            return Err("the check was interrupted".to_owned());
        }
        Ok(side)
    }

    fn prepare(
        direction: Direction,
        path: &Path,
        id: u64,
        flows: &[&Flow],
    ) -> Result<Self, String> {
        let target = survey::target(Path::new("/"), path).map_err(|error| error.in_a_line())?;
        if let Capability::Degraded { why } = &target.direct_io.capability {
            return Err(why.clone());
        }
        let align_bytes = u64::from(target.direct_io.offset_align_bytes).max(512);
        let file = match direction {
            Direction::Read => BlockFile::open(path, Access::Read, true),
            Direction::Write if target.kind == PathKind::Directory => nameless(path, id),
            Direction::Write => nameless(parent_dir(path), id),
        };
        let file = file.map_err(|error| error.in_a_line())?;
        let file_bytes = match direction {
            Direction::Read => file.size_bytes().map_err(|error| error.in_a_line())?,
            Direction::Write => FILE_BYTES,
        };
        let file_bytes = file_bytes.min(FILE_BYTES);
        if file_bytes < LARGE_BYTES {
            return Err(format!("{} has less than 1 MiB", path.display()));
        }
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for transfer in flows.iter().flat_map(|flow| &flow.transfers) {
            let (size_bytes, calls) = direct_calls(transfer, align_bytes);
            *counts.entry(size_bytes).or_default() += calls;
        }
        let mut sizes: Vec<(u64, u64)> = counts.into_iter().collect();
        sizes.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
        let sizes = sizes.into_iter().take(SIZES).map(|(size_bytes, _)| size_bytes);
        let times = sizes.chain([LARGE_BYTES]).map(|size_bytes| (size_bytes, Vec::new())).collect();
        Ok(Self { direction, file, file_bytes, align_bytes, times, rounds: 0 })
    }

    /// Makes each call once, to see whether it bypasses the page cache.
    fn warm_up(&mut self, buffer: &mut Slot) -> Result<(), String> {
        let file = self.file.plain().map_err(|error| error.in_a_line())?;
        let (made, added) = pages_added_by(file, || self.round(buffer, 1));
        made?;
        self.times.values_mut().for_each(Vec::clear);
        match added? {
            0 => Ok(()),
            _ => {
                Err("with O_DIRECT they go through the page cache there (check direct)".to_owned())
            }
        }
    }

    /// Times calls of every size, one after the other in file order, as a tool makes them: what is
    /// written extends the file.
    fn round(&mut self, buffer: &mut Slot, most: u64) -> Result<(), String> {
        for (&size_bytes, times) in &mut self.times {
            if self.direction == Direction::Write {
                self.file.set_size(0).map_err(|error| error.in_a_line())?;
            }
            let memory = &mut buffer[..size_bytes as usize];
            let most = most.min(self.file_bytes / size_bytes).max(1);
            let (mut calls, began_ns) = (0, now_ns());
            let until_ns = began_ns + BATCH.as_nanos() as u64;
            loop {
                let offset = calls * size_bytes;
                let moved = match self.direction {
                    Direction::Read => self.file.read_at(offset, memory),
                    Direction::Write => self.file.write_at(offset, memory),
                };
                let moved = moved.map_err(|errno| {
                    format!("a direct {} fails: {}", self.direction.name(), name_of(errno))
                })?;
                if moved as u64 != size_bytes {
                    return Err(format!("a direct {} ends early", self.direction.name()));
                }
                calls += 1;
                if calls >= most || now_ns() >= until_ns {
                    break;
                }
            }
            times.push((now_ns() - began_ns) as f64 / calls as f64);
        }
        Ok(())
    }

    fn cost(&self, flow: &Flow) -> Option<DirectCost> {
        let calls: u64 = flow.transfers.iter().map(|it| it.calls).sum();
        let bytes: u64 = flow.transfers.iter().map(|it| it.bytes).sum();
        let asked: Vec<f64> = (0..self.rounds).map(|round| self.cost_ns(flow, round)).collect();
        let pieces = bytes as f64 / LARGE_BYTES as f64;
        let large: Vec<f64> =
            self.times.get(&LARGE_BYTES)?.iter().map(|call_ns| call_ns * pieces).collect();
        let gain: Vec<f64> = asked.iter().zip(&large).map(|(asked, large)| asked / large).collect();
        let mean = |values: &[f64]| stats::mean(values).map(Estimate::not_negative);
        let direct_ns = mean(&asked)?;
        Some(DirectCost {
            path: flow.path.clone(),
            direction: flow.direction,
            calls,
            bytes,
            call_ns: direct_ns.scaled(1.0 / calls as f64),
            direct_ns,
            large_ns: mean(&large)?,
            gain: mean(&gain)?,
        })
    }

    /// Returns the time of all calls of a flow, at the speed of one round.
    fn cost_ns(&self, flow: &Flow, round: usize) -> f64 {
        let cost = |transfer: &Transfer| {
            let (size_bytes, calls) = direct_calls(transfer, self.align_bytes);
            let measured =
                self.times.range(size_bytes..).next().or_else(|| self.times.last_key_value());
            let time_ns = measured.and_then(|(_, times)| times.get(round)).copied();
            time_ns.unwrap_or_default() * calls as f64
        };
        flow.transfers.iter().map(cost).sum()
    }
}

/// Returns the size and number of direct calls for some calls: whole blocks, and for those that
/// move more than a large call, as many of these.
fn direct_calls(transfer: &Transfer, align_bytes: u64) -> (u64, u64) {
    let mean_bytes = transfer.bytes.div_ceil(transfer.calls.max(1));
    if mean_bytes > LARGE_BYTES {
        return (LARGE_BYTES, transfer.bytes.div_ceil(LARGE_BYTES));
    }
    (mean_bytes.next_multiple_of(align_bytes), transfer.calls)
}

/// Makes a file without a name, which disappears when it is closed.
fn nameless(dir: &Path, id: u64) -> Result<BlockFile, blockstone_sys::file::FileError> {
    let file = BlockFile::create_new(&dir.join(scratch::name(id, "iosize-direct")), false)?;
    let locked = file.lock_exclusive();
    file.remove()?;
    locked?;
    file.reopen(Access::ReadWrite, true)
}

#[cfg(test)]
mod tests {
    use blockstone_testkit::{ScratchDir, require};

    use super::*;

    struct Quiet;

    impl Observer for Quiet {}

    fn transfer(calls: u64, bytes: u64) -> Transfer {
        Transfer { calls, bytes }
    }

    #[test]
    fn calls_become_whole_blocks_and_none_is_larger_than_a_large_one() {
        assert_eq!(direct_calls(&transfer(8192, 8192 * 512), 512), (512, 8192));
        assert_eq!(direct_calls(&transfer(257, 257 * 16_320), 512), (16_384, 257));
        assert_eq!(direct_calls(&transfer(257, 257 * 16_320), 4096), (16_384, 257));
        assert_eq!(direct_calls(&transfer(8192, 8192 * 512), 4096), (4096, 8192));
        assert_eq!(direct_calls(&transfer(1, 16 << 20), 4096), (LARGE_BYTES, 16));
        assert_eq!(direct_calls(&transfer(0, 0), 4096), (0, 0));
    }

    #[test]
    fn the_cost_of_direct_calls_is_that_of_their_number_and_size() {
        require!(Bpf);
        let scratch = ScratchDir::on_disk().unwrap();
        let path = scratch.path().join("read");
        std::fs::write(&path, vec![7; 2 << 20]).unwrap();
        let flow = |direction, calls, bytes| Flow {
            direction,
            transfers: vec![transfer(calls, bytes)],
            ..crate::iosize::quick::unknown("tool", String::new())
        };
        let flows = [
            flow(Direction::Read, 4096, 2 << 20),
            flow(Direction::Read, 8192, 4 << 20),
            flow(Direction::Write, 512, 2 << 20),
        ];
        let place = Place { read: Some(path), written: Some(scratch.path().to_owned()), id: 1 };
        let mut found = crate::iosize::nothing("tools");
        predict(&mut found, &flows, &place, &mut Quiet);
        assert_eq!(found.direct_unmeasured, Vec::<String>::new());
        let [half, whole, written] = &found.direct_costs[..] else { panic!("{found:#?}") };
        assert_eq!((half.calls, whole.calls, written.calls), (4096, 8192, 512));
        let ratio = whole.direct_ns.value / half.direct_ns.value;
        assert!((ratio - 2.0).abs() < 1e-6, "the same calls, twice as many: {ratio}");
        for cost in &found.direct_costs {
            assert!(cost.direct_ns.low <= cost.direct_ns.value && cost.large_ns.value > 0.0);
            let sum = cost.call_ns.value * cost.calls as f64;
            assert!((sum / cost.direct_ns.value - 1.0).abs() < 1e-6, "{cost:?}");
        }
        let left = std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(left, 1, "the file that was written has no name");
        // Memory has no direct calls.
        let memory = Place { read: None, written: Some("/dev/shm".into()), id: 1 };
        let mut found = crate::iosize::nothing("tools");
        predict(&mut found, &flows, &memory, &mut Quiet);
        assert!(found.direct_costs.is_empty(), "{found:#?}");
        assert!(found.direct_unmeasured[0].contains("keeps files in memory"), "{found:#?}");
    }
}
