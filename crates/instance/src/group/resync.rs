//! The return of a disk: it is recognised, gets the units that it missed while the group is in use,
//! and only then counts as online on all disks.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use blockstone_base::Bytes;

use super::error::GroupError;
use super::header::{self, Header};
use super::map::{FileMap, Map, Offline, Place};
use super::member::DiskState;
use super::setup::{check_blank, is_blank, lay_out};
use super::state::Shared;
use crate::disk::{Disk, FileDisk};

type GoOn<'a> = &'a dyn Fn() -> bool;

impl Shared {
    pub(super) fn return_from_path(
        &self,
        number: usize,
        go_on: GoOn<'_>,
    ) -> Result<u64, GroupError> {
        self.expect_offline(number)?;
        let member = &self.members[number];
        let held = member.disk();
        if let Some(disk) = held.clone().filter(|disk| disk.is_present()) {
            return self.return_disk(number, &disk, go_on);
        }
        let (path, direct) = (Path::new(&member.name), self.direct().is_full());
        if !path.exists() {
            // The disk that left may still return, and what it missed is known.
            return Err(GroupError::StillAway { disk: member.name.clone() });
        }
        if held.is_some_and(|disk| disk.raw().is_some_and(|file| !file.is_device())) {
            // Another file than the one that left may have any age.
            self.all_stale(number);
        }
        // Drops the lock on the disk that is gone.
        member.set_disk(None);
        let disk = FileDisk::open(path, direct)?;
        self.return_disk(number, &(Arc::new(disk) as Arc<dyn Disk>), go_on)
    }

    pub(super) fn replace(&self, number: usize) -> Result<u64, GroupError> {
        self.expect_offline(number)?;
        let member = &self.members[number];
        self.all_stale(number);
        if member.disk().is_some_and(|disk| !disk.is_present()) {
            member.set_disk(None);
        }
        let mut disk = FileDisk::create(Path::new(&member.name), self.direct().is_full())?;
        if let Err(error) = make(&mut disk, &member.header) {
            if disk.is_created() {
                disk.remove();
            }
            return Err(error);
        }
        self.return_disk(number, &(Arc::new(disk) as Arc<dyn Disk>), &|| true)
    }

    fn expect_offline(&self, number: usize) -> Result<(), GroupError> {
        let member = &self.members[number];
        match member.state() {
            DiskState::Offline => Ok(()),
            state => Err(GroupError::NotOffline { disk: member.name.clone(), state: state.name() }),
        }
    }

    /// Takes `disk` back as the disk with this number. Returns the number of units copied.
    pub(super) fn return_disk(
        &self,
        number: usize,
        disk: &Arc<dyn Disk>,
        go_on: GoOn<'_>,
    ) -> Result<u64, GroupError> {
        let _one_at_a_time = self.resync.lock();
        self.expect_offline(number)?;
        self.recognise(number, &**disk)?;
        let member = &self.members[number];
        {
            let _alone = self.alone();
            member.set_disk(Some(Arc::clone(disk)));
            member.set_state(DiskState::Resyncing);
        }
        let ended = self.copy_stale(number, &**disk, go_on).and_then(|copied| {
            self.bring_online(number)?;
            Ok(copied)
        });
        if ended.is_err() && member.state() == DiskState::Resyncing {
            self.take_offline(number)?;
        }
        ended
    }

    /// Makes sure that `disk` is the one that left, or an empty one to take its place.
    fn recognise(&self, number: usize, disk: &dyn Disk) -> Result<(), GroupError> {
        let member = &self.members[number];
        let name = || disk.name().to_owned();
        match Header::read(disk) {
            Ok(header) if header == member.header => {
                let since = self.record().offline[number].map_or(u64::MAX, |off| off.since);
                match Map::read(disk, &header)? {
                    Some(map) if map.sequence >= since => {
                        Err(GroupError::Diverged { disk: name() })
                    }
                    _ => Ok(()),
                }
            }
            Ok(_) => Err(GroupError::OtherGroup { disk: name(), other: member.name.clone() }),
            Err(GroupError::NotADisk { .. }) if is_blank(disk)? => {
                check_size(disk, &member.header)?;
                self.all_stale(number);
                member.header.write(disk)
            }
            Err(error) => Err(error),
        }
    }

    fn copy_stale(
        &self,
        number: usize,
        disk: &dyn Disk,
        go_on: GoOn<'_>,
    ) -> Result<u64, GroupError> {
        let member = &self.members[number];
        let mut memory = header::memory(disk, self.identity.unit_bytes)?;
        let mut again = header::memory(disk, self.identity.unit_bytes)?;
        let mut copied = 0;
        for (file, unit, place) in self.units_on(number) {
            if !member.stale.contains(place.unit) {
                continue;
            }
            if !go_on() {
                return Err(GroupError::Aborted);
            }
            // A write to this unit waits for as long as one unit takes.
            let _alone = self.alone();
            self.copy_unit(file, unit, &mut memory)?;
            let offset = member.offset(place.unit);
            member.write(disk, offset, &memory, false)?;
            // A disk that was away is not trusted: what it acknowledged is read back.
            member.read(disk, offset, &mut again)?;
            if memory[..] != again[..] {
                return Err(GroupError::FailedAgain { disk: member.name.clone() });
            }
            member.unsynced.insert(place.unit);
            member.stale.remove(place.unit);
            copied += 1;
        }
        Ok(copied)
    }

    fn copy_unit(&self, file: &FileMap, unit: u64, memory: &mut [u8]) -> Result<(), GroupError> {
        let online = |place: &&Place| self.slot(**place).state() == DiskState::Online;
        let mut failure = None;
        for place in file.copies_of(unit).iter().filter(online) {
            let member = self.slot(*place);
            let Some(disk) = member.disk() else { continue };
            match member.read(&*disk, member.offset(place.unit), memory) {
                Ok(_) => return Ok(()),
                Err(error) => failure = Some(error),
            }
        }
        let gone = |disk: usize| self.members[disk].state() != DiskState::Online;
        Err(failure.map_or_else(|| self.copies_missing(&file.name, &gone), Into::into))
    }

    /// Tells all disks that it is back, once it has everything durably.
    fn bring_online(&self, number: usize) -> Result<(), GroupError> {
        let member = &self.members[number];
        member.sync()?;
        let failed = {
            let _alone = self.alone();
            if member.state() != DiskState::Resyncing || !member.stale.is_empty() {
                return Err(GroupError::FailedAgain { disk: member.name.clone() });
            }
            let mut record = self.record();
            record.offline[number] = None;
            let failed = self.write_map(&mut record);
            if failed.contains(&number) {
                let since = record.sequence + 1;
                record.offline[number] = Some(Offline { since, exact: false });
                self.write_map(&mut record);
                return Err(GroupError::FailedAgain { disk: member.name.clone() });
            }
            member.set_state(DiskState::Online);
            failed
        };
        failed.into_iter().try_for_each(|disk| self.take_offline(disk))
    }
}

fn check_size(disk: &dyn Disk, header: &Header) -> Result<(), GroupError> {
    let needed = Bytes(header.disk_bytes());
    if disk.size_bytes() >= needed.get() {
        return Ok(());
    }
    Err(GroupError::TooSmall { disk: disk.name().to_owned(), needed })
}

fn make(disk: &mut FileDisk, header: &Header) -> Result<(), GroupError> {
    check_blank(disk)?;
    disk.reserve(header.disk_bytes())?;
    check_size(disk, header)?;
    header.write(disk)?;
    lay_out(disk, header, &|_| ControlFlow::Continue(()))
}
