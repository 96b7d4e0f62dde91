//! Flushes: a successful sync has made durable everything that was written before it was called,
//! whichever thread flushed.

use blockstone_base::hint::Hint as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use blockstone_instance::disk::Disk;
use blockstone_instance::group::{
    BatchWrite, DiskGroup, DiskState, GroupError, GroupFile, Redundancy,
};

use crate::ram::{Ram, disks, rams};
use crate::{BLOCK, block, create, version, whole};

/// Long enough for a call that does not wait to return; one that waits never returns within it.
const WHILE: Duration = Duration::from_millis(200);

fn group(rams: &[Arc<Ram>], redundancy: Redundancy) -> (DiskGroup, GroupFile, GroupFile) {
    let group = create(disks(rams), redundancy).unwrap();
    let (data, redo) = (group.file("data").unwrap(), group.file("redo").unwrap());
    (group, data, redo)
}

fn write(file: &GroupFile, offset: u64, version: u64) {
    file.write(offset, &block(offset, version), false).unwrap();
}

fn expect(file: &GroupFile, offset: u64, expected: u64) {
    let mut found = vec![0; BLOCK as usize];
    file.read(offset, &mut found, &whole).unwrap();
    assert_eq!(version(offset, &found), Some(expected), "byte {offset}");
}

/// Calls `work` in a thread, and reports when it has returned.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> (ScopedJoinHandle<'scope, T>, Receiver<()>) {
    let (sender, returned) = channel();
    let thread = scope.spawn(move || {
        let result = work();
        let _ = sender.send(());
        result
    });
    (thread, returned)
}

#[test]
fn a_sync_waits_for_a_flush_under_way_that_covers_its_writes() {
    let rams = rams(1);
    let (group, data, _) = group(&rams, Redundancy::External);
    write(&data, 0, 1);
    let gate = rams[0].hold_sync();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| group.sync());
        gate.wait();
        let (second, returned) = start(scope, || {
            group.sync().unwrap();
            assert!(rams[0].has_durably(&block(0, 1)), "a sync returned before its flush ended");
        });
        let early = returned.recv_timeout(WHILE).is_ok();
        gate.decide(true);
        first.join().unwrap().unwrap();
        second.join().unwrap();
        assert!(!early, "a sync returned while the flush of its writes was under way");
    });
    assert_eq!(rams[0].syncs(), 1, "the second call shares the flush of the first");
}

#[test]
fn a_flush_that_fails_fails_for_everyone_who_waited_for_it() {
    let rams = rams(1);
    let (group, data, _) = group(&rams, Redundancy::External);
    write(&data, 0, 1);
    let gate = rams[0].hold_sync();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| group.sync());
        gate.wait();
        let (second, returned) = start(scope, || group.sync());
        let _ = returned.recv_timeout(WHILE);
        gate.decide(false);
        (first.join().unwrap(), second.join().unwrap())
    });
    assert!(first.is_err(), "the caller that flushed");
    assert!(second.is_err(), "the caller that waited");
}

#[test]
fn a_failed_flush_is_not_tried_again_and_believed() {
    let rams = rams(2);
    let (group, data, redo) = group(&rams, Redundancy::External);
    write(&data, 0, 1);
    let gate = rams[0].hold_sync();
    gate.decide(false);
    let error = group.sync().unwrap_err();
    assert!(matches!(error, GroupError::WritesLost { .. }), "{error}");
    let text = error.told();
    assert!(text.contains("disk ram0 failed to flush") && text.contains("hint: "), "{text}");
    assert!(text.contains("Input/output error"), "{text}");

    assert!(group.sync().is_err(), "the data are gone, whatever the next flush says");
    assert_eq!(rams[0].syncs(), 1);
    assert!(redo.write(0, &block(0, 1), true).is_err(), "nothing is built upon what is there");
    assert!(group.close().is_err());
    drop((group, data, redo));
    let again = DiskGroup::open_on(disks(&rams)).unwrap();
    write(&again.file("data").unwrap(), 0, 1);
    again.sync().unwrap();
    assert!(rams[0].has_durably(&block(0, 1)));
}

#[test]
fn a_close_whose_flush_failed_is_not_a_close_the_second_time_either() {
    let rams = rams(1);
    let (group, data, _) = group(&rams, Redundancy::External);
    write(&data, 0, 1);
    let gate = rams[0].hold_sync();
    gate.decide(false);
    group.close().unwrap_err();
    assert!(group.close().is_err(), "a failed close does not become a good one");
}

