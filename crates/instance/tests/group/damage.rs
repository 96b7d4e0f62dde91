//! Damage on the disks: bad copies, headers and maps.

use std::sync::Arc;

use blockstone_instance::group::{DiskGroup, DiskState, GroupError, Redundancy};
use blockstone_instance::testing::Machine;

use crate::{BLOCK, UNIT, block, create, file, machine, members, version, whole};

/// Offset of the last 4 KiB of a disk of 32 MiB, which hold the copy of its header.
const LAST: u32 = (32 << 20) - 4096;

/// Overwrites every place of a disk that holds this block with garbage.
fn spoil(machine: &Machine, disk: usize, wanted: &[u8]) -> usize {
    let places = machine.images()[disk].find(wanted);
    for at in &places {
        write(machine, disk, *at, &[0xAA; BLOCK as usize]);
    }
    places.len()
}

fn write(machine: &Machine, disk: usize, offset: u64, data: &[u8]) {
    machine.alter(disk, |image| image.write(offset, data));
}

#[test]
fn a_bad_copy_is_repaired_from_the_mirror() {
    let machine = machine(3, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    let all: Vec<u8> = (0..256).flat_map(|number| block(number * BLOCK, 1)).collect();
    data.write(0, &all, true).unwrap();
    // In one run of blocks, two are bad on the primary's disk and one on the mirror's: unit 0 is on
    // disk 0 and on one other.
    let bad_on_primary = [3, 200];
    for number in bad_on_primary {
        assert_eq!(spoil(&machine, 0, &block(number * BLOCK, 1)), 1);
    }
    let on_mirror = block(7 * BLOCK, 1);
    assert_eq!(spoil(&machine, 1, &on_mirror) + spoil(&machine, 2, &on_mirror), 1);

    let mut found = vec![0; 1 << 20];
    let info = data.read(0, &mut found, &whole).unwrap();
    assert_eq!(found, all);
    assert_eq!((info.repaired_blocks, info.degraded), (2, true));
    let repaired: Vec<u64> = group.counters().iter().map(|disk| disk.repaired_blocks).collect();
    assert_eq!(repaired, [2, 0, 0]);
    let info = data.read(0, &mut found, &whole).unwrap();
    assert_eq!((info.repaired_blocks, info.degraded, info.ios), (0, false, 1));
    assert!(group.counters().iter().all(|disk| disk.state == DiskState::Online));
}

#[test]
fn a_block_that_is_bad_everywhere_is_reported_and_never_served() {
    for redundancy in [Redundancy::External, Redundancy::Normal, Redundancy::High] {
        let machine = machine(3, 32);
        let group = create(machine.disks(), redundancy).unwrap();
        let data = group.file("data").unwrap();
        data.write(0, &block(0, 1), true).unwrap();
        let spoilt: usize = (0..3).map(|disk| spoil(&machine, disk, &block(0, 1))).sum();
        assert_eq!(spoilt, redundancy.copies());
        let mut found = vec![0; BLOCK as usize];
        let error = data.read(0, &mut found, &whole).unwrap_err();
        let GroupError::Corrupt { copies, .. } = &error else { panic!("{error}") };
        assert_eq!(*copies, redundancy.copies());
        data.write(0, &block(0, 2), true).unwrap();
        data.read(0, &mut found, &whole).unwrap();
        assert_eq!(version(0, &found), Some(2));
    }
}

#[test]
fn a_damaged_header_is_served_by_its_copy_and_a_damaged_disk_by_the_others() {
    let machine = machine(2, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    group.file("data").unwrap().write(0, &block(0, 1), true).unwrap();
    drop(group);
    write(&machine, 0, 0, &[0xAA; 4096]);
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    assert!(group.counters().iter().all(|disk| disk.state == DiskState::Online));
    drop(group);

    let damage_last = || machine.alter(0, |disk| disk.rot(LAST / 512, 30 * 8));
    damage_last();
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    assert_eq!(group.counters()[0].state, DiskState::Online, "the first was repaired");
    drop(group);

    write(&machine, 0, 0, &[0xAA; 4096]);
    damage_last();
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    assert_eq!(group.counters()[0].state, DiskState::Offline);
    let mut found = vec![0; BLOCK as usize];
    group.file("data").unwrap().read(0, &mut found, &whole).unwrap();

    let alone = DiskGroup::open_on(vec![Arc::clone(&machine.disks()[0])]).unwrap_err();
    assert!(matches!(alone, GroupError::DamagedHeader { .. }), "{alone}");
}

#[test]
fn every_damaged_map_slot_is_served_by_another() {
    // A new group has its first map in slot 1 and nothing in slot 0.
    let machine = machine(2, 32);
    drop(create(machine.disks(), Redundancy::Normal).unwrap());
    let garbage = vec![0xAA; 64 << 10];
    write(&machine, 0, 4096, &garbage);
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    assert!(group.counters().iter().all(|disk| disk.state == DiskState::Online), "disk 1 has it");
    drop(group);
    write(&machine, 1, 4096, &garbage);
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    assert!(group.counters().iter().all(|disk| disk.state == DiskState::Online), "disk 0 got it");
    drop(group);
    (0..2).for_each(|disk| write(&machine, disk, 4096, &garbage));
    assert!(matches!(DiskGroup::open_on(machine.disks()), Err(GroupError::NoMap)));
}

#[test]
fn a_map_whose_version_has_rotted_is_damaged() {
    let machine = machine(2, 32);
    let group = create(machine.disks(), Redundancy::Normal).unwrap();
    group.file("data").unwrap().write(0, &block(0, 1), true).unwrap();
    drop(group);
    let mut maps = vec![0; 64 << 10];
    machine.images()[0].read(0, &mut maps).unwrap();
    let magic = b"BLKSTMAP";
    let starts: Vec<usize> =
        (4096..maps.len()).filter(|at| maps[*at..].starts_with(magic)).collect();
    assert!(!starts.is_empty());
    for start in starts {
        // The version follows the magic.
        maps[start + magic.len() + 3] ^= 0x40;
    }
    write(&machine, 0, 0, &maps);
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    let mut found = vec![0; BLOCK as usize];
    group.file("data").unwrap().read(0, &mut found, &whole).unwrap();
}

#[test]
fn groups_of_other_versions_and_other_groups_are_refused() {
    let machine = machine(2, 32);
    drop(create(machine.disks(), Redundancy::Normal).unwrap());
    let stranger = crate::machine(1, 32);
    let files = [file("data", 1, false)];
    let other = DiskGroup::create_on(members(stranger.disks()), Redundancy::External, UNIT, &files);
    drop(other.unwrap());
    let mixed = vec![Arc::clone(&machine.disks()[0]), Arc::clone(&stranger.disks()[0])];
    let error = DiskGroup::open_on(mixed).unwrap_err();
    assert!(matches!(error, GroupError::OtherGroup { .. }), "{error}");
    let twice = vec![Arc::clone(&machine.disks()[0]), Arc::clone(&machine.disks()[0])];
    assert!(matches!(DiskGroup::open_on(twice), Err(GroupError::Twice { .. })));
    let blank = crate::machine(1, 32);
    let error = DiskGroup::open_on(blank.disks()).unwrap_err();
    assert!(matches!(error, GroupError::NotADisk { .. }), "{error}");
    let with_blank = [machine.disks(), blank.disks()].concat();
    let error = DiskGroup::open_on(with_blank).unwrap_err();
    assert!(matches!(error, GroupError::NotADisk { .. }), "no disk was missing: {error}");

    // The version follows the magic; 1 becomes 9.
    for sector in [0, LAST / 512] {
        machine.alter(1, |disk| disk.rot(sector, 8 * 8 + 3));
    }
    let error = DiskGroup::open_on(machine.disks()).unwrap_err().to_string();
    assert!(error.contains("is of version 9, this program supports version 1"), "{error}");
}
