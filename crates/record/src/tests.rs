//! Shared parts of the tests: a manifest, two probes and a short run.

mod crash;
mod damage;
mod dropped;
mod faulty;
mod fixture;
mod full_disk;
mod hostile;
mod kept;
mod round_trip;
mod running;
mod runs;

use std::path::Path;

use blockstone_base::column::{Cell, Column, Kind, Schema, Unit};
use blockstone_base::{LatencyHistogram, Op};

use crate::manifest::{End, Manifest};
use crate::{HistogramRow, LatencyClock, RecordError, Recorder, testing};

pub(crate) static DISK: Schema = Schema {
    probe: "disk",
    doc: "Two disks.",
    columns: &[
        column("read_bytes", Unit::Bytes, Kind::Counter),
        column("in_flight", Unit::Count, Kind::Gauge),
        column("link_state", Unit::Text, Kind::State),
    ],
};

pub(crate) static CPU: Schema = Schema {
    probe: "cpu",
    doc: "All processors.",
    columns: &[column("busy_ns", Unit::Nanoseconds, Kind::Counter)],
};

const fn column(name: &'static str, unit: Unit, kind: Kind) -> Column {
    Column { name, unit, kind, source: "the test", doc: "A column of the test." }
}

/// Manifest of a recording that has not ended.
pub(crate) fn manifest(id: &str) -> Manifest {
    let (id, ended_at, end) = (id.to_owned(), None, End::Running);
    Manifest { id, ended_at, end, ..testing::manifest() }
}

/// Latencies of one second: `count` of them, from 100 µs up.
pub(crate) fn latencies(second: u32, count: u64) -> HistogramRow {
    let mut histogram = LatencyHistogram::new();
    for i in 0..count {
        histogram.record(100_000 + i * 997);
    }
    HistogramRow {
        page: None,
        phase: 0,
        second,
        op: Op::Read,
        role: String::new(),
        windowed: true,
        clock: LatencyClock::Submitted,
        histogram,
    }
}

/// Records tick `tick` of both probes, with two disks, and a histogram and an event at every tenth
/// tick.
pub(crate) fn record_tick(recorder: &mut Recorder, tick: u64) -> Result<(), RecordError> {
    let t_ns = tick * 100_000_000;
    for (object, scale) in [("sda", 8192), ("sdb", 4096)] {
        let in_flight = if object == "sda" { Cell::Value(4) } else { Cell::Unmeasured };
        let cells = [Cell::from(tick * scale), in_flight, Cell::Text("up".to_owned())];
        recorder.row("disk", t_ns, 0, object, &cells)?;
    }
    recorder.row("cpu", t_ns, 0, "", &[Cell::from(tick * 1_000_000)])?;
    if tick.is_multiple_of(10) {
        recorder.histogram(latencies((tick / 10) as u32, 50 + tick))?;
        recorder.event(t_ns, 0, "second", &format!("tick {tick}"))?;
    }
    Ok(())
}

/// Records a finished run of three segments with ten ticks each.
pub(crate) fn record_run(dir: &Path) {
    record_run_of(dir, manifest("r1"));
}

pub(crate) fn record_run_of(dir: &Path, manifest: Manifest) {
    let mut recorder = Recorder::create(dir, manifest, &[&DISK, &CPU]).unwrap();
    for tick in 0..30 {
        record_tick(&mut recorder, tick).unwrap();
        if tick % 10 == 9 {
            recorder.end_segment().unwrap();
        }
    }
    recorder.close(End::Complete).unwrap();
}
