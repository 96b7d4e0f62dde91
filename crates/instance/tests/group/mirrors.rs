//! Copies that differ: what a returning disk gets when one of them has rotted, and which map is
//! valid.

use std::sync::Arc;

use blockstone_instance::disk::Disk;
use blockstone_instance::group::{
    BadBlock, DiskGroup, DiskSpec, DiskState, GroupError, GroupFile, GroupSpec, Redundancy,
    unwatched,
};
use blockstone_testkit::ScratchDir;

use crate::ram::{Ram, disks, rams};
use crate::{BLOCK, UNIT, block, create, file, version, whole};

/// Blocks per unit.
const BLOCKS: u64 = (1 << 20) / BLOCK;

fn rot() -> Vec<u8> {
    vec![0xAA; BLOCK as usize]
}

/// Returns the data file, whose blocks are verified from now on.
fn verified(group: &DiskGroup) -> GroupFile {
    let data = group.file("data").unwrap();
    data.verify_with(Arc::new(whole));
    data
}

fn write(file: &GroupFile, numbers: impl IntoIterator<Item = u64>, version: u64) {
    for number in numbers {
        file.write(number * BLOCK, &block(number * BLOCK, version), true).unwrap();
    }
}

fn read(file: &GroupFile, number: u64) -> Result<u64, GroupError> {
    let mut found = vec![0; BLOCK as usize];
    file.read(number * BLOCK, &mut found, &whole)?;
    Ok(version(number * BLOCK, &found).unwrap())
}

fn bring_back(group: &DiskGroup, number: usize, ram: &Arc<Ram>) -> Result<u64, GroupError> {
    group.online_and_resync_on(number, &(Arc::clone(ram) as Arc<dyn Disk>))
}

fn bad(number: u64, disk: &str, is_kept: bool) -> BadBlock {
    BadBlock { file: "data".into(), offset: number * BLOCK, disk: disk.into(), is_kept }
}

/// Creates a group of two mirrors with the first unit written, of which the second left before a
/// crash: it is not known what it missed.
fn after_a_crash(rams: &[Arc<Ram>]) -> DiskGroup {
    let group = create(disks(rams), Redundancy::Normal).unwrap();
    write(&group.file("data").unwrap(), 1..BLOCKS, 1);
    group.offline(1).unwrap();
    drop(group);
    DiskGroup::open_on(disks(rams)).unwrap()
}

#[test]
fn rot_on_one_disk_does_not_overwrite_the_good_copy_of_a_disk_that_returns() {
    let rams = rams(2);
    let group = after_a_crash(&rams);
    let data = verified(&group);
    assert_eq!(rams[0].swap(&block(3 * BLOCK, 1), &rot()), 1);
    bring_back(&group, 1, &rams[1]).unwrap();
    assert_eq!(rams[1].find(&block(3 * BLOCK, 1)).len(), 1, "the good copy was overwritten");
    let found = group.take_bad_blocks();
    assert_eq!(found.named.into_iter().collect::<Vec<_>>(), [bad(3, "ram1", true)]);
    assert_eq!((found.count, group.take_bad_blocks().count), (1, 0));
    assert_eq!(group.counters()[0].repaired_blocks, 1);
    for gone in [0, 1] {
        group.offline(gone).unwrap();
        assert!((1..BLOCKS).all(|number| read(&data, number).unwrap() == 1), "without {gone}");
        bring_back(&group, gone, &rams[gone]).unwrap();
    }
}

#[test]
fn a_block_that_cannot_be_read_does_not_keep_a_disk_from_returning() {
    let rams = rams(2);
    let group = after_a_crash(&rams);
    let data = verified(&group);
    assert_eq!(rams[0].lose(&block(3 * BLOCK, 1)), 1);
    bring_back(&group, 1, &rams[1]).unwrap();
    group.offline(0).unwrap();
    assert!((1..BLOCKS).all(|number| read(&data, number).unwrap() == 1));
}

