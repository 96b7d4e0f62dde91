//! The file system of the recording fills up.

use blockstone_base::hint::Hint as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{CPU, DISK, manifest, record_tick};
use crate::manifest::End;
use crate::recorder::declared;
use crate::tests::faulty::FaultyDisk;
use crate::{RecordError, Recorder, Recording};

fn instants(dir: &Path) -> Vec<u64> {
    let recording = Recording::open(dir).unwrap();
    let series = recording.series("cpu").unwrap();
    assert_eq!(recording.warnings(), Vec::<String>::new());
    series.track(0, "", 0, u64::MAX, "busy_ns").iter().map(|&(t, _)| t / 100_000_000).collect()
}

#[test]
fn rows_survive_a_full_disk_and_are_written_once_there_is_room() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let disk = FaultyDisk::default();
    let probes = [&DISK, &CPU];
    let mut recorder =
        Recorder::create_on(Box::new(disk.clone()), &dir, declared(manifest("full"), &probes))
            .unwrap();
    record_tick(&mut recorder, 0).unwrap();
    recorder.end_segment().unwrap();
    for room in (0..6000).step_by(250) {
        record_tick(&mut recorder, 1 + room as u64 / 250).unwrap();
        disk.set_free(Some(room));
        if let Err(error) = recorder.end_segment() {
            let message = error.told();
            assert!(message.contains(".parquet: "), "{message}");
            assert!(message.contains("\nhint: free some space"), "{message}");
        }
        let seen = instants(&dir);
        assert_eq!(seen, (0..seen.len() as u64).collect::<Vec<_>>(), "{room} bytes of room");
    }
    disk.set_free(None);
    recorder.end_segment().unwrap();
    recorder.close(End::Complete).unwrap();
    assert_eq!(instants(&dir), (0..=24).collect::<Vec<_>>());
    let left = fs::read_dir(dir.join("series")).unwrap().count();
    assert_eq!(left, 2, "only the two tables are left");
}

#[test]
fn closing_on_a_full_disk_keeps_the_segments_and_says_so() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let disk = FaultyDisk::default();
    let probes = [&DISK, &CPU];
    let mut recorder =
        Recorder::create_on(Box::new(disk.clone()), &dir, declared(manifest("full"), &probes))
            .unwrap();
    for tick in 0..5 {
        record_tick(&mut recorder, tick).unwrap();
    }
    recorder.end_segment().unwrap();
    disk.set_free(Some(0));
    let error = recorder.close(End::Complete).unwrap_err();
    assert!(error.to_string().contains("series/disk.parquet"), "{error}");
    assert_eq!(instants(&dir), [0, 1, 2, 3, 4]);
    assert_eq!(Recording::open(&dir).unwrap().manifest.end, End::Running);
}

#[test]
fn a_real_file_system_that_is_full_is_named_and_what_was_there_is_read() {
    blockstone_testkit::require!(Root);
    let parent = tempfile::tempdir().unwrap();
    let mount = parent.path().join("small");
    fs::create_dir(&mount).unwrap();
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", "size=192k", "blockstone-test"]).arg(&mount);
    assert!(command.status().unwrap().success());
    let dir = mount.join("run");
    let result = fill(&dir);
    let seen = instants(&dir);
    Command::new("umount").arg(&mount).status().unwrap();
    let (durable, error) = result;
    let message = error.to_string();
    assert!(message.contains("No space left on device"), "{message}");
    assert!(message.contains("/run/"), "{message}");
    assert!(seen.len() >= durable, "{} of {durable} ticks are left", seen.len());
    assert_eq!(seen, (0..seen.len() as u64).collect::<Vec<_>>());
}

/// Records until the disk is full; returns the number of durable ticks, and the error.
fn fill(dir: &Path) -> (usize, RecordError) {
    let mut recorder = Recorder::create(dir, manifest("full"), &[&DISK, &CPU]).unwrap();
    let mut durable = 0;
    for tick in 0..100_000 {
        record_tick(&mut recorder, tick).unwrap();
        if tick % 10 == 9 {
            if let Err(error) = recorder.end_segment() {
                return (durable, error);
            }
            durable = tick as usize + 1;
        }
    }
    panic!("192 KiB were never full");
}

#[test]
fn a_vanished_directory_is_named() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("gone"), &[&DISK, &CPU]).unwrap();
    record_tick(&mut recorder, 0).unwrap();
    fs::remove_dir_all(&dir).unwrap();
    let message = recorder.close(End::Complete).unwrap_err().told();
    assert!(message.contains("run/series/disk.0001.parquet: No such file"), "{message}");
    assert!(message.contains("\nhint: check the path"), "{message}");
}
