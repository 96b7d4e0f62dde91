//! Labels of recordings, and their removal.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use blockstone_base::hint::Hint as _;

use super::{CPU, manifest, record_run};
use crate::manifest::End;
use crate::{LABELS, Labels, RecordError, Recorder, RunState, list_grid, list_runs, lock_grid};
use crate::{removable, remove};

/// Makes a grid of two recordings.
fn grid(root: &Path) -> PathBuf {
    let grid = root.join("20260102-030406-matrix-abc124");
    for part in ["01-1", "02-1"] {
        record_run(&grid.join(part));
    }
    fs::write(grid.join("grid.json"), "{}").unwrap();
    fs::write(grid.join("report.html"), "<html>").unwrap();
    grid
}

#[test]
fn labels_are_read_back_and_change_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    let before = fs::read(dir.join("manifest.json")).unwrap();
    assert_eq!(Labels::read(&dir).unwrap(), Labels::default());
    let mut labels = Labels::default();
    for tag in ["nvme", "baseline", "nvme", "rack=7/b"] {
        labels.tag(tag).unwrap();
    }
    labels.annotate(" before the update ").unwrap();
    labels.clone().write(&dir).unwrap();
    assert_eq!(Labels::read(&dir).unwrap(), labels);
    assert_eq!(labels.shown().unwrap(), "#baseline #nvme #rack=7/b before the update");
    assert_eq!(fs::read(dir.join("manifest.json")).unwrap(), before);
    crate::Recording::open(&dir).unwrap();
    let listed = list_runs(parent.path()).unwrap().remove(0);
    assert_eq!(listed.labels.unwrap(), labels);
    labels.annotate("").unwrap();
    labels.tags.clear();
    assert_eq!(labels.shown(), None);
}

#[test]
fn what_is_made_of_a_recording_later_does_not_make_it_younger() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for file in fs::read_dir(&dir).unwrap() {
        fs::File::open(file.unwrap().path()).unwrap().set_modified(old).unwrap();
    }
    let changed_at = || list_runs(parent.path()).unwrap().remove(0).changed_at.unwrap();
    Labels::default().write(&dir).unwrap();
    fs::write(dir.join("report.html"), "<html>").unwrap();
    fs::write(dir.join("copy.csv"), "exported").unwrap();
    assert_eq!(changed_at().as_second(), 1_700_000_000);
    // Of one that did not end, the newest file of its own counts.
    fs::write(dir.join("manifest.json"), "{").unwrap();
    assert!(changed_at().as_second() > 1_700_000_000);
    fs::File::open(dir.join("manifest.json")).unwrap().set_modified(old).unwrap();
    fs::remove_file(dir.join("copy.csv")).unwrap();
    assert_eq!(changed_at().as_second(), 1_700_000_000);
}

#[test]
fn labels_are_short_words_and_a_line() {
    let mut labels = Labels::default();
    for tag in ["", "-x", "two words", "a,b", "a\u{1b}[2J", &"x".repeat(65)] {
        assert!(labels.tag(tag).is_err(), "{tag}");
    }
    for note in ["two\nlines", "\u{1b}[2J", &"x".repeat(1001)] {
        assert!(labels.annotate(note).is_err(), "{note}");
    }
    for number in 0..64 {
        labels.tag(&format!("tag{number}")).unwrap();
    }
    assert!(labels.tag("tag0").is_ok() && labels.tag("another").is_err());
}

#[test]
fn labels_that_cannot_be_read_are_an_error_of_their_own() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    for (text, why) in [
        ("{", "EOF"),
        ("{\"format\": \"blockstone.labels/9\"}", "blockstone.labels/9"),
        (&format!("{{\"note\": \"{}\"", "x".repeat(64 << 10)), "larger than"),
    ] {
        fs::write(dir.join(LABELS), text).unwrap();
        let error = Labels::read(&dir).unwrap_err();
        assert!(error.told().contains(why) && error.told().contains("\nhint: "), "{error}");
        let listed = list_runs(parent.path()).unwrap().remove(0);
        assert_eq!(listed.state, RunState::Ended(End::Complete));
        assert!(listed.labels.unwrap_err().contains(why));
    }
    fs::remove_file(dir.join(LABELS)).unwrap();
    fs::write(parent.path().join("theirs"), "{\"format\": \"blockstone.labels/1\"}").unwrap();
    symlink("../theirs", dir.join(LABELS)).unwrap();
    assert!(Labels::read(&dir).is_err(), "a link is not followed");
}

