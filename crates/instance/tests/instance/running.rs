//! Behaviour of a running instance as its sessions see it, and the sums of their counters.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use blockstone_base::{Bytes, Nanos};
use blockstone_instance::group::{DiskGroup, DiskState, Member, Redundancy};
use blockstone_instance::wait::{Event, Role, Statistic};
use blockstone_instance::{
    Instance, InstanceError, InstanceSpec, OpenSpec, RedoStress, Scan, TornProtection,
};

use crate::load::{Memory, on_sessions};
use crate::world::{ROWS, create, machine, open_on, open_spec, spec};

#[test]
fn exactly_the_rows_asked_for_are_visited_and_reads_add_up() {
    let (_, group) = create(Redundancy::External, 2, 1);
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    let mut session = instance.session(0).unwrap();
    assert!(matches!(session.select(0, 0, 1), Err(InstanceError::NotLoaded { schema: 0 })));
    instance.load(2, &mut |_, _| {}).unwrap();
    assert_eq!(session.select(1, 0, 64).unwrap(), 64);
    assert_eq!(session.select(1, 0, ROWS).unwrap(), ROWS);
    assert_eq!(session.select(0, ROWS - 1, 1).unwrap(), 1);
    assert!(matches!(session.select(0, ROWS - 1, 2), Err(InstanceError::OutOfRange { .. })));
    assert_eq!(session.update(0, 10, 5, RedoStress::Heavy).unwrap(), 5);
    let end = session.commit().unwrap();
    assert_eq!(session.commit().unwrap(), end, "nothing has changed since");
    for key in 8..17 {
        let expected = u64::from((10..15).contains(&key));
        assert_eq!(session.row(0, key).unwrap().version(), expected, "key {key}");
    }
    assert_eq!(session.scan(1, Scan::Cached { multiblock: 16 }).unwrap(), 40);
    let scan = Scan::Direct { multiblock: 7, slots: 3, row_cost: Nanos(0) };
    assert_eq!(session.scan(1, scan).unwrap(), 40);
    let seen = instance.snapshot();
    let count = |statistic| seen.statistic(statistic);
    assert_eq!(count(Statistic::LogicalReads), 64 + ROWS + 1 + 5 + 9 + 40 + 40);
    assert_eq!(
        count(Statistic::LogicalReads),
        count(Statistic::CacheHits) + count(Statistic::PhysicalReads)
    );
    assert_eq!(
        count(Statistic::SingleBlockReads),
        seen.waits(Role::Session, Event::DbFileSequentialRead).count
    );
    assert_eq!(count(Statistic::DirectBlocks), 40);
    assert_eq!(count(Statistic::Commits), 1);
    assert_eq!(count(Statistic::BlockChanges), 5);
    instance.shutdown().unwrap();
}

#[test]
fn a_copy_of_all_rows_writes_each_block_once_and_survives_a_power_loss_once_it_is_flushed() {
    let made = InstanceSpec { scan_blocks: 2 * ROWS, ..spec() };
    let machine = machine(2, 5);
    let members = machine.disks().into_iter().map(Member::from).collect();
    let (unit, files) = (Bytes::mib(1), made.files().unwrap());
    let group = DiskGroup::create_on(members, Redundancy::Normal, unit, &files).unwrap();
    Instance::create(&made, &group).unwrap();
    let spec = open_spec(TornProtection::FullPage);
    let instance = Instance::open(&group, &spec).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    let mut session = instance.session(0).unwrap();
    assert!(session.copy_rows(1, 2).unwrap_err().to_string().contains("a second table of 600"));
    let before = instance.snapshot();
    assert_eq!(session.copy_rows(1, 1).unwrap(), ROWS);
    session.flush_tables().unwrap();
    session.commit().unwrap();
    let seen = instance.snapshot();
    let moved = |statistic| seen.statistic(statistic) - before.statistic(statistic);
    assert_eq!(moved(Statistic::PhysicalReads), ROWS);
    assert_eq!(moved(Statistic::PhysicalWrites), ROWS, "a mirrored write counts once");
    assert_eq!((moved(Statistic::Commits), moved(Statistic::BlockChanges)), (1, 0));
    assert!(moved(Statistic::RedoBytes) < 200, "only the commit has redo");
    assert_eq!(seen.waits(Role::Session, Event::DirectPathSync).count, 1);
    assert!(seen.waits(Role::Session, Event::DirectPathWrite).count > 0);
    drop(session);
    instance.crash();
    drop(group);
    machine.lose_power();
    let instance = open_on(&machine, &spec).unwrap();
    let mut session = instance.session(0).unwrap();
    let scan = Scan::Direct { multiblock: 7, slots: 3, row_cost: Nanos(0) };
    assert_eq!(session.scan(1, scan).unwrap(), 2 * ROWS, "every block is whole and in its place");
    assert_eq!(session.select(1, 0, ROWS).unwrap(), ROWS);
}

