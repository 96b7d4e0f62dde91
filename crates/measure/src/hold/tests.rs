//! Synthetic loads, held on a clock that advances only during waits.

use std::collections::BTreeMap;
use std::path::Path;

use blockstone_base::clock::{Clock, ManualClock};
use blockstone_base::column::{Cell, Column, Kind, Reading, Schema, Unit};
use blockstone_base::identity::Host;
use blockstone_record::manifest::{End, Group, Phase};
use blockstone_record::{RecordError, Recording};
use blockstone_sys::survey;

use super::*;
use crate::{Opening, SessionSpec};

const TICK: Nanos = Nanos::millis(20);
/// Nanoseconds that reading the load takes.
const LOOK_NS: u64 = 1000;
const NEVER: u64 = u64::MAX;

const SERIES: Schema = Schema {
    probe: "made_up",
    doc: "A made-up load.",
    columns: &[Column {
        name: "done",
        unit: Unit::Count,
        kind: Kind::Counter,
        source: "the test",
        doc: "Operations completed.",
    }],
};

/// A load that completes one more operation in each tick than in the previous one, until its rate
/// stays constant.
#[derive(Clone)]
struct MadeUp {
    clock: ManualClock,
    warm_up: Nanos,
    overtime: Nanos,
    window: Nanos,
    grows_for: u64,
    fails_at: u64,
    finishes_at: u64,
    /// Number of the tick that takes three times as long as it may.
    slow: u64,
    ticks: u64,
    done: u64,
    /// Events in order.
    life: Vec<&'static str>,
}

impl Default for MadeUp {
    fn default() -> Self {
        Self {
            clock: ManualClock::default(),
            warm_up: Nanos::millis(1000),
            overtime: Nanos(0),
            window: Nanos::millis(190),
            grows_for: 0,
            fails_at: NEVER,
            finishes_at: NEVER,
            slow: NEVER,
            ticks: 0,
            done: 0,
            life: Vec::new(),
        }
    }
}

impl Loaded for MadeUp {
    type Error = RecordError;

    const SETTLED_TICKS: usize = 10;

    fn warm_up(&self) -> Nanos {
        self.warm_up
    }

    fn tick(
        &mut self,
        session: &mut Session,
        _: &mut dyn Observer,
        stage: Stage,
    ) -> Result<Progress, RecordError> {
        self.ticks += 1;
        self.done += 1 + self.ticks.min(self.grows_for);
        let cells = vec![Cell::Value(self.done as i64)];
        let (t_ns, ()) = session.tick(|readings| {
            readings.push(Reading { probe: SERIES.probe, object: String::new(), cells });
        })?;
        let takes_ns = if self.ticks == self.slow { 3 * TICK.get() } else { LOOK_NS };
        self.clock.advance_to(self.clock.now_ns() + takes_ns);
        self.life.push(match stage {
            Stage::WarmUp => "warm up",
            Stage::Start => "start",
            Stage::Inside => "inside",
            Stage::End => "end",
            Stage::After => "after",
        });
        Ok(Progress { t_ns, count: self.done })
    }

    fn open_window(&mut self) {
        self.life.push("open");
    }

    fn close_window(&mut self) {
        self.life.push("close");
    }

    fn failed(&self) -> bool {
        self.ticks >= self.fails_at
    }

    fn finished(&self) -> bool {
        self.ticks >= self.finishes_at
    }

    fn overtime(&self) -> Nanos {
        self.overtime
    }

    fn enough(&self, length: Nanos, overtime: Nanos) -> Option<Stop> {
        (length.get() + overtime.get() >= self.window.get()).then_some(Stop::TimeLimit)
    }
}

/// An observer that interrupts at this time.
struct InterruptsAt(ManualClock, u64);

impl Observer for InterruptsAt {
    fn interrupted(&self) -> Option<&'static str> {
        (self.0.now_ns() >= self.1).then_some("SIGINT")
    }
}

/// Holds the load and records it in `dir`.
fn held(dir: &Path, mut load: MadeUp, interrupts_at: Nanos) -> (Window, MadeUp) {
    let opening = Opening {
        id: "test",
        verb: "test",
        argv: &[],
        settings: BTreeMap::new(),
        seed: 1,
        rank: None,
        host: &Host::default(),
        target: &survey::target(Path::new("/"), dir).unwrap(),
        capabilities: &[],
    };
    let spec = SessionSpec {
        dir: &dir.join("recording"),
        manifest: opening.manifest(),
        devices: Vec::new(),
        series: &[&SERIES],
        through_page_cache: false,
        tick: TICK,
    };
    let mut session = Session::start_on(Box::new(load.clock.clone()), spec).unwrap();
    let mut observer = InterruptsAt(load.clock.clone(), interrupts_at.get());
    let window = hold(&mut session, &mut observer, &mut load).unwrap();
    let end_ns = session.now_ns();
    session.recorder().manifest().phases.push(Phase {
        label: "made up".to_owned(),
        group: Group::Workload,
        repeat: 0,
        load: None,
        background: None,
        start_ns: 0,
        window_start_ns: window.start_ns,
        window_end_ns: window.end_ns,
        end_ns,
        stop: window.stop,
        settled: window.settled,
        processors: None,
        first_error: None,
        note: None,
    });
    session.end_phase().unwrap();
    session.close(End::Complete).unwrap();
    (window, load)
}

fn uninterrupted(load: MadeUp) -> (Window, MadeUp) {
    held(tempfile::tempdir().unwrap().path(), load, Nanos(NEVER))
}

fn count(load: &MadeUp, what: &str) -> usize {
    load.life.iter().filter(|happened| **happened == what).count()
}

