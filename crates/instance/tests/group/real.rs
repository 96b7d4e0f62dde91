//! Groups on files and devices.

use blockstone_base::hint::Hint as _;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use blockstone_base::Bytes;
use blockstone_instance::disk::DISK_FILE;
use blockstone_instance::group::{
    BatchWrite, DiskGroup, DiskSpec, DiskState, FileSpec, GroupError, GroupFile, GroupSpec,
    Redundancy, unwatched,
};
use blockstone_sys::buffer::Arena;
use blockstone_testkit::{Caps, DeviceSpec, FileSystem, LoopDevice, ScratchDir, require};

use crate::{BLOCK, UNIT, block, file, version, whole};

/// Longer than it takes to notice that a disk has vanished.
const NOTICED: Duration = Duration::from_millis(250);

fn directories(scratch: &ScratchDir, count: usize) -> Vec<PathBuf> {
    let directory = |number| {
        let path = scratch.path().join(format!("disk{number}"));
        fs::create_dir(&path).unwrap();
        path
    };
    (0..count).map(directory).collect()
}

fn spec(paths: &[PathBuf], redundancy: Redundancy) -> GroupSpec {
    let disks = paths.iter().cloned().map(DiskSpec::from).collect();
    GroupSpec { disks, redundancy, allocation_unit: UNIT, direct: true }
}

fn create(paths: &[PathBuf], redundancy: Redundancy, files: &[FileSpec]) -> DiskGroup {
    DiskGroup::create(&spec(paths, redundancy), files, &unwatched).unwrap()
}

/// Writes blocks in one batch from aligned memory.
fn write(file: &GroupFile, numbers: &[u64], version: u64) -> u64 {
    let mut memory = Arena::new(1, numbers.len() * BLOCK as usize).unwrap();
    for (chunk, number) in memory.slot(0).chunks_mut(BLOCK as usize).zip(numbers) {
        chunk.copy_from_slice(&block(number * BLOCK, version));
    }
    let writes: Vec<BatchWrite<'_>> = memory
        .slot(0)
        .chunks(BLOCK as usize)
        .zip(numbers)
        .map(|(data, number)| BatchWrite { offset: number * BLOCK, data })
        .collect();
    file.write_batch(&writes).unwrap().ios
}

fn expect(file: &GroupFile, numbers: &[u64], expected: u64) {
    let mut memory = Arena::new(1, BLOCK as usize).unwrap();
    for number in numbers {
        let found = memory.slot(0);
        file.read(number * BLOCK, found, &whole).unwrap();
        assert_eq!(version(number * BLOCK, found), Some(expected), "block {number}");
    }
}

fn is_empty(path: &Path) -> bool {
    fs::read_dir(path).unwrap().next().is_none()
}

#[test]
fn a_group_whose_process_is_just_going_away_is_waited_for() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 1);
    let held = create(&paths, Redundancy::External, &[file("data", 8, false)]);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            sleep(Duration::from_millis(300));
            drop(held);
        });
        DiskGroup::open(&paths, true).unwrap();
    });
}

#[test]
fn a_laying_out_that_is_given_up_ends_at_once_and_leaves_nothing_behind() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 3);
    let laid_out = std::sync::Mutex::new(Vec::new());
    let files = [file("data", 64, false)];
    let error = DiskGroup::create(&spec(&paths, Redundancy::Normal), &files, &|done, _| {
        laid_out.lock().unwrap().push(done);
        ControlFlow::Break(())
    });
    assert!(matches!(error, Err(GroupError::Aborted)), "{error:?}");
    let laid_out = laid_out.into_inner().unwrap();
    assert!(laid_out.len() <= 3, "each disk asks once: {laid_out:?}");
    assert!(paths.iter().all(|path| is_empty(path)));
}

