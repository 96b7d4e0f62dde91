//! Disks that fail, are lost and return.

use blockstone_base::hint::Hint as _;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use blockstone_instance::disk::{Disk, DiskError};
use blockstone_instance::group::{
    BatchWrite, DiskGroup, DiskState, GroupError, GroupFile, Redundancy,
};
use blockstone_instance::testing::Faults;
use proptest::prelude::*;

use crate::{BLOCK, block, create, machine, version, whole};

/// Makes these disks fail, and no others.
fn dead<const N: usize>(disks: [usize; N]) -> Faults {
    Faults { dies: disks.map(|disk| (disk, 0)).to_vec(), ..Faults::default() }
}

/// Writes every block of a file, in batches of 64.
fn write_all(file: &GroupFile, version: u64) {
    let offsets: Vec<u64> = (0..file.size() / BLOCK).map(|number| number * BLOCK).collect();
    for batch in offsets.chunks(64) {
        let blocks: Vec<Vec<u8>> = batch.iter().map(|offset| block(*offset, version)).collect();
        let writes = batch.iter().zip(&blocks);
        let writes: Vec<_> =
            writes.map(|(offset, data)| BatchWrite { offset: *offset, data }).collect();
        file.write_batch(&writes).unwrap();
    }
}

fn expect_all(file: &GroupFile, expected: u64) {
    let mut found = vec![0; 1 << 20];
    for offset in (0..file.size()).step_by(1 << 20) {
        file.read(offset, &mut found, &whole).unwrap();
        for (number, found) in (0..).zip(found.chunks(BLOCK as usize)) {
            assert_eq!(version(offset + number * BLOCK, found), Some(expected));
        }
    }
}

fn states(group: &DiskGroup) -> Vec<DiskState> {
    group.counters().into_iter().map(|disk| disk.state).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Write { file: bool, block: u64, blocks: u64, durable: bool },
    Batch { file: bool, blocks: Vec<u64> },
    Sync,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (any::<bool>(), 0_u64..2040, 1_u64..8, any::<bool>()).prop_map(
            |(file, block, blocks, durable)| Step::Write { file, block, blocks, durable }
        ),
        4 => (any::<bool>(), prop::collection::btree_set(0_u64..2048, 1..20))
            .prop_map(|(file, blocks)| Step::Batch { file, blocks: blocks.into_iter().collect() }),
        1 => Just(Step::Sync),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..25)
}

fn perform(
    group: &DiskGroup,
    step: &Step,
    number: u64,
    model: &mut HashMap<(bool, u64), u64>,
) -> Result<(), GroupError> {
    let open = |file: bool| group.file(if file { "redo" } else { "data" });
    match step {
        Step::Write { file, block: first, blocks, durable } => {
            let data: Vec<u8> =
                (*first..first + blocks).flat_map(|b| block(b * BLOCK, number)).collect();
            open(*file)?.write(first * BLOCK, &data, *durable)?;
            model.extend((*first..first + blocks).map(|block| ((*file, block), number)));
        }
        Step::Batch { file, blocks } => {
            let data: Vec<Vec<u8>> = blocks.iter().map(|b| block(b * BLOCK, number)).collect();
            let writes: Vec<_> = blocks
                .iter()
                .zip(&data)
                .map(|(block, data)| BatchWrite { offset: block * BLOCK, data })
                .collect();
            open(*file)?.write_batch(&writes)?;
            model.extend(blocks.iter().map(|block| ((*file, *block), number)));
        }
        Step::Sync => group.sync()?,
        Step::Reopen => {}
    }
    Ok(())
}