#[test]
fn a_steady_load_is_measured_from_the_tick_at_which_it_has_settled() {
    let (window, load) = uninterrupted(MadeUp::default());
    let inside = ["inside"; 9];
    let warm_up = ["warm up"; 21];
    let life = [&warm_up[..], &["open", "start"], &inside, &["end", "close"]].concat();
    assert_eq!(load.life, life);
    assert_eq!(window.settled, Some(true));
    assert_eq!(window.stop, Stop::TimeLimit);
    assert_eq!(
        window.start_ns,
        21 * TICK.get() + LOOK_NS,
        "the window opens where the warm-up ended"
    );
    let longer_ns = window.end_ns - window.start_ns - load.window.get();
    assert!(longer_ns < TICK.get(), "the window ends at the first tick after its length");
}

#[test]
fn a_growing_rate_is_waited_for_and_one_that_grows_too_long_is_said_not_to_have_settled() {
    let (window, load) = uninterrupted(MadeUp { grows_for: 20, ..MadeUp::default() });
    assert_eq!(window.settled, Some(true));
    let warm_up = count(&load, "warm up");
    assert!((25..=45).contains(&warm_up), "{warm_up} ticks for a rate that grew over 20");
    let growing = MadeUp { grows_for: NEVER, window: Nanos::millis(400), ..MadeUp::default() };
    let (window, load) = uninterrupted(growing);
    assert_eq!((window.settled, count(&load, "warm up")), (Some(false), 50), "all of the limit");
}

#[test]
fn a_warm_up_takes_of_the_window_while_the_rate_moves_and_no_longer_together() {
    let short = MadeUp {
        warm_up: Nanos::millis(240),
        overtime: Nanos::millis(600),
        window: Nanos::millis(1200),
        ..MadeUp::default()
    };
    let (steady, load) = uninterrupted(short.clone());
    assert_eq!((count(&load, "warm up"), steady.settled), (12, Some(true)), "the window shows it");
    let (risen, load) = uninterrupted(MadeUp { grows_for: 16, ..short.clone() });
    let warm_up = count(&load, "warm up");
    assert!((20..=40).contains(&warm_up), "{warm_up} ticks for a rate that grew over 16");
    assert_eq!(risen.settled, Some(true));
    let (rising, load) = uninterrupted(MadeUp { grows_for: NEVER, ..short });
    assert_eq!((count(&load, "warm up"), rising.settled), (42, Some(false)));
    let ends = [steady.end_ns, risen.end_ns, rising.end_ns];
    assert!(ends.iter().all(|end| end.abs_diff(ends[0]) <= TICK.get()), "{ends:?}");
}

#[test]
fn without_a_warm_up_the_window_opens_at_once() {
    let (window, load) = uninterrupted(MadeUp { warm_up: Nanos(0), ..MadeUp::default() });
    assert_eq!((window.settled, window.start_ns), (None, 0));
    assert_eq!(load.life[..2], ["open", "start"]);
}

#[test]
fn a_window_ends_where_the_load_does() {
    let failing = MadeUp { fails_at: 24, finishes_at: 24, ..MadeUp::default() };
    let (window, load) = uninterrupted(failing);
    assert_eq!((window.stop, load.ticks), (Stop::Failed, 25), "before anything else is asked");
    let (window, load) = uninterrupted(MadeUp { finishes_at: 24, ..MadeUp::default() });
    assert_eq!((window.stop, load.ticks), (Stop::WorkDone, 25));
    let growing = MadeUp { grows_for: NEVER, ..MadeUp::default() };
    let (window, load) = uninterrupted(MadeUp { finishes_at: 3, ..growing.clone() });
    assert_eq!((window.stop, count(&load, "warm up")), (Stop::WorkDone, 3));
    let (window, load) = uninterrupted(MadeUp { fails_at: 3, ..growing });
    assert_eq!((window.stop, count(&load, "warm up")), (Stop::Failed, 3));
    assert_eq!(load.life[3..], ["open", "start", "end", "close"]);
}

#[test]
fn an_interruption_ends_warm_up_and_window_and_leaves_both_edges() {
    let growing = MadeUp { grows_for: NEVER, ..MadeUp::default() };
    for (load, at, warm_up) in
        [(growing, Nanos::millis(60), 3), (MadeUp::default(), Nanos::millis(510), 21)]
    {
        let dir = tempfile::tempdir().unwrap();
        let (window, load) = held(dir.path(), load, at);
        assert_eq!((window.stop, count(&load, "warm up")), (Stop::Interrupted, warm_up));
        assert_eq!(load.life[load.life.len() - 2..], ["end", "close"]);
        assert!(window.end_ns > window.start_ns);
    }
}

#[test]
fn every_edge_has_a_row_and_a_late_tick_delays_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let slow = MadeUp { slow: 24, ..MadeUp::default() };
    let (window, load) = held(dir.path(), slow, Nanos(NEVER));
    let recording = Recording::open(&dir.path().join("recording")).unwrap();
    let series = recording.series(SERIES.probe).unwrap();
    let at = |t_ns| series.value_at(0, "", t_ns, "done");
    assert_eq!(at(window.start_ns), Some(22));
    assert_eq!(at(window.end_ns), Some(load.done as i64));
    let instants: Vec<u64> = series.rows().map(|row| row.t_ns / TICK.get()).collect();
    // The last tick of the warm-up is followed by the window's first edge, read where the warm-up
    // ended.
    assert_eq!(instants[19..25], [20, 21, 21, 22, 23, 26]);
    let longer_ns = window.end_ns - window.start_ns - load.window.get();
    assert!(longer_ns < TICK.get(), "the window ends at the first tick after its length");
    let info = recording.manifest.probes.iter().find(|info| info.probe == SERIES.probe).unwrap();
    assert_eq!((info.ticks, info.missed_ticks), (load.ticks, 2));
}