#[test]
fn a_group_on_directories_is_laid_out_locked_and_found_again() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 3);
    let files = [file("data", 12, false), file("redo", 8, true)];
    let told = std::sync::Mutex::new((0, 0));
    let group = DiskGroup::create(&spec(&paths, Redundancy::Normal), &files, &|done, total| {
        let mut told = told.lock().unwrap();
        *told = (told.0.max(done), total);
        ControlFlow::Continue(())
    })
    .unwrap();
    let (done, total) = *told.lock().unwrap();
    assert_eq!(done, total);
    let sizes: u64 = paths
        .iter()
        .map(|path| {
            let found = fs::metadata(path.join(DISK_FILE)).unwrap();
            assert!(found.blocks() * 512 >= found.len(), "no holes in {}", path.display());
            found.len()
        })
        .sum();
    assert!(sizes >= total && total >= 40 << 20, "{total} bytes laid out of {sizes}");

    let numbers: Vec<u64> = (0..3072).step_by(5).collect();
    let data = group.file("data").unwrap();
    assert_eq!(write(&data, &numbers, 1), 2 * numbers.len() as u64);
    group.sync().unwrap();
    let refused = DiskGroup::open(&paths, true).unwrap_err().to_string();
    assert!(refused.contains("another process holds it"), "{refused}");
    assert!(DiskGroup::remove(&paths).is_err(), "in use");
    let again = DiskGroup::create(&spec(&paths, Redundancy::Normal), &files, &unwatched);
    assert!(again.unwrap_err().to_string().contains("create"));
    group.close().unwrap();
    drop((group, data));

    let group = DiskGroup::open(&paths, true).unwrap();
    expect(&group.file("data").unwrap(), &numbers, 1);
    let counters = group.counters();
    assert!(counters.iter().all(|disk| disk.read_ns > 0 && disk.reads > 150), "{counters:?}");
    drop(group);
    DiskGroup::remove(&paths).unwrap();
    assert!(paths.iter().all(|path| is_empty(path)));
}

#[test]
fn adjacent_blocks_of_all_copies_go_out_as_one_write_each() {
    let scratch = ScratchDir::on_disk().unwrap();
    let group = create(&directories(&scratch, 3), Redundancy::High, &[file("data", 4, false)]);
    let data = group.file("data").unwrap();
    let numbers: Vec<u64> = (0..1024).rev().collect();
    assert_eq!(write(&data, &numbers, 3), 3 * 4, "a mebibyte each, three copies");
    expect(&data, &numbers, 3);
    group.offline(0).unwrap();
    group.offline(2).unwrap();
    expect(&data, &numbers, 3);
}

#[test]
fn a_creation_that_fails_leaves_nothing_behind() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 2);
    let huge = FileSpec { size: Bytes::gib(8 << 10), ..file("data", 1, false) };
    let large_units =
        |paths| GroupSpec { allocation_unit: Bytes::mib(4), ..spec(paths, Redundancy::External) };
    let error = DiskGroup::create(&large_units(&paths), &[huge], &unwatched).unwrap_err();
    assert!(error.to_string().contains("No space left on device"), "{error}");
    assert!(paths.iter().all(|path| is_empty(path)), "{error}");

    // The second disk cannot be created, so the first is removed as well.
    let missing = vec![paths[0].clone(), scratch.path().join("none/disk")];
    let files = [file("data", 1, false)];
    DiskGroup::create(&spec(&missing, Redundancy::External), &files, &unwatched).unwrap_err();
    let twice = vec![paths[0].clone(), paths[0].clone()];
    DiskGroup::create(&spec(&twice, Redundancy::External), &files, &unwatched).unwrap_err();
    assert!(is_empty(&paths[0]));
    fs::write(paths[0].join(DISK_FILE), b"somebody's").unwrap();
    DiskGroup::create(&spec(&paths, Redundancy::External), &files, &unwatched).unwrap_err();
    assert_eq!(fs::read(paths[0].join(DISK_FILE)).unwrap(), b"somebody's");
    assert!(DiskGroup::remove(&paths).is_err(), "not ours");
    assert!(is_empty(&paths[1]) && !is_empty(&paths[0]));
}

#[test]
fn a_full_file_system_fails_the_creation_and_is_as_empty_as_before() {
    require!(Root, Loop);
    let small = DeviceSpec {
        size: Bytes::mib(64),
        file_system: Some(FileSystem::Ext4),
        caps: Caps::default(),
    };
    let device = LoopDevice::create(small).unwrap();
    let paths = [device.mount_point().unwrap()];
    let files = [file("data", 100, false)];
    let error = DiskGroup::create(&spec(&paths, Redundancy::External), &files, &unwatched);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert!(!paths[0].join(DISK_FILE).exists());
    create(&paths, Redundancy::External, &[file("data", 16, false)]);
}

