//! Damage on the disks: bad copies, headers and maps.

use std::sync::Arc;

use blockstone_engine::SimDisk;
use blockstone_instance::group::{DiskGroup, DiskState, GroupError, Redundancy};

use crate::{BLOCK, UNIT, block, create, disks, file, media, members, version, whole};

/// Puts garbage over every place of `medium` that holds this block.
fn spoil(medium: &SimDisk, wanted: &[u8]) -> usize {
    let mut found = vec![0; BLOCK as usize];
    let places = (0..medium.size_bytes()).step_by(BLOCK as usize);
    places
        .filter(|offset| {
            medium.read(*offset, &mut found);
            let hit = found == wanted;
            if hit {
                medium.write(*offset, &vec![0xAA; BLOCK as usize]);
            }
            hit
        })
        .count()
}

#[test]
fn a_bad_copy_is_repaired_from_the_mirror() {
    let media = media(3, 32);
    let group = create(disks(&media), Redundancy::Normal).unwrap();
    let data = group.file("data").unwrap();
    let all: Vec<u8> = (0..256).flat_map(|number| block(number * BLOCK, 1)).collect();
    data.write(0, &all, true).unwrap();
    // Of one run of blocks, two bad on the primary's disk and one on the mirror's: unit 0 lies on
    // disk 0 and on one other.
    let bad_on_primary = [3, 200];
    for number in bad_on_primary {
        assert_eq!(spoil(&media[0], &block(number * BLOCK, 1)), 1);
    }
    let on_mirror = block(7 * BLOCK, 1);
    assert_eq!(spoil(&media[1], &on_mirror) + spoil(&media[2], &on_mirror), 1);

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
        let media = media(3, 32);
        let group = create(disks(&media), redundancy).unwrap();
        let data = group.file("data").unwrap();
        data.write(0, &block(0, 1), true).unwrap();
        let spoilt: usize = media.iter().map(|medium| spoil(medium, &block(0, 1))).sum();
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
    let media = media(2, 32);
    let group = create(disks(&media), Redundancy::Normal).unwrap();
    group.file("data").unwrap().write(0, &block(0, 1), true).unwrap();
    drop(group);
    media[0].write(0, &[0xAA; 4096]);
    let group = DiskGroup::open_on(disks(&media)).unwrap();
    assert!(group.counters().iter().all(|disk| disk.state == DiskState::Online));
    drop(group);

    let mut last = vec![0; 4096];
    media[0].read(media[0].size_bytes() - 4096, &mut last);
    last[30] ^= 1;
    media[0].write(media[0].size_bytes() - 4096, &last);
    let group = DiskGroup::open_on(disks(&media)).unwrap();
    assert_eq!(group.counters()[0].state, DiskState::Offline);
    let mut found = vec![0; BLOCK as usize];
    group.file("data").unwrap().read(0, &mut found, &whole).unwrap();

    let alone = DiskGroup::open_on(vec![Arc::clone(&disks(&media)[0])]).unwrap_err();
    assert!(matches!(alone, GroupError::DamagedHeader { .. }), "{alone}");
}

#[test]
fn every_damaged_map_slot_is_served_by_another() {
    // A new group has its first map in slot 1 and nothing in slot 0.
    let media = media(2, 32);
    drop(create(disks(&media), Redundancy::Normal).unwrap());
    let garbage = vec![0xAA; 64 << 10];
    media[0].write(4096, &garbage);
    let group = DiskGroup::open_on(disks(&media)).unwrap();
    assert!(group.counters().iter().all(|disk| disk.state == DiskState::Online), "disk 1 has it");
    drop(group);
    media[1].write(4096, &garbage);
    assert!(matches!(DiskGroup::open_on(disks(&media)), Err(GroupError::NoMap)));
}

#[test]
fn groups_of_other_versions_and_other_groups_are_refused() {
    let media = media(2, 32);
    drop(create(disks(&media), Redundancy::Normal).unwrap());
    let stranger = crate::media(1, 32);
    let files = [file("data", 1, false)];
    let other = DiskGroup::create_on(members(disks(&stranger)), Redundancy::External, UNIT, &files);
    drop(other.unwrap());
    let mixed = vec![Arc::clone(&disks(&media)[0]), Arc::clone(&disks(&stranger)[0])];
    let error = DiskGroup::open_on(mixed).unwrap_err();
    assert!(matches!(error, GroupError::OtherGroup { .. }), "{error}");
    let twice = vec![Arc::clone(&disks(&media)[0]), Arc::clone(&disks(&media)[0])];
    assert!(matches!(DiskGroup::open_on(twice), Err(GroupError::Twice { .. })));
    let blank = crate::media(1, 32);
    let error = DiskGroup::open_on(disks(&blank)).unwrap_err();
    assert!(matches!(error, GroupError::NotADisk { .. }), "{error}");
    let with_blank = [media.clone(), blank].concat();
    let error = DiskGroup::open_on(disks(&with_blank)).unwrap_err();
    assert!(matches!(error, GroupError::NotADisk { .. }), "no disk was missing: {error}");

    // The version follows the magic.
    for offset in [0, media[1].size_bytes() - 4096] {
        let mut header = vec![0; 4096];
        media[1].read(offset, &mut header);
        header[8] = 9;
        media[1].write(offset, &header);
    }
    let error = DiskGroup::open_on(disks(&media)).unwrap_err().to_string();
    assert!(error.contains("is of version 9, this program supports version 1"), "{error}");
}