fn expect_model(group: &DiskGroup, model: &HashMap<(bool, u64), u64>) {
    let mut found = vec![0; BLOCK as usize];
    for ((file, number), expected) in model {
        let file = group.file(if *file { "redo" } else { "data" }).unwrap();
        file.read(number * BLOCK, &mut found, &whole).unwrap();
        assert_eq!(version(number * BLOCK, &found), Some(*expected), "{} {number}", file.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// With two copies, any disk may die at any operation: nothing that was acknowledged is lost,
    /// even if the group is opened again without that disk, and even if the disk then returns and
    /// another one dies.
    #[test]
    fn one_disk_may_die_at_any_write(
        steps in steps(),
        count in 2_usize..6,
        victim in 0_usize..6,
        second in 0_usize..6,
        life in 1_u64..300,
    ) {
        let (victim, second) = (victim % count, second % count);
        let machine = machine(count, 32);
        let disks = machine.disks();
        let mut group = create(disks.clone(), Redundancy::Normal).unwrap();
        machine.set_faults(Faults { dies: vec![(victim, life)], ..Faults::default() });
        let mut model = HashMap::new();
        for (number, step) in (1..).zip(&steps) {
            perform(&group, step, number, &mut model).unwrap();
            if matches!(step, Step::Reopen) {
                group = DiskGroup::open_on(disks.clone()).unwrap();
            }
        }
        machine.set_faults(dead([victim]));
        expect_model(&group, &model);
        drop(group);

        let group = DiskGroup::open_on(disks.clone()).unwrap();
        expect_model(&group, &model);
        machine.set_faults(Faults::default());
        if states(&group)[victim] == DiskState::Offline {
            group.online_and_resync_on(victim, &disks[victim]).unwrap();
        }
        prop_assert!(states(&group).iter().all(|state| *state == DiskState::Online));
        machine.set_faults(dead([second]));
        expect_model(&group, &model);
    }
}

#[test]
fn a_dead_disk_goes_offline_and_gets_only_what_it_missed() {
    let machine = machine(4, 32);
    let open = machine.disks();
    let group = create(open.clone(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    group.sync().unwrap();
    expect_all(&data, 1);
    assert!(group.counters().iter().all(|disk| disk.degraded_reads == 0));

    machine.set_faults(dead([1]));
    expect_all(&data, 1);
    let counters = group.counters();
    assert_eq!(counters[1].state, DiskState::Offline, "the repair of a failed read found it out");
    assert!(counters[1].errors > 0 && counters.iter().any(|disk| disk.degraded_reads > 0));
    // Unit 0 has a copy on disk 0, unit 1 on disk 1.
    data.write(1 << 20, &block(1 << 20, 2), true).unwrap();
    data.write(0, &block(0, 2), true).unwrap();
    let missed = group.counters()[1].stale_units;
    assert!((1..=3).contains(&missed), "{missed} units");

    machine.set_faults(Faults::default());
    let reads = |group: &DiskGroup| group.counters()[1].reads;
    let before = reads(&group);
    assert_eq!(group.online_and_resync_on(1, &open[1]).unwrap(), missed);
    assert_eq!(states(&group)[1], DiskState::Online);
    let mut found = vec![0; BLOCK as usize];
    let info = data.read(1 << 20, &mut found, &whole).unwrap();
    assert_eq!((version(1 << 20, &found), info.ios, info.degraded), (Some(2), 1, false));
    assert_eq!(
        reads(&group),
        before + missed + 1,
        "what it took is read back, and it serves again"
    );
    assert!(matches!(group.online_and_resync_on(1, &open[1]), Err(GroupError::NotOffline { .. })));
}

#[test]
fn what_a_disk_took_and_did_not_sync_is_missed_as_well() {
    let machine = machine(2, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    group.sync().unwrap();
    write_all(&data, 2);
    // The disk loses its power and its cache; the others do not.
    let durable = machine.durable().swap_remove(0);
    machine.alter(0, |disk| *disk = durable);
    machine.set_faults(dead([0]));
    group.offline(0).unwrap();
    assert_eq!(group.counters()[0].stale_units, 8);
    machine.set_faults(Faults::default());
    group.online_and_resync_on(0, &machine.disks()[0]).unwrap();
    group.offline(1).unwrap();
    expect_all(&data, 2);
}

#[test]
fn a_failed_sync_takes_the_disk_offline_and_distrusts_all_since_the_last() {
    let machine = machine(3, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    machine.set_faults(dead([2]));
    group.sync().unwrap();
    let counters = group.counters();
    assert_eq!(counters[2].state, DiskState::Offline);
    assert!(counters[2].stale_units >= 5, "{} of 16 copies on 3 disks", counters[2].stale_units);
    expect_all(&data, 1);
}

#[test]
fn the_last_copy_is_never_given_up() {
    let machine = machine(2, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    machine.set_faults(dead([0]));
    write_all(&data, 2);
    machine.set_faults(dead([0, 1]));
    let error = data.write(0, &block(0, 3), true).unwrap_err();
    assert!(error.told().contains("hostile-1"), "{error}");
    assert!(matches!(group.offline(1), Err(GroupError::CopiesMissing { .. })));
    machine.set_faults(dead([0]));
    // The failed write may have left a part of itself, but nothing else.
    data.write(0, &block(0, 2), true).unwrap();
    expect_all(&data, 2);
    let error = group.offline(1).unwrap_err().told();
    assert!(error.contains("hostile-0, hostile-1") && error.contains("hint: "), "{error}");
}

/// A failed write may leave a torn block; an older copy on a disk that returns would replace it.
#[test]
fn no_disk_returns_after_a_write_that_failed_everywhere() {
    let machine = machine(2, 32);
    let disks = machine.disks();
    let group = create(disks.clone(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    data.write(0, &block(0, 1), true).unwrap();
    group.offline(1).unwrap();
    machine.set_faults(dead([0]));
    data.write(0, &block(0, 2), true).unwrap_err();
    machine.set_faults(Faults::default());
    let error = group.online_and_resync_on(1, &disks[1]).unwrap_err();
    assert!(matches!(error, GroupError::WriteFailed { .. }), "{error}");
    drop(data);
    drop(group);
    let group = DiskGroup::open_on(disks.clone()).unwrap();
    group.online_and_resync_on(1, &disks[1]).unwrap();
    assert_eq!(states(&group), [DiskState::Online; 2]);
}

#[test]
fn external_redundancy_reports_errors_and_goes_on() {
    let machine = machine(2, 32);
    let group = create(machine.disks(), Redundancy::External).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    machine.set_faults(dead([0]));
    let mut found = vec![0; BLOCK as usize];
    assert!(matches!(data.read(0, &mut found, &whole), Err(GroupError::Disk(_))));
    assert!(matches!(data.write(0, &block(0, 2), false), Err(GroupError::Disk(_))));
    data.read(1 << 20, &mut found, &whole).unwrap();
    machine.set_faults(Faults::default());
    data.write(0, &block(0, 1), false).unwrap();
    expect_all(&data, 1);
}

#[test]
fn two_failure_groups_may_go_with_three_copies() {
    let machine = machine(5, 32);
    let group = create(machine.disks(), Redundancy::High).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    machine.set_faults(dead([3]));
    write_all(&data, 2);
    machine.set_faults(dead([0, 3]));
    write_all(&data, 3);
    expect_all(&data, 3);
    let offline = states(&group).iter().filter(|state| **state == DiskState::Offline).count();
    assert_eq!(offline, 2);
}

#[test]
fn reads_and_writes_go_on_while_a_disk_returns() {
    let machine = machine(3, 64);
    let open = machine.disks();
    let group = create(open.clone(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    group.offline(2).unwrap();
    write_all(&data, 2);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (3..12).for_each(|version| write_all(&data, version)));
        let reader = scope.spawn(|| {
            let mut found = vec![0; BLOCK as usize];
            for number in (0..2048).cycle().take(20_000) {
                data.read(number * BLOCK, &mut found, &whole).unwrap();
            }
        });
        let copied = group.online_and_resync_on(2, &open[2]).unwrap();
        assert!(copied >= 4, "{copied} units");
        writer.join().unwrap();
        reader.join().unwrap();
    });
    expect_all(&data, 11);
    group.offline(0).unwrap();
    expect_all(&data, 11);
}

/// Disks die and return one after the other under four writers and two readers, which see no error;
/// the last acknowledged content is on every copy.
#[test]
fn disks_come_and_go_under_load_and_nobody_notices() {
    let machine = machine(4, 32);
    let disks = machine.disks();
    let group = create(disks.clone(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 1);
    let stop = AtomicBool::new(false);
    let writer = |first: u64| {
        let mut version = 1;
        while !stop.load(Ordering::Relaxed) {
            version += 1;
            let numbers: Vec<u64> = (first..2048).step_by(64).collect();
            let blocks: Vec<Vec<u8>> = numbers.iter().map(|n| block(n * BLOCK, version)).collect();
            let writes: Vec<_> = numbers
                .iter()
                .zip(&blocks)
                .map(|(number, data)| BatchWrite { offset: number * BLOCK, data })
                .collect();
            data.write_batch(&writes).unwrap();
            if version % 5 == 0 {
                data.sync().unwrap();
            }
        }
        (first, version)
    };
    let reader = |seed: u64| {
        let mut found = vec![0; BLOCK as usize];
        let mut number = seed;
        while !stop.load(Ordering::Relaxed) {
            number = (number * 1103 + 12_347) % 2048;
            data.read(number * BLOCK, &mut found, &whole).unwrap();
        }
    };
    let last: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|first| scope.spawn(move || writer(first))).collect();
        (0..2).for_each(|seed| drop(scope.spawn(move || reader(seed))));
        for round in 0..8 {
            let victim = round % 4;
            let at = round as u64 % 3 * 20;
            machine.set_faults(Faults { dies: vec![(victim, at)], ..Faults::default() });
            while states(&group)[victim] == DiskState::Online {
                std::thread::yield_now();
            }
            machine.set_faults(Faults::default());
            group.online_and_resync_on(victim, &disks[victim]).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for (victim, disk) in disks.iter().enumerate() {
        group.offline(victim).unwrap();
        let mut found = vec![0; BLOCK as usize];
        for (first, expected) in &last {
            for number in (*first..2048).step_by(64) {
                data.read(number * BLOCK, &mut found, &whole).unwrap();
                assert_eq!(version(number * BLOCK, &found), Some(*expected), "without {victim}");
            }
        }
        group.online_and_resync_on(victim, disk).unwrap();
    }
}

/// A disk whose next read, once it is armed, delays between reading its data and returning.
#[derive(Debug)]
struct Slow {
    inner: Arc<dyn Disk>,
    armed: AtomicBool,
    started: Mutex<Sender<()>>,
}

impl Disk for Slow {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), DiskError> {
        self.inner.read_at(offset, out)?;
        if self.armed.swap(false, Ordering::Relaxed) {
            self.started.lock().unwrap().send(()).unwrap();
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.inner.write_at(offset, data)
    }

    fn write_dsync_at(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.inner.write_dsync_at(offset, data)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.inner.sync()
    }

    fn size_bytes(&self) -> u64 {
        self.inner.size_bytes()
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

/// Copying from one disk to another, to give a disk what it missed or to repair a block, must not
/// overwrite newer writes with the data it read.
#[test]
fn a_copy_under_way_never_lands_on_a_newer_write() {
    for repair in [true, false] {
        let machine = machine(2, 32);
        let mut open = machine.disks();
        let (sender, started) = channel();
        let (armed, begins) = (AtomicBool::new(false), Mutex::new(sender));
        let slow = Arc::new(Slow { inner: Arc::clone(&open[1]), armed, started: begins });
        open[1] = Arc::clone(&slow) as Arc<dyn Disk>;
        let group = create(open.clone(), Redundancy::Normal).unwrap();
        let data = group.file("data").unwrap();
        // Unit 0: the primary on disk 0, the mirror on disk 1.
        data.write(0, &block(0, 1), true).unwrap();
        if repair {
            machine
                .alter(0, |disk| disk.write(disk.find(&block(0, 1))[0], &[0xAA; BLOCK as usize]));
        } else {
            group.offline(0).unwrap();
            data.write(BLOCK, &block(BLOCK, 1), true).unwrap();
        }
        slow.armed.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if repair {
                    let info = data.read(0, &mut vec![0; BLOCK as usize], &whole).unwrap();
                    assert_eq!(info.repaired_blocks, 1);
                } else {
                    assert!(group.online_and_resync_on(0, &open[0]).unwrap() > 0);
                }
            });
            started.recv().unwrap();
            data.write(0, &block(0, 2), true).unwrap();
        });
        group.offline(1).unwrap();
        let mut found = vec![0; BLOCK as usize];
        data.read(0, &mut found, &whole).unwrap();
        assert_eq!(version(0, &found), Some(2), "repair: {repair}");
    }
}

#[test]
fn what_was_missed_is_known_after_a_close_and_not_after_a_crash() {
    for in_order in [true, false] {
        let machine = machine(4, 32);
        let group = create(machine.disks(), Redundancy::Normal).unwrap();
        let data = group.file("data").unwrap();
        write_all(&data, 1);
        group.sync().unwrap();
        group.offline(1).unwrap();
        data.write(1 << 20, &block(1 << 20, 2), true).unwrap();
        if in_order {
            group.close().unwrap();
            assert!(matches!(data.write(0, &block(0, 3), true), Err(GroupError::Closed)));
        }
        drop((group, data));
        let open = machine.disks();
        let group = DiskGroup::open_on(open.clone()).unwrap();
        assert_eq!(states(&group)[1], DiskState::Offline, "it stays so until it is resynced");
        let copied = group.online_and_resync_on(1, &open[1]).unwrap();
        assert_eq!(copied == 1, in_order, "{copied} units");
        group.offline(0).unwrap();
        let mut found = vec![0; BLOCK as usize];
        group.file("data").unwrap().read(1 << 20, &mut found, &whole).unwrap();
        assert_eq!(version(1 << 20, &found), Some(2));
    }
}

#[test]
fn a_record_of_what_was_missed_is_void_as_soon_as_the_group_is_open_again() {
    let machine = machine(2, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    group.offline(1).unwrap();
    group.file("data").unwrap().write(0, &block(0, 1), true).unwrap();
    group.close().unwrap();
    drop(group);
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    let offset = 5 << 20;
    group.file("data").unwrap().write(offset, &block(offset, 2), true).unwrap();
    drop(group);

    let open = machine.disks();
    let group = DiskGroup::open_on(open.clone()).unwrap();
    group.online_and_resync_on(1, &open[1]).unwrap();
    group.offline(0).unwrap();
    let mut found = vec![0; BLOCK as usize];
    group.file("data").unwrap().read(offset, &mut found, &whole).unwrap();
    assert_eq!(version(offset, &found), Some(2));
}

#[test]
fn an_empty_disk_takes_the_place_of_a_lost_one_and_a_used_one_does_not() {
    let machine = machine(3, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write_all(&data, 7);
    group.offline(0).unwrap();
    let used = crate::machine(1, 32);
    used.alter(0, |disk| disk.write(0, &[1; 4096]));
    let refused = group.online_and_resync_on(0, &used.disks()[0]).unwrap_err();
    assert!(matches!(refused, GroupError::NotADisk { .. }), "{refused}");
    let small = crate::machine(1, 8);
    let refused = group.online_and_resync_on(0, &small.disks()[0]).unwrap_err();
    assert!(matches!(refused, GroupError::TooSmall { .. }), "{refused}");
    let blank = crate::machine(1, 32);
    let copied = group.online_and_resync_on(0, &blank.disks()[0]).unwrap();
    assert!(copied >= 10, "{copied} units: its share of two files of 8 units");
    group.offline(1).unwrap();
    expect_all(&data, 7);
}

#[test]
fn halves_that_were_used_without_each_other_are_not_joined() {
    let machine = machine(2, 32);
    drop(create(machine.disks(), Redundancy::Normal).unwrap());
    for half in 0..2 {
        let alone = DiskGroup::open_on(vec![Arc::clone(&machine.disks()[half])]).unwrap();
        alone.file("data").unwrap().write(0, &block(0, half as u64), true).unwrap();
    }
    let refused = DiskGroup::open_on(machine.disks()).unwrap_err();
    assert!(matches!(refused, GroupError::Diverged { .. }), "{refused}");
}
