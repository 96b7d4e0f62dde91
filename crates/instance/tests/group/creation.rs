//! What a group refuses to be made of.

use std::sync::Arc;

use blockstone_base::Bytes;
use blockstone_instance::group::{DiskGroup, GroupError, Member, Redundancy};

use crate::{BLOCK, UNIT, create, disks, file, media, members};

fn message(error: &GroupError) -> String {
    let text = error.to_string();
    assert!(text.contains("\nhint: "), "{text}");
    text
}

#[test]
fn every_copy_needs_a_disk_and_a_failure_group() {
    let error = create(disks(&media(1, 32)), Redundancy::Normal).unwrap_err();
    assert!(message(&error).contains("2 copies, but the number of disks is 1"));
    let error = create(disks(&media(2, 32)), Redundancy::High).unwrap_err();
    assert!(message(&error).contains("a disk for each of 3 copies"));
    let same = |disk| Member { disk, failure_group: "shelf".into() };
    let shelf: Vec<Member> = disks(&media(3, 32)).into_iter().map(same).collect();
    let files = [file("data", 1, false)];
    let error = DiskGroup::create_on(shelf.clone(), Redundancy::Normal, UNIT, &files).unwrap_err();
    assert!(message(&error).contains("form 1 failure groups"));
    DiskGroup::create_on(shelf, Redundancy::External, UNIT, &files).unwrap();
}

#[test]
fn parameters_are_checked_before_anything_is_written() {
    let unused = media(1, 32);
    let bad = [
        (Bytes::mib(2), file("data", 1, false)),
        (UNIT, file("", 1, false)),
        (UNIT, file("data", 0, false)),
        (UNIT, blockstone_instance::group::FileSpec { block: Bytes(5000), ..file("a", 1, false) }),
        (
            UNIT,
            blockstone_instance::group::FileSpec { size: Bytes(BLOCK + 1), ..file("a", 1, true) },
        ),
    ];
    for (unit, spec) in bad {
        let disk = Arc::clone(&disks(&unused)[0]);
        let member = members(vec![disk]);
        let error = DiskGroup::create_on(member, Redundancy::External, unit, &[spec]).unwrap_err();
        assert!(matches!(error, GroupError::Parameter { .. }), "{error}");
        message(&error);
    }
    let twice = [file("data", 1, false), file("data", 2, false)];
    let member = members(disks(&unused));
    let error = DiskGroup::create_on(member, Redundancy::External, UNIT, &twice).unwrap_err();
    assert!(message(&error).contains("file name `data`"));
    let mut head = vec![1; 1 << 20];
    unused[0].read(0, &mut head);
    assert!(head.iter().all(|byte| *byte == 0), "nothing was written");
}

#[test]
fn files_that_do_not_fit_name_the_disk_that_is_full() {
    let media = [media(2, 32), media(1, 10)].concat();
    let error = create(disks(&media), Redundancy::Normal).unwrap_err();
    assert!(message(&error).contains("disk sim2 has room for 9 allocation units"), "{error}");
}