#[test]
fn a_block_that_is_bad_everywhere_is_named_and_left_as_it_is() {
    let rams = rams(2);
    let group = after_a_crash(&rams);
    let data = verified(&group);
    let (here, there) = (rot(), vec![0xBB; BLOCK as usize]);
    rams[0].swap(&block(3 * BLOCK, 1), &here);
    rams[1].swap(&block(3 * BLOCK, 1), &there);
    bring_back(&group, 1, &rams[1]).unwrap();
    assert_eq!((rams[0].find(&here).len(), rams[1].find(&there).len()), (1, 1));
    let found = group.take_bad_blocks();
    assert_eq!(found.named.into_iter().collect::<Vec<_>>(), [bad(3, "ram1", false)]);
    assert!(matches!(read(&data, 3), Err(GroupError::Corrupt { .. })));
    assert_eq!(read(&data, 4).unwrap(), 1);
}

/// A disk missed a write to one block of a unit, but not to another.
#[test]
fn an_old_copy_is_never_taken_for_a_good_one() {
    let rams = rams(2);
    let group = create(disks(&rams), Redundancy::Normal).unwrap();
    let data = verified(&group);
    write(&data, 1..BLOCKS, 1);
    group.offline(1).unwrap();
    write(&data, [5], 2);
    rams[0].swap(&block(5 * BLOCK, 2), &rot());
    rams[0].swap(&block(6 * BLOCK, 1), &rot());
    assert_eq!(bring_back(&group, 1, &rams[1]).unwrap(), 1);
    let found = group.take_bad_blocks();
    assert_eq!(found.named.into_iter().collect::<Vec<_>>(), [bad(5, "ram1", false)]);
    let served = read(&data, 5);
    assert!(matches!(served, Err(GroupError::Corrupt { .. })), "an older version: {served:?}");
    assert_eq!(read(&data, 6).unwrap(), 1, "what was not missed is good");
    group.offline(1).unwrap();
    assert_eq!(read(&data, 6).unwrap(), 1, "and repairs the copy that rotted");
}

#[test]
fn with_three_copies_the_good_mirror_serves_and_repairs() {
    let rams = rams(3);
    let group = create(disks(&rams), Redundancy::High).unwrap();
    let data = verified(&group);
    write(&data, 1..BLOCKS, 1);
    group.offline(2).unwrap();
    write(&data, 1..BLOCKS, 2);
    rams[0].swap(&block(7 * BLOCK, 2), &rot());
    rams[1].swap(&block(8 * BLOCK, 2), &rot());
    bring_back(&group, 2, &rams[2]).unwrap();
    assert_eq!(group.take_bad_blocks().count, 0);
    group.offline(0).unwrap();
    group.offline(1).unwrap();
    assert!((1..BLOCKS).all(|number| read(&data, number).unwrap() == 2));
    assert_eq!(rams[0].find(&block(7 * BLOCK, 2)).len(), 1, "a bad source is repaired");
}

#[test]
fn blocks_that_were_never_written_are_not_bad() {
    let rams = rams(2);
    let group = after_a_crash(&rams);
    verified(&group);
    assert!(bring_back(&group, 1, &rams[1]).unwrap() >= 8);
    assert_eq!(group.take_bad_blocks().count, 0);
}

/// A disk on a file system is laid out with noise, so that no hole answers a read.
#[test]
fn blocks_that_were_laid_out_and_never_written_are_not_bad() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = [0, 1].map(|number| scratch.path().join(format!("disk{number}")));
    let spec = GroupSpec {
        disks: paths.iter().cloned().map(DiskSpec::from).collect(),
        redundancy: Redundancy::Normal,
        allocation_unit: UNIT,
        direct: false,
    };
    let files = [file("data", 4, false), file("redo", 8, true)];
    let group = DiskGroup::create(&spec, &files, &unwatched).unwrap();
    let data = verified(&group);
    write(&data, [1, BLOCKS], 1);
    // It gets the noise of the other disk, which then gets it back.
    for number in [0, 1] {
        group.offline(number).unwrap();
        std::fs::remove_file(&paths[number]).unwrap();
        assert_eq!(group.replace(number).unwrap(), 12);
        assert_eq!(group.take_bad_blocks().count, 0);
    }
    assert_eq!(read(&data, 1).unwrap(), 1);
}

