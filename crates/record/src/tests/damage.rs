//! Files that are truncated, altered, missing, swapped or from another version.

use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;

use blockstone_base::hint::Hint as _;
use blockstone_base::units::Bytes;

use super::{CPU, DISK, manifest, record_run, record_tick};
use crate::parquet_file::{Reader, Writer};
use crate::table::{Field, Table, Type, Value};
use crate::{RecordError, Recorder, Recording};

/// Opens and reads everything.
fn read(dir: &Path) -> Result<Vec<String>, RecordError> {
    let recording = Recording::open(dir)?;
    for info in &recording.manifest.probes {
        recording.series(&info.probe)?;
    }
    recording.histograms()?;
    recording.events()?;
    Ok(recording.warnings())
}

/// Asserts that reading fails with a message that contains `file`, `why` and a hint.
fn assert_refused(dir: &Path, file: &str, why: &str) {
    let message = read(dir).expect_err("the damage must be seen").told();
    let (what, hint) = message.split_once("\nhint: ").expect("a hint");
    assert!(what.contains(file) && what.contains(why), "{message}");
    assert!(!hint.is_empty() && !hint.contains('\n'), "{message}");
}

/// Records a run that is killed after three segments.
fn record_killed(dir: &Path) {
    let mut recorder = Recorder::create(dir, manifest("r1"), &[&DISK, &CPU]).unwrap();
    for tick in 0..9 {
        record_tick(&mut recorder, tick).unwrap();
        if tick % 3 == 2 {
            recorder.end_segment().unwrap();
        }
    }
}

#[test]
fn a_link_in_place_of_a_file_is_not_followed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    for file in ["manifest.json", "series/disk.parquet", "histograms.parquet", "events.parquet"] {
        let (path, elsewhere) = (dir.join(file), parent.path().join("elsewhere"));
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert_refused(&dir, file, "symbolic link");
        fs::rename(&elsewhere, &path).unwrap();
    }
    assert_eq!(read(&dir).unwrap(), Vec::<String>::new());
}

#[test]
fn damaged_truncated_and_missing_tables_of_a_finished_run_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    for file in ["series/disk.parquet", "histograms.parquet", "events.parquet"] {
        let path = dir.join(file);
        let sound = fs::read(&path).unwrap();
        for (content, why) in [
            (sound[..sound.len() / 2].to_vec(), "truncated"),
            (b"PAR1".to_vec(), "truncated"),
            (Vec::new(), "truncated"),
            (b"This is not a table. PAR1".to_vec(), "not a Parquet file"),
        ] {
            fs::write(&path, content).unwrap();
            assert_refused(&dir, file, why);
        }
        let mut altered = sound.clone();
        altered[40] ^= 1;
        fs::write(&path, altered).unwrap();
        assert_refused(&dir, file, "checksum");
        fs::remove_file(&path).unwrap();
        assert_refused(&dir, file, "missing");
        fs::write(&path, sound).unwrap();
    }
    assert_eq!(read(&dir).unwrap(), Vec::<String>::new());
}

#[test]
fn one_altered_byte_anywhere_is_seen() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    let path = dir.join("series/cpu.parquet");
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut altered = sound.clone();
        altered[at] ^= 1 << (at % 8);
        fs::write(&path, altered).unwrap();
        let error = Recording::open(&dir).expect_err("the byte must be seen");
        assert!(error.to_string().contains("cpu.parquet"), "byte {at}: {error}");
    }
    for len in 0..sound.len() {
        fs::write(&path, &sound[..len]).unwrap();
        let error = Recording::open(&dir).expect_err("the truncation must be seen");
        assert!(error.to_string().contains("truncated"), "{len} bytes: {error}");
    }
}

#[test]
fn a_damaged_segment_of_a_killed_run_costs_only_itself_and_is_said() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_killed(&dir);
    let path = dir.join("series/disk.0002.parquet");
    let sound = fs::read(&path).unwrap();
    let left_out = |expected: &str| {
        let recording = Recording::open(&dir).unwrap();
        let series = recording.series("disk").unwrap();
        let instants: Vec<u64> =
            series.track(0, "sda", 0, u64::MAX, "read_bytes").iter().map(|&(t, _)| t).collect();
        assert_eq!(instants, [0, 1, 2, 6, 7, 8].map(|tick| tick * 100_000_000));
        recording.series("disk").unwrap();
        let warnings = recording.warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("disk.0002.parquet"), "{warnings:?}");
        assert!(warnings[0].contains(expected), "{warnings:?}");
    };
    fs::write(&path, &sound[..sound.len() - 9]).unwrap();
    left_out("truncated or not a Parquet file; its rows are omitted");
    let mut altered = sound.clone();
    altered[30] ^= 1;
    fs::write(&path, &altered).unwrap();
    left_out("checksum");
    fs::remove_file(&path).unwrap();
    left_out("missing");
}

