//! Recorded data is read back, however it was split into segments.

use blockstone_base::hint::Hint as _;
use std::collections::BTreeMap;

use blockstone_base::Estimate;
use blockstone_base::column::Cell;
use proptest::prelude::*;

use super::{CPU, DISK, latencies, manifest, record_run};
use crate::manifest::{End, Figure, Manifest, Unmeasured};
use crate::{Event, LatencyClock, RecordError, Recorder, Recording, keep_judgement, testing};

/// A row of the probe `disk`: phase, object, cells; its index is its time.
type Row = (i32, String, Option<i64>, Option<i64>, Option<String>);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let number = || proptest::option::of(any::<i64>());
    let object = prop_oneof![Just(String::new()), "[a-z]{1,3}", "\\PC{0,8}"];
    let row = (-1..4, object, number(), number(), proptest::option::of("\\PC{0,5}"));
    proptest::collection::vec(row, 0..80)
}

fn cells(row: &Row) -> [Cell; 3] {
    let number = |value: Option<i64>| value.map_or(Cell::Unmeasured, Cell::Value);
    let text = row.4.clone().map_or(Cell::Unmeasured, Cell::Text);
    [number(row.2), number(row.3), text]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_rows_come_back_in_whatever_segments(
        rows in rows(),
        cut in 1_usize..20,
        closed in any::<bool>(),
    ) {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("run");
        let mut recorder = Recorder::create(&dir, manifest("random"), &[&DISK]).unwrap();
        let mut expected = BTreeMap::new();
        for (t, row) in rows.iter().enumerate() {
            recorder.row("disk", t as u64, row.0, &row.1, &cells(row)).unwrap();
            expected.insert((row.0, row.1.as_str(), t as u64), cells(row));
            if t % cut == cut - 1 {
                recorder.end_segment().unwrap();
            }
        }
        if closed {
            recorder.close(End::Complete).unwrap();
        } else {
            recorder.end_segment().unwrap();
        }
        let recording = Recording::open(&dir).unwrap();
        let series = recording.series("disk").unwrap();
        let seen: BTreeMap<_, _> = series
            .rows()
            .map(|row| ((row.phase, row.object, row.t_ns), [0, 1, 2].map(|c| row.cell(c))))
            .collect();
        prop_assert_eq!(series.len(), rows.len());
        prop_assert_eq!(&seen, &expected);
        for (&(phase, object, t_ns), cells) in &expected {
            let value = series.value_at(phase, object, t_ns, "read_bytes");
            prop_assert_eq!(value.map_or(Cell::Unmeasured, Cell::Value), cells[0].clone());
        }
        let ticks = if closed { rows.len() as u64 } else { 0 };
        prop_assert_eq!(recording.manifest.probes[0].ticks, ticks);
    }
}

#[test]
fn series_answer_by_phase_object_and_time() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    let series = Recording::open(&dir).unwrap().series("disk").unwrap();
    let at = |tick: u64| tick * 100_000_000;
    assert_eq!(series.objects(0), ["sda", "sdb"]);
    assert_eq!(series.objects(1), Vec::<&str>::new());
    assert_eq!(series.delta(0, "sda", at(3), at(28), "read_bytes"), Some(25 * 8192));
    assert_eq!(series.delta(0, "sda", at(28), at(3), "read_bytes"), None, "a counter went back");
    assert_eq!(series.delta(0, "sda", at(3) + 1, at(28), "read_bytes"), None, "no row there");
    assert_eq!(series.delta(0, "sda", at(3), at(28), "in_flight"), None, "no counter");
    assert_eq!(series.value_at(0, "sda", at(3), "in_flight"), Some(4));
    assert_eq!(series.value_at(0, "sdb", at(3), "in_flight"), None, "unmeasured is not zero");
    assert_eq!(series.value_at(0, "sdc", at(3), "read_bytes"), None);
    assert_eq!(series.value_at(1, "sda", at(3), "read_bytes"), None);
    assert_eq!(series.value_at(0, "sda", at(3), "link_state"), None, "a text is not a number");
    assert_eq!(
        series.track(0, "sdb", at(1) + 1, at(3), "read_bytes"),
        [(at(2), 8192), (at(3), 12_288)]
    );
    assert_eq!(series.track(0, "sdb", at(3), at(1), "read_bytes"), []);
    assert_eq!(series.rows().next().unwrap().cell(2), Cell::Text("up".to_owned()));
}

#[test]
fn the_last_row_of_an_instant_is_the_edge() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("edge"), &[&CPU]).unwrap();
    recorder.row("cpu", 7, 0, "", &[Cell::Value(1)]).unwrap();
    recorder.row("cpu", 7, 0, "", &[Cell::Value(2)]).unwrap();
    recorder.end_segment().unwrap();
    let series = Recording::open(&dir).unwrap().series("cpu").unwrap();
    assert_eq!(series.value_at(0, "", 7, "busy_ns"), Some(2));
}