/// The checkpoint that ended first used to tell the writers that nothing was left to write for the
/// others.
#[test]
fn checkpoints_that_sessions_ask_for_at_the_same_time_all_end() {
    let (_, group) = create(Redundancy::External, 1, 2);
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    let instance = Arc::new(instance);
    let (ended, ends) = mpsc::channel();
    for number in 0..4 {
        let (instance, ended) = (Arc::clone(&instance), ended.clone());
        std::thread::spawn(move || {
            let mut session = instance.session(number).unwrap();
            for _ in 0..100 {
                session.update(0, u64::from(number) * 10, 3, RedoStress::Lite).unwrap();
                session.commit().unwrap();
                instance.checkpoint().unwrap();
            }
            ended.send(number).unwrap();
        });
    }
    for _ in 0..4 {
        ends.recv_timeout(Duration::from_mins(1)).expect("every checkpoint ends");
    }
}

#[test]
fn a_failure_group_may_leave_and_return_during_a_load_and_nobody_notices() {
    let (_, group) = create(Redundancy::Normal, 3, 6);
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    let memory = Memory::new();
    std::thread::scope(|scope| {
        let load = scope.spawn(|| memory.load(&instance, 12, 250));
        while memory.acknowledged() < 100 && !load.is_finished() {
            std::thread::yield_now();
        }
        group.offline(1).unwrap();
        load.join().unwrap().unwrap();
    });
    memory.load(&instance, 13, 20).unwrap();
    assert_eq!(memory.check_now(&instance), 0);
    instance.checkpoint().unwrap();
    assert_eq!(memory.check_now(&instance), 0);
    instance.shutdown().unwrap();
}

#[test]
fn a_disk_that_left_is_brought_back_by_itself_with_all_that_it_missed() {
    let (_, group) = create(Redundancy::Normal, 2, 16);
    let open = OpenSpec {
        return_after: Duration::from_millis(300),
        ..open_spec(TornProtection::FullPage)
    };
    let instance = Instance::open(&group, &open).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    let memory = Memory::new();
    std::thread::scope(|scope| {
        let load = scope.spawn(|| memory.load(&instance, 12, 250));
        while memory.acknowledged() < 100 && !load.is_finished() {
            std::thread::yield_now();
        }
        group.offline(1).unwrap();
        load.join().unwrap().unwrap();
    });
    let news = wait_for_news(&instance, 2);
    assert!(news[0].contains("hostile-1 is offline"), "{news:?}");
    assert!(news[1].contains("hostile-1 is back") && news[1].contains("verified"), "{news:?}");
    let counters = &group.counters()[1];
    assert_eq!(counters.state, DiskState::Online);
    assert!(counters.offline_ns > 0 && counters.stale_units == 0, "{counters:?}");
    // From now on it is the only one to serve.
    group.offline(0).unwrap();
    assert_eq!(memory.check_now(&instance), 0);
    instance.crash();
}

