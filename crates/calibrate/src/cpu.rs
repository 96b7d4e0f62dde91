//! Visits of cached blocks: how much logical I/O a database gets for a second of processor time.
//! The miniature instance has all its blocks in its buffer cache, and its disk in memory, so that
//! no storage is involved. A round measures one session, then one per processor, so that drift
//! affects both equally.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use blockstone_base::column::{Cell, Reading};
use blockstone_base::load::VISITS;
use blockstone_base::rng::Rng;
use blockstone_base::units::{Bytes, Nanos};
use blockstone_instance::disk::{Disk, DiskError};
use blockstone_instance::group::{DiskGroup, DiskSpec, GroupSpec, Member, Redundancy};
use blockstone_instance::{Instance, InstanceError, InstanceSpec, OpenSpec};
use blockstone_measure::{Live, Observer, Rate, Session};
use blockstone_record::manifest::{Group, Phase, Stop};
use blockstone_sys::{thread, usage};

use crate::error::CalibrateError;

pub const LABEL: &str = "cached-visits";
/// Main memory used: the blocks in the buffer cache, and on the disk.
pub const MEMORY: Bytes = Bytes::mib(2 * DATA.get() / (1 << 20) + 64);
/// Upper limit for all rounds and their preparation.
pub const LONGEST: Nanos = Nanos::millis(6_000);

/// Always the same, so that results of different machines are comparable: more than the caches of
/// one processor core hold.
const DATA: Bytes = Bytes::mib(128);
const BLOCK: Bytes = Bytes::kib(8);
const ROWS: u64 = DATA.get() / BLOCK.get();
const REDO: Bytes = Bytes::mib(8);
const UNIT: Bytes = Bytes::mib(1);
/// Rows visited by a statement, the same as SLOB's `WORK_UNIT`.
const WORK_UNIT: u64 = 64;
/// Statements between two clock readings.
const STATEMENTS: u32 = 16;
const ROUNDS: u32 = 6;
const TURN: Duration = Duration::from_millis(250);

/// Combined work of the sessions in a turn.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    visits: u64,
    cpu_ns: u64,
    /// Wall-clock time of all sessions, whether or not they had a processor.
    elapsed_ns: u64,
}

/// Measures one session and `processors` of them, and records each turn as a row of [`VISITS`].
/// Returns the signal that interrupted it, if any.
pub fn measure(
    session: &mut Session,
    observer: &mut dyn Observer,
    processors: u32,
    seed: u64,
) -> Result<Option<&'static str>, CalibrateError> {
    observer.phase(LABEL);
    let start_ns = session.now_ns();
    let instance = open(seed)?;
    // Reads every block into the cache.
    instance.session(0)?.select(0, 0, ROWS)?;
    let (window_start_ns, ()) = session.tick(|_| ())?;
    let mut end_ns = window_start_ns;
    let mut stop = Stop::WorkDone;
    let numbers = [1, processors];
    let numbers = if processors > 1 { &numbers[..] } else { &numbers[..1] };
    for round in 0..ROUNDS {
        if observer.interrupted().is_some() {
            stop = Stop::Interrupted;
            break;
        }
        for &sessions in numbers {
            let Turn { visits, cpu_ns, elapsed_ns } =
                take_turn(&instance, sessions, seed ^ u64::from(round))?;
            let cells = [u64::from(sessions), visits, cpu_ns, elapsed_ns].map(Cell::from).into();
            let row = Reading { probe: VISITS.probe, object: String::new(), cells };
            (end_ns, ()) = session.tick(|readings| readings.push(row))?;
            observer.tick(&Live {
                label: LABEL,
                rates: &[Rate {
                    value: visits as f64 * 1e9 / cpu_ns.max(1) as f64,
                    unit: "blocks/CPU-s",
                }],
                elapsed: session.elapsed(),
                left: Nanos(LONGEST.get().saturating_sub(end_ns - start_ns)),
                is_estimate: true,
            });
        }
    }
    instance.shutdown()?;
    let phase_end_ns = session.now_ns();
    session.recorder().manifest().phases.push(Phase {
        label: LABEL.to_owned(),
        group: Group::CachedVisits,
        repeat: 0,
        load: None,
        background: None,
        start_ns,
        window_start_ns,
        window_end_ns: end_ns,
        end_ns: phase_end_ns,
        stop,
        settled: None,
        processors: None,
        first_error: None,
        note: None,
    });
    session.end_phase()?;
    Ok(observer.interrupted())
}