#[test]
fn histograms_and_events_come_back_with_their_exact_sums() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("h"), &[]).unwrap();
    let mut long = latencies(3, 10);
    long.page = Some(19);
    long.histogram.record(9_000_000_000_000);
    (long.role, long.clock) = ("background".to_owned(), LatencyClock::Intended);
    (long.windowed, long.phase) = (false, 5);
    let written = vec![latencies(0, 0), latencies(1, 1000), long];
    for row in &written {
        recorder.histogram(row.clone()).unwrap();
        recorder.end_segment().unwrap();
    }
    recorder.event(17, -1, "phase-start", "sequential, 1 MiB: \"layout\"").unwrap();
    recorder.close(End::Interrupted { signal: "SIGTERM".to_owned() }).unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.histograms().unwrap(), written);
    assert_eq!(recording.histograms().unwrap()[2].histogram.beyond(), 1);
    let event = Event {
        t_ns: 17,
        phase: -1,
        kind: "phase-start".to_owned(),
        detail: "sequential, 1 MiB: \"layout\"".to_owned(),
    };
    assert_eq!(recording.events().unwrap(), [event]);
    assert_eq!(recording.manifest.end, End::Interrupted { signal: "SIGTERM".to_owned() });
    assert!(recording.manifest.ended_at.is_some());
}

#[test]
fn ticks_missed_ticks_and_reasons_are_in_the_recording() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("t"), &[&DISK, &CPU]).unwrap();
    let why = Unmeasured::NotPermitted("needs CAP_SYS_ADMIN".to_owned());
    recorder.manifest().probes[0].columns[1].unmeasured = Some(why.clone());
    super::record_tick(&mut recorder, 0).unwrap();
    super::record_tick(&mut recorder, 1).unwrap();
    recorder.missed_ticks("cpu", 1);
    recorder.close(End::Complete).unwrap();
    let recording = Recording::open(&dir).unwrap();
    let probes = &recording.manifest.probes;
    assert_eq!((probes[0].ticks, probes[0].missed_ticks), (2, 0), "two disks, one tick");
    assert_eq!((probes[1].ticks, probes[1].missed_ticks), (2, 1));
    assert_eq!(recording.series("disk").unwrap().columns()[1].unmeasured, Some(why));
}

#[test]
fn rows_that_do_not_fit_their_schema_are_rejected() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("w"), &[&DISK]).unwrap();
    let unknown = recorder.row("tape", 0, 0, "", &[]).unwrap_err();
    assert!(unknown.told().ends_with("hint: it has disk"), "{unknown}");
    let number = Cell::Value(0);
    let short = recorder.row("disk", 0, 0, "", std::slice::from_ref(&number)).unwrap_err();
    assert!(short.to_string().contains("1 cells for 3 columns"), "{short}");
    let cells = [number.clone(), Cell::Text("up".to_owned()), Cell::Unmeasured];
    let wrong = recorder.row("disk", 0, 0, "", &cells).unwrap_err();
    assert!(wrong.to_string().contains("`in_flight`"), "{wrong}");
    let cells = [number.clone(), number, Cell::Unmeasured];
    assert!(recorder.row("disk", u64::MAX, 0, "", &cells).is_err());
    recorder.close(End::Complete).unwrap();
    assert!(Recording::open(&dir).unwrap().series("disk").unwrap().is_empty());
}

fn figure(high: f64) -> BTreeMap<String, Figure> {
    let estimate = Estimate { value: 1.0, low: 0.5, high, samples: 9, duration_ns: 1 };
    let figure = testing::figure("Most random reads a second", "IOPS", estimate, "");
    [("max_iops".to_owned(), figure)].into()
}

#[test]
fn a_number_that_json_cannot_hold_is_refused_before_it_replaces_a_good_manifest() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("nan"), &[]).unwrap();
    recorder.manifest().summary = figure(f64::NAN);
    assert!(matches!(recorder.save(), Err(RecordError::Rejected { .. })));
    assert!(Recording::open(&dir).unwrap().manifest.summary.is_empty());
}

#[test]
fn a_judgement_is_kept_and_nothing_else_changes() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    record_run(&dir);
    let before = Recording::open(&dir).unwrap().manifest;
    keep_judgement(&dir, figure(1.5), Vec::new()).unwrap();
    let after = Recording::open(&dir).unwrap().manifest;
    assert_eq!(after, Manifest { summary: figure(1.5), ..before });
    assert!(keep_judgement(&dir, figure(f64::NAN), Vec::new()).is_err());
    assert_eq!(Recording::open(&dir).unwrap().manifest, after);
    keep_judgement(&dir, figure(f64::INFINITY), Vec::new()).unwrap();
    let open = Recording::open(&dir).unwrap().manifest.summary;
    assert_eq!(open, figure(f64::INFINITY), "open above");
}

#[test]
fn a_running_recording_is_read_while_it_grows_and_closes() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("run");
    let mut recorder = Recorder::create(&dir, manifest("live"), &[&DISK, &CPU]).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut longest = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let recording = Recording::open(&dir).unwrap();
                let len = recording.series("disk").unwrap().len();
                assert_eq!(recording.warnings(), Vec::<String>::new());
                assert!(len >= longest, "rows vanished: {len} after {longest}");
                longest = len;
            }
        });
        for tick in 0..40 {
            super::record_tick(&mut recorder, tick).unwrap();
            recorder.end_segment().unwrap();
        }
        recorder.close(End::Complete).unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert_eq!(Recording::open(&dir).unwrap().series("disk").unwrap().len(), 80);
}