#[test]
fn a_recording_and_a_grid_are_removed_with_all_their_files() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path();
    record_run(&root.join("run"));
    fs::write(root.join("run/report.html"), "<html>").unwrap();
    fs::write(root.join("run/series/.cpu.parquet.tmp"), "left by a kill").unwrap();
    let size = removable(&root.join("run")).unwrap();
    assert!(size.get() > 20 && root.join("run").exists());
    assert_eq!(remove(&root.join("run")).unwrap(), size);
    let grid = grid(root);
    let listed = list_runs(root).unwrap().remove(0);
    assert_eq!((listed.id.as_str(), listed.verb.as_str()), ("abc124", "run"));
    assert_eq!(listed.state, RunState::Grid { recordings: 2 });
    assert_eq!(listed.started_at, list_grid(&grid).unwrap()[1].started_at);
    assert!(remove(&grid).unwrap().get() > size.get());
    let empty = root.join("20260102-030405-calibrate-abc123");
    fs::create_dir(&empty).unwrap();
    assert_eq!(remove(&empty).unwrap().get(), 0, "killed before its first file");
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
}

#[test]
fn nothing_is_removed_of_what_is_not_only_a_recording() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path();
    fs::create_dir(root.join("theirs")).unwrap();
    fs::write(root.join("theirs/manifest.json"), "{}").unwrap();
    let kept = |dir: &Path| {
        let error = remove(dir).unwrap_err();
        assert!(error.told().contains("\nhint: "), "{error}");
        assert!(dir.symlink_metadata().is_ok());
        error
    };
    for stranger in ["notes.txt", "series/notes.txt", "below/x", "events.parquet/x"] {
        let dir = root.join("run");
        record_run(&dir);
        let files = fs::read_dir(&dir).unwrap().count();
        let path = dir.join(stranger);
        let _ = fs::remove_file(path.parent().unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(matches!(kept(&dir), RecordError::Strange { .. }), "{stranger}");
        assert!(fs::read_dir(&dir).unwrap().count() >= files, "{stranger}");
        fs::remove_dir_all(&dir).unwrap();
    }
    for name in ["series", "events.parquet", "labels.json"] {
        let dir = root.join("run");
        record_run(&dir);
        let _ = fs::remove_file(dir.join(name)).or_else(|_| fs::remove_dir_all(dir.join(name)));
        symlink(root.join("theirs"), dir.join(name)).unwrap();
        assert!(matches!(kept(&dir), RecordError::Strange { .. }), "a link: {name}");
        fs::remove_dir_all(&dir).unwrap();
    }
    let grid = grid(root);
    fs::create_dir(grid.join("holiday")).unwrap();
    assert!(matches!(kept(&grid), RecordError::Strange { .. }));
    fs::create_dir(root.join("holiday")).unwrap();
    assert!(matches!(kept(&root.join("holiday")), RecordError::NotARecording { .. }));
    symlink("theirs", root.join("20260102-030405-run-abc123")).unwrap();
    kept(&root.join("20260102-030405-run-abc123"));
    assert_eq!(fs::read_to_string(root.join("theirs/manifest.json")).unwrap(), "{}");
}

#[test]
fn nothing_is_removed_while_it_is_recorded_or_where_others_may_write() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("runs");
    let recorder = Recorder::create(&root.join("run"), manifest("run"), &[&CPU]).unwrap();
    assert!(matches!(remove(&root.join("run")), Err(RecordError::Running { .. })));
    recorder.close(End::Complete).unwrap();
    let grid = grid(&root);
    let lock = lock_grid(&grid).unwrap();
    assert!(matches!(removable(&grid), Err(RecordError::Running { .. })));
    drop(lock);
    let recorder = Recorder::create(&grid.join("03-1"), manifest("part"), &[&CPU]).unwrap();
    assert!(matches!(remove(&grid), Err(RecordError::Running { .. })));
    recorder.close(End::Complete).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
    let error = remove(&grid).unwrap_err();
    assert!(error.told().contains("other users may write to it"), "{error}");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).unwrap();
    remove(&grid).unwrap();
    remove(&root.join("run")).unwrap();
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
}
