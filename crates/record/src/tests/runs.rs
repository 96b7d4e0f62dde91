//! Naming and listing runs.

use blockstone_base::hint::Hint as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jiff::Zoned;

use super::{CPU, DISK, manifest, record_run, record_tick};
use crate::manifest::{End, Manifest};
use crate::{RecordError, Recorder, RunState, list_runs, list_runs_in, new_run_dir};
use crate::{note_elsewhere, out_run_dir};

fn started(id: &str, started_at: &str) -> Manifest {
    Manifest { started_at: started_at.to_owned(), ..manifest(id) }
}

fn record(path: &Path, id: &str, started_at: &str) -> Recorder {
    Recorder::create(path, started(id, started_at), &[&CPU]).unwrap()
}

#[test]
fn run_directories_sort_by_time_and_never_collide() {
    let now: Zoned = "2026-03-04T05:06:07+01:00[Europe/Berlin]".parse().unwrap();
    let root = Path::new("blockstone-runs");
    let mut ids: Vec<String> = (0..100)
        .map(|_| {
            let run = new_run_dir(root, "calibrate", &now).unwrap();
            let name = format!("20260304-050607-calibrate-{}", run.id);
            assert_eq!(run.path, root.join(name));
            assert_eq!(run.id.len(), 6);
            run.id
        })
        .collect();
    assert!(!root.exists(), "naming a run must not create anything");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

#[test]
fn out_takes_a_new_or_an_empty_directory_only() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    assert_eq!(out_run_dir(&dir).unwrap().path, dir);
    assert!(!dir.exists());
    fs::create_dir(&dir).unwrap();
    assert_eq!(out_run_dir(&dir).unwrap().path, dir);
    record_run(&dir);
    assert!(matches!(out_run_dir(&dir), Err(RecordError::NotEmpty { .. })));
    let again = Recorder::create(&dir, manifest("again"), &[]);
    assert!(matches!(again, Err(RecordError::NotEmpty { .. })));
    let file = out_run_dir(&dir.join("manifest.json")).unwrap_err();
    assert!(file.told().contains("\nhint: a file is in the way"), "{file}");
}

#[test]
fn two_runs_cannot_record_into_one_directory() {
    let parent = tempfile::tempdir().unwrap();
    let recorder = record(parent.path(), "one", "2026-01-01T00:00:00Z");
    let second = Recorder::create(parent.path(), manifest("two"), &[]);
    assert!(matches!(second, Err(RecordError::InUse { .. })));
    recorder.close(End::Complete).unwrap();
}

