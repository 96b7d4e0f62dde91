//! Creating a group, and removing one.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use blockstone_base::Bytes;
use blockstone_sys::batch::{BatchRing, GatherWrite, Written};
use blockstone_sys::{survey, thread};

use super::alloc::{Allocator, Room};
use super::error::GroupError;
use super::header::{self, CHUNK_BYTES, HEADER_BYTES, Header, read_aligned};
use super::map::{FileMap, Map};
use super::member::{DiskState, Slot};
use super::open::is_absent;
use super::state::{Identity, Record, Shared};
use super::{DiskSpec, FINE_STRIPE, FileSpec, GroupSpec, Member, Progress, Redundancy};
use crate::disk::{ALIGN_BYTES, Disk, FileDisk};

const CHUNKS: usize = 8;
/// Units beyond those of the files that a map has room to mark as stale: those of header and map.
const SPARE_UNITS: u32 = 4096;

struct Plan {
    identity: Identity,
    slot_bytes: u64,
    rooms: Vec<Room>,
    files: Vec<FileMap>,
}

pub(super) fn create(
    spec: &GroupSpec,
    files: &[FileSpec],
    progress: Progress<'_>,
) -> Result<Shared, GroupError> {
    let failure_groups = failure_groups(spec);
    validate(&failure_groups, spec.redundancy, spec.allocation_unit, files)?;
    let mut disks: Vec<Arc<FileDisk>> = Vec::new();
    let built = build(spec, failure_groups, files, progress, &mut disks);
    if built.is_err() {
        for disk in &disks {
            discard(disk);
        }
    }
    built
}

pub(super) fn requirements(spec: &GroupSpec, files: &[FileSpec]) -> Result<Vec<Bytes>, GroupError> {
    let failure_groups = failure_groups(spec);
    validate(&failure_groups, spec.redundancy, spec.allocation_unit, files)?;
    let room = |(disk, failure_group): (&DiskSpec, String)| {
        let name = disk.path.display().to_string();
        Room { name, failure_group, units: u32::MAX, next: 0 }
    };
    let rooms = spec.disks.iter().zip(failure_groups).map(room).collect();
    let plan = Plan::new(rooms, spec.redundancy, spec.allocation_unit, files)?;
    Ok((0..spec.disks.len()).map(|number| Bytes(plan.header(number).disk_bytes())).collect())
}

fn failure_groups(spec: &GroupSpec) -> Vec<String> {
    let group = |disk: &DiskSpec| {
        let alone = || disk.path.display().to_string();
        disk.failure_group.clone().unwrap_or_else(alone)
    };
    spec.disks.iter().map(group).collect()
}

fn build(
    spec: &GroupSpec,
    failure_groups: Vec<String>,
    files: &[FileSpec],
    progress: Progress<'_>,
    disks: &mut Vec<Arc<FileDisk>>,
) -> Result<Shared, GroupError> {
    let mut rooms = Vec::new();
    for (disk, failure_group) in spec.disks.iter().zip(failure_groups) {
        let disk = FileDisk::create(&disk.path, spec.direct)?;
        let name = disk.name().to_owned();
        check_blank(&disk)?;
        let units =
            if disk.is_created() { u32::MAX } else { units_of(&disk, spec.allocation_unit) };
        disks.push(Arc::new(disk));
        rooms.push(Room { name, failure_group, units, next: 0 });
    }
    let mut plan = Plan::new(rooms, spec.redundancy, spec.allocation_unit, files)?;
    for (number, disk) in disks.iter_mut().enumerate() {
        let room = &mut plan.rooms[number];
        if disk.is_created() {
            room.units = room.next;
        }
        let disk_bytes = plan.header(number).disk_bytes();
        Arc::get_mut(disk).expect("it is not shared yet").reserve(disk_bytes)?;
    }
    let (done, total) = (AtomicU64::new(0), plan.bytes());
    let told = |bytes| progress(done.fetch_add(bytes, Ordering::Relaxed) + bytes, total);
    let headed: Vec<_> =
        (0..).zip(&*disks).map(|(number, disk)| (plan.header(number), disk)).collect();
    let laid_out = thread::each("layout", &headed, |(header, disk)| {
        // The header first, so that whatever a killed setup leaves behind can be removed.
        header.write(&***disk)?;
        lay_out(&***disk, header, &told)
    });
    laid_out.into_iter().collect::<Result<(), GroupError>>()?;
    plan.assemble(disks.iter().map(|disk| Arc::clone(disk) as Arc<dyn Disk>).collect())
}

pub(super) fn create_on(
    members: Vec<Member>,
    redundancy: Redundancy,
    allocation_unit: Bytes,
    files: &[FileSpec],
) -> Result<Shared, GroupError> {
    let failure_groups: Vec<String> =
        members.iter().map(|member| member.failure_group.clone()).collect();
    validate(&failure_groups, redundancy, allocation_unit, files)?;
    let rooms = members
        .iter()
        .map(|member| Room {
            name: member.disk.name().to_owned(),
            failure_group: member.failure_group.clone(),
            units: units_of(&*member.disk, allocation_unit),
            next: 0,
        })
        .collect();
    let plan = Plan::new(rooms, redundancy, allocation_unit, files)?;
    for (number, member) in members.iter().enumerate() {
        plan.header(number).write(&*member.disk)?;
    }
    plan.assemble(members.into_iter().map(|member| member.disk).collect())
}

