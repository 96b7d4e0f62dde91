//! Parameters and disks from which a group cannot be created.

use blockstone_base::Bytes;
use blockstone_base::hint::Hint as _;
use blockstone_instance::group::{DiskGroup, GroupError, Member, Redundancy};
use blockstone_instance::testing::{Image, Machine};

use crate::{BLOCK, UNIT, create, file, machine, members};

fn message(error: &GroupError) -> String {
    let text = error.told();
    assert!(text.contains("\nhint: "), "{text}");
    text
}

#[test]
fn every_copy_needs_a_disk_and_a_failure_group() {
    let error = create(machine(1, 32).disks(), Redundancy::Normal).unwrap_err();
    assert!(message(&error).contains("2 copies, but the number of disks is 1"));
    let error = create(machine(2, 32).disks(), Redundancy::High).unwrap_err();
    assert!(message(&error).contains("a disk for each of 3 copies"));
    let same = |disk| Member { disk, failure_group: "shelf".into() };
    let shelf: Vec<Member> = machine(3, 32).disks().into_iter().map(same).collect();
    let files = [file("data", 1, false)];
    let error = DiskGroup::create_on(shelf.clone(), Redundancy::Normal, UNIT, &files).unwrap_err();
    assert!(message(&error).contains("form 1 failure groups"));
    DiskGroup::create_on(shelf, Redundancy::External, UNIT, &files).unwrap();
}

#[test]
fn parameters_are_checked_before_anything_is_written() {
    let unused = machine(1, 32);
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
        let member = members(unused.disks());
        let error = DiskGroup::create_on(member, Redundancy::External, unit, &[spec]).unwrap_err();
        assert!(matches!(error, GroupError::Parameter { .. }), "{error}");
        message(&error);
    }
    let twice = [file("data", 1, false), file("data", 2, false)];
    let member = members(unused.disks());
    let error = DiskGroup::create_on(member, Redundancy::External, UNIT, &twice).unwrap_err();
    assert!(message(&error).contains("file name `data`"));
    assert_eq!(unused.images()[0].pages().count(), 0, "nothing was written");
}

#[test]
fn files_that_do_not_fit_name_the_disk_that_is_full() {
    let machine = Machine::with([32, 32, 10].map(|mib| Image::new(mib << 20)).to_vec(), 1, false);
    let error = create(machine.disks(), Redundancy::Normal).unwrap_err();
    assert!(message(&error).contains("disk hostile-2 has room for 9 allocation units"), "{error}");
}