#[test]
fn a_disk_that_was_missing_when_all_was_shut_down_is_resynced_at_the_next_opening() {
    let (machine, group) = create(Redundancy::Normal, 2, 17);
    let open = open_spec(TornProtection::FullPage);
    let instance = Instance::open(&group, &open).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    let memory = Memory::new();
    memory.load(&instance, 3, 40).unwrap();
    group.offline(1).unwrap();
    memory.load(&instance, 4, 80).unwrap();
    instance.shutdown().unwrap();
    drop(group);
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    assert_eq!(group.counters()[1].state, DiskState::Offline);
    let instance = Instance::open(&group, &open).unwrap();
    let news = wait_for_news(&instance, 1);
    assert!(news[0].contains("hostile-1 is back"), "{news:?}");
    group.offline(0).unwrap();
    assert_eq!(memory.check_now(&instance), 0);
    instance.crash();
}

/// Returns the news, once there are `count` items.
fn wait_for_news(instance: &Instance, count: usize) -> Vec<String> {
    let patience = Instant::now() + Duration::from_secs(30);
    let mut news = Vec::new();
    while news.len() < count {
        assert!(Instant::now() < patience, "{news:?}, {:?}", instance.group().counters());
        std::thread::sleep(Duration::from_millis(1));
        news.extend(instance.take_news());
    }
    news
}

#[test]
fn protection_against_torn_writes_costs_what_is_counted() {
    for protection in [TornProtection::None, TornProtection::FullPage, TornProtection::DoubleWrite]
    {
        let (_, group) = create(Redundancy::External, 1, 2);
        let instance = Instance::open(&group, &open_spec(protection)).unwrap();
        instance.load(2, &mut |_, _| {}).unwrap();
        let mut session = instance.session(0).unwrap();
        session.update(0, 0, 20, RedoStress::Lite).unwrap();
        session.update(0, 0, 20, RedoStress::Lite).unwrap();
        session.commit().unwrap();
        instance.checkpoint().unwrap();
        let seen = instance.snapshot();
        let block = spec().block.get();
        let (bytes, redo) =
            (seen.statistic(Statistic::ProtectionBytes), seen.statistic(Statistic::RedoBytes));
        // Forty times two columns, new and old, with headers, and a commit.
        let changes = 40 * (32 + 4 * 128) + 24;
        match protection {
            TornProtection::None => assert_eq!((bytes, redo), (0, changes)),
            TornProtection::FullPage => {
                // Only for the first change of each block since it was last written.
                assert_eq!((bytes, redo), (20 * (block + 16), changes + 20 * (block + 16)));
            }
            TornProtection::DoubleWrite => assert_eq!((bytes, redo), (20 * block, changes)),
        }
        assert_eq!(seen.statistic(Statistic::PhysicalWrites), 20);
        assert_eq!(seen.statistic(Statistic::BlockChanges), 40);
        assert_eq!(seen.dirty_blocks, 0);
        instance.shutdown().unwrap();
    }
}

#[test]
fn scans_and_updates_of_many_sessions_share_a_small_cache() {
    let (_, group) = create(Redundancy::External, 2, 9);
    let instance = Instance::open(&group, &open_spec(TornProtection::FullPage)).unwrap();
    instance.load(2, &mut |_, _| {}).unwrap();
    on_sessions(&instance, 8, |session, number| {
        for round in 0..30 {
            let scan = match (number + round) % 3 {
                0 => Scan::Cached { multiblock: 1 + round },
                1 => Scan::Direct { multiblock: 1 + round, slots: 1 + number, row_cost: Nanos(0) },
                _ => {
                    let key = u64::from(number * round) % (ROWS - 8);
                    session.update(1, key, 8, RedoStress::Heavy).unwrap();
                    session.commit().unwrap();
                    continue;
                }
            };
            assert_eq!(session.scan(number % 2, scan).unwrap(), 40);
        }
    });
    let seen = instance.snapshot();
    let count = |statistic| seen.statistic(statistic);
    assert_eq!(
        count(Statistic::LogicalReads),
        count(Statistic::CacheHits) + count(Statistic::PhysicalReads)
    );
    let reads = seen.transfers(Role::Session).read_ios;
    let kinds = [Statistic::SingleBlockReads, Statistic::MultiblockReads, Statistic::DirectReads];
    assert_eq!(reads, kinds.into_iter().map(count).sum::<u64>());
    instance.shutdown().unwrap();
}
