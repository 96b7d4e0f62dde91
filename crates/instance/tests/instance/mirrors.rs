//! A block that rotted on one mirror while the other was away.

use std::time::{Duration, Instant};

use blockstone_instance::block;
use blockstone_instance::group::{DiskGroup, DiskState, Redundancy};
use blockstone_instance::{Instance, OpenSpec, TornProtection};

use crate::world::{ROWS, create, open_spec};

const PATIENCE: Duration = Duration::from_mins(1);

/// Options with which disks return almost immediately.
fn quick() -> OpenSpec {
    OpenSpec { return_after: Duration::from_millis(20), ..open_spec(TornProtection::None) }
}

#[test]
fn a_returning_disk_keeps_its_intact_copies_of_blocks_that_rotted_on_the_other() {
    let (machine, group) = create(Redundancy::Normal, 2, 5);
    let instance = Instance::open(&group, &quick()).unwrap();
    instance.load(1, &mut |_, _| {}).unwrap();
    instance.checkpoint().unwrap();
    group.offline(1).unwrap();
    instance.crash();
    drop(group);

    // After a crash it is not known which units the disk missed, so it gets all of them.
    machine.alter(0, |disk| {
        let is_chosen =
            |page: &[u8]| page.starts_with(b"bstnblk1") && block::number(page) % 50 == 7;
        let pages = disk.pages().filter(|(_, page)| is_chosen(page));
        let rotten: Vec<u32> = pages.map(|(number, _)| number as u32).collect();
        assert!(rotten.len() >= 6, "{} blocks", rotten.len());
        for page in rotten {
            disk.rot(page * 8 + 1, 3904);
        }
    });
    let group = DiskGroup::open_on(machine.disks()).unwrap();
    let instance = Instance::open(&group, &quick()).unwrap();
    let start = Instant::now();
    while group.counters()[1].state != DiskState::Online {
        assert!(start.elapsed() < PATIENCE, "{:?}", instance.take_news());
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut session = instance.session(0).unwrap();
    assert_eq!(session.select(0, 0, ROWS).unwrap(), ROWS);
    for gone in [0, 1] {
        group.offline(gone).unwrap();
        assert_eq!(session.select(0, 0, ROWS).unwrap(), ROWS, "without disk {gone}");
        let start = Instant::now();
        while group.counters()[gone].state != DiskState::Online {
            assert!(start.elapsed() < PATIENCE, "{:?}", instance.take_news());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let news = instance.take_news().join("\n");
    assert!(news.contains("are intact on no online disk: data at byte "), "{news}");
}