#[test]
fn what_is_written_during_a_flush_is_covered_by_the_next_which_all_callers_share() {
    let rams = rams(1);
    let (group, data, _) = group(&rams, Redundancy::External);
    write(&data, 0, 1);
    let gate = rams[0].hold_sync();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| group.sync());
        gate.wait();
        // The same unit again, and another.
        write(&data, 0, 2);
        write(&data, 1 << 20, 2);
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(|| group.sync())).collect();
        gate.decide(true);
        first.join().unwrap().unwrap();
        for caller in callers {
            caller.join().unwrap().unwrap();
        }
    });
    assert_eq!(rams[0].syncs(), 2);
    rams[0].power_loss();
    expect(&data, 0, 2);
    expect(&data, 1 << 20, 2);
}

#[test]
fn a_sync_flushes_once_what_was_written_and_nothing_when_nothing_was() {
    let rams = rams(2);
    let (group, data, _) = group(&rams, Redundancy::External);
    group.sync().unwrap();
    assert_eq!(rams[0].syncs() + rams[1].syncs(), 0);
    for round in 1..4 {
        write(&data, 0, round);
        group.sync().unwrap();
        group.sync().unwrap();
        assert_eq!((rams[0].syncs(), rams[1].syncs()), (round, 0), "the disk of unit 0");
    }
    data.write(0, &block(0, 9), true).unwrap();
    group.sync().unwrap();
    assert_eq!(rams[0].syncs(), 3, "a durable write needs no flush");
}

/// Two writers with separate double-write areas: the flush of one covers the other's blocks.
#[test]
fn double_write_with_two_writers_cleans_no_block_that_is_volatile() {
    let rams = rams(1);
    let (_group, data, _) = group(&rams, Redundancy::External);
    write(&data, 0, 1);
    write(&data, 1 << 20, 1);
    let gate = rams[0].hold_sync();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| data.sync());
        gate.wait();
        let (first, returned) = start(scope, || {
            data.sync().unwrap();
            // The writer now marks its frames clean, and the checkpoint moves past them.
            rams[0].has_durably(&block(0, 1))
        });
        let _ = returned.recv_timeout(WHILE);
        gate.decide(true);
        second.join().unwrap().unwrap();
        assert!(first.join().unwrap(), "a frame became clean whose block was volatile");
    });
}

/// One writer and the checkpoint: the flush of the checkpoint covers the double-write copies.
#[test]
fn double_write_overwrites_no_block_whose_copy_is_volatile() {
    let rams = rams(1);
    let (_group, data, double_write) = group(&rams, Redundancy::External);
    data.write(0, &block(0, 1), true).unwrap();
    write(&double_write, 0, 2);
    let gate = rams[0].hold_sync();
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| data.sync());
        gate.wait();
        let (writer, returned) = start(scope, || {
            double_write.sync().unwrap();
            rams[0].has_durably(&block(0, 2))
        });
        let _ = returned.recv_timeout(WHILE);
        gate.decide(true);
        checkpoint.join().unwrap().unwrap();
        assert!(writer.join().unwrap(), "the copy was volatile when its block was overwritten");
    });
}

/// A disk returns while a checkpoint flushes the units copied to it.
#[test]
fn a_returning_disk_is_not_online_before_the_flush_of_what_it_got_has_ended_well() {
    for ends_well in [true, false] {
        let rams = rams(2);
        let (group, data, _) = group(&rams, Redundancy::Normal);
        group.offline(1).unwrap();
        write(&data, 0, 1);
        write(&data, 1 << 20, 1);
        group.sync().unwrap();
        let copy = rams[1].hold_write();
        let returned_disk = Arc::clone(&rams[1]) as Arc<dyn Disk>;
        std::thread::scope(|scope| {
            let (resync, returned) = start(scope, || group.online_and_resync_on(1, &returned_disk));
            // The first unit is copied, then the second arrives: only the first is flushed.
            copy.wait();
            let second = rams[1].hold_write();
            copy.decide(true);
            second.wait();
            let flush = rams[1].hold_sync();
            let checkpoint = scope.spawn(|| group.sync());
            flush.wait();
            second.decide(true);
            let early = returned.recv_timeout(WHILE).is_ok();
            let state = group.counters()[1].state;
            flush.decide(ends_well);
            checkpoint.join().unwrap().unwrap();
            let ended = resync.join().unwrap();
            assert!(!early, "the disk returned while what it had got was being flushed");
            assert_eq!(state, DiskState::Resyncing);
            assert_eq!(ended.is_ok(), ends_well, "{ended:?}");
        });
        if !ends_well {
            assert_eq!(group.counters()[1].state, DiskState::Offline);
            assert!(group.counters()[1].stale_units >= 1, "what the flush lost is missed again");
            group.online_and_resync_on(1, &returned_disk).unwrap();
        }
        rams[1].power_loss();
        group.offline(0).unwrap();
        expect(&data, 0, 1);
        expect(&data, 1 << 20, 1);
    }
}

