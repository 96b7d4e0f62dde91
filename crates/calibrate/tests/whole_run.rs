//! A complete quick run on a small file: everything that judging relies on is in the recording.

use blockstone_calibrate::{Options, Settings, Subject, prepare};
use blockstone_measure::Observer;
use blockstone_record::manifest::{End, Group};
use blockstone_record::{Recording, RunDir};

struct Silent;
impl Observer for Silent {}

#[test]
fn every_window_has_its_edges_in_every_series() {
    // The build directory is on a real file system; /tmp may be in memory.
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let data = scratch.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let settings = Settings {
        subjects: vec![Subject::Path(data.clone())],
        options: Options::parse(&["--quick", "--size", "64M"]).unwrap(),
        seed: 42,
        argv: vec!["test".into()],
        recording: RunDir { path: scratch.path().join("run"), id: "test".into() },
    };
    let dir = prepare(&settings).unwrap().run(&mut Silent).unwrap();
    let recording = Recording::open(&dir).unwrap();
    let manifest = &recording.manifest;
    assert_eq!(manifest.end, End::Complete, "{:#?}", manifest.phases.last());
    assert_eq!(manifest.clocks.len(), manifest.phases.len() + 2, "start, each phase and end");
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0, "the test file is gone");

    let file = manifest.file.as_ref().unwrap();
    assert_eq!((file.map.hole_bytes, file.map.unwritten_bytes), (0, 0));
    let sample = file.sample.as_ref().unwrap();
    assert_eq!(sample.lz4_bytes, sample.sampled_bytes, "the data are incompressible");

    for probe in manifest.probes.iter().map(|info| info.probe.as_str()) {
        let series = recording.series(probe).unwrap();
        for (index, phase) in manifest.phases.iter().enumerate() {
            let index = index as i32;
            for object in series.objects(index) {
                for edge_ns in [phase.window_start_ns, phase.window_end_ns] {
                    let mut rows = series.rows().filter(|row| row.t_ns == edge_ns);
                    let row = rows.find(|row| row.phase == index && row.object == object);
                    assert!(row.is_some(), "{probe} {object} {} at {edge_ns}", phase.label);
                }
            }
        }
    }
    let load = recording.series("load").unwrap();
    let histograms = recording.histograms().unwrap();
    for (index, phase) in manifest.phases.iter().enumerate() {
        let (from, to) = (phase.window_start_ns, phase.window_end_ns);
        let delta = |column| load.delta(index as i32, "", from, to, column).unwrap();
        let ops = delta("completed_ops");
        assert!(ops > 0, "{} completed nothing", phase.label);
        assert_eq!(delta("failed_ops") + delta("mismatches"), 0, "{}", phase.label);
        let timed: u64 = histograms
            .iter()
            .filter(|row| row.phase == index as i32 && row.windowed && row.role.is_empty())
            .map(|row| row.histogram.count())
            .sum();
        // The window opens and closes while operations complete: a few may fall on either side.
        let in_flight = phase.load.as_ref().map_or(0, |load| u64::from(load.in_flight()));
        let slack = 4 * in_flight + ops / 50 + 2;
        assert!(timed.abs_diff(ops) <= slack, "{}: {timed} timed, {ops} counted", phase.label);
        if phase.group == Group::RandomRead {
            let verified = delta("stamps_verified");
            assert!(verified.abs_diff(ops) <= slack, "{}: {verified} of {ops}", phase.label);
        }
    }
}