#[test]
fn a_disk_that_vanishes_is_missed_and_the_same_one_gets_what_it_lacks() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 2);
    let group = create(&paths, Redundancy::Normal, &[file("data", 8, false)]);
    let data = group.file("data").unwrap();
    let all: Vec<u64> = (0..2048).collect();
    write(&data, &all, 1);
    group.sync().unwrap();
    let hidden = paths[0].join("hidden");
    fs::rename(paths[0].join(DISK_FILE), &hidden).unwrap();
    sleep(NOTICED);
    expect(&data, &all[..1], 1);
    assert_eq!(group.counters()[0].state, DiskState::Offline, "{:?}", group.counters());
    write(&data, &[300, 301], 2);
    fs::rename(&hidden, paths[0].join(DISK_FILE)).unwrap();
    assert_eq!(group.online_and_resync(0, &|| true).unwrap(), 1, "one unit was written meanwhile");
    group.offline(1).unwrap();
    expect(&data, &[300, 301], 2);
    expect(&data, &all[302..], 1);
}

#[test]
fn a_disk_that_is_gone_for_good_is_made_anew_and_a_copy_of_it_is_not_trusted() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 2);
    let group = create(&paths, Redundancy::Normal, &[file("data", 8, false)]);
    let data = group.file("data").unwrap();
    let all: Vec<u64> = (0..2048).collect();
    write(&data, &all, 1);
    fs::remove_file(paths[0].join(DISK_FILE)).unwrap();
    sleep(NOTICED);
    write(&data, &all, 2);
    assert_eq!(group.counters()[0].state, DiskState::Offline, "a write noticed it");
    let gone = group.online_and_resync(0, &|| true).unwrap_err();
    assert!(matches!(gone, GroupError::File(_)), "nothing is made unasked: {gone}");
    assert_eq!(group.replace(0).unwrap(), 8, "every unit");
    assert!(matches!(group.replace(0), Err(GroupError::NotOffline { .. })));

    group.sync().unwrap();
    let place = paths[1].join(DISK_FILE);
    fs::rename(&place, paths[1].join("old")).unwrap();
    fs::copy(paths[1].join("old"), &place).unwrap();
    sleep(NOTICED);
    write(&data, &[0], 3);
    assert_eq!(group.counters()[1].state, DiskState::Offline, "another file is not the disk");
    assert_eq!(group.online_and_resync(1, &|| true).unwrap(), 8);
    group.offline(0).unwrap();
    expect(&data, &[0], 3);
    expect(&data, &all[1..], 2);
}

#[test]
fn with_one_copy_a_vanished_disk_is_an_error_and_not_silence() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 2);
    let group = create(&paths, Redundancy::External, &[file("data", 4, false)]);
    let data = group.file("data").unwrap();
    write(&data, &[0], 1);
    fs::remove_file(paths[0].join(DISK_FILE)).unwrap();
    sleep(NOTICED);
    let mut memory = Arena::new(1, BLOCK as usize).unwrap();
    let error = data.read(0, memory.slot(0), &whole).unwrap_err();
    assert!(matches!(error, GroupError::CopiesMissing { .. }), "{error}");
}

#[test]
fn a_group_opens_without_a_mirrored_disk_and_not_without_a_last_copy() {
    let scratch = ScratchDir::on_disk().unwrap();
    let paths = directories(&scratch, 3);
    let group = create(&paths, Redundancy::Normal, &[file("data", 8, false)]);
    let all: Vec<u64> = (0..2048).collect();
    write(&group.file("data").unwrap(), &all, 1);
    group.close().unwrap();
    drop(group);
    let hidden = [scratch.path().join("hidden1"), scratch.path().join("hidden2")];
    fs::rename(&paths[1], &hidden[0]).unwrap();
    let group = DiskGroup::open(&paths, true).unwrap();
    let data = group.file("data").unwrap();
    expect(&data, &all, 1);
    assert_eq!(group.counters()[1].state, DiskState::Offline);
    write(&data, &all, 2);
    fs::rename(&hidden[0], &paths[1]).unwrap();
    assert!(
        group.online_and_resync(1, &|| true).unwrap() >= 5,
        "it was missing, so all is suspect"
    );
    group.close().unwrap();
    drop((group, data));

    fs::rename(&paths[0], &hidden[0]).unwrap();
    let group = DiskGroup::open(&paths, true).unwrap();
    expect(&group.file("data").unwrap(), &all, 2);
    drop(group);
    fs::rename(&paths[2], &hidden[1]).unwrap();
    let error = DiskGroup::open(&paths, true).unwrap_err();
    assert!(matches!(error, GroupError::CopiesMissing { .. }), "{error}");
    let text = error.told();
    assert!(text.contains("disk0") && text.contains("disk2") && text.contains("hint: "), "{text}");
    DiskGroup::remove(&paths).unwrap();
    assert!(is_empty(&paths[1]), "what is left of the group goes");
    assert!(matches!(DiskGroup::remove(&paths), Err(GroupError::File(_))), "nothing is left");
}