#[test]
fn what_a_disk_may_lose_is_durable_there_before_it_is_copied_elsewhere() {
    let rams = rams(2);
    let (group, data, _) = group(&rams, Redundancy::Normal);
    group.offline(1).unwrap();
    write(&data, 0, 1);
    let copy = rams[1].hold_write();
    let returned = Arc::clone(&rams[1]) as Arc<dyn Disk>;
    std::thread::scope(|scope| {
        let resync = scope.spawn(|| group.online_and_resync_on(1, &returned));
        copy.wait();
        let is_durable = rams[0].has_durably(&block(0, 1));
        copy.decide(true);
        resync.join().unwrap().unwrap();
        assert!(is_durable, "a block was copied that its source could still lose");
    });
}

#[test]
fn with_a_mirror_everyone_who_waited_for_a_failed_flush_finds_the_disk_offline() {
    let rams = rams(2);
    let (group, data, _) = group(&rams, Redundancy::Normal);
    write(&data, 0, 1);
    let gate = rams[0].hold_sync();
    std::thread::scope(|scope| {
        let sync = || {
            group.sync().unwrap();
            (group.counters()[0].state, rams[1].has_durably(&block(0, 1)))
        };
        let first = scope.spawn(sync);
        gate.wait();
        let (second, returned) = start(scope, sync);
        let _ = returned.recv_timeout(WHILE);
        gate.decide(false);
        for caller in [first, second] {
            let (state, is_durable) = caller.join().unwrap();
            assert_eq!(state, DiskState::Offline, "a sync returned before the disk had left");
            assert!(is_durable, "a sync returned before the mirror had it");
        }
    });
    assert_eq!(group.counters()[0].stale_units, 1);
}

#[test]
fn a_disk_that_leaves_during_a_flush_missed_what_the_flush_covers() {
    let rams = rams(2);
    let (group, data, _) = group(&rams, Redundancy::Normal);
    write(&data, 0, 1);
    let gate = rams[0].hold_sync();
    std::thread::scope(|scope| {
        let sync = scope.spawn(|| group.sync());
        gate.wait();
        group.offline(0).unwrap();
        // The flush is on a disk that has left, so its result does not matter.
        gate.decide(false);
        sync.join().unwrap().unwrap();
    });
    assert_eq!(group.counters()[0].stale_units, 1, "what was being flushed may be lost");
    let returned = Arc::clone(&rams[0]) as Arc<dyn Disk>;
    assert_eq!(group.online_and_resync_on(0, &returned).unwrap(), 1);
    group.offline(1).unwrap();
    expect(&data, 0, 1);
}

/// A disk leaves at any moment of a write, and loses its cache: what it took counts as missed.
#[test]
fn a_write_is_missed_or_unsynced_whenever_the_disk_leaves() {
    let rams = rams(2);
    let (group, data, _) = group(&rams, Redundancy::Normal);
    let returned = Arc::clone(&rams[0]) as Arc<dyn Disk>;
    for round in 1..60 {
        let blocks: Vec<Vec<u8>> = (0..8).map(|unit| block(unit << 20, round)).collect();
        let writes: Vec<BatchWrite<'_>> = (0..)
            .zip(&blocks)
            .map(|(unit, data)| BatchWrite { offset: unit << 20, data })
            .collect();
        std::thread::scope(|scope| {
            let gate = rams[1].hold_write();
            let batch = scope.spawn(|| data.write_batch(&writes).unwrap());
            gate.wait();
            gate.decide(true);
            group.offline(0).unwrap();
            batch.join().unwrap();
        });
        rams[0].power_loss();
        group.online_and_resync_on(0, &returned).unwrap();
        group.sync().unwrap();
        let found: Vec<usize> = blocks.iter().map(|block| rams[0].find(block).len()).collect();
        assert_eq!(found, [1; 8], "round {round}: a unit was neither missed nor synced");
    }
}
