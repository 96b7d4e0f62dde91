//! Recovery of damaged disks: what it must restore, what it must not accept, and what it must
//! refuse by name.

use blockstone_base::hint::Hint as _;
use blockstone_instance::block::{self, COLUMNS, Fill};
use blockstone_instance::group::{DiskGroup, GroupFile, Redundancy};
use blockstone_instance::testing::{Faults, Machine, SECTOR_BYTES};
use blockstone_instance::{Instance, InstanceError, OpenSpec, RedoStress, TornProtection};

use crate::world::{create, open_on, open_spec, spec};

const BLOCK: usize = 4096;
/// Number of rows that a test updates.
const UPDATED: u64 = 24;

/// Location of a row's block in the data file, and its SCN after the update.
#[derive(Clone, Copy)]
struct Updated {
    offset: u64,
    scn: u64,
}

fn accepting(protection: TornProtection) -> OpenSpec {
    OpenSpec { accept_loss: true, ..open_spec(protection) }
}

/// Creates and loads an instance, and shuts it down.
fn loaded(redundancy: Redundancy, protection: TornProtection) -> Machine {
    let (machine, group) = create(redundancy, redundancy.copies(), 5);
    let instance = Instance::open(&group, &open_spec(protection)).unwrap();
    instance.load(1, &mut |_, _| {}).unwrap();
    instance.shutdown().unwrap();
    machine
}

/// Updates the first rows once, each in a transaction of its own, and crashes. Only the redo
/// contains the updates: the cache is large enough for all of them.
fn update_and_crash(machine: &Machine, protection: TornProtection) -> Vec<Updated> {
    let instance = open_on(machine, &open_spec(protection)).unwrap();
    let mut session = instance.session(0).unwrap();
    let update = |key| {
        session.update(0, key, 1, RedoStress::Heavy).unwrap();
        session.commit().unwrap();
        let row = session.row(0, key).unwrap();
        Updated { offset: row.block_number() * BLOCK as u64, scn: row.scn().0 }
    };
    let updated = (0..UPDATED).map(update).collect();
    drop(session);
    instance.crash();
    updated
}

fn with_file<T>(machine: &Machine, name: &str, work: impl FnOnce(&GroupFile) -> T) -> T {
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    let result = work(&group.file(name).unwrap());
    group.close().unwrap();
    result
}

fn read(file: &GroupFile, offset: u64) -> Vec<u8> {
    let mut found = vec![0; BLOCK];
    file.read(offset, &mut found, &|_, _| true).unwrap();
    found
}

/// Returns the block as it is after its row was updated to `version`.
fn advanced(block: &[u8], version: u64, scn: u64) -> Vec<u8> {
    let mut block = block.to_vec();
    let fill = Fill::new(spec().seed, spec().random_percent);
    let number = block::number(&block);
    for index in 0..COLUMNS {
        fill.column(number, index, version, block::column_mut(&mut block, index));
    }
    block::set_version(&mut block, version);
    block::set_scn(&mut block, scn);
    block::seal(&mut block);
    block
}

fn torn(old: &[u8], new: &[u8]) -> Vec<u8> {
    [&new[..BLOCK / 2], &old[BLOCK / 2..]].concat()
}

/// Leaves the disks in the state of a power loss in the middle of the writes to the places of
/// `updated`: the double-write area holds good copies, the places are torn.
fn tear_in_place(machine: &Machine, updated: &[Updated]) {
    let olds: Vec<_> = with_file(machine, "data", |data| {
        updated.iter().map(|row| read(data, row.offset)).collect()
    });
    let news = || olds.iter().zip(updated).map(|(old, row)| advanced(old, 1, row.scn));
    with_file(machine, "double-write", |area| {
        for (slot, new) in (0..).zip(news()) {
            area.write(slot * BLOCK as u64, &new, true).unwrap();
        }
    });
    with_file(machine, "data", |data| {
        for ((old, new), row) in olds.iter().zip(news()).zip(updated) {
            data.write(row.offset, &torn(old, &new), true).unwrap();
        }
    });
}

fn versions(instance: &Instance) -> Vec<Result<u64, InstanceError>> {
    let mut session = instance.session(0).unwrap();
    (0..UPDATED).map(|key| session.row(0, key).map(|row| row.version())).collect()
}

fn assert_versions(instance: &Instance, expected: u64, context: &str) {
    for (key, version) in versions(instance).into_iter().enumerate() {
        assert_eq!(version.unwrap(), expected, "row {key}, {context}");
    }
}

