//! Ends a run at every possible file operation, by kill or by power loss, and reads back what was
//! on disk by then.

use std::path::Path;

use super::{CPU, DISK, manifest, record_tick};
use crate::manifest::End;
use crate::recorder::declared;
use crate::tests::faulty::FaultyDisk;
use crate::{RecordError, Recorder, Recording};

/// How far a run got.
#[derive(Default)]
struct Progress {
    /// Ticks of segments that [`Recorder::end_segment`] reported as written.
    durable_ticks: usize,
    /// Ticks recorded, durable or not.
    recorded_ticks: usize,
    closed: bool,
}

/// Records six ticks in two segments, with the manifest saved after each, then closes.
fn run(disk: &FaultyDisk, dir: &Path, progress: &mut Progress) -> Result<(), RecordError> {
    let disk = Box::new(disk.clone());
    let mut recorder = Recorder::create_on(disk, dir, declared(manifest("crash"), &[&DISK, &CPU]))?;
    for tick in 0..6 {
        record_tick(&mut recorder, tick)?;
        progress.recorded_ticks += 1;
        if tick % 3 == 2 {
            recorder.end_segment()?;
            progress.durable_ticks = progress.recorded_ticks;
            recorder.save()?;
        }
    }
    recorder.close(End::Complete)?;
    progress.closed = true;
    Ok(())
}

/// Checks that the readable data is what was recorded: at least the durable ticks, no tick twice.
fn check(dir: &Path, progress: &Progress) {
    let recording = match Recording::open(dir) {
        Ok(recording) => recording,
        // Killed before the first manifest: there is nothing to read, and the error says so.
        Err(RecordError::NotARecording { .. } | RecordError::Io { verb: "open recording", .. }) => {
            assert_eq!(progress.recorded_ticks, 0, "rows without a manifest");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let disk = recording.series("disk").unwrap();
    for object in ["sda", "sdb"] {
        let track = disk.track(0, object, 0, u64::MAX, "read_bytes");
        let scale = if object == "sda" { 8192 } else { 4096 };
        let written = |tick: usize| (tick as u64 * 100_000_000, tick as u64 * scale);
        assert!(track.len() >= progress.durable_ticks, "{object}: durable rows are lost");
        assert!(track.len() <= progress.recorded_ticks, "{object}: rows out of nowhere");
        assert_eq!(track, (0..track.len()).map(written).collect::<Vec<_>>());
    }
    let cpu = recording.series("cpu").unwrap();
    assert!((progress.durable_ticks..=progress.recorded_ticks).contains(&cpu.len()));
    let expected = progress.durable_ticks.div_ceil(10);
    assert!(recording.histograms().unwrap().len() >= expected);
    assert!(recording.events().unwrap().len() >= expected);
    assert_eq!(recording.warnings(), Vec::<String>::new());
    assert!(!progress.closed || recording.manifest.end == End::Complete);
}

#[test]
fn every_prefix_of_file_operations_leaves_what_was_durable() {
    let parent = tempfile::tempdir().unwrap();
    let whole = FaultyDisk::default();
    run(&whole, &parent.path().join("whole/runs/run"), &mut Progress::default()).unwrap();
    let operations = whole.operations();
    assert!(operations > 60, "the run has {operations} operations: too few to mean anything");
    for power_loss in [false, true] {
        for n in 0..=operations {
            let dir = parent.path().join(format!("{power_loss}-{n}/runs/run"));
            let disk = FaultyDisk::dying_after(n);
            let mut progress = Progress::default();
            let result = run(&disk, &dir, &mut progress);
            assert_eq!(result.is_ok(), n == operations, "operation {n}");
            if power_loss {
                disk.lose_power();
            }
            check(&dir, &progress);
        }
    }
}

#[test]
fn a_disk_that_does_not_keep_renames_in_order_is_told_from_one_that_does() {
    // Validates the test above: without the sync between rename and removal, rows are lost.
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path();
    let disk = FaultyDisk::default();
    crate::disk::Disk::create_dir(&disk, dir).unwrap();
    std::fs::write(dir.join("segment"), "rows").unwrap();
    let mut output = crate::disk::Disk::create(&disk, &dir.join("new")).unwrap();
    output.write_all(b"rows").unwrap();
    output.sync().unwrap();
    crate::disk::Disk::rename(&disk, &dir.join("new"), &dir.join("table")).unwrap();
    crate::disk::Disk::remove(&disk, &dir.join("segment")).unwrap();
    disk.lose_power();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
}
