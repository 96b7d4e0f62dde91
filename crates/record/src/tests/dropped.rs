//! A recording that keeps only the last part of what it recorded.

use std::path::Path;

use blockstone_base::column::{Cell, Column, Kind, Schema, Unit};

use super::{CPU, DISK, manifest, record_tick};
use crate::manifest::End;
use crate::recorder::declared;
use crate::tests::faulty::FaultyDisk;
use crate::{RecordError, Recorder, Recording};

static TEXTS: Schema = Schema {
    probe: "texts",
    doc: "What is recorded when it is first seen.",
    columns: &[Column {
        name: "text",
        unit: Unit::Text,
        kind: Kind::State,
        source: "the test",
        doc: "A column of the test.",
    }],
};

const TICK_NS: u64 = 100_000_000;

/// Records three segments of two ticks; before the third, drops everything before tick 2.
fn run(disk: &FaultyDisk, dir: &Path, durable: &mut u64) -> Result<(), RecordError> {
    let disk = Box::new(disk.clone());
    let manifest = declared(manifest("kept"), &[&DISK, &CPU, &TEXTS]);
    let mut recorder = Recorder::create_on(disk, dir, manifest)?;
    recorder.row("texts", 0, 0, "q1", &[Cell::Text("SELECT ?".to_owned())])?;
    for tick in 0..6 {
        record_tick(&mut recorder, tick)?;
        if tick % 2 == 1 {
            recorder.end_segment()?;
            *durable = tick + 1;
        }
        if tick == 3 {
            recorder.drop_before(2 * TICK_NS)?;
        }
    }
    recorder.close(End::Complete)
}

fn ticks(recording: &Recording) -> Vec<u64> {
    let series = recording.series("cpu").unwrap();
    series.track(0, "", 0, u64::MAX, "busy_ns").iter().map(|(t_ns, _)| t_ns / TICK_NS).collect()
}

#[test]
fn what_is_dropped_is_gone_but_for_states() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    run(&FaultyDisk::default(), &dir, &mut 0).unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.warnings(), Vec::<String>::new());
    assert_eq!(recording.manifest.dropped_before_ns, Some(2 * TICK_NS));
    assert_eq!(ticks(&recording), [2, 3, 4, 5]);
    assert_eq!(recording.series("texts").unwrap().objects(0), ["q1"]);
    // They were recorded at tick 0.
    assert!(recording.histograms().unwrap().is_empty());
    assert!(recording.events().unwrap().is_empty());
}

#[test]
fn a_segment_with_a_later_row_is_kept_whole() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("kept"), &[&DISK, &CPU]).unwrap();
    for tick in 0..4 {
        record_tick(&mut recorder, tick).unwrap();
        if tick % 2 == 1 {
            recorder.end_segment().unwrap();
        }
    }
    recorder.drop_before(TICK_NS).unwrap();
    assert_eq!(ticks(&Recording::open(&dir).unwrap()), [0, 1, 2, 3]);
    recorder.drop_before(TICK_NS + 1).unwrap();
    assert_eq!(ticks(&Recording::open(&dir).unwrap()), [2, 3]);
}

#[test]
fn a_first_segment_that_is_missing_is_told_where_nothing_was_dropped() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("lost"), &[&CPU]).unwrap();
    for tick in 0..2 {
        recorder.row("cpu", tick * TICK_NS, 0, "", &[Cell::from(tick)]).unwrap();
        recorder.end_segment().unwrap();
    }
    std::fs::remove_file(dir.join("series/cpu.0001.parquet")).unwrap();
    let warnings = Recording::open(&dir).unwrap().warnings();
    assert!(warnings[0].contains("cpu.0001.parquet: it is missing"), "{warnings:?}");
}

#[test]
fn every_prefix_of_file_operations_leaves_what_is_kept() {
    let parent = tempfile::tempdir().unwrap();
    let whole = FaultyDisk::default();
    run(&whole, &parent.path().join("whole/run"), &mut 0).unwrap();
    for power_loss in [false, true] {
        for n in 0..whole.operations() {
            let dir = parent.path().join(format!("{power_loss}-{n}/run"));
            let (disk, mut durable) = (FaultyDisk::dying_after(n), 0);
            assert!(run(&disk, &dir, &mut durable).is_err(), "operation {n}");
            if power_loss {
                disk.lose_power();
            }
            let Ok(recording) = Recording::open(&dir) else {
                assert_eq!(durable, 0, "operation {n}: there is no manifest");
                continue;
            };
            assert_eq!(recording.warnings(), Vec::<String>::new(), "operation {n}");
            let ticks = ticks(&recording);
            let first = recording.manifest.dropped_before_ns.map_or(0, |t_ns| t_ns / TICK_NS);
            assert!(ticks.first().is_none_or(|tick| *tick <= first), "operation {n}: {ticks:?}");
            assert!(
                ticks.len() as u64 >= durable.saturating_sub(first),
                "operation {n}: {ticks:?}"
            );
            assert!(ticks.windows(2).all(|two| two[1] == two[0] + 1), "operation {n}: {ticks:?}");
        }
    }
}
