//! An open group: the state shared by all its files, and the only way in which a disk goes offline.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use blockstone_base::Capability;
use blockstone_sys::batch::BatchRing;
use blockstone_sys::thread;
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Redundancy;
use super::damage::{BadBlocks, Verifier};
use super::error::GroupError;
use super::map::{DiskMap, FileMap, Map, Offline, UnitAddress};
use super::member::{DiskState, Slot};
use super::units::Lost;
use crate::disk::Disk;

pub(super) struct Shared {
    pub identity: Identity,
    pub files: Vec<FileMap>,
    /// Verifiers of the files, in the same order.
    pub verifiers: RwLock<Vec<Option<Verifier>>>,
    pub bad_blocks: Mutex<BadBlocks>,
    pub members: Vec<Slot>,
    /// State of the disks as recorded in their map. Locked after `io` if both are needed.
    pub record: Mutex<Record>,
    /// Held shared by every write, and exclusively by operations that must see the copies of a
    /// block at rest: a repair, the copying of one unit, a change of a disk's state.
    io: RwLock<()>,
    pub rings: Mutex<Rings>,
    /// Number of batches for disks that are not files.
    pub turns: AtomicUsize,
    pub resync: Mutex<()>,
    closed: AtomicBool,
    /// The disk that had the last copy of data lost in a failed flush, and its error.
    lost: OnceLock<(String, String)>,
    /// Reason for the first failed write that no online copy took as a whole.
    failed_write: OnceLock<String>,
}

/// Content of the map last written to the disks.
pub(super) struct Record {
    pub sequence: u64,
    pub offline: Vec<Option<Offline>>,
}

pub(super) enum Rings {
    Idle(Vec<BatchRing>),
    None,
}

/// Properties of a group that are fixed at its creation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub group_id: u64,
    pub redundancy: Redundancy,
    pub unit_bytes: u64,
}

impl Shared {
    pub fn new(
        identity: Identity,
        files: Vec<FileMap>,
        members: Vec<Slot>,
        record: Record,
    ) -> Self {
        Self {
            identity,
            verifiers: RwLock::new(vec![None; files.len()]),
            files,
            bad_blocks: Mutex::default(),
            members,
            record: Mutex::new(record),
            io: RwLock::new(()),
            rings: Mutex::new(Rings::Idle(Vec::new())),
            turns: AtomicUsize::new(0),
            resync: Mutex::new(()),
            closed: AtomicBool::new(false),
            lost: OnceLock::new(),
            failed_write: OnceLock::new(),
        }
    }