#[test]
fn a_mounted_device_is_refused_and_stays_as_it_is() {
    require!(Root, Loop);
    let mounted = DeviceSpec {
        size: Bytes::mib(64),
        file_system: Some(FileSystem::Ext4),
        caps: Caps::default(),
    };
    let device = LoopDevice::create(mounted).unwrap();
    fs::write(device.mount_point().unwrap().join("precious"), b"data").unwrap();
    let paths = [device.device().to_owned()];
    let files = [file("data", 4, false)];
    let error = DiskGroup::create(&spec(&paths, Redundancy::External), &files, &unwatched);
    let error = error.unwrap_err().told();
    assert!(error.contains("busy") && error.contains("in use"), "{error}");
    assert!(DiskGroup::remove(&paths).is_err());
    assert_eq!(fs::read(device.mount_point().unwrap().join("precious")).unwrap(), b"data");
}

fn empty_devices() -> [LoopDevice; 2] {
    [0, 1].map(|_| {
        let size = Bytes::mib(64);
        let caps = Caps::default();
        let device = LoopDevice::create(DeviceSpec { size, file_system: None, caps }).unwrap();
        let file = fs::OpenOptions::new().write(true).open(device.device()).unwrap();
        for mib in [0, 63] {
            file.write_all_at(&vec![0; 1 << 20], mib << 20).unwrap();
        }
        file.sync_all().unwrap();
        device
    })
}

#[test]
fn a_device_serves_as_a_disk_when_it_is_empty_and_is_empty_afterwards() {
    require!(Root, Loop);
    let devices = empty_devices();
    let paths: Vec<PathBuf> = devices.iter().map(|device| device.device().to_owned()).collect();
    let files = [file("data", 8, false)];
    for _ in 0..2 {
        let group = create(&paths, Redundancy::Normal, &files);
        let all: Vec<u64> = (0..2048).collect();
        write(&group.file("data").unwrap(), &all, 1);
        assert!(DiskGroup::open(&paths, true).is_err(), "in use");
        group.close().unwrap();
        drop(group);
        let again = DiskGroup::create(&spec(&paths, Redundancy::Normal), &files, &unwatched);
        assert!(matches!(again, Err(GroupError::NotEmpty { .. })), "{again:?}");
        let group = DiskGroup::open(&paths, true).unwrap();
        expect(&group.file("data").unwrap(), &all, 1);
        drop(group);
        DiskGroup::remove(&paths).unwrap();
    }
    let too_much = [file("data", 80, false)];
    let error = DiskGroup::create(&spec(&paths, Redundancy::Normal), &too_much, &unwatched);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("has room for 63 allocation units"), "{error}");
}

#[test]
fn blocks_of_a_device_that_go_bad_are_written_again_from_the_mirror() {
    require!(Root, Loop);
    let devices = empty_devices();
    let paths: Vec<PathBuf> = devices.iter().map(|device| device.device().to_owned()).collect();
    let group = create(&paths, Redundancy::Normal, &[file("data", 16, false)]);
    let data = group.file("data").unwrap();
    let all: Vec<u64> = (0..4096).collect();
    write(&data, &all, 1);
    // Reads beyond this fail; writes extend the file under the loop device, as a disk reallocates
    // sectors.
    devices[1].fail_beyond(Bytes::mib(4)).unwrap();
    expect(&data, &all, 1);
    let counters = group.counters();
    assert!(counters[1].errors > 0 && counters[0].degraded_reads > 0, "{counters:?}");
    assert!(counters[1].repaired_blocks > 0, "{counters:?}");
    assert_eq!(counters[1].state, DiskState::Online);
    group.offline(0).unwrap();
    let half: Vec<u64> = all.iter().copied().filter(|number| number / 256 % 2 == 1).collect();
    expect(&data, &half, 1);
}
