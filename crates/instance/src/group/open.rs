//! Opening a group: which disks belong to it, which map is valid, and which disks are missing.

use std::path::PathBuf;
use std::sync::Arc;

use blockstone_sys::file::FileError;

use super::Redundancy;
use super::error::GroupError;
use super::header::Header;
use super::map::{Map, Offline};
use super::member::{DiskState, Slot};
use super::state::{Identity, Record, Shared};
use crate::disk::{Disk, FileDisk};

struct Known {
    disk: Arc<dyn Disk>,
    header: Header,
    map: Option<Map>,
}

pub(super) fn open(paths: &[PathBuf], direct: bool) -> Result<Shared, GroupError> {
    let (mut disks, mut absent) = (Vec::new(), Vec::new());
    for path in paths {
        match FileDisk::open(path, direct) {
            Ok(disk) => disks.push(Arc::new(disk) as Arc<dyn Disk>),
            Err(error) if is_absent(&error) => absent.push(error.into()),
            Err(error) => return Err(error.into()),
        }
    }
    open_on(disks, absent)
}

/// Whether the disk is absent, which a mirrored group can tolerate.
pub(super) fn is_absent(error: &FileError) -> bool {
    const ENXIO: i32 = 6;
    const ENODEV: i32 = 19;
    match error {
        FileError::Open { source, .. } => {
            source.kind() == std::io::ErrorKind::NotFound
                || matches!(source.raw_os_error(), Some(ENXIO | ENODEV))
        }
        _ => false,
    }
}

/// Opens the group on `disks`; `refused` holds the reasons why others could not be opened.
pub(super) fn open_on(
    disks: Vec<Arc<dyn Disk>>,
    mut refused: Vec<GroupError>,
) -> Result<Shared, GroupError> {
    let absent = refused.len();
    let known = identify(disks, &mut refused)?;
    let Some(first) = known.first() else {
        return Err(refused.into_iter().next().unwrap_or(GroupError::NoMap));
    };
    let maps = known.iter().filter_map(|known| known.map.as_ref());
    let map = maps.max_by_key(|map| map.sequence).cloned().ok_or(GroupError::NoMap)?;
    let present = |number: usize| known.iter().find(|known| known.header.disk as usize == number);
    let complete = (0..map.disks.len()).all(|number| present(number).is_some());
    if complete && refused.len() > absent {
        // No disk is missing, so this one was given by mistake.
        return Err(refused.swap_remove(absent));
    }
    for (number, disk) in map.disks.iter().enumerate() {
        let own = present(number).and_then(|known| known.map.as_ref());
        if let (Some(offline), Some(own)) = (disk.offline, own)
            && own.sequence >= offline.since
        {
            return Err(GroupError::Diverged { disk: disk.name.clone() });
        }
    }
    let redundancy = Redundancy::from_copies(usize::from(first.header.copies));
    let redundancy = redundancy
        .ok_or_else(|| GroupError::DamagedHeader { disk: first.disk.name().to_owned() })?;
    let (group_id, unit_bytes) = (map.group_id, first.header.unit_bytes);
    let identity = Identity { group_id, redundancy, unit_bytes };
    let members = members(&map, &present, &first.header);
    let is_behind = |known: &&Known| known.map.as_ref().is_none_or(|own| *own != map);
    let behind: Vec<usize> =
        known.iter().filter(is_behind).map(|known| known.header.disk as usize).collect();
    assemble(identity, map, members, &behind)
}

/// Reads headers and maps; checks that all belong together.
fn identify(
    disks: Vec<Arc<dyn Disk>>,
    refused: &mut Vec<GroupError>,
) -> Result<Vec<Known>, GroupError> {
    let mut known: Vec<Known> = Vec::new();
    for disk in disks {
        let header = match Header::read(&*disk) {
            Ok(header) => header,
            Err(error @ GroupError::OtherVersion { .. }) => return Err(error),
            Err(error) => {
                refused.push(error);
                continue;
            }
        };
        if let Some(other) = known.first().filter(|o| o.header.group_id != header.group_id) {
            let (disk, other) = (disk.name().to_owned(), other.disk.name().to_owned());
            return Err(GroupError::OtherGroup { disk, other });
        }
        if let Some(other) = known.iter().find(|other| other.header.disk == header.disk) {
            let (disk, other) = (disk.name().to_owned(), other.disk.name().to_owned());
            return Err(GroupError::Twice { disk, other });
        }
        let map = Map::read(&*disk, &header);
        known.push(Known { disk, header, map });
    }
    Ok(known)
}

fn members<'a>(map: &Map, present: &dyn Fn(usize) -> Option<&'a Known>, any: &Header) -> Vec<Slot> {
    let slot = |(number, disk): (usize, &super::map::DiskMap)| {
        let state = if disk.offline.is_some() { DiskState::Offline } else { DiskState::Online };
        if let Some(Known { disk, header, .. }) = present(number) {
            let name = disk.name().to_owned();
            return Slot::new(name, header.clone(), Some(Arc::clone(disk)), state);
        }
        let header = Header {
            disk: number as u32,
            units: disk.units,
            failure_group: disk.failure_group.clone(),
            ..any.clone()
        };
        Slot::new(disk.name.clone(), header, None, DiskState::Offline)
    };
    map.disks.iter().enumerate().map(slot).collect()
}

/// Records which disks are missing, before anything is written without them. Writes the map to the
/// disks that are `behind`: those that were online when power was lost while it was written, or
/// that have a damaged map.
fn assemble(
    identity: Identity,
    map: Map,
    members: Vec<Slot>,
    behind: &[usize],
) -> Result<Shared, GroupError> {
    let since = map.sequence + 1;
    let (mut changed, image) = (false, map.encode());
    let mut offline = Vec::new();
    for (disk, member) in map.disks.iter().zip(&members) {
        let left = member.state() == DiskState::Offline && disk.offline.is_none();
        changed |= left || disk.offline.is_some_and(|offline| offline.exact);
        let since = disk.offline.map_or(since, |offline| offline.since);
        let now = Offline { since, exact: false };
        offline.push((left || disk.offline.is_some()).then_some(now));
    }
    let record = Record { sequence: map.sequence, offline };
    let shared = Shared::new(identity, map.files, members, record);
    let gone = |disk: usize| shared.members[disk].state() == DiskState::Offline;
    if let Some(file) = shared.hurt_without(&gone) {
        return Err(shared.copies_missing(&file.name, &gone));
    }
    for (number, disk) in map.disks.iter().enumerate() {
        match disk.offline {
            Some(Offline { exact: true, .. }) => {
                shared.members[number].units().missed.insert_units(&disk.stale);
            }
            _ if gone(number) => shared.all_missed(number, false),
            // An earlier user may have left unsynced data in its cache.
            _ => shared.all_unsynced(number),
        }
    }
    for (number, member) in shared.members.iter().enumerate() {
        let online = member.disk().filter(|_| member.state() == DiskState::Online);
        let Some(disk) = online else { continue };
        let mut repaired = member.header.repair(&*disk);
        if repaired.is_ok() && behind.contains(&number) {
            // In the slot where the other disks have it: the previous map stays until it is
            // written.
            repaired = Map::write(&*disk, &member.header, since - 1, &image);
        }
        if repaired.is_err() {
            shared.take_offline(number)?;
        }
    }
    if changed {
        let failed = shared.write_map(&mut shared.record());
        failed.into_iter().try_for_each(|disk| shared.take_offline(disk))?;
    }
    Ok(shared)
}
