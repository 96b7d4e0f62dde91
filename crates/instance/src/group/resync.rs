//! The return of a disk: it is identified, gets the units that it missed while the group is in use,
//! and only then counts as online on all disks.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use blockstone_base::Bytes;

use super::copy::Gathering;
use super::error::GroupError;
use super::header::{self, Header};
use super::map::{FileMap, Map, Offline, UnitAddress};
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
            // A file other than the one that left may be of any age.
            self.all_missed(number, true);
        }
        // Releases the lock on the disk that is gone.
        member.set_disk(None);
        let disk = FileDisk::open(path, direct)?;
        self.return_disk(number, &(Arc::new(disk) as Arc<dyn Disk>), go_on)
    }

    pub(super) fn replace(&self, number: usize) -> Result<u64, GroupError> {
        self.expect_offline(number)?;
        let member = &self.members[number];
        self.all_missed(number, true);
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

    /// Takes `disk` back into the group under this number and resynchronizes it. Returns the number
    /// of units copied.
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
            self.check_returns()?;
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
                match Map::read(disk, &header) {
                    Some(map) if map.sequence >= since => {
                        Err(GroupError::Diverged { disk: name() })
                    }
                    _ => Ok(()),
                }
            }
            Ok(_) => Err(GroupError::OtherGroup { disk: name(), other: member.name.clone() }),
            Err(GroupError::NotADisk { .. }) if is_blank(disk)? => {
                check_size(disk, &member.header)?;
                self.all_missed(number, true);
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
        let (mut spare, mut copied) = (Vec::new(), 0);
        for (file, unit, place) in self.units_on(number) {
            if !member.units().missed.contains(place.unit) {
                continue;
            }
            if !go_on() {
                return Err(GroupError::Aborted);
            }
            // Flushed beforehand, so that writes seldom wait for it.
            self.settle(file, unit)?;
            // A write to the group waits only as long as the copying of one unit takes.
            let _alone = self.alone();
            self.check_returns()?;
            self.settle(file, unit)?;
            Gathering::new(self, (file, unit), place, &mut spare)?.fill(&mut memory)?;
            let offset = member.offset(place.unit);
            member.write(disk, offset, &memory, false)?;
            // A disk that was away is not trusted: the data it acknowledged is read back.
            member.read(disk, offset, &mut again)?;
            if memory[..] != again[..] {
                return Err(GroupError::FailedAgain { disk: member.name.clone() });
            }
            let mut units = member.units();
            if member.state() != DiskState::Resyncing {
                return Err(GroupError::FailedAgain { disk: member.name.clone() });
            }
            units.copied(place.unit);
            copied += 1;
        }
        Ok(copied)
    }

    /// Makes the copies of a unit durable: data that its disk may still lose must not survive
    /// elsewhere as if it had been durable there.
    fn settle(&self, file: &FileMap, unit: u64) -> Result<(), GroupError> {
        let online = |place: &&UnitAddress| self.slot(**place).state() == DiskState::Online;
        let volatile = |place: &&UnitAddress| self.slot(**place).units().is_volatile(place.unit);
        let places = file.copies_of(unit).iter().filter(online).filter(volatile);
        places.map(|place| usize::from(place.disk)).try_for_each(|disk| self.sync_disk(disk))
    }

    /// Records on all disks that it is back, once it has everything durably.
    fn bring_online(&self, number: usize) -> Result<(), GroupError> {
        let member = &self.members[number];
        // Whichever thread flushes: a flush of the disk in progress is awaited.
        self.sync_disk(number)?;
        let failed = {
            let _alone = self.alone();
            self.check_returns()?;
            let mut record = self.record();
            {
                let units = member.units();
                let is_whole = units.missed.is_empty() && !units.is_lost();
                if member.state() != DiskState::Resyncing || !is_whole {
                    return Err(GroupError::FailedAgain { disk: member.name.clone() });
                }
            }
            record.offline[number] = None;
            let mut failed = self.write_map(&mut record);
            if failed.contains(&number) {
                let since = record.sequence + 1;
                record.offline[number] = Some(Offline { since, exact: false });
                failed.extend(self.write_map(&mut record));
            } else {
                member.units().missed.is_foreign = false;
                member.set_state(DiskState::Online);
            }
            failed
        };
        failed.iter().try_for_each(|disk| self.take_offline(*disk))?;
        if failed.contains(&number) {
            return Err(GroupError::FailedAgain { disk: member.name.clone() });
        }
        Ok(())
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