#[test]
fn runs_are_listed_newest_first_with_how_they_ended() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path();
    let failed = End::Failed {
        error: "read /data/x: Input/output error".to_owned(),
        hint: None,
        errno: Some(5),
    };
    record(&root.join("a"), "old", "2026-01-01T12:00:00Z").close(failed.clone()).unwrap();
    record(&root.join("b"), "new", "2026-01-03T12:00:00Z").close(End::Complete).unwrap();
    let mut killed = record(&root.join("c"), "killed", "2026-01-02T12:00:00Z");
    killed.row("cpu", 1, 0, "", &[blockstone_base::column::Cell::Value(1)]).unwrap();
    drop(killed);
    let running = record(&root.join("d"), "running", "2026-01-04T12:00:00Z");
    let listed = list_runs(root).unwrap();
    let seen: Vec<_> = listed.iter().map(|run| (run.id.as_str(), run.state.clone())).collect();
    let expected = [
        ("running", RunState::Running),
        ("new", RunState::Ended(End::Complete)),
        ("killed", RunState::Unfinished),
        ("old", RunState::Ended(failed)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(listed[0].target_path.as_deref(), Some("/data"));
    assert_eq!(listed[0].verb, "calibrate");
    running.close(End::Complete).unwrap();
}

#[test]
fn runs_elsewhere_are_listed_as_far_as_nobody_else_can_write_there() {
    let parent = tempfile::tempdir().unwrap();
    let [root, one, two] = ["runs", "one", "two"].map(|name| parent.path().join(name));
    for (dir, id) in [(&one, "one"), (&two, "two"), (&root.join("here"), "here")] {
        note_elsewhere(&root, dir).unwrap();
        record(dir, id, "2026-01-01T12:00:00Z").close(End::Complete).unwrap();
    }
    note_elsewhere(&root, &parent.path().join("never made")).unwrap();
    note_elsewhere(&root, &one).unwrap();
    let ids = || {
        let mut ids: Vec<String> =
            list_runs(&root).unwrap().into_iter().map(|run| run.id).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(), ["here", "one", "two"], "each of them once");
    assert_eq!(list_runs_in(&root).unwrap().len(), 1);
    let mode = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    mode(&two, 0o777);
    assert_eq!(ids(), ["here", "one"], "others could write to it");
    mode(&two, 0o755);
    fs::rename(&one, parent.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(&two, &one).unwrap();
    fs::remove_dir_all(&two).unwrap();
    assert_eq!(ids(), ["here"], "gone");
    fs::rename(parent.path().join("moved"), &two).unwrap();
    assert_eq!(ids(), ["here", "one"], "a link of this user leads to it, too");
    let mut list = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path());
    let list = list.find(|path| path.is_file()).unwrap();
    mode(&list, 0o666);
    assert_eq!(ids(), ["here"], "others could write to the list");
    mode(&list, 0o600);
    fs::write(&list, "[\"/etc\"").unwrap();
    assert_eq!(ids(), ["here"], "damaged");
    note_elsewhere(&root, &two).unwrap();
    assert_eq!(ids(), ["here", "one"]);
}

#[test]
fn damaged_runs_are_listed_with_the_reason_and_strangers_are_not() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path();
    assert_eq!(list_runs(&root.join("none")).unwrap(), []);
    let damaged = root.join("20260102-030405-calibrate-abc123");
    fs::create_dir_all(&damaged).unwrap();
    let halved = root.join("halved");
    fs::create_dir(&halved).unwrap();
    fs::write(halved.join("manifest.json"), "{ \"format\": \"blockstone.reco").unwrap();
    fs::create_dir(root.join("holiday-photos")).unwrap();
    let grid = root.join("20260102-030406-matrix-abc124");
    fs::create_dir(&grid).unwrap();
    fs::write(grid.join("grid.json"), "{}").unwrap();
    fs::write(root.join("20260102-030405-calibrate-file00"), "a file").unwrap();
    let mut recorder =
        Recorder::create(&root.join("sound"), manifest("sound"), &[&DISK, &CPU]).unwrap();
    record_tick(&mut recorder, 0).unwrap();
    recorder.close(End::Complete).unwrap();

    let runs = list_runs(root).unwrap();
    let reason = |id: &str| {
        let run = runs.iter().find(|run| run.id == id).unwrap();
        let RunState::Damaged { reason } = &run.state else { panic!("{:?}", run.state) };
        reason.clone()
    };
    assert_eq!(runs.len(), 4);
    let found = runs.iter().find(|run| run.id == "abc124").unwrap();
    assert_eq!(found.state, RunState::Grid { recordings: 0 });
    assert!(reason("abc123").contains("no manifest.json"));
    assert!(reason("").contains("EOF"));
    let named = runs.iter().find(|run| run.id == "abc123").unwrap();
    assert_eq!(named.verb, "calibrate");
    assert!(named.started_at.is_some());
}

#[test]
fn the_number_of_a_system_error_is_found_among_the_causes() {
    let io = std::io::Error::from_raw_os_error(28);
    let failed = End::failed(&RecordError::io("write", Path::new("/data"))(io));
    assert_eq!(failed.errno(), Some(28), "{failed:?}");
    assert_eq!(End::failed_by(&std::fmt::Error, None).errno(), None);
}
