//! The figures of a part of a long recording are those of all of its rows, to the digit.

#![allow(clippy::unwrap_used, reason = "this crate is tests: a panic is how they fail")]

use std::path::Path;

use blockstone_base::column::{Cell, Column, Kind, Schema, Unit};
use blockstone_base::rng::Rng;
use blockstone_base::{LatencyHistogram, Op};
use blockstone_figures::{History, Interval, RECENT_S, Timed};
use blockstone_record::manifest::End;
use blockstone_record::{HistogramRow, LatencyClock, Recorder, Recording, TICKS, testing};

const SECOND_NS: u64 = 1_000_000_000;

const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, unit: Unit::Count, kind, source: "test", doc: "Made up." }
}

static HOST: Schema = Schema {
    probe: TICKS,
    doc: "The host.",
    columns: &[column("switches", Kind::Counter), column("runnable", Kind::Gauge)],
};

static DISK: Schema = Schema {
    probe: "disk",
    doc: "Disks.",
    columns: &[
        column("ios", Kind::Counter),
        column("rare", Kind::Counter),
        column("depth", Kind::Gauge),
        column("state", Kind::State),
    ],
};

static SESSION: Schema =
    Schema { probe: "session", doc: "Samples.", columns: &[column("event", Kind::State)] };

/// The life of an object.
struct Life {
    name: &'static str,
    from: u64,
    to: u64,
    /// Tick at which its counters restart, if they do.
    reset: Option<u64>,
    /// Ticks at which a column is not measured.
    unmeasured: std::ops::Range<u64>,
    /// Distance of its rows in ticks.
    every: u64,
}

const fn life(name: &'static str, from: u64, to: u64) -> Life {
    Life { name, from, to, reset: None, unmeasured: 0..0, every: 1 }
}

fn record(dir: &Path, ticks: u64) -> Recorder {
    let lives = [
        life("whole", 0, u64::MAX),
        Life { reset: Some(ticks / 3 + 5), ..life("reset", 0, u64::MAX) },
        life("late", ticks / 2 + 3, u64::MAX),
        life("early", 0, ticks / 4 + 1),
        life("short", ticks / 5 + 1, ticks / 5 + 4),
        Life { unmeasured: ticks / 6 + 2..ticks / 6 + 3, ..life("a gap", 0, u64::MAX) },
        Life { every: 7, ..life("seldom", 3, u64::MAX) },
    ];
    let schemas = [&HOST, &DISK, &SESSION];
    let mut recorder = Recorder::create(dir, testing::manifest(), &schemas).unwrap();
    let mut random = Rng::new(7, 0);
    let mut next = |most: u64| random.below(most) as i64;
    let mut counts = [0_i64; 8];
    for tick in 0..ticks {
        let t_ns = tick * SECOND_NS + 1;
        counts[7] += next(1000);
        let cells = [Cell::Value(counts[7]), Cell::Value(next(9))];
        recorder.row(TICKS, t_ns, 0, "", &cells).unwrap();
        for (life, count) in lives.iter().zip(&mut counts) {
            let is_there = (life.from..life.to).contains(&tick);
            if !is_there || !(tick - life.from).is_multiple_of(life.every) {
                continue;
            }
            *count = if life.reset == Some(tick) { 0 } else { *count + next(100) };
            let rare = if life.unmeasured.contains(&tick) {
                Cell::Unmeasured
            } else {
                Cell::Value(*count / 50)
            };
            let state = if next(3) == 0 { "idle" } else { "busy" };
            let cells =
                [Cell::Value(*count), rare, Cell::Value(next(32)), Cell::Text(state.to_owned())];
            recorder.row("disk", t_ns, 0, life.name, &cells).unwrap();
        }
        if tick.is_multiple_of(3) {
            let event = if next(2) == 0 { "IO/DataFileRead" } else { "LWLock/WALWrite" };
            recorder.row("session", t_ns + 5, 0, "17", &[Cell::Text(event.to_owned())]).unwrap();
        }
        let mut histogram = LatencyHistogram::new();
        histogram.record(50_000 + next(1_000_000) as u64);
        let row = HistogramRow {
            phase: 0,
            second: tick as u32,
            page: None,
            op: Op::Read,
            role: "read".to_owned(),
            windowed: false,
            clock: LatencyClock::Submitted,
            histogram,
        };
        recorder.histogram(row).unwrap();
        if tick.is_multiple_of(1000) {
            recorder.end_segment().unwrap();
        }
    }
    recorder
}

