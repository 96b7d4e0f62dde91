//! Power loss, including during the write of a map.

use blockstone_instance::group::{DiskGroup, DiskState, GroupError, Member, Redundancy};
use blockstone_instance::testing::{Faults, Machine};
use proptest::prelude::*;

use crate::{BLOCK, UNIT, block, create, file, machine, version, whole};

fn power_goes_at_change(at: u64) -> Faults {
    Faults { power_goes_at_change: Some(at), ..Faults::default() }
}

/// The only disk that records which disk is offline dies while it writes the next map.
#[test]
fn a_torn_map_leaves_the_one_before() {
    for (life, seed) in (1..5).flat_map(|life| (0..200).map(move |seed| (life, seed))) {
        let machine = Machine::new(2, 32 << 20, seed);
        // Long names, so that the bytes that change from map to map are not in one sector.
        let member = |(number, disk)| Member { disk, failure_group: [number; 600].concat() };
        let members = ["a", "b"].into_iter().zip(machine.disks()).map(member).collect();
        let files = [file("data", 8, false)];
        let group = DiskGroup::create_on(members, Redundancy::Normal, UNIT, &files).unwrap();
        let data = group.file("data").unwrap();
        data.write(0, &block(0, 1), true).unwrap();
        group.offline(1).unwrap();
        data.write(0, &block(0, 2), true).unwrap();
        machine.set_faults(power_goes_at_change(life));
        let _ = group.close();
        drop((group, data));
        machine.lose_power();
        let group = DiskGroup::open_on(machine.disks()).unwrap();
        assert_eq!(group.counters()[1].state, DiskState::Offline, "life {life}, seed {seed}");
        let mut found = vec![0; BLOCK as usize];
        group.file("data").unwrap().read(0, &mut found, &whole).unwrap();
        assert_eq!(version(0, &found), Some(2));
        assert!(group.online_and_resync_on(1, &machine.disks()[1]).unwrap() > 0);
    }
}

#[test]
fn a_sync_covers_what_an_earlier_process_left_in_the_disks_caches() {
    for synced in [true, false] {
        let machine = machine(2, 32);
        let group = create(machine.disks(), Redundancy::Normal).unwrap();
        group.file("data").unwrap().write(0, &block(0, 1), false).unwrap();
        drop(group);
        let group = DiskGroup::open_on(machine.disks()).unwrap();
        if synced {
            group.sync().unwrap();
        }
        drop(group);
        let machine = Machine::with(machine.durable(), 1, false);
        let group = DiskGroup::open_on(machine.disks()).unwrap();
        let mut found = vec![0; BLOCK as usize];
        let read = group.file("data").unwrap().read(0, &mut found, &whole);
        assert_eq!(read.is_ok() && version(0, &found) == Some(1), synced);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// The machine stops at any operation while disks leave and return, and data that was not
    /// durable is lost or torn: the group opens, and every acknowledged durable write is there.
    #[test]
    fn a_power_loss_at_any_moment_leaves_a_group_that_opens(
        life in 1_u64..80,
        count in 2_usize..5,
        leavers in prop::collection::vec(0_usize..4, 1..5),
        seed in any::<u64>(),
    ) {
        let machine = Machine::new(count, 32 << 20, seed);
        let open = machine.disks();
        let group = create(open.clone(), Redundancy::Normal).unwrap();
        let data = group.file("data").unwrap();
        machine.set_faults(power_goes_at_change(life));
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
        machine.lose_power();

        let open = machine.disks();
        let group = DiskGroup::open_on(open.clone()).unwrap();
        let data = group.file("data").unwrap();
        let mut found = vec![0; BLOCK as usize];
        for unit in 0..8 {
            let offset = unit as u64 * (1 << 20);
            let Some(least) = acknowledged[unit] else { continue };
            match data.read(offset, &mut found, &whole) {
                Ok(_) => {}
                // A later write of it was in progress, and may have torn both copies.
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
