//! Power loss, also in the middle of a map.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use blockstone_engine::sim::Faults;
use blockstone_engine::{SimDisk, SimSpec};
use blockstone_instance::disk::Disk;
use blockstone_instance::group::{DiskGroup, DiskState, GroupError, Member, Redundancy};
use proptest::prelude::*;

use crate::mortal::{Fuse, Mortal, fuse};
use crate::{BLOCK, UNIT, block, create, disks, file, media, version, whole};

/// Disks of one machine: they stop together.
fn machine(media: &[SimDisk], fuse: &Fuse) -> Vec<Arc<dyn Disk>> {
    let mortal = |disk| Arc::new(Mortal::new(disk, fuse)) as Arc<dyn Disk>;
    disks(media).into_iter().map(mortal).collect()
}

/// The only disk that knows who is offline dies while it writes the next map.
#[test]
fn a_torn_map_leaves_the_one_before() {
    let torn = Faults { lost_probability: 0.0, torn_probability: 1.0, ..Faults::default() };
    for (life, seed) in (0_i64..4).flat_map(|life| (0_u64..20).map(move |seed| (life, seed))) {
        let spec = |number| SimSpec { parallelism: 1, ..SimSpec::new(32 << 20, seed * 2 + number) };
        let media = [0, 1].map(|number| SimDisk::new(spec(number)));
        let spark = fuse(i64::MAX / 2);
        // Long names, so that what changes from map to map is not in one sector.
        let member = |(number, disk)| Member { disk, failure_group: [number; 600].concat() };
        let members = ["a", "b"].into_iter().zip(machine(&media, &spark)).map(member).collect();
        let files = [file("data", 8, false)];
        let group = DiskGroup::create_on(members, Redundancy::Normal, UNIT, &files).unwrap();
        let data = group.file("data").unwrap();
        data.write(0, &block(0, 1), true).unwrap();
        group.offline(1).unwrap();
        data.write(0, &block(0, 2), true).unwrap();
        spark.store(life, Ordering::Relaxed);
        let _ = group.close();
        drop((group, data));
        for medium in &media {
            medium.set_faults(torn.clone());
            medium.power_loss();
        }
        let group = DiskGroup::open_on(disks(&media)).unwrap();
        assert_eq!(group.counters()[1].state, DiskState::Offline, "life {life}, seed {seed}");
        let mut found = vec![0; BLOCK as usize];
        group.file("data").unwrap().read(0, &mut found, &whole).unwrap();
        assert_eq!(version(0, &found), Some(2));
        assert!(group.online_and_resync_on(1, &disks(&media)[1]).unwrap() > 0);
    }
}

#[test]
fn a_sync_covers_what_an_earlier_process_left_in_the_disks_caches() {
    let all = Faults { lost_probability: 1.0, torn_probability: 0.0, ..Faults::default() };
    for synced in [true, false] {
        let media = media(2, 32);
        let group = create(disks(&media), Redundancy::Normal).unwrap();
        group.file("data").unwrap().write(0, &block(0, 1), false).unwrap();
        drop(group);
        let group = DiskGroup::open_on(disks(&media)).unwrap();
        if synced {
            group.sync().unwrap();
        }
        drop(group);
        for medium in &media {
            medium.set_faults(all.clone());
            medium.power_loss();
        }
        let group = DiskGroup::open_on(disks(&media)).unwrap();
        let mut found = vec![0; BLOCK as usize];
        let read = group.file("data").unwrap().read(0, &mut found, &whole);
        assert_eq!(read.is_ok() && version(0, &found) == Some(1), synced);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// The machine stops at any operation while disks leave and return, and what was not durable is
    /// lost or torn: the group opens, and every durable write that was acknowledged is there.
    #[test]
    fn a_power_loss_at_any_moment_leaves_a_group_that_opens(
        life in 0_i64..80,
        count in 2_usize..5,
        leavers in prop::collection::vec(0_usize..4, 1..5),
        seeds in any::<u64>(),
    ) {
        let media: Vec<SimDisk> = media(count, 32);
        // Other seeds tear otherwise: burn some draws of each disk.
        for (medium, burns) in media.iter().zip([seeds % 7, seeds % 11, seeds % 13, seeds % 17]) {
            for _ in 0..burns {
                medium.write(1 << 20, &[1; 8192]);
                medium.power_loss();
            }
        }
        let spark = fuse(i64::MAX / 2);
        let open = machine(&media, &spark);
        let group = create(open.clone(), Redundancy::Normal).unwrap();
        let data = group.file("data").unwrap();
        spark.store(life, Ordering::Relaxed);
        let mut acknowledged = [None; 8];
        let mut tried = [0; 8];
        'running: for (round, leaver) in (1_u64..).zip(leavers) {
            let leaver = leaver % count;
            let _ = group.offline(leaver);
            for unit in 0..8 {
                let offset = unit as u64 * (1 << 20);
                tried[unit] = round;
                if data.write(offset, &block(offset, round), round % 2 == 0).is_err() {
                    break 'running;
                }
                if round % 2 == 0 {
                    acknowledged[unit] = Some(round);
                }
            }
            if group.sync().is_err() {
                break;
            }
            acknowledged = [Some(round); 8];
            let _ = group.online_and_resync_on(leaver, &open[leaver]);
        }
        drop((group, data, open));
        for medium in &media {
            medium.power_loss();
        }

        let open = disks(&media);
        let group = DiskGroup::open_on(open.clone()).unwrap();
        let data = group.file("data").unwrap();
        let mut found = vec![0; BLOCK as usize];
        for unit in 0..8 {
            let offset = unit as u64 * (1 << 20);
            let Some(least) = acknowledged[unit] else { continue };
            match data.read(offset, &mut found, &whole) {
                Ok(_) => {}
                // A later write of it was under way, and may have torn both copies.
                Err(GroupError::Corrupt { .. }) if tried[unit] > least => continue,
                Err(error) => panic!("{error}"),
            }
            let version = version(offset, &found).unwrap();
            prop_assert!((least..=tried[unit]).contains(&version), "{version} of {least}");
        }
        for (number, disk) in (0..).zip(open) {
            if group.counters()[number].state.name() == "offline" {
                group.online_and_resync_on(number, &disk).unwrap();
            }
        }
    }
}