/// All figures that are asked of an interval, as text.
fn answers(interval: &Interval<'_>) -> Vec<String> {
    let mut said = vec![
        format!("{:?}", interval.grown(TICKS, "", "switches")),
        format!("{:?}", interval.level(TICKS, "", "runnable")),
        format!("{:?}", interval.objects("disk")),
        format!("{:?}", interval.grown_of_all("disk", "ios")),
        format!("{:?}", interval.samples("session").count()),
        format!("{:?}", Timed::Event("read".to_owned()).latencies(interval)),
    ];
    for object in interval.objects("disk") {
        for column in ["ios", "rare"] {
            said.push(format!("{object} {:?}", interval.grown("disk", object, column)));
            said.push(format!("{object} {:?}", interval.grown_from_zero("disk", object, column)));
            said.push(format!("{object} {:?}", interval.per_s("disk", object, column)));
        }
        said.push(format!("{object} {:?}", interval.level("disk", object, "depth")));
        said.push(format!("{object} {:?}", interval.text("disk", object, "state")));
        said.push(format!("{object} {:?}", interval.said("disk", object, "state")));
    }
    said
}

#[test]
fn figures_of_a_part_and_of_its_slices_are_those_of_all_rows() {
    let dir = tempfile::tempdir().unwrap();
    let ticks = 20_000;
    let dir = dir.path().join("long");
    record(&dir, ticks).close(End::Complete).unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.coarsest("disk"), 2, "20,000 ticks, 2,500 and 313");
    let parts =
        [(0, 19_999), (1, 19_998), (2_345, 14_321), (30, 3_000), (3_990, 4_020), (5_000, 5_001)];
    check(&recording, &parts);
}

#[test]
fn while_it_is_recorded_too() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("long");
    let _recorder = record(&dir, 9_001);
    let recording = Recording::open(&dir).unwrap();
    assert_eq!((recording.coarsest("disk"), recording.manifest.end.clone()), (0, End::Running));
    check(&recording, &[(0, 9_000), (3_990, 4_020)]);
}

/// Checks parts of a recording, each from one tick to another.
fn check(recording: &Recording, parts: &[(usize, usize)]) {
    let whole = History::read(recording).unwrap();
    let all: Vec<u64> = recording.instants(TICKS).unwrap();
    assert_eq!(all, whole.ticks().collect::<Vec<_>>());
    for &(from, to) in parts {
        let span_ns = (all[from], all[to]);
        let part = History::read_part(recording, all.clone(), span_ns).unwrap();
        let inside: Vec<u64> =
            part.ticks().filter(|tick| (span_ns.0..=span_ns.1).contains(tick)).collect();
        assert!(inside.len() <= 1_100, "{} ticks are kept", inside.len());
        let least = (to - from).min(if to - from > 1024 { 120 } else { usize::MAX });
        assert!(inside.len() > least, "{} ticks of {from}..{to}", inside.len());
        for back_s in RECENT_S {
            let wanted_ns = span_ns.1.saturating_sub(back_s * SECOND_NS);
            let from_ns = part.tick_near(wanted_ns).unwrap();
            assert_eq!(Some(from_ns), whole.tick_near(wanted_ns));
            let expected = answers(&whole.interval(from_ns, span_ns.1));
            assert_eq!(
                answers(&part.interval(from_ns, span_ns.1)),
                expected,
                "the last {back_s} s"
            );
        }
        let slices = inside.windows(2).step_by(67).map(|edges| (edges[0], edges[1]));
        for (from_ns, to_ns) in slices.chain([span_ns, (inside[0], inside[inside.len() / 2])]) {
            let expected = answers(&whole.interval(from_ns, to_ns));
            assert_eq!(answers(&part.interval(from_ns, to_ns)), expected, "{from_ns}..{to_ns}");
        }
    }
}
