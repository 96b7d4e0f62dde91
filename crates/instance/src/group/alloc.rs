//! Decides which disks get the copies of each unit.
//!
//! Primaries go round-robin over the disks, and each file continues where the one before ended. So
//! each disk gets its share of every file, and of all files together, to within one unit. The other
//! copies go to other failure groups: to the disk that mirrors the primary's disk least, and if
//! several do, to the one of them that holds the fewest units. The first rule spreads the load of a
//! lost disk over the others; the second fills the disks evenly.

use super::error::GroupError;
use super::map::UnitAddress;

#[derive(Clone, Debug)]
pub(super) struct Room {
    pub name: String,
    pub failure_group: String,
    /// Number of its units, including reserved ones.
    pub units: u32,
    pub next: u32,
}

#[derive(Debug)]
pub(super) struct Allocator {
    rooms: Vec<Room>,
    copies: usize,
    turn: usize,
    /// Number of times that the second disk holds a mirror of a primary on the first.
    pairs: Vec<Vec<u32>>,
}

impl Allocator {
    pub fn new(rooms: Vec<Room>, copies: usize) -> Self {
        let pairs = vec![vec![0; rooms.len()]; rooms.len()];
        Self { rooms, copies, turn: 0, pairs }
    }

    pub fn allocate(&mut self, units: u64) -> Result<Vec<UnitAddress>, GroupError> {
        let mut places = Vec::with_capacity(units as usize * self.copies);
        for _ in 0..units {
            let primary = self.turn;
            self.turn = (self.turn + 1) % self.rooms.len();
            let mut disks = vec![primary];
            while disks.len() < self.copies {
                let mirror = self.mirror(&disks);
                self.pairs[primary][mirror] += 1;
                disks.push(mirror);
            }
            for disk in disks {
                places.push(self.take(disk)?);
            }
        }
        Ok(places)
    }

    pub fn into_rooms(self) -> Vec<Room> {
        self.rooms
    }

    /// Returns a disk for one more copy in addition to those on `disks`, the primary first.
    fn mirror(&self, disks: &[usize]) -> usize {
        let (primary, count) = (disks[0], self.rooms.len());
        let group = |disk: usize| &self.rooms[disk].failure_group;
        (1..count)
            .map(|step| (primary + step) % count)
            .filter(|disk| disks.iter().all(|other| group(*other) != group(*disk)))
            .min_by_key(|disk| {
                let room = &self.rooms[*disk];
                (room.next >= room.units, self.pairs[primary][*disk], room.next)
            })
            .expect("there are as many failure groups as copies, which was checked")
    }

    fn take(&mut self, disk: usize) -> Result<UnitAddress, GroupError> {
        let room = &mut self.rooms[disk];
        if room.next >= room.units {
            return Err(GroupError::NoRoom { disk: room.name.clone(), units: room.units });
        }
        room.next += 1;
        Ok(UnitAddress { disk: disk as u16, unit: room.next - 1 })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn rooms(failure_groups: &[usize]) -> Vec<Room> {
        let room = |(index, group): (usize, &usize)| Room {
            name: format!("disk {index}"),
            failure_group: format!("group {group}"),
            units: u32::MAX,
            next: 1,
        };
        failure_groups.iter().enumerate().map(room).collect()
    }

    proptest! {
        #[test]
        fn primaries_are_even_and_copies_lie_apart(
            per_group in prop::collection::vec(1_usize..4, 3..6),
            copies in 1_usize..4,
            files in prop::collection::vec(1_u64..200, 1..5),
        ) {
            let failure_groups: Vec<usize> = per_group
                .iter()
                .enumerate()
                .flat_map(|(group, disks)| vec![group; *disks])
                .collect();
            let disks = failure_groups.len();
            let mut allocator = Allocator::new(rooms(&failure_groups), copies);
            let (mut total, mut used) = (vec![0_u64; disks], BTreeSet::new());
            for units in files {
                let places = allocator.allocate(units).unwrap();
                prop_assert_eq!(places.len() as u64, units * copies as u64);
                let mut of_file = vec![0_u64; disks];
                for unit in places.chunks(copies) {
                    of_file[usize::from(unit[0].disk)] += 1;
                    let groups: BTreeSet<usize> =
                        unit.iter().map(|place| failure_groups[usize::from(place.disk)]).collect();
                    prop_assert_eq!(groups.len(), copies, "one copy a failure group");
                    prop_assert!(unit.iter().all(|place| used.insert((place.disk, place.unit))));
                }
                for (total, more) in total.iter_mut().zip(&of_file) {
                    *total += more;
                }
                for counts in [&of_file, &total] {
                    let (most, least) = (counts.iter().max(), counts.iter().min());
                    prop_assert!(most.unwrap() - least.unwrap() <= 1, "{counts:?}");
                }
            }
        }
    }

    #[test]
    fn what_a_lost_disk_leaves_is_spread_over_all_others() {
        let mut allocator = Allocator::new(rooms(&[0, 1, 2, 3, 4, 5, 6, 7]), 2);
        let places = allocator.allocate(8 * 7 * 4).unwrap();
        let mut mirrors = [0; 8];
        for unit in places.chunks(2).filter(|unit| unit[0].disk == 3) {
            mirrors[usize::from(unit[1].disk)] += 1;
        }
        assert_eq!(mirrors, [4, 4, 4, 0, 4, 4, 4, 4]);
        let rooms = allocator.into_rooms();
        assert!(rooms.iter().all(|room| room.next == rooms[0].next), "all are equally full");
    }

    #[test]
    fn a_full_disk_is_named() {
        let mut small = rooms(&[0, 1]);
        small[1].units = 3;
        let error = Allocator::new(small, 2).allocate(5).unwrap_err();
        assert!(matches!(&error, GroupError::NoRoom { disk, units: 3 } if disk == "disk 1"));
    }
}