/// Power is lost during the write of a map that records a disk as offline: one disk has the new
/// map, another the previous one.
#[test]
fn a_map_that_only_some_disks_have_is_given_to_all_when_the_group_opens() {
    let rams = rams(3);
    let group = create(disks(&rams), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write(&data, (0..8).map(|unit| unit * BLOCKS + 1), 1);
    let before = rams[2].medium();
    group.offline(0).unwrap();
    drop((group, data));
    rams[2].restore(before);

    let group = DiskGroup::open_on(disks(&rams)).unwrap();
    assert_eq!(group.counters()[0].state, DiskState::Offline);
    write(&group.file("data").unwrap(), (0..8).map(|unit| unit * BLOCKS + 1), 2);
    drop(group);
    let without = [Arc::clone(&rams[0]), Arc::clone(&rams[2])];
    match DiskGroup::open_on(disks(&without)) {
        Err(GroupError::CopiesMissing { .. }) => {}
        Err(error) => panic!("{error}"),
        Ok(group) => {
            let data = group.file("data").unwrap();
            let versions = (0..8).map(|unit| read(&data, unit * BLOCKS + 1).unwrap());
            assert_eq!(versions.collect::<Vec<_>>(), [2; 8], "a disk served what it had missed");
        }
    }
}

/// A disk misses a write, and its mirror misses the map that records this: the disk must not leave,
/// and the other disks must not treat it as gone.
#[test]
fn a_disk_that_could_not_leave_is_online_in_all_maps() {
    let rams = rams(4);
    let group = create(disks(&rams), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    write(&data, [1], 1);
    let holds = |ram: &Arc<Ram>| ram.has_durably(&block(BLOCK, 1));
    let copies: Vec<usize> = (0..4).filter(|number| holds(&rams[*number])).collect();
    let [first, second] = copies[..] else { panic!("two copies: {copies:?}") };
    std::thread::scope(|scope| {
        let (missed, taken) = (rams[first].hold_write(), rams[second].hold_write());
        let written = scope.spawn(|| data.write(BLOCK, &block(BLOCK, 2), true));
        missed.decide(false);
        taken.wait();
        let map = rams[second].hold_write();
        taken.decide(true);
        map.decide(false);
        let error = written.join().unwrap().unwrap_err();
        assert!(matches!(error, GroupError::CopiesMissing { .. }), "{error}");
    });
    assert!(group.counters().iter().all(|disk| disk.state == DiskState::Online));
    drop((group, data));
    let rest: Vec<Arc<Ram>> =
        (0..4).filter(|number| *number != second).map(|number| Arc::clone(&rams[number])).collect();
    let group = DiskGroup::open_on(disks(&rest)).unwrap();
    read(&group.file("data").unwrap(), 1).unwrap();
}

/// The newest map of a disk is damaged at rest, and the next one is torn: one must be left.
#[test]
fn a_damaged_map_is_repaired_before_the_other_one_is_overwritten() {
    let rams = rams(2);
    drop(create(disks(&rams), Redundancy::Normal).unwrap());
    let group = DiskGroup::open_on(disks(&rams)).unwrap();
    group.offline(1).unwrap();
    bring_back(&group, 1, &rams[1]).unwrap();
    drop(group);
    let (mut found, slot) = (rams[0].medium(), newest_map(&rams[0]));
    let good = found[slot..slot + BLOCK as usize].to_vec();
    found[slot..slot + BLOCK as usize].fill(0xAA);
    rams[0].restore(found);
    drop(DiskGroup::open_on(disks(&rams)).unwrap());
    assert!(rams[0].medium()[slot..].starts_with(&good), "the newest map is still damaged");
}

/// Returns the offset of the map with the highest sequence.
fn newest_map(ram: &Ram) -> usize {
    let medium = ram.medium();
    let blocks = (0..medium.len()).step_by(BLOCK as usize);
    let maps = blocks.filter(|at| medium[*at..].starts_with(b"BLKSTMAP"));
    // After the frame and the id of the group.
    let sequence = |at: &usize| u64::from_le_bytes(medium[at + 32..at + 40].try_into().unwrap());
    maps.max_by_key(sequence).unwrap()
}