#[test]
fn what_is_left_beside_a_compacted_table_is_ignored() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    fs::write(dir.join("series/disk.0003.parquet"), "a segment that was not removed").unwrap();
    fs::write(dir.join("series/.disk.parquet.tmp"), "half a table").unwrap();
    fs::write(dir.join("series/diskette.parquet"), "not ours").unwrap();
    fs::write(dir.join("report.html"), "<html>").unwrap();
    assert_eq!(read(&dir).unwrap(), Vec::<String>::new());
    assert_eq!(Recording::open(&dir).unwrap().series("disk").unwrap().len(), 60);
}

#[test]
fn tables_of_other_runs_probes_and_programs_are_foreign() {
    let parent = tempfile::tempdir().unwrap();
    let (dir, other) = (parent.path().join("run"), parent.path().join("other"));
    record_run(&dir);
    let other_recorder = Recorder::create(&other, manifest("r2"), &[&DISK, &CPU]).unwrap();
    other_recorder.close(crate::End::Complete).unwrap();
    let path = dir.join("series/disk.parquet");
    fs::copy(other.join("series/disk.parquet"), &path).unwrap();
    assert_refused(&dir, "disk.parquet", "belongs to recording `r2`, not to `r1`");
    fs::copy(dir.join("series/cpu.parquet"), &path).unwrap();
    assert_refused(&dir, "disk.parquet", "belongs to table `series/cpu`");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/foreign.parquet"), &path)
        .unwrap();
    assert_refused(&dir, "disk.parquet", "not written by Blockstone");
}

#[test]
fn manifests_are_refused_or_tolerated_by_their_format() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    let path = dir.join("manifest.json");
    let sound = fs::read_to_string(&path).unwrap();
    let with_format = |format: &str| sound.replace("blockstone.recording/1", format);
    fs::write(&path, with_format("blockstone.recording/2")).unwrap();
    assert!(matches!(Recording::open(&dir), Err(RecordError::NewerFormat { .. })));
    assert_refused(&dir, "run", "blockstone.recording/2");
    fs::write(&path, with_format("somebody.else/1")).unwrap();
    assert_refused(&dir, "manifest.json", "somebody.else/1");
    fs::write(&path, &sound[..sound.len() / 2]).unwrap();
    assert_refused(&dir, "manifest.json", "EOF");
    fs::write(&path, "[]").unwrap();
    assert_refused(&dir, "manifest.json", "format");
    fs::write(&path, sound.replacen('{', "{ \"of_a_later_version\": [1, 2],", 1)).unwrap();
    assert_eq!(read(&dir).unwrap(), Vec::<String>::new());
    fs::remove_file(&path).unwrap();
    assert_refused(&dir, "run", "no manifest.json");
    assert_refused(&parent.path().join("nowhere"), "nowhere", "No such file");
}

/// Alters each bit of a file with several groups of which only the footer is verified on opening:
/// reading returns what was written, or an error.
#[test]
fn a_large_file_is_verified_group_by_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large.parquet");
    let mut table = Table::new(vec![Field::new("t_ns", Type::Number)]);
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &path, &table.fields, Vec::new()).unwrap();
    for group in 0..3 {
        table.clear();
        (0..50).for_each(|row| table.push([Value::Number(group * 1000 + row * row)]));
        writer.write(&table).unwrap();
    }
    writer.finish().unwrap();
    let read = |content: &[u8], groups: Range<usize>| {
        fs::write(&path, content).unwrap();
        let reader = Reader::of_large(File::open(&path).unwrap(), &path, Bytes(0))?;
        reader.read_groups(&path, groups)
    };
    let sound = read(&out, 0..3).unwrap();
    assert_eq!(sound.len(), 150);
    let second = read(&out, 1..2).unwrap();
    let (mut refused, mut refused_second) = (0, 0);
    for place in 0..out.len() {
        let mut altered = out.clone();
        altered[place] ^= 1 << (place % 8);
        match read(&altered, 0..3) {
            Ok(table) => assert!(table == sound, "byte {place}"),
            Err(_) => refused += 1,
        }
        match read(&altered, 1..2) {
            Ok(table) => assert!(table == second, "byte {place}"),
            Err(_) => refused_second += 1,
        }
    }
    assert!(refused > out.len() * 8 / 10, "{refused} of {}", out.len());
    assert!(refused_second < refused, "the first group is not read for the second");
}