/// Opens an instance on a disk in memory, loaded, with a cache that has room for all blocks.
fn open(seed: u64) -> Result<Instance, InstanceError> {
    let spec = InstanceSpec {
        block: BLOCK,
        schemas: 1,
        rows: ROWS,
        scan_blocks: 0,
        redo_logs: 2,
        redo: REDO,
        seed,
        random_percent: 100,
    };
    let (redundancy, allocation_unit) = (Redundancy::External, UNIT);
    let disks = vec![DiskSpec { path: NAME.into(), failure_group: None }];
    let group = GroupSpec { disks, redundancy, allocation_unit, direct: false };
    let files = spec.files()?;
    let room = DiskGroup::requirements(&group, &files)?;
    let disk: Arc<dyn Disk> = Arc::new(Memory::new(room.first().copied().unwrap_or(DATA)));
    let members = vec![Member::from(disk)];
    let group = DiskGroup::create_on(members, redundancy, allocation_unit, &files)?;
    Instance::create(&spec, &group)?;
    let cache = Bytes(DATA.get() + DATA.get() / 4);
    let instance = Instance::open(&group, &OpenSpec { cache, ..OpenSpec::default() })?;
    instance.load(1, &mut |_, _| {})?;
    Ok(instance)
}

/// Lets `sessions` sessions visit blocks, each in its own thread.
fn take_turn(instance: &Instance, sessions: u32, seed: u64) -> Result<Turn, InstanceError> {
    let start = OnceLock::new();
    let (connected, heard) = channel();
    let turns = std::thread::scope(|scope| {
        let begin = |number: u32| {
            let (connected, start) = (connected.clone(), &start);
            let work = move || visit(instance, (connected, start), number, seed);
            let name = format!("visits-{number}");
            thread::scoped(scope, &name, work)
                .map_err(|source| InstanceError::Thread { name, source })
        };
        let threads: Result<Vec<_>, _> = (0..sessions).map(begin).collect();
        if threads.is_ok() {
            heard.iter().take(sessions as usize).for_each(drop);
        }
        // If not all threads could be started, those that were end.
        let _ = start.set(threads.is_ok());
        let joined = threads?
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        Ok::<Vec<_>, InstanceError>(joined.collect())
    });
    let mut all = Turn::default();
    for turn in turns? {
        let turn = turn?;
        all.visits += turn.visits;
        all.cpu_ns += turn.cpu_ns;
        all.elapsed_ns += turn.elapsed_ns;
    }
    Ok(all)
}

fn visit(
    instance: &Instance,
    (connected, start): (Sender<()>, &OnceLock<bool>),
    number: u32,
    seed: u64,
) -> Result<Turn, InstanceError> {
    let session = instance.session(number);
    // Sent even after a failure, because it is waited for.
    let _ = connected.send(());
    if !start.wait() {
        return Ok(Turn::default());
    }
    let mut session = session?;
    let mut rng = Rng::new(seed, u64::from(number));
    let (start, start_ns) = (Instant::now(), usage::thread_cpu_ns());
    let mut visits = 0;
    while start.elapsed() < TURN {
        for _ in 0..STATEMENTS {
            visits += session.select(0, rng.below(ROWS - WORK_UNIT), WORK_UNIT)?;
        }
    }
    let cpu_ns = usage::thread_cpu_ns() - start_ns;
    let elapsed_ns = start.elapsed().as_nanos() as u64;
    Ok(Turn { visits, cpu_ns, elapsed_ns })
}

const NAME: &str = "memory";

/// A disk in memory; parts that were never written take none.
struct Memory(Mutex<Vec<u8>>);

impl Memory {
    fn new(size: Bytes) -> Self {
        Self(Mutex::new(vec![0; size.get() as usize]))
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("size_bytes", &self.size_bytes()).finish()
    }
}

impl Disk for Memory {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        let begin = offset as usize;
        let bytes = self.bytes();
        let Some(found) = bytes.get(begin..begin + out.len()) else {
            return Err(DiskError::short(self, "read", offset));
        };
        out.copy_from_slice(found);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        let begin = offset as usize;
        let mut bytes = self.bytes();
        let Some(place) = bytes.get_mut(begin..begin + data.len()) else {
            return Err(DiskError::short(self, "write", offset));
        };
        place.copy_from_slice(data);
        Ok(())
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.write_at(offset, data)
    }

    fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }

    fn size_bytes(&self) -> u64 {
        self.bytes().len() as u64
    }

    fn name(&self) -> &str {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_of_a_turn_are_those_of_all_sessions_and_read_nothing() {
        use blockstone_instance::wait::Statistic;
        let instance = open(7).unwrap();
        instance.session(0).unwrap().select(0, 0, ROWS).unwrap();
        let of = |statistic| instance.snapshot().statistic(statistic);
        let before = [Statistic::LogicalReads, Statistic::PhysicalReads].map(of);
        let turn = take_turn(&instance, 2, 1).unwrap();
        assert_eq!(of(Statistic::LogicalReads) - before[0], turn.visits);
        assert_eq!(of(Statistic::PhysicalReads), before[1], "all blocks are cached");
        assert!(turn.visits.is_multiple_of(WORK_UNIT) && turn.visits > 0);
        assert!(turn.cpu_ns > 0 && turn.elapsed_ns >= 2 * TURN.as_nanos() as u64, "{turn:?}");
        instance.shutdown().unwrap();
    }
}
