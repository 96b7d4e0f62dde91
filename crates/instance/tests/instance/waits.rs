//! Waits on slow disks: each wait appears under its name, and no session waits forever.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use blockstone_base::Nanos;
use blockstone_instance::group::{DiskGroup, Redundancy};
use blockstone_instance::wait::{Event, Role, Statistic};
use blockstone_instance::{Instance, OpenSpec, RedoStress, Scan, TornProtection};
use blockstone_sys::usage;

use crate::load::{Memory, on_sessions};
use crate::slow::{Delays, Slow};
use crate::world::{ROWS, create, open_spec};

const MS: Duration = Duration::from_millis(1);

/// Creates a loaded instance on one disk with `delays`, opened with `open`.
fn slow_instance(delays: Delays, open: &OpenSpec) -> Instance {
    let (machine, group) = create(Redundancy::External, 1, 5);
    let instance = Instance::open(&group, &open_spec(TornProtection::None)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    instance.shutdown().unwrap();
    drop(group);
    let disks = machine.disks().into_iter().map(|disk| Slow::disk(disk, delays)).collect();
    let group = DiskGroup::open_on(disks).unwrap();
    Instance::open(&group, open).unwrap()
}

#[test]
fn commits_share_log_writes_when_sixteen_sessions_commit() {
    let delays = Delays { durable_write: 3 * MS, ..Delays::default() };
    let instance = slow_instance(delays, &open_spec(TornProtection::None));
    on_sessions(&instance, 16, |session, number| {
        for round in 0..20 {
            let key = u64::from(number) * 16 + round % 16;
            session.update(0, key, 1, RedoStress::Lite).unwrap();
            session.commit().unwrap();
        }
    });
    let seen = instance.snapshot();
    assert_eq!(seen.statistic(Statistic::Commits), 320);
    let writes = seen.statistic(Statistic::RedoWrites);
    assert!(writes < 320 / 4, "{writes} log writes for 320 commits");
    assert_eq!(seen.waits(Role::Lgwr, Event::LogFileParallelWrite).count, writes);
    let sync = seen.waits(Role::Session, Event::LogFileSync);
    assert!(sync.count > 200 && sync.time_ns / sync.count > 2_000_000, "{sync:?}");
    let histograms = instance.take_histograms();
    let syncs = histograms.iter().find(|(_, event, _)| *event == Event::LogFileSync);
    assert_eq!(syncs.unwrap().2.count(), sync.count);
    instance.shutdown().unwrap();
}

#[test]
fn tiny_logs_make_sessions_wait_for_the_checkpoint_and_all_is_there_in_the_end() {
    let delays = Delays { write: 5 * MS, ..Delays::default() };
    let instance = slow_instance(delays, &open_spec(TornProtection::FullPage));
    let memory = Memory::new();
    // A session waits if the logs are full before the checkpoint is done. Sessions that share their
    // processors with other work may be late for that, but not each time.
    let waited = (3..13).any(|seed| {
        memory.load(&instance, seed, 120).unwrap();
        instance.snapshot().waits(Role::Session, Event::LogFileSwitch).count > 0
    });
    assert!(waited);
    let seen = instance.snapshot();
    assert!(seen.statistic(Statistic::LogSwitches) >= 3);
    assert!(seen.statistic(Statistic::Checkpoints) >= 1);
    assert_eq!(memory.check_now(&instance), 0);
    instance.shutdown().unwrap();
}

#[test]
fn a_slow_writer_makes_sessions_wait_for_frames_and_for_its_writes() {
    let delays = Delays { write: 2 * MS, ..Delays::default() };
    let open = OpenSpec {
        cache: blockstone_base::Bytes::kib(4 * 64),
        writers: 1,
        ..open_spec(TornProtection::None)
    };
    let instance = slow_instance(delays, &open);
    on_sessions(&instance, 8, |session, number| {
        for round in 0..80_u64 {
            let key = (round * 37 + u64::from(number) * 11) % (ROWS - 4);
            session.update(round as u32 % 2, key, 4, RedoStress::Lite).unwrap();
            session.update(0, 0, 1, RedoStress::Lite).unwrap();
        }
        session.commit().unwrap();
    });
    let seen = instance.snapshot();
    assert!(seen.waits(Role::Session, Event::FreeBufferWaits).count > 0);
    assert!(seen.waits(Role::Session, Event::WriteCompleteWaits).count > 0);
    assert!(seen.waits(Role::Dbwr, Event::DbFileParallelWrite).count > 0);
    let mut session = instance.session(0).unwrap();
    assert!(session.row(0, 0).unwrap().version() >= 8 * 80);
    instance.shutdown().unwrap();
}

#[test]
fn a_block_that_many_want_is_read_once() {
    let delays = Delays { read: 5 * MS, ..Delays::default() };
    let instance = slow_instance(delays, &open_spec(TornProtection::None));
    on_sessions(&instance, 8, |session, _| {
        assert_eq!(session.select(0, 100, 10).unwrap(), 10);
    });
    let seen = instance.snapshot();
    assert_eq!(seen.statistic(Statistic::SingleBlockReads), 10);
    assert_eq!(seen.statistic(Statistic::LogicalReads), 80);
    assert!(seen.waits(Role::Session, Event::ReadByOtherSession).count > 0);
    instance.shutdown().unwrap();
}

#[test]
fn evaluating_rows_takes_processor_time_of_the_session() {
    let instance = slow_instance(Delays::default(), &open_spec(TornProtection::None));
    let mut session = instance.session(0).unwrap();
    let mut spent_ns = |row_cost| {
        let before_ns = usage::thread_cpu_ns();
        let scan = Scan::Direct { multiblock: 4, slots: 2, row_cost };
        assert_eq!(session.scan(1, scan).unwrap(), 40);
        usage::thread_cpu_ns() - before_ns
    };
    assert!(spent_ns(Nanos::millis(1)) >= 40 * 1_000_000);
    drop(session);
    instance.shutdown().unwrap();
}

#[test]
fn every_read_past_the_cache_is_timed_but_only_waits_are_waits() {
    let delays = Delays { read: 20 * MS, ..Delays::default() };
    let instance = slow_instance(delays, &open_spec(TornProtection::None));
    let mut session = instance.session(0).unwrap();
    let scan = Scan::Direct { multiblock: 4, slots: 10, row_cost: Nanos(0) };
    assert_eq!(session.scan(1, scan).unwrap(), 40);
    let seen = instance.snapshot();
    let reads = instance.take_direct_reads();
    assert_eq!((reads.count(), seen.statistic(Statistic::DirectReads)), (10, 10));
    assert!(reads.quantile_ns(0.0) >= 19_000_000, "{}", reads.quantile_ns(0.0));
    assert_eq!(seen.transfers(Role::Session).read_ns, seen.statistic(Statistic::DirectReadNs));
    let waits = seen.waits(Role::Session, Event::DirectPathRead);
    assert!((1..=10).contains(&waits.count), "{waits:?}");
    let read_ns = seen.statistic(Statistic::DirectReadNs);
    assert!(waits.time_ns < read_ns / 2, "all at once, {waits:?} for {read_ns} ns of reads");
    assert_eq!(instance.take_direct_reads().count(), 0);
    session.set_stop_flag(Arc::new(AtomicBool::new(true)));
    for scan in [scan, Scan::Cached { multiblock: 4 }] {
        assert_eq!(session.scan(1, scan).unwrap(), 0, "told to stop: {scan:?}");
    }
    instance.shutdown().unwrap();
}