pub(super) fn remove(paths: &[PathBuf]) -> Result<(), GroupError> {
    let (mut removed, mut absent) = (false, None);
    for path in paths {
        // Through the page cache, emptying a device would take one request for every 4 KiB.
        let disk = match FileDisk::open(path, true) {
            Ok(disk) => disk,
            Err(error) if is_absent(&error) => {
                absent = absent.or(Some(error));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match Header::read(&disk) {
            Ok(_) | Err(GroupError::DamagedHeader { .. } | GroupError::OtherVersion { .. }) => {
                discard(&disk);
                removed = true;
            }
            Err(error) => return Err(error),
        }
    }
    // A group may have lost a disk, but at least one must be there.
    absent.filter(|_| !removed).map_or(Ok(()), |error| Err(error.into()))
}

/// Deletes a disk's file; for a device, zeroes both ends so that it counts as empty.
fn discard(disk: &FileDisk) {
    disk.remove();
    if disk.file().is_device() {
        let size = disk.size_bytes() / ALIGN_BYTES * ALIGN_BYTES;
        let len = CHUNK_BYTES.min(size);
        if let Ok(zeros) = header::memory(disk, len) {
            for offset in [0, size - len] {
                // A device that fails here fails again at its next use.
                let _ = disk.write_dsync_at(offset, &zeros);
            }
        }
    }
}

/// Writes every byte of a disk between its headers once, with incompressible data.
pub(super) fn lay_out(
    disk: &dyn Disk,
    header: &Header,
    told: &dyn Fn(u64) -> ControlFlow<()>,
) -> Result<(), GroupError> {
    let mut memory = header::memory(disk, CHUNKS as u64 * CHUNK_BYTES)?;
    let mut ring = disk.raw().and_then(|_| BatchRing::open(CHUNKS as u32).ok());
    let end = u64::from(header.units) * header.unit_bytes;
    let mut offset = HEADER_BYTES;
    while offset < end {
        let mut chunks = Vec::with_capacity(CHUNKS);
        for room in memory.chunks_mut(CHUNK_BYTES as usize) {
            let len = (CHUNK_BYTES - offset % CHUNK_BYTES).min(end - offset);
            if len == 0 {
                break;
            }
            let chunk = &mut room[..len as usize];
            header.fill_chunk(offset, chunk);
            chunks.push((offset, &*chunk));
            offset += len;
        }
        write_chunks(disk, ring.as_mut(), &chunks)?;
        if told(chunks.iter().map(|(_, chunk)| chunk.len() as u64).sum()).is_break() {
            return Err(GroupError::Aborted);
        }
    }
    Ok(disk.sync()?)
}

/// Writes chunks concurrently if there is a ring, and one after the other if there is none or it
/// did not write them completely.
fn write_chunks(
    disk: &dyn Disk,
    ring: Option<&mut BatchRing>,
    chunks: &[(u64, &[u8])],
) -> Result<(), GroupError> {
    let mut done = Vec::new();
    if let (Some(ring), Some(file)) = (ring, disk.raw()) {
        let parts: Vec<[IoSlice<'_>; 1]> =
            chunks.iter().map(|(_, chunk)| [IoSlice::new(chunk)]).collect();
        let write =
            |((offset_bytes, _), parts)| GatherWrite { file, offset_bytes, parts, durable: false };
        let writes: Vec<GatherWrite<'_>> =
            chunks.iter().copied().zip(parts.iter().map(|parts| &parts[..])).map(write).collect();
        ring.write(&writes, &mut done);
    }
    for (index, (offset, chunk)) in chunks.iter().enumerate() {
        let whole = Some(Ok(chunk.len() as u32));
        if done.get(index).map(|written: &Written| written.result) != whole {
            disk.write_at(*offset, chunk)?;
        }
    }
    Ok(())
}

/// Checks that a device is unused and empty, so that it may be overwritten; a new file always may.
pub(super) fn check_blank(disk: &FileDisk) -> Result<(), GroupError> {
    if disk.is_created() {
        return Ok(());
    }
    let name = || disk.name().to_owned();
    if let Some(usage) = survey::user_of(Path::new("/"), disk.file().path())? {
        return Err(GroupError::InUse { disk: name(), usage });
    }
    if is_blank(disk)? { Ok(()) } else { Err(GroupError::NotEmpty { disk: name() }) }
}

/// Whether the first and the last mebibyte of a disk are empty.
pub(super) fn is_blank(disk: &dyn Disk) -> Result<bool, GroupError> {
    let size = disk.size_bytes() / ALIGN_BYTES * ALIGN_BYTES;
    let len = size.min(CHUNK_BYTES);
    for offset in [0, size - len] {
        if len > 0 && read_aligned(disk, offset, len)?.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn units_of(disk: &dyn Disk, unit: Bytes) -> u32 {
    let units = disk.size_bytes().saturating_sub(HEADER_BYTES) / unit.get();
    u32::try_from(units).unwrap_or(u32::MAX)
}

impl Plan {
    fn new(
        rooms: Vec<Room>,
        redundancy: Redundancy,
        unit: Bytes,
        files: &[FileSpec],
    ) -> Result<Self, GroupError> {
        let (unit_bytes, copies) = (unit.get(), redundancy.copies());
        let place = |rooms: Vec<Room>| {
            let mut allocator = Allocator::new(rooms, copies);
            let files = files
                .iter()
                .map(|file| {
                    let units = FileMap::units(file.size.get(), unit_bytes, file.fine);
                    Ok(FileMap {
                        name: file.name.clone(),
                        size_bytes: file.size.get(),
                        block_bytes: file.block.get(),
                        fine: file.fine,
                        copies,
                        unit_bytes,
                        places: allocator.allocate(units)?,
                    })
                })
                .collect::<Result<Vec<_>, GroupError>>()?;
            Ok::<_, GroupError>((allocator.into_rooms(), files))
        };
        // The length of the map, and thus the space it takes itself, follows from a first
        // placement.
        let (tried, files_tried) = place(rooms.clone())?;
        let told_of = |room: &Room| {
            let units = room.units.min(room.next.saturating_add(SPARE_UNITS));
            (room.name.clone(), room.failure_group.clone(), units.max(1))
        };
        let disks: Vec<_> = tried.iter().map(told_of).collect();
        let slot_bytes = Map::slot_bytes(&disks, &files_tried);
        let next = Header::reserved_units(slot_bytes, unit_bytes);
        let (rooms, files) = place(rooms.into_iter().map(|room| Room { next, ..room }).collect())?;
        let group_id = RandomState::new().build_hasher().finish();
        let identity = Identity { group_id, redundancy, unit_bytes };
        Ok(Self { identity, slot_bytes, rooms, files })
    }

    fn header(&self, number: usize) -> Header {
        let room = &self.rooms[number];
        Header {
            group_id: self.identity.group_id,
            disk: number as u32,
            unit_bytes: self.identity.unit_bytes,
            // Space that no file uses needs no entry in the map.
            units: room.next,
            slot_bytes: self.slot_bytes,
            failure_group: room.failure_group.clone(),
            copies: self.identity.redundancy.copies() as u8,
        }
    }

    fn bytes(&self) -> u64 {
        let units: u64 = self.rooms.iter().map(|room| u64::from(room.next)).sum();
        units * self.identity.unit_bytes - self.rooms.len() as u64 * HEADER_BYTES
    }

    fn assemble(self, disks: Vec<Arc<dyn Disk>>) -> Result<Shared, GroupError> {
        let members: Vec<Slot> = disks
            .into_iter()
            .enumerate()
            .map(|(number, disk)| {
                let (name, header) = (disk.name().to_owned(), self.header(number));
                Slot::new(name, header, Some(disk), DiskState::Online)
            })
            .collect();
        let record = Record { sequence: 0, offline: vec![None; members.len()] };
        let shared = Shared::new(self.identity, self.files, members, record);
        shared.write_first_map()?;
        Ok(shared)
    }
}

fn validate(
    failure_groups: &[String],
    redundancy: Redundancy,
    unit: Bytes,
    files: &[FileSpec],
) -> Result<(), GroupError> {
    let (copies, disks) = (redundancy.copies(), failure_groups.len());
    if disks < copies {
        return Err(GroupError::TooFewDisks { redundancy: redundancy.name(), copies, disks });
    }
    let distinct = failure_groups.iter().collect::<BTreeSet<_>>().len();
    if distinct < copies {
        let redundancy = redundancy.name();
        return Err(GroupError::TooFewFailureGroups {
            redundancy,
            copies,
            failure_groups: distinct,
        });
    }
    let parameter = |what: String, hint| Err(GroupError::Parameter { what, hint });
    if disks > usize::from(u16::MAX) {
        return parameter(format!("{disks} disks"), "a group has at most 65,535 disks");
    }
    if unit != Bytes::mib(1) && unit != Bytes::mib(4) {
        return parameter(format!("allocation unit {unit}"), "choose 1M or 4M");
    }
    let mut names = BTreeSet::new();
    for file in files {
        let (name, block) = (&file.name, file.block.get());
        if name.is_empty() || !names.insert(name) {
            return parameter(format!("file name `{name}`"), "give every file a unique name");
        }
        if !block.is_power_of_two() || !(512..=FINE_STRIPE.get()).contains(&block) {
            let what = format!("file {name} has blocks of {}", file.block);
            return parameter(what, "a block is a power of two from 512 to 128K");
        }
        if file.size.get() == 0 || !file.size.get().is_multiple_of(block) {
            let what = format!("file {name} has {} bytes", file.size.get());
            return parameter(what, "a file is one or more whole blocks");
        }
    }
    Ok(())
}
