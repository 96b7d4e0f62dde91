//! A recording of many segments that has not ended.

use std::path::Path;

use super::{CPU, DISK, manifest, record_tick};
use crate::{Recorder, Recording, TimeRange};

const TICK_NS: u64 = 100_000_000;
const TICKS: u64 = 300;

/// Records segments of two ticks.
fn record(dir: &Path) -> Recorder {
    let mut recorder = Recorder::create(dir, manifest("running"), &[&DISK, &CPU]).unwrap();
    for tick in 0..TICKS {
        record_tick(&mut recorder, tick).unwrap();
        if tick % 2 == 1 {
            recorder.end_segment().unwrap();
        }
    }
    recorder
}

fn ticks(recording: &Recording, from: u64, to: u64) -> Vec<u64> {
    let (from_ns, to_ns) = (from * TICK_NS, to.saturating_mul(TICK_NS));
    let part = TimeRange { from_ns, to_ns, level: 0, edges: None };
    let pieces = recording.part("cpu", &part).unwrap();
    let rows = pieces.iter().flat_map(|series| series.rows().map(|row| row.t_ns / TICK_NS));
    rows.collect()
}

#[test]
fn a_part_has_the_rows_of_its_time_whichever_segments_they_are_in() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = record(&dir);
    let recording = Recording::open(&dir).unwrap();
    for (from, to) in [(0, TICKS), (0, 0), (7, 7), (8, 13), (99, 200), (298, u64::MAX), (400, 500)]
    {
        let expected: Vec<u64> = (0..TICKS).filter(|tick| (from..=to).contains(tick)).collect();
        assert_eq!(ticks(&recording, from, to), expected, "{from} to {to}");
    }
    recorder.drop_before(101 * TICK_NS).unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(ticks(&recording, 0, 110), (100..=110).collect::<Vec<u64>>());
    assert_eq!(recording.warnings(), Vec::<String>::new());
}

#[test]
fn an_old_segment_that_is_damaged_is_told_when_it_is_read() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let _recorder = record(&dir);
    for number in ["0010", "0100", "0149"] {
        std::fs::write(dir.join(format!("series/cpu.{number}.parquet")), "PAR1").unwrap();
    }
    let recording = Recording::open(&dir).unwrap();
    let told = |number: &str| {
        let warnings = recording.warnings();
        warnings.iter().any(|warning| warning.contains(&format!("cpu.{number}.parquet")))
    };
    assert!(!told("0010") && told("0100") && told("0149"), "{:?}", recording.warnings());
    // Ticks 18 and 19.
    assert_eq!(ticks(&recording, 16, 21), [16, 17, 20, 21]);
    assert!(told("0010"));
}