#[test]
fn a_recovery_that_is_cut_off_anywhere_has_not_overwritten_the_copies_it_needs() {
    let spec = open_spec(TornProtection::DoubleWrite);
    let machine = loaded(Redundancy::External, TornProtection::DoubleWrite);
    let updated = update_and_crash(&machine, TornProtection::DoubleWrite);
    tear_in_place(&machine, &updated);
    let torn = machine.images();
    machine.set_faults(Faults::default());
    let whole = open_on(&machine, &spec).unwrap();
    let total = machine.operations();
    assert_eq!(whole.recovery().blocks_restored, UPDATED);
    assert_versions(&whole, 1, "without a cut");
    whole.crash();
    let mut cut = 0;
    // Reading the area takes most of the operations; nothing is written before.
    for at in (1..=total).filter(|at| *at % 32 == 0 || *at > total - 120) {
        let machine = Machine::with(torn.clone(), at, false);
        machine.set_faults(Faults { power_goes_at: Some(at), ..Faults::default() });
        cut += u64::from(open_on(&machine, &spec).is_err());
        machine.lose_power();
        let instance = open_on(&machine, &spec).unwrap();
        assert_versions(&instance, 1, &format!("cut at operation {at} of {total}"));
        instance.crash();
    }
    assert!(cut > 60, "{cut} recoveries were cut off");
}

#[test]
fn a_copy_in_the_double_write_area_from_before_the_checkpoint_restores_nothing() {
    let machine = loaded(Redundancy::External, TornProtection::DoubleWrite);
    let instance = open_on(&machine, &open_spec(TornProtection::DoubleWrite)).unwrap();
    let mut session = instance.session(0).unwrap();
    let offset = session.row(0, 0).unwrap().block_number() * BLOCK as u64;
    let mut update = |instance: &Instance| {
        session.update(0, 0, 1, RedoStress::Heavy).unwrap();
        session.commit().unwrap();
        instance.checkpoint().unwrap();
    };
    update(&instance);
    let older = with_open(&instance, "data", |data| read(data, offset));
    update(&instance);
    drop(session);
    instance.shutdown().unwrap();
    // The last slot of the first part of the area, so that no later batch has taken it.
    with_file(&machine, "double-write", |area| {
        area.write(127 * BLOCK as u64, &older, true).unwrap();
    });
    with_file(&machine, "data", |data| {
        let mut rotten = read(data, offset);
        rotten[BLOCK / 2] ^= 4;
        data.write(offset, &rotten, true).unwrap();
    });
    let instance = open_on(&machine, &open_spec(TornProtection::DoubleWrite)).unwrap();
    assert_eq!(instance.recovery().blocks_restored, 0);
    let row = instance.session(0).unwrap().row(0, 0);
    assert!(matches!(row, Err(InstanceError::Corrupt { .. })), "{row:?}");
}

fn with_open<T>(instance: &Instance, name: &str, work: impl FnOnce(&GroupFile) -> T) -> T {
    work(&instance.group().file(name).unwrap())
}

/// Returns the offsets of the redo blocks in a log file that hold redo.
fn redo_blocks(file: &GroupFile) -> Vec<u64> {
    let offsets = (0..file.size()).step_by(BLOCK);
    let magic = |offset: &u64| read(file, *offset)[..8] != [0; 8];
    offsets.filter(magic).collect()
}

/// Returns the name of the log that holds the most redo.
fn current_log(machine: &Machine) -> String {
    let count =
        |log: &u32| with_file(machine, &format!("redo-{log}"), |file| redo_blocks(file).len());
    let log = (0..spec().redo_logs).max_by_key(count).unwrap();
    format!("redo-{log}")
}

#[test]
fn damage_in_the_middle_of_the_redo_is_not_its_end() {
    let machine = loaded(Redundancy::External, TornProtection::FullPage);
    update_and_crash(&machine, TornProtection::FullPage);
    let log = current_log(&machine);
    with_file(&machine, &log, |file| {
        let blocks = redo_blocks(file);
        let mut rotten = read(file, blocks[blocks.len() / 2]);
        rotten[100] ^= 1;
        file.write(blocks[blocks.len() / 2], &rotten, true).unwrap();
    });
    let refused = open_on(&machine, &open_spec(TornProtection::FullPage));
    let error = refused.expect_err("it lost commits");
    assert!(matches!(error, InstanceError::RedoDamaged { commits: 1.., .. }), "{error}");
    assert!(error.told().contains("--accept-loss"), "{error}");
    // The attempt can be repeated, and nothing has changed.
    let again = open_on(&machine, &open_spec(TornProtection::FullPage)).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());

    let instance = open_on(&machine, &accepting(TornProtection::FullPage)).unwrap();
    let recovery = instance.recovery().clone();
    let lost = recovery.lost.expect("what is lost is named");
    assert!(lost.from == recovery.to && lost.to > lost.from && lost.commits > 0, "{lost:?}");
    let kept = versions(&instance).into_iter().filter(|version| *version.as_ref().unwrap() == 1);
    let kept = kept.count() as u64;
    assert!((1..UPDATED).contains(&kept), "{kept} rows have their update");
    assert_eq!(recovery.last_commits[&0], kept, "transactions are lost from the end");
    // The instance continues, and lost updates do not come back.
    let mut session = instance.session(0).unwrap();
    session.update(0, UPDATED - 1, 1, RedoStress::Heavy).unwrap();
    session.commit().unwrap();
    drop(session);
    instance.crash();
    let instance = open_on(&machine, &open_spec(TornProtection::FullPage)).unwrap();
    assert_eq!(*versions(&instance).last().unwrap().as_ref().unwrap(), 1);
}