    pub fn writing(&self) -> Result<RwLockReadGuard<'_, ()>, GroupError> {
        let guard = self.io.read();
        self.check_usable()?;
        Ok(guard)
    }

    /// Checks that the group may still be changed. After the loss of writes that had no other copy,
    /// nothing may be based on its content until recovery has made it whole.
    pub fn check_usable(&self) -> Result<(), GroupError> {
        if self.closed.load(Ordering::Relaxed) {
            Err(GroupError::Closed)
        } else {
            self.check_lost()
        }
    }

    pub fn write_failed(&self, error: &GroupError) {
        self.failed_write.get_or_init(|| error.to_string());
    }

    /// Checks that a disk may return. Blocks that a failed write left torn are restored by
    /// recovery; a returning disk's own copies of them are whole, but older.
    pub fn check_returns(&self) -> Result<(), GroupError> {
        self.check_usable()?;
        let error = |why: &String| GroupError::WriteFailed { why: why.clone() };
        self.failed_write.get().map_or(Ok(()), |why| Err(error(why)))
    }

    fn check_lost(&self) -> Result<(), GroupError> {
        let error = |(disk, why): &(String, String)| GroupError::WritesLost {
            disk: disk.clone(),
            why: why.clone(),
        };
        self.lost.get().map_or(Ok(()), |lost| Err(error(lost)))
    }

    pub fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.io.write()
    }

    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock()
    }

    pub fn verifier(&self, file: &FileMap) -> Option<Verifier> {
        let index = self.files.iter().position(|other| std::ptr::eq(other, file))?;
        self.verifiers.read()[index].clone()
    }

    pub fn direct(&self) -> Capability {
        let buffered = self.members.iter().find(|member| {
            member.disk().is_some_and(|disk| disk.raw().is_some_and(|file| !file.is_direct()))
        });
        match buffered {
            None => Capability::Full,
            Some(member) => {
                Capability::degraded(format!("disk {} goes through the page cache", member.name))
            }
        }
    }

    /// Returns every unit on a disk: its file, its number in the file, its place.
    pub fn units_on(&self, disk: usize) -> impl Iterator<Item = (&FileMap, u64, UnitAddress)> {
        self.files.iter().flat_map(move |file| {
            let places = file.places.iter().enumerate();
            places
                .filter(move |(_, place)| usize::from(place.disk) == disk)
                .map(move |(index, place)| (file, (index / file.copies) as u64, *place))
        })
    }

    /// Records that any block of any unit of the disk may have been missed; if `is_foreign`, that
    /// every one was.
    pub fn all_missed(&self, disk: usize, is_foreign: bool) {
        let mut units = self.members[disk].units();
        units.missed.is_foreign |= is_foreign;
        self.units_on(disk).for_each(|(_, _, place)| units.missed.insert_unit(place.unit));
    }

    pub fn all_unsynced(&self, disk: usize) {
        let mut units = self.members[disk].units();
        for (_, _, place) in self.units_on(disk) {
            units.unsynced.insert(place.unit);
        }
    }

    /// Returns the first file that has a unit with no copy outside of `gone`.
    pub fn hurt_without(&self, gone: &dyn Fn(usize) -> bool) -> Option<&FileMap> {
        self.files.iter().find(|file| {
            file.places
                .chunks(file.copies)
                .any(|copies| copies.iter().all(|place| gone(usize::from(place.disk))))
        })
    }

    /// Returns the error of a group in which `gone` disks would leave `file` without a copy.
    pub fn copies_missing(&self, file: &str, gone: &dyn Fn(usize) -> bool) -> GroupError {
        let names = self.members.iter().enumerate().filter(|(disk, _)| gone(*disk));
        GroupError::CopiesMissing {
            missing: names.map(|(_, m)| m.name.as_str()).collect::<Vec<_>>().join(", "),
            file: file.to_owned(),
            redundancy: self.identity.redundancy.name(),
            survives: match self.identity.redundancy {
                Redundancy::External => "the loss of no disk",
                Redundancy::Normal => "the loss of one failure group",
                Redundancy::High => "the loss of two failure groups",
            },
        }
    }

    /// Takes a disk offline: records this durably on all others, and only then stops using it. A
    /// write that it missed calls this before it returns. A disk that is already offline stays so.
    pub fn take_offline(&self, disk: usize) -> Result<(), GroupError> {
        self.take_offline_in(&mut self.record(), disk)
    }

    /// Takes a disk offline after a failed flush; every caller that waited for this flush does so.
    /// If it has the last copy of something, the group is lost.
    fn take_lost_offline(&self, disk: usize) -> Result<(), GroupError> {
        let mut record = self.record();
        let member = &self.members[disk];
        if !member.units().is_lost() {
            // It has already left.
            return Ok(());
        }
        self.take_offline_in(&mut record, disk).or_else(|_| {
            self.lost.get_or_init(|| (member.name.clone(), member.last_error()));
            self.check_lost()
        })
    }

    fn take_offline_in(&self, record: &mut Record, disk: usize) -> Result<(), GroupError> {
        let member = &self.members[disk];
        if member.state() != DiskState::Online {
            // The map records it as offline until it has everything.
            member.leave();
            return Ok(());
        }
        let before = record.offline.clone();
        let (mut leaving, mut has_written) = (vec![disk], false);
        while let Some(next) = leaving.pop() {
            let since = record.sequence + 1;
            record.offline[next] = Some(Offline { since, exact: false });
            let gone = |disk: usize| record.offline[disk].is_some();
            if let Some(file) = self.hurt_without(&gone) {
                let error = self.copies_missing(&file.name, &gone);
                record.offline = before;
                if has_written {
                    // The map that some disks were given is void. A disk that fails now has an
                    // older one.
                    self.write_map(record);
                }
                return Err(error);
            }
            leaving = self.write_map(record);
            has_written = true;
        }
        for (disk, member) in self.members.iter().enumerate() {
            if record.offline[disk].is_some() && member.state() == DiskState::Online {
                member.leave();
            }
        }
        Ok(())
    }

    /// Writes the next map to every disk that is not recorded as offline. Returns the disks that
    /// did not take it.
    pub fn write_map(&self, record: &mut Record) -> Vec<usize> {
        record.sequence += 1;
        let image = self.map(record).encode();
        let mut failed = Vec::new();
        for (number, member) in self.members.iter().enumerate() {
            if record.offline[number].is_some() {
                continue;
            }
            let written = member
                .disk()
                .map(|disk| Map::write(&*disk, &member.header, record.sequence, &image));
            if !matches!(written, Some(Ok(()))) {
                failed.push(number);
            }
        }
        failed
    }

    /// Writes the first map: a group begins with all its disks online.
    pub fn write_first_map(&self) -> Result<(), GroupError> {
        let mut record = self.record();
        record.sequence += 1;
        let image = self.map(&record).encode();
        self.members.iter().try_for_each(|member| {
            let disk = member.disk().expect("a new group has all its disks");
            Map::write(&*disk, &member.header, record.sequence, &image)
        })
    }

    fn map(&self, record: &Record) -> Map {
        let disk = |(member, offline): (&Slot, &Option<Offline>)| DiskMap {
            name: member.name.clone(),
            failure_group: member.header.failure_group.clone(),
            units: member.header.units,
            offline: *offline,
            stale: member.units().missed.words(),
        };
        Map {
            group_id: self.identity.group_id,
            sequence: record.sequence,
            disks: self.members.iter().zip(&record.offline).map(disk).collect(),
            files: self.files.clone(),
        }
    }

    /// Makes durable every write that returned before, on every disk that is not offline. A disk
    /// whose flush fails goes offline, and the data it may have lost is on the others.
    pub fn sync(&self) -> Result<(), GroupError> {
        self.check_lost()?;
        let due = |disk: &usize| self.members[*disk].needs_sync();
        let due: Vec<usize> = (0..self.members.len()).filter(due).collect();
        let real =
            |disk: &usize| self.members[*disk].disk().is_some_and(|disk| disk.raw().is_some());
        if !due.iter().all(real) {
            return due.into_iter().try_for_each(|disk| self.sync_disk(disk));
        }
        // A flush takes milliseconds, so the disks flush concurrently.
        let ends = thread::each("flush", &due, |disk| self.sync_disk(*disk));
        ends.into_iter().fold(Ok(()), Result::and)
    }

    /// Like [`Shared::sync`], for one disk.
    pub fn sync_disk(&self, disk: usize) -> Result<(), GroupError> {
        self.members[disk].sync().or_else(|Lost| self.take_lost_offline(disk))
    }

    /// Syncs, and records exactly what offline disks missed.
    pub fn close(&self) -> Result<(), GroupError> {
        let _alone = self.alone();
        self.closed.store(true, Ordering::Relaxed);
        self.sync()?;
        let mut record = self.record();
        if record.offline.iter().flatten().all(|offline| offline.exact) {
            return Ok(());
        }
        record.offline.iter_mut().flatten().for_each(|offline| offline.exact = true);
        // A disk that fails now keeps the previous map, which is less precise but not wrong.
        self.write_map(&mut record);
        Ok(())
    }
}

/// Disks by their number, during one request.
pub(super) struct Present(Vec<Option<Arc<dyn Disk>>>);

impl Present {
    pub fn new(members: &[Slot]) -> Self {
        Self(members.iter().map(Slot::disk).collect())
    }

    #[inline]
    pub fn get(&self, disk: usize) -> Option<&Arc<dyn Disk>> {
        self.0[disk].as_ref()
    }
}