/// Resets the block of the first row to its state before the update, as after a lost write.
fn lose_a_write(machine: &Machine, protection: TornProtection) -> (Updated, Vec<u8>) {
    let instance = open_on(machine, &open_spec(protection)).unwrap();
    let mut session = instance.session(0).unwrap();
    let row = session.row(0, 0).unwrap();
    let offset = row.block_number() * BLOCK as u64;
    let before = with_open(&instance, "data", |data| read(data, offset));
    session.update(0, 0, 1, RedoStress::Heavy).unwrap();
    session.commit().unwrap();
    instance.checkpoint().unwrap();
    session.update(0, 0, 1, RedoStress::Lite).unwrap();
    session.commit().unwrap();
    let scn = session.row(0, 0).unwrap().scn().0;
    drop(session);
    instance.crash();
    (Updated { offset, scn }, before)
}

#[test]
fn redo_that_does_not_continue_a_block_is_refused() {
    let machine = loaded(Redundancy::External, TornProtection::None);
    let (row, before) = lose_a_write(&machine, TornProtection::None);
    with_file(&machine, "data", |data| data.write(row.offset, &before, true).unwrap());
    let error = open_on(&machine, &open_spec(TornProtection::None)).expect_err("a write was lost");
    let number = row.offset / BLOCK as u64;
    let named = matches!(
        error,
        InstanceError::Stale { blocks: 1, number: found, found: 0, needed: 2 } if found == number
    );
    assert!(named, "{error}");
    let instance = open_on(&machine, &accepting(TornProtection::None)).unwrap();
    assert_eq!(instance.recovery().stale, [number]);
    assert_eq!(*versions(&instance)[0].as_ref().unwrap(), 0);
}

#[test]
fn a_write_that_one_mirror_lost_is_found_on_the_other() {
    let machine = loaded(Redundancy::Normal, TornProtection::None);
    let (row, before) = lose_a_write(&machine, TornProtection::None);
    let current = with_file(&machine, "data", |data| read(data, row.offset));
    // A read takes the primary copy first; which disk has it does not matter here.
    for stale in 0..2 {
        let machine = Machine::with(machine.images(), 5, false);
        machine.alter(stale, |disk| disk.write(disk.find(&current)[0], &before));
        let instance = open_on(&machine, &open_spec(TornProtection::None)).unwrap();
        let recovered = instance.session(0).unwrap().row(0, 0).unwrap();
        let column_version =
            |index| u64::from_le_bytes(*recovered.column(index).first_chunk().unwrap());
        // The first update wrote all columns, the second one the first and the last.
        assert_eq!((recovered.version(), column_version(0), column_version(5)), (2, 2, 1));
        instance.shutdown().unwrap();
        let recovered = with_file(&machine, "data", |data| read(data, row.offset));
        assert!(machine.images().iter().all(|disk| disk.find(&recovered).len() == 1));
    }
}

#[test]
fn redo_that_cannot_be_read_is_not_the_end_either() {
    let machine = loaded(Redundancy::External, TornProtection::FullPage);
    update_and_crash(&machine, TornProtection::FullPage);
    let log = current_log(&machine);
    let last = with_file(&machine, &log, |file| read(file, *redo_blocks(file).last().unwrap()));
    machine.alter(0, |disk| {
        let bad = disk.find(&last)[0] / SECTOR_BYTES as u64;
        disk.make_unreadable(bad as u32);
    });
    let error = open_on(&machine, &open_spec(TornProtection::FullPage)).unwrap_err();
    assert!(matches!(error, InstanceError::RedoUnreadable { .. }), "{error}");
}
